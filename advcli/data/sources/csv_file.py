"""A person's own file: CSV or CSV.gz with a heading line, or a sparse file in svmlight format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ConfigError, DataError, nearest
from ..cut import cut_target
from ..dataset import Dataset, make_dataset
from ..label_sets import LABEL_OPTIONS
from ..listing import Entry
from ..registry import Source
from ..table import TABLE_OPTIONS, check_cut, make_table_dataset, order_labels, read_bytes, read_table

_FORMATS = ("csv", "svmlight")


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    if options["path"] is None:
        raise ConfigError("dataset=csv needs dataset.path, the CSV file to read, and dataset.target, its column of labels")
    if options["format"] not in _FORMATS:
        raise ConfigError(f"dataset.format={options['format']} does not exist; {nearest(str(options['format']), _FORMATS)}")
    path = Path(str(options["path"])).expanduser()
    if options["format"] == "svmlight":
        return _load_svmlight(path, options)
    separator = options["separator"]
    if not isinstance(separator, str) or len(separator) != 1 or separator in '"\n\r':
        raise ConfigError(f"dataset.separator={separator!r} must be one character")
    if options["target"] is None:
        raise ConfigError("dataset=csv needs dataset.target, the name of the column with the labels")
    categorical = options["categorical"]
    text = [categorical] if isinstance(categorical, str) else [str(name) for name in categorical or ()]
    return make_table_dataset(read_table(path, str(options["target"]), separator=separator, text=text), options)


def _load_svmlight(path: Path, options: Mapping[str, Any]) -> Dataset:
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    for key in ("features", "drop", "categorical", "weight", "hierarchy", "label_separator"):
        if options[key]:
            raise ConfigError(f"dataset.{key} needs named columns; dataset.format=svmlight has none")
    read_bytes(path)  # for its messages: missing, folder, not readable
    try:
        X, values = load_svmlight_file(str(path), dtype=np.float64)
    except (ValueError, OSError, EOFError, IndexError, OverflowError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path} is not in svmlight format (`label index:value ...`, indices rising): {reason}") from None
    if values.size == 0:
        raise DataError(f"{path} is empty; it needs lines `label index:value ...`")
    X = csr_array(X)
    bad = np.flatnonzero(~np.isfinite(X.data))
    if bad.size:
        row = int(np.searchsorted(X.indptr, bad[0], side="right"))
        raise DataError(f"{path}: row {row} has no finite number in column {X.indices[bad[0]] + 1}; correct it or remove the row")
    if not np.all(np.isfinite(values)):
        raise DataError(f"{path}: row {int(np.flatnonzero(~np.isfinite(values))[0]) + 1} has a label that is no finite number; correct it")
    notes = [f"sparse features: {X.nnz} of {X.shape[0] * X.shape[1]} values are not zero"]
    cut = str(options["cut"] or "none")
    check_cut(cut, options)
    if cut != "none":
        y, levels, said = cut_target(values, cut, options["n_classes"], options["edges"])
        labels, ordered = list(levels), True
        notes += said
    else:
        distinct, codes = np.unique(values, return_inverse=True)
        found = [int(label) if float(label).is_integer() else float(label) for label in distinct]
        y, labels, ordered = order_labels(codes.astype(np.intp), found, options, str(path), notes)
    return make_dataset(
        name=options["name"],
        X=X,
        y=y,
        classes=labels,
        feature_names=[str(column + 1) for column in range(X.shape[1])],
        ordered=ordered,
        sizes=options["sizes"],
        notes=notes,
        allow_small_classes=options["allow_small_classes"],
    )


def _entries(data_dir: Path) -> list[Entry]:
    return []


SOURCE = Source("csv", {"path": None, "format": "csv", "separator": ",", **TABLE_OPTIONS, **LABEL_OPTIONS}, _load, _entries)
