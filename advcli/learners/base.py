"""The interface of everything that learns: scikit-learn's methods in front of validated rows and labels as codes."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..core.arrays import checked_csr
from ..core.checks import LARGEST, collected, refuse_huge
from ..core.errors import ConfigError, DataError, IncompatibleError
from ..core.registry import Registry
from ..core.row_blocks import BlockRows, coded_by_parts
from ..core.stored_arrays import MOST_COLUMNS
from ..core.typing import Array, Labels
from ..data.labels.order import (
    are_codes,
    in_order,
    labels_of,
    own_order,
    refuse_codes_of_text,
    refuse_unordered,
    sorting,
    weighted_by_class,
)
from ..features import FeatureMap, feature_class, make_features
from ..features.merging import over_all_rows
from ..losses.rejecting import leads
from ..problems.certificate import Certificate, WorstCase
from .configuration import Configured
from .saving import Saved

IN_BLOCKS = "rows that are read in blocks serve a surrogate loss on features=linear with solver=auto: load them, X = numpy.load(FILE)"
"""What is said of rows in blocks where they do not serve."""


OF_PYTHON = ("order", "class_weight", "warm_start", "verbose")
"""Parameters that no configuration sets."""


MOST_CLASSES = 1_000_000
"""Most classes that a learner takes, since scores are stored for every class."""

MOST_EMPTY = 100_000
"""Classes beyond the number of rows, which cannot occur, that a learner takes."""


def check_n_classes(n_classes: Any) -> None:
    """Refuse a number of classes that is no whole number, or that nobody means, before anything is allocated."""
    if isinstance(n_classes, bool) or not isinstance(n_classes, (int, np.integer)) or not 2 <= n_classes <= MOST_CLASSES:
        raise ConfigError(f"n_classes={n_classes} is not valid; give a whole number from 2 to {MOST_CLASSES}, or None")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as `Learner.bind` and `Learner.look` take them; a learner leaves alone what it does not learn from."""

    X: Any  # (n, d), dense, sparse or a frame
    weight: Any = None  # (n,), how often each row occurs
    costs: Any = None  # (n, k), what each prediction costs on the row, for learners with `Learner.has_costs`
    groups: Any = None  # (n,), the sequence of the row, for learners with `Learner.has_groups`


@dataclass(frozen=True, eq=False)
class Bound:
    """Rows and labels of a learner, validated and bound to a feature map once for all fits of a path."""

    classes: NDArray[Any]  # (k,), the labels in the order of the scores: `Learner.order_`
    facts: Mapping[str, Any]  # attributes of every fit: of_sets_, n_features_in_ and, of a table, feature_names_in_
    features: FeatureMap  # over the rows that are learned from
    codes: Any  # (n,) or csr_array (n, k), labels of these rows
    weights: Array | None  # (n,), how often they occur
    own: Mapping[str, Any]  # what the kind of learner adds


@dataclass(frozen=True, eq=False)
class View:
    """New rows, validated and mapped once for all fits to one `Bound`; `potentials` and `predict_codes` take a view for X.

    ``groups`` (n,) are the sequences of the rows, where the data have such.
    """

    at: Any
    groups: Any = None


def _is_plain(X: Any, read: bool = True) -> bool:
    """Return whether rows are a plain array that scikit-learn and `refuse_huge` would return as it is, if its columns fit.

    ``read=False``: as far as its shape and type tell.
    """
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not X.flags.c_contiguous or X.size == 0:
        return False
    return not read or bool(X.min() >= -LARGEST and X.max() <= LARGEST)  # false for nan too


def _is_validated(X: Any, y: Any, read: bool = True) -> bool:
    """Return whether rows and labels are plain arrays that scikit-learn and `refuse_huge` would return as they are."""
    return type(y) is np.ndarray and y.dtype.kind in "biuUS" and _is_plain(X, read) and y.shape == X.shape[:1]


