"""Sets of the data folder whose labels are nodes of a hierarchy, or whose rows have several labels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..dataset import Dataset
from ..manifest import entries_by_file, find_file, own_file, read_manifest
from ..source import COLUMN_OPTIONS, LABEL_OPTIONS, Source, options_give_order
from .folder import load_table


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    manifest = read_manifest(data_dir)
    path = find_file(options["name"], options["file"], data_dir, manifest)
    if options["hierarchy"] is not None:
        options = {**options, "hierarchy": str(data_dir / str(options["hierarchy"]))}
    return load_table(options, path, manifest.get(options["name"]))


def _files(options: Mapping[str, Any], data_dir: Path) -> list[Path]:
    graph = [] if options["hierarchy"] is None else [data_dir / str(options["hierarchy"])]
    return [*own_file(options, data_dir), *graph]


def _examples(folder: Path) -> list[dict[str, Any]]:
    (folder / "nodes.csv").write_text("a,b,target\n" + "".join(f"{i % 7},{i * i % 11},{'xyz'[i % 3]}\n" for i in range(24)))
    (folder / "sets.csv").write_text("a,b,target\n" + "".join(f"{i % 7},,{'xyz'[i % 3]}@{'uv'[i % 2]}\n{i},1,u\n" for i in range(9)))
    (folder / "tree.csv").write_text("parent,child\nroot,u\nroot,v\nu,x\nu,y\nv,z\n")
    return [
        {"name": "nodes", "hierarchy": "tree.csv"},
        {"name": "sets", "hierarchy": "tree.csv", "label_separator": "@", "stub_leaves": True, "missing": "mean"},
    ]


_OPTIONS: dict[str, Any] = {"file": None, **COLUMN_OPTIONS, **LABEL_OPTIONS}
SOURCE = Source(
    "hierarchical",
    _OPTIONS,
    _load,
    partial(entries_by_file, "hierarchical"),
    ordered=options_give_order,
    examples=_examples,
    files=_files,
)
