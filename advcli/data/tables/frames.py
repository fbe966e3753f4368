"""Frames, whoever read them, as a `Table`: the way in for files that are not CSV text."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...core.errors import DataError
from .cells import cell_text
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
    for name, (_, column) in zip(names, frame.items(), strict=True):
        _refuse_broken(column, name, where)
    targets = [] if target is None else find_target(where, target, names)
    special = set(targets)
    columns = {
        name: cell_text(_typed(column)).reset_index(drop=True) if name in special else _plain(_typed(column))
        for name, (_, column) in zip(names, frame.items(), strict=True)
    }
    return Table(where, pd.DataFrame(columns), has_lines=False)


def _refuse_broken(column: pd.Series, name: str, where: str) -> None:
    """Refuse text with half of a surrogate pair, which Python holds and no encoding writes, nor a column of text by Arrow."""
    cells = [cell if isinstance(cell, str) else "" for cell in column] if column.dtype.kind == "O" else []
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        row = next(at for at, cell in enumerate(cells) if any("\ud800" <= letter <= "\udfff" for letter in cell))
        raise DataError(f"{where}: column {name!r} holds half a letter in row {row + 1}, which no file can hold; correct it") from None


def _plain(column: pd.Series) -> pd.Series:
    if not is_number(column):
        return cell_text(column).reset_index(drop=True)
    if column.isna().any():
        return pd.Series(column.to_numpy(np.float64, na_value=np.nan))
    return pd.Series(column.to_numpy(_PLAIN[column.dtype.kind]))


def _typed(column: pd.Series) -> pd.Series:
    """Return a column of objects that are all numbers, or all true and false, with the type of these; each cell has its own in Excel."""
    if column.dtype != object:
        return column
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind == "decimal":
        return column.astype(np.float64)
    return column.convert_dtypes() if kind in ("integer", "floating", "mixed-integer-float", "boolean") else column
