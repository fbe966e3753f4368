"""Forward and backward loss correction (Patrini et al. 2017) of the adversarial zero-one surrogate, with certificates.

The surrogate is S(g, y) = A(g) - g_y with A(g) = max_q G(q) + q.g over distributions q, so its noise-corrected forms stay convex:

    backward   sum_q C^-1[q, y] S(g, q)  =  A(g) - (C^-1 e_y).g        unbiased: its mean over the noisy labels of class q is S(g, q)
    forward    max_q G(q) + (C q).f - f_y  =  A(C'f) - f_y             the game whose adversary must match the noisy labels by C q

With g = C'f the two losses are one, f_y = (C^-T g)_y. They differ in what is regularised, the weights of g (backward) or of f (forward):
lambda/2 tr(Theta M^-1 Theta') over the weights Theta of g with M = I or M = C'C. Predictions are argmax g in both.

    primal  lambda/2 tr(Theta M^-1 Theta') + 1/n sum_i A(g_i) - w_i.g_i,   w_i = C^-1 e_{y_i}
    dual    1/n sum_i G(q_i) - lambda/2 tr(Theta M^-1 Theta'),   Theta = -1/(lambda n) sum_i x_i (M (q_i - w_i))'
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..core.arrays import is_sparse
from ..core.compiled import compiled_rows, kernels
from ..core.linalg import eigvalsh, inner, inv, solve
from ..core.typing import Array, Labels
from ..features.merging import merge_rows
from ..losses import make_loss
from ..problems.certificate import judge, warn_unless_converged
from .base import register
from .options import seed_of
from .refitting import check_limit, check_positive
from .uma import LearnsFromConfusion, confusion_matrix


class _CorrectedProblem:
    """The problem of the module over merged rows X (n, d), codes y (n,) and weights (n,), with its dual point R as compiled code has it."""

    def __init__(self, X: Any, y: Labels, sample: Array, noise: Array, forward: bool, lam: float) -> None:
        k, (n, d) = len(noise), X.shape
        self.X, self.y, self.sample, self.mass, self.k, self.lam = X, y, sample, float(sample.sum()), k, lam
        self.loss, self.one_hot = make_loss("zero_one", k), np.eye(k)[y]
        self.M = noise.T @ noise if forward else np.eye(k)
        self.targets = inv(noise).T[y]  # w_i
        width = kernels.corrected.width(k)
        self.R, self.theta, self.padded_M = np.zeros((n, width)), np.zeros((d, width)), np.zeros((k, width))
        self.padded_M[:, :k] = self.M
        self.rows = compiled_rows(X)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if is_sparse(X) else np.einsum("ij,ij->i", X, X)
        self.squares = np.ascontiguousarray(squares, dtype=np.float64)
        self.step = float(eigvalsh(self.M)[-1])

    def bounds(self) -> tuple[float, float]:
        """Return primal and dual value, computed from the dual point alone, so that the certificate does not rest on sums of updates."""
        k, y, theta = self.k, self.y, self.theta
        # back into the simplex where rounding has taken a row out
        point = self.loss.project(np.ascontiguousarray(self.R[:, :k]), y)
        theta[:, :k] = -(self.X.T @ (self.sample[:, None] * ((point + self.one_hot - self.targets) @ self.M))) / (self.lam * self.mass)
        scores = np.ascontiguousarray(self.X @ theta[:, :k])
        penalty = 0.5 * self.lam * inner(solve(self.M, theta[:, :k].T), theta[:, :k].T)
        values = self.loss.value(scores, y) + scores[np.arange(len(y)), y] - np.einsum("ij,ij->i", self.targets, scores)
        return penalty + float(self.sample @ values) / self.mass, float(self.sample @ self.loss.offset(point, y)) / self.mass - penalty

    def sweep(self, enough: float, passes: int, seed: int) -> None:
        """Ascend over the rows in compiled code, and stop early where a pass gains less than ``enough``."""
        kernels.corrected.sweep(
            kernels.arguments(self.loss.family)[0],
            self.k,
            *self.rows,
            np.ascontiguousarray(self.y, dtype=np.intp),
            self.squares,
            np.ascontiguousarray(self.sample, dtype=np.float64),
            self.padded_M,
            self.R,
            self.theta,
            1.0 / (self.lam * self.mass),
            self.step,
            enough,
            passes,
            seed & 0xFFFFFFFFFFFFFFFF,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class _Corrected(LearnsFromConfusion):
    """Adversarial zero-one loss corrected for label noise.

    Parameters
    ----------
    confusion : array-like (k, k), str, Path or None
        C[p, q] = P(label p is seen | the true class is q), as in `UMAClassifier`.
    C, lam, random_state, features, features_options, n_classes
        As in `SurrogateClassifier`; linear features get a constant, regularised like the rest.
    tol : float
        Gap at which the fit is accepted, relative to the larger of |primal| and the loss at scores 0, (k - 1)/k: a corrected loss can be 0.
    max_passes : int
        Limit of passes over the rows; beyond, a fit warns (`NotConvergedWarning`) and keeps its certificate.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Weights of the scores g of the true classes.
    """

    constant: ClassVar[bool] = True
    hyper: ClassVar[tuple[str, ...]] = ("regularisation",)
    certified: ClassVar[bool] = True
    forward: ClassVar[bool]

    C: float = 1.0
    lam: float | None = None
    tol: float = 1e-3
    max_passes: int = 2000

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Ascend the dual until its certified gap is small."""
        check_positive(C=self.C, tol=self.tol, lam=self.lam, max_passes=self.max_passes)
        check_limit("max_passes", self.max_passes, 1.0)
        began, k = time.perf_counter(), len(self.classes_)
        X, y, weights, *_ = merge_rows(X, y, weights)
        self.confusion_, self.condition_ = confusion_matrix(self.confusion, k, list(self.order_), X, y)
        sample = np.ones(X.shape[0]) if weights is None else weights
        self.lam_ = float(self.lam if self.lam is not None else 1.0 / (self.C * float(sample.sum())))
        problem = _CorrectedProblem(X, y, sample, self.confusion_, self.forward, self.lam_)
        seed, passes, batch = seed_of(self.random_state), 0, 1
        while True:
            primal, dual = problem.bounds()
            scale = max(abs(primal), 1.0 - 1.0 / k)
            if primal - dual <= self.tol * scale or passes + 1 > self.max_passes:
                break
            batch = min(batch, int(self.max_passes) - passes)
            problem.sweep(1e-3 * self.tol * scale, batch, seed + passes)
            passes += batch
            batch = min(2 * batch, 32)
        self.certificate_ = judge(
            primal,
            dual,
            self.tol,
            outside=float(problem.loss.infeasibility(np.ascontiguousarray(problem.R[:, :k]), y).max()),
            passes=float(passes),
            status="max_passes" if passes + 1 > self.max_passes else "converged",
            solver="dual",
            seconds=time.perf_counter() - began,
            scale=scale,
        )
        self.n_iter_ = max(1, passes)
        warn_unless_converged(f"loss={self.name}, lambda={self.lam_:.3g}", self.certificate_, self.tol)
        return np.ascontiguousarray(problem.theta[:, :k].T)


@register("forward")
class ForwardCorrectedClassifier(_Corrected):
    """The zero-one game whose adversary must match the noisy labels by C q: A(C'f) - f_y, regularised by the weights of f."""

    forward = True


@register("backward")
class BackwardCorrectedClassifier(_Corrected):
    """The unbiased combination sum_q C^-1[q, y] S(g, q) of the zero-one surrogate, regularised by the weights of g."""

    forward = False
