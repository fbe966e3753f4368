"""Predictions that are kept: with them another metric of a finished cell is computed without a fit.

``predictions/KEY.npz`` holds the predictions of a cell, in NumPy's format, compressed, without pickle. Its entries are the reported fits:
``N`` is the fit of split N, ``N-SHARE`` a fit of its learning curve. Of an entry

    codes_ENTRY          predicted codes of the test rows in the order of the split, (n,), whole numbers of as few bytes as hold them: one
                         byte for each row, two from 256 predictions on
    indices_ENTRY        instead of these, where rows have several labels: the labels of all rows one behind the other, as few bytes each
    lengths_ENTRY        and how many labels each row has, (n,)
    probabilities_ENTRY  the distributions over the k classes, (n, k), eight bytes for each number; where a metric of the cell reads them,
                         or ``record.distributions=true`` asks for them
    relations_ENTRY      the names of the relations of words to their heads, (n,), where they are predicted
    costs_NAME           a loss matrix of fits, (l, k), once for all entries that have it

True labels, sequences, costs of rows and the graph over labels come from the data. The cell's file names the entries and has a SHA-256
of each: an array that is not what was written is not judged.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core.arrays import is_sparse
from ..core.errors import DataError, ResultsError
from ..core.typing import Array
from .arrays import read_arrays, write_arrays
from .folder import ResultsFolder


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """What a fit says of test rows, and what metrics must know of the loss that was fitted."""

    codes: Any  # (n,), those from k on being abstentions; or a csr_array (n, k) of ones where a row gets a label
    probabilities: Array | None = None  # distributions over the classes (n, k), where they are kept
    cost_matrix: Array | None = None  # (l, k)
    abstention_cost: float | None = None
    scores: Array | None = None  # of the classes (n, k), where a metric reads them; no file keeps them
    relations: NDArray[Any] | None = None  # of words to their heads, by name (n,)


def entry(split: int, share: float | None = None) -> str:
    """Return the name of a reported fit: of a split, or of a share of its training rows."""
    return str(split) if share is None else f"{split}-{share!r}"


def _arrays(name: str, predicted: PredictedRows) -> dict[str, Array]:
    """Return what a file holds of an entry, a loss matrix aside."""
    if is_sparse(predicted.codes):
        rows = sparse.csr_array(predicted.codes, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        parts = {"indices": _small(rows.indices), "lengths": _small(np.diff(rows.indptr))}
    else:
        parts = {"codes": _small(predicted.codes)}
    if predicted.probabilities is not None:
        parts["probabilities"] = np.ascontiguousarray(predicted.probabilities, dtype="<f8")
    if predicted.relations is not None:
        parts["relations"] = np.asarray(predicted.relations)
    return {f"{part}_{name}": array for part, array in parts.items()}


def _small(codes: Any) -> Array:
    """Return whole numbers of at least 0 in as few bytes as hold the largest."""
    codes = np.asarray(codes)
    return np.ascontiguousarray(codes, dtype=np.min_scalar_type(int(codes.max(initial=0))).newbyteorder("<"))


def _digest(arrays: Mapping[str, Array]) -> str:
    checksum = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        checksum.update(f"{name} {array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    return checksum.hexdigest()


REMEDY = "advcli drop takes the cell out, and the same command computes it again"


class Predictions:
    """The predictions of one cell: stored ones, which are read when the first is needed, and added ones.

    ``entries`` describes the stored ones as the cell's file does (`about`).
    """

    def __init__(self, folder: ResultsFolder, key: str, entries: Mapping[str, Any] | None = None) -> None:
        self._folder, self._path = folder, folder.predictions_path / f"{key}.npz"
        self._entries: dict[str, Any] = dict(entries or {})
        self._added: dict[str, Array] = {}
        self._read: dict[str, Array] | None = None

    def add(self, name: str, predicted: PredictedRows) -> None:
        """Add the predictions of an entry, or replace them."""
        arrays = _arrays(name, predicted)
        about: dict[str, Any] = {"probabilities": predicted.probabilities is not None, "abstention_cost": predicted.abstention_cost}
        if predicted.cost_matrix is not None:
            matrix = np.ascontiguousarray(predicted.cost_matrix, dtype="<f8")
            about["cost_matrix"] = _digest({"costs": matrix})[:16]
            arrays[f"costs_{about['cost_matrix']}"] = matrix
        self._added |= arrays
        self._entries[name] = about | {"sha256": _digest(arrays)}

    def of(self, name: str, n_labels: int) -> PredictedRows:
        """Return the predictions of an entry; ``n_labels`` is the number of columns where rows have several labels.

        Raises `DataError` where they are not there, or not what was written.
        """
        if self._read is None:
            try:
                self._read = read_arrays(self._path)
            except ResultsError as error:
                raise DataError(f"{error}: metrics cannot be added; {REMEDY}") from None
        about = self._entries.get(name, {})
        matrix = f"costs_{about.get('cost_matrix')}"
        wanted = {f"{part}_{name}" for part in ("codes", "indices", "lengths", "probabilities", "relations")} | {matrix}
        arrays = {part: array for part, array in self._read.items() if part in wanted}
        if not about or _digest(arrays) != about["sha256"]:
            raise DataError(f"{self._path.parent.name}/{self._path.name} is not what was written: metrics cannot be added; {REMEDY}")
        if f"codes_{name}" in arrays:
            codes: Any = arrays[f"codes_{name}"].astype(np.intp)
        else:
            indices, lengths = (arrays[f"{part}_{name}"].astype(np.int64) for part in ("indices", "lengths"))
            starts = np.concatenate([[0], np.cumsum(lengths)])
            codes = sparse.csr_array((np.ones(len(indices), dtype=np.int64), indices, starts), shape=(len(lengths), n_labels))
        of_rows = {part: arrays.get(f"{part}_{name}") for part in ("probabilities", "relations")}
        return PredictedRows(codes, cost_matrix=arrays.get(matrix), abstention_cost=about["abstention_cost"], **of_rows)

    def write(self) -> None:
        """Write the file atomically, before the cell's file that names it; with what was added alone where the older cannot be read."""
        if not self._added:
            return
        arrays: dict[str, Array] = {}
        if len(self._entries) > sum(name.startswith(("codes_", "lengths_")) for name in self._added):
            with contextlib.suppress(ResultsError):
                arrays = self._read or read_arrays(self._path)
        write_arrays(self._path, {**arrays, **self._added}, self._folder.flush_is_due())

    def about(self) -> dict[str, Any]:
        """Return what the cell's file says of the entries: name to SHA-256, whether there are distributions, and facts of the fit."""
        return {"predictions": self._entries}
