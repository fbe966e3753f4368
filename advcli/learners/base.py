"""The interface of everything that learns: scikit-learn's methods in front of validated rows and labels as codes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ..core.arrays import dense, is_sparse
from ..core.errors import ConfigError, DataError, IncompatibleError
from ..core.hyper import STRENGTH
from ..core.registry import Registry, refuse_unknown_options
from ..core.row_blocks import BlockRows, in_blocks
from ..core.rows import validate_blocks, validated, with_constant
from ..core.stored_arrays import Entries
from ..core.typing import Array, Options
from ..data.labels.codes import coded, coded_sets, given_codes, order_of
from ..data.labels.order import in_order, labels_of, own_order, plain_labels, refuse_codes_of_text, sorting, weighted_by_class
from ..data.labels.soft import is_soft, one_label_a_row
from ..features import FeatureMap, feature_class, make_features
from ..features.merging import over_all_rows
from ..losses.base import leads
from ..problems.certificate import Certificate, WorstCase

IN_BLOCKS = "rows that are read in blocks serve a surrogate loss on features=linear with solver=auto: load them, X = numpy.load(FILE)"
"""Words for rows in blocks where they do not serve."""

State = tuple[dict[str, Any], dict[str, Any], Any]
"""Saved parts of a model: parameters that a file holds otherwise than they were given, fitted attributes by name, rows of the features."""

OF_PYTHON = ("order", "class_weight", "warm_start", "verbose")
"""Parameters that no configuration sets."""

USUAL = {
    **dict.fromkeys(("alpha", "lambda_", "reg_lambda", "regularization", "regularisation"), "lam"),
    **dict.fromkeys(("max_iter", "n_iter", "epochs"), "max_passes"),
    **dict.fromkeys(("cost", "cost_matrix"), "loss"),
    "c": "C",
    "probability": "calibrate",
    "seed": "random_state",
    "timeout": "max_seconds",
}
"""Parameters by the names that other packages give them."""

_OF_ROWS = ("order_", "classes_", "of_sets_", "n_features_in_", "feature_names_in_")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as `Learner.bind` and `Learner.look` take them; a learner leaves alone what it does not learn from."""

    X: Any  # (n, d), dense, sparse or a frame
    weight: Any = None  # (n,), how often each row occurs
    costs: Any = None  # (n, k), what each prediction costs on the row, for learners with `Learner.has_costs`
    groups: Any = None  # (n,), the sequence of the row, for learners with `Learner.has_groups`
    relations: Any = None  # (n,), the name of the word's relation to its head, for learners with `Learner.of_trees`


@dataclass(frozen=True, eq=False)
class Bound:
    """Rows and labels of a learner, validated and bound to a feature map once for all fits of a path."""

    facts: Mapping[str, Any]  # attributes of every fit: classes, number and names of the columns, the map where it keeps rows
    features: FeatureMap  # over the rows that are learned from
    codes: Any  # (n,) or csr_array (n, k), labels of these rows
    weights: Array | None  # (n,), how often they occur
    own: Mapping[str, Any]  # what the kind of learner adds

    @classmethod
    def of(cls, learner: Learner, features: FeatureMap, codes: Any, weights: Array | None, **own: Any) -> Bound:
        """Return the features of checked rows with their codes and weights, and the entries that the kind of learner adds."""
        known = vars(learner)
        facts = {name: known[name] for name in _OF_ROWS if name in known}
        return cls({**facts, "features_": features if features.keeps_rows else None}, features, codes, weights, own)

    def set_facts(self, learner: Learner) -> None:
        """Set what a fit of the learner knows of its rows."""
        for name, value in self.facts.items():
            setattr(learner, name, value)


@dataclass(frozen=True, eq=False)
class View:
    """New rows, validated and mapped once for all fits to one `Bound`; `potentials` and `predict_codes` take a view for X."""

    at: Any
    groups: Any = None  # (n,), the sequences of the rows, where the data have such


