"""Threshold models for ordered classes: one score g and thresholds eta_1..eta_{k-1}; the prediction is 1 + #{j : g(x) > eta_j}.

                 loss of one example                                         penalised      thresholds in order
    at, svorim   sum over j of [1 - s_j (g - eta_j)]_+                        g              always (Chu & Keerthi 2007)
    it, svorex   the terms of at with j = y - 1 and j = y alone               g              svorex: held; it: where ``ordered``
    red_th       the loss of at with g - eta_j = w.x + b - theta_j            w and theta    (Li & Lin 2007)

Here s_j = +1 where y > j, else -1. In red_th the costs c_y of a class weigh term j by |c_y[j] - c_y[j + 1]| (Lin & Li 2012), which is 1 for
absolute costs. Each model minimises lambda/2 |penalised|^2 + 1/n times the sum over rows of weight and loss. With a kernel g is a function
of the kernel's space. The optimisation is that of `threshold_problem` and `threshold_newton`.

Sources: Shashua & Levin 2003, "Ranking with large margin principle" (NIPS 15); Chu & Keerthi 2007, "Support vector ordinal regression"
(Neural Computation 19:792-815), for svorim with implicit and svorex with explicit constraints; Li & Lin 2007, "Ordinal regression by
extended binary classification" (NIPS 19:865-872).
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from ..core.errors import ConfigError, IncompatibleError, ModelError
from ..core.stored_arrays import Entries
from ..core.typing import Array, Labels, Options
from ..features import FeatureMap, feature_class, make_features
from ..features.base import KernelMap
from ..features.base import registry as feature_registry
from ..features.merging import merge_rows
from ..problems.certificate import judge, warn_unless_converged
from ..problems.threshold import ThresholdProblem
from ..solvers.newton.scored_rows import ExplicitRows, KernelRows, ScoredRows
from ..solvers.newton.threshold import ThresholdPoint, minimise, moved
from .base import Bound, register, registry
from .calibrated import Calibrated
from .costs.given_costs import check_costs, matrix_of, metric_of, plain_cost, with_cost
from .linear import RowLearner
from .options import (
    mass_of,
    one_of,
    own_options,
    refuse_huge_mass,
    refuse_no_limit,
    refuse_no_options,
    refuse_not_positive,
    refuse_solver,
    refuse_unknown_options,
)
from .refitting import Minimiser

BIASES = {"free": "sum", "regularised": "none"}
_DISTINCT = 1e-6  # scores nearer to each other than this count as one, in units of the margin
_TIE = 1e-9  # a score that is less above a threshold lies on it: rounding of a fit that ties exactly decides nothing
_TAKEN = "choose features=linear, rbf, poly, precomputed, kernel_pca or nystroem"


def _estimates(learner: ThresholdLearner) -> bool:
    if learner.calibrates:
        return True
    raise AttributeError(f'{type(learner).__name__} has no probabilities of its own; calibrate="vector" estimates them')


@dataclass(kw_only=True, eq=False, repr=False)
class ThresholdLearner(Minimiser, RowLearner):
    """Base of the threshold models, which differ in the terms of the loss, in what is penalised and in the order of the thresholds.

    Parameters
    ----------
    C : float
        Weight of the summed loss against 1/2 |penalised|^2; lambda = 1/(n C).
    lam, tol, class_weight, warm_start, verbose
        As in `SurrogateClassifier`.
    max_passes : float
        Newton steps after which the fit is returned as it is, with a warning; n pairs of dual variables that move count as one.
    ridge : float
        Number of at least 0, with a kernel alone: it is added to K(x_i, x_i) of every training row, where a row of weight s counts as s
        rows. The program of Chu & Keerthi has 0.001.
    features : str
        Feature map with linear scores, or one of the kernels ``rbf``, ``poly`` and ``precomputed``.
    features_options, n_classes
        As in `UMAClassifier`.
    order : sequence or None
        The labels from the lowest to the highest, those that do not occur too. None: the order of an ordered pandas Categorical or a
        polars Enum, else that of numbers; text without an order is refused.
    random_state : int
        Nothing here is random.

    Attributes
    ----------
    coef_ : ndarray (1, d)
        The direction w; with a kernel the coefficients of the training rows.
    thresholds_ : ndarray
        Thresholds eta: k - 1 of them, for `it` and `svorex` one less than the classes that occur. Of an interval of optimal thresholds the
        midpoint, or the finite end.
    observed_ : ndarray
        Codes of the classes between which the thresholds lie: all classes, for `it` and `svorex` the classes that occur.
    n_distinct_scores_ : int
        Number of different scores g of the training rows: hinges make scores equal (arXiv 2405.13288).
    certificate_ : Certificate
        Primal and dual value of the module's objective.
    """

    certified: ClassVar[bool] = True
    hyper: ClassVar[tuple[str, ...]] = ("regularisation",)

    C: float = 1.0
    lam: float | None = None
    tol: float = 1e-3
    max_passes: float = 1000
    ridge: float = 0.0
    order: Any = None
    class_weight: Any = None
    warm_start: bool = False
    verbose: int = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # one direction cannot separate classes that have no order
        tags.classifier_tags.poor_score = True
        known = self.features is None or self.features in feature_registry
        tags.input_tags.pairwise = known and feature_class(self.mapped_by).pairwise
        return tags

    # ---- what a model is ------------------------------------------------------------------------------------------
    @property
    def mapped_by(self) -> str:
        """Name of the feature map."""
        return str(self.features)

    @property
    def counts_steps(self) -> bool:
        """True: the thresholds lie between neighbouring classes."""
        return True

    @property
    def neighbours(self) -> bool:
        """Whether only the terms next to the class occur."""
        return False

    @property
    def coupling(self) -> str:
        """The constraint of the dual point, one of `threshold_problem.COUPLINGS`."""
        return "each"

    # ---- from a configuration -------------------------------------------------------------------------------------
    @classmethod
    def in_python(cls) -> str:
        """Return how the learner is called in Python."""
        return f'OrdinalClassifier(method="{cls.name}")'

    @classmethod
    def needs(cls, loss: Options) -> frozenset[str]:
        """Return the order of the classes."""
        return frozenset({"order"})

    @classmethod
    def check(cls, loss: Options, features: Options, solver: Options, ordered: bool, n_classes: int | None) -> None:
        """Refuse labels without an order, unknown options, features without one score, and a solver."""
        refuse_unknown_options(loss, own_options(loss), cls.option_names())
        if not ordered:
            raise IncompatibleError(
                f"loss={cls.name}", "labels with an order", "give it with dataset.order=[lowest,...,highest] or choose loss=zero_one"
            )
        _check_features(cls.name, features["name"], own_options(features))
        refuse_solver(loss, solver)
        made = cls.build(loss, features, solver, {}, n_classes or 2, 0, 1e-3)
        made.check_parameters()
        make_features(features["name"], np.zeros((1, 1)), 1, **own_options(features))

    def check_parameters(self) -> None:
        """Refuse a strength, tolerance, limit or ridge that no data can mend."""
        super().check_parameters()
        refuse_no_options(features_options=self.features_options)
        refuse_not_positive(C=self.C, tol=self.tol, lam=self.lam, max_passes=self.max_passes)
        refuse_no_limit(max_passes=self.max_passes)
        if isinstance(self.ridge, str) or not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ConfigError(f"ridge={self.ridge} must be a number of at least 0")
        if self.ridge and feature_class(self.mapped_by).euclidean:
            raise IncompatibleError(
                f"ridge={self.ridge:g}", "a kernel", f"features={self.mapped_by} is none: choose features=rbf or ridge=0"
            )
        _ = self.coupling

    # ---- fitting --------------------------------------------------------------------------------------------------
    def bind(self, X: Any, y: Any, sample_weight: Any = None) -> Bound:
        """Return rows and labels as fits take them: equal rows of equal label merged, in one canonical order; the kernel matrix."""
        _check_features(self.name, self.mapped_by, self.features_options or {})
        X, codes, weights = self._checked(X, y, sample_weight)
        mass_of(len(codes), weights)
        merged = np.arange(len(codes))
        if not feature_class(self.mapped_by).pairwise:
            X, codes, weights, _, merged = merge_rows(X, codes, weights)
        features = self._bind(X)
        if isinstance(features, KernelMap):
            if not features.whole:
                raise ConfigError(
                    f"loss={self.name} keeps the whole kernel matrix, {np.ceil(8 * features.n_rows**2 / 2**20 * 1.4):.0f} MiB for "
                    f"{features.n_rows} rows; raise features.memory_mb or choose features=nystroem"
                )
            K = features.handed_over() if self.ridge else features.matrix
            if self.ridge:
                # a row of weight s is s equal rows, and the dual variables spread over these
                K[np.diag_indices_from(K)] += self.ridge / _or_one(weights)
            rows: ScoredRows = KernelRows(K)
        else:
            rows = ExplicitRows(features.X)
        return Bound(self.order_, self._facts(), False, features, codes, weights, {"rows": rows, "merged": merged})

    def fit_bound(self, bound: Bound, start: Any = None) -> Self:
        """Minimise the model's objective, from the solution of ``start``, a fit to the same rows, where one is given."""
        self.check_parameters()
        self._take(bound)
        self.remarks_, self._rows = (), bound.own["merged"]
        began = time.perf_counter()
        rows: ScoredRows = bound.own["rows"]
        weight = np.ones(rows.n) if bound.weights is None else np.ascontiguousarray(bound.weights)
        mass = float(weight.sum())
        self.lam_ = float(self.lam or 1.0 / (self.C * mass))
        C = float(self.C if self.lam is None else 1.0 / (self.lam * mass))
        refuse_huge_mass(mass, C)
        k = len(self.classes_)
        self.observed_ = np.unique(bound.codes[weight > 0]) if self.neighbours else np.arange(k)
        if len(self.observed_) < k:
            self.remarks_ = (
                f"{k - len(self.observed_)} of {k} classes do not occur and are never predicted: thresholds lie between the others",
            )
        if len(self.observed_) == 1:  # nothing to tell apart
            self._most = np.zeros((0, rows.n))
            self._finish(bound, _nothing(rows), 0.0, 0.0, 0.0, began)
            return self
        y = np.ascontiguousarray(np.minimum(np.searchsorted(self.observed_, bound.codes), len(self.observed_) - 1))
        problem = ThresholdProblem(y, self._terms(len(self.observed_)), weight, C, self.coupling)
        found = minimise(problem, rows, self.tol, self.max_passes, moved(problem, rows, getattr(start, "_point", None)))
        # from scratch, as the scores of pairs are, so that the certificate rests on no sum of updates
        v = rows.spanned(problem.spanned(found.alpha))
        spanned = found.g if found.solver == "pairs" else rows.scores(v)
        dual = problem.dual(found.alpha, rows.inner(v, v, spanned))
        g = spanned if np.array_equal(v, found.v) else rows.scores(found.v)
        primal = problem.primal(rows.inner(found.v, found.v, g), g, found.eta)
        self._most = problem.U
        self._finish(bound, found, primal / (C * mass), dual / (C * mass), problem.outside(found.alpha), began)
        return self

    def _terms(self, k: int) -> Array:
        """Return the weights W (k, k - 1) of the terms of the loss."""
        label, threshold = np.arange(k)[:, None], np.arange(k - 1)
        near = (threshold == label) | (threshold == label - 1)
        return near.astype(np.float64) if self.neighbours else np.ones((k, k - 1))

    def _finish(self, bound: Bound, found: ThresholdPoint, primal: float, dual: float, outside: float, began: float) -> None:
        """Set the solution and its certificate, and warn of one that missed the tolerance."""
        self._point = found
        self.coef_ = np.ascontiguousarray(found.v[None, :])
        self.thresholds_ = found.eta
        # the scores that new rows get: without the ridge
        g = found.g if not self.ridge else found.g - self.ridge * found.v / _or_one(bound.weights)
        self.n_distinct_scores_ = int(1 + (np.diff(np.sort(g)) > _DISTINCT).sum())
        self.n_iter_ = max(1, found.steps)
        self.certificate_ = judge(
            primal,
            dual,
            self.tol,
            outside=outside,
            passes=float(found.steps),
            status=found.status,
            solver=found.solver,
            seconds=time.perf_counter() - began,
        )
        warn_unless_converged(f"loss={self.name}, lambda={self.lam_:.3g}", self.certificate_, self.tol)

    def _bind(self, X: Any) -> FeatureMap:
        return make_features(self.mapped_by, X, 1, **(self.features_options or {}))

    def _objective(self, X: Any, codes: Labels, weights: Array | None) -> tuple[float, float]:
        if self.ridge:
            raise ConfigError(f"ridge={self.ridge:g} is on the kernel of the training rows; other rows have no such objective")
        mapped = self._mapped(X)
        weight = np.ones(len(codes)) if weights is None else np.ascontiguousarray(weights)
        y = np.ascontiguousarray(np.minimum(np.searchsorted(self.observed_, codes), len(self.observed_) - 1))
        C = 1.0 / (self.lam_ * float(weight.sum()))
        problem = ThresholdProblem(y, self._terms(len(self.observed_)), weight, C, self.coupling)
        v = np.ascontiguousarray(self.coef_.T)
        square = float(np.vdot(v, v)) if self.features_ is None or self.features_.euclidean else self.features_.square_norm(v)
        unit = C * float(weight.sum())
        penalty = 0.5 * (square + float(self.thresholds_ @ problem.M @ self.thresholds_)) / unit
        return penalty, problem.primal(square, self._latent(mapped), self.thresholds_) / unit - penalty

    # ---- what evaluation asks of a fit ----------------------------------------------------------------------------
    @property
    def metric_(self) -> str:
        """The mean absolute error, which the hinges of all thresholds bound."""
        return "mae"

    @property
    def counts_(self) -> dict[str, float]:
        """How many different scores the training rows have."""
        return {"n_distinct_scores": float(self.n_distinct_scores_)}

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return w or coefficients, the thresholds, and the dual point (n, m) in shares of the upper ends, by the rows of `fit`."""
        point, rows = self._point, self._rows
        shares = np.divide(point.alpha, self._most, out=np.zeros_like(point.alpha), where=self._most > 0).T
        coef = self.coef_[0]
        if self.features_ is not None and not self.features_.euclidean:
            # equal rows share a coefficient in proportion to the weights: a ridge asks for that
            share = (rows >= 0) * (1.0 if weight is None else weight)
            total: Array = np.bincount(rows[rows >= 0], weights=share[rows >= 0]).astype(np.float64)
            coef = np.where(rows >= 0, (coef / _or_one(total))[rows] * share, 0.0)
        return {"theta": np.concatenate([coef, self.thresholds_]), "r": np.where(rows[:, None] >= 0, shares[rows], 0.0)}

    # ---- prediction -----------------------------------------------------------------------------------------------
    def _mapped(self, X: Any) -> Any:
        if self.features_ is None:
            return X
        found = self.features_.at(X)
        return found.X if self.features_.euclidean else found

    def _latent(self, mapped: Any) -> Array:
        if self.features_ is None or self.features_.euclidean:
            return np.asarray(mapped @ self.coef_[0])
        return np.asarray(mapped.scores(np.ascontiguousarray(self.coef_.T))[:, 0])

    def latent(self, X: Any) -> Array:
        """Return the score g of rows X (n, d), shape (n,)."""
        return self._latent(self.look(X).at)

    def _scores(self, mapped: Any) -> Array:
        """Return f (n, k), sums of g - eta_j over the thresholds below each class; the largest f is that of the predicted class."""
        g = self._latent(mapped)
        steps = g[:, None] - np.sort(self.thresholds_)
        steps[np.abs(steps) <= _TIE] = 0.0
        codes = np.arange(len(self.classes_))
        reached = np.hstack([np.zeros((len(g), 1)), np.cumsum(steps, axis=1)])
        near = np.minimum(np.searchsorted(self.observed_, codes), len(self.observed_) - 1)
        # a class that does not occur lies below both neighbours
        return np.ascontiguousarray(reached[:, near] - np.abs(self.observed_[near] - codes) * (1.0 + np.abs(steps).sum(axis=1))[:, None])

    def predict_codes(self, X: Any) -> Any:
        """Return codes (n,), the numbers of thresholds below the scores; a score on a threshold belongs to the lower class."""
        g = self.latent(X)
        if not np.isfinite(g).all():
            self.potentials(X)  # names the row
        return self.observed_[(g[:, None] - self.thresholds_ > _TIE).sum(axis=1)].astype(np.intp)

    @available_if(_estimates)
    def predict_proba(self, X: Any) -> Array:
        """Return the estimates of the probabilities of `classes_`, shape (n, k), that ``calibrate`` asks for."""
        estimated = self.probabilities(X)
        assert estimated is not None
        return self.by_class(estimated)

    # ---- saving ---------------------------------------------------------------------------------------------------
    def saved(self) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds: parameters, direction or coefficients, thresholds, rows that a kernel keeps."""
        rows, coef = (None, self.coef_) if self.features_ is None else (self.features_.support(self.coef_.T)[0], self.coef_)
        if self.features_ is not None and not self.features_.euclidean:
            coef = np.ascontiguousarray(self.features_.support(np.ascontiguousarray(self.coef_.T))[1].T)
        attributes: dict[str, Any] = {"coef_": coef, "thresholds_": self.thresholds_, "observed_": np.asarray(self.observed_)}
        attributes |= {"lam_": self.lam_, "n_iter_": self.n_iter_, "n_distinct_scores_": self.n_distinct_scores_}
        attributes["remarks_"] = list(self.remarks_)
        return self._saved_parameters({"features": self.mapped_by}), attributes, rows

    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model."""
        k = len(self.classes_)
        if self.certificate_ is None:
            raise ModelError("its certificate is missing")
        kernel = self.features_ is not None and not self.features_.euclidean
        d = self.features_.shape[0] if kernel and self.features_ is not None else self._n_weights
        self.coef_ = attributes.array("coef_", (1, d))
        self.observed_ = attributes.array("observed_", (None,), "i", least=0, most=k - 1).astype(np.intp)
        if not len(self.observed_) or (np.diff(self.observed_) <= 0).any():
            raise ModelError("'observed_' are no codes of classes in their order")
        self.thresholds_ = attributes.array("thresholds_", (len(self.observed_) - 1,))
        self.lam_ = attributes.number("lam_", least=0.0)
        self.n_iter_ = int(attributes.number("n_iter_", least=1.0))
        self.n_distinct_scores_ = int(attributes.number("n_distinct_scores_", least=1.0))
        remarks = attributes["remarks_"]
        if not isinstance(remarks, list) or not all(isinstance(each, str) for each in remarks):
            raise ModelError("'remarks_' are no list of text")
        self.remarks_ = tuple(remarks)


def _check_features(name: str, features: str, options: Mapping[str, Any]) -> None:
    chosen = feature_class(features)
    if not chosen.multiclass_linear and not (issubclass(chosen, KernelMap) and not chosen.needs_order):
        raise IncompatibleError(f"loss={name}", "one score", f"features={features} has others: {_TAKEN}")
    if options.get("moments", "ball") != "ball":
        raise IncompatibleError(f"features.moments={options['moments']}", "a surrogate loss", f"loss={name} has no moments to hold")


def _or_one(weights: Any) -> Any:
    """Return weights with 1 in the place of 0, and for none."""
    return 1.0 if weights is None else np.where(weights > 0, weights, 1.0)


def _nothing(rows: ScoredRows) -> ThresholdPoint:
    """Return the point of a problem with one class."""
    zero = np.zeros(rows.n)
    return ThresholdPoint(rows.spanned(zero), np.zeros(0), zero, np.zeros((0, rows.n)), 0.0, 0.0, 0, 1.0, "converged")


@register("at")
@dataclass(kw_only=True, eq=False, repr=False)
class AllThresholds(Calibrated, ThresholdLearner):
    """All thresholds with the hinge (Shashua & Levin 2003; Chu & Keerthi 2005).

    Parameters and attributes as in `ThresholdLearner` and `Calibrated`.
    """


@register("it")
@dataclass(kw_only=True, eq=False, repr=False)
class ImmediateThresholds(Calibrated, ThresholdLearner):
    """Immediate thresholds with the hinge (Shashua & Levin 2003; Chu & Keerthi 2005).

    Parameters
    ----------
    ordered : bool
        Whether the thresholds are held in order. Thresholds that are not held may cross; either way the prediction is the number of
        thresholds below the score.
    calibrate : {"vector", "temperature", "sigmoid", "isotonic"} or None
        How `predict_proba` estimates class probabilities, as in `Calibrated`; None: there is no `predict_proba`.
    C, lam, tol, max_passes, ridge, features, features_options, n_classes, order, class_weight, warm_start,
    verbose, random_state
        As in `ThresholdLearner`.
    """

    ordered: bool = False

    @property
    def neighbours(self) -> bool:
        """True: only the terms next to the class occur."""
        return True

    @property
    def coupling(self) -> str:
        """``"ordered"`` where the thresholds are held in order, else ``"each"``."""
        if not isinstance(self.ordered, (bool, np.bool_)):
            raise ConfigError(f"ordered={self.ordered} must be true or false")
        return "ordered" if self.ordered else "each"


@register("red_th")
@dataclass(kw_only=True, eq=False, repr=False)
class ReducedThresholds(Calibrated, ThresholdLearner):
    """The reduction to one weighted binary support vector machine on extended examples (x, e_j) (Li & Lin 2007; Lin & Li 2012).

    Parameters
    ----------
    bias : {"free", "regularised"}
        Of the binary machine: unregularised, or the weight of a constant that is appended to x.
    cost : {"absolute", "squared", "zero_one"}, array (k, k) or frame
        The cost matrix, rows = predictions, columns = classes, both in the order of the classes; or a frame with rows and columns named by
        the classes. Term j of a row of class y weighs |c_y[j] - c_y[j + 1]|. Where c_y grows away from y, the terms on the wrong side of
        the score add up to the cost of the prediction.
    calibrate : {"vector", "temperature", "sigmoid", "isotonic"} or None
        How `predict_proba` estimates class probabilities, as in `Calibrated`; None: there is no `predict_proba`.
    C, lam, tol, max_passes, ridge, features, features_options, n_classes, order, class_weight, warm_start,
    verbose, random_state
        As in `ThresholdLearner`.
    """

    paths: ClassVar[tuple[str, ...]] = ("file",)

    bias: str = "free"
    cost: Any = "absolute"

    @classmethod
    def filled(cls, loss: Options, facts: Options) -> dict[str, Any]:
        """Return the options with a cost, that of the file where one is named."""
        found = with_cost(loss, {**facts, "ordered": True}, "absolute")
        return {name: value for name, value in found.items() if name != "file"}

    @classmethod
    def check(cls, loss: Options, features: Options, solver: Options, ordered: bool, n_classes: int | None) -> None:
        """Refuse what a threshold model refuses, and costs that are no costs."""
        own = {name: value for name, value in loss.items() if name not in ("cost", "file")}
        super().check(own, features, solver, ordered, n_classes)
        check_costs(loss.get("cost"), n_classes)

    def check_parameters(self) -> None:
        """Refuse what a threshold model refuses, and costs that are no costs."""
        super().check_parameters()
        check_costs(self.cost, self.n_classes)

    @property
    def coupling(self) -> str:
        """``"sum"`` for a free bias, ``"none"`` for a penalised one."""
        return BIASES[one_of("bias", self.bias, BIASES)]

    def _terms(self, k: int) -> Array:
        """Return the weights W (k, k - 1) of the terms of the loss: differences of the costs of neighbouring predictions."""
        return np.ascontiguousarray(np.abs(np.diff(matrix_of(self.cost, k, self.order_), axis=0)).T)

    @property
    def metric_(self) -> str:
        """The metric that counts the costs."""
        return metric_of(self.cost)

    @property
    def cost_matrix_(self) -> Array | None:
        """The cost matrix (k, k)."""
        return matrix_of(self.cost, len(self.classes_), self.order_)

    def saved(self) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds, a cost matrix as numbers."""
        parameters, attributes, rows = super().saved()
        return {**parameters, "cost": plain_cost(self.cost, self.order_)}, attributes, rows


