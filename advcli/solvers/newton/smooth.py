"""Newton's method for smooth surrogates: P(theta) = lambda/2 |theta|^2 + mean S with S twice differentiable (`Loss.smooth`).

A step p solves (lambda I + 1/n J' diag(s) Dq J) p = -grad P. Its system is factorised where that costs less than conjugate gradients do
(as scikit-learn's newton-cholesky), else conjugate gradients on products with the rows end it as early as the gap allows.

Both values come from one read of the rows. With q = q(f) at theta, r = q - e_y is feasible, and D(r) = P - |grad P|^2 / (2 lambda).
The linear model of the step gives a better one: r + Dq J p has theta(r) = theta + p + residual / lambda, so that the gap at theta + p is of
third order in p.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from ...core.arrays import is_sparse
from ...core.linalg import LinAlgError, cho_factor, cho_solve, inner, norm
from ...core.typing import Array
from ...features.base import KernelMap
from ...problems.risk import Problem, Solution
from ..base import Limits, Solver, register
from ..best import BestSeen
from .kernel import explicit, lacks_kernel
from .linear import MAX_DIMENSION

_MOST_STEPS = 3000  # Newton steps: a fit that needs more is stalled by rounding
_MOST_PRODUCTS = 500  # products of the Hessian with a vector in one step
_FORCING = 0.3  # largest residual of a step's system, as a share of the gradient
_WITHIN = 0.3  # share of the wanted gap that the residual of a system may leave
_LEAST = 5.0  # passes that a step takes at least: a product, its scores, two dual points, the next gradient
_FEW = 3.0  # products with a vector that any step takes
_SLOPE = 1e-4  # share of the linear fall that a step must have (Armijo)
_HALVINGS = 40


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
            solution = _NewtonDescent(linear, limits, started).run(start)
            solution.theta = factor.from_explicit(features, solution.theta)
        else:
            solution = _NewtonDescent(problem, limits, started).run(start)
        return replace(solution, solver=self.name, seconds=time.perf_counter() - started)


class _NewtonDescent:
    """One fit: where it stands, and what it has read. Arrays (n, k) are held class by class, in which sums over classes are fast."""

    def __init__(self, problem: Problem, limits: Limits, started: float) -> None:
        self.problem, self.limits, self.started = problem, limits, started
        self.mask = problem.features.regularised
        self.passes, self.products = 0.0, 0
        self.worth = _worth(problem)

    def run(self, start: Solution | None) -> Solution:
        """Return the best points seen."""
        problem, limits, best = self.problem, self.limits, BestSeen(scale=self.problem.gap_scale)
        self.best, steps, status = best, 0, "stalled"
        theta = np.zeros(problem.features.shape)
        if start is not None and start.theta.shape == theta.shape and limits.max_passes >= _LEAST:
            self.passes = 2.0
            if problem.primal(start.theta) < problem.primal(theta):
                theta = start.theta
        scores = self._scores(theta)
        for steps in range(_MOST_STEPS):  # noqa: B007
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
        memory = {"newton_steps": steps, "products": self.products}
        return Solution(best.theta, np.ascontiguousarray(best.R), problem.lam, "", self.passes, 0.0, status, memory)

    def _scores(self, theta: Array) -> Array:
        return np.asfortranarray(self.problem.features.shared_scores(theta, self.problem.threads))

    def _ridge(self, theta: Array) -> Array:
        """Return the gradient of the penalty."""
        return self.problem.lam * (theta if self.mask is None else theta * self.mask)

    def _offer(self, theta: Array | None, primal: float, R: Array, spanned: Array) -> None:
        """Keep the points that are better than the best so far; ``spanned`` is theta(r) where R is feasible as it is."""
        problem = self.problem
        inside = problem.loss.project(R, problem.y)
        if self.mask is None and inside is R:
            dual = problem.summed_offset(R) / problem.n - problem.ridge(spanned)
        else:
            R = problem.features.feasible(inside, problem.y, problem.sample_weight)
            dual = problem.dual(R)
            self.passes += 1.0
        self.best.take(theta, primal, R, dual)

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
        """Return the step by a Cholesky factor of the Hessian, a sum over pairs of classes."""
        X, (d, k) = self.problem.features.X, self.problem.features.shape
        H = np.empty((k, d, k, d))
        for a in range(k):
            for b in range(a + 1):
                H[a, :, b] = (X * self._curvature(a, b)[:, None]).T @ X
                H[b, :, a] = H[a, :, b].T
        flat = H.reshape(k * d, k * d)
        flat[np.diag_indices(k * d)] += self.problem.lam
        self.passes += 1.0
        try:
            return -cho_solve(cho_factor(flat, lower=True, overwrite_a=True), gradient.T.ravel()).reshape(k, d).T
        except LinAlgError:
            return -gradient

    def _search(self, theta: Array, step: Array, scores: Array, moved: Array, primal: float, slope: float) -> float:
        """Return the length of a step by halving from 1, 0 where no length lowers the objective."""
        problem, length = self.problem, 1.0
        for _ in range(_HALVINGS):
            if problem.penalty(theta + length * step) + problem.empirical(scores + length * moved) <= primal + _SLOPE * length * slope:
                return length
            length *= 0.5
        return 0.0


def _worth(problem: Problem) -> float:
    """Return how many products with a vector cost as much as a factor of the Hessian; infinite where it is sparse or too large."""
    features = problem.features
    if not features.multiclass_linear or is_sparse(features.X) or math.prod(features.shape) > MAX_DIMENSION:
        return math.inf
    (d, k), n = features.shape, len(problem.y)
    # a product with few columns runs at a quarter of the speed of a sum of squares
    return (n * d * d * k * (k + 1) + (d * k) ** 3 / 3.0) / (16.0 * n * d * k)
