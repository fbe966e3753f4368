"""Proximal point with semismooth Newton steps: a solver whose time hardly grows with C = 1/(lambda n).

One proximal step on the dual point, r <- argmax D(r') - (C c/2) |r' - r|^2 (in C form), is solved in the parameters: minimise

    psi(theta) = 1/2 |theta|^2 + C sum_i s_i w_i max over r' of [c(r') + f_i/w_i . r' - (c/2) |r' - r_i|^2]

by Newton steps with H = I + sum_i (C s_i / (c w_i)) J_i' M_i J_i, M_i the projector on the face of the exact block step
(compiled), non-zero only for examples at a kink. Line search by regula falsi on the exact slope. The rules for c, the inner stop
and the recovery are those of the large-C note, section 3; each was needed for robustness.

A loss whose dual variables are boxes, one for each label, and whose scores sum to zero (llw) gets a proximal term on those variables
instead of r: then every label moves alone and H falls into one block for each class (`_Separate`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotri

from ..compiled import kernels
from ..problem import Array, Labels, Problem, Solution, gap_scale
from .base import Limits, Solver, register, warm_start

_MAX_DIMENSION = 6000  # k d beyond which a dense Hessian costs more than the block solver ever will
_MAX_INNER = 30  # Newton steps after which a proximal step counts as failed: c *= 5, keep r
_SMALLEST_C = 1e-9
_MAX_FAILURES = 25


@dataclass
class _Point:
    """The smoothed problem at one theta."""

    theta: Array
    F: Array
    R: Array
    residual: Array  # theta - theta(r), the gradient of psi
    face: Any  # what `step` needs of where the block steps end


class _Smoothed:
    """psi of one proximal step, its faces and its gap; everything in C form, theta of shape (d, k)."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.features = problem, problem.features
        self.C = problem.C
        ones = np.ones(len(problem.y))
        self.sample = ones if problem.sample_weight is None else problem.sample_weight
        self.cost = ones if problem.cost_weight is None else problem.cost_weight
        self.plain = problem.sample_weight is None
        self.center = np.zeros((len(problem.y), problem.loss.n_classes))
        self.c = 1.0
        self.projections = 0

    def face(self, F: Array) -> tuple[Array, Any]:
        self.projections += 1
        R, face, _ = kernels.face(self.problem.loss.family, self.problem.scaled(F), self.center, self.problem.y, self.c)
        return R, face

    def at(self, theta: Array, F: Array) -> _Point:
        R, face = self.face(F)
        return _Point(theta, F, R, self.residual(theta, R), face)

    def step(self, point: _Point) -> Array:
        """Return the Newton direction D, H D = -residual."""
        # examples of weight 0 have no curvature
        return self.solve(*kernels.tangents(self.problem.loss.family, point.face, self.sample == 0.0), point.residual)

    def solve(self, B: Array, owner: Labels, residual: Array) -> Array:
        """Return D with (I + sum_m scale_m z_m z_m') D = -residual for the directions z_m = J_i' b_m of examples i = owner_m."""
        directions = self.features.directions(B, owner)
        # C s_i / (c w_i) of the example that owns each direction
        scale = (self.C / self.c) * (self.sample / self.cost)[owner]
        if not directions.low_rank:
            factor = _factor(directions.hessian(scale))
            return -cho_solve(factor, residual.ravel(), check_finite=False).reshape(residual.shape)
        if len(owner) == 0:
            return -residual
        # Woodbury: D = -r + Z'(diag(1/scale) + Z Z')^{-1} Z r, with one step of refinement against cancellation at large scale
        gram = directions.gram()
        gram[np.diag_indices_from(gram)] += 1.0 / scale
        factor = _factor(gram)

        def approximately(right: Array) -> Array:
            return right - directions.backward(cho_solve(factor, directions.forward(right), check_finite=False))

        D = approximately(-residual)
        return D + approximately(-residual - D - directions.backward(scale * directions.forward(D)))

    def residual(self, theta: Array, R: Array) -> Array:
        """The gradient of psi: the regularised part of theta plus C J'(s r)."""
        mask = self.features.regularised
        gradient = self.C * self.features.adjoint(R if self.plain else R * self.sample[:, None])
        return gradient + (theta if mask is None else theta * mask)

    def values(self, point: _Point) -> tuple[float, float, float, Array]:
        """Return, in C form, P(theta), D, the Fenchel-Young gap C sum_i s_i w_i [S - c(r) - f.r], and the point that gives D."""
        problem = self.problem
        F = problem.scaled(point.F)
        value = problem.loss.value(F, problem.y)
        offset = problem.loss.offset(point.R, problem.y)
        mismatch = self.C * float(problem.weight @ (value - offset - np.einsum("ij,ij->i", F, point.R)))
        mask = self.features.regularised
        primal = 0.5 * _square(point.theta if mask is None else point.theta * mask) + self.C * float(problem.weight @ value)
        if mask is None:
            R, model = point.R, point.theta - point.residual  # theta(r)
        else:
            R = self.features.feasible(point.R, problem.y, problem.sample_weight)
            model = problem.parameters(R)
            offset = problem.loss.offset(R, problem.y)
        dual = self.C * float(problem.weight @ offset) - 0.5 * _square(model)
        return primal, dual, mismatch, R


