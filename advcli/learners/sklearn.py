"""Classifiers of other packages, by scikit-learn's interface: columns of the same table, with the same splits and the same search."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import RegressorMixin, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from ..core.arithmetic import refuse_portable
from ..core.arrays import dense
from ..core.errors import ConfigError, IncompatibleError, ModelError, NotConvergedWarning, UnknownNameError, nearest
from ..core.stored_arrays import Entries
from ..core.typing import Array, Options
from .base import Bound, State, register
from .linear import RowLearner
from .options import candidates, own_options, reach, read_grid, seed_of

_SEEDS = 2**32  # scikit-learn takes seeds below it


def _has_proba(learner: OutsideClassifier) -> bool:
    return hasattr(getattr(learner, "estimator_", None) or learner.unfitted(), "predict_proba")


@register("sklearn")
@dataclass(kw_only=True, eq=False, repr=False)
class OutsideClassifier(RowLearner):
    """A classifier with scikit-learn's interface as a learner of this package; its fits carry no certificate.

    Parameters
    ----------
    estimator : str, estimator, class or callable
        The classifier: the name of a class to import, such as ``"sklearn.svm.SVC"``; an unfitted estimator, which is cloned; a class, or
        another callable that makes an estimator from ``options``.
    options : dict or None
        Parameters of the estimator and of its parts (``svc__C``).
    features, features_options, n_classes
        Feature map with linear scores, whose rows the estimator learns from, and its options; the number of classes of labels that are
        codes.
    random_state : int
        Seed of every ``random_state`` of the estimator that is None.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the codes of the classes that have rows.
    of_sparse_ : bool
        Whether the training rows were sparse; new rows are stored alike.

    Notes
    -----
    `potentials` are the estimator's ``decision_function`` where it has one column for each class; of two classes with one column f they are
    -f/2 and f/2. Without a decision function they are the probabilities, and without these 1 at the prediction and 0 elsewhere. A class
    without rows has the least potential, and probability 0.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from advcli.learners.sklearn import OutsideClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> OutsideClassifier(estimator=KNeighborsClassifier()).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    searched_in = "loss.options"

    estimator: Any = field(default="sklearn.linear_model.LogisticRegression", kw_only=False)
    options: Mapping[str, Any] | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with contextlib.suppress(ConfigError):  # a fit says what is wrong with the estimator
            tags.input_tags.sparse = get_tags(self.unfitted()).input_tags.sparse
        return tags

    # ---- the estimator --------------------------------------------------------------------------------------------
    def unfitted(self) -> Any:
        """Return the estimator with its options and seeds; `ConfigError` for an estimator or option that there is not, or no classifier."""
        model = _made(self.estimator, dict(self.options or {}))
        if not (all(hasattr(model, name) for name in ("get_params", "fit", "predict")) and is_classifier(model)):
            raise ConfigError(_no_classifier(_named(self.estimator), type(model).__name__))
        refuse_portable(type(model).__name__, "choose a loss of advcli")
        open_values = [name for name, value in model.get_params().items() if value is None]
        seeds = {name: seed_of(self.random_state) % _SEEDS for name in open_values if name.rpartition("__")[2] == "random_state"}
        return model.set_params(**seeds)

    # ---- from a configuration -------------------------------------------------------------------------------------
    @classmethod
    def check(cls, loss: Options, features: Options, solver: Options, n_classes: int | None) -> None:
        """Refuse an estimator that cannot be made, and options, grid values and limits of growth that the estimator does not take."""
        if not isinstance(loss.get("options") or {}, Mapping):
            raise ConfigError(f"loss.options={loss['options']} is no group of options; give loss.options={{NAME:VALUE}}")
        super().check({key: value for key, value in loss.items() if key != "grid"}, features, solver, n_classes)
        cls._described(loss)
        limits = reach(loss, cls.searched_in)
        for name, values in candidates(loss, cls.searched_in).items():
            for value in (*values, *limits.get(name, ())):
                _check_values(cls._described(loss, {name: value}), f"{name}={value}")

    @classmethod
    def _described(cls, loss: Options, hyper: Mapping[str, Any] | None = None) -> Any:
        """Return the unfitted estimator of a group ``loss``; searched parameters have values of ``hyper``, else the first of the grid."""
        first = {name: values[0] for name, values in candidates(loss, cls.searched_in).items()}
        return cls(**cls.options_of(loss, {}, {**first, **(hyper or {})})).unfitted()

    @classmethod
    def has_probabilities(cls, loss: Options) -> bool:
        """Tell whether the estimator has ``predict_proba``."""
        return hasattr(cls._described(loss), "predict_proba")

    @classmethod
    def names_features(cls, loss: Options, features: Options) -> bool:
        """Tell whether the features are part of the method's name: ``linear``, rows as they are, only of a linear model."""
        return features["name"] != "linear" or bool(re.search(r"linear|Linear|Discriminant", str(loss.get("estimator"))))

    @property
    def takes_weights(self) -> bool:  # type: ignore[override]
        """Whether the estimator's ``fit`` takes ``sample_weight``."""
        return bool(has_fit_parameter(self.unfitted(), "sample_weight"))

    @classmethod
    def options_of(cls, loss: Options, solver: Options, hyper: Mapping[str, Any]) -> dict[str, Any]:
        """Return the estimator and its options, at these values of the grid."""
        chosen = {name: hyper[f"loss.options.{name}"] for name in read_grid(loss) if f"loss.options.{name}" in hyper}
        return {**own_options(loss), "options": {**(loss.get("options") or {}), **chosen}}

    # ---- fitting --------------------------------------------------------------------------------------------------
    def fit_bound(self, bound: Bound, start: Any = None) -> Self:
        """Fit a new estimator to mapped rows and codes; `IncompatibleError` where it takes no weights, or no sparse rows, and has to."""
        bound.set_facts(self)
        X, model, weights = bound.own["X"], self.unfitted(), bound.weights
        kind = f"{type(model).__name__}"
        if sparse.issparse(X) and not get_tags(model).input_tags.sparse:
            raise IncompatibleError(kind, "dense rows", "these are sparse: choose another estimator, or features=nystroem")
        arguments = {}
        if weights is not None:
            if has_fit_parameter(model, "sample_weight"):
                arguments["sample_weight"] = weights
            elif (weights != weights[0]).any():
                raise IncompatibleError(kind, "rows that count the same", "its fit takes no sample_weight: choose another estimator")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.estimator_ = model.fit(X, bound.codes, **arguments)
        self.of_sparse_ = sparse.issparse(X)
        for warning in caught:
            late = issubclass(warning.category, ConvergenceWarning)
            warnings.warn(str(warning.message), NotConvergedWarning if late else warning.category, stacklevel=3)
        # a remark is one line of the log; further lines of a warning are advice on options
        self.remarks_ = tuple(dict.fromkeys(f"{kind}: {str(warning.message).strip().splitlines()[0]}" for warning in caught))
        if hasattr(model, "n_iter_"):
            self.n_iter_ = model.n_iter_
        return self

    # ---- prediction -----------------------------------------------------------------------------------------------
    def predict_codes(self, X: Any) -> NDArray[np.intp]:
        """Return the estimator's own predictions as codes (n,), which need not be the classes of the largest potentials."""
        mapped = self.look(X).at  # says first that nothing is fitted
        return np.asarray(self.estimator_.predict(mapped)).astype(np.intp)

    def _mapped(self, X: Any) -> Any:
        """Return mapped rows, sparse or dense as the training rows were: some estimators take no others."""
        rows = super()._mapped(X)
        if sparse.issparse(rows) == self.of_sparse_:
            return rows
        return sparse.csr_array(rows) if self.of_sparse_ else rows.toarray()

    def _scores(self, mapped: Any) -> Array:
        model, k, classes = self.estimator_, len(self.classes_), np.asarray(self.estimator_.classes_, dtype=np.intp)
        if hasattr(model, "decision_function"):
            scores = np.asarray(model.decision_function(mapped), dtype=np.float64)
            if scores.ndim == 1 and len(classes) == 2:
                scores = np.column_stack([-0.5 * scores, 0.5 * scores])
            if scores.shape == (mapped.shape[0], len(classes)):
                F = np.repeat(scores.min(axis=1, keepdims=True), k, axis=1)
                F[:, classes] = scores
                return F
        if hasattr(model, "predict_proba"):
            return self._spread(model.predict_proba(mapped))
        F = np.zeros((mapped.shape[0], k))
        F[np.arange(len(F)), np.asarray(model.predict(mapped)).astype(np.intp)] = 1.0
        return F

    def _spread(self, P: Array) -> Array:
        """Return the probabilities (n, k) of all classes from the probabilities of the classes that have rows; the others have 0."""
        full = np.zeros((len(P), len(self.classes_)))
        full[:, np.asarray(self.estimator_.classes_, dtype=np.intp)] = P
        return full

    @available_if(_has_proba)
    def predict_proba(self, X: Any) -> Array:
        """Return the estimator's probabilities of `classes_`, shape (n, k)."""
        return self.by_class(np.asarray(self.probabilities(X)))

    def probabilities(self, X: Any) -> Array | None:
        """Return the estimator's probabilities of the classes by their codes, shape (n, k); None where it has none."""
        mapped = self.look(X).at
        return self._spread(self.estimator_.predict_proba(mapped)) if hasattr(self, "predict_proba") else None

    # ---- saving ---------------------------------------------------------------------------------------------------
    def saved(self) -> State:
        """Return what a saved model holds of a linear classifier of scikit-learn (`LINEAR`); `ConfigError` for any other."""
        name = listed_name(self.estimator_)
        if name is None:
            raise ConfigError(f"a fitted {type(self.estimator_).__name__} is kept by pickle alone, which executes what it reads")
        options, arrays = packed(self.estimator_)
        attributes = {**arrays, "of_sparse_": bool(self.of_sparse_), "remarks_": list(self.remarks_)}
        parameters = {"estimator": name, "options": options or None}
        return parameters, attributes, None if self.features_ is None else self.features_.support(arrays["coef"])[0]

    def restore(self, attributes: Entries) -> None:
        """Take over the numbers of a saved linear classifier; `ModelError` for an estimator that is not listed."""
        refuse_unlisted(self.estimator, self.options)
        self.of_sparse_ = attributes.flag("of_sparse_")
        self.remarks_ = attributes.texts("remarks_")
        self.estimator_ = unpacked(self.unfitted(), attributes, self._n_weights, len(self.classes_))

    @property
    def kept_by_pickle(self) -> bool:  # type: ignore[override]
        """Whether the estimator is none of the linear ones that a model file holds."""
        return listed_name(getattr(self, "estimator_", None) or self.unfitted()) is None


