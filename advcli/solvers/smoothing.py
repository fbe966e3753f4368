"""The smoothed objective of a proximal step on the dual point, for solvers that need gradients (`lbfgs`, `sag`).

    P_mu(theta) = lambda/2 |theta|^2 + 1/n sum_i s_i w_i max over r in conv R(y_i) of [c(r) + f_i.r/w_i - mu/2 |r - r_i|^2]

is differentiable, with gradient lambda theta + 1/n J'(s r(theta)), lies below P, and meets it where the maximisers are the centres r_i
(Nesterov 2005). Moving the centres to the maximisers at the minimum of P_mu is the proximal point step of `newton`. Such steps, repeated,
end at the optimum of P itself, not of a smoothed objective (docs/notes/large-c.md, section 9).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.typing import Array
from ..problems.risk import Problem


@dataclass
class SmoothedPoint:
    """The smoothed objective at one theta."""

    theta: Array
    F: Array  # scores in units of the cost weights
    R: Array  # the maximisers r_i
    value: float
    gradient: Array


class SmoothedObjective:
    """P_mu around the centres R (n, k); ``evaluations`` counts reads of the data."""

    def __init__(self, problem: Problem, centre: Array, mu: float) -> None:
        self.problem, self.centre = problem, centre
        self.mu = 0.0 if problem.loss.smooth else mu
        self.evaluations = 0

    def at(self, theta: Array) -> SmoothedPoint:
        """Return value and gradient at theta; one read of the data."""
        problem = self.problem
        self.evaluations += 1
        F, R = maximisers(problem, theta, self.centre, self.mu)
        value = problem.loss.offset(R, problem.y) + np.einsum("ij,ij->i", F, R)
        value -= 0.5 * self.mu * ((R - self.centre) ** 2).sum(axis=1)
        mask = problem.features.regularised
        gradient = problem.dual_gradient(R) + problem.lam * (theta if mask is None else theta * mask)
        return SmoothedPoint(theta, F, R, problem.penalty(theta) + float(problem.weight @ value) / problem.n, gradient)

    def gaps(self, point: SmoothedPoint) -> tuple[float, float, float, Array]:
        """Return P(theta), D, the part of P - D that only new centres can remove, and the feasible dual point that gives D."""
        problem = self.problem
        value = problem.loss.value(point.F, problem.y)
        offset = problem.loss.offset(point.R, problem.y)
        mismatch = float(problem.weight @ (value - offset - np.einsum("ij,ij->i", point.F, point.R))) / problem.n
        primal = problem.penalty(point.theta) + float(problem.weight @ value) / problem.n
        R = problem.into_box(problem.features.feasible(point.R, problem.y, problem.sample_weight))
        return primal, problem.dual(R), mismatch, R


def maximisers(problem: Problem, theta: Array, centre: Array, mu: float) -> tuple[Array, Array]:
    """Return the scores at theta in units of the cost weights, and the maximisers r_i of the smoothed objective around a centre."""
    F = problem.scaled(problem.features.scores(theta))
    if problem.loss.smooth:
        return F, problem.loss.oracle(F, problem.y).R
    return F, problem.loss.block(F, centre, problem.y, np.asarray(mu))


def first_smoothing(problem: Problem, last: float | None) -> float:
    """Return mu of the first proximal step: 10 C, at least 1, or near the last one of a warm start
    (docs/notes/large-c.md, section 6)."""
    if not problem.lam > 0:  # moments in a box: C is not a scale, and the box solver's is taken
        return 10.0 * problem.unit if last is None else last
    if last is None:
        return max(1.0, 10.0 * problem.C)
    return min(max(1.0, 10.0 * problem.C), 30.0 * last)
