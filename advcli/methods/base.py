"""What every method has: scikit-learn's interface, labels as codes, linear scores over features, and how a configuration builds it."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..errors import ConfigError, IncompatibleError, nearest
from ..features import FeatureMap, feature_class, make_features

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

VIEWS = ("noisy", "sample", "true", "partial")
"""Which labels of a training part a method learns from: those seen; the small clean sample alone; the true ones; the clean sample with all
other rows unlabelled (code -1)."""


_LINEAR = "choose features=linear, kernel_pca or nystroem"


class Rows(NamedTuple):
    """Rows of X as the compiled kernels take them: (values, columns, start, n, d); ``columns`` is empty when dense."""

    values: Array
    columns: NDArray[np.int32]
    start: NDArray[np.int64]
    n: int
    d: int


def compiled_rows(X: Any) -> Rows:
    """Return a dense or CSR matrix as arrays for the kernels."""
    n, d = X.shape
    if hasattr(X, "tocsr"):
        columns, start = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
        return Rows(np.ascontiguousarray(X.data, dtype=np.float64), columns, start, int(n), int(d))
    values = np.ascontiguousarray(X, dtype=np.float64).ravel()
    return Rows(values, np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64), int(n), int(d))


class Method(ClassifierMixin, BaseEstimator):
    """A linear classifier x -> argmax_r w_r.x that some algorithm other than a surrogate's solver finds.

    A subclass writes ``__init__`` with its options (all keyword arguments, among them ``features``, ``features_options``, ``n_classes`` and
    ``random_state``) and `learn`.

    Attributes
    ----------
    classes_ : ndarray (k,)
        The labels, in the order of the scores.
    coef_ : ndarray (k, d)
        One weight vector per class over the feature map's rows.
    remarks_ : tuple of str
        What is to be said about the fit, such as why it stopped.
    """

    name: ClassVar[str]
    hyper: ClassVar[tuple[str, ...]] = ()  # what selection searches, beside the hyper-parameters of the features
    view: ClassVar[str] = "noisy"  # one of VIEWS
    takes_confusion: ClassVar[bool] = False  # whether it has the option ``confusion``, the matrix behind its labels
    takes_hierarchy: ClassVar[bool] = False  # whether it has the option ``hierarchy``, filled from the data set where it is null
    multilabel: ClassVar[bool] = False  # whether rows may have several labels
    metric: ClassVar[str] = "error"
    constant: ClassVar[bool] = False  # whether a constant 1 is appended to linear features

    of_sets_: bool = False  # whether it was fitted to several labels a row

    features: Any
    features_options: Any
    n_classes: Any
    random_state: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Return the weight vectors (k, d) from rows X (n, d) of the feature map, codes y (n,) and example weights (n,) or None."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, start: Any = None) -> Method:
        """Fit to rows X (n, d), dense or sparse, and labels y (n,), or ones (n, k) at every row's labels where `multilabel`.

        ``sample_weight`` (n,) counts how often each row occurs.

        Rows of weight 0 are not learned from; a feature map that is fitted to rows (kernel PCA) is fitted to them as well.
        ``start`` is there for the search, which hands over the fit before; a method without a path of fits does not use it.
        """
        # one column is labels in a column, as scikit-learn has it
        columns = (y if hasattr(y, "shape") else np.asarray(y)).shape[1:]
        self.of_sets_ = self.multilabel and len(columns) == 1 and columns[0] > 1
        if self.of_sets_:
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", accept_large_sparse=False)
            codes: Any = self._encode_sets(y)
        else:
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C", accept_large_sparse=False)
            codes = self._encode(y)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        chosen = feature_class(self.features)
        if not chosen.multiclass_linear:
            raise IncompatibleError(f"loss={self.name}", "linear scores", f"features={self.features} has others: {_LINEAR}")
        X = self._with_constant(X)
        bound = make_features(self.features, X, len(self.classes_), **(self.features_options or {}))
        self.features_: FeatureMap | None = bound if bound.keeps_rows else None
        self.remarks_: tuple[str, ...] = ()
        X = bound.X
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            if not len(kept):
                raise ConfigError("sample_weight is zero for every row")
            X, codes, weights = X[kept], codes[kept], weights[kept]
        self.coef_: Any = self.learn(X, codes, weights)
        return self

    def _with_constant(self, X: Any) -> Any:
        # without a constant no label could be rare
        if not ((self.constant or self.of_sets_) and feature_class(self.features).takes_constant):
            return X
        ones = np.ones((X.shape[0], 1))
        stack: Any = sparse.hstack  # its stubs do not know estimators' X
        return stack([X, ones], format="csr") if hasattr(X, "tocsr") else np.hstack([X, ones])

    def _encode(self, y: Any) -> Labels:
        """Set `classes_` and return the labels as codes; with ``n_classes`` they are codes already, -1 = unlabelled in the partial view."""
        check_classification_targets(y)
        if self.n_classes is not None:
            self.classes_ = np.arange(self.n_classes)
            codes = np.asarray(y)
            least = -1 if self.view == "partial" else 0
            if codes.dtype.kind not in "iu" or codes.min() < least or codes.max() >= self.n_classes:
                raise ConfigError(f"n_classes={self.n_classes} needs labels that are whole numbers {least}..{self.n_classes - 1}")
            return codes.astype(np.intp)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only ({self.classes_[0]!r}); a classifier needs at least 2 classes")
        return codes.astype(np.intp)

    def _encode_sets(self, Y: Any) -> sparse.csr_array:
        """Set `classes_` and return ones where a row has a label, shape (n, k)."""
        Y = sparse.csr_array(Y)
        Y.eliminate_zeros()
        Y.sum_duplicates()
        if not (Y.data == 1).all():
            raise ValueError("y of several columns must hold 0 and 1")
        if self.n_classes not in (None, Y.shape[1]):
            raise ConfigError(f"n_classes={self.n_classes}, but y has {Y.shape[1]} columns")
        empty = np.flatnonzero(np.diff(Y.indptr) == 0)
        if len(empty):
            raise ValueError(f"{len(empty)} rows of y have no label, the first is row {empty[0] + 1}; every row needs one")
        self.classes_ = np.arange(Y.shape[1])
        return Y

    # ---- saving ---------------------------------------------------------------------------------------------------
    def saved(self) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds: parameters that need no other file, fitted attributes by name, rows that the features keep.

        The attributes are all whose name ends in ``_``: arrays and plain data. A method with others (an object, a file) overrides this and
        `restore`.
        """
        given = self.confusion_ if self.takes_confusion and getattr(self, "confusion", None) is not None else None
        parameters = saved_parameters(self, {} if given is None else {"confusion": given.tolist()})
        everywhere = ("classes_", "features_", "certificate_", "feature_names_in_", "n_features_in_")
        attributes = {name: value for name, value in vars(self).items() if name.endswith("_") and name not in everywhere}
        rows = None if self.features_ is None else self.features_.support(self.coef_)[0]
        return parameters, attributes, rows

    def restore(self, attributes: Mapping[str, Any]) -> None:
        """Take over the fitted attributes of a saved model; `classes_`, `features_` and a certificate are there already."""
        for name, value in attributes.items():
            setattr(self, name, tuple(value) if isinstance(value, list) else value)

    # ---- prediction -----------------------------------------------------------------------------------------------
    @property
    def predictions_(self) -> NDArray[Any]:
        """Labels of all predictions: `classes_`."""
        check_is_fitted(self)
        return self.classes_

    def potentials(self, X: Any) -> Array:
        """Return the scores w_r.x, shape (n, k), also for two classes."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        X = self._with_constant(X)
        rows = X if self.features_ is None else self.features_.at(X).X
        # weights of very many classes come in factors, which know how to score
        return np.ascontiguousarray(self.coef_.scores(rows) if hasattr(self.coef_, "scores") else rows @ self.coef_.T)

    def decision_function(self, X: Any) -> Array:
        """Return the scores (n, k); for two classes w_1.x - w_0.x, shape (n,), as scikit-learn has it."""
        F = self.potentials(X)
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F

    def predict_codes(self, X: Any) -> Labels:
        """Return predictions as codes: positions in `classes_`; ties go to the first class."""
        return np.argmax(self.potentials(X), axis=1).astype(np.intp)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels, shape (n,)."""
        codes = self.predict_codes(X)
        return self.classes_[codes]

    # ---- from a configuration -------------------------------------------------------------------------------------
    @classmethod
    def options(cls) -> tuple[str, ...]:
        """Return the options that a configuration may set."""
        builtin = {"self", "features", "features_options", "n_classes", "random_state"}
        return tuple(name for name in inspect.signature(cls.__init__).parameters if name not in builtin)

    @classmethod
    def searched(cls, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what selection searches at these options of the group ``loss``: all of `hyper` but what an option of that name fixes."""
        return tuple(name for name in cls.hyper if options.get(name) is None)

    @classmethod
    def check(cls, options: Mapping[str, Any], features: Mapping[str, Any], solver: str) -> None:
        """Refuse unknown options, features without linear scores, and a solver: the method is its own algorithm."""
        for key in options:
            if key not in cls.options():
                raise ConfigError(f"loss={cls.name} has no option {key!r}; {nearest(key, cls.options())}")
        if not feature_class(features["name"]).multiclass_linear:
            raise IncompatibleError(f"loss={cls.name}", "linear scores", f"features={features['name']} has others: {_LINEAR}")
        if features.get("moments", "ball") != "ball":
            raise IncompatibleError(
                f"features.moments={features['moments']}", "a surrogate loss", f"loss={cls.name} has no moments to hold"
            )
        if solver != "auto":
            raise IncompatibleError(
                f"solver={solver}", "a surrogate loss", f"loss={cls.name} is an algorithm of its own: choose solver=auto"
            )

    @classmethod
    def build(cls, options: Mapping[str, Any], hyper: Mapping[str, float], tol: float, **parts: Any) -> Method:
        """Return an unfitted estimator from the options of the group ``loss``, chosen hyper-parameters and the wanted tolerance.

        ``parts`` are features, features_options, n_classes and random_state.
        """
        return cls(**options, **parts)


MethodType = TypeVar("MethodType", bound=type[Method])
_REGISTRY: dict[str, type[Method]] = {}


def register(*names: str) -> Callable[[MethodType], MethodType]:
    """Class decorator: make a method available under its name and aliases."""

    def add(cls: MethodType) -> MethodType:
        cls.name = names[0]
        for name in names:
            _REGISTRY[name] = cls
        return cls

    return add


def method_names() -> list[str]:
    """Return every registered name, sorted."""
    return sorted(_REGISTRY)


def is_method(loss: Any) -> bool:
    """Return whether ``loss`` names a method of this room instead of a surrogate."""
    return isinstance(loss, str) and loss in _REGISTRY


def method_class(name: str) -> type[Method]:
    """Return the class registered under ``name``; `ConfigError` names the nearest if there is none."""
    if name not in _REGISTRY:
        raise ConfigError(f"unknown method {name!r}: {nearest(name, _REGISTRY)}")
    return _REGISTRY[name]


def saved_parameters(estimator: Any, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return an estimator's parameters as a saved model holds them: what the rows settled, a plain seed, and ``own`` in place of its."""
    found = estimator.get_params(deep=False)
    if not isinstance(found["random_state"], (int, np.integer)):
        found["random_state"] = 0
    if estimator.features_ is not None and estimator.features_.settled:
        found["features_options"] = {**(found["features_options"] or {}), **estimator.features_.settled}
    return {**found, **own}


def seed_of(random_state: Any) -> int:
    """Return a seed from what scikit-learn takes as random_state."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if random_state is None:
        return 0
    raise ConfigError(f"random_state must be a whole number, got {random_state!r}")
