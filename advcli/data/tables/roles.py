"""The columns that say how rows are split: which rows belong together, and when each was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...core.errors import DataError
from .cells import gaps_in, is_number, numbers_of
from .table import Table

_ISO = "2024-05-31 or 2024-05-31 12:30"


def read_roles(table: Table) -> dict[str, NDArray[Any]]:
    """Return the fields ``group`` and ``time`` of a `Dataset`, as far as the options of a table name such columns."""
    readers = {"group": _groups, "time": _times}
    return {key: read(table, name) for key, read in readers.items() if (name := getattr(table.options, key)) is not None}


def _groups(table: Table, name: str) -> NDArray[np.intp]:
    """Return the number of every row's group (n,), counted from 0 as the names or numbers of the groups rise."""
    column = table.frame[name]
    text = table.text(name)
    table.refuse_where(gaps_in(text), name, "has no group")
    values = column if is_number(column) else text
    return np.unique(values.to_numpy(dtype=None if is_number(column) else object), return_inverse=True)[1].astype(np.intp)


def _times(table: Table, name: str) -> NDArray[Any]:
    """Return the time of every row (n,): numbers as they are, dates as microseconds since 1970."""
    text = table.text(name)
    table.refuse_where(gaps_in(text), name, "has no time")
    numbers, _ = numbers_of(table.frame[name], table.options.notation)
    if np.isfinite(numbers).all():
        return np.asarray(numbers, dtype=np.float64)
    dates = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=True)
    if dates.isna().any():
        # of a column of numbers the cell that is none, of a column of dates the one that is none
        wrong = np.flatnonzero(dates.isna() if dates.notna().any() else ~np.isfinite(numbers))
        raise DataError(
            f"{table.path}: column {name!r} holds {text.iloc[wrong[0]]!r} in {table.place(int(wrong[0]))}, which is no time; write numbers "
            f"or dates such as {_ISO} for dataset.time"
        )
    return dates.dt.tz_localize(None).to_numpy().astype("datetime64[us]").astype(np.int64)
