"""The folder of data sets: ``NAME.csv.gz`` files of one format and a ``MANIFEST.csv`` with their checksums; three sources read it.

The format: a heading line, features first, an optional column ``split`` (the official train and test parts, which the protocol
does not use) and ``target`` last. Columns ``label_*`` mark sets of the source ``hierarchical``, whose labels are nodes of a hierarchy or
whose rows have several. A column ``sentence_id`` marks sets of the source ``sequences``, such as the tokens of sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import ConfigError, DataError, MissingDataError, nearest
from ...core.notes import noted
from ..catalogue import CATALOGUE, known_set
from ..dataset import Dataset
from ..manifest import check_file, entries_by_file, find_file, missing_line, own_file, read_manifest
from ..source import COLUMN_OPTIONS, LABEL_OPTIONS, SEQUENCE_OPTIONS, TABLE_OPTIONS, Entry, Source, options_give_order
from ..tables.opening import read_bytes
from ..tables.options import TableOptions
from ..tables.table import read_table
from ..tables.tabular import table_dataset

_LOADABLE = ("multiclass", "ordinal", "regression_to_ordinal")
_TEXT, _SEQUENCE = "text", "sequence"


def task_of(name: str, row: Mapping[str, str] | None) -> str:
    """Return the task of a set by its manifest line; a single column of text is the task ``text``."""
    if row is None:
        facts = known_set(name, "folder")
        return "multiclass" if facts is None else facts.task
    return _TEXT if row["task"] == "multiclass" and row["features"] == "1" else row["task"]


def _load_folder(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    name, manifest = options["name"], read_manifest(data_dir)
    task = task_of(name, manifest.get(name))
    if task == _TEXT:
        example = next(iter(CATALOGUE["text"]))
        raise DataError(f"data set {name!r} is a set of texts: load it with dataset.source=text, for example dataset={example}")
    if name in CATALOGUE["hierarchical"]:
        raise DataError(f"data set {name!r} has sets of labels or a hierarchy: load it with dataset={name} or dataset.source=hierarchical")
    if task == _SEQUENCE:
        raise DataError(f"data set {name!r} is a set of sequences: load it with dataset.source=sequences, for example dataset={name}")
    if task not in _LOADABLE:
        loadable = [other for other in manifest if task_of(other, manifest[other]) in _LOADABLE]
        remedy = f"only one class per row and numeric features can: {', '.join(loadable) or ', '.join(CATALOGUE['folder'])}"
        raise DataError(f"data set {name!r} is a {task} set, which cannot be loaded yet; {remedy}")
    return _load_table(options, data_dir, manifest)


def _load_hierarchical(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    if options["hierarchy"] is not None:
        options = {**options, "hierarchy": str(data_dir / str(options["hierarchy"]))}
    return _load_table(options, data_dir, read_manifest(data_dir))


def _load_sequences(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    if options["sequence"] is None:
        raise ConfigError("dataset.sequence=null names no column; give the column that names the sequence of every row")
    return _load_table(options, data_dir, read_manifest(data_dir))


def _load_table(options: Mapping[str, Any], data_dir: Path, manifest: Mapping[str, Mapping[str, str]]) -> Dataset:
    """Load the table of a set, checked against its line of the manifest; a column ``split`` becomes the official parts."""
    name, chosen = options["name"], TableOptions.read(options)
    path = find_file(name, options["file"], data_dir, manifest)
    if not path.is_file():
        names = {*CATALOGUE["folder"], *CATALOGUE["hierarchical"], *CATALOGUE["sequences"], *manifest}
        if name not in names and options["file"] is None:
            raise DataError(f"no data set is named {name!r}, and {path} does not exist; {nearest(name, names)} (see `advcli data list`)")
        raise MissingDataError(missing_line(name, path))
    raw = read_bytes(path)
    check_file(path, raw, manifest.get(name), f"run `advcli data fetch {name}`")
    table = replace(read_table(path, replace(chosen, categorical=()), raw=raw), options=chosen)
    reserved, notes = [], []
    for column in table.names:
        if (column == "sentence_id" and chosen.sequence is None) or (column.startswith("label_") and not chosen.has_label_sets()):
            raise DataError(f"{path} has the reserved column {column!r}: multi-label and sequence sets cannot be loaded yet")
        if column == "split":
            reserved.append(column)
            parts = table.frame[column].value_counts()
            sizes = ", ".join(f"{part} {count}" for part, count in parts.items())
            notes.append(noted("ADV113", f"official split, used by protocol.splits=official alone ({sizes})"))
    dataset = table_dataset(table, notes, reserved)
    if "split" in reserved:
        split = table.frame["split"].to_numpy()
        # with the validation part, where there is one; the shared tasks of sequences leave it out
        train = split == "train" if chosen.sequence is not None else split != "test"
        if len(train) == dataset.X.shape[0]:
            dataset = replace(dataset, official=(np.flatnonzero(train), np.flatnonzero(split == "test")))
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
        row, facts = manifest.get(name), known_set(name, "folder")
        task = task_of(name, row)
        here = find_file(name, None, data_dir, manifest).is_file()
        if row is not None:
            rows, features, classes = (_number(row[key]) for key in ("rows", "features", "classes"))
        else:
            rows, features, classes = (facts.rows, facts.features, facts.classes) if facts else (None, None, None)
        if facts is not None and classes is None:
            classes = facts.cut_classes
        if not here and (facts is not None or task in _LOADABLE):
            command = f"advcli data fetch {name}"
        elif task not in _LOADABLE:
            command = "not loadable yet"
        elif name in CATALOGUE["sklearn"]:  # that one is the default
            command = f"dataset={name} dataset.source=folder"
        else:
            command = f"dataset={name}" if facts else f"dataset=folder dataset.name={name}"
        citation = (row or {}).get("upstream_citation") or (facts.citation if facts else "")
        known = (facts.options, facts.size, facts.licence) if facts else ({}, 0, "")
        entries.append(Entry(name, "folder", rows, features, classes, task, here, command, citation, *known))
    return entries


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _files(options: Mapping[str, Any], data_dir: Path) -> list[Path]:
    graph = [] if options["hierarchy"] is None else [data_dir / str(options["hierarchy"])]
    return [*own_file(options, data_dir), *graph]


def _folder_examples(folder: Path) -> list[dict[str, Any]]:
    rows = "".join(f"{i % 7},{i * i % 11},{'train' if i % 3 else 'test'},{i % 4}\n" for i in range(24))
    (folder / "example.csv").write_text(f"a,b,split,target\n{rows}")
    return [
        {"name": "example"},
        {"name": "cut", "file": "example.csv", "target": "b", "drop": ["target"], "cut": "equal_width", "n_classes": 3},
    ]


def _hierarchical_examples(folder: Path) -> list[dict[str, Any]]:
    (folder / "nodes.csv").write_text("a,b,target\n" + "".join(f"{i % 7},{i * i % 11},{'xyz'[i % 3]}\n" for i in range(24)))
    (folder / "sets.csv").write_text("a,b,target\n" + "".join(f"{i % 7},,{'xyz'[i % 3]}@{'uv'[i % 2]}\n{i},1,u\n" for i in range(9)))
    (folder / "tree.csv").write_text("parent,child\nroot,u\nroot,v\nu,x\nu,y\nv,z\n")
    return [
        {"name": "nodes", "hierarchy": "tree.csv"},
        {"name": "sets", "hierarchy": "tree.csv", "label_separator": "@", "stub_leaves": True, "missing": "mean"},
    ]


def _sequence_examples(folder: Path) -> list[dict[str, Any]]:
    rows = "".join(f"{i // 6},w{i * i % 11},{i % 4},{'train' if i < 24 else 'test'},{'OBI'[i % 3]}\n" for i in range(36))
    (folder / "words.csv").write_text(f"sentence_id,token,length,split,target\n{rows}")
    return [{"name": "words"}, {"name": "words", "tokens": None, "features": ["length"]}]


def _source(name: str, options: Mapping[str, Any], load: Any, examples: Any, files: Any = own_file, entries: Any = None) -> Source:
    entries = entries or partial(entries_by_file, name)
    return Source(name, {"file": None, **options}, load, entries, ordered=options_give_order, examples=examples, files=files)


_SEQUENCES = {**TABLE_OPTIONS, **SEQUENCE_OPTIONS, "sequence": "sentence_id", "tokens": "token"}
SOURCES = (
    _source("folder", TABLE_OPTIONS, _load_folder, _folder_examples, entries=_entries),
    _source("hierarchical", {**COLUMN_OPTIONS, **LABEL_OPTIONS}, _load_hierarchical, _hierarchical_examples, _files),
    _source("sequences", _SEQUENCES, _load_sequences, _sequence_examples),
)
