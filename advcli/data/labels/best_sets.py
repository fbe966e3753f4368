"""Sets of labels over a hierarchy: which set scores highest, exactly on trees, by linear and integer programs on DAGs.

A set of leaves is z in {0, 1}^M over the nodes, ancestors included; relaxed to the polytope (Choi 2018, 6.22
as corrected in docs/notes/hierarchical.md, section 7)

    z_root = 1,   z_child <= z_parent on every edge,   z_node <= sum of z over its children for every inner node.

On a tree all vertices are integral and one pass over the nodes finds the best. On DAGs a leaf counts on several paths, so that a seventh of
a leaf can hold up the root. Rows z_node <= sum of z over the leaves below cut most of these corners off before an integer program runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.compiled import kernels
from ...core.highs import pass_program, quiet_solver
from ...core.label_graph import LabelGraph, Starts
from ...core.typing import Array

_ROUNDS = 100  # most rounds of lowering a point into the polytope of a DAG; a point outside by rounding needs a few
_INTEGRAL = 1e-6  # distance from 0 or 1 up to which a solution of the linear program counts as integral


def restricted(graph: LabelGraph, positions: NDArray[np.intp]) -> tuple[LabelGraph, NDArray[np.intp]]:
    """Return the part of a graph above some of its leaves, given by position, and their positions in that part."""
    if len(positions) == len(graph.leaves):
        return graph, positions
    above = np.zeros(graph.size, dtype=bool)
    above[graph.membership[positions].indices] = True
    names = {name for name, keep in zip(graph.names, above, strict=True) if keep}
    edges = [(parent, child) for parent, child in graph.edges() if child in names]
    part = LabelGraph.from_edges(edges, several_tops=True)
    return part, part.leaf_positions(graph.names[leaf] for leaf in graph.leaves[positions])


class LabelSets:
    """The sets of labels over a graph, as compiled code and programs take them.

    With several tops a root above them is added, so that every set has at least one leaf: ``first`` is then 1, the node of the graph's node
    0, and ``size`` (M) counts that root. ``start`` (M + 1,) and ``child`` are the children of every node; parents come before children,
    node 0 is the root. ``leaves`` are the nodes of the leaves in the order of the graph's, ``leaf`` (M,) has ones at leaves.
    """

    def __init__(self, graph: LabelGraph) -> None:
        self.graph = graph
        tops = graph.tops
        self.first = int(len(tops) > 1)
        self.size = graph.size + self.first
        if self.first:
            self.start: Starts = np.concatenate([[0], graph.child_start + len(tops)]).astype(np.int64)
            self.child = np.concatenate([tops + 1, graph.children + 1]).astype(np.int32)
        else:
            self.start, self.child = graph.child_start, graph.children
        self.leaves = (graph.leaves + self.first).astype(np.int32)
        self.leaf = np.zeros(self.size, dtype=np.uint8)
        self.leaf[self.leaves] = 1
        self.is_tree = graph.is_tree

    def closed(self, Y: Any) -> sparse.csr_array:
        """Return the nodes of every row's labels, ancestors included, as ones (n, M); Y (n, L) has ones where a row has a leaf."""
        nodes = sparse.csr_array(Y.astype(np.int64) @ self.graph.membership.astype(np.int64))
        nodes.data[:] = 1
        nodes.sort_indices()
        if self.first:
            n = nodes.shape[0]
            nodes = sparse.csr_array(sparse.hstack([sparse.csr_array(np.ones((n, 1), dtype=np.int64)), nodes]))
            nodes.sort_indices()
        return nodes

    def scores(self, F: Array) -> Array:
        """Return scores (n, M) from the scores of the graph's nodes; an added root scores 0."""
        return np.hstack([np.zeros((len(F), self.first)), F]) if self.first else F

    def best(self, R: Array) -> tuple[Array, NDArray[np.uint8]]:
        """Return the largest r.z over integral sets, shape (n,), and the z, shape (n, M), for every row r of R (n, M)."""
        R = np.ascontiguousarray(R, dtype=np.float64)
        value, Z = np.empty(len(R)), np.empty(R.shape, dtype=np.uint8)
        if self.is_tree:
            kernels.label_sets.best_sets(self.start, self.child, R, value, Z)
            return value, Z
        for row, (r, z) in enumerate(zip(R, self._programs(R, True), strict=True)):
            Z[row] = np.rint(z)
            value[row] = float(r @ Z[row])
        return value, Z

    def relaxed(self, R: Array) -> tuple[Array, Array]:
        """Return the largest r.z over the relaxed sets, shape (n,), and the z, shape (n, M), for every row r of R (n, M)."""
        R = np.ascontiguousarray(R, dtype=np.float64)
        if self.is_tree:
            value, sets = self.best(R)
            return value, sets.astype(np.float64)
        Z = np.array(list(self._programs(R, False))).reshape(R.shape)
        return np.einsum("ij,ij->i", R, Z), Z

    def infeasibility(self, Z: Array) -> Array:
        """Return how far each row of Z (n, M) lies outside the polytope, shape (n,): its largest broken constraint; nan for no number."""
        largest = np.maximum(np.abs(Z[:, 0] - 1.0), -Z.min(axis=1))
        if self.rows.shape[0]:
            largest = np.maximum(largest, np.asarray(self.rows @ Z.T).max(axis=0))
        return largest

    def inside(self, Z: Array) -> Array:
        """Return points of the polytope near the rows of Z (n, M).

        The constraints C z <= 0 hold for any multiple of z. So children are lowered to their parents and nodes to the sum of their
        children, and the root is scaled back to 1. On DAGs one lowering can undo the other: both are repeated.
        """
        columns = np.maximum(Z.T, 0.0)
        for _ in range(_ROUNDS):
            before = columns.copy()
            for node in range(self.size):
                below = self.child[self.start[node] : self.start[node + 1]]
                columns[below] = np.minimum(columns[below], columns[node])
            for node in range(self.size - 1, -1, -1):
                below = self.child[self.start[node] : self.start[node + 1]]
                if len(below):
                    columns[node] = np.minimum(columns[node], columns[below].sum(axis=0))
            if (columns == before).all():
                break
        root = columns[0]
        return np.ascontiguousarray((columns / np.where(root > 0.0, root, 1.0)).T)

    @cached_property
    def rows(self) -> sparse.csr_array:
        """The rows of the polytope: C z <= 0, shape (edges + inner nodes, M)."""
        counts = np.diff(self.start)
        parent, edges = np.repeat(np.arange(self.size), counts), np.arange(len(self.child))
        inner = np.flatnonzero(counts)
        cover = len(edges) + np.cumsum(counts > 0)[parent] - 1
        ones = np.ones(len(edges))
        row = np.concatenate([edges, edges, len(edges) + np.arange(len(inner)), cover])
        column, values = np.concatenate([self.child, parent, inner, self.child]), np.concatenate([ones, -ones, np.ones(len(inner)), -ones])
        return sparse.csr_array((values, (row, column)), shape=(len(edges) + len(inner), self.size))

    def best_within(self, r: Array, rows: Array, above: Array, banned: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8] | None:
        """Return the integral set z (M,) of the largest r.z with ``rows`` (c, M) z <= ``above`` (c,) that is not ``banned``; None if there
        is none.
        """
        import highspy

        solver, M = self._solver(), self.size
        nodes = np.arange(M, dtype=np.int32)
        solver.changeColsCost(M, nodes, r / (np.abs(r).max() or 1.0))
        for row, most in zip(rows, above, strict=True):
            solver.addRow(-np.inf, float(most), M, nodes, np.ascontiguousarray(row, dtype=np.float64))
        for z in banned:
            # another set differs in a leaf
            leaves = z[self.leaves].astype(np.float64)
            solver.addRow(1.0 - leaves.sum(), np.inf, len(self.leaves), self.leaves, 1.0 - 2.0 * leaves)
        solver.changeColsIntegrality(M, nodes, np.full(M, int(highspy.HighsVarType.kInteger), dtype=np.uint8))
        for name in ("mip_rel_gap", "mip_abs_gap"):
            solver.setOptionValue(name, 0.0)
        solver.run()
        status = solver.getModelStatus()
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise ArithmeticError(f"HiGHS stopped at the integer program of a set of labels: {solver.modelStatusToString(status)}")
        return np.rint(np.array(solver.getSolution().col_value)).astype(np.uint8)

    def _solver(self) -> Any:
        """Return HiGHS with the polytope, to be maximised over."""
        M, solver = self.size, quiet_solver()
        least = np.eye(1, M)[0]
        pass_program(solver, np.zeros(M), (least, 1.0), (-np.inf, 0.0), self.rows, maximise=True)
        return solver

    def _programs(self, R: Array, integral: bool) -> Iterator[Array]:
        """Yield a maximiser for every row of R; each linear program starts from the basis of the one before."""
        import highspy

        solver, M = self._solver(), self.size
        least = np.eye(1, M)[0]
        nodes = np.arange(M, dtype=np.int32)
        kinds = {kind: np.full(M, int(kind), dtype=np.uint8) for kind in (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)}
        for r in R:
            # tolerances of the solver and of integrality are absolute, scores of strongly regularised models tiny
            r = r / (np.abs(r).max() or 1.0)
            if integral and (certain := self._certain(r)) is not None:
                yield certain
                continue
            solver.changeColsCost(M, nodes, r)
            solver.run()
            z = np.array(solver.getSolution().col_value)
            if integral and _fractional(z):
                rounded = self._climbed(r)
                # cuts stay: they hold for every set
                while _fractional(z) and float(r @ z) - float(r @ rounded) > _INTEGRAL:
                    uncovered = np.flatnonzero(self.covers @ z > _INTEGRAL)
                    if not len(uncovered):
                        break
                    for row in (self.covers[[node]] for node in uncovered):
                        solver.addRow(-np.inf, 0.0, row.nnz, row.indices.astype(np.int32), row.data)
                    solver.run()
                    z = np.array(solver.getSolution().col_value)
            if integral and _fractional(z) and float(r @ z) - float(r @ rounded) <= _INTEGRAL:
                z = rounded
            if integral and _fractional(z):
                basis = solver.getBasis()
                # a node whose reduced cost exceeds the loss of the rounded set keeps its value in every better set
                lost = float(r @ z) - float(r @ rounded) + _INTEGRAL
                fixed = np.abs(np.array(solver.getSolution().col_dual)) > lost
                solver.changeColsBounds(M, nodes, np.where(fixed, np.rint(z), least), np.where(fixed, np.rint(z), 1.0))
                solver.changeColsIntegrality(M, nodes, kinds[highspy.HighsVarType.kInteger])
                solver.run()
                z = np.array(solver.getSolution().col_value)
                if r @ rounded > r @ z:
                    z = rounded
                solver.changeColsIntegrality(M, nodes, kinds[highspy.HighsVarType.kContinuous])
                solver.changeColsBounds(M, nodes, least, np.ones(M))
                solver.setBasis(basis)
            yield z

    @cached_property
    def covers(self) -> sparse.csr_array:
        """Rows valid for all sets that cut corners off the polytope: z_node <= sum of z over the leaves below, node inner; shape (M, M)."""
        leaf, node = self.graph.membership.nonzero()
        # an added root has all leaves below it
        node = np.concatenate([node + self.first, np.zeros(self.first * len(self.leaves), dtype=np.intp)])
        leaf = np.concatenate([self.leaves[leaf], self.leaves[: self.first * len(self.leaves)]])
        inner = self.leaf[node] == 0
        ij = (np.concatenate([node[inner], np.flatnonzero(self.leaf == 0)]), np.concatenate([leaf[inner], np.flatnonzero(self.leaf == 0)]))
        values = np.concatenate([np.full(int(inner.sum()), -1.0), np.ones(int((self.leaf == 0).sum()))])
        return sparse.csr_array((values, ij), shape=(self.size, self.size))

    def _certain(self, r: Array) -> Array | None:
        """Return a best set where a bound proves it best without a program, as with few positive scores; else None.

        The bound: a set with leaf l holds the ancestors of l and at most all other nodes of positive score.
        """
        ancestors, inner = self.graph.membership, r[self.first :]
        positive = np.maximum(inner, 0.0)
        bound = float(r[: self.first].sum() + (ancestors @ (inner - positive)).max() + positive.sum())
        climbed = self._climbed(r)
        return climbed if bound - float(r @ climbed) <= _INTEGRAL else None

    def _climbed(self, r: Array) -> Array:
        """Return a good set: the best leaf with its ancestors, then, as long as it gains, the leaf that adds most."""
        chosen = np.zeros(self.size)
        chosen[: self.first] = 1.0
        ancestors = self.graph.membership
        while True:
            gain = ancestors @ (r * (1.0 - chosen))[self.first :]
            best = int(np.argmax(gain))
            if chosen[self.leaves].any() and gain[best] <= 0.0:
                return chosen
            chosen[ancestors[[best]].indices + self.first] = 1.0


def _fractional(z: Array) -> bool:
    return bool((np.minimum(np.abs(z), np.abs(1.0 - z)) > _INTEGRAL).any())
