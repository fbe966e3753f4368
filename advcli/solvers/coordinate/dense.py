"""Dual block-coordinate ascent with exact blocks, fresh permutations and shrinking; the loop is `_ext/ascent/ascent_dense.pyx`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...core.arrays import is_sparse
from ...core.compiled import aligned_zeros, compiled_rows, kernels
from ...core.typing import Array
from ...problems.risk import Problem, Solution
from ..base import Limits, register, warm_start
from .face_steps import FaceSteps
from .threaded import ThreadedSolver, compiled_settings, compiled_weights, visits_of_a_round

_TURN, _PAUSED = 1, 3  # codes of the compiled loop


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
        features, n = problem.features, len(problem.y)
        d, k = features.shape
        loop = kernels.ascent_dense_for(k, d)
        R0, _ = warm_start(problem, start)
        R, theta = aligned_zeros((n, loop.width(k))), aligned_zeros((d, loop.width(k)))
        if start is not None:
            theta[:, :k] = problem.parameters(R0)
            R[:, :k] = R0
        count, y, squares = self.threads_for(problem), np.ascontiguousarray(problem.y, dtype=np.intp), features.squares
        threads = 1 if is_sparse(features.X) else count
        rows, weights = compiled_rows(features.X), compiled_weights(problem)
        begun = time.perf_counter()
        pauses = _Pauses(problem, squares, limits, loop, seed) if threads == 1 else None
        while True:
            code, passes, _, _ = loop.solve(
                *kernels.arguments(problem.loss.family),
                *rows,
                y,
                squares,
                *weights,
                R,
                theta,
                *compiled_settings(problem, limits, seed, time.perf_counter() - begun),
                threads,
                visits_of_a_round(threads),
                float(limits.turn),
                None if pauses is None else pauses.progress,
            )
            if pauses is None or code != _PAUSED:
                break
            if pauses.turns(R, theta, passes):
                code = _TURN
                break
        return self.solution(problem, theta, np.ascontiguousarray(R[:, :k]), code, passes, started, count)


class _Pauses:
    """What an ascent does when it pauses: it asks whether another solver should go on, and makes steps on its faces."""

    def __init__(self, problem: Problem, squares: Array, limits: Limits, loop: Any, seed: int) -> None:
        self.limits, self.n, self.looked, self.steps = limits, len(problem.y), False, FaceSteps(problem, squares, limits)
        self.progress = loop.Progress(self.n, seed & 0xFFFFFFFFFFFFFFFF, min(self.steps.first(), limits.look))

    def turns(self, R: Array, theta: Array, passes: float) -> bool:
        """Return whether the ascent would go on beyond the turn; else make the step that is due, and set the next pause."""
        steps, progress, limits = self.steps, self.progress, self.limits
        if not self.looked and passes >= limits.look:
            self.looked = True
            if passes + steps.passes_left(passes, progress.gap) > limits.turn:
                return True
        if passes < steps.first():
            progress.pause = steps.first()
            return False
        progress.pause, read = steps.take(R, theta, passes, progress.gap)
        progress.visits += int(np.ceil(read * self.n))
        if read:
            progress.moved()
        return False
