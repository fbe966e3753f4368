"""Columns of a table as columns of X: first cells, numbers or codes, then features, as training rows make them.

What is learned is what stands in the place of a value that is not there, and which categories have a feature of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from .column import Column, Fault, dense_column, fault_of, names_of, refuse_faults
from .columns import listed, match_labels
from .notation import split_tokens
from .table import Table, number_columns
from .tokens import attribute_rows, read_groups


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

    def cells(self, table: Table, remedies: Callable[[str], tuple[str, str]] | None = None) -> tuple[Any, list[Fault]]:
        """Return the cells of a table, shape (n, p), and what is wrong with them.

        Parameters
        ----------
        table : Table
        remedies : callable, optional
            For the name of a column: what to do about text in it where it is one of numbers, and about a cell without a value.

        Returns
        -------
        cells : ndarray of float64, or csr_array where there are attributes of tokens
            A column for each of `columns`, numbers or codes of categories, nan for no value and -1 for a category that is not known; of
            tokens as many as there are attributes.
        faults : list of Fault
            Cells that are no cells of this encoding; those without a value if `missing` is ``refuse``.
        """
        faults: list[Fault] = []
        blocks: list[Any] = []
        known = number_columns(table.frame)
        together = [
            column.name for column in self.columns if column.categories is None and column.attributes is None and column.name in known
        ]
        # thousands of columns are taken at once; those that are not finite are looked for one by one
        values = table.frame[together].to_numpy(np.float64)
        finite = np.isfinite(values)
        if not finite.all():
            for at in np.flatnonzero(~finite.all(axis=0)).tolist():
                faults += self._number_faults(table, together[at], values[:, at], None, remedies)
        if len(together) == len(self.columns):
            return np.ascontiguousarray(values), faults
        at_once = dict(zip(together, range(len(together)), strict=True))
        for column in self.columns:
            name = column.name
            if name in at_once:
                blocks.append(values[:, at_once[name], None])
            elif column.attributes is not None:
                groups = self.groups(table)
                tokens = split_tokens(table, name)
                positions = {name: at for at, name in enumerate(column.attributes)}
                blocks.append(attribute_rows(tokens, np.arange(len(tokens)) if groups is None else groups, positions))
            elif column.categories is None:
                numbers, text = numbers_of(table.frame[name], self.notation)
                faults += self._number_faults(table, name, numbers, text, remedies)
                blocks.append(numbers[:, None])
            else:
                codes, found = self._codes(table, column, remedies)
                faults += found
                blocks.append(codes[:, None])
        if any(sparse.issparse(block) for block in blocks):
            return sparse.csr_array(sparse.hstack(blocks, format="csr")), faults
        return np.ascontiguousarray(np.hstack(blocks)), faults

    def _number_faults(self, table: Table, name: str, values: Any, text: Any, remedies: Any) -> list[Fault]:
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

    def _codes(self, table: Table, column: Column, remedies: Any) -> tuple[NDArray[np.float64], list[Fault]]:
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
        return codes, found

    def fit(self, cells: Any) -> Encoding:
        """Return the encoding as the cells (n, p) of training rows make it; the same one where nothing is learned (`learns`).

        Numbers are filled as by scikit-learn's ``SimpleImputer``, categories are kept or share a feature as by its ``OneHotEncoder``.
        """
        if not self.learns:
            return self
        fills: dict[int, float] = {}
        gaps: set[int] = set()
        starts = self._starts()
        numbers = [at for at, column in enumerate(self.columns) if column.categories is None and column.attributes is None]
        if numbers and self.missing != "refuse":
            from sklearn.impute import SimpleImputer

            strategy = "mean" if self.missing == "indicator" else self.missing
            block = dense_column(cells[:, [starts[at] for at in numbers]])
            imputer = SimpleImputer(strategy=strategy, keep_empty_features=True).fit(block)
            fills = dict(zip(numbers, imputer.statistics_.tolist(), strict=True))
            gaps = {numbers[at] for at in np.flatnonzero(np.isnan(block).any(axis=0)).tolist()} if self.missing == "indicator" else set()
        learned = []
        for at, column in enumerate(self.columns):
            if at in fills:
                column = replace(column, fill=float(fills[at]), indicator=at in gaps)
            elif column.categories is not None:
                column = self._fit_categories(column, dense_column(cells[:, [starts[at]]])[:, 0])
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
            else column.features(dense_column(cells[:, [start]])[:, 0])
            for start, column in zip(starts, self.columns, strict=True)
        ]
        if sparse.issparse(cells):
            return sparse.csr_array(sparse.hstack(blocks, format="csr"))
        return np.ascontiguousarray(np.hstack(blocks))

    def encode(self, table: Table, remedies: Callable[[str], tuple[str, str]] | None = None) -> Any:
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


def text_columns(options: Mapping[str, Any]) -> list[str] | None:
    """Return the columns beside the target that a file's reader leaves as text; None: all, as for `Encoding.text`."""
    if Notation.of(options) != PLAIN:
        return None
    named = [str(options[key]) for key in ("sequence", "tokens") if options.get(key) is not None]
    return [*names_of(options["categorical"], "categorical"), *named]
