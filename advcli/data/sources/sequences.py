"""Sets of the data folder whose rows form sequences, such as the tokens of sentences, one label a row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ...core.errors import ConfigError
from ..dataset import Dataset
from ..manifest import entries_by_file, find_file, own_file, read_manifest
from ..source import SEQUENCE_OPTIONS, TABLE_OPTIONS, Source, options_give_order
from .folder import load_table


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    if options["sequence"] is None:
        raise ConfigError("dataset.sequence=null names no column; give the one that says which rows form a sequence")
    manifest = read_manifest(data_dir)
    path = find_file(options["name"], options["file"], data_dir, manifest)
    return load_table(options, path, manifest.get(options["name"]))


def _examples(folder: Path) -> list[dict[str, Any]]:
    rows = "".join(f"{i // 6},w{i * i % 11},{i % 4},{'train' if i < 24 else 'test'},{'OBI'[i % 3]}\n" for i in range(36))
    (folder / "words.csv").write_text(f"sentence_id,token,length,split,target\n{rows}")
    return [{"name": "words"}, {"name": "words", "tokens": None, "features": ["length"]}]


_OPTIONS: dict[str, Any] = {"file": None, **TABLE_OPTIONS, **SEQUENCE_OPTIONS, "sequence": "sentence_id", "tokens": "token"}
SOURCE = Source(
    "sequences",
    _OPTIONS,
    _load,
    partial(entries_by_file, "sequences"),
    ordered=options_give_order,
    examples=_examples,
    files=own_file,
)
