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
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..core.compiled import compiled_rows, kernels
from ..core.typing import Array, Labels
from ..features.merging import merge_rows
from ..losses import make_loss
from ..problems.certificate import judge, warn_unless_converged
from .base import register
from .linear import LinearLearner
from .options import seed_of
from .refitting import check_limit, check_positive
from .uma import confusion_matrix


@dataclass(kw_only=True, eq=False, repr=False)
class _Corrected(LinearLearner):
    """Adversarial zero-one loss corrected for label noise.

    Parameters
    ----------
    confusion : array-like (k, k), str, Path or None
        As in `UMAClassifier`: C[p, q] = P(label p is seen | the true class is q).
    C : float
        Weight of the summed loss against the regularisation; lambda = 1/(n C).
    lam, random_state
        As in `SurrogateClassifier`.
    tol : float
        Gap at which the fit is accepted, relative to the larger of |primal| and the loss at scores 0, (k - 1)/k: a corrected loss can be 0.
    max_passes : int
        Limit of passes over the rows; beyond, a fit warns (`NotConvergedWarning`) and keeps its certificate.
    features, features_options, n_classes
        As in `UMAClassifier`; linear features get a constant, regularised like the rest.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Weights of the scores g of the true classes.
    certificate_ : Certificate
        Primal, dual and gap of this fit, computed from the returned weights and from the dual point.
    """

    takes: ClassVar[tuple[str, ...]] = ("confusion",)
    paths: ClassVar[tuple[str, ...]] = ("confusion",)
    constant: ClassVar[bool] = True
    hyper: ClassVar[tuple[str, ...]] = ("regularisation",)
    certified: ClassVar[bool] = True
    forward: ClassVar[bool]

    confusion: Any = field(default=None, kw_only=False)
    C: float = 1.0
    lam: float | None = None
    tol: float = 1e-3
    max_passes: int = 2000

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Ascend the dual until its certified gap is small."""
        check_positive(C=self.C, tol=self.tol, lam=self.lam, max_passes=self.max_passes)
        check_limit("max_passes", self.max_passes, 1.0)
        began = time.perf_counter()
        X, y, weights, *_ = merge_rows(X, y, weights)
        k, (n, d) = len(self.classes_), X.shape
        self.confusion_, self.condition_ = confusion_matrix(self.confusion, k, list(self.order_))
        noise = self.confusion_
        M = noise.T @ noise if self.forward else np.eye(k)
        targets = np.linalg.inv(noise).T[y]  # w_i
        sample = np.ones(n) if weights is None else weights
        mass = float(sample.sum())
        lam = self.lam_ = float(self.lam if self.lam is not None else 1.0 / (self.C * mass))
        loss = make_loss("zero_one", k)
        one_hot = np.eye(k)[y]
        kp = kernels.corrected.width(k)
        padded_M = np.zeros((k, kp))
        padded_M[:, :k] = M
        R = np.zeros((n, kp))
        theta = np.zeros((d, kp))
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if hasattr(X, "multiply") else np.einsum("ij,ij->i", X, X)
        rows, seed, passes = compiled_rows(X), seed_of(self.random_state), 0
        spent, batch = 0.0, 1
        while True:
            # the dual point of the compiled sweep, moved back into the simplex where rounding has taken a row out
            returned = np.ascontiguousarray(R[:, :k])
            point = loss.project(returned, y)
            Q = point + one_hot
            # from scratch, so that the certificate does not rest on sums of updates
            theta[:, :k] = -(X.T @ (sample[:, None] * ((Q - targets) @ M))) / (lam * mass)
            scores = np.ascontiguousarray(X @ theta[:, :k])
            penalty = 0.5 * lam * float(np.vdot(np.linalg.solve(M, theta[:, :k].T), theta[:, :k].T))
            values = loss.value(scores, y) + scores[np.arange(n), y] - np.einsum("ij,ij->i", targets, scores)
            primal = penalty + float(sample @ values) / mass
            dual = float(sample @ loss.offset(point, y)) / mass - penalty
            scale = max(abs(primal), 1.0 - 1.0 / k)
            if primal - dual <= self.tol * scale or passes + 1 > self.max_passes:
                break
            batch = min(batch, int(self.max_passes) - passes)
            started = time.perf_counter()
            kernels.corrected.sweep(
                kernels.arguments(loss.family)[0],
                k,
                *rows,
                np.ascontiguousarray(y, dtype=np.intp),
                np.ascontiguousarray(squares, dtype=np.float64),
                np.ascontiguousarray(sample, dtype=np.float64),
                padded_M,
                R,
                theta,
                1.0 / (lam * mass),
                float(np.linalg.eigvalsh(M)[-1]),
                1e-3 * self.tol * scale,
                batch,
                (seed + passes) & 0xFFFFFFFFFFFFFFFF,
            )
            spent += time.perf_counter() - started
            passes += batch
            batch = min(2 * batch, 32)
        self.certificate_ = judge(
            primal,
            dual,
            self.tol,
            outside=float(loss.infeasibility(returned, y).max()),
            passes=float(passes),
            status="max_passes" if passes + 1 > self.max_passes else "converged",
            solver="dual",
            seconds=time.perf_counter() - began,
            scale=scale,
        )
        self.n_iter_ = max(1, passes)
        warn_unless_converged(f"loss={self.name}, lambda={lam:.3g}", self.certificate_, self.tol)
        return np.ascontiguousarray(theta[:, :k].T)


@register("forward")
class ForwardCorrectedClassifier(_Corrected):
    """The zero-one game whose adversary must match the noisy labels by C q: A(C'f) - f_y, regularised by the weights of f."""

    forward = True


@register("backward")
class BackwardCorrectedClassifier(_Corrected):
    """The unbiased combination sum_q C^-1[q, y] S(g, q) of the zero-one surrogate, regularised by the weights of g."""

    forward = False
