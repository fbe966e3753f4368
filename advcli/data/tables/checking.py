"""What ``advcli data check`` says of a person's file: its columns, gaps, classes, suspects, and the command line that fits it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.util import hash_array, hash_pandas_object

from ...core.errors import DataError, ProblemsError
from ..registry import complete_options
from ..source import COLUMN_OPTIONS
from .cells import MISSING, PLAIN, TRUTHS, Look, Notation, cell_text, gaps_in, is_number, numbers_of, reads_as_numbers
from .opening import WINDOWS, NotTextError, check_encoding, decode, read_bytes
from .options import TableOptions
from .suspects import SAID, Inspection, counted, likely_order, looks_like, notation_words
from .table import Table, format_of, listed, read_table, separator_of, table_of
from .tabular import table_dataset
from .target import code_labels, label_numbers, written_alike

_TAKEN = {"empty": "no: empty", "text": "categories"}  # what columns of a kind are taken as, where they are not taken as numbers
_MANY = 20  # different numbers above which a target is one to be cut
_RARE = 5  # rows of a class below which the usual five folds refuse it


@dataclass(frozen=True)
class Checked:
    """What there is to say about a file.

    ``columns`` and ``classes`` are rows of tables, ``remarks`` what is suspicious or wrong, a line each, with its remedy. ``options`` are
    the options of ``dataset=csv`` that fit the file and differ from the defaults; empty without a target.
    """

    head: str
    columns: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    remarks: list[str]
    options: dict[str, Any]


@dataclass(frozen=True)
class _ColumnFacts:
    """What there is to know of a column, counted once.

    ``kind`` is ``empty``, ``true/false``, ``whole``, ``number`` or ``text``, ``looks`` what it looks like instead of a feature
    (`looks_like`), ``values`` the range of numbers or the most frequent values. ``content`` has a number for each row, equal where values
    are equal: columns with equal content are copies.
    """

    kind: str
    looks: str
    gaps: int
    different: int
    values: str
    content: NDArray[np.uint64]


def check_file(path: Path, target: str | None, separator: str | None = None, encoding: str | None = None) -> Checked:
    """Look at a file of any format that ``dataset=csv`` reads; a pipe is read once.

    ``target`` is None where it is not chosen yet. ``separator`` None: the one by which the heading has most fields; ``encoding`` None: the
    one of the file's mark, else UTF-8, else cp1252.
    """
    options: dict[str, Any] = {"path": str(path)} | ({} if target is None else {"target": target})
    remarks: list[str] = []
    table, reread = _read(path, target, separator, encoding, options, remarks)
    names, targets = table.names, table.targets
    targets_there = set(targets)
    features = [name for name in names if name not in targets_there]
    cut = [name for name in targets if len(targets) == 1 and table.frame[name].nunique() > _MANY]
    look = Inspection(table, [*features, *cut]).look
    if look.notation != PLAIN:  # a reader of numbers has taken 1.234 for one and a bit
        table, options = reread(replace(table.options, notation=look.notation)), options | look.notation.options
    nearly = Inspection(table, features).nearly_numbers
    facts = {name: _facts(table.frame[name], look.columns.get(name, look.notation), name in nearly, name in look.columns) for name in names}
    columns = [
        {"column": _short(name), "type": fact.kind, "gaps": fact.gaps, "different": fact.different, "values": fact.values}
        | {"taken as": "label" if name in targets_there else f"no: {fact.looks}" if fact.looks else _TAKEN.get(fact.kind, "number")}
        for name, fact in facts.items()
    ]
    remarks += _notation_remarks(look)
    taken = _features({name: facts[name] for name in features}, options, remarks)
    remarks += [*_constant(facts, taken), *_copies(facts, taken, targets), *_duplicates(facts)]
    head = f"{path}: {len(table.frame)} rows, {len(names)} columns"
    if target is None:
        return Checked(head, columns, [], [*remarks, "say which column holds the labels: target=COLUMN"], {})
    one = target in targets
    classes = _target(table, target, options, remarks, look.notation) if one else _sets(table, targets, target, remarks)
    if not any(remark.startswith("the target") for remark in remarks):
        remarks += _problems(table, options)
    return Checked(head, columns, classes, remarks, options)


def _features(facts: Mapping[str, _ColumnFacts], options: dict[str, Any], remarks: list[str]) -> list[str]:
    """Return the columns that features are made of; what follows for the command and what is remarkable is added."""
    suspects = [name for name, fact in facts.items() if fact.looks]
    remarks += [f"{name} looks like {SAID[facts[name].looks]}" for name in suspects]
    auto = any(fact.kind == "text" for fact in facts.values())
    if suspects:
        names_found = ",".join(suspects)
        remarks.append(f"these are left out: dataset.keep=[{names_found}] takes them" if auto else "these are left out by dataset.drop")
    empty = [name for name, fact in facts.items() if fact.kind == "empty"] + ([] if auto else suspects)
    if auto:
        options["categorical"] = "auto"
    if empty:
        options["drop"] = empty
    taken = [name for name, fact in facts.items() if not fact.looks and name not in empty]
    gaps = [name for name in taken if facts[name].gaps]
    if gaps:
        options["missing"] = "median"
        remarks.append(f"no value in some cells of {listed(gaps)}: dataset.missing=median, mean, most_frequent or indicator fills them")
    ticked = [name for name in gaps if facts[name].different == 1]
    if ticked:
        remarks.append(f"one value or nothing in {listed(ticked)}: nothing counts as a value too")
    most = COLUMN_OPTIONS["max_categories"]
    many = [name for name in taken if facts[name].kind == "text" and facts[name].different > most]
    if many:
        remarks.append(f"more than {most} categories in {listed(many)}: the rarest share one feature (dataset.max_categories)")
    return taken


def _read(
    path: Path, target: str | None, separator: str | None, encoding: str | None, options: dict[str, Any], remarks: list[str]
) -> tuple[Table, Callable[[TableOptions], Table]]:
    """Return the file as a table, and a function that returns the table by other options.

    The options by which it was read, where they are not the defaults, and what is remarkable are added.
    """
    chosen = TableOptions(target=target, categorical=None)
    if format_of(path) != "csv":
        table = read_table(path, chosen)
        return table, lambda options: replace(table, options=options)
    raw, encoding = read_bytes(path, once=True), check_encoding(encoding)
    asked = separator or ","
    try:
        content, declared = decode(path, raw, asked, encoding)
    except NotTextError:
        if encoding is not None:
            raise
        encoding = WINDOWS
        content, declared = decode(path, raw, asked, encoding)
        remarks.append(f"the file is not UTF-8 and was read as {encoding}, what Windows of Western Europe writes: look whether it is right")
    if encoding is not None:
        options["encoding"] = encoding
    separator = separator_of(content) if separator is None and declared == asked else declared
    if separator != ",":
        options["separator"] = separator
    reread = partial(table_of, path, content, separator)
    return reread(replace(chosen, separator=separator)), reread


def _notation_remarks(look: Look) -> list[str]:
    """Return the remarks on numbers in another notation than programs write."""
    if look.columns and look.notation == PLAIN:
        columns = ", ".join(f"{name} ({notation})" for name, notation in look.columns.items())
        return [f"numbers are written in several ways, which one command cannot read; write all in one way: {columns}"]
    remarks = [f"numbers in {listed(list(look.columns))} are written in another way than programs do: {look.notation} reads them"]
    remarks += [f"{name} could also be read otherwise: {notation_words(look, name)}" for name in look.unclear]
    if set(look.notation.units) & {"<", ">", "<=", ">=", "≤", "≥", "~", "≈"}:
        remarks.append("of a value that is only bounded, such as <40, the bound is taken")
    return remarks if look.columns else []


def _facts(column: pd.Series, notation: Notation, nearly: bool, written: bool) -> _ColumnFacts:
    """Return the facts about a column. It may hold numbers with a few wrong cells (``nearly``) or in another notation (``written``)."""
    looks, rows = "" if nearly or written else looks_like(column), len(column)
    if is_number(column):
        numbers = column.to_numpy(np.float64)
        there = numbers[~np.isnan(numbers)]
        kind, shown = _range(there, column.dtype.kind == "b")
        return _ColumnFacts(kind, looks, rows - len(there), len(pd.unique(there)), shown, hash_array(numbers + 0.0))
    counts = counted(column)
    distinct = pd.Series(counts.index, dtype=object)
    gaps = rows - int(counts.sum())
    if counts.empty:
        return _ColumnFacts("empty", looks, gaps, 0, "", np.zeros(rows, dtype=np.uint64))
    codes, raw = pd.factorize(column)  # -1, the last of what follows, for no value
    texts = cell_text(pd.Series([*raw, ""], dtype=object))
    numeric = reads_as_numbers(distinct, notation)
    if numeric:
        content = hash_array(notation.numbers(texts) + 0.0)
    else:
        content = texts.mask(gaps_in(texts), "").map(hash).to_numpy(np.int64).view(np.uint64)
    if numeric or nearly:
        numbers = notation.numbers(distinct)
        kind, shown = _range(numbers[~np.isnan(numbers)], bool(distinct.str.lower().isin(TRUTHS).all()))
    else:
        kind = "text"
        shown = _short(", ".join(counts.index[:5]) + (", ..." if len(counts) > 5 else ""), 32)
    return _ColumnFacts("number" if nearly else kind, looks, gaps, len(counts), shown, content[codes])


def _range(values: NDArray[np.float64], boolean: bool) -> tuple[str, str]:
    """Return the kind of a column of numbers, and their range in words."""
    if not len(values):
        return "empty", ""
    if boolean:
        return "true/false", ", ".join(str(bool(value)) for value in np.unique(values))
    return "whole" if np.all(values == np.round(values)) else "number", f"{values.min():.6g} to {values.max():.6g}"


def _constant(facts: Mapping[str, _ColumnFacts], taken: Sequence[str]) -> list[str]:
    """Return the remark on columns that have one value in every row."""
    names = [name for name in taken if facts[name].different == 1 and not facts[name].gaps]
    line = f"the same value in every row of {listed(names)}, which tells nothing: dataset.drop=[{','.join(names)}] leaves it out"
    return [line] if names else []


def _copies(facts: Mapping[str, _ColumnFacts], taken: Sequence[str], targets: Sequence[str]) -> list[str]:
    """Return the remarks on columns that are equal to an earlier one, or to a target."""
    first: dict[bytes, str] = {}
    remarks = []
    for name in [*targets, *taken]:
        if facts[name].different < 2:
            continue
        earlier = first.setdefault(hashlib.sha256(facts[name].content.tobytes()).digest(), name)
        if earlier != name and name not in targets:
            gives = ", which gives the answer away" if earlier in targets else ""
            remarks.append(f"{name} is a copy of {earlier}{gives}: dataset.drop=[{name}] leaves it out")
    return remarks


def _duplicates(facts: Mapping[str, _ColumnFacts]) -> list[str]:
    """Return the remark on rows that are equal to an earlier one in every column."""
    rows = hash_pandas_object(pd.DataFrame({name: fact.content for name, fact in facts.items()}), index=False)
    count = len(rows) - rows.nunique()
    verb = "row is a copy of an earlier one" if count == 1 else "rows are copies of earlier ones"
    line = f"{count} {verb}: where they are one example that was written twice, remove them, or test rows are also trained on"
    return [line] if count else []


def _short(text: Any, most: int = 20) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= most else f"{words[: most - 3]}..."


def _sets(table: Table, targets: list[str], target: str, remarks: list[str]) -> list[dict[str, Any]]:
    """Return the labels of rows that have several, one a column, with their rows."""
    remarks.append("rows have sets of labels, one a column: loss=sets and the methods of docs/howto/learn/multilabel.md learn them")
    marks = {name: numbers_of(table.frame[name])[0] for name in targets}
    return [{"class": _short(name.removeprefix(target[:-1])), "rows": int((values == 1.0).sum())} for name, values in marks.items()]


def _target(table: Table, target: str, options: dict[str, Any], remarks: list[str], notation: Notation) -> list[dict[str, Any]]:
    """Return the classes with their rows; what follows for the command and what is remarkable is added."""
    frequencies = table.frame[target].value_counts()  # what follows looks at each different cell once
    text, rows_of = cell_text(pd.Series(frequencies.index, dtype=object)), frequencies.to_numpy()
    if (gaps := int(rows_of[text == ""].sum())) > 0:
        remarks.append(f"the target {target} has no value in {gaps} rows: fill or remove them, advcli guesses no labels")
    unknown = sorted(set(text.str.lower()) & (MISSING - {""}))
    if unknown:
        remarks.append(f"{listed(unknown)} is a class of {target} like any other; if it means no value, remove those rows")
    if gaps == len(table.frame):
        return []
    codes, labels = code_labels(text[text != ""], notation)
    numbers = label_numbers(labels, notation)
    if len(labels) > _MANY and numbers is not None:
        options |= {"cut": "equal_frequency", "n_classes": 5}
        remarks.append(f"{target} holds {len(labels)} different numbers: cut into five ordered classes of equal size")
        return []
    for group in written_alike(labels):
        remarks.append(f"{target} holds what looks like one label in several writings, each a separate class: {listed(group)}")
    counted = None if numbers is None else likely_order([int(number) if number.is_integer() else number for number in numbers])
    order = likely_order(labels) if counted is None else labels
    if order is not None:
        key, value = ("order", order) if counted is None else ("ordered", True)
        options[key] = value
        shown = " < ".join(map(str, order))
        remarks.append(f"the labels look ordered, {shown}: leave dataset.{key} out if they are not; with it loss=absolute and others fit")
    counts = np.bincount(codes, rows_of[text != ""], len(labels)).astype(int).tolist()
    rare = [f"{label} ({count})" for label, count in zip(labels, counts, strict=True) if count < _RARE]
    if rare:
        options["allow_small_classes"] = True
        remarks.append(f"classes with fewer than {_RARE} rows: {listed(rare)}; merge or remove them, or accept them")
    rows = dict(zip(labels, counts, strict=True))
    return [{"class": _short(label), "rows": rows[label]} for label in (order or labels)]


def _problems(table: Table, options: dict[str, Any]) -> list[str]:
    """Return what is still wrong when the table is taken by these options."""
    try:
        table_dataset(replace(table, options=TableOptions.read(complete_options({"name": "csv", "source": "csv", **options}))))
    except ProblemsError as error:
        return list(error.problems)
    except DataError as error:
        return [str(error)]
    return []
