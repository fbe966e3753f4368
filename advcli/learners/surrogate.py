"""Surrogates behind an oracle: one estimator for every loss, feature map and solver, certified.

The objective is lambda/2 |theta|^2 + 1/n sum_i S(f_i, y_i)  with lambda = 1/(n C); see `advcli.problems.risk`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..core.errors import ConfigError, DataError, IncompatibleError, ModelError
from ..core.row_blocks import BlockRows, in_blocks
from ..core.stored_arrays import Entries
from ..core.typing import Array, Labels, Options
from ..data.labels.order import codes_of
from ..features import FeatureMap, feature_class, make_features
from ..features.merging import merge_rows
from ..losses import AdversarialLoss, Loss, loss_class, make_loss, registry
from ..losses import matrices as costs
from ..losses.abstain import AbstainLoss
from ..losses.base import RULES
from ..losses.matrices import ABSTAIN
from ..problems.certificate import Judged, WorstCase, settle, warn_unless_converged
from ..problems.risk import Problem, Solution
from ..problems.row_blocks import BlockProblem
from ..solvers import Limits, make_solver, solvers_for_a_box
from ..solvers.base import refuse_answer
from .base import Bound
from .base import registry as learners
from .calibrated import Calibrated, warn_scorers
from .options import (
    OF_THE_FIT,
    mass_of,
    one_of,
    own_options,
    parameters_of,
    refuse_huge_mass,
    refuse_no_limit,
    refuse_no_options,
    refuse_not_positive,
    seed_of,
)
from .refitting import Minimiser


def _loss_type(loss: Any) -> type[Loss] | None:
    """Return the class behind the parameter ``loss``; None for a cost matrix, or a function that makes one."""
    if isinstance(loss, partial):
        return _loss_type(loss.func)
    if isinstance(loss, str):
        return loss_class(loss)
    if isinstance(loss, Loss):
        return type(loss)
    return loss if isinstance(loss, type) and issubclass(loss, Loss) else None


def _said(loss: Any) -> str:
    """Return the parameter ``loss`` as messages name it."""
    found = _loss_type(loss)
    if found is None and not callable(loss) and not isinstance(loss, str):
        return "a cost matrix"
    if isinstance(loss, str):
        return loss
    return str(getattr(found or loss, "__name__", type(loss).__name__))


def _is_adversarial(estimator: SurrogateClassifier) -> bool:
    given = estimator.given_loss
    found = _loss_type(given)
    if found is None and callable(given):
        found = _loss_type(getattr(estimator, "loss_", None))  # what the function made
    if (found is None or issubclass(found, AdversarialLoss)) and estimator.decides:
        return True
    raise AttributeError(f"loss={_said(given)} has no predictor's distribution; the adversarial losses have")


def _has_proba(estimator: SurrogateClassifier) -> bool:
    """Probabilities over the classes whose largest is the prediction: what scikit-learn means by predict_proba."""
    if isinstance(estimator, Calibrated) and estimator.calibrate is not None:
        return True
    given = estimator.given_loss
    found = _loss_type(given)
    keywords = given.keywords if isinstance(given, partial) else {}
    if (
        _is_adversarial(estimator)
        and estimator.decides
        and found is not None
        and found.agrees({**keywords, **(estimator.loss_options or {})})
    ):
        return True
    said = repr(given) if isinstance(given, str) else _said(given)
    raise AttributeError(f"loss={said} does not predict the likeliest class of its distribution: use predictor_distribution")


LIMITS = ("name", "description", "tol", "search_tol", "search_solver", "search_passes", "max_passes", "max_seconds")


@dataclass(kw_only=True, eq=False, repr=False)
class SurrogateClassifier(Minimiser):
    """A linear model that minimises a convex surrogate to a certified relative duality gap.

    Parameters
    ----------
    loss : str, array (l, k), frame, class, callable or Loss
        Name of the surrogate: ``"zero_one"``, ``"absolute"``, ``"abstain"``, ``"ww"``, ... (`advcli.losses.loss_names`), or a cost
        matrix, rows = predictions, columns = classes, both in the order of `order_` (sorted, unless ``order`` says another): the
        adversarial loss of that matrix. A frame (pandas, or polars with a first column of text) whose rows and columns are named by the
        classes is put into that order; rows of other names are predictions that are no class. Where no row is named by a class, all are
        predictions of their own, also where they are as many as the classes. Or a class of losses
        (`advcli.losses.Loss`), registered or not, or what makes one from the number of classes and ``loss_options``, such as
        ``functools.partial(MyLoss, width=2)``; or a loss that was made for as many classes as the labels have.
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
        Labels of the predictions that are no class (abstaining; rows of a matrix beyond the classes, or all rows where they are not the
        classes). None: the names of these rows in a frame or file, else ``advcli.ABSTAIN``, the text ``"abstain"``, for one beyond the
        classes and ``"prediction K"`` for others. Among labels that
        are no text `predict` then returns an array of objects, so that no class can be mistaken for it.
    order : sequence or None
        The labels from the lowest to the highest, those that do not occur too: `order_` then has this order. None: sorted; where the loss
        or the features count steps between classes (``"absolute"``, ``"threshold"``, ...) the order of an ordered pandas Categorical
        or a polars Enum, and text without an order is refused.
    class_weight : dict, "balanced" or None
        What every row of a class weighs, by label (1 where it is left out), beside its ``sample_weight``; ``"balanced"``: n / (classes x
        rows of the class), so that all classes weigh the same.
    warm_start : bool
        Begin at the solution of the last fit where the rows, their labels and weights are the same; also `fit`'s ``start``.
    verbose : int
        1: a line about each fit.
    random_state : int
        Seed of the order in which examples are visited.
    rule : str or None
        How predictions follow from the scores of an adversarial loss, as in `predict`; None: the loss's own.

    Attributes
    ----------
    classes_, order_ : ndarray (k,)
        The labels, sorted: the columns of `decision_function` and `predict_proba`, the rows of ``coef_``. And as ``order`` has them: the
        rows and columns of a cost matrix without names, the columns of ``theta_``, `potentials` and the distributions of the game.
    coef_, intercept_ : ndarray (k, d), (k,)
        Of linear features: the scores are ``X coef_' + intercept_``; for two classes (1, d) and (1,), as `decision_function` has it. Of
        ``features="threshold"`` the direction (1, d).
    thresholds_ : ndarray (k - 1,)
        Of ``features="threshold"``: what ``coef_ x`` is compared with.
    theta_ : ndarray
        Parameters; (d, k) for linear features, the last row belongs to the constant when ``fit_intercept``.
    certificate_ : Certificate
        Primal, dual, gap, relative_gap, passes, converged, status, solver, seconds of this fit.
    loss_ : Loss
        The surrogate at the number of classes seen.
    rows_ : ndarray (n,)
        Which row of the problem that was solved each row of `fit` became: equal rows are one there, those of weight 0 none (-1). None
        where rows were read in blocks, which are all rows of the problem.
    solver_choice_ : str
        What ``solver="auto"`` took and why.
    """

    loss: Any = field(default="zero_one", kw_only=False)
    C: float = 1.0
    lam: float | None = None
    tol: float = 1e-3
    fit_intercept: bool = True
    solver: str = "auto"
    features: str = "linear"
    max_passes: float = 100_000
    max_seconds: float = float("inf")
    loss_options: Mapping[str, Any] | None = None
    solver_options: Mapping[str, Any] | None = None
    features_options: Mapping[str, Any] | None = None
    n_classes: int | None = None
    extra_labels: Any = None
    order: Any = None
    class_weight: Any = None
    warm_start: bool = False
    verbose: int = 0
    random_state: int = 0
    rule: str | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.features, str) and feature_class(self.features).pairwise
        # one direction cannot separate classes that have no order
        tags.classifier_tags.poor_score = isinstance(self.features, str) and feature_class(self.features).needs_order
        return tags

    # ---- from a configuration -------------------------------------------------------------------------------------
    @classmethod
    def needs(cls, loss: Options) -> frozenset[str]:
        """Return what the loss needs to know of the data."""
        return loss_class(loss["name"]).needs(own_options(loss, OF_THE_FIT))

    @classmethod
    def filled(cls, loss: Options, facts: Options) -> dict[str, Any]:
        """Return the loss's options with what it needs of the data filled in; `IncompatibleError` where it lacks a label graph."""
        own = {**loss, **loss_class(loss["name"]).filled(own_options(loss, OF_THE_FIT), facts)}
        # a loss that weighs another one has that one's options under options
        if "hierarchy" in cls.needs(loss) and all(each.get("hierarchy") is None for each in (own, own.get("options") or {})):
            raise IncompatibleError(f"loss={loss['name']}", "a hierarchy over the labels", "give dataset.hierarchy=EDGES.csv")
        return own

    @classmethod
    def searched(cls, loss: Options, features: Options) -> tuple[str, ...]:
        """Return the regularisation or tolerance and the hyper-parameters of the feature map."""
        return feature_class(features["name"]).searched(own_options(features))

    @classmethod
    def calibrated(cls, loss: Options) -> type[SurrogateClassifier]:
        """Return `AdversarialClassifier`; learners that do more with their potentials have none."""
        if cls is not SurrogateClassifier:
            super().calibrated(loss)  # refuses
        return AdversarialClassifier

    @classmethod
    def has_probabilities(cls, loss: Options) -> bool:
        """Tell whether the loss is a game whose predictions are the classes; a matrix tells it once the classes are known."""
        if not issubclass(loss_class(loss["name"]), AdversarialLoss):
            return False
        try:
            made: Any = make_loss(loss["name"], 3, **own_options(loss, OF_THE_FIT))
            return bool(made.predicts_classes and made.n_predictions == 3)
        except (ConfigError, DataError):
            return True

    @classmethod
    def check(cls, loss: Options, features: Options, solver: Options, ordered: bool, n_classes: int | None) -> None:
        """Refuse unknown options of a loss, feature map or solver, and labels without an order where the loss or the features need one."""
        make_solver(solver["name"], **own_options(solver, LIMITS))
        mapped, requires = feature_class(features["name"]), "order" in cls.needs(loss)
        if (requires or mapped.needs_order) and not ordered:
            raise IncompatibleError(
                f"loss={loss['name']}" if requires else f"features={features['name']}",
                "labels with an order",
                "give it with dataset.order=[lowest,...,highest] or choose loss=zero_one",
            )
        if n_classes is not None:
            made: Any = make_loss(loss["name"], n_classes, **own_options(loss, OF_THE_FIT))
            if loss.get("rule") is not None:
                made.predict(np.zeros((1, n_classes)), loss["rule"])  # refuses a rule that the loss does not have
        make_features(features["name"], np.zeros((1, 1)), 2, **own_options(features))

    @classmethod
    def build(
        cls, loss: Options, features: Options, solver: Options, hyper: Mapping[str, float], n_classes: int, seed: int, tol: float
    ) -> SurrogateClassifier:
        """Return an unfitted estimator at these hyper-parameters."""
        chosen = {"solver": solver["name"], "solver_options": own_options(solver, LIMITS) or None}
        return cls(**cls._from_options(loss), **chosen, **parameters_of(features, solver, hyper, n_classes, seed, tol))

    @classmethod
    def _from_options(cls, loss: Options) -> dict[str, Any]:
        """Return the parameters that the group ``loss`` sets."""
        return {"loss": loss["name"], "loss_options": own_options(loss, OF_THE_FIT) or None, "rule": loss.get("rule")}

    @property
    def decides(self) -> bool:
        """Whether the loss alone makes the predictions."""
        return True

    @property
    def counts_steps(self) -> bool:
        """Whether the loss or the features count steps between classes."""
        given, options = self.given_loss, self.loss_options or {}
        if isinstance(given, partial):
            options = {**given.keywords, **options}
        found = _loss_type(given)
        return feature_class(self.features).needs_order or (found is not None and "order" in found.needs(options))

    @property
    def given_loss(self) -> Any:
        """What the surrogate is made from: the parameter ``loss``, unless other parameters say it."""
        return self.loss

    # ---- fitting --------------------------------------------------------------------------------------------------
    takes_blocks = True

    def needs_memory(self) -> str | None:
        """Return the parameter that needs rows in memory: a learner beyond its loss, features that are not linear, a box."""
        if (what := super().needs_memory()) is not None:
            return what
        if not feature_class(self.features).multiclass_linear or feature_class(self.features).keeps_rows:
            return f"features={self.features}"
        if self.map_options.get("moments", "ball") != "ball":
            return "features.moments=box"
        return None

    @property
    def features_read_rows(self) -> bool:
        """Whether `bind` has the features check their rows."""
        return feature_class(self.features).checks_rows

    def check_parameters(self) -> None:
        """Refuse a loss, strength, tolerance or limit that no data can mend."""
        super().check_parameters()
        self._refuse_learner()
        _loss_type(self.given_loss)
        refuse_no_options(loss_options=self.loss_options, solver_options=self.solver_options, features_options=self.features_options)
        refuse_not_positive(C=self.C, tol=self.tol, lam=self.lam)
        refuse_no_limit(max_passes=self.max_passes, max_seconds=self.max_seconds)
        if self.rule is not None:
            one_of("rule", self.rule, RULES)
        if not isinstance(self.fit_intercept, (bool, np.bool_, int)):
            raise ConfigError(f"fit_intercept={self.fit_intercept!r} must be true or false")

    def _refuse_learner(self) -> None:
        """Refuse the name of an algorithm of its own in the place of a surrogate loss, and no loss at all."""
        given = self.given_loss
        if given is None:
            raise ConfigError(f"loss=None is no loss: choose one of {', '.join(registry)}, or give a cost matrix")
        if isinstance(given, str) and given not in registry and given in learners:
            raise ConfigError(f"loss={given} is no surrogate loss but a learner of its own: use {learners.get(given).in_python()}")

    def bind(self, X: Any, y: Any, sample_weight: Any = None) -> Bound:
        """Return rows and labels as fits take them: equal rows of equal label merged, in one canonical order.

        With ``loss="weighted"`` and weight ``"column"``, ``sample_weight`` multiplies the rows' loss matrices instead of counting them.
        """
        if self.needs_memory() is None and make_solver(self.solver, **(self.solver_options or {})).takes_blocks:
            X = in_blocks(X)
        X, codes, weights = self._checked(X, y, sample_weight)
        loss = self._make_loss(len(self.classes_))
        cost = loss.cost_weights(codes, weights if loss.example_weights else None)
        if loss.example_weights:
            weights = None
        total = mass_of(len(codes), weights)
        rows = None if isinstance(X, BlockRows) else np.arange(len(codes))
        if rows is not None and not feature_class(self.features).pairwise:
            X, codes, weights, cost, rows = merge_rows(X, codes, weights, cost)
        features = self._bind(X)
        features.check_rows()
        own = {"loss": loss, "cost": cost, "rows": rows, "total": total, "tolerance": features.tolerance(codes, weights)}
        return Bound(self.order_, self._facts(), False, features, codes, weights, own)

    def fit_bound(self, bound: Bound, start: SurrogateClassifier | None = None) -> Self:
        """Solve the problem of bound rows; with ``start``, a fit to the same rows at another C, from its solution."""
        self.check_parameters()
        self._take(bound)
        self.loss_, self.rows_, total, tolerance = (bound.own[name] for name in ("loss", "rows", "total", "tolerance"))
        self._with_extra_labels(self.loss_.n_predictions)  # refuses a class that is called like what is no class
        refuse_huge_mass(total, self.C)
        lam = self.lam if self.lam is not None else 1.0 / (self.C * total)
        if tolerance is not None:
            lam = 0.0
        if start is not None and start.features_ is not bound.features:
            bound.features.adopt(start.features_)
        problem, found = self._minimise(bound, float(lam), None if start is None else start.solution_)
        self.solution_: Solution
        self.solution_, self.certificate_ = settle(problem, found, self.tol)
        self.theta_ = self.solution_.theta
        self.lam_ = float(lam)
        self.n_iter_ = max(1, int(np.ceil(found.passes)))
        warn_unless_converged(f"loss={_said(self.given_loss)}, lambda={lam:.3g}", self.certificate_, self.tol)
        return self

    def _minimise(self, bound: Bound, lam: float, start: Solution | None) -> tuple[Judged, Solution]:
        """Return the problem of bound rows and what a solver found."""
        tolerance = bound.own["tolerance"]
        in_parts = isinstance(bound.features.X, BlockRows)
        problem = (BlockProblem if in_parts else Problem)(
            bound.features, self.loss_.core, bound.codes, lam, bound.weights, bound.own["cost"], tolerance
        )
        solver = make_solver(self.solver, **(self.solver_options or {}))
        lacks, remedy = solver.lacks(problem), "choose solver=auto"
        if lacks is None and tolerance is not None and not solver.takes_box:
            lacks = "moments in a ball (features.moments=ball)"
            remedy = f"for a box choose a solver that takes one: {', '.join(solvers_for_a_box())}"
        if lacks is None and in_parts and not solver.takes_blocks:
            lacks = "rows in memory"
        if lacks is not None:
            raise IncompatibleError(f"solver={self.solver}", lacks, remedy)
        limits = Limits(self.tol, self.max_passes, self.max_seconds)
        found = solver.solve(problem, limits, start, seed=seed_of(self.random_state))
        refuse_answer(solver, problem, found)
        return problem, found

    def _make_loss(self, k: int) -> Loss:
        given: Any = self.loss
        options = dict(self.loss_options or {})
        if isinstance(given, Loss):
            if given.n_classes != k or options:
                raise ConfigError(
                    f"loss={_said(given)} was made for {given.n_classes} classes, the labels have {k}; give its class instead"
                )
            return given
        if not isinstance(given, str) and not callable(given):
            given = costs.from_frame(given, self.order_.tolist(), "loss") if costs.is_frame(given) else given
            given, options = "general", {"matrix": given, **options}
        chosen = _loss_type(given)
        if isinstance(given, partial) and chosen is not None:
            options = {**given.keywords, **options}
            given = chosen
        if chosen is not None:
            options = chosen.filled(options, {"classes": [costs.name_of(label) for label in self.order_.tolist()]})
        if isinstance(given, str):
            return make_loss(given, k, **options)
        try:
            made = given(k, **options)
        except TypeError as error:
            raise ConfigError(f"loss={_said(given)}: {error}") from error
        if not isinstance(made, Loss):
            raise ConfigError(
                f"loss={_said(given)} made a {type(made).__name__}; give what makes an advcli.losses.Loss from the classes' number"
            )
        return made

    @property
    def solver_choice_(self) -> str:
        """What ``solver="auto"`` took for this fit and why, in one line; empty for a solver that was asked for by name."""
        check_is_fitted(self)
        return str(self.solution_.memory.get("choice", ""))

    @property
    def predictions_(self) -> NDArray[Any]:
        """Labels of all predictions: `order_`, then those that are no class; where rows of a matrix are not the classes theirs alone."""
        check_is_fitted(self)
        return self._with_extra_labels(self.loss_.n_predictions)

    @property
    def predicts_classes_(self) -> bool:
        """Whether the first predictions are the classes, in their order."""
        return not isinstance(self.loss_, AdversarialLoss) or not self.decides or self.loss_.predicts_classes

    def _with_extra_labels(self, n_predictions: int) -> NDArray[Any]:
        """Return the labels of ``n_predictions`` predictions."""
        first, named = len(self.classes_) if self.predicts_classes_ else 0, self.loss_.row_names
        extra = n_predictions - first
        if extra == 0:
            return self.order_
        if self.extra_labels is not None:
            labels = np.asarray(self.extra_labels)
            if labels.shape != (extra,):
                raise ConfigError(f"extra_labels needs {extra} labels, got {len(labels)}")
        elif named is not None:
            labels = np.array(named[first:])
        else:
            labels = np.array([ABSTAIN] if extra == 1 and first else [f"prediction {i}" for i in range(first, first + extra)])
        taken = [label for label in labels.tolist() if label in self.order_.tolist()]
        if taken:
            raise ConfigError(f"{taken[0]!r} is a class and cannot say that none is predicted: give extra_labels=[LABEL] with other labels")
        if not first:
            return labels
        if labels.dtype.kind != self.order_.dtype.kind:  # text among numbers
            found = np.empty(n_predictions, dtype=object)
            found[:] = [*self.order_.tolist(), *labels.tolist()]
            return found
        return np.concatenate([self.order_, labels])

    @property
    def appends_constant(self) -> bool:
        """Whether an intercept was asked for."""
        return self.fit_intercept

    # ---- the parameters in scikit-learn's shapes --------------------------------------------------------------------
    def _weights(self) -> Array:
        """Return the weights of linear scores (d, k) or (d, 1), the last row the constant's; `AttributeError` for other features."""
        theta = self.by_class(self._linear_theta())
        return theta[:, 1:] - theta[:, :1] if theta.shape[1] == 2 else theta

    @property
    def coef_(self) -> Array:
        """Weights of the columns of X by `classes_`: (k, d), (1, d) for two classes; the direction (1, d) of thresholds."""
        if feature_class(self.features).name == "threshold" and hasattr(self, "theta_"):
            return np.array(self.theta_[None, : self.n_features_in_])
        return np.array(self._weights()[: self.n_features_in_].T)

    @property
    def intercept_(self) -> Array:
        """Weights of the constant: (k,), (1,) for two classes; 0 without an intercept."""
        W = self._weights()
        return np.array(W[-1]) if self.fit_intercept else np.zeros(W.shape[1])

    @property
    def thresholds_(self) -> Array:
        """Thresholds eta (k - 1,) of ``features="threshold"``."""
        check_is_fitted(self)
        if feature_class(self.features).name != "threshold":
            raise AttributeError(f"features={self.features} has no thresholds")
        return np.array(self.theta_[self.n_features_in_ :])

    def _objective(self, X: Any, codes: Labels, weights: Array | None) -> tuple[float, float]:
        own = weights if self.loss_.example_weights else None
        return self._terms_of(self._mapped(X), codes, None if self.loss_.example_weights else weights, self.loss_.cost_weights(codes, own))

    def _terms_of(self, mapped: FeatureMap, codes: Labels, weights: Array | None, cost: Array | None) -> tuple[float, float]:
        kind = BlockProblem if isinstance(mapped.X, BlockRows) else Problem
        problem = kind(mapped, self.loss_.core, codes, self.lam_, weights, cost, mapped.tolerance(codes, weights))
        if mapped.euclidean or self.features_ is None:
            penalty = problem.penalty(self.theta_)
        else:  # the norm is that of the training rows' kernel
            penalty = 0.5 * self.lam_ * self.features_.square_norm(self.theta_)
        return penalty, problem.empirical_at(self.theta_)

    # ---- what evaluation asks of a fit ----------------------------------------------------------------------------
    @property
    def remarks_(self) -> tuple[str, ...]:  # type: ignore[override]
        """What is to be said about the costs of the fit."""
        return (costs.NEGATIVE,) if self.loss_.negative_costs else ()

    @property
    def metric_(self) -> str:
        """The loss's own metric."""
        return self.loss_.metric

    @property
    def counts_(self) -> dict[str, float]:
        """The counts ``n_...`` that the solver left in `Solution.memory`."""
        return {name: float(value) for name, value in self.solution_.memory.items() if name.startswith("n_")}

    @property
    def cost_matrix_(self) -> Array | None:
        """The loss matrix (l, k) of an adversarial loss."""
        return self.loss_.matrix

    @property
    def abstention_cost_(self) -> float | None:
        """The alpha of the loss, or of the one that it weighs."""
        return self.loss_.alpha

    def mean_cost(self, X: Any, y: NDArray[np.intp], weight: Array | None) -> float | None:
        """Return the mean expected loss for adversarial losses; weights count as in the objective, or the game value would be no bound."""
        loss = self.loss_
        if not isinstance(loss, AdversarialLoss):
            return None
        costs = loss.expected_cost(self.potentials(X), y, weight if loss.example_weights else None)
        if weight is None or loss.example_weights:
            return float(costs.mean())
        return float(weight @ costs / weight.sum())

    def worst_case(self, X: Any, y: NDArray[np.intp], weight: Array | None) -> WorstCase | None:
        """Return what the guarantee says of the predictions on the rows of the fit (`advcli.problems.certificate.WorstCase`)."""
        loss, certificate = self.loss_, self.certificate_
        if certificate is None or not isinstance(loss, AdversarialLoss) or not self.decides:
            return None
        example = weight if loss.example_weights else None
        bounds, seen = loss.worst_cost(self.potentials(X), self.predict_codes(X), y, example)
        share = None if loss.example_weights else weight
        penalty, _ = self._objective(X, y, weight)
        return WorstCase.of(certificate, penalty, np.average(bounds, weights=share), np.average(seen, weights=share), self.rule_)

    @property
    def rule_(self) -> str:
        """The rule that `predict` follows where it is not told another; empty for a loss with one rule."""
        if not isinstance(self.loss_, AdversarialLoss):
            return ""
        return self.loss_.default_rule if self.rule in (None, "default") else str(self.rule)

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the parameters, the dual point, and the predictor's distributions where they have no closed form."""
        found = super().proof(X, codes, weight)
        base: Any = self.loss_.unweighted
        if base.kernel == "general":
            F = self.potentials(X)
            if base is not self.loss_:
                cost = self.loss_.cost_weights(codes, weight if self.loss_.example_weights else None)
                inner = base.cost_weights(codes, None)
                F = (F - F.max(axis=1, keepdims=True)) / (cost if inner is None else cost / inner)[:, None]
            found["predictor"] = base.predictor(F)
        return found

    def probabilities(self, X: Any) -> Array | None:
        """Return the predictor's distribution where its predictions are the classes, shape (n, k): a strategy of the game, no estimate."""
        game = self.decides and isinstance(self.loss_, AdversarialLoss) and self.loss_.n_predictions == len(self.classes_)
        game = game and self.predicts_classes_
        return self.loss_.predictor(self.potentials(X)) if game else None

    # ---- saving ---------------------------------------------------------------------------------------------------
    def saved(self) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds: parameters that need no other file, fitted attributes by name, rows that the features keep."""
        parameters = self._saved_parameters(self._saved_loss())
        rows, theta = (None, self.theta_) if self.features_ is None else self.features_.support(self.theta_)
        return parameters, {"theta": theta}, rows

    def _saved_loss(self) -> dict[str, Any]:
        """Return the parameters that say the loss, as a saved model holds them."""
        loss: Any = self.loss
        options = self.loss_options
        if isinstance(loss, partial):
            options = {**loss.keywords, **(options or {})}
            loss = loss.func
        if costs.is_frame(loss):
            loss = self.loss_.matrix.tolist()
        if callable(loss) or isinstance(loss, Loss):
            loss = _registered_name(loss)
        own: dict[str, Any] = {"loss": loss, "loss_options": _self_contained(self.loss_, options)}
        named = self.loss_.row_names
        if named is None or self.extra_labels is not None:
            return own
        if self.predicts_classes_:  # the others' names are not in the matrix
            beyond = list(named[len(self.classes_) :])
            return own | ({"extra_labels": beyond} if beyond else {})
        if not isinstance(loss, str):
            own["loss_options"] = {**(own["loss_options"] or {}), "predictions": list(named)}
        return own

    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model; `classes_`, `features_` and `certificate_` are there already."""
        self._restore_theta(attributes)
        chosen = _loss_type(self.given_loss) or loss_class("general")
        if chosen.reads_file(self.loss_options or {}):
            raise ModelError("its loss reads another file; a model holds all that it needs")
        self.loss_ = self._make_loss(len(self.classes_))

    # ---- prediction -----------------------------------------------------------------------------------------------
    def _scores(self, mapped: FeatureMap) -> Array:
        return mapped.scores(self.theta_)

    def predict_codes(self, X: Any, rule: str = "default") -> NDArray[np.intp]:
        """Return predictions as codes: positions in `predictions_`."""
        X = in_blocks(X) if self.needs_memory() is None else X
        if isinstance(X, BlockRows):
            return np.concatenate([self.predict_codes(X.dense(part.start, part.stop), rule) for part in X.parts()])
        F = self.potentials(X)
        rule = self.rule if rule == "default" and self.rule is not None else rule
        return self.loss_.predict(F) if rule == "default" else self.loss_.predict(F, rule)

    def predict(self, X: Any, rule: str = "default") -> NDArray[Any]:
        """Return the predicted labels, shape (n,).

        ``rule`` chooses for adversarial losses: ``"potentials"`` argmax f (eq. 132), ``"predictor"`` argmax of the predictor's p (eq. 133),
        ``"median"`` or ``"mean"`` of p for ordered classes; the default is the parameter of that name, else the loss's own.
        """
        codes = self.predict_codes(X, rule)
        return self.predictions_[codes]

    def _abstention_costs(self) -> Array | None:
        """Return what abstaining costs on rows of each class (k,); None where nothing abstains."""
        loss = self.loss_.unweighted
        return np.asarray(loss.matrix[-1]) if isinstance(loss, AbstainLoss) else None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on rows X (n, d) with labels y (n,); where the fit may abstain 1 - its mean abstention loss.

        The abstention loss of a row is alpha where the fit abstains, 1 where it predicts another class, and 0 where it is right. Weights
        (n,) count how often rows occur. `ConfigError` where the fit may abstain and a label is no class of the fit.
        """
        check_is_fitted(self)
        alpha = self._abstention_costs()
        if alpha is None:
            return float(super().score(X, y, sample_weight))
        true, codes = codes_of(y, self.order_), self.predict_codes(X)
        costs_of_rows = np.where(codes == len(self.classes_), alpha[true], codes != true)
        return 1.0 - float(np.average(costs_of_rows, weights=sample_weight))

    def cautions(self) -> tuple[str, ...]:
        """Return what is to be said once about parameters outside the range of a guarantee."""
        said = [costs.NEGATIVE] if self.loss_.negative_costs else []
        alpha = self._abstention_costs()
        if isinstance(self.loss_.unweighted, AbstainLoss) and alpha is not None and alpha.max() > 0.5:
            k = len(self.classes_)
            never = f"; from 1 - 1/{k} on the best rule never abstains" if alpha.min() >= 1.0 - 1.0 / k else ""
            theorems = "Theorems 12 and 13 and Corollary 14 of Fathony et al. (2018) hold"
            said.append(f"alpha={alpha.max():g} is above 1/2, up to which {theorems}{never}")
        return tuple(said)

    @available_if(_is_adversarial)
    def predictor_distribution(self, X: Any) -> Array:
        """Return the predictor's p, shape (n, l) in the order of `predictions_`: it minimises the worst-case expected loss (eq. 131)."""
        F = self.potentials(X)
        assert isinstance(self.loss_, AdversarialLoss)
        return self.loss_.predictor(F)

    @available_if(_is_adversarial)
    def adversary_distribution(self, X: Any) -> Array:
        """Return the adversary's q, shape (n, k) by `order_`: the worst class probabilities that the moments allow, as seen by this fit."""
        F = self.potentials(X)
        assert isinstance(self.loss_, AdversarialLoss)
        return self.loss_.adversary(F)

    @available_if(_is_adversarial)
    def expected_loss(self, X: Any) -> Array:
        """Return the expected loss of the predictor's p under every true class of `order_`, shape (n, k)."""
        P = self.predictor_distribution(X)
        assert isinstance(self.loss_, AdversarialLoss)
        return P @ self.loss_.matrix

    @available_if(_has_proba)
    def predict_proba(self, X: Any) -> Array:
        """Return the predictor's distribution over `classes_`, shape (n, k); only where its largest entry is the prediction (zero-one).

        It is the predictor's mixed strategy in the game, no estimate of class probabilities: it is often 0 at the true class. Do not score
        it by log-loss or Brier score: a scorer of scikit-learn that does is told so, once (`StrategyWarning`). ``calibrate`` of
        `AdversarialClassifier` gives estimates in its place.
        """
        if not self.calibrates:
            warn_scorers()
            return self.by_class(self.predictor_distribution(X))
        estimated = self.probabilities(X)
        assert estimated is not None
        return self.by_class(estimated)