def _named(estimator: Any) -> str:
    return estimator if isinstance(estimator, str) else getattr(estimator, "__name__", str(estimator))


def _no_classifier(said: str, kind: str) -> str:
    return f"loss.estimator={said} makes a {kind}, which is no classifier of scikit-learn's interface"


def _imported(path: str) -> Any:
    """Return the class under a dotted name, such as ``sklearn.svm.SVC``; anything but a class with ``fit`` is refused, and never called."""
    module, _, name = path.rpartition(".")
    if not module:
        raise ConfigError(f"loss.estimator={path} is no name to import; give one such as sklearn.linear_model.LogisticRegression")
    try:
        home = importlib.import_module(module)
    except Exception as error:
        text = " ".join(str(error).split())
        raise ConfigError(f"loss.estimator={path}: cannot import {module}: {type(error).__name__}: {text}") from error
    if not hasattr(home, name):
        classes = [key for key, value in vars(home).items() if isinstance(value, type)]
        raise UnknownNameError(f"loss.estimator={path}: no {name!r} in {module}; {nearest(name, classes)}")
    named = getattr(home, name)
    if not isinstance(named, type) or not all(callable(getattr(named, method, None)) for method in ("fit", "predict", "get_params")):
        kind = "class without fit and predict" if isinstance(named, type) else type(named).__name__
        raise ConfigError(f"loss.estimator={path} is a {kind}, no classifier of scikit-learn's interface; name a class")
    return named


