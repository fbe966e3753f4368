"""Newton's method for smooth surrogates: P(theta) = lambda/2 |theta|^2 + mean S with S twice differentiable (`Loss.smooth`).

A step p solves (lambda I + 1/n J' diag(s) Dq J) p = -grad P. Its system is factorised where that costs less than conjugate gradients do
(as scikit-learn's newton-cholesky), else conjugate gradients on products with the rows end it as early as the gap allows. The steps of
`smooth_quasi` come first, as long as the optimum is far; their matrix preconditions the systems. Where Dq has no bound, alpha > 2, the
method of `smooth_interior` follows if the system has a factor.

Both values come from one read of the rows. With q = q(f) at theta, r = q - e_y is feasible, and D(r) = P - |grad P|^2 / (2 lambda).
The linear model of the step gives a better one: r + Dq J p has theta(r) = theta + p + residual / lambda, so that the gap at theta + p is of
third order in p.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from ...core.linalg import inner, norm
from ...core.typing import Array
from ...features.base import KernelMap
from ...problems.risk import Problem, Solution
from ..base import Limits, Solver, register
from . import smooth_interior, smooth_quasi
from .kernel import explicit, lacks_kernel
from .smooth_descent import LEAST, MOST_STEPS, FactoredDescent, Place, SmoothDescent, factor_worth

_MOST_PRODUCTS = 500  # products of the Hessian with a vector in one step
_FORCING = 0.3  # largest residual of a step's system, as a share of the gradient
_NEARLY = 30.0  # size of a gradient, in norms of the residual allowed at the end, from which on a step is to be the last
_WITHIN = 0.6  # share of the wanted gap that the residual of a system may leave
_FEW = 3.0  # products with a vector that any step takes
_SLOPE = 1e-4  # share of the linear fall that a step must have (Armijo)
_HALVINGS = 40
_TRIED = 12.0  # factors of the Hessian, in passes as long, that Newton's method may take before the interior method follows


@register("smooth_newton")
class SmoothNewtonSolver(Solver):
    """Newton's method with Cholesky factors or conjugate gradients, for `entropy` at any finite alpha; explicit features, or all of K."""

    takes_smooth = True

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs a smooth surrogate, and features with explicit parameters or a kernel matrix in memory."""
        if not problem.loss.smooth:
            return "a smooth surrogate (loss=entropy with a finite alpha)"
        if problem.tolerance is not None:
            return "moments in a ball (features.moments=ball)"
        return lacks_kernel(problem) if isinstance(problem.features, KernelMap) else problem.lacks_parameters()

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the parameters with the best primal value and the dual point with the best dual value seen."""
        started, features = time.perf_counter(), problem.features
        if isinstance(features, KernelMap):
            factor, linear = features.pivots.factor, replace(problem, features=explicit(features))
            if start is not None and start.theta.shape == features.shape:
                start = replace(start, theta=factor.to_explicit(features, start.theta))
            solution = _descend(linear, limits, started, start)
            solution.theta = factor.from_explicit(features, solution.theta)
        else:
            solution = _descend(problem, limits, started, start)
        return replace(solution, solver=self.name, seconds=time.perf_counter() - started)


def _descend(problem: Problem, limits: Limits, started: float, start: Solution | None) -> Solution:
    """Return the best points of the methods that suit a problem, each from where the one before ended, until one reaches the gap."""
    before: SmoothDescent | None = None
    if smooth_quasi.suits(problem):
        before = smooth_quasi.QuasiNewtonDescent(problem, limits, started)
        if status := before.run(start):
            return before.solution(status)
    most = _TRIED * factor_worth(problem) if smooth_interior.suits(problem) else math.inf
    newton = _NewtonDescent(problem, replace(limits, max_passes=min(limits.max_passes, most)), started, before)
    solution = newton.run(start)
    over = most == math.inf or solution.status not in ("max_passes", "stalled")
    if over or limits.spent(newton.passes + smooth_interior.STEP, started):
        return solution
    interior = smooth_interior.InteriorDescent(problem, limits, started, newton)
    solution = interior.run()
    return _NewtonDescent(problem, limits, started, interior).run(solution) if solution.status == "stalled" else solution


