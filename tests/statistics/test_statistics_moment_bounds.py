"""Bounds of expected losses from moments: their linear programs, their boxes, and how often they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from advcli import moment_bounds
from advcli.core.errors import ConfigError, DataError
from advcli.statistics.moment_bounds import moment_box


def world(random: np.random.Generator, N: int = 12, d: int = 2, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return a domain (N, d) and a distribution (N, k) on it."""
    likely = random.dirichlet(np.full(k, 0.3), size=N) * random.dirichlet(np.ones(N))[:, None]
    return random.integers(-1, 3, size=(N, d)).astype(float), likely


def drawn(random: np.random.Generator, domain: np.ndarray, p: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labels, and the errors (N, k) of a rule that was fitted to them by least squares."""
    k = p.shape[1]
    at = random.choice(p.size, p=p.ravel(), size=n)
    X, y = domain[at // k], at % k
    weights = np.linalg.lstsq(np.c_[np.ones(n), X], np.eye(k)[y], rcond=None)[0]
    return X, y, (1.0 - np.eye(k))[np.argmax(np.c_[np.ones(len(domain)), domain] @ weights, axis=1)]


def programs(domain: np.ndarray, low: np.ndarray, high: np.ndarray) -> dict[str, Any]:
    """Return the constraints of p (N, k), ravelled, for `linprog`."""
    k = len(low)
    A = np.array([np.outer(phi, unit).ravel() for unit in np.eye(k) for phi in np.c_[np.ones(len(domain)), domain].T])
    return {
        "A_ub": np.r_[A, -A],
        "b_ub": np.r_[high.ravel(), -low.ravel()],
        "A_eq": np.ones((1, A.shape[1])),
        "b_eq": [1.0],
    }


@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_the_ends_of_the_programs_and_the_game_is_the_best_rule(seed: int) -> None:
    random = np.random.default_rng(seed)
    domain, p = world(random)
    X, y, errors = drawn(random, domain, p, 200)
    L = 1.0 - np.eye(3)
    found = moment_bounds(X, y, errors, domain, L)
    limits = programs(domain, found.low, found.high)
    assert found.upper == pytest.approx(-linprog(-errors.ravel(), **limits).fun, abs=1e-7)
    assert found.lower == pytest.approx(linprog(errors.ravel(), **limits).fun, abs=1e-7)
    # the least upper bound, over a mixture (N, l) at every row and multipliers of the moments: the dual of the game
    N, (m, _) = len(domain), limits["A_ub"].shape
    unit = np.eye(N)
    rule = np.concatenate([np.kron(unit[i], L[:, j])[None] for i in range(N) for j in range(3)])
    solved = linprog(
        np.r_[np.zeros(3 * N), limits["b_ub"], 1.0],
        A_ub=np.c_[rule, -limits["A_ub"].T, -np.ones(3 * N)],
        b_ub=np.zeros(3 * N),
        A_eq=np.c_[np.kron(unit, np.ones(3)), np.zeros((N, m + 1))],
        b_eq=np.ones(N),
        bounds=[(0, None)] * (3 * N + m) + [(None, None)],
    )
    assert found.game_value == pytest.approx(solved.fun, abs=1e-7)
    assert found.game_value <= found.upper + 1e-9
    wider = moment_bounds(X, y, errors, domain, L, delta=0.001)
    assert wider.lower <= found.lower + 1e-9
    assert wider.upper >= found.upper - 1e-9


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5])
def test_the_ends_of_a_share_are_passed_as_rarely_as_stated(share: float) -> None:
    """One class of two and no feature: two moments, each outside its interval with probability at most delta / 2, counted exactly."""
    n, delta = 60, 0.1
    outside = 0.0
    for ones in range(n + 1):
        codes = np.repeat([0, 1], [n - ones, ones])
        low, high = moment_box(np.empty((n, 0)), codes, 2, np.empty((2, 0)), delta)
        assert low[1, 0] <= ones / n <= high[1, 0]
        outside += binom.pmf(ones, n, share) * (not low[1, 0] <= share <= high[1, 0])
    assert 0.0 < outside <= delta / 2.0


def violations(seed: int, draws: int, n: int = 150) -> tuple[int, list[float]]:
    """Return in how many draws the true expected loss lies outside the bounds at delta = 0.05, and how far it lies below the upper one."""
    random = np.random.default_rng(seed)
    domain, p = world(random, k=2 + seed % 3)
    broken, slack = 0, []
    for _ in range(draws):
        X, y, errors = drawn(random, domain, p, n)
        found = moment_bounds(X, y, errors, domain)
        truth = float((p * errors).sum())
        broken += not found.lower <= truth <= found.upper
        slack.append(found.upper - truth)
    return broken, slack


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_for_rules_fitted_to_the_same_rows(seed: int) -> None:
    assert violations(seed, 30)[0] <= binom.ppf(1.0 - 1e-6, 30, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_in_a_thousand_draws(seed: int) -> None:
    assert violations(seed, 1000)[0] <= 50


def test_what_is_no_input_is_refused() -> None:
    X, y, errors = np.array([[0.0], [1.0]]), np.array([0, 1]), np.array([[0.0, 1.0], [1.0, 0.0]])
    for change, words in (
        ({"delta": 1.0}, "delta"),
        ({"y": np.array([0, 2])}, "from 0 to 1"),
        ({"y": np.array([0.0, 1.0])}, "whole number"),
        ({"losses": errors[:1]}, "do not fit a domain"),
        ({"losses": [["a", "b"]]}, "losses must be a table of numbers"),
        ({"X": X * np.nan}, "finite"),
        ({"domain": [[0.0], [0.5]]}, "outside the domain"),
        ({"matrix": [[0.0, 1.0, 1.0]]}, "3 columns"),
    ):
        with pytest.raises((ConfigError, DataError), match=words):
            moment_bounds(**({"X": X, "y": y, "losses": errors} | change))
