"""Dual block-coordinate ascent with exact blocks, fresh permutations and shrinking; the loop is `_ext/dual.pyx`."""

from __future__ import annotations

import time

import numpy as np

from ..compiled import aligned_zeros, compiled_rows, kernels
from ..problem import Problem, Solution
from .base import Limits, Solver, register, warm_start

# Beyond this size the rows no longer fit the last-level cache: shuffle them physically once, then permute blocks of 16 rows.
_CACHE_BYTES = 48 * 2**20
_STATUS = {0: "converged", 1: "max_passes", 2: "max_seconds"}


@register("dual")
class DualSolver(Solver):
    """Maximises the dual one example at a time; its time grows like C on data that are not separable (see solver=newton)."""

    def lacks(self, problem: Problem) -> str | None:
        """Linear multiclass features only."""
        return None if problem.features.multiclass_linear else "multiclass linear features"

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the last iterate with theta = theta(r)."""
        started = time.perf_counter()
        features = problem.features
        X, y, n = features.X, problem.y, len(problem.y)
        d, k = features.shape
        padded = kernels.dual.width(k)
        R0, _ = warm_start(problem, start)
        sparse = hasattr(X, "tocsr")
        order = None
        if not sparse and X.nbytes > _CACHE_BYTES:
            order = np.random.default_rng(seed).permutation(n)
            X, y, R0 = X[order], y[order], R0[order]

        def ordered(weights: np.ndarray | None) -> np.ndarray:
            if weights is None:
                return np.empty(0)
            return np.ascontiguousarray(weights if order is None else weights[order], dtype=np.float64)

        R = aligned_zeros((n, padded))
        R[:, :k] = R0
        theta = aligned_zeros((d, padded))
        theta[:, :k] = problem.parameters(R0 if order is None else R0[np.argsort(order)])
        squares = features.squares
        values, columns, rows, *_ = compiled_rows(X)
        code, passes, _, _ = kernels.dual.solve(
            *kernels.arguments(problem.loss.family),
            values,
            columns,
            rows,
            n,
            d,
            np.ascontiguousarray(y, dtype=np.intp),
            squares if order is None else squares[order],
            ordered(problem.sample_weight),
            ordered(problem.cost_weight),
            R,
            theta,
            np.empty(n),
            problem.lam,
            problem.n,
            limits.tol,
            float(limits.max_passes),
            float(limits.max_seconds),
            seed & 0xFFFFFFFFFFFFFFFF,
            order is not None,
        )
        R_out = np.ascontiguousarray(R[:, :k])
        if order is not None:
            unshuffled = np.empty_like(R_out)
            unshuffled[order] = R_out
            R_out = unshuffled
        seconds = time.perf_counter() - started
        return Solution(np.ascontiguousarray(theta[:, :k]), R_out, problem.lam, self.name, passes, seconds, _STATUS[code])
