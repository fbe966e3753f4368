"""Normalisation weights: closed form against programs, published and hand-made values, the limit rho -> 1, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from advcli.core.errors import ConfigError
from advcli.core.label_graph import LabelGraph
from advcli.data.labels.node_weights import _program, node_weights, shared_by_all

BALANCED = LabelGraph.from_edges([(str(node // 2), str(node)) for node in range(2, 16)])
PARENTS = [[], [0], [0], [1, 2], [2], [3], [3, 4], [1]]
DAG = LabelGraph.from_edges([(str(parent), str(child)) for child, above in enumerate(PARENTS) for parent in above])


def by_number(graph: LabelGraph, weights: np.ndarray) -> np.ndarray:
    return weights[[graph.number[str(node)] for node in range(graph.size)]]


def caterpillar(leaves: int) -> LabelGraph:
    edges = []
    for i in range(1, leaves):
        edges += [(f"s{i}", f"l{i}"), (f"s{i}", f"s{i + 1}" if i < leaves - 1 else f"l{leaves}")]
    return LabelGraph.from_edges(edges)


@st.composite
def random_trees(draw: st.DrawFn) -> LabelGraph:
    parents = [draw(st.integers(0, child - 1)) for child in range(1, draw(st.integers(3, 14)))]
    return LabelGraph.from_edges([(str(parent), str(child + 1)) for child, parent in enumerate(parents)])


def test_a_balanced_tree_halves_its_weights_from_level_to_level() -> None:
    weights = node_weights(BALANCED, 2.0, keep_shared=True)
    np.testing.assert_allclose(weights, np.repeat([8, 4, 2, 1], [1, 2, 4, 8]) / 15, atol=1e-14)


def test_dropping_the_root_only_rescales() -> None:
    kept, dropped = node_weights(BALANCED, 2.0, keep_shared=True), node_weights(BALANCED, 2.0)
    np.testing.assert_allclose(dropped[1:], kept[1:] / (1.0 - kept[0]), atol=1e-14)
    assert dropped[0] == 0.0


def test_weights_of_a_caterpillar_tend_to_the_golden_ratio() -> None:
    graph = caterpillar(20)
    weights = node_weights(graph, 2.0, keep_shared=True)
    spine = weights[[graph.number[f"s{i}"] for i in (1, 2, 3)]]
    spine /= 1.0 - np.concatenate([[0.0], np.cumsum(spine)[:-1]])  # of what the path has left
    np.testing.assert_allclose(spine, (np.sqrt(5.0) - 1.0) / 2.0, atol=1e-6)


@given(random_trees(), st.sampled_from([1.2, 1.5, 2.0, 3.0, 4.5]))
@settings(max_examples=40, deadline=None)
def test_the_closed_form_is_the_program_s_solution(graph: LabelGraph, rho: float) -> None:
    closed = node_weights(graph, rho, keep_shared=True)
    program = _program(graph, rho, np.ones(graph.size, dtype=bool), False, 1.0)
    np.testing.assert_allclose(graph.membership @ closed, 1.0, atol=1e-12)
    assert (closed**rho).sum() <= (program**rho).sum() + 1e-9
    if rho <= 3.0:  # powers above are too flat near 0 to pin the weights themselves
        np.testing.assert_allclose(closed, program, atol=2e-4)


@pytest.mark.parametrize("T", [1.0, 1.5])
def test_weights_of_the_eight_node_graph(T: float) -> None:
    weights = by_number(DAG, node_weights(DAG, 2.0, largest_sum=T, keep_shared=True))
    np.testing.assert_allclose(weights, np.array([11, 11, 3, 3, 1, 2, 1, 8]) / 30, atol=1e-8)


@pytest.mark.parametrize(("T", "value"), [(1.0, 1 / 6), (1.5, 1 / 4)])
def test_the_linear_program_on_the_eight_node_graph(T: float, value: float) -> None:
    weights = node_weights(DAG, 1.0, largest_sum=T, keep_shared=True)
    assert weights.min() == pytest.approx(value, abs=1e-8)
    # of all weights with this minimum the ones of least length: no feasible direction shortens them
    sums = DAG.membership.toarray()
    edges = [(DAG.number[up], DAG.number[down]) for up, down in DAG.edges()]
    constraints = [
        {"type": "ineq", "fun": lambda a: sums @ a - 1.0},
        {"type": "ineq", "fun": lambda a: T - sums @ a},
        {"type": "ineq", "fun": lambda a: np.array([a[down] - a[up] for up, down in edges])},
    ]
    start = weights + 0.01
    solution = minimize(
        lambda a: a @ a, start, jac=lambda a: 2 * a, bounds=[(value, None)] * DAG.size, constraints=constraints, method="SLSQP"
    )
    assert weights @ weights == pytest.approx(solution.fun, abs=1e-6)


@given(random_trees())
@settings(max_examples=25, deadline=None)
def test_the_least_weight_of_a_tree_is_one_over_its_longest_path(graph: LabelGraph) -> None:
    weights = node_weights(graph, 1.0, keep_shared=True)
    assert weights.min() == pytest.approx(1.0 / graph.depth.max(), abs=1e-7)
    np.testing.assert_allclose(graph.membership @ weights, 1.0, atol=1e-7)
    for up, down in graph.edges():
        assert weights[graph.number[down]] >= weights[graph.number[up]] - 1e-7


def test_weights_of_a_balanced_tree_are_uniform_at_rho_one() -> None:
    np.testing.assert_allclose(node_weights(BALANCED, 1.0)[1:], 1 / 3, atol=1e-7)


def test_directional_weights_with_powers_grow_downwards() -> None:
    weights = node_weights(BALANCED, 2.0, directional=True)
    np.testing.assert_allclose(weights[1:], 1 / 3, atol=1e-7)


def test_every_tree_of_a_forest_has_its_own_budget() -> None:
    graph = LabelGraph.from_edges([("a", "b"), ("a", "c"), ("d", "e")], several_tops=True)
    for rho in (1.0, 2.0):
        weights = node_weights(graph, rho)
        np.testing.assert_allclose(graph.membership @ weights, 1.0, atol=1e-7)
        assert weights[graph.number["a"]] > 0.3


def test_a_chain_below_the_root_is_shared_too() -> None:
    graph = LabelGraph.from_edges([("r", "s"), ("s", "a"), ("s", "b")])
    np.testing.assert_array_equal(shared_by_all(graph), [True, True, False, False])
    np.testing.assert_allclose(node_weights(graph, 2.0), [0, 0, 1, 1])


def test_copies_of_a_node_weigh_together_what_it_weighs_as_rho_falls_to_one() -> None:
    minimal = LabelGraph.from_edges([("r", "a"), ("r", "b"), ("a", "c"), ("a", "d")])
    copied = LabelGraph.from_edges([("r", "a"), ("r", "b1"), ("b1", "b2"), ("b2", "b"), ("a", "c1"), ("c1", "c"), ("a", "d")])
    home = {"b1": "b", "b2": "b", "c1": "c"}
    distance = []
    for rho in (1.5, 1.2, 1.1, 1.05):
        weights, together = node_weights(minimal, rho, keep_shared=True), np.zeros(minimal.size)
        for name, weight in zip(copied.names, node_weights(copied, rho, keep_shared=True), strict=True):
            together[minimal.number[home.get(name, name)]] += weight
        distance.append(np.abs(together - weights).max())
    assert distance == sorted(distance, reverse=True)
    assert distance[-1] < 1e-3 < distance[0]


@pytest.mark.parametrize(
    ("options", "said"), [({"rho": 0.5}, "rho=0.5"), ({"largest_sum": 0.9}, "largest_sum=0.9"), ({"rho": np.nan}, "rho")]
)
def test_refusals(options: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        node_weights(DAG, **options)
