"""Columns of a table as columns of X: numbers as they are, categories one-hot; learned from one table, applied to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from ..errors import ConfigError, DataError
from .columns import code_labels, cost_columns, listed, numbers, reads_as_numbers, words
from .sequences import attribute_columns, attribute_rows, read_groups
from .table import Table, choose_column, is_number, number_columns, target_columns


@dataclass(frozen=True)
class Column:
    """A column of a table that features are made of.

    Attributes
    ----------
    name : str
        Its name in the heading.
    categories : tuple of str, int or float, or None
        The values that are one-hot encoded, in the order of their features; None for a column of numbers.
    attributes : tuple of str or None
        Of a column of tokens: the attributes that have features (`advcli.data.sequences.token_attributes`), in their order.
    """

    name: str
    categories: tuple[Any, ...] | None = None
    attributes: tuple[str, ...] | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of its features: ``size`` for numbers, ``colour=red`` for a category, ``word=the`` for an attribute of a token."""
        if self.attributes is not None:
            return self.attributes
        return (self.name,) if self.categories is None else tuple(f"{self.name}={value}" for value in self.categories)


@dataclass(frozen=True)
class Encoding:
    """How rows of a table become rows of X; learned from one table, applied to others.

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
    """

    columns: tuple[Column, ...]
    others: tuple[str, ...] = ()
    separator: str = ","
    sequence: str | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of X (`Column.feature_names`)."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def text(self) -> tuple[str, ...]:
        """Columns that are read as text, so that 01 and 1 stay apart."""
        named = tuple(column.name for column in self.columns if column.categories is not None or column.attributes is not None)
        return named if self.sequence is None else (*named, self.sequence)

    def groups(self, table: Table) -> NDArray[np.intp] | None:
        """Return the number of every row's sequence; None where rows stand alone."""
        return None if self.sequence is None else read_groups(table, self.sequence)

    def check_columns(self, path: Path, names: Sequence[str]) -> list[str]:
        """Return the columns of `others` among ``names``, which need not be there.

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
        if missing or unexpected:
            said = [f"{word}: {listed(found)}" for word, found in (("missing", missing), ("unexpected", unexpected)) if found]
            raise DataError(f"{path} has other columns than the model was fitted on; {'; '.join(said)}")
        return [name for name in names if name in others]

    def encode(self, table: Table, remedies: Callable[[str], tuple[str, str]] | None = None) -> Any:
        """Return the features of a table, shape (n, d); csr_array where there are attributes of tokens.

        Parameters
        ----------
        table : Table
        remedies : callable, optional
            For the name of a column of numbers: what to do about text in it, and about a cell without a number.

        Raises
        ------
        DataError
            A cell without a value, text in a column of numbers, or a category that was not there when the encoding was learned.
        """
        blocks: list[Any] = []
        known = number_columns(table.frame)
        together = [
            column.name for column in self.columns if column.categories is None and column.attributes is None and column.name in known
        ]
        # thousands of columns are taken at once; one that is not finite is looked for one by one
        values = table.frame[together].to_numpy(np.float64)
        at = dict(zip(together, range(len(together)), strict=True)) if np.isfinite(values).all() else {}
        if len(at) == len(self.columns):
            return np.ascontiguousarray(values)
        for column in self.columns:
            if column.name in at:
                blocks.append(values[:, at[column.name], None])
                continue
            if column.attributes is not None:
                groups = self.groups(table)
                tokens = _tokens(table, column.name)
                positions = {name: at for at, name in enumerate(column.attributes)}
                blocks.append(attribute_rows(tokens, np.arange(len(tokens)) if groups is None else groups, positions))
                continue
            if column.categories is None:
                remedy = ("correct it or remove the row",) * 2 if remedies is None else remedies(column.name)
                blocks.append(numbers(table, column.name, "as a feature", *remedy)[:, None])
                continue
            text = words(table, column.name, "fill it or remove the row")
            categories = pd.Index(column.categories)
            numeric = categories.dtype.kind in "if"
            codes = categories.get_indexer(pd.Index(pd.to_numeric(text, errors="coerce") if numeric else text))
            bad = np.flatnonzero(codes < 0)
            if bad.size:
                raise DataError(
                    f"{table.path}: column {column.name!r} holds {text.iloc[bad[0]]!r} in {table.place(int(bad[0]))}, a category that was "
                    f"not there to learn from ({listed(column.categories)}); correct it or remove the row"
                )
            blocks.append((codes[:, None] == np.arange(len(categories))).astype(np.float64))
        if any(sparse.issparse(block) for block in blocks):
            return sparse.csr_array(sparse.hstack(blocks, format="csr"))
        return np.ascontiguousarray(np.hstack(blocks))


def _tokens(table: Table, name: str) -> list[str]:
    return [str(token).strip() for token in table.frame[name]]


def fill_missing(table: Table, columns: Sequence[str], missing: str, notes: list[str]) -> Table:
    """Return the table with the mean or median of its column in every cell without a number; the rows of an official test do not count.

    Raises
    ------
    ConfigError
        ``missing`` is neither ``mean`` nor ``median``.
    """
    if missing not in ("mean", "median"):
        raise ConfigError(f"dataset.missing={missing} must be refuse, mean or median")
    frame, filled = table.frame, 0
    filled_columns: dict[Any, Any] = {}
    known = (frame["split"] != "test").to_numpy() if "split" in frame else np.ones(len(frame), dtype=bool)
    for name in columns:
        column = frame[name]
        if is_number(column):
            values = column
        elif reads_as_numbers(column):
            values = pd.to_numeric(column.astype(str).str.strip(), errors="coerce")
        else:
            continue
        if values.isna().any() and values[known].notna().any():
            filled += int(values.isna().sum())
            filled_columns[name] = values.fillna(getattr(values[known], missing)())
    if filled:
        notes.append(
            f"{filled} cells without a value hold the {missing} of their column" + (" over the training rows" if not known.all() else "")
        )
        # one new frame: setting columns one by one takes time for all of them each time
        frame = pd.DataFrame({name: filled_columns.get(name, column) for name, column in frame.items()})
    return replace(table, frame=frame)


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
    """Return the encoding of the columns: numbers; those of ``categorical`` (``auto``: all of text) one-hot by the values that occur."""
    frame, categorical = table.frame, options["categorical"]
    if categorical == "auto":
        numbers_there = number_columns(frame)
        encoded = {
            name for name in columns if name != options.get("tokens") and name not in numbers_there and not reads_as_numbers(frame[name])
        }
    else:
        encoded = set(_names(categorical, "categorical")) & set(columns)
    learned = []
    sequence, tokens = options.get("sequence"), options.get("tokens")
    for name in columns:
        if name == tokens:
            learned.append(_token_column(table, name, sequence, notes))
            continue
        if name not in encoded:
            learned.append(Column(name))
            continue
        labels = code_labels(words(table, name, f"fill it, remove the row or use dataset.drop=[{name}]"))[1]
        learned.append(Column(name, tuple(labels)))
        notes.append(f"column {name!r} one-hot encoded: {len(labels)} features ({listed(labels)})")
    used = {*columns, *([] if sequence is None else [str(sequence)])}
    others = [name for name in map(str, frame.columns) if name not in used]
    return Encoding(tuple(learned), tuple(others), str(options.get("separator", ",")), None if sequence is None else str(sequence))


def _token_column(table: Table, name: str, sequence: str | None, notes: list[str]) -> Column:
    """Return a column of tokens with the attributes of its training rows, where the table says which they are, else of all."""
    groups = np.arange(len(table.frame)) if sequence is None else read_groups(table, str(sequence))
    train = "split" in table.frame
    known = (table.frame["split"] == "train").to_numpy() if train else np.ones(len(table.frame), dtype=bool)
    attributes = attribute_columns(_tokens(table, name), groups, known)
    notes.append(f"{len(attributes)} attributes of the tokens of column {name!r}{', those of the training rows' if train else ''}")
    return Column(name, attributes=attributes)


def remedies_for(name: str) -> tuple[str, str]:
    """Return what to do about text in a column of numbers, and about a cell without a number; see `Encoding.encode`."""
    drop = f"use dataset.drop=[{name}]"
    return f"one-hot encode it with dataset.categorical=[{name}], or {drop}", f"correct it, remove the row or {drop}"
