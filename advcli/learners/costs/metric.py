"""A randomised classifier that optimises a metric of the confusion matrix: a few classifiers for matrices of costs, drawn by weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ...core.arithmetic import refuse_portable
from ...core.checks import at_least, refuse_parameter
from ...core.errors import IncompatibleError
from ...core.stored_arrays import Entries
from ...core.typing import Array, Labels, Options
from ...losses import Loss, make_loss
from ..base import Bound, Rows, State, View, register
from ..options import check_options, describes, one_column, one_of, own_options, refuse_box, seed_of
from ..refitting import Minimiser
from ..surrogate import SurrogateClassifier
from .mixtures import MEASURES, Member

_STEPS = {"plugin": 1000, "general": 20}  # ways to make classifiers, and the most of them beside one for each class
_LEAST = 0.01  # cost of a wrong class to an adversarial fit: a class that costs nothing anywhere ends it at theta = 0


@register("metric")
@describes(Minimiser)
@dataclass(kw_only=True, eq=False, repr=False)
class MetricClassifier(SurrogateClassifier):
    """A mixture of classifiers that optimises a metric of the confusion matrix (`advcli.learners.costs.mixtures` has the equations).

    Parameters
    ----------
    metric : {"macro_f1", "g_mean", "h_mean", "q_mean", "worst_class", "quadratic_kappa"}
        What is optimised (`advcli.metrics`), over the classes that have rows; quadratic_kappa counts steps between classes.
    inner : {"plugin", "general"}
        How a classifier for costs L is made: the class j of least sum_y P(y|x) L_jy with P by multinomial logistic regression, or the
        adversarial classifier of L, whose fit begins at the last one's solution.
    rule : {"mixture", "heaviest"} or None
        Whether a row is classified by a classifier that is drawn by weight (also for None), or by the heaviest one. The draw is a hash of
        the row and of ``random_state`` (Cotter et al. 2019): equal rows are classified alike.
    max_steps : int or None
        Limit of the classifiers that are made. None: 1000 for plugin, 20 for general, plus the number of classes.
    tol : float
        Relative duality gap of a fit, and gap of the metric, at which it is accepted.
    fit_intercept, solver, solver_options : bool, str, dict or None
        A constant 1 as feature; the algorithm of the fits and its options.
    features, features_options : str, dict or None
        A map with one column of parameters for each class, linear or a kernel, and its options.

    Attributes
    ----------
    costs_, weights_ : ndarray (m, k, k), (m,)
        The costs of every classifier, rows = predictions, columns = classes of `order_`; and their weights, of sum 1, the largest first.
    confusion_, value_ : ndarray (k, k), float
        The confusion matrix of the mixture on the rows of the fit, rows = true classes: by the probabilities of plugin, else by the labels;
        and its metric, of worst_class the least recall.
    bound_ : float
        What no classifier of these rows exceeds under the probabilities of plugin; infinite for macro_f1 and for general, where nothing is
        proved. ``counts_["outer_gap"]`` is the difference from ``value_``.
    certificate_ : Certificate
        Of the logistic regression, or of the fit of the heaviest classifier.

    References
    ----------
    Narasimhan, Ramaswamy, Saha and Agarwal (2015), "Consistent multiclass algorithms for complex performance measures", PMLR 37: Algorithms
    1 and 2. Narasimhan et al. (2024), "Consistent multiclass algorithms for complex metrics and constraints", JMLR 25. Cotter, Gupta and
    Narasimhan (2019), "On making stochastic classifiers deterministic", NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from advcli import MetricClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MetricClassifier("worst_class", C=10.0).fit(X[:, :2], y)
    >>> model.counts_["outer_gap"] <= 1e-3, model.weights_.shape
    (True, (3,))
    """

    takes_blocks = False
    decides = False  # the loss alone makes no predictions
    cost_matrix_ = None
    without_order = "give it with dataset.order=[lowest,...,highest] or choose loss.metric=macro_f1"
    rules = ("mixture", "heaviest")

    loss: Any = field(default=None, init=False)  # other parameters say it
    loss_options: Mapping[str, Any] | None = field(default=None, init=False)
    extra_labels: Any = field(default=None, init=False)
    metric: str = field(default="macro_f1", kw_only=False)
    inner: str = "plugin"
    max_steps: int | None = None

    @classmethod
    def needs(cls, loss: Options) -> frozenset[str]:
        """Return the order of the labels for quadratic_kappa."""
        return frozenset({"order"} if loss.get("metric") == "quadratic_kappa" else ())

    @classmethod
    def filled(cls, loss: Options, facts: Options) -> dict[str, Any]:
        """Return the options as they are."""
        return dict(loss)

    @classmethod
    def has_probabilities(cls, loss: Options) -> bool:
        """Tell that the weights of the classifiers are a distribution over the classes."""
        return True

    @classmethod
    def _from_options(cls, loss: Options) -> dict[str, Any]:
        return own_options(loss)

    @classmethod
    def check(cls, loss: Options, features: Options, solver: Options, n_classes: int | None) -> None:
        """Refuse unknown options, and values without meaning."""
        check_options(loss, ("metric", "inner", "rule", "max_steps"))
        mapped = {"features": features["name"], "features_options": own_options(features)}
        cls(**cls.options_of(loss, solver, {}), **mapped, n_classes=n_classes).check_parameters()

    # ---- fitting --------------------------------------------------------------------------------------------------
    @property
    def given_loss(self) -> str:
        """The surrogate of the fits."""
        return "entropy" if self.inner == "plugin" else "general"

    @property
    def counts_steps(self) -> bool:
        """Whether the metric counts steps between classes."""
        return self.metric == "quadratic_kappa"

    def check_parameters(self) -> None:
        """Refuse a metric, a way to make classifiers, a limit or features that no data can mend."""
        one_of("metric", self.metric, MEASURES)
        one_of("inner", self.inner, _STEPS)
        refuse_portable("loss=metric", "take another loss")  # weights of its mixture are SciPy's
        super().check_parameters()
        refuse_box("metric", self.map_options)
        if self.max_steps is not None:
            refuse_parameter("max_steps", self.max_steps, at_least(1))
        if not one_column(self.mapped_by):
            raise IncompatibleError("loss=metric", "scores of each class alone", f"features={self.mapped_by} has one direction: use linear")

    def _make_loss(self, k: int) -> Loss:
        return make_loss("entropy", k) if self.inner == "plugin" else make_loss("general", k, matrix=1.0 - np.eye(k))

    def _fit_checked(self, bound: Bound, start: Any) -> None:
        super()._fit_checked(bound, start)
        k, plugin = len(self.classes_), self.inner == "plugin"
        rows = np.ones(len(bound.codes)) if bound.weights is None else bound.weights
        truth = np.asarray(self.loss_.probabilities(bound.features.scores(self.theta_))) if plugin else np.eye(k)[bound.codes]
        mass = truth * (rows / rows.sum())[:, None]

        def step(costs: Array) -> Member:
            picked = np.argmin(truth @ costs.T, axis=1) if plugin else self._picked(bound, costs)
            confusion: Any = np.stack([np.bincount(picked, weights=column, minlength=k) for column in mass.T])
            return Member(costs, confusion, (self.loss_, self.solution_, self.certificate_))

        measure = MEASURES[self.metric](mass.sum(axis=0), np.bincount(bound.codes, weights=rows, minlength=k) > 0.0)
        mixture = measure.optimise(step, self.max_steps or _STEPS[self.inner] + k, self.tol)
        self.weights_, self.value_, self.n_steps_ = mixture.weights, mixture.value, mixture.steps
        self.bound_ = mixture.bound if plugin and measure.bounds else np.inf
        self.costs_, confusions = (np.stack([member[part] for member in mixture.members]) for part in (0, 1))
        self.confusion_ = np.tensordot(self.weights_, confusions, 1)
        self.loss_, self.solution_, self.certificate_ = mixture.members[0].fit
        self.theta_ = self.solution_.theta
        self.thetas_ = self.theta_ if plugin else np.hstack([member.fit[1].theta for member in mixture.members])
        self.seed_ = seed_of(self.random_state)

    def _picked(self, bound: Bound, costs: Array) -> Labels:
        """Return the predictions of the adversarial classifier of costs on the rows of the fit, from the last one's solution."""
        self.loss_ = _game(costs)
        own = {**bound.own, "cost": self.loss_.cost_weights(bound.codes, None)}
        self._settle(*self._minimise(replace(bound, own=own), self.lam_, self.solution_), "inner=general")
        return np.argmax(self.loss_.predictor(bound.features.scores(self.theta_)), axis=1)

    # ---- what evaluation asks of a fit ----------------------------------------------------------------------------
    @property
    def metric_(self) -> str:
        """The metric that was optimised."""
        return self.metric

    @property
    def counts_(self) -> dict[str, float]:
        """The classifiers with weight, those that were made, and the gap of the metric where there is one."""
        gap = {"outer_gap": self.bound_ - self.value_} if np.isfinite(self.bound_) else {}
        return {"n_members": float(len(self.weights_)), "n_steps": float(self.n_steps_), **gap}

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the arrays that prove the logistic regression; of general none."""
        return super().proof(X, codes, weight) if self.inner == "plugin" else {}

    def probabilities(self, X: Any) -> Array:
        """Return the chances of the draw, no estimates; shape (n, k)."""
        return self.predictor_distribution(X)

    def predictor_distribution(self, X: Any) -> Array:
        """Return the weight of the classifiers that predict each class of `order_` at rows X (n, d), shape (n, k)."""
        picked = np.argmax(self._of_members(self.look(X).at[0]), axis=2)
        return np.asarray(sum(weight * np.eye(len(self.classes_))[column] for weight, column in zip(self.weights_, picked.T, strict=True)))

    # ---- prediction -----------------------------------------------------------------------------------------------
    @property
    def rule_(self) -> str:
        """The rule that `predict` follows where it is not told another."""
        return self.rule or "mixture"

    def look(self, rows: Any) -> View:
        """Return the view of new rows: mapped, and with the number in [0, 1) of each row's draw."""
        if isinstance(rows, View):
            return rows
        check_is_fitted(self)
        X = self._validated(rows.X if isinstance(rows, Rows) else rows, reset=False)
        return View((self._mapped(X), _draws(X, self.seed_)))

    def _of_members(self, mapped: Any) -> Array:
        """Return the scores of every classifier, shape (n, m, k)."""
        m, k = self.costs_.shape[:2]
        F = mapped.scores(self.thetas_)
        if self.inner == "plugin":
            return np.asarray(-self.loss_.probabilities(F) @ self.costs_.reshape(m * k, k).T).reshape(-1, m, k)
        each = zip(self.costs_, np.split(F, m, axis=1), strict=True)
        return np.stack([_game(costs).predictor(np.ascontiguousarray(scores)) for costs, scores in each], axis=1)

    def _scores(self, at: Any, rule: str = "default") -> Array:
        mapped, draws = at
        drawn = np.searchsorted(np.cumsum(self.weights_)[:-1], draws, side="right")
        which = drawn if (self.rule_ if rule == "default" else rule) == "mixture" else 0
        return np.ascontiguousarray(self._of_members(mapped)[np.arange(len(draws)), which])

    def predict_codes(self, X: Any, rule: str = "default") -> Labels:
        """Return predictions as codes: positions in `order_`; ``rule`` as the parameter."""
        view = self.look(X)
        F = self.potentials(view) if rule == "default" else self._scores(view.at, one_of("rule", rule, self.rules))
        return np.argmax(F, axis=1).astype(np.intp)

    # ---- saving ---------------------------------------------------------------------------------------------------
    def saved(self) -> State:
        """Return what a saved model holds."""
        rows, thetas = (None, self.thetas_) if self.features_ is None else self.features_.support(self.thetas_)
        first = np.ascontiguousarray(thetas[:, : len(self.classes_)])
        arrays = {"theta": first, "thetas": thetas, "costs": self.costs_, "weights": self.weights_, "confusion": self.confusion_}
        bound = {"bound": self.bound_} if np.isfinite(self.bound_) else {}  # files hold finite numbers
        return {}, {**arrays, **bound, "value": self.value_, "n_steps": self.n_steps_, "seed": self.seed_}, rows

    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model."""
        super().restore(attributes)
        k, d = len(self.classes_), len(self.theta_)
        self.costs_ = attributes.array("costs", (None, k, k), least=0.0)
        self.weights_ = attributes.array("weights", (len(self.costs_),), least=0.0)
        self.thetas_ = attributes.array("thetas", (d, k * (1 if self.inner == "plugin" else len(self.costs_))))
        self.confusion_ = attributes.array("confusion", (k, k), least=0.0)
        self.value_, self.bound_ = attributes.number("value"), attributes.number("bound") if "bound" in attributes else np.inf
        self.n_steps_, self.seed_ = int(attributes.number("n_steps", 1)), int(attributes.number("seed", 0))


def _game(costs: Array) -> Any:
    """Return the adversarial loss of costs (k, k), whose predictor's likeliest class is the prediction."""
    return make_loss("general", len(costs), matrix=np.maximum(costs, _LEAST * (1.0 - np.eye(len(costs)))))


def _draws(X: Any, seed: int) -> Array:
    """Return a number in [0, 1) for every row, a hash of the seed and of the row's numbers other than 0; shape (n,)."""
    rows = sparse.csr_array(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    key, places = str(seed).encode(), rows.indices.astype(np.int64)
    parts = [places[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in pairwise(rows.indptr.tolist())]
    hashes = [int.from_bytes(blake2b(part, digest_size=6, key=key).digest(), "little") for part in parts]
    return np.array(hashes, dtype=np.float64) / 2.0**48
