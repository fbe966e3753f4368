"""The check of a source of data sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core.arrays import is_sparse
from ..core.row_blocks import BlockRows
from ..data.dataset import Dataset, content_sha256
from ..data.registry import sources
from ..data.source import Source
from .losses import named, require


def check_source(source: Source | str, options: Mapping[str, Any], data_dir: str | Path) -> Dataset:
    """Check a source of data sets on one data set, and return it.

    ``source`` need not be registered; ``options`` are its options where they differ from the defaults, with ``name``. `ConfigError` for
    options that the source does not have; AssertionError for the first obligation that is not met:

    - defaults of options are plain values, as YAML holds them;
    - `load` returns a `Dataset`, the same each time, and leaves the options as they were;
    - X is float64, C-contiguous or CSR, or `BlockRows`, and finite; the features have different names;
    - y holds codes of the classes, or ones where a row has a label; classes are two or more, different, and all occur;
    - weights are finite and positive; splits and official parts hold rows of it, no row twice;
    - ``sha256`` is the checksum of its content; ``name``, ``sizes`` and ``allow_small_classes`` have the values of the options;
    - `Source.is_ordered` says before loading what the data set says, or None.

    Examples
    --------
    >>> from advcli.testing import check_source
    >>> check_source("sklearn", {"name": "iris"}, "data").X.shape
    (150, 4)
    """
    chosen = sources()[source] if isinstance(source, str) else source
    with named(f"source {chosen.name}"):
        _check_options(chosen)
        asked = chosen.complete({key: value for key, value in options.items() if key != "source"})
        before = repr(asked)
        first, second = chosen.load(asked, Path(data_dir)), chosen.load(asked, Path(data_dir))
        require(repr(asked) == before, "changes the options that it is given")
        for loaded in (first, second):
            require(isinstance(loaded, Dataset), f"returns {type(loaded).__name__}, no Dataset")
        with named(f"data set {asked['name']!r}"):
            _check_features(first)
            _check_labels(first)
            _check_rows(first)
            _check_repeated(first, second)
            _check_options_kept(first, asked)
            ordered = chosen.is_ordered(asked)
            require(ordered in (None, first.ordered), f"ordered is {first.ordered}, but {ordered} by its options (Source.ordered)")
    return first


def _check_repeated(first: Dataset, second: Dataset) -> None:
    require(first.sha256 == content_sha256(first), "sha256 is not the checksum of its content")
    require(first.sha256 == second.sha256, "a second load gave other content")
    require(first.notes == second.notes, "a second load gave other notes")
    require(_rows(first) == _rows(second), "a second load gave other splits")


def _check_options_kept(data: Dataset, asked: Mapping[str, Any]) -> None:
    sizes = None if asked["sizes"] is None else tuple(asked["sizes"])
    for key, wanted in (("name", asked["name"]), ("sizes", sizes), ("allow_small_classes", asked["allow_small_classes"])):
        value = getattr(data, key)
        require(value == wanted, f"{key} is {value}, dataset.{key}={wanted} was asked for")


def _check_options(source: Source) -> None:
    for key, value in source.options.items():
        require(key not in ("name", "source"), f"the option {key} is one of every source")
        try:
            json.dumps(value)
        except TypeError:
            raise AssertionError(f"the default {value!r} of {key} is no plain value, as YAML holds them") from None


def _check_features(data: Dataset) -> None:
    X: Any = data.X
    if isinstance(X, BlockRows):
        X = X.dense(0, len(X))
    sparse = is_sparse(X)
    require(X.ndim == 2 and X.dtype == np.float64, "X is no matrix of float64")
    require(sparse or X.flags.c_contiguous, "X is not C-contiguous")
    require(not sparse or X.has_canonical_format, "X has unsorted or repeated entries")
    require(bool(np.isfinite(X.data if sparse else X).all()), "X is not finite")
    names = data.feature_names
    require(len(names) == X.shape[1], f"{len(names)} feature_names for {X.shape[1]} columns of X")
    require(len(set(names)) == len(names), "two features have one name")


def _check_labels(data: Dataset) -> None:
    y: Any = data.y
    k = len(data.classes)
    require(k >= 2 and len(set(data.classes)) == k, "classes are not two or more different labels")
    require({type(label) for label in data.classes} <= {str, int, float}, "labels are neither text nor numbers")
    require(y.shape[0] == data.X.shape[0], f"{y.shape[0]} labels for {data.X.shape[0]} rows of X")
    if data.multilabel:
        require(y.shape[1] == k and bool(np.all(y.data == 1)), "y does not hold ones, a column for each class")
        require(data.hierarchy is None or bool(np.all(np.diff(y.indptr) > 0)), "a row has no label of the hierarchy")
        codes = y.indices
    else:
        require(y.dtype == np.intp and y.ndim == 1, "y is no vector of intp")
        codes = y
    require(bool(np.all((codes >= 0) & (codes < k))), "a code is no position in classes")
    # of heads of words some numbers may never be
    require(len(np.unique(codes)) == k or (data.groups is not None and data.allow_small_classes), "a class has no rows")


def _check_rows(data: Dataset) -> None:
    n, weight = data.X.shape[0], data.example_weight
    if weight is not None:
        positive = weight.shape == (n,) and bool(np.all(np.isfinite(weight) & (weight > 0)))
        require(positive, "weights are not one positive number a row")
    for train, test in _parts(data):
        rows = np.concatenate([train, test])
        require(len(train) > 0 and len(test) > 0, "a part of a split is empty")
        require(len(np.unique(rows)) == len(rows), "a split has a row twice")
        require(rows.min() >= 0 and rows.max() < n, "a split has a row that is not there")


def _parts(data: Dataset) -> list[tuple[Any, Any]]:
    return [*(data.splits or ()), *([] if data.official is None else [data.official])]


def _rows(data: Dataset) -> list[list[int]]:
    return [part.tolist() for split in _parts(data) for part in split]
