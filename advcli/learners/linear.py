"""Learners whose parameters are a matrix over rows of features."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ..core import plugins
from ..core.errors import ConfigError, IncompatibleError, ModelError
from ..core.stored_arrays import Entries
from ..core.typing import Array, Labels, Options
from ..features import STRENGTH, feature_class
from .base import OF_PYTHON, Bound, Learner, Rows, State
from .options import NOT_OPTIONS, check_options, own_options, read_grid, refuse_box, refuse_solver

_LINEAR = "choose features=linear, kernel_pca or nystroem"


# attributes of a fit that a saved model holds in places of their own, or not at all
_KEPT_APART = ("classes_", "order_", "features_", "certificate_", "feature_names_in_", "n_features_in_")


@dataclass(kw_only=True, eq=False, repr=False)
class RowLearner(Learner):
    """A classifier that some algorithm other than a surrogate's solver learns from the rows of a feature map.

    Its options are the fields of a dataclass like this one, or the arguments of an ``__init__`` that names all.
    """

    hyper: ClassVar[tuple[str, ...]] = ()  # what selection searches, beside the hyper-parameters of the features
    takes: ClassVar[tuple[str, ...]] = ()  # the `NEEDS` that are options of it
    searched_in: ClassVar[str] = "loss"
    constant: ClassVar[bool] = False  # whether a constant 1 is appended to linear features
    certified = False

    features: str = "linear"
    features_options: Mapping[str, Any] | None = None
    n_classes: int | None = None
    random_state: int = 0

    def bind(self, rows: Rows, y: Any) -> Bound:
        """Return rows and labels as fits take them.

        Rows of weight 0 are not learned from; a feature map that is fitted to rows (kernel PCA) is fitted to them as well.
        """
        X, codes, weights = self._checked(rows.X, y, rows.weight)
        self.check_features(self.name, self.features, self.features_options or {})
        features = self._bind(X)
        X = features.X
        if weights is not None and not weights.all():
            positive = np.flatnonzero(weights)
            if not len(positive):
                raise ConfigError("sample_weight is zero for every row")
            X, codes, weights = X[positive], codes[positive], weights[positive]
        return Bound.of(self, features, codes, weights, X=X)

    @property
    def appends_constant(self) -> bool:
        """Whether the learner asks for a constant; without one no label of a set could be rare."""
        return self.constant or self.of_sets_

    @property
    def _n_weights(self) -> int:
        """Columns of the feature map's rows."""
        return self.n_columns_ if self.features_ is None else int(self.features_.X.shape[1])

    def _mapped(self, X: Any) -> Any:
        X = self._with_constant(X)
        return X if self.features_ is None else self.features_.at(X).X

    # ---- from a configuration -------------------------------------------------------------------------------------
    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Return the options that a configuration may set; C, lambda and the tolerance come from elsewhere."""
        builtin = {"self", "features", "features_options", "n_classes", "random_state", *OF_PYTHON, *NOT_OPTIONS}
        if STRENGTH in cls.hyper:
            builtin |= {"C", "lam", "tol"}
        return tuple(name for name in inspect.signature(cls.__init__).parameters if name not in builtin)

    @classmethod
    def needs(cls, loss: Options) -> frozenset[str]:
        """Return the `NEEDS` that are options of the learner."""
        return frozenset(cls.takes)

    @classmethod
    def check(cls, loss: Options, features: Options, solver: Options, n_classes: int | None) -> None:
        """Refuse unknown options, a solver, features without linear scores, and parameters that no data can mend."""
        check_options(loss, cls.option_names())
        refuse_solver(loss, solver)
        cls.check_features(loss["name"], features["name"], features)
        cls(**cls.options_of(loss, solver, {}), features=features["name"], n_classes=n_classes).check_parameters()

    @classmethod
    def check_features(cls, name: str, features: str, options: Options) -> None:
        """Refuse features without linear scores, or with moments in a box."""
        if not feature_class(features).multiclass_linear:
            raise IncompatibleError(f"loss={name}", "linear scores", f"features={features} has others: {_LINEAR}")
        refuse_box(name, options)

    @classmethod
    def options_of(cls, loss: Options, solver: Options, hyper: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of the group ``loss``; an option that is null was searched."""
        searched = [*((name, name) for name in cls.hyper), *((name, f"loss.{name}") for name in read_grid(loss))]
        return own_options(loss) | {name: hyper[key] for name, key in searched if key in hyper}


