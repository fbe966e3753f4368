"""The problem on rows that are read in blocks: both values in float64, from scratch, with one block's scores in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from .losses.base import ROUNDING
from .problem import Array, Problem
from .supports import Supports


class BlockProblem(Problem):
    """`Problem` on `BlockRows`: parameters are linear in the rows, moments lie in a ball, and dual points are `Supports`."""

    def parts(self) -> Iterator[tuple[slice, Problem]]:
        """Yield the problems on the parts of the rows, in their order; a part's n is its share of n."""
        rows = self.features.X
        for part in rows.parts():
            features = self.features.at(rows.dense(part.start, part.stop))
            sample, cost = (None if weights is None else weights[part] for weights in (self.sample_weight, self.cost_weight))
            yield part, Problem(features, self.loss, self.y[part].astype(np.intp), self.lam, sample, cost)

    def empirical_at(self, theta: Array) -> float:
        """Return the mean weighted surrogate at parameters theta."""
        return sum(part.summed_loss(part.features.scores(theta)) for _, part in self.parts()) / self.n

    def dual(self, R: Any) -> float:
        """Return D(r), as in `Problem`."""
        offsets, theta = self._offsets_and_parameters(R)
        return offsets / self.n - self.ridge(theta)

    def parameters(self, R: Any) -> Array:
        """Return theta(r)."""
        return self._offsets_and_parameters(R)[1]

    def _offsets_and_parameters(self, R: Any) -> tuple[float, Array]:
        offsets, gradient = 0.0, np.zeros(self.features.shape)
        for rows, part in self.parts():
            own = R.read(rows)
            offsets += part.summed_offset(own)
            gradient += part.dual_gradient(own) * part.n if part.n else 0.0
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
        for rows, part in self.parts():
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
