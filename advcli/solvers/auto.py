"""solver=auto: the block method first, semismooth Newton when the block method would crawl."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..problem import Problem, Solution
from .base import Limits, Solver, register
from .box import BoxSolver
from .dual import DualSolver
from .kernel_dual import KernelDualSolver
from .kernel_newton import block_then_newton
from .newton import NewtonSolver

# The block method gets as many passes as Newton's factorisations would cost: about 60 Cholesky factorisations of p x p against 12 n p
# operations a pass, never fewer than 60 passes - small C and separable data need no more - and never more than 1000.
_FEWEST, _MOST, _FACTORISATIONS = 60.0, 1000.0, 60.0


def first_passes(problem: Problem) -> float:
    """Return the passes that the block method gets before Newton takes over."""
    size = float(np.prod(problem.features.shape))
    return min(max(_FACTORISATIONS * size**2 / (36.0 * len(problem.y)), _FEWEST), _MOST)


@register("auto")
class AutoSolver(Solver):
    """Picks by problem: `box` for moments in a box, `dual` where that is quick or alone, `newton` where the gap has not closed soon."""

    takes_box = True

    def lacks(self, problem: Problem) -> str | None:
        """Whatever all solvers lack."""
        if problem.tolerance is not None:
            return BoxSolver().lacks(problem)
        if KernelDualSolver().lacks(problem) is None:
            return None
        dual, newton = DualSolver().lacks(problem), NewtonSolver().lacks(problem)
        return None if dual is None or newton is None else f"{dual} or {newton}"

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the better solver's solution; seconds and passes count both."""
        if problem.tolerance is not None:
            return BoxSolver().solve(problem, limits, start, seed)
        if KernelDualSolver().lacks(problem) is None:
            return block_then_newton(problem, limits, start, seed)
        dual, newton = DualSolver(), NewtonSolver()
        if newton.lacks(problem) is not None:
            return dual.solve(problem, limits, start, seed)
        if dual.lacks(problem) is not None:
            return newton.solve(problem, limits, start, seed)
        first = dual.solve(problem, replace(limits, max_passes=min(first_passes(problem), limits.max_passes)), start, seed)
        if first.status in ("converged", "max_seconds") or first.passes >= limits.max_passes:
            return first
        # Newton continues from the block method's point; the proximal weight of the previous fit on the path still fits
        if start is not None and "c" in start.memory:
            first.memory["c"] = start.memory["c"]
        rest = replace(limits, max_passes=limits.max_passes - first.passes, max_seconds=limits.max_seconds - first.seconds)
        second = newton.solve(problem, rest, first, seed)
        return replace(second, passes=first.passes + second.passes, seconds=first.seconds + second.seconds, solver="dual+newton")
