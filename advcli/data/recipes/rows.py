"""What the formats share: a table of texts and the official parts as a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PARTS = {1: ("",), 2: ("train", "test"), 3: ("train", "valid", "test")}
"""The parts that one, two or three public files are."""


@dataclass
class TextTable:
    """A heading and rows of cells, all text."""

    columns: list[str]
    rows: Iterable[Sequence[str]]


def join(tables: Sequence[TextTable], last: int = 1) -> TextTable:
    """Return the official parts below each other, with a column ``split`` before the ``last`` columns where there are several parts."""
    first = tables[0]
    if len(tables) == 1:
        return first
    at = len(first.columns) - last
    rows = [[*row[:at], part, *row[at:]] for part, table in zip(PARTS[len(tables)], tables, strict=True) for row in table.rows]
    return TextTable([*first.columns[:at], "split", *first.columns[at:]], rows)
