"""Columns of a table as columns of X: first cells, numbers or codes, then features, as training rows make them.

`Encoding.fit` learns the fill values of cells without a value and which categories have a feature of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from ...core.arrays import dense, is_sparse
from ...core.errors import DataError, refuse_all
from ...core.groups import interrupted
from ...core.text_codes import text_codes
from .cells import PLAIN, gaps_in, numbers_of
from .options import Reading
from .table import Table, listed
from .target import match_labels

Remedies = Callable[[str], tuple[str, str]]
"""For the name of a column: what to do about text in it where it is one of numbers, and about a cell without a value."""

_FIX = "correct it or remove the row"


_AFFIXES = (1, 2, 3)  # lengths of the prefixes and suffixes that are attributes of a token
# Ranges of characters and the character that replaces a run of them in the shape of a token.
_SHAPES = (("A-Z", "X"), ("a-z", "x"), ("0-9", "0"))


# ---- columns and their faults -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Column:
    """A column of a table that features are made of, and what was learned of it from training rows.

    ``categories`` are the known values; the code of a cell is the position of its value among them (None for numbers). ``attributes``
    are the attributes of tokens that have features; text that is ``hashed`` has its codes (`advcli.core.text_codes`). ``own`` are the
    codes of the categories that have a separate feature (None: all; the code after the last category means no value); with ``other``
    one more feature is shared by all other categories, rare ones and categories that training rows do not have. ``fill`` replaces a
    cell without a value: a number, or a code (-1: no category); with ``indicator`` one more feature of a column of numbers marks the
    cells that have no value.
    """

    name: str
    categories: tuple[Any, ...] | None = None
    attributes: tuple[str, ...] | None = None
    hashed: bool = False
    own: tuple[int, ...] | None = None
    other: bool = False
    fill: float | None = None
    indicator: bool = False

    @property
    def is_number(self) -> bool:
        """Whether its cells are numbers, no categories and no tokens."""
        return self.categories is None and self.attributes is None and not self.hashed

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of its features: ``size`` for numbers, ``colour=red`` for a category, ``word=the`` for an attribute of a token.

        ``size is missing`` and ``colour is missing`` mark cells without a value, ``colour=other`` all other categories.
        """
        gap = f"{self.name} is missing"
        if self.attributes is not None:
            return self.attributes
        if self.categories is None:
            return (self.name, gap) if self.indicator else (self.name,)
        names = [f"{self.name}={value}" for value in self.categories]
        other = f"{self.name}=other"
        while other in names:
            other += "_"
        codes = range(len(names)) if self.own is None else self.own
        return tuple([gap if code == len(names) else names[code] for code in codes] + [other] * self.other)

    def features(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the features (n, f) of its cells (n,): numbers or codes, nan for no value, -1 for a category that is not known."""
        missing = np.isnan(cells)
        if self.categories is None:
            values = cells if self.fill is None else np.where(missing, self.fill, cells)
            return np.column_stack([values, missing]) if self.indicator else values[:, None]
        codes = np.where(missing, -1.0 if self.fill is None else self.fill, cells)
        own_codes = np.arange(len(self.categories)) if self.own is None else np.array(self.own, dtype=np.intp)
        hot = (codes[:, None] == own_codes).astype(np.float64)
        return np.column_stack([hot, ~hot.any(axis=1)]) if self.other else hot


@dataclass(frozen=True)
class Fault:
    """Cells (0-based ``rows``) of one column that an encoding does not take.

    ``kind`` is ``gap`` (no value), ``text`` (in a column of numbers), ``infinite`` or ``unseen`` (a category that is not known). ``reason``
    is what a file of rejected rows says of each of them, ``text`` one line that names the first and what to do.
    """

    kind: str
    column: str
    rows: NDArray[np.intp]
    reason: str
    text: str


def refuse_faults(faults: Sequence[Fault]) -> list[str]:
    """Return the line of every fault; of a column that holds text only that one: it is the column that is wrong then."""
    texts = {fault.column for fault in faults if fault.kind == "text"}
    return [fault.text for fault in faults if fault.kind == "text" or fault.column not in texts]


def _beside(blocks: list[Any]) -> Any:
    """Return columns of cells or features side by side, CSR where some are."""
    if any(is_sparse(block) for block in blocks):
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))
    return np.ascontiguousarray(np.hstack(blocks))


def _faults_of(table: Table, kind: str, name: str, what: str, mask: NDArray[np.bool_], remedy: str) -> list[Fault]:
    """Return the fault of a column in the rows of a mask (n,), with the remedy; none where it has no rows."""
    rows = np.flatnonzero(mask)
    if not rows.size:
        return []
    count = f" (and {rows.size - 1} more)" if rows.size > 1 else ""
    text = f"{table.path}: column {name!r} has {what} in {table.place(int(rows[0]))}{count}; {remedy}"
    return [Fault(kind, name, rows, f"{what} in column {name!r}", text)]


def number_faults(table: Table, name: str, values: Any, text: Any, purpose: str, remedies: tuple[str, str, str]) -> list[Fault]:
    """Return what is wrong with the numbers (n,) of a column, text first; ``remedies`` of text, infinite values and gaps."""
    gaps = np.isnan(values)
    faults: list[Fault] = []
    if text is not None:
        rows = np.flatnonzero(gaps & ~gaps_in(text))
        if rows.size:
            fault = f"holds text ({text.iloc[rows[0]]!r} in {table.place(int(rows[0]))}) and cannot be used {purpose}; {remedies[0]}"
            faults.append(Fault("text", name, rows, f"text in column {name!r} of numbers", f"{table.path}: column {name!r} {fault}"))
            gaps[rows] = False
    faults += _faults_of(table, "infinite", name, "an infinite value", np.isinf(values), remedies[1])
    return faults + _faults_of(table, "gap", name, "no value", gaps, remedies[2])


def finite_numbers(table: Table, name: str, purpose: str, remedies: tuple[str, str]) -> NDArray[np.float64]:
    """Return a column as finite numbers or say which cell is none; ``remedies`` of text and of other cells."""
    values, text = numbers_of(table.frame[name], table.options.notation)
    for fault in number_faults(table, name, values, text, purpose, (*remedies, remedies[1])):
        raise DataError(fault.text)
    return values


# ---- rows that are elements of sequences, such as tokens of sentences -------------------------------------------------
def read_groups(table: Table, column: str) -> NDArray[np.intp]:
    """Return the number of every row's sequence, shape (n,), counted from 0 in the order of the rows, which must stand together."""
    text = table.text(column)
    table.refuse_where(text == "", column, "names no sequence")
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

    Further attributes mark a missing neighbour, where a sequence begins or ends, and tokens with capital letters.
    """
    words = [token.lower() for token in tokens]
    forms = _shapes(tokens)
    last = len(words) - 1
    for t, (token, word, form) in enumerate(zip(tokens, words, forms, strict=True)):
        attributes = [f"word={word}", f"shape={form}"]
        attributes += [f"prefix={word[:length]}" for length in _AFFIXES if length < len(word)]
        attributes += [f"suffix={word[-length:]}" for length in _AFFIXES if length < len(word)]
        if token != word:
            attributes.append("upper" if token.isupper() else "title" if token.istitle() else "mixed")
        for side, neighbour, edge in (("before", t - 1, t == 0), ("after", t + 1, t == last)):
            if edge or groups[neighbour] != groups[t]:
                attributes.append(f"nothing {side}")
            else:
                attributes += [f"{side}={words[neighbour]}", f"shape {side}={forms[neighbour]}"]
        yield attributes


def _shapes(tokens: Sequence[str]) -> list[str]:
    """Return the shape of every token: capitals X, small letters x, digits 0, each run once, all else as it is."""
    text = pd.Series(tokens, dtype=object)
    for characters, stands in _SHAPES:
        text = text.str.replace(f"[{characters}]+", stands, regex=True)
    return list(text)


def attribute_columns(tokens: Sequence[str], groups: NDArray[np.intp], rows: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return every attribute that some of these rows have, in the order in which they are met."""
    every = zip(rows.tolist(), token_attributes(tokens, groups), strict=True)
    return tuple(dict.fromkeys(attribute for wanted, attributes in every if wanted for attribute in attributes))


def attribute_rows(tokens: Sequence[str], groups: NDArray[np.intp], columns: Mapping[str, int]) -> sparse.csr_array:
    """Return ones where a token has an attribute, shape (n, d); attributes that have no column are left out."""
    places: list[int] = []
    start = [0]
    for attributes in token_attributes(tokens, groups):
        places.extend(columns[name] for name in attributes if name in columns)
        start.append(len(places))
    indices, indptr = np.array(places, dtype=np.int32), np.array(start, dtype=np.int32)
    X = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(tokens), len(columns)))
    X.sum_duplicates()
    return X


