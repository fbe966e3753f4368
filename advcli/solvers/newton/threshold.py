"""Solver of threshold models: over a kernel first ascent by pairs of dual variables; then, and over explicit features, Newton's method.

Pairs (`_ext/ascent/ascent_pairs.pyx`) bring most kernel fits to the tolerance in less time than a few Newton systems take. A fit that pairs
leave open, at large C, is solved by the proximal point method with semismooth Newton steps.

One proximal step on the dual point alpha of `threshold_problem` minimises, in w and eta,

    1/2 |w|^2 + 1/2 eta'M eta + sum_ij max over alpha in [0, U_ij] of [alpha z_ij - sigma/2 (alpha - A_ij)^2],   z = 1 - s (g_i - eta_j)

from the centre A; the answer is the next centre and sigma falls (docs/notes/large-c.md). Only hinges whose alpha lies strictly between its
ends, free ones, have curvature. Let row i have q_i of them, B (rows, m) mark them and E = B/q. Eliminating alpha, a Newton step solves

    (K_RR + sigma/q) dbeta - E deta = -pull_R,      E' dbeta + (M + (diag(1'B) - B'E)/sigma) deta = -gradient in eta

over the rows R with free hinges alone (`kernel_systems` keeps a factor where R hardly changes from step to step), or the normal
equations in (w, eta) where there are fewer columns than such rows. From w = 0 most rows lie on a kink, so the first point is the solution
of every fourth row (recursively), with C four times as large.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dposv, dpotrf, dpotrs

from ...core.compiled import kernels
from ...core.typing import Array, Labels
from ...problems.threshold import ThresholdProblem
from .systems import KernelSystems

_PAIRED = {"each": 0, "ordered": 1, "sum": 2}  # couplings that the ascent by pairs keeps, and how it knows them
_PAIRS = 40  # pairs moved at most, in units of the rows
_HOPELESS = ((10, 0.9), (20, 0.5))  # pairs after which a gap this large sends the problem to Newton's method, in the same units
_SLICE = 1  # pairs after which the variables inside their ends are compared with those before, in the same units
_SETTLED = 0.02  # share of the variables inside that may have changed since, where a system for their best values pays
_FACES = 4  # systems after which pairs have the turn again
_LARGEST_FACE = 1000  # variables inside up to which a system is solved
_RIGID = 1e-10  # proximal weight of that system in units of the mean of the diagonal of K
_NEAR = 0.2  # gap up to which Newton's method begins where the ascent ended
_CLOSER = 0.9  # of the tolerance at which the ascent stops: its own gap is summed from updates
_FALL = 0.3  # of sigma after a proximal step
_SLOW_FALL = 0.55  # the same over a kernel matrix: more proximal steps of fewer Newton steps, which are what costs there
_WIDTH = 2.0  # of the first smoothing, in units of the margin
_THINNED = 200.0  # C |x|^2 up to which the solution of a part of the rows is near that of all
_INNER = 30  # Newton steps after which a proximal step has failed
_IDLE = 12  # proximal steps without a better bound after which rounding has won
_LEAST = 150  # rows from which a problem begins with a part of them
_THIN = 4  # every how many rows that part holds
_AFTER = 0.1  # width of the first smoothing after a part of the rows, over that from nothing
_WARM = 0.03  # width of the first smoothing from a start, over that without
_ACCEPT = 0.1  # share of the first slope at which a line search ends
_ROUNDING = float(np.finfo(np.float64).eps)  # of the sum of all dual variables: what a residual is made of, and cannot tell from 0
_SETTLES = 0.1  # step length up to which thresholds are not settled next
_EASE = 1e-3  # proximal weight of the order's multipliers, in units of sigma over the rows


Solver = Callable[[Labels, Array, Array], Array]


class ScoredRows(ABC):
    """What the solver needs of the rows: coordinates v of w, and scores.

    Attributes
    ----------
    n : int
        Number of rows.
    fall : float
        By which sigma is multiplied after a proximal step.
    """

    n: int
    fall: float = _FALL

    @property
    @abstractmethod
    def square(self) -> float:
        """Mean of |x_i|^2."""

    @abstractmethod
    def spanned(self, beta: Array) -> Array:
        """Return the coordinates of sum_i beta_i x_i."""

    @abstractmethod
    def scores(self, v: Array) -> Array:
        """Return g (n,)."""

    @abstractmethod
    def inner(self, v: Array, other: Array, scores: Array) -> float:
        """Return <v, other>; ``scores`` are those of ``other``."""

    @abstractmethod
    def thinned(self, step: int) -> ScoredRows:
        """Return every so many of the rows."""

    @abstractmethod
    def lifted(self, v: Array, step: int) -> Array:
        """Return the coordinates, over all rows, of a w that was found over the thinned ones."""

    @abstractmethod
    def block(self, rows: Labels) -> Array:
        """Return the inner products among some rows."""

    @abstractmethod
    def direction(self, residual: Array, pull: Array, system: ThresholdSystem) -> tuple[Array, Array, Array]:
        """Return dv, its scores and deta of a Newton step for the residual w(alpha) - w; over a kernel ``pull`` are the scores of that."""

    def solved(self, rows: Labels, diagonal: Array, right: Array) -> Array:
        """Return (G + diagonal)^-1 right for the inner products G among some rows, by a new factor."""
        G = self.block(rows)
        G[np.diag_indices_from(G)] += diagonal
        factor, info = dpotrf(G.T, lower=0, overwrite_a=1, clean=0)
        if info:
            raise LinAlgError("the system of the free rows has no factor")
        return np.asarray(dpotrs(factor, right, lower=0)[0])

    def _by_rows(self, pull: Array, system: ThresholdSystem, solved: Solver | None = None) -> tuple[Array, Array]:
        """Return dbeta over the rows with free hinges and deta; ``pull`` are the scores of the residual, ``solved`` solves the system."""
        at, E, H = system.rows, system.E, system.H
        if not len(at):
            return np.zeros(0), _solved(H, system.gradient)
        found = (solved or self.solved)(at, system.sigma / system.q, np.column_stack([E, pull[at]]))
        deta = _solved(H + E.T @ found[:, :-1], system.gradient + E.T @ found[:, -1])
        return found[:, :-1] @ deta - found[:, -1], deta


@dataclass
class ThresholdSystem:
    """The rows with free hinges, and what a Newton system needs of them."""

    rows: Labels
    q: Array  # free hinges of each of these rows
    B: Array  # (rows, m) ones at free hinges
    E: Array  # B / q
    sigma: float
    H: Array  # (m, m) curvature in eta that the rows' part does not hold
    whole: Array  # (m, m) all curvature in eta
    gradient: Array  # minus the gradient in eta


def _solved(H: Array, right: Array) -> Array:
    """Return H^-1 right for a positive semi-definite H; directions without curvature do not move."""
    if H.shape == (1, 1):
        return right / H[0, 0] if H[0, 0] > 0.0 else np.zeros(1)
    values, vectors = np.linalg.eigh(H)
    inverse = np.where(values > 1e-13 * max(float(values[-1]), 1e-300), 1.0 / np.maximum(values, 1e-300), 0.0)
    return np.asarray(vectors @ (inverse * (vectors.T @ right)))


class KernelRows(ScoredRows):
    """Rows behind a kernel matrix; coordinates are coefficients over them."""

    fall = _SLOW_FALL

    def __init__(self, K: Array) -> None:
        self.K, self.n = K, len(K)
        self.systems = KernelSystems(K)

    @property
    def square(self) -> float:
        """Mean of the diagonal."""
        return float(self.K.diagonal().mean())

    def spanned(self, beta: Array) -> Array:
        """Return beta itself."""
        return beta

    def scores(self, v: Array) -> Array:
        """Return K v."""
        some = np.flatnonzero(v)
        return self.K @ v if 3 * len(some) > len(v) else v[some] @ self.K[some]

    def inner(self, v: Array, other: Array, scores: Array) -> float:
        """Return v'K other."""
        return float(v @ scores)

    def thinned(self, step: int) -> ScoredRows:
        """Return the rows of a part of K."""
        return KernelRows(np.ascontiguousarray(self.K[::step, ::step]))

    def lifted(self, v: Array, step: int) -> Array:
        """Return coefficients that are 0 at the rows left out."""
        found = np.zeros(self.n)
        found[::step] = v
        return found

    def block(self, rows: Labels) -> Array:
        """Return K among rows."""
        return self.K[np.ix_(rows, rows)]

    def direction(self, residual: Array, pull: Array, system: ThresholdSystem) -> tuple[Array, Array, Array]:
        """Return the step by the rows' system."""
        dbeta, deta = self._by_rows(pull, system, self.systems.solve)
        moved = np.zeros(self.n)
        moved[system.rows] = dbeta
        return residual + moved, pull + self.scores(moved), deta