def _made(estimator: Any, options: dict[str, Any]) -> Any:
    """Return an unfitted estimator with these options."""
    if estimator is None:
        raise ConfigError("give loss.estimator=MODULE.CLASS, such as sklearn.linear_model.LogisticRegression")
    said, source = _named(estimator), _imported(estimator) if isinstance(estimator, str) else estimator
    if not callable(source) and not hasattr(source, "get_params"):
        raise ConfigError(f"loss.estimator={said} is a {type(source).__name__}, no classifier of scikit-learn's interface")
    try:
        if hasattr(source, "get_params") and not isinstance(source, type):
            model, later = clone(source), options
        elif isinstance(source, type) and issubclass(source, RegressorMixin):
            raise ConfigError(_no_classifier(said, source.__name__))
        else:
            # options of parts are set once the whole estimator is made
            later = {name: value for name, value in options.items() if "__" in name}
            arguments = {name: value for name, value in options.items() if name not in later}
            signature = inspect.signature(source).parameters
            for name in arguments:
                if name not in signature and not any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.values()):
                    raise UnknownNameError(f"loss.options.{name}: {said} has no parameter {name!r}; {nearest(name, signature)}")
            model = source(**arguments)
        if not hasattr(model, "get_params"):
            return model
        parameters = model.get_params()
        for name in later:
            if name not in parameters:
                raise UnknownNameError(f"loss.options.{name}: {said} has no parameter {name!r}; {nearest(name, parameters)}")
        _check_values(model.set_params(**later), said)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"loss.estimator={said}: {type(error).__name__}: {' '.join(str(error).split())}") from error
    return model


