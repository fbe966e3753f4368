"""Predictions of every row of a file, a part of it in memory at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..core.errors import ConfigError, ModelError, refuse_all
from ..core.files import atomic_file
from ..core.spreadsheets import frame_as_text
from ..data.tables.encoding import refuse_faults
from ..data.tables.reading import read_parts
from .model import ABSTAIN, Model, zeros
from .pipeline_steps import Steps

_WHOLE = 2**31  # rows that no file has


@dataclass(frozen=True)
class Predicted:
    """What a file of predictions holds, in words.

    Attributes
    ----------
    rows : int
        Number of predictions.
    abstained : int
        Predictions that are no class.
    ignored : tuple of str
        Columns of the input that the model does not use, such as the target.
    rejected : int
        Rows that were refused and written elsewhere.
    """

    rows: int
    abstained: int
    ignored: tuple[str, ...]
    rejected: int = 0


_IGNORED = {"unseen": "unseen", "gaps": "gap"}
"""Kinds of faults by what `predict_file` may ignore."""


def _without_gaps(X: Any, model: Model) -> Any:
    """Return features X (n, d) with the training rows' mean for nan, 0 where they are not standardised; for a pipeline as they are."""
    if isinstance(model.standardiser, Steps):  # of a pipeline, which fills gaps or refuses them
        return X
    sparse_rows = hasattr(X, "indptr")
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

    Parameters
    ----------
    model : Model
        With an encoding.
    source : Path
        CSV, CSV.gz, parquet, feather or Excel with the columns that the model was fitted on, in any order; the target and columns that
        were left out may be there.
    out : Path
        The columns of `Model.table`; appears whole or not at all.
    rows : int
        Rows in memory at a time; a model of sequences takes all, as no sequence may be cut.
    ignore : collection of str
        ``unseen``: categories that the model has not seen count as none of its categories, or as a rare one. ``gaps``: a cell without a
        value, which the model does not fill, counts as the mean of the training rows (0 where features are not standardised). ``extra``:
        columns that the training file did not have are left out.
    rejected : Path, optional
        CSV file for the rows that are refused: ``row``, counted from 1 without the heading, ``reasons``, and their cells. The predictions
        then have a first column ``row``.
    spreadsheets : bool
        Whether texts that look like formulas get an apostrophe (`advcli.core.spreadsheets`).

    Raises
    ------
    DataError
        Other columns; and, without ``rejected``, a cell without a value or with text, a category that the model has not seen.
    """
    if model.encoding is None:
        raise ModelError("this model was saved without a table's columns; load it in Python by advcli.models.load")
    count = abstained = refused = 0
    ignored: list[str] = []
    encoding = model.encoding
    if encoding.sequence is not None:
        if rejected is not None:
            raise ConfigError("predict.rejected leaves rows out, and this model predicts whole sequences; correct the rows")
        rows = _WHOLE
    skipped = {_IGNORED[kind] for kind in ignore if kind in _IGNORED}
    remedy = "free space or choose another FILE.csv"
    with contextlib.ExitStack() as files:
        file = files.enter_context(atomic_file(out, remedy, streams=True))
        aside = None if rejected is None else files.enter_context(atomic_file(rejected, remedy, streams=True))
        first = True
        for table in read_parts(source, rows, separator=encoding.separator, text=encoding.text, encoding=encoding.charset):
            if first:
                ignored = encoding.check_columns(source, list(map(str, table.frame.columns)), "extra" in ignore)
            cells, faults = encoding.cells(table)
            faults = [fault for fault in faults if fault.kind not in skipped]
            numbers = table.before + 1 + np.arange(len(table.frame))
            good = np.ones(len(numbers), dtype=bool)
            if aside is None:
                hints = {kind: f"predict.{key}=ignore, or " for key, kind in _IGNORED.items()}
                hinted = [replace(each, text=f"{each.text} ({hints.get(each.kind, '')}predict.rejected=FILE goes on)") for each in faults]
                refuse_all(refuse_faults(hinted), str(source))
            else:
                reasons: dict[int, list[str]] = {}
                for fault in faults:
                    for row in fault.rows.tolist():
                        reasons.setdefault(row, []).append(fault.reason)
                bad = sorted(reasons)
                good[bad] = False
                told = table.frame.iloc[bad]
                told.insert(0, "reasons", ["; ".join(reasons[row]) for row in bad], allow_duplicates=True)
                told.insert(0, "row", numbers[bad], allow_duplicates=True)
                told = frame_as_text(told) if spreadsheets else told
                told.to_csv(aside, header=first, index=False, lineterminator="\n")
                refused += len(bad)
            if good.any() or first:
                X = encoding.features(cells[good]) if good.any() else zeros(model)
                predictions = model.table(_without_gaps(X, model) if "gaps" in ignore else X, encoding.groups(table))
                predictions = predictions if good.any() else predictions.iloc[:0]
                if aside is not None:
                    predictions.insert(0, "row", numbers[good], allow_duplicates=True)
                shown = frame_as_text(predictions) if spreadsheets else predictions
                shown.to_csv(file, header=first, index=False, lineterminator="\n")
                count += len(predictions)
                if ABSTAIN in predictions:
                    abstained += int(predictions[ABSTAIN].sum())
            first = False
    return Predicted(count, abstained, tuple(ignored), refused)