class ExplicitRows(ScoredRows):
    """Rows of features; coordinates are w itself."""

    def __init__(self, X: Any) -> None:
        self.X, self.n = X, X.shape[0]

    @property
    def square(self) -> float:
        """Mean squared length of the rows."""
        return float((self.X.multiply(self.X) if hasattr(self.X, "multiply") else np.square(self.X)).sum()) / self.n

    def spanned(self, beta: Array) -> Array:
        """Return X'beta."""
        return np.asarray(self.X.T @ beta)

    def scores(self, v: Array) -> Array:
        """Return X w."""
        return np.asarray(self.X @ v)

    def inner(self, v: Array, other: Array, scores: Array) -> float:
        """Return w.other."""
        return float(v @ other)

    def thinned(self, step: int) -> ScoredRows:
        """Return every so many rows."""
        return ExplicitRows(self.X[::step])

    def lifted(self, v: Array, step: int) -> Array:
        """Return w."""
        return v

    def block(self, rows: Labels) -> Array:
        """Return X_R X_R'."""
        part = self.X[rows]
        found = part @ part.T
        return np.asarray(found.toarray() if hasattr(found, "toarray") else found)

    def direction(self, residual: Array, pull: Array, system: ThresholdSystem) -> tuple[Array, Array, Array]:
        """Return the step by the smaller of the two systems."""
        d = len(residual)
        if d <= len(system.rows):
            dv, deta = self._by_columns(residual, system)
        else:
            dbeta, deta = self._by_rows(self.scores(residual), system)
            dv = residual + np.asarray(self.X[system.rows].T @ dbeta)
        return dv, self.scores(dv), deta

    def _by_columns(self, residual: Array, system: ThresholdSystem) -> tuple[Array, Array]:
        part, d, m = self.X[system.rows], len(residual), len(system.gradient)
        sparse = hasattr(part, "tocsr")
        weighed = part.multiply(system.q[:, None]).tocsr() if sparse else part * system.q[:, None]
        square = part.T @ weighed
        H = np.empty((d + m, d + m))
        H[:d, :d] = (square.toarray() if sparse else square) / system.sigma
        H[:d, d:] = -np.asarray(part.T @ system.B) / system.sigma
        H[d:, :d] = H[:d, d:].T
        H[d:, d:] = system.whole
        H[np.arange(d), np.arange(d)] += 1.0
        # a threshold that no free hinge sees has no curvature, and need not move
        H[np.arange(d, d + m), np.arange(d, d + m)] += 1e-12 * max(1.0, float(system.whole.diagonal().max()))
        _, found, info = dposv(H, np.concatenate([residual, system.gradient]), overwrite_a=1)
        if info:
            raise LinAlgError("the system of the columns has no factor")
        return found[:d], found[d:]


