"""Surrogates behind an oracle: one estimator for every loss, feature map and solver, certified.

The objective is lambda/2 |theta|^2 + 1/n sum_i S(f_i, y_i)  with lambda = 1/(n C); see `advcli.problems.risk`.

One file: the parameters, their checks and their docstring belong to one class, as scikit-learn reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..core.checks import at_least, refuse_parameter
from ..core.errors import ConfigError, DataError, IncompatibleError, ModelError
from ..core.row_blocks import BlockRows, in_blocks
from ..core.stored_arrays import Entries
from ..core.typing import Array, Labels, Options
from ..data.labels.order import codes_of
from ..features import FeatureMap
from ..features.merging import merge_rows
from ..losses import AdversarialLoss, Loss, loss_class, make_loss, registry
from ..losses import matrices as costs
from ..losses.base import RULES
from ..losses.matrices import ABSTAIN
from ..problems.certificate import Judged
from ..problems.risk import Problem, Solution
from ..problems.row_blocks import BlockProblem
from ..solvers import Limits, make_solver, solvers_for_a_box
from ..solvers.base import refuse_answer
from .base import Bound, Rows, State
from .base import registry as learners
from .calibrated import Calibrated
from .game import PlaysGame
from .loss_parameter import given_options, loss_said, loss_type, made_loss, saved_loss
from .options import OF_THE_FIT, describes, limits_of, mass_of, one_of, own_options, seed_of
from .refitting import Minimiser

LIMITS = ("name", "description", "tol", "search_tol", "search_solver", "search_passes", "max_passes", "max_seconds")


@describes(Minimiser)
@dataclass(kw_only=True, eq=False, repr=False)
class SurrogateClassifier(PlaysGame):
    """A linear model that minimises a convex surrogate to a certified relative duality gap.

    Parameters
    ----------
    loss : str, array (l, k), frame, class, callable or Loss
        Name of the surrogate, ``"zero_one"``, ``"absolute"``, ``"ww"``, ... (`advcli.losses.loss_names`); or a cost matrix, rows =
        predictions, columns = classes, both in the order of `order_`: the adversarial loss of that matrix. A frame (pandas, or polars with
        a first column of text) with rows and columns named by the classes is put into that order; rows of other names are predictions that
        are no class, and so are all rows where none is named by a class. Or a class of losses (`advcli.losses.Loss`); a function that makes
        one from the number of classes and ``loss_options``, such as ``functools.partial(MyLoss, width=2)``; or a loss, made for as many
        classes as the labels have.
    fit_intercept : bool
        Append a constant 1 to the features, regularised like any other (as the authors' code does). False solves the problem on X as given.
    solver : str
        ``"auto"`` (says in `solver_choice_` what it took), ``"dual"``, ``"newton"``, ``"lbfgs"``, ... (`advcli.solvers.solver_names`).
    features : str
        Feature map: ``"linear"``, ``"threshold"``, or a kernel, ``"rbf"``, ``"poly"``, ``"precomputed"`` (X is the kernel matrix: among the
        training rows in `fit`, between new and training rows afterwards). Kernels have no intercept.
    loss_options, solver_options, features_options : dict or None
        Further options of the loss, the solver and the feature map (``{"gamma": 0.1}``). ``features_options={"moments": "box",
        "tolerance": 0.5}`` lets the adversary's moments deviate from the sample's by half a standard error each (an L1 penalty) instead of
        in a ball: C and lam then have no meaning, and `certificate_.game_value` bounds the expected loss wherever the true moments lie in
        the box.
    extra_labels : sequence or None
        Labels of the predictions beyond the classes. None: the names of these rows in a frame or file, else ``advcli.ABSTAIN``, the text
        ``"abstain"``, for one beyond the classes and ``"prediction K"`` for others. Among labels that are not text `predict` returns
        an array of objects.
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
        Which row of the problem that was solved each row of `fit` became: equal rows are one there, rows of weight 0 none (-1). None
        where rows were read in blocks, which are all rows of the problem.
    solver_choice_ : str
        What ``solver="auto"`` took and why.

    References
    ----------
    Fathony et al. (2018), "Consistent robust adversarial prediction for general multiclass classification", arXiv 1812.07526:
    eq. 10 is the surrogate of a cost matrix, eq. 131 to 133 are the predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from advcli import SurrogateClassifier
    >>> model = SurrogateClassifier("cs", C=10.0).fit(*load_iris(return_X_y=True))
    >>> model.certificate_.converged, model.theta_.shape
    (True, (5, 3))
    """

    endless = True
    takes_blocks = True
    checks_rows = True
    rules: ClassVar[tuple[str, ...]] = RULES

    loss: Any = field(default="zero_one", kw_only=False)
    fit_intercept: bool = True
    solver: str = "auto"
    max_passes: float = 100_000
    max_seconds: float = float("inf")
    loss_options: Mapping[str, Any] | None = None
    solver_options: Mapping[str, Any] | None = None
    extra_labels: Any = None
    rule: str | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # one direction cannot separate classes that have no order
        tags.classifier_tags.poor_score = isinstance(self.mapped_by, str) and self.map_class.needs_order
        return tags

    # ---- from a configuration -------------------------------------------------------------------------------------
    @classmethod
    def needs(cls, loss: Options) -> frozenset[str]:
        """Return what the loss needs to know of the data."""
        return loss_class(loss["name"]).needs(own_options(loss, OF_THE_FIT))

    @classmethod
    def filled(cls, loss: Options, facts: Options) -> dict[str, Any]:
        """Return the loss's options with what it needs of the data filled in; `IncompatibleError` where it lacks a label graph."""
        options = {**loss, **loss_class(loss["name"]).filled(own_options(loss, OF_THE_FIT), facts)}
        # a loss that weighs another one has that one's options under options
        if "hierarchy" in cls.needs(loss) and all(each.get("hierarchy") is None for each in (options, options.get("options") or {})):
            raise IncompatibleError(f"loss={loss['name']}", "a hierarchy over the labels", "give dataset.hierarchy=EDGES.csv")
        return options

    @classmethod
    def has_probabilities(cls, loss: Options) -> bool:
        """Tell whether the loss estimates probabilities, or is a game whose predictions are the classes; a matrix tells it later."""
        kind = loss_class(loss["name"])
        if not issubclass(kind, AdversarialLoss):
            return kind.estimates(own_options(loss, OF_THE_FIT))
        try:
            made: Any = make_loss(loss["name"], 3, **own_options(loss, OF_THE_FIT))
            return bool(made.predicts_classes and made.n_predictions == 3)
        except (ConfigError, DataError):
            return True

    @classmethod
    def estimates(cls, loss: Options) -> bool:
        """Tell whether the loss is smooth."""
        return loss["name"] in registry and loss_class(loss["name"]).estimates(own_options(loss, OF_THE_FIT))

    @classmethod
    def predicts_sets(cls, loss: Options) -> bool:
        """Tell whether the loss predicts sets."""
        return loss["name"] in registry and loss_class(loss["name"]).sets

    @classmethod
    def check(cls, loss: Options, features: Options, solver: Options, n_classes: int | None) -> None:
        """Refuse unknown options of a loss or solver, and a rule that the loss does not have."""
        make_solver(solver["name"], **own_options(solver, LIMITS))
        if n_classes is not None:
            made: Any = make_loss(loss["name"], n_classes, **own_options(loss, OF_THE_FIT))
            if loss.get("rule") is not None:
                made.predict(np.zeros((1, n_classes)), loss["rule"])  # refuses a rule that the loss does not have

    @classmethod
    def options_of(cls, loss: Options, solver: Options, hyper: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that the groups ``loss`` and ``solver`` set."""
        chosen = {"solver": solver["name"], "solver_options": own_options(solver, LIMITS) or None, **limits_of(solver)}
        return {**cls._from_options(loss), **chosen}

    @classmethod
    def _from_options(cls, loss: Options) -> dict[str, Any]:
        """Return the parameters that the group ``loss`` sets."""
        return {"loss": loss["name"], "loss_options": own_options(loss, OF_THE_FIT) or None, "rule": loss.get("rule")}

    @property
    def counts_steps(self) -> bool:
        """Whether the loss or the features count steps between classes."""
        kind = loss_type(self.given_loss)
        if self.map_class.needs_order:
            return True
        return kind is not None and "order" in kind.needs(given_options(self.given_loss, self.loss_options))

    # ---- fitting --------------------------------------------------------------------------------------------------
    def needs_memory(self) -> str | None:
        """Return the parameter that needs rows in memory: a learner beyond its loss, features that are not linear, a box, a smooth loss."""
        if (what := super().needs_memory()) is not None:
            return what
        if not self.map_class.multiclass_linear or self.map_class.keeps_rows:
            return f"features={self.mapped_by}"
        if self.map_options.get("moments", "ball") != "ball":
            return "features.moments=box"
        kind = loss_type(self.given_loss)
        if kind is not None and kind.estimates(given_options(self.given_loss, self.loss_options)):
            return f"loss={loss_said(self.given_loss)}"
        return None

    def check_parameters(self) -> None:
        """Refuse a loss, strength, tolerance or limit that no data can mend."""
        super().check_parameters()
        self._refuse_learner()
        loss_type(self.given_loss)
        if self.rule is not None:
            one_of("rule", self.rule, self.rules)
        if not isinstance(self.fit_intercept, (bool, np.bool_, int)):
            raise ConfigError(f"fit_intercept={self.fit_intercept!r} must be true or false")

    def _refuse_learner(self) -> None:
        """Refuse the name of a learner where a surrogate loss is wanted, and None."""
        loss = self.given_loss
        if loss is None:
            raise ConfigError(f"loss=None is no loss: choose one of {', '.join(registry)}, or give a cost matrix")
        if isinstance(loss, str) and loss not in registry and loss in learners:
            kind = learners.get(loss)
            said = kind.in_python or f"{kind.__name__} ({kind.__module__})"
            raise ConfigError(f"loss={loss} is no surrogate loss but a learner of its own: use {said}")

    def bind(self, rows: Rows, y: Any) -> Bound:
        """Return rows and labels as fits take them: equal rows of equal label merged, in one canonical order.

        With ``loss="weighted"`` and weight ``"column"``, weights multiply the rows' loss matrices instead of counting them.
        """
        X = rows.X
        if self.needs_memory() is None and make_solver(self.solver, **(self.solver_options or {})).takes_blocks:
            X = in_blocks(X)
        X, codes, weights = self._checked(X, y, rows.weight)
        loss = self._make_loss(len(self.classes_))
        cost = loss.cost_weights(codes, weights if loss.example_weights else None)
        if loss.example_weights:
            weights = None
        total = mass_of(len(codes), weights)
        merged = None
        if self.map_class.pairwise:
            merged = np.arange(len(codes))
        elif not isinstance(X, BlockRows):
            X, codes, weights, cost, merged = merge_rows(X, codes, weights, cost)
        features = self._bind(X)
        features.check_rows()
        extras = {"loss": loss, "cost": cost, "rows": merged, "total": total, "tolerance": features.tolerance(codes, weights)}
        return Bound.of(self, features, codes, weights, **extras)

    def _fit_checked(self, bound: Bound, start: SurrogateClassifier | None) -> None:
        bound.set_facts(self)
        self.loss_, self.rows_, total, tolerance = (bound.own[name] for name in ("loss", "rows", "total", "tolerance"))
        self._with_extra_labels(self.loss_.n_predictions)  # refuses a class with the name of another prediction
        lam = self._lam_of(total)
        self.lam_ = lam if tolerance is None else 0.0
        if start is not None and start.features_ is not bound.features:
            bound.features.adopt(start.features_)
        problem, solution = self._minimise(bound, self.lam_, None if start is None else start.solution_)
        self._settle(problem, solution, f"loss={loss_said(self.given_loss)}")

    def _minimise(self, bound: Bound, lam: float, start: Solution | None) -> tuple[Judged, Solution]:
        """Return the problem of bound rows and what a solver found."""
        tolerance = bound.own["tolerance"]
        in_parts = isinstance(bound.features.X, BlockRows)
        problem = self._problem_at(bound.features, bound.codes, lam, bound.weights, bound.own["cost"], tolerance)
        solver = make_solver(self.solver, **(self.solver_options or {}))
        lacks, remedy = solver.lacks(problem), "choose solver=auto"
        if lacks is None and tolerance is not None and not solver.takes_box:
            lacks = "moments in a ball (features.moments=ball)"
            remedy = f"for a box choose a solver that takes one: {', '.join(solvers_for_a_box())}"
        if lacks is None and self.loss_.smooth and not solver.takes_smooth:
            lacks = "a surrogate with kinks"
            remedy = f"for loss={loss_said(self.given_loss)} choose solver=auto, smooth_newton or lbfgs"
        if lacks is None and in_parts and not solver.takes_blocks:
            lacks = "rows in memory"
        if lacks is not None:
            raise IncompatibleError(f"solver={self.solver}", lacks, remedy)
        limits = Limits(self.tol, self.max_passes, self.max_seconds)
        solution = solver.solve(problem, limits, start, seed=seed_of(self.random_state))
        refuse_answer(solver, problem, solution)
        return problem, solution

    def _problem_at(self, mapped: FeatureMap, codes: Labels, lam: float, *more: Any) -> Any:
        kind = BlockProblem if isinstance(mapped.X, BlockRows) else Problem
        return kind(mapped, self.loss_.core, codes, lam, *more)

    def _make_loss(self, k: int) -> Loss:
        """Return the loss for the k classes of `order_`."""
        return made_loss(self.loss, self.loss_options, self.order_.tolist())

    @property
    def solver_choice_(self) -> str:  # type: ignore[override]
        """What ``solver="auto"`` took for this fit and why, in one line; empty for a solver that was asked for by name."""
        check_is_fitted(self)
        return str(self.solution_.memory.get("choice", ""))

    @property
    def predictions_(self) -> NDArray[Any]:
        """Labels of all predictions: `order_`, then the predictions beyond it; of a matrix without rows for the classes its rows."""
        check_is_fitted(self)
        return self._with_extra_labels(self.loss_.n_predictions)

    @property
    def predicts_classes_(self) -> bool:  # type: ignore[override]
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
            predictions = np.empty(n_predictions, dtype=object)
            predictions[:] = [*self.order_.tolist(), *labels.tolist()]
            return predictions
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
        if self.map_class.name == "threshold" and hasattr(self, "theta_"):
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
        if self.map_class.name != "threshold":
            raise AttributeError(f"features={self.mapped_by} has no thresholds")
        return np.array(self.theta_[self.n_features_in_ :])

    def _objective(self, X: Any, codes: Labels, weights: Array | None) -> tuple[float, float]:
        example = weights if self.loss_.example_weights else None
        return self._terms_of(
            self._mapped(X), codes, None if self.loss_.example_weights else weights, self.loss_.cost_weights(codes, example)
        )

    def _terms_of(self, mapped: FeatureMap, codes: Labels, weights: Array | None, cost: Array | None) -> tuple[float, float]:
        problem = self._problem_at(mapped, codes, self.lam_, weights, cost, mapped.tolerance(codes, weights))
        if mapped.euclidean or self.features_ is None:
            penalty = problem.penalty(self.theta_)
        else:  # the norm of the training rows' kernel
            penalty = 0.5 * self.lam_ * self.features_.square_norm(self.theta_)
        return penalty, problem.empirical_at(self.theta_)

    # ---- what evaluation asks of a fit ----------------------------------------------------------------------------
    @property
    def remarks_(self) -> tuple[str, ...]:  # type: ignore[override]
        """Remarks about the costs of the fit."""
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
    def abstention_cost_(self) -> float | None:  # type: ignore[override]
        """The alpha of the loss, or of the loss that it weighs."""
        return self.loss_.alpha

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the parameters, the dual point, and the predictor's distributions where they have no closed form."""
        arrays = super().proof(X, codes, weight)
        base: Any = self.loss_.unweighted
        if base.kernel in ("general", "label_sets"):
            F = self.potentials(X)
            if base is not self.loss_:
                cost = self.loss_.cost_weights(codes, weight if self.loss_.example_weights else None)
                inner = base.cost_weights(codes, None)
                F = (F - F.max(axis=1, keepdims=True)) / (cost if inner is None else cost / inner)[:, None]
            arrays["predictor"] = base.predictor(F)
        return arrays

    # ---- saving ---------------------------------------------------------------------------------------------------
    def saved(self) -> State:
        """Return what a saved model holds: parameters, the fitted ``theta``, and the rows that the features keep."""
        rows, theta = (None, self.theta_) if self.features_ is None else self.features_.support(self.theta_)
        return self._saved_loss(), {"theta": theta}, rows

    def _saved_loss(self) -> dict[str, Any]:
        """Return the parameters that say the loss, as a saved model holds them."""
        parameters = saved_loss(self.loss, self.loss_options, self.loss_)
        named = self.loss_.row_names
        if named is None or self.extra_labels is not None:
            return parameters
        if self.predicts_classes_:  # the others' names are not in the matrix
            beyond = list(named[len(self.classes_) :])
            return parameters | ({"extra_labels": beyond} if beyond else {})
        if not isinstance(parameters["loss"], str):
            parameters["loss_options"] = {**(parameters["loss_options"] or {}), "predictions": list(named)}
        return parameters

    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model; `classes_`, `features_` and `certificate_` are there already."""
        self._restore_theta(attributes)
        chosen = loss_type(self.given_loss) or loss_class("general")
        if chosen.reads_file(self.loss_options or {}):
            raise ModelError("its loss reads another file; a model holds all that it needs")
        self.loss_ = self._make_loss(len(self.classes_))

    # ---- prediction -----------------------------------------------------------------------------------------------
    def _scores(self, mapped: FeatureMap) -> Array:
        return mapped.scores(self.theta_)

    def predict_codes(self, X: Any, rule: str = "default") -> NDArray[np.intp]:
        """Return predictions as codes: positions in `predictions_`; of ``loss="label_sets"`` the sets, as `predict` has them."""
        X = in_blocks(X) if self.needs_memory() is None else X
        if isinstance(X, BlockRows):
            parts: list[Any] = [self.predict_codes(X.dense(part.start, part.stop), rule) for part in X.parts()]
            return sparse.vstack(parts, format="csr") if self.loss_.sets else np.concatenate(parts)
        F = self.potentials(X)
        rule = self.rule if rule == "default" and self.rule is not None else rule
        return self.loss_.predict(F) if rule == "default" else self.loss_.predict(F, rule)

    def predict(self, X: Any, rule: str = "default") -> Any:
        """Return the predicted labels, shape (n,); of ``loss="label_sets"`` a csr_array (n, k), a one at each class of `order_` in the set.

        ``rule`` chooses for adversarial losses: ``"potentials"`` argmax f (eq. 132), ``"predictor"`` argmax of the predictor's p (eq. 133),
        ``"median"`` or ``"mean"`` of p for ordered classes; the default is the parameter of that name, else the loss's own.
        """
        codes = self.predict_codes(X, rule)
        return codes if self.loss_.sets else self.predictions_[codes]

    def predict_sets(self, X: Any, K: int | None = None) -> sparse.csr_array:
        """Return K guesses for every row: a csr_array (n, k) of ones at the K largest scores, columns in the order of `classes_`.

        K is that of ``loss="top_k"`` by default, and 1 for other losses; of equal scores the first in `order_` count. `InvalidValueError`
        unless 1 <= K <= k.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from advcli import AdversarialClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = AdversarialClassifier(loss="top_k", loss_options={"K": 2}, C=10.0).fit(X, y)
        >>> model.predict_sets(X[[0, 120]]).toarray()
        array([[1, 1, 0],
               [0, 1, 1]])
        """
        check_is_fitted(self)
        K = getattr(self.loss_, "K", 1) if K is None else K
        refuse_parameter("K", K, at_least(1, len(self.classes_)))
        F = self.potentials(X)
        guesses = np.zeros(F.shape)
        np.put_along_axis(guesses, np.argsort(-F, axis=1, kind="stable")[:, :K], 1, axis=1)
        return sparse.csr_array(self.by_class(guesses).astype(np.int64))

    def _abstention_costs(self) -> Array | None:
        """Return what abstaining costs on rows of each class (k,); None where nothing abstains."""
        return self.loss_.unweighted.abstention_costs

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on rows X (n, d) with labels y (n,); where the fit may abstain 1 - its mean abstention loss,
        and where it predicts sets 1 - their mean loss, by which a set that misses y costs 1 more than its price.

        The abstention loss of a row is alpha where the fit abstains, 1 where it predicts another class, and 0 where it is right. Weights
        (n,) count how often rows occur. `ConfigError` where the fit may abstain and a label lies outside its classes.
        """
        check_is_fitted(self)
        alpha = self._abstention_costs()
        if self.loss_.sets:
            rows, y = self.one_label_a_row(Rows(X, sample_weight), y)
            costs_of_sets = self.loss_.cost(self.predict_codes(rows.X), codes_of(y, self.order_))
            return 1.0 - float(np.average(costs_of_sets, weights=rows.weight))
        if alpha is None:
            return float(super().score(X, y, sample_weight))
        rows, y = self.one_label_a_row(Rows(X, sample_weight), y)
        X, sample_weight = rows.X, rows.weight
        true, codes = codes_of(y, self.order_), self.predict_codes(X)
        costs_of_rows = np.where(codes == len(self.classes_), alpha[true], codes != true)
        return 1.0 - float(np.average(costs_of_rows, weights=sample_weight))

    def cautions(self) -> tuple[str, ...]:
        """Return the warnings about parameters outside the range of a guarantee."""
        lines = [costs.NEGATIVE] if self.loss_.negative_costs else []
        alpha = self.loss_.unweighted.abstention_costs
        if alpha is not None and alpha.max() > 0.5:
            k = len(self.classes_)
            never = f"; from 1 - 1/{k} on the best rule never abstains" if alpha.min() >= 1.0 - 1.0 / k else ""
            theorems = "Theorems 12 and 13 and Corollary 14 of Fathony et al. (2018) hold"
            lines.append(f"alpha={alpha.max():g} is above 1/2, up to which {theorems}{never}")
        return tuple(lines)


@describes(SurrogateClassifier)
@dataclass(kw_only=True, eq=False, repr=False)
class AdversarialClassifier(Calibrated, SurrogateClassifier):
    """The adversarial classifier of Fathony et al. 2018, also with hinge losses: `SurrogateClassifier` that can be calibrated.

    Parameters
    ----------
    loss : str, array (l, k), frame, class, callable or Loss
        Name of the surrogate, ``"zero_one"``, ``"absolute"``, ``"ww"``, ... (`advcli.losses.loss_names`), or a cost matrix.
    calibrate : {"vector", "temperature", "sigmoid", "isotonic"} or None
        How `predict_proba` estimates class probabilities from cross-fitted potentials, at up to six times the cost (`Calibrated`). None:
        it is the strategy of the game.

    References
    ----------
    Fathony et al. (2018), "Consistent robust adversarial prediction for general multiclass classification", arXiv 1812.07526:
    eq. 10 is the surrogate of a cost matrix, section 3 the zero-one loss.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from advcli import AdversarialClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdversarialClassifier(loss="zero_one", C=10.0).fit(X, y)
    >>> round(model.score(X, y), 2), model.certificate_.relative_gap <= 1e-3
    (0.97, True)
    >>> AdversarialClassifier(loss=[[0, 1, 4], [1, 0, 1], [4, 1, 0]]).fit(X, y).predict(X[[0, 60, 140]])
    array([0, 1, 2])
    """


@describes(SurrogateClassifier)
@dataclass(kw_only=True, eq=False, repr=False)
class OrdinalAdversarialClassifier(Calibrated, SurrogateClassifier):
    """Adversarial classification of ordered classes; attributes as in `SurrogateClassifier`.

    Parameters
    ----------
    loss : {"absolute", "squared", "power", "huber", "pinball"} or array (l, k)
        The cost of a prediction, in class steps, or a cost matrix.
    features : {"linear", "multiclass", "threshold"} or a kernel
        One weight vector per class, ``"linear"`` and ``"multiclass"`` being the same, or one direction and free thresholds (Fathony et al.
        2018, eq. 70 and 71).
    order : sequence or None
        The labels from the lowest to the highest. None: the order of an ordered pandas Categorical or a polars Enum, else of numbers;
        text without an order is refused.
    calibrate : {"vector", "temperature", "sigmoid", "isotonic"} or None
        How `predict_proba` estimates class probabilities, as in `AdversarialClassifier`.

    References
    ----------
    Fathony et al. (2018), "Consistent robust adversarial prediction for general multiclass classification", arXiv 1812.07526:
    Theorems 6 and 7 are the absolute and the squared loss, eq. 70 and 71 the feature maps.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import OrdinalAdversarialClassifier
    >>> X = np.linspace(0.0, 3.0, 60)[:, None]
    >>> grades = np.array(["low", "middle", "high"])[(X[:, 0] // 1.01).astype(int)]
    >>> model = OrdinalAdversarialClassifier("absolute", order=["low", "middle", "high"], features="threshold", C=100.0).fit(X, grades)
    >>> model.predict([[0.2], [1.6], [2.9]]), model.thresholds_.shape
    (array(['low', 'middle', 'high'], dtype='<U6'), (2,))
    """

    loss: Any = field(default="absolute", kw_only=False)
    features: str = "multiclass"

    @property
    def counts_steps(self) -> bool:
        """True."""
        return True
