"""The flat support vector machine: labels without a hierarchy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core.label_graph import LabelGraph
from ..base import register
from .attributes import Attributes
from .label_graph import side_by_side
from .learner import HierarchicalLearner


@register("flat")
@dataclass(kw_only=True, eq=False, repr=False)
class FlatSVM(HierarchicalLearner):
    """The multiclass support vector machine of Crammer & Singer (2001) over the leaves; a yardstick that knows no hierarchy.

    Parameters
    ----------
    C : float
        Weight of the summed hinges against |W|^2 / 2; the source's lambda is 1/(2 C).
    lam : float or None
        Lambda of (1) itself; overrides ``C``.
    tol, verbose, random_state
        As in `SurrogateClassifier`.
    max_passes : float
        Limit of passes over the rows; beyond, a fit warns (`NotConvergedWarning`) and keeps its certificate.
    precision : {"double", "single"}
        Of the dual sums of many labels over sparse rows (`LISTS`), which single halves. The certificate is of double precision.
    class_weight : dict, "balanced" or None
        What every row of a class weighs, by label (1 where it is left out), beside its ``sample_weight``; ``"balanced"``: n / (classes x
        rows of the class), so that all classes weigh the same. Rows with several labels have no class, and are refused with it.
    warm_start : bool
        Begin at the dual point of the last fit where the rows, their labels and weights are the same; also `fit`'s ``start``.
    features, features_options, n_classes
        As in `UMAClassifier`.

    Attributes
    ----------
    coef_ : ndarray (k, d) or FactoredWeights
        Weights of the leaves' scores; with many labels over sparse rows as factors.
    certificate_ : Certificate
        Primal, dual and gap of (1), computed from the dual point alone.
    dual_ : csr_array (n, k)
        The dual point off the true labels.
    """

    takes: ClassVar[tuple[str, ...]] = ()

    hierarchy: Any = field(default=None, init=False)

    def labels(self) -> tuple[LabelGraph, NDArray[np.intp]]:
        """Return leaves without edges."""
        return side_by_side(len(self.classes_))

    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return weights 1 and margins 1."""
        return Attributes(graph, positions, np.ones(graph.size), np.ones(graph.size), 0.0)
