"""The synthetic sets with hierarchies: labels follow from the concepts that the recipe states, runs are drawn anew, options are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advcli.core.errors import ConfigError
from advcli.core.label_graph import LabelGraph
from advcli.data import load

SMALL: dict[str, Any] = {"source": "choi_synthetic", "rows": 400, "features": 30, "runs": 2, "allow_small_classes": True}


def made(kind: str, tmp_path: Path, **more: Any) -> Any:
    leaves = 8 if kind == "balanced" else 10
    return load({"name": kind, "kind": kind, "leaves": leaves, **SMALL, **more}, tmp_path)


TREES = [("balanced", 8, 15, 4), ("unbalanced", 10, 19, 10), ("unbalanced", 11, 21, 11)]


@pytest.mark.parametrize(
    ("kind", "leaves", "nodes", "depth"), [("balanced", 8, 15, 4), ("unbalanced", 10, 19, 10), ("unbalanced", 11, 21, 11)]
)
def test_the_hierarchy_is_the_stated_one(kind: str, leaves: int, nodes: int, depth: int, tmp_path: Path) -> None:
    dataset = made(kind, tmp_path, leaves=leaves)
    graph = LabelGraph.from_edges(dataset.hierarchy)
    graph.leaf_positions(dataset.classes)
    assert (graph.size, len(graph.leaves), graph.depth.max()) == (nodes, leaves, depth)
    assert graph.is_tree
    assert np.diff(graph.child_start).max() == 2
    assert set(dataset.classes) == {graph.names[leaf] for leaf in graph.leaves}


def test_leaves_of_the_balanced_tree_have_the_largest_sum_along_their_paths(tmp_path: Path) -> None:
    dataset = made("balanced", tmp_path)
    random = np.random.default_rng([0, 1])
    X = random.standard_normal((400, 30))
    W = random.standard_normal((16, 30))
    scores = np.array([sum(X @ W[(8 + leaf) >> up] for up in range(4)) for leaf in range(8)])
    np.testing.assert_array_equal(dataset.X[400:], X)
    np.testing.assert_array_equal(dataset.y[400:], scores.argmax(axis=0))
    parents = {child: parent for parent, child in dataset.hierarchy}
    assert [parents[f"leaf {leaf}"] for leaf in range(1, 9)] == [f"node {node}" for node in (4, 4, 5, 5, 6, 6, 7, 7)]


def test_each_leaf_of_the_unbalanced_tree_takes_half_of_what_is_left(tmp_path: Path) -> None:
    dataset = made("unbalanced", tmp_path, rows=4000, runs=1)
    np.testing.assert_allclose(np.linalg.norm(dataset.X, axis=1), 1.0)
    shares = np.bincount(dataset.y, minlength=10) / 4000
    np.testing.assert_allclose(shares[:6], 0.5 ** np.arange(1, 7), atol=0.06)
    random = np.random.default_rng([0, 0])
    X = random.standard_normal((4000, 30))
    sides = X @ random.standard_normal((9, 30)).T > 0
    for row, leaf in zip(sides, dataset.y, strict=True):
        assert not row[:leaf].any()
        assert leaf == 9 or row[leaf]


def test_runs_are_the_splits_and_differ(tmp_path: Path) -> None:
    dataset = made("balanced", tmp_path)
    assert [(len(train), len(test)) for train, test in dataset.splits] == [(300, 100)] * 2
    assert sorted(np.concatenate([rows for split in dataset.splits for rows in split])) == list(range(800))
    assert not np.array_equal(dataset.X[:400], dataset.X[400:])
    assert made("balanced", tmp_path, runs=1).X.tobytes() == dataset.X[:400].tobytes()
    assert made("balanced", tmp_path, seed=1).sha256 != dataset.sha256


@pytest.mark.parametrize(
    ("options", "said"),
    [({"kind": "skewed"}, "kind=skewed"), ({"leaves": 6}, "power of 2"), ({"rows": 1}, "rows=1"), ({"train_share": 1.0}, "train_share")],
)
def test_refusals(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        load({"name": "x", **SMALL, **options}, tmp_path)
