"""The graph over labels: a tree or a directed acyclic graph in flat arrays, checked once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .errors import DataError, nearest

Nodes = NDArray[np.int32]
Starts = NDArray[np.int64]

MOST_ANCESTORS = 2**26  # ancestors of all nodes together at most: a chain of n nodes, which a small file describes, has n^2/2
_SHOWN = 5  # names that an error message lists


@dataclass(frozen=True, eq=False)
class LabelGraph:
    """A rooted tree, forest or directed acyclic graph of M nodes whose L leaves are the labels.

    A label y in {0, 1}^M is its leaf with all ancestors, scored by the sum of the nodes' scores (Choi 2018, section 6.1). Nodes are
    numbered breadth first by the longest distance from a top, so that parents come before children; nodes of one level keep the order in
    which the edges name them.

    Examples
    --------
    >>> from advcli.core.label_graph import LabelGraph
    >>> graph = LabelGraph.from_edges([("animal", "bird"), ("animal", "mammal"), ("mammal", "cat"), ("mammal", "dog")])
    >>> graph.names
    ('animal', 'bird', 'mammal', 'cat', 'dog')
    """

    names: tuple[str, ...]
    parent_start: Starts
    parents: Nodes
    child_start: Starts
    children: Nodes

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[str, str]], *, root: str | None = None, several_tops: bool = False) -> LabelGraph:
        """Build and check the graph of (parent, child) edges: all nodes below ``root``, by default the only one without parents."""
        pairs = list(dict.fromkeys((str(parent), str(child)) for parent, child in edges))
        if not pairs:
            raise DataError("the label graph has no edge; give parent,child pairs")
        number = {name: n for n, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair))}
        names = tuple(number)
        M = len(names)
        ends = np.array([(number[parent], number[child]) for parent, child in pairs], dtype=np.int64)
        levels = _levels(ends, names)
        order = np.argsort(levels, kind="stable")
        rank = np.argsort(order)
        below = sparse.csr_array((np.ones(len(ends), dtype=np.int8), (rank[ends[:, 0]], rank[ends[:, 1]])), shape=(M, M))
        above = below.T.tocsr()
        below.sort_indices()
        above.sort_indices()
        graph = cls(
            names=tuple(names[n] for n in order),
            parent_start=above.indptr.astype(np.int64),
            parents=above.indices.astype(np.int32),
            child_start=below.indptr.astype(np.int64),
            children=below.indices.astype(np.int32),
        )
        graph._check_tops(root, several_tops)
        return graph

    @cached_property
    def number(self) -> dict[str, int]:
        """Number of every node by its name."""
        return {name: node for node, name in enumerate(self.names)}

    @property
    def size(self) -> int:
        """M, the number of nodes."""
        return len(self.names)

    @cached_property
    def leaves(self) -> Nodes:
        """Nodes without children, ascending, shape (L,)."""
        return np.flatnonzero(np.diff(self.child_start) == 0).astype(np.int32)

    @cached_property
    def tops(self) -> Nodes:
        """Nodes without parents, ascending; the root is the only one of a tree."""
        return np.flatnonzero(np.diff(self.parent_start) == 0).astype(np.int32)

    @property
    def is_tree(self) -> bool:
        """Whether no node has two parents; with several tops it is a forest, for which the same algorithms hold."""
        return bool((np.diff(self.parent_start) <= 1).all())

    @cached_property
    def closure(self) -> sparse.csr_array:
        """Nodes x their ancestor sets, themselves included: ones, shape (M, M), columns ascending."""
        return _union_upwards(self)

    @cached_property
    def membership(self) -> sparse.csr_array:
        """Leaves x their ancestor sets, shape (L, M): row l is the label vector y of leaf ``leaves[l]``."""
        return self.closure[self.leaves]

    @cached_property
    def depth(self) -> Nodes:
        """Nodes on the longest path from a top to each node, both included, shape (M,)."""
        parent = np.repeat(np.arange(self.size), np.diff(self.child_start))
        return (_levels(np.column_stack([parent, self.children]), self.names) + 1).astype(np.int32)

    def edges(self) -> list[tuple[str, str]]:
        """Return the (parent, child) pairs by name."""
        counts = np.diff(self.child_start)
        return [
            (self.names[parent], self.names[child])
            for parent, child in zip(np.repeat(np.arange(self.size), counts).tolist(), self.children.tolist(), strict=True)
        ]

    def leaf_positions(self, labels: Iterable[str]) -> NDArray[np.intp]:
        """Return the position among `leaves` of every label, by name; `DataError` for a label that is no node or no leaf."""
        wanted = list(map(str, labels))
        different = dict.fromkeys(wanted)
        missing = [label for label in different if label not in self.number]
        if missing:
            raise DataError(f"label graph: {_listed(missing)} of the examples' labels is no node of it; {nearest(missing[0], self.names)}")
        position = np.full(self.size, -1, dtype=np.intp)
        position[self.leaves] = np.arange(len(self.leaves))
        inner = [label for label in different if position[self.number[label]] < 0]
        if inner:
            remedy = "give each a leaf of its own (dataset.stub_leaves=true)"
            raise DataError(f"label graph: {len(inner)} of {len(different)} labels are no leaves: {_listed(inner)}; {remedy}")
        return position[[self.number[label] for label in wanted]]

    def _check_tops(self, root: str | None, several_tops: bool) -> None:
        if root is not None:
            if root not in self.number:
                raise DataError(f"the label graph has no node {root!r} for its root; {nearest(root, self.names)}")
            lost = [name for name, reached in zip(self.names, self._below(self.number[root]), strict=True) if not reached]
            if lost:
                raise DataError(f"label graph: {_listed(lost)} cannot be reached from the root {root!r}; add the missing edges")
        elif len(self.tops) > 1 and not several_tops:
            remedy = "add edges from one root to them, or accept them with several_tops=true"
            raise DataError(f"label graph: {len(self.tops)} nodes have no parent: {_listed([self.names[n] for n in self.tops])}; {remedy}")

    def _below(self, top: int) -> NDArray[np.bool_]:
        reached = np.zeros(self.size, dtype=bool)
        reached[top] = True
        for node in range(top, self.size):
            if reached[node]:
                reached[self.children[self.child_start[node] : self.child_start[node + 1]]] = True
        return reached


def stub(label: str) -> str:
    """Return the name of the leaf of examples whose most specific label is the inner node ``label``."""
    return f"{label} (itself)"


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:_SHOWN])) + (f", ... ({len(names)})" if len(names) > _SHOWN else "")


def _levels(ends: NDArray[np.int64], names: tuple[str, ...]) -> NDArray[np.int64]:
    """Return every node's longest distance from a node without parents, shape (M,); `DataError` names a cycle if there is one."""
    M = len(names)
    children: list[list[int]] = [[] for _ in range(M)]
    waiting = np.bincount(ends[:, 1], minlength=M).tolist()
    for parent, child in ends.tolist():
        children[parent].append(child)
    levels = np.zeros(M, dtype=np.int64)
    ready = [node for node in range(M) if not waiting[node]]
    done = 0
    while done < len(ready):
        node = ready[done]
        done += 1
        for child in children[node]:
            levels[child] = max(levels[child], levels[node] + 1)
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if done < M:
        raise DataError(f"label graph: the edges {_cycle(ends, waiting, names)} form a cycle; remove one of them")
    return levels


