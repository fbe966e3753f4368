"""Cuts of continuous targets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advcli.core.errors import ConfigError, DataError
from advcli.data.tables.options import TableOptions
from advcli.data.tables.target import cut_target

values = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=2, max_size=60).filter(lambda v: max(v) - min(v) > 1e-3)


@given(values, st.integers(2, 12), st.sampled_from(["equal_width", "equal_frequency"]))
def test_codes_rise_with_the_values_and_no_class_is_empty(v: list[float], k: int, cut: str) -> None:
    v = np.array(v)
    codes, levels, _ = cut_target(v, TableOptions(cut=cut, n_classes=k))
    order = np.argsort(v, kind="stable")
    assert np.all(np.diff(codes[order]) >= 0)
    for value in np.unique(v):
        assert np.unique(codes[v == value]).size == 1
    assert np.array_equal(np.unique(codes), np.arange(len(levels)))
    assert len(levels) <= k
    assert list(levels) == sorted(set(levels))
    assert min(levels) >= 1
    assert max(levels) <= k


@given(values, st.integers(2, 12))
def test_equal_width_has_equal_widths(v: list[float], k: int) -> None:
    v = np.array(v)
    codes, levels, _ = cut_target(v, TableOptions(cut="equal_width", n_classes=k))
    width = (v.max() - v.min()) / k
    level = np.array(levels)[codes]
    slack = 1e-9 * max(abs(v).max(), 1.0)
    assert np.all(v >= v.min() + (level - 1) * width - slack)
    assert np.all(v <= v.min() + level * width + slack)
    assert level[np.argmin(v)] == 1
    assert level[np.argmax(v)] == k


@given(st.integers(2, 8), st.integers(1, 9))
def test_equal_frequency_is_even_without_ties(k: int, per_class: int) -> None:
    v = np.random.default_rng(0).permutation(k * per_class).astype(float)
    codes, levels, _ = cut_target(v, TableOptions(cut="equal_frequency", n_classes=k))
    assert len(levels) == k
    assert np.ptp(np.bincount(codes)) <= 1


def test_equal_frequency_never_parts_ties() -> None:
    codes, levels, notes = cut_target(np.array([1.0] * 8 + [2.0, 3.0]), TableOptions(cut="equal_frequency", n_classes=5))
    assert codes.tolist() == [0] * 8 + [1] * 2 or codes.tolist() == [0] * 8 + [1, 2]
    assert len(levels) < 5
    assert any("empty classes dropped" in note for note in notes)


def test_edges_are_closed_on_the_left() -> None:
    codes, levels, _ = cut_target(np.array([5.0, 10.0, 19.9, 20.0, 99.0]), TableOptions(cut="edges", edges=(10.0, 20.0)))
    assert codes.tolist() == [0, 1, 1, 2, 2]
    assert levels == (1, 2, 3)


def test_empty_classes_are_dropped_and_said() -> None:
    codes, levels, notes = cut_target(np.array([0.0, 1.0, 9.0, 10.0]), TableOptions(cut="equal_width", n_classes=5))
    assert codes.tolist() == [0, 0, 1, 1]
    assert levels == (1, 5)
    assert "empty classes dropped: 2, 3, 4 of 1 to 5; 2 classes remain [ADV107]" in notes


@pytest.mark.parametrize(
    ("cut", "n_classes", "edges", "words"),
    [
        ("equal_widths", 5, None, "did you mean equal_width"),
        ("equal_width", None, None, "n_classes"),
        ("equal_width", 1, None, "from 2 to 10000"),
        ("equal_width", True, None, "from 2 to 10000"),
        ("edges", None, None, "dataset.edges"),
        ("edges", None, [3, 2], "increasing"),
        ("edges", None, [1, float("nan")], "finite"),
        ("edges", None, ["a"], "numbers"),
    ],
)
def test_wrong_options(cut: str, n_classes: int | None, edges: list[float] | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        TableOptions.read({"cut": cut, "n_classes": n_classes, "edges": edges})


def test_constant_target() -> None:
    with pytest.raises(DataError, match="same value 3"):
        cut_target(np.full(4, 3.0), TableOptions(cut="equal_width", n_classes=2))
