"""Compiled scores of sparse rows against the loop that they stand for, and against SciPy's product."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.core.compiled import Kernels, compiled_rows, usable_levels
from advcli.core.row_blocks import by_precision


def plain_scores(X, theta):
    """Return the scores of CSR rows: products added in the order of a row's values, each rounded before."""
    F = np.zeros((X.shape[0], theta.shape[1]))
    for i in range(X.shape[0]):
        for e in range(X.indptr[i], X.indptr[i + 1]):
            F[i] = F[i] + X.data[e] * theta[X.indices[e]]
    return F


@pytest.mark.parametrize("level", usable_levels())
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), d=st.integers(1, 40), k=st.integers(1, 200), density=st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_the_bits_are_those_of_the_loop(level, seed, n, d, k, density):
    random = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=density, rng=random, format="csr")
    X.data[:] = random.normal(size=X.nnz)
    theta, F = random.normal(size=(d, k)), np.full((n, k), np.nan)
    cut = int(random.integers(0, k + 1))
    values, columns, start, n, d = compiled_rows(X)
    for first, last in ((0, cut), (cut, k)):
        Kernels(level).scores.sparse(values, columns, start, n, d, theta, F, first, last)
    assert np.array_equal(F, plain_scores(X, theta))
    assert np.abs(F - X @ theta).max(initial=0.0) <= 1e-13 * d


def plain_sums(X, R, together):
    """Return X'R for CSR matrices: products added in the order of the rows, ``together`` rows at a time."""
    total = np.zeros((X.shape[1], R.shape[1]))
    for first in range(0, X.shape[0], together):
        sums = np.zeros_like(total)
        for i in range(first, min(first + together, X.shape[0])):
            for at in range(R.indptr[i], R.indptr[i + 1]):
                for e in range(X.indptr[i], X.indptr[i + 1]):
                    sums[X.indices[e], R.indices[at]] += X.data[e] * R.data[at]
        total += sums
    return total


@pytest.mark.parametrize("level", usable_levels())
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), d=st.integers(1, 12), k=st.integers(1, 150), together=st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_sums_over_the_rows_have_the_bits_of_the_loop(level, seed, n, d, k, together):
    random = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.4, rng=random, format="csr")
    R = sp.random_array((n, k), density=0.1, rng=random, format="csr")
    R.data[:] = random.normal(size=R.nnz)
    total, cut = np.zeros((d, k)), int(random.integers(0, k + 1))
    point = compiled_rows(R)
    for first, last in ((0, cut), (cut, k)):
        Kernels(level).scores.adjoint(
            *compiled_rows(X), point.values, point.columns, point.start, total.shape[1], together, total, first, last
        )
    assert np.array_equal(total, plain_sums(X, R, together))
    assert np.abs(total - (X.T @ R).toarray()).max() <= 1e-13 * n


def test_other_classes_are_left_alone():
    X, F = sp.csr_array(np.eye(3)), np.full((3, 150), 7.0)
    Kernels().scores.sparse(*compiled_rows(X), np.ones((3, 150)), F, 70, 140)
    assert (F[:, 70:140] == [[1.0]] * 3).all()
    assert (F[:, :70] == 7.0).all()
    assert (F[:, 140:] == 7.0).all()


@pytest.mark.parametrize("level", usable_levels())
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@given(seed=st.integers(0, 10**6), n=st.integers(1, 20), p=st.integers(1, 70), listed=st.booleans(), constant=st.booleans())
@settings(max_examples=40, deadline=None)
def test_standardised_rows_have_the_bits_of_numpy(level, precision, seed, n, p, listed, constant):
    random = np.random.default_rng(seed)
    stored = (random.normal(size=(n + 3 * listed, p)) * 10.0 ** random.integers(-5, 5)).astype(precision)
    at = random.integers(0, len(stored), n) if listed else np.empty(0, dtype=np.int64)
    mean, inverse, shift = random.normal(size=p), random.random(p), random.integers(0, 2, p).astype(float)
    X = np.full((n, p + constant), np.nan)
    Kernels(level).scores.standardised(*by_precision(stored), at, n, p, constant, mean, inverse, shift, X)
    plain = (stored[at] if listed else stored).astype(float)
    plain -= mean
    plain *= inverse
    plain += shift
    assert np.array_equal(X, np.column_stack([plain, np.ones(n)]) if constant else plain)
