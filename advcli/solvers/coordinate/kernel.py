"""Dual ascent with a kernel: exact blocks on working sets of rows whose block of K is small; the loops are `_ext/ascent/ascent_kernel.pyx`.

A round takes the rows that carry the gap and ascends among them until most of that gap is gone. One pass over the rows of K whose dual
variables moved then updates the scores of all rows (decomposition in the manner of Joachims 1999, with large working sets;
docs/notes/kernels.md, section 3). The first round is a random sample. Most rows at rest after early rounds are never touched again, so the
work grows with the number of support vectors. Where C K_ii is small, rows settle in a few visits, and the ascent reads K itself.

The copy of K among the rows of a round is in single precision where C K_ii allows: the scores that a round begins with and what it adds to
them afterwards are in double precision, so that its rounding is one of the step alone. Before the solver claims a gap, all scores are
computed afresh from the coefficients.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.compiled import kernels
from ...core.errors import ConfigError
from ...core.linalg import inner
from ...core.typing import Array, Labels
from ...features.base import KernelMap
from ...features.kernels.checks import PIECE
from ...features.kernels.kernel_map import GATHERED, checked_square
from ...problems.risk import Problem, Solution, gap_scale
from ..base import Limits, Solver, register
from .threaded import compiled_weights

_STATUS = {1: "max_passes", 2: "max_seconds"}
_SAMPLE = 400  # least rows of a round; with fewer than twice as many, every round takes all rows
_SHARE = 8  # the first round takes this fraction of the rows
_GROWTH = 3.0  # most rows that join in a round, in rows that were there before
_QUIET = 0.02  # a row does not join while its gap is below this share of the mean gap
_LEFT = 0.01  # share of the gap of the rows which joined that a round leaves
_LEFT_APART = 0.1  # the same where K is not whole: what its rounds add to the gaps of other rows is brought in sooner
_ALLOWED = 0.85  # share of the gap allowed at the end that a round leaves at least
_AFRESH = 0.7  # share of the rows with coefficients beyond which all scores are computed afresh after a round, which takes no longer
_STRAIGHT = 1.0  # C K_ii below which rows settle in so few visits that copies of K do not pay
_CHUNK = 16  # rows that are visited before the scores of all rows follow, where K itself is read
_SINGLE = 5000.0  # C K_ii up to which a round's copy of K is in single precision
_DOUBT = 2  # rounds that do not raise the dual value after which it is in double precision
_SPARE = 1.3  # room in such a copy, in rows that are there
_MEBIBYTE = 2.0**20
_MAX_IDLE = 20  # rounds that do not raise the dual value after which the solver gives up


@register("kernel_dual")
class KernelDualSolver(Solver):
    """Maximises the dual one example at a time on growing working sets; any surrogate, kernel features."""

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs kernel features whose parameters are all penalised."""
        if not isinstance(problem.features, KernelMap):
            return "kernel features (rbf, poly or precomputed)"
        return None if problem.features.regularised is None else "features without free parameters"

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the last iterate with theta = theta(r)."""
        started = time.perf_counter()
        assert isinstance(problem.features, KernelMap)
        check_memory(problem.features)
        ascent = _Ascent(problem, problem.features, start, seed)
        status = ascent.until(limits, started)
        dual_point = np.ascontiguousarray(ascent.R[:, : problem.loss.n_classes])
        theta, passes = problem.parameters(dual_point), ascent.visits / len(problem.y)
        memory = {"support": int(dual_point.any(axis=1).sum())}
        return Solution(theta, dual_point, problem.lam, self.name, passes, time.perf_counter() - started, status, memory)


def check_memory(features: KernelMap) -> None:
    """Raise `ConfigError` when the memory allowed cannot hold even the pieces of K that a pass needs."""
    n, memory_mb = features.n_rows, features.memory / _MEBIBYTE
    least = 2 * 8 * PIECE * n / _MEBIBYTE
    if not features.whole and memory_mb < least:
        every = 8 * (1 + GATHERED**2) * n * n / _MEBIBYTE
        remedy = f"give at least {np.ceil(least):.0f} ({np.ceil(every):.0f} keep the whole kernel matrix)"
        raise ConfigError(f"features.memory_mb={memory_mb:g} is too small for {n} rows; {remedy}")


class _Ascent:
    """The dual point r (n, kp) of one fit, its scores (k, n), the gap of every row, and the rows of its rounds."""

    def __init__(self, problem: Problem, features: KernelMap, start: Solution | None, seed: int) -> None:
        n, k = len(problem.y), problem.loss.n_classes
        self.problem, self.features, self.family = problem, features, kernels.arguments(problem.loss.family)
        self.y, self.weights = np.ascontiguousarray(problem.y, dtype=np.intp), compiled_weights(problem)
        self.scale = 1.0 / (problem.lam * problem.n)
        self.R, self.gap = np.zeros((n, kernels.ascent_kernel.width(k))), np.empty(n)
        self.R[:, :k], self.F = _start(problem, features, start)
        self.random = np.random.default_rng(seed)
        self.visits, self.fresh = 0.0, True  # whether the scores were computed from the coefficients
        curvature = self.scale * float(features.diagonal.max())
        self.working = _Working(features, curvature < _STRAIGHT, bool(self.R.any()), curvature <= _SINGLE)

    def refresh(self) -> None:
        """Compute all scores afresh."""
        theta = self.problem.parameters(self.R[:, : self.problem.loss.n_classes])
        self.F, self.fresh = np.ascontiguousarray(self.features.scores(theta).T), True

    def until(self, limits: Limits, started: float) -> str:
        """Make rounds until the gap is closed or to a limit; return the status."""
        problem, n = self.problem, len(self.y)
        status, idle, best = "converged", 0, -np.inf
        while True:
            losses, offsets, inners = kernels.ascent_kernel.survey(*self.family, self.F, self.y, *self.weights, self.R, self.gap)
            square = checked_square(self.features, -self.scale * inners, self.R)
            primal = losses / problem.n + 0.5 * problem.lam * square
            dual = offsets / problem.n - 0.5 * problem.lam * square
            wanted = limits.tol * gap_scale(primal, dual)
            if primal - dual <= wanted:
                if self.fresh:
                    return status
                self.refresh()
                continue
            idle = idle + 1 if dual <= best else 0
            best = max(best, dual)
            elapsed = time.perf_counter() - started
            if status != "converged":
                return status
            if idle >= _MAX_IDLE:
                return "stalled"
            if self.visits >= limits.turn * n:
                return "max_passes"
            if elapsed > limits.max_seconds:
                return "max_seconds"
            if idle >= _DOUBT:
                self.working.refine()
            joined = self.working.choose(self.gap, self.random)
            m, left = n if self.working.rows is None else len(self.working.rows), limits.max_passes * n - self.visits
            if m > left:
                return "max_passes"
            status = self._round(joined, wanted, (left, limits.max_seconds - elapsed), max(float(m), limits.turn * n - self.visits))

    def _goal(self, joined: Labels | slice, allowed: float) -> tuple[float, bool]:
        """Return the sum of gaps that a round leaves its rows, and whether it then may be the last; ``allowed`` is the sum at the end."""
        gap, rows = self.gap, self.working.rows
        if rows is None:
            return allowed, True
        enough = _ALLOWED * allowed - (float(gap.sum()) - float(gap[rows].sum()))
        share = _LEFT if self.features.whole else _LEFT_APART
        goal = max(enough, share * float(gap[joined].sum()), share * allowed * len(rows) / len(gap))
        return goal, goal == enough

    def _round(self, joined: Labels | slice, wanted: float, left: tuple[float, float], turn: float) -> str:
        """Ascend among the rows of a round and bring the scores of all rows up to date; return the status."""
        compiled, features, rows, k = kernels.ascent_kernel, self.features, self.working.rows, self.problem.loss.n_classes
        goal, last = self._goal(joined, wanted * self.problem.n)
        # rows whose gap the stopping rule cannot see are read, not moved
        settings = (goal, 1e-3 * wanted, *left, int(self.random.integers(2**63)), turn)
        self.fresh = False
        if rows is None:
            y, weights, R = self.y, self.weights, self.R
            code, seen = compiled.solve(*self.family, features.matrix, y, *weights, self.F, R, self.scale, *settings, chunk=_CHUNK)
        else:
            part, scores, y = self.R[rows], np.ascontiguousarray(self.F[:, rows]), self.y[rows]
            weights = tuple(weight[rows] if len(weight) else weight for weight in self.weights)  # type: ignore[assignment]
            code, seen = compiled.solve(*self.family, self.working.block, y, *weights, scores, part, self.scale, *settings)
            change = part[:, :k] - self.R[rows, :k]
            moved = np.flatnonzero(change.any(axis=1))
            self.R[rows] = part
            if last or len(moved) > _AFRESH * np.count_nonzero(self.R.any(axis=1)):
                self.refresh()
            else:
                sample = self.problem.sample_weight
                change = change[moved] * (-self.scale if sample is None else -self.scale * sample[rows[moved], None])
                features.accumulate(self.F, rows[moved], change)
        self.visits += seen
        return _STATUS.get(code, "converged")


class _Working:
    """The rows (m,) that rounds work on, in the order in which they joined, None for all rows of a whole K; and K among them.

    Where K is whole, rows join and do not leave, and each is read from K once: what it has in common with those there is the mirror image
    of what they lack. Where K is not, a round has the rows that carry the gap.
    """

    def __init__(self, features: KernelMap, straight: bool, warm: bool, single: bool) -> None:
        n = features.n_rows
        self.features, self.warm = features, warm
        self.rows: Labels | None = np.empty(0, dtype=np.intp)
        self.held: Any = np.empty((0, 0), dtype=np.float32 if single else np.float64)
        if features.whole and (straight or n <= 2 * _SAMPLE):
            self.rows = None

    @property
    def block(self) -> Any:
        """K among the rows, in their order, in the corner of a matrix."""
        assert self.rows is not None
        return self.held if self.features.whole else self.features.block(self.rows)

    def choose(self, gap: Array, random: np.random.Generator) -> Labels | slice:
        """Choose the rows of the next round by the gaps of all, and return the rows that join."""
        if self.rows is None:
            return slice(0)
        features, n, held = self.features, len(gap), len(self.rows)
        if held == 0 and not self.warm:
            new = np.sort(random.choice(n, min(largest_block(features), max(_SAMPLE, n // _SHARE)), replace=False))
        else:
            wanted = gap > _QUIET * gap.mean()
            if features.whole:
                wanted[self.rows] = False
            new = np.flatnonzero(wanted)
            room = max(_SAMPLE, int(_GROWTH * held)) if held else n
            room = min(room, largest_block(features))
            if len(new) > room:
                new = np.sort(new[np.argsort(-gap[new], kind="stable")[:room]])
        if not features.whole:
            self.rows = new
            return new
        self.rows = np.concatenate([self.rows, new])
        self._fill(held)
        return new if self.rows is not None else slice(0)

    def refine(self) -> None:
        """Hold K in double precision; blocks of a K that is not whole are so already."""
        if self.features.whole and self.rows is not None and self.held.dtype != np.float64:
            self.held = np.empty((0, 0))
            self._fill(0)

    def _fill(self, held: int) -> None:
        """Copy from K what the rows from ``held`` on have in it; or take all rows, where the copy has no room beside K."""
        assert self.rows is not None
        m, n = len(self.rows), self.features.n_rows
        most = min(n, int(np.sqrt(spare(self.features) / self.held.itemsize)))
        if m > most:
            self.rows, self.held = None, self.held[:0, :0].copy()
            return
        if m > len(self.held):
            room = min(most, int(_SPARE * m))
            block = np.empty((room, room), dtype=self.held.dtype)
            block[:held, :held] = self.held[:held, :held]
            self.held = block
        kernels.ascent_kernel.extend(self.features.matrix, self.rows, held, self.held)


def largest_block(features: KernelMap) -> int:
    """Return the most rows of a round: half of the memory is for their block of K where K is not whole."""
    n = features.n_rows
    return n if features.whole else min(n, int(np.sqrt(features.memory / 2 / 8)))


def spare(features: KernelMap) -> float:
    """Return the bytes that copies of a part of a whole K may take beside it; of a given K, all of it in single precision."""
    square = float(features.n_rows) ** 2
    return 4.0 * square if features.memory == np.inf else features.memory - 8.0 * square


def _start(problem: Problem, features: KernelMap, start: Solution | None) -> tuple[Array, Array]:
    """Return a dual point (n, k) and its scores (k, n), chosen like `base.warm_start` but from one product with K.

    The scores of r at lambda are lambda_start / lambda times the scores at lambda_start; scaling r by lambda / lambda_start keeps scores.
    """
    n, k = len(problem.y), problem.loss.n_classes
    if start is None or start.R is None or start.R.shape != (n, k) or not start.R.any():
        return np.zeros((n, k)), np.zeros((k, n))
    before = replace(problem, lam=start.lam)
    theta = before.parameters(start.R)
    F = features.scores(theta)
    factor = problem.lam / start.lam
    if factor < 1.0:
        square = inner(theta, F)
        unscaled = float(problem.weight @ problem.loss.offset(start.R, problem.y)) / problem.n - 0.5 * problem.lam * square / factor**2
        scaled = float(problem.weight @ problem.loss.offset(start.R * factor, problem.y)) / problem.n - 0.5 * problem.lam * square
        if scaled > unscaled:
            return start.R * factor, np.array(F.T, order="C")
    return start.R, np.ascontiguousarray(F.T / factor)
