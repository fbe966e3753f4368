"""Compiled scores of sparse rows against the loop that they stand for, and against SciPy's product."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.compiled import Kernels, compiled_rows, usable_levels


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


def test_other_classes_are_left_alone():
    X, F = sp.csr_array(np.eye(3)), np.full((3, 150), 7.0)
    Kernels().scores.sparse(*compiled_rows(X), np.ones((3, 150)), F, 70, 140)
    assert (F[:, 70:140] == [[1.0]] * 3).all()
    assert (F[:, :70] == 7.0).all()
    assert (F[:, 140:] == 7.0).all()
