"""Columns of a table as columns of X: first cells, numbers or codes, then features, as training rows make them.

`Encoding.fit` learns the fill values of cells without a value and which categories have a feature of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from ...core.errors import DataError, refuse_all
from .cells import PLAIN, Notation, cell_text, gaps_in, numbers_of
from .table import Table, listed, number_columns
from .target import match_labels
from .tokens import attribute_rows, read_groups

Remedies = Callable[[str], tuple[str, str]]
"""For the name of a column: what to do about text in it where it is one of numbers, and about a cell without a value."""


@dataclass(frozen=True)
class Column:
    """A column of a table that features are made of, and what was learned of it from training rows.

    Attributes
    ----------
    name : str
        Its name in the heading.
    categories : tuple of str, int or float, or None
        The values that are known, by whose places cells are coded; None for a column of numbers.
    attributes : tuple of str or None
        Of a column of tokens: the attributes that have features (`advcli.data.tables.tokens.token_attributes`), in their order.
    own : tuple of int or None
        Codes of the categories that have a feature of their own; None: all have. The code after the last category stands for no value.
    other : bool
        Whether one more feature stands for all other categories, rare ones and those that training rows do not have.
    fill : float or None
        What stands in the place of a cell without a value: a number, or a code (-1: no category); None: such a cell stays without.
    indicator : bool
        Of a column of numbers: whether one more feature says which cells have no value.
    """

    name: str
    categories: tuple[Any, ...] | None = None
    attributes: tuple[str, ...] | None = None
    own: tuple[int, ...] | None = None
    other: bool = False
    fill: float | None = None
    indicator: bool = False

    @property
    def is_number(self) -> bool:
        """Whether its cells are numbers, no categories and no tokens."""
        return self.categories is None and self.attributes is None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of its features: ``size`` for numbers, ``colour=red`` for a category, ``word=the`` for an attribute of a token.

        ``size is missing`` and ``colour is missing`` say that there is no value, ``colour=other`` that it is another category.
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
        own = range(len(names)) if self.own is None else self.own
        return tuple([gap if code == len(names) else names[code] for code in own] + [other] * self.other)

    def features(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the features (n, f) of its cells (n,): numbers or codes, nan for no value, -1 for a category that is not known."""
        missing = np.isnan(cells)
        if self.categories is None:
            values = cells if self.fill is None else np.where(missing, self.fill, cells)
            return np.column_stack([values, missing]) if self.indicator else values[:, None]
        codes = np.where(missing, -1.0 if self.fill is None else self.fill, cells)
        own = np.arange(len(self.categories)) if self.own is None else np.array(self.own, dtype=np.intp)
        hot = (codes[:, None] == own).astype(np.float64)
        return np.column_stack([hot, ~hot.any(axis=1)]) if self.other else hot


