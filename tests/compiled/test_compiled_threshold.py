"""The compiled passes over the hinges of threshold models against their formulas in NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from advcli.core.compiled import Kernels, usable_levels

LEVELS = usable_levels()


def hinges(seed):
    """Return a smoothed problem of random size, its penalty and its order's centre (empty where there is none)."""
    random = np.random.default_rng(seed)
    n, m = int(random.integers(1, 40)), int(random.integers(1, 6))
    y = random.integers(0, m + 1, size=n).astype(np.intp)
    U = np.round(3 * random.random((m, n)), 1)
    A = U * random.random((m, n))
    g, eta = 2 * random.normal(size=n), random.normal(size=m)
    M = np.zeros((m, m)) if seed % 3 else np.eye(m) - 1 / (m + 1)
    centre = random.random(m - 1) if seed % 2 else np.empty(0)
    return y, U, g, eta, A, float(random.random() + 0.05), M, centre, 0.3


def in_python(y, U, g, eta, A, sigma):
    """Return z and the dual variables before they are held in [0, U]."""
    signs = np.where(y > np.arange(len(U))[:, None], 1.0, -1.0)
    z = 1.0 - signs * (g - eta[:, None])
    return signs, z, A + z / sigma


def smoothed(y, U, g, eta, A, sigma, M, centre, ease):
    """Return 1/2 eta'M eta + the smoothed hinges + the order's penalty."""
    _, z, free = in_python(y, U, g, eta, A, sigma)
    alpha = np.clip(free, 0.0, U)
    value = 0.5 * eta @ M @ eta + (alpha * z - 0.5 * sigma * (alpha - A) ** 2).sum()
    if len(centre):
        mu = np.maximum(centre - np.diff(eta) / ease, 0.0)
        value += 0.5 * ease * (mu @ mu)
    return value


@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_a_step_is_its_formula(level, seed):
    kernel = Kernels(level).newton_threshold
    y, U, g, eta, A, sigma, *_ = hinges(seed)
    (m, n), (signs, z, free) = U.shape, in_python(y, U, g, eta, A, sigma)
    alpha, beta, total, count = np.empty((m, n)), np.empty(n), np.empty(m), np.empty(n, dtype=np.int32)
    short = kernel.step(y, U, g, eta, A, sigma, alpha, beta, total, count)
    np.testing.assert_allclose(alpha, np.clip(free, 0.0, U), atol=1e-13)
    np.testing.assert_allclose(beta, (signs * alpha).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(total, (signs * alpha).sum(axis=1), atol=1e-12)
    np.testing.assert_array_equal(count, ((alpha > 0) & (alpha < U)).sum(axis=0))
    assert short == pytest.approx((U * np.maximum(z, 0.0) - alpha * z).sum(), abs=1e-10)
    assert kernel.hinges(y, U, g, eta) == pytest.approx((U * np.maximum(z, 0.0)).sum(), abs=1e-10)


@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6), t=st.floats(0.0, 3.0))
@settings(max_examples=40, deadline=None)
def test_the_slope_is_the_derivative_of_the_smoothed_hinges(level, seed, t):
    y, U, g, eta, A, sigma, _, centre, ease = hinges(seed)
    random = np.random.default_rng(seed + 1)
    dg, deta, none = random.normal(size=len(g)), random.normal(size=len(eta)), np.zeros((len(eta), len(eta)))
    found = Kernels(level).newton_threshold.slope(y, U, g, eta, A, sigma, dg, deta, centre, ease, t)
    h = 1e-6
    high, low = (smoothed(y, U, g + s * dg, eta + s * deta, A, sigma, none, centre, ease) for s in (t + h, t - h))
    assert found == pytest.approx((high - low) / (2 * h), rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_each_threshold_in_turn_settles_at_its_least_value(level, seed):
    given = hinges(seed)
    y, U, g, eta, A, sigma, M, centre, ease = given
    moved = eta.copy()
    Kernels(level).newton_threshold.settle(y, U, g, moved, A, sigma, M, centre, ease)
    reached = eta.copy()
    for j in range(len(eta)):

        def value(level_of_j, j=j):
            there = reached.copy()
            there[j] = level_of_j
            return smoothed(y, U, g, there, A, sigma, M, centre, ease)

        least = minimize_scalar(value, bounds=(-60.0, 60.0), method="bounded", options={"xatol": 1e-9}).fun
        reached[j] = moved[j]
        assert value(moved[j]) <= least + 1e-7 * (1.0 + abs(least))
