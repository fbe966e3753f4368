"""Proximal point with semismooth Newton steps: a solver whose time hardly grows with C = 1/(lambda n).

One proximal step on the dual point, r <- argmax D(r') - (C c/2) |r' - r|^2 (in C form), is solved in the parameters: minimise

    psi(theta) = 1/2 |theta|^2 + C sum_i s_i w_i max over r' of [c(r') + f_i/w_i . r' - (c/2) |r' - r_i|^2]

by Newton steps with H = I + sum_i (C s_i / (c w_i)) J_i' M_i J_i, M_i the projector on the face of the exact block step
(compiled), non-zero only for examples at a kink. Line search by regula falsi on the exact slope. The inner stop and the recovery are
those of docs/notes/large-c.md, section 6; each was needed for robustness. Factors of 0.1, 0.3 and 0.5 for c took a quarter more steps.

A loss whose dual variables are boxes, one for each label, and whose scores sum to zero (llw) gets a proximal term on those variables
instead of r: then every label moves alone and H falls into one block for each class (`Separate`).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from ...core.compiled import Family, kernels
from ...core.typing import Array, Labels
from ...features.linear import MAX_UPDATES, LinearFeatures, NewtonSystem, add_squares, most_changes
from ...problems.risk import Problem, Solution, gap_scale
from ..base import Limits, register, warm_start
from ..coordinate.threaded import ThreadedSolver

MAX_DIMENSION = 6000  # k d beyond which a dense Hessian costs more than the block solver ever will
_TRIALS = 40  # step lengths that are tried in a line search
_MAX_INNER = 30  # Newton steps after which a proximal step counts as failed: c *= 5, keep r
_SMALLEST_C = 1e-9
WARM = 30.0  # largest ratio of the first c of a fit to the last c of the fit before
_MAX_FAILURES = 25
_NONE = np.empty((0, 0))
_INDEFINITE = "the Newton system is not positive definite"
_MAX_RESTARTS = 1  # from the best point, with the first c, where as many proximal steps have failed


@dataclass
class NewtonPoint:
    """The smoothed problem at one theta."""

    theta: Array
    F: Array
    R: Array
    residual: Array  # theta - theta(r), the gradient of psi
    where: Any  # where the block steps end, as the Hessian needs it: their faces, or dual variables before they are held in their set
    pull: Array  # scores of the residual, (n, k), with a kernel; else none, and no inner product reads scores


class ProximalStep:
    """psi of one proximal step, with faces and gaps; everything in C form, theta of shape (d, k)."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.features = problem, problem.features
        self.C, self.mask = problem.C, problem.features.regularised
        ones = np.ones(len(problem.y))
        self.sample = ones if problem.sample_weight is None else problem.sample_weight
        self.cost = ones if problem.cost_weight is None else problem.cost_weight
        # weights as an (n, k) array: a product with a column takes several times as long
        self.counts = None if problem.sample_weight is None else np.repeat(self.sample[:, None], problem.loss.n_classes, axis=1)
        self.nowhere = self.sample == 0.0  # examples that have no curvature
        self.ratio = self.sample / self.cost
        self.center: Array = np.zeros((len(problem.y), problem.loss.n_classes))
        self.c = 1.0
        self.projections = 0
        # directions sum to zero over the classes: Newton systems have a class less
        features = problem.features
        self.system: NewtonSystem | None = None
        if isinstance(features, LinearFeatures) and self.mask is None:
            self.system = NewtonSystem(features, self.ratio, problem.threads)

    @cached_property
    def family(self) -> Family:
        """The compiled family of the loss, where it has one."""
        return self.problem.loss.family

    def block_step(self, F: Array) -> tuple[Array, Any]:
        """Return the block steps r (n, k) at scores F, and their label states."""
        self.projections += 1
        R, face = kernels.face(self.family, self.problem.scaled(F), self.center, self.problem.y, self.c)
        return R, face

    def search(self, point: NewtonPoint, D: Array, dF: Array, slope0: float, most: int) -> tuple[float, Array, Array, Any]:
        """Return the step t along D, of scores dF, that the line search takes, and the scores and block steps there (`kernels.search`)."""
        problem = self.problem
        slope = (slope0, self.inner(point.theta, D, dF), self.inner(D, D, dF), self.C)
        t, F, R, face, trials = kernels.search(
            self.family, point.F, dF, self.center, problem.y, self.c, slope, (point.R, point.where),
            problem.cost_weight, problem.sample_weight, most,
        )  # fmt: skip
        self.projections += trials
        return t, F, R, face

    def spent(self, limits: Limits) -> bool:
        """Return whether it is another solver's turn, or one more evaluation would be one too many."""
        return self.projections > limits.turn or self.projections + 1 > limits.max_passes

    def at(self, theta: Array, F: Array, R: Array, where: Any) -> NewtonPoint:
        """Return the point at theta, whose block steps are known."""
        return NewtonPoint(theta, F, R, self.residual(theta, R), where, _NONE)

    def inner(self, theta: Array, other: Array, scores: Array) -> float:
        """Return the inner product of theta with a direction and its scores (n, k), over the regularised parameters."""
        return float(np.vdot(theta, other if self.mask is None else other * self.mask))

    def bases(self, point: NewtonPoint) -> tuple[Array, Labels]:
        """Return bases of the faces (m, k) and the example i of every basis vector (m,)."""
        return kernels.tangents(self.family, point.where, self.nowhere)

    def tangents(self, point: NewtonPoint) -> tuple[Array, Labels, Array]:
        """Return `bases` and C s_i / (c w_i) of their examples (m,)."""
        B, owner = self.bases(point)
        return B, owner, self.scale(owner)

    def scale(self, owner: Labels) -> Array:
        """Return C s_i / (c w_i) of examples."""
        scale: Array = (self.C / self.c) * self.ratio[owner]
        return scale

    def direction(self, point: NewtonPoint) -> tuple[Array, Array, float]:
        """Return the Newton direction D, H D = -residual, its scores (n, k) and the slope of psi along it."""
        D = self.step(point)
        return D, self.features.shared_scores(D, self.problem.threads), float(np.vdot(point.residual, D))

    def step(self, point: NewtonPoint) -> Array:
        """Return the Newton direction."""
        return self.solve(*self.bases(point), point.residual)

    def solve(self, B: Array, owner: Labels, residual: Array) -> Array:
        """Return D with (I + sum_m C s_i / (c w_i) z_m z_m') D = -residual for the directions z_m = J_i' b_m of examples i = owner_m."""
        unit = self.C / self.c  # the factor that changes from one proximal step to the next
        if self.system is not None and len(owner) > self.system.size:
            D = self.system.direction(B, owner, unit, residual)
            if D is None:
                raise LinAlgError(_INDEFINITE)
            return D
        directions = self.features.directions(B, owner)
        if not directions.low_rank:
            return -dpotrs(_factor(directions.hessian(self.ratio, unit)), residual.ravel(), lower=1)[0].reshape(residual.shape)
        if len(owner) == 0:
            return -residual
        # Woodbury: D = -r + Z'(diag(1/scale) + Z Z')^{-1} Z r, with one step of refinement against cancellation at large scale
        scale, gram = self.scale(owner), directions.gram()
        gram.flat[:: len(gram) + 1] += 1.0 / scale
        factor = _factor(gram.T)  # symmetric; its columns are contiguous

        def approximately(right: Array) -> Array:
            return right - directions.backward(dpotrs(factor, directions.forward(right), lower=1)[0])

        D = approximately(-residual)
        return D + approximately(-residual - D - directions.backward(scale * directions.forward(D)))

    def residual(self, theta: Array, R: Array) -> Array:
        """Return the gradient of psi: the regularised part of theta plus C J'(s r)."""
        gradient = self.C * self.features.shared_adjoint(R if self.counts is None else R * self.counts, self.problem.threads)
        gradient += theta if self.mask is None else theta * self.mask
        return gradient

    def values(self, point: NewtonPoint) -> tuple[float, float, float, Array]:
        """Return, in C form, P(theta), D, the block gaps C sum_i s_i w_i [S - c(r) - f.r], and the dual point of D."""
        problem = self.problem
        F = problem.scaled(point.F)
        if problem.loss.compiled:
            value, offset, mismatch = kernels.judge(self.family, F, point.R, problem.y, problem.weight)
        else:
            values, offsets = problem.loss.value(F, problem.y), problem.loss.offset(point.R, problem.y)
            value, offset = float(problem.weight @ values), float(problem.weight @ offsets)
            mismatch = float(problem.weight @ (values - offsets - np.einsum("ij,ij->i", F, point.R)))
        primal = 0.5 * self.inner(point.theta, point.theta, point.F) + self.C * value
        if self.mask is None:
            R, model = point.R, point.theta - point.residual  # theta(r)
        else:
            R = self.features.feasible(point.R, problem.y, problem.sample_weight)
            model = problem.parameters(R)
            offset = float(problem.weight @ problem.loss.offset(R, problem.y))
        dual = self.C * offset - 0.5 * self.inner(model, model, point.F - point.pull if point.pull.size else point.F)
        return primal, dual, self.C * mismatch, R


