"""Dual ascent on rows that are read in blocks; the loop is `_ext/ascent/ascent_row_blocks.pyx`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...core.arrays import is_sparse
from ...core.compiled import aligned_zeros, kernels
from ...core.row_blocks import BlockRows, by_precision
from ...problems.risk import Problem, Solution
from ...problems.row_blocks import MOST_CLASSES, BlockProblem, SparseDual
from ..base import Limits, register, warm_start, whole_option
from .threaded import ThreadedSolver, compiled_settings, compiled_weights, visits_of_a_round

# Rows of a batch: as many as keep their numbers within a second-level cache, but enough to hold all classes.
_BATCH_BYTES, _FEWEST = 2**20, 256


@register("dual_blocks")
class BlockDualSolver(ThreadedSolver):
    """The block method of `DualSolver`, one batch of blocks in memory at a time and r by its supports.

    Dense rows in memory are taken as well, in more time than `DualSolver` takes (docs/notes/kernels.md, section 11).

    Parameters
    ----------
    together : int or None
        Rows of a batch; None: by the length of a row.
    threads : int or "auto"
        Threads that visit rows, each a different batch, and share the certificate. A fit has the same bits for the same seed and number of
        threads, a certificate the same for any number. ``"auto"`` as in `DualSolver`; no more than there are blocks.
    """

    takes_blocks = True

    def __init__(self, together: int | None = None, threads: int | str = 1) -> None:
        super().__init__(threads)
        self.together = None if together is None else whole_option("together", together)

    def threads_for(self, problem: Problem) -> int:
        """Return the number of threads that a fit of this problem takes: each has a block at least."""
        return min(super().threads_for(problem), -(-len(problem.y) // _in_blocks(problem).rows_of_a_block))

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs dense multiclass linear features, and no more classes than two bytes count."""
        if not problem.features.multiclass_linear or is_sparse(problem.features.X):
            return "dense multiclass linear features"
        return None if problem.loss.n_classes <= MOST_CLASSES else f"at most {MOST_CLASSES} classes"

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the last iterate with theta = theta(r)."""
        started = time.perf_counter()
        rows = _in_blocks(problem)
        (n, d), k = rows.shape, problem.loss.n_classes
        y = np.ascontiguousarray(problem.y, dtype=np.int32)
        R, theta = self._start(problem, start, y, rows)
        padded = aligned_zeros((d, kernels.ascent_row_blocks.width(k)))
        padded[:, :k] = theta
        threads = self.threads_for(problem)
        code, passes, _, _ = kernels.ascent_row_blocks.solve(
            *kernels.arguments(problem.loss.family),
            *by_precision(rows.stored),
            np.empty(0, dtype=np.int64) if rows.at is None else rows.at,
            n,
            rows.stored.shape[1],
            rows.constant,
            rows.mean,
            rows.inverse,
            rows.shift,
            y,
            *compiled_weights(problem),
            R.store,
            padded,
            np.zeros(n, dtype=np.float32),
            *compiled_settings(problem, limits, seed),
            self.together or max(_BATCH_BYTES // (8 * d), _FEWEST),
            float(limits.turn),
            threads,
            visits_of_a_round(threads),
        )
        dual_point: Any = R if isinstance(problem, BlockProblem) else R.read(slice(0, n))
        return self.solution(problem, padded, dual_point, code, passes, started, threads)

    @staticmethod
    def _start(problem: Problem, start: Solution | None, y: Any, rows: BlockRows) -> tuple[SparseDual, Any]:
        """Return where to begin, as `warm_start` does, and theta there."""
        point, shape = SparseDual(y, problem.loss.n_classes, rows.rows_of_a_block), problem.features.shape
        if start is None:
            return point, np.zeros(shape)
        if not isinstance(problem, BlockProblem):
            R, _ = warm_start(problem, start)
            point.write(slice(0, len(y)), R)
            return point, problem.parameters(R)
        if not isinstance(start.R, SparseDual) or start.R.shape != point.shape or start.R.rows != point.rows:
            return point, np.zeros(shape)
        factor = problem.lam / start.lam
        point = start.R.scaled(1.0)
        if factor < 1.0 and problem.dual(other := start.R.scaled(factor)) > problem.dual(point):
            point = other
        return point, problem.parameters(point)


def _in_blocks(problem: Problem) -> BlockRows:
    """Return X read in blocks; dense rows in memory are one."""
    X = problem.features.X
    return X if isinstance(X, BlockRows) else BlockRows(np.ascontiguousarray(X))
