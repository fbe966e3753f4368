"""An encoding learned from columns: fill values, categories, suspects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...core.errors import ConfigError, DataError
from .cells import PLAIN, TRUTHS, Look, Notation, cell_text, gaps_in, present, reads_as_numbers
from .column import Column, names_of
from .columns import SUSPECT, code_labels, cost_columns, listed
from .encoding import Encoding
from .notation import column_of_nearly_numbers, nearly_numbers, notation_words, number_look, split_tokens
from .suspects import SAID, counted, looks_like, named_as_ids
from .table import Table, choose_column, is_number, number_columns, target_columns
from .tokens import attribute_columns, read_groups

MISSING_WAYS = ("refuse", "mean", "median", "most_frequent", "indicator")
"""What may become of cells without a value (``dataset.missing``)."""


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
    drop = names_of(options["drop"], "drop")
    wanted = None if options["features"] is None else names_of(options["features"], "features")
    categorical = [] if options["categorical"] == "auto" else names_of(options["categorical"], "categorical")
    there = set(names)
    asked: dict[str, list[str]] = {"drop": drop, "features": wanted or [], "categorical": categorical, "costs": costs}
    asked["keep"] = names_of(options.get("keep"), "keep")
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


def learn_encoding(table: Table, columns: Sequence[str], options: Mapping[str, Any], notes: list[str]) -> Encoding:
    """Return the encoding of the columns, of which nothing is learned yet: numbers, and categories of ``categorical``.

    ``auto`` makes categories of all text but identifiers, dates and texts (`advcli.data.tables.suspects.looks_like`), which it leaves out,
    and numbers in another notation than that of the options, which are columns of numbers with text in them.
    """
    frame, notation = table.frame, Notation.of(options)
    missing, most = missing_way(options), options.get("max_categories")
    sequence, tokens = options.get("sequence"), options.get("tokens")
    columns = list(columns)
    if options["categorical"] == "auto":
        columns, encoded = _automatic(table, columns, options, notation, notes)
    else:
        encoded = set(names_of(options["categorical"], "categorical")) & set(columns)
        like_ids = [name for name in named_as_ids(columns) if name not in encoded]
        kept = names_of(options.get("keep"), "keep")
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
    keep, found = names_of(options.get("keep"), "keep"), {}
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
    attributes = attribute_columns(split_tokens(table, name), groups, known)
    notes.append(f"{len(attributes)} attributes of the tokens of column {name!r}{', those of the training rows' if train else ''}")
    return Column(name, attributes=attributes)


def remedies_for(column: pd.Series, look: Look, notation: Notation = PLAIN) -> tuple[str, str]:
    """Return what to do about text in a column of numbers, and about a cell without a value; see `Encoding.cells`."""
    name, looks = str(column.name), looks_like(column)
    drop = f"use dataset.drop=[{name}]"
    if name in look.columns:
        text = f"{notation_words(look, name)}; dataset.keep=[{name}] takes it as categories (with dataset.categorical=auto)"
    elif not is_number(column) and column_of_nearly_numbers(column, notation):
        text = f"nearly all its values are numbers: correct it, empty it, or {drop}; dataset.keep=[{name}] takes all as categories"
    elif looks:
        text = f"it {SUSPECT} {SAID[looks]}: {drop}"
    else:
        text = f"one-hot encode it with dataset.categorical=[{name}] (auto: every column of text), or {drop}"
    return text, f"fill it with dataset.missing=median (or mean, most_frequent, indicator), correct it, remove the row or {drop}"
