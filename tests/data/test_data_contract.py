"""The contract of every source, of the package and of plug-ins; and the check of it notices every breach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from advcli.core.errors import ConfigError
from advcli.data import Dataset, Source, make_dataset
from advcli.data.registry import _bundled
from advcli.testing import check_source


@pytest.mark.parametrize("name", _bundled())
def test_every_source(name: str, tmp_path: Path) -> None:
    source = _bundled()[name]
    assert source.examples is not None, f"source {name} has no examples to be tested on"
    examples = source.examples(tmp_path)
    assert examples
    for options in examples:
        check_source(name, options, tmp_path)


def honest(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    """Return a data set that meets every obligation."""
    return make_dataset(
        name=options["name"],
        X=np.arange(12.0).reshape(6, 2),
        y=np.arange(6) % 3,
        classes=["a", "b", "c"],
        feature_names=["one", "two"],
        ordered=options["ordered"],
        sizes=options["sizes"],
        example_weight=np.ones(6),
        splits=((np.arange(4), np.arange(4, 6)),),
        allow_small_classes=options["allow_small_classes"],
        notes=["made up"],
    )


def source(load: Callable[[Mapping[str, Any], Path], Any], **fields: Any) -> Source:
    return Source("mine", {"knob": 1}, load, **fields)


def test_an_honest_source(tmp_path: Path) -> None:
    assert check_source(source(honest), {"name": "m"}, tmp_path).classes == ("a", "b", "c")
    check_source(source(honest), {"name": "m", "source": "mine", "ordered": True, "sizes": [4, 2], "allow_small_classes": True}, tmp_path)
    with pytest.raises(ConfigError, match="did you mean knob"):
        check_source(source(honest), {"name": "m", "knop": 1}, tmp_path)


def changed(**fields: Any) -> Callable[[Mapping[str, Any], Path], Dataset]:
    """Return a load function whose data set has other fields."""
    return lambda options, data_dir: replace(honest(options, data_dir), **fields)


def greedy(options: Any, data_dir: Path) -> Dataset:
    options["knob"] = 2
    return honest(options, data_dir)


def fickle(field: str, values: list[Any]) -> Callable[[Mapping[str, Any], Path], Dataset]:
    """Return a load function whose data set has another value of a field at every call."""
    remaining = iter(values)

    def load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
        data = replace(honest(options, data_dir), **{field: next(remaining)})
        keys = ("name", "X", "y", "classes", "feature_names", "example_weight", "splits", "notes")
        return make_dataset(**{key: getattr(data, key) for key in keys})

    return load


X = np.arange(12.0).reshape(6, 2)
SPLIT = (np.arange(4), np.arange(4, 6))


@pytest.mark.parametrize(
    ("load", "complaint"),
    [
        (lambda options, data_dir: {"X": X}, "no Dataset"),
        (greedy, "changes the options"),
        (changed(name="other"), "name is other"),
        (changed(X=X.astype(np.float32)), "float64"),
        (changed(X=np.asfortranarray(X)), "C-contiguous"),
        (changed(X=np.where(X == 3, np.nan, X)), "not finite"),
        (changed(feature_names=("one",)), "1 feature_names for 2"),
        (changed(feature_names=("one", "one")), "one name"),
        (changed(classes=("a", "b", "b")), "different labels"),
        (changed(classes=("a", "b", None)), "neither text nor numbers"),
        (changed(y=np.arange(5) % 3), "5 labels for 6 rows"),
        (changed(y=(np.arange(6) % 3).astype(np.int32)), "intp"),
        (changed(y=np.arange(6) % 3 + 1), "no position"),
        (changed(y=np.arange(6) % 2), "has no rows"),
        (changed(y=csr_array(np.eye(6, 3, dtype=np.int8)), hierarchy=(("r", "a"), ("r", "b"), ("r", "c"))), "no label"),
        (changed(y=csr_array(2 * np.ones((6, 3), dtype=np.int8))), "ones, a column"),
        (changed(X=csr_array((np.ones(6), [1, 0, 1, 0, 1, 0], [0, 2, 3, 4, 5, 6, 6]), shape=(6, 2))), "unsorted"),
        (changed(example_weight=np.zeros(6)), "positive number"),
        (changed(example_weight=np.ones(5)), "positive number"),
        (changed(splits=((np.arange(4), np.arange(3, 6)),)), "row twice"),
        (changed(splits=((np.arange(4), np.arange(4, 7)),)), "not there"),
        (changed(splits=((np.arange(6), np.arange(0)),)), "empty"),
        (changed(official=(np.arange(4), np.arange(3, 6))), "row twice"),
        (changed(sha256="0" * 64), "checksum of its content"),
        (changed(sizes=(4, 2)), "sizes is"),
        (changed(allow_small_classes=True), "allow_small_classes is True"),
        (fickle("X", [X, X + 1]), "other content"),
        (fickle("notes", [("one",), ("two",)]), "other notes"),
        (fickle("splits", [(SPLIT,), (SPLIT[::-1],)]), "other splits"),
    ],
)
def test_a_source_that_fails_an_obligation(load: Any, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=complaint) as caught:
        check_source(source(load), {"name": "m"}, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (Source("mine", {"knob": object()}, honest), "no plain value"),
        (Source("mine", {"name": "m"}, honest), "one of every source"),
        (source(honest, ordered=lambda options: True), "but True by its options"),
    ],
)
def test_a_source_that_declares_wrongly(wrong: Source, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_source(wrong, {"name": "m"}, tmp_path)