def _check_values(model: Any, what: str) -> None:
    """Refuse values that the estimator's `fit` would refuse, as far as its own check knows without rows."""
    check = getattr(model, "_validate_params", None)
    if check is None:
        return
    try:
        check()
    except ValueError as error:
        raise ConfigError(f"{what}: {' '.join(str(error).split())}") from error


# ---- linear classifiers of scikit-learn as numbers -------------------------------------------------------------------------
LINEAR = (
    "sklearn.linear_model.LogisticRegression",
    "sklearn.linear_model.Perceptron",
    "sklearn.linear_model.SGDClassifier",
    "sklearn.svm.LinearSVC",
)
"""Classifiers that predict by ``coef_`` and ``intercept_`` alone. A file may name these and no other."""

_OF_A_FIT = ("class_weight", "n_jobs", "random_state", "verbose", "warm_start")  # parameters that no prediction depends on


def _class_of(name: str) -> Any:
    module, _, class_name = name.rpartition(".")
    return getattr(importlib.import_module(module), class_name)


def listed_name(model: Any) -> str | None:
    """Return the name in `LINEAR` of a classifier, which must be of that very class; None for any other."""
    if not type(model).__module__.startswith("sklearn."):
        return None
    return next((name for name in LINEAR if type(model) is _class_of(name)), None)


def packed(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of a fitted classifier of `LINEAR` that differ from the defaults, and its arrays by name."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(type(model)).parameters.items()}
    options = {name: value for name, value in model.get_params(deep=False).items() if name not in _OF_A_FIT}
    coef = np.atleast_2d(dense(model.coef_))
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (len(coef),))
    return (
        {name: value for name, value in options.items() if name in defaults and value is not defaults[name] and value != defaults[name]},
        {"coef": np.array(coef, dtype=np.float64), "intercept": np.array(intercept), "known": np.asarray(model.classes_, dtype=np.intp)},
    )


def refuse_unlisted(name: Any, options: Any) -> None:
    """Refuse with `ModelError`, before anything is imported, what a file names that is not in `LINEAR`, and options without names."""
    if name not in LINEAR:
        raise ModelError(f"a model file holds no estimator {str(name)[:60]!r}; it may name {', '.join(LINEAR)}")
    if not isinstance(options, Mapping | None):
        raise ModelError("options of its estimator are no group of options")


def unpacked(model: Any, arrays: Entries, n_columns: int, k: int) -> Any:
    """Return an unfitted classifier of `LINEAR` with the numbers of its fit to ``n_columns`` columns and codes below ``k``."""
    if listed_name(model) is None:
        raise ConfigError(f"a {type(model).__name__} is kept by pickle alone")
    classes = arrays.array("known", (None,), "i", 0, k - 1).astype(np.intp)
    if len(classes) < 2 or (np.diff(classes) <= 0).any():
        raise ModelError("'known' are no codes of two classes or more in their order")
    rows = 1 if len(classes) == 2 else len(classes)
    model.coef_, model.intercept_ = arrays.array("coef", (rows, n_columns)), arrays.array("intercept", (rows,))
    model.n_features_in_, model.classes_ = n_columns, classes
    return model
