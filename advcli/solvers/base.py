"""Solvers: one file per algorithm. A solver sees a `Problem` only, says what it needs, and returns a `Solution` that others certify."""

from __future__ import annotations

import functools
import inspect
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..core import plugins
from ..core.checks import POSITIVE, at_least, refuse
from ..core.errors import ConfigError, UnknownNameError, nearest
from ..core.registry import Registry
from ..core.typing import Array
from ..problems.risk import Problem, Solution


@dataclass(frozen=True)
class Limits:
    """When to stop: the relative gap wanted, and what may be spent on it.

    Examples
    --------
    >>> from advcli.solvers import Limits
    >>> Limits(tol=1e-6, max_passes=100).max_passes
    100
    """

    tol: float = 1e-3  # the relative gap
    max_passes: float = 100_000.0  # never exceeded, at least 1: no work begins that they leave no room for
    max_seconds: float = float("inf")  # after which no further work begins; one factorisation or a few passes under way are ended
    turn: float = float("inf")  # passes after which another solver takes over; a round under way may exceed them
    look: float = float("inf")  # passes after which it may already, where the fall of the gap says that the turn will not be enough

    def spent(self, passes: float, started: float) -> str:
        """Return the limit that leaves no room for work up to so many passes, at a start by `time.perf_counter`; empty if there is some."""
        if passes > self.max_passes:
            return "max_passes"
        return "max_seconds" if time.perf_counter() - started > self.max_seconds else ""


class Solver(ABC):
    """An algorithm for `Problem`; options come from its configuration file.

    Examples
    --------
    >>> from advcli.solvers import make_solver
    >>> solver = make_solver("newton")
    >>> solver.takes_box, solver.takes_blocks
    (False, False)
    """

    name: ClassVar[str]
    takes_box: ClassVar[bool] = False  # whether it can solve problems with a tolerance, an L1 penalty
    takes_blocks: ClassVar[bool] = False  # whether it can solve a `BlockProblem`, rows that are read in blocks
    takes_smooth: ClassVar[bool] = False  # whether it can solve problems of smooth surrogates, which have no block step
    comparison: ClassVar[bool] = False  # whether it exists for comparison alone; `auto` never takes it
    precision: ClassVar[float] = 0.0  # relative gap below which the solver takes too long to be asked for it; 0: any tolerance

    @abstractmethod
    def lacks(self, problem: Problem) -> str | None:
        """Return what ``problem`` lacks for this solver in words, or None when it can be solved."""

    @abstractmethod
    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the iterate at the first certified gap below ``limits.tol`` or at a limit."""


def refuse_answer(solver: Solver, problem: Problem, answer: Any) -> None:
    """Refuse what a solver from outside this package has returned, unless it is a `Solution` of the problem's shapes."""
    chosen = type(solver)
    if chosen.__module__.startswith(__name__.partition(".")[0] + "."):
        return
    shape = (len(problem.y), problem.loss.n_classes)
    if not isinstance(answer, Solution):
        wrong = f"a {type(answer).__name__}, not an advcli.problems.risk.Solution"
    elif np.shape(answer.theta) != (wanted := np.shape(problem.parameters(np.zeros(shape)))):
        wrong = f"theta of shape {np.shape(answer.theta)}, not {wanted}"
    elif answer.R is not None and getattr(answer.R, "shape", shape) != shape:
        wrong = f"R of shape {answer.R.shape}, not {shape}"
    else:
        return
    raise ConfigError(f"solver={solver.name} returned {wrong}{plugins.defined_at(chosen.solve)}")


def warm_start(problem: Problem, start: Solution | None) -> tuple[Array, float]:
    """Return a feasible dual point (n, k) for ``problem`` and the factor that its r was scaled by.

    From a solution at another lambda two candidates exist: keep r (right when P/C has settled: data that are not separable), or scale r so
    that theta(r) stays (right for separable data, only towards smaller lambda). The one with the larger dual value wins
    (docs/notes/large-c.md, section 7; each rule alone is bad somewhere).
    """
    if start is None or start.R is None or start.R.shape != (len(problem.y), problem.loss.n_classes):
        return np.zeros((len(problem.y), problem.loss.n_classes)), 1.0
    if not problem.lam > 0:  # moments in a box
        return start.R, 1.0
    factor = problem.lam / start.lam
    if factor < 1.0 and problem.dual(start.R * factor) > problem.dual(start.R):
        return start.R * factor, factor
    return start.R, 1.0


_WHOLE = at_least(1)


def positive_option(name: str, value: Any) -> float:
    """Return a solver's option as a finite number above 0, or raise `ConfigError`."""
    refuse(f"solver.{name}", value, POSITIVE)
    return float(value)


def whole_option(name: str, value: Any, or_null: bool = False) -> int:
    """Return a solver's option as a whole number of at least 1, or raise `ConfigError`."""
    if not _WHOLE["valid"](value):
        refuse(f"solver.{name}", value, _WHOLE, f"{_WHOLE['wanted']}{', or null' if or_null else ''}")
    return int(value)


registry: Registry[type[Solver]] = Registry("solver", "solver", __package__)
register = registry.register


def solver_names() -> list[str]:
    """Return every registered name, sorted."""
    return list(registry)


def solvers_for_a_box() -> list[str]:
    """Return the names of the solvers that take moments in a box, an L1 penalty, without those for comparison."""
    return [name for name in solver_names() if registry.get(name).takes_box and not registry.get(name).comparison]


@functools.cache
def _options(chosen: type[Solver]) -> tuple[str, ...]:
    """Return the names of a solver's options; asking for them takes longer than a small fit."""
    return tuple(inspect.signature(chosen).parameters)


def make_solver(name: str, **options: Any) -> Solver:
    """Build the solver registered under ``name``; `ConfigError` for an unknown name or option."""
    chosen = registry.get(name)
    names = _options(chosen)
    for option in options:
        if option not in names:
            every = [f"solver.{key}" for key in (*names, "tol", "search_tol", "search_passes", "max_passes", "max_seconds")]
            raise UnknownNameError(f"unknown key 'solver.{option}' of solver={name}; {nearest(f'solver.{option}', every)}")
    try:
        return chosen(**options)
    except TypeError as error:
        raise ConfigError(f"solver={name}: {error}{plugins.defined_at(chosen)}") from error
