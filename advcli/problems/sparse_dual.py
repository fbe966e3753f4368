"""Dual points by their supports: of each row the numbers that are not zero, for rows that are read in blocks (`advcli.core.row_blocks`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import compiled, row_blocks
from ..core.typing import Array

Labels = NDArray[Any]

MOST_CLASSES = 2**16 - 1
"""Classes that a dual point by supports counts."""


class Supports:
    """A dual point R (n, k) of rows that sum to zero: of each row the numbers that are not 0, beside that of the row's label.

    Parameters
    ----------
    y : ndarray (n,)
        Labels as codes.
    k : int
    rows : int
        Of a block.
    """

    def __init__(self, y: Labels, k: int, rows: int) -> None:
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

    def _blocks(self, part: slice) -> Iterator[tuple[int, slice]]:
        for first in range(part.start, part.stop, self.rows):
            yield first // self.rows, slice(first - part.start, min(first + self.rows, part.stop) - part.start)

    def read(self, part: slice) -> Array:
        """Return the rows of whole blocks, shape (m, k)."""
        R = np.empty((part.stop - part.start, self.k))
        for block, rows in self._blocks(part):
            self.store.read(block, self.y, R[rows])
        return R

    def write(self, part: slice, R: Array) -> None:
        """Keep the rows of whole blocks."""
        for block, rows in self._blocks(part):
            self.store.write(block, self.y, np.ascontiguousarray(R[rows]))

    def parts(self) -> Iterator[slice]:
        """Yield the rows in their order, by whole blocks."""
        step = max(row_blocks.READ // (8 * self.k * self.rows), 1) * self.rows
        for first in range(0, len(self.y), step):
            yield slice(first, min(first + step, len(self.y)))

    def empty(self) -> Supports:
        """Return the point R = 0."""
        return Supports(self.y, self.k, self.rows)

    def scaled(self, factor: float) -> Supports:
        """Return R times a factor."""
        found = self.empty()
        for part in self.parts():
            found.write(part, self.read(part) * factor)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Return the entries as arrays, which do not depend on the instruction set."""
        found: list[tuple[Any, ...]] = []
        for part in self.parts():
            R = self.read(part)
            R[np.arange(len(R)), self.y[part]] = 0.0
            row, label = np.nonzero(R)
            found.append((row + part.start, label.astype(np.uint16), R[row, label]))
        row, label, value = (np.concatenate(each) for each in zip(*found, strict=True))
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
