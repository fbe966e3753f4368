"""Solvers: one file per algorithm. A solver sees a `Problem` only, says what it needs, and returns a `Solution` that others certify."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from .. import plugins
from ..errors import ConfigError, nearest
from ..problem import Array, Problem, Solution


@dataclass(frozen=True)
class Limits:
    """When to stop: the relative gap wanted, and what may be spent on it."""

    tol: float = 1e-3
    max_passes: float = 100_000.0
    max_seconds: float = float("inf")


class Solver(ABC):
    """An algorithm for `Problem`; options come from its configuration file."""

    name: ClassVar[str]
    takes_box: ClassVar[bool] = False  # whether it can solve problems with a tolerance, an L1 penalty
    precision: ClassVar[float] = 0.0  # relative gap below which the solver takes too long to be asked for it; 0: any tolerance

    @abstractmethod
    def lacks(self, problem: Problem) -> str | None:
        """Return what ``problem`` lacks for this solver in words, or None when it can be solved."""

    @abstractmethod
    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the iterate at the first certified gap below ``limits.tol`` or at a limit."""


def warm_start(problem: Problem, start: Solution | None) -> tuple[Array, float]:
    """Return a feasible dual point (n, k) for ``problem`` and the factor that its r was scaled by.

    From a solution at another lambda two candidates exist: keep r (right when P/C has settled: data that are not separable), or scale r so
    that theta(r) stays (right for separable data, only towards smaller lambda). The one with the larger dual value wins
    (large-C note, section 3.5; both rules alone are bad somewhere).
    """
    if start is None or start.R is None or start.R.shape != (len(problem.y), problem.loss.n_classes):
        return np.zeros((len(problem.y), problem.loss.n_classes)), 1.0
    if not problem.lam > 0:  # moments in a box
        return start.R, 1.0
    factor = problem.lam / start.lam
    if factor < 1.0 and problem.dual(start.R * factor) > problem.dual(start.R):
        return start.R * factor, factor
    return start.R, 1.0


def compiled_rows(X: Any) -> tuple[Array, Any, Any]:
    """Return the numbers of X, dense row by row or CSR, its columns and its row starts as the compiled loops take them."""
    if hasattr(X, "tocsr"):
        values, columns, start = X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
    else:
        values, columns, start = np.ascontiguousarray(X, dtype=np.float64).ravel(), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    return np.ascontiguousarray(values, dtype=np.float64), columns, start


def positive_option(name: str, value: Any) -> float:
    """Return a solver's option as a finite number above 0, or raise `ConfigError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
        raise ConfigError(f"solver.{name}={value} is not valid; give a finite number above 0")
    return float(value)


SolverType = TypeVar("SolverType", bound=type[Solver])
_REGISTRY: dict[str, type[Solver]] = {}


def register(name: str) -> Callable[[SolverType], SolverType]:
    """Class decorator: make a solver available under ``name``."""

    def add(cls: SolverType) -> SolverType:
        cls.name = name
        _REGISTRY[name] = cls
        return cls

    return add


def solver_names() -> list[str]:
    """Return every registered name, sorted."""
    return sorted(_REGISTRY)


def solvers_for_a_box() -> list[str]:
    """Return the names of the solvers that take moments in a box, an L1 penalty."""
    return [name for name in solver_names() if _REGISTRY[name].takes_box]


def make_solver(name: str, **options: Any) -> Solver:
    """Build the solver registered under ``name``; `ConfigError` for an unknown name or option."""
    if name not in _REGISTRY:
        plugins.load("solver")
    if name not in _REGISTRY:
        raise ConfigError(f"unknown solver {name!r}: {nearest(name, _REGISTRY)}")
    known = set(inspect.signature(_REGISTRY[name]).parameters)
    for option in options:
        if option not in known:
            every = [f"solver.{key}" for key in (*known, "tol", "search_tol", "search_passes", "max_passes", "max_seconds")]
            raise ConfigError(f"unknown key 'solver.{option}' of solver={name}; {nearest(f'solver.{option}', every)}")
    try:
        return _REGISTRY[name](**options)
    except TypeError as error:
        raise ConfigError(f"solver={name}: {error}") from error
