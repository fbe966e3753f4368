"""Predictions of every row of a file, a part of it in memory at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core.arrays import is_sparse
from ..core.errors import ConfigError, ModelError, refuse_all
from ..core.files import atomic_file
from ..core.spreadsheets import frame_as_text
from ..data.tables.encoding import Fault, refuse_faults
from ..data.tables.table import read_parts
from .model import ABSTAIN, Model, zeros
from .pipeline_steps import Steps

if TYPE_CHECKING:
    import pandas as pd

    from ..data.tables.table import Table

_WHOLE = 2**31  # rows that no file has


@dataclass(frozen=True)
class Predicted:
    """What a file of predictions holds, in words."""

    rows: int  # number of predictions
    abstained: int  # predictions without a class
    ignored: tuple[str, ...]  # columns of the input that the model does not use, such as the target
    rejected: int = 0  # rows that were refused and written elsewhere


_IGNORED = {"unseen": "unseen", "gaps": "gap"}
"""Kinds of faults by what `predict_file` may ignore."""


def _without_gaps(X: Any, model: Model) -> Any:
    """Return features X (n, d) with the training rows' mean for nan, 0 where they are not standardised; for a pipeline as they are."""
    if isinstance(model.standardiser, Steps):  # of a pipeline, which fills gaps or refuses them
        return X
    sparse_rows = is_sparse(X)
    values, columns = (X.data, X.indices) if sparse_rows else (X, slice(None))
    mean = np.zeros(X.shape[1]) if model.standardiser is None else model.standardiser.mean_
    filled = np.where(np.isnan(values), mean[columns], values)
    return sparse.csr_array((filled, X.indices, X.indptr), shape=X.shape) if sparse_rows else filled


def predict_file(
    model: Model,
    source: Path,
    out: Path,
    rows: int = 10_000,
    *,
    ignore: Collection[str] = (),
    rejected: Path | None = None,
    spreadsheets: bool = False,
) -> Predicted:
    """Predict every row of a file, a part of it in memory at a time, and write the predictions in the same order.

    ``source`` is CSV, CSV.gz, parquet, feather or Excel with the columns that the model was fitted on, in any order; the target and columns
    that were left out may be there. ``out`` gets the columns of `Model.table`, and appears whole or not at all. ``rows`` are in memory at a
    time, but all of a model of sequences, as no sequence may be cut. With ``spreadsheets`` texts that look like formulas get an apostrophe.

    ``ignore`` may hold ``unseen``: categories that the model has not seen count as none of its categories, or as a rare one; ``gaps``: a
    cell without a value, which the model does not fill, counts as the mean of the training rows (0 where features are not standardised);
    ``extra``: columns that the training file did not have are left out. ``rejected`` is a CSV file for the rows that are refused: ``row``,
    counted from 1 without the heading, ``reasons``, and their cells; the predictions then have a first column ``row``. Without it a cell
    without a value or with text, or a category that the model has not seen, is a `DataError`, as other columns are.
    """
    if model.encoding is None:
        raise ModelError("this model was saved without a table's columns; load it in Python by advcli.models.load")
    encoding = model.encoding
    if encoding.sequence is not None:
        if rejected is not None:
            raise ConfigError("predict.rejected leaves rows out, and this model predicts whole sequences; correct the rows")
        rows = _WHOLE
    remedy = "free space or choose another FILE.csv"
    with contextlib.ExitStack() as files:
        file = files.enter_context(atomic_file(out, remedy, streams=True))
        aside = None if rejected is None else files.enter_context(atomic_file(rejected, remedy, streams=True))
        writer = _Writer(model, source, frozenset(ignore), file, aside, spreadsheets)
        for table in read_parts(source, rows, separator=encoding.separator, text=encoding.text, encoding=encoding.charset):
            writer.write(table)
    return Predicted(writer.count, writer.abstained, tuple(writer.ignored), writer.rejected)


class _Writer:
    """Predicts a table part by part and writes predictions to ``file``, and rows that are refused to ``aside``, where there is one."""

    def __init__(self, model: Model, source: Path, ignore: frozenset[str], file: Any, aside: Any, spreadsheets: bool) -> None:
        assert model.encoding is not None
        self.model, self.encoding, self.source, self.ignore = model, model.encoding, source, ignore
        self.file, self.aside, self.spreadsheets = file, aside, spreadsheets
        self.count = self.abstained = self.rejected = 0
        self.ignored: list[str] = []
        self._first = True

    def write(self, table: Table) -> None:
        """Predict the rows of a part and write them."""
        if self._first:
            self.ignored = self.encoding.check_columns(self.source, table.names, "extra" in self.ignore)
        cells, faults = self.encoding.cells(table)
        skipped = {_IGNORED.get(kind) for kind in self.ignore}
        good = self._sound(table, [fault for fault in faults if fault.kind not in skipped])
        if good.any() or self._first:
            X = self.encoding.features(cells[good]) if good.any() else zeros(self.model)
            X = _without_gaps(X, self.model) if "gaps" in self.ignore else X
            predictions = self.model.table(X, self.encoding.groups(table))
            predictions = predictions if good.any() else predictions.iloc[:0]
            if self.aside is not None:
                predictions.insert(0, "row", _numbers(table)[good], allow_duplicates=True)
            self._append(self.file, predictions)
            self.count += len(predictions)
            if ABSTAIN in predictions:
                self.abstained += int(predictions[ABSTAIN].sum())
        self._first = False

    def _sound(self, table: Table, faults: Sequence[Fault]) -> NDArray[np.bool_]:
        """Return which rows are predicted; rows with faults are written aside, or raise where no file for them is given."""
        sound = np.ones(len(table.frame), dtype=bool)
        if self.aside is None:
            hints = {kind: f"predict.{key}=ignore, or " for key, kind in _IGNORED.items()}
            hinted = [replace(fault, text=f"{fault.text} ({hints.get(fault.kind, '')}predict.rejected=FILE goes on)") for fault in faults]
            refuse_all(refuse_faults(hinted), str(self.source))
            return sound
        reasons: dict[int, list[str]] = {}
        for fault in faults:
            for row in fault.rows.tolist():
                reasons.setdefault(row, []).append(fault.reason)
        bad = sorted(reasons)
        refused = table.frame.iloc[bad]
        refused.insert(0, "reasons", ["; ".join(reasons[row]) for row in bad], allow_duplicates=True)
        refused.insert(0, "row", _numbers(table)[bad], allow_duplicates=True)
        self._append(self.aside, refused)
        self.rejected += len(bad)
        sound[bad] = False
        return sound

    def _append(self, file: Any, frame: pd.DataFrame) -> None:
        frame = frame_as_text(frame) if self.spreadsheets else frame
        frame.to_csv(file, header=self._first, index=False, lineterminator="\n")


def _numbers(table: Table) -> NDArray[np.intp]:
    """Return the numbers of a part's rows in the file, from 1 without the heading."""
    return table.before + 1 + np.arange(len(table.frame))