def _registered_name(loss: Any) -> str:
    """Return the name under which a model file keeps a class of losses; `ConfigError` for what no name leads back to."""
    name = getattr(loss, "name", None)
    if isinstance(loss, type) and isinstance(name, str) and name in registry and registry.get(name) is loss:
        return name
    raise ConfigError(
        f"cannot save this model: loss={_said(loss)} has no name that leads back to it; register the class (advcli.losses.register) "
        "in a file of a folder that ADVCLI_PLUGINS names, and give the class or its name"
    )


def _self_contained(loss: Loss, options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a loss's options with the matrix in the place of the file that it was read from."""
    if options is None:
        return None
    own = dict(options)
    if own.get("file") is not None and loss.matrix is not None:
        own |= {"file": None, "classes": None, "matrix": loss.matrix.tolist()}
        if isinstance(loss, AdversarialLoss) and not loss.predicts_classes:
            own["predictions"] = None if loss.row_names is None else list(loss.row_names)
    if loss.unweighted is not loss and own.get("options"):
        own["options"] = _self_contained(loss.unweighted, own["options"])
    return own


@dataclass(kw_only=True, eq=False, repr=False)
class AdversarialClassifier(Calibrated, SurrogateClassifier):
    """The adversarial classifier of Fathony et al. 2018 and the hinge losses beside it.

    Parameters
    ----------
    calibrate : {"vector", "temperature", "sigmoid", "isotonic"} or None
        How `predict_proba` estimates class probabilities, as in `Calibrated`; None: it is the strategy of the game.
    **parameters
        As in `SurrogateClassifier`.
    """


@dataclass(kw_only=True, eq=False, repr=False)
class OrdinalAdversarialClassifier(Calibrated, SurrogateClassifier):
    """Adversarial classification of ordered classes.

    Parameters
    ----------
    loss : {"absolute", "squared", "power", "huber", "pinball"} or array (l, k)
        The cost of a prediction, in class steps, or a cost matrix.
    features : {"linear", "multiclass", "threshold"} or a kernel
        One weight vector per class, ``"linear"`` and ``"multiclass"`` being the same, or one direction and free thresholds (Fathony et al.
        2018, eq. 70 and 71).
    order : sequence or None
        The labels from the lowest to the highest. None: the order of an ordered pandas Categorical or a polars Enum, else that of numbers;
        text without an order is refused.
    calibrate : {"vector", "temperature", "sigmoid", "isotonic"} or None
        How `predict_proba` estimates class probabilities, as in `Calibrated`; None: it is the strategy of the game.
    **parameters
        As in `SurrogateClassifier`.
    """

    loss: Any = field(default="absolute", kw_only=False)
    features: str = "multiclass"

    @property
    def counts_steps(self) -> bool:
        """True."""
        return True
