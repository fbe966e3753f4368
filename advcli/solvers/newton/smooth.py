"""Newton's method for smooth surrogates: P(theta) = lambda/2 |theta|^2 + mean S with S twice differentiable (`Loss.smooth`).

A step p solves (lambda I + 1/n J' diag(s) Dq J) p = -grad P. Its system is factorised where that costs less than conjugate gradients do
(as scikit-learn's newton-cholesky), else conjugate gradients on products with the rows end it as early as the gap allows. Where Dq has no
bound, alpha > 2, the method of `smooth_interior` follows it if the system has a factor.

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
from .kernel import explicit, lacks_kernel
from .smooth_descent import MOST_STEPS, SmoothDescent, factor_worth
from .smooth_interior import STEP, InteriorDescent, suits

_MOST_PRODUCTS = 500  # products of the Hessian with a vector in one step
_FORCING = 0.3  # largest residual of a step's system, as a share of the gradient
_WITHIN = 0.3  # share of the wanted gap that the residual of a system may leave
_LEAST = 5.0  # passes that a step takes at least: a product, its scores, two dual points, the next gradient
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
    """Return the best points of Newton's method; where it takes longer than the interior method's first steps would, of that one."""
    if not suits(problem):
        return _NewtonDescent(problem, limits, started).run(start)
    newton = _NewtonDescent(problem, replace(limits, max_passes=min(limits.max_passes, _TRIED * factor_worth(problem))), started)
    solution = newton.run(start)
    if solution.status not in ("max_passes", "stalled") or limits.spent(newton.passes + STEP, started):
        return solution
    interior = InteriorDescent(problem, limits, started, newton)
    solution = interior.run()
    return _NewtonDescent(problem, limits, started, interior).run(solution) if solution.status == "stalled" else solution


class _NewtonDescent(SmoothDescent):
    """One fit by Newton's method for the primal."""

    def run(self, start: Solution | None) -> Solution:
        """Return the best points seen."""
        problem, limits, best, status = self.problem, self.limits, self.best, "stalled"
        self.worth = factor_worth(problem)
        theta = np.zeros(problem.features.shape)
        if start is not None and start.theta.shape == theta.shape and limits.max_passes >= _LEAST:
            self.passes += 2.0
            if problem.primal(start.theta) < problem.primal(theta):
                theta = start.theta
        scores = self._scores(theta)
        for _ in range(MOST_STEPS):
            F = problem.scaled(scores)
            answer = problem.loss.oracle(F, problem.y)
            primal = problem.penalty(theta) + float(problem.weight @ answer.value) / problem.n
            pull = problem.dual_gradient(answer.R)
            gradient = pull + self._ridge(theta)
            self.passes += 1.0
            self._offer(theta, primal, answer.R, pull / -problem.lam)
            if best.reached(limits.tol):
                status = "converged"
                break
            if spent := limits.spent(self.passes + _LEAST, self.started):
                status = spent
                break
            step, residual = self._step(F, gradient, primal)
            moved = self._scores(step)
            self._offer(None, np.inf, answer.R + self._turned(moved), theta + step + residual / problem.lam)
            self.passes += 1.0
            length = self._search(theta, step, scores, moved, primal, inner(gradient, step))
            if length == 0.0:
                status = "converged" if best.reached(limits.tol) else "stalled"
                break
            theta, scores = theta + length * step, scores + length * moved
            self.steps += 1
        return self._solution(status)

    # ---- one step ---------------------------------------------------------------------------------------------------
    def _step(self, F: Array, gradient: Array, primal: float) -> tuple[Array, Array]:
        """Return the step from a point, by a factor of the Hessian or by conjugate gradients, and the residual of its system."""
        self.Q, self.D = self.problem.loss.slopes(F)
        self.total = self.D.sum(axis=1)
        if self.worth <= _FEW:
            return self._factored(gradient), np.zeros(1)
        size = norm(gradient)
        closes = math.sqrt(2.0 * self.problem.lam * _WITHIN * self.limits.tol * abs(primal))
        return self._conjugate(gradient, max(closes, min(_FORCING, math.sqrt(size)) * size if closes < size else 0.0))

    def _turned(self, V: Array) -> Array:
        """Return how q moves with the scores V (n, k) of a step: Dq V in units of the cost weights."""
        if self.problem.cost_weight is not None:
            V = V / self.problem.cost_weight[:, None]
        W = self.D * (V - np.einsum("ij,ij->i", self.Q, V)[:, None])
        return W - self.Q * W.sum(axis=1)[:, None]

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
        step, residual = np.zeros_like(gradient), -gradient
        direction, square = residual, inner(residual, residual)
        for product in range(_MOST_PRODUCTS):
            if product >= self.worth:
                return self._factored(gradient), np.zeros(1)
            image = self._product(direction)
            bend = inner(direction, image)
            if not bend > 0.0:
                break
            step, residual = step + square / bend * direction, residual - square / bend * image
            after = inner(residual, residual)
            if after <= within**2 or self.limits.spent(self.passes + _LEAST, self.started):
                break
            direction, square = residual + after / square * direction, after
        return (step, residual) if step.any() else (-gradient, residual)

    def _factored(self, gradient: Array) -> Array:
        """Return the step by a factor of the Hessian; down the gradient where there is none."""
        solve = self._factor()
        return -gradient if solve is None else -solve(gradient)

    def _search(self, theta: Array, step: Array, scores: Array, moved: Array, primal: float, slope: float) -> float:
        """Return the length of a step by halving from 1, 0 where no length lowers the objective."""
        problem, length = self.problem, 1.0
        for _ in range(_HALVINGS):
            if problem.penalty(theta + length * step) + problem.empirical(scores + length * moved) <= primal + _SLOPE * length * slope:
                return length
            length *= 0.5
        return 0.0
