"""Binary problems over shared rows (`advcli.problems.binary`): coordinate ascent, and Newton steps where that stalls.

The compiled ascent (`_ext/ascent/ascent_binary.pyx`) solves one problem after the other. The ascent leaves some problems open, at large C
on data that do not separate. These are solved by the proximal point method with semismooth Newton steps of docs/notes/large-c.md in one
column. One proximal step from a*, in C form, minimises

    psi(v) = 1/2 |v|^2 + sum_i max over a in [0, c_i] of [a (m_i - s_i v.x_i) - rho/2 (a - a*_i)^2]

whose maximisers are a_i(v) = clip(a*_i + (m_i - s_i v.x_i)/rho, 0, c_i). Its gradient is v - v(a(v)), and its Hessian is I + 1/rho sum_F
x_i x_i' over the rows F with 0 < a_i(v) < c_i.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import dense
from ...core.compiled import compiled_rows, kernels
from ...core.linalg import cho_factor, cho_solve
from ...core.typing import Array
from ...features.base import KernelMap
from ...problems.binary import BinaryProblems, Signs
from ...problems.risk import Solution
from ..base import Limits
from ..best import BestSeen
from .proximal import CLOSE, MAX_FAILURES, TRIALS, NewtonRun, ProximalMethod, fall, line_search, minimise

_FEW_PASSES = 10.0  # passes of the ascent before Newton steps: best or second of 5, 10, 20, 40, 80 on five sets of 20,000 rows
_KERNEL_PASSES = 60.0  # the same with a kernel, where greedy steps stall later and Newton steps cost more
_STEPS = 5.0  # Newton steps whose time the ascent gets at least, about a third of the steps of an open problem
_CACHE = 2.0**24  # bytes of X above which rows are visited in blocks
_MOST_FREE = 6000  # size of the largest Newton system
_REFRESHED = 10  # Newton steps after which scores of a kernel are made anew, not from steps
_STATUS = ("converged", "max_passes", "max_seconds")  # by the codes of the compiled ascent


def solve_binary(problems: BinaryProblems, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
    """Return parameters and dual numbers (n, m) of all problems, each to the relative gap ``limits.tol``.

    Features are linear or a kernel whose matrix fits into memory; a start is of the same problems at another lambda. ``max_passes`` counts
    the passes over a problem's own rows, ``max_seconds`` the time of all; ``passes`` is the mean over the problems, ``status`` the worst.
    """
    began = time.perf_counter()
    problems.check_features()
    bound = problems.bounds
    A = _begin(problems, bound, start)
    columns: _Columns = _KernelProblems(problems) if isinstance(problems.features, KernelMap) else _LinearProblems(problems)
    V, results = columns.solve(A, bound, limits, seed, began)
    unit = _units(problems, A.shape[1])
    R = np.ascontiguousarray(np.divide(A, unit, out=np.zeros(A.shape), where=unit > 0.0).T)  # rows of sample weight 0 have none
    status, passes = _STATUS[int(results[:, 0].max(initial=0.0))], float(results[:, 1].mean()) if len(results) else 0.0
    memory, seconds = {"newton_steps": float(columns.steps)}, time.perf_counter() - began
    return Solution(np.ascontiguousarray(V.T), R, problems.lam, "binary", passes, seconds, status, memory)


def _units(problems: BinaryProblems, n: int) -> Array:
    """Return C p_i, the dual numbers of 1 in C form."""
    return np.full(n, problems.C) if problems.sample_weight is None else problems.C * problems.sample_weight


def _begin(problems: BinaryProblems, bound: Array, start: Solution | None) -> Array:
    """Return the dual numbers (m, n) to begin with, in C form: of a start each problem's a in the form of the larger dual value.

    The forms are C form and mean form (docs/notes/large-c.md, section 7).
    """
    if start is None or start.R is None or start.R.T.shape != bound.shape:
        return np.zeros(bound.shape)
    factor, kernel = problems.lam / start.lam, isinstance(problems.features, KernelMap)
    best, value = np.zeros(bound.shape), np.zeros(len(bound))
    margins = np.ones((1, 1)) if problems.margins is None else problems.margins
    unit = _units(problems, bound.shape[1])
    for R in (start.R, start.R * min(factor, 1.0)):
        A = np.minimum(R.T * unit, bound)
        theta = problems.features.adjoint(np.ascontiguousarray((A * problems.labels).T, dtype=np.float64))
        dual = (A * margins).sum(axis=1) - 0.5 * np.asarray((theta * (problems.scores(theta) if kernel else theta)).sum(axis=0))
        better = dual > value
        best[better], value[better] = A[better], dual[better]
    return np.ascontiguousarray(best)


class _Columns(ABC):
    """The problems in C form; a feature map says what products are."""

    def __init__(self, problems: BinaryProblems) -> None:
        self.steps = 0
        self.margin = np.empty((0, 0)) if problems.margins is None else np.ascontiguousarray(problems.margins)
        self.label = np.ascontiguousarray(problems.labels)

    def solve(self, A: Array, bound: Array, limits: Limits, seed: int, began: float) -> tuple[Array, Array]:
        """Improve A (m, n) in place; return parameters (m, d or n), and code, passes, primal and dual of every problem (m, 4)."""
        m = len(A)
        results = np.zeros((m, 4))

        def rest(passes: float) -> Limits:
            return replace(limits, max_passes=limits.max_passes - passes, max_seconds=limits.max_seconds - (time.perf_counter() - began))

        V = self.ascend(A, bound, replace(rest(0.0), turn=self.few_passes()), seed, np.arange(m), results)
        for q in np.flatnonzero(results[:, 0] == 1):
            if results[q, 1] + 1.0 > limits.max_passes:
                continue
            column, left = self.column(int(q), A, bound), rest(results[q, 1])
            status, best = column.solve(A[q], V[q], replace(left, max_passes=float(np.floor(left.max_passes)))), column.best
            self.steps += column.steps
            A[q, column.rows], V[q] = best.R, column.whole(best.theta)
            code = 1 if status == "stalled" else _STATUS.index(status)
            results[q] = code, results[q, 1] + column.steps, best.primal, best.dual
            if status == "stalled" and limits.max_passes - results[q, 1] >= 1.0:
                self._ascend_again(int(q), A, V, bound, rest(results[q, 1]), seed, results[q])
        return V, results

    def _ascend_again(self, q: int, A: Array, V: Array, bound: Array, limits: Limits, seed: int, result: Array) -> None:
        """Improve the problem that Newton steps have left by the ascent, in place."""
        one, a, again = np.array([q]), A[q : q + 1].copy(), np.zeros((1, 4))
        v = self.ascend(a, bound[one], limits, seed, one, again)
        code, passes, primal, dual = again[0]
        if primal <= result[2]:
            V[q] = v[0]
        if dual >= result[3]:
            A[q] = a[0]
        result[:] = code, result[1] + passes, min(primal, result[2]), max(dual, result[3])

    def margins(self, q: int, rows: NDArray[np.intp]) -> Array:
        """Return the margins of some rows of problem q."""
        return self.margin[q, rows] if len(self.margin) else np.ones(len(rows))

    @abstractmethod
    def few_passes(self) -> float:
        """Return the passes of the ascent that cost about as much as Newton steps to the end."""

    @abstractmethod
    def ascend(self, A: Array, bound: Array, limits: Limits, seed: int, which: NDArray[np.intp], results: Array) -> Array:
        """Run the compiled ascent on the chosen problems, whose rows A (len(which), n) are; return their parameters."""

    @abstractmethod
    def column(self, q: int, A: Array, bound: Array) -> _ColumnStep:
        """Return problem q for Newton steps."""


class _LinearProblems(_Columns):
    def __init__(self, problems: BinaryProblems) -> None:
        super().__init__(problems)
        self.X = problems.features.X
        self.rows = compiled_rows(self.X)
        self.square = np.ascontiguousarray(problems.features.squares)
        self.blocks = self.rows.values.nbytes > _CACHE

    def few_passes(self) -> float:
        filled = self.rows.values.size / self.rows.n
        visit = 4e-8 + 2.5e-10 * filled
        d = min(self.rows.d, _MOST_FREE)
        step = 1e-4 + (2.0 * self.rows.values.size + float(d) ** 3) / 3e9
        return max(_FEW_PASSES, _STEPS * step / (visit * self.rows.n))

    def ascend(self, A: Array, bound: Array, limits: Limits, seed: int, which: NDArray[np.intp], results: Array) -> Array:
        every = len(which) == len(self.label)
        label = self.label if every else self.label[which]
        margin = self.margin if every or not len(self.margin) else self.margin[which]
        V = np.ascontiguousarray(np.asarray(self.X.T @ (A * label).T).T) if A.any() else np.zeros((len(A), self.rows.d))
        kernels.ascent_binary.linear(
            *self.rows,
            *(self.square, label, bound, margin, A, V),
            *(limits.tol, limits.max_passes, limits.max_seconds),
            *(seed & 0xFFFFFFFFFFFFFFFF, self.blocks, results, limits.turn),
        )
        return V

    def column(self, q: int, A: Array, bound: Array) -> _ColumnStep:
        rows = np.flatnonzero(bound[q])
        X, unit = self.X if len(rows) == self.rows.n else self.X[rows], float(self.square[rows].mean())
        return _LinearColumn(self.label[q, rows], bound[q, rows], self.margins(q, rows), rows, unit, X)


class _KernelProblems(_Columns):
    def __init__(self, problems: BinaryProblems) -> None:
        super().__init__(problems)
        assert isinstance(problems.features, KernelMap)
        self.K, self.constant = problems.features.matrix, problems.constant

    def few_passes(self) -> float:
        return _KERNEL_PASSES

    def ascend(self, A: Array, bound: Array, limits: Limits, seed: int, which: NDArray[np.intp], results: Array) -> Array:
        label, margin = self.label[which], self.margin[which] if len(self.margin) else self.margin
        kernels.ascent_binary.kernel(
            *(self.K, self.constant, label, bound, margin, A),
            *(limits.tol, limits.max_passes, limits.max_seconds, results, limits.turn),
        )
        return A * label

    def column(self, q: int, A: Array, bound: Array) -> _ColumnStep:
        rows = np.flatnonzero(bound[q])
        K = self.K if len(rows) == len(self.K) else self.K[np.ix_(rows, rows)]
        unit = float(K.diagonal().mean()) + self.constant
        return _KernelColumn(self.label[q, rows], bound[q, rows], self.margins(q, rows), rows, unit, K, self.constant, len(self.K))


# ---- Newton -----------------------------------------------------------------------------------------------------------


class _ColumnPoint(NamedTuple):
    """Parameters and their scores; ``fresh`` scores are made from the parameters, others from steps."""

    v: Array
    u: Array
    fresh: bool = True


@dataclass(eq=False)
class _ColumnStep(ProximalMethod):
    """One problem in C form on its own rows; parameters v are weights, or coefficients over these rows.

    The stopping rules, the fall of rho and the recovery: docs/notes/large-c.md, sections 5 and 6.
    """

    label: Signs
    bound: Array
    margin: Array
    rows: NDArray[np.intp]
    unit: float  # the mean of |x_i|^2

    def within(self, v: Array) -> Array:
        """Return the whole problem's parameters, restricted to the own rows."""
        return v

    def whole(self, v: Array) -> Array:
        """Return parameters over the own rows, spread to the whole problem."""
        return v

    @abstractmethod
    def adjoint(self, q: Array) -> Array:
        """Return the parameters of sum_i q_i x_i."""

    @abstractmethod
    def scores(self, v: Array) -> Array:
        """Return v.x_i of the rows."""

    def pulled(self, residual: Array) -> Any:
        """Return the scores of the residual, where inner products need them."""
        return 0.0

    def inner(self, v: Array, w: Array, scores: Array) -> float:
        """Return <v, w>, w with its scores."""
        return float(v @ w)

    def size(self, free: NDArray[np.intp]) -> int:
        """Return the size of the Newton system of free rows."""
        return len(free)

    @abstractmethod
    def direction(self, free: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return D with (I + 1/rho sum over free of x x') D = -residual, and its scores."""

    def moved(self, v: Array, u: Array) -> _ColumnPoint:
        """Return the point at parameters v whose scores are u up to the rounding of steps."""
        return _ColumnPoint(v, self.scores(v))

    # ---- what `proximal` asks -----------------------------------------------------------------------------------------
    def solve(self, a: Array, v: Array, limits: Limits) -> str:
        """Begin from the whole problem's dual numbers a and parameters v; return what stopped it."""
        self.tol, self.limits, self.started = limits.tol, limits, time.perf_counter()
        self.rho, self.least = 1e-3 * self.unit, 1e-13 * self.unit
        self.steps, self.failures, self.too_large = 0, 0, False
        self.center, v = a[self.rows].copy(), self.within(v)
        self.best = BestSeen(v, self.center)
        self.before = np.inf, np.inf
        return minimise(self, _ColumnPoint(v, self.scores(v)))

    def judge(self, point: _ColumnPoint, steps: int) -> bool:
        """Compare the point's values with the best; return whether the gap is closed, or only a new centre brings it nearer."""
        slack = self.margin - self.label * point.u
        self.a = a = np.clip(self.center + slack / self.rho, 0.0, self.bound)
        self.residual = point.v - self.adjoint(self.label * a)
        hinges = float(self.bound @ np.maximum(slack, 0.0))
        v, r = point.v, self.residual
        self.pull = self.pulled(r)
        primal = 0.5 * self.inner(v, v, point.u) + hinges
        dual = float(a @ self.margin) - 0.5 * self.inner(v - r, v - r, point.u - self.pull)
        self.best.take(v, primal, a, dual)
        # P - D = half of the squared residual, left to Newton steps, + the gaps of the rows
        return self.best.reached(self.tol) or 0.5 * self.inner(r, r, self.pull) <= CLOSE * (hinges - float(a @ slack))

    def limit(self) -> str:
        return self.limits.spent(self.steps + 1, self.started)

    def ended(self, descent: NewtonRun) -> str:
        """Return the status of a fit that ends here; it has stalled where its next system is too large."""
        return super().ended(descent) or ("stalled" if self.too_large else "")

    def advance(self, point: _ColumnPoint) -> _ColumnPoint | None:
        """Return the point where the slope of psi along the Newton direction has halved."""
        free = np.flatnonzero((self.a > 0.0) & (self.a < self.bound))
        if self.size(free) > _MOST_FREE:
            self.too_large = True
            return None
        D, change = self.direction(free)
        along, square, signed = self.inner(point.v, D, change), self.inner(D, D, change), self.label * change
        base, move = self.center + (self.margin - self.label * point.u) / self.rho, signed / self.rho

        def line(t: float) -> tuple[float, float, None]:
            slope = along + t * square - float(np.clip(base - t * move, 0.0, self.bound) @ signed)
            return slope, slope, None

        t = line_search(line, line(0.0)[0], TRIALS)[0]
        self.steps += 1
        return self.moved(point.v + t * D, point.u + t * change)

    def recentre(self, descent: NewtonRun) -> _ColumnPoint | None:
        """Return the point with its own dual numbers as the center and a smaller rho."""
        self.center = self.a
        self.rho *= fall(descent.steps)
        gap = self.best.primal - self.best.dual
        if descent.steps == 0 and self.rho <= self.least and not gap < self.before[1] - 1e-9 * self.best.primal:
            self.failures += 1  # v rests, and the smallest rho does not move a: at features whose squares leave no digits to 1
        self.rho = max(self.rho, self.least)
        point = descent.point
        return self._next(point if point.fresh else _ColumnPoint(point.v, self.scores(point.v)))

    def recover(self, descent: NewtonRun) -> _ColumnPoint | None:
        """Return the point for a larger rho, the first one unless a better one was seen since."""
        self.failures += 1
        self.rho *= 5.0
        return self._next(descent.point if self.best.primal < self.before[0] else descent.first)

    def _next(self, point: _ColumnPoint) -> _ColumnPoint | None:
        self.before = self.best.primal, self.best.primal - self.best.dual
        return point if self.failures < MAX_FAILURES else None


@dataclass(eq=False)
class _LinearColumn(_ColumnStep):
    X: Any

    def adjoint(self, q: Array) -> Array:
        return np.asarray(self.X.T @ q)

    def scores(self, v: Array) -> Array:
        return np.asarray(self.X @ v)

    def size(self, free: NDArray[np.intp]) -> int:
        return min(len(free), len(self.residual))

    def direction(self, free: NDArray[np.intp]) -> tuple[Array, Array]:
        residual, rho = self.residual, self.rho
        D = -residual
        if len(free):
            Z = self.X[free]
            if len(free) < len(residual):
                gram = dense(Z @ Z.T)
                gram[np.diag_indices_from(gram)] += rho
                factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
                D = D + Z.T @ cho_solve(factor, self.scores(residual)[free], check_finite=False)
                # (I + Z'Z/rho) D = -residual once more: the terms cancel where 1/rho is large
                left = -residual - D - Z.T @ (Z @ D) / rho
                D = D + left - Z.T @ cho_solve(factor, Z @ left, check_finite=False)
            else:
                H = dense(Z.T @ Z) / rho
                H[np.diag_indices_from(H)] += 1.0
                D = cho_solve(cho_factor(H, lower=True, overwrite_a=True, check_finite=False), D, check_finite=False)
        return D, self.scores(D)


@dataclass(eq=False)
class _KernelColumn(_ColumnStep):
    K: Array
    constant: float
    n: int

    def within(self, v: Array) -> Array:
        return v[self.rows]

    def whole(self, v: Array) -> Array:
        spread = np.zeros(self.n)
        spread[self.rows] = v
        return spread

    def adjoint(self, q: Array) -> Array:
        return q

    def scores(self, v: Array) -> Array:
        support = np.flatnonzero(v)
        if len(support) < 0.5 * len(v):
            return np.asarray(v[support] @ self.K[support]) + self.constant * v.sum()
        return np.asarray(self.K @ v) + self.constant * v.sum()

    def inner(self, v: Array, w: Array, scores: Array) -> float:
        return float(v @ scores)

    def pulled(self, residual: Array) -> Any:
        return self.scores(residual)

    def judge(self, point: _ColumnPoint, steps: int) -> bool:
        solved = super().judge(point, steps)
        if self.best.reached(self.tol) and not point.fresh:
            # the scores are sums of steps: the final values take scores made anew
            self.best = BestSeen(self.best.theta, self.best.R)
            point.u[:] = self.scores(point.v)
            solved = super().judge(point, steps)
        return solved

    def moved(self, v: Array, u: Array) -> _ColumnPoint:
        return _ColumnPoint(v, self.scores(v)) if self.steps % _REFRESHED == 0 else _ColumnPoint(v, u, False)

    def direction(self, free: NDArray[np.intp]) -> tuple[Array, Array]:
        D, scores = -self.residual, -self.pull
        if len(free):
            rows = self.K[free]
            gram = rows[:, free] + self.constant
            gram[np.diag_indices_from(gram)] += self.rho
            z = cho_solve(cho_factor(gram, lower=True, overwrite_a=True, check_finite=False), self.pull[free], check_finite=False)
            D[free] += z
            scores = scores + z @ rows + self.constant * z.sum()
        return D, scores
