"""The adversarial surrogate of costs: every row has its own vector of what each prediction costs, and the adversary mixes those seen.

Let the vectors of all rows be columns a_1, .., a_m of A (l, m), equal ones once. The predictor plays p over the l predictions, the
adversary a mixture C = A q of the outcomes. The moments of C, sum_i x_i C_i', have to be near the moments of the sample's costs c_i. To the
learner that is, with scores s = Theta x, one number for each prediction,

    S(s, c) = max over C in conv(a_1, .., a_m) of  min_j C_j + s.(c - C)                                                    (1)

and lambda/2 |Theta|^2 + 1/n sum_i S(s_i, c_i) is minimised. (1) is the game of the matrix A (Fathony et al. 2018, eq. 10) at the scores
-A's: outcomes that are alike share their parameters, and where they are the columns of the zero-one matrix, or of zero-one with
abstention, it is the adversarial loss of that matrix. It is consistent whatever the distribution of the costs is: let c be the mean of the
costs given x. The least value over s of the mean of (1) is min_j c_j, because c lies in the hull. The predictor's p at that s holds
predictions of least c alone. Hence a prediction is the likeliest of p; ties go to the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ConfigError, IncompatibleError, UnknownNameError, nearest
from ...core.stored_arrays import Entries
from ...core.typing import Array, Labels, Options
from ...features import FeatureMap
from ...features.base import Directions
from ...features.merging import merge_rows
from ...losses import Loss, make_loss
from ...problems.certificate import Judged, WorstCase
from ...problems.risk import Solution
from ...solvers import Limits, make_solver
from ..base import Bound, Learner, Rows, State, register
from ..options import check_options, describes, mass_of, own_options, seed_of
from ..refitting import Minimiser
from ..surrogate import LIMITS, SurrogateClassifier
from .games import OutcomeProblem, solve_outcome_games, solve_outcomes
from .given_costs import LearnsFromCosts

_MOST_NUMBERS = 4_000_000
"""Rows times outcomes at most with Newton's method, which takes minutes for 2,000 rows of costs that all differ."""

_MANY_OUTCOMES = 500
"""Outcomes above which a game is solved by a few of each row's own (`outcome_games`)."""

_MOST_LOOKS = 10**10
"""Rows times outcomes at most there: each search looks at all of them, some 100 s at most."""

_AT_ONCE = 2**20
"""Scores of outcomes that are in memory at once where the worst of them is looked for."""

_MOST_PARAMETERS = 6000
_FEATURES = "choose features=linear, kernel_pca or nystroem"
_SOLVERS = ("auto", "newton")
_RULES = ("default", "predictor", "potentials")


