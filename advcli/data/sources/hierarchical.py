"""Sets of the data folder whose labels are nodes of a hierarchy, or whose rows have several labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..catalogue import HIERARCHIES
from ..dataset import Dataset
from ..label_sets import LABEL_OPTIONS
from ..listing import Entry
from ..manifest import read_manifest
from ..registry import Source
from .folder import find_file, load_table

_OPTIONS: dict[str, Any] = {
    "file": None,
    "target": "target",
    "features": None,
    "drop": [],
    "categorical": [],
    "weight": None,
    **LABEL_OPTIONS,
}


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    manifest = read_manifest(data_dir)
    path = find_file(options["name"], options["file"], data_dir, manifest)
    if options["hierarchy"] is not None:
        options = {**options, "hierarchy": str(data_dir / str(options["hierarchy"]))}
    return load_table(options, path, manifest.get(options["name"]))


def _entries(data_dir: Path) -> list[Entry]:
    manifest, entries = read_manifest(data_dir), []
    for name, known in HIERARCHIES.items():
        path = find_file(name, None, data_dir, manifest)
        command = f"dataset={name}" if path.is_file() else f"put {path.name} into the data folder"
        sizes = (known.rows, known.features, known.classes)
        entries.append(Entry(name, "hierarchical", *sizes, known.task, path.is_file(), command, known.citation, known.options()))
    return entries


SOURCE = Source("hierarchical", _OPTIONS, _load, _entries)
