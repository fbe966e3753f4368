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

from ..errors import ConfigError, DataError, refuse_all
from .cells import CHARACTER_NAMES, PLAIN, TRUTHS, Look, Notation, cell_text, gaps_in, look_of, numbers_of, present, reads_as_numbers
from .columns import SUSPECT, code_labels, cost_columns, listed, match_labels
from .sequences import attribute_columns, attribute_rows, read_groups
from .suspects import SAID, counted, looks_like, named_as_ids
from .table import Table, choose_column, is_number, number_columns, target_columns

MISSING_WAYS = ("refuse", "mean", "median", "most_frequent", "indicator")
"""What may become of cells without a value (``dataset.missing``)."""


NEARLY, MANY_NUMBERS = 0.9, 20
"""Share of numbers, and different numbers, from which on a column of text is one of numbers with some wrong cells."""


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
        Of a column of tokens: the attributes that have features (`advcli.data.sequences.token_attributes`), in their order.
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
                tokens = _tokens(table, name)
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
                _fault(table, "infinite", name, "an infinite value", np.flatnonzero(infinite), f"correct it, remove the row{drop}")
            )
        if gaps.any() and self.missing == "refuse":
            found.append(_fault(table, "gap", name, "no value", np.flatnonzero(gaps), remedy))
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
            found.append(_fault(table, "gap", name, "no value", np.flatnonzero(gaps), remedy))
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


def _dense(block: Any) -> NDArray[np.float64]:
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block)


def _fault(table: Table, kind: str, name: str, what: str, rows: NDArray[np.intp], remedy: str) -> Fault:
    count = f" (and {rows.size - 1} more)" if rows.size > 1 else ""
    text = f"{table.path}: column {name!r} has {what} in {table.place(int(rows[0]))}{count}; {remedy}"
    return Fault(kind, name, rows, f"{what} in column {name!r}", text)


def _tokens(table: Table, name: str) -> list[str]:
    return list(cell_text(table.frame[name]))


def feature_columns(table: Table, options: Mapping[str, Any], ignore: Sequence[str] = ()) -> list[str]:
    """Return the columns that features are made of: all, or those of ``features``, without target, weight, ``drop`` and ``ignore``.

    Raises
    ------
    DataError
        An option names a column that is not there, or no column is left.
    ConfigError
        An option names the target, a cost or the weight as a feature.
    """
    names = list(map(str, table.frame.columns))
    costs = cost_columns(options)
    special = {*target_columns(str(options["target"]), names), *([str(options["weight"])] if options["weight"] is not None else []), *costs}
    sequence = options.get("sequence")
    special |= set() if sequence is None else {str(sequence)}
    drop = _names(options["drop"], "drop")
    wanted = None if options["features"] is None else _names(options["features"], "features")
    categorical = [] if options["categorical"] == "auto" else _names(options["categorical"], "categorical")
    there = set(names)
    asked: dict[str, list[str]] = {"drop": drop, "features": wanted or [], "categorical": categorical, "costs": costs}
    asked["keep"] = _names(options.get("keep"), "keep")
    if options["weight"] is not None:
        asked["weight"] = [str(options["weight"])]
    for key in ("sequence", "tokens"):
        if options.get(key) is not None:
            asked[key] = [str(options[key])]
    for key, wished in asked.items():
        for name in wished:
            if name not in there:
                raise DataError(f"{table.path} has no column {name!r}, which dataset.{key} names; {choose_column(name, names)}")
    for key in ("drop", "features", "categorical"):
        for name in asked[key]:
            if name in special:
                others = f"{', a cost' if costs else ''}{', the sequence' if sequence is not None else ''}"
                raise ConfigError(f"dataset.{key} names {name!r}, which is the target{others} or the weight of the examples")
    left_out = special | set(drop) | set(ignore)
    columns = [name for name in names if name not in left_out] if wanted is None else [name for name in wanted if name not in set(drop)]
    if not columns:
        raise DataError(f"{table.path} has no feature columns left; check dataset.features and dataset.drop")
    return columns


