"""Quasi-Newton steps for smooth surrogates, far from the optimum, where the Hessian of a point says little about the next.

L-BFGS (Nocedal 1980) whose first matrix is that of one class, G = lambda I + 1/n X' diag(w) X, with w_i the mean curvature of a row: it
knows how features go together, and costs little beside the rows. Lengths of steps are found from scores alone, by the slope along them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from ...core.arrays import is_sparse
from ...core.linalg import LinAlgError, cho_factor, cho_solve, inner
from ...core.typing import Array
from ...problems.risk import Problem, Solution
from .smooth_descent import Place, SmoothDescent, factor_worth

_WIDE = 20.0  # features for each class beyond which G costs more than it saves
_NEAR = 0.05  # relative gap at which Newton's method takes over: a step leaves about the gap's square
_MOST = 200  # steps after which it does so anyway
_FACTORS = 4.0  # factors of the Hessian in whose time so many steps are made, after which it does so where that is sooner
_FEW = 6  # steps that are made in any case
_PAIRS = 10  # changes of theta and the gradient that L-BFGS keeps
_RENEWED = 12  # steps between new weights w
_FLAT = 0.5  # share of the slope that the end of a step may have
_TRIALS = 8  # lengths that a step tries, at most
_STEP = 3.0  # passes: scores of a step, a gradient, G

_Change = tuple[Array, Array, float]  # of theta, of the gradient, and their product


def suits(problem: Problem) -> bool:
    """Return whether a problem has a matrix G that is worth its factor."""
    features = problem.features
    plain = features.multiclass_linear and not is_sparse(features.X) and features.regularised is None
    return plain and features.shape[0] <= _WIDE * features.shape[1]


def class_solver(problem: Problem, Q: Array, D: Array) -> Callable[[Array], Array]:
    """Return what solves G V = V' for every column of V' (d, k); Q and D are the slopes of `Loss.slopes` at the present scores.

    The identity where rounding leaves G no factor.
    """
    X, n, (d, k) = problem.features.X, problem.n, problem.features.shape
    traces = (D * (1.0 - 2.0 * Q)).sum(axis=1) + D.sum(axis=1) * np.einsum("ij,ij->i", Q, Q)
    weight = problem.counts / (problem.costs * n * max(k - 1, 1)) * np.maximum(traces, 0.0)  # of a q on one class rounding leaves any sign
    Z = X * np.sqrt(weight)[:, None]
    G = Z.T @ Z
    G[np.diag_indices(d)] += problem.lam
    try:
        inverse = cho_solve(cho_factor(G, lower=True), np.eye(d))
    except LinAlgError:
        return lambda v: v
    return lambda v: inverse @ v


class QuasiNewtonDescent(SmoothDescent):
    """One fit."""

    def run(self, start: Solution | None) -> str:
        """Move to a gap of `_NEAR`, and return the status: empty where there is more to do."""
        problem, limits, changes = self.problem, self.limits, deque[_Change](maxlen=_PAIRS)
        self.place, gradient = self._begin(start), np.zeros(problem.features.shape)
        moved = gradient
        for step in range(int(min(_MOST, max(_FEW, _FACTORS * factor_worth(problem))))):
            place = self.place
            pull = self._slope(place)
            last, gradient = gradient, pull + self._ridge(place.theta)
            gap = inner(gradient, gradient) / (2.0 * problem.lam)
            if gap <= max(_NEAR, limits.tol) * place.primal or limits.spent(self.passes + _STEP, self.started):
                self._take(place, pull)
                return self.ended(_STEP)
            change = gradient - last
            if (curvature := inner(moved, change)) > 0.0:
                changes.append((moved, change, curvature))
            if step % _RENEWED == 0:
                nearer = self.nearer = class_solver(problem, *problem.loss.slopes(place.F, (place.level, place.Q)))
                self.passes += 1.0
            direction = _direction(gradient, changes, nearer)
            along = self._scores(direction)
            self.passes += 1.0
            after = self._end(place, direction, along, inner(gradient, direction))
            if not after.primal < place.primal:
                return ""
            moved, self.place = after.theta - place.theta, after
        return ""

    def _end(self, place: Place, direction: Array, along: Array, slope: float) -> Place:
        """Return the end of a step, where the slope of the objective along it is small, found by secants."""
        problem, rows = self.problem, np.arange(len(self.problem.y))
        own = along[rows, problem.y]
        low, high, length = (0.0, slope), (np.inf, np.inf), 1.0
        for _ in range(_TRIALS):
            scores = length * along
            scores += place.scores
            after = self._at(place.theta + length * direction, scores)
            moment = float(problem.counts @ (np.einsum("ij,ij->i", after.Q, along) - own)) / problem.n
            here = moment + problem.lam * inner(after.theta, direction)
            if abs(here) <= _FLAT * -slope:
                break
            low, high = ((length, here), high) if here < 0.0 else (low, (length, here))
            if high[0] < np.inf:
                share = low[1] / (low[1] - high[1])
                length = low[0] + (high[0] - low[0]) * min(max(share, 0.1), 0.9)
            else:
                length *= 2.0
        return after


def _direction(gradient: Array, changes: deque[_Change], nearer: Callable[[Array], Array]) -> Array:
    """Return minus the product of the inverse matrix of L-BFGS with a gradient."""
    direction, shares = -gradient, []
    for moved, change, curvature in reversed(changes):
        shares.append(inner(moved, direction) / curvature)
        direction -= shares[-1] * change
    direction = nearer(direction)
    if changes:
        _, change, curvature = changes[-1]
        direction *= curvature / inner(change, nearer(change))
    for (moved, change, curvature), share in zip(changes, reversed(shares), strict=True):
        direction += (share - inner(change, direction) / curvature) * moved
    return direction
