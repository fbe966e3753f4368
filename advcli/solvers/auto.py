"""solver=auto: which solver suits a problem, and one line that says which and why.

rows read in blocks    the block method, a batch of blocks at a time
moments in a box       the solver that is made for them
hinges of own numbers  (abstain_ova) the solver of binary problems, one for each
kernel features        the block method on working sets; Newton once its cost is lower, compared again as the support settles
kernel, llw            the block method for a few passes, then splitting on a sketch of K or a factor of K + sigma I: nearly all rows keep
                       free variables
kernel thresholds      Newton on a factor of K; splitting where rows are many
linear, d k <= 6000    the block method; Newton where the gap is still open after the passes that its factorisations would cost:
                       data that are not separable at large C = 1/(lambda n), where the block method's time grows like C
linear, more           the block method alone, sparse or dense: it needs nothing of size (d k)^2
sparse, many classes   the block method on lists of classes, where the surrogate has one
free parameters        Newton (thresholds: d + k - 1 parameters), then the interior point; L-BFGS where they are too many for factorisations
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..core.typing import Array
from ..features.base import KernelMap
from ..problems.risk import Problem, Solution
from ..problems.row_blocks import BlockProblem
from .base import Limits, Solver, register
from .coordinate.class_lists import ListedDualSolver
from .coordinate.dense import DualSolver
from .coordinate.kernel import KernelDualSolver
from .coordinate.row_blocks import BlockDualSolver
from .coordinate.threaded import ThreadedSolver
from .interior_point import InteriorPointSolver
from .kernel_splitting import KernelSplittingSolver
from .lbfgs import LbfgsSolver
from .newton.box import BoxSolver
from .newton.hinges import HingesSolver
from .newton.kernel import KernelNewtonSolver, block_then_newton, step_seconds
from .newton.linear import WARM, NewtonSolver, falls_into_blocks

# The block method gets the passes that cost as much as Newton's factorisations: about 60 of p x p parameters, against 12 n p operations a
# pass. At least 20 passes, and up to 60 where they are about to close the gap, as with small C and separable data; at most 500, since seven
# of ten fits of Table 2 that were open after 500 were open after 1000.
_FEWEST, _ENOUGH, _MOST, _FACTORISATIONS = 20.0, 60.0, 500.0, 60.0
# Free thresholds at strong regularisation: all rows of a class have nearly the same scores and reach their kinks together, which can
# take Newton hundreds of steps (abalone: 13 s). A quick fit of Newton's needs fewer passes than this limit; after it the interior point
# takes a second or two.
_NEWTON_PASSES = 300.0
# Under llw nearly every row keeps free variables. The block method converges within a few passes at small C or where kernel rows hardly
# overlap, else in hundreds; Newton systems are as large as the number of free variables. Splitting suffers from neither, but stalls on the
# last digits.
_SEPARATE_PASSES, _SPLITTING_PASSES = 10.0, 3000.0
# Where few variables stay free after all, Newton takes over once splitting has cost as much as the last Newton steps, about _LAST_STEPS of
# them; an iteration of splitting with K takes about _READ n^2 seconds. What a step costs may take a factor of K to say, as long as about
# _ESTIMATE iterations.
_LAST_STEPS, _READ, _ESTIMATE = 20.0, 2e-9, 10.0
# Classes from which lists of them pay, measured on three sets of sparse rows (docs/notes/kernels.md, section 12).
_MANY = 1000
# A solver that takes over reads its start, and has to make a step beside it.
_LEAST = 10.0


class _SplittingFirst(KernelSplittingSolver):
    """Splitting, until the last Newton steps would cost no more than the iterations made, in units of those with all of K."""

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        rows, n = np.arange(len(problem.y)), len(problem.y)

        def enough(work: float, R: Array) -> bool:
            if work < _ESTIMATE:
                return False
            A = R - R[rows, problem.y][:, None]
            free = int(np.count_nonzero((A > 0.0) & (A < 1.0)))
            return _LAST_STEPS * step_seconds(problem, free) <= work * _READ * n**2

        found = self.minimise(problem, limits, start, enough)
        found.memory["c"] = 1e-3 * problem.C / WARM
        return found


def first_passes(problem: Problem) -> tuple[float, float]:
    """Return the passes after which Newton may take over from the block method and after which it does: `Limits.look` and ``turn``."""
    # (p^3 / 3) / (12 n p); in k blocks, which also need inverses, k d^3 instead of p^3 / 3
    square = 3.0 * problem.features.shape[0] ** 2 if falls_into_blocks(problem) else float(math.prod(problem.features.shape)) ** 2
    passes = min(_FACTORISATIONS * square / (36.0 * len(problem.y)), _MOST)
    return max(passes, _FEWEST), max(passes, _ENOUGH)


def choose(problem: Problem, threads: int | str = 1) -> tuple[list[Solver], str]:
    """Return the solvers to try in order and the reason, from what the problem is: loss, features, n, d, k and sparsity.

    ``threads`` are those of the block method on linear features and of Newton's (`DualSolver`, `NewtonSolver`, `KernelNewtonSolver`).
    """
    features = problem.features
    if isinstance(problem, BlockProblem):
        blocks = BlockDualSolver(threads=threads)
        if blocks.lacks(problem) is not None:
            return [], ""
        shared = f", {count} threads" if (count := blocks.threads_for(problem)) > 1 else ""
        return [blocks], f"{len(problem.y)} rows, read in blocks{shared}"
    if problem.tolerance is not None:
        box = BoxSolver()
        return ([box], "moments in a box") if box.lacks(problem) is None else ([], "")
    rows = f"{len(problem.y)} rows"
    if (hinges := HingesSolver()).lacks(problem) is None:
        return [hinges], f"hinges that share nothing but {rows}"
    if isinstance(features, KernelMap):
        block, second = KernelDualSolver(), KernelNewtonSolver(threads)
        missing, lacking = block.lacks(problem), second.lacks(problem)
        splitting = KernelSplittingSolver()
        if splitting.lacks(problem) is None and (problem.loss.separate or (missing is not None and lacking is not None)):
            last: list[Solver] = [splitting] if lacking is not None else [_SplittingFirst(), second]
            return [*([block] if missing is None else []), *last], f"kernel features, {rows}"
        if missing is None and lacking is None:
            return [block, second], f"kernel features, {rows}"
        if missing is None:
            return [block], f"kernel features, {rows}; kernel_newton needs {lacking}"
        return ([second], f"kernel features, {rows}; kernel_dual needs {missing}") if lacking is None else ([], "")
    size = math.prod(features.shape)
    newton, dual = NewtonSolver(threads), DualSolver(threads)
    facts = f"{size} parameters, {rows}{', sparse' if hasattr(features.X, 'tocsr') else ''}"
    lacking = newton.lacks(problem)
    if problem.loss.n_classes >= _MANY and lacking is not None and (lists := ListedDualSolver(threads)).lacks(problem) is None:
        shared = f", {count} threads" if (count := lists.threads_for(problem)) > 1 else ""
        return [lists], f"{facts}, {problem.loss.n_classes} classes{shared}"
    if features.multiclass_linear and (count := dual.threads_for(problem)) > 1:
        facts += f", {count} threads" + (" for the certificate" if hasattr(features.X, "tocsr") else "")
    if dual.lacks(problem) is None:
        return ([dual, newton], facts) if lacking is None else ([dual], f"{facts}; newton needs {lacking}")
    if lacking is None:
        inner = InteriorPointSolver()
        return [newton] if inner.lacks(problem) is not None else [newton, inner], f"{facts}; dual needs {dual.lacks(problem)}"
    if (other := LbfgsSolver()).lacks(problem) is None:
        return [other], f"{facts}; dual needs {dual.lacks(problem)}, newton needs {lacking}"
    return [], ""


@register("auto")
class AutoSolver(ThreadedSolver):
    """Picks a solver for the problem (`choose`); `Solution.memory["choice"]` names the solvers taken and the reason.

    Parameters
    ----------
    threads : int or "auto"
        Those of the block method on linear features, of Newton's and of their certificates (`DualSolver`, `NewtonSolver`,
        `KernelNewtonSolver`).
    """

    takes_box = takes_blocks = True

    def lacks(self, problem: Problem) -> str | None:
        """Return what the problem lacks for every solver, or None."""
        if problem.tolerance is not None:
            return BoxSolver().lacks(problem)
        if problem.features.multiclass_linear and not isinstance(problem, BlockProblem):
            return None  # the block method takes it, whatever is chosen
        if choose(problem)[0]:
            return None
        features = problem.features
        if isinstance(problem, BlockProblem):
            return BlockDualSolver().lacks(problem)
        if not isinstance(features, KernelMap):
            return LbfgsSolver().lacks(problem)
        return KernelDualSolver().lacks(problem) if features.regularised is None else KernelNewtonSolver().lacks(problem)

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the last solver's solution; seconds and passes count all that ran."""
        solvers, reason = choose(problem, self.threads)
        first = solvers[0]
        if len(solvers) == 1:
            found = first.solve(problem, limits, start, seed)
            return _said(found, f"{first.name}: {reason}")
        if splitting := [solver for solver in solvers if isinstance(solver, KernelSplittingSolver)]:
            splitting[0].reserve = start  # of the path; the block method's point, from which it begins, may be a bad one
            limits_of = {KernelDualSolver.name: _SEPARATE_PASSES, KernelSplittingSolver.name: _SPLITTING_PASSES}
            turns = [(solver, limits_of.get(solver.name, float("inf"))) for solver in solvers[:-1]]
            return self._in_turn(problem, limits, start, seed, [*turns, (solvers[-1], float("inf"))], reason)
        if isinstance(problem.features, KernelMap):
            found = block_then_newton(problem, limits, start, seed, self.threads)
            why = "the block method closed the gap" if "+" not in found.solver else "the block method would take longer than Newton"
            return _said(found, f"{found.solver}: {reason}; {why}")
        if isinstance(first, NewtonSolver):
            # Newton again where rounding ends the interior point
            turns = [(first, _NEWTON_PASSES), (solvers[1], float("inf")), (first, float("inf"))]
            return self._in_turn(problem, limits, start, seed, turns, reason)
        look, allowed = first_passes(problem)
        found = first.solve(problem, replace(limits, turn=allowed, look=look), start, seed)
        if found.status in ("converged", "max_seconds") or limits.max_passes - found.passes < _LEAST:
            ended = "closed the gap" if found.status == "converged" else "reached the limit"
            return _said(found, f"{first.name}: {reason}; the block method {ended} within the {allowed:.0f} passes that newton would cost")
        # Newton continues from the block method's point; the proximal weight of the previous fit on the path still fits
        if start is not None and "c" in start.memory:
            found.memory["c"] = start.memory["c"]
        rest = replace(limits, max_passes=limits.max_passes - found.passes, max_seconds=limits.max_seconds - found.seconds)
        second = solvers[1].solve(problem, rest, found, seed)
        both = replace(second, passes=found.passes + second.passes, seconds=found.seconds + second.seconds, solver="dual+newton")
        return _said(both, f"{both.solver}: {reason}; the gap was open after {found.passes:.0f} passes of the block method")

    @staticmethod
    def _in_turn(
        problem: Problem, limits: Limits, start: Solution | None, seed: int, turns: list[tuple[Solver, float]], reason: str
    ) -> Solution:
        """Run solvers in turn, each with its limit of passes and from the point of the solver before; return the last solution."""
        (solver, allowed), *following = turns
        found = solver.solve(problem, replace(limits, turn=allowed), start, seed)
        names, why = solver.name, f"{solver.name} closed the gap"
        for solver, most in following:
            left = limits.max_passes - found.passes
            if found.status in ("converged", "max_seconds") or left < _LEAST:
                break
            rest = replace(limits, max_passes=left, max_seconds=limits.max_seconds - found.seconds, turn=most)
            then = solver.solve(problem, rest, found, seed)
            found = replace(then, passes=found.passes + then.passes, seconds=found.seconds + then.seconds)
            names, why = f"{names}+{solver.name}", f"the gap was open after {allowed:.0f} passes of {turns[0][0].name}"
        return _said(replace(found, solver=names), f"{names}: {reason}; {why}")


def _said(solution: Solution, choice: str) -> Solution:
    return replace(solution, memory={**solution.memory, "choice": choice})