@dataclass(frozen=True)
class Fault:
    """Cells of one column that an encoding does not take.

    Attributes
    ----------
    kind : str
        ``gap`` (no value), ``text`` (in a column of numbers), ``infinite`` or ``unseen`` (a category that is not known).
    column : str
    rows : ndarray of intp
        0-based rows of the table.
    reason : str
        What is wrong with each of them, as a line of a file of rejected rows says it.
    text : str
        One line that names the first of them and what to do.
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


def _dense(block: Any) -> NDArray[np.float64]:
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block)


def _beside(blocks: list[Any]) -> Any:
    """Return columns of cells or features side by side, CSR where some are."""
    if any(sparse.issparse(block) for block in blocks):
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))
    return np.ascontiguousarray(np.hstack(blocks))


def fault_of(table: Table, kind: str, name: str, what: str, rows: NDArray[np.intp], remedy: str) -> Fault:
    """Return the fault of a column in these rows, with the remedy."""
    count = f" (and {rows.size - 1} more)" if rows.size > 1 else ""
    text = f"{table.path}: column {name!r} has {what} in {table.place(int(rows[0]))}{count}; {remedy}"
    return Fault(kind, name, rows, f"{what} in column {name!r}", text)


@dataclass(frozen=True, repr=False)
class Encoding:
    """How rows of a table become rows of X: cells by `cells`, then features by what `fit` learned from training rows.

    Attributes
    ----------
    columns : tuple of Column
        The columns that are used, in the order of their features.
    others : tuple of str
        Columns that were there and have no features: the target, weights, those left out.
    separator : str
        Character between fields.
    sequence : str or None
        The column that says which rows form a sequence; None where rows stand alone.
    missing : str
        What becomes of cells without a value, one of `MISSING_WAYS`. Numbers are filled by the mean, the median or the most frequent number
        of the training rows, text by their most frequent category; ``indicator`` fills numbers by the mean and adds a feature that says
        where, and makes no value a category of its own.
    max_categories : int or None
        Features of a column of categories at most: the rarest categories share the last of them.
    notation : Notation
        How numbers are written in the cells of text.
    charset : str or None
        What CSV files are encoded in that have no mark; None: UTF-8.
    """

    columns: tuple[Column, ...]
    others: tuple[str, ...] = ()
    separator: str = ","
    sequence: str | None = None
    missing: str = "refuse"
    max_categories: int | None = None
    notation: Notation = PLAIN
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
        named = tuple(column.name for column in self.columns if column.categories is not None or column.attributes is not None)
        return named if self.sequence is None else (*named, self.sequence)

    def groups(self, table: Table) -> NDArray[np.intp] | None:
        """Return the number of every row's sequence; None where rows stand alone."""
        return None if self.sequence is None else read_groups(table, self.sequence)

    def check_columns(
        self, path: Path, names: Sequence[str], extra: bool = False, remedy: str = "predict.extra=ignore leaves them out"
    ) -> list[str]:
        """Return the columns among ``names`` that are not used: those of `others`, which need not be there, and extra ones if allowed.

        ``remedy`` says what to do about these where they are not.

        Raises
        ------
        DataError
            A column is missing, or one is there that no row was learned from.
        """
        there, needed, others = set(names), {column.name: None for column in self.columns}, set(self.others)
        if self.sequence is not None:
            needed[self.sequence] = None
        missing = [name for name in needed if name not in there]
        unexpected = [name for name in names if name not in needed and name not in others]
        if missing or (unexpected and not extra):
            said = [f"{word}: {listed(found)}" for word, found in (("missing", missing), ("unexpected", unexpected)) if found]
            hint = "" if missing else f" ({remedy})"
            raise DataError(f"{path} has other columns than the model was fitted on; {'; '.join(said)}{hint}")
        return [name for name in names if name not in needed]

    def cells(self, table: Table, remedies: Remedies | None = None) -> tuple[Any, list[Fault]]:
        """Return the cells of a table, shape (n, p), and what is wrong with them.

        Parameters
        ----------
        table : Table
        remedies : callable, optional
            What the faults say to do (`Remedies`).

        Returns
        -------
        cells : ndarray of float64, or csr_array where there are attributes of tokens
            A column for each of `columns`, numbers or codes of categories, nan for no value and -1 for a category that is not known; of
            tokens as many as there are attributes.
        faults : list of Fault
            Cells that are no cells of this encoding; those without a value if `missing` is ``refuse``.
        """
        faults: list[Fault] = []
        came_as_numbers = number_columns(table.frame)
        together = [c.name for c in self.columns if c.categories is None and c.attributes is None and c.name in came_as_numbers]
        # thousands of columns are taken at once; those that are not finite are looked for one by one
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
            elif column.attributes is not None:
                block = self._attributes(table, column.name, column.attributes)
            else:
                read = self._numbers if column.is_number else self._codes
                block, wrong = read(table, column, remedies)
                faults += wrong
            blocks.append(block)
        return _beside(blocks), faults

    def _attributes(self, table: Table, name: str, attributes: Sequence[str]) -> Any:
        groups, tokens = self.groups(table), list(cell_text(table.frame[name]))
        positions = {attribute: place for place, attribute in enumerate(attributes)}
        return attribute_rows(tokens, np.arange(len(tokens)) if groups is None else groups, positions)

    def _numbers(self, table: Table, column: Column, remedies: Remedies | None) -> tuple[NDArray[np.float64], list[Fault]]:
        numbers, text = numbers_of(table.frame[column.name], self.notation)
        return numbers[:, None], self._number_faults(table, column.name, numbers, text, remedies)

    def _number_faults(self, table: Table, name: str, values: Any, text: Any, remedies: Remedies | None) -> list[Fault]:
        infinite, rest = np.isinf(values), np.isnan(values)
        if not (infinite.any() or rest.any()):
            return []
        words, remedy = ("correct it or remove the row",) * 2 if remedies is None else remedies(name)
        wrong = rest & ~gaps_in(text) if text is not None else np.zeros(len(values), dtype=bool)
        found = []
        if wrong.any():
            at = np.flatnonzero(wrong)
            said = f"column {name!r} holds text ({text.iloc[at[0]]!r} in {table.place(int(at[0]))}) and cannot be used as a feature"
            found.append(Fault("text", name, at, f"text in column {name!r} of numbers", f"{table.path}: {said}; {words}"))
        gaps = rest & ~wrong
        if infinite.any():
            drop = "" if remedies is None else f" or use dataset.drop=[{name}]"
            found.append(
                fault_of(table, "infinite", name, "an infinite value", np.flatnonzero(infinite), f"correct it, remove the row{drop}")
            )
        if gaps.any() and self.missing == "refuse":
            found.append(fault_of(table, "gap", name, "no value", np.flatnonzero(gaps), remedy))
        return found

    def _codes(self, table: Table, column: Column, remedies: Remedies | None) -> tuple[NDArray[np.float64], list[Fault]]:
        assert column.categories is not None
        name, found = column.name, []
        text = cell_text(table.frame[name])
        gaps = gaps_in(text)
        places, distinct = pd.factorize(text)
        known = [-1 if at is None else at for at in match_labels(list(distinct), column.categories)]
        codes = np.array(known, dtype=np.float64)[places]
        codes[gaps] = np.nan
        if gaps.any() and self.missing == "refuse":
            remedy = "fill it or remove the row" if remedies is None else remedies(name)[1]
            found.append(fault_of(table, "gap", name, "no value", np.flatnonzero(gaps), remedy))
        unseen = np.flatnonzero(codes == -1.0)
        if unseen.size:
            said = f"column {name!r} holds {text.iloc[unseen[0]]!r} in {table.place(int(unseen[0]))}"
            found.append(
                Fault(
                    "unseen",
                    name,
                    unseen,
                    f"a category in column {name!r} that was not there to learn from",
                    f"{table.path}: {said}, a category that was not there to learn from ({listed(column.categories)}); "
                    "correct it or remove the row",
                )
            )
        return codes[:, None], found

    def fit(self, cells: Any) -> Encoding:
        """Return the encoding as the cells (n, p) of training rows make it; the same one where nothing is learned (`learns`).

        Numbers are filled as by scikit-learn's ``SimpleImputer``, categories are kept or share a feature as by its ``OneHotEncoder``.
        """
        if not self.learns:
            return self
        fills: dict[int, float] = {}
        gaps: set[int] = set()
        starts = self._starts()
        numbers = [at for at, column in enumerate(self.columns) if column.is_number]
        if numbers and self.missing != "refuse":
            from sklearn.impute import SimpleImputer

            strategy = "mean" if self.missing == "indicator" else self.missing
            block = _dense(cells[:, [starts[at] for at in numbers]])
            imputer = SimpleImputer(strategy=strategy, keep_empty_features=True).fit(block)
            fills = dict(zip(numbers, imputer.statistics_.tolist(), strict=True))
            gaps = {numbers[at] for at in np.flatnonzero(np.isnan(block).any(axis=0)).tolist()} if self.missing == "indicator" else set()
        learned = []
        for at, column in enumerate(self.columns):
            if at in fills:
                column = replace(column, fill=float(fills[at]), indicator=at in gaps)
            elif column.categories is not None:
                column = self._fit_categories(column, _dense(cells[:, [starts[at]]])[:, 0])
            learned.append(column)
        return replace(self, columns=tuple(learned))

    def _fit_categories(self, column: Column, codes: NDArray[np.float64]) -> Column:
        from sklearn.preprocessing import OneHotEncoder

        assert column.categories is not None
        known = codes[~np.isnan(codes)]
        fill: float | None = None
        # of a box that is ticked or empty nothing is a value: filled by the only category, the column would be constant
        if self.missing == "indicator" or (self.missing != "refuse" and len(column.categories) == 1):
            fill = float(len(column.categories))
        elif self.missing != "refuse":
            # the first of the most frequent ones, as SimpleImputer
            fill = float(np.bincount(known.astype(np.intp)).argmax()) if known.size else -1.0
        filled = known if fill is None else np.where(np.isnan(codes), fill, codes)
        filled = filled[filled >= 0.0]
        if not filled.size:
            return replace(column, own=(), other=False, fill=fill)
        encoder = OneHotEncoder(max_categories=self.max_categories, handle_unknown="infrequent_if_exist", sparse_output=False)
        encoder.fit(filled[:, None])
        rare = encoder.infrequent_categories_[0] if self.max_categories is not None else None
        kept = encoder.categories_[0] if rare is None else np.setdiff1d(encoder.categories_[0], rare)
        return replace(column, own=tuple(kept.astype(int).tolist()), other=rare is not None, fill=fill)

    def features(self, cells: Any) -> Any:
        """Return the features (n, d) of cells (n, p); csr_array where there are attributes of tokens."""
        if not self.learns:
            return cells
        starts = self._starts()
        blocks: list[Any] = [
            cells[:, start : start + len(column.attributes)]
            if column.attributes is not None
            else column.features(_dense(cells[:, [start]])[:, 0])
            for start, column in zip(starts, self.columns, strict=True)
        ]
        return _beside(blocks)

    def encode(self, table: Table, remedies: Remedies | None = None) -> Any:
        """Return the features of a table, shape (n, d); ``remedies`` as for `cells`.

        Raises
        ------
        DataError
            Cells that are none of this encoding (`Fault`), all of them at once.
        """
        cells, faults = self.cells(table, remedies)
        refuse_all(refuse_faults(faults), str(table.path))
        return self.features(cells)

    def _starts(self) -> list[int]:
        """Return where the cells of every column begin."""
        widths = [1 if column.attributes is None else len(column.attributes) for column in self.columns]
        return [0, *np.cumsum(widths).tolist()][:-1]
