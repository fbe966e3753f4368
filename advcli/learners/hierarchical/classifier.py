"""The four models behind one scikit-learn classifier, each by its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core.label_graph import LabelGraph
from ...core.typing import Array, Labels
from ...features.merging import equal_rows, summed
from ..base import registry
from ..options import one_of
from .attributes import Attributes
from .learner import HierarchicalLearner

MODELS = ("flat", "hsvm", "nhsvm", "ssvm")


@dataclass(kw_only=True, eq=False, repr=False)
class HierarchicalClassifier(HierarchicalLearner):
    """Classification of labels that are leaves of a tree or DAG; each model by its name, with a duality gap.

    Equal rows of one label are one row of their summed weight, and the order of the rows does not matter.

    Parameters
    ----------
    hierarchy : LabelGraph, list of (parent, child), dict, frame, networkx.DiGraph, array or None
        The label graph; the names of its leaves are the labels in y, as text. A dict has the list of children of every parent, a frame
        (pandas or polars) the columns ``parent`` and ``child``. An array (n, depth), or another frame, has the levels of a label in
        every row, from the top to the leaf, as hiclass takes labels; levels after the leaf are empty. None: labels without a hierarchy.
    model : {"nhsvm", "hsvm", "ssvm", "flat"}
        `NormalisedHierarchicalSVM`, `HierarchicalSVM`, `SharedSVM` or `FlatSVM`.
    C : float
        Weight of the summed hinges against |W|^2 / 2; the source's lambda is 1/(2 C).
    rho : float
        How the hierarchy sets the weights of nhsvm, and of ssvm at its start.
    margin : float or str or None
        ``margin_power`` of hsvm, ``margin`` of ssvm; None: theirs.
    objective : {"difference", "normalised"}
        Of nhsvm.
    tol, max_passes : float
        Relative duality gap at which the fit is accepted, and the limit of passes over the rows.
    precision : {"double", "single"}
        Of the dual sums of many labels over sparse rows, which single halves. The certificate is of double precision.
    class_weight : dict, "balanced" or None
        What every row of a class weighs, by label, beside its ``sample_weight``; ``"balanced"``: all classes weigh the same.
    warm_start, verbose, random_state
        Whether a fit begins at the dual point of the last one, a line about each fit, and the seed of the visits.
    features, features_options, n_classes
        Feature map with linear scores and its options; the number of classes of labels that are codes 0..n_classes-1.

    Attributes
    ----------
    coef_, certificate_, dual_, alpha_
        As in the models.
    """

    name = "hierarchical"
    hyper: ClassVar[tuple[str, ...]] = ()
    sets: ClassVar[bool] = False

    model: str = "nhsvm"
    rho: float = 2.0
    margin: Any = None
    objective: str = "difference"
    lam: float | None = field(default=None, init=False)  # the strength is given as C

    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return the attributes of the chosen model."""
        return self._model().attributes(graph, positions)

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Fit the model to distinct rows; equal rows share a dual point."""
        fitted, start = self._model(), getattr(getattr(self, "_start", None), "dual_", None)
        found = equal_rows(X, y[:, None].astype(np.float64))
        if start is not None:
            fitted._start = SimpleNamespace(dual_=start if found is None else start[found[0]])
        if found is None:
            fitted.learn(X, y, weights)
            self.dual_ = fitted.dual_
        else:
            first, inverse = found
            fitted.learn(X[first], y[first], summed(inverse, weights))
            self.dual_ = fitted.dual_[inverse]
        self.certificate_, self.alpha_, self.n_iter_, self.lam_ = fitted.certificate_, fitted.alpha_, fitted.n_iter_, fitted.lam_
        return fitted.coef_

    def labels(self) -> tuple[LabelGraph, NDArray[np.intp]]:
        """Return the label graph of the chosen model and the position of every class among its leaves."""
        return self._model().labels()

    def _model(self) -> Any:
        """Return the model, to be fitted to the same classes."""
        chosen: Any = registry.get(one_of("model", self.model, MODELS))
        own: dict[str, Any] = {"C": self.C, "tol": self.tol, "max_passes": self.max_passes, "precision": self.precision}
        own["random_state"] = self.random_state
        if self.model != "flat":
            star = LabelGraph.from_edges([("", str(label)) for label in self.order_])
            own["hierarchy"] = star if self.hierarchy is None else self.hierarchy
        if self.model in ("nhsvm", "ssvm"):
            own["rho"] = self.rho
        if self.model == "nhsvm":
            own["objective"] = self.objective
        if self.margin is not None and self.model in ("hsvm", "ssvm"):
            own["margin_power" if self.model == "hsvm" else "margin"] = self.margin
        model = chosen(n_classes=self.n_classes, **own)
        model.name_classes(self.order_)
        return model
