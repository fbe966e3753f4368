"""The folder of data sets: ``NAME.csv.gz`` files of one format and a ``MANIFEST.csv`` with their checksums.

The format: a heading line, features first, an optional column ``split`` (the official train and test parts, which the protocol
does not use) and ``target`` last. Columns ``label_*`` and ``sentence_id`` mark multi-label and sequence sets, for which there are
other sources.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import DataError, nearest
from ..catalogue import CATALOGUE, known_set
from ..dataset import Dataset
from ..manifest import check_file, find_file, own_file, read_manifest
from ..source import TABLE_OPTIONS, Entry, Source, asks_for_label_sets, options_give_order
from ..tables.encoding import text_columns
from ..tables.table import read_bytes, read_table
from ..tables.tabular import from_table

_LOADABLE = ("multiclass", "ordinal", "regression_to_ordinal")
_TEXT, _SEQUENCE = "text", "sequence"


def task_of(name: str, row: Mapping[str, str] | None) -> str:
    """Return the task of a set by its manifest line; a single column of text is a task of its own."""
    if row is None:
        known = known_set(name, "folder")
        return "multiclass" if known is None else known.task
    return _TEXT if row["task"] == "multiclass" and row["features"] == "1" else row["task"]


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    name = options["name"]
    manifest = read_manifest(data_dir)
    row = manifest.get(name)
    path = find_file(name, options["file"], data_dir, manifest)
    task = task_of(name, row)
    if task == _TEXT:
        example = next(iter(CATALOGUE["text"]))
        raise DataError(f"data set {name!r} is a set of texts: load it with dataset.source=text, for example dataset={example}")
    if name in CATALOGUE["hierarchical"]:
        raise DataError(f"data set {name!r} has sets of labels or a hierarchy: load it with dataset={name} or dataset.source=hierarchical")
    if task == _SEQUENCE:
        raise DataError(f"data set {name!r} is a set of sequences: load it with dataset.source=sequences, for example dataset={name}")
    if task not in _LOADABLE:
        loadable = [known for known in manifest if task_of(known, manifest[known]) in _LOADABLE]
        raise DataError(
            f"data set {name!r} is a {task} set, which cannot be loaded yet; only one class per row and numeric features can: "
            f"{', '.join(loadable) or ', '.join(CATALOGUE['folder'])}"
        )
    return load_table(options, path, row)


def load_table(options: Mapping[str, Any], path: Path, row: Mapping[str, str] | None) -> Dataset:
    """Load the table of a set, checked against its line of the manifest; a column ``split`` becomes the official parts."""
    name = options["name"]
    if not path.is_file():
        known = {*CATALOGUE["folder"], *CATALOGUE["hierarchical"], *CATALOGUE["sequences"], *read_manifest(path.parent)}
        if name not in known and options["file"] is None:
            raise DataError(f"no data set is named {name!r}, and {path} does not exist; {nearest(name, known)} (see `advcli data list`)")
        fetch = "" if name in CATALOGUE["hierarchical"] or name in CATALOGUE["sequences"] else f"run `advcli data fetch {name}`, or "
        raise DataError(
            f"data set {name!r} is not here: no file {path}; {fetch}point data_dir= or ADVCLI_DATA to the folder that has {path.name}"
        )
    raw = read_bytes(path)
    check_file(path, raw, row, f"run `advcli data fetch {name}`")
    table = read_table(path, str(options["target"]), raw, text=text_columns({**options, "categorical": []}))
    reserved, notes = [], []
    for column in map(str, table.frame.columns):
        if (column == "sentence_id" and options.get("sequence") is None) or (
            column.startswith("label_") and not asks_for_label_sets(options)
        ):
            raise DataError(f"{path} has the reserved column {column!r}: multi-label and sequence sets cannot be loaded yet")
        if column == "split":
            reserved.append(column)
            parts = table.frame[column].value_counts()
            notes.append(
                f"official split, used by protocol.splits=official alone ({', '.join(f'{part} {count}' for part, count in parts.items())})"
            )
    dataset = from_table(table, options, ignore=reserved, notes=notes)
    if "split" in reserved:
        split = table.frame["split"].to_numpy()
        # with the validation part, where there is one; the shared tasks of sequences leave it out
        train = split == "train" if options.get("sequence") is not None else split != "test"
        if len(train) == dataset.X.shape[0]:
            dataset = dataclasses.replace(dataset, official=(np.flatnonzero(train), np.flatnonzero(split == "test")))
    return dataset


def _entries(data_dir: Path) -> list[Entry]:
    manifest = read_manifest(data_dir)
    names = [*manifest, *CATALOGUE["folder"]]
    if data_dir.is_dir():
        listed = {row["file"] for row in manifest.values()} | {"MANIFEST.csv", "MANIFEST_AUX.csv"}
        for path in sorted(data_dir.iterdir()):
            name = path.name.removesuffix(".gz").removesuffix(".csv")
            if path.is_file() and path.name.endswith((".csv", ".csv.gz")) and path.name not in listed and "." not in name:
                names.append(name)
    entries = []
    for name in dict.fromkeys(names):
        if any(name in CATALOGUE[source] for source in ("text", "hierarchical", "sequences")):
            continue  # those sources list them
        row, known = manifest.get(name), known_set(name, "folder")
        task = task_of(name, row)
        here = find_file(name, None, data_dir, manifest).is_file()
        if row is not None:
            rows, features, classes = (_number(row[key]) for key in ("rows", "features", "classes"))
        else:
            rows, features, classes = (known.rows, known.features, known.classes) if known else (None, None, None)
        if known is not None and classes is None:
            classes = known.cut_classes
        if task not in _LOADABLE:
            command = "not loadable yet"
        elif not here:
            command = f"advcli data fetch {name}"
        elif name in CATALOGUE["sklearn"]:  # that one is the default
            command = f"dataset={name} dataset.source=folder"
        else:
            command = f"dataset={name}" if known else f"dataset=folder dataset.name={name}"
        citation = (row or {}).get("upstream_citation") or (known.citation if known else "")
        entries.append(Entry(name, "folder", rows, features, classes, task, here, command, citation, known.options if known else {}))
    return entries


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _examples(folder: Path) -> list[dict[str, Any]]:
    rows = "".join(f"{i % 7},{i * i % 11},{'train' if i % 3 else 'test'},{i % 4}\n" for i in range(24))
    (folder / "example.csv").write_text(f"a,b,split,target\n{rows}")
    return [
        {"name": "example"},
        {"name": "cut", "file": "example.csv", "target": "b", "drop": ["target"], "cut": "equal_width", "n_classes": 3},
    ]


SOURCE = Source("folder", {"file": None, **TABLE_OPTIONS}, _load, _entries, ordered=options_give_order, examples=_examples, files=own_file)
