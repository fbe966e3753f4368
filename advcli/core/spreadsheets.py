"""CSV files for people: a text cell that a spreadsheet would compute as a formula gets an apostrophe before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = ("=", "+", "-", "@")


def as_text(value: Any) -> Any:
    """Return a cell with an apostrophe before a text that begins as a formula does; numbers, also as texts, and single signs stay."""
    if not isinstance(value, str) or len(value) < 2 or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def frame_as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose headings, row names and text cells are `as_text`."""
    table = frame.copy(deep=False)
    for column, kind in enumerate(frame.dtypes):
        if kind.kind in "OUS" or kind.name in ("str", "string", "category"):
            table.isetitem(column, [as_text(value) for value in frame.iloc[:, column].tolist()])
    table.columns = [as_text(name) for name in frame.columns]
    table.index = frame.index.map(as_text)
    return table
