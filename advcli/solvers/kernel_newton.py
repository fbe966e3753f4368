"""Semismooth Newton with a kernel: K = L L' makes rows of L explicit features, on which `newton` solves the same problem.

The factor stops at the numerical rank of K, so that smooth kernels give few columns. The coefficients over the training rows follow
from its parameters by a triangular solve on the pivot rows; the certificate is computed with K itself.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ..compiled import kernels
from ..features.base import KernelMap
from ..problem import Array, Problem, Solution
from .base import Limits, Solver, register
from .kernel_dual import KernelDualSolver
from .newton import NewtonSolver

MAX_ROWS = 2500  # beyond, factorisations of n^3 operations cost more than the block method


@register("kernel_newton")
class KernelNewtonSolver(Solver):
    """Semismooth Newton proximal point on a factor of K; up to some thousand rows, any C."""

    def lacks(self, problem: Problem) -> str | None:
        """Kernel features and few enough rows; free thresholds as in `newton`."""
        if not isinstance(problem.features, KernelMap):
            return "kernel features (rbf, poly or precomputed)"
        if len(problem.y) > MAX_ROWS:
            return f"at most {MAX_ROWS} rows (here {len(problem.y)})"
        if not problem.features.whole:
            return "a kernel matrix that fits in features.memory_mb"
        if problem.features.regularised is not None and not problem.loss.simplex:
            return "a loss whose dual variables are distributions when some parameters are free"
        return None

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the coefficients of the best primal value and the dual point with the best dual value seen."""
        started = time.perf_counter()
        features, k = problem.features, problem.loss.n_classes
        assert isinstance(features, KernelMap)
        explicit = replace(problem, features=features.explicit())
        if start is not None and start.R is not None and start.R.shape == (len(problem.y), k) and start.theta.shape == features.shape:
            start = replace(start, theta=features.to_explicit(start.theta))
        else:
            start = None
        rest = replace(limits, max_seconds=limits.max_seconds - (time.perf_counter() - started))
        found = NewtonSolver().solve(explicit, rest, start, seed)
        assert found.R is not None
        theta = features.from_explicit(found.theta)
        spanned = problem.parameters(found.R)
        if features.regularised is not None:
            spanned += theta * (1.0 - features.regularised)
        # beside rounding in the triangular solve both are the optimum; a certificate wants the better
        if not problem.primal(theta) <= problem.primal(spanned):
            theta = spanned
        memory = {**found.memory, "support": int(found.R.any(axis=1).sum())}
        return replace(found, theta=theta, solver=self.name, seconds=time.perf_counter() - started, memory=memory)


_FIRST_PASSES = 60.0  # of the block method, before anything is known about the support
_MOST_PASSES = 1500.0  # early in a fit the free variables are too many to foresee what Newton will cost


def block_then_newton(problem: Problem, limits: Limits, start: Solution | None, seed: int) -> Solution:
    """Take the block method, which wins on nearly separable data, until it has cost about as much as Newton would; then Newton."""
    block, newton = KernelDualSolver(), KernelNewtonSolver()
    if newton.lacks(problem) is not None:
        return block.solve(problem, limits, start, seed)
    done = block.solve(problem, replace(limits, max_passes=min(_FIRST_PASSES, limits.max_passes)), start, seed)
    assert done.R is not None
    for solver, passes in ((block, block_passes(problem, done.R) - _FIRST_PASSES), (newton, limits.max_passes)):
        left = min(passes, limits.max_passes - done.passes)
        if done.status != "max_passes" or done.passes >= limits.max_passes:
            break
        if left <= 0:
            continue
        if start is not None and "c" in start.memory:
            done.memory["c"] = start.memory["c"]  # the proximal weight of the previous fit on the path still fits
        more = solver.solve(problem, replace(limits, max_passes=left, max_seconds=limits.max_seconds - done.seconds), done, seed)
        name = done.solver if solver is block else f"{done.solver}+{more.solver}"
        done = replace(more, passes=done.passes + more.passes, seconds=done.seconds + more.seconds, solver=name)
    return done


def block_passes(problem: Problem, R: Array) -> float:
    """Return how many passes of the block method over the rows cost about as much as Newton steps from the dual point R (n, k).

    Newton factorises a matrix as large as the number of free dual variables, some 40 times; a pass touches as many scores per row as there
    are support vectors. Constants measured on one core; counts, not clocks, so that the choice does not depend on the machine's load.
    """
    n = len(R)
    F = problem.scaled(problem.features.scores(problem.parameters(R)))
    _, face, _ = kernels.face(problem.loss.family, F, R, problem.y, max(1.0, 10.0 * problem.C))
    free = len(kernels.tangents(problem.loss.family, face, np.zeros(n, dtype=bool))[1])
    newton = 40 * (5e-4 + free**3 / 3 / 1.5e10)
    return min(_MOST_PASSES, newton / (n * (2e-7 + 1e-9 * int(np.count_nonzero(R.any(axis=1))))))
