"""Proofs that travel: parameters and dual points of the reported fits, kept beside the rows so that anybody can prove their gaps again.

``proofs/KEY.npz`` holds the proofs of a cell, in NumPy's format, compressed, without pickle. For split N

    theta_N      the parameters; with a kernel the coefficients of the training rows, then the thresholds where there are any;
                 of structured labels W' row by row, then the weights that labels share
    r_N          the dual point, shape (n, k), one row for each training row in the order of the split; absent if the solver has none. Of a
                 reduction the dual numbers of its m binary problems, (n, m); of threshold models
                 (`advcli.learners.ordinal`) shares in [0, 1] of the largest values, one for each threshold. Of sets of labels the stored
                 planes, (p, 4): example, weight, set as a number, and the margin of the tangent, or the number of
                 the mixture that it belongs to. Of costs of rows with many different vectors the mixtures of these, (p, 3): row, vector as
                 a number in the order of `numpy.unique`, share; what is left of 1 is the row's own. Of sequences the planes one behind the
                 other on one axis: sequence, weight, margin, and the labels of its rows
    predictor_N  a mixed prediction for each training row, shape (n, l), only for games without a closed form, loss=general and max-min
                 margins: it bounds the surrogate from above, as r bounds the optimum from below. Of the max-min margin of the F-measure the
                 predicted sets, (s, 3): example, share, set as a number
    rejector_theta_N, rejector_r_N  of the second of two stages: its parameters in the shape of theta_N, and for each training row the dual
                 numbers of accepting and rejecting it, and 1 where the first stage is wrong, (n, 3)

    relations_theta_N, relations_r_N  of the relations of words to their heads: parameters (2^bits + 1, R) of the features of arcs with a
                 constant, and the dual point (n, R), R relations in the order of their names

The column ``proof`` of a row is the SHA-256 of these arrays and of the cell's configuration, its number of splits and its metrics left out:
both may grow. It does not depend on how they are compressed.
`advcli.verify` reads them.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import ResultsError
from ..core.typing import Array
from .arrays import read_arrays, write_arrays
from .folder import ResultsFolder
from .tables import canonical_json, lasting

PARTS = ("theta", "r", "predictor", "rejector_theta", "rejector_r", "relations_theta", "relations_r")


def digest(cell: Mapping[str, Any], split: int, arrays: Mapping[str, Array]) -> str:
    """Return the SHA-256 of a split (from 1): of its arrays, by the names of `PARTS`, and of its cell as plain data (`tables.lasting`)."""
    checksum = hashlib.sha256(canonical_json({"cell": cell, "split": split}).encode())
    for part in PARTS:
        if part in arrays:
            array = np.ascontiguousarray(arrays[part], dtype="<f8")
            checksum.update(f"{part} {array.shape} ".encode() + array.tobytes())
    return checksum.hexdigest()


def read(folder: ResultsFolder, key: str) -> dict[int, dict[str, Array]]:
    """Return the arrays of a cell by split and name (`PARTS`); `ResultsError` if the file is missing or damaged."""
    splits: dict[int, dict[str, Array]] = {}
    for name, array in read_arrays(folder.proofs_path / f"{key}.npz").items():
        part, _, number = name.rpartition("_")
        splits.setdefault(int(number), {})[part] = array
    return splits


class Recorder:
    """Keeps the proofs of one cell, which is given as plain data."""

    def __init__(self, folder: ResultsFolder, key: str, cell: Mapping[str, Any]) -> None:
        self.cell = lasting(cell)
        self.arrays: dict[str, Array] = {}
        self._path = folder.proofs_path / f"{key}.npz"

    def has(self, stored: Mapping[str, Any]) -> bool:
        """Tell whether a stored cell (`ResultsFolder.read_cell`) was computed with its proofs, and these are there."""
        needed = any(row.get("proof") for row in stored["rows"])
        return bool(stored["about"].get("proofs")) and (not needed or self._path.is_file())

    def resume(self) -> None:
        """Take the proofs of the splits that are there, as others are added; without their file those alone are kept."""
        with contextlib.suppress(ResultsError):
            self.arrays = read_arrays(self._path)

    def keep(self, split: int, estimator: Any, X: Any, codes: Any, weight: Array | None) -> dict[str, str]:
        """Keep the proof of an estimator fitted to X (n, d), codes and weight (n,); return its column, empty for a learner without one."""
        arrays = estimator.proof(X, codes, weight)
        if not arrays:
            return {}
        arrays = {name: np.asarray(array) + 0.0 for name, array in arrays.items()}  # + 0.0: no -0.0, which compresses badly
        self.arrays |= {f"{name}_{split}": array for name, array in arrays.items()}
        return {"proof": digest(self.cell, split, arrays)}

    def write(self) -> dict[str, bool]:
        """Write the file atomically, if there is anything to keep; return what the cell's file says about it."""
        if self.arrays:
            write_arrays(self._path, self.arrays)
        return {"proofs": True}
