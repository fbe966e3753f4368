"""What a cell's method is to the checker: a surrogate of scores, a game of outcomes, binary problems, thresholds or structured labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from ..core.typing import Array
from .binary import NAMES, Reduction, cost_matrix
from .bounds import Ball, ball, dot, inverse, join, outward
from .decisions import beyond, computed, of_game
from .gap import Bounds, LearnedRows, ScoreMap, bound
from .label_sets import SetsOfLabels
from .leaf_sets import SetsOfLeaves
from .sequences import SequencesOfLabels
from .surrogates import CannotError, Surrogate, abstaining, closed_form, in_pairs, paired
from .thresholds import THRESHOLD_MODELS, ThresholdModel
from .trees import DependencyTrees

_OUTCOME_ROWS = 256  # rows that are looked at with all outcomes at once
_STRUCTURED: dict[str, Any] = {"dependency_trees": DependencyTrees, "chain": SequencesOfLabels, "sets": SetsOfLabels}


class Refereed(Protocol):
    """The bounds and predictions of a fit by its stored arrays (`advcli.results.proofs`)."""

    game: bool  # whether the surrogate is a game, whose value the certificate states
    example_costs: bool  # whether example weights are factors on costs

    @property
    def has_costs(self) -> bool:
        """Whether it learns from costs of rows."""

    sequences: bool  # whether examples are sequences of rows

    def score_map(self, options: Mapping[str, Any], gamma: float | None, X: Any) -> ScoreMap:
        """Return the feature map over training rows X (n, d)."""

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        """Return the bounds of a fit to the rows of ``features``."""

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, arrays: Mapping[str, Array]) -> Any:
        """Return which predictions are possible on rows X, (n, l): several where rounding leaves it open; None where none is followed.

        ``groups`` (n,) are the sequences of the rows, or None.
        """

    def facts(self) -> Mapping[str, Any]:
        """Return what metrics ask for: ``alpha``, the cost of abstaining, and ``cost_matrix``, where there are any."""


class _BySurrogate:
    has_costs = sequences = False

    def __init__(self, options: Mapping[str, Any], labels: list[str], hierarchy: Iterable[tuple[str, str]] | None) -> None:
        self.loss = Surrogate(options, len(labels), labels, hierarchy)
        self.rejector_alpha = float(options.get("alpha", 0.5)) if options["name"] == "two_stage" else None
        self.tau = float(options.get("tau") or 0.0)
        self.game, self.example_costs = self.loss.game, isinstance(self.loss.weight, str)

    def score_map(self, options: Mapping[str, Any], gamma: float | None, X: Any) -> ScoreMap:
        constant = options.get("constant")
        return ScoreMap(options, gamma, X, self.loss.k, float(self.loss.constant if constant is None else constant))

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        first = bound(features, self.loss, rows, lam, arrays)
        if self.rejector_alpha is None:
            return first
        if not {"rejector_theta", "rejector_r"} <= arrays.keys():
            raise CannotError("nothing was kept of the rejector")
        return replace(first, stages={"rejector": bound_rejector(features, rows, self.rejector_alpha, lam, arrays)})

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, arrays: Mapping[str, Array]) -> Any:
        F = features.scores(X, arrays["theta"])
        if self.rejector_alpha is None:
            return self.loss.possible(F)
        return beyond(computed(F).may_lead(), paired(features.scores(X, arrays["rejector_theta"]))[:, 0], self.tau)

    def facts(self) -> Mapping[str, Any]:
        return self.loss.facts() if self.rejector_alpha is None else abstaining(self.loss.k, self.rejector_alpha)


class _ByProbabilities(_BySurrogate):
    """The logistic regression whose probabilities `loss=metric` decides by; its decisions are not followed."""

    def __init__(self, options: Mapping[str, Any], *about: Any) -> None:
        super().__init__({"name": "entropy"}, *about)

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, arrays: Mapping[str, Array]) -> Any:
        return None


class _ByOutcomes:
    """The game of the different vectors of costs: the columns of a matrix where rows have labels."""

    game, example_costs, has_costs, sequences = True, False, True, False

    def __init__(self, options: Mapping[str, Any], labels: list[str], ordered: bool) -> None:
        self.matrix, self.k = cost_matrix(options, len(labels), labels, ordered), len(labels)

    def score_map(self, options: Mapping[str, Any], gamma: float | None, X: Any) -> ScoreMap:
        return ScoreMap(options, gamma, X, self.k)

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        outcomes, y = self._outcomes(rows)
        if arrays["r"].shape[1] == 3 != len(outcomes):  # a list of mixtures, as fits with many outcomes keep
            learned = replace(rows, costs=outcomes[y])
            return bound_outcomes(features, learned, np.ascontiguousarray(outcomes.T), lam, arrays)
        loss = Surrogate({"name": "general", "matrix": outcomes.T}, len(outcomes), list(map(str, range(len(outcomes)))))
        return bound(features.of_outcomes(outcomes.T), loss, replace(rows, y=y), lam, arrays)

    def _outcomes(self, rows: LearnedRows) -> tuple[Array, Any]:
        """Return the different vectors of costs (m, l), and which of them the rows have, (n,)."""
        costs = self.matrix.T if rows.costs is None else rows.costs
        outcomes, outcome = np.unique(costs + 0.0, axis=0, return_inverse=True)  # -0.0 is 0.0
        return outcomes, outcome.ravel()[rows.y] if rows.costs is None else outcome.ravel()

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, arrays: Mapping[str, Array]) -> Any:
        A = np.ascontiguousarray(self._outcomes(rows)[0].T)
        return of_game(A, features.of_outcomes(A).scores(X, arrays["theta"]), closed_form(A))

    def facts(self) -> Mapping[str, Any]:
        return {"cost_matrix": self.matrix}


def bound_rejector(features: ScoreMap, rows: LearnedRows, alpha: float, lam: float, arrays: Mapping[str, Array]) -> Bounds:
    """Bound the objective of a rejector, which learns where a first stage errs (Mao, Mohri & Zhong 2024); ``arrays`` hold a, b and t of
    every row.

    The scores are r(x) = (f_0 - f_1) / sqrt(2), the weights of rows s_i, and t_i = 1 where the first stage is wrong. With n' = sum_i s_i
    (alpha + t_i), a_i and b_i in [0, 1], and lambda' n' = lambda n of the first stage

        P = lambda'/2 |theta|^2 + 1/n' sum_i s_i (alpha [1 - r_i]_+ + t_i [1 + r_i]_+)                          at least min P
        D = 1/n' sum_i s_i (alpha a_i + t_i b_i) - |sum_i s_i x_i (t_i b_i - alpha a_i)|^2 / (2 lambda' n'^2)   at most min P

    `ValueError` for an array of the wrong shape, or a t that the scores of the first stage cannot give.
    """
    y, n, first, theta, stored = rows.y, len(rows.y), arrays["theta"], arrays["rejector_theta"], arrays["rejector_r"]
    weights = rows.shares()[0]
    if stored.shape != (n, 3) or not np.isin(stored[:, 2], (0.0, 1.0)).all():
        raise ValueError(f"rejector_r has the shape {stored.shape}, not {(n, 3)}, or its last column is not 0 and 1")
    features.parts(first)
    V, _ = features.parts(theta)
    wrong = stored[:, 2]
    F, row = features.scores(features.X, first), np.arange(n)
    others = np.ones(F.mid.shape, dtype=bool)
    others[row, y] = False
    may_err = (np.where(others, F.high, -np.inf) >= F.low[row, y][:, None]).any(axis=1)
    may_hit = F.high[row, y] >= np.where(others, F.low, -np.inf).max(axis=1)
    if not (np.where(wrong > 0.0, may_err, may_hit) | (weights == 0.0)).all():
        raise ValueError("the rejector learned from errors that are none")
    r = paired(features.scores(features.X, theta))[:, 0]
    accept, reject = ball(weights) * alpha, ball(weights * wrong)
    share = inverse(accept.sum() + reject.sum())
    scaled = ball(lam) * ball(weights).sum() * share
    one = ball(np.ones(n))
    losses = ((one - r).positive() * accept + (one + r).positive() * reject).sum() * share
    a, b = np.clip(stored[:, 0], 0.0, 1.0), np.clip(stored[:, 1], 0.0, 1.0)
    pull = in_pairs((reject * b - accept * a)[:, None], F.mid.shape[1])
    square = features.square_norm(features.moments(pull))
    ridge = features.square_norm(V) * scaled * 0.5
    dual = (accept * a + reject * b).sum() * share - square * share * share * inverse(scaled * 2.0)
    return Bounds(ridge + losses, dual, ridge)


def bound_outcomes(features: ScoreMap, rows: LearnedRows, outcomes: Array, lam: float, arrays: Mapping[str, Array]) -> Bounds:
    """Return the bounds of the game of costs c_i (n, l) with many outcomes a_1, .., a_m (l, m), at scores u_i = Theta x_i.

        P(Theta) = lambda/2 |Theta|^2 + 1/n sum_i s_i [u_i.c_i + max over k of (p_i - u_i).a_k]   at least min P, for any distributions p_i
        D(C)     = 1/n sum_i s_i min_j C_ij - |sum_i s_i x_i (c_i - C_i)'|^2 / (2 lambda n^2)     at most min P, for C_i in the hull

    The stored mixtures (p, 3) are rows (example, outcome, share); what an example's shares leave of 1 is its own c_i, so that shares of at
    least 0 whose sum is at most 1 are all that has to hold. `ValueError` for a row or an outcome that is none, `CannotError` without the
    predictor p (n, l).
    """
    costs, theta, mixtures, predictor = rows.costs, arrays["theta"], arrays["r"], arrays.get("predictor")
    assert costs is not None
    (n, l), m = costs.shape, outcomes.shape[1]
    if predictor is None or predictor.shape != (n, l):
        raise CannotError("many outcomes need the stored predictor, shape (n, l)")
    places = mixtures[:, :2].astype(np.intp)
    if not (places == mixtures[:, :2]).all() or not ((places >= 0) & (places < (n, m))).all():
        raise ValueError(f"mixtures must name rows below {n} and outcomes below {m}")
    weights, share = rows.shares()
    V, _ = features.parts(theta)
    U = features.scores(features.X, theta)
    P = np.maximum(predictor, 0.0)
    astray = (ball(P).sum(axis=1) - 1.0).size  # P / sum of P is a distribution
    largest = float(np.abs(outcomes).max())
    parts = [slice(first, first + _OUTCOME_ROWS) for first in range(0, n, _OUTCOME_ROWS)]
    worst = join(*(dot(ball(P[part]) - U[part], outcomes).max(axis=1) for part in parts))
    losses = worst + Ball(np.zeros(n), outward(largest * astray)) + (U * costs).sum(axis=1)
    # shares of sum at most 1
    mixed = sparse.csr_array((np.maximum(mixtures[:, 2], 0.0), (places[:, 0], places[:, 1])), shape=(n, m))
    mixed.sum_duplicates()
    sums = outward(np.asarray(mixed.sum(axis=1)).ravel(), m)
    mixed = sparse.csr_array(sparse.diags_array(np.where(sums > 1.0, (1.0 - 1e-12) / np.maximum(sums, 1.0), 1.0)) @ mixed)
    rest = ball(np.ones(n)) - dot(mixed, np.ones((m, 1)))[:, 0]
    C = dot(mixed, np.ascontiguousarray(outcomes.T)) + ball(costs) * rest[:, None]
    least = -(-C).max(axis=1)
    moments = features.moments((ball(costs) - C) * weights[:, None])
    ridge = features.square_norm(V) * (0.5 * lam)
    dual = (least * weights).sum() * share - features.square_norm(moments) * share * share * inverse(ball(2.0 * lam))
    return Bounds(ridge + (losses * weights).sum() * share, dual, ridge)


def method_of(options: Mapping[str, Any], labels: list[str], ordered: bool, hierarchy: Iterable[tuple[str, str]] | None) -> Refereed:
    """Return the method of a cell by its group ``loss``; `CannotError` for an unknown one."""
    learner = str(options.get("learner") or options["name"])
    if options["name"] in NAMES:
        return Reduction(options, len(labels), labels, ordered)
    if options["name"] == "adversarial_costs":
        return _ByOutcomes(options, labels, ordered)
    if options["name"] == "metric":
        return _ByProbabilities(options, labels, hierarchy)
    if options["name"] in THRESHOLD_MODELS:
        return ThresholdModel(options, len(labels), labels)
    if learner in _STRUCTURED:
        return _STRUCTURED[learner](options, len(labels))
    return (SetsOfLeaves if learner == "hierarchical_sets" else _BySurrogate)(options, labels, hierarchy)
