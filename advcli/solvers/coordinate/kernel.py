"""Dual ascent with a kernel: exact blocks on working sets of rows whose block of K is small; the loops are `_ext/ascent/ascent_kernel.pyx`.

A round takes the rows that carry the gap, ascends among them until most of that gap is gone, and brings the scores of all rows up to
date in one pass over the rows of K whose dual variables moved (decomposition in the manner of Joachims 1999, with large working sets;
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
from ...core.typing import Array, Labels
from ...features.base import KernelMap
from ...problems.risk import Problem, Solution, gap_scale
from ..base import Limits, Solver, register

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
        features, n, k = problem.features, len(problem.y), problem.loss.n_classes
        assert isinstance(features, KernelMap)
        features.check_memory()
        compiled, family = kernels.ascent_kernel, kernels.arguments(problem.loss.family)
        y = np.ascontiguousarray(problem.y, dtype=np.intp)
        none = np.empty(0)
        sample = none if problem.sample_weight is None else np.ascontiguousarray(problem.sample_weight, dtype=np.float64)
        cost = none if problem.cost_weight is None else np.ascontiguousarray(problem.cost_weight, dtype=np.float64)
        scale = 1.0 / (problem.lam * problem.n)
        R = np.zeros((n, compiled.width(k)))
        R[:, :k], F = _start(problem, features, start)
        gap = np.empty(n)
        curvature = scale * float(features.diagonal.max())
        random = np.random.default_rng(seed)
        visits, status, fresh, idle, best = 0.0, "converged", True, 0, -np.inf
        working = _Working(features, curvature < _STRAIGHT, bool(R.any()), curvature <= _SINGLE)
        while True:
            losses, offsets, inners = compiled.survey(*family, F, y, sample, cost, R, gap)
            square = features.check_square(-scale * inners, R)
            primal = losses / problem.n + 0.5 * problem.lam * square
            dual = offsets / problem.n - 0.5 * problem.lam * square
            wanted = limits.tol * gap_scale(primal, dual)
            if primal - dual <= wanted:
                if fresh:
                    break
                F, fresh = np.ascontiguousarray(features.scores(problem.parameters(R[:, :k])).T), True
                continue
            idle = idle + 1 if dual <= best else 0
            best = max(best, dual)
            if status == "converged" and idle >= _MAX_IDLE:
                status = "stalled"
            elapsed = time.perf_counter() - started
            if status == "converged" and visits >= limits.turn * n:
                status = "max_passes"
            if status == "converged" and elapsed > limits.max_seconds:
                status = "max_seconds"
            if status != "converged":
                break
            if idle >= _DOUBT:
                working.refine()
            joined = working.choose(gap, random)
            rows = working.rows
            m = n if rows is None else len(rows)
            left = limits.max_passes * n - visits
            if m > left:
                status = "max_passes"
                break
            allowed = wanted * problem.n  # largest sum of gaps at the end
            if rows is None:
                goal = allowed
            else:
                rest = float(gap.sum()) - float(gap[rows].sum())
                enough = _ALLOWED * allowed - rest
                left_over = _LEFT if features.whole else _LEFT_APART
                goal = max(enough, left_over * float(gap[joined].sum()), left_over * allowed * m / n)
                last = goal == enough
            settings = (
                goal,
                1e-3 * wanted,  # rows whose gap the stopping rule cannot see are read, not moved
                left,
                limits.max_seconds - elapsed,
                int(random.integers(2**63)),
                max(float(m), limits.turn * n - visits),
            )
            fresh = False
            if rows is None:
                code, seen = compiled.solve(*family, features.matrix, y, sample, cost, F, R, scale, *settings, chunk=_CHUNK)
            else:
                part, scores = R[rows], np.ascontiguousarray(F[:, rows])
                weights = [each if each is none else each[rows] for each in (sample, cost)]
                code, seen = compiled.solve(*family, working.block, y[rows], *weights, scores, part, scale, *settings)
                change = part[:, :k] - R[rows, :k]
                moved = np.flatnonzero(change.any(axis=1))
                R[rows] = part
                if last or len(moved) > _AFRESH * np.count_nonzero(R.any(axis=1)):
                    F, fresh = np.ascontiguousarray(features.scores(problem.parameters(R[:, :k])).T), True
                else:
                    change = change[moved] * (-scale if problem.sample_weight is None else -scale * sample[rows[moved], None])
                    features.accumulate(F, rows[moved], change)
            visits += seen
            status = _STATUS.get(code, status)
        dual_point = np.ascontiguousarray(R[:, :k])
        theta = problem.parameters(dual_point)
        seconds = time.perf_counter() - started
        memory = {"support": int(dual_point.any(axis=1).sum())}
        return Solution(theta, dual_point, problem.lam, self.name, visits / n, seconds, status, memory)


class _Working:
    """The rows that rounds work on, and K among them.

    Where K is whole, rows join and do not leave, and each is read from K once: what it has in common with those there is the mirror image
    of what they lack. Where K is not, a round has the rows that carry the gap.

    Attributes
    ----------
    rows : ndarray (m,) or None
        The rows of this round, in the order in which they joined; None when K is whole and rounds take all rows.
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
        """Choose the rows of the next round by the gaps of all, and return those that join."""
        if self.rows is None:
            return slice(0)
        features, n, held = self.features, len(gap), len(self.rows)
        if held == 0 and not self.warm:
            new = np.sort(random.choice(n, min(features.largest_block, max(_SAMPLE, n // _SHARE)), replace=False))
        else:
            wanted = gap > _QUIET * gap.mean()
            if features.whole:
                wanted[self.rows] = False
            new = np.flatnonzero(wanted)
            room = max(_SAMPLE, int(_GROWTH * held)) if held else n
            room = min(room, features.largest_block)
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
        most = min(n, int(np.sqrt(self.features.spare / self.held.itemsize)))
        if m > most:
            self.rows, self.held = None, self.held[:0, :0].copy()
            return
        if m > len(self.held):
            room = min(most, int(_SPARE * m))
            block = np.empty((room, room), dtype=self.held.dtype)
            block[:held, :held] = self.held[:held, :held]
            self.held = block
        kernels.ascent_kernel.extend(self.features.matrix, self.rows, held, self.held)


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
        square = float(np.vdot(theta, F))
        kept = float(problem.weight @ problem.loss.offset(start.R, problem.y)) / problem.n - 0.5 * problem.lam * square / factor**2
        scaled = float(problem.weight @ problem.loss.offset(start.R * factor, problem.y)) / problem.n - 0.5 * problem.lam * square
        if scaled > kept:
            return start.R * factor, np.array(F.T, order="C")
    return start.R, np.ascontiguousarray(F.T / factor)