class Learner(ClassifierMixin, BaseEstimator):
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
        Remarks about the fit, such as why it stopped.
    """

    name: ClassVar[str]
    paths: ClassVar[tuple[str, ...]] = ()  # options that may name files, whose content a fit depends on
    hyper: ClassVar[tuple[str, ...]] = (STRENGTH,)  # what selection searches, beside the hyper-parameters of the features
    without_order: ClassVar[str] = "give it with dataset.order=[lowest,...,highest] or choose loss=zero_one"  # remedy where it needs one
    # labels to learn from: noisy (those seen), sample (a small clean one alone), true, or partial (the clean sample and all other rows
    # unlabelled, code -1)
    view: ClassVar[str] = "noisy"
    sets: ClassVar[bool] = False  # whether rows may have several labels
    empty_sets: ClassVar[bool] = False  # whether such rows may have none
    certified: ClassVar[bool] = True  # whether a fit has a certificate
    takes_blocks: ClassVar[bool] = False  # whether it learns from rows that are read in blocks (`advcli.core.row_blocks`)
    checks_rows: ClassVar[bool] = False  # whether it has feature maps that read all numbers check them before a fit uses one
    has_costs: ClassVar[bool] = False  # whether it learns from costs of rows
    has_groups: ClassVar[bool] = False  # whether rows that form a sequence are one example
    of_trees: ClassVar[bool] = False  # whether rows are words with tags, and their labels the heads of words
    searched_in: ClassVar[str] = ""  # the group of the options that ``loss.grid`` has values of; empty for none
    in_python: ClassVar[str] = ""  # how it is called in Python, where its own class is not

    takes_weights: bool = True  # whether fits take example weights
    weights_are_costs: bool = False  # whether they multiply costs instead of counting rows
    kept_by_pickle: bool = False  # whether its fits fit no model file

    certificate_: Certificate | None = None
    remarks_: tuple[str, ...] = ()
    solver_choice_: str = ""  # what ``solver="auto"`` took for this fit and why; empty for a solver that was asked for by name
    of_sets_: bool = False  # whether it was fitted to several labels a row
    predicts_classes_: bool = True  # whether the first predictions are the classes, in their order
    abstention_cost_: float | None = None  # what abstaining costs in the loss that was fitted; None where nothing abstains
    stages_: Mapping[str, Certificate] = MappingProxyType({})  # of the problems solved after the first, by name of the stage
    lam_: float
    n_iter_: int
    theta_: Any
    solution_: Any
    n_classes: Any
    random_state: Any

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Return an estimator that `__init__` has to set; `TypeError` that names the nearest parameter for an unknown one."""
        taken = getattr(cls, "__dataclass_fields__", ())
        if unknown := [name for name in parameters if name not in taken]:
            try:
                refuse_unknown_options(cls.__name__, cls.__init__, unknown, 1, USUAL)
            except ConfigError as error:
                raise TypeError(str(error)) from None
        return super().__new__(cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_clone__(self) -> Any:
        # an ensemble clones in its own process and may fit in others, which cannot know what it replaced by codes
        if self.n_classes is None and getattr(self, "order", None) is None:
            refuse_codes_of_text(lambda: self.counts_steps)
        return super().__sklearn_clone__()

    @property
    def calibrates(self) -> bool:
        """Whether its probabilities come from fits to parts of the rows, so that `fit` makes them and `fit_bound` does not."""
        return False

    # ---- from a configuration: ``loss``, ``features`` and ``solver`` are its groups of these names ------------------
    @classmethod
    @abstractmethod
    def options_of(cls, loss: Options, solver: Options, hyper: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that the groups set, and hyper-parameters of the learner alone, without strength and features."""

    @classmethod
    def needs(cls, loss: Options) -> frozenset[str]:
        """Return the facts of the data that the learner needs with these options."""
        return frozenset()

    @classmethod
    def filled(cls, loss: Options, facts: Options) -> dict[str, Any]:
        """Return the options with the facts that `needs` names instead of null."""
        return {**loss, **{name: facts[name] for name in cls.needs(loss) & facts.keys() if loss.get(name) is None}}

    @classmethod
    def has_probabilities(cls, loss: Options) -> bool:
        """Tell whether fits with these options have `probabilities`."""
        return False

    @classmethod
    def estimates(cls, loss: Options) -> bool:
        """Tell whether probabilities of fits with these options, without ``calibrate``, are estimates of chances."""
        return False

    @classmethod
    def predicts_sets(cls, loss: Options) -> bool:
        """Tell whether fits with these options to one label a row predict sets of classes."""
        return False

    @classmethod
    def names_features(cls, loss: Options, features: Options) -> bool:
        """Tell whether the features are part of the name of methods with these options."""
        return True

    @classmethod
    @abstractmethod
    def check(cls, loss: Options, features: Options, solver: Options, n_classes: int | None) -> None:
        """Refuse options without meaning before any work; ``n_classes`` is None while the data are unknown."""

    # ---- fitting --------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None, start: Any = None) -> Self:
        """Fit to rows X (n, d), dense or sparse, and labels y (n,), or ones (n, k) at every row's labels where `sets`.

        Elsewhere y (n, k) are distributions over the classes, or counts of votes, whose loss is the expected one (`one_label_a_row`).
        ``sample_weight`` (n,) counts how often each row occurs. ``start`` is a learner fitted to the same rows at other hyper-parameters,
        from whose solution the fit may begin.
        """
        with named_in_errors(self):
            self.check_parameters()
            return self.fit_bound(self.bind(*self.one_label_a_row(Rows(X, sample_weight), y)), start)

    @abstractmethod
    def bind(self, rows: Rows, y: Any) -> Bound:
        """Return rows and labels as fits take them; learners that differ in the strength of regularisation alone can all fit to it."""

    @abstractmethod
    def fit_bound(self, bound: Bound, start: Any = None) -> Self:
        """Fit to rows that `bind` has bound."""

    def one_label_a_row(self, rows: Rows, y: Any) -> tuple[Rows, Any]:
        """Return rows and labels as they are; of distributions y (n, k) rows of one label that have the same objective.

        `advcli.data.labels.soft.one_label_a_row` states it. Raises `DataError` for numbers that are no distributions, `IncompatibleError`
        where no such rows can stand for the rows.
        """
        if self.sets or not is_soft(y):
            return rows, y
        said, one = f"loss={getattr(self, 'name', type(self).__name__)}", "one label a row, and y has several columns"
        for refused, what, remedy in (
            (not self.takes_weights, said, "it takes no weights, by which a row counts for several classes"),
            (self.has_groups, said, "its rows form sequences: give the likeliest class of each"),
            (self.weights_are_costs, "loss.weight=column", "it multiplies costs by weights: give loss.weight as numbers"),
            (self.has_costs and rows.costs is not None, "costs", "both say what predictions cost: give one of them"),
            (isinstance(in_blocks(rows.X), BlockRows), "rows in blocks", "load them, X = numpy.load(FILE)"),
            (self.map_class.pairwise, f"features={self.mapped_by}", "give rows and a kernel such as features=rbf"),
        ):
            if refused:
                raise IncompatibleError(what, one, remedy)
        X, y, weight = one_label_a_row(rows.X, y, rows.weight, self.n_classes is not None)
        return replace(rows, X=X, weight=weight), y

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""

    def name_classes(self, labels: NDArray[Any]) -> None:
        """Set `order_` to the labels (k,) in the order of the codes, and `classes_` to the same, sorted."""
        self.order_ = labels
        places = sorting(labels)
        self.classes_ = labels if places is None else labels[places]

    def by_class(self, A: Array) -> Array:
        """Return columns (n, k) in the order of the codes as scikit-learn reads them: in the order of `classes_`."""
        places = None if self.order_ is self.classes_ else sorting(self.order_)
        return A if places is None else np.ascontiguousarray(A[:, places])

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Array | None]:
        """Set `classes_` and `order_`; return validated rows, codes (n,) or ones (n, k) at every row's labels, and weights."""
        # one column is labels in a column, as scikit-learn has it
        columns = (y if hasattr(y, "shape") else np.asarray(y)).shape[1:]
        self.of_sets_ = self.sets and len(columns) == 1 and columns[0] > 1
        if self.of_sets_:
            X = self._validated(X)
            codes: Any = coded_sets(y, self.n_classes, self.empty_sets)
            self.name_classes(np.arange(codes.shape[1]))
        else:
            own = own_order(y)
            X, y = self._validated(X, plain_labels(y))
            codes = self._coded(y, own, isinstance(X, BlockRows))
        if is_sparse(X) and not X.has_canonical_format:
            X = X.copy()  # the caller's arrays stay as they are
            X.sum_duplicates()
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if (by_class := getattr(self, "class_weight", None)) is not None:
            if self.of_sets_:
                raise ConfigError("class_weight weighs rows by their one label, and these rows have several: give fit a sample_weight")
            weights = weighted_by_class(by_class, self.order_, codes, weights)
        return X, codes, weights

    @property
    def counts_steps(self) -> bool:
        """Whether the fit depends on the order of the classes, so that labels without one are refused."""
        return False

    def _coded(self, y: Any, own: list[Any] | None, compact: bool) -> Any:
        """Set `order_` to what the caller gave, or the labels have (``own``) where it matters; return the codes by it."""
        if self.n_classes is not None:
            codes = given_codes(y, self.n_classes, self.view == "partial", compact)
            self.order_ = self.classes_ = np.arange(self.n_classes)
            return codes
        classes, codes = coded(y, compact)
        order = getattr(self, "order", None)
        if order is None and self.counts_steps:
            order = order_of(classes, own)
        if order is None:
            self.order_ = self.classes_ = classes
            return codes
        labels, codes = in_order(classes, codes, order)
        self.name_classes(labels)
        return codes

    def _validated(self, X: Any, *y: Any, reset: bool = True) -> Any:
        """Return rows (and labels) as scikit-learn validates them; `IncompatibleError` for rows in blocks where they do not serve."""
        if isinstance(X, BlockRows):
            if (what := self.needs_memory()) is not None:
                raise IncompatibleError(what, "rows in memory", IN_BLOCKS)
            validate_blocks(self, X, reset)
            return (X, labels_of(X, *y)) if y else X
        read = not (y and self.checks_rows and self.map_class.checks_rows)
        return validated(self, X, *y, read=read, reset=reset)

    def needs_memory(self) -> str | None:
        """Return the parameter that rows read in blocks (`advcli.core.row_blocks`) do not serve; None where the learner reads such rows."""
        return None if self.takes_blocks else f"loss={self.name}"

    def _bind(self, X: Any) -> FeatureMap:
        """Return the feature map over the rows of X."""
        return make_features(self.mapped_by, self._with_constant(X), self.n_mapped_, **self.map_options)

    def _with_constant(self, X: Any) -> Any:
        """Return rows as the feature map takes them: with the constant appended when asked for."""
        return with_constant(X) if self.appends_constant and self.map_class.takes_constant else X

    # ---- what evaluation asks of a fit ----------------------------------------------------------------------------
    @property
    def metric_(self) -> str:
        """The metric that selection and tables use for this fit unless the protocol names one."""
        return "error"

    @property
    def counts_(self) -> dict[str, float]:
        """Counts that the algorithm reports of its fit by name, recorded as metrics."""
        return {}

    @property
    def cost_matrix_(self) -> Array | None:
        """The matrix L (l, k) of the loss that was fitted; None where there is none."""
        return None

    def mean_cost(self, X: Any, y: Any, weight: Array | None) -> float | None:
        """Return what the predictor's distribution costs on rows X (n, d) in expectation, weighed as in the objective.

        y are their codes (n,), or for learners with `has_costs` the costs (n, k) of rows that have their own. None without a game.
        """
        return None

    def worst_case(self, X: Any, y: Any, weight: Array | None) -> WorstCase | None:
        """Return what predictions on the rows of the fit cost at most, arguments as in `mean_cost`; None where nothing is guaranteed."""
        return None

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the arrays that prove the gap of a fit to X (n, d), codes (n,) and weights, by the names of `advcli.results.proofs`; or
        none.

        Here the parameters ``theta_`` and the dual point of ``solution_``; ``rows_`` says what the rows of the fit became.
        """
        rows = getattr(self, "rows_", None)
        if rows is None:
            return {}
        theta, dual = self.theta_, dense(self.solution_.R)
        if self.features_ is not None and not self.features_.euclidean:
            merged = len(np.unique(rows[rows >= 0]))
            theta = np.concatenate([over_all_rows(theta[:merged], rows), theta[merged:]])
        return {"theta": theta} | ({} if dual is None else {"r": np.where(rows[:, None] >= 0, dual[rows], 0.0)})

    def relations_at(self, X: Any, heads: Any) -> NDArray[Any] | None:
        """Return the names of the relations of words X (n, 2) to their heads (n,); None for a learner without relations."""
        return None

    def probabilities(self, X: Any) -> Array | None:
        """Return a distribution over the classes of `order_` for rows X (n, d), shape (n, k); None for a fit that has none."""
        return None

    # ---- prediction -----------------------------------------------------------------------------------------------
    @property
    def predictions_(self) -> NDArray[Any]:
        """Labels of all predictions by their codes: `order_`, then the predictions beyond the classes."""
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
        """Return predictions as codes: positions in `predictions_`; ties go to the first; for sets of labels see `predict`."""
        return np.argmax(self.potentials(X), axis=1).astype(np.intp)

    def predict(self, X: Any) -> Any:
        """Return the predicted labels, shape (n,); for sets of labels a csr_array (n, k) with a one at each predicted label."""
        codes = self.predict_codes(X)
        return codes if self.of_sets_ else self.predictions_[codes]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right predictions on rows X (n, d) of labels y (n,); of distributions y (n, k) the expected one."""
        rows, y = self.one_label_a_row(Rows(X, sample_weight), y)
        return float(super().score(rows.X, y, rows.weight))

    # ---- saving (`advcli.models`) ---------------------------------------------------------------------------------
    def plain_params(self) -> dict[str, Any]:
        """Return the parameters as a file holds them: an alias is stored as the parameter that it sets."""
        return self.get_params(deep=False)

    @abstractmethod
    def saved(self) -> State:
        """Return what a saved model holds."""

    @abstractmethod
    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model; `classes_`, `features_` and a certificate are there already.

        A learner takes its saved arrays by the shape and the range that they must have (`advcli.core.stored_arrays.Entries.array`), because
        a file may hold anything; entries that the learner does not take are refused.
        """

    @property
    def appends_constant(self) -> bool:
        """Whether a constant 1 is appended to the rows of feature maps that take one."""
        raise NotImplementedError

    @property
    def n_columns_(self) -> int:
        """Columns of the rows that the feature map is bound to: the features, and the constant where it is appended."""
        return self.n_features_in_ + bool(self.appends_constant and self.map_class.takes_constant)

    @property
    def n_mapped_(self) -> int:
        """Columns of scores that the feature map gives: one for each class, unless the scores of classes are made of others."""
        return len(self.classes_)

    @property
    def mapped_by(self) -> str:
        """Name of the feature map."""
        return self.features

    @property
    def map_class(self) -> type[FeatureMap]:
        """Class of the feature map."""
        return feature_class(self.mapped_by)

    @property
    def map_options(self) -> dict[str, Any]:
        """Options of the feature map."""
        return dict(self.features_options or {})


@contextmanager
def named_in_errors(learner: Learner) -> Iterator[None]:
    """Put the name of a learner's class before an error's message; not for a fit from a configuration, whose reader called no class."""
    said = type(learner).__name__
    try:
        yield
    except ConfigError as error:
        if learner.n_classes is None and not str(error).startswith(said):
            error.args = (f"{said}: {error}",)
        raise
    except MemoryError as error:
        d, k = getattr(learner, "n_features_in_", "these"), len(getattr(learner, "classes_", ())) or "these"
        raise ConfigError(
            f"{said}: a fit to {d} columns and {k} classes needs more memory than there is ({error}): give fewer of them"
        ) from error


LearnerType = TypeVar("LearnerType", bound=type[Learner])
registry: Registry[type[Learner]] = Registry("loss", "loss", __package__)
register: Callable[..., Callable[[LearnerType], LearnerType]] = registry.register