def _names(value: Any, key: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, (str, int, float)):
        return [str(value)]
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    raise ConfigError(f"dataset.{key}={value} must be a list of column names")


def learn_encoding(table: Table, columns: Sequence[str], options: Mapping[str, Any], notes: list[str]) -> Encoding:
    """Return the encoding of the columns, of which nothing is learned yet: numbers, and categories of ``categorical``.

    ``auto`` makes categories of all text but identifiers, dates and texts (`advcli.data.suspects.looks_like`), which it leaves out, and
    numbers in another notation than that of the options, which are columns of numbers with text in them.
    """
    frame, notation = table.frame, Notation.of(options)
    missing, most = missing_way(options), options.get("max_categories")
    sequence, tokens = options.get("sequence"), options.get("tokens")
    columns = list(columns)
    if options["categorical"] == "auto":
        columns, encoded = _automatic(table, columns, options, notation, notes)
    else:
        encoded = set(_names(options["categorical"], "categorical")) & set(columns)
        like_ids = [name for name in named_as_ids(columns) if name not in encoded]
        kept = _names(options.get("keep"), "keep")
        notes += [
            f"column {name!r} {SUSPECT} an identifier and is taken as a number; dataset.drop=[{name}] leaves it out"
            for name in sorted(like_ids)
            if name not in kept and is_number(frame[name]) and looks_like(frame[name])
        ]
    learned = []
    numbers_there = number_columns(frame)
    whole = numbers_there - (set() if missing == "refuse" else set(map(str, frame.columns[frame.isna().any()])))
    for name in columns:
        if name == tokens:
            learned.append(_token_column(table, name, sequence, notes))
        elif name in whole and name not in encoded:
            learned.append(Column(name))
        elif name in encoded:
            learned.append(_category_column(frame[name], most, notes))
        elif missing != "refuse" and (value := _only_value(frame[name])) is not None:
            learned.append(Column(name, (value,)))
            notes.append(f"column {name!r} holds {value} or nothing: nothing counts as a value, and each has a feature")
        else:
            if name not in numbers_there:
                _refuse_mixed_truths(table, name)
            learned.append(Column(name))
    used = {*columns, *([] if sequence is None else [str(sequence)])}
    others = [name for name in map(str, frame.columns) if name not in used]
    named = None if sequence is None else str(sequence)
    return Encoding(
        tuple(learned),
        tuple(others),
        separator=str(options.get("separator", ",")),
        sequence=named,
        missing=missing,
        max_categories=most,
        notation=notation,
        charset=options.get("encoding"),
    )


def _automatic(
    table: Table, columns: list[str], options: Mapping[str, Any], notation: Notation, notes: list[str]
) -> tuple[list[str], set[str]]:
    """Return the columns that ``categorical=auto`` takes, and which of them are categories."""
    frame, numbers_there = table.frame, number_columns(table.frame)
    written = {*number_look(table, columns, options).columns, *nearly_numbers(table, columns, options)}
    left_out = suspects(table, [name for name in columns if name not in written], options)
    notes += [text for _, text in left_out.values()]
    columns = [name for name in columns if name not in left_out]
    if not columns:
        raise DataError(f"{table.path} has no feature columns left; keep one that was left out: {listed(notes)}")
    taken = {name for name in columns if name not in numbers_there and name not in written and name != options.get("tokens")}
    return columns, {name for name in taken if not reads_as_numbers(frame[name], notation)}


def _category_column(column: pd.Series, most: int | None, notes: list[str]) -> Column:
    """Return a column of categories, all of those that there are."""
    name, found = str(column.name), present(column)
    labels = sorted(code_labels(found)[1], key=_place) if len(found) else []
    if most is None or len(labels) <= most:
        notes.append(f"column {name!r} one-hot encoded: {len(labels)} features ({listed(labels)})")
    else:
        notes.append(
            f"column {name!r} one-hot encoded: {most} features, of which one is for the rarest of {len(labels)} categories "
            f"({listed(labels)}); dataset.max_categories is the bound"
        )
    return Column(name, tuple(labels))


