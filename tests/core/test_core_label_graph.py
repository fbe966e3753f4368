"""The label graph against networkx-free definitions: order, ancestor sets, and every error of a graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advcli.core.errors import DataError
from advcli.core.label_graph import LabelGraph

TREE = [("r", "a"), ("r", "b"), ("a", "c"), ("a", "d")]


@st.composite
def random_edges(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Edges of a connected DAG with one top, in random order and under random names."""
    M = draw(st.integers(2, 12))
    names = draw(st.permutations([f"n{at}" for at in range(M)]))
    edges = []
    for child in range(1, M):
        for parent in draw(st.sets(st.integers(0, child - 1), min_size=1, max_size=3)):
            edges.append((names[parent], names[child]))
    return draw(st.permutations(edges))


def ancestors(edges: list[tuple[str, str]], node: str) -> set[str]:
    """Return a node and everything above it, by the definition."""
    return {node}.union(*(ancestors(edges, parent) for parent, child in edges if child == node))


@given(random_edges())
def test_arrays_say_what_the_edges_say(edges: list[tuple[str, str]]) -> None:
    graph = LabelGraph.from_edges(edges)
    assert set(graph.edges()) == set(edges)
    assert sorted(graph.names) == sorted({name for edge in edges for name in edge})
    for node in range(graph.size):
        assert (graph.parents[graph.parent_start[node] : graph.parent_start[node + 1]] < node).all()
    assert {graph.names[at] for at in graph.leaves} == set(graph.names) - {parent for parent, _ in edges}
    assert graph.is_tree == (len(set(edges)) == graph.size - 1)
    dense = graph.membership.toarray()
    for row, leaf in zip(dense, graph.leaves, strict=True):
        assert {graph.names[at] for at in np.flatnonzero(row)} == ancestors(edges, graph.names[leaf])
    assert graph.depth[graph.tops].tolist() == [1]
    assert (np.diff(graph.depth) >= 0).all()  # breadth first


def test_nodes_of_a_level_keep_the_order_of_the_edges() -> None:
    graph = LabelGraph.from_edges([("r", "b"), ("r", "a"), ("b", "z"), ("a", "y")])
    assert graph.names == ("r", "b", "a", "z", "y")
    assert graph.leaf_positions(["y", "z", "y"]).tolist() == [1, 0, 1]


def test_repeated_edges_count_once() -> None:
    assert LabelGraph.from_edges([*TREE, *TREE]).edges() == LabelGraph.from_edges(TREE).edges()


def test_several_tops_on_request() -> None:
    forest = [("r", "a"), ("s", "b")]
    graph = LabelGraph.from_edges(forest, several_tops=True)
    assert [graph.names[at] for at in graph.tops] == ["r", "s"]
    assert graph.is_tree


@pytest.mark.parametrize(
    ("edges", "options", "said"),
    [
        ([], {}, "no edge"),
        ([("r", "a"), ("a", "b"), ("b", "a")], {}, "b -> a -> b form a cycle"),
        ([("r", "r")], {}, "r -> r form a cycle"),
        ([("r", "a"), ("s", "a")], {}, "2 nodes have no parent: 'r', 's'"),
        ([("r", "a"), ("s", "b")], {"root": "r"}, "'s', 'b' cannot be reached from the root 'r'"),
        (TREE, {"root": "x"}, "no node 'x'"),
    ],
)
def test_errors_of_a_graph(edges: list[tuple[str, str]], options: dict, said: str) -> None:
    with pytest.raises(DataError) as raised:
        LabelGraph.from_edges(edges, **options)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("labels", "said"), [(["c", "e"], "'e' of the examples' labels is no node"), (["c", "a"], "1 of 2 labels are no leaves: 'a'")]
)
def test_labels_are_leaves(labels: list[str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        LabelGraph.from_edges(TREE).leaf_positions(labels)


@given(st.integers(2, 30))
def test_a_long_cycle_is_named_shortly(length: int) -> None:
    ring = [(f"n{at}", f"n{(at + 1) % length}") for at in range(length)]
    with pytest.raises(DataError, match="form a cycle"):
        LabelGraph.from_edges([("root", "n0"), *ring, ("n0", "below")])