def _cycle(ends: NDArray[np.int64], waiting: list[int], names: tuple[str, ...]) -> str:
    """Return a cycle among the nodes that still wait for a parent: a walk upwards from any such node comes back."""
    above = {child: parent for parent, child in ends.tolist() if waiting[parent] and waiting[child]}
    node = next(iter(above))
    walked: list[int] = []
    while node not in walked:
        walked.append(node)
        node = above[node]
    around = [*walked[walked.index(node) :], node][::-1]
    shown = [names[number] for number in around]
    return " -> ".join(shown if len(shown) <= 2 * _SHOWN else [*shown[:_SHOWN], "...", shown[-1]])


def _union_upwards(graph: LabelGraph) -> sparse.csr_array:
    sets: list[NDArray[np.int32]] = []
    total = 0
    for node in range(graph.size):
        itself = np.array([node], dtype=np.int32)
        above = graph.parents[graph.parent_start[node] : graph.parent_start[node + 1]]
        # ancestors have smaller numbers: the node itself comes last
        sets.append(np.concatenate([np.unique(np.concatenate([sets[parent] for parent in above])), itself]) if len(above) else itself)
        total += len(sets[-1])
        if total > MOST_ANCESTORS:
            raise DataError(f"the label graph is too deep: its nodes have more than {MOST_ANCESTORS} ancestors in all")
    start = np.concatenate([[0], np.cumsum([len(nodes) for nodes in sets])])
    return sparse.csr_array((np.ones(start[-1]), np.concatenate(sets), start), shape=(graph.size, graph.size))
