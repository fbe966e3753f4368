"""The loss of distances in a hierarchy: its matrix by walking, the metric beside it, and what is refused."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

from advcli import AdversarialClassifier, metrics
from advcli.core.errors import AdvcliError
from advcli.core.label_graph import LabelGraph
from advcli.data.labels.sets import LabelClosures
from advcli.losses import make_loss

TREE = [["animal", "mammal"], ["animal", "bird"], ["mammal", "cat"], ["mammal", "dog"], ["bird", "gull"], ["animal", "eel"]]
CLASSES = ["cat", "dog", "eel", "gull"]


def walked(edges: list[list[str]], start: str) -> dict[str, int]:
    """Steps from a node to every other, by walking."""
    steps, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        for one, other in [*edges, *([child, parent] for parent, child in edges)]:
            if one == here and other not in steps:
                steps[other] = steps[here] + 1
                queue.append(other)
    return steps


def random_edges(random: np.random.Generator, inner: int, leaves: int, parents: int) -> list[list[str]]:
    edges = [[f"n{random.integers(at)}", f"n{at}"] for at in range(1, inner)]
    edges += [[f"n{above}", f"leaf{at}"] for at in range(leaves) for above in {int(random.integers(inner)) for _ in range(parents)}]
    return edges


@pytest.mark.parametrize("parents", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_matrix_counts_the_steps_of_a_walk(seed: int, parents: int) -> None:
    random = np.random.default_rng(seed)
    edges = random_edges(random, 6, 5, parents)
    classes = [f"leaf{at}" for at in random.permutation(5)]
    matrix: Any = make_loss("tree_distance", 5, hierarchy=edges, classes=classes).matrix  # type: ignore[attr-defined]
    assert matrix.tolist() == [[walked(edges, one)[other] for other in classes] for one in classes]


def test_on_a_tree_the_cost_is_the_metric_tree_loss_and_on_a_graph_no_more() -> None:
    graphs = {"tree": TREE, "forest": [*TREE[2:5], ["sea", "eel"]], "graph": [*TREE, ["mammal", "gull"]]}
    for kind, edges in graphs.items():
        loss: Any = make_loss("tree_distance", 4, hierarchy={"edges": edges, "classes": CLASSES})
        facts = {
            "cost_matrix": loss.matrix,
            "label_graph": LabelClosures.of(LabelGraph.from_edges(map(tuple, edges), several_tops=True), CLASSES),
        }
        for one in range(4):
            for other in range(4):
                true, predicted = np.array([one]), np.array([other])
                cost = metrics.compute(loss.metric, true, predicted, 4, facts)
                length = metrics.compute("tree_loss", true, predicted, 4, facts)
                assert cost == length if kind != "graph" else cost <= length
        if kind == "graph":
            assert loss.matrix[3].tolist() == [2, 2, 3, 0]


def test_in_python_the_labels_are_the_nodes() -> None:
    random = np.random.default_rng(0)
    y = np.array(CLASSES)[random.integers(4, size=60)]
    X = random.normal(size=(60, 3)) + np.searchsorted(CLASSES, y)[:, None]
    for hierarchy in (TREE, {"edges": TREE}, {"edges": TREE, "classes": CLASSES}):
        model = AdversarialClassifier(loss="tree_distance", loss_options={"hierarchy": hierarchy}).fit(X, y)
        assert model.cost_matrix_.tolist() == [[0, 2, 3, 4], [2, 0, 3, 4], [3, 3, 0, 3], [4, 4, 3, 0]]
        assert model.certificate_.converged
    weighted = AdversarialClassifier("weighted", loss_options={"base": "tree_distance", "weight": 0.5, "options": {"hierarchy": TREE}})
    assert weighted.fit(X, y).cost_matrix_.tolist() == (0.5 * model.cost_matrix_).tolist()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs a hierarchy over the classes"),
        ({"hierarchy": TREE}, "needs the names of the 4 classes"),
        ({"hierarchy": [["animal"]], "classes": CLASSES}, "must be a list of .parent, child. pairs"),
        ({"hierarchy": {"edges": TREE, "leaves": []}, "classes": CLASSES}, "must be a list of .parent, child. pairs"),
        ({"hierarchy": TREE, "classes": ["cat", "dgo", "eel", "gull"]}, "the class 'dgo' is no node of the hierarchy; did you mean dog"),
        (
            {"hierarchy": [*TREE[:5], ["eel", "moray"], ["moray", "eel"]], "classes": CLASSES},
            "the edges moray -> eel -> moray form a cycle",
        ),
    ],
)
def test_what_is_wrong_is_one_line(options: dict[str, Any], said: str) -> None:
    with pytest.raises(AdvcliError, match=said) as raised:
        make_loss("tree_distance", 4, **options)
    assert "\n" not in str(raised.value)