def _square(a: Array) -> float:
    return float(np.vdot(a, a))


class _Separate(_Smoothed):
    """psi for r = a - mean a, each a_j in [0, 1] alone, with the proximal term c/2 |a - a_t|^2; linear features.

    On parameters that sum to zero over the classes, where these losses' gradients lie, H = I + blocks s X' diag(free_j) X, one (d, d) block
    for each class j, and the constraint adds one more (d, d) system for its multiplier.
    """

    def face(self, F: Array) -> tuple[Array, Any]:
        """Return r (n, k) and a (n, k) before it is held in its box."""
        self.projections += 1
        rows, y = np.arange(len(F)), self.problem.y
        F = self.problem.scaled(F)
        inside = F * (1.0 / self.c)
        inside += ((1.0 - F.mean(axis=1)) / self.c - self.center[rows, y])[:, None]  # a = r - r_y, since a_y = 0
        inside += self.center
        inside[rows, y] = 0.0
        A = np.clip(inside, 0.0, 1.0)
        A -= A.mean(axis=1, keepdims=True)
        return A, inside

    def step(self, point: _Point) -> Array:
        free = (point.face > 0.0) & (point.face < 1.0)
        k, d = free.shape[1], point.theta.shape[0]
        owner, label = np.nonzero(free & (self.sample > 0.0)[:, None])
        m = len(owner)
        # operations of the Woodbury form over all directions against those of k factorisations and inverses
        if m * m * (d + m / 3.0) < m * d * d + k * 7.0 / 3.0 * d**3:
            B = np.full((m, k), -1.0 / k)
            B[np.arange(m), label] += 1.0
            return self.solve(B, owner, point.residual)
        root = np.sqrt((self.C / self.c) * (self.sample / self.cost))
        D, inverses = np.empty_like(point.theta), np.empty((k, d, d))
        for j in range(k):
            seen = owner[label == j]
            X: Any = self.features.X[seen]
            rows = (X.toarray() if hasattr(X, "toarray") else X) * root[seen][:, None]
            H = dsyrk(1.0, rows.T, lower=1) if len(seen) else np.zeros((d, d), order="F")
            H[np.diag_indices(d)] += 1.0
            factor = _factor(H)
            D[:, j] = cho_solve(factor, -point.residual[:, j], check_finite=False)
            lower = np.tril(dpotri(factor[0], lower=1)[0])
            inverses[j] = lower + np.tril(lower, -1).T
        total = cho_factor(inverses.sum(axis=0), lower=True, overwrite_a=True, check_finite=False)
        for _ in range(2):  # the multiplier that keeps the sum over classes at zero, and its rounding error
            D -= (inverses @ cho_solve(total, D.sum(axis=1), check_finite=False)).T
        return D


def _factor(H: Array) -> tuple[Array, bool]:
    """Return the Cholesky factor of H, which may be written to; where rounding has lost its ridge, that of H plus a trace of one."""
    try:
        factor: tuple[Array, bool] = cho_factor(H, lower=True, check_finite=False)
    except LinAlgError:
        H[np.diag_indices_from(H)] += 1e-13 * float(H.diagonal().max())
        factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
    return factor


def falls_into_blocks(problem: Problem) -> bool:
    """Return whether the Hessian has one block for each class."""
    return problem.loss.separate and problem.features.multiclass_linear and problem.features.regularised is None


