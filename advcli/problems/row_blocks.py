"""The problem on rows that are read in blocks, and its dual points: of each row the numbers that are not zero.

Both values are computed in float64, from scratch, with one block's scores in memory at a time (`advcli.core.row_blocks`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core import compiled, row_blocks
from ..core.threads import shared
from ..core.typing import Array
from ..losses.base import ROUNDING
from .risk import Problem

Answer = TypeVar("Answer")

_AHEAD = 4  # parts that a thread works on before their answers are taken
MOST_CLASSES = 2**16 - 1  # that a sparse dual point counts


class SparseDual:
    """A dual point R (n, k) of rows that sum to zero: of each row the numbers other than 0, without the label's number.

    ``y`` (n,) are labels as codes; a block has so many ``rows``.
    """

    def __init__(self, y: NDArray[Any], k: int, rows: int) -> None:
        self.y, self.k, self.rows = np.ascontiguousarray(y, dtype=np.int32), k, rows
        self.store = compiled.kernels.ascent_row_blocks.Store(len(y), k, rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (n, k)."""
        return len(self.y), self.k

    @property
    def nbytes(self) -> int:
        """Bytes that it takes, the labels left out."""
        return int(self.store.nbytes)

    def read(self, part: slice) -> Array:
        """Return the rows of whole blocks, shape (m, k)."""
        R = np.empty((part.stop - part.start, self.k))
        self.store.read(part.start // self.rows, self.y, R)
        return R

    def write(self, part: slice, R: Array) -> None:
        """Keep the rows of whole blocks."""
        self.store.write(part.start // self.rows, self.y, np.ascontiguousarray(R))

    def parts(self) -> Iterator[slice]:
        """Yield the rows in their order, by whole blocks."""
        step = max(row_blocks.READ // (8 * self.k * self.rows), 1) * self.rows
        for first in range(0, len(self.y), step):
            yield slice(first, min(first + step, len(self.y)))

    def empty(self) -> SparseDual:
        """Return the point R = 0."""
        return SparseDual(self.y, self.k, self.rows)

    def scaled(self, factor: float) -> SparseDual:
        """Return R times a factor."""
        point = self.empty()
        for part in self.parts():
            point.write(part, self.read(part) * factor)
        return point

    def __getstate__(self) -> dict[str, Any]:
        """Return the entries as arrays, which do not depend on the instruction set."""
        entries: list[tuple[Any, ...]] = []
        for part in self.parts():
            R = self.read(part)
            R[np.arange(len(R)), self.y[part]] = 0.0
            row, label = np.nonzero(R)
            entries.append((row + part.start, label.astype(np.uint16), R[row, label]))
        row, label, value = (np.concatenate(column) for column in zip(*entries, strict=True))
        return {"y": self.y, "k": self.k, "rows": self.rows, "row": row, "label": label, "value": value}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the entries of `__getstate__`."""
        self.__init__(state["y"], state["k"], state["rows"])  # type: ignore[misc]
        for part in self.parts():
            R = np.zeros((part.stop - part.start, self.k))
            held = slice(*np.searchsorted(state["row"], (part.start, part.stop)))
            R[state["row"][held] - part.start, state["label"][held]] = state["value"][held]
            R[np.arange(len(R)), self.y[part]] -= R.sum(axis=1)
            self.write(part, R)


class BlockProblem(Problem):
    """`Problem` on `BlockRows`: parameters are linear in the rows, moments lie in a ball, and dual points are `SparseDual`."""

    def part(self, rows: slice) -> Problem:
        """Return the problem on some of the rows; its n is their share of n."""
        return self.on_rows(rows, self.features.X.dense(rows.start, rows.stop), self.y[rows].astype(np.intp))

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
            part, r = self.part(rows), R.read(rows)
            return part.summed_offset(r), part.dual_gradient(r) * part.n if part.n else 0.0

        offsets, gradient = 0.0, np.zeros(self.features.shape)
        for offset, r in self.over_parts(sums):
            offsets += offset
            gradient += r
        return offsets, gradient / (-self.lam * self.n)

    def nothing(self) -> SparseDual:
        """Return the dual point r = 0."""
        return SparseDual(self.y, self.loss.n_classes, self.features.X.rows_of_a_block)

    def subgradients(self, theta: Array) -> SparseDual:
        """Return the dual point of the r_i that attain the surrogates at the scores of theta."""
        point = self.nothing()
        for rows in self.features.X.parts():
            part = self.part(rows)
            point.write(rows, part.loss.oracle(part.scaled(part.features.scores(theta)), part.y).R)
        return point

    def feasible(self, R: Any) -> tuple[Any, float]:
        """Return a feasible dual point near R, R itself where it is one up to rounding, and how far outside R lies."""

        def outside(rows: slice) -> float:
            with np.errstate(invalid="ignore"):
                return float(self.loss.infeasibility(R.read(rows), self.y[rows].astype(np.intp)).max())

        parts = list(R.parts())
        distances = shared(outside, parts, self.threads if self.loss.compiled else 1)
        beyond = [rows for rows, distance in zip(parts, distances, strict=True) if distance > ROUNDING * self.loss.n_classes]
        point = R.scaled(1.0) if beyond else R
        for rows in beyond:
            point.write(rows, self.loss.project(R.read(rows), self.y[rows].astype(np.intp)))
        return point, float(np.max([0.0, *distances]))
