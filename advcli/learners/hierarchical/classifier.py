"""Hierarchical support vector machines: options, dual ascent and certificate, prediction and saving, for single labels and for sets."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.checks import POSITIVE, at_least, or_null
from ...core.errors import ConfigError, IncompatibleError
from ...core.label_graph import LabelGraph
from ...core.stored_arrays import Entries
from ...core.typing import Array, Labels
from ...data.labels.best_sets import restricted
from ...data.labels.node_weights import best_weights, node_weights
from ...features.merging import equal_rows, summed
from ...problems.certificate import judge, warn_unless_converged
from ..base import Bound, register
from ..linear import LinearLearner
from ..options import one_of, seed_of
from ..refitting import Refitting
from .attributes import Attributes, FactoredWeights, away_from_zero
from .label_graph import OverLabelGraph, label_graph, side_by_side
from .leaf_problem import LeafFit, LeafProblem, learn_leaves, learn_leaves_and_alpha, shortened
from .set_problem import Joint, SetProblem, learn_sets

MODELS = ("flat", "hsvm", "nhsvm", "ssvm")
PRECISIONS = ("double", "single")
OBJECTIVES, MARGINS = ("difference", "normalised"), ("zero_one", "normalised")
_OF_MODELS = ("hierarchy", "margin_power", "margin", "rho", "directional", "largest_sum", "objective", "updates")


@dataclass(kw_only=True, eq=False, repr=False)
class HierarchicalLearner(Refitting, OverLabelGraph, LinearLearner):
    """Base of the four models, which differ in `attributes`, their use of the label graph; most options are in `HierarchicalClassifier`.

    ``coef_`` (k, d) are weights of the leaves' scores, of sets of the nodes' scores; with many labels over sparse rows `FactoredWeights`.
    ``certificate_`` is of (1), of ssvm of the joint problem, from the dual point alone: ``dual_`` (n, k), off the true labels, of sets a
    `SetFit`. ``alpha_`` (M,) are squared attributes of the nodes, which ssvm has updated ``n_updates_`` times.
    """

    certified: ClassVar[bool] = True
    hyper: ClassVar[tuple[str, ...]] = ("regularisation",)
    own: ClassVar[tuple[str, ...]] = _OF_MODELS  # options that a configuration may set
    _start: ClassVar[Any] = None

    # the leaves' names are the labels as text; a mapping has ``edges``, and ``classes``, the names of the codes 0..n_classes-1
    hierarchy: Any = field(default=None, kw_only=False)
    model: str = "nhsvm"
    max_passes: float = 5000
    precision: str = "double"  # of the dual sums of many labels over sparse rows (`LISTS`); the certificate is of double precision
    class_weight: Any = None  # refused where rows have several labels, and no class
    margin_power: float = 1.0  # hsvm: power of the Hamming distance of two labels' node sets that is their margin: 1, or 0.5 for its root
    margin: Any = None  # ssvm: zero_one or normalised, the margins of nhsvm at rho
    rho: float = 2.0  # nhsvm, ssvm at its start and in its margins: how the hierarchy sets the weights (`node_weights`), at least 1
    directional: bool = False  # nhsvm: children never weigh less than their parents with rho > 1 as well
    largest_sum: float | None = None  # nhsvm, T: on DAGs the weights along a leaf's ancestors sum to 1..T; None: 1 on trees, 1.5 on DAGs
    objective: str = "difference"  # nhsvm: (6.10), or normalised (6.13): score differences over the distance of attributes, margins 1
    updates: int | None = None  # ssvm: limit of updates of alpha; None: as many as the tolerance needs

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Return the options that a configuration may set; of the options of models only this model's."""
        return tuple(name for name in super().option_names() if name in cls.own or name not in _OF_MODELS)

    def labels(self) -> tuple[LabelGraph, NDArray[np.intp]]:
        """Return the label graph and the position of every class among its leaves; of ``flat`` leaves without edges."""
        return side_by_side(len(self.classes_)) if self.model == "flat" else super().labels()

    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return the model's attributes for labels at these positions among the graph's leaves."""
        ones = np.ones(graph.size)
        if self.model == "flat":
            return Attributes(graph, positions, ones, ones, 0.0)
        if self.model == "hsvm":
            power = self.margin_power if self.margin is None else self.margin
            if not POSITIVE["valid"](power):
                raise ConfigError(f"margin_power={power} must be a positive number (1: Hamming, 0.5: its square root)")
            return Attributes(graph, positions, ones, ones, float(power))
        if self.model == "nhsvm":
            alpha = node_weights(graph, self.rho, directional=self.directional, largest_sum=self.largest_sum)
            normalised = one_of("objective", self.objective, OBJECTIVES) == "normalised"
            return Attributes(graph, positions, alpha, alpha, 0.5, normalised)
        if not or_null(at_least(0))["valid"](self.updates):
            raise ConfigError(f"updates={self.updates} must be a whole number of at least 0, or null")
        fixed = one_of("margin", "zero_one" if self.margin is None else self.margin, MARGINS) == "zero_one"
        best_weights(graph, ones)  # refuses a graph that is not a tree
        mu = node_weights(graph, self.rho)
        before = getattr(self._start, "alpha_", mu)
        alpha = away_from_zero(before if before.shape == mu.shape else mu, mu, self.tol)
        return Attributes(graph, positions, alpha, mu, 0.0 if fixed else 0.5)

    # ---- fitting --------------------------------------------------------------------------------------------------
    def _fit_checked(self, bound: Bound, start: Any) -> None:
        self._start = start  # type: ignore[misc]
        try:
            LinearLearner.fit_bound(self, bound)
        finally:
            del self._start

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""
        super().check_parameters()
        one_of("model", self.model, MODELS)

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Ascend the dual until the gap, computed from the dual point alone, is small."""
        began = time.perf_counter()
        sample = np.ones(X.shape[0]) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        mass = float(sample.sum())
        self.lam_ = float(self.lam or 1.0 / (self.C * mass))
        C = float(self.C if self.lam is None else 1.0 / (self.lam * mass))
        fit = self._learn_sets(X, y, sample, C) if self.of_sets_ else self._learn_leaves(X, y, sample, C, weights is not None)
        self.dual_: Any = fit.beta
        self.coef_ = fit.coef if isinstance(fit.coef, FactoredWeights) else np.ascontiguousarray(fit.coef)
        self.alpha_, self.n_iter_ = fit.alpha, max(1, int(np.ceil(fit.passes)))
        ran: dict[str, Any] = {"passes": float(fit.passes), "solver": "dual", "seconds": time.perf_counter() - began}
        ran["status"] = "max_passes" if fit.spent else "converged"
        self.certificate_ = judge(fit.primal, fit.dual, self.tol, outside=fit.outside, **ran)
        strength = f"C={self.C:.3g}" if self.lam is None else f"lambda={self.lam:.3g}"
        warn_unless_converged(f"loss={self.model}, {strength}", self.certificate_, self.tol)
        return self.coef_

    def _learn_leaves(self, X: Any, y: Labels, sample: Array, C: float, weighted: bool) -> LeafFit:
        """Learn one label a row; `coef_` are then weights of the leaves."""
        attributes = self.attributes(*self.labels())
        single = one_of("precision", self.precision, PRECISIONS) == "single"
        problem = LeafProblem(X, np.ascontiguousarray(y, dtype=np.intp), sample, C, weighted, single)
        beta, start = sparse.csr_array((X.shape[0], len(self.classes_))), getattr(self._start, "dual_", None)
        # a shortened dual point of the same rows is feasible at any C
        if start is not None and start.shape == beta.shape:
            beta = shortened(problem, attributes, start)
        limits = self.tol, self.max_passes, seed_of(self.random_state)
        if self.model != "ssvm":
            return learn_leaves(problem, attributes, beta, *limits)
        fit = learn_leaves_and_alpha(problem, attributes, beta, *limits, self.updates)
        gap, self.n_updates_ = (fit.primal - fit.dual) / fit.primal if fit.primal > 0 else 0.0, fit.updates
        self.remarks_ = (f"alpha was updated {fit.updates} times" if gap <= self.tol else f"stopped after {fit.updates} updates of alpha",)
        return fit

    def _learn_sets(self, X: Any, Y: Any, sample: Array, C: float) -> LeafFit:
        """Learn sets of labels (`set_problem`); `coef_` are then weights of the nodes."""
        graph, positions = restricted(*self.labels())
        attributes = self.attributes(graph, positions)
        if attributes.normalised:
            raise IncompatibleError("objective=normalised", "one label a row", "rows have several: choose loss.objective=difference")
        self.take_sets(graph, positions)
        problem = SetProblem(X, self.by_leaves(Y), sample, self.sets_, 0.5 / C)
        limits, start = (self.tol, int(self.max_passes), seed_of(self.random_state)), getattr(self._start, "dual_", None)
        fit = learn_sets(problem, attributes.alpha, *limits, start, Joint(graph, self.updates) if self.model == "ssvm" else None)
        mass, spent = float(sample.sum()), fit.passes >= int(self.max_passes)
        return LeafFit(fit.coef, fit.alpha, fit, fit.primal / mass, fit.dual / mass, fit.outside, fit.passes, spent)

    # ---- prediction -----------------------------------------------------------------------------------------------
    def predict_codes(self, X: Any) -> Any:
        """Return codes (n,), or where labels are sets ones at the labels of the set that scores highest, csr_array (n, k)."""
        return self.best_sets(X) if self.of_sets_ else super().predict_codes(X)

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


