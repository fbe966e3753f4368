"""ARFF (https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/), dense or sparse, and tables whose target comes last.

``scipy.io.arff`` reads neither sparse rows nor hierarchical attributes, and gives numbers for text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from ..catalogue import Upstream
from .rows import TextTable, join

_ATTRIBUTE = re.compile(r"""@attribute\s+(?:'([^']*)'|"([^"]*)"|(\S+))\s+(.*)""", re.IGNORECASE)


def tables(parts: Sequence[str], upstream: Upstream) -> dict[str, TextTable]:
    """Return the rows of all files, without rows that miss a value."""
    found = []
    for part in parts:
        names, _, rows = read(part)
        columns = upstream.columns or names[:-1]
        if len(columns) != len(names) - 1:
            raise ValueError(f"{len(names)} attributes, expected {len(columns) + 1}")
        found.append(TextTable([*columns, "target"], [row for row in rows if "?" not in row]))
    return {"": join(found)}


def read(text: str) -> tuple[list[str], list[str], Iterator[list[str]]]:
    """Return names and types of the attributes, and the rows, with ``?`` for a missing value and ``0`` where a sparse row has none."""
    lines = iter(text.splitlines())
    names, types = [], []
    for line in lines:
        word = line.strip().lower()
        if word.startswith("@attribute"):
            match = _ATTRIBUTE.match(line.strip())
            if match is None:
                raise ValueError(f"not an attribute: {line[:60]}")
            names.append((match[1] or match[2] or match[3]).strip())
            types.append(match[4].strip())
        elif word == "@data":
            break
    else:
        raise ValueError("no line @data")
    return names, types, _rows(lines, len(names))


def _rows(lines: Iterator[str], width: int) -> Iterator[list[str]]:
    for line in lines:
        if not line.strip() or line.startswith("%"):
            continue
        if line.startswith("{"):
            row = ["0"] * width
            for pair in filter(None, line.strip("{} ").split(",")):
                place, value = pair.split()
                row[int(place)] = value
        else:
            (cells,) = csv.reader([line.rstrip(", ")], quotechar="'", skipinitialspace=True)
            row = [cell.strip() for cell in cells]
        if len(row) != width:
            raise ValueError(f"a row of {len(row)} values, expected {width}")
        yield row
