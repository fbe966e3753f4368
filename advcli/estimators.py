"""The scikit-learn faces: one way to fit, used by the command line, by saved models and in notebooks.

The objective is lambda/2 |theta|^2 + 1/n sum_i S(f_i, y_i)  with lambda = 1/(n C); see `advcli.problem`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .certificate import Certificate, certify
from .errors import ConfigError, IncompatibleError, NotConvergedWarning, nearest
from .features import STRENGTH, FeatureMap, feature_class, make_features
from .features import kept_in as kept_in
from .features.rows import merge_rows
from .losses import AdversarialLoss, Loss, loss_class, make_loss, name_classes
from .methods import Method, is_method, method_class
from .methods.base import saved_parameters, seed_of
from .problem import Problem, Solution
from .solvers import Limits, make_solver, solvers_for_a_box

Array = NDArray[np.float64]


def _is_adversarial(estimator: SurrogateClassifier) -> bool:
    if not isinstance(estimator.loss, str) or issubclass(loss_class(estimator.loss), AdversarialLoss):
        return True
    raise AttributeError(f"loss={estimator.loss} has no predictor's distribution; the adversarial losses have")


def _has_proba(estimator: SurrogateClassifier) -> bool:
    """Probabilities over the classes whose largest is the prediction: what scikit-learn means by predict_proba."""
    if _is_adversarial(estimator) and isinstance(estimator.loss, str) and loss_class(estimator.loss).agrees(estimator.loss_options or {}):
        return True
    raise AttributeError(f"loss={estimator.loss!r} does not predict the likeliest class of its distribution: use predictor_distribution")


class SurrogateClassifier(ClassifierMixin, BaseEstimator):
    """A linear model that minimises a convex surrogate to a certified relative duality gap.

    Parameters
    ----------
    loss : str or array (l, k)
        Name of the surrogate: ``"zero_one"``, ``"absolute"``, ``"abstain"``, ``"ww"``, ... (`advcli.losses.loss_names`), or a cost
        matrix, rows = predictions, columns = classes in sorted order: the adversarial loss of that matrix.
    C : float
        Weight of the summed loss against 1/2 |theta|^2; lambda = 1/(n C) with n the rows of `fit`.
    lam : float or None
        lambda itself; overrides ``C`` when given.
    tol : float
        Relative duality gap at which the fit is accepted.
    fit_intercept : bool
        Append a constant 1 to the features, regularised like any other (as the authors' code does). False solves the problem on X as given.
    solver : str
        ``"auto"`` (says in `solver_choice_` what it took), ``"dual"``, ``"newton"``, ``"lbfgs"``, ... (`advcli.solvers.solver_names`).
    features : str
        Feature map: ``"linear"``, ``"threshold"``, or a kernel, ``"rbf"``, ``"poly"``, ``"precomputed"`` (X is the kernel matrix: among the
        training rows in `fit`, between new and training rows afterwards). Kernels have no intercept.
    max_passes, max_seconds : float
        Limits; a fit that reaches one keeps its honest certificate and warns (`NotConvergedWarning`).
    loss_options, solver_options, features_options : dict or None
        Further options of the loss, the solver and the feature map (``{"gamma": 0.1}``). ``features_options={"moments": "box",
        "tolerance": 0.5}`` lets the adversary's moments deviate from the sample's by half a standard error each (an L1 penalty) instead of
        in a ball: C and lam then have no meaning, and `certificate_.game_value` bounds the expected loss wherever the true moments lie in
        the box.
    n_classes : int or None
        For labels that are codes 0..n_classes-1, the number of classes even when some do not occur; None finds the classes in y.
    extra_labels : sequence or None
        Labels of the predictions beyond the classes (abstaining; rows of a matrix with l > k). None: ``"abstain"``, or for numeric
        labels the least label minus 1; with more than one extra row, the codes k, k + 1, ...
    random_state : int
        Seed of the order in which examples are visited.

    Attributes
    ----------
    classes_ : ndarray (k,)
        The labels, in the order of the scores.
    theta_ : ndarray
        Parameters; (d, k) for linear features, the last row belongs to the constant when ``fit_intercept``.
    certificate_ : Certificate
        Primal, dual, gap, relative_gap, passes, converged, status, solver, seconds of this fit.
    loss_ : Loss
        The surrogate at the number of classes seen.
    solver_choice_ : str
        What ``solver="auto"`` took and why.
    """

    def __init__(
        self,
        loss: Any = "zero_one",
        *,
        C: float = 1.0,
        lam: float | None = None,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        solver: str = "auto",
        features: str = "linear",
        max_passes: float = 100_000,
        max_seconds: float = float("inf"),
        loss_options: Mapping[str, Any] | None = None,
        solver_options: Mapping[str, Any] | None = None,
        features_options: Mapping[str, Any] | None = None,
        n_classes: int | None = None,
        extra_labels: Any = None,
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.lam = lam
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.features = features
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.loss_options = loss_options
        self.solver_options = solver_options
        self.features_options = features_options
        self.n_classes = n_classes
        self.extra_labels = extra_labels
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.features, str) and feature_class(self.features).pairwise
        # one direction cannot separate classes that have no order
        tags.classifier_tags.poor_score = isinstance(self.features, str) and feature_class(self.features).needs_order
        return tags

    # ---- fitting --------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None, start: SurrogateClassifier | None = None) -> SurrogateClassifier:
        """Fit to rows X (n, d), dense or sparse, and labels y (n,).

        ``sample_weight`` (n,) counts how often each row occurs; with ``loss="weighted"`` and weight ``"column"`` it multiplies the
        row's loss matrix instead. ``start`` is an estimator fitted on the same rows with another C: the fit continues from its solution.
        """
        for name, value in (("C", self.C), ("tol", self.tol), ("lam", 1.0 if self.lam is None else self.lam)):
            if not (np.isfinite(value) and value > 0):
                raise ConfigError(f"{name} must be a positive number, got {value}")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C", accept_large_sparse=False)
        if hasattr(X, "tocsr") and not X.has_canonical_format:
            X = X.copy()  # the caller's arrays stay as they are
            X.sum_duplicates()
        codes = self._encode(y)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.loss_ = self._make_loss(len(self.classes_))
        cost = self.loss_.cost_weights(codes, weights if self.loss_.example_weights else None)
        if self.loss_.example_weights:
            weights = None
        total = len(codes) if weights is None else float(weights.sum())
        if not total > 0:
            raise ConfigError("sample_weight is zero for every row")
        lam = self.lam if self.lam is not None else 1.0 / (self.C * total)
        if not feature_class(self.features).pairwise:
            X, codes, weights, cost = merge_rows(X, codes, weights, cost)
        features = self._bind(X)
        self.features_: FeatureMap | None = features if features.keeps_rows else None
        if start is not None:
            features.adopt(start.features_)
        tolerance = features.tolerance(codes, weights)
        if tolerance is not None:
            lam = 0.0
        problem = Problem(features, self.loss_.core, codes, float(lam), weights, cost, tolerance)
        solver = make_solver(self.solver, **(self.solver_options or {}))
        lacks, remedy = solver.lacks(problem), "choose solver=auto"
        if lacks is None and tolerance is not None and not solver.takes_box:
            lacks = "moments in a ball (features.moments=ball)"
            remedy = f"for a box choose a solver that takes one: {', '.join(solvers_for_a_box())}"
        if lacks is not None:
            raise IncompatibleError(f"solver={self.solver}", lacks, remedy)
        limits = Limits(self.tol, self.max_passes, self.max_seconds)
        solution = solver.solve(problem, limits, None if start is None else start.solution_, seed=seed_of(self.random_state))
        self.solution_: Solution = solution
        self.theta_ = solution.theta
        self.certificate_: Certificate = certify(problem, solution, self.tol)
        self.n_iter_ = max(1, int(np.ceil(solution.passes)))
        if not self.certificate_.converged:
            warnings.warn(
                f"loss={self.loss}, lambda={lam:.3g}: relative gap {self.certificate_.relative_gap:.2e} after {solution.passes:.0f} passes "
                f"({self.certificate_.status}), tolerance {self.tol:g}",
                NotConvergedWarning,
                stacklevel=2,
            )
        return self

    def _encode(self, y: Any) -> NDArray[np.intp]:
        """Set `classes_` and return the labels as codes."""
        check_classification_targets(y)
        if self.n_classes is not None:
            self.classes_ = np.arange(self.n_classes)
            codes = np.asarray(y)
            if codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= self.n_classes:
                raise ConfigError(f"n_classes={self.n_classes} needs labels that are whole numbers 0..{self.n_classes - 1}")
            return codes.astype(np.intp)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only ({self.classes_[0]!r}); a classifier needs at least 2 classes")
        return codes.astype(np.intp)

    def _make_loss(self, k: int) -> Loss:
        if isinstance(self.loss, str):
            options = dict(self.loss_options or {})
            return make_loss(self.loss, k, **(options if self.n_classes is not None else name_classes(options, self.classes_)))
        return make_loss("general", k, **{"matrix": self.loss, **(self.loss_options or {})})

    @property
    def solver_choice_(self) -> str:
        """What ``solver="auto"`` took for this fit and why, in one line; empty for a solver that was asked for by name."""
        check_is_fitted(self)
        return str(self.solution_.memory.get("choice", ""))

    @property
    def predictions_(self) -> NDArray[Any]:
        """Labels of all predictions: `classes_`, then the extra ones (abstaining, further rows of a matrix)."""
        check_is_fitted(self)
        k = len(self.classes_)
        extra = self.loss_.n_predictions - k
        if extra < 0:
            return np.arange(self.loss_.n_predictions)
        if extra == 0:
            return self.classes_
        numeric = self.classes_.dtype.kind in "iuf"
        if self.extra_labels is not None:
            labels = np.asarray(self.extra_labels)
            if labels.shape != (extra,):
                raise ConfigError(f"extra_labels needs {extra} labels, got {len(labels)}")
        elif extra == 1:
            labels = np.array([self.classes_.min() - 1]) if numeric else np.array(["abstain"])
        else:
            labels = np.arange(k, k + extra) if numeric else np.array([f"prediction {i}" for i in range(k, k + extra)])
        if np.isin(labels, self.classes_).any():
            raise ConfigError("extra_labels must differ from the class labels")
        return np.concatenate([self.classes_, labels])

    def _bind(self, X: Any) -> FeatureMap:
        """Return the feature map over the rows of X, with the constant appended when asked for."""
        chosen = feature_class(self.features)
        if self.fit_intercept and chosen.takes_constant:
            ones = np.ones((X.shape[0], 1))
            stack: Any = sparse.hstack  # its stubs do not know estimators' X
            X = stack([X, ones], format="csr") if hasattr(X, "tocsr") else np.hstack([X, ones])
        return make_features(self.features, X, len(self.classes_), **(self.features_options or {}))

    # ---- saving ---------------------------------------------------------------------------------------------------
    def saved(self) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds: parameters that need no other file, fitted attributes by name, rows that the features keep."""
        parameters = saved_parameters(self, {"loss_options": _self_contained(self.loss_, self.loss_options)})
        rows, theta = (None, self.theta_) if self.features_ is None else self.features_.support(self.theta_)
        return parameters, {"theta": theta}, rows

    def restore(self, attributes: Mapping[str, Any]) -> None:
        """Take over the fitted attributes of a saved model; `classes_`, `features_` and `certificate_` are there already."""
        self.theta_ = attributes["theta"]
        self.n_iter_ = max(1, int(np.ceil(self.certificate_.passes)))
        self.loss_ = self._make_loss(len(self.classes_))

    # ---- prediction -----------------------------------------------------------------------------------------------
    def potentials(self, X: Any) -> Array:
        """Return the potentials f, shape (n, k), also for two classes."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        features = self._bind(X) if self.features_ is None else self.features_.at(X)
        return features.scores(self.theta_)

    def decision_function(self, X: Any) -> Array:
        """Return the potentials (n, k); for two classes f_1 - f_0, shape (n,), as scikit-learn has it."""
        F = self.potentials(X)
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F

    def predict_codes(self, X: Any, rule: str = "default") -> NDArray[np.intp]:
        """Return predictions as codes: positions in `predictions_`."""
        F = self.potentials(X)
        return self.loss_.predict(F) if rule == "default" else self.loss_.predict(F, rule)  # type: ignore[call-arg]

    def predict(self, X: Any, rule: str = "default") -> NDArray[Any]:
        """Return the predicted labels, shape (n,).

        ``rule`` chooses for adversarial losses: ``"potentials"`` argmax f (eq. 132), ``"predictor"`` argmax of the predictor's p (eq. 133),
        ``"median"`` or ``"mean"`` of p for ordered classes; the default is the loss's own.
        """
        codes = self.predict_codes(X, rule)
        return self.predictions_[codes]

    @available_if(_is_adversarial)
    def predictor_distribution(self, X: Any) -> Array:
        """Return the predictor's p, shape (n, l) in the order of `predictions_`: it minimises the worst-case expected loss (eq. 131)."""
        F = self.potentials(X)
        assert isinstance(self.loss_, AdversarialLoss)
        return self.loss_.predictor(F)

    @available_if(_is_adversarial)
    def adversary_distribution(self, X: Any) -> Array:
        """Return the adversary's q, shape (n, k): the worst class probabilities that the moments allow, as seen by this model."""
        F = self.potentials(X)
        assert isinstance(self.loss_, AdversarialLoss)
        return self.loss_.adversary(F)

    @available_if(_is_adversarial)
    def expected_loss(self, X: Any) -> Array:
        """Return the expected loss of the predictor's p under every true class, shape (n, k)."""
        P = self.predictor_distribution(X)
        assert isinstance(self.loss_, AdversarialLoss)
        return P @ self.loss_.matrix

    @available_if(_has_proba)
    def predict_proba(self, X: Any) -> Array:
        """Return the predictor's distribution over the classes, shape (n, k); only where its largest entry is the prediction (zero-one).

        It is the predictor's mixed strategy in the game, no estimate of class probabilities.
        """
        return self.predictor_distribution(X)


def _self_contained(loss: Loss, options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a loss's options with the matrix in the place of the file that it was read from."""
    if options is None:
        return None
    own = dict(options)
    if own.get("file") is not None:
        own |= {"file": None, "classes": None, "matrix": loss.matrix.tolist()}  # type: ignore[attr-defined]
    base = getattr(loss, "base", None)
    if isinstance(base, Loss) and own.get("options"):
        own["options"] = _self_contained(base, own["options"])
    return own


class AdversarialClassifier(SurrogateClassifier):
    """The adversarial classifier of Fathony et al. 2018 and the hinge losses beside it; parameters as in `SurrogateClassifier`."""


class OrdinalAdversarialClassifier(SurrogateClassifier):
    """Adversarial classification of ordered classes: the sorted labels are taken as their order.

    Parameters
    ----------
    loss : {"absolute", "squared", "power", "huber", "pinball"} or array (l, k)
        The cost of a prediction, in class steps, or a cost matrix.
    features : {"multiclass", "threshold"}
        One weight vector per class, or one direction and free thresholds (Fathony et al. 2018, eq. 70 and 71).
    **parameters
        As in `SurrogateClassifier`.
    """

    def __init__(
        self,
        loss: Any = "absolute",
        *,
        C: float = 1.0,
        lam: float | None = None,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        solver: str = "auto",
        features: str = "multiclass",
        max_passes: float = 100_000,
        max_seconds: float = float("inf"),
        loss_options: Mapping[str, Any] | None = None,
        solver_options: Mapping[str, Any] | None = None,
        features_options: Mapping[str, Any] | None = None,
        n_classes: int | None = None,
        extra_labels: Any = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            loss,
            C=C,
            lam=lam,
            tol=tol,
            fit_intercept=fit_intercept,
            solver=solver,
            features=features,
            max_passes=max_passes,
            max_seconds=max_seconds,
            loss_options=loss_options,
            solver_options=solver_options,
            features_options=features_options,
            n_classes=n_classes,
            extra_labels=extra_labels,
            random_state=random_state,
        )


# ---- what evaluation and the command line call ------------------------------------------------------------------------
_LIMITS = ("name", "tol", "search_tol", "search_solver", "search_passes", "max_passes", "max_seconds")


def _options(group: Mapping[str, Any], skip: tuple[str, ...] = ("name",)) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key not in skip}


def hyper_names(features: Mapping[str, Any], loss: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the hyper-parameters that selection searches for this method: the regularisation or tolerance and those of the feature map."""
    searched = feature_class(features["name"]).searched(_options(features))
    if is_method(loss["name"]):
        return (*method_class(loss["name"]).searched(_options(loss)), *(name for name in searched if name != STRENGTH))
    return searched


def check_compatible(
    loss: Mapping[str, Any], features: Mapping[str, Any], solver: Mapping[str, Any], ordered: bool, n_classes: int | None
) -> None:
    """Refuse a combination without meaning before any work, by one line that names those that have."""
    if is_method(loss["name"]):
        method_class(loss["name"]).check(_options(loss), features, solver["name"])
        make_features(features["name"], np.zeros((1, 1)), 2, **_options(features))
        return
    chosen = loss_class(loss["name"])
    mapped = feature_class(features["name"])
    make_solver(solver["name"], **_options(solver, _LIMITS))
    requires = chosen.requires_order(_options(loss))
    if (requires or mapped.needs_order) and not ordered:
        raise IncompatibleError(
            f"loss={loss['name']}" if requires else f"features={features['name']}",
            "labels with an order",
            "give it with dataset.order=[lowest,...,highest] or choose loss=zero_one",
        )
    if n_classes is not None:
        make_loss(loss["name"], n_classes, **_options(loss))
    make_features(features["name"], np.zeros((1, 1)), 2, **_options(features))


def make_estimator(
    loss: Mapping[str, Any],
    features: Mapping[str, Any],
    solver: Mapping[str, Any],
    hyper: Mapping[str, float],
    n_classes: int,
    seed: int,
    tol: float,
) -> SurrogateClassifier | Method:
    """Return the estimator of one method at given hyper-parameters, for labels that are codes in [0, n_classes)."""
    options = _options(features)
    searched = feature_class(features["name"]).searched(options)
    known = {*searched} - {STRENGTH} | ({"C", "lambda"} if STRENGTH in searched else set())
    if is_method(loss["name"]):
        known |= {*method_class(loss["name"]).searched(_options(loss))} - {STRENGTH}
    unknown = set(hyper) - known
    if unknown:
        name = sorted(unknown)[0]
        raise ConfigError(f"hyper.{name} is no hyper-parameter of features={features['name']}: {nearest(name, known)}")
    limits: dict[str, Any] = {}
    for key, fallback in (("max_passes", 100_000), ("max_seconds", None)):
        value = solver.get(key, fallback)
        if value is not None:
            limits[key] = value
    if is_method(loss["name"]):
        own = {name: hyper[name] for name in feature_class(features["name"]).hyper if name in hyper}
        return method_class(loss["name"]).build(
            _options(loss),
            hyper,
            tol,
            features=features["name"],
            features_options={**_options(features), **own} or None,
            n_classes=n_classes,
            random_state=seed,
        )
    return SurrogateClassifier(
        loss["name"],
        C=float(hyper.get("C", 1.0)),
        lam=float(hyper["lambda"]) if "lambda" in hyper else None,
        tol=tol,
        solver=solver["name"],
        features=features["name"],
        features_options={**options, **{name: value for name, value in hyper.items() if name not in ("C", "lambda")}} or None,
        loss_options=_options(loss) or None,
        solver_options=_options(solver, _LIMITS) or None,
        n_classes=n_classes,
        random_state=seed,
        **limits,
    )
