"""Operator splitting with a kernel: one Cholesky factor of K + sigma I serves every class, every iteration and neighbouring values of C.

The dual in C form, over z = C s r, is minimise 1/2 |theta(z)|^2 - C sum_i s_i w_i c(z_i / (C s_i)): a quadratic that couples the rows and
knows no bounds, and a sum of one function a row. Douglas and Rachford's iteration, relaxed (Eckstein & Bertsekas 1992), treats them in
turn and never together (docs/notes/kernels.md, section 5): each z_i is one exact block step, all classes share one system with K, and
v - z converges to the scores over sigma. An iteration is two triangular solves, however many rows keep free variables; Newton systems
grow with the number of such rows, which under llw are nearly all. Cipolla and Gondzio (2022, EURO J. Comput. Optim. 10) train
binary machines with such a shared factor.

Sometimes few rows of a Cholesky factor with pivoting leave little of K (small gamma). The iterations then solve the system of these rows,
at a cost of 4 n p k instead of 2 n^2 k. Both bounds are K's own whenever a gap is claimed: the function of such an iterate is one of K too,
with coefficients on the pivots, and the dual value is computed with K. A gap that then stays open takes more rows, at last all of K.

Every x is primal feasible and every z dual feasible, so that both bounds come from iterates.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..core.linalg import inner
from ..core.typing import Array
from ..features.base import KernelMap
from ..features.kernels.pivots import Factor
from ..problems.risk import Problem, Solution, gap_scale
from .base import Limits, Solver, register
from .best import BestSeen
from .newton.kernel import lacks_kernel

_RELAXATION = 1.9  # below 2; 1 takes nearly twice the iterations
_SCALE_SIMPLEX = 2.5  # scale of sigma for dual variables that are distributions
_SCALE_BOX = 0.7  # scale of sigma for other dual variables
_STEP = 2.0  # sigma is a power of it, so that neighbouring values of C share a factor
_FIRST_CHECK = 5  # iterations before the first check, and least iterations between two
_CHECKS = 8  # part of the iterations so far between two checks: a check costs about an iteration
_MOST_ROWS = 0.35  # rows of the largest sketch, as a share of all: an iteration reads them twice, instead of a factor
_FEW_ROWS = 0.1  # rows of a sketch that are taken at once, as a share of all
_FEWEST_ROWS = 100  # least rows of a sketch: their system costs less than the block step
_GROWTH = 3  # most growth of the rows of a sketch in one refinement
_COARSE = 0.05  # the most that a first sketch leaves, in sigma: a coarser one leads astray
_LOST = 10.0  # first guess of what a sketch loses of the dual value, in units of the diagonal that it leaves
_SHARE = 0.2  # what a sketch should lose, as a share of the gap allowed
_LEAST_CUT = 4.0  # least factor by which a refined sketch leaves less
_LARGEST_CUT = 64.0  # largest factor by which a refined sketch leaves less
_WORTHWHILE = 1.4  # times the rows that a sketch without an end in sight must gain
_MEAN_LEFT = 0.3  # mean of the diagonal left over, in units of its largest
_FROM = 15  # iteration from which it is asked whether the gap stands still
_UNTIL = 30  # iteration at which it is answered
_STILL = 0.5  # share of its size that a gap which stands still keeps between these two
_NEAR = 4.0  # largest ratio of C to the reserve's at which a gap that stands still goes on from there
_STEPS_BESIDE = 0.025  # cost of an iteration without its system, in iterations with K


@register("kernel_splitting")
class KernelSplittingSolver(Solver):
    """Douglas-Rachford splitting of the dual with a kernel whose matrix fits in memory twice; any surrogate, free thresholds too."""

    precision = 1e-4
    reserve: Solution | None = None  # at another C: where a fit begins once more whose gap stands still

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs kernel features and memory for K; free thresholds as in `newton`."""
        missing = lacks_kernel(problem)
        if missing is None and isinstance(problem.features, KernelMap) and not _room(problem.features, 2):
            return "a kernel matrix that fits twice in features.memory_mb"
        return missing

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the parameters and the dual point with the best values seen."""
        return self.minimise(problem, limits, start, lambda work, R: False)

    def minimise(self, problem: Problem, limits: Limits, start: Solution | None, enough: Callable[[float, Array], bool]) -> Solution:
        """Return what `solve` does, or end with status "max_passes" at the first check at which ``enough(work, R)`` holds.

        ``work`` is the cost of the iterations so far, in iterations with all of K.
        """
        started = time.perf_counter()
        run = _Iteration(problem, limits, start, self.reserve)
        status = run.until(limits, started, enough)
        best, memory = run.best, {"support": int(run.best.R.any(axis=1).sum())}
        return Solution(best.theta, best.R, problem.lam, self.name, run.passes, time.perf_counter() - started, status, memory)


class Sketch(NamedTuple):
    """A kernel map over L L' instead of K = L L' + what the first p pivots of a Cholesky factor leave."""

    features: KernelMap  # over L L'
    factor: Factor  # L (n, p) and the pivot rows
    left: Array  # (n,) the diagonal of K - L L'

    def unseen(self, theta: Array) -> float:
        """Return about what |theta|^2 is above its value under the sketch: the sum over the diagonal of <A, (K - L L') A>."""
        A, _ = self.features.split(theta)
        return float(self.left @ np.einsum("ij,ij->i", A, A))

    def of_kernel(self, theta: Array) -> Array:
        """Return parameters, with coefficients on the pivots alone, that have under K the scores and the norm of theta under the sketch."""
        return self.factor.from_explicit(self.features, self.factor.to_explicit(self.features, theta))


def sketched(features: KernelMap, p: int) -> Sketch:
    """Return the sketch of K by p pivots, or by as many as are clearly above rounding."""
    pivots = features.pivots
    p = pivots.grow(min(p, features.n_rows))
    rows = pivots.rows[:p]
    left = np.maximum(features.diagonal - np.einsum("ij,ij->j", rows, rows), 0.0)
    return Sketch(features.sketched(rows, pivots.gram(p)), Factor(rows.T, np.array(pivots.chosen[:p], dtype=np.intp)), left)


def pivots_for(features: KernelMap, left: float, most: int) -> int | None:
    """Return how many pivots of K leave no diagonal value above ``left``; None if more than ``most``, or without memory for their rows."""
    count: int | None = features.pivots.cover(left, min(most, features.n_rows)) if _room(features, 3) else None
    return count


def _room(features: KernelMap, matrices: int) -> bool:
    """Tell whether so many matrices of K's size fit: K, its factor, and a sketch while the factor may have to take its place."""
    return 8.0 * matrices * float(features.n_rows) ** 2 <= features.memory


class _Iteration:
    """The iterates of one fit, and the points with the best values that K gives.

    The iterations solve the ``system`` of a sketch of K (`sketched`) or of K itself; ``near`` is the problem with these features.
    """

    def __init__(self, problem: Problem, limits: Limits, start: Solution | None, reserve: Solution | None) -> None:
        features, loss = problem.features, problem.loss
        assert isinstance(features, KernelMap)
        self.problem, self.near, self.features, self.limits = problem, problem, features, limits
        self.sketch: Sketch | None = None
        self.system: KernelMap = features
        n, k = len(problem.y), loss.n_classes
        self.sample = np.ones(n) if problem.sample_weight is None else problem.sample_weight
        self.cost = np.ones(n) if problem.cost_weight is None else problem.cost_weight
        self.sigma = _sigma(problem, features)
        self.largest, self.curvature = (problem.C * self.sample)[:, None], self.sigma * problem.C * self.sample / self.cost
        self.origin = np.zeros((n, k))
        theta, R = np.zeros(features.shape), features.feasible(self.origin, problem.y, problem.sample_weight)
        self.V = self.origin
        self.iterations, self.checks, self.work, self.gap, self.gap_before = 0, 0, 0.0, np.inf, np.inf
        usable = reserve is not None and reserve is not start and self._fits(reserve) and _near(reserve.lam, problem.lam)
        self.reserve = reserve if usable else None
        if limits.max_passes >= 2.0:
            self.checks = 2  # values of a start
            if start is not None and self._fits(start):
                assert start.R is not None
                theta, R = start.theta, start.R
                self.V = self._rest(start)
        self.best = BestSeen(theta, R, problem.primal(theta), problem.dual(R))
        self.lost = _LOST
        if self.open():
            self._sketch_first(problem.parameters(R))

    def _fits(self, start: Solution) -> bool:
        """Return whether a solution has coefficients and a dual point of the problem's shapes."""
        return start.R is not None and start.R.shape == self.origin.shape and start.theta.shape == self.features.shape

    def _rest(self, start: Solution) -> Array:
        """Return V (n, k) at which the iteration rests if coefficients and scores of the start are optimal."""
        assert start.R is not None
        F = self.features.scores(start.theta)
        return start.R * (self.sample / (start.lam * self.problem.n))[:, None] + (F - F.mean(axis=1, keepdims=True)) / self.sigma

    @property
    def passes(self) -> float:
        """Iterations and evaluations."""
        return float(self.iterations + self.checks)

    def allowed(self, primal: float, dual: float) -> float:
        """Return the gap that is as good as closed."""
        return self.limits.tol * gap_scale(primal, dual)

    def open(self) -> bool:
        """Return whether the gap between the best values is open."""
        return not self.best.reached(self.limits.tol)

    def until(self, limits: Limits, started: float, enough: Callable[[float, Array], bool]) -> str:
        """Iterate until the gap is closed, to a limit or until ``enough``; return the status."""
        check, loss, y = _FIRST_CHECK, self.problem.loss, self.problem.y
        while self.open():
            if self.passes >= limits.turn or self.passes + 2 > limits.max_passes:  # an iteration and its values
                return "max_passes"
            if time.perf_counter() - started > limits.max_seconds:
                return "max_seconds"
            R = loss.block(self.V * (self.sigma / self.cost)[:, None], self.origin, y, self.curvature)
            Z = R * self.largest
            G = 2.0 * Z - self.V
            X, theta = self.system.proximal(G, self.sigma)
            self.iterations += 1
            self.work += 1.0 if self.sketch is None else min(1.0, len(self.sketch.factor.pivots) / len(y) + _STEPS_BESIDE)
            last = self.passes + 1 >= limits.turn or self.passes + 3 > limits.max_passes
            late = self.sketch is not None and time.perf_counter() - started > limits.max_seconds
            if self.iterations >= check or last or late:
                check = self.iterations + max(_FIRST_CHECK, self.iterations // _CHECKS)
                self.checks += 1
                R = self.features.feasible(R, y, self.problem.sample_weight)
                stop = enough(self.work, R)
                self._judge(X, G, theta, R, last or late or stop)
                if stop and self.open():
                    return "max_passes"
                if self._stands_still():
                    assert self.reserve is not None
                    self.V, self.reserve = self._rest(self.reserve), None
                    self.checks += 1
                    continue
            self.V = self.V + _RELAXATION * (X - Z)
        return "converged"

    def _stands_still(self) -> bool:
        """Return whether it is time to begin once more, from the reserve."""
        if self.iterations == _FROM:
            self.gap_before = self.gap
        return self.iterations == _UNTIL and self.reserve is not None and self.gap > _STILL * self.gap_before

    def _judge(self, X: Array, G: Array, theta: Array, R: Array, last: bool) -> None:
        """Take the values of the iterates; refine the sketch where it, not the iteration, keeps the gap open."""
        problem, sketch = self.problem, self.sketch
        F = self.sigma * (X - G)
        primal = 0.5 * problem.lam * max(-inner(X, F), 0.0) + problem.empirical(F)
        expected = bound = 0.0
        if sketch is not None:
            bound, A = self.near.dual(R), problem.parameters(R)
            expected = 0.5 * problem.lam * sketch.unseen(A)
            self.gap, allowed = primal - bound, self.allowed(primal, bound)
            if self.gap > allowed and not last:
                if 2.0 * max(self.gap, 0.5 * allowed) < self.lost * expected:
                    self._refine(A)
                return
        dual = problem.dual(R)
        self.best.take(None, np.inf, R, dual)
        if self.features.regularised is None:  # the dual value has computed the scores of theta(r)
            spanned = problem.parameters(R)
            self.best.take(spanned, problem.primal(spanned), None, -np.inf)
        if sketch is not None:
            theta = sketch.of_kernel(theta)
        if sketch is not None or primal - self.best.dual <= self.allowed(primal, self.best.dual):
            primal = problem.primal(theta)  # free of the factor's rounding
        self.best.take(theta, primal, None, -np.inf)
        if sketch is None:
            self.gap = self.best.primal - self.best.dual
        elif not last and self.open():
            if expected > 0.0:
                self.lost = min(max((bound - dual) / expected, 1.0), 1e3)
            self._refine(problem.parameters(R))

    def _sketch_first(self, A: Array) -> None:
        """Begin with a sketch that should lose little of the dual value at coefficients as large as A, or with a smaller first one."""
        coarsest = _COARSE * self.sigma
        loses = _MEAN_LEFT * self.lost * 0.5 * self.problem.lam * inner(A, A)  # for each unit left
        left = min(_SHARE * self.allowed(self.best.primal, self.best.dual) / loses, coarsest) if loses > 0.0 else coarsest
        if pivots_for(self.features, coarsest, self.few_rows) is not None:
            self._take(left, 0, self.few_rows)
        elif pivots_for(self.features, left, self.most_rows) is not None:
            self._take(left, 0, self.most_rows)

    def _refine(self, A: Array) -> None:
        """Take a sketch that loses less at coefficients A, or K itself."""
        assert self.sketch is not None
        loses = self.lost * 0.5 * self.problem.lam * self.sketch.unseen(A)
        cut = min(max(loses / (_SHARE * self.allowed(self.best.primal, self.best.dual)), _LEAST_CUT), _LARGEST_CUT)
        before = len(self.sketch.factor.pivots)
        self._take(float(self.sketch.left.max()) / cut, before, max(_GROWTH * before, self.few_rows))

    def _take(self, left: float, before: int, limit: int) -> None:
        """Take the sketch that leaves so much of K's diagonal, or its first ``limit`` rows; K itself where ``before`` rows gain too few."""
        wanted = pivots_for(self.features, left, self.most_rows)
        goal = min(self.most_rows if wanted is None else max(wanted, _FEWEST_ROWS), self.most_rows, limit)
        self.sketch, self.near, self.system = None, self.problem, self.features
        if wanted is not None or goal >= _WORTHWHILE * before:
            sketch = sketched(self.features, goal)
            if len(sketch.factor.pivots) > before:  # else the rest of K is rounding
                self.sketch, self.system = sketch, sketch.features
                self.near = replace(self.problem, features=sketch.features)

    @property
    def most_rows(self) -> int:
        """The rows of the largest sketch."""
        return int(_MOST_ROWS * len(self.problem.y))

    @property
    def few_rows(self) -> int:
        """The rows of a sketch that are taken at once."""
        return max(int(_FEW_ROWS * len(self.problem.y)), min(_FEWEST_ROWS, self.most_rows))


def _near(lam: float, other: float) -> bool:
    """Return whether a point of rest at one regularisation is a start at the other."""
    return max(lam, other) <= _NEAR * min(lam, other)


def _sigma(problem: Problem, features: KernelMap) -> float:
    """Return sigma, the ratio of scores to coefficients, as a power of `_STEP`.

    Scores are of the size of w. Coefficients are of the size of w / K_ii where rows are free, and C s, the most they can be, at bounds. The
    root of the product of the smaller of these sizes and C s covers both cases: times a constant, its sigma needed at most twice the
    iterations of the best one for C of 1 to 2^12 and gamma of 2^-12 to 1. Means over rows are taken for every row. No sigma is below what
    rounding may take off an eigenvalue of K.
    """
    cost = 1.0 if problem.cost_weight is None else float(problem.cost_weight.mean())
    largest = problem.C * (1.0 if problem.sample_weight is None else float(problem.sample_weight.mean()))
    diagonal = float(features.matrix.diagonal().mean())
    free = cost / max(diagonal, 1e-300)  # a kernel may be zero
    coefficient = np.sqrt(min(free, largest) * largest)
    scale = _SCALE_SIMPLEX if problem.loss.simplex else _SCALE_BOX
    least = 4.0 * len(problem.y) ** 2 * float(np.finfo(np.float64).eps) * diagonal
    return float(_STEP ** round(np.log(max(scale * cost / coefficient, least)) / np.log(_STEP)))