# ---- the encoding of a table ------------------------------------------------------------------------------------------
@dataclass(frozen=True, repr=False)
class Encoding(Reading):
    """How rows of a table become rows of X: cells by `cells`, then features by what `fit` learned from training rows.

    ``columns`` have the order of their features; ``others`` are the columns of the table without features: the target, weights, columns
    left out. ``sequence`` is the column that names the sequence of every row, ``charset`` the encoding of CSV files without a mark (None:
    UTF-8), ``max_categories`` the most features of a column of categories: the rarest share the last of them.

    ``missing`` says what becomes of cells without a value (`advcli.data.tables.options.MISSING_WAYS`). Numbers are filled by the mean, the
    median or the most frequent number of the training rows, text by their most frequent category; ``indicator`` fills numbers by the mean
    and adds a feature that marks the filled cells, and makes a separate category of text cells without a value.
    """

    columns: tuple[Column, ...]
    others: tuple[str, ...] = ()
    charset: str | None = None

    def __repr__(self) -> str:
        """Return the names of the columns: all that a line about a pipeline has room for."""
        return f"Encoding({', '.join(column.name for column in self.columns)})"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of X (`Column.feature_names`)."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @cached_property
    def learns(self) -> bool:
        """Whether features depend on training rows: there are categories, or cells without a value are filled."""
        return self.missing != "refuse" or bool([column for column in self.columns if column.categories is not None])

    @property
    def text(self) -> tuple[str, ...] | None:
        """Columns that are read as text, so that 01 and 1 stay apart; None: all, as a reader of numbers takes 1.234 for one and a bit."""
        if self.notation != PLAIN:
            return None
        named = tuple(column.name for column in self.columns if not column.is_number)
        return named if self.sequence is None else (*named, self.sequence)

    def groups(self, table: Table) -> NDArray[np.intp] | None:
        """Return the number of every row's sequence; None where rows stand alone."""
        return None if self.sequence is None else read_groups(table, self.sequence)

    def check_columns(
        self, path: Path, names: Sequence[str], extra: bool = False, remedy: str = "predict.extra=ignore leaves them out"
    ) -> list[str]:
        """Return the columns among ``names`` that are not used: columns of `others`, which a file may lack, and extra ones if allowed.

        ``remedy`` says what to do about extra columns where they are not allowed.
        """
        there, needed, others = set(names), {column.name: None for column in self.columns}, set(self.others)
        if self.sequence is not None:
            needed[self.sequence] = None
        missing = [name for name in needed if name not in there]
        unexpected = [name for name in names if name not in needed and name not in others]
        if missing or (unexpected and not extra):
            differences = [f"{word}: {listed(columns)}" for word, columns in (("missing", missing), ("unexpected", unexpected)) if columns]
            hint = "" if missing else f" ({remedy})"
            raise DataError(f"{path} has other columns than the model was fitted on; {'; '.join(differences)}{hint}")
        return [name for name in names if name not in needed]

    def cells(self, table: Table, remedies: Remedies | None = None) -> tuple[Any, list[Fault]]:
        """Return the cells of a table, shape (n, p), and what is wrong with them; ``remedies`` are for the words of the faults.

        A column for each of `columns`, numbers or codes of categories, nan for no value and -1 for a category that is not known; of tokens
        as many as there are attributes, and all as CSR. Cells without a value are faults if `missing` is ``refuse``.
        """
        faults: list[Fault] = []
        together = [column.name for column in self.columns if column.is_number and column.name in table.numbers]
        # thousands of columns are converted at once; columns with cells that are not finite are handled one by one
        values = table.frame[together].to_numpy(np.float64)
        finite = np.isfinite(values)
        if not finite.all():
            for place in np.flatnonzero(~finite.all(axis=0)).tolist():
                faults += self._number_faults(table, together[place], values[:, place], None, remedies)
        if len(together) == len(self.columns):
            return np.ascontiguousarray(values), faults
        places = dict(zip(together, range(len(together)), strict=True))
        blocks: list[Any] = []
        for column in self.columns:
            if column.name in places:
                block = values[:, places[column.name], None]
            elif column.hashed:
                block, wrong = self._hashes(table, column)
                faults += wrong
            elif column.attributes is not None:
                block = self._attributes(table, column.name, column.attributes)
            else:
                read = self._numbers if column.is_number else self._codes
                block, wrong = read(table, column, remedies)
                faults += wrong
            blocks.append(block)
        return _beside(blocks), faults

    def _attributes(self, table: Table, name: str, attributes: Sequence[str]) -> Any:
        groups, tokens = self.groups(table), list(table.text(name))
        positions = {attribute: place for place, attribute in enumerate(attributes)}
        return attribute_rows(tokens, np.arange(len(tokens)) if groups is None else groups, positions)

    def _hashes(self, table: Table, column: Column) -> tuple[NDArray[np.float64], list[Fault]]:
        text = table.text(column.name)
        return text_codes(text)[:, None], _faults_of(table, "gap", column.name, "no text", (text == "").to_numpy(), _FIX)

    def _numbers(self, table: Table, column: Column, remedies: Remedies | None) -> tuple[NDArray[np.float64], list[Fault]]:
        numbers, text = numbers_of(table.frame[column.name], self.notation)
        return numbers[:, None], self._number_faults(table, column.name, numbers, text, remedies)

    def _number_faults(self, table: Table, name: str, values: Any, text: Any, remedies: Remedies | None) -> list[Fault]:
        if np.isfinite(values).all():
            return []
        drop, words = ("", (_FIX, _FIX)) if remedies is None else (f" or use dataset.drop=[{name}]", remedies(name))
        faults = number_faults(table, name, values, text, "as a feature", (words[0], f"correct it, remove the row{drop}", words[1]))
        return faults if self.missing == "refuse" else [fault for fault in faults if fault.kind != "gap"]

    def _codes(self, table: Table, column: Column, remedies: Remedies | None) -> tuple[NDArray[np.float64], list[Fault]]:
        assert column.categories is not None
        name, faults = column.name, []
        text = table.text(name)
        gaps = gaps_in(text)
        cells, distinct = pd.factorize(text)
        places = [-1 if place is None else place for place in match_labels(list(distinct), column.categories)]
        codes = np.array(places, dtype=np.float64)[cells]
        codes[gaps] = np.nan
        if gaps.any() and self.missing == "refuse":
            remedy = "fill it or remove the row" if remedies is None else remedies(name)[1]
            faults += _faults_of(table, "gap", name, "no value", gaps, remedy)
        unseen = np.flatnonzero(codes == -1.0)
        if unseen.size:
            what = "that was not there to learn from"
            fault = f"column {name!r} holds {text.iloc[unseen[0]]!r} in {table.place(int(unseen[0]))}, a category {what}"
            line = f"{table.path}: {fault} ({listed(column.categories)}); {_FIX}"
            faults.append(Fault("unseen", name, unseen, f"a category in column {name!r} {what}", line))
        return codes[:, None], faults

    def fit(self, cells: Any) -> Encoding:
        """Return the encoding as the cells (n, p) of training rows make it; the same one where nothing is learned (`learns`).

        Numbers are filled as by scikit-learn's ``SimpleImputer``, categories are kept or share a feature as by its ``OneHotEncoder``.
        """
        if not self.learns:
            return self
        fills: dict[int, float] = {}
        gaps: set[int] = set()
        starts = self._starts()
        numbers = [place for place, column in enumerate(self.columns) if column.is_number]
        if numbers and self.missing != "refuse":
            from sklearn.impute import SimpleImputer

            strategy = "mean" if self.missing == "indicator" else self.missing
            block = dense(cells[:, [starts[place] for place in numbers]])
            imputer = SimpleImputer(strategy=strategy, keep_empty_features=True).fit(block)
            fills = dict(zip(numbers, imputer.statistics_.tolist(), strict=True))
            gaps = {numbers[gap] for gap in np.flatnonzero(np.isnan(block).any(axis=0)).tolist()} if self.missing == "indicator" else set()
        learned = []
        for place, column in enumerate(self.columns):
            if place in fills:
                column = replace(column, fill=float(fills[place]), indicator=place in gaps)
            elif column.categories is not None:
                column = self._fit_categories(column, dense(cells[:, [starts[place]]])[:, 0])
            learned.append(column)
        return replace(self, columns=tuple(learned))

    def _fit_categories(self, column: Column, codes: NDArray[np.float64]) -> Column:
        from sklearn.preprocessing import OneHotEncoder

        assert column.categories is not None
        present = codes[~np.isnan(codes)]
        fill: float | None = None
        # of a box that is ticked or empty nothing is a value: filled by the only category, the column would be constant
        if self.missing == "indicator" or (self.missing != "refuse" and len(column.categories) == 1):
            fill = float(len(column.categories))
        elif self.missing != "refuse":
            # the first of the most frequent ones, as SimpleImputer
            fill = float(np.bincount(present.astype(np.intp)).argmax()) if present.size else -1.0
        filled = present if fill is None else np.where(np.isnan(codes), fill, codes)
        filled = filled[filled >= 0.0]
        if not filled.size:
            return replace(column, own=(), other=False, fill=fill)
        encoder = OneHotEncoder(max_categories=self.max_categories, handle_unknown="infrequent_if_exist", sparse_output=False)
        encoder.fit(filled[:, None])
        rare = encoder.infrequent_categories_[0] if self.max_categories is not None else None
        own_codes = encoder.categories_[0] if rare is None else np.setdiff1d(encoder.categories_[0], rare)
        return replace(column, own=tuple(own_codes.astype(int).tolist()), other=rare is not None, fill=fill)

    def features(self, cells: Any) -> Any:
        """Return the features (n, d) of cells (n, p); csr_array where there are attributes of tokens."""
        if not self.learns:
            return cells
        starts = self._starts()
        blocks: list[Any] = [
            cells[:, start : start + len(column.attributes)]
            if column.attributes is not None
            else column.features(dense(cells[:, [start]])[:, 0])
            for start, column in zip(starts, self.columns, strict=True)
        ]
        return _beside(blocks)

    def encode(self, table: Table, remedies: Remedies | None = None) -> Any:
        """Return the features (n, d) of a table; a `DataError` has all its faults. ``remedies`` as for `cells`."""
        cells, faults = self.cells(table, remedies)
        refuse_all(refuse_faults(faults), str(table.path))
        return self.features(cells)

    def _starts(self) -> list[int]:
        """Return where the cells of every column begin."""
        widths = [1 if column.attributes is None else len(column.attributes) for column in self.columns]
        return [0, *np.cumsum(widths).tolist()][:-1]
