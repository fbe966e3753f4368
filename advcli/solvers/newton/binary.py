"""Binary problems over shared rows (`advcli.problems.binary`): coordinate ascent, and Newton steps where that stalls.

The compiled ascent (`_ext/ascent/ascent_binary.pyx`) solves one problem after the other. A problem that the ascent leaves open, at large C
on data that do not separate, is solved by the proximal point method with semismooth Newton steps of docs/notes/large-c.md in one column.
One proximal step from a*, in C form, minimises

    psi(v) = 1/2 |v|^2 + sum_i max over a in [0, c_i] of [a (m_i - s_i v.x_i) - rho/2 (a - a*_i)^2]

whose maximisers are a_i(v) = clip(a*_i + (m_i - s_i v.x_i)/rho, 0, c_i), whose gradient is v - v(a(v)), and whose Hessian is
I + 1/rho sum_F x_i x_i' over the rows F with 0 < a_i(v) < c_i.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ...core.compiled import compiled_rows, kernels
from ...core.errors import IncompatibleError
from ...core.typing import Array
from ...features.base import KernelMap
from ...problems.binary import BinaryProblems, Signs
from ...problems.risk import Solution
from ..base import Limits

_FEW_PASSES = 10.0  # passes of the ascent before Newton steps; best or second of 5, 10, 20, 40, 80 on five sets of 20,000 rows
_KERNEL_PASSES = 60.0  # the same with a kernel, where greedy steps stall later and Newton steps cost more
_STEPS = 5.0  # the ascent gets at least the time of so many Newton steps, about a third of those that an open problem needs
_CACHE = 2.0**24  # bytes of X above which rows are visited in blocks
_MOST_FREE = 6000  # size of the largest Newton system
_SHARE = 0.7  # share of the rows below which a problem gets a kernel matrix of its own rows
_MAX_INNER = 30  # Newton steps after which a proximal step counts as failed
_MAX_FAILURES = 25
_STATUS = {0: "converged", 1: "max_passes", 2: "max_seconds"}


def solve_binary(problems: BinaryProblems, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
    """Return parameters and dual numbers (n, m) of all problems, each to the relative gap ``limits.tol``.

    Parameters
    ----------
    problems : BinaryProblems
        With linear features or a kernel whose matrix fits into memory.
    limits : Limits
        ``max_passes`` counts the passes over a problem's own rows, ``max_seconds`` the time of all.
    start : Solution, optional
        Of the same problems at another lambda.
    seed : int
        Of the order of the visits.

    Returns
    -------
    Solution
        ``passes`` is the mean over the problems; ``status`` the worst.
    """
    began = time.perf_counter()
    features = problems.features
    if not (features.multiclass_linear or isinstance(features, KernelMap)):
        raise IncompatibleError("binary problems", "linear features or a kernel", "choose features=linear or features=rbf")
    if isinstance(features, KernelMap) and not features.whole:
        n = features.n_rows
        raise IncompatibleError(
            f"{n} rows",
            "the whole kernel matrix in memory",
            f"give features.memory_mb={8 * 2 * n * n / 2**20:.0f} or choose features=nystroem",
        )
    bound = problems.bounds
    A = _begin(problems, bound, start)
    columns: _Columns = _KernelProblems(problems) if isinstance(features, KernelMap) else _LinearProblems(problems)
    V, found = columns.solve(A, bound, limits, seed, began)
    code = int(found[:, 0].max(initial=0.0))
    return Solution(
        np.ascontiguousarray(V.T),
        _dual_point(problems, A),
        problems.lam,
        "binary",
        float(found[:, 1].mean()) if len(found) else 0.0,
        time.perf_counter() - began,
        _STATUS[code],
        {"newton_steps": float(columns.steps)},
    )


def _dual_point(problems: BinaryProblems, A: Array) -> Array:
    """Return the dual numbers (n, m) of A (m, n) in C form; rows of sample weight 0 have none."""
    unit = np.full(A.shape[1], problems.C) if problems.sample_weight is None else problems.C * problems.sample_weight
    return np.ascontiguousarray(np.divide(A, unit, out=np.zeros(A.shape), where=unit > 0.0).T)


def _begin(problems: BinaryProblems, bound: Array, start: Solution | None) -> Array:
    """Return the dual numbers (m, n) to begin with, in C form.

    From a fit at another lambda each problem keeps its a in C form or in mean form, whichever has the larger dual value at this lambda
    (docs/notes/large-c.md, section 7).
    """
    if start is None or start.R is None or start.R.T.shape != bound.shape:
        return np.zeros(bound.shape)
    factor = problems.lam / start.lam
    best, value = np.zeros(bound.shape), np.zeros(len(bound))
    margins = np.ones((1, 1)) if problems.margins is None else problems.margins
    unit = problems.C if problems.sample_weight is None else problems.C * problems.sample_weight
    for R in (start.R, start.R * min(factor, 1.0)):
        A = np.minimum(R.T * unit, bound)
        theta = problems.features.adjoint(np.ascontiguousarray((A * problems.labels).T, dtype=np.float64))
        square = _squares(problems, theta)
        dual = (A * margins).sum(axis=1) - 0.5 * square
        better = dual > value
        best[better], value[better] = A[better], dual[better]
    return np.ascontiguousarray(best)


def _squares(problems: BinaryProblems, theta: Array) -> Array:
    """Return |v|^2 of every problem, (m,)."""
    if isinstance(problems.features, KernelMap):
        return np.asarray((theta * problems.scores(theta)).sum(axis=0))
    return np.asarray((theta * theta).sum(axis=0))


class _Columns(ABC):
    """The problems in C form; a feature map says what products are."""

    def __init__(self, problems: BinaryProblems) -> None:
        self.problems, self.steps = problems, 0
        self.margin = np.empty((0, 0)) if problems.margins is None else np.ascontiguousarray(problems.margins)
        self.label = np.ascontiguousarray(problems.labels)

    def solve(self, A: Array, bound: Array, limits: Limits, seed: int, began: float) -> tuple[Array, Array]:
        """Improve A (m, n) in place; return parameters (m, d or n), and code, passes, primal and dual of every problem (m, 4)."""
        m = len(A)
        found = np.zeros((m, 4))
        left = limits.max_seconds - (time.perf_counter() - began)
        V = self.ascend(A, bound, replace(limits, max_seconds=left, turn=self.few_passes()), seed, np.arange(m), found)
        for q in np.flatnonzero(found[:, 0] == 1):
            if found[q, 1] + 1.0 > limits.max_passes:
                continue
            column = self.column(int(q), A, bound)
            left = limits.max_seconds - (time.perf_counter() - began)
            done = _ColumnNewton(column, limits.tol, float(np.floor(limits.max_passes - found[q, 1])), left)
            done.run(A[q, column.rows], column.own(V[q]))
            self.steps += done.steps
            A[q, column.rows] = done.best_a
            V[q] = column.whole(done.best_v)
            found[q] = done.code, found[q, 1] + done.steps, done.primal, done.dual
            if done.code == 1 and done.stalled and limits.max_passes - found[q, 1] >= 1.0:  # the ascent may improve it
                one = np.array([q])
                before = found[q].copy()
                left = limits.max_seconds - (time.perf_counter() - began)
                ascended = A[one].copy()
                more = np.zeros((1, 4))
                rest = replace(limits, max_passes=limits.max_passes - before[1], max_seconds=left)
                v = self.ascend(ascended, bound[one], rest, seed, one, more)
                if more[0, 2] <= before[2]:
                    V[q] = v[0]
                if more[0, 3] >= before[3]:
                    A[q] = ascended[0]
                found[q] = more[0, 0], before[1] + more[0, 1], min(more[0, 2], before[2]), max(more[0, 3], before[3])
        return V, found

    @abstractmethod
    def few_passes(self) -> float:
        """Return the passes of the ascent that cost about as much as Newton steps to the end."""

    @abstractmethod
    def ascend(self, A: Array, bound: Array, limits: Limits, seed: int, which: NDArray[np.intp], found: Array) -> Array:
        """Run the compiled ascent on the chosen problems, whose rows A (len(which), n) are; return their parameters."""

    @abstractmethod
    def column(self, q: int, A: Array, bound: Array) -> _OneColumn:
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

    def ascend(self, A: Array, bound: Array, limits: Limits, seed: int, which: NDArray[np.intp], found: Array) -> Array:
        every = len(which) == len(self.label)
        label = self.label if every else self.label[which]
        margin = self.margin if every or not len(self.margin) else self.margin[which]
        V = np.ascontiguousarray(np.asarray(self.X.T @ (A * label).T).T) if A.any() else np.zeros((len(A), self.rows.d))
        kernels.ascent_binary.linear(
            *self.rows,
            *(self.square, label, bound, margin, A, V),
            *(limits.tol, limits.max_passes, limits.max_seconds),
            *(seed & 0xFFFFFFFFFFFFFFFF, self.blocks, found, limits.turn),
        )
        return V

    def column(self, q: int, A: Array, bound: Array) -> _OneColumn:
        rows = np.flatnonzero(bound[q])
        X = self.X if len(rows) == self.rows.n else self.X[rows]
        return _LinearColumn(self.label[q, rows], bound[q, rows], _of(self.margin, q, rows), rows, X, self.square[rows])


class _KernelProblems(_Columns):
    def __init__(self, problems: BinaryProblems) -> None:
        super().__init__(problems)
        assert isinstance(problems.features, KernelMap)
        self.K, self.constant = problems.features.matrix, problems.constant

    def few_passes(self) -> float:
        return _KERNEL_PASSES

    def ascend(self, A: Array, bound: Array, limits: Limits, seed: int, which: NDArray[np.intp], found: Array) -> Array:
        # problems of few rows get the kernel matrix of these alone
        deadline = time.perf_counter() + limits.max_seconds
        for at, q in enumerate(which):
            rows = np.flatnonzero(bound[at])
            part = slice(None) if len(rows) > _SHARE * len(self.K) else rows
            K = self.K if isinstance(part, slice) else np.ascontiguousarray(self.K[np.ix_(rows, rows)])
            if not len(rows):
                continue
            label = np.ascontiguousarray(self.label[q : q + 1, part])
            margin = np.ascontiguousarray(self.margin[q : q + 1, part]) if len(self.margin) else self.margin
            a = np.ascontiguousarray(A[at : at + 1, part])
            own = np.ascontiguousarray(bound[at : at + 1, part])
            beta = (a * label)[0]
            u = (K @ beta + self.constant * beta.sum() if beta.any() else np.zeros(len(K)))[None]
            left = max(deadline - time.perf_counter(), 0.0)
            one = np.zeros((1, 4))
            kernels.ascent_binary.kernel(K, self.constant, label, own, margin, a, u, limits.tol, limits.max_passes, left, one, limits.turn)
            A[at, part], found[at] = a[0], one[0]
        return A * self.label[which]

    def column(self, q: int, A: Array, bound: Array) -> _OneColumn:
        rows = np.flatnonzero(bound[q])
        K = self.K if len(rows) == len(self.K) else self.K[np.ix_(rows, rows)]
        return _KernelColumn(self.label[q, rows], bound[q, rows], _of(self.margin, q, rows), rows, K, self.constant, len(self.K))


def _of(margin: Array, q: int, rows: NDArray[np.intp]) -> Array:
    return margin[q, rows] if len(margin) else np.ones(len(rows))


# ---- Newton -----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _OneColumn(ABC):
    """One problem in C form on its own rows; parameters v are weights, or coefficients over these rows."""

    label: Signs
    bound: Array
    margin: Array
    rows: NDArray[np.intp]

    @property
    @abstractmethod
    def unit(self) -> float:
        """The mean of |x_i|^2."""

    def own(self, v: Array) -> Array:
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

    def inner(self, v: Array, w: Array, scores: Array) -> float:
        """Return <v, w>, w with its scores."""
        return float(v @ w)

    @abstractmethod
    def direction(self, residual: Array, pull: Array, free: NDArray[np.intp], rho: float) -> tuple[Array, Array]:
        """Return D with (I + 1/rho sum over free of x x') D = -residual, and its scores; ``pull`` are those of the residual."""


@dataclass(eq=False)
class _LinearColumn(_OneColumn):
    X: Any
    square: Array

    @property
    def unit(self) -> float:
        return float(self.square.mean())

    def adjoint(self, q: Array) -> Array:
        return np.asarray(self.X.T @ q)

    def scores(self, v: Array) -> Array:
        return np.asarray(self.X @ v)

    def direction(self, residual: Array, pull: Array, free: NDArray[np.intp], rho: float) -> tuple[Array, Array]:
        D = -residual
        if len(free):
            Z = self.X[free]
            if len(free) < len(residual):
                gram = _dense(Z @ Z.T)
                gram[np.diag_indices_from(gram)] += rho
                factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
                D = D + Z.T @ cho_solve(factor, pull[free], check_finite=False)
                # (I + Z'Z/rho) D = -residual once more: the terms cancel where 1/rho is large
                left = -residual - D - Z.T @ (Z @ D) / rho
                D = D + left - Z.T @ cho_solve(factor, Z @ left, check_finite=False)
            else:
                H = _dense(Z.T @ Z) / rho
                H[np.diag_indices_from(H)] += 1.0
                D = cho_solve(cho_factor(H, lower=True, overwrite_a=True, check_finite=False), D, check_finite=False)
        return D, self.scores(D)


@dataclass(eq=False)
class _KernelColumn(_OneColumn):
    K: Array
    constant: float
    n: int

    @property
    def unit(self) -> float:
        return float(self.K.diagonal().mean()) + self.constant

    def own(self, v: Array) -> Array:
        return v[self.rows]

    def whole(self, v: Array) -> Array:
        found = np.zeros(self.n)
        found[self.rows] = v
        return found

    def adjoint(self, q: Array) -> Array:
        return q

    def scores(self, v: Array) -> Array:
        support = np.flatnonzero(v)
        if len(support) < 0.5 * len(v):
            return np.asarray(v[support] @ self.K[support]) + self.constant * v.sum()
        return np.asarray(self.K @ v) + self.constant * v.sum()

    def inner(self, v: Array, w: Array, scores: Array) -> float:
        return float(v @ scores)

    def direction(self, residual: Array, pull: Array, free: NDArray[np.intp], rho: float) -> tuple[Array, Array]:
        D, scores = -residual, -pull
        if len(free):
            rows = self.K[free]
            gram = rows[:, free] + self.constant
            gram[np.diag_indices_from(gram)] += rho
            z = cho_solve(cho_factor(gram, lower=True, overwrite_a=True, check_finite=False), pull[free], check_finite=False)
            D[free] += z
            scores = scores + z @ rows + self.constant * z.sum()
        return D, scores


class _ColumnNewton:
    """The proximal point method on one problem, which keeps the best v and the best a that it has seen.

    The stopping rules, the fall of rho and the recovery are those of docs/notes/large-c.md, sections 5 and 6.
    """

    def __init__(self, column: _OneColumn, tol: float, max_steps: float, max_seconds: float) -> None:
        self.column, self.tol, self.max_steps = column, tol, max_steps
        self.deadline = time.perf_counter() + max_seconds
        self.steps, self.code, self.stalled = 0, 1, False
        self.primal, self.dual = np.inf, -np.inf
        self.best_v, self.best_a = np.empty(0), np.empty(0)

    def run(self, a: Array, v: Array) -> None:
        """Begin from dual numbers a and parameters v."""
        column = self.column
        rho, least = 1e-3 * column.unit, 1e-13 * column.unit
        center, u = a.copy(), column.scores(v)
        failures, fresh = 0, True
        self.best_v, self.best_a = v, center
        while failures < _MAX_FAILURES:
            first_v, first_u, first_primal, first_gap = v, u, self.primal, self.primal - self.dual
            inner, failed = 0, False
            while True:
                slack = column.margin - column.label * u
                new = np.clip(center + slack / rho, 0.0, column.bound)
                r = v - column.adjoint(column.label * new)
                pull = column.scores(r) if isinstance(column, _KernelColumn) else r
                mismatch, apart = self._offer(v, u, new, r, pull, slack)
                if self.primal - self.dual <= self.tol * self.primal:
                    if fresh or not isinstance(column, _KernelColumn):
                        self.code = 0
                        return
                    # the scores are sums of steps: the values that count are those of scores made anew
                    u, fresh, self.primal, self.dual = column.scores(v), True, np.inf, -np.inf
                    continue
                if self.steps >= self.max_steps:
                    return
                if time.perf_counter() > self.deadline:
                    self.code = 2
                    return
                if apart <= 0.3 * mismatch:
                    break
                if inner >= _MAX_INNER:
                    failed = True
                    break
                free = np.flatnonzero((new > 0.0) & (new < column.bound))
                if len(free) > _MOST_FREE and not (isinstance(column, _LinearColumn) and len(v) <= _MOST_FREE):
                    self.stalled = True
                    return
                try:
                    at = column.scores(r) if not isinstance(column, _KernelColumn) and 0 < len(free) < len(v) else pull
                    D, change = column.direction(r, at, free, rho)
                except LinAlgError:
                    failed = True
                    break
                t = self._length(v, u, D, change, center, rho)
                v, u = v + t * D, u + t * change
                inner += 1
                self.steps += 1
                fresh = isinstance(column, _LinearColumn) or self.steps % 10 == 0
                if fresh:
                    u = column.scores(v)
            if failed:
                failures += 1
                rho *= 5.0
                if not self.primal < first_primal:
                    v, u = first_v, first_u
                continue
            center, u, fresh = new, column.scores(v), True
            rho *= 0.3 if inner <= 2 else 0.5 if inner <= 6 else 0.75
            if inner == 0 and rho <= least and not self.primal - self.dual < first_gap - 1e-9 * self.primal:
                failures += 1  # v rests, and the smallest rho does not move a: at features whose squares leave no digits to 1
            rho = max(rho, least)
        self.stalled = True

    def _offer(self, v: Array, u: Array, a: Array, r: Array, pull: Array, slack: Array) -> tuple[float, float]:
        """Keep v or a where its value is better than the best so far; return the gaps of the rows and half the squared residual."""
        column = self.column
        hinges = float(column.bound @ np.maximum(slack, 0.0))
        if isinstance(column, _KernelColumn):
            primal = 0.5 * float(v @ u) + hinges
            square = float((v - r) @ (u - pull))
            apart = 0.5 * float(r @ pull)
        else:
            primal, square, apart = 0.5 * float(v @ v) + hinges, float((v - r) @ (v - r)), 0.5 * float(r @ r)
        dual = float(a @ column.margin) - 0.5 * square
        if primal < self.primal:
            self.primal, self.best_v = primal, v
        if dual > self.dual:
            self.dual, self.best_a = dual, a
        return hinges - float(a @ slack), apart

    def _length(self, v: Array, u: Array, D: Array, change: Array, center: Array, rho: float) -> float:
        """Return t where the slope of psi along v + t D has halved."""
        column = self.column
        kernel = isinstance(column, _KernelColumn)
        along = float(v @ change) if kernel else float(v @ D)
        square = float(D @ change) if kernel else float(D @ D)
        signed = column.label * change
        base = center + (column.margin - column.label * u) / rho
        move = signed / rho

        def slope(t: float) -> float:
            return along + t * square - float(np.clip(base - t * move, 0.0, column.bound) @ signed)

        first = slope(0.0)
        low, high, at_low, at_high, t = 0.0, np.inf, first, np.inf, 1.0
        for _ in range(40):
            here = slope(t)
            if abs(here) <= 0.5 * abs(first):
                break
            if here < 0.0:
                low, at_low = t, here
            else:
                high, at_high = t, here
            if high == np.inf:
                t *= 2.0
            else:
                t = low + (high - low) * min(max(-at_low / (at_high - at_low), 0.1), 0.9)
        return t


def _dense(X: Any) -> Array:
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)