@register("svorim")
@dataclass(kw_only=True, eq=False, repr=False)
class ImplicitOrdinalSVM(AllThresholds):
    """Support vector ordinal regression with implicit constraints (Chu & Keerthi 2007).

    `AllThresholds` with a Gaussian kernel by default.
    """

    features: str = "rbf"


@register("svorex")
@dataclass(kw_only=True, eq=False, repr=False)
class ExplicitOrdinalSVM(ImmediateThresholds):
    """Support vector ordinal regression with explicit constraints (Chu & Keerthi 2007).

    `ImmediateThresholds` with thresholds in order and a Gaussian kernel by default.
    """

    features: str = "rbf"
    ordered: bool = True


METHODS = ("at", "it", "red_th", "svorim", "svorex")


@dataclass(kw_only=True, eq=False, repr=False)
class OrdinalClassifier(Calibrated, ThresholdLearner):
    """Threshold models for ordered classes by the name of the method, each fit with a duality gap.

    Parameters
    ----------
    method : {"at", "it", "red_th", "svorim", "svorex"}
        `AllThresholds`, `ImmediateThresholds`, `ReducedThresholds`, `ImplicitOrdinalSVM` or `ExplicitOrdinalSVM`.
    features : str or None
        Feature map; None: ``rbf`` for svorim and svorex, else ``linear``.
    ordered, bias, cost : bool or None, str or None, str, array (k, k) or None
        ``ordered`` is an option of `it`, ``bias`` and ``cost`` are options of `red_th`; None: the method's own value.
    calibrate : {"vector", "temperature", "sigmoid", "isotonic"} or None
        How `predict_proba` estimates class probabilities, as in `Calibrated`; None: there is no `predict_proba`.
    C, lam, tol, max_passes, ridge, features_options, n_classes, order, class_weight, warm_start,
    verbose, random_state
        As in `ThresholdLearner`.
    """

    name = "ordinal_thresholds"

    method: str = "at"
    ordered: bool | None = None
    bias: str | None = None
    cost: Any = None
    features: Any = None

    @property
    def mapped_by(self) -> str:
        """Name of the feature map."""
        if self.features is not None:
            return str(self.features)
        chosen = registry.get(one_of("method", self.method, METHODS))
        return str(inspect.signature(chosen).parameters["features"].default)

    @property
    def neighbours(self) -> bool:
        """Whether only the terms next to the class occur."""
        return self._model().neighbours

    @property
    def coupling(self) -> str:
        """The constraint of the dual point, that of the method."""
        return self._model().coupling

    def check_parameters(self) -> None:
        """Refuse an unknown method, and an option that the method does not have."""
        one_of("method", self.method, METHODS)
        self._model()
        super().check_parameters()
        check_costs(self.cost, self.n_classes)

    def _terms(self, k: int) -> Array:
        model = self._model()
        model.name_classes(self.order_)
        return model._terms(k)

    @property
    def metric_(self) -> str:
        """The metric of the method."""
        return self._model().metric_

    @property
    def cost_matrix_(self) -> Array | None:
        """The cost matrix (k, k) where one is given."""
        return None if self.cost is None else matrix_of(self.cost, len(self.classes_), self.order_)

    def saved(self) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds, a cost matrix as numbers."""
        parameters, attributes, rows = super().saved()
        return {**parameters, "cost": plain_cost(self.cost, self.order_)}, attributes, rows

    def _model(self) -> ThresholdLearner:
        """Return the chosen method with its options."""
        chosen: Any = registry.get(one_of("method", self.method, METHODS))
        own = {name: getattr(self, name) for name in ("ordered", "bias", "cost") if getattr(self, name) is not None}
        for name in own:
            if name not in chosen.option_names():
                raise ConfigError(f"method={self.method} has no option {name}")
        found: ThresholdLearner = chosen(**own)
        return found
