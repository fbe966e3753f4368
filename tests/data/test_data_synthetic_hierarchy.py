"""Made-up documents over a random label tree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advcli.core.errors import ConfigError
from advcli.core.label_graph import LabelGraph
from advcli.data import load

NAMED = {"name": "documents", "source": "synthetic_hierarchy"}


@given(st.integers(3, 40), st.floats(0.5, 0.9), st.integers(3, 8), st.integers(0, 2**31))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_tree_and_the_documents_have_the_sizes_asked_for(tmp_path: Path, leaves: int, share: float, depth: int, seed: int) -> None:
    nodes = max(leaves + 1, round(leaves / share))
    data = load({**NAMED, "rows": 2 * leaves + 5, "nodes": nodes, "leaves": leaves, "depth": depth, "seed": seed}, tmp_path)
    assert data.hierarchy is not None
    graph = LabelGraph.from_edges(data.hierarchy)
    graph.leaf_positions(data.classes)
    assert graph.is_tree
    assert graph.size == nodes
    assert len(graph.leaves) == leaves
    assert graph.depth.max() <= depth
    assert min(data.class_sizes().values()) >= 2
    np.testing.assert_allclose(np.sqrt(data.X.multiply(data.X).sum(axis=1)), 1.0, atol=1e-12)
    assert np.diff(data.X.indptr).max() <= 20


def test_topics_tell_the_label_and_the_background_does_not(tmp_path: Path) -> None:
    from sklearn.linear_model import RidgeClassifier

    def accuracy(background: float) -> float:
        data = load({**NAMED, "background": background}, tmp_path)
        train = np.random.default_rng(0).random(len(data.y)) < 0.7
        return float(RidgeClassifier().fit(data.X[train], data.y[train]).score(data.X[~train], data.y[~train]))

    assert accuracy(0.5) > 0.7 > 0.3 > accuracy(1.0)


def test_the_seed_decides(tmp_path: Path) -> None:
    assert load(NAMED, tmp_path).sha256 == load(NAMED, tmp_path).sha256
    assert load(NAMED, tmp_path).sha256 != load({**NAMED, "seed": 1}, tmp_path).sha256


@pytest.mark.parametrize("change", [{"rows": 50}, {"leaves": 10}, {"leaves": 60}, {"depth": 2}, {"background": 2}, {"nodes": 4.0}])
def test_refused_options(tmp_path: Path, change: dict) -> None:
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(change))}"):
        load({**NAMED, **change}, tmp_path)