@register("flat")
@dataclass(kw_only=True, eq=False, repr=False)
class FlatSVM(HierarchicalLearner):
    """The multiclass support vector machine of Crammer & Singer (2001) over the leaves; a yardstick that knows no hierarchy."""

    in_python = 'HierarchicalClassifier(model="flat")'
    own: ClassVar[tuple[str, ...]] = ()
    takes: ClassVar[tuple[str, ...]] = ()

    model: str = field(default="flat", init=False)
    hierarchy: Any = field(default=None, init=False)


@register("hsvm")
@dataclass(kw_only=True, eq=False, repr=False)
class HierarchicalSVM(HierarchicalLearner):
    """The hierarchical support vector machine of Cai & Hofmann (2004), Choi 2018 (6.2): margins by the distance of labels in the graph."""

    in_python = 'HierarchicalClassifier(model="hsvm")'
    hyper: ClassVar[tuple[str, ...]] = ("regularisation", "margin_power")
    own: ClassVar[tuple[str, ...]] = ("hierarchy", "margin_power")

    model: str = field(default="hsvm", init=False)


@register("nhsvm")
@dataclass(kw_only=True, eq=False, repr=False)
class NormalisedHierarchicalSVM(HierarchicalLearner):
    """The normalised hierarchical support vector machine, Choi 2018 (6.10) and (6.13): the hierarchy weighs its nodes."""

    in_python = 'HierarchicalClassifier(model="nhsvm")'
    hyper: ClassVar[tuple[str, ...]] = ("regularisation", "rho")
    own: ClassVar[tuple[str, ...]] = ("hierarchy", "rho", "directional", "largest_sum", "objective")

    model: str = field(default="nhsvm", init=False)


