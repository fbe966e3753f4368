"""What scikit-learn's users expect of a learner that minimises an objective: its value, warm starts, a line about the fit."""

from __future__ import annotations

import copy
import html
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import joblib
import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.checks import POSITIVE, refuse_parameter
from ..core.errors import ConfigError, ModelError
from ..core.row_blocks import BlockRows
from ..core.stored_arrays import Entries
from ..core.typing import Array, Labels
from ..data.labels.order import codes_of
from ..features import make_features
from ..features.base import registry as feature_registry
from ..problems.certificate import Judged, settle, warn_unless_converged
from ..problems.risk import Solution
from .base import Bound, Learner, Rows, named_in_errors
from .options import one_of

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing."""

    def with_callbacks(method: Any) -> Any:
        """Return the method."""
        return method


_SHOWN = 10  # labels that a line names
# what may change between two fits of one problem
_OF_THE_SEARCH = frozenset(
    {"C", "lam", "tol", "max_passes", "max_seconds", "solver", "solver_options", "random_state", "verbose", "warm_start", "rule", "tau"}
)

KERNELS = ("linear", "poly", "precomputed", "rbf")
"""Feature maps that ``kernel`` names."""

KERNEL_OPTIONS = ("gamma", "degree", "coef0")
"""Parameters of estimators that are options of the feature map."""


def check_positive(**values: float | None) -> None:
    """Refuse the first parameter that is not a finite number above 0; None means that it was not given."""
    for name, value in values.items():
        if value is not None:
            refuse_parameter(name, value, POSITIVE, "a positive number")


def check_limit(name: str, value: Any, least: float) -> None:
    """Refuse a limit of passes or seconds that is not a number of at least ``least``; it may be infinite."""
    if isinstance(value, bool) or not (isinstance(value, Real) and float(value) >= least):
        raise ConfigError(f"{name} must be at least {least:g}, got {value!r}")


@dataclass(kw_only=True, eq=False, repr=False)
class Refitting(CallbackSupportMixin, Learner):
    """A learner that is fitted at a strength C to a certified gap, and can begin at its last solution."""

    endless: ClassVar[bool] = False  # whether there is a limit of seconds too, and both may be infinite

    C: float = 1.0  # weight of the summed loss against the regularisation; lambda = 1/(n C) with n the rows of `fit`
    lam: float | None = None  # lambda itself; overrides C when given
    tol: float = 1e-3  # relative duality gap at which the fit is accepted
    warm_start: bool = False  # begin at the last solution where rows, labels and weights are the same; any other fit begins anew
    verbose: int = 0  # 1: a line about each fit
    max_passes: float = 1000  # limit of passes over the rows; a fit that reaches it keeps its honest certificate and warns

    def fit(self, X: Any, y: Any, sample_weight: Any = None, start: Any = None) -> Self:
        """Fit to rows X and labels y.

        Parameters
        ----------
        X : array or sparse matrix (n, d)
            Rows; the kernel matrix (n, n) among them for ``features="precomputed"``.
        y, sample_weight : array (n,)
            Labels, and how often each row occurs, at least 0. An array or frame y (n, k) holds distributions over the classes, which are
            0..k-1 or the names of the columns, or counts of votes, which are divided by their sums: a row then has the expected loss.
        start : Learner, optional
            Fitted to the same rows at another strength, from whose solution the fit may begin.

        Raises
        ------
        ConfigError
            A parameter, or a combination of some, that cannot be used.
        DataError
            Rows that cannot be used.
        """
        self._fitting(Rows(X, sample_weight), y, start)
        return self

    @property
    def _fitting(self) -> Any:
        """The method that fits: the one with callbacks where there are some."""
        called_back = bool(getattr(self, "_skl_callbacks", None)) or hasattr(self, "_parent_callback_ctx")
        return self._fit_with_callbacks if called_back else self._fit

    @with_callbacks
    def _fit_with_callbacks(self, rows: Rows, y: Any, start: Any) -> None:
        """Fit as one task of scikit-learn's callbacks."""
        metadata = {"sample_weight": rows.weight} | ({"groups": rows.groups} if self.has_groups else {})
        task: dict[str, Any] = {"estimator": self, "X": rows.X, "y": y, "metadata": metadata}
        context = self._init_callback_context()
        context.call_on_fit_task_begin(**task)
        self._fit(rows, y, start)
        context.call_on_fit_task_end(**task)

    def _fit(self, rows: Rows, y: Any, start: Any) -> None:
        with named_in_errors(self):
            self.check_parameters()
            before: Any = None
            if self.warm_start and start is None and getattr(self, "_problem", None) is not None:
                before = type(self).__new__(type(self))  # a copy with everything that a pickle may leave out
                before.__dict__.update(self.__dict__)
            bound = self.bind(*self.one_label_a_row(rows, y))
            problem = self._digest(bound) if self.warm_start else None
            if before is not None and problem == before._problem:
                start, bound = before, self._bound_again(before, bound)
            self._fit_checked(bound, start)
        self._problem: str | None = problem
        if self.n_classes is None:
            for caution in self.cautions():
                warnings.warn(f"{type(self).__name__}: {caution}", stacklevel=4)
        if self.verbose:
            print(f"{type(self).__name__}: {self.said_of_the_fit()}", flush=True)

    def fit_bound(self, bound: Bound, start: Any = None) -> Self:
        """Fit to rows that `bind` has bound, from the solution of ``start``, a fit to these rows at another strength, if it is given."""
        self.check_parameters()
        self._fit_checked(bound, start)
        return self

    @abstractmethod
    def _fit_checked(self, bound: Bound, start: Any) -> None:
        """Fit to bound rows by parameters that `check_parameters` has passed."""

    def _bound_again(self, before: Any, bound: Bound) -> Bound:
        """Return what a fit that begins at the solution of ``before``, to equal rows, is bound to."""
        return bound

    def cautions(self) -> tuple[str, ...]:
        """Return the warnings about parameters outside the range of a guarantee."""
        return ()

    def _digest(self, bound: Bound) -> str | None:
        """Return a checksum of the problem up to its strength; None where a parameter cannot be pickled."""
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in _OF_THE_SEARCH}
        if isinstance(bound.features.X, BlockRows):  # their checksum would be one of a copy
            return None
        try:
            extras = {name: bound.own.get(name) for name in ("cost", "costs", "start", "weights", "named_arcs")}
            return str(joblib.hash((parameters, bound.features.X, bound.codes, bound.weights, extras)))
        except Exception:  # a parameter that cannot be pickled
            return None

    def check_parameters(self) -> None:
        """Refuse a strength, tolerance, limit or switch that no data can mend."""
        super().check_parameters()
        refuse_parameter("C", self.C, POSITIVE, "a positive number")
        refuse_parameter("tol", self.tol, POSITIVE, "a positive number")
        for name in ("warm_start", "verbose"):
            value = getattr(self, name)
            if not isinstance(value, (bool, int, np.bool_, np.integer)) or value < 0:
                raise ConfigError(f"{name}={value!r} must be true or false")
        check_positive(lam=self.lam, max_passes=None if self.endless else self.max_passes)
        check_limit("max_passes", self.max_passes, 1.0)
        if self.endless:
            check_limit("max_seconds", getattr(self, "max_seconds"), 0.0)  # noqa: B009

    # ---- remarks about a fit --------------------------------------------------------------------------------------
    def said_of_the_fit(self) -> str:
        """Return one line about the certificate of the fit."""
        certificate = self.certificate_
        if certificate is None:
            return "no certificate"
        return (
            f"{certificate.status}, certified relative gap {certificate.relative_gap:.1e} (objective {certificate.primal:.6g}, no "
            f"less than {certificate.dual:.6g}), {certificate.passes:.0f} passes of {certificate.solver}, {certificate.seconds:.2g} s"
        )