class _NewtonDescent(FactoredDescent):
    """One fit by Newton's method for the primal."""

    def run(self, start: Solution | None) -> Solution:
        """Return the best points seen."""
        self.worth, status = factor_worth(self.problem), ""
        place = self._begin(start)
        for _ in range(MOST_STEPS):
            pull = self._slope(place)
            self._take(place, pull)
            if status := self.ended(LEAST):
                break
            gradient = pull + self._ridge(place.theta)
            step, residual = self._step(place, gradient)
            moved = self._scores(step)
            self._offer(None, np.inf, self.R + self._turned(moved), place.theta + step + residual / self.problem.lam)
            self.passes += 1.0
            after = self._search(place, step, moved, inner(gradient, step))
            if after is None:
                break
            place = after
            self.steps += 1
            self.best.take(place.theta, place.primal, None, -np.inf)
            if self.best.reached(self.limits.tol):
                break
        self.place = place
        return self.solution(status)

    # ---- one step ---------------------------------------------------------------------------------------------------
    def _step(self, place: Place, gradient: Array) -> tuple[Array, Array]:
        """Return the step from a point, by a factor of the Hessian or by conjugate gradients, and the residual of its system."""
        self.Q, self.D = self.problem.loss.slopes(place.F, (place.level, place.Q))
        self.total = self.D.sum(axis=1)
        if self.worth <= _FEW:
            return self._factored(gradient), np.zeros(1)
        size = norm(gradient)
        closes = math.sqrt(2.0 * self.problem.lam * _WITHIN * self.limits.tol * abs(place.primal))
        last = size <= _NEARLY * closes
        return self._conjugate(gradient, closes if last else max(closes, min(_FORCING, math.sqrt(size)) * size))

    def _turned(self, V: Array) -> Array:
        """Return how q moves with the scores V (n, k) of a step: Dq V in units of the cost weights."""
        V = self.problem.scaled(V)
        W = V - np.einsum("ij,ij->i", self.Q, V)[:, None]
        W *= self.D
        if self.D is not self.Q:  # as at alpha = 1, where the sums are 0
            W -= self.Q * W.sum(axis=1)[:, None]
        return W

    def _curvature(self, a: int, b: int) -> Array:
        """Return the entries (a, b) of the Jacobians of q, times the weights of the rows, shape (n,)."""
        entry = self.Q[:, a] * (self.total * self.Q[:, b] - self.D[:, b]) - self.D[:, a] * self.Q[:, b]
        return self.problem.counts / (self.problem.costs * self.problem.n) * (entry + self.D[:, a] if a == b else entry)

    def _product(self, v: Array) -> Array:
        """Return the Hessian times v."""
        self.products += 1
        self.passes += 1.0
        return self.problem.dual_gradient(self._turned(self._scores(v))) + self._ridge(v)

    def _conjugate(self, gradient: Array, within: float) -> tuple[Array, Array]:
        """Return the step by conjugate gradients from 0, and its residual, of norm at most ``within``; a factor's where that is cheaper."""
        inverse, self.nearer = self.nearer, None
        if inverse is None:
            inverse = smooth_quasi.class_solver(self.problem, self.Q, self.D) if smooth_quasi.suits(self.problem) else lambda v: v
        step, residual = np.zeros_like(gradient), -gradient
        direction = inverse(residual)
        square = inner(residual, direction)
        for product in range(_MOST_PRODUCTS):
            if product >= self.worth:
                return self._factored(gradient), np.zeros(1)
            image = self._product(direction)
            bend = inner(direction, image)
            if not bend > 0.0:
                break
            step, residual = step + square / bend * direction, residual - square / bend * image
            if norm(residual) <= within or self.limits.spent(self.passes + LEAST, self.started):
                break
            nearer = inverse(residual)
            after = inner(residual, nearer)
            direction, square = nearer + after / square * direction, after
        return (step, residual) if step.any() else (-gradient, residual)

    def _factored(self, gradient: Array) -> Array:
        """Return the step by a factor of the Hessian; down the gradient where there is none."""
        solve = self._factor()
        return -gradient if solve is None else -solve(gradient)

    def _search(self, place: Place, step: Array, moved: Array, slope: float) -> Place | None:
        """Return the end of a step whose length is halved from 1 until it lowers the objective; None where no length does."""
        length = 1.0
        for _ in range(_HALVINGS):
            scores = length * moved
            scores += place.scores
            after = self._at(place.theta + length * step, scores)
            if after.primal <= place.primal + _SLOPE * length * slope:
                return after
            length *= 0.5
        return None
