"""The cells of one column of a table as text or as numbers, or one line that says which of them is neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import ConfigError, DataError
from .table import Table, is_number

MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-"}


def listed(values: Sequence[Any]) -> str:
    """Return the first five values as words."""
    return ", ".join(map(str, values[:5])) + (", ..." if len(values) > 5 else "")


def reads_as_numbers(column: pd.Series) -> bool:
    """Return whether all cells of a column of text that hold a value hold a number.

    A column of numbers with a few missing cells arrives as text: it has to fail as missing, not to become categories.
    """
    text = column.astype(str).str.strip()
    rest = text[~text.str.lower().isin(MISSING)]
    return not rest.empty and bool(pd.to_numeric(rest, errors="coerce").notna().all())


def numbers(table: Table, name: str, purpose: str, text_remedy: str, remedy: str) -> NDArray[np.float64]:
    """Return a column as finite numbers or say which cell is none, what it is needed for and what to do."""
    column = table.frame[name]
    if is_number(column):
        values = column.to_numpy(np.float64)
        text = None
    else:
        text = column.astype(str).str.strip()
        values = pd.to_numeric(text, errors="coerce").to_numpy(np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if not bad.size:
        return values
    if text is not None:  # say what text there is before what is missing: it is the column that is wrong then
        for number in bad.tolist():
            cell = text.iloc[number]
            if cell.lower() not in MISSING and np.isnan(values[number]):
                raise DataError(
                    f"{table.path}: column {name!r} holds text ({cell!r} in {table.place(number)}) "
                    f"and cannot be used {purpose}; {text_remedy}"
                )
    row = int(bad[0])
    what = "an infinite value" if np.isinf(values[row]) else "no value"
    count = f" (and {bad.size - 1} more)" if bad.size > 1 else ""
    raise DataError(f"{table.path}: column {name!r} has {what} in {table.place(row)}{count}; {remedy}")


def code_labels(text: pd.Series) -> tuple[NDArray[np.intp], list[Any]]:
    """Return 0-based codes and the sorted labels: whole numbers, numbers or text, whichever all of them are."""
    factor, distinct = pd.factorize(text)
    labels: list[Any] = list(map(str, distinct))
    try:
        numbers = [] if any("_" in label for label in labels) else [float(label) for label in labels]
    except ValueError:
        numbers = []
    if numbers and all(np.isfinite(numbers)) and len(set(numbers)) == len(numbers):
        # 01 and 1 stay two labels: they are equal as numbers, so they are taken as text
        plain = all(number.is_integer() and abs(number) < 2**53 for number in numbers)
        values: list[Any] = [int(number) for number in numbers] if plain else numbers
    else:
        values = labels
    order = sorted(range(len(values)), key=lambda index: values[index])
    rank = np.empty(len(values), dtype=np.intp)
    rank[order] = np.arange(len(values))
    return rank[factor], [values[index] for index in order]


def cost_columns(options: Mapping[str, Any]) -> list[str]:
    """Return the columns of what predictions cost; none where rows have labels.

    Raises
    ------
    ConfigError
        No list of at least two names, or an option beside it that is about labels.
    """
    costs = options.get("costs")
    if costs is None:
        return []
    if isinstance(costs, str) or not isinstance(costs, (list, tuple)) or len({str(name) for name in costs}) != len(costs) or len(costs) < 2:
        raise ConfigError(f"dataset.costs={costs} must list at least two columns, one for each prediction, each once")
    for key in ("order", "edges", "n_classes", "hierarchy", "label_separator"):
        if options.get(key) is not None:
            raise ConfigError(f"dataset.{key} is about labels; with dataset.costs the columns of costs are the classes: leave it out")
    if options.get("cut", "none") != "none":
        raise ConfigError("dataset.cut is about labels; with dataset.costs the columns of costs are the classes: leave it out")
    return [str(name) for name in costs]