@register("ssvm")
@dataclass(kw_only=True, eq=False, repr=False)
class SharedSVM(HierarchicalLearner):
    """The shared support vector machine, Choi 2018 (6.17): the weights alpha of the nodes are learned, too; trees only."""

    in_python = 'HierarchicalClassifier(model="ssvm")'
    own: ClassVar[tuple[str, ...]] = ("hierarchy", "margin", "rho", "updates")

    model: str = field(default="ssvm", init=False)


@dataclass(kw_only=True, eq=False, repr=False)
class HierarchicalClassifier(HierarchicalLearner):
    """A classifier whose labels are leaves of a tree or DAG; ``model`` names the method, and each fit has a duality gap.

    Equal rows of one label are one row of their summed weight, and the order of the rows does not matter.

    Parameters
    ----------
    hierarchy : LabelGraph, list of (parent, child), dict, frame, networkx.DiGraph, array or None
        The label graph; the names of its leaves are the labels in y, as text. A dict has the list of children of every parent, a frame
        (pandas or polars) the columns ``parent`` and ``child``. An array (n, depth), or another frame, has the levels of a label in
        every row, from the top to the leaf, as hiclass takes labels; levels after the leaf are empty. None: labels without a hierarchy.
    model : {"nhsvm", "hsvm", "ssvm", "flat"}
        `NormalisedHierarchicalSVM`, `HierarchicalSVM`, `SharedSVM` or `FlatSVM`.
    margin : float or str or None
        ``margin_power`` of hsvm, ``margin`` of ssvm; None: theirs.
    C : float
        Weight of the summed hinges against |W|^2 / 2.
    objective : {"difference", "normalised"}
        Of nhsvm.
    rho, directional, largest_sum
        Of nhsvm, rho also of ssvm: how the hierarchy sets the weights of its nodes (`advcli.data.labels.node_weights.node_weights`).
    updates : int or None
        Of ssvm: limit of updates of the weights of the nodes; None: as many as the tolerance needs.
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
    coef_, certificate_, dual_, alpha_, n_updates_
        As in `HierarchicalLearner`.

    References
    ----------
    Choi (2018), "Efficient structured surrogate loss and regularization in structured prediction", doctoral thesis, Toyota Technological
    Institute at Chicago: chapter 6; eq. 6.2 is hsvm, eq. 6.10 and 6.13 are nhsvm, eq. 6.17 is ssvm.

    Cai and Hofmann (2004), "Hierarchical document categorization with support vector machines", CIKM: hsvm.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import HierarchicalClassifier
    >>> tree = {"animal": ["mammal", "bird"], "mammal": ["cat", "dog"], "bird": ["hawk", "owl"]}
    >>> y = np.array(["cat", "dog", "hawk", "owl"] * 10)
    >>> X = (np.unique(y)[:, None] == y).T.astype(float)
    >>> model = HierarchicalClassifier(hierarchy=tree, model="nhsvm", C=10.0).fit(X, y)
    >>> model.predict(X[:4])
    array(['cat', 'dog', 'hawk', 'owl'], dtype='<U4')
    >>> model.certificate_.converged
    True
    """

    name = "hierarchical"
    hyper: ClassVar[tuple[str, ...]] = ()
    sets: ClassVar[bool] = False

    margin_power: float = field(default=1.0, init=False)  # given as margin
    lam: float | None = field(default=None, init=False)  # the strength is given as C

    def labels(self) -> tuple[LabelGraph, NDArray[np.intp]]:
        """Return the label graph, of labels without a hierarchy a star, and the position of every class among its leaves."""
        if self.hierarchy is not None or self.model == "flat":
            return super().labels()
        star = LabelGraph.from_edges([("", str(label)) for label in self.order_])
        return label_graph(star, self.order_, coded=self.n_classes is not None, of_sets=False, loss=self.model)

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Fit the model to distinct rows; equal rows share a dual point."""
        distinct, start = equal_rows(X, y[:, None].astype(np.float64)), getattr(self._start, "dual_", None)
        first = slice(None) if distinct is None else distinct[0]
        self._start = None if start is None else SimpleNamespace(dual_=start[first])  # type: ignore[misc]
        if distinct is None:
            return super().learn(X, y, weights)
        coef = super().learn(X[first], y[first], summed(distinct[1], weights))
        self.dual_ = self.dual_[distinct[1]]
        return coef
