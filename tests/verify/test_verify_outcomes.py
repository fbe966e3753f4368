"""The bounds of games of many outcomes hold for any mixtures and predictors, shares that are none among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from advcli.verify.gap import LearnedRows, ScoreMap
from advcli.verify.methods import bound_outcomes
from advcli.verify.surrogates import CannotError


def game(A: Any) -> tuple[float, Any]:
    """Return the value of the game over costs A (l, m), min over p of max_k p.a_k, and p."""
    l, m = A.shape
    proved = linprog(np.r_[np.zeros(l), 1.0], np.hstack([A.T, -np.ones((m, 1))]), np.zeros(m), np.r_[np.ones(l), 0.0][None], [1.0])
    return float(proved.fun), proved.x[:l]


@pytest.mark.parametrize("seed", range(5))
def test_any_mixtures_and_predictors_bound_the_optimum_of_a_strong_regulariser(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, l, m = 12, 3, 6
    A, X = random.uniform(0.2, 2.0, (l, m)), random.normal(size=(n, 2))
    costs, weight = A[:, random.integers(0, m, n)].T, random.integers(1, 4, n).astype(float)
    features, theta, lam = ScoreMap({"name": "linear"}, None, X, l), np.zeros((3, l)), 1e6
    value, p = game(A)
    rows = LearnedRows(costs.argmin(axis=1), weight, None, costs)

    def bounds(mixtures: Any, predictor: Any) -> Any:
        return bound_outcomes(features, rows, A, lam, {"theta": theta, "r": np.asarray(mixtures), "predictor": predictor})

    whole = np.column_stack([np.repeat(np.arange(n), m), np.tile(np.arange(m), n), np.zeros(n * m)])
    for low, high in ((0.0, 1.0), (0.0, 0.1), (-1.0, 1.0), (-1.0, 0.0), (1.0, 3.0)):
        whole[:, 2] = random.uniform(low, high, n * m)
        for factor in (1.0, 0.5, 2.0):
            proved = bounds(whole, factor * np.tile(p, (n, 1)))
            assert float(proved.dual.low) <= value + 1e-5
            # a predictor with a sum below 1 pays for the missing share
            assert float(proved.primal.high) >= value - 1e-9
        signed = bounds(whole, np.tile(p, (n, 1)) - random.uniform(0.0, 0.5, (n, l)))
        assert float(signed.primal.high) >= value - 1e-9
    # nothing is mixed: every row has its own costs
    exact = bounds(np.empty((0, 3)), np.tile(p, (n, 1)))
    assert float(exact.dual.low) == pytest.approx(float(np.average(costs.min(axis=1), weights=weight)), rel=1e-12)
    assert float(exact.primal.high) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("outcome", "mixture", "p"),
    [
        (0, [1.0, 3.0], [1.0, 0.0]),  # thrice the dearer outcome
        (1, [0.0, -1.0], [1.0, 0.0]),  # less than nothing of the cheaper one
        (0, [1.0, 1.0], [2.0, -1.0]),  # a predictor that takes back what is dear
    ],
)
def test_shares_that_are_none_win_nothing(outcome: int, mixture: list[float], p: list[float]) -> None:
    A, n = np.array([[0.5, 1.0], [1.0, 2.0]]), 4
    value, _ = game(A)
    features = ScoreMap({"name": "linear"}, None, np.ones((n, 1)), 2)
    mixtures = np.array([[row, *mixture] for row in range(n)])
    rows = LearnedRows(np.zeros(n, dtype=int), None, None, np.tile(A[:, outcome], (n, 1)))
    proved = bound_outcomes(features, rows, A, 1e6, {"theta": np.zeros((2, 2)), "r": mixtures, "predictor": np.tile(p, (n, 1))})
    assert float(proved.dual.low) <= value + 1e-5
    assert float(proved.primal.high) >= value - 1e-9


def test_mixtures_of_what_is_not_there_are_refused() -> None:
    features, A = ScoreMap({"name": "linear"}, None, np.ones((2, 1)), 2), np.eye(2)
    rows, proof = LearnedRows(np.arange(2), None, None, A), {"theta": np.zeros((2, 2)), "r": np.empty((0, 3))}
    for row in ([2.0, 0.0, 0.5], [0.0, 2.0, 0.5], [-1.0, 0.0, 0.5], [0.5, 0.0, 0.5]):
        with pytest.raises(ValueError, match="mixtures must name rows below 2 and outcomes below 2"):
            bound_outcomes(features, rows, A, 1.0, {**proof, "r": np.array([row]), "predictor": np.full((2, 2), 0.5)})
    with pytest.raises(CannotError, match="need the stored predictor"):
        bound_outcomes(features, rows, A, 1.0, {**proof, "predictor": np.full((2, 3), 0.5)})
