"""What metrics know of a hierarchy: the ancestor sets of labels, and of sets of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ...core.label_graph import LabelGraph


@dataclass(frozen=True, eq=False)
class LabelClosures:
    """The nodes that count for every label, itself and its ancestors: ``closure`` (k, M') has ones, label x nodes.

    A stub leaf stands for the node above it and does not count itself; a root that all labels share says nothing and does not count.
    """

    closure: sparse.csr_array

    @classmethod
    def of(cls, graph: LabelGraph, classes: Sequence[str], stubs: Sequence[str] = ()) -> LabelClosures:
        """Return the ancestor sets of ``classes``, leaves of the graph by name, in their order."""
        counted = np.ones(graph.size, dtype=bool)
        counted[[graph.number[name] for name in stubs]] = False
        if len(graph.tops) == 1:
            counted[graph.tops] = False
        rows = graph.membership[graph.leaf_positions(classes)]
        return cls(sparse.csr_array(rows[:, np.flatnonzero(counted)].astype(np.int64)))

    def nodes(self, labels: Any) -> sparse.csr_array:
        """Return the nodes of every row's labels as ones (n, M'); ``labels`` (n, k) has ones where a row has a label."""
        nodes = sparse.csr_array(labels.astype(np.int64) @ self.closure)
        nodes.data = np.minimum(nodes.data, 1)
        return nodes
