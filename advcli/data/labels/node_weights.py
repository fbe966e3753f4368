"""Normalisation weights alpha of the nodes of a label graph: sums along every leaf's ancestor set of 1, or from 1 to T on DAGs.

    rho > 1   minimise sum alpha_n^rho                                                        Choi 2018 (6.6), on DAGs with (6.8)
    rho = 1   maximise min_n alpha_n with alpha_child >= alpha_parent, then minimise sum alpha_n^2 at that minimum      (6.7)

Nodes shared by all leaves add the same to every score and nothing to a margin: their weight is 0, and the other nodes have the whole
budget. Keeping shared nodes of weight 1 - s only rescales: lambda becomes lambda / sqrt(s).

The shared Frobenius norm of leaf weights (Choi 2018, sections 6.6 and 6.7.2) is attained by node weights, too:

    |U|_{s,N}^2 = min over alpha >= 0 with path sums <= 1 of tr(U' K(alpha)^+ U),   K(alpha) = A diag(alpha) A'                   (6.19)

A is the membership matrix of the label graph. Node weights U_n give leaf weights U_l, the sum of U_n over the nodes of leaf l. For given
U_n the alpha of least sum |U_n|^2 / alpha_n has a closed form on trees, and so has its dual bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import expit

from ...core.checks import is_number, refuse, rule
from ...core.errors import ConfigError, IncompatibleError
from ...core.label_graph import LabelGraph
from ...core.typing import Array

DAG_SUM = 1.5
"""T of (6.8) in the published experiments on DAGs."""

_FROM_1 = rule("a finite number of at least 1", lambda value: is_number(value) and value >= 1)
_NEWTON_STEPS = 60
_PRECISION = 1e-11


def node_weights(
    graph: LabelGraph, rho: float = 2.0, *, directional: bool = False, largest_sum: float | None = None, keep_shared: bool = False
) -> Array:
    """Return the weights alpha >= 0 of the nodes, shape (M,).

    Several tops are a forest of which every tree has its own budget. ``rho`` is at least 1; 1 always means the program (6.7), whose
    children never weigh less than their parents: the limit of (6.6) would put all weight on the top nodes. ``directional`` asks for
    alpha_child >= alpha_parent with rho > 1 as well. Sums along a leaf's ancestor set lie in [1, T] with T = ``largest_sum`` (None: 1 on
    trees, `DAG_SUM` on DAGs). ``keep_shared`` gives a weight also to nodes that all leaves share, which else weigh 0.
    """
    refuse("rho", rho, _FROM_1)
    T = (1.0 if graph.is_tree else DAG_SUM) if largest_sum is None else largest_sum
    refuse("largest_sum", T, _FROM_1)
    counted = np.ones(graph.size, dtype=bool) if keep_shared else ~shared_by_all(graph)
    if rho > 1.0 and graph.is_tree and not directional and T == 1.0:
        return _tree(graph, float(rho), counted)
    weights = np.zeros(graph.size)
    weights[counted] = _program(graph, float(rho), counted, directional, T)
    return weights


def shared_by_all(graph: LabelGraph) -> NDArray[np.bool_]:
    """Return whether each node is an ancestor of every leaf, shape (M,): the root of a tree, and a chain below it."""
    return np.asarray(graph.membership.sum(axis=0)).ravel() == len(graph.leaves)


def _tree(graph: LabelGraph, rho: float, counted: NDArray[np.bool_]) -> Array:
    """Solve (6.6) on a tree: below a node with budget L the least sum of powers is c L^rho, and the node takes the share k of L.

    min over k of k^rho + S (1 - k)^rho, S the sum of the children's c, is attained where k / (1 - k) = S^(1/(rho - 1)).
    """
    parent = parents_of(graph)
    c, S = np.ones(graph.size), np.zeros(graph.size)
    k = np.ones(graph.size)
    inner = np.diff(graph.child_start) > 0
    for level in levels(graph)[::-1]:
        active = level[inner[level]]
        k[active] = np.where(counted[active], expit(np.log(S[active]) / (rho - 1.0)), 0.0)
        c[active] = k[active] ** rho + S[active] * (1.0 - k[active]) ** rho
        below = level[parent[level] >= 0]
        np.add.at(S, parent[below], c[below])
    return downwards(graph, k)


def downwards(graph: LabelGraph, share: Array) -> Array:
    """Return alpha_n = L_p share_n, L_n = L_p (1 - share_n), with L = 1 above the tops of a tree or forest."""
    parent = parents_of(graph)
    budget = np.ones(graph.size)
    weights = np.empty(graph.size)
    for level in levels(graph):
        above = np.where(parent[level] >= 0, budget[parent[level]], 1.0)
        weights[level] = above * share[level]
        budget[level] = above * (1.0 - share[level])
    return weights


def parents_of(graph: LabelGraph) -> NDArray[np.int32]:
    """Return the parent of every node of a tree or forest, -1 at a top, shape (M,)."""
    parent = np.full(graph.size, -1, dtype=np.int32)
    has = np.diff(graph.parent_start) > 0
    parent[has] = graph.parents[graph.parent_start[:-1][has]]
    return parent


def levels(graph: LabelGraph) -> list[NDArray[np.intp]]:
    """Return the nodes of every depth, from the tops down."""
    depth = graph.depth
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)


# ---- weights that attain the shared norm ------------------------------------------------------------------------------
def best_weights(graph: LabelGraph, squares: Array) -> tuple[Array, float]:
    """Return the alpha that minimises sum squares_n / alpha_n over path sums <= 1 on a tree or forest, and the minimum; squares_n =
    |U_n|^2.

    Choi 2018, Algorithm 5, corrected (docs/notes/hierarchical.md, section 4): a leaf takes the rest of its path's budget, and shares are of
    alpha, not of its root. Below a node with budget L the minimum is N_n / L, N_n = (|U_n| + sqrt(S))^2, S = sum of N over the children.
    The share of the node is |U_n| / (|U_n| + sqrt(S)). A node with U_n = 0 gets alpha 0 where another node of its path has U != 0.
    """
    _needs_tree(graph)
    parent = parents_of(graph)
    S, N, share = np.zeros(graph.size), np.zeros(graph.size), np.ones(graph.size)
    inner = np.diff(graph.child_start) > 0
    root = np.sqrt(squares)
    for level in levels(graph)[::-1]:
        below = np.sqrt(S[level])
        N[level] = (root[level] + below) ** 2
        total = root[level] + below
        share[level] = np.where(inner[level], np.divide(root[level], total, out=np.full(len(level), 0.5), where=total > 0), 1.0)
        inside = level[parent[level] >= 0]
        np.add.at(S, parent[inside], N[inside])
    return downwards(graph, share), float(N[graph.tops].sum())


def dual_bound(graph: LabelGraph, squares: Array) -> float:
    """Return max over alpha >= 0 with path sums <= 1 of sum alpha_n squares_n on a tree: v(n) = max(squares_n, sum of v(children)).

    squares_n = |Z_n|^2, Z_n the sum of the dual sums of the leaves below n; several tops add up.
    """
    _needs_tree(graph)
    parent = parents_of(graph)
    below = np.zeros(graph.size)
    value = np.zeros(graph.size)
    for level in levels(graph)[::-1]:
        value[level] = np.maximum(squares[level], below[level])
        inside = level[parent[level] >= 0]
        np.add.at(below, parent[inside], value[inside])
    return float(value[graph.tops].sum())


def _needs_tree(graph: LabelGraph) -> None:
    if not graph.is_tree:
        raise IncompatibleError("the shared norm's weights", "a tree", "a node of the label graph has several parents: choose loss=nhsvm")


# ---- programs on DAGs -------------------------------------------------------------------------------------------------
def _program(graph: LabelGraph, rho: float, counted: NDArray[np.bool_], directional: bool, T: float) -> Array:
    """Solve for the weights of the kept nodes as a linear, quadratic or, by Newton steps on quadratic ones, convex program."""
    number = np.cumsum(counted) - 1
    m = int(counted.sum())
    sums = sparse.csc_array(graph.membership.tocsc()[:, np.flatnonzero(counted)])
    parent = np.repeat(np.arange(graph.size), np.diff(graph.child_start))
    inside = counted[parent] & counted[graph.children]
    up, down = number[parent[inside]], number[graph.children[inside]]
    count = len(up) if directional or rho == 1.0 else 0
    rows = np.concatenate([np.arange(count), np.arange(count)])
    ends = np.concatenate([down[:count], up[:count]])
    order = sparse.csc_array((np.repeat([1.0, -1.0], count), (rows, ends)), shape=(count, m))  # child - parent >= 0
    least = 0.0
    if rho == 1.0:
        least = _largest_minimum(sums, order, T) * (1.0 - 1e-9)  # rounding must not empty the set of the second program
        rho = 2.0
    weights = _quadratic(np.full(m, 2.0), np.zeros(m), sums, order, T, least)
    if rho == 2.0:
        return np.maximum(weights, 0.0)
    weights = np.maximum(weights, 1e-9)
    for _ in range(_NEWTON_STEPS):
        curvature = rho * (rho - 1.0) * np.maximum(weights, 1e-8) ** (rho - 2.0)
        gradient = rho * weights ** (rho - 1.0)
        target = np.maximum(_quadratic(curvature, gradient - curvature * weights, sums, order, T, least), 0.0)
        step, slope = 1.0, float(gradient @ (target - weights))
        if slope > -_PRECISION:
            break
        value = (weights**rho).sum()
        while ((weights + step * (target - weights)) ** rho).sum() > value + 0.25 * step * slope and step > 1e-10:
            step *= 0.5
        weights = weights + step * (target - weights)
    return weights


def _largest_minimum(sums: Any, order: Any, T: float) -> float:
    """Return the value of the linear program (6.7)."""
    (L, m), edges = sums.shape, order.shape[0]
    minimum: Any = sparse.csc_array(np.ones((m, 1)))  # column of the minimum
    upper: list[Any] = [sparse.hstack([-order, sparse.csc_array((edges, 1))]), sparse.hstack([-sparse.eye_array(m), minimum])]
    sides = [np.zeros(edges + m)]
    equal: dict[str, Any] = {}
    padded: Any = sparse.hstack([sums, sparse.csc_array((L, 1))])
    if T == 1.0:
        equal = {"A_eq": padded.tocsr(), "b_eq": np.ones(L)}
    else:
        upper += [padded, -padded]
        sides += [np.full(L, T), np.full(L, -1.0)]
    cost = np.zeros(m + 1)
    cost[-1] = -1.0
    solved: Any = linprog(cost, A_ub=sparse.vstack(upper).tocsr(), b_ub=np.concatenate(sides), **equal, method="highs")
    if not solved.success:
        raise ConfigError(f"no weights of the label graph satisfy sums from 1 to {T:g}: {solved.message}")
    return float(solved.x[-1])


def _quadratic(curvature: Array, linear: Array, sums: Any, order: Any, T: float, least: float) -> Array:
    """Minimise 1/2 sum curvature alpha^2 + linear . alpha over alpha >= least, 1 <= sums <= T, order alpha >= 0."""
    # HiGHS, which solves the linear programs, agrees on trees of a hundred nodes to 1e-14; on the 4,800 nodes of the Gene Ontology it
    # ended in an error after 22 s, and without an answer where weights are ordered. PIQP takes 0.1 and 0.2 s there.
    import piqp

    m = len(linear)
    solver: Any = piqp.SparseSolver()
    solver.settings.eps_abs, solver.settings.eps_rel = _PRECISION, 0.0
    solver.settings.eps_duality_gap_abs, solver.settings.eps_duality_gap_rel = _PRECISION, 0.0
    solver.settings.max_iter = 1000
    L, edges = sums.shape[0], order.shape[0]
    equal = T == 1.0
    A, b = (sparse.csc_matrix(sums), np.ones(L)) if equal else (None, None)
    G: Any = sparse.csc_matrix(order if equal else sparse.vstack([order, sums]))
    low = np.concatenate([np.zeros(edges), np.ones(0 if equal else L)])
    high = np.concatenate([np.full(edges, np.inf), np.full(0 if equal else L, T)])
    sides = (G, low, high) if G.shape[0] else (None, None, None)
    solver.setup(sparse.csc_matrix(sparse.diags_array(curvature)), linear, A, b, *sides, np.full(m, least), np.full(m, np.inf))
    status = solver.solve()
    if status not in (piqp.Status.PIQP_SOLVED, piqp.Status.PIQP_MAX_ITER_REACHED):
        raise ConfigError(f"no weights of the label graph satisfy sums from 1 to {T:g}: the quadratic program ended with {status}")
    return np.array(solver.result.x)
