"""solver=auto: the block method first, semismooth Newton when the block method would crawl."""

from __future__ import annotations

from dataclasses import replace

from ..problem import Problem, Solution
from .base import Limits, Solver, register
from .dual import DualSolver
from .newton import NewtonSolver

# Passes that the block method gets before Newton takes over: enough for small C and for separable data, where it wins.
_FIRST_PASSES = 60.0


@register("auto")
class AutoSolver(Solver):
    """Picks by problem: `dual` where it is quick or alone, `newton` where the gap has not closed after a few passes."""

    def lacks(self, problem: Problem) -> str | None:
        """Whatever both solvers lack."""
        dual, newton = DualSolver().lacks(problem), NewtonSolver().lacks(problem)
        return None if dual is None or newton is None else f"{dual} or {newton}"

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the better solver's solution; seconds and passes count both."""
        dual, newton = DualSolver(), NewtonSolver()
        if newton.lacks(problem) is not None:
            return dual.solve(problem, limits, start, seed)
        if dual.lacks(problem) is not None:
            return newton.solve(problem, limits, start, seed)
        first = dual.solve(problem, replace(limits, max_passes=min(_FIRST_PASSES, limits.max_passes)), start, seed)
        if first.status == "converged" or first.passes >= limits.max_passes:
            return first
        # Newton continues from the block method's point; the proximal weight of the previous fit on the path still fits
        if start is not None and "c" in start.memory:
            first.memory["c"] = start.memory["c"]
        rest = replace(limits, max_passes=limits.max_passes - first.passes, max_seconds=limits.max_seconds - first.seconds)
        second = newton.solve(problem, rest, first, seed)
        return replace(second, passes=first.passes + second.passes, seconds=first.seconds + second.seconds, solver="dual+newton")
