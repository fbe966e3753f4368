"""Threshold models for ordered classes: one score g and thresholds eta_1..eta_{k-1}; the prediction is 1 + #{j : g(x) > eta_j}.

                 loss of one example                                         penalised      thresholds in order
    at, svorim   sum over j of [1 - s_j (g - eta_j)]_+                        g              always (Chu & Keerthi 2007)
    it, svorex   the terms of at with j = y - 1 and j = y alone               g              svorex: held; it: where ``ordered``
    red_th       the loss of at with g - eta_j = w.x + b - theta_j            w and theta    (Li & Lin 2007)

Here s_j = +1 where y > j, else -1. In red_th the costs c_y of a class weigh term j by |c_y[j] - c_y[j + 1]| (Lin & Li 2012), which is 1 for
absolute costs. Each model minimises lambda/2 |penalised|^2 + 1/n times the sum over rows of weight and loss. With a kernel g is a function
of the kernel's space. `advcli.problems.threshold` states the problem, `advcli.solvers.newton.threshold` and `smooth_threshold` solve it.

With ``alpha`` at and it have smooth margins: in place of the hinge of z the surrogate of Arimoto's entropy H of order alpha at two classes
whose scores differ by z, phi(z) = max over q in [0, 1] of H(1 - q, q) - q z, which is log(1 + exp(-z)) at alpha = 1. It is proper: 1 - q at
z = g - eta_j is P(y > j) in at, and in it P(j + 1) / (P(j) + P(j + 1)) of the classes at both sides of the threshold.

Sources: Shashua & Levin 2003, "Ranking with large margin principle: two approaches" (NIPS 15); Chu & Keerthi 2007, "Support vector
ordinal regression" (Neural Computation 19:792-815), for svorim with implicit and svorex with explicit constraints; Li & Lin 2007,
"Ordinal regression by extended binary classification" (NIPS 19:865-872); Rennie & Srebro 2005, "Loss functions for preference levels"
(IJCAI workshop), for the logistic forms of at and it; `losses.entropy` has the sources of the entropies.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from ..core.checks import NOT_NEGATIVE, is_number, refuse_parameter, rule
from ..core.errors import ConfigError, IncompatibleError, ModelError
from ..core.linalg import inner
from ..core.stored_arrays import Entries
from ..core.typing import Array, Labels, Options
from ..features import FeatureMap, make_features
from ..features.base import KernelMap
from ..features.merging import merge_rows
from ..losses.entropy import EntropyLoss
from ..problems.certificate import judge, warn_unless_converged
from ..problems.threshold import ThresholdProblem
from ..solvers.newton import smooth_threshold
from ..solvers.newton.scored_rows import ExplicitRows, KernelRows, ScoredRows
from ..solvers.newton.threshold import ThresholdPoint, minimise, moved
from .base import Bound, Rows, State
from .calibrated import Calibrated
from .costs.given_costs import check_costs, matrix_of, metric_of, plain_cost, with_cost
from .linear import RowLearner
from .method import register_method
from .options import describes, mass_of, one_column, one_of, refuse_box
from .refitting import KERNEL_OPTIONS, Minimiser

ORDER = rule("a finite number of at least 1, or null for the hinge", lambda value: is_number(value) and value >= 1)
METHODS = {"at": ("alpha",), "it": ("ordered", "alpha"), "red_th": ("bias", "cost"), "svorim": (), "svorex": ("ordered",)}
"""Methods and the options that they have alone."""
BIASES = {"free": "sum", "regularised": "none"}
_DISTINCT = 1e-6  # scores nearer to each other than this count as one, in units of the margin
_TIE = 1e-9  # a score that is less above a threshold lies on it: rounding of a fit that ties exactly decides nothing
_TAKEN = "choose features=linear, rbf, poly, precomputed, kernel_pca or nystroem"


def _estimates(learner: ThresholdLearner) -> bool:
    if learner.calibrates or learner.alpha is not None:
        return True
    raise AttributeError(f'{type(learner).__name__} has no probabilities of its own; calibrate="vector" or alpha=1 estimates them')


@dataclass(kw_only=True, eq=False, repr=False)
class ThresholdLearner(Minimiser, RowLearner):
    """The threshold models of the module's table; parameters as in `OrdinalClassifier`."""

    certified: ClassVar[bool] = True
    hyper: ClassVar[tuple[str, ...]] = ("regularisation",)
    paths: ClassVar[tuple[str, ...]] = ("file",)

    method: str = "at"
    ordered: bool | None = None
    alpha: float | None = None
    bias: str | None = None
    cost: Any = None
    ridge: float = 0.0
    features: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # one direction cannot separate classes that have no order
        tags.classifier_tags.poor_score = True
        return tags

    # ---- what a method is -----------------------------------------------------------------------------------------
    @property
    def mapped_by(self) -> str:
        """Name of the feature map."""
        if self.kernel is not None or self.features is not None:
            return super().mapped_by
        return "rbf" if one_of("method", self.method, METHODS).startswith("svor") else "linear"

    @property
    def counts_steps(self) -> bool:
        """True: the thresholds lie between neighbouring classes."""
        return True

    @property
    def neighbours(self) -> bool:
        """Whether only the terms next to the class occur."""
        return "ordered" in METHODS[self.method]

    @property
    def coupling(self) -> str:
        """The constraint of the dual point, one of `advcli.problems.threshold.COUPLINGS`."""
        if self.method == "red_th":
            return BIASES[one_of("bias", self.bias or "free", BIASES)]
        ordered = self.method == "svorex" if self.ordered is None else self.ordered
        if not isinstance(ordered, (bool, np.bool_)):
            raise ConfigError(f"ordered={self.ordered} must be true or false")
        return "ordered" if ordered else "each"

    @property
    def _margin(self) -> EntropyLoss | None:
        """The smooth surrogate of a margin; None for the hinge."""
        return None if self.alpha is None else EntropyLoss(2, self.alpha)

    @property
    def _cost(self) -> Any:
        """The cost of red_th."""
        return "absolute" if self.cost is None else self.cost

    # ---- from a configuration -------------------------------------------------------------------------------------
    @classmethod
    def needs(cls, loss: Options) -> frozenset[str]:
        """Return the order of the classes."""
        return frozenset({"order"})

    @classmethod
    def estimates(cls, loss: Options) -> bool:
        """Tell whether margins are smooth."""
        return loss.get("alpha") is not None

    has_probabilities = estimates

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Return the options of the method, a file of costs among them."""
        options = (name for name in super().option_names() if name not in ("kernel", *KERNEL_OPTIONS))
        return (*options, *(("file",) if cls.method == "red_th" else ()))

    @classmethod
    def options_of(cls, loss: Options, solver: Options, hyper: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of the group ``loss``; `filled` has read a file of costs."""
        return {name: value for name, value in super().options_of(loss, solver, hyper).items() if name != "file"}

    @classmethod
    def filled(cls, loss: Options, facts: Options) -> dict[str, Any]:
        """Return the options; red_th gets a cost, from the file where one is named."""
        return dict(loss) if cls.method != "red_th" else with_cost(loss, {**facts, "ordered": True}, "absolute")

    @classmethod
    def check_features(cls, name: str, features: str, options: Options) -> None:
        """Refuse features with other scores than one, or with moments in a box."""
        if not one_column(features):
            raise IncompatibleError(f"loss={name}", "one score", f"features={features} has others: {_TAKEN}")
        refuse_box(name, options)

    def check_parameters(self) -> None:
        """Refuse a method, an option that it does not have, and a strength, tolerance, limit, ridge or cost that no data can mend."""
        one_of("method", self.method, METHODS)
        for name in ("ordered", "alpha", "bias", "cost"):
            if getattr(self, name) is not None and name not in METHODS[self.method]:
                raise ConfigError(f"method={self.method} has no option {name}")
        super().check_parameters()
        refuse_parameter("ridge", self.ridge, NOT_NEGATIVE)
        if self.ridge and self.map_class.euclidean:
            raise IncompatibleError(
                f"ridge={self.ridge:g}", "a kernel", f"features={self.mapped_by} is none: choose features=rbf or ridge=0"
            )
        coupling = self.coupling
        if self.alpha is not None:
            refuse_parameter("alpha", self.alpha, ORDER)
            if coupling == "ordered":
                raise ConfigError(
                    "ordered=true is for the hinge: thresholds of smooth margins are not held; choose ordered=false or alpha=null"
                )
        check_costs(self.cost, self.n_classes)

    # ---- fitting --------------------------------------------------------------------------------------------------
    def bind(self, rows: Rows, y: Any) -> Bound:
        """Return rows and labels as fits take them: equal rows of equal label merged, in one canonical order; the kernel matrix."""
        self.check_features(self.name, self.mapped_by, self.map_options)
        X, codes, weights = self._checked(rows.X, y, rows.weight)
        mass_of(len(codes), weights)
        merged = np.arange(len(codes))
        if not self.map_class.pairwise:
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
            scored: ScoredRows = KernelRows(K)
        else:
            scored = ExplicitRows(features.X)
        return Bound.of(self, features, codes, weights, rows=scored, merged=merged)

    def _fit_checked(self, bound: Bound, start: Any) -> None:
        bound.set_facts(self)
        self.remarks_, self._rows = (), bound.own["merged"]
        began = time.perf_counter()
        rows: ScoredRows = bound.own["rows"]
        weight = np.ones(rows.n) if bound.weights is None else np.ascontiguousarray(bound.weights)
        mass = float(weight.sum())
        self.lam_ = self._lam_of(mass)
        C = float(self.C if self.lam is None else 1.0 / (self.lam * mass))
        k = len(self.classes_)
        self.observed_ = np.unique(bound.codes[weight > 0]) if self.neighbours or self.alpha is not None else np.arange(k)
        if len(self.observed_) < k:
            self.remarks_ = (
                f"{k - len(self.observed_)} of {k} classes do not occur and are never predicted: thresholds lie between the others",
            )
        if len(self.observed_) == 1:  # nothing to tell apart
            self._most = np.zeros((0, rows.n))
            self._finish(bound, _nothing(rows), 0.0, 0.0, 0.0, began)
            return
        problem = self._problem_of(bound.codes, weight, C)
        if self.alpha is None:
            point = minimise(problem, rows, self.tol, self.max_passes, moved(problem, rows, getattr(start, "_point", None)))
        else:
            point = smooth_threshold.minimise(problem, rows, self.tol, self.max_passes)
        # from scratch, as the scores of pairs are, so that the certificate rests on no sum of updates
        v = rows.spanned(problem.spanned(point.alpha))
        spanned = point.g if point.solver == "pairs" else rows.scores(v)
        dual = problem.dual(point.alpha, rows.inner(v, v, spanned))
        g = spanned if np.array_equal(v, point.v) else rows.scores(point.v)
        primal = problem.primal(rows.inner(point.v, point.v, g), g, point.eta)
        self._most = problem.U
        self._finish(bound, point, primal / (C * mass), dual / (C * mass), problem.outside(point.alpha), began)

    def _problem_of(self, codes: Labels, weight: Array, C: float) -> ThresholdProblem:
        """Return the problem over the classes of `observed_`."""
        y = np.ascontiguousarray(np.minimum(np.searchsorted(self.observed_, codes), len(self.observed_) - 1))
        W = self._terms(len(self.observed_))
        if self.alpha is not None and not self.neighbours:
            # a class that does not occur would have two equal thresholds: one stands for both
            W *= np.diff(self.observed_)
        return ThresholdProblem(y, W, weight, C, self.coupling, margin=self._margin)

    def _terms(self, k: int) -> Array:
        """Return the weights W (k, k - 1) of the terms of the loss; of red_th the differences of the costs of neighbouring predictions."""
        if self.method == "red_th":
            return np.ascontiguousarray(np.abs(np.diff(matrix_of(self._cost, k, self.order_), axis=0)).T)
        label, threshold = np.arange(k)[:, None], np.arange(k - 1)
        near = (threshold == label) | (threshold == label - 1)
        return near.astype(np.float64) if self.neighbours else np.ones((k, k - 1))

    def _finish(self, bound: Bound, point: ThresholdPoint, primal: float, dual: float, outside: float, began: float) -> None:
        """Set the solution and its certificate, and warn where it missed the tolerance."""
        self._point = point
        self.coef_ = np.ascontiguousarray(point.v[None, :])
        self.thresholds_ = point.eta
        # the scores that new rows get: without the ridge
        g = point.g if not self.ridge else point.g - self.ridge * point.v / _or_one(bound.weights)
        self.n_distinct_scores_ = int(1 + (np.diff(np.sort(g)) > _DISTINCT).sum())
        self.n_iter_ = max(1, point.steps)
        self.certificate_ = judge(
            primal,
            dual,
            self.tol,
            outside=outside,
            passes=float(point.steps),
            status=point.status,
            solver=point.solver,
            seconds=time.perf_counter() - began,
        )
        warn_unless_converged(f"loss={self.name}, lambda={self.lam_:.3g}", self.certificate_, self.tol)

    def _bind(self, X: Any) -> FeatureMap:
        return make_features(self.mapped_by, X, 1, **self.map_options)

    def _objective(self, X: Any, codes: Labels, weights: Array | None) -> tuple[float, float]:
        if self.ridge:
            raise ConfigError(f"ridge={self.ridge:g} is on the kernel of the training rows; other rows have no such objective")
        mapped = self._mapped(X)
        weight = np.ones(len(codes)) if weights is None else np.ascontiguousarray(weights)
        C = 1.0 / (self.lam_ * float(weight.sum()))
        problem = self._problem_of(codes, weight, C)
        v = np.ascontiguousarray(self.coef_.T)
        square = inner(v, v) if self.features_ is None or self.features_.euclidean else self.features_.square_norm(v)
        unit = C * float(weight.sum())
        penalty = 0.5 * (square + float(self.thresholds_ @ problem.M @ self.thresholds_)) / unit
        return penalty, problem.primal(square, self._latent(mapped), self.thresholds_) / unit - penalty

    # ---- what evaluation asks of a fit ----------------------------------------------------------------------------
    @property
    def metric_(self) -> str:
        """The mean absolute error, which the hinges of all thresholds bound; of red_th the metric that counts the costs."""
        return metric_of(self._cost) if self.method == "red_th" else "mae"

    @property
    def cost_matrix_(self) -> Array | None:
        """The cost matrix (k, k) of red_th."""
        return matrix_of(self._cost, len(self.classes_), self.order_) if self.method == "red_th" else None

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
        mapped = self.features_.at(X)
        return mapped.X if self.features_.euclidean else mapped

    def _latent(self, mapped: Any) -> Array:
        if self.features_ is None or self.features_.euclidean:
            return np.asarray(mapped @ self.coef_[0])
        return np.asarray(mapped.scores(np.ascontiguousarray(self.coef_.T))[:, 0])

    def latent(self, X: Any) -> Array:
        """Return the score g of rows X (n, d), shape (n,)."""
        return self._latent(self.look(X).at)

    def _scores(self, mapped: Any) -> Array:
        """Return f (n, k), sums of g - eta_j over the thresholds below each class; the predicted class has the largest f."""
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

    def probabilities(self, X: Any) -> Array | None:
        """Return the probabilities of the classes by their codes, shape (n, k), that smooth margins estimate; None for hinges."""
        margin = self._margin
        if margin is None:
            return None
        steps = self.latent(X)[:, None] - (self.thresholds_ if self.neighbours else np.sort(self.thresholds_))
        n, m = steps.shape
        Q = margin.probabilities(np.column_stack([np.zeros(n * m), steps.ravel()])).reshape(n, m, 2)
        if self.neighbours:  # P(j + 1) / P(j) at threshold j, whose product may underflow
            logs = np.log(np.maximum(Q, np.finfo(np.float64).tiny))
            ratios = np.cumsum(np.pad(logs[:, :, 1] - logs[:, :, 0], ((0, 0), (1, 0))), axis=1)
            shares = np.exp(ratios - ratios.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
        else:
            shares = np.maximum(-np.diff(np.pad(Q[:, :, 1], ((0, 0), (1, 1)), constant_values=((0, 0), (1.0, 0.0))), axis=1), 0.0)
        P = np.zeros((n, len(self.classes_)))
        P[:, self.observed_] = shares
        return P

    @available_if(_estimates)
    def predict_proba(self, X: Any) -> Array:
        """Return estimates of the probabilities of `classes_`, shape (n, k), by ``calibrate``, else by smooth margins."""
        return self.by_class(np.asarray(self.probabilities(X)))

    # ---- saving ---------------------------------------------------------------------------------------------------
    def saved(self) -> State:
        """Return what a saved model holds: parameters, direction or coefficients, thresholds, rows that a kernel keeps."""
        rows, coef = None, self.coef_
        if self.features_ is not None:
            rows, theta = self.features_.support(np.ascontiguousarray(coef.T))
            coef = coef if self.features_.euclidean else np.ascontiguousarray(theta.T)
        attributes: dict[str, Any] = {"coef_": coef, "thresholds_": self.thresholds_, "observed_": np.asarray(self.observed_)}
        attributes |= {"lam_": self.lam_, "n_iter_": self.n_iter_, "n_distinct_scores_": self.n_distinct_scores_}
        attributes["remarks_"] = list(self.remarks_)
        cost = {} if self.cost is None else {"cost": plain_cost(self.cost, self.order_)}
        return cost, attributes, rows

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
        self.remarks_ = attributes.texts("remarks_")


def _or_one(weights: Any) -> Any:
    """Return weights with 1 instead of 0, and 1 where there are none."""
    return 1.0 if weights is None else np.where(weights > 0, weights, 1.0)


def _nothing(rows: ScoredRows) -> ThresholdPoint:
    """Return the point of a problem with one class."""
    zero = np.zeros(rows.n)
    return ThresholdPoint(rows.spanned(zero), np.zeros(0), zero, np.zeros((0, rows.n)), 0.0, 0.0, 0, 1.0, "converged")


@describes(Minimiser)
@dataclass(kw_only=True, eq=False, repr=False)
class OrdinalClassifier(Calibrated, ThresholdLearner):
    """A threshold model for ordered classes, named by ``method``; each fit has a duality gap.

    Parameters
    ----------
    method : {"at", "it", "red_th", "svorim", "svorex"}
        The terms of the loss, the penalty and the order of the thresholds, by the module's table: all thresholds, immediate thresholds
        (Shashua & Levin 2003; Chu & Keerthi 2005), the reduction to one weighted binary machine on extended examples (Li & Lin 2007; Lin &
        Li 2012), and support vector ordinal regression with implicit and with explicit constraints (Chu & Keerthi 2007).
    ordered : bool or None
        Of it and svorex: whether the thresholds are held in order. Thresholds that are not held may cross; either way the prediction is the
        number of thresholds below the score. None: True for svorex alone.
    alpha : float or None
        Of at and it: the order of the entropy, a finite number of at least 1, whose surrogate takes the place of the hinge (1: logistic);
        `predict_proba` then has the module's probabilities, and thresholds lie between the classes that occur. `predict` is the same
        number of thresholds below the score, in at the median of these probabilities. None: the hinge.
    bias : {"free", "regularised"} or None
        Of red_th: the bias of the binary machine, unregularised, or the weight of a constant that is appended to x. None: free.
    cost : {"absolute", "squared", "zero_one"}, array (k, k), frame or None
        Of red_th: the cost matrix, rows = predictions, columns = classes, both in the order of the classes; or a frame with rows and
        columns named by the classes. Term j of a row of class y weighs ``|c_y[j] - c_y[j + 1]|``. Where c_y grows away from y, the terms
        on the wrong side of the score add up to the cost of the prediction. None: absolute.
    max_passes : float
        Newton steps after which the fit is returned as it is, with a warning; n pairs of dual variables that move count as one.
    ridge : float
        Number of at least 0, with a kernel alone: it is added to K(x_i, x_i) of every training row, where a row of weight s counts as s
        rows. The program of Chu & Keerthi has 0.001.
    features, features_options : str, dict or None
        Feature map with linear scores, or one of the kernels ``rbf``, ``poly`` and ``precomputed``, and its options; None: ``rbf`` for
        svorim and svorex, else ``linear``.
    calibrate : {"vector", "temperature", "sigmoid", "isotonic"} or None
        How `predict_proba` estimates class probabilities, as in `Calibrated`; None: the fit has no `predict_proba` without ``alpha``.

    Attributes
    ----------
    coef_ : ndarray (1, d)
        The direction w; with a kernel the coefficients of the training rows.
    thresholds_ : ndarray
        Thresholds eta: k - 1 of them, for it, svorex and ``alpha`` one less than the classes that occur. Of an interval of optimal
        thresholds the midpoint, or the finite end.
    observed_ : ndarray
        Codes of the classes between which the thresholds lie: all classes, for it, svorex and ``alpha`` the classes that occur.
    n_distinct_scores_ : int
        Number of different scores g of the training rows: hinges make scores equal (arXiv 2405.13288).
    certificate_ : Certificate
        Primal and dual value of the module's objective.

    References
    ----------
    Shashua and Levin (2003), "Ranking with large margin principle: two approaches", NIPS 15: at and it.

    Chu and Keerthi (2007), "Support vector ordinal regression", Neural Computation 19: svorim and svorex.

    Li and Lin (2007), "Ordinal regression by extended binary classification", NIPS 19: red_th.

    Rennie and Srebro (2005), "Loss functions for preference levels", IJCAI workshop on advances in preference handling: at and it, smooth.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import OrdinalClassifier
    >>> X = np.linspace(0.0, 3.0, 60)[:, None]
    >>> y = (X[:, 0] // 1.01).astype(int)
    >>> model = OrdinalClassifier(method="at", C=100.0).fit(X, y)
    >>> model.predict([[0.2], [1.6], [2.9]])
    array([0, 1, 2])
    >>> model.certificate_.converged
    True
    >>> smooth = OrdinalClassifier(method="at", alpha=1, C=100.0).fit(X, y)
    >>> smooth.predict_proba([[0.2], [1.0]]).round(2)
    array([[1.  , 0.  , 0.  ],
           [0.46, 0.54, 0.  ]])
    """

    name = "ordinal_thresholds"


for _name, _own in METHODS.items():
    register_method(_name, OrdinalClassifier, {"ordered", "alpha", "bias", "cost"} - {*_own}, method=_name)