@dataclass
class ThresholdPoint:
    """The answer of a solver: the best primal and dual points seen, their values, and the work that they took.

    Attributes
    ----------
    v, eta, g : ndarray
        Coordinates of w, thresholds and scores of the best primal point.
    alpha : ndarray (m, n)
        The best dual point, feasible.
    primal, dual : float
        Their values in the scaling of (1).
    steps, sigma : int, float
        Newton steps, n pairs that moved counting as one; and the last proximal weight in units of the largest dual variable.
    status : str
        "converged", "max_passes" or "stalled".
    solver : str
        "newton", or "pairs" where these were enough.
    C : float
        Of the problem whose solution it is; nan for a point on the way.
    """

    v: Array
    eta: Array
    g: Array
    alpha: Array
    primal: float
    dual: float
    steps: int
    sigma: float
    status: str
    solver: str = "newton"
    C: float = float("nan")

    @property
    def gap(self) -> float:
        """The relative gap."""
        return (self.primal - self.dual) / self.primal if self.primal > 0 else 0.0

    def take(self, other: ThresholdPoint) -> bool:
        """Take over the primal and the dual point of another where they are better; tell whether one was."""
        better = other.primal < self.primal or other.dual > self.dual
        if other.primal < self.primal:
            self.v, self.g, self.eta, self.primal = other.v, other.g, other.eta, other.primal
        if other.dual > self.dual:
            self.alpha, self.dual = other.alpha, other.dual
        return better


