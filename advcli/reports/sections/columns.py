"""Tables of a report as declared columns: which entry of a row each shows, and how; one function lays out any of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...metrics import shown_mean
from ..formats.document import ReportTable, TableField

MISSING, BLANK = TableField("-", math.nan, state="missing"), TableField("", math.nan)


def words(value: Any) -> TableField:
    """Return a text."""
    return TableField(str(value))


def number(value: Any, style: str = ".3g") -> TableField:
    """Return a number in a format, a dash for nan."""
    return MISSING if math.isnan(value) else TableField(format(float(value), style), float(value))


def fixed(value: Any) -> TableField:
    """Return a number with two digits after the point."""
    return number(value, ".2f")


def p_value(value: Any) -> TableField:
    """Return a p-value, `< 0.001` where it is smaller."""
    return TableField("< 0.001", float(value)) if value < 0.001 else number(value, ".3f")


def whole(value: Any) -> TableField:
    """Return a whole number."""
    return MISSING if pd.isna(value) else TableField(str(int(value)), float(value))


def alarm(count: Any) -> TableField:
    """Return a count that should be 0."""
    return TableField(str(count), float(count), state="failed" if count else "")


def in_metric(metric: str) -> Callable[[Any], TableField]:
    """Return the maker of fields that show values as the metric shows its means."""
    return lambda value: MISSING if math.isnan(value) else TableField(shown_mean(metric, value), float(value))


def record(row: Mapping[Any, Any]) -> TableField:
    """Return wins, ties and losses; a page sorts by wins minus losses."""
    return TableField(f"{row['wins']}/{row['ties']}/{row['losses']}", float(row["wins"] - row["losses"]))


def itself(row: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the row, for a column that shows several of its entries."""
    return row


@dataclass(frozen=True)
class ReportColumn:
    """A column: its header, how a value becomes a field, and the value of a row (its entry of that name, default the header's)."""

    title: str
    field: Callable[[Any], TableField] = words
    value: str | Callable[[Any], Any] = ""
    shown: bool = True

    def of(self, row: Mapping[Any, Any]) -> TableField:
        """Return the field of a row."""
        return self.field(self.value(row) if callable(self.value) else row[self.value or self.title])


def lay_out(
    name: str,
    caption: str,
    columns: Sequence[ReportColumn],
    rows: Iterable[Mapping[Any, Any]],
    notes: Sequence[str] = (),
    *,
    is_long: bool = False,
) -> ReportTable:
    """Return the table of rows, fit for every format; the first columns of `words` are its text columns."""
    columns = [column for column in columns if column.shown]
    return ReportTable(
        name,
        caption,
        tuple(column.title for column in columns),
        tuple(tuple(column.of(row) for column in columns) for row in rows),
        notes=tuple(notes),
        n_text_columns=sum(1 for _ in itertools.takewhile(lambda column: column.field is words, columns)),
        is_long=is_long,
    )
