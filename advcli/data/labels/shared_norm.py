"""The node weights that attain the shared Frobenius norm of leaf weights (choi2018, sections 6.6 and 6.7.2).

    |U|_{s,N}^2 = min over alpha >= 0 with path sums <= 1 of tr(U' K(alpha)^+ U),   K(alpha) = A diag(alpha) A'                   (6.19)

A is the membership matrix of the label graph. For given node weights U_n, U_l = sum of U_n over the nodes of leaf l, the alpha of least
sum |U_n|^2 / alpha_n has a closed form on trees, and so has its dual bound.
"""

from __future__ import annotations

import numpy as np

from ...core.errors import IncompatibleError
from ...core.label_graph import LabelGraph
from ...core.typing import Array
from .node_weights import downwards, levels, parents_of


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
    for level in levels(graph)[::-1]:
        value[level] = np.maximum(squares[level], below[level])
        inside = level[parent[level] >= 0]
        np.add.at(below, parent[inside], value[inside])
    return float(value[graph.tops].sum())


def _needs_tree(graph: LabelGraph) -> None:
    if not graph.is_tree:
        raise IncompatibleError("the shared norm's weights", "a tree", "a node of the label graph has several parents: choose loss=nhsvm")
