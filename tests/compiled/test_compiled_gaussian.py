"""The compiled Gaussian kernel matrix against NumPy's exponential of summed squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from advcli.core.compiled import Kernels, aligned_zeros, usable_levels


@pytest.mark.parametrize("level", usable_levels())
@given(seed=st.integers(0, 10**6), n=st.integers(1, 150), d=st.integers(0, 6) | st.just(70), power=st.integers(-6, 6))
@settings(max_examples=25, deadline=None)
def test_the_matrix_is_that_of_numpy(level, seed, n, d, power):
    random = np.random.default_rng(seed)
    X = random.integers(-3, 4, size=(n, d)) * random.choice([1.0, random.random()])
    gamma, constant, K = 10.0**power, float(random.choice([0.0, 1.0])), np.empty((n, n))
    Kernels(level).gaussian.matrix(X, gamma, constant, K)
    exponent = -gamma * ((X[:, None] - X) ** 2).sum(axis=2)
    # products are rounded like the squares of the centred rows; a rounded exponent counts as often as it is large; tiny values are 0
    square = gamma * ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    wanted = np.exp(exponent)
    rounding = 1e-15 * (4.0 + 4.0 * np.abs(exponent) + 2.0 * (square[:, None] + square))
    assert (np.abs(K - (wanted + constant)) <= np.expm1(rounding) * wanted + 4e-16 * constant + 1e-300).all()
    assert (K == K.T).all()
    assert (K.diagonal() == 1.0 + constant).all()
    assert K.max() == 1.0 + constant
    equal = (X[:, None] == X).all(axis=2)
    assert (K[equal] == 1.0 + constant).all()


@pytest.mark.parametrize("level", usable_levels())
def test_rows_far_from_the_origin_lose_no_digits(level):
    X = np.random.default_rng(0).integers(-8, 9, size=(50, 3)) / 8.0
    near, far = np.empty((2, 50, 50))
    Kernels(level).gaussian.matrix(X, 0.5, 0.0, near)
    Kernels(level).gaussian.matrix(X + 2.0**30, 0.5, 0.0, far)
    np.testing.assert_allclose(far, near, rtol=1e-14)


@pytest.mark.parametrize("level", usable_levels())
def test_exponentials_are_within_two_units_in_the_last_place(level):
    """Rows -a and a are centred: but for the roundings of a and of its square, the exponent has none."""
    K = np.empty((2, 2))
    for exponent in [*np.linspace(0.0, -1.0, 500), -20.0, -300.0, -707.0, -709.0, -1e4]:
        a = np.sqrt(-exponent) / 2.0
        Kernels(level).gaussian.matrix(np.array([[-a], [a]]), 1.0, 0.0, K)
        wanted = np.exp(exponent) if exponent > -708.0 else 0.0
        assert abs(K[0, 1] - wanted) <= (2.0 + 4.0 * abs(exponent)) * np.finfo(float).eps * wanted


@pytest.mark.parametrize("level", usable_levels())
@pytest.mark.parametrize("offset", range(8))
def test_a_large_matrix_is_written_past_the_caches(level, offset):
    """Rows of K begin anywhere within a cache line."""
    n, d = 1500, 3
    X = np.random.default_rng(offset).normal(size=(n, d))
    K = aligned_zeros((n * n + 16,))[offset : offset + n * n].reshape(n, n)
    Kernels(level).gaussian.matrix(X, 0.5, 0.0, K)
    np.testing.assert_allclose(K, np.exp(-0.5 * cdist(X, X, "sqeuclidean")), rtol=1e-13)
    np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("level", usable_levels())
@pytest.mark.parametrize("X", [[[1e160], [0.0]], [[np.nan], [0.0]], [[np.inf], [0.0]]])
def test_rows_whose_squares_are_not_finite_are_refused(level, X):
    with pytest.raises(ValueError, match="too large"):
        Kernels(level).gaussian.matrix(np.array(X), 1.0, 0.0, np.empty((2, 2)))
