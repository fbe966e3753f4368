"""Solver of surrogates whose scores have nothing but the rows in common: their hinges are binary problems, which `binary` solves.

A surrogate sum_a |b_a| [1 + sign(b_a) u_a]_+ of numbers u_a = (f_2a - f_(2a+1)) / sqrt(2), b = b(y), is for each a on its own the problem
of `advcli.problems.binary` with labels -sign(b_a) and weights |b_a|: |Theta|^2 is the sum of the |v_a|^2. A cost weight w multiplies the
loss matrix, w S(f/w), and is the margin there.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.typing import Array
from ...features.base import FeatureMap, KernelMap
from ...features.kernels.kernel_map import PrecomputedFeatures
from ...features.linear import LinearFeatures
from ...problems.binary import BinaryProblems
from ...problems.risk import Problem, Solution
from ..base import Limits, Solver
from .binary import solve_binary


class HingesSolver(Solver):
    """Solves one binary problem for every number; what `auto` takes for such surrogates."""

    name = "binary"

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs hinges of numbers of their own, and linear features or a kernel matrix in memory."""
        if problem.loss.hinges(problem.y) is None:
            return "a loss of hinges that have nothing but the rows in common"
        return "moments in a ball" if problem.tolerance is not None else problem.features.lacks_columns()

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return parameters and dual point of all problems, each to the relative gap ``limits.tol``."""
        began = time.perf_counter()
        loss: Any = problem.loss
        signed: Array = loss.hinges(problem.y)
        bound = np.ascontiguousarray(np.abs(signed).T)
        margins = None if problem.cost_weight is None else np.ascontiguousarray(np.broadcast_to(problem.cost_weight, bound.shape))
        labels = np.where(signed.T > 0.0, -1, 1).astype(np.int8)
        problems = BinaryProblems(_columns(problem.features, len(bound)), labels, bound, problem.lam, problem.sample_weight, margins)
        if start is not None and start.R is not None and start.R.shape == (len(problem.y), loss.n_classes):
            t = np.maximum(np.sign(signed) * loss.paired(start.R), 0.0)
            start = replace(start, theta=loss.paired(start.theta), R=t)
        else:
            start = None
        left = Limits(limits.tol, limits.max_passes, limits.max_seconds - (time.perf_counter() - began))
        solution = solve_binary(problems, left, start, seed)
        assert solution.R is not None
        dual_point = loss.unpaired(np.sign(signed) * solution.R)
        memory = {**solution.memory, "support": int(dual_point.any(axis=1).sum())}
        theta, seconds = loss.unpaired(solution.theta), time.perf_counter() - began
        return Solution(theta, dual_point, problem.lam, self.name, solution.passes, seconds, solution.status, memory)


def _columns(features: FeatureMap, count: int) -> FeatureMap:
    """Return the map of the same rows with ``count`` scores."""
    if not isinstance(features, KernelMap):
        return LinearFeatures(features.X, count)
    columns = PrecomputedFeatures(features.matrix, count)
    columns.store.matrix = columns.X  # it is checked where it was made
    return columns
