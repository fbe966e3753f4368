"""The shared norms of leaf weights as cone programs (choi2018, section 6.6), which closed forms are held to.

|U|_{s,N}^2 = min over alpha >= 0 with path sums <= 1 of tr(U' K(alpha)^+ U),   K(alpha) = A diag(alpha) A'                   (6.19)
|U|_s^2     = min over K >= 0 with diagonal <= 1     of tr(U' K^+ U)                                                          (6.20)
"""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advcli.core.label_graph import LabelGraph

Array = NDArray[np.float64]


def structured_shared_norm(graph: LabelGraph, U: Array) -> float:
    """Return |U|_{s,N} of (6.19) for leaf weights U (L, d), rows in the order of ``graph.leaves``, on any label graph.

    A second-order cone program: node weights V_n with sum over leaf l's nodes = U_l, minimise sum t_n with t_n alpha_n >= |V_n|^2.
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
    kinds = [clarabel.ZeroConeT(L * d), clarabel.NonnegativeConeT(L), *(clarabel.SecondOrderConeT(d + 2) for _ in range(M))]
    return float(np.sqrt(max(0.0, _solve(cost, sparse.vstack([equal, budget, cones]), np.concatenate(sides), kinds))))


def shared_norm(U: Array) -> float:
    """Return |U|_s of (6.20) for leaf weights U (L, d): the least over all factorisations, whatever the hierarchy.

    A semidefinite program: minimise tr T with [[K, U], [U', T]] >= 0 and diag K <= 1.
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
    kinds = [clarabel.ZeroConeT(len(block)), clarabel.NonnegativeConeT(L), clarabel.PSDTriangleConeT(size)]
    return float(np.sqrt(max(0.0, _solve(cost, sparse.vstack([equal, ones, -sparse.eye_array(count)]), sides, kinds))))


def _compressed(U: Array) -> Array:
    """Return a matrix of at most L columns with the same UU', on which the norms depend alone."""
    U = np.atleast_2d(np.asarray(U, dtype=np.float64))
    if U.shape[1] <= U.shape[0]:
        return U
    upper: Any = np.linalg.qr(U.T, mode="r")
    return np.ascontiguousarray(upper.T)


def _solve(cost: Array, A: Any, b: Array, cones: list[Any]) -> float:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    nothing = sparse.csc_matrix((len(cost), len(cost)))
    solution = clarabel.DefaultSolver(nothing, cost, sparse.csc_matrix(A), b, cones, settings).solve()
    return float(cost @ np.asarray(solution.x))