class Learner(Configured, Saved, ClassifierMixin, BaseEstimator):
    """An algorithm that learns a classifier from rows and labels.

    Attributes
    ----------
    classes_ : ndarray (k,)
        The labels, sorted, as scikit-learn has them: the columns of `decision_function` and ``predict_proba``.
    order_ : ndarray (k,)
        The same labels in the order of the codes: the order that was given or that the labels have, else sorted. `potentials`,
        `probabilities` and a cost matrix without names have this order.
    certificate_ : Certificate or None
        How far the fit is from its optimum; None for an algorithm that minimises nothing, or whose optimum is not checked.
    features_ : FeatureMap or None
        The feature map, where scores at new rows need the training rows.
    lam_ : float
        lambda of the problem that was solved; where there is a certificate.
    remarks_ : tuple of str
        What is to be said about the fit, such as why it stopped.
    """

    # labels to learn from: noisy (those seen), sample (a small clean one alone), true, or partial (the clean sample and all other rows
    # unlabelled, code -1)
    view: ClassVar[str] = "noisy"
    sets: ClassVar[bool] = False  # whether rows may have several labels
    empty_sets: ClassVar[bool] = False  # whether such rows may have none
    certified: ClassVar[bool] = True  # whether a fit has a certificate
    takes_blocks: ClassVar[bool] = False  # whether it learns from rows that are read in blocks (`advcli.core.row_blocks`)
    has_costs: ClassVar[bool] = False  # whether it learns from costs of rows
    has_groups: ClassVar[bool] = False  # whether rows that form a sequence are one example

    certificate_: Certificate | None = None
    remarks_: tuple[str, ...] = ()
    of_sets_: bool = False  # whether it was fitted to several labels a row
    lam_: float
    n_iter_: int
    theta_: Any
    solution_: Any

    n_classes: Any
    random_state: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_clone__(self) -> Any:
        # an ensemble clones in its own process, and may fit in others, where nobody knows what it replaced by codes
        if self.n_classes is None and getattr(self, "order", None) is None:
            refuse_codes_of_text(lambda: self.counts_steps)
        return super().__sklearn_clone__()

    @property
    def calibrates(self) -> bool:
        """Whether its probabilities come from fits to parts of the rows, so that `fit` makes them and `fit_bound` does not."""
        return False

    # ---- fitting --------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None, start: Any = None) -> Self:
        """Fit to rows X (n, d), dense or sparse, and labels y (n,), or ones (n, k) at every row's labels where `sets`.

        ``sample_weight`` (n,) counts how often each row occurs. ``start`` is a learner fitted to the same rows at other hyper-parameters,
        from whose solution the fit may begin.
        """
        with self.named_in_errors():
            self.check_parameters()
            return self.fit_bound(self.bind(Rows(X, sample_weight), y), start)

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Put the name of the class before an error's message; not for a fit from a configuration, whose reader called no class."""
        try:
            yield
        except ConfigError as error:
            if self.n_classes is None and not str(error).startswith(type(self).__name__):
                error.args = (f"{type(self).__name__}: {error}",)
            raise
        except MemoryError as error:
            d, k = getattr(self, "n_features_in_", "these"), len(getattr(self, "classes_", ())) or "these"
            raise ConfigError(
                f"{type(self).__name__}: a fit to {d} columns and {k} classes needs more memory than there is ({error}): give fewer of them"
            ) from error

    @abstractmethod
    def bind(self, rows: Rows, y: Any) -> Bound:
        """Return rows and labels as fits take them; learners that differ in the strength of regularisation alone can all fit to it."""

    @abstractmethod
    def fit_bound(self, bound: Bound, start: Any = None) -> Self:
        """Fit to rows that `bind` has bound."""

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""
        return

    def _take(self, bound: Bound) -> None:
        """Set what a fit knows of its rows."""
        self.name_classes(bound.classes)
        for name, value in bound.facts.items():
            setattr(self, name, value)
        self.features_ = bound.features if bound.features.keeps_rows else None

    def name_classes(self, labels: NDArray[Any]) -> None:
        """Set `order_` to the labels (k,) in the order of the codes, and `classes_` to the same, sorted."""
        self.order_ = labels
        places = sorting(labels)
        self.classes_ = labels if places is None else labels[places]

    def by_class(self, A: Array) -> Array:
        """Return columns (n, k) in the order of the codes as scikit-learn reads them: in the order of `classes_`."""
        places = None if self.order_ is self.classes_ else sorting(self.order_)
        return A if places is None else np.ascontiguousarray(A[:, places])

    def _as_bound(self, features: FeatureMap, codes: Any, weights: Array | None, **own: Any) -> Bound:
        """Return features over checked rows, their codes and weights, with what the kind of learner adds, as fits take them."""
        facts = {name: getattr(self, name) for name in ("of_sets_", "n_features_in_", "feature_names_in_") if hasattr(self, name)}
        return Bound(self.order_, facts, features, codes, weights, own)

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Array | None]:
        """Set `classes_` and `order_`; return validated rows, codes (n,) or ones (n, k) at every row's labels, and weights."""
        # one column is labels in a column, as scikit-learn has it
        columns = (y if hasattr(y, "shape") else np.asarray(y)).shape[1:]
        self.of_sets_ = self.sets and len(columns) == 1 and columns[0] > 1
        if self.of_sets_:
            X = self._validated(X)
            codes: Any = self._encode_sets(y)
        else:
            order = own_order(y)
            X, y = self._validated(X, y)
            codes = self._in_order(self._encode(y, compact=isinstance(X, BlockRows)), order)
        if hasattr(X, "tocsr") and not X.has_canonical_format:
            X = X.copy()  # the caller's arrays stay as they are
            X.sum_duplicates()
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if (own_weight := getattr(self, "class_weight", None)) is not None:
            if self.of_sets_:
                raise ConfigError("class_weight weighs rows by their one label, and these rows have several: give fit a sample_weight")
            weights = weighted_by_class(own_weight, self.order_, codes, weights)
        return X, codes, weights

    @property
    def features_read_rows(self) -> bool:
        """Whether the features look at all numbers of the rows, and refuse any that is not finite, before a fit uses one."""
        return False

    @property
    def counts_steps(self) -> bool:
        """Whether the fit depends on the order of the classes, so that labels without one are refused."""
        return False

    def _in_order(self, codes: Labels, known: list[Any] | None) -> Labels:
        """Set `order_` to what the caller gave, or the labels have (`own_order`) where it matters; return the codes by it."""
        self.name_classes(self.classes_)
        if self.n_classes is not None:
            return codes  # the labels are codes
        order = getattr(self, "order", None)
        if order is None and self.counts_steps:
            order = known
            if known is None:
                refuse_unordered(self.classes_)
                if are_codes(self.classes_):
                    refuse_codes_of_text(lambda: True)
        if order is not None:
            labels, codes = in_order(self.classes_, codes, order)
            self.name_classes(labels)
        return codes

    def _validated(self, X: Any, *y: Any, **options: Any) -> Any:
        """Return rows (and labels) as scikit-learn validates them, once the parts of a sparse matrix are known to fit each other."""
        if isinstance(X, BlockRows):
            self._check_blocks(X, **options)
            return (X, labels_of(X, *y)) if y else X
        # what scikit-learn asks takes longer than a small fit
        if y and not options and _is_validated(X, y[0], not self.features_read_rows):
            self.n_features_in_ = X.shape[1]
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return X, *y
        if options == {"reset": False} and not y and _is_plain(X) and self._knows_columns(X):
            return X
        if sparse.issparse(X):
            X = checked_csr(X)
            if X.shape[1] > MOST_COLUMNS:
                raise DataError(
                    f"X has {X.shape[1]} columns, rows have {MOST_COLUMNS} at most: leave out empty columns, or hash them to fewer"
                )
        else:
            X = collected(X)
        validated = validate_data(self, X, *y, accept_sparse="csr", dtype=np.float64, order="C", **options)
        refuse_huge(validated[0] if y else validated, getattr(self, "feature_names_in_", None), "X")
        return validated

    def _knows_columns(self, X: Array) -> bool:
        """Return whether rows have as many columns as those of the fit, which have no names."""
        return X.shape[1] == getattr(self, "n_features_in_", None) and not hasattr(self, "feature_names_in_")

    def needs_memory(self) -> str | None:
        """Return the parameter that rows read in blocks (`advcli.core.row_blocks`) do not serve; None where the learner reads such rows."""
        return None if self.takes_blocks else f"loss={self.name}"

    def _check_blocks(self, X: BlockRows, reset: bool = True) -> None:
        """Look at all numbers of rows that are read in blocks, as scikit-learn and `refuse_huge` look at those of an array."""
        if (what := self.needs_memory()) is not None:
            raise IncompatibleError(what, "rows in memory", IN_BLOCKS)
        if X.constant:
            raise DataError("rows have a column of ones already; give them without, fit_intercept appends it")
        for part in [*X.parts()] or [slice(0, 0)]:
            raw = X.raw(part.start, part.stop)
            validate_data(self, raw, dtype=np.float64, order="C", reset=reset and part.start == 0)
            refuse_huge(raw, None, "X")

    def _encode(self, y: Any, compact: bool = False) -> Labels:
        """Set `classes_` and return the labels as codes; with ``n_classes`` they are codes already, -1 = unlabelled in the partial view.

        ``compact``: codes of four bytes, and no copy of the labels.
        """
        if y.dtype.kind not in "biuUS":  # one column of these is labels in any case, and the look at its values is longer than a small fit
            check_classification_targets(y)
        if self.n_classes is not None:
            check_n_classes(self.n_classes)
            if self.n_classes > len(y) + MOST_EMPTY:
                raise ConfigError(
                    f"n_classes={self.n_classes} is too many for {len(y)} rows: every class has weights and a score in every row, and "
                    f"at most {len(y)} classes occur; number those"
                )
            self.classes_ = np.arange(self.n_classes)
            codes = np.asarray(y)
            least = -1 if self.view == "partial" else 0
            if codes.dtype.kind not in "iu" or codes.min() < least or codes.max() >= self.n_classes:
                raise ConfigError(f"n_classes={self.n_classes} needs labels that are whole numbers {least}..{self.n_classes - 1}")
            return codes.astype(np.int32 if compact else np.intp)
        self.classes_, codes = coded_by_parts(y) if compact else np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only ({self.classes_[0]!r}); a classifier needs at least 2 classes")
        return codes.astype(np.int32 if compact else np.intp, copy=False)

    def _encode_sets(self, Y: Any) -> sparse.csr_array:
        """Set `classes_` and return ones where a row has a label, shape (n, k)."""
        Y = sparse.csr_array(checked_csr(Y, "y") if sparse.issparse(Y) else Y)
        Y.eliminate_zeros()
        Y.sum_duplicates()
        if not (Y.data == 1).all():
            raise ValueError("y of several columns must hold 0 and 1")
        if self.n_classes not in (None, Y.shape[1]):
            raise ConfigError(f"n_classes={self.n_classes}, but y has {Y.shape[1]} columns")
        empty = np.flatnonzero(np.diff(Y.indptr) == 0)
        if len(empty) and not self.empty_sets:
            raise ValueError(f"{len(empty)} rows of y have no label, the first is row {empty[0] + 1}; every row needs one")
        self.name_classes(np.arange(Y.shape[1]))
        return Y

    def _bind(self, X: Any) -> FeatureMap:
        """Return the feature map over the rows of X, with the constant appended when asked for."""
        return make_features(self.features, self._with_constant(X), self.n_mapped_, **self.map_options)

    def _with_constant(self, X: Any) -> Any:
        if not (self.appends_constant and feature_class(self.features).takes_constant):
            return X
        if isinstance(X, BlockRows):
            return X.with_constant()
        ones = np.ones((X.shape[0], 1))
        stack: Any = sparse.hstack  # its stubs do not know estimators' X
        return stack([X, ones], format="csr") if hasattr(X, "tocsr") else np.hstack([X, ones])

    def limit(self, **limits: Any) -> None:
        """Set those of ``tol``, ``max_passes`` and ``max_seconds`` that the algorithm has."""
        has = self.get_params(deep=False)
        self.set_params(**{name: value for name, value in limits.items() if name in has})

    # ---- what evaluation asks of a fit ----------------------------------------------------------------------------
    @property
    def metric_(self) -> str:
        """The metric that selection and tables use for this fit unless the protocol names one."""
        return "error"

    @property
    def solver_choice_(self) -> str:
        """What ``solver="auto"`` took for this fit and why, in one line; empty for a solver that was asked for by name."""
        return ""

    @property
    def counts_(self) -> dict[str, float]:
        """Counts that the algorithm reports of its fit by name, recorded as metrics."""
        return {}

    @property
    def stages_(self) -> dict[str, Certificate]:
        """Certificates of the problems that the fit solved after that of `certificate_`, by the name of the stage."""
        return {}

    @property
    def cost_matrix_(self) -> Array | None:
        """The matrix L (l, k) of the loss that was fitted; None where there is none."""
        return None

    @property
    def abstention_cost_(self) -> float | None:
        """What abstaining costs in the loss that was fitted; None where nothing abstains."""
        return None

    def mean_cost(self, X: Any, y: Any, weight: Array | None) -> float | None:
        """Return what the predictor's distribution costs on rows X (n, d) in expectation, weighed as in the objective.

        y are their codes (n,), or for learners with `has_costs` the costs (n, k) of rows that have their own. None without a game.
        """
        return None

    def worst_case(self, X: Any, y: Any, weight: Array | None) -> WorstCase | None:
        """Return what predictions on the rows of the fit cost at most, arguments as in `mean_cost`; None where nothing is guaranteed."""
        return None

    @property
    def predicts_classes_(self) -> bool:
        """Whether the first predictions are the classes, in their order."""
        return True

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the arrays that prove the gap of a fit to X (n, d), codes (n,) and weights, by the names of `advcli.results.proofs`; or
        none.

        Here the parameters ``theta_`` and the dual point of ``solution_``; ``rows_`` says what the rows of the fit became.
        """
        rows = getattr(self, "rows_", None)
        if rows is None:
            return {}
        own: Any = self
        theta, dual = own.theta_, own.solution_.R
        if self.features_ is not None and not self.features_.euclidean:
            merged = len(np.unique(rows[rows >= 0]))
            theta = np.concatenate([over_all_rows(theta[:merged], rows), theta[merged:]])
        dual = dual.toarray() if hasattr(dual, "toarray") else dual
        return {"theta": theta} | ({} if dual is None else {"r": np.where(rows[:, None] >= 0, dual[rows], 0.0)})

    def probabilities(self, X: Any) -> Array | None:
        """Return a distribution over the classes of `order_` for rows X (n, d), shape (n, k); None for a fit that has none."""
        return None

    # ---- prediction -----------------------------------------------------------------------------------------------
    @property
    def predictions_(self) -> NDArray[Any]:
        """Labels of all predictions by their codes: `order_`, then those that are no class."""
        check_is_fitted(self)
        return self.order_

    def look(self, rows: Any) -> View:
        """Return the view of new rows, `Rows` or X (n, d), for this fit and every other one to the same `Bound`."""
        if isinstance(rows, View):
            return rows
        check_is_fitted(self)
        rows = rows if isinstance(rows, Rows) else Rows(rows)
        return View(self._mapped(self._validated(rows.X, reset=False)), rows.groups)

    @abstractmethod
    def _mapped(self, X: Any) -> Any:
        """Return what `_scores` needs of validated rows."""

    @abstractmethod
    def _scores(self, mapped: Any) -> Array:
        """Return the scores of the classes at mapped rows, shape (n, k)."""

    def potentials(self, X: Any) -> Array:
        """Return the scores of the classes at rows X (n, d), shape (n, k), in the order of `order_`; `DataError` where they overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            F = self._scores(self.look(X).at)
        if not np.isfinite(F).all():
            row = int(np.flatnonzero(~np.isfinite(F).all(axis=1))[0])
            raise DataError(f"row {row + 1} has scores that are no finite numbers; its features, or the weights, are too large")
        return F

    def decision_function(self, X: Any) -> Array:
        """Return the potentials (n, k) in the order of `classes_`; for two classes their difference (n,), as scikit-learn has it."""
        F = self.by_class(self.potentials(X))
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F

    def margins(self, X: Any) -> Array:
        """Return how sure the prediction of rows X (n, d) is, shape (n,): the lead of the largest potential on the second."""
        return leads(self.potentials(X))

    def predict_codes(self, X: Any) -> Any:
        """Return predictions as codes: positions in `predictions_`; ties go to the first."""
        return np.argmax(self.potentials(X), axis=1).astype(np.intp)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels, shape (n,)."""
        codes = self.predict_codes(X)
        return self.predictions_[codes]


LearnerType = TypeVar("LearnerType", bound=type[Learner])
registry: Registry[type[Learner]] = Registry("loss", "loss", __package__)
register: Callable[..., Callable[[LearnerType], LearnerType]] = registry.register


def register_method(name: str, family: type[Learner], hidden: Collection[str] = (), **fixed: Any) -> type[Learner]:
    """Register one method of a family, a dataclass, under the name that configurations give it; return the class.

    The method has the family's parameters but for those that ``fixed`` settles, and those ``hidden``, which keep their defaults.
    """
    known: Any = family
    constants = {each.name: fixed.get(each.name, each.default) for each in fields(known) if each.name in {*hidden, *fixed}}
    made: Any = make_dataclass(
        f"{family.__name__}_{name}",
        [(parameter, Any, field(default=value, init=False)) for parameter, value in constants.items()],
        bases=(family,),
        namespace={"__doc__": f"`{family.__name__}` as loss={name}.", "__module__": family.__module__},
        kw_only=True,
        eq=False,
        repr=False,
    )
    given = [("" if not each.kw_only else f"{each.name}=") + f'"{fixed[each.name]}"' for each in fields(known) if each.name in fixed]
    made.in_python = classmethod(lambda cls: f"{family.__name__}({', '.join(given)})")
    setattr(sys.modules[family.__module__], made.__name__, made)  # where pickle looks for it
    return register(name)(made)
