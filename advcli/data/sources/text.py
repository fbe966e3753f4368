"""Labelled texts in the folder of data sets, as TF-IDF vectors (scikit-learn's TfidfVectorizer), sparse."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import ConfigError, DataError, nearest
from ..dataset import Dataset, make_dataset
from ..manifest import check_file, entries_by_file, find_file, own_file, read_manifest
from ..source import Source, options_give_order
from ..tables.cells import cell_text
from ..tables.table import read_bytes, read_table
from ..tables.target import order_labels

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
    check_file(path, raw, row, "get it again")
    frame = read_table(path, str(options["target"]), raw).frame
    if options["text"] not in frame:
        raise DataError(
            f"{path} has no column {options['text']!r} (dataset.text); {nearest(str(options['text']), map(str, frame.columns))}"
        )
    labels = cell_text(frame[options["target"]]).tolist()
    found = sorted(set(labels))
    notes = ["TF-IDF of words; the document frequencies are those of all rows, training and test, without their labels"]
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


def _examples(folder: Path) -> list[dict[str, Any]]:
    words = ("grain", "wheat", "oil", "ship", "gold")
    rows = "".join(f"{words[i % 5]} {words[i * i % 5]} {words[i // 5 % 5]},{'xyz'[i % 3]}\n" for i in range(30))
    (folder / "example.csv").write_text(f"text,target\n{rows}")
    return [{"name": "example"}, {"name": "example", "order": ["z", "x", "y"], "sublinear_tf": True}]


SOURCE = Source(
    "text",
    _OPTIONS,
    _load,
    partial(entries_by_file, "text"),
    ordered=options_give_order,
    examples=_examples,
    files=own_file,
)
