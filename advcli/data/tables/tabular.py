"""From a table and the options of its source to a `Dataset`: the way of every source that reads columns, a plug-in's too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from ...core.errors import DataError, ProblemsError, refuse_all
from ..dataset import Dataset, make_dataset
from ..labels.sets import read_label_sets
from .cells import gaps_in, numbers_of
from .encoding import Encoding, Fault, refuse_faults
from .learning import feature_columns, gap_note, learn_encoding
from .options import TableOptions
from .reading import frame_table
from .suspects import number_look, remedies_for
from .table import Table
from .target import target_codes


def from_table(table: pd.DataFrame, options: Mapping[str, Any], *, where: str = "the table") -> Dataset:
    """Turn a frame into a `Dataset` by the options of a table source.

    Parameters
    ----------
    table : DataFrame
        The raw columns, of any type (`advcli.data.tables.reading.frame_table`).
    options : mapping
        What `Source.load` is called with: the common options and `advcli.data.source.TABLE_OPTIONS`; where they are there too,
        `advcli.data.source.LABEL_OPTIONS` and `advcli.data.source.SEQUENCE_OPTIONS`.
    where : str
        What messages call the frame, such as its file.

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
    chosen = TableOptions.read(options)
    return table_dataset(frame_table(table, chosen.target, where), chosen)


def table_dataset(table: Table, options: TableOptions, notes: Sequence[str] = (), ignore: Sequence[str] = ()) -> Dataset:
    """Turn a table into a `Dataset`; ``notes`` come first, the columns ``ignore`` are reserved by the format and never features."""
    said = list(notes)
    columns = feature_columns(table, options, ignore)
    encoding = learn_encoding(table, columns, options, said)
    look = cache(lambda: number_look(table, columns, options))
    cells, faults = encoding.cells(table, lambda name: remedies_for(table.frame[name], look(), encoding.notation))
    said += gap_note(encoding, cells)
    problems = _cell_problems(table, encoding, cells, faults)
    fields: dict[str, Any] = {}
    for part in (_classes, _weights):
        try:
            fields |= part(table, options, said)
        except DataError as error:
            problems += list(error.problems) if isinstance(error, ProblemsError) else [str(error)]
    refuse_all(problems, str(table.path))
    groups = encoding.groups(table)
    if groups is not None:
        lengths = np.bincount(groups)
        said.append(f"{len(lengths)} sequences of {lengths.mean():.1f} rows, the longest of {lengths.max()}")
    learned = encoding.fit(cells)
    return make_dataset(
        name=options.name,
        X=learned.features(cells),
        feature_names=learned.feature_names,
        sizes=options.sizes,
        notes=said,
        encoding=learned,
        cells=cells if encoding.learns else None,
        # a prediction that is seldom or never the cheapest still has costs to learn from
        allow_small_classes=bool(options.costs) or options.allow_small_classes,
        groups=groups,
        **fields,
    )


def _classes(table: Table, options: TableOptions, notes: list[str]) -> dict[str, Any]:
    """Return the fields of a `Dataset` that say what the labels of the rows are."""
    if options.costs:
        costs = _costs(table, options, notes)
        return {"y": costs.argmin(axis=1), "classes": list(options.costs), "ordered": options.ordered, "costs": costs}
    if options.has_label_sets(list(map(str, table.frame.columns))):
        return vars(read_label_sets(table, options, notes))
    codes, classes, ordered = target_codes(table, options, notes)
    return {"y": codes, "classes": classes, "ordered": ordered}


def _cell_problems(table: Table, encoding: Encoding, cells: Any, faults: list[Fault]) -> list[str]:
    """Return a line for every fault, and for every column without a value in any row: nothing could stand in their place."""
    empty = {column.name for column in encoding.columns if column.categories == ()}
    if not sparse.issparse(cells):
        nothing = np.isnan(cells).all(axis=0).tolist()
        empty |= {column.name for column, every in zip(encoding.columns, nothing, strict=True) if every}
    empty -= {fault.column for fault in faults if fault.kind == "text"}
    lines = [
        f"{table.path}: column {column.name!r} has no value in any row; use dataset.drop=[{column.name}]"
        for column in encoding.columns
        if column.name in empty
    ]
    return lines + refuse_faults([fault for fault in faults if fault.column not in empty])


def _numbers(table: Table, name: str, options: TableOptions, words: tuple[str, str, str]) -> NDArray[np.float64]:
    """Return a column as finite numbers or say which cell is none; ``words``: its purpose, what to do about text and about other cells."""
    purpose, text_remedy, remedy = words
    values, text = numbers_of(table.frame[name], options.notation)
    bad = np.flatnonzero(~np.isfinite(values))
    if not bad.size:
        return values
    if text is not None:  # say what text there is before what is missing: it is the column that is wrong then
        wrong = np.flatnonzero(np.isnan(values) & ~gaps_in(text))
        if wrong.size:
            row = int(wrong[0])
            raise DataError(
                f"{table.path}: column {name!r} holds text ({text.iloc[row]!r} in {table.place(row)}) "
                f"and cannot be used {purpose}; {text_remedy}"
            )
    row = int(bad[0])
    what = "an infinite value" if np.isinf(values[row]) else "no value"
    count = f" (and {bad.size - 1} more)" if bad.size > 1 else ""
    raise DataError(f"{table.path}: column {name!r} has {what} in {table.place(row)}{count}; {remedy}")


def _costs(table: Table, options: TableOptions, notes: list[str]) -> NDArray[np.float64]:
    """Return what every prediction costs on every row, (n, k)."""
    names, remedy = options.costs, "correct it or remove the row"
    costs = np.column_stack([_numbers(table, name, options, ("as a cost", "choose columns of numbers", remedy)) for name in names])
    bad = np.argwhere(costs < 0.0)
    if len(bad):
        row, column = bad[0]
        raise DataError(
            f"{table.path}: the cost {costs[row, column]:g} in column {names[column]!r}, {table.place(int(row))}, is below 0; {remedy}"
        )
    notes.append(f"rows have their own costs of {len(names)} predictions; the label of a row is its first cheapest")
    return costs


def _weights(table: Table, options: TableOptions, notes: list[str]) -> dict[str, Any]:
    """Return the positive weights of the examples, where there are such, as a field of a `Dataset`."""
    name, remedy = options.weight, "or use dataset.weight=null"
    if name is None:
        return {}
    weights = _numbers(table, name, options, ("as example weights", f"correct it, {remedy}", f"correct it, remove the row {remedy}"))
    bad = np.flatnonzero(weights <= 0)
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
    return {"example_weight": weights}
