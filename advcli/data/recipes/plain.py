"""Text with one row a line, cells between commas or white space, the target last."""

from __future__ import annotations

import csv
from collections.abc import Sequence

from ..catalogue import Upstream
from .rows import TextTable, join


def tables(parts: Sequence[str], upstream: Upstream) -> dict[str, TextTable]:
    """Return the rows of all files, each without the lines of its heading."""
    return {"": join([_table(part, upstream) for part in parts])}


def _table(text: str, upstream: Upstream) -> TextTable:
    lines = [line for line in text.splitlines() if line.strip()][upstream.heading :]
    rows = list(csv.reader(lines)) if "," in lines[0] else [line.split() for line in lines]
    columns = [*upstream.columns, "target"]
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"rows of {sorted({len(row) for row in rows})} cells, expected {len(columns)}")
    return TextTable(columns, [[cell.strip() for cell in row] for row in rows])
