"""The base of the four models: options, dual ascent and certificate, prediction and saving, for single labels and for sets."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.errors import IncompatibleError
from ...core.label_graph import LabelGraph
from ...core.stored_arrays import Entries
from ...core.typing import Array, Labels
from ...data.labels.best_sets import restricted
from ...problems.certificate import judge, warn_unless_converged
from ..base import Bound
from ..linear import LinearLearner
from ..options import one_of, seed_of
from ..refitting import Refitting
from .attributes import Attributes
from .factors import FactoredWeights
from .label_graph import OverLabelGraph
from .leaf_problem import LeafProblem, shortened
from .set_problem import SetProblem, learn_sets

PRECISIONS = ("double", "single")


@dataclass(kw_only=True, eq=False, repr=False)
class HierarchicalLearner(Refitting, OverLabelGraph, LinearLearner):
    """Base of the four models, which differ in `attributes`, their use of the label graph."""

    certified: ClassVar[bool] = True
    hyper: ClassVar[tuple[str, ...]] = ("regularisation",)

    hierarchy: Any = field(default=None, kw_only=False)
    max_passes: float = 5000
    precision: str = "double"
    class_weight: Any = None

    @classmethod
    def in_python(cls) -> str:
        """Return how the learner is called in Python."""
        return f'HierarchicalClassifier(model="{cls.name}")'

    @abstractmethod
    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return the model's attributes for labels at these positions among the graph's leaves."""

    # ---- fitting --------------------------------------------------------------------------------------------------
    def fit_bound(self, bound: Bound, start: Any = None) -> Self:
        """Learn from bound rows; ``start``, fitted to the same rows, is where the dual ascent begins."""
        self._start = start
        try:
            return super().fit_bound(bound)
        finally:
            del self._start

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Ascend the dual until the gap, computed from the dual point alone, is small."""
        self.check_parameters()
        began = time.perf_counter()
        sample = np.ones(X.shape[0]) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        mass = float(sample.sum())
        self.lam_ = float(self.lam or 1.0 / (self.C * mass))
        C = float(self.C if self.lam is None else 1.0 / (self.lam * mass))
        start = getattr(getattr(self, "_start", None), "dual_", None)
        if self.of_sets_:
            self._learn_sets(X, y, sample, C, start, began)
        else:
            attributes = self.attributes(*self.labels())
            single = one_of("precision", self.precision, PRECISIONS) == "single"
            problem = LeafProblem(X, np.ascontiguousarray(y, dtype=np.intp), sample, C, weights is not None, single)
            beta = sparse.csr_array((X.shape[0], len(self.classes_)))
            # a shortened dual point of the same rows is feasible at any C
            if start is not None and start.shape == beta.shape:
                beta = shortened(problem, attributes, start)
            self._learn_leaves(problem, attributes, beta, began)
        return self.coef_

    def _learn_leaves(self, problem: LeafProblem, attributes: Attributes, beta: sparse.csr_array, began: float) -> None:
        """Learn one label a row from a feasible dual point beta; `coef_` are then weights of the leaves."""
        beta, passes, reached = problem.ascend(attributes, beta, self.tol, self.max_passes, seed_of(self.random_state))
        found = problem.evaluate(attributes, beta, self.tol)
        self.alpha_ = attributes.alpha
        bounds = found.primal, found.dual, found.outside
        self._finish(found.beta, found.coef, *bounds, passes, not reached, time.perf_counter() - began)

    def _learn_sets(self, X: Any, Y: Any, sample: Array, C: float, start: Any, began: float) -> None:
        """Learn sets of labels (`set_problem`); `coef_` are then weights of the nodes."""
        graph, positions = restricted(*self.labels())
        attributes = self.attributes(graph, positions)
        if attributes.normalised:
            raise IncompatibleError("objective=normalised", "one label a row", "rows have several: choose loss.objective=difference")
        self.take_sets(graph, positions)
        problem = SetProblem(X, self.by_leaves(Y), sample, self.sets_, 0.5 / C)
        limits = (self.tol, int(self.max_passes), seed_of(self.random_state))
        fit = learn_sets(problem, attributes.alpha, *limits, start, **self._shared(graph))
        mass = float(sample.sum())
        self.alpha_ = fit.alpha
        bounds, spent = (fit.primal / mass, fit.dual / mass, fit.outside), fit.passes >= int(self.max_passes)
        self._finish(fit, fit.coef, *bounds, fit.passes, spent, time.perf_counter() - began)

    def _shared(self, graph: LabelGraph) -> dict[str, Any]:
        """Return the options of `learn_sets` for learning alpha; none here."""
        return {}

    def _finish(self, beta: Any, coef: Any, primal: float, dual: float, outside: float, passes: float, spent: bool, seconds: float) -> None:
        """Set the solution and its certificate, and warn of one that missed the tolerance; ``spent``: the limit of passes ended it."""
        self.dual_ = beta
        self.coef_ = coef if isinstance(coef, FactoredWeights) else np.ascontiguousarray(coef)
        self.n_iter_ = max(1, int(np.ceil(passes)))
        self.certificate_ = judge(
            primal,
            dual,
            self.tol,
            outside=outside,
            passes=float(passes),
            status="max_passes" if spent else "converged",
            solver="dual",
            seconds=seconds,
        )
        strength = f"C={self.C:.3g}" if self.lam is None else f"lambda={self.lam:.3g}"
        warn_unless_converged(f"loss={self.name}, {strength}", self.certificate_, self.tol)

    # ---- prediction -----------------------------------------------------------------------------------------------
    def predict_codes(self, X: Any) -> Any:
        """Return codes (n,), or where labels are sets ones at the labels of the set that scores highest, csr_array (n, k)."""
        return self.best_sets(X) if self.of_sets_ else super().predict_codes(X)

    def predict(self, X: Any) -> Any:
        """Return labels (n,), or sets of labels as `predict_codes` does."""
        return self.predict_codes(X) if self.of_sets_ else super().predict(X)

    # ---- saving ---------------------------------------------------------------------------------------------------
    def saved(self) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds: all but the dual point, and the label graph by its edges."""
        parameters, attributes, rows = super().saved()
        attributes.pop("dual_", None)
        if isinstance(self.coef_, FactoredWeights):
            Z = attributes.pop("coef_").sums
            attributes |= {"sums_data_": Z.data, "sums_indices_": Z.indices, "sums_indptr_": Z.indptr}
            # alpha_ of the shared model is an update later than the alpha of the factors
            attributes |= {"sums_shape_": np.array(Z.shape), "sums_alpha_": self.coef_.alpha, "scale_": self.coef_.scale}
        return parameters, attributes, rows

    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model."""
        graph = self.restore_sets(attributes) if self.of_sets_ else self.labels()[0]
        self.alpha_ = attributes.array("alpha_", (graph.size,), least=0.0)
        super().restore(attributes)

    def _restored_weights(self, attributes: Entries) -> Any:
        if "scale_" not in attributes:
            return super()._restored_weights(attributes)
        graph, positions = self.labels()
        Z = attributes.csr("sums_{}_", self._n_scores, self._n_weights)
        alpha = attributes.array("sums_alpha_" if "sums_alpha_" in attributes else "alpha_", (graph.size,), least=0.0)
        return FactoredWeights(Z, graph.membership[positions], alpha, attributes.number("scale_"))
