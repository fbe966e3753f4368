"""An interior point method for `entropy` of an order alpha > 2, whose primal curvatures have no bound.

With b = alpha / (alpha - 1), N = |q|_alpha, x = q / N and w = x^(alpha-1), the optimum of a row's maximum in `losses.entropy` is

    b w_j = f_j - tau + p_j,    p_j q_j = 0,    p, q >= 0,    sum q = 1,

and theta = theta(q - e_y). A step is Newton's for these equations with p_j q_j = mu, in Mehrotra's two parts (1992): one for mu = 0, which
tells how small mu may become, then one for this mu and the second order of p q. Without p, q and tau its system is that of Newton's method
for the primal with another Dq,

    D = diag(e) - e e' / sum e + z z' / (h sum e),    e_j = q_j / (alpha w_j + p_j),    z = (w e) sum e - e sum (w e),
    h = (sum w e)^2 + sum e sum (w p e) / alpha.

For a large alpha the curve w = x^(alpha-1) is flat and then steep: a step in x leaves w far off, a step in w leaves x. Steps are taken in
x + w, and x and w are the point of the curve with the new sum.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable

import numpy as np

from ...core.typing import Array
from ...problems.risk import Problem, Solution
from ..best import BestSeen
from .smooth_descent import MOST_STEPS, FactoredDescent, factor_worth

STEP = 9.0
"""Passes of a step, at most: two dual points and their gradients, a Hessian, two right sides, two products with steps."""

_BOUNDED = 2.0  # the largest alpha of bounded primal curvatures
_INSIDE = 0.99  # share of the way to the nearest end that a step may go
_CENTRE = 1e-6  # least mu of a step, as a share of the mean of p q
_IDLE = 25  # steps without a better point, after which rounding has won
_LEAST = 1e-150  # of x and p: squares and inverses of it are numbers
_ROOT_STEPS = 60  # Newton steps for x, at most
_SETTLED = 1e-14  # share of x below which they end

_Step = namedtuple("_Step", "theta F tau q p sum")  # changes of what a fit holds, and of x + w


def suits(problem: Problem) -> bool:
    """Return whether a problem is one for this method: alpha > 2, and dense rows whose Hessian has a factor."""
    return problem.loss.smooth and problem.loss.order > _BOUNDED and factor_worth(problem) < math.inf


class InteriorDescent(FactoredDescent):
    """One fit; scores F, p and tau are in units of the cost weights."""

    def run(self) -> Solution:
        """Return the best points seen."""
        problem, limits, (n, k) = self.problem, self.limits, (len(self.problem.y), self.problem.loss.n_classes)
        self.alpha, self.theta, self.F = problem.loss.order, np.zeros(problem.features.shape), np.zeros((n, k), order="F")
        self.x, self.p = np.full((n, k), k ** (-1.0 / self.alpha), order="F"), np.ones((n, k), order="F")
        self._weigh()
        self.tau = 1.0 - self.slope[:, 0]
        self.place = None
        kept, self.best = self.best, BestSeen(scale=problem.gap_scale)  # steps begin anew, and are long behind what was there
        idle, status = 0, ""
        for _ in range(MOST_STEPS):
            place = self._at(self.theta, self.F if problem.cost_weight is None else self.F * problem.cost_weight[:, None])
            better = self._take(place, self._slope(place))
            self.R, pull = self._pull(self.q)
            better |= self._offer(None, np.inf, self.R, pull / -problem.lam)
            idle = 0 if better else idle + 1
            kept.take(self.best.theta, self.best.primal, self.best.R, self.best.dual)
            if kept.reached(limits.tol) or (status := limits.spent(self.passes + STEP, self.started)):
                break
            if idle >= _IDLE or not self._step(self._ridge(self.theta) + pull):
                break
            self.steps += 1
        self.best = kept
        return self.solution(status)

    # ---- one step ---------------------------------------------------------------------------------------------------
    def _step(self, residual: Array) -> bool:
        """Move by one step, from a residual of theta = theta(q - e_y); return False where rounding leaves the system no factor."""
        solve = self._factor()
        if solve is None:
            return False
        mean = self._mean(self.p * self.q)
        first = self._direction(solve, residual, np.zeros_like(self.p))
        t = self._longest(first)
        left = self._mean((self.p + t * first.p) * (self.q + t * first.q)) / mean
        step = self._direction(solve, residual, max(left**3, _CENTRE) * mean - first.p * first.q)
        t = min(1.0, _INSIDE * self._longest(step))
        self.theta, self.F, self.tau = self.theta + t * step.theta, self.F + t * step.F, self.tau + t * step.tau
        self.p = np.maximum(self.p + t * step.p, _LEAST)
        self.x = on_curve(self.x + self.w + t * step.sum, self.alpha)
        self._weigh()
        return True

    def _weigh(self) -> None:
        """Compute what follows from x and p: q, b w, and what D needs."""
        self.N = 1.0 / self.x.sum(axis=1)
        self.q, self.w = self.x * self.N[:, None], self.x ** (self.alpha - 1.0)
        self.slope = self.alpha / (self.alpha - 1.0) * self.w
        self.e = self.q / (self.alpha * self.w + self.p)
        self.g = self.w * self.e
        self.sum, self.total = self.e.sum(axis=1), self.g.sum(axis=1)
        self.z = self.g * self.sum[:, None] - self.e * self.total[:, None]
        self.h = self.total**2 + self.sum * (self.g * self.p).sum(axis=1) / self.alpha

    def _turned(self, V: Array) -> Array:
        """Return D V for the rows of V (n, k)."""
        along, across = (self.e * V).sum(axis=1) / self.sum, (self.z * V).sum(axis=1) / (self.sum * self.h)
        return self.e * (V - along[:, None]) + self.z * across[:, None]

    def _curvature(self, a: int, b: int) -> Array:
        e, z, problem = self.e, self.z, self.problem
        entry = (z[:, a] * z[:, b] / self.h - e[:, a] * e[:, b]) / self.sum
        return problem.counts / (problem.costs * problem.n) * (entry + e[:, a] if a == b else entry)

    def _direction(self, solve: Callable[[Array], Array], residual: Array, target: Array) -> _Step:
        """Return Newton's step for p q = ``target`` (n, k)."""
        offset = self.F - self.slope - self.tau[:, None] + target / self.q
        theta = -solve(residual + self.problem.dual_gradient(self._turned(offset)))
        F = self._scores(theta) / self.problem.costs[:, None]
        self.passes += 2.0
        pull = F + offset
        norm = (self.z * pull).sum(axis=1) / self.h  # alpha times the change of log N
        tau = ((self.e * pull).sum(axis=1) + self.total * norm) / self.sum
        q = self.e * (pull - tau[:, None]) + self.g * norm[:, None]
        x = q / self.N[:, None] - self.x * norm[:, None] / self.alpha
        p = target / self.q - self.p - self.p / self.q * q
        return _Step(theta, F, tau, q, p, x * (1.0 + (self.alpha - 1.0) * self.w / self.x))

    def _longest(self, step: _Step) -> float:
        """Return how much of a step leaves p and x + w at 0 or above, at most 1."""
        pairs = (self.p, step.p), (self.x + self.w, step.sum)
        return min(1.0, *(float((-v[dv < 0.0] / dv[dv < 0.0]).min(initial=1.0)) for v, dv in pairs))

    def _mean(self, V: Array) -> float:
        """Return the weighted mean of numbers (n, k)."""
        weight = self.problem.weight
        return float(weight @ V.sum(axis=1)) / (float(weight.sum()) * V.shape[1])


def on_curve(total: Array, alpha: float) -> Array:
    """Return x with x + x^(alpha-1) = ``total`` > 0, then divided by |x|_alpha, row by row (n, k)."""
    # both starts lie on the right of the root of a convex function, from where Newton's steps fall to it
    x = np.minimum(total, total ** (1.0 / (alpha - 1.0)))
    for _ in range(_ROOT_STEPS):
        power = x ** (alpha - 2.0)
        step = (x + power * x - total) / (1.0 + (alpha - 1.0) * power)
        x -= step
        if (step <= _SETTLED * x).all():
            break
    np.maximum(x, _LEAST, out=x)
    x /= x.max(axis=1)[:, None]  # powers of what is small are 0
    x /= ((x**alpha).sum(axis=1) ** (1.0 / alpha))[:, None]
    return x
