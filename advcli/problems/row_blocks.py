"""The problem on rows that are read in blocks: both values in float64, from scratch, with one block's scores in memory at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ..core.threads import shared
from ..core.typing import Array
from ..losses.base import ROUNDING
from .risk import Problem
from .sparse_dual import Supports

Answer = TypeVar("Answer")

_AHEAD = 4  # parts that a thread works on before their answers are taken


class BlockProblem(Problem):
    """`Problem` on `BlockRows`: parameters are linear in the rows, moments lie in a ball, and dual points are `Supports`."""

    def part(self, rows: slice) -> Problem:
        """Return the problem on some of the rows; its n is their share of n."""
        features = self.features.at(self.features.X.dense(rows.start, rows.stop))
        sample, cost = (None if weights is None else weights[rows] for weights in (self.sample_weight, self.cost_weight))
        return Problem(features, self.loss, self.y[rows].astype(np.intp), self.lam, sample, cost)

    def over_parts(self, work: Callable[[slice], Answer]) -> Iterator[Answer]:
        """Yield what ``work`` gives for the parts of the rows, in their order; the problem's threads take one part each."""
        threads = self.threads if self.loss.compiled else 1
        parts = self.features.X.parts()
        while some := list(itertools.islice(parts, _AHEAD * threads)):  # answers take memory
            yield from shared(work, some, threads)

    def empirical_at(self, theta: Array) -> float:
        """Return the mean weighted surrogate at parameters theta."""

        def loss(rows: slice) -> float:
            part = self.part(rows)
            return part.summed_loss(part.features.scores(theta))

        return sum(self.over_parts(loss)) / self.n

    def dual(self, R: Any) -> float:
        """Return D(r), as in `Problem`."""
        offsets, theta = self._offsets_and_parameters(R)
        return offsets / self.n - self.ridge(theta)

    def parameters(self, R: Any) -> Array:
        """Return theta(r)."""
        return self._offsets_and_parameters(R)[1]

    def _offsets_and_parameters(self, R: Any) -> tuple[float, Array]:
        def sums(rows: slice) -> tuple[float, Array | float]:
            part, own = self.part(rows), R.read(rows)
            return part.summed_offset(own), part.dual_gradient(own) * part.n if part.n else 0.0

        offsets, gradient = 0.0, np.zeros(self.features.shape)
        for offset, own in self.over_parts(sums):
            offsets += offset
            gradient += own
        return offsets, gradient / (-self.lam * self.n)

    @cached_property
    def unit(self) -> float:
        """As in `Problem`."""
        gap = self.primal(np.zeros(self.features.shape)) - self.dual(self.nothing())
        return gap if gap > 0.0 else 1.0

    def nothing(self) -> Supports:
        """Return the dual point r = 0."""
        return Supports(self.y, self.loss.n_classes, self.features.X.rows_of_a_block)

    def subgradients(self, theta: Array) -> Supports:
        """Return the dual point of the r_i that attain the surrogates at the scores of theta."""
        found = self.nothing()
        for rows in self.features.X.parts():
            part = self.part(rows)
            found.write(rows, part.loss.oracle(part.scaled(part.features.scores(theta)), part.y).R)
        return found

    def feasible(self, R: Any) -> tuple[Any, float]:
        """Return a feasible dual point near R, R itself where it is one up to rounding, and how far outside R lies."""
        point, found = R, [0.0]
        for rows in R.parts():
            own, y = R.read(rows), self.y[rows].astype(np.intp)
            with np.errstate(invalid="ignore"):
                found.append(float(self.loss.infeasibility(own, y).max()))
            if found[-1] > ROUNDING * self.loss.n_classes:
                if point is R:
                    point = R.scaled(1.0)
                point.write(rows, self.loss.project(own, y))
        return point, float(np.max(found))
