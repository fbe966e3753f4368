"""What ``advcli data check`` says of a person's file: its columns, gaps, classes, suspects, and the command line that fits it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, ProblemsError
from .cells import MISSING, PLAIN, Look, Notation, cell_text, numbers_of, present, reads_as_numbers
from .columns import code_labels, label_numbers, listed, written_alike
from .encoding import nearly_numbers, notation_words, number_look
from .reading import format_of, read_any
from .registry import load, sources
from .suspects import likely_order, looks_like
from .table import SEPARATORS, Table, find_target, first_line

MANY = 20
"""Different fractional numbers from which on a target is one to be cut."""

RARE = 5
"""Rows of a class below which the usual five folds refuse it."""


@dataclass(frozen=True)
class Checked:
    """What there is to say about a file.

    Attributes
    ----------
    head : str
        File, rows, columns.
    columns : list of dict
        For each column ``column``, ``type``, ``gaps``, ``different``, ``values`` and ``taken as``.
    classes : list of dict
        For each class of the target ``class`` and ``rows``; empty without a target, and for numbers to be cut.
    remarks : list of str
        What is suspicious or wrong, a line each, with its remedy.
    options : dict
        Those of ``dataset=csv`` that fit the file, where they are not the defaults; empty without a target.
    """

    head: str
    columns: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    remarks: list[str]
    options: dict[str, Any]


def check_file(path: Path, target: str | None, separator: str | None = None) -> Checked:
    """Look at a file of any format that ``dataset=csv`` reads.

    Parameters
    ----------
    path : Path
    target : str or None
        The column of labels; None: not chosen yet.
    separator : str or None
        Character between the fields of CSV; None: the one that the heading has most of.

    Raises
    ------
    DataError
        The file cannot be read, or has no such column.
    """
    options: dict[str, Any] = {"path": str(path)}
    if separator is None:
        separator = _separator(path)
    if separator != ",":
        options["separator"] = separator
    table = read_any(path, None, separator=separator, text=[] if target is None else [target])
    names = list(map(str, table.frame.columns))
    targets = [] if target is None else find_target(path, target, names)
    if target is not None:
        options["target"] = target
    features = [name for name in names if name not in set(targets)]
    look = _look(table, features, targets, separator)
    notation = look.notation
    options |= notation.options
    nearly = nearly_numbers(table, features, {"categorical": "auto", **notation.options})
    numeric = {*look.columns, *nearly}
    suspects = {name: "" if name in numeric else looks_like(present(table.frame[name])) for name in features}
    kinds = {name: "number" if name in nearly else _kind(table, name, look.columns.get(name, notation)) for name in names}
    columns = []
    for name in names:
        role = "label" if name in set(targets) else _taken(kinds[name], suspects[name])
        columns.append(_line(table, name, kinds[name], role, look.columns.get(name, notation)))
    remarks = [*_notation_remarks(look)]
    remarks += [f"{name} looks like {'a date' if looks == 'date' else 'an identifier'}" for name, looks in suspects.items() if looks]
    auto, found = any(kinds[name] == "text" for name in features), [name for name, looks in suspects.items() if looks]
    if found:
        names_found = ",".join(found)
        remarks.append(f"these are left out: dataset.keep=[{names_found}] takes them" if auto else "these are left out by dataset.drop")
    empty = [name for name in features if kinds[name] == "empty"] + ([] if auto else found)
    if auto:
        options["categorical"] = "auto"
    if empty:
        options["drop"] = empty
    taken = [name for name in features if not suspects[name] and name not in empty]
    gaps = [each["column"] for each in columns if each["gaps"] and each["column"] in taken]
    if gaps:
        options["missing"] = "median"
        remarks.append(f"no value in some cells of {listed(gaps)}: dataset.missing=median, mean, most_frequent or indicator fills them")
    ticked = [name for name in gaps if present(table.frame[name]).nunique() == 1]
    if ticked:
        remarks.append(f"one value or nothing in {listed(ticked)}: nothing counts as a value too")
    many = [name for name in taken if kinds[name] == "text" and present(table.frame[name]).nunique() > _bound()]
    if many:
        remarks.append(f"more than {_bound()} categories in {listed(many)}: the rarest share one feature (dataset.max_categories)")
    if target is None:
        classes = []
    elif target in targets:
        classes = _target(table, target, options, remarks, notation)
    else:
        classes = _sets(table, targets, target, remarks)
    if target is None:
        remarks.append("say which column holds the labels: target=COLUMN")
    elif not any(remark.startswith("the target") for remark in remarks):
        remarks += _problems(options)
    head = f"{path}: {len(table.frame)} rows, {len(names)} columns"
    return Checked(head, columns, classes, remarks, {} if target is None else options)


def _separator(path: Path) -> str:
    """Return the separator that the heading of a CSV file has most of, a comma where it has none."""
    if format_of(path) != "csv":
        return ","
    heading = first_line(path)
    return max((",", *SEPARATORS), key=heading.count)


def _bound() -> int:
    return int(sources()["csv"].defaults["max_categories"])


def _look(table: Table, features: list[str], targets: list[str], separator: str) -> Look:
    """Return how the numbers of the features look to be written, and those of a target that is to be cut."""
    cut = [name for name in targets if len(targets) == 1 and table.frame[name].nunique() > MANY]
    return number_look(table, [*features, *cut], {"categorical": "auto", "separator": separator})


def _notation_remarks(look: Look) -> list[str]:
    """Return what is said of numbers in another notation than that of programs."""
    if look.columns and look.notation == PLAIN:
        each = ", ".join(f"{name} ({own})" for name, own in look.columns.items())
        return [f"numbers are written in several ways, which one command cannot read; write all in one way: {each}"]
    said = [f"numbers in {listed(list(look.columns))} are written in another way than programs do: {look.notation} reads them"]
    said += [f"{name} could also be read otherwise: {notation_words(look, name)}" for name in look.unclear]
    if set(look.notation.units) & {"<", ">", "<=", ">=", "≤", "≥", "~", "≈"}:
        said.append("of a value that is only bounded, such as <40, the bound is taken")
    return said if look.columns else []


def _kind(table: Table, name: str, notation: Notation) -> str:
    column = table.frame[name]
    if present(column).empty:
        return "empty"
    if not reads_as_numbers(column, notation):
        return "text"
    values = numbers_of(column, notation)[0]
    values = values[~np.isnan(values)]
    return "whole" if np.all(values == np.round(values)) else "number"


def _taken(kind: str, looks: str) -> str:
    if looks:
        return f"no: {looks}"
    return {"empty": "no: empty", "text": "categories"}.get(kind, "number")


def _line(table: Table, name: str, kind: str, taken: str, notation: Notation) -> dict[str, Any]:
    column = table.frame[name]
    values = present(column)
    if kind in ("whole", "number"):
        numbers = numbers_of(column, notation)[0]
        shown = f"{np.nanmin(numbers):.6g} to {np.nanmax(numbers):.6g}"
    else:
        counts = values.value_counts()
        shown = _short(", ".join(map(str, counts.index[:5])) + (", ..." if len(counts) > 5 else ""), 32)
    gaps = len(column) - len(values)
    return {"column": _short(name), "type": kind, "gaps": gaps, "different": values.nunique(), "values": shown, "taken as": taken}


def _short(text: Any, most: int = 20) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= most else f"{words[: most - 3]}..."


def _sets(table: Table, targets: list[str], target: str, remarks: list[str]) -> list[dict[str, Any]]:
    """Return the labels of rows that have several, one a column, with their rows."""
    remarks.append("rows have sets of labels, one a column: loss=sets and the methods of docs/multilabel.md learn them")
    marks = {name: numbers_of(table.frame[name])[0] for name in targets}
    return [{"class": _short(name.removeprefix(target[:-1])), "rows": int((values == 1.0).sum())} for name, values in marks.items()]


def _target(table: Table, target: str, options: dict[str, Any], remarks: list[str], notation: Notation) -> list[dict[str, Any]]:
    """Return the classes with their rows; what follows for the command and what is remarkable is added."""
    text = cell_text(table.frame[target])
    if (gaps := int((text == "").sum())) > 0:
        remarks.append(f"the target {target} has no value in {gaps} rows: fill or remove them, advcli guesses no labels")
    unknown = sorted(set(text.str.lower()) & (MISSING - {""}))
    if unknown:
        remarks.append(f"{listed(unknown)} is a class of {target} like any other; if it means no value, remove those rows")
    codes, labels = code_labels(text[text != ""], notation)
    numbers = label_numbers(labels, notation)
    if len(labels) > MANY and numbers is not None:
        options |= {"cut": "equal_frequency", "n_classes": 5}
        remarks.append(f"{target} holds {len(labels)} different numbers: cut into five ordered classes of equal size")
        return []
    for group in written_alike(labels):
        remarks.append(f"{target} holds what looks like one label in several writings, each a class of its own: {listed(group)}")
    counted = None if numbers is None else likely_order([int(number) if number.is_integer() else number for number in numbers])
    order = likely_order(labels) if counted is None else labels
    if order is not None:
        key, value = ("order", order) if counted is None else ("ordered", True)
        options[key] = value
        shown = " < ".join(map(str, order))
        remarks.append(f"the labels look ordered, {shown}: leave dataset.{key} out if they are not; with it loss=absolute and others fit")
    counts = np.bincount(codes, minlength=len(labels)).tolist()
    rare = [f"{label} ({count})" for label, count in zip(labels, counts, strict=True) if count < RARE]
    if rare:
        options["allow_small_classes"] = True
        remarks.append(f"classes with fewer than {RARE} rows: {listed(rare)}; merge or remove them, or accept them")
    rows = dict(zip(labels, counts, strict=True))
    return [{"class": _short(label), "rows": rows[label]} for label in (order or labels)]


def _problems(options: dict[str, Any]) -> list[str]:
    """Return what is still wrong when the file is loaded by these options."""
    try:
        load({"name": "csv", "source": "csv", **options}, Path())
    except ProblemsError as error:
        return list(error.problems)
    except DataError as error:
        return [str(error)]
    return []