def search_by_steps(
    smoothed: ProximalStep, point: NewtonPoint, D: Array, dF: Array, slope0: float, most: int
) -> tuple[float, Array, Array, Any]:
    """Search as `kernels.search` does, for block steps that have no compiled family."""
    inner_theta, inner_D = smoothed.inner(point.theta, D, dF), smoothed.inner(D, D, dF)
    weighted = smoothed.C * (dF if smoothed.counts is None else smoothed.counts * dF)
    low, slope_low, high, slope_high, t = 0.0, slope0, None, 0.0, 1.0
    for _ in range(most):
        last, F = t, point.F + t * dF
        R, where = smoothed.block_step(F)
        now = inner_theta + t * inner_D + float(np.vdot(R, weighted))
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
    return last, F, R, where


class Separate(ProximalStep):
    """psi for r = a - mean a, each a_j in [0, 1] alone, with the proximal term c/2 |a - a_t|^2.

    The gradients of these losses sum to zero over the classes. On such parameters, with linear features, H = I + blocks
    s X' diag(free_j) X, one (d, d) block for each class j; the constraint adds one (d, d) system for its multiplier
    (docs/notes/large-c.md, section 8).
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        k = problem.features.shape[1]
        self.weighted = problem.sample_weight is not None or problem.cost_weight is not None
        self.grams: dict[int, Array] = {}  # of class j the lower triangle of X' diag(s/w inside_j) X
        self.inside = np.zeros((len(problem.y), k), dtype=bool)
        self.updates = np.zeros(k, dtype=int)  # of every matrix in `grams` since its last full sum

    def block_step(self, F: Array) -> tuple[Array, Any]:
        """Return r (n, k), and a (n, k) before clipping to [0, 1]."""
        self.projections += 1
        return kernels.separate_face(self.problem.scaled(F), self.center, self.problem.y, self.c)

    search = search_by_steps

    def free(self, point: NewtonPoint) -> NDArray[np.bool_]:
        """Return which a_j lie inside their boxes, (n, k)."""
        free: NDArray[np.bool_] = (point.where > 0.0) & (point.where < 1.0) & (self.sample > 0.0)[:, None]
        return free

    def bases(self, point: NewtonPoint) -> tuple[Array, Labels]:
        """Return e_j - 1/k for every a_j inside its box."""
        owner, label = np.nonzero(self.free(point))
        k = point.where.shape[1]
        B = np.full((len(owner), k), -1.0 / k)
        B[np.arange(len(owner)), label] += 1.0
        return B, owner

    def step(self, point: NewtonPoint) -> Array:
        """Return the Newton direction from the cheaper of two forms."""
        free = self.free(point)
        k, d, m = point.R.shape[1], point.theta.shape[0], int(np.count_nonzero(free))
        # operations of the Woodbury form over all directions against those of k factorisations
        if m * m * (d + m / 3.0) < m * d * d + k * d**3:
            return super().step(point)
        factors = []
        for j in range(k):
            factor, failed = dpotrf(self._block(free[:, j], j), lower=1, overwrite_a=1)
            if failed:  # rounding, of many updates or of long rows
                self.updates[j] = MAX_UPDATES
                factor = _factor(self._block(free[:, j], j))
            factors.append(factor)
        D = np.empty_like(point.theta)
        total = np.zeros((d, d))
        for j, lower in enumerate(factors):
            D[:, j] = dpotrs(lower, -point.residual[:, j], lower=1)[0]
            total += dpotri(lower, lower=1)[0]
        constraint = _factor(total)
        for _ in range(2):  # the multiplier of the sum over classes, then its rounding error
            multiplier = dpotrs(constraint, D.sum(axis=1), lower=1)[0]
            for j, lower in enumerate(factors):
                D[:, j] -= dpotrs(lower, multiplier, lower=1)[0]
        return D

    def _block(self, free: NDArray[np.bool_], j: int) -> Array:
        """Return the lower triangle of I + (C/c) X' diag(s/w free) X of class j, updated from the last step where few rows differ."""
        before, d = self.inside[:, j], self.features.shape[0]
        gram = self.grams.setdefault(j, np.zeros((d, d), order="F"))
        entered, left = np.flatnonzero(free & ~before), np.flatnonzero(before & ~free)
        if len(entered) + len(left) > most_changes(int(self.updates[j]), int(np.count_nonzero(free))):
            entered, left = np.flatnonzero(free), left[:0]
            gram[:] = 0.0
            self.updates[j] = 0
        self.updates[j] += 1
        for rows, sign in ((entered, 1.0), (left, -1.0)):
            X: Any = self.features.X[rows]
            X = X.toarray() if hasattr(X, "toarray") else X
            if self.weighted:
                X = X * np.sqrt(self.sample[rows] / self.cost[rows])[:, None]
            add_squares(gram, X, sign)
        before[:] = free
        H = gram * (self.C / self.c)
        H.flat[:: d + 1] += 1.0
        return H


