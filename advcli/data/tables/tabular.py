"""From a table and the options of its source to a `Dataset`: the way of every source that reads columns, a plug-in's too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...core.errors import DataError, ProblemsError, refuse_all
from ..dataset import Dataset, Edges, make_dataset
from ..labels.sets import read_label_sets
from ..source import LABEL_OPTIONS, asks_for_label_sets
from .cells import Notation
from .column import Fault, refuse_faults
from .columns import cost_columns, numbers
from .encoding import Encoding
from .frames import frame_table
from .learning import feature_columns, gap_note, learn_encoding, remedies_for
from .notation import number_look
from .table import Table
from .target import target_codes


def from_table(
    table: Table | pd.DataFrame,
    options: Mapping[str, Any],
    *,
    where: str = "the table",
    ignore: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Dataset:
    """Turn a table into a `Dataset` by the options of a table source.

    Parameters
    ----------
    table : Table or DataFrame
        The raw columns. A frame's columns may have any type (`advcli.data.tables.frames.frame_table`).
    options : mapping
        What `Source.load` is called with: the common options and `advcli.data.source.TABLE_OPTIONS`; where they are there too,
        `advcli.data.source.LABEL_OPTIONS` and `advcli.data.source.SEQUENCE_OPTIONS`.
    where : str
        What messages call a frame, such as its file.
    ignore : sequence of str
        Columns that are reserved by the format and never features.
    notes : sequence of str
        Notes that come first.

    Returns
    -------
    Dataset
        X of shape (n, d) with one feature for a column of numbers, one for each value of a categorical column and one for each attribute
        of tokens.

    Raises
    ------
    DataError
        A column that is not there, a cell without a value, text in a column of numbers, a target that is no class.
    ConfigError
        Options that contradict each other.
    """
    said = list(notes)
    if not isinstance(table, Table):
        table = frame_table(table, str(options["target"]), where)
    columns = feature_columns(table, options, ignore)
    encoding = learn_encoding(table, columns, options, said)
    look = cache(lambda: number_look(table, columns, options))
    cells, faults = encoding.cells(table, lambda name: remedies_for(table.frame[name], look(), encoding.notation))
    said += gap_note(encoding, cells)
    problems = _cell_problems(table, encoding, cells, faults)
    hierarchy: Edges | None = None
    stubs: tuple[str, ...] = ()
    named, costs, weights = cost_columns(options), None, None
    try:
        if named:
            costs = _costs(table, named, said, encoding.notation)
            codes, classes, ordered = costs.argmin(axis=1).astype(np.intp), list(named), bool(options["ordered"])
        elif asks_for_label_sets(options, list(map(str, table.frame.columns))):
            found = read_label_sets(table, {**LABEL_OPTIONS, **options}, said)
            codes, classes, ordered = found.y, list(found.classes), False
            hierarchy, stubs = found.hierarchy, found.stubs
        else:
            codes, classes, ordered = target_codes(table, str(options["target"]), options, said)
    except DataError as error:
        problems += _problems(error)
    if options["weight"] is not None:
        try:
            weights = _weights(table, str(options["weight"]), said, encoding.notation)
        except DataError as error:
            problems += _problems(error)
    refuse_all(problems, str(table.path))
    groups = encoding.groups(table)
    if groups is not None:
        lengths = np.bincount(groups)
        said.append(f"{len(lengths)} sequences of {lengths.mean():.1f} rows, the longest of {lengths.max()}")
    learned = encoding.fit(cells)
    return make_dataset(
        name=options["name"],
        X=learned.features(cells),
        y=codes,
        classes=classes,
        feature_names=learned.feature_names,
        ordered=ordered,
        sizes=options["sizes"],
        example_weight=weights,
        notes=said,
        encoding=learned,
        cells=cells if encoding.learns else None,
        # a prediction that is seldom or never the cheapest still has costs to learn from
        allow_small_classes=bool(named) or options["allow_small_classes"],
        groups=groups,
        costs=costs,
        hierarchy=hierarchy,
        stubs=stubs,
    )


def _problems(error: DataError) -> list[str]:
    return list(error.problems) if isinstance(error, ProblemsError) else [str(error)]


def _cell_problems(table: Table, encoding: Encoding, cells: Any, faults: list[Fault]) -> list[str]:
    """Return a line for every fault, and for every column without a value in any row: nothing could stand in their place."""
    empty = {column.name for column in encoding.columns if column.categories == ()}
    if not hasattr(cells, "indptr"):
        nothing = np.isnan(cells).all(axis=0).tolist()
        empty |= {column.name for column, every in zip(encoding.columns, nothing, strict=True) if every}
    empty -= {fault.column for fault in faults if fault.kind == "text"}
    lines = [
        f"{table.path}: column {column.name!r} has no value in any row; use dataset.drop=[{column.name}]"
        for column in encoding.columns
        if column.name in empty
    ]
    return lines + refuse_faults([fault for fault in faults if fault.column not in empty])


def _costs(table: Table, names: list[str], notes: list[str], notation: Notation) -> NDArray[np.float64]:
    """Return what every prediction costs on every row, (n, k)."""
    remedy = "correct it or remove the row"
    costs = np.column_stack([numbers(table, name, "as a cost", "choose columns of numbers", remedy, notation) for name in names])
    bad = np.argwhere(costs < 0.0)
    if len(bad):
        row, column = bad[0]
        raise DataError(
            f"{table.path}: the cost {costs[row, column]:g} in column {names[column]!r}, {table.place(int(row))}, is below 0; {remedy}"
        )
    notes.append(f"rows have their own costs of {len(names)} predictions; the label of a row is its first cheapest")
    return costs


def _weights(table: Table, name: str, notes: list[str], notation: Notation) -> NDArray[np.float64]:
    """Return the positive weights of the examples."""
    remedy = "or use dataset.weight=null"
    weights = numbers(table, name, "as example weights", f"correct it, {remedy}", f"correct it, remove the row {remedy}", notation)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if bad.size:
        raise DataError(
            f"{table.path}: weight {weights[bad[0]]:g} in column {name!r}, {table.place(int(bad[0]))}, is not above 0; "
            "correct it or remove the row"
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise DataError(f"{table.path}: the weights in column {name!r} add up to more than a number can hold; divide them by their largest")
    notes.append(f"examples weighted by column {name!r}")
    return weights
