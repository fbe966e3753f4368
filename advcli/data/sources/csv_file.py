"""A person's own file: CSV, plain or packed, with a heading line, parquet, feather, Excel, or a sparse file in svmlight format."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...core.errors import ConfigError, DataError
from ...core.notes import noted
from ...core.paths import expanded
from ..dataset import Dataset, make_dataset
from ..source import LABEL_OPTIONS, SEQUENCE_OPTIONS, TABLE_OPTIONS, Source, asks_for_label_sets, common, notes_with, options_give_order
from ..tables.conllu import ROLES
from ..tables.opening import unpacked
from ..tables.options import TableOptions
from ..tables.table import format_of, read_table
from ..tables.tabular import table_dataset
from ..tables.target import code_labels, cut_target, order_labels

_OF_COLUMNS = ("features", "drop", "categorical", "weight", "costs", "annotators", "hierarchy", "label_separator")
_ALWAYS, _EACH = 2**20, 100  # columns of a sparse file: so many, and so many for each of its values


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    if options["path"] is None:
        raise ConfigError("dataset=csv needs dataset.path, the CSV file to read, and dataset.target, its column of labels")
    path, form = expanded(str(options["path"])), str(options["format"])
    if format_of(path, form if form != "svmlight" else "csv") == "conllu":
        given = {key: options[key] for key in ROLES if options[key] is not None}
        options = {**options, **ROLES, **given}
    chosen = TableOptions.read(options)
    if form == "svmlight":
        return _load_svmlight(path, options, chosen)
    if chosen.target is None:
        raise ConfigError("dataset=csv needs dataset.target, the name of the column with the labels")
    return table_dataset(read_table(path, chosen, form))


def _load_svmlight(path: Path, options: Mapping[str, Any], chosen: TableOptions) -> Dataset:
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    for key in (*_OF_COLUMNS, *SEQUENCE_OPTIONS, "group", "time"):
        if options[key]:
            raise ConfigError(f"dataset.{key} needs named columns; dataset.format=svmlight has none")
    content = unpacked(path)
    try:
        X, values = load_svmlight_file(io.BytesIO(content), dtype=np.float64)
    except (ValueError, IndexError, OverflowError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path} is not in svmlight format (`label index:value ...`, indices rising): {reason}") from None
    if values.size == 0:
        raise DataError(f"{path} is empty; it needs lines `label index:value ...`")
    X = csr_array(X)
    _check_width(path, X)
    bad = np.flatnonzero(~np.isfinite(X.data))
    if bad.size:
        row = int(np.searchsorted(X.indptr, bad[0], side="right"))
        raise DataError(f"{path}: row {row} has no finite number in column {X.indices[bad[0]] + 1}; correct it or remove the row")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(f"{path}: row {int(bad[0]) + 1} has a label that is not a finite number; correct it")
    notes = [noted("ADV109", f"sparse features: {X.nnz} of {X.shape[0] * X.shape[1]} values are not zero")]
    if chosen.cut != "none":
        y, levels, cut_notes = cut_target(values, chosen)
        labels, ordered = list(levels), True
        notes += cut_notes
    else:
        y, labels, ordered = order_labels(*_svmlight_labels(content, values), chosen, str(path), notes)
    names = [str(column + 1) for column in range(X.shape[1])]
    return make_dataset(X=X, y=y, classes=labels, feature_names=names, ordered=ordered, notes=notes, **common(options))


def _svmlight_labels(content: bytes, values: NDArray[np.float64]) -> tuple[NDArray[np.intp], list[Any]]:
    """Return codes and labels as the file writes them, +1; the number is the label where one is written in two ways, +1 and 1."""
    written = [line.split(None, 1)[0].decode() for line in io.BytesIO(content) if line.partition(b"#")[0].strip()]
    codes, labels = code_labels(pd.Series(written, dtype=object))
    distinct, numbers = np.unique(values, return_inverse=True)
    if len(labels) == len(distinct):
        return codes, labels
    return numbers.astype(np.intp), [int(label) if float(label).is_integer() else float(label) for label in distinct]


def _check_width(path: Path, X: Any) -> None:
    """Refuse an index far beyond the values that there are: every column has a name and weights, whether it holds anything or not."""
    most = _ALWAYS + _EACH * X.nnz
    if X.shape[1] > most:
        row = int(np.searchsorted(X.indptr, np.argmax(X.indices), side="right"))
        remedy = "correct it, or number the columns that hold values"
        raise DataError(f"{path}: row {row} has the index {X.shape[1]}, but {X.nnz} values are for {most} columns at most; {remedy}")


def _ordered(options: Mapping[str, Any]) -> bool | None:
    ordered = options_give_order({**options, "target": ""})
    if options["format"] == "svmlight" or not ordered:  # no columns: target means nothing there
        return ordered
    if asks_for_label_sets({**options, "target": ""}):
        return False
    return None if str(options["target"]).endswith("*") else True  # PREFIX* may also be the name of one column, which the heading tells


def _examples(folder: Path) -> list[dict[str, Any]]:
    table, sparse = folder / "example.csv", folder / "example.svmlight"
    table.write_text("size,colour,weight,label\n" + "".join(f"{i % 7},{'rgb'[i % 3]},{1 + i % 2},c{i % 4}\n" for i in range(24)))
    (folder / "words.csv").write_text("who,word,tag\n" + "".join(f"{i // 5},w{i * i % 7},{'OBI'[i % 3]}\n" for i in range(40)))
    (folder / "trees.csv").write_text("who,word,tag,head\n" + "".join(f"{i // 4},w{i * i % 7},{'AB'[i % 2]},{i % 4}\n" for i in range(40)))
    sparse.write_text("".join(f"{i % 3} {1 + i % 4}:{i + 1}\n" for i in range(24)))
    columns = {"name": "table", "path": str(table), "categorical": ["colour"]}
    of_words = {"sequence": "who", "tokens": "word"}
    return [
        {**columns, "target": "label", "weight": "weight"},
        {**columns, "target": "label", "order": ["c3", "c1", "c2", "c0"]},
        {**columns, "target": "size", "cut": "edges", "edges": [2.5, 4], "features": ["colour", "weight"]},
        {**columns, "target": "label", "label_separator": "c", "drop": ["weight"]},
        {**columns, "target": "label", "costs": ["size", "weight"], "allow_small_classes": True},
        {**of_words, "name": "words", "path": str(folder / "words.csv"), "target": "tag"},
        {**of_words, "name": "trees", "path": str(folder / "trees.csv"), "head": "head", "allow_small_classes": True},
        {"name": "sparse", "path": str(sparse), "format": "svmlight"},
    ]


_OPTIONS: dict[str, Any] = {
    "path": None,
    "format": "csv",
    "separator": ",",
    "encoding": None,
    "costs": None,
    "annotators": None,
    "cost_matrix": None,
    "currency": None,
    **TABLE_OPTIONS,
    **LABEL_OPTIONS,
    **SEQUENCE_OPTIONS,
}
SOURCE = Source(
    "csv",
    _OPTIONS,
    _load,
    ordered=_ordered,
    examples=_examples,
    foresee=notes_with("ADV101", "ADV106"),
    paths=("path", "hierarchy", "cost_matrix"),
)
