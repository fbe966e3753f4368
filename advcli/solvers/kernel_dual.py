"""Dual ascent with a kernel: exact blocks on working sets of rows whose block of K is small; the loops are `_ext/kernel_dual.pyx`.

A round gathers K among the rows that carry the gap, ascends there until most of that gap is gone, and brings the scores of all rows up to
date in one pass over the rows of K whose dual variables moved (decomposition in the manner of Joachims 1999, with large working sets;
docs/notes/kernels.md, section 3). The first round is a random sample. Most rows at rest after early rounds are never touched again, so the
work grows with the number of support vectors. Before the solver claims a gap, all scores are computed afresh from the coefficients.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ..compiled import kernels
from ..features.base import KernelMap
from ..problem import Array, Problem, Solution, gap_scale
from .base import Limits, Solver, register

_STATUS = {1: "max_passes", 2: "max_seconds"}
_SAMPLE = 400  # least rows of a round; with fewer than twice as many, every round takes all rows
_SHARE = 8  # the first round takes this fraction of the rows
_GROWTH = 2.0  # most rows of a round, in rows of the round before
_QUIET = 0.02  # a row is left out while its gap is below this share of the mean gap
_LEFT = 0.1  # share of its gap that a round leaves
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
        compiled, family = kernels.kernel_dual, kernels.arguments(problem.loss.family)
        y = np.ascontiguousarray(problem.y, dtype=np.intp)
        none = np.empty(0)
        sample = none if problem.sample_weight is None else np.ascontiguousarray(problem.sample_weight, dtype=np.float64)
        cost = none if problem.cost_weight is None else np.ascontiguousarray(problem.cost_weight, dtype=np.float64)
        scale = 1.0 / (problem.lam * problem.n)
        R = np.zeros((n, compiled.width(k)))
        R[:, :k], F = _start(problem, features, start)
        gap = np.empty(n)
        random = np.random.default_rng(seed)
        visits, status, fresh, idle, best = 0.0, "converged", True, 0, -np.inf
        previous = n if R.any() else 0
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
            rows = self._working_set(features, gap, random, previous)
            previous = n if rows is None else len(rows)
            mine = gap if rows is None else gap[rows]
            left = limits.max_passes * n - visits
            if len(mine) > left:
                status = "max_passes"
                break
            allowed = wanted * problem.n  # largest sum of gaps at the end
            goal = allowed if rows is None else max(0.5 * allowed * len(rows) / n, _LEFT * float(mine.sum()))
            settings = (
                goal,
                1e-3 * wanted,  # rows whose gap the stopping rule cannot see are read, not moved
                left,
                limits.max_seconds - elapsed,
                int(random.integers(2**63)),
                max(float(len(mine)), limits.turn * n - visits),
            )
            if rows is None:
                code, seen = compiled.solve(*family, features.matrix, y, sample, cost, F, R, scale, *settings)
            else:
                part, scores = R[rows], np.ascontiguousarray(F[:, rows])
                weights = [each if each is none else each[rows] for each in (sample, cost)]
                code, seen = compiled.solve(*family, features.block(rows), y[rows], *weights, scores, part, scale, *settings)
                change = part[:, :k] - R[rows, :k]
                moved = np.flatnonzero(change.any(axis=1))
                change = change[moved] * (-scale if problem.sample_weight is None else -scale * sample[rows[moved], None])
                features.accumulate(F, rows[moved], change)
                R[rows] = part
            fresh = False
            visits += seen
            status = _STATUS.get(code, status)
        dual_point = np.ascontiguousarray(R[:, :k])
        theta = problem.parameters(dual_point)
        seconds = time.perf_counter() - started
        memory = {"support": int(dual_point.any(axis=1).sum())}
        return Solution(theta, dual_point, problem.lam, self.name, visits / n, seconds, status, memory)

    @staticmethod
    def _working_set(features: KernelMap, gap: Array, random: np.random.Generator, previous: int) -> np.ndarray | None:
        """Return the rows of the next round, ascending; None when K is whole and the round takes all rows."""
        n, most = len(gap), features.largest_block
        if previous == 0 and n > 2 * _SAMPLE:
            return np.sort(random.choice(n, min(most, max(_SAMPLE, n // _SHARE)), replace=False))
        rows = np.flatnonzero(gap > _QUIET * gap.mean())
        room = min(most, max(_SAMPLE, int(_GROWTH * previous)))
        if len(rows) > room:
            rows = np.sort(rows[np.argsort(-gap[rows], kind="stable")[:room]])
        if features.whole:
            return None if len(rows) > features.gathered * n or n <= 2 * _SAMPLE else rows
        return rows


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
