"""Conformal sets and costs: coverage by counting, exactly and over draws, and what sets look like."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from advcli import conformal_costs, conformal_sets
from advcli.core.errors import ConfigError, DataError, UnknownNameError
from advcli.statistics.conformal import METHODS, smallest

TREE = {0: "a", 1: "a", 2: "b", 3: "b", "a": "root", "b": "root"}


def drawn(random: np.random.Generator, n: int, k: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities that are wrong by a temperature, and classes."""
    Z = random.normal(size=(n, k)) * 2.0
    truth = np.exp(Z - Z.max(axis=1, keepdims=True))
    truth /= truth.sum(axis=1, keepdims=True)
    y = (random.uniform(size=(n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, k - 1)
    said = np.exp(3.0 * (Z - Z.max(axis=1, keepdims=True)))
    return said / said.sum(axis=1, keepdims=True), y


def given(method: str) -> dict[str, Any]:
    return {"method": method, "parents": TREE if method == "tree" else None}


@pytest.mark.parametrize("level", [0.1, 0.3, 0.5])
def test_every_rank_is_equally_likely_so_coverage_is_exact(level: float) -> None:
    """Over all orders of six different numbers the last one is at most the threshold of the first five in the promised share."""
    for n in (3, 5):
        inside = [order[-1] <= smallest(np.array(order[:-1], dtype=float), level) for order in permutations(range(n + 1))]
        share = np.mean(inside)
        assert 1.0 - level - 1e-12 <= share <= 1.0 - level + 1.0 / (n + 1) + 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_coverage_over_a_thousand_draws(method: str) -> None:
    random, hits, draws, n, level = np.random.default_rng(0), 0, 1000, 30, 0.2
    for _ in range(draws):
        P, y = drawn(random, n + 1)
        sets = conformal_sets(P[:n], y[:n], level, **given(method))
        hits += int(sets.predict(P[n:])[0, y[n]])
    assert hits >= binom.ppf(1e-6, draws, 1.0 - level)
    if method == "lac":  # no two numbers are equal
        assert hits <= binom.ppf(1.0 - 1e-6, draws, 1.0 - level + 1.0 / (n + 1))


def test_randomised_aps_covers_as_often_as_stated() -> None:
    random, hits = np.random.default_rng(1), 0
    for seed in range(1000):
        P, y = drawn(random, 31)
        sets = conformal_sets(P[:30], y[:30], 0.2, "aps", seed=seed)
        hits += int(sets.predict(P[30:], seed=seed + 5000)[0, y[30]])
    assert binom.ppf(1e-6, 1000, 0.8) <= hits <= binom.ppf(1.0 - 1e-6, 1000, 0.8 + 1.0 / 31.0)


def test_the_mean_cost_of_the_best_member_is_at_most_the_wanted_one() -> None:
    random, L = np.random.default_rng(2), np.abs(np.arange(4)[:, None] - np.arange(4)).astype(float)
    costs = []
    for _ in range(1000):
        P, y = drawn(random, 41)
        inside = conformal_costs(P[:40], y[:40], L, 0.4).predict(P[40:])[0]
        costs.append(L[inside, y[40]].min() if inside.any() else L.max())
    assert np.mean(costs) <= 0.4 + 5.0 * np.std(costs) / np.sqrt(1000)


def test_zero_one_costs_are_the_level_of_lac() -> None:
    P, y = drawn(np.random.default_rng(3), 99)
    for level in (0.05, 0.1, 0.25):
        by_cost = conformal_costs(P, y, 1.0 - np.eye(4), level)
        assert by_cost.threshold == pytest.approx(conformal_sets(P, y, level).threshold)


def test_costs_are_the_least_level_by_trying_all() -> None:
    random, L = np.random.default_rng(4), np.random.default_rng(5).uniform(size=(4, 4)) * (1.0 - np.eye(4))
    P, y = drawn(random, 25)
    for cost in (0.05, 0.2, 0.5):
        found = conformal_costs(P, y, L, cost).threshold

        def mean(level: float) -> float:
            inside = level >= 1.0 - P
            each = np.where(inside, L[:, y].T, np.inf).min(axis=1)
            return float((np.where(np.isinf(each), L.max(), each).sum() + L.max()) / (len(y) + 1))

        tried = [level for level in np.unique(1.0 - P) if mean(level) <= cost]
        assert found == (min(tried) if tried else np.inf)


def test_sets_of_an_order_are_runs_and_sets_of_a_tree_are_nodes() -> None:
    random = np.random.default_rng(6)
    P, y = drawn(random, 300)
    new = drawn(random, 200)[0]
    for level in (0.05, 0.3):
        runs = conformal_sets(P, y, level, "ordinal").predict(new)
        places = [np.flatnonzero(row) for row in runs]
        assert all(len(place) == 0 or place[-1] - place[0] + 1 == len(place) for place in places)
        nodes = {tuple(row) for row in conformal_sets(P, y, level, "tree", parents=TREE).predict(new)}
        leaves = {tuple(np.arange(4) == leaf) for leaf in range(4)}
        assert nodes <= leaves | {(True, True, False, False), (False, False, True, True), (True,) * 4, (False,) * 4}


def test_too_few_rows_prove_nothing_and_sets_have_all_classes() -> None:
    P, y = drawn(np.random.default_rng(7), 8)
    sets = conformal_sets(P, y, 0.1)
    assert np.isinf(sets.threshold)
    assert sets.predict(P).all()
    assert np.isfinite(conformal_sets(*drawn(np.random.default_rng(7), 9), 0.1).threshold)


def test_bad_input_is_one_line() -> None:
    P, y = drawn(np.random.default_rng(8), 20)
    for call, kind, words in (
        (lambda: conformal_sets(P, y, 0.0), ConfigError, "level"),
        (lambda: conformal_sets(P, y, 0.1, "laps"), UnknownNameError, "lac"),
        (lambda: conformal_sets(P, y, 0.1, "tree"), ConfigError, "parents"),
        (lambda: conformal_sets(P, y, 0.1, "tree", parents={0: 1, 1: 0}), ConfigError, "cycle"),
        (lambda: conformal_sets(P, y, 0.1, "tree", parents={0: "a", 1: "a"}), ConfigError, "root"),
        (lambda: conformal_sets(P * 0.9, y), DataError, "sum to 0.9"),
        (lambda: conformal_sets(P * np.nan, y), DataError, "finite"),
        (lambda: conformal_sets([["a", "b"]], y), DataError, "numbers"),
        (lambda: conformal_sets(P, y + 1), DataError, "from 0 to 3"),
        (lambda: conformal_sets(P[:0], y[:0]), DataError, "shape"),
        (lambda: conformal_costs(P, y, -np.eye(4), 0.1), ConfigError, "at least 0"),
        (lambda: conformal_costs(P, y, np.eye(3), 0.1), ConfigError, "4 rows"),
        (lambda: conformal_costs(P, y, np.eye(4), float("nan")), ConfigError, "cost"),
    ):
        with pytest.raises(kind, match=words):
            call()
