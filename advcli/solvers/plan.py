"""Plans: solvers in turn, each with its passes and the reason, as data; `auto` makes them of a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..problems.risk import Problem, Solution
from .base import Limits, Solver

_ENDED = {"converged": "closed the gap", "stalled": "made no more progress"}


class Turn(NamedTuple):
    """One solver of a plan.

    ``hand_over`` is asked after the passes, with the problem, the solution so far and the plan's start: it returns how many more the solver
    gets, 0 to hand over, None to end.
    """

    solver: Solver
    passes: float = float("inf")  # after which the next solver takes over
    reason: str = ""  # why a fit ends here; {ended}: what ended it, {passes}: passes of the solvers before
    look: float = float("inf")  # `Limits.look`
    least: float = 10.0  # passes without which a plan ends: the next solver reads its start, and then has to make a step
    hand_over: Callable[[Problem, Solution, Solution | None], float | None] | None = None


@dataclass(frozen=True)
class Plan:
    """Turns, and the facts that decided; without turns ``reason`` says what the problem lacks."""

    turns: tuple[Turn, ...]
    reason: str

    @property
    def solvers(self) -> list[Solver]:
        """The solvers in turn."""
        return [turn.solver for turn in self.turns]

    def solve(self, problem: Problem, limits: Limits, start: Solution | None, seed: int) -> Solution:
        """Return the last solution; seconds and passes count all solvers that ran, ``memory["choice"]`` names them and the reason."""
        solution, rest, names, why = start, limits, "", ""
        for turn in self.turns:
            before = limits.max_passes - rest.max_passes
            names = f"{names}+{turn.solver.name}" if names else turn.solver.name
            more: float | None = turn.passes
            while more:
                within = Limits(limits.tol, rest.max_passes, rest.max_seconds, more, turn.look)
                stint = turn.solver.solve(problem, within, solution, seed)
                if rest is not limits:
                    assert solution is not None
                    stint.passes, stint.seconds = solution.passes + stint.passes, solution.seconds + stint.seconds
                solution = stint
                left = limits.max_passes - solution.passes
                rest = Limits(limits.tol, left, limits.max_seconds - solution.seconds)
                if solution.status in ("converged", "max_seconds") or left < turn.least:
                    more = None
                else:
                    more = turn.hand_over(problem, solution, start) if turn.hand_over else 0.0
            if more is None:
                break
        assert solution is not None
        if turn.reason:
            why = "; " + turn.reason.format(ended=_ENDED.get(solution.status, "reached the limit"), passes=before)
        solution.solver, solution.memory["choice"] = names, f"{names}: {self.reason}{why}"
        return solution
