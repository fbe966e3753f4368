"""The adversarial loss of the distance between classes in a hierarchy: the edges on the shortest path from the prediction to the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import shortest_path

from ..core.errors import ConfigError, UnknownNameError, nearest
from ..core.label_graph import LabelGraph
from ..core.typing import Array
from . import matrices
from .base import register
from .general import GeneralLoss


def distances(edges: Sequence[tuple[str, str]], classes: Sequence[str]) -> Array:
    """Return the edges between each two classes, shape (k, k); the tops of a forest lie one step below a root that has no name."""
    graph = LabelGraph.from_edges(edges, several_tops=True)
    for name in classes:
        if name not in graph.number:
            raise UnknownNameError(f"loss=tree_distance: the class {name!r} is no node of the hierarchy; {nearest(name, graph.number)}")
    root, tops = graph.size, graph.tops if len(graph.tops) > 1 else graph.tops[:0]
    above = np.concatenate([np.repeat(np.arange(root), np.diff(graph.child_start)), np.full(len(tops), root)])
    below = np.concatenate([graph.children, tops])
    paths = sparse.csr_array((np.ones(len(above)), (above, below)), shape=(root + 1, root + 1))
    leaves = [graph.number[name] for name in classes]
    return np.ascontiguousarray(shortest_path(paths, directed=False, unweighted=True, indices=leaves)[:, leaves])


@register("tree_distance")
class TreeDistanceLoss(GeneralLoss):
    """The adversarial loss whose cost is the number of edges on the shortest path between prediction and truth in a hierarchy.

    On a tree that is the metric tree_loss, as long as no class is a stub leaf, whose own edge is one more here; where nodes have several
    parents the path may be shorter. ``hierarchy`` is a list of (parent, child), or ``{"edges": ..., "classes": ...}`` with the classes'
    names in the order of their codes, which ``classes`` gives otherwise; ``backend`` as in `GeneralLoss`.
    """

    def __init__(self, n_classes: int, hierarchy: Any = None, classes: Sequence[Any] | None = None, backend: str = "simplex") -> None:
        graph = hierarchy if isinstance(hierarchy, Mapping) else {"edges": hierarchy}
        if graph.get("edges") is None:
            raise ConfigError("loss=tree_distance needs a hierarchy over the classes: give hierarchy=[[parent,child],...]")
        if set(graph) - {"edges", "classes"} or not all(isinstance(edge, (list, tuple)) and len(edge) == 2 for edge in graph["edges"]):
            raise ConfigError("loss.hierarchy must be a list of [parent, child] pairs, or have the keys edges and classes")
        names = [str(name) for name in graph.get("classes") or classes or ()]
        matrices.check_size(n_classes)
        if len(names) != n_classes:
            raise ConfigError(f"loss=tree_distance needs the names of the {n_classes} classes in classes, got {len(names)}")
        matrix = distances([(str(parent), str(child)) for parent, child in graph["edges"]], names)
        super().__init__(n_classes, matrix=matrix, backend=backend)

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> frozenset[str]:
        """Return the hierarchy, and the labels that are its nodes."""
        return frozenset({"hierarchy", "classes"})

    @classmethod
    def examples(cls, n_classes: int) -> list[dict[str, Any]]:
        """Return a tree of pairs, a chain with a leaf at every node, a star, and a graph in which pairs overlap."""
        names = [f"class {i}" for i in range(n_classes)]
        pairs = [[f"pair {i // 2}", name] for i, name in enumerate(names)] + [["root", f"pair {i // 2}"] for i in range(0, n_classes, 2)]
        chain = [[f"node {i}", name] for i, name in enumerate(names)] + [[f"node {i}", f"node {i + 1}"] for i in range(n_classes)]
        star = [["root", name] for name in names]
        overlapping = pairs + [[f"pair {i // 2 - 1}", names[i]] for i in range(2, n_classes, 2)]
        return [{"hierarchy": {"edges": edges, "classes": names}} for edges in (pairs, chain, star, overlapping)]
