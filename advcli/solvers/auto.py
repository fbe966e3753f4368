"""solver=auto: which solver suits a problem, and one line that says which and why.

a smooth surrogate     (entropy) its own Newton's method; L-BFGS for moments in a box
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

import numpy as np

from ..core.arrays import is_sparse
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
from .newton.kernel import KernelNewtonSolver, newton_after, step_seconds
from .newton.linear import SAMPLED_ROWS, WARM, NewtonSolver, falls_into_blocks
from .newton.smooth import SmoothNewtonSolver
from .plan import Plan, Turn

# Linear features: the block method gets the passes that cost as much as the factorisations of Newton's method, 12 n p operations each.
_FACTORISATIONS = 60.0  # factorisations of p x p systems in a fit of Newton's
_FEWEST = 20.0  # passes before the fall of the gap is looked at
_ENOUGH = 60.0  # passes where the gap is about to close, as with small C and separable data
_WIDE = 64  # examples for each parameter from which Newton's steps, on samples of them, cost so little that both numbers are halved
_MOST = 500.0  # most passes: seven of ten fits of Table 2 that were open after 500 were open after 1000
# Free thresholds at strong regularisation: all rows of a class have nearly the same scores and reach their kinks together, which can take
# Newton's method hundreds of steps (abalone: 13 s). The interior point takes a second or two there.
_NEWTON_PASSES = 300.0  # passes of Newton's method before the interior point, more than a quick fit needs
# Kernels under llw: nearly every row keeps free variables, and Newton systems are as large as their number. The block method ends within a
# few passes at small C or where kernel rows hardly overlap, else after hundreds. Splitting stalls on the last digits alone.
_SEPARATE_PASSES = 10.0  # passes of the block method before splitting
_SPLITTING_PASSES = 3000.0  # passes of splitting before Newton's method
_LAST_STEPS = 20.0  # Newton steps to the end where few variables stay free: it takes over once splitting has cost as much
_READ = 2e-9  # seconds of an iteration of splitting with K, over n^2
_ESTIMATE = 10.0  # iterations of splitting before that estimate, which may take a factor of K
_MANY = 1000  # classes from which lists of them pay, measured on three sets of sparse rows (docs/notes/kernels.md, section 12)
_FIRST_PASSES = 60.0  # passes of the block method with a kernel before the first estimate from the support
_MOST_PASSES = 1500.0  # most passes of the block method with a kernel: a gap open after these stays open for long


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

        solution = self.minimise(problem, limits, start, enough)
        solution.memory["c"] = 1e-3 * problem.C / WARM
        return solution


def first_passes(problem: Problem) -> tuple[float, float]:
    """Return the passes after which Newton may take over from the block method and after which it does: `Limits.look` and ``turn``."""
    # (p^3 / 3) / (12 n p); in k blocks, which also need inverses, k d^3 instead of p^3 / 3
    square = 3.0 * problem.features.shape[0] ** 2 if falls_into_blocks(problem) else float(math.prod(problem.features.shape)) ** 2
    passes = min(_FACTORISATIONS * square / (36.0 * len(problem.y)), _MOST)
    share = 0.5 if len(problem.y) >= max(_WIDE * math.prod(problem.features.shape), SAMPLED_ROWS) else 1.0
    return max(passes, share * _FEWEST), max(passes, share * _ENOUGH)


def choose(problem: Problem, threads: int | str = 1) -> Plan:
    """Return the plan for a problem, from what it is: loss, features, n, d, k and sparsity.

    ``threads`` share the work of `DualSolver`, `NewtonSolver` and `KernelNewtonSolver`.
    """
    if problem.loss.smooth:
        if isinstance(problem, BlockProblem):
            return Plan((), "rows in memory for a smooth surrogate")
        solver = LbfgsSolver() if problem.tolerance is not None else SmoothNewtonSolver()
        lacking = solver.lacks(problem)
        return Plan((), lacking) if lacking else _alone(solver, "a smooth surrogate")
    if isinstance(problem, BlockProblem):
        blocks = BlockDualSolver(threads=threads)
        lacking = blocks.lacks(problem)
        return Plan((), lacking) if lacking else _alone(blocks, f"{len(problem.y)} rows, read in blocks{_shared(blocks, problem)}")
    if problem.tolerance is not None:
        lacking = BoxSolver().lacks(problem)
        return Plan((), lacking) if lacking else _alone(BoxSolver(), "moments in a box")
    if (hinges := HingesSolver()).lacks(problem) is None:
        return _alone(hinges, f"hinges that share nothing but {len(problem.y)} rows")
    return _with_kernel(problem, threads) if isinstance(problem.features, KernelMap) else _with_parameters(problem, threads)


def _alone(solver: Solver, reason: str) -> Plan:
    return Plan((Turn(solver),), reason)


def _shared(solver: ThreadedSolver, problem: Problem) -> str:
    """Return the words for the threads of a fit, none for one thread."""
    return f", {count} threads" if (count := solver.threads_for(problem)) > 1 else ""


def _in_turn(reason: str, first: Turn, *others: Turn) -> Plan:
    """Return the plan that goes on where the gap is open after the passes of the first solver."""
    name = first.solver.name
    why = f"the gap was open after {first.passes:.0f} passes of {name}"
    return Plan((first._replace(reason=f"{name} {{ended}}"), *(turn._replace(reason=why) for turn in others)), reason)


def _with_kernel(problem: Problem, threads: int | str) -> Plan:
    block, newton, splitting = KernelDualSolver(), KernelNewtonSolver(threads), KernelSplittingSolver()
    missing, lacking = block.lacks(problem), newton.lacks(problem)
    facts = f"kernel features, {len(problem.y)} rows"
    if splitting.lacks(problem) is None and (problem.loss.separate or (missing is not None and lacking is not None)):
        last = [Turn(splitting)]
        if lacking is None:
            splitting = _SplittingFirst()
            last = [Turn(splitting, _SPLITTING_PASSES), Turn(newton)]

        def reserved(problem: Problem, solution: Solution, start: Solution | None) -> float:
            splitting.reserve = start  # of the path; the block method's point, from which it begins, may be a bad one
            return 0.0

        first = [] if missing is not None else [Turn(block, _SEPARATE_PASSES, hand_over=reserved)]
        return _alone(splitting, facts) if len(first + last) == 1 else _in_turn(facts, *first, *last)
    if missing is None and lacking is None:
        first_turn = Turn(block, _FIRST_PASSES, "the block method {ended}", least=1.0, hand_over=_block_passes)
        return Plan((first_turn, Turn(newton, reason="the block method would take longer than Newton")), facts)
    if missing is None:
        return _alone(block, f"{facts}; kernel_newton needs {lacking}")
    if lacking is None:
        return _alone(newton, f"{facts}; kernel_dual needs {missing}")
    return Plan((), missing if problem.features.regularised is None else lacking)


def _block_passes(problem: Problem, solution: Solution, start: Solution | None) -> float | None:
    """Return how many passes more the block method with a kernel gets, until its cost is about the cost of Newton steps.

    The support settles meanwhile, and with it the cost of Newton steps.
    """
    if solution.status != "max_passes":
        return None
    assert solution.R is not None
    passes, weight = newton_after(problem, solution.R)
    wanted = min(passes, _MOST_PASSES)
    if solution.passes >= wanted:
        solution.memory["c"] = weight / WARM
        return 0.0
    return min(wanted - solution.passes, solution.passes)


def _with_parameters(problem: Problem, threads: int | str) -> Plan:
    features, k = problem.features, problem.loss.n_classes
    newton, dual, sparse = NewtonSolver(threads), DualSolver(threads), is_sparse(features.X)
    facts = f"{math.prod(features.shape)} parameters, {len(problem.y)} rows{', sparse' if sparse else ''}"
    missing, lacking = dual.lacks(problem), newton.lacks(problem)
    if k >= _MANY and lacking is not None and (lists := ListedDualSolver(threads)).lacks(problem) is None:
        return _alone(lists, f"{facts}, {k} classes{_shared(lists, problem)}")
    if features.multiclass_linear and (shared := _shared(dual, problem)):
        facts += shared + (" for the certificate" if sparse else "")
    if missing is None and lacking is None:
        look, passes = first_passes(problem)
        within = f"the block method {{ended}} within the {passes:.0f} passes that newton would cost"
        after = "the gap was open after {passes:.0f} passes of the block method"
        return Plan((Turn(dual, passes, within, look, hand_over=_last_weight), Turn(newton, reason=after)), facts)
    if missing is None:
        return _alone(dual, f"{facts}; newton needs {lacking}")
    facts += f"; dual needs {missing}"
    if lacking is None:
        inner = InteriorPointSolver()
        if inner.lacks(problem) is not None:
            return _alone(newton, facts)
        # Newton again where rounding ends the interior point
        return _in_turn(facts, Turn(newton, _NEWTON_PASSES), Turn(inner), Turn(newton))
    unfit = LbfgsSolver().lacks(problem)
    return Plan((), unfit) if unfit else _alone(LbfgsSolver(), f"{facts}, newton needs {lacking}")


def _last_weight(problem: Problem, solution: Solution, start: Solution | None) -> float:
    """Hand over to Newton, whose proximal weight of the previous fit on the path still fits."""
    if start is not None and "c" in start.memory:
        solution.memory["c"] = start.memory["c"]
    return 0.0


@register("auto")
class AutoSolver(ThreadedSolver):
    """Picks solvers for the problem (`choose`); `Solution.memory["choice"]` names the solvers taken and the reason.

    ``threads`` share the work of the solvers (`choose`), and of the certificates.
    """

    takes_box = takes_blocks = takes_smooth = True

    def lacks(self, problem: Problem) -> str | None:
        """Return what the problem lacks for every solver, or None."""
        plain = problem.features.multiclass_linear and not problem.loss.smooth
        if plain and problem.tolerance is None and not isinstance(problem, BlockProblem):
            return None  # the block method takes it, whatever is chosen
        plan = choose(problem)
        return None if plan.turns else plan.reason

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the last solver's solution; seconds and passes count all that ran."""
        return choose(problem, self.threads).solve(problem, limits, start, seed)