def minimise(
    problem: ThresholdProblem, rows: ScoredRows, tol: float, max_steps: float = 1000, start: ThresholdPoint | None = None
) -> ThresholdPoint:
    """Minimise (1) to a relative gap of ``tol``.

    Parameters
    ----------
    problem : ThresholdProblem
    rows : ScoredRows
    tol : float
    max_steps : float
        Newton steps on all rows, and n pairs that move as one, after which the best point is returned as it is.
    start : ThresholdPoint, optional
        Where to begin: a point of the same rows at another C.
    """
    paired, max_steps = None, float(np.floor(max_steps))
    if isinstance(rows, KernelRows) and problem.coupling in _PAIRED:
        paired = _by_pairs(problem, rows, tol, max_steps, start)
        if paired.gap <= tol:
            return replace(paired, status="converged", C=problem.C)
        start = paired if paired.gap <= _NEAR else start
        max_steps -= paired.steps
    strength = problem.C * rows.square
    width = _WIDTH
    if start is not None:
        width *= _WARM
    elif rows.n >= _LEAST and strength <= _THINNED:
        start = _from_part(problem, rows, width)
        width *= _AFTER
    found = _ThresholdNewton(problem, rows, start, width).run(tol, max_steps)
    if paired is not None:
        found.take(paired)
        found.steps += paired.steps
    found.C = problem.C
    return found


