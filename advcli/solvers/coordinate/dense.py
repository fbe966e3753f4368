"""Dual block-coordinate ascent with exact blocks, fresh permutations and shrinking; the loop is `_ext/ascent/ascent_dense.pyx`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...core.compiled import aligned_zeros, compiled_rows, kernels
from ...problems.risk import Problem, Solution
from ..base import Limits, register, warm_start
from .face_steps import FaceSteps
from .threaded import ThreadedSolver

# Visits of a thread between two sums, fewer as threads become more (docs/notes/kernels.md, section 10).
_VISITS = 512
STATUS = {0: "converged", 1: "max_passes", 2: "max_seconds"}
_TURN, _PAUSED = 1, 3


def visits_of_a_round(threads: int) -> int:
    """Return how many rows each of the threads visits between two sums of what they changed."""
    return max(_VISITS // threads, 16)


@register("dual")
class DualSolver(ThreadedSolver):
    """Maximises the dual one example at a time; its time grows like C on data that are not separable (see solver=newton).

    Parameters
    ----------
    threads : int or "auto"
        Threads that work on dense rows at once, and share the certificate. Visits of sparse rows take one, and only their certificate is
        shared. A fit has the same bits for the same seed and number of threads, a certificate the same for any number.
        ``"auto"``: one where the problem is small, else one for each core that the process may use.
    """

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs linear multiclass features only."""
        return None if problem.features.multiclass_linear else "multiclass linear features"

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the last iterate with theta = theta(r)."""
        started = time.perf_counter()
        features = problem.features
        X, y, n = features.X, problem.y, len(problem.y)
        d, k = features.shape
        loop = kernels.ascent_dense_for(k, d)
        padded = loop.width(k)
        R0, _ = warm_start(problem, start)
        sparse, count = hasattr(X, "tocsr"), self.threads_for(problem)
        R, theta = aligned_zeros((n, padded)), aligned_zeros((d, padded))
        if start is not None:
            theta[:, :k] = problem.parameters(R0)
            R[:, :k] = R0
        y, squares, none = np.ascontiguousarray(y, dtype=np.intp), features.squares, np.empty(0)
        threads = 1 if sparse else count
        sample, cost = problem.sample_weight, problem.cost_weight
        values, columns, rows, *_ = compiled_rows(X)
        seed &= 0xFFFFFFFFFFFFFFFF
        begun = time.perf_counter()
        steps = FaceSteps(problem, X, y, squares, sample, cost, limits.tol) if threads == 1 else None
        progress = None if steps is None else loop.Progress(n, seed, min(steps.first(), limits.look))
        looked = False
        while True:
            code, passes, _, _ = loop.solve(
                *kernels.arguments(problem.loss.family),
                values,
                columns,
                rows,
                n,
                d,
                y,
                squares,
                none if sample is None else np.ascontiguousarray(sample, dtype=np.float64),
                none if cost is None else np.ascontiguousarray(cost, dtype=np.float64),
                R,
                theta,
                problem.lam,
                problem.n,
                limits.tol,
                float(limits.max_passes),
                float(limits.max_seconds - (time.perf_counter() - begun)),
                seed,
                threads,
                visits_of_a_round(threads),
                float(limits.turn),
                progress,
            )
            if steps is None or progress is None or code != _PAUSED:
                break
            if not looked and passes >= limits.look:
                looked = True
                if passes + steps.rest(passes, progress.gap) > limits.turn:
                    code = _TURN
                    break
            if passes < steps.first():
                progress.pause = steps.first()
                continue
            progress.pause, read = steps.take(R, theta, passes, limits.max_passes - 2.0, progress.gap)
            progress.visits += int(np.ceil(read * n))
        R_out = np.ascontiguousarray(R[:, :k])
        seconds = time.perf_counter() - started
        memory: dict[str, Any] = {"threads": count} if count > 1 else {}
        return Solution(np.ascontiguousarray(theta[:, :k]), R_out, problem.lam, self.name, passes, seconds, STATUS[code], memory)
