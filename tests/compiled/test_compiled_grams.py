"""Upper triangles of weighted Gram matrices against a loop in NumPy, whose bits they have, and against portable products."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.core.arithmetic import using
from advcli.core.compiled import Kernels, kernels, usable_levels


def plain_upper(X, rows, weight):
    """Return the upper triangle of sum_i w_i x_i x_i': products x_s (w x_t) added in the order of the rows, each rounded before."""
    sums = np.zeros((X.shape[1], X.shape[1]))
    for i, w in zip(rows, weight, strict=True):
        sums = sums + np.outer(X[i], w * X[i])
    return np.triu(sums)


@pytest.mark.parametrize("level", usable_levels())
@given(seed=st.integers(0, 10**6), n=st.integers(1, 90), d=st.integers(1, 50), share=st.floats(0.0, 1.0))
@settings(max_examples=100, deadline=None)
def test_the_bits_are_those_of_the_loop_and_of_portable_products(level, seed, n, d, share):
    random = np.random.default_rng(seed)
    X, rows = random.normal(size=(n, d)), random.permutation(n)[: int(share * n)].astype(np.intp)
    weight, sums = random.normal(size=len(rows)), np.full((d, d), np.nan)
    Kernels(level).grams.upper(X, rows, weight, sums)
    upper, below = np.triu_indices(d), np.tril_indices(d, -1)
    assert np.array_equal(sums[upper], plain_upper(X, rows, weight)[upper])
    assert np.isnan(sums[below]).all()  # left as it was
    if d == 1:
        return  # NumPy's portable sum of one column runs over lanes
    some = X[rows]
    with using("portable"):
        assert np.array_equal(sums[upper], (some.T @ (some * weight[:, None]))[upper])


def test_a_row_listed_twice_counts_twice():
    X, sums = np.arange(6.0).reshape(2, 3), np.zeros((3, 3))
    kernels.grams.upper(X, np.array([1, 1]), np.array([1.0, -3.0]), sums)
    assert np.array_equal(sums, np.triu(-2.0 * np.outer(X[1], X[1])))


@pytest.mark.parametrize(
    ("rows", "weights", "shape", "said"),
    [([0, 5], 2, (3, 3), "rows must lie"), ([0, -1], 2, (3, 3), "rows must lie"), ([0, 1], 3, (3, 3), "weight"), ([0], 1, (3, 2), "sums")],
)
def test_what_does_not_fit_is_refused(rows, weights, shape, said):
    with pytest.raises(ValueError, match=said):
        kernels.grams.upper(np.ones((5, 3)), np.array(rows), np.ones(weights), np.zeros(shape))