def _only_value(column: pd.Series) -> Any:
    """Return the value of a box that is ticked or empty: the only one of a column with gaps; None for any other column."""
    values = column.dropna() if is_number(column) else present(column)
    if not 0 < len(values) < len(column) or values.nunique() != 1:
        return None
    return code_labels(cell_text(values.iloc[:1]))[1][0]


def _refuse_mixed_truths(table: Table, name: str) -> None:
    """Refuse TRUE or FALSE among numbers, which would count as 1 and 0."""
    text = cell_text(table.frame[name])
    truths = text.str.lower().isin(TRUTHS).to_numpy(bool)
    others = np.flatnonzero(~truths & ~gaps_in(text))
    if truths.any() and others.size:
        at = int(np.flatnonzero(truths)[0])
        raise DataError(
            f"{table.path}: column {name!r} holds {text.iloc[at]!r} in {table.place(at)} beside {text.iloc[others[0]]!r} in "
            f"{table.place(int(others[0]))}; correct it, one-hot encode it with dataset.categorical=[{name}], or use dataset.drop=[{name}]"
        )


def text_columns(options: Mapping[str, Any]) -> list[str] | None:
    """Return the columns beside the target that a file's reader leaves as text; None: all, as for `Encoding.text`."""
    if Notation.of(options) != PLAIN:
        return None
    named = [str(options[key]) for key in ("sequence", "tokens") if options.get(key) is not None]
    return [*_names(options["categorical"], "categorical"), *named]


