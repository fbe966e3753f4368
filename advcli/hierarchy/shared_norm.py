"""The shared Frobenius norm of leaf weights, and the node weights that attain it (choi2018, sections 6.6 and 6.7.2).

    |U|_{s,N}^2 = min over alpha >= 0 with path sums <= 1 of tr(U' K(alpha)^+ U),   K(alpha) = A diag(alpha) A'                   (6.19)
    |U|_s^2     = min over K >= 0 with diagonal <= 1     of tr(U' K^+ U)                                                          (6.20)

A is the membership matrix of the label graph. Beside these: for given node weights U_n, U_l = sum of U_n over the nodes of leaf l,
the alpha of least sum |U_n|^2 / alpha_n in closed form on trees, and its dual bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import ConfigError, IncompatibleError
from .graph import LabelGraph
from .weights import _downwards, _levels, parents_of

Array = NDArray[np.float64]


def best_weights(graph: LabelGraph, squares: Array) -> tuple[Array, float]:
    """Return the alpha that minimises sum squares_n / alpha_n over path sums <= 1 on a tree, and the minimum.

    choi2018, Algorithm 5, corrected (docs/notes/hierarchical.md, section 4): a leaf takes the rest of its path's budget, and shares are of
    alpha, not of its root. Below a node with budget L the minimum is N_n / L,

        N_n = (|U_n| + sqrt(S))^2,  S = sum of N over the children,  share of the node |U_n| / (|U_n| + sqrt(S)).

    Parameters
    ----------
    graph : LabelGraph
        A tree or forest.
    squares : ndarray (M,)
        |U_n|^2 >= 0. A node with U_n = 0 gets alpha 0 where another node of its path has U != 0.
    """
    _needs_tree(graph)
    parent = parents_of(graph)
    S, N, share = np.zeros(graph.size), np.zeros(graph.size), np.ones(graph.size)
    inner = np.diff(graph.child_start) > 0
    root = np.sqrt(squares)
    for level in _levels(graph)[::-1]:
        below = np.sqrt(S[level])
        N[level] = (root[level] + below) ** 2
        total = root[level] + below
        share[level] = np.where(inner[level], np.divide(root[level], total, out=np.full(len(level), 0.5), where=total > 0), 1.0)
        inside = level[parent[level] >= 0]
        np.add.at(S, parent[inside], N[inside])
    return _downwards(graph, share), float(N[graph.tops].sum())


def dual_bound(graph: LabelGraph, squares: Array) -> float:
    """Return max over alpha >= 0 with path sums <= 1 of sum alpha_n squares_n on a tree: v(n) = max(squares_n, sum of v(children)).

    Parameters
    ----------
    graph : LabelGraph
        A tree or forest; several tops add up.
    squares : ndarray (M,)
        |Z_n|^2, Z_n the sum of the dual sums of the leaves below n.
    """
    _needs_tree(graph)
    parent = parents_of(graph)
    below = np.zeros(graph.size)
    value = np.zeros(graph.size)
    for level in _levels(graph)[::-1]:
        value[level] = np.maximum(squares[level], below[level])
        inside = level[parent[level] >= 0]
        np.add.at(below, parent[inside], value[inside])
    return float(value[graph.tops].sum())


def _needs_tree(graph: LabelGraph) -> None:
    if not graph.is_tree:
        raise IncompatibleError("the shared norm's weights", "a tree", "a node of the label graph has several parents: choose loss=nhsvm")


def structured_shared_norm(graph: LabelGraph, U: Array) -> float:
    """Return |U|_{s,N} of (6.19) for leaf weights U (L, d), rows in the order of ``graph.leaves``, on any label graph.

    A second-order cone program: node weights V_n with sum over leaf l's nodes = U_l, minimise sum t_n with t_n alpha_n >= |V_n|^2.
    Needs the package clarabel.
    """
    U = _compressed(U)
    (L, d), M = U.shape, graph.size
    A = graph.membership
    # variables: t (M), alpha (M), V (M d) by node
    equal = sparse.hstack([sparse.csc_array((L * d, 2 * M)), sparse.kron(A, sparse.eye_array(d))])
    budget = sparse.hstack([sparse.csc_array((L, M)), A, sparse.csc_array((L, M * d))])
    rows, columns, values = [], [], []
    for node in range(M):  # |(2 V, t - alpha)| <= t + alpha
        at = node * (d + 2)
        rows += [at, at, at + 1, at + 1]
        columns += [node, M + node, node, M + node]
        values += [-1.0, -1.0, -1.0, 1.0]
        rows += range(at + 2, at + 2 + d)
        columns += range(2 * M + node * d, 2 * M + (node + 1) * d)
        values += [-2.0] * d
    cones = sparse.csc_array((values, (rows, columns)), shape=(M * (d + 2), 2 * M + M * d))
    cost = np.concatenate([np.ones(M), np.zeros(M + M * d)])
    sides = [U.ravel(), np.ones(L), np.zeros(M * (d + 2))]
    clarabel = _clarabel()
    kinds = [clarabel.ZeroConeT(L * d), clarabel.NonnegativeConeT(L), *(clarabel.SecondOrderConeT(d + 2) for _ in range(M))]
    return float(np.sqrt(max(0.0, _solve(cost, sparse.vstack([equal, budget, cones]), np.concatenate(sides), kinds))))


def shared_norm(U: Array) -> float:
    """Return |U|_s of (6.20) for leaf weights U (L, d): the least over all factorisations, whatever the hierarchy.

    A semidefinite program: minimise tr T with [[K, U], [U', T]] >= 0 and diag K <= 1. Needs the package clarabel.
    """
    U = _compressed(U)
    L, d = U.shape
    size = L + d
    # variables: the upper triangle of the block matrix, column by column, off-diagonal entries times sqrt(2)
    column = np.repeat(np.arange(size), np.arange(1, size + 1))
    row = np.concatenate([np.arange(at + 1) for at in range(size)])
    cost = ((row == column) & (row >= L)).astype(float)
    block = np.flatnonzero((row < L) & (column >= L))
    diagonal = np.flatnonzero((row == column) & (row < L))
    count = len(row)
    equal = sparse.csc_array((np.ones(len(block)), (np.arange(len(block)), block)), shape=(len(block), count))
    ones = sparse.csc_array((np.ones(L), (np.arange(L), diagonal)), shape=(L, count))
    sides = np.concatenate([np.sqrt(2.0) * U[row[block], column[block] - L], np.ones(L), np.zeros(count)])
    clarabel = _clarabel()
    kinds = [clarabel.ZeroConeT(len(block)), clarabel.NonnegativeConeT(L), clarabel.PSDTriangleConeT(size)]
    return float(np.sqrt(max(0.0, _solve(cost, sparse.vstack([equal, ones, -sparse.eye_array(count)]), sides, kinds))))


def _compressed(U: Array) -> Array:
    """Return a matrix of at most L columns with the same UU', on which the norms depend alone."""
    U = np.atleast_2d(np.asarray(U, dtype=np.float64))
    if U.shape[1] <= U.shape[0]:
        return U
    upper: Any = np.linalg.qr(U.T, mode="r")
    return np.ascontiguousarray(upper.T)


def _clarabel() -> Any:
    try:
        import clarabel
    except ImportError:
        raise ConfigError("the shared norms are cone programs, which need the package clarabel: pip install clarabel") from None
    return clarabel


def _solve(cost: Array, A: Any, b: Array, cones: list[Any]) -> float:
    clarabel = _clarabel()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    nothing = sparse.csc_matrix((len(cost), len(cost)))
    solution = clarabel.DefaultSolver(nothing, cost, sparse.csc_matrix(A), b, cones, settings).solve()
    return float(cost @ np.asarray(solution.x))