def _factor(H: Array) -> Array:
    """Return the lower Cholesky factor of H, or of H plus a tiny ridge where rounding has made H indefinite."""
    factor = np.zeros_like(H, order="F")
    if not kernels.newton_faces.cholesky(np.ascontiguousarray(H.T), factor.T):
        raise LinAlgError(_INDEFINITE)
    return factor


def falls_into_blocks(problem: Problem) -> bool:
    """Return whether the Hessian has one block for each class."""
    return problem.loss.separate and problem.features.multiclass_linear and problem.features.regularised is None


@dataclass
class _Seen:
    """The best primal value with its parameters and the best dual value with its dual point, in C form."""

    primal: float
    theta: Array
    dual: float
    R: Array

    def offer(self, primal: float, theta: Array, dual: float, R: Array) -> None:
        """Keep theta or r where its value is better than the best so far."""
        if primal < self.primal:
            self.primal, self.theta = primal, theta
        if dual > self.dual:
            self.dual, self.R = dual, R

    def reached(self, tol: float) -> bool:
        """Return whether the relative gap is at most ``tol``."""
        return self.primal - self.dual <= tol * gap_scale(self.primal, self.dual)


class _NewtonRun(NamedTuple):
    """Where the Newton steps of one subproblem ended."""

    point: NewtonPoint
    steps: int
    failed: bool
    lower: bool  # whether P is lower at the end than at the beginning


