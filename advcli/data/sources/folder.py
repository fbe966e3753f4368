"""The folder of data sets: ``NAME.csv.gz`` files of one format and a ``MANIFEST.csv`` with their checksums.

The format: a heading line, features first, an optional column ``split`` (the official train and test parts, which the protocol
does not use) and ``target`` last. Columns ``label_*`` and ``sentence_id`` mark multi-label and sequence sets.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError, nearest
from ..catalogue import CATALOGUE, HIERARCHIES, TEXTS
from ..dataset import Dataset
from ..listing import Entry
from ..manifest import read_manifest
from ..registry import Source
from ..table import TABLE_OPTIONS, asks_for_label_sets, make_table_dataset, read_bytes, read_table

_LOADABLE = ("multiclass", "ordinal", "regression_to_ordinal")
_TEXT = "text"


def task_of(name: str, row: Mapping[str, str] | None) -> str:
    """Return the task of a set by its manifest line; a single column of text is a task of its own."""
    if row is None:
        return CATALOGUE[name].task if name in CATALOGUE else "multiclass"
    return _TEXT if row["task"] == "multiclass" and row["features"] == "1" else row["task"]


def find_file(name: str, file: str | None, data_dir: Path, manifest: Mapping[str, Mapping[str, str]]) -> Path:
    """Return the path of a set in the folder, whether or not it exists."""
    if file is not None:
        return data_dir / file
    if name in manifest:
        return data_dir / manifest[name]["file"]
    plain = data_dir / f"{name}.csv"
    return plain if plain.is_file() and not (data_dir / f"{name}.csv.gz").is_file() else data_dir / f"{name}.csv.gz"


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    name = options["name"]
    manifest = read_manifest(data_dir)
    row = manifest.get(name)
    path = find_file(name, options["file"], data_dir, manifest)
    task = task_of(name, row)
    if task == _TEXT:
        raise DataError(f"data set {name!r} is a set of texts: load it with dataset.source=text, for example dataset={next(iter(TEXTS))}")
    if name in HIERARCHIES:
        raise DataError(f"data set {name!r} has labels with a hierarchy: load it with dataset={name} or dataset.source=hierarchical")
    if task not in _LOADABLE:
        loadable = [known for known in manifest if task_of(known, manifest[known]) in _LOADABLE]
        raise DataError(
            f"data set {name!r} is a {task} set, which cannot be loaded yet; only one class per row and numeric features can: "
            f"{', '.join(loadable) or ', '.join(CATALOGUE)}"
        )
    return load_table(options, path, row)


def load_table(options: Mapping[str, Any], path: Path, row: Mapping[str, str] | None) -> Dataset:
    """Load the table of a set, checked against its line of the manifest; a column ``split`` becomes the official parts."""
    name = options["name"]
    if not path.is_file():
        known = {*CATALOGUE, *HIERARCHIES, *read_manifest(path.parent)}
        if name not in known and options["file"] is None:
            raise DataError(f"no data set is named {name!r}, and {path} does not exist; {nearest(name, known)} (see `advcli data list`)")
        fetch = "" if name in HIERARCHIES else f"run `advcli data fetch {name}`, or "
        raise DataError(
            f"data set {name!r} is not here: no file {path}; {fetch}point data_dir= or ADVCLI_DATA to the folder that has {path.name}"
        )
    raw = read_bytes(path)
    if row is not None and row["sha256"] and path.name == row["file"] and hashlib.sha256(raw).hexdigest() != row["sha256"].lower():
        raise DataError(
            f"{path} is damaged or was changed: its checksum is not the one in MANIFEST.csv beside it; run `advcli data fetch {name}`"
        )
    table = read_table(path, str(options["target"]), raw)
    reserved, notes = [], []
    for column in map(str, table.frame.columns):
        if column == "sentence_id" or (column.startswith("label_") and not asks_for_label_sets(options)):
            raise DataError(f"{path} has the reserved column {column!r}: multi-label and sequence sets cannot be loaded yet")
        if column == "split":
            reserved.append(column)
            parts = table.frame[column].value_counts()
            notes.append(
                f"official split, used by protocol.splits=official alone ({', '.join(f'{part} {count}' for part, count in parts.items())})"
            )
    dataset = make_table_dataset(table, options, ignore=reserved, notes=notes)
    if "split" in reserved:
        train = (table.frame["split"] != "test").to_numpy()  # with the validation part, where there is one
        if len(train) == dataset.X.shape[0]:
            dataset = dataclasses.replace(dataset, official=(np.flatnonzero(train), np.flatnonzero(~train)))
    if name in CATALOGUE and CATALOGUE[name].printed_classes not in (None, len(dataset.classes)) and options.get("cut") == "none":
        said = f"{len(dataset.classes)} classes occur; the papers print {CATALOGUE[name].printed_classes}"
        dataset = dataclasses.replace(dataset, notes=(*dataset.notes, said))
    return dataset


def _entries(data_dir: Path) -> list[Entry]:
    manifest = read_manifest(data_dir)
    names = list(dict.fromkeys([*manifest, *CATALOGUE]))
    if data_dir.is_dir():
        listed = {row["file"] for row in manifest.values()} | {"MANIFEST.csv", "MANIFEST_AUX.csv"}
        for path in sorted(data_dir.iterdir()):
            name = path.name.removesuffix(".gz").removesuffix(".csv")
            if path.is_file() and path.name.endswith((".csv", ".csv.gz")) and path.name not in listed and "." not in name:
                names.append(name)
    entries = []
    for name in dict.fromkeys(names):
        if name in TEXTS or name in HIERARCHIES:
            continue  # the sources `text` and `hierarchical` list them
        row, known = manifest.get(name), CATALOGUE.get(name)
        task = task_of(name, row)
        here = find_file(name, None, data_dir, manifest).is_file()
        if row is not None:
            rows, features, classes = (_number(row[key]) for key in ("rows", "features", "classes"))
        else:
            rows, features, classes = (known.rows, known.features, known.classes) if known else (None, None, None)
        if known is not None and classes is None:
            classes = known.n_classes
        if task not in _LOADABLE:
            command = "not loadable yet"
        elif not here:
            command = f"advcli data fetch {name}"
        elif name == "iris":  # the same name as scikit-learn's, which is the default
            command = "dataset=iris dataset.source=folder"
        else:
            command = f"dataset={name}" if known else f"dataset=folder dataset.name={name}"
        citation = (row or {}).get("upstream_citation") or (known.citation if known else "")
        entries.append(Entry(name, "folder", rows, features, classes, task, here, command, citation, known.options() if known else {}))
    return entries


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


SOURCE = Source("folder", {"file": None, **TABLE_OPTIONS}, _load, _entries)
