"""Solvers whose fits several threads may share: the option ``threads``, and how many threads a problem is worth."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, ClassVar

from ...core.errors import ConfigError
from ...problems.risk import Problem
from ..base import Solver, whole_option

AUTO, MOST_THREADS = "auto", 256


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
    """A solver whose fits several threads may share.

    Parameters
    ----------
    threads : int or "auto"
        Threads of a fit. ``"auto"``: one where the problem is small, else one for each core that the process may use.

    Attributes
    ----------
    worth : float
        Products of a pass, the numbers that it reads times k, from which ``"auto"`` takes several threads.
    rows_each : int
        Rows that each of them has at least.

    Raises
    ------
    ConfigError
        Another number of threads.
    """

    worth: ClassVar[float] = 8e6
    rows_each: ClassVar[int] = 1_000

    def __init__(self, threads: int | str = 1) -> None:
        self.threads = threads_option(threads)

    def reads(self, problem: Problem) -> float:
        """Return how many numbers a pass reads for each class: the values of X."""
        X = problem.features.X
        return float(X.nnz) if hasattr(X, "tocsr") else float(len(problem.y)) * X.shape[1]

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