@register("newton")
class NewtonSolver(Solver):
    """Semismooth Newton proximal point; dense linear features with k d up to some thousands, any C."""

    def lacks(self, problem: Problem) -> str | None:
        """Explicit features of moderate dimension."""
        if not problem.features.euclidean:
            return "features with explicit parameters"
        if problem.features.regularised is not None and not problem.loss.simplex:
            return "a loss whose dual variables are distributions when some parameters are free"
        size = int(np.prod(problem.features.shape))
        if size > _MAX_DIMENSION:
            return f"at most {_MAX_DIMENSION} parameters (here {size})"
        return None

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the parameters with the best primal value and the dual point with the best dual value seen."""
        started = time.perf_counter()
        C = problem.C
        separate = falls_into_blocks(problem)
        smoothed = _Separate(problem) if separate else _Smoothed(problem)
        smoothed.center, factor = warm_start(problem, start)
        if start is not None:
            theta = start.theta - start.theta.mean(axis=1, keepdims=True) if separate else start.theta.copy()
            known = start.memory.get("c")
            smoothed.c = min(10.0 * C, max(1e-3, 30.0 * known)) * factor if known is not None else max(1.0, 10.0 * C)
        else:
            theta = np.zeros(problem.features.shape)
            smoothed.c = max(1.0, 10.0 * C)
        F = problem.features.scores(theta)
        # the start itself is a certified point: without it the best dual of a warm start would be forgotten
        best_primal, best_theta = problem.penalty(theta) / problem.lam + C * problem.n * problem.empirical(F), theta
        best_R = problem.features.feasible(smoothed.center, problem.y, problem.sample_weight)
        best_dual = problem.dual(best_R) / problem.lam
        status, failures, steps = "max_passes", 0, 0
        while True:
            inner, first = 0, np.inf
            point = smoothed.at(theta, F)
            while True:
                primal, dual, mismatch, feasible = smoothed.values(point)
                first = primal if inner == 0 else first
                if primal < best_primal:
                    best_primal, best_theta = primal, point.theta
                if dual > best_dual:
                    best_dual, best_R = dual, feasible
                if best_primal - best_dual <= limits.tol * gap_scale(best_primal, best_dual):
                    status = "converged"
                    break
                # P - D = the part the inner problem has left + the part only a new proximal centre can remove
                if primal - dual - mismatch <= 0.3 * mismatch:
                    break
                if inner >= _MAX_INNER or smoothed.projections > limits.max_passes or time.perf_counter() - started > limits.max_seconds:
                    break
                try:
                    direction = smoothed.step(point)
                except LinAlgError:
                    inner = _MAX_INNER
                    break
                if not np.isfinite(direction).all():
                    inner = _MAX_INNER
                    break
                moved = self._line_search(smoothed, point, direction)
                inner += 1
                steps += 1
                if moved is None:
                    inner = _MAX_INNER
                    break
                point = moved
            if status == "converged":
                break
            if smoothed.projections > limits.max_passes:
                break
            if time.perf_counter() - started > limits.max_seconds:
                status = "max_seconds"
                break
            if inner >= _MAX_INNER:
                failures += 1
                if failures > _MAX_FAILURES:
                    status = "stalled"
                    break
                smoothed.c *= 5.0
                if primal < first:  # what failed at the smaller c may have run far away
                    theta, F = point.theta, point.F
            else:
                theta, F = point.theta, point.F
                smoothed.center = point.R
                smoothed.c = max(smoothed.c * (0.1 if inner <= 2 else 0.3 if inner <= 10 else 0.5), _SMALLEST_C)
        seconds = time.perf_counter() - started
        passes = float(smoothed.projections)
        memory = {"c": smoothed.c, "newton_steps": steps, "failures": failures}
        return Solution(best_theta, best_R, problem.lam, self.name, passes, seconds, status, memory)

    @staticmethod
    def _line_search(smoothed: _Smoothed, point: _Point, D: Array) -> _Point | None:
        """Return the point at a step whose slope is at most half the first one's, or None when D is no descent direction."""
        slope0 = float(np.vdot(point.residual, D))
        if not slope0 < 0:
            return None
        dF = smoothed.features.scores(D)
        mask = smoothed.features.regularised
        masked = D if mask is None else D * mask
        inner_theta, inner_D = float(np.vdot(point.theta, masked)), float(np.vdot(D, masked))
        weight = smoothed.C * smoothed.sample

        def slope(t: float) -> tuple[float, tuple[Array, Any]]:
            face = smoothed.face(point.F + t * dF)
            return inner_theta + t * inner_D + float(weight @ np.einsum("ij,ij->i", face[0], dF)), face

        low, slope_low, high, slope_high, t = 0.0, slope0, None, 0.0, 1.0
        for _ in range(40):
            now, face = slope(t)
            if abs(now) <= 0.5 * abs(slope0):
                break
            if now < 0:
                low, slope_low = t, now
                if high is None:
                    t *= 2.0
                    continue
            else:
                high, slope_high = t, now
            assert high is not None
            share = slope_low / (slope_low - slope_high)
            t = low + min(max(share, 0.1), 0.9) * (high - low)
        theta, F = point.theta + t * D, point.F + t * dF
        R, where = face
        return _Point(theta, F, R, smoothed.residual(theta, R), where)
