"""The cells of one column of a table as text or as numbers, or one line that says which of them is neither."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...core.errors import ConfigError, DataError
from .cells import PLAIN, TRUTHS, Notation, gaps_in, numbers_of
from .table import Table

SUSPECT = "looks like"
"""What notes say of columns that are something else than they are taken for, to be read before any work."""


def listed(values: Sequence[Any]) -> str:
    """Return the first five values as words."""
    return ", ".join(map(str, values[:5])) + (", ..." if len(values) > 5 else "")


def numbers(table: Table, name: str, purpose: str, text_remedy: str, remedy: str, notation: Notation = PLAIN) -> NDArray[np.float64]:
    """Return a column as finite numbers or say which cell is none, what it is needed for and what to do."""
    values, text = numbers_of(table.frame[name], notation)
    bad = np.flatnonzero(~np.isfinite(values))
    if not bad.size:
        return values
    if text is not None:  # say what text there is before what is missing: it is the column that is wrong then
        wrong = np.flatnonzero(np.isnan(values) & ~gaps_in(text))
        if wrong.size:
            number = int(wrong[0])
            raise DataError(
                f"{table.path}: column {name!r} holds text ({text.iloc[number]!r} in {table.place(number)}) "
                f"and cannot be used {purpose}; {text_remedy}"
            )
    row = int(bad[0])
    what = "an infinite value" if np.isinf(values[row]) else "no value"
    count = f" (and {bad.size - 1} more)" if bad.size > 1 else ""
    raise DataError(f"{table.path}: column {name!r} has {what} in {table.place(row)}{count}; {remedy}")


def code_labels(text: pd.Series, notation: Notation = PLAIN) -> tuple[NDArray[np.intp], list[Any]]:
    """Return 0-based codes and the labels, numbers as they rise, else by the alphabet.

    A label is the number that it writes where all labels are whole numbers, or all are numbers, as Python would write them; else all keep
    their writing as text: 01001, 1.50, +1. Numbers of one value (01 and 1) are two labels, in the order of the alphabet.
    """
    factor, distinct = pd.factorize(text)
    labels: list[Any] = list(map(str, distinct))
    found = label_numbers(labels, notation)
    places = labels if found is None or len(set(found)) < len(found) else found
    order = sorted(range(len(labels)), key=lambda index: places[index])
    rank = np.empty(len(labels), dtype=np.intp)
    rank[order] = np.arange(len(labels))
    written = (list(map(kind, found)) for kind in (int, float)) if found is not None else ()
    values: list[Any] = next((each for each in written if list(map(str, each)) == labels), labels)
    return rank[factor], [values[index] for index in order]


def label_numbers(labels: Sequence[Any], notation: Notation = PLAIN) -> list[float] | None:
    """Return the finite numbers that labels are, or write; None where one of them is none."""
    found = notation.numbers(pd.Series([str(label) for label in labels], dtype=object))
    words = any(str(label).lower() in TRUTHS for label in labels)  # names, not 1 and 0
    return None if words or not np.isfinite(found).all() else found.tolist()


def match_labels(given: Sequence[Any], labels: Sequence[Any]) -> list[int | None]:
    """Return the position of each given label among ``labels``: by its writing, else by its number where one label alone has it.

    So the cells of the file that a model was fitted on find their labels, 1 finds 1.0 of another format, and 1.00 finds neither where both
    01 and 1.0 are labels. None: there is no such label.
    """
    exact = {str(label): at for at, label in enumerate(labels)}
    values = _values(list(exact))
    shared = Counter(values)
    numbers = {value: at for at, value in enumerate(values) if value is not None and shared[value] == 1}
    distinct = list(dict.fromkeys(str(label).strip() for label in given))
    found = {label: exact.get(label, numbers.get(value)) for label, value in zip(distinct, _values(distinct), strict=True)}
    return [found[str(label).strip()] for label in given]


def _values(labels: Sequence[str]) -> list[Any]:
    """Return the finite number that each label writes, or which of true and false it is; None where it is neither."""
    found = PLAIN.numbers(pd.Series(list(labels), dtype=object)).tolist()
    return [
        label.lower() if label.lower() in TRUTHS else value if np.isfinite(value) else None
        for label, value in zip(labels, found, strict=True)
    ]


def written_alike(labels: Sequence[Any]) -> list[list[str]]:
    """Return the groups of labels that look like one, written in several ways: 1 and 1.0, yes and Yes."""
    groups: dict[Any, list[str]] = {}
    texts = list(map(str, labels))
    for label, value in zip(texts, _values(texts), strict=True):
        key = " ".join(unicodedata.normalize("NFKC", label).casefold().split()) if value is None else value
        groups.setdefault(key, []).append(label)
    return [group for group in groups.values() if len(group) > 1]


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
