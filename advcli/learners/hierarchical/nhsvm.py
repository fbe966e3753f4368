"""The normalised hierarchical support vector machine: the hierarchy weighs its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core.label_graph import LabelGraph
from ...data.labels.node_weights import node_weights
from ..base import register
from ..options import one_of
from .attributes import Attributes
from .learner import HierarchicalLearner

OBJECTIVES = ("difference", "normalised")


@register("nhsvm")
@dataclass(kw_only=True, eq=False, repr=False)
class NormalisedHierarchicalSVM(HierarchicalLearner):
    """The normalised hierarchical support vector machine, choi2018 (6.10) and (6.13).

    Parameters
    ----------
    hierarchy
        As in `HierarchicalSVM`.
    rho : float
        At least 1: how the hierarchy sets the weights (`advcli.data.labels.node_weights.node_weights`); 1 is the linear program (6.7).
    directional : bool
        Children never weigh less than their parents with rho > 1 as well.
    largest_sum : float or None
        T: on DAGs the weights along a leaf's ancestor set sum to 1..T. None: 1 on trees, 1.5 on DAGs.
    objective : {"difference", "normalised"}
        (6.10), or (6.13), which divides score differences by the distance of the labels' attributes and has margins 1.
    C, lam, tol, max_passes, precision, class_weight, warm_start, verbose, features, features_options, n_classes, random_state
        As in `FlatSVM`.

    Attributes
    ----------
    coef_, certificate_, dual_
        As in `FlatSVM`.
    alpha_ : ndarray (M,)
        Weights of the nodes.
    """

    hyper: ClassVar[tuple[str, ...]] = ("regularisation", "rho")

    rho: float = 2.0
    directional: bool = False
    largest_sum: float | None = None
    objective: str = "difference"

    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return the weights of the hierarchy, for attributes and margins alike."""
        alpha = node_weights(graph, self.rho, directional=self.directional, largest_sum=self.largest_sum)
        normalised = one_of("objective", self.objective, OBJECTIVES) == "normalised"
        return Attributes(graph, positions, alpha, alpha, 0.5, normalised)
