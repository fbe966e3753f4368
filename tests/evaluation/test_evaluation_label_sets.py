"""Metrics of sets of labels and of labels with a hierarchy, against their definitions and scikit-learn."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn import metrics as sk

from advcli import metrics
from advcli.core.errors import ConfigError
from advcli.core.label_graph import LabelGraph, stub
from advcli.data.labels.sets import LabelClosures
from advcli.evaluation.splits import make_holdout

EDGES = [("r", "a"), ("r", "b"), ("a", "c"), ("a", "d"), ("d", "e"), ("d", "f")]
CLASSES = ("f", "b", "c", "e")


def sets(k: int = 4) -> st.SearchStrategy[tuple[NDArray[Any], NDArray[Any]]]:
    rows = st.lists(st.tuples(*[st.lists(st.booleans(), min_size=k, max_size=k)] * 2), min_size=1, max_size=6)
    return rows.map(lambda pairs: tuple(np.array(side, dtype=np.int8) for side in zip(*pairs, strict=True)))


def value(name: str, y: Any, z: Any, **options: Any) -> float:
    if np.ndim(y) == 2:
        y, z = sparse.csr_array(y), sparse.csr_array(z)
    return metrics.compute(name, y, z, 4, options)


@settings(max_examples=60, deadline=None)
@given(sets())
def test_sets_against_scikit_learn(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    y, z = pair
    assert value("accuracy", y, z) == pytest.approx(sk.accuracy_score(y, z))
    assert value("error", y, z) == pytest.approx(1 - sk.accuracy_score(y, z))
    assert value("hamming", y, z) == pytest.approx(sk.hamming_loss(y, z))
    assert value("micro_f1", y, z) == pytest.approx(sk.f1_score(y, z, average="micro", zero_division=0))
    assert value("instance_f1", y, z) == pytest.approx(sk.f1_score(y, z, average="samples", zero_division=1))
    assert value("jaccard", y, z) == pytest.approx(sk.jaccard_score(y, z, average="samples", zero_division=1))
    predicted = np.flatnonzero(y.any(axis=0) | z.any(axis=0))
    expected = sk.f1_score(y, z, average="macro", labels=predicted, zero_division=0) if len(predicted) else 0.0
    assert value("macro_f1", y, z) == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8))
def test_codes_against_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    y, z = (np.array(side) for side in zip(*pairs, strict=True))
    assert value("micro_f1", y, z) == pytest.approx(sk.accuracy_score(y, z))
    assert value("macro_f1", y, z) == pytest.approx(sk.f1_score(y, z, average="macro", zero_division=0))
    assert value("hamming", y, z) == pytest.approx(2 * np.mean(y != z) / 4)


def above(node: str) -> set[str]:
    return {node}.union(*(above(parent) for parent, child in EDGES if child == node)) - {"r"}


def path_length(start: str, end: str) -> int:
    beside: dict[str, set[str]] = {}
    for parent, child in EDGES:
        beside.setdefault(parent, set()).add(child)
        beside.setdefault(child, set()).add(parent)
    queue, distance = deque([start]), {start: 0}
    while queue:
        node = queue.popleft()
        for other in beside[node] - set(distance):
            distance[other] = distance[node] + 1
            queue.append(other)
    return distance[end]


@settings(max_examples=60, deadline=None)
@given(sets())
def test_hierarchical_metrics_by_enumeration(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    y, z = pair
    graph = LabelClosures.of(LabelGraph.from_edges(EDGES), CLASSES)
    closed = [[set().union(*(above(CLASSES[i]) for i in np.flatnonzero(row))) for row in side] for side in (y, z)]
    both = sum(len(true & predicted) for true, predicted in zip(*closed, strict=True))
    true, predicted = (sum(map(len, side)) for side in closed)
    assert value("hierarchical_precision", y, z, label_graph=graph) == pytest.approx(both / predicted if predicted else 0)
    assert value("hierarchical_recall", y, z, label_graph=graph) == pytest.approx(both / true if true else 0)
    assert value("hierarchical_f1", y, z, label_graph=graph) == pytest.approx(2 * both / (true + predicted) if true + predicted else 0)
    apart = [len(one ^ other) for one, other in zip(*closed, strict=True)]
    assert value("tree_loss", y, z, label_graph=graph) == pytest.approx(np.mean(apart))


def test_the_tree_loss_of_codes_is_the_length_of_the_path() -> None:
    graph = LabelClosures.of(LabelGraph.from_edges(EDGES), CLASSES)
    for i, start in enumerate(CLASSES):
        for to, end in enumerate(CLASSES):
            assert value("tree_loss", np.array([i]), np.array([to]), label_graph=graph) == path_length(start, end)


def test_a_stub_stands_for_the_node_above_it() -> None:
    edges = [*EDGES, ("a", stub("a"))]
    graph = LabelClosures.of(LabelGraph.from_edges(edges), (*CLASSES, stub("a")), (stub("a"),))
    options = {"label_graph": graph}
    # truth a, prediction c below it: the nodes are {a} and {a, c}
    assert metrics.compute("hierarchical_recall", np.array([4]), np.array([2]), 5, options) == 1.0
    assert metrics.compute("hierarchical_precision", np.array([4]), np.array([2]), 5, options) == 0.5
    assert metrics.compute("tree_loss", np.array([4]), np.array([2]), 5, options) == 1.0


def test_an_abstention_has_no_nodes() -> None:
    graph = LabelClosures.of(LabelGraph.from_edges(EDGES), CLASSES)
    # truth {a, d, f} and {b}, predictions none and {b}
    assert value("hierarchical_recall", np.array([0, 1]), np.array([4, 1]), label_graph=graph) == pytest.approx(1 / 4)


def test_metrics_say_what_they_need() -> None:
    y = np.array([0, 1])
    with pytest.raises(ConfigError, match=r"dataset\.hierarchy=EDGES"):
        value("tree_loss", y, y)
    with pytest.raises(ConfigError, match="metric mae is for one label a row"):
        value("mae", np.eye(4), np.eye(4))


def test_a_holdout_is_a_split_of_its_own() -> None:
    fit, held = make_holdout(50, 0.3, 0, "mine")
    assert (len(fit), len(held)) == (35, 15)
    assert np.array_equal(np.sort(np.concatenate([fit, held])), np.arange(50))
    again = make_holdout(50, 0.3, 0, "mine")
    assert np.array_equal(held, again[1])
    assert not np.array_equal(held, make_holdout(50, 0.3, 1, "mine")[1])
