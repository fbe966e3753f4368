"""Dual ascent on sparse rows with many classes, each row on a list of its classes; the loop is `_ext/ascent/ascent_class_lists.pyx`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.arrays import is_sparse
from ...core.compiled import aligned_zeros, compiled_rows, kernels
from ...problems.risk import Problem, Solution
from ..base import Limits, register, warm_start
from .threaded import ThreadedSolver, compiled_settings, compiled_weights

_DENSE = 2**24  # numbers of a dual point up to which it is returned as a dense array


@register("dual_lists")
class ListedDualSolver(ThreadedSolver):
    """The block method of `DualSolver` whose visits, and whose dual point, take as much as a row's support, not as all classes.

    For sparse rows under ``zero_one`` and ``cs`` (docs/notes/kernels.md, section 12). A dual point of more than 2^24 numbers is returned as
    a CSR matrix.

    Parameters
    ----------
    threads : int or "auto"
        Threads that share the evaluations of all rows; visits take one. A fit has the same bits whatever their number. ``"auto"``: one
        where the problem is small, else one for each core that the process may use.
    """

    worth, rows_each = 1e8, 500  # products in an evaluation, some 20 ms of one thread, and rows of each

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs sparse multiclass linear features, and a surrogate by a threshold (`Loss.thresholded`)."""
        if not problem.features.multiclass_linear or not is_sparse(problem.features.X):
            return "sparse multiclass linear features"
        return None if problem.loss.thresholded else "zero_one or cs"

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the last iterate with theta = theta(r)."""
        started = time.perf_counter()
        X, n = problem.features.X, len(problem.y)
        d, k = problem.features.shape
        y = np.ascontiguousarray(problem.y, dtype=np.intp)
        lists = kernels.ascent_class_lists.Lists(n, k)
        theta = aligned_zeros((d, kernels.ascent_class_lists.width(k)))
        if start is not None and start.R is not None:
            R, _ = warm_start(problem, start)
            theta[:, :k] = problem.parameters(R)
            point = sp.csr_array(R)
            point.sort_indices()
            lists.take(y, point.indptr.astype(np.int64), point.indices.astype(np.int32), point.data)
        threads = self.threads_for(problem)
        code, passes, _, _ = kernels.ascent_class_lists.solve(
            *kernels.arguments(problem.loss.family),
            *compiled_rows(X),
            y,
            problem.features.squares,
            *compiled_weights(problem),
            lists,
            theta,
            *compiled_settings(problem, limits, seed),
            float(limits.turn),
            threads,
        )
        begin, labels, numbers = np.empty(n + 1, np.int64), np.empty(lists.entries, np.int32), np.empty(lists.entries)
        lists.give(begin, labels, numbers)
        dual_point: Any = sp.csr_array((numbers, labels, begin), shape=(n, k))
        if n * k <= _DENSE:
            dual_point = dual_point.toarray()
        return self.solution(problem, theta, dual_point, code, passes, started, threads)
