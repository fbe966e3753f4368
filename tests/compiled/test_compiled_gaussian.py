"""The compiled Gaussian kernel matrix against NumPy's exponential of summed squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.core.compiled import Kernels, usable_levels


@pytest.mark.parametrize("level", usable_levels())
@given(seed=st.integers(0, 10**6), n=st.integers(1, 150), d=st.integers(0, 6), power=st.integers(-6, 6))
@settings(max_examples=25, deadline=None)
def test_the_matrix_is_that_of_numpy(level, seed, n, d, power):
    random = np.random.default_rng(seed)
    X = random.integers(-3, 4, size=(n, d)) * random.choice([1.0, random.random()])
    gamma, constant, K = 10.0**power, float(random.choice([0.0, 1.0])), np.empty((n, n))
    Kernels(level).gaussian.matrix(X, gamma, constant, K)
    exponent = -gamma * ((X[:, None] - X) ** 2).sum(axis=2)
    # a rounded exponent counts as often as it is large: its few ulps are that share of the value; numbers below the normal ones are 0
    wanted = np.exp(exponent)
    assert (np.abs(K - (wanted + constant)) <= 1e-15 * (16.0 + 4.0 * np.abs(exponent)) * wanted + 4e-16 * constant + 1e-300).all()
    assert (K == K.T).all()
    assert (K.diagonal() == 1.0 + constant).all()
    equal = (X[:, None] == X).all(axis=2)
    assert (K[equal] == 1.0 + constant).all()
