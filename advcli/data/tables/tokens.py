"""Tables whose rows are elements of sequences, such as tokens of sentences: which rows belong together, and attributes of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ...core.errors import DataError
from ...core.groups import interrupted
from .cells import cell_text
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
        raise DataError(f"{table.path} has no column {column!r}, which dataset.sequence names; {choose_column(column, names)}")
    text = cell_text(table.frame[column])
    empty = np.flatnonzero(text == "")
    if empty.size:
        raise DataError(f"{table.path}: column {column!r} names no sequence in {table.place(int(empty[0]))}; fill it or remove the row")
    codes, distinct = pd.factorize(text)
    row = interrupted(codes, np.append(np.flatnonzero(np.append(True, codes[1:] != codes[:-1])), len(codes)).astype(np.int64))
    if row is not None:
        raise DataError(
            f"{table.path}: sequence {distinct[codes[row]]!r} of column {column!r} goes on in {table.place(row)} after another has "
            "begun; the rows of a sequence must stand together"
        )
    return np.asarray(codes, dtype=np.intp)


def token_attributes(tokens: Sequence[str], groups: NDArray[np.intp]) -> Iterator[list[str]]:
    """Yield the attributes of every token: its word in small letters, shape and affixes, and its neighbours' words and shapes.

    An attribute of its own says that there is no neighbour, where a sequence begins and ends, and which letters are capitals.
    """
    words = [token.lower() for token in tokens]
    forms = _shapes(tokens)
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


def _shapes(tokens: Sequence[str]) -> list[str]:
    """Return the shape of every token: capitals X, small letters x, digits 0, each run once, all else as it is."""
    text = pd.Series(tokens, dtype=object)
    for characters, stands in SHAPES:
        text = text.str.replace(f"[{characters}]+", stands, regex=True)
    return list(text)


def attribute_columns(tokens: Sequence[str], groups: NDArray[np.intp], rows: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return every attribute that some of these rows have, in the order in which they are met."""
    found: dict[str, None] = {}
    for wanted, attributes in zip(rows.tolist(), token_attributes(tokens, groups), strict=True):
        if wanted:
            found.update(dict.fromkeys(attributes))
    return tuple(found)


def attribute_rows(tokens: Sequence[str], groups: NDArray[np.intp], columns: Mapping[str, int]) -> csr_array:
    """Return ones where a token has an attribute, shape (n, d); attributes that have no column are left out."""
    at: list[int] = []
    start = [0]
    for attributes in token_attributes(tokens, groups):
        at.extend(columns[name] for name in attributes if name in columns)
        start.append(len(at))
    indices, indptr = np.array(at, dtype=np.int32), np.array(start, dtype=np.int32)
    X = csr_array((np.ones(len(indices)), indices, indptr), shape=(len(tokens), len(columns)))
    X.sum_duplicates()
    return X
