"""Tables whose rows are the elements of sequences, such as the tokens of sentences: which rows belong together, and attributes of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..errors import DataError
from .table import Table, choose_column

AFFIXES = (1, 2, 3)
"""Lengths of the prefixes and suffixes that are attributes of a token."""

SHAPES = (("A-Z", "X"), ("a-z", "x"), ("0-9", "0"))
"""Ranges of characters and what stands for them in the shape of a token; a run of one counts once."""


def read_groups(table: Table, column: str) -> NDArray[np.intp]:
    """Return the number of every row's sequence, shape (n,), counted from 0 in the order of the rows.

    Raises
    ------
    DataError
        No such column, a cell without a value, or a sequence that goes on after another has begun.
    """
    names = list(map(str, table.frame.columns))
    if column not in names:
        raise DataError(f"{table.path} has no column {column!r} for the sequences; {choose_column(column, names)} (dataset.sequence=...)")
    text = table.frame[column].astype(str).str.strip()
    empty = np.flatnonzero(text == "")
    if empty.size:
        raise DataError(f"{table.path}: column {column!r} names no sequence in {table.place(int(empty[0]))}; fill it or remove the row")
    codes, distinct = pd.factorize(text)
    fault = not_contiguous(codes)
    if fault is not None:
        raise DataError(
            f"{table.path}: sequence {distinct[codes[fault]]!r} of column {column!r} goes on in {table.place(fault)} after another has begun; "
            "the rows of a sequence must stand together"
        )
    return codes.astype(np.intp)


def not_contiguous(groups: NDArray[Any]) -> int | None:
    """Return the first row whose group has ended before; None where the rows of every group stand together."""
    begins = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    _, first = np.unique(groups[begins], return_index=True)
    again = np.setdiff1d(np.arange(len(begins)), first)
    return int(begins[again[0]]) if len(again) else None


def token_attributes(tokens: Sequence[str], groups: NDArray[np.intp]) -> Iterable[list[str]]:
    """Yield the attributes of every token: the word, its shape, its affixes, its neighbours' words and shapes, and whether it ends a sequence."""
    words = [token.lower() for token in tokens]
    forms = shapes(tokens)
    last = len(words) - 1
    for t, (token, word, form) in enumerate(zip(tokens, words, forms, strict=True)):
        found = [f"word={word}", f"shape={form}"]
        found += [f"prefix={word[:length]}" for length in AFFIXES if length < len(word)]
        found += [f"suffix={word[-length:]}" for length in AFFIXES if length < len(word)]
        if token != word:
            found.append("upper" if token.isupper() else "title" if token.istitle() else "mixed")
        for side, at, edge in (("before", t - 1, t == 0), ("after", t + 1, t == last)):
            if edge or groups[at] != groups[t]:
                found.append(f"nothing {side}")
            else:
                found += [f"{side}={words[at]}", f"shape {side}={forms[at]}"]
        yield found


def shapes(tokens: Sequence[str]) -> list[str]:
    """Return the shape of every token: capitals X, small letters x, digits 0, each run once, all else as it is."""
    text = pd.Series(tokens, dtype=object)
    for characters, stands in SHAPES:
        text = text.str.replace(f"[{characters}]+", stands, regex=True)
    return list(text)


def attribute_rows(attributes: Iterable[list[str]], known: dict[str, int] | None = None) -> tuple[csr_array, dict[str, int]]:
    """Return ones where a row has an attribute, shape (n, d), and the column of every attribute.

    With ``known`` columns others are left out; else every attribute has one, in the order in which they are met.
    """
    columns: dict[str, int] = {} if known is None else known
    at: list[int] = []
    start = [0]
    for found in attributes:
        if known is None:
            at.extend(columns.setdefault(name, len(columns)) for name in found)
        else:
            at.extend(columns[name] for name in found if name in columns)
        start.append(len(at))
    indices, indptr = np.array(at, dtype=np.int32), np.array(start, dtype=np.int32)
    X = csr_array((np.ones(len(indices)), indices, indptr), shape=(len(indptr) - 1, len(columns)))
    X.sum_duplicates()
    return X, columns
