"""The shared norm on the four cases of choi2018's Table 6.1, and its closed forms on trees against a generic solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from support.shared_norms import shared_norm, structured_shared_norm

from advcli.core.errors import IncompatibleError
from advcli.core.label_graph import LabelGraph
from advcli.data.labels.node_weights import best_weights, dual_bound

STAR = LabelGraph.from_edges([("r", name) for name in "abcd"])
APART = LabelGraph.from_edges([("a", "b"), ("c", "d"), ("e", "f")], several_tops=True)
DAG = LabelGraph.from_edges([("r", "a"), ("r", "b"), ("a", "c"), ("b", "c"), ("a", "d"), ("b", "e")])


def random_tree(seed: int) -> LabelGraph:
    random = np.random.default_rng(seed)
    return LabelGraph.from_edges([(str(random.integers(0, child)), str(child)) for child in range(1, int(random.integers(4, 12)))])


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def test_full_sharing_costs_one_vector() -> None:
    u = normal(0, 5)
    U = np.tile(u, (4, 1))
    assert structured_shared_norm(STAR, U) == pytest.approx(np.linalg.norm(u), rel=1e-4)
    assert shared_norm(U) == pytest.approx(np.linalg.norm(u), rel=1e-4)


def test_without_a_common_node_it_is_the_frobenius_norm() -> None:
    U = normal(1, 3, 5)
    assert structured_shared_norm(APART, U) == pytest.approx(np.linalg.norm(U), rel=1e-5)
    assert shared_norm(U) <= np.linalg.norm(U) + 1e-5  # (6.20) may share all the same


@pytest.mark.parametrize("graph", [STAR, DAG], ids=["tree", "dag"])
def test_disjoint_features_add_up(graph: LabelGraph) -> None:
    L = len(graph.leaves)
    U = np.kron(np.eye(L), [[1.0, 2.0]]) * np.arange(1, L + 1)[:, None]
    assert structured_shared_norm(graph, U) == pytest.approx(np.linalg.norm(U), rel=1e-4)
    assert shared_norm(U) == pytest.approx(np.linalg.norm(U), rel=1e-4)


def test_factor_scaling_holds_for_the_unstructured_norm_only() -> None:
    u, a = normal(2, 5), np.array([1.0, -2.0, 0.5, 1.5])
    U = a[:, None] * u
    assert shared_norm(U) == pytest.approx(2.0 * np.linalg.norm(u), rel=1e-4)
    assert structured_shared_norm(STAR, U) > 1.2 * 2.0 * np.linalg.norm(u)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_bounds_of_the_norms(seed: int) -> None:
    """The largest row <= (6.20) <= (6.19) <= the Frobenius norm."""
    graph = random_tree(seed)
    U = normal(seed, len(graph.leaves), 3)
    free, structured = shared_norm(U), structured_shared_norm(graph, U)
    assert np.linalg.norm(U, axis=1).max() <= free * (1 + 1e-4)
    assert free <= structured * (1 + 1e-4)
    assert structured <= np.linalg.norm(U) * (1 + 1e-4)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_closed_form_weights_are_those_of_a_generic_solver(seed: int) -> None:
    graph = random_tree(seed)
    squares = np.random.default_rng(seed).uniform(0.1, 2.0, graph.size)
    alpha, value = best_weights(graph, squares)
    A = graph.membership.toarray()
    np.testing.assert_allclose(A @ alpha, 1.0, atol=1e-12)
    assert (squares / alpha).sum() == pytest.approx(value, rel=1e-10)
    solution = minimize(
        lambda a: (squares / a).sum(),
        np.full(graph.size, 0.9 / graph.depth.max()),
        jac=lambda a: -squares / a**2,
        bounds=[(1e-6, 1.0)] * graph.size,
        constraints={"type": "ineq", "fun": lambda a: 1.0 - A @ a, "jac": lambda a: -A},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert value == pytest.approx(solution.fun, rel=1e-5)
    np.testing.assert_allclose(alpha, solution.x, atol=1e-2)


def test_nodes_without_weight_get_none() -> None:
    graph = LabelGraph.from_edges([("r", "a"), ("r", "b"), ("a", "c"), ("a", "d")])
    squares = np.array([{"r": 0.0, "a": 0.0, "b": 1.0, "c": 4.0, "d": 1.0}[name] for name in graph.names])
    alpha, value = best_weights(graph, squares)
    np.testing.assert_allclose(alpha, [0, 0, 1, 1, 1])
    assert value == pytest.approx(6.0)


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_the_dual_bound_is_a_linear_program(seed: int) -> None:
    graph = random_tree(seed)
    squares = np.random.default_rng(seed).uniform(0.0, 2.0, graph.size)
    solved = linprog(-squares, A_ub=graph.membership.toarray(), b_ub=np.ones(len(graph.leaves)))
    assert dual_bound(graph, squares) == pytest.approx(-solved.fun, rel=1e-9)


def test_tops_add_up_in_the_bound_and_in_the_weights() -> None:
    squares = np.array([4.0, 1.0, 9.0, 1.0, 1.0, 1.0])
    nodes = [APART.number[name] for name in "abcdef"]
    ordered = np.zeros(6)
    ordered[nodes] = squares
    assert dual_bound(APART, ordered) == pytest.approx(4.0 + 9.0 + 1.0)
    assert best_weights(APART, ordered)[1] == pytest.approx((2 + 1) ** 2 + (3 + 1) ** 2 + (1 + 1) ** 2)


def test_closed_forms_refuse_what_is_no_tree() -> None:
    for function in (best_weights, dual_bound):
        with pytest.raises(IncompatibleError, match="tree"):
            function(DAG, np.ones(DAG.size))
