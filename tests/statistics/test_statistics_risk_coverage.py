"""Risk over coverage, and thresholds with a guarantee: definitions, ties, coverage over many draws, bad input."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from advcli.core.errors import ConfigError, DataError
from advcli.statistics.risk_coverage import guarantee, risk_coverage


def area(wrong: Any) -> float:
    """Return the mean risk of the first 1, 2, ..., n rows."""
    return float(np.mean(np.cumsum(wrong) / np.arange(1, len(wrong) + 1)))


def test_the_area_is_the_mean_over_all_orders_of_tied_rows() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        margin, wrong = random.integers(0, 3, size=6).astype(float), random.random(6) < 0.4
        result = risk_coverage(margin, wrong)
        orders = [p for p in permutations(range(6)) if (np.diff(margin[list(p)]) <= 0).all()]
        assert result.aurc == pytest.approx(np.mean([area(wrong[list(p)]) for p in orders]), abs=1e-12)
        assert result.aurc - result.excess == pytest.approx(min(area(wrong[list(p)]) for p in permutations(range(6))), abs=1e-12)
        for threshold, coverage, risk, accuracy in zip(result.threshold, result.coverage, result.risk, result.accuracy, strict=True):
            accepted = margin >= threshold
            assert coverage == accepted.mean()
            assert risk == pytest.approx(wrong[accepted].mean(), abs=1e-15)
            assert accuracy == 1 - risk
        assert len(result.threshold) == len(set(margin))
        assert result.coverage[-1] == 1.0


def test_perfect_and_useless_margins() -> None:
    wrong = np.array([False] * 8 + [True] * 2)
    assert risk_coverage(-np.arange(10.0), wrong).excess == 0.0
    assert risk_coverage(np.zeros(10), wrong).aurc == pytest.approx(0.2)
    assert risk_coverage(np.arange(10.0), wrong).excess > risk_coverage(np.zeros(10), wrong).excess > 0
    assert risk_coverage(np.zeros(3), np.zeros(3)).aurc == 0.0
    moved = risk_coverage(np.r_[np.full(2, -np.inf), np.arange(8.0)], np.r_[True, True, np.zeros(8, dtype=bool)])
    assert moved.excess == 0.0
    assert moved.threshold[-1] == -np.inf


@pytest.mark.parametrize("shape", ["falling", "dipping"])
def test_of_many_draws_at_most_delta_have_a_threshold_that_is_not_good(shape: str) -> None:
    """1000 draws of 500 held-out rows from a known law, whose error above a threshold need not fall with it."""
    random, epsilon, delta = np.random.default_rng(1), 0.06, 0.1

    def risk(margin: np.ndarray) -> np.ndarray:
        """P(wrong | margin), for margins uniform on [0, 1]."""
        return 0.3 * (1 - margin) ** 2 if shape == "falling" else np.where((margin > 0.6) & (margin < 0.8), 0.14, 0.02)

    grid = np.linspace(0, 1, 20001)
    above = np.cumsum(risk(grid)[::-1])[::-1] / np.arange(len(grid), 0, -1)
    margins = random.uniform(size=(1000, 500))
    errors = random.uniform(size=margins.shape) < risk(margins)
    bad, coverage = 0, []
    for margin, wrong in zip(margins, errors, strict=True):
        result = guarantee(margin, wrong, epsilon, delta)
        coverage.append(result.coverage)
        if result.accepted:
            bad += int(np.interp(max(result.tau, 0.0), grid, above) > epsilon)
            accepted = margin[50:] > result.tau
            assert (result.accepted, result.wrong) == (accepted.sum(), wrong[50:][accepted].sum())
            assert binom.cdf(result.wrong, result.accepted, epsilon) <= delta
    assert bad <= binom.ppf(0.999, 1000, delta)
    assert bad > 10  # the level is used: the study could see a method that proves too much
    if shape == "falling":
        assert np.mean(coverage) > 0.3


def test_given_thresholds_are_tested_in_turn_until_one_fails() -> None:
    margin = np.r_[np.full(100, 3.0), np.full(100, 2.0), np.full(400, 1.0)]
    wrong = np.zeros(600, dtype=bool)
    wrong[100:130] = True  # a bad group in the middle hides the good one below
    result = guarantee(margin, wrong, 0.05, 0.1, thresholds=[2.5, 1.5, 0.5])
    assert (result.tau, result.accepted, result.wrong, result.rows) == (2.5, 100, 0, 600)
    assert "tau = 2.5 accepts 100 of 600" in str(result)
    none = guarantee(margin, np.ones(600), 0.05, 0.1, thresholds=[2.5, 1.5])
    assert (none.tau, none.accepted, none.coverage) == (np.inf, 0, 0.0)
    assert "no threshold" in str(none)
    strict = guarantee(margin, np.zeros(600), 0.05, 0.1, thresholds=[2.0])  # margins of 2 are not above 2
    assert strict.accepted == 100
    everything = guarantee(margin[::-1], np.zeros(600), 0.05, 0.1)
    assert (everything.tau, everything.coverage) == (-np.inf, 1.0)
    assert "tau = -inf accepts 540 of 540" in str(everything)


def test_the_rows_set_apart_are_not_tested_on() -> None:
    random = np.random.default_rng(2)
    margin, wrong = random.normal(size=400), random.random(400) < 0.02
    result = guarantee(margin, wrong)
    other = wrong.copy()
    other[:40] = ~other[:40]
    again = guarantee(margin, other)
    assert (again.tau, again.wrong) == (result.tau, result.wrong)


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"level": 0.0}, ConfigError, "level=0"),
        ({"delta": 1}, ConfigError, "delta=1"),
        ({"thresholds": [0.1, 0.2]}, ConfigError, "thresholds must be numbers that fall"),
        ({"thresholds": []}, ConfigError, "thresholds must be numbers that fall"),
        ({"thresholds": [np.nan, 0.0]}, ConfigError, "thresholds must be numbers that fall"),
        ({"scores": np.r_[np.nan, np.zeros(99)]}, DataError, "a margin is nan"),
        ({"scores": np.zeros(3)}, DataError, "one number a row"),
        ({"scores": [], "wrong": []}, DataError, "one number a row"),
        ({"scores": np.zeros(15), "wrong": np.zeros(15)}, DataError, "15 held-out rows are too few: 20 are set apart"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        guarantee(**{"scores": np.zeros(100), "wrong": np.zeros(100), **options})
