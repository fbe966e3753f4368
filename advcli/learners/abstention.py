"""Classifiers that may abstain at a cost alpha: the surrogates of Ramaswamy, Tewari & Agarwal (2018), a rejector after a classifier
(Mao, Mohri & Zhong 2024), and the adversarial loss.

The prediction is the class of the largest potential. The classifier abstains unless the margin exceeds tau:

    ova          potentials u, one binary hinge each           margin: the largest potential                tau 0
    cs           potentials f                                   margin: its lead on the second               tau 1/2
    bep          potentials min_a -B_a(j) u_a                   margin: the largest potential                tau 1/2
    two_stage    potentials of any surrogate                    margin: the score r(x) of the rejector       tau 0
    adversarial  potentials f of loss=abstain                   margin: its lead on the second               its own rule

At a margin of exactly tau a classifier abstains; the adversarial loss's own rule, and no other, predicts there.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.checks import FRACTION, refuse
from ..core.errors import ConfigError, IncompatibleError
from ..core.stored_arrays import Entries
from ..core.typing import Array, Options
from ..data.labels.order import codes_of
from ..features import make_features
from ..features.linear import LinearFeatures
from ..features.merging import over_all_rows
from ..losses import Loss, loss_class, make_loss, matrices
from ..losses.rejecting import (
    BinaryEncodedLoss,
    PairedHingesLoss,
    RejectingCrammerSingerLoss,
    RejectingLoss,
    RejectingOneVersusAllLoss,
    check_rejecting_alpha,
)
from ..problems.certificate import Certificate, settle, warn_unless_converged
from ..problems.risk import Problem
from ..solvers import Limits, make_solver
from ..statistics.risk_coverage import Guarantee, RiskCoverage, guarantee, risk_coverage
from .base import Bound
from .method import register_method
from .options import check_options, describes, one_of, own_options, seed_of
from .refitting import Minimiser
from .surrogate import LIMITS, SurrogateClassifier

METHODS = ("ova", "cs", "bep", "two_stage", "adversarial")
_OPTIONS = ("alpha", "tau", "code", "base", "base_options")  # of the group `loss`
_REJECTING: dict[str, type[RejectingLoss]] = {"ova": RejectingOneVersusAllLoss, "cs": RejectingCrammerSingerLoss, "bep": BinaryEncodedLoss}


@describes(Minimiser)
@dataclass(kw_only=True, eq=False, repr=False)
class AbstainingClassifier(SurrogateClassifier):
    """A classifier that may abstain at a cost alpha, where a wrong class costs 1; certified for its own convex problem.

    Parameters
    ----------
    method : {"ova", "cs", "bep", "two_stage", "adversarial"}
        The surrogates of Ramaswamy, Tewari & Agarwal (2018): k binary hinges, one hinge of the best wrong class, or one of ceil(log2 k)
        binary digits. ``two_stage``: the surrogate ``base``, then a rejector of its errors (Mao, Mohri & Zhong 2024). ``adversarial``: the
        adversarial loss of zero-one with abstention (Fathony et al. 2018).
    alpha : float
        Cost of abstaining: in (0, 1/2] for ova, cs and bep, in (0, 1) for two_stage, in [0, 1] for adversarial. The adversarial loss also
        takes k costs, one for each class in the order of ``order_``.
    tau : float or None
        The threshold of the margin (the module's table). None: the threshold that `calibrate` found, else the method's own.
    code : {"binary", "gray"} or array (k, m)
        Of bep: m digits -1 or 1 for every class. Another code makes another model.
    base, base_options : str, dict or None
        Of two_stage: the surrogate of the first stage and its options.
    fit_intercept : bool
        Whether a constant 1 is appended to the features; ova, cs and bep then use K + 1 instead of a Gaussian kernel K.
    features : str
        ``"linear"`` or a kernel, for adversarial also ``"threshold"``.
    solver, solver_options, features_options
        ``"auto"`` or an algorithm by name; further options of the algorithm and the feature map.
    extra_labels, rule
        The label of an abstention; the rule of the adversarial loss.

    Attributes
    ----------
    classes_, theta_, certificate_, loss_, rows_
        As in `SurrogateClassifier`; of two_stage of the first stage.
    rejector_theta_, rejector_certificate_ : ndarray, Certificate
        Of two_stage: parameters of the rejector, in the shape of ``theta_`` and with scores f of which r(x) is (f_0 - f_1) / sqrt(2); and
        the certificate of these parameters.
    tau_ : float or None
        The threshold that `calibrate` found.

    References
    ----------
    Ramaswamy, Tewari and Agarwal (2018), "Consistent algorithms for multiclass classification with an abstain option", Electronic Journal
    of Statistics 12: ova, cs and bep.

    Mao, Mohri and Zhong (2024), "Predictor-rejector multi-class abstention: theoretical analysis and algorithms", ALT, arXiv 2310.14772:
    section 4.2 is two_stage.

    Fathony, Asif, Liu, Bashiri, Xing, Behpour, Zhang and Ziebart (2018), "Consistent robust adversarial prediction for general multiclass
    classification", arXiv 1812.07526: section 5 is adversarial.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from advcli import ABSTAIN, AbstainingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AbstainingClassifier("cs", alpha=0.2, C=10.0).fit(X[:, :2], y.astype(str))
    >>> bool(0 < (model.predict(X[:, :2]) == ABSTAIN).mean() < 1)
    True
    >>> model.certificate_.converged
    True
    """

    name = "abstaining"
    takes_blocks = False

    loss: Any = field(default=None, init=False)  # other parameters say it
    loss_options: Mapping[str, Any] | None = field(default=None, init=False)
    method: str = field(default="ova", kw_only=False)
    alpha: Any = 0.5
    tau: float | None = None
    code: Any = "binary"
    base: str = "zero_one"
    base_options: Mapping[str, Any] | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # an abstention counts as wrong
        return tags

    # ---- from a configuration -------------------------------------------------------------------------------------
    @classmethod
    def needs(cls, loss: Options) -> frozenset[str]:
        """Return nothing: labels are enough."""
        return frozenset()

    @classmethod
    def filled(cls, loss: Options, facts: Options) -> dict[str, Any]:
        """Return the options as they are."""
        return dict(loss)

    @classmethod
    def _from_options(cls, loss: Options) -> dict[str, Any]:
        return own_options(loss)

    @classmethod
    def check(cls, loss: Options, features: Options, solver: Options, n_classes: int | None) -> None:
        """Refuse unknown options, and a loss, features or solver that do not go with abstaining."""
        check_options(loss, [name for name in _OPTIONS if name in inspect.signature(cls).parameters])
        make_solver(solver["name"], **own_options(solver, LIMITS))
        learner = cls(**own_options(loss))
        learner.features, learner.features_options = features["name"], own_options(features)
        learner.check_parameters()
        if n_classes is not None:
            learner._make_loss(n_classes)

    # ---- fitting --------------------------------------------------------------------------------------------------
    @property
    def given_loss(self) -> Any:
        """The surrogate's class, or its name for the adversarial loss and the first of two stages."""
        return _REJECTING.get(self.method) or ("abstain" if self.method == "adversarial" else self.base)

    @classmethod
    def has_probabilities(cls, loss: Options) -> bool:
        """Return False: an abstention has no class probability."""
        return False

    @property
    def decides(self) -> bool:
        """Whether the loss alone makes the predictions: not where a rejector has the last word."""
        return self.method != "two_stage"

    def check_parameters(self) -> None:
        """Refuse a method, alpha, threshold, code or feature map that no data can mend."""
        one_of("method", self.method, METHODS)
        super().check_parameters()
        if self.method in _REJECTING:
            check_rejecting_alpha(self.alpha)
        elif self.method == "adversarial":
            np.vectorize(matrices.check_alpha)(self.alpha)
        else:
            refuse("loss.alpha", self.alpha, FRACTION, "a number between 0 and 1")
        if self.tau is not None and (isinstance(self.tau, bool) or not isinstance(self.tau, Real) or np.isnan(float(self.tau))):
            raise ConfigError(f"loss.tau={self.tau} is not valid; give a number, or null for that of the method")
        if self.method == "two_stage" and loss_class(self.base).needs_order:
            raise ConfigError(f"loss.base={self.base} is for ordered classes, whose errors are no all or nothing; choose zero_one or cs")
        mapped, said = self.map_class, f"method={self.method}"
        if mapped.needs_order and self.method != "adversarial":
            raise IncompatibleError(
                said, "scores of each class alone", f"features={self.mapped_by} has one direction: choose features=linear"
            )
        if self.map_options.get("moments", "ball") != "ball":
            raise IncompatibleError(said, "moments in a ball", "choose features.moments=ball")

    def _make_loss(self, k: int) -> Loss:
        if self.method in _REJECTING:
            return _REJECTING[self.method](k, self.alpha, **({"code": self.code} if self.method == "bep" else {}))
        if self.method == "adversarial":
            return make_loss("abstain", k, alpha=self.alpha)
        loss = make_loss(self.base, k, **(self.base_options or {}))
        if loss.n_predictions != k or loss.sets:
            raise ConfigError(
                f"loss.base={self.base} abstains by itself, or predicts sets; choose one that predicts classes, such as zero_one or cs"
            )
        return loss

    @property
    def n_mapped_(self) -> int:
        """Number of score columns of the feature map: the scores of the surrogate."""
        k = len(self.classes_)
        return self._make_loss(k).n_classes if self.method in _REJECTING else k

    @property
    def map_options(self) -> dict[str, Any]:
        """Options of the feature map: of ova, cs and bep with a constant in the Gaussian kernel where an intercept is asked for."""
        constant = {"constant": 1.0} if self.mapped_by == "rbf" and self.fit_intercept and self.method in _REJECTING else {}
        return {**constant, **super().map_options}

    def _fit_checked(self, bound: Bound, start: Any) -> None:
        self.tau_: float | None = None
        super()._fit_checked(bound, start)
        if self.method == "two_stage":
            self._fit_rejector(bound)

    @property
    def remarks_(self) -> tuple[str, ...]:  # type: ignore[override]
        """The code of bep, a rejector that stopped early, and a threshold that was calibrated, one line each."""
        remarks = []
        if self.method == "bep" and hasattr(self, "order_"):
            words = ("".join("1" if digit > 0 else "0" for digit in word) for word in self.loss_.signed)
            remarks.append("code: " + ", ".join(f"{label} {word}" for label, word in zip(self.order_, words, strict=True)))
        certificate = self.stages_.get("rejector")
        if certificate is not None and not certificate.converged:
            remarks.append(f"rejector: relative gap {certificate.relative_gap:.1e} ({certificate.status})")
        if getattr(self, "tau_", None) is not None:
            remarks.append(f"tau = {self.tau_:.4g} was calibrated")
        return tuple(remarks)

    def _fit_rejector(self, bound: Bound) -> None:
        """Minimise lambda/2 |v|^2 + 1/n sum over rows of alpha [1 - r]_+ + [h(x) wrong] [1 + r]_+, r = v.x.

        The second stage of Mao, Mohri & Zhong (2024), section 4.2, with the hinge as margin function. A row that the first stage classifies
        wrongly gives two examples: one of weight 1 to reject, and one of weight alpha to accept. Any other row gives the second alone.
        """
        F, codes = bound.features.scores(self.theta_), bound.codes
        wrong = np.flatnonzero(np.argmax(F, axis=1) != codes)
        n, k = len(codes), len(self.classes_)
        rows = np.r_[np.arange(n), wrong]
        sample = np.ones(n) if bound.weights is None else bound.weights
        weights = np.r_[self.alpha * sample, sample[wrong]]
        signed = np.ones((2, 1))
        signed[0] = -1.0
        loss = PairedHingesLoss(signed, 0.5)
        reject = np.r_[np.zeros(n, dtype=np.intp), np.ones(len(wrong), dtype=np.intp)]
        features = bound.features
        X = features.X[rows]
        if features.multiclass_linear:
            mapped: Any = LinearFeatures(X, 2)
        else:
            X = X[:, rows] if features.pairwise else X
            mapped = make_features(self.mapped_by, np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X, 2, **self.map_options)
        lam = self.lam_ * float(sample.sum()) / float(weights.sum())
        problem = Problem(mapped, loss, reject, lam, weights)
        limits = Limits(self.tol, self.max_passes, self.max_seconds)
        solver = make_solver(self.solver, **(self.solver_options or {}))
        solution, self.rejector_certificate_ = settle(
            problem, solver.solve(problem, limits, None, seed=seed_of(self.random_state)), self.tol
        )
        self._rejector_point = None
        if solution.R is not None:  # the dual number of each hinge: r is that number times a direction of length 1
            pull = np.sqrt(0.5) * (solution.R[:, 1] - solution.R[:, 0])
            self._rejector_point = np.zeros((n, 3))
            self._rejector_point[:, 0] = pull[:n]
            self._rejector_point[wrong, 1], self._rejector_point[wrong, 2] = -pull[n:], 1.0
        theta = np.zeros((self.theta_.shape[0], k))
        if features.multiclass_linear:
            theta[:, :2] = solution.theta
        else:  # the two examples of a row share one training row
            np.add.at(theta[:, :2], rows, solution.theta)
        self.rejector_theta_ = theta
        warn_unless_converged("the rejector", self.rejector_certificate_, self.tol)

    def _abstention_costs(self) -> Array | None:
        return np.broadcast_to(np.asarray(self.alpha, dtype=np.float64), (len(self.classes_),))

    def _weights(self) -> Array:
        if self.method == "bep":
            raise AttributeError("method=bep has no scores that are linear in X; the parameters are theta_")
        return super()._weights()

    # ---- what evaluation asks of a fit ----------------------------------------------------------------------------
    @property
    def metric_(self) -> str:
        """The metric of the costs: 1 for a wrong class, alpha for an abstention."""
        return "abstention_loss" if np.ndim(self.alpha) == 0 else "cost"

    @property
    def stages_(self) -> dict[str, Certificate]:  # type: ignore[override]
        """The certificate of the rejector of two stages."""
        certificate = getattr(self, "rejector_certificate_", None) if self.method == "two_stage" else None
        return {} if certificate is None else {"rejector": certificate}

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the arrays that prove a surrogate's fit, and with two stages the arrays that prove the rejector's fit."""
        arrays = super().proof(X, codes, weight)
        if self.method != "two_stage" or not arrays or self._rejector_point is None:
            return arrays
        theta, rows = self.rejector_theta_, self.rows_
        if self.features_ is not None and not self.features_.euclidean:
            theta = over_all_rows(theta, rows)
        stored = np.where(rows[:, None] >= 0, self._rejector_point[rows], 0.0)
        return {**arrays, "rejector_theta": theta, "rejector_r": stored}

    @property
    def cost_matrix_(self) -> Array | None:
        """The matrix (k + 1, k) of zero-one with abstention."""
        matrix = self.loss_.matrix
        return matrices.abstain(len(self.classes_), self.alpha) if matrix is None or len(matrix) == len(self.classes_) else matrix

    @property
    def abstention_cost_(self) -> float | None:  # type: ignore[override]
        """Alpha; None where it is one for each class."""
        return float(self.alpha) if np.ndim(self.alpha) == 0 else None

    @property
    def predictions_(self) -> NDArray[Any]:
        """Labels of all predictions by their codes: `order_`, then to abstain."""
        return self._with_extra_labels(len(self.classes_) + 1)

    # ---- prediction -----------------------------------------------------------------------------------------------
    def _scores(self, mapped: Any) -> Array:
        return self.loss_.class_scores(super()._scores(mapped))

    def margins(self, X: Any) -> Array:
        """Return the margins of rows X (n, d), shape (n,), by the module's table: the larger, the surer the prediction."""
        view = self.look(X)
        if self.method == "two_stage":
            F = view.at.scores(self.rejector_theta_)
            return np.asarray(np.sqrt(0.5) * (F[:, 0] - F[:, 1]))
        return self.loss_.margin(self.potentials(view))

    @property
    def threshold_(self) -> float | None:
        """The threshold tau of this fit; None for the adversarial loss's own rule."""
        given = next((tau for tau in (self.tau, self.tau_, self.loss_.threshold) if tau is not None), None)
        return (0.0 if self.method == "two_stage" else None) if given is None else float(given)

    @property
    def rule_(self) -> str:
        """``threshold``, or the rule of the adversarial loss."""
        return super().rule_ if self.threshold_ is None else "threshold"

    def predict_codes(self, X: Any, rule: str = "default") -> NDArray[np.intp]:
        """Return predictions as codes: positions in `predictions_`, the last being to abstain.

        Rules other than ``"default"`` belong to the adversarial loss, and other methods refuse them; ``"potentials"`` never abstains,
        whatever the method.
        """
        view = self.look(X)
        P = self.potentials(view)
        tau = self.threshold_
        if rule == "potentials":
            return np.argmax(P, axis=1).astype(np.intp)
        if rule != "default" or tau is None:
            if self.method != "adversarial":
                raise ConfigError(f"rule={rule} is for the adversarial losses; method={self.method} has default and potentials")
            return super().predict_codes(view, rule)
        return np.where(self.margins(view) > tau, np.argmax(P, axis=1), len(self.classes_)).astype(np.intp)

    # ---- risk, coverage, guarantees ---------------------------------------------------------------------------------
    def _wrong(self, X: Any, y: Any) -> tuple[Array, NDArray[np.bool_]]:
        """Return the margins of rows, and whether the class of the largest potential is wrong, both (n,)."""
        check_is_fitted(self)
        codes, view = codes_of(y, self.order_), self.look(X)
        return self.margins(view), np.argmax(self.potentials(view), axis=1) != codes

    def risk_coverage(self, X: Any, y: Any) -> RiskCoverage:
        """Return risk over coverage at all thresholds, on rows X (n, d) with labels y (n,) (`advcli.statistics.risk_coverage`).

        `ConfigError` for a label outside the classes of the fit.
        """
        return risk_coverage(*self._wrong(X, y))

    def calibrate(self, X: Any, y: Any, epsilon: float = 0.05, delta: float = 0.1, thresholds: Any = None) -> Guarantee:
        """Set the threshold so that accepted predictions are wrong with probability at most ``epsilon``, with confidence 1 - ``delta``.

        X (n, d) and y (n,) are held-out rows: drawn like the rows to come, and independent of the rows of `fit`. Predictions use the
        threshold ``tau`` of the returned guarantee from now on; `advcli.statistics.risk_coverage.guarantee` has the parameters and says
        what is assumed and proved. `ConfigError` where the parameter ``tau`` is given, or a label lies outside the classes of the fit.
        """
        if self.tau is not None:
            raise ConfigError(f"tau={self.tau} fixes the threshold; leave it out to calibrate one")
        proved = guarantee(*self._wrong(X, y), epsilon, delta, thresholds)
        self.tau_ = proved.tau
        return proved

    # ---- saving ---------------------------------------------------------------------------------------------------
    def _saved_loss(self) -> dict[str, Any]:
        return {} if isinstance(self.code, str) else {"code": np.asarray(self.code).tolist()}

    def saved(self) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds: parameters, fitted attributes by name, rows that the features keep."""
        parameters, attributes, rows = super().saved()
        if self.tau_ is not None:
            attributes["tau_"] = float(np.nan_to_num(self.tau_))  # files hold finite numbers
        if self.method == "two_stage":
            k = self.theta_.shape[1]
            both = np.hstack([self.theta_, self.rejector_theta_])
            rows, both = (None, both) if self.features_ is None else self.features_.support(both)
            attributes |= {"theta": np.ascontiguousarray(both[:, :k]), "rejector_theta": np.ascontiguousarray(both[:, k:])}
        return parameters, attributes, rows

    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model; `classes_`, `features_` and `certificate_` are there already."""
        super().restore(attributes)
        if self.method == "two_stage":
            self.rejector_theta_ = attributes.array("rejector_theta", self.theta_.shape)
        self.tau_ = attributes.number("tau_") if "tau_" in attributes else None


for _name, _method, _hidden in (
    ("abstain_ova", "ova", ("code", "base", "base_options")),
    ("abstain_cs", "cs", ("code", "base", "base_options")),
    ("abstain_bep", "bep", ("base", "base_options")),
    ("two_stage", "two_stage", ("code",)),
):
    register_method(_name, AbstainingClassifier, _hidden, method=_method)
