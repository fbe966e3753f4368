"""What the stochastic solvers share: problems bound to the compiled passes of `_ext/stochastic/subgradient.pyx`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.arrays import is_sparse
from ...core.compiled import compiled_rows, kernels
from ...core.errors import UnknownNameError, nearest
from ...core.typing import Array, Labels
from ...features.base import KernelMap
from ...features.threshold import ThresholdFeatures
from ...problems.risk import Problem, Solution
from ..base import Limits, Solver
from ..best import Best
from ..coordinate.threaded import compiled_weights

_LINEAR, _THRESHOLD, _KERNEL = 0, 1, 2


class Passes:
    """A problem in the layout of the compiled passes: flat parameters, padded to whole vectors; the first arguments of every pass."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        features, n, k = problem.features, len(problem.y), problem.loss.n_classes
        self.width = kernels.subgradient.width(k)
        rows: Any = features.X
        self.squares = features.squares
        self.kind = _THRESHOLD if isinstance(features, ThresholdFeatures) else _LINEAR
        if isinstance(features, KernelMap):
            rows, self.kind = features.matrix, _KERNEL
            self.squares = np.ascontiguousarray(rows.diagonal())
        values, columns, start, _, self.rows = compiled_rows(rows)
        self.tolerance = np.empty(0) if problem.tolerance is None else self.flat(problem.tolerance)
        y, weights = np.ascontiguousarray(problem.y, dtype=np.intp), compiled_weights(problem)
        point = (values, columns, start, n, self.rows, y, self.squares, *weights)
        self.arguments = (*kernels.arguments(problem.loss.family), self.kind, *point, problem.n)

    @property
    def largest_squares(self) -> Array:
        """Bounds of |J_i'r|^2 / |r|^2 over r that sum to zero, shape (n,): Frobenius norms of the J_i with their columns centred."""
        k = self.problem.loss.n_classes
        if self.kind == _THRESHOLD:
            return self.squares * (k * (k * k - 1) / 12.0) + (k * k - 1) / 6.0
        return self.squares

    def flat(self, theta: Array) -> Array:
        """Return parameters as the passes take them."""
        return theta.copy() if self.kind == _THRESHOLD else self.padded(theta).ravel()

    def shaped(self, flat: Array) -> Array:
        """Return parameters as the feature map takes them."""
        return flat.copy() if self.kind == _THRESHOLD else self.dual_point(flat.reshape(self.rows, self.width))

    def padded(self, R: Array) -> Array:
        """Return a dual point (n, k), or parameters of k columns, with columns of zeros up to the width."""
        out = np.zeros((len(R), self.width))
        out[:, : R.shape[1]] = R
        return out

    def dual_point(self, R: Array) -> Array:
        """Return a dual point (n, k), or parameters of k columns, without the padding."""
        return np.array(R[:, : self.problem.loss.n_classes], order="C")

    def batch(self, rows: int | None, dense: int) -> int:
        """Return the rows of a step: ``rows``, else ``dense``; for sparse X so many that a step costs as much as reading its rows."""
        if rows is not None:
            return rows
        X = self.problem.features.X
        if not is_sparse(X):
            return dense
        return int(min(max(1.0, X.shape[0] * X.shape[1] / max(X.nnz, 1)), X.shape[0]))


def known_option(name: str, value: str, choices: Sequence[str]) -> str:
    """Return a solver's option that must be one of some names, or raise `ConfigError`."""
    if value not in choices:
        raise UnknownNameError(f"solver.{name}={value!r} is not known: {nearest(str(value), choices)}")
    return value


def lacks_layout(problem: Problem) -> str | None:
    """Return what a problem lacks for compiled passes over explicit parameters, or None."""
    lacking, features = problem.lacks_parameters(), problem.features
    if lacking is None and not features.multiclass_linear and not isinstance(features, ThresholdFeatures):
        return "linear or threshold features"
    return lacking


class Descent(ABC):
    """The state of one stochastic fit: parameters, and the mean of each row's answers, which is a dual point; `run` makes one pass."""

    def __init__(self, passes: Passes, theta: Array) -> None:
        n = len(passes.problem.y)
        self.passes, self.theta = passes, passes.flat(theta)
        self.R, self.counts = np.zeros((n, passes.width)), np.zeros(n, dtype=np.int32)

    @abstractmethod
    def run(self, order: Labels) -> None:
        """Make one pass over the rows in ``order``."""

    def offer(self, best: Best) -> None:
        """Offer the present iterate and the mean answers."""
        best.offer(self.passes.shaped(self.theta), self.passes.dual_point(self.R))


class StochasticSolver(Solver):
    """Passes over the rows in random order until the best points seen close the gap; evaluated after 1, 2, 3, 4, 6, 9, ... passes."""

    comparison = True
    precision: ClassVar[float] = 3e-2  # the gap falls like a power of the passes only
    replacement: bool = False

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs linear or threshold features; with free thresholds, a loss whose dual variables are distributions."""
        return lacks_layout(problem)

    @abstractmethod
    def begin(self, problem: Problem, best: Best, start: Solution | None, random: np.random.Generator) -> Descent:
        """Return the state before the first pass."""

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the best theta and the best dual point that were evaluated."""
        started = time.perf_counter()
        random = np.random.default_rng(seed)
        best = Best(problem, start, limits.max_passes)
        n = len(problem.y)
        descent: Descent | None = None
        made, check, status = 0, 1, ""
        while not best.reached(limits.tol):
            if status := limits.spent(made + best.passes + 2.0, started):  # a pass and the value of one point
                break
            if descent is None:
                descent = self.begin(problem, best, start, random)
            while made < check and not limits.spent(made + best.passes + 2.0, started):
                descent.run(random.integers(n, size=n) if self.replacement else random.permutation(n))
                made += 1
            best.most = limits.max_passes - made
            descent.offer(best)
            check = int(1.4 * check) + 1
        seconds = time.perf_counter() - started
        return Solution(best.theta, best.R, problem.lam, self.name, made + best.passes, seconds, status or "converged")
