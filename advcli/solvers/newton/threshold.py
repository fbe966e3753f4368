"""Solver of threshold models: over a kernel first ascent by pairs of dual variables; then, and over explicit features, Newton's method.

Pairs (`_ext/ascent/ascent_pairs.pyx`) bring most kernel fits to the tolerance in less time than a few Newton systems take. A fit that pairs
leave open, at large C, is solved by the proximal point method with semismooth Newton steps.

One proximal step on the dual point alpha of `threshold_problem` minimises, in w and eta,

    1/2 |w|^2 + 1/2 eta'M eta + sum_ij max over alpha in [0, U_ij] of [alpha z_ij - sigma/2 (alpha - A_ij)^2],   z = 1 - s (g_i - eta_j)

from the centre A; the answer is the next centre and sigma falls (docs/notes/large-c.md). Only hinges whose alpha lies strictly between its
ends, free ones, have curvature. Let row i have q_i of them, B (rows, m) mark them and E = B/q. Eliminating alpha, a Newton step solves

    (K_RR + sigma/q) dbeta - E deta = -pull_R,      E' dbeta + (M + (diag(1'B) - B'E)/sigma) deta = -gradient in eta

over the rows R with free hinges alone, or the normal equations in (w, eta) (`scored_rows`). From w = 0 most rows lie on a kink, so the
first point is the solution of every fourth row (recursively), with C four times as large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...core.compiled import kernels
from ...core.linalg import LinAlgError
from ...core.typing import Array
from ...problems.threshold import ThresholdProblem
from ..best import BestSeen
from . import proximal
from .proximal import CLOSE, TRIALS, NewtonRun, ProximalMethod, line_search
from .scored_rows import KernelRows, ScoredRows, ThresholdSystem

_PAIRED = {"each": 0, "ordered": 1, "sum": 2}  # couplings that the ascent by pairs keeps, and how it knows them
_PAIRS = 40  # most pairs of the ascent, in units of the rows
_HOPELESS = ((10, 0.9), (20, 0.5))  # pairs in units of the rows, and the gap after them that sends the problem to Newton's method
_CLOSER = 0.9  # share of the tolerance at which the ascent stops, as its gap is summed from updates
_NEAR = 0.2  # gap of the ascent up to which Newton's method begins from its point
_SETTLED = 0.02  # share of the variables inside that may change while n pairs move, for a system of their best values
_LARGEST_FACE = 1000  # most variables of such a system
_FACES = 4  # such systems in a row
_RIGID = 1e-10  # proximal weight of such a system, in units of the mean of the diagonal of K
_WIDTH = 2.0  # the first smoothing in units of the margin
_AFTER = 0.1  # share of it after a part of the rows
_WARM = 0.03  # share of it from a start
_LEAST = 150  # rows from which a problem begins with every `_THIN`-th row
_THIN = 4  # rows for one of the part that a problem begins with
_THINNED = 200.0  # C |x|^2 up to which the solution of a part of the rows is near the solution of all
_IDLE = 12  # proximal steps without a better bound, or that have failed, after which rounding has won
_ACCEPT = 0.1  # share of the first slope at which a line search ends
_ROUNDING = float(np.finfo(np.float64).eps)  # share of the summed dual variables below which a residual is rounding
_SETTLES = 0.1  # step length up to which thresholds are not settled next
_EASE = 1e-3  # proximal weight of the order's multipliers, in units of sigma over the rows


@dataclass
class ThresholdPoint:
    """The best primal and dual points seen, their values in the scaling of (1), and the work that they took."""

    v: Array  # coordinates of w
    eta: Array  # thresholds
    g: Array  # scores
    alpha: Array  # the dual point (m, n), feasible
    primal: float
    dual: float
    steps: int  # Newton steps, n pairs that moved counting as one
    sigma: float  # the last proximal weight, in units of the largest dual variable
    status: str  # converged, max_passes or stalled
    solver: str = "newton"  # or "pairs", where these were enough
    C: float = float("nan")  # of the problem that is solved; nan for a point on the way

    @property
    def gap(self) -> float:
        """The relative gap."""
        return (self.primal - self.dual) / self.primal if self.primal > 0 else 0.0


def minimise(
    problem: ThresholdProblem, rows: ScoredRows, tol: float, max_steps: float = 1000, start: ThresholdPoint | None = None
) -> ThresholdPoint:
    """Minimise (1) to a relative gap of ``tol``, from a point of the same rows at any C.

    After ``max_steps``, Newton steps on all rows and n pairs that move as one, the best point is returned as it is.
    """
    paired, max_steps = None, float(np.floor(max_steps))
    if isinstance(rows, KernelRows) and problem.coupling in _PAIRED:  # pairs read K itself
        paired = _by_pairs(problem, rows, tol, max_steps, start)
        if paired.gap <= tol:
            return replace(paired, status="converged", C=problem.C)
        start = paired if paired.gap <= _NEAR else start
        max_steps -= paired.steps
    width = _WIDTH
    if start is not None:
        width *= _WARM
    elif rows.n >= _LEAST and problem.C * rows.square <= _THINNED:
        start = _from_part(problem, rows, width)
        width *= _AFTER
    method = _ThresholdStep(problem, rows, start, width, tol, max_steps)
    status, steps, best = proximal.minimise(method, method.first), method.steps, method.best
    if paired is not None:
        best.take(_Thresholds(paired.v, paired.g, paired.eta), paired.primal, paired.alpha, paired.dual)
        steps += paired.steps
    v, g, eta, _ = best.theta
    return ThresholdPoint(v, eta, g, best.R, best.primal, best.dual, steps, method.sigma * method.largest, status, C=problem.C)


def _by_pairs(problem: ThresholdProblem, rows: KernelRows, tol: float, max_steps: float, start: ThresholdPoint | None) -> ThresholdPoint:
    """Return the point of the ascent by pairs: at the tolerance, or after as many pairs as cost about what Newton's method does."""
    alpha = np.zeros((problem.m, rows.n)) if start is None else problem.feasible(start.alpha)
    g = np.zeros(rows.n) if start is None else rows.scores(problem.spanned(alpha))
    offset = np.empty(0) if problem.offset is None else problem.offset
    arguments = problem.y, problem.U, rows.K, offset, _PAIRED[problem.coupling], alpha, g, _CLOSER * tol
    left, steps, solved = int(min(_PAIRS, max_steps) * rows.n), 0, 0
    inside = np.zeros(alpha.shape, dtype=bool)
    while True:
        most = min(left - steps - solved * rows.n, rows.n)
        moved, gap = kernels.ascent_pairs.ascend(*arguments, most)
        steps += moved
        hopeless = any(gap >= large and steps >= pairs * rows.n for pairs, large in _HOPELESS)
        # pairs among a part of the rows count as a share of one, and may add up to none
        if gap <= _CLOSER * tol or moved < max(most - 1, 1) or steps + solved * rows.n >= left or hopeless:
            break
        before, inside = inside, (alpha > 0.0) & (alpha < problem.U)
        count = int(inside.sum())
        if 0 < count <= _LARGEST_FACE and left - steps >= (solved + 1) * rows.n and np.count_nonzero(inside != before) <= _SETTLED * count:
            solved += to_face_optimum(problem, rows, alpha, g, (left - steps) // rows.n - solved)
    return replace(_point_of(problem, rows, alpha), steps=-(-steps // rows.n) + solved, status="max_passes", solver="pairs")


def to_face_optimum(problem: ThresholdProblem, rows: KernelRows, alpha: Array, g: Array, most: int) -> int:
    """Move dual variables inside their ends towards their best values, others and constraints held; return how many systems that took.

    One variable a row moves, the first inside: of two the slopes rarely agree. A variable that reaches an end stays there, and the next of
    ``most`` systems does without it. In place on alpha (m, n) and its scores g (n,). Let x be the changes of beta in the rows R, E (R, m)
    ones at their thresholds, and h their slopes. The optimum has (K_RR + sigma) x - E deta = h, E'x + M deta = 0: the system of a Newton
    step (`ScoredRows.by_rows`), here with a sigma that is rounding beside K.
    """
    single = problem.coupling == "sum"
    systems = min(_FACES, most)
    for solved in range(1, systems + 1):
        inside = (alpha > 0.0) & (alpha < problem.U)
        chosen = np.flatnonzero(inside.any(axis=0))
        if not len(chosen):
            return solved
        j = inside[:, chosen].argmax(axis=0)
        signs, E, q = problem.signs[j, chosen], np.eye(problem.m)[j], np.ones(len(chosen))
        theta = -problem.totals(alpha) if single else np.zeros(problem.m)
        pull = np.zeros(rows.n)
        pull[chosen] = problem.seen(g)[chosen] - signs - theta[j]
        system = ThresholdSystem(chosen, q, E, E, _RIGID * rows.square, problem.M, problem.M, np.zeros(problem.m))
        try:
            x, _ = rows.by_rows(pull, system)
        except LinAlgError:
            return solved
        # a nearly singular K leaves few digits of the constraints
        x -= x.mean() if single else E @ (E.T @ x / np.maximum(E.sum(axis=0), 1.0))
        a, limit, change = alpha[j, chosen], problem.U[j, chosen], signs * x
        room = np.where(change > 0.0, limit - a, a)
        length = np.divide(room, np.abs(change), out=np.full(len(chosen), np.inf), where=change != 0.0)
        t = min(1.0, float(length.min()))
        alpha[j, chosen] = np.where(length <= t, np.where(change > 0.0, limit, 0.0), np.clip(a + t * change, 0.0, limit))
        moved = np.zeros(rows.n)
        moved[chosen] = t * x
        g += rows.scores(moved)
        if t == 1.0:
            return solved
    return systems


def _point_of(problem: ThresholdProblem, rows: ScoredRows, alpha: Array) -> ThresholdPoint:
    """Return the feasible dual point near alpha (m, n) and the primal point that it spans, from scratch."""
    alpha = problem.feasible(alpha)
    v = rows.spanned(problem.spanned(alpha))
    g = rows.scores(v)
    square, eta = rows.inner(v, v, g), problem.thresholds(g, alpha)
    return ThresholdPoint(v, eta, g, alpha, problem.primal(square, g, eta), problem.dual(alpha, square), 0, 1.0, "")


def moved(problem: ThresholdProblem, rows: ScoredRows, start: ThresholdPoint | None) -> ThresholdPoint | None:
    """Return a point of the same rows at this or another C as a start; None where it does not fit."""
    if start is None or start.alpha.shape != (problem.m, rows.n):
        return None
    z = 1.0 - problem.signs * (problem.seen(start.g) - start.eta[:, None])
    if start.C == problem.C:
        return replace(start, steps=0, status="")
    alpha = np.where(np.abs(z) < 1e-6, np.minimum(start.alpha, problem.U), problem.U * (z > 0.0))
    return ThresholdPoint(start.v, start.eta, start.g, alpha, start.primal, start.dual, 0, start.sigma, "")


def _from_part(problem: ThresholdProblem, rows: ScoredRows, width: float) -> ThresholdPoint | None:
    """Return the solution of every fourth row, with the scores of all; None where a class would be missing."""
    thin = np.arange(0, rows.n, _THIN)
    y, weight, offset = problem.y[thin], problem.weight[thin], None if problem.offset is None else problem.offset[thin]
    if not weight.any():
        return None
    part = replace(problem, y=y, weight=weight, C=problem.C * problem.mass / float(weight.sum()), offset=offset)
    point = minimise(part, rows.among(thin), 3e-2, 100)
    v = rows.lifted(point.v, thin)
    g = rows.scores(v)
    z = 1.0 - problem.signs * (problem.seen(g) - point.eta[:, None])
    return replace(point, v=v, g=g, alpha=problem.U * np.clip(0.5 + z / width, 0.0, 1.0))


class _Thresholds(NamedTuple):
    """Coordinates of w, their scores and thresholds, reached by a step of length t."""

    v: Array
    g: Array
    eta: Array
    t: float = 1.0


class _ThresholdStep(ProximalMethod):
    """Proximal steps on the dual point; its own arrays, and the thresholds of its points, are written in place."""

    def __init__(
        self, problem: ThresholdProblem, rows: ScoredRows, start: ThresholdPoint | None, width: float, tol: float, max_steps: float
    ) -> None:
        self.problem, self.rows, self.tol, self.max_steps = problem, rows, tol, max_steps
        m, n = problem.m, rows.n
        self.largest = float(problem.U.max())
        self.reach = n * (1.0 + rows.square)  # square of what a rounded sum over the rows grows by
        self.sigma = width / self.largest
        self.centre = np.zeros(m - 1 if problem.coupling == "ordered" else 0)
        self.alpha, self.beta, self.total = np.empty((m, n)), np.empty(n), np.empty(m)
        self.free = np.empty(n, dtype=np.int32)
        self.steps = self.idle = self.failures = self.rounds = 0
        # the start is somebody else's, and its values are kept beside its thresholds and dual point
        g, self.A = (np.zeros(n), np.zeros((m, n))) if start is None else (start.g, start.alpha.copy())
        v, eta = (rows.spanned(np.zeros(n)), problem.thresholds(g, self.A)) if start is None else (start.v, start.eta.copy())
        self.first = _Thresholds(v, g, eta)

    @property
    def ease(self) -> float:
        """Proximal weight of the order's multipliers."""
        return _EASE * self.sigma / self.rows.n

    def _multipliers(self, eta: Array) -> Array:
        return np.maximum(self.centre - np.diff(eta) / self.ease, 0.0)

    def limit(self) -> str:
        return "max_passes" if self.steps >= self.max_steps else ""

    def judge(self, point: _Thresholds, steps: int) -> bool:
        """Return whether the residual is small beside the gap that only a new centre closes; the first point never is."""
        p, rows, step = self.problem, self.rows, kernels.newton_threshold
        g = p.seen(point.g)
        # a settled threshold lies at a kink, where a Newton step may see one side alone and be cut to nothing, again and again
        if point.t > _SETTLES:
            step.settle(p.y, p.U, g, point.eta, self.A, self.sigma, p.M, self.centre, self.ease)
        short = step.step(p.y, p.U, g, point.eta, self.A, self.sigma, self.alpha, self.beta, self.total, self.free)
        self.residual = rows.spanned(self.beta) - point.v
        self.gradient = -(p.M @ point.eta + self.total)
        if len(self.centre):
            mu = self._multipliers(point.eta)
            self.gradient -= np.append(mu, 0.0) - np.append(0.0, mu)
        self.pull = rows.pull(self.residual)
        left = float(self.residual @ self.pull) + float(self.gradient @ self.gradient)
        # with no hinge free a step ends where the residual is 0, and so is what falls short: both are rounding then
        return steps > 0 and (left <= CLOSE * short or left <= self.reach * (_ROUNDING * float(self.alpha.sum())) ** 2)

    def advance(self, point: _Thresholds) -> _Thresholds:
        dv, dg, deta = self.rows.direction(self.residual, self.pull, self._system(point.eta))
        t = self._length(point, dv, dg, deta)
        self.steps += 1
        return _Thresholds(point.v + t * dv, point.g + t * dg, point.eta + t * deta, t)

    def _system(self, eta: Array) -> ThresholdSystem:
        p = self.problem
        rows = np.flatnonzero(self.free)
        part = self.alpha[:, rows]
        B = np.ascontiguousarray(((part > 0.0) & (part < p.U[:, rows])).T, dtype=np.float64)
        q = B.sum(axis=1)
        if not (some := q > 0.0).all():
            rows, B, q = rows[some], B[some], q[some]
        E = B / q[:, None]
        whole = p.M + np.diag(B.sum(axis=0)) / self.sigma
        H = whole - (B.T @ E) / self.sigma
        if len(self.centre):
            tied = np.flatnonzero(self._multipliers(eta) > 0.0)
            D = np.zeros((len(tied), p.m))
            D[np.arange(len(tied)), tied], D[np.arange(len(tied)), tied + 1] = 1.0, -1.0
            order = D.T @ D / self.ease
            whole, H = whole + order, H + order
        return ThresholdSystem(rows, q, B, E, self.sigma, H, whole, self.gradient)

    def _length(self, point: _Thresholds, dv: Array, dg: Array, deta: Array) -> float:
        """Return the step length, by the exact slope."""
        p, g, eta = self.problem, self.problem.seen(point.g), point.eta
        linear = self.rows.inner(point.v, dv, dg) + float(eta @ p.M @ deta)
        square = self.rows.inner(dv, dv, dg) + float(deta @ p.M @ deta)

        def line(t: float) -> tuple[float, float, None]:
            hinges = kernels.newton_threshold.slope(p.y, p.U, g, eta, self.A, self.sigma, dg, deta, self.centre, self.ease, t)
            slope = float(linear + t * square + hinges)
            return slope, slope, None

        first = line(0.0)[0]
        if not first < 0.0:
            return 0.0 if first == 0.0 else 1.0
        return line_search(line, first, TRIALS, _ACCEPT, between=_secant)[0]

    def ended(self, descent: NewtonRun) -> str:
        """Compare the values of a step that has not failed, or of the very first, with the best; return the status of a fit that ends."""
        self.rounds += 1
        if not descent.failed or self.rounds == 1:
            self.idle = 0 if self._evaluate(descent.point) else self.idle + 1
        return super().ended(descent)

    def _evaluate(self, point: _Thresholds) -> bool:
        """Compare the point, and the point spanned by its dual point, with the best; return whether a bound became better."""
        p, rows = self.problem, self.rows
        spanned = _point_of(p, rows, self.alpha)
        theta, value = _Thresholds(spanned.v, spanned.g, spanned.eta), spanned.primal
        eta = p.thresholds(point.g, self.alpha)
        primal = p.primal(rows.inner(point.v, point.v, point.g), point.g, eta)
        if primal < value:
            theta, value = _Thresholds(point.v, point.g, eta), primal
        if self.rounds == 1:
            self.best = BestSeen(theta, spanned.alpha, value, spanned.dual)
            return True
        return self.best.take(theta, value, spanned.alpha, spanned.dual)

    def recentre(self, descent: NewtonRun) -> _Thresholds | None:
        """Return the point with its own dual point as the centre, for a smaller sigma."""
        point = descent.point
        self.A, self.alpha = self.alpha, self.A
        if len(self.centre):
            self.centre = self._multipliers(point.eta)
        self.sigma *= self.rows.fall
        return point._replace(t=1.0) if self.idle < _IDLE else None

    def recover(self, descent: NewtonRun) -> _Thresholds | None:
        """Return the first point for a larger sigma; the very first step goes on from where it failed."""
        self.failures += 1
        self.sigma *= 5.0
        point = descent.point if self.rounds == 1 else descent.first
        return point._replace(t=1.0) if self.failures < _IDLE else None


def _secant(low: float, at_low: float, high: float, at_high: float) -> float:
    """Return what `proximal.by_share` does, by sums in another order: its last bits decide which hinges are free next."""
    t = low - at_low * (high - low) / (at_high - at_low)
    return min(max(t, low + 0.1 * (high - low)), high - 0.1 * (high - low))