@dataclass(kw_only=True, eq=False, repr=False)
class Minimiser(Refitting):
    """A learner whose objective at a strength C, over rows with one weight each, can be evaluated.

    Parameters
    ----------
    kernel : {"linear", "poly", "precomputed", "rbf"} or None
        The feature map by scikit-learn's parameter, instead of ``features``. None: ``features``.
    gamma, degree, coef0 : float, int, float or None
        Options of the feature map by scikit-learn's parameters, instead of ``features_options``. None: the map's default, for
        gamma of rbf and poly 1 / d.
    C : float
        Weight of the summed loss against the regularisation; lambda = 1/(n C) with n the rows of `fit`.
    lam : float or None
        lambda itself; overrides ``C`` when given.
    tol : float
        Relative duality gap at which the fit is accepted.
    max_passes, max_seconds : float
        Limits; a fit that reaches one keeps its honest certificate and warns (`NotConvergedWarning`).
    features_options : dict or None
        Further options of the feature map.
    n_classes : int or None
        For labels that are codes 0..n_classes-1, the number of classes even when some do not occur; None finds the classes in y.
    order : sequence or None
        The labels from the lowest to the highest, absent ones too: `order_` then has this order. None: sorted; where the fit counts steps
        between classes the order of an ordered pandas Categorical or a polars Enum, and text without an order is refused.
    class_weight : dict, "balanced" or None
        What every row of a class weighs, by label (1 where it is left out), beside its ``sample_weight``; ``"balanced"``: n / (classes x
        rows of the class), so that all classes weigh the same.
    warm_start : bool
        Begin at the solution of the last fit where the rows, their labels and weights are the same; also `fit`'s ``start``.
    verbose : int
        1: a line about each fit.
    random_state : int
        Seed of the order in which examples are visited.
    """

    features: str = "linear"
    features_options: Mapping[str, Any] | None = None
    kernel: str | None = None
    gamma: float | None = None
    degree: int | None = None
    coef0: float | None = None
    n_classes: int | None = None  # of labels that are codes 0..n_classes-1; None finds the classes in y
    order: Any = None  # the labels from the lowest to the highest, absent ones too
    class_weight: Any = None  # what every row of a class weighs, by label, beside its sample_weight; or "balanced"
    random_state: int = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        known = isinstance(self.mapped_by, str) and self.mapped_by in feature_registry
        tags.input_tags.pairwise = known and self.map_class.pairwise
        return tags

    def check_parameters(self) -> None:
        """Refuse a strength, tolerance, limit or group of options that no data can mend."""
        super().check_parameters()
        for name in ("loss_options", "solver_options", "features_options"):
            value = getattr(self, name, None)
            if value is not None and not isinstance(value, Mapping):
                raise ConfigError(f"{name} must be a dict of options or None, got {value!r}")
        if self.kernel is not None and self.features not in (type(self).features, one_of("kernel", self.kernel, KERNELS)):
            raise ConfigError(f"kernel={self.kernel} and features={self.features} are two feature maps: give one of them")
        for name in self._kernel_options:
            if name in (self.features_options or {}):
                raise ConfigError(f"{name} is given twice, by {name}= and in features_options: give one of them")

    def _lam_of(self, mass: float) -> float:
        """Return lambda for rows whose weights add up to ``mass``."""
        if not (np.isfinite(mass) and np.isfinite(self.C * mass)):
            raise ConfigError("sample_weight adds up to more than a number can hold; divide it by its largest value")
        return float(self.lam if self.lam is not None else 1.0 / (self.C * mass))

    def _settle(self, problem: Judged, solution: Solution, said: str) -> None:
        """Set what a solver found, judged, and warn of a fit that missed the tolerance."""
        self.solution_, self.certificate_ = settle(problem, solution, self.tol)
        self.theta_ = self.solution_.theta
        self.n_iter_ = max(1, int(np.ceil(solution.passes)))
        warn_unless_converged(f"{said}, lambda={self.lam_:.3g}", self.certificate_, self.tol)

    # ---- the feature map ------------------------------------------------------------------------------------------
    @property
    def mapped_by(self) -> str:
        """Name of the feature map."""
        return super().mapped_by if self.kernel is None else self.kernel

    @property
    def map_options(self) -> dict[str, Any]:
        """Options of the feature map."""
        return {**super().map_options, **self._kernel_options}

    @property
    def _kernel_options(self) -> dict[str, Any]:
        return {name: value for name in KERNEL_OPTIONS if (value := getattr(self, name)) is not None}

    def plain_params(self) -> dict[str, Any]:
        """Return the parameters with a feature map by ``features`` and ``features_options`` alone."""
        parameters = {name: value for name, value in super().plain_params().items() if name not in ("kernel", *KERNEL_OPTIONS)}
        options = {**(self.features_options or {}), **self._kernel_options} if self._kernel_options else self.features_options
        return {**parameters, "features": self.mapped_by, "features_options": options}

    # ---- the objective --------------------------------------------------------------------------------------------
    def objective(self, X: Any, y: Any, sample_weight: Any = None, parts: bool = False) -> Any:
        """Return the value of the function that `fit` minimises, at the fitted parameters.

        It is lambda/2 |theta|^2, or the L1 penalty of moments in a box, plus the mean surrogate loss over the rows, weighed by
        ``class_weight`` and ``sample_weight``; of `AbstainingClassifier` in two stages the objective of the first. On the
        rows of the fit it is ``certificate_.primal``; no parameters have less than ``certificate_.dual`` there.

        Parameters
        ----------
        X, y, sample_weight : array (n, d), (n,) or (n, k), and (n,)
            Rows, labels among `classes_` or distributions over these, and how often each row occurs.
        parts : bool
            Return a dict of the terms ``penalty`` and ``loss``, whose sum is the value.

        Raises
        ------
        ConfigError, ModelError
            A label outside the classes; a fit that was loaded from a file, which keeps no lambda.
        """
        check_is_fitted(self)
        rows, y = self.one_label_a_row(Rows(X, sample_weight), y)
        X, sample_weight = rows.X, rows.weight
        if not hasattr(self, "lam_"):
            raise ModelError("a model file does not keep the lambda of its fit, which its objective needs: fit it again")
        self._validated(X, reset=False)
        fresh = copy.copy(self)  # validation sets attributes
        codes, fresh.n_classes = codes_of(y, self.order_), len(self.classes_)
        if isinstance(self.class_weight, Mapping):
            fresh.class_weight = {self.order_.tolist().index(label): weight for label, weight in self.class_weight.items()}
        X, codes, weights = fresh._checked(X, codes, sample_weight)
        penalty, loss = self._objective(X, codes, weights)
        return {"penalty": penalty, "loss": loss} if parts else penalty + loss

    @abstractmethod
    def _objective(self, X: Any, codes: Labels, weights: Array | None) -> tuple[float, float]:
        """Return the penalty and the mean loss over validated rows at the fitted parameters."""

    def _mapped(self, X: Any) -> Any:
        """Return the feature map at validated rows."""
        return self._bind(X) if self.features_ is None else self.features_.at(X)

    # ---- parameters theta_ -----------------------------------------------------------------------------------------
    def _linear_theta(self) -> Array:
        """Return ``theta_`` of linear features; `AttributeError` for other features."""
        check_is_fitted(self)
        if self.map_class.name != "linear":
            raise AttributeError(f"features={self.mapped_by} has no weights of the columns of X; the parameters are theta_")
        return self.theta_

    def _restore_theta(self, attributes: Entries, biases: bool = False) -> None:
        """Restore ``theta_`` of a saved model: the parameters in the shape of the feature map, with a row of ``biases`` below."""
        if self.certificate_ is None:
            raise ModelError("its certificate is missing")
        bound = self.features_
        if bound is None:  # one row of zeros, which takes no memory, tells the shape of the parameters
            bound = make_features(self.mapped_by, np.broadcast_to(0.0, (1, self.n_columns_)), self.n_mapped_, **self.map_options)
        first, *others = bound.shape
        self.theta_ = attributes.array("theta", (first + biases, *others))
        self.n_iter_ = max(1, int(np.ceil(self.certificate_.passes)))

    # ---- what is shown of a fit ----------------------------------------------------------------------------------
    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters that differ from the defaults, and the order of the classes where a matrix without names counts on it."""
        text: str = super().__repr__(N_CHAR_MAX)
        order = self._order_of_the_matrix()
        return f"{text}  # {order}" if order else text

    def _order_of_the_matrix(self) -> str:
        if not any(_is_unnamed_matrix(getattr(self, name, None)) for name in ("loss", "cost")):
            return ""
        order = getattr(self, "order_", getattr(self, "order", None))
        return f"the matrix is in the order of order_: {'sorted labels' if order is None else _listed(order)}"

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._html_of_the_fit()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._html_of_the_fit()
        return bundle

    def _html_of_the_fit(self) -> str:
        if not hasattr(self, "order_"):
            return ""
        order = self._order_of_the_matrix() or (f"classes in order: {_listed(self.order_)}" if self.counts_steps else "")
        lines = [self.said_of_the_fit(), order]
        return "".join(f"<p>{html.escape(line)}</p>" for line in lines if line)


def _listed(labels: Any) -> str:
    labels = np.asarray(labels).tolist()
    return ", ".join(map(repr, labels[:_SHOWN])) + (", ..." if len(labels) > _SHOWN else "")


def _is_unnamed_matrix(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 2)
