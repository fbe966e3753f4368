"""What methods for smooth surrogates share: products with the rows, the best points so far, and a factor of the Hessian."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.arrays import is_sparse
from ...core.linalg import LinAlgError, cho_factor, cho_solve, plus_own
from ...core.typing import Array
from ...problems.risk import Problem, Solution
from ..base import Limits
from ..best import BestSeen
from .linear import MAX_DIMENSION

MOST_STEPS = 3000
"""Newton steps, at most: a fit that needs more is stalled by rounding."""
LEAST = 5.0
"""Passes that a step takes at least: a product, its scores, two dual points, the next gradient."""

_DAMPING = (0.0, 1e-15, 1e-13, 1e-11)  # ridges of a Hessian, as shares of its largest diagonal entry


@dataclass(eq=False)
class Place:
    """Parameters with their scores, as they are and in units of the cost weights, S + f_y, q(f) and the objective."""

    theta: Array
    scores: Array
    F: Array
    level: Array
    Q: Array
    primal: float
    R: Any = None  # q - e_y, and 1/n J'(s r), once it was asked for
    slope: Array | None = None


class SmoothDescent:
    """One fit: its problem and limits, the best points, the passes so far.

    Arrays (n, k) are held class by class, in which sums over classes are fast.
    """

    def __init__(self, problem: Problem, limits: Limits, started: float, before: SmoothDescent | None = None) -> None:
        """Take over the points, passes and steps of the method that was there ``before``."""
        self.problem, self.limits, self.started = problem, limits, started
        self.mask = problem.features.regularised
        self.best: BestSeen = BestSeen(scale=problem.gap_scale) if before is None else before.best
        self.passes: float = 0.0 if before is None else before.passes
        self.steps: int = 0 if before is None else before.steps
        self.products: int = 0 if before is None else before.products
        self.place: Place | None = None if before is None else before.place
        self.nearer: Callable[[Array], Array] | None = None if before is None else before.nearer  # of `smooth_quasi.class_solver`

    def _begin(self, start: Solution | None) -> Place:
        """Return where the method before ended; else the parameters of a start, or 0 where that is better."""
        if self.place is not None:
            return self.place
        problem = self.problem
        place = self._at(np.zeros(problem.features.shape), np.zeros((len(problem.y), problem.loss.n_classes), order="F"))
        if start is not None and start.theta.shape == place.theta.shape and self.limits.max_passes >= LEAST:
            other = self._at(start.theta)
            self.passes += 2.0
            place = other if other.primal < place.primal else place
        return place

    def _at(self, theta: Array, scores: Array | None = None) -> Place:
        """Return a point with its scores, which are computed where they are not given, and its surrogates."""
        problem = self.problem
        scores = self._scores(theta) if scores is None else scores
        F = problem.scaled(scores)
        level, Q = problem.loss.maximum(F)
        losses = level - F[np.arange(len(level)), problem.y]
        return Place(theta, scores, F, level, Q, problem.penalty(theta) + float(problem.weight @ losses) / problem.n)

    def _take(self, place: Place, pull: Array) -> bool:
        """Offer a point and its own distributions, of which ``pull`` is `_slope`; return whether one is better than the best so far."""
        entropies = place.level - np.einsum("ij,ij->i", place.Q, place.F)  # H(q) at the maximum
        return self._offer(place.theta, place.primal, self.R, pull / -self.problem.lam, float(self.problem.weight @ entropies))

    def _slope(self, place: Place) -> Array:
        """Return the gradient of the surrogates at a point, and hold its r."""
        if place.slope is None:
            place.R, place.slope = self._pull(place.Q)
        self.R = place.R
        return place.slope

    def _pull(self, Q: Array) -> tuple[Array, Array]:
        """Return r = q - e_y and 1/n J'(s r)."""
        R = plus_own(Q, self.problem.y, -1.0)
        self.passes += 1.0
        return R, self.problem.dual_gradient(R)

    def ended(self, needs: float) -> str:
        """Return why the fit ends here, where a step ``needs`` so many passes; empty where it goes on."""
        return "converged" if self.best.reached(self.limits.tol) else self.limits.spent(self.passes + needs, self.started)

    def solution(self, status: str = "") -> Solution:
        """Return the best points with a status; without one no step led on."""
        best, memory = self.best, {"newton_steps": self.steps, "products": self.products}
        status = status or ("converged" if best.reached(self.limits.tol) else "stalled")
        return Solution(best.theta, np.ascontiguousarray(best.R), self.problem.lam, "", self.passes, 0.0, status, memory)

    def _scores(self, theta: Array) -> Array:
        return self.problem.features.shared_scores(theta, self.problem.threads, order="F")

    def _ridge(self, theta: Array) -> Array:
        """Return the gradient of the penalty."""
        return self.problem.lam * (theta if self.mask is None else theta * self.mask)

    def _offer(self, theta: Array | None, primal: float, R: Array, spanned: Array, offset: float | None = None) -> bool:
        """Keep the points that are better than the best so far, and return whether one is.

        ``spanned`` is theta(r) where R is feasible as it is, ``offset`` the sum of its offsets, where that is known.
        """
        problem = self.problem
        inside = problem.loss.project(R, problem.y) if offset is None else R
        if self.mask is None and inside is R:
            dual = (problem.summed_offset(R) if offset is None else offset) / problem.n - problem.ridge(spanned)
        else:
            R = problem.features.feasible(inside, problem.y, problem.sample_weight)
            dual = problem.dual(R)
            self.passes += 1.0
        return self.best.take(theta, primal, R, dual)


class FactoredDescent(SmoothDescent, ABC):
    """A fit whose steps may take a factor of a Hessian."""

    @abstractmethod
    def _curvature(self, a: int, b: int) -> Array:
        """Return the entries (a, b) of the Jacobians of q, times the weights of the rows, shape (n,)."""

    def _factor(self) -> Callable[[Array], Array] | None:
        """Return what solves systems with the Hessian, a sum over pairs of classes, by its Cholesky factor.

        Where rounding leaves it none it is damped; None if that is not enough.
        """
        X, (d, k) = self.problem.features.X, self.problem.features.shape
        H = np.empty((k, d, k, d))
        for a in range(k):
            for b in range(a + 1):
                H[a, :, b] = (X * self._curvature(a, b)[:, None]).T @ X
                H[b, :, a] = H[a, :, b].T
        flat, self.passes = H.reshape(k * d, k * d), self.passes + 1.0
        diagonal = flat[np.diag_indices(k * d)] + self.problem.lam
        for damping in _DAMPING:
            flat[np.diag_indices(k * d)] = diagonal + damping * diagonal.max()
            with suppress(LinAlgError):
                factor = cho_factor(flat, lower=True)
                return lambda v: cho_solve(factor, v.T.ravel()).reshape(k, d).T
        return None


def factor_worth(problem: Problem) -> float:
    """Return how many products with a vector cost as much as a factor of the Hessian; infinite where it is sparse or too large."""
    features = problem.features
    if not features.multiclass_linear or is_sparse(features.X) or math.prod(features.shape) > MAX_DIMENSION:
        return math.inf
    (d, k), n = features.shape, len(problem.y)
    # a product with few columns runs at a quarter of the speed of a sum of squares
    return (n * d * d * k * (k + 1) + (d * k) ** 3 / 3.0) / (16.0 * n * d * k)
