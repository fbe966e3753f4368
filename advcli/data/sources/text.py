"""Labelled texts in the folder of data sets, as TF-IDF vectors (scikit-learn's TfidfVectorizer), sparse."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ConfigError, DataError, nearest
from ..catalogue import TEXTS
from ..dataset import Dataset, make_dataset
from ..listing import Entry
from ..manifest import read_manifest
from ..registry import Source
from ..table import order_labels, read_bytes, read_table
from .folder import find_file

_OPTIONS: dict[str, Any] = {
    "file": None,
    "text": "text",
    "target": "target",
    "min_df": 1,
    "sublinear_tf": False,
    "stop_words": None,
    "order": None,
}


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    min_df, stop_words = options["min_df"], options["stop_words"]
    if isinstance(min_df, bool) or not isinstance(min_df, int) or min_df < 1:
        raise ConfigError(f"dataset.min_df={min_df} must be a whole number of at least 1")
    if not isinstance(options["sublinear_tf"], bool):
        raise ConfigError(f"dataset.sublinear_tf={options['sublinear_tf']} must be true or false")
    if stop_words not in (None, "english"):
        raise ConfigError(f"dataset.stop_words={stop_words} must be english or null")
    name, manifest = options["name"], read_manifest(data_dir)
    path = find_file(name, options["file"], data_dir, manifest)
    if not path.is_file():
        raise DataError(f"data set {name!r} is not here: no file {path}; point data_dir= or ADVCLI_DATA to the folder that has {path.name}")
    raw, row = read_bytes(path), manifest.get(name)
    if row is not None and row["sha256"] and path.name == row["file"] and hashlib.sha256(raw).hexdigest() != row["sha256"].lower():
        raise DataError(f"{path} is damaged or was changed: its checksum is not the one in MANIFEST.csv beside it; get it again")
    frame = read_table(path, str(options["target"]), raw).frame
    if options["text"] not in frame:
        raise DataError(
            f"{path} has no column {options['text']!r} (dataset.text); {nearest(str(options['text']), map(str, frame.columns))}"
        )
    labels = [str(label) for label in frame[options["target"]]]
    found = sorted(set(labels))
    notes = ["TF-IDF of words; the document frequencies are those of all rows, training and test, without their labels"]
    if name == "reuters_r8":
        notes.append("stands in for the Reuters subset of louche2015, whose topics and documents are not stated")
    codes = np.array([found.index(label) for label in labels], dtype=np.intp)
    y, classes, ordered = order_labels(codes, found, options, str(path), notes)
    vectorizer = TfidfVectorizer(min_df=min_df, sublinear_tf=options["sublinear_tf"], stop_words=stop_words)
    try:
        X = vectorizer.fit_transform([str(text) for text in frame[options["text"]]])
    except ValueError as error:
        raise DataError(f"{path}: no words are left ({' '.join(str(error).split())}); lower dataset.min_df") from None
    return make_dataset(
        name=name,
        X=csr_array(X),
        y=y,
        classes=classes,
        feature_names=vectorizer.get_feature_names_out().tolist(),
        ordered=ordered,
        sizes=options["sizes"],
        notes=notes,
        allow_small_classes=options["allow_small_classes"],
    )


def _entries(data_dir: Path) -> list[Entry]:
    manifest, entries = read_manifest(data_dir), []
    for name, (rows, classes, sizes, citation) in TEXTS.items():
        path = find_file(name, None, data_dir, manifest)
        command = f"dataset={name}" if path.is_file() else f"put {path.name} into the data folder"
        entries.append(Entry(name, "text", rows, None, classes, "multiclass", path.is_file(), command, citation, {"sizes": list(sizes)}))
    return entries


SOURCE = Source("text", _OPTIONS, _load, _entries)
