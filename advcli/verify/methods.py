"""What a cell's method is to the checker: a surrogate of scores, a game of outcomes, binary problems, thresholds or structured labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ..core.typing import Array
from .binary import NAMES, Reduction, cost_matrix
from .decisions import beyond, computed, of_game
from .gap import Bounds, LearnedRows, ScoreMap, bound
from .label_sets import SetsOfLabels
from .leaf_sets import SetsOfLeaves
from .outcomes import bound_outcomes
from .sequences import SequencesOfLabels
from .stages import bound_rejector
from .surrogates import CannotError, Surrogate, abstaining, closed_form, paired
from .thresholds import ThresholdModel


class Refereed(Protocol):
    """The bounds and predictions of a fit by its stored arrays (`advcli.results.proofs`)."""

    game: bool  # whether the surrogate is a game, whose value the certificate states
    example_costs: bool  # whether example weights are factors on costs
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
    sequences = False

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


class _ByOutcomes:
    """The game of the different vectors of costs: the columns of a matrix where rows have labels."""

    game, example_costs, sequences = True, False, False

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


def method_of(options: Mapping[str, Any], labels: list[str], ordered: bool, hierarchy: Iterable[tuple[str, str]] | None) -> Refereed:
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
