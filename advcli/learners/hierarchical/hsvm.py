"""The hierarchical support vector machine: margins by the distance of labels in the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ConfigError
from ...core.label_graph import LabelGraph
from ..base import register
from .attributes import Attributes
from .learner import HierarchicalLearner


@register("hsvm")
@dataclass(kw_only=True, eq=False, repr=False)
class HierarchicalSVM(HierarchicalLearner):
    """The hierarchical support vector machine of Cai & Hofmann (2004), choi2018 (6.2).

    Parameters
    ----------
    hierarchy : LabelGraph, list of (parent, child), mapping or None
        The label graph, whose leaves' names are the class labels as text. A mapping has ``edges``, and ``classes``: the names of the codes
        0..n_classes-1.
    margin_power : float
        Power of the Hamming distance of two labels' node sets that is their margin: 1, or 0.5 for its square root.
    C, lam, tol, max_passes, precision, class_weight, warm_start, verbose, features, features_options, n_classes, random_state
        As in `FlatSVM`.

    Attributes
    ----------
    coef_, certificate_, dual_
        As in `FlatSVM`.
    alpha_ : ndarray (M,)
        Squared attributes of the nodes: 1.
    """

    hyper: ClassVar[tuple[str, ...]] = ("regularisation", "margin_power")

    margin_power: float = 1.0

    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return weights 1 and powers of the Hamming distance."""
        if not (np.isfinite(self.margin_power) and self.margin_power > 0):
            raise ConfigError(f"margin_power={self.margin_power} must be a positive number (1: Hamming, 0.5: its square root)")
        return Attributes(graph, positions, np.ones(graph.size), np.ones(graph.size), float(self.margin_power))