class OutcomeScores(FeatureMap):
    """The scores -A's of the outcomes A (l, m) of (1), from the scores s of the predictions by another map, which is multiclass linear."""

    name = "outcomes"

    def __init__(self, inner: FeatureMap, outcomes: Array) -> None:
        super().__init__(inner.X, outcomes.shape[1])
        self.inner, self.outcomes = inner, outcomes

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (d, l) of the parameters."""
        return self.inner.shape

    def scores(self, theta: Array) -> Array:
        """Return -S A for the scores S of the predictions, shape (n, m)."""
        return self.inner.scores(theta) @ -self.outcomes

    def adjoint(self, R: Array) -> Array:
        """Return X'(-R A'), shape (d, l)."""
        return self.inner.adjoint(self._back(R))

    def directions(self, B: Array, owner: Labels) -> Directions:
        """Return the rows (-A b) (x) x_owner."""
        return self.inner.directions(self._back(B), owner)

    def _back(self, R: Array) -> Array:
        return np.ascontiguousarray(R @ -self.outcomes.T)


@register("adversarial_costs")
@describes(Minimiser)
@dataclass(kw_only=True, eq=False, repr=False)
class AdversarialCostClassifier(LearnsFromCosts, SurrogateClassifier):
    """The adversarial surrogate of costs that every row has, equation (1) of the module; each fit is certified.

    Parameters
    ----------
    cost : {"zero_one", "absolute", "squared"}, array (k, k) or None
        The cost matrix for labels, in the order of `order_` or a frame that is named by them; its columns are the outcomes. Not used
        when `fit` is given costs of rows.
    features : {"linear", "kernel_pca", "nystroem"}
        Maps with one column of parameters for each prediction.
    solver : {"auto", "newton"}
        The algorithm.
    fit_intercept, solver_options, features_options
        A constant 1 as feature; further options of the algorithm and the feature map.

    Attributes
    ----------
    classes_, order_ : ndarray (l,)
        The predictions, sorted; and in the order of the columns of costs.
    theta_ : ndarray (d, l)
        Parameters of the scores s.
    outcomes_ : ndarray (l, m)
        The different vectors of costs, the matrix A.
    certificate_, rows_
        As in `SurrogateClassifier`.

    References
    ----------
    Fathony, Asif, Liu, Bashiri, Xing, Behpour, Zhang and Ziebart (2018), "Consistent robust adversarial prediction for general multiclass
    classification", arXiv 1812.07526: eq. 10 is the game of a matrix, here of the vectors of costs.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import AdversarialCostClassifier
    >>> X = np.repeat([[0.0], [1.0], [2.0]], 10, axis=0)
    >>> costs = np.abs(np.arange(3) - X)  # of predicting 0, 1 or 2
    >>> model = AdversarialCostClassifier(C=100.0).fit(X, costs=costs)
    >>> model.predict([[0.0], [1.0], [2.0]])
    array([0, 1, 2])
    >>> model.certificate_.converged
    True
    """

    takes_blocks = False

    loss: Any = field(default="general", init=False)
    loss_options: Mapping[str, Any] | None = field(default=None, init=False)
    extra_labels: Any = field(default=None, init=False)
    rule: str | None = field(default=None, init=False)

    # ---- from a configuration -------------------------------------------------------------------------------------
    @classmethod
    def has_probabilities(cls, loss: Options) -> bool:
        """Tell that the predictor's distribution is one over the classes."""
        return True

    @classmethod
    def check(cls, loss: Options, features: Options, solver: Options, n_classes: int | None) -> None:
        """Refuse unknown options, maps without one column a score, solvers of other problems, and invalid costs."""
        check_options(loss, cls.option_names())
        make_solver(solver["name"], **own_options(solver, LIMITS))
        mapped = {"features": features["name"], "features_options": own_options(features)}
        cls(**cls.options_of(loss, solver, {}), **mapped, n_classes=n_classes).check_parameters()

    @classmethod
    def _from_options(cls, loss: Options) -> dict[str, Any]:
        return {key: value for key, value in own_options(loss).items() if key != "file"}

    # ---- fitting --------------------------------------------------------------------------------------------------
    def check_parameters(self) -> None:
        """Refuse costs, a feature map, moments or a solver that no data can mend."""
        super().check_parameters()
        if not self.map_class.multiclass_linear:
            raise IncompatibleError("adversarial_costs", "one column of parameters for every prediction", _FEATURES)
        if self.map_options.get("moments", "ball") != "ball":
            raise IncompatibleError("adversarial_costs", "moments in a ball", "choose features.moments=ball")
        if self.solver not in _SOLVERS:
            raise IncompatibleError(f"solver={self.solver}", "scores with parameters of their own", f"choose one of {', '.join(_SOLVERS)}")

    def bind(self, rows: Rows, y: Any) -> Bound:
        """Return rows and labels as fits take them; without costs of rows the outcomes are the columns of the matrix, of all classes."""
        if rows.costs is not None:
            return super().bind(rows, y)
        X, codes, weights = self._checked(rows.X, y, rows.weight)
        return self._game(X, self.cost_matrix().T, codes, weights)

    def _bound(self, X: Any, codes: Labels, costs: Array, weights: Array | None) -> Bound:
        return self._game(X, costs, np.arange(len(costs)), weights)

    def _game(self, X: Any, costs: Array, codes: Labels, weights: Array | None) -> Bound:
        """Return rows X whose costs are the given rows of ``costs``: equal ones merged, the outcomes in one canonical order."""
        distinct, outcome = np.unique(costs + 0.0, axis=0, return_inverse=True)  # + 0.0: -0.0 and 0.0 are the same number
        y = outcome.ravel().astype(np.intp)[codes]
        total = mass_of(len(y), weights)
        X, y, weights, _, rows = merge_rows(X, y, weights)
        self.outcomes_ = np.ascontiguousarray(distinct.T)
        loss = self._make_loss(len(self.classes_))
        most = _MOST_LOOKS if self._by_planes(loss) else _MOST_NUMBERS
        if len(y) * len(distinct) > most:
            raise IncompatibleError(
                f"adversarial_costs on {len(y)} rows with {len(distinct)} different vectors of costs, solver={self.solver}",
                f"at most {most} of rows times vectors",
                "round the costs, so that fewer of them differ, or choose solver=auto or loss=csovo loss.pairs=all",
            )
        inner = self._bind(X)
        size = int(np.prod(inner.shape))
        if size > _MOST_PARAMETERS:
            raise IncompatibleError(
                "adversarial_costs", f"at most {_MOST_PARAMETERS} parameters (here {size})", "choose features=kernel_pca"
            )
        extras = {"loss": loss, "cost": loss.cost_weights(y, None), "rows": rows, "total": total, "tolerance": None}
        bound = Bound.of(self, OutcomeScores(inner, self.outcomes_), y, weights, **extras)
        kept = {"outcomes_": self.outcomes_, "features_": inner if inner.keeps_rows else None}
        return replace(bound, facts={**bound.facts, **kept})

    def _make_loss(self, k: int) -> Loss:
        return make_loss("general", self.outcomes_.shape[1], matrix=self.outcomes_)

    def _by_planes(self, loss: Loss) -> bool:
        """Tell whether the game is solved by a few outcomes of each row: there are many, and no closed form knows them."""
        return self.solver == "auto" and self.outcomes_.shape[1] > _MANY_OUTCOMES and loss.core is loss

    def _minimise(self, bound: Bound, lam: float, start: Solution | None) -> tuple[Judged, Solution]:
        if not self._by_planes(self.loss_):
            return super()._minimise(bound, lam, start)
        assert isinstance(bound.features, OutcomeScores)
        problem = OutcomeProblem(bound.features.inner, self.outcomes_, bound.codes, lam, bound.weights)
        return problem, solve_outcomes(problem, Limits(self.tol, self.max_passes, self.max_seconds), start, seed_of(self.random_state))

    def _objective(self, X: Any, codes: Labels, weights: Array | None) -> tuple[float, float]:
        columns = self.cost_matrix()[:, codes].T + 0.0
        same = (columns[:, :, None] == self.outcomes_).all(axis=1)
        if not same.any(axis=1).all():
            raise ConfigError("a label's costs are no outcome of the fit, which learned from costs of rows")
        y = np.argmax(same, axis=1)
        return self._terms_of(OutcomeScores(self._mapped(X), self.outcomes_), y, weights, self.loss_.cost_weights(y, None))

    # ---- what evaluation asks of a fit ----------------------------------------------------------------------------
    @property
    def predictions_(self) -> NDArray[Any]:
        """Labels of all predictions by their codes: `order_`."""
        return self.order_

    @property
    def predicts_classes_(self) -> bool:  # type: ignore[override]
        """True."""
        return True

    def mean_cost(self, X: Any, y: Any, weight: Array | None) -> float | None:
        """Return what the predictor's distribution costs on rows X (n, d) in expectation; y are codes (n,), or the rows' costs (n, l)."""
        costs = y if np.ndim(y) == 2 else self.cost_matrix()[:, y].T
        return float(np.average((self.predictor_distribution(X) * costs).sum(axis=1), weights=weight))

    def worst_case(self, X: Any, y: Any, weight: Array | None) -> WorstCase | None:
        """Return what the guarantee says of the predictions on the rows of the fit; y are codes (n,), or the rows' costs (n, l)."""
        assert self.certificate_ is not None
        costs = y if np.ndim(y) == 2 else self.cost_matrix()[:, y].T
        S, codes = self.potentials(X), self.predict_codes(X)
        largest = np.empty(len(codes))
        step = max(1, _AT_ONCE // self.outcomes_.shape[1])
        for first in range(0, len(codes), step):
            rows = slice(first, first + step)
            largest[rows] = (self.outcomes_[codes[rows]] - S[rows] @ self.outcomes_).max(axis=1)
        seen = costs[np.arange(len(codes)), codes]
        bound = np.average(largest + (S * costs).sum(axis=1), weights=weight)
        penalty = self.certificate_.game_value - self.certificate_.primal  # of a ball, the only moments here
        return WorstCase.of(self.certificate_, penalty, bound, np.average(seen, weights=weight), "predictor")

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the parameters, the dual point, of many outcomes as a list of mixtures, and the predictor's distributions."""
        predictor = self.predictor_distribution(X)
        if not self._by_planes(self.loss_):
            return {**Learner.proof(self, X, codes, weight), "predictor": predictor}  # a surrogate's own asks its loss for p
        R, rows = self.solution_.R, self.rows_
        assert R is not None
        first = np.searchsorted(R[:, 0], np.arange(rows.max() + 2))
        counts = np.where(rows >= 0, np.diff(first)[rows], 0)
        at = np.repeat(first[rows] - np.r_[0, np.cumsum(counts)[:-1]], counts) + np.arange(counts.sum())
        listed = np.column_stack([np.repeat(np.arange(len(rows)), counts), R[at, 1:]])
        return {"theta": self.theta_, "r": listed.astype(np.float64), "predictor": predictor}

    def probabilities(self, X: Any) -> Array | None:
        """Return the predictor's distribution, shape (n, l): a strategy of the game, no estimate."""
        return self.predictor_distribution(X)

    # ---- prediction -----------------------------------------------------------------------------------------------
    def outcome_scores(self, X: Any) -> Array:
        """Return the scores -A's of the outcomes, shape (n, m), the scores of the game of the matrix A."""
        return self.potentials(X) @ -self.outcomes_

    def predictor_distribution(self, X: Any) -> Array:
        """Return the predictor's p, shape (n, l): it minimises the worst expected cost."""
        if self._by_planes(self.loss_):
            return solve_outcome_games(self.outcomes_, self.potentials(X)).predictor
        return self.loss_.predictor(self.outcome_scores(X))

    def adversary_distribution(self, X: Any) -> Array:
        """Return the adversary's q over the outcomes, shape (n, m): A q are the worst expected costs that the moments allow."""
        if not self._by_planes(self.loss_):
            return self.loss_.adversary(self.outcome_scores(X))
        games = solve_outcome_games(self.outcomes_, self.potentials(X))
        Q = np.zeros((len(games.shares), self.outcomes_.shape[1]))
        row, at = np.nonzero(games.shares)
        np.add.at(Q, (row, games.columns[row, at]), games.shares[row, at])
        return Q

    def expected_loss(self, X: Any) -> Array:
        """Return the expected cost of the predictor's p under every outcome, shape (n, m)."""
        return self.predictor_distribution(X) @ self.outcomes_

    def predict_codes(self, X: Any, rule: str = "default") -> NDArray[np.intp]:
        """Return predictions as codes: the likeliest of the predictor's p, or with ``rule="potentials"`` the largest score."""
        if rule not in _RULES:
            raise UnknownNameError(f"unknown prediction rule {rule!r}: {nearest(rule, _RULES)}")
        view = self.look(X)
        return np.argmax(self.potentials(view) if rule == "potentials" else self.predictor_distribution(view), axis=1).astype(np.intp)

    # ---- saving ---------------------------------------------------------------------------------------------------
    def _saved_loss(self) -> dict[str, Any]:
        return {}

    def saved(self) -> State:
        """Return what a saved model holds, the outcomes among the attributes."""
        parameters, attributes, rows = super().saved()
        return parameters, {**attributes, "outcomes": self.outcomes_}, rows

    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model; `classes_`, `features_` and `certificate_` are there already."""
        self.outcomes_ = attributes.array("outcomes", (len(self.classes_), None), least=0.0)
        super().restore(attributes)
