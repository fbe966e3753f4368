"""Proximal point with semismooth Newton steps: a solver whose time hardly grows with C = 1/(lambda n).

One proximal step on the dual point, r <- argmax D(r') - (C c/2) |r' - r|^2 (in C form), is solved in the parameters: minimise

    psi(theta) = 1/2 |theta|^2 + C sum_i s_i w_i max over r' of [c(r') + f_i/w_i . r' - (c/2) |r' - r_i|^2]

by Newton steps with H = I + sum_i (C s_i / (c w_i)) J_i' M_i J_i, M_i the projector on the face of the exact block step
(compiled), non-zero only for examples at a kink. The inner stop and the recovery (docs/notes/large-c.md, section 6) were each
needed for robustness.

A loss whose dual variables are boxes, one for each label, and whose scores sum to zero (llw) gets a proximal term on those variables
instead of r: then every label moves alone and H falls into one block for each class (`Separate`).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import dense
from ...core.compiled import Family, kernels
from ...core.linalg import LinAlgError, dpotrf, dpotri, dpotrs, inner, norm
from ...core.typing import Array, Labels
from ...features.linear import MAX_UPDATES, LinearFeatures, NewtonSystem, add_squares, most_changes
from ...problems.risk import Problem, Solution
from ..base import Limits, register, warm_start
from ..best import BestSeen
from ..coordinate.threaded import ThreadedSolver
from .proximal import CLOSE, MAX_FAILURES, SMALLEST, TRIALS, NewtonRun, ProximalMethod, fall, line_search, minimise

MAX_DIMENSION = 6000  # k d beyond which a dense Hessian costs more than the block solver ever will
SAMPLED_ROWS = 8192  # examples from which early Hessians are those of a sample: of fewer they cost too little to save
_SAMPLED = 20  # examples of the first sample that Hessians are summed over, in units of the parameters
_BESIDE = 12  # the same in units of the examples over the parameters: then the sum costs what products and line searches of a step do
_KINKS = 8  # least examples of a sample at a kink, in the same units
_SLOW = 0.5  # share of the residual that a step by a sample may leave; where it leaves more, the sample is doubled
WARM = 30.0  # largest ratio of the first c of a fit to the last c of the fit before
_NONE = np.empty((0, 0))
_INDEFINITE = "the Newton system is not positive definite"


@dataclass
class NewtonPoint:
    """The smoothed problem at one theta."""

    theta: Array
    F: Array
    R: Array
    residual: Array  # theta - theta(r), the gradient of psi
    where: Any  # where the block steps end, as the Hessian needs it: their faces, or dual variables before they are held in their set
    pull: Array  # scores of the residual, (n, k), with a kernel; else none, and no inner product reads scores
    primal: float = float("nan")  # P(theta) in C form, once it is judged


class ProximalStep(ProximalMethod):
    """psi of one proximal step, with faces and gaps; everything in C form, theta of shape (d, k)."""

    limits = Limits(max_passes=float("inf"))
    deadline = float("inf")
    centred = False  # whether parameters sum to zero over the classes

    def __init__(self, problem: Problem) -> None:
        self.problem, self.features = problem, problem.features
        self.C, self.mask = problem.C, problem.features.regularised
        self.sample, self.cost = problem.counts, problem.costs
        # weights as an (n, k) array: a product with a column takes several times as long
        self.counts = None if problem.sample_weight is None else np.repeat(self.sample[:, None], problem.loss.n_classes, axis=1)
        self.nowhere = self.sample == 0.0  # examples that have no curvature
        self.ratio = self.sample / self.cost
        self.center: Array = np.zeros((len(problem.y), problem.loss.n_classes))
        self.c = 1.0
        self.projections = self.steps = self.failures = 0
        self.restarted = False
        # directions sum to zero over the classes: Newton systems have a class less
        features, whole = problem.features, self.mask is None
        self.system = NewtonSystem(features, self.ratio, problem.threads) if whole and isinstance(features, LinearFeatures) else None
        self.sampled = len(problem.y)  # how many examples Hessians are summed over
        self.skipped = self.nowhere  # the others, and those without curvature
        if self.system is not None and self.sampled >= SAMPLED_ROWS:
            size = max(self.system.size, 1)  # a single class leaves no parameter
            self._take_sample(max(_SAMPLED * size, _BESIDE * self.sampled // size))

    @cached_property
    def family(self) -> Family:
        """The compiled family of the loss, where it has one."""
        return self.problem.loss.family

    def block_step(self, F: Array) -> tuple[Array, Any]:
        """Return the block steps r (n, k) at scores F, and their label states."""
        self.projections += 1
        return kernels.face(self.family, self.problem.scaled(F), self.center, self.problem.y, self.c)

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

    def at(self, theta: Array, F: Array, R: Array, where: Any) -> NewtonPoint:
        """Return the point at theta, whose block steps are known."""
        return NewtonPoint(theta, F, R, self.residual(theta, R), where, _NONE)

    def inner(self, theta: Array, other: Array, scores: Array) -> float:
        """Return the inner product of theta with a direction and its scores (n, k), over the regularised parameters."""
        return inner(theta, other if self.mask is None else other * self.mask)

    def bases(self, point: NewtonPoint) -> tuple[Array, Labels]:
        """Return bases of the faces (m, k) and the example i of every basis vector (m,)."""
        return kernels.tangents(self.family, point.where, self.nowhere)

    def scale(self, owner: Labels) -> Array:
        """Return C s_i / (c w_i) of examples."""
        return np.asarray((self.C / self.c) * self.ratio[owner])

    def direction(self, point: NewtonPoint) -> tuple[Array, Array, float]:
        """Return the Newton direction D, H D = -residual, its scores (n, k) and the slope of psi along it."""
        D = self.step(point)
        return D, self.features.shared_scores(D, self.problem.threads), inner(point.residual, D)

    def _take_sample(self, size: int) -> None:
        """Sum Hessians over ``size`` examples, among them the earlier ones, or over all where these are hardly more."""
        n = len(self.sample)
        self.sampled, self.skipped = n, self.nowhere
        if 2 * size <= n:
            self.sampled, self.skipped = size, np.ones(n, dtype=bool)
            chosen = np.random.default_rng(0).permutation(n)[:size]
            self.skipped[chosen] = self.nowhere[chosen]

    def step(self, point: NewtonPoint) -> Array:
        """Return the Newton direction; its Hessian is that of a sample, scaled up, as long as many examples of it are at a kink."""
        while self.sampled < len(self.sample) and self.system is not None:
            B, owner = kernels.tangents(self.family, point.where, self.skipped)
            if np.count_nonzero(np.diff(owner)) >= _KINKS * self.system.size:
                return self.solve(B, owner, point.residual, float(self.ratio.sum() / self.ratio[~self.skipped].sum()))
            self._take_sample(2 * self.sampled)
        return self.solve(*self.bases(point), point.residual)

    def solve(self, B: Array, owner: Labels, residual: Array, times: float = 1.0) -> Array:
        """Return D with (I + sum_m C s_i / (c w_i) z_m z_m') D = -residual for the directions z_m = J_i' b_m of examples i = owner_m.

        The sum counts ``times``, of which only a sample's is another number than 1.
        """
        unit = self.C / self.c * times  # the factor that changes from one proximal step to the next
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

    # ---- what `proximal` asks -----------------------------------------------------------------------------------------
    def begin(self, limits: Limits, start: Solution | None) -> NewtonPoint:
        """Set the limits, the first center and c; return the first point. The values of the start count, as it is a certified point too."""
        problem, C = self.problem, self.C
        self.limits, self.tol, self.deadline = limits, limits.tol, time.perf_counter() + limits.max_seconds
        self.center, factor = warm_start(problem, start)
        self.c = max(1.0, 10.0 * C)
        theta = np.zeros(problem.features.shape)
        if start is not None:
            theta = start.theta - start.theta.mean(axis=1, keepdims=True) if self.centred else start.theta.copy()
            if (last := start.memory.get("c")) is not None:
                self.c = min(10.0 * C, max(1e-3, WARM * last)) * factor
        F = problem.features.scores(theta)
        primal = problem.penalty(theta) / problem.lam + C * problem.n * problem.empirical(F)
        R = problem.features.feasible(self.center, problem.y, problem.sample_weight)
        self.best = BestSeen(theta, R, primal, problem.dual(R) / problem.lam)
        return self._around(theta, F)

    def _around(self, theta: Array, F: Array) -> NewtonPoint:
        """Return the point at theta for the present center and c, where a proximal step begins."""
        self.beginning = theta, F  # as given: the point may hold scores made anew
        return self.at(theta, F, *self.block_step(F))

    def limit(self) -> str:
        """Return the status where it is another solver's turn, one more evaluation would be one too many, or time is up."""
        if self.projections > self.limits.turn or self.projections + 1 > self.limits.max_passes:
            return "max_passes"
        return "max_seconds" if time.perf_counter() > self.deadline else ""

    def judge(self, point: NewtonPoint, steps: int) -> bool:
        """Compare the point's values with the best; return whether the gap is closed, or only a new centre brings it nearer."""
        point.primal, dual, mismatch, R = self.values(point)
        self.best.take(point.theta, point.primal, R, dual)
        # P - D = 1/2 |residual|^2, left to Newton steps, + the block gaps, which only a new centre can remove
        return self.best.reached(self.tol) or point.primal - dual - mismatch <= CLOSE * mismatch

    def advance(self, point: NewtonPoint) -> NewtonPoint | None:
        """Return the point at a step whose slope is at most half the slope at 0, or at the last that passes allow."""
        D, dF, slope = self.direction(point)
        if not math.isfinite(slope):
            return None
        self.steps += 1
        if not slope < 0:
            return None
        t, F, R, where = self.search(point, D, dF, slope, int(min(self.limits.max_passes - self.projections, TRIALS)))
        following = self.at(point.theta + t * D, F, R, where)
        if self.sampled < len(self.sample) and norm(following.residual) > _SLOW * norm(point.residual):
            self._take_sample(2 * self.sampled)
        return following

    def recentre(self, descent: NewtonRun) -> NewtonPoint | None:
        """Return the point for its own dual point as the center."""
        if descent.steps >= self.most_inner:  # failed, even where the last of so many steps solves it
            return self.recover(descent)
        point = descent.point
        self.center, self.c = point.R, max(self.c * fall(descent.steps), SMALLEST)
        return self._around(point.theta, point.F)

    def recover(self, descent: NewtonRun) -> NewtonPoint | None:
        """Return the point for a larger c; after many failures, once, the best point for the first c."""
        self.failures += 1
        if self.failures > MAX_FAILURES:
            if self.restarted:
                return None
            self.restarted, self.failures = True, 0
            self.center, self.c = self.best.R, max(1.0, 10.0 * self.C)
            return self._around(self.best.theta, self.problem.features.scores(self.best.theta))
        self.c *= 5.0
        lower = descent.point.primal < descent.first.primal
        return self._around(descent.point.theta, descent.point.F) if lower else self._around(*self.beginning)


def search_by_steps(
    method: ProximalStep, point: NewtonPoint, D: Array, dF: Array, slope0: float, most: int
) -> tuple[float, Array, Array, Any]:
    """Search as `kernels.search` does, for block steps that have no compiled family."""
    inner_theta, inner_D = method.inner(point.theta, D, dF), method.inner(D, D, dF)
    weighted = method.C * (dF if method.counts is None else method.counts * dF)

    def line(t: float) -> tuple[float, float, Any]:
        F = point.F + t * dF
        R, where = method.block_step(F)
        slope = inner_theta + t * inner_D + inner(R, weighted)
        return slope, slope, (F, R, where)

    t, (F, R, where), _ = line_search(line, slope0, most)
    return t, F, R, where


class Separate(ProximalStep):
    """psi for r = a - mean a, each a_j in [0, 1] alone, with the proximal term c/2 |a - a_t|^2.

    The gradients of these losses sum to zero over the classes. On such parameters, with linear features, H = I + blocks
    s X' diag(free_j) X, one (d, d) block for each class j; the constraint adds one (d, d) system for its multiplier
    (docs/notes/large-c.md, section 8).
    """

    centred = True

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
        return np.asarray((point.where > 0.0) & (point.where < 1.0) & (self.sample > 0.0)[:, None])

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
        # operations of the Woodbury form over all directions against k factorisations
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
            X: Any = dense(self.features.X[rows])
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


def lacks_size(problem: Problem) -> str | None:
    """Return what a problem lacks for systems over all of its parameters, or None."""
    size = math.prod(problem.features.shape)
    return f"at most {MAX_DIMENSION} parameters (here {size})" if size > MAX_DIMENSION else None


@register("newton")
class NewtonSolver(ThreadedSolver):
    """Semismooth Newton proximal point; dense linear features with k d up to some thousands, any C.

    On linear features ``threads`` share full sums of Hessians, products with the rows, and the certificate; no bit
    depends on their number. ``"auto"`` as in `DualSolver`.
    """

    def threads_for(self, problem: Problem) -> int:
        """Return the number of threads that a fit of this problem takes; sums of other features are not shared."""
        return super().threads_for(problem) if problem.features.multiclass_linear else 1

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs explicit features of moderate dimension."""
        return problem.lacks_parameters() or lacks_size(problem)

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the parameters with the best primal value and the dual point with the best dual value seen."""
        problem = self.sharing(problem)
        return self.minimise(Separate(problem) if falls_into_blocks(problem) else ProximalStep(problem), limits, start)

    @classmethod
    def minimise(cls, method: ProximalStep, limits: Limits, start: Solution | None) -> Solution:
        """Run the proximal point method (docs/notes/large-c.md) with the subproblems of ``method``."""
        started = time.perf_counter()
        status = minimise(method, method.begin(limits, start))
        memory = {"c": method.c, "newton_steps": method.steps, "failures": method.failures}
        if method.problem.threads > 1:
            memory["threads"] = method.problem.threads
        best, seconds = method.best, time.perf_counter() - started
        return Solution(best.theta, best.R, method.problem.lam, cls.name, float(method.projections), seconds, status, memory)
