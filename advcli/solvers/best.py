"""The best points that a solver has seen."""

from __future__ import annotations

import numpy as np

from ..core.typing import Array
from ..problems.risk import Problem, Solution


class Best:
    """The best primal and the best dual point offered so far, for solvers whose iterates do not improve steadily.

    What is offered is evaluated exactly, and every evaluation counts as a pass.

    Parameters
    ----------
    problem : Problem
    start : Solution or None
        Offered first; parameters or dual points of another shape are ignored.
    most : float
        Passes that evaluations may take; what exceeds them is not evaluated.

    Attributes
    ----------
    theta, R : ndarray
        The best parameters and the best dual point (n, k).
    primal, dual : float
        Their values.
    passes : float
        Reads of the data so far.
    """

    def __init__(self, problem: Problem, start: Solution | None = None, most: float = np.inf) -> None:
        self.problem, self.most = problem, most
        self.passes = 0.0
        self.theta = np.zeros(problem.features.shape)
        self.primal = problem.primal(self.theta)
        n, k = len(problem.y), problem.loss.n_classes
        self.R = problem.features.feasible(np.zeros((n, k)), problem.y, problem.sample_weight)
        self.dual = problem.dual(self.R)
        if start is not None and start.theta.shape == self.theta.shape:
            self.offer(start.theta, None if start.R is None or start.R.shape != (n, k) else start.R)

    def offer(self, theta: Array | None = None, R: Array | None = None) -> None:
        """Keep theta, r and theta(r) where their values are better than the best so far."""
        problem = self.problem
        thetas = [] if theta is None else [theta]
        if R is not None and self.passes + 1.0 <= self.most:
            R = problem.into_box(problem.features.feasible(R, problem.y, problem.sample_weight))
            value = problem.dual(R)
            self.passes += 1.0
            if value > self.dual:
                self.dual, self.R = value, R
            if problem.features.regularised is None and problem.lam > 0:
                thetas.append(problem.parameters(R))
        for each in thetas:
            if self.passes + 1.0 > self.most:
                return
            value = problem.primal(each)
            self.passes += 1.0
            if value < self.primal:
                self.primal, self.theta = value, each

    def reached(self, tol: float) -> bool:
        """Return whether the relative gap is at most ``tol``."""
        return self.primal - self.dual <= tol * self.problem.gap_scale(self.primal, self.dual)
