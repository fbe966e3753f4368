"""Rows that are read in blocks: maps of files and float32 arrays, standardised as they are read, of which nothing is copied as a whole.

Converting float32 to float64 is exact, so certificates hold for the stored numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .typing import Array

Labels = NDArray[Any]

LARGEST_COPY = 2**28
"""Bytes of an array in float64 up to which rows are copied: from here on maps of files and float32 arrays are read in blocks."""

READ = 2**22  # bytes in float64 of what is read at once in Python
_BLOCK = 2**16  # bytes of a block where it is stored: what a system reads of a map at once
_FEWEST_ROWS, _MOST_ROWS = 16, 1024  # of a block
_LABELS = 2**18  # that are coded at a time


class BlockRows:
    """Rows X (n, d) that stay where they are and are read in blocks of neighbours, in double precision.

    ``stored`` (rows, p) is an array, or the map of a file, of float32 or float64 (`can_be_read`, else `DataError`) that does not change
    while it is in use; row i lies at ``at[i]``. A number x of column j stands for (x - mean_j) inverse_j + shift_j. ``constant`` appends a
    column of ones.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.core.row_blocks import BlockRows
    >>> np.save("X.npy", np.arange(12.0).reshape(4, 3))
    >>> rows = BlockRows(np.load("X.npy", mmap_mode="r"))
    >>> rows.shape
    (4, 3)
    """

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(
        self,
        stored: Any,
        at: NDArray[np.int64] | None = None,
        mean: Array | None = None,
        inverse: Array | None = None,
        shift: Array | None = None,
        constant: bool = False,
    ) -> None:
        if not can_be_read(stored):
            raise DataError(
                "rows that are read in blocks must be an array of two dimensions of float32 or float64, row after row (order C); "
                "save it with numpy.save(FILE, numpy.ascontiguousarray(X, dtype=numpy.float32))"
            )
        p = stored.shape[1]
        self.stored, self.at, self.constant = stored, at, constant
        self.mean = np.zeros(p) if mean is None else mean
        self.inverse = np.ones(p) if inverse is None else inverse
        self.shift = np.zeros(p) if shift is None else shift

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (n, d), the constant counted."""
        n = self.stored.shape[0] if self.at is None else len(self.at)
        return int(n), int(self.stored.shape[1]) + self.constant

    def __len__(self) -> int:
        """Return n."""
        return self.shape[0]

    def __repr__(self) -> str:
        """Return the shape and what is stored."""
        kind = "a map" if isinstance(self.stored, np.memmap) else "an array"
        return f"BlockRows({self.shape[0]} x {self.shape[1]}, {kind} of {self.stored.dtype})"

    def __getitem__(self, rows: Any) -> Any:
        """Return rows as `BlockRows`: a slice, a mask, or positions."""
        if isinstance(rows, slice) and rows == slice(None):
            return self
        lies = np.arange(self.stored.shape[0]) if self.at is None else self.at
        return BlockRows(self.stored, np.ascontiguousarray(lies[rows], dtype=np.int64), self.mean, self.inverse, self.shift, self.constant)

    def raw(self, first: int, last: int) -> Array:
        """Return rows first..last - 1 in float64 as they are stored, shape (last - first, p)."""
        rows = self.stored[first:last] if self.at is None else self.stored[self.at[first:last]]
        return np.asarray(rows, dtype=np.float64)

    def dense(self, first: int, last: int) -> Array:
        """Return rows first..last - 1 of X, C-contiguous."""
        from .compiled import kernels  # here: proofs of other rows run without compiled code

        X = np.empty((last - first, self.shape[1]))
        if last > first:
            at = np.empty(0, dtype=np.int64) if self.at is None else self.at[first:last]
            rows = [*by_precision(self.stored[first:last] if self.at is None else self.stored), at]
            about = (self.mean, self.inverse, self.shift)
            kernels.scores.standardised(*rows, last - first, self.stored.shape[1], self.constant, *about, X)
        return X

    @property
    def rows_of_a_block(self) -> int:
        """Neighbours that are read together, and whose dual numbers are kept together."""
        row = self.stored.itemsize * self.stored.shape[1]
        return int(min(max(_BLOCK // row, _FEWEST_ROWS), _MOST_ROWS))

    def parts(self) -> Iterator[slice]:
        """Yield the rows in their order, by whole blocks, as many as are worth a call."""
        n, rows = self.shape[0], self.rows_of_a_block
        step = max(READ // (8 * self.shape[1] * rows), 1) * rows
        for first in range(0, n, step):
            yield slice(first, min(first + step, n))

    def statistics(self) -> tuple[Array, Array, Array, Array]:
        """Return least and largest values, means and standard deviations (n - 1) of the stored columns (Chan, Golub & LeVeque 1979)."""
        n, p = 0, self.stored.shape[1]
        low, high, mean, squares = np.full(p, np.inf), np.full(p, -np.inf), np.zeros(p), np.zeros(p)
        for part in self.parts():
            X = self.raw(part.start, part.stop)
            low, high = np.minimum(low, X.min(axis=0)), np.maximum(high, X.max(axis=0))
            part_mean, m = X.mean(axis=0), len(X)
            squares += ((X - part_mean) ** 2).sum(axis=0) + (part_mean - mean) ** 2 * (n * m / (n + m))
            mean += (part_mean - mean) * (m / (n + m))
            n += m
        return low, high, mean, np.sqrt(squares / max(n - 1, 1))

    def standardised(self, mean: Array, scale: Array, set_to_one: NDArray[np.bool_]) -> BlockRows:
        """Return the rows less ``mean``, divided by ``scale``, with columns that become 1; of rows as they are stored."""
        inverse = np.where(set_to_one, 0.0, 1.0 / scale)
        return BlockRows(self.stored, self.at, mean, inverse, set_to_one.astype(np.float64), self.constant)

    def with_constant(self) -> BlockRows:
        """Return the rows with a column of ones."""
        return BlockRows(self.stored, self.at, self.mean, self.inverse, self.shift, True)

    def __matmul__(self, theta: Array) -> Array:
        """Return X theta (n, k)."""
        scores = np.empty((self.shape[0], theta.shape[1]))
        for part in self.parts():
            np.matmul(self.dense(part.start, part.stop), theta, out=scores[part])
        return scores

    @property
    def T(self) -> _Transposed:
        """X', for products."""
        return _Transposed(self)


class _Transposed:
    """The columns of `BlockRows`."""

    def __init__(self, rows: BlockRows) -> None:
        self.rows = rows

    def __matmul__(self, R: Array) -> Array:
        total = np.zeros((self.rows.shape[1], R.shape[1]))
        for part in self.rows.parts():
            total += self.rows.dense(part.start, part.stop).T @ R[part]
        return total


def by_precision(stored: NDArray[Any]) -> tuple[NDArray[np.float32], Array]:
    """Return the stored numbers row after row, as compiled loops take them: of single and of double precision, one of which is empty."""
    numbers = stored.reshape(-1)
    return (numbers, np.empty(0)) if numbers.dtype == np.float32 else (np.empty(0, dtype=np.float32), numbers)


def can_be_read(X: Any) -> bool:
    """Return whether an array can be read in blocks: two dimensions, float32 or float64 of this machine, row after row."""
    return (
        isinstance(X, np.ndarray)
        and X.ndim == 2
        and X.dtype in (np.float32, np.float64)
        and bool(X.dtype.isnative and X.flags.c_contiguous and X.flags.aligned)
        and X.shape[1] > 0
    )


def in_blocks(X: Any) -> Any:
    """Return maps of files and float32 arrays of more than `LARGEST_COPY` bytes in float64 as `BlockRows`; others as they are."""
    if can_be_read(X) and 8 * X.size > LARGEST_COPY and (X.dtype == np.float32 or isinstance(X, np.memmap)):
        return BlockRows(X)
    return X


def coded_by_parts(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the labels that occur, sorted, and the positions of y (n,) among them, without sorting all of y at once."""
    parts = [slice(first, first + _LABELS) for first in range(0, len(y), _LABELS)]
    classes = np.unique(np.concatenate([np.unique(y[part]) for part in parts]))
    codes = np.empty(len(y), dtype=np.int32)
    for part in parts:
        codes[part] = np.searchsorted(classes, y[part])
    return classes, codes
