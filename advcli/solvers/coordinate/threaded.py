"""Solvers whose fits several threads may share: the option ``threads``, and how many threads a problem is worth."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ...core.arrays import is_sparse
from ...core.errors import ConfigError
from ...core.typing import Array
from ...problems.risk import Problem, Solution
from ..base import Limits, Solver, whole_option

AUTO, MOST_THREADS = "auto", 256
_STATUS = ("converged", "max_passes", "max_seconds")  # by the code of a compiled loop
_VISITS = 512  # of a thread between two sums, fewer as threads become more (docs/notes/kernels.md, section 10)


def visits_of_a_round(threads: int) -> int:
    """Return how many rows each thread visits before their changes are summed."""
    return max(_VISITS // threads, 16)


def compiled_settings(problem: Problem, limits: Limits, seed: int, spent: float = 0.0) -> tuple[Any, ...]:
    """Return lambda, n, the gap, the passes and the seconds allowed, less those spent, and the seed, as the compiled ascents take them."""
    seconds = float(limits.max_seconds - spent)
    return problem.lam, problem.n, limits.tol, float(limits.max_passes), seconds, seed & 0xFFFFFFFFFFFFFFFF


def compiled_weights(problem: Problem) -> tuple[Array, Array]:
    """Return the sample and cost weights as the compiled loops take them: empty where all are 1."""
    sample, cost = problem.sample_weight, problem.cost_weight
    none = np.empty(0)
    return (
        none if sample is None else np.ascontiguousarray(sample, dtype=np.float64),
        none if cost is None else np.ascontiguousarray(cost, dtype=np.float64),
    )


def usable_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_option(value: Any) -> int | str:
    """Return the option ``threads`` of a solver, or raise `ConfigError`."""
    if value == AUTO:
        return AUTO
    if isinstance(value, str) or value is None or (threads := whole_option("threads", value)) > MOST_THREADS:
        raise ConfigError(f"solver.threads={value} is not valid; give a whole number from 1 to {MOST_THREADS}, or {AUTO}")
    return threads


class ThreadedSolver(Solver):
    """A solver whose fits several threads may share, as many as the option ``threads`` says."""

    worth: ClassVar[float] = 8e6  # products of a pass, the numbers that it reads times k, from which "auto" takes several threads
    rows_each: ClassVar[int] = 1_000  # rows that each of them has at least

    def __init__(self, threads: int | str = 1) -> None:
        self.threads = threads_option(threads)

    def reads(self, problem: Problem) -> float:
        """Return how many numbers a pass reads for each class: the values of X."""
        X = problem.features.X
        return float(X.nnz) if is_sparse(X) else float(len(problem.y)) * X.shape[1]

    def threads_for(self, problem: Problem) -> int:
        """Return the number of threads that a fit of this problem takes."""
        n = len(problem.y)
        if self.threads != AUTO:
            return max(1, min(int(self.threads), n))
        if self.reads(problem) * problem.loss.n_classes < self.worth:
            return 1
        return max(1, min(usable_cores(), n // self.rows_each, MOST_THREADS))

    def sharing(self, problem: Problem) -> Problem:
        """Return the problem whose evaluations the threads of a fit share."""
        threads = self.threads_for(problem)
        return replace(problem, threads=threads) if threads > 1 else problem

    def solution(self, problem: Problem, theta: Array, R: Any, code: int, passes: float, started: float, threads: int) -> Solution:
        """Return what a compiled loop has found, ``theta`` with its classes padded; ``code`` is what it ended with."""
        memory: dict[str, Any] = {"threads": threads} if threads > 1 else {}
        theta = np.ascontiguousarray(theta[:, : problem.loss.n_classes])
        return Solution(theta, R, problem.lam, self.name, passes, time.perf_counter() - started, _STATUS[code], memory)