def _text_columns(table: Table, columns: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """Return the columns whose text no option takes as what it is: no numbers, tokens, categories by name or kept ones."""
    numbers_there, categorical = number_columns(table.frame), options["categorical"]
    taken = {*_names(options.get("keep"), "keep"), *([] if categorical == "auto" else _names(categorical, "categorical"))}
    taken |= {str(options[key]) for key in ("tokens", "sequence") if options.get(key) is not None}
    return [name for name in columns if name not in numbers_there and name not in taken]


def number_look(table: Table, columns: Sequence[str], options: Mapping[str, Any]) -> Look:
    """Return how the numbers of a table look to be written where its options do not read them (`advcli.data.cells.look_of`)."""
    notation, text = Notation.of(options), _text_columns(table, columns, options)
    unread = {name for name in text if not reads_as_numbers(table.frame[name], notation)}
    return look_of(table.frame, columns, unread.__contains__, str(options.get("separator", ",")))


def nearly_numbers(table: Table, columns: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """Return the columns of numbers with a few wrong cells, which are no categories for that."""
    notation = Notation.of(options)
    return [name for name in _text_columns(table, columns, options) if _nearly_numbers(table.frame[name], notation)]


def _nearly_numbers(column: pd.Series, notation: Notation) -> bool:
    """Return whether all but a few values of a column are numbers, too many different ones to be names."""
    text = present(column)
    numbers = notation.numbers(text)
    known = numbers[~np.isnan(numbers)]
    return NEARLY * len(text) <= len(known) < len(text) and len(np.unique(known)) > MANY_NUMBERS


def _place(label: Any) -> tuple[int, float, str]:
    """Return where a category stands, whatever others there are: numbers first, as they rise, then text."""
    try:
        return 0, float(label), str(label)
    except ValueError:
        return 1, 0.0, str(label)


def missing_way(options: Mapping[str, Any]) -> str:
    """Return what becomes of cells without a value, after checking it and the bound of categories.

    Raises
    ------
    ConfigError
    """
    missing, most = str(options.get("missing") or "refuse"), options.get("max_categories")
    if missing not in MISSING_WAYS:
        raise ConfigError(f"dataset.missing={missing} must be {', '.join(MISSING_WAYS[:-1])} or {MISSING_WAYS[-1]}")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 2):
        raise ConfigError(f"dataset.max_categories={most} must be a whole number of at least 2, or null for no bound")
    return missing


def suspects(table: Table, columns: Sequence[str], options: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the columns that ``categorical=auto`` leaves out, with what each looks like and a line that says how to keep it."""
    tokens = options.get("tokens")
    keep, found = _names(options.get("keep"), "keep"), {}
    numbers_there = number_columns(table.frame)
    like_ids = named_as_ids(columns)
    for name in [name for name in columns if name not in numbers_there or name in like_ids]:
        if name == tokens or name in keep or not (looks := looks_like(table.frame[name])):
            continue
        count = len(counted(table.frame[name]))
        said = f"{SAID[looks]} ({count} values{'' if looks == 'date' else f' in {len(table.frame)} rows'})"
        words = ",".join([*keep, name])
        found[name] = (looks, f"column {name!r} left out: it {SUSPECT} {said}; dataset.keep=[{words}] takes it")
    return found


def gap_note(encoding: Encoding, cells: Any) -> list[str]:
    """Return what is said about the cells without a value, as a list of at most one line."""
    if encoding.missing == "refuse":
        return []
    count = int(np.isnan(cells.data if hasattr(cells, "indptr") else cells).sum())
    if not count:
        return []
    way = encoding.missing.replace("_", " ")
    said = {
        "indicator": "are marked by a feature, their numbers filled by the mean of the training rows",
        "most frequent": "hold the most frequent value of their column over the training rows",
    }
    text = any(column.categories is not None for column in encoding.columns)
    default = f"hold the {way} of their column over the training rows" + (", text its most frequent category" if text else "")
    return [f"{count} cells without a value {said.get(way, default)}"]


def _token_column(table: Table, name: str, sequence: str | None, notes: list[str]) -> Column:
    """Return a column of tokens with the attributes of its training rows, where the table says which they are, else of all."""
    groups = np.arange(len(table.frame)) if sequence is None else read_groups(table, str(sequence))
    train = "split" in table.frame
    known = (table.frame["split"] == "train").to_numpy() if train else np.ones(len(table.frame), dtype=bool)
    attributes = attribute_columns(_tokens(table, name), groups, known)
    notes.append(f"{len(attributes)} attributes of the tokens of column {name!r}{', those of the training rows' if train else ''}")
    return Column(name, attributes=attributes)


def remedies_for(column: pd.Series, look: Look, notation: Notation = PLAIN) -> tuple[str, str]:
    """Return what to do about text in a column of numbers, and about a cell without a value; see `Encoding.cells`."""
    name, looks = str(column.name), looks_like(column)
    drop = f"use dataset.drop=[{name}]"
    if name in look.columns:
        text = f"{notation_words(look, name)}; dataset.keep=[{name}] takes it as categories (with dataset.categorical=auto)"
    elif not is_number(column) and _nearly_numbers(column, notation):
        text = f"nearly all its values are numbers: correct it, empty it, or {drop}; dataset.keep=[{name}] takes all as categories"
    elif looks:
        text = f"it {SUSPECT} {SAID[looks]}: {drop}"
    else:
        text = f"one-hot encode it with dataset.categorical=[{name}] (auto: every column of text), or {drop}"
    return text, f"fill it with dataset.missing=median (or mean, most_frequent, indicator), correct it, remove the row or {drop}"


def notation_words(look: Look, name: str) -> str:
    """Return what is said of a column whose numbers look to be written in another way, and the options that read them."""
    own = look.columns[name]
    if look.notation == PLAIN:
        return f"its numbers look written in another way than those of other columns ({own} would read them): write all in one way"
    said = f"it {SUSPECT} numbers: {look.notation} reads them"
    if name in look.unclear:
        other = Notation(own.thousands or ".", None, own.units) if own.thousands else Notation(".", own.decimal, own.units)
        said += f" (if the {CHARACTER_NAMES[own.thousands or own.decimal]} means the other thing: {other})"
    return said