def _by_pairs(problem: ThresholdProblem, rows: KernelRows, tol: float, max_steps: float, start: ThresholdPoint | None) -> ThresholdPoint:
    """Return the point of the ascent by pairs: at the tolerance, or after as many pairs as cost about what Newton's method does."""
    alpha = np.zeros((problem.m, rows.n)) if start is None else problem.feasible(start.alpha)
    g = np.zeros(rows.n) if start is None else rows.scores(problem.spanned(alpha))
    offset = np.empty(0) if problem.offset is None else problem.offset
    given = problem.y, problem.U, rows.K, offset, _PAIRED[problem.coupling], alpha, g, _CLOSER * tol
    left, steps, solved = int(min(_PAIRS, max_steps) * rows.n), 0, 0
    inside = np.zeros(alpha.shape, dtype=bool)
    while True:
        most = min(left - steps - solved * rows.n, _SLICE * rows.n)
        moved, gap = kernels.ascent_pairs.ascend(*given, most)
        steps += moved
        hopeless = any(gap >= large and steps >= pairs * rows.n for pairs, large in _HOPELESS)
        # pairs among a part of the rows count as a share of one, and may add up to none
        if gap <= _CLOSER * tol or moved < max(most - 1, 1) or steps + solved * rows.n >= left or hopeless:
            break
        before, inside = inside, (alpha > 0.0) & (alpha < problem.U)
        count = int(inside.sum())
        if 0 < count <= _LARGEST_FACE and left - steps >= (solved + 1) * rows.n and np.count_nonzero(inside != before) <= _SETTLED * count:
            solved += to_face_optimum(problem, rows, alpha, g, (left - steps) // rows.n - solved)
    found = _point_of(problem, rows, alpha)
    return replace(found, steps=-(-steps // rows.n) + solved, status="max_passes", solver="pairs")


def to_face_optimum(problem: ThresholdProblem, rows: KernelRows, alpha: Array, g: Array, most: int) -> int:
    """Move dual variables inside their ends towards their best values, others and constraints held; return how many systems it takes.

    They are at most ``most``.

    One variable a row moves, the first inside: of two the slopes rarely agree. One that reaches an end stays there, and the next system
    does without it. In place on alpha (m, n) and its scores g (n,). With x the changes of beta in the rows R, E (R, m) ones at their
    thresholds and h their slopes, the optimum has

        (K_RR + sigma) x - E deta = h,      E'x + M deta = 0,

    the system of a Newton step (`ScoredRows._by_rows`), here with a sigma that is rounding beside K.
    """
    single = problem.coupling == "sum"
    systems = min(_FACES, most)
    for solved in range(1, systems + 1):
        inside = (alpha > 0.0) & (alpha < problem.U)
        at = np.flatnonzero(inside.any(axis=0))
        if not len(at):
            return solved
        j = inside[:, at].argmax(axis=0)
        signs, E, q = problem.signs[j, at], np.eye(problem.m)[j], np.ones(len(at))
        theta = -problem.totals(alpha) if single else np.zeros(problem.m)
        pull = np.zeros(rows.n)
        pull[at] = problem.seen(g)[at] - signs - theta[j]
        system = ThresholdSystem(at, q, E, E, _RIGID * rows.square, problem.M, problem.M, np.zeros(problem.m))
        try:
            x, _ = rows._by_rows(pull, system)
        except LinAlgError:
            return solved
        # a nearly singular K leaves few digits of the constraints
        x -= x.mean() if single else E @ (E.T @ x / np.maximum(E.sum(axis=0), 1.0))
        a, limit, change = alpha[j, at], problem.U[j, at], signs * x
        room = np.where(change > 0.0, limit - a, a)
        length = np.divide(room, np.abs(change), out=np.full(len(at), np.inf), where=change != 0.0)
        t = min(1.0, float(length.min()))
        alpha[j, at] = np.where(length <= t, np.where(change > 0.0, limit, 0.0), np.clip(a + t * change, 0.0, limit))
        moved = np.zeros(rows.n)
        moved[at] = t * x
        g += rows.scores(moved)
        if t == 1.0:
            return solved
    return systems


def _point_of(problem: ThresholdProblem, rows: ScoredRows, alpha: Array) -> ThresholdPoint:
    """Return the feasible dual point near alpha (m, n) and the primal point that it spans, from scratch."""
    alpha = problem.feasible(alpha)
    v = rows.spanned(problem.spanned(alpha))
    g = rows.scores(v)
    square = rows.inner(v, v, g)
    dual = problem.dual(alpha, square)
    eta = problem.thresholds(g, alpha)
    return ThresholdPoint(v, eta, g, alpha, problem.primal(square, g, eta), dual, 0, 1.0, "")


def moved(problem: ThresholdProblem, rows: ScoredRows, start: ThresholdPoint | None) -> ThresholdPoint | None:
    """Return a point of the same rows at this or another C as a start; None where it does not fit."""
    if start is None or start.alpha.shape != (problem.m, rows.n):
        return None
    z = 1.0 - problem.signs * (problem.seen(start.g) - start.eta[:, None])
    if start.C == problem.C:
        return replace(start, steps=0, status="", alpha=start.alpha.copy())
    alpha = np.where(np.abs(z) < 1e-6, np.minimum(start.alpha, problem.U), problem.U * (z > 0.0))
    return ThresholdPoint(start.v, start.eta.copy(), start.g, alpha, start.primal, start.dual, 0, start.sigma, "")


def _from_part(problem: ThresholdProblem, rows: ScoredRows, width: float) -> ThresholdPoint | None:
    """Return the solution of every fourth row, with the scores of all; None where a class would be missing."""
    y = problem.y[::_THIN]
    weight = problem.weight[::_THIN]
    if not weight.any():
        return None
    C = problem.C * problem.mass / float(weight.sum())
    offset = None if problem.offset is None else np.ascontiguousarray(problem.offset[::_THIN])
    part = replace(problem, y=np.ascontiguousarray(y), weight=np.ascontiguousarray(weight), C=C, offset=offset)
    found = minimise(part, rows.thinned(_THIN), 3e-2, 100)
    v = rows.lifted(found.v, _THIN)
    g = rows.scores(v)
    z = 1.0 - problem.signs * (problem.seen(g) - found.eta[:, None])
    alpha = problem.U * np.clip(0.5 + z / width, 0.0, 1.0)
    return replace(found, v=v, g=g, alpha=alpha)


class _ThresholdNewton:
    def __init__(self, problem: ThresholdProblem, rows: ScoredRows, start: ThresholdPoint | None, width: float) -> None:
        self.problem, self.rows = problem, rows
        m, n = problem.m, rows.n
        self.largest = float(problem.U.max())
        self.reach = n * (1.0 + rows.square)  # square of what a rounded sum over the rows grows by
        self.sigma = width / self.largest
        self.A = np.zeros((m, n))
        self.g = np.zeros(n)
        self.v = rows.spanned(np.zeros(n))
        self.eta = problem.thresholds(self.g, self.A)
        if start is not None:
            self.A, self.v, self.g, self.eta = start.alpha, start.v, start.g, start.eta
        self.centre = np.zeros(m - 1 if problem.coupling == "ordered" else 0)
        self.alpha, self.beta, self.total = np.empty((m, n)), np.empty(n), np.empty(m)
        self.free = np.empty(n, dtype=np.int32)
        self.steps = 0
        self.best: ThresholdPoint | None = None

    @property
    def ease(self) -> float:
        """Proximal weight of the order's multipliers."""
        return _EASE * self.sigma / self.rows.n

    def run(self, tol: float, max_steps: float) -> ThresholdPoint:
        status, idle, failures = "stalled", 0, 0
        while idle < _IDLE and failures < _IDLE:
            kept = self.v, self.g, self.eta
            try:
                solved = self._proximal_step(max_steps)
            except LinAlgError:
                solved = False
            if solved or self.best is None:
                idle = 0 if self._evaluate() else idle + 1
            else:
                self.v, self.g, self.eta = kept
            if self.best is not None and self.best.gap <= tol:
                status = "converged"
                break
            if self.steps >= max_steps:
                status = "max_passes"
                break
            if not solved:
                failures += 1
                self.sigma *= 5.0
                continue
            self.A, self.alpha = self.alpha, self.A
            if len(self.centre):
                self.centre = self._multipliers()
            self.sigma *= self.rows.fall
        assert self.best is not None
        self.best.steps, self.best.sigma, self.best.status = self.steps, self.sigma * self.largest, status
        return self.best

    def _multipliers(self) -> Array:
        return np.maximum(self.centre - np.diff(self.eta) / self.ease, 0.0)

    def _proximal_step(self, max_steps: float) -> bool:
        """Take Newton steps until the residual is small beside the gap that only a new centre closes; return whether it became so small."""
        p, rows, step = self.problem, self.rows, kernels.newton_threshold
        given = p.y, p.U
        t = 1.0
        for inner in range(_INNER + 1):
            # a settled threshold lies at a kink, where a Newton step may see one side alone and be cut to nothing, again and again
            if t > _SETTLES:
                step.settle(*given, p.seen(self.g), self.eta, self.A, self.sigma, p.M, self.centre, self.ease)
            short = step.step(*given, p.seen(self.g), self.eta, self.A, self.sigma, self.alpha, self.beta, self.total, self.free)
            residual = rows.spanned(self.beta) - self.v
            gradient = -(p.M @ self.eta + self.total)
            if len(self.centre):
                mu = self._multipliers()
                gradient -= np.append(mu, 0.0) - np.append(0.0, mu)
            pull = rows.scores(residual) if isinstance(rows, KernelRows) else residual
            if inner:
                left = float(residual @ pull) + float(gradient @ gradient)
                # with no hinge free a step ends where the residual is 0, and so is what falls short: both are rounding then
                if left <= 0.3 * short or left <= self.reach * (_ROUNDING * float(self.alpha.sum())) ** 2:
                    return True
            if inner == _INNER or self.steps >= max_steps:
                return inner < _INNER
            dv, dg, deta = rows.direction(residual, pull, self._system(gradient))
            t = self._length(dv, dg, deta)
            self.v, self.g, self.eta = self.v + t * dv, self.g + t * dg, self.eta + t * deta
            self.steps += 1
        return False

    def _system(self, gradient: Array) -> ThresholdSystem:
        p = self.problem
        at = np.flatnonzero(self.free)
        part = self.alpha[:, at]
        B = np.ascontiguousarray(((part > 0.0) & (part < p.U[:, at])).T, dtype=np.float64)
        q = B.sum(axis=1)
        some = q > 0.0
        if not some.all():
            at, B, q = at[some], B[some], q[some]
        E = B / q[:, None]
        whole = p.M + np.diag(B.sum(axis=0)) / self.sigma
        H = whole - (B.T @ E) / self.sigma
        if len(self.centre):
            tied = np.flatnonzero(self._multipliers() > 0.0)
            D = np.zeros((len(tied), p.m))
            D[np.arange(len(tied)), tied], D[np.arange(len(tied)), tied + 1] = 1.0, -1.0
            order = D.T @ D / self.ease
            whole, H = whole + order, H + order
        return ThresholdSystem(at, q, B, E, self.sigma, H, whole, gradient)

    def _length(self, dv: Array, dg: Array, deta: Array) -> float:
        """Return the step length: regula falsi on the exact slope."""
        p = self.problem
        linear = self.rows.inner(self.v, dv, dg) + float(self.eta @ p.M @ deta)
        square = self.rows.inner(dv, dv, dg) + float(deta @ p.M @ deta)

        g = p.seen(self.g)

        def slope(t: float) -> float:
            hinges = kernels.newton_threshold.slope(p.y, p.U, g, self.eta, self.A, self.sigma, dg, deta, self.centre, self.ease, t)
            return float(linear + t * square + hinges)

        first = slope(0.0)
        if not first < 0.0:
            return 0.0 if first == 0.0 else 1.0
        low, at_low, high, at_high, t = 0.0, first, 0.0, 0.0, 1.0
        for _ in range(30):
            value = slope(t)
            if abs(value) <= -_ACCEPT * first:
                break
            if value < 0.0:
                low, at_low = t, value
            else:
                high, at_high = t, value
            if high == 0.0:
                t *= 2.0
            else:
                t = low - at_low * (high - low) / (at_high - at_low)
                t = min(max(t, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        return t

    def _evaluate(self) -> bool:
        """Compare the point with the best ones seen; tell whether a bound became better."""
        p, rows = self.problem, self.rows
        found = _point_of(p, rows, self.alpha)
        own = p.thresholds(self.g, self.alpha)
        mine = p.primal(rows.inner(self.v, self.v, self.g), self.g, own)
        if mine < found.primal:
            found.v, found.g, found.eta, found.primal = self.v, self.g, own, mine
        if self.best is None:
            self.best = found
            return True
        return self.best.take(found)
