"""Labelled texts in the folder of data sets, as TF-IDF vectors (scikit-learn's TfidfVectorizer), sparse."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...core.checks import ANY, at_least, choice, or_null
from ...core.errors import DataError, MissingDataError, nearest
from ...core.notes import noted
from ..dataset import Dataset, make_dataset
from ..manifest import check_file, entries_by_file, find_file, missing_line, own_file, read_manifest
from ..source import Source, check_options, common, options_give_order
from ..tables.cells import cell_text
from ..tables.opening import read_bytes
from ..tables.options import TableOptions
from ..tables.table import read_table
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
_RULES = {"min_df": at_least(1), "sublinear_tf": ANY, "stop_words": or_null(choice("english"))}


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    check_options(options, _RULES)
    name, manifest = options["name"], read_manifest(data_dir)
    path = find_file(name, options["file"], data_dir, manifest)
    if not path.is_file():
        raise MissingDataError(missing_line(name, path))
    raw, row = read_bytes(path), manifest.get(name)
    check_file(path, raw, row, f"run `advcli data fetch {name}`")
    chosen = TableOptions.read(options)
    frame = read_table(path, chosen, raw=raw).frame
    if options["text"] not in frame:
        raise DataError(
            f"{path} has no column {options['text']!r} (dataset.text); {nearest(str(options['text']), map(str, frame.columns))}"
        )
    labels = cell_text(frame[options["target"]]).tolist()
    distinct = sorted(set(labels))
    notes = [noted("ADV109", "TF-IDF of words; the document frequencies count all rows, training and test, without their labels")]
    codes = np.array([distinct.index(label) for label in labels], dtype=np.intp)
    y, classes, ordered = order_labels(codes, distinct, chosen, str(path), notes)
    vectorizer = TfidfVectorizer(**{key: options[key] for key in _RULES})
    try:
        X = vectorizer.fit_transform([str(text) for text in frame[options["text"]]])
    except ValueError as error:
        raise DataError(f"{path}: no words are left ({' '.join(str(error).split())}); lower dataset.min_df") from None
    names = vectorizer.get_feature_names_out().tolist()
    return make_dataset(X=csr_array(X), y=y, classes=classes, feature_names=names, ordered=ordered, notes=notes, **common(options))


def _examples(folder: Path) -> list[dict[str, Any]]:
    words = ("grain", "wheat", "oil", "ship", "gold")
    rows = "".join(f"{words[i % 5]} {words[i * i % 5]} {words[i // 5 % 5]},{'xyz'[i % 3]}\n" for i in range(30))
    (folder / "example.csv").write_text(f"text,target\n{rows}")
    return [{"name": "example"}, {"name": "example", "order": ["z", "x", "y"], "sublinear_tf": True}]


_ENTRIES = partial(entries_by_file, "text")
SOURCE = Source("text", _OPTIONS, _load, _ENTRIES, ordered=options_give_order, examples=_examples, files=own_file)
