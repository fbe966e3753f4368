"""Labels that several columns have together: probabilities or votes for each class, or labels by annotators; and what labels cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import ConfigError, DataError
from ...core.notes import noted
from ...core.typing import Array
from ...losses import matrices
from ..labels.annotators import dawid_skene
from ..labels.soft import shares
from .encoding import finite_numbers
from .options import TableOptions
from .table import Table
from .target import match_labels

_SHOWN = 12  # classes whose shares a note says


def read_shares(table: Table, notes: list[str]) -> tuple[Array, list[Any], bool]:
    """Return the distributions (n, k) in the columns of a list of targets, the classes, and whether these are ordered.

    A class is named as its column is; of ``PREFIX*`` by what stands for the star.
    """
    columns = table.targets
    prefixes = [pattern[:-1] for pattern in table.options.shares if pattern.endswith("*")]
    classes = [next((name[len(prefix) :] for prefix in prefixes if name.startswith(prefix)), name) for name in columns]
    if len(set(classes)) < len(classes) or "" in classes:
        raise ConfigError(f"dataset.target=[{table.options.target}] means the columns {', '.join(columns)}, two classes of which are alike")
    if len(columns) < 2:
        raise DataError(f"{table.path}: dataset.target=[{table.options.target}] means one column, {columns[0]!r}; give one for each class")
    purpose, remedies = "as a probability or a count of votes", ("give columns of probabilities or votes", "correct it or remove the row")
    cells = [finite_numbers(table, name, purpose, remedies) for name in columns]
    P, votes = shares(np.column_stack(cells), str(table.path), table.place, columns)
    if votes:
        text = f"votes for {len(classes)} classes in columns {columns[0]!r} to {columns[-1]!r} are divided by their sums"
        notes.append(noted("ADV120", text))
    return _settled(P, classes, table, notes)


def read_annotators(table: Table, notes: list[str]) -> tuple[Array, list[Any], bool]:
    """Return the distributions (n, k) that Dawid and Skene's algorithm finds in the columns of annotators, as `read_shares`."""
    columns = table.targets
    if len(columns) < 2:
        remedy = "give one for each annotator, or dataset.target"
        raise DataError(f"{table.path}: dataset.annotators means one column, {columns[0]!r}; {remedy}")
    labels = table.frame[columns].apply(lambda column: table.text(str(column.name)))
    empty = np.flatnonzero((labels == "").all(axis=1))
    if empty.size:
        raise DataError(f"{table.path}: no annotator labels {table.place(int(empty[0]))}; remove the row")
    crowd = dawid_skene(labels)
    skill = {name: float(np.average(np.diag(matrix), weights=crowd.prior)) for name, matrix in crowd.confusion.items()}
    best, worst = max(skill, key=skill.__getitem__), min(skill, key=skill.__getitem__)
    estimated = f"estimated shares of right labels from {skill[worst]:.2f} ({worst}) to {skill[best]:.2f} ({best})"
    notes.append(noted("ADV120", f"labels of {len(columns)} annotators as probabilities by Dawid and Skene (1979): {estimated}"))
    return _settled(crowd.probabilities.to_numpy(), [str(name) for name in crowd.probabilities.columns], table, notes)


def _settled(P: Array, classes: list[Any], table: Table, notes: list[str]) -> tuple[Array, list[Any], bool]:
    """Return distributions and classes in the order of ``dataset.order``, and whether there is one; the classes are noted."""
    order, ordered = table.options.order, table.options.ordered
    if order is not None:
        places = match_labels(order, classes)
        named = [place for place in places if place is not None]
        if len(set(named)) < len(classes) or len(named) != len(order):
            raise ConfigError(f"dataset.order={list(map(str, order))} must list each class once: {', '.join(map(str, classes))}")
        P, classes, ordered = np.ascontiguousarray(P[:, named]), [classes[place] for place in named], True
    means = [f"{label} {share:.3f}" for label, share in zip(classes, P.mean(axis=0), strict=True)]
    said = ", ".join(means[:_SHOWN]) + (", ..." if len(means) > _SHOWN else "")
    notes.append(noted("ADV120", f"rows have distributions over the classes, with the mean shares {said}"))
    return P, classes, ordered


def costs_of_labels(found: Mapping[str, Any], options: TableOptions, notes: list[str]) -> dict[str, Any]:
    """Return the costs (n, k) of rows with labels or distributions as a field of a `Dataset`; empty for labels without a cost matrix.

    A row with the distribution P has the costs L P. Without a matrix L is zero-one: they are probabilities of errors.
    """
    soft, classes = found.get("soft"), found["classes"]
    if options.cost_matrix is None:
        return {} if soft is None else {"costs": np.clip(1.0 - soft, 0.0, 1.0)}
    where = f"the cost matrix in {options.cost_matrix}"
    matrix = matrices.read_csv(options.cost_matrix).align(classes, where)
    L = matrices.check_matrix(matrix.values, len(classes), where)
    matrix.refuse_other_rows(where)
    if L.shape[0] != L.shape[1]:
        raise ConfigError(f"{where} has {L.shape[0]} rows and {L.shape[1]} columns; give one row and one column for each class")
    if (L < 0.0).any():
        i, j = np.argwhere(L < 0.0)[0]
        raise ConfigError(f"{where}, row {i + 1}, column {j + 1}, is {L[i, j]:g}; costs must be at least 0: add a constant to the column")
    unit = "" if options.currency is None else f" in {options.currency}"
    notes.append(noted("ADV120", f"predictions cost{unit} what {Path(options.cost_matrix).name} says, between {L.min():g} and {L.max():g}"))
    return {"costs": np.ascontiguousarray(L[:, found["y"]].T if soft is None else soft @ L.T)}
