"""The best points that a solver has seen, for solvers whose iterates do not improve steadily."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.typing import Array
from ..problems.risk import Problem, Solution, gap_scale


@dataclass(eq=False)
class BestSeen:
    """The primal point of the least value and the dual point of the largest one."""

    theta: Any = None
    R: Any = None
    primal: float = np.inf
    dual: float = -np.inf
    scale: Callable[[float, float], float] = gap_scale  # what a gap of two values is relative to
    passes: float = 0.0

    def take(self, theta: Any, primal: float, R: Any, dual: float) -> bool:
        """Keep each of two points whose value is better than the best so far; return whether one was."""
        lower, higher = primal < self.primal, dual > self.dual
        if lower:
            self.primal, self.theta = primal, theta
        if higher:
            self.dual, self.R = dual, R
        return lower or higher

    def reached(self, tol: float) -> bool:
        """Return whether the relative gap is at most ``tol``; never without values."""
        return self.primal - self.dual <= tol * self.scale(self.primal, self.dual) < np.inf


class Best(BestSeen):
    """The best points of a problem; each point offered is evaluated exactly, and every evaluation is one of at most ``most`` ``passes``.

    A ``start`` is offered first; its parameters or dual point of another shape are ignored.
    """

    def __init__(self, problem: Problem, start: Solution | None = None, most: float = np.inf) -> None:
        self.problem, self.most = problem, most
        theta, shape = np.zeros(problem.features.shape), (len(problem.y), problem.loss.n_classes)
        R = problem.features.feasible(np.zeros(shape), problem.y, problem.sample_weight)
        super().__init__(theta, R, problem.primal(theta), problem.dual(R), problem.gap_scale)
        if start is not None and start.theta.shape == theta.shape:
            self.offer(start.theta, None if start.R is None or start.R.shape != shape else start.R)

    def offer(self, theta: Array | None = None, R: Array | None = None) -> None:
        """Keep theta, r and theta(r) where their values are better than the best so far."""
        problem = self.problem
        candidates = [] if theta is None else [theta]
        if R is not None and self.passes + 1.0 <= self.most:
            R = problem.into_box(problem.features.feasible(R, problem.y, problem.sample_weight))
            self.passes += 1.0
            self.take(None, np.inf, R, problem.dual(R))
            if problem.features.regularised is None and problem.lam > 0:
                candidates.append(problem.parameters(R))
        for candidate in candidates:
            if self.passes + 1.0 > self.most:
                return
            self.passes += 1.0
            self.take(candidate, problem.primal(candidate), None, -np.inf)