@dataclass(kw_only=True, eq=False, repr=False)
class LinearLearner(RowLearner):
    """A classifier x -> argmax_r w_r.x whose weights some algorithm other than a surrogate's solver finds.

    A subclass has `learn`, and options: the fields of a dataclass like this one, or the arguments of an ``__init__`` that names all.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        One weight vector per class of `order_` over the feature map's rows.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from advcli.learners import LinearLearner, register
    >>> @register("centroids")
    ... @dataclass(kw_only=True, eq=False, repr=False)
    ... class CentroidLearner(LinearLearner):
    ...     constant = True  # a constant 1 is the last column
    ...     def learn(self, X, y, weights):
    ...         means = np.array([X[y == r].mean(axis=0) for r in range(len(self.classes_))])
    ...         coef = 2.0 * means
    ...         coef[:, -1] -= (means**2).sum(axis=1)
    ...         return coef
    >>> X, y = load_iris(return_X_y=True)
    >>> round(CentroidLearner().fit(X, y).score(X, y), 2)
    0.93
    """

    @abstractmethod
    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Return the weight vectors (k, d) from rows X (n, d) of the feature map, codes y (n,) and example weights (n,) or None."""

    def fit_bound(self, bound: Bound, start: Any = None) -> Self:
        """Learn from bound rows; ``start`` is there for learners with a path of fits."""
        bound.set_facts(self)
        self.remarks_ = ()
        self.coef_: Any = self.learn(bound.own["X"], bound.codes, bound.weights)
        if not type(self).__module__.startswith(__name__.partition(".")[0] + "."):
            self._refuse_coef((len(self.classes_), bound.own["X"].shape[1]))
        return self

    def _refuse_coef(self, shape: tuple[int, int]) -> None:
        """Refuse what a class from outside this package has learned, unless it is finite weights of that shape."""
        coef = self.coef_
        if hasattr(coef, "scores"):
            return
        made = f"an array of shape {np.shape(coef)}" if isinstance(coef, np.ndarray) else f"a {type(coef).__name__}"
        right = isinstance(coef, np.ndarray) and coef.dtype.kind in "fiub" and coef.shape == shape
        if right and np.isfinite(coef).all():
            return
        what = "weights that are no finite numbers" if right else made
        wanted = f"a NumPy array (classes, features) = {shape} of finite numbers"
        raise ConfigError(f"learn of {type(self).__name__} returned {what}, not {wanted}{plugins.defined_at(type(self).learn)}")

    def _scores(self, mapped: Any) -> Array:
        # weights of very many classes come in factors, which know how to score
        return np.ascontiguousarray(self.coef_.scores(mapped) if hasattr(self.coef_, "scores") else mapped @ self.coef_.T)

    def saved(self) -> State:
        """Return what a saved model holds.

        The attributes are all whose name ends in ``_``: arrays and plain data. A learner with others (an object, a file) overrides this and
        `restore`.
        """
        attributes = {name: value for name, value in vars(self).items() if name.endswith("_") and name not in _KEPT_APART}
        rows = None if self.features_ is None else self.features_.support(self.coef_)[0]
        return {}, attributes, rows

    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model; `classes_`, `features_` and a certificate are there already."""
        self.coef_ = self._restored_weights(attributes)
        for name in attributes.left():
            member = getattr(type(self), name, None)
            if not name.endswith("_") or name.startswith("_") or name in _KEPT_APART or isinstance(member, property) or callable(member):
                raise ModelError(f"{name!r} is no attribute of a fitted {type(self).__name__}")
            value = attributes[name]
            setattr(self, name, tuple(value) if isinstance(value, list) else value)

    def _restored_weights(self, attributes: Entries) -> Any:
        """Return `coef_` of a saved model: one row for each score, one column for each of the map's."""
        return attributes.array("coef_", (self._n_scores, self._n_weights), "if")

    @property
    def _n_scores(self) -> int:
        return len(self.classes_)
