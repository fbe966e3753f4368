"""What a cell's method is to the checker: a surrogate of scores, a game of outcomes, binary problems, thresholds or structured labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from .binary import NAMES, Reduction, cost_matrix
from .bounds import Array
from .chains import SequencesOfLabels
from .gap import Bounds, LearnedRows, ScoreMap, bound
from .leaves import SetsOfLeaves
from .outcomes import bound_outcomes
from .stages import bound_rejector
from .structured import SetsOfLabels
from .surrogates import CannotError, Surrogate
from .thresholds import ThresholdModel


class Method(Protocol):
    """The bounds and predictions of a fit by its stored arrays (`advcli.proofs`)."""

    game: bool  # whether the surrogate is a game, whose value the certificate states
    example_costs: bool  # whether example weights are factors on costs
    sequences: bool  # whether examples are sequences of rows

    def score_map(self, options: Mapping[str, Any], gamma: float | None, X: Any) -> ScoreMap:
        """Return the feature map over training rows X (n, d)."""

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        """Return the bounds of a fit to the rows of ``features``."""

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, theta: Array) -> Any:
        """Return which classes may be the predictions on rows X, (n, k): several where rounding leaves it open; None for any.

        ``groups`` (n,) are the sequences of the rows, or None.
        """


class _BySurrogate:
    sequences = False

    def __init__(self, options: Mapping[str, Any], labels: list[str], hierarchy: Iterable[tuple[str, str]] | None) -> None:
        self.loss = Surrogate(options, len(labels), labels, hierarchy)
        self.rejector_alpha = float(options.get("alpha", 0.5)) if options["name"] == "two_stage" else None
        self.game, self.example_costs = self.loss.game, isinstance(self.loss.weight, str)

    def score_map(self, options: Mapping[str, Any], gamma: float | None, X: Any) -> ScoreMap:
        given = options.get("constant")
        return ScoreMap(options, gamma, X, self.loss.k, float(self.loss.constant if given is None else given))

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        factors = self.loss.cost_weights(rows.y, rows.weight)
        proof = arrays["theta"], arrays["r"], arrays.get("predictor")
        found = bound(features, self.loss, rows.y, lam, rows.counts, factors, *proof)
        if self.rejector_alpha is None:
            return found
        if not {"rejector_theta", "rejector_r"} <= arrays.keys():
            raise CannotError("nothing was kept of the rejector")
        second = arrays["rejector_theta"], arrays["rejector_r"]
        rejector = bound_rejector(features, rows.y, self.rejector_alpha, lam, rows.counts, arrays["theta"], *second)
        return replace(found, stages={"rejector": rejector})

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, theta: Array) -> Any:
        return features.scores(X, theta).may_lead() if self.loss.by_scores else None


class _ByOutcomes:
    """The game of the different vectors of costs: the columns of a matrix where rows have labels."""

    game, example_costs, sequences = True, False, False

    def __init__(self, options: Mapping[str, Any], labels: list[str], ordered: bool) -> None:
        self.matrix, self.k = cost_matrix(options, len(labels), labels, ordered), len(labels)

    def score_map(self, options: Mapping[str, Any], gamma: float | None, X: Any) -> ScoreMap:
        return ScoreMap(options, gamma, X, self.k)

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        costs = self.matrix.T if rows.costs is None else rows.costs
        outcomes, outcome = np.unique(costs + 0.0, axis=0, return_inverse=True)  # -0.0 is 0.0
        y = outcome.ravel()[rows.y] if rows.costs is None else outcome.ravel()
        if arrays["r"].shape[1] == 3 != len(outcomes):  # a list of mixtures, as fits with many outcomes keep
            proved = arrays["theta"], arrays["r"], arrays.get("predictor")
            return bound_outcomes(features, outcomes[y], np.ascontiguousarray(outcomes.T), lam, rows.counts, *proved)
        loss = Surrogate({"name": "general", "matrix": outcomes.T}, len(outcomes), list(map(str, range(len(outcomes)))))
        proof = arrays["theta"], arrays["r"], arrays.get("predictor")
        return bound(features.of_outcomes(outcomes.T), loss, y, lam, rows.counts, np.ones(len(y)), *proof)

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, theta: Array) -> Any:
        return None


def method_of(options: Mapping[str, Any], labels: list[str], ordered: bool, hierarchy: Iterable[tuple[str, str]] | None) -> Method:
    """Return the method of a cell by its group ``loss``; `CannotError` for one that the checker does not know."""
    learner = str(options.get("learner") or options["name"])
    if options["name"] in NAMES:
        return Reduction(options, len(labels), labels, ordered)
    if options["name"] == "adversarial_costs":
        return _ByOutcomes(options, labels, ordered)
    if ThresholdModel.knows(options):
        return ThresholdModel(options, len(labels), labels)
    if learner == "chain":
        return SequencesOfLabels(options, len(labels))
    if learner == "hierarchical_sets":
        return SetsOfLeaves(options, labels, hierarchy)
    if learner == "sets":
        return SetsOfLabels(options, len(labels))
    return _BySurrogate(options, labels, hierarchy)
