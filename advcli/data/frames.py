"""Frames, whoever read them, as a `Table`: the way in for files that are not CSV text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError
from .table import Table, check_names, find_target, is_number

# What columns of numbers become, by the kind of their type: extension types (nullable, Arrow) and narrow ones end here.
_PLAIN = {"i": np.int64, "u": np.uint64, "f": np.float64, "b": np.bool_}


def frame_table(frame: pd.DataFrame, target: str | None, where: str) -> Table:
    """Return a frame as a table: the target as text, other columns as numbers where their type is one, else as text.

    Parameters
    ----------
    frame : DataFrame
        Columns of any type, any index; a cell without a value (None, NaN, NA) is one in the table.
    target : str
        The column of labels; ``label_*`` stands for all columns whose names begin with ``label_``. None: there is none.
    where : str
        What messages call the frame, such as its file.

    Raises
    ------
    DataError
        No rows, columns without a name or with the same, no target column.
    """
    names = [str(name).strip() for name in frame.columns]
    check_names(where, names)
    if not len(frame):
        raise DataError(f"{where} has columns but no rows")
    targets = [] if target is None else find_target(where, target, names)
    several, special = target not in names, set(targets)
    columns = {
        name: _text(column, several) if name in special else _plain(column) for name, (_, column) in zip(names, frame.items(), strict=True)
    }
    for name, column in columns.items():
        if not is_number(column):
            _refuse_broken(column, name, where)
    return Table(where, pd.DataFrame(columns), has_lines=False)


def _refuse_broken(text: pd.Series, name: str, where: str) -> None:
    """Refuse text with half of a surrogate pair, which Python holds and no encoding writes."""
    distinct = text.unique().tolist()
    try:
        "".join(distinct).encode()
    except UnicodeEncodeError:
        row = next(at for at, cell in enumerate(text) if any("\ud800" <= letter <= "\udfff" for letter in cell))
        raise DataError(f"{where}: column {name!r} holds half a letter in row {row + 1}, which no file can hold; correct it") from None


def _written(value: Any) -> str:
    return str(value.tolist() if isinstance(value, np.ndarray) else value)  # str of a long array leaves out its middle


def _plain(column: pd.Series) -> pd.Series:
    if not is_number(column):
        return _text(column, False)
    if column.isna().any():
        return pd.Series(column.to_numpy(np.float64, na_value=np.nan))
    return pd.Series(column.to_numpy(_PLAIN[column.dtype.kind]))


def _text(column: pd.Series, indicator: bool) -> pd.Series:
    """Return a column as text, whole numbers without a fraction; true and false as 1 and 0 where they say which labels a row has."""
    missing = column.isna().to_numpy(bool)
    if is_number(column):
        values = column.to_numpy(np.float64, na_value=0.0)
        whole = np.all(values == np.round(values)) and np.all(np.abs(values) < 2**53)
        if whole and (column.dtype.kind != "b" or indicator):
            column = pd.Series(values.astype(np.int64))
    text = column.astype(object).reset_index(drop=True).map(_written)
    text[missing] = ""
    return text