@register("newton")
class NewtonSolver(ThreadedSolver):
    """Semismooth Newton proximal point; dense linear features with k d up to some thousands, any C.

    Parameters
    ----------
    threads : int or "auto"
        Threads that share full sums of Hessians (pairs of classes), products with the rows, and the certificate, on linear features; no bit
        depends on their number. ``"auto"`` as in `DualSolver`.
    """

    def threads_for(self, problem: Problem) -> int:
        """Return the number of threads that a fit of this problem takes; sums of other features are not shared."""
        return super().threads_for(problem) if problem.features.multiclass_linear else 1

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs explicit features of moderate dimension."""
        if not problem.features.euclidean:
            return "features with explicit parameters"
        if problem.features.regularised is not None and not problem.loss.simplex:
            return "a loss whose dual variables are distributions when some parameters are free"
        size = math.prod(problem.features.shape)
        if size > MAX_DIMENSION:
            return f"at most {MAX_DIMENSION} parameters (here {size})"
        return None

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the parameters with the best primal value and the dual point with the best dual value seen."""
        problem = self.sharing(problem)
        return self.minimise(Separate(problem) if falls_into_blocks(problem) else ProximalStep(problem), limits, start)

    @classmethod
    def minimise(cls, smoothed: ProximalStep, limits: Limits, start: Solution | None) -> Solution:
        """Run the proximal point method (docs/notes/large-c.md) with the subproblems of `smoothed`."""
        started = time.perf_counter()
        deadline = started + limits.max_seconds
        theta, F, seen = cls._begin(smoothed, start)
        status, failures, restarts, steps = "", 0, 0, 0
        while not status:
            found = cls._descend(smoothed, smoothed.at(theta, F, *smoothed.block_step(F)), seen, limits, deadline)
            steps += found.steps
            if seen.reached(limits.tol):
                status = "converged"
            elif smoothed.spent(limits):
                status = "max_passes"
            elif time.perf_counter() > deadline:
                status = "max_seconds"
            elif not found.failed:
                theta, F = found.point.theta, found.point.F
                smoothed.center = found.point.R
                smoothed.c = max(smoothed.c * (0.3 if found.steps <= 2 else 0.5 if found.steps <= 6 else 0.75), _SMALLEST_C)
            else:
                failures += 1
                if failures > _MAX_FAILURES:
                    if restarts == _MAX_RESTARTS:
                        status = "stalled"
                        continue
                    restarts, failures = restarts + 1, 0
                    smoothed.center, smoothed.c, theta = seen.R, max(1.0, 10.0 * smoothed.C), seen.theta
                    F = smoothed.problem.features.scores(theta)
                    continue
                smoothed.c *= 5.0
                if found.lower:  # a failed step may have run far away
                    theta, F = found.point.theta, found.point.F
        seconds, passes = time.perf_counter() - started, float(smoothed.projections)
        memory = {"c": smoothed.c, "newton_steps": steps, "failures": failures}
        if smoothed.problem.threads > 1:
            memory["threads"] = smoothed.problem.threads
        return Solution(seen.theta, seen.R, smoothed.problem.lam, cls.name, passes, seconds, status, memory)

    @staticmethod
    def _begin(smoothed: ProximalStep, start: Solution | None) -> tuple[Array, Array, _Seen]:
        """Set the first center and c; return the first theta, its scores and the values of this start, a certified point too."""
        problem, C = smoothed.problem, smoothed.C
        smoothed.center, factor = warm_start(problem, start)
        smoothed.c = max(1.0, 10.0 * C)
        theta = np.zeros(problem.features.shape)
        if start is not None:
            # gradients of separate losses sum to zero over the classes
            theta = start.theta - start.theta.mean(axis=1, keepdims=True) if isinstance(smoothed, Separate) else start.theta.copy()
            known = start.memory.get("c")
            if known is not None:
                smoothed.c = min(10.0 * C, max(1e-3, WARM * known)) * factor
        F = problem.features.scores(theta)
        primal = problem.penalty(theta) / problem.lam + C * problem.n * problem.empirical(F)
        R = problem.features.feasible(smoothed.center, problem.y, problem.sample_weight)
        return theta, F, _Seen(primal, theta, problem.dual(R) / problem.lam, R)

    @classmethod
    def _descend(cls, smoothed: ProximalStep, point: NewtonPoint, seen: _Seen, limits: Limits, deadline: float) -> _NewtonRun:
        """Take Newton steps from a point until the subproblem is solved well enough, a limit is reached, or a step fails."""
        steps, first = 0, np.inf
        while True:
            primal, dual, mismatch, R = smoothed.values(point)
            first = primal if steps == 0 else first
            seen.offer(primal, point.theta, dual, R)
            # P - D = 1/2 |residual|^2, left to Newton steps, + the block gaps, which only a new centre can remove
            solved = seen.reached(limits.tol) or primal - dual - mismatch <= 0.3 * mismatch
            failed = steps >= _MAX_INNER
            if solved or failed or smoothed.spent(limits) or time.perf_counter() > deadline:
                return _NewtonRun(point, steps, failed, primal < first)
            try:
                direction = smoothed.direction(point)
            except LinAlgError:
                return _NewtonRun(point, steps, True, primal < first)
            if not math.isfinite(direction[2]):  # as it is not where D has a number that is none
                return _NewtonRun(point, steps, True, primal < first)
            steps += 1
            moved = cls.line_search(smoothed, point, *direction, most=limits.max_passes - smoothed.projections)
            if moved is None:
                return _NewtonRun(point, steps, True, primal < first)
            point = moved

    @staticmethod
    def line_search(
        smoothed: ProximalStep, point: NewtonPoint, D: Array, dF: Array, slope0: float, most: float = _TRIALS
    ) -> NewtonPoint | None:
        """Return the point at a step whose slope is at most half the slope at 0, or None when D is no descent direction.

        It is that of the last of ``most`` trials, at least 1, where none is.
        """
        if not slope0 < 0:
            return None
        t, F, R, where = smoothed.search(point, D, dF, slope0, int(min(most, _TRIALS)))
        return smoothed.at(point.theta + t * D, F, R, where)
