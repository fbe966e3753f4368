"""Products with few columns against a loop in NumPy, whose bits they have, and against NumPy's product under portable arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.core.arithmetic import using
from advcli.core.compiled import Kernels, kernels, usable_levels
from advcli.core.linalg import product, transposed_product
from advcli.features.linear import LinearFeatures

MOST = kernels.few_columns.MOST_COLUMNS


def plain(X, A):
    """Return X A: products added in the order of the columns of X, each rounded before."""
    F = np.zeros((X.shape[0], A.shape[1]))
    for p in range(X.shape[1]):
        F = F + X[:, p, None] * A[p]
    return F


def some_rows(random, n, d, apart):
    """Return X (n, d), rows as many numbers ``apart`` as they are longer than d."""
    return random.normal(size=(n, d + apart))[:, :d]


shapes = {"n": st.integers(1, 60), "d": st.integers(1, 40), "k": st.integers(1, MOST), "apart": st.integers(0, 3)}


@pytest.mark.parametrize("level", usable_levels())
@given(seed=st.integers(0, 10**6), **shapes)
@settings(max_examples=150, deadline=None)
def test_the_bits_are_those_of_the_loop(level, seed, n, d, k, apart):
    random = np.random.default_rng(seed)
    X, A, R = some_rows(random, n, d, apart), random.normal(size=(d, k)), random.normal(size=(n, k))
    behind = random.normal(size=3)
    block, sums = np.concatenate([np.full(n * k, np.nan), behind]), np.full((d, k), np.nan)
    F = block[: n * k].reshape(n, k)
    loops = Kernels(level).few_columns
    loops.scores(X, A, F)
    loops.sums(X, R, sums)
    assert np.array_equal(F, plain(X, A))
    assert np.array_equal(sums, plain(X.T, R))
    assert np.array_equal(block[n * k :], behind)  # vectors are longer than rows
    by_class, again = np.full((n, k), np.nan, order="F"), np.full((d, k), np.nan)
    loops.scores(X, A, by_class)
    loops.sums(X, np.asfortranarray(R), again)
    assert np.array_equal(by_class, F)
    assert np.array_equal(again, sums)


@given(seed=st.integers(0, 10**6), **shapes)
@settings(max_examples=100, deadline=None)
def test_the_bits_are_those_of_portable_products(seed, n, d, k, apart):
    random = np.random.default_rng(seed)
    X, A, R = some_rows(random, n, d, apart), random.normal(size=(d, k)), random.normal(size=(n, k))
    with using("portable"):
        assert np.array_equal(product(X, A), X @ A)
        assert np.array_equal(transposed_product(X, R), X.T @ R)
        assert np.array_equal(transposed_product(X, np.asfortranarray(R)), (R.T @ X).T)
    assert np.allclose(product(X, A), X @ A, rtol=1e-12, atol=1e-12 * d)


def test_rows_without_numbers_and_numbers_without_end_stay_in_their_places():
    random = np.random.default_rng(0)
    X, A = random.normal(size=(23, 6)), random.normal(size=(6, 3))
    X[5, 2], X[17, 4] = np.inf, np.nan
    F, whole = product(X, A), np.isfinite(X).all(axis=1)
    assert np.array_equal(F[whole], plain(X[whole], A))
    assert not np.isfinite(F[~whole]).any()
    assert not product(np.empty((4, 0)), np.empty((0, 3))).any()
    assert not transposed_product(np.empty((0, 4)), np.empty((0, 3))).any()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("k", [1, 3, MOST, MOST + 1])
def test_any_layout_gives_the_same_numbers(k, order):
    random = np.random.default_rng(k)
    X, A, R = random.normal(size=(30, 7)), random.normal(size=(7, k)), random.normal(size=(30, k))
    out = np.empty((30, k), order=order)
    assert product(np.asarray(X, order=order), np.asarray(A, order=order), out) is out
    assert np.allclose(out, X @ A, rtol=1e-12, atol=1e-13)
    assert np.allclose(transposed_product(np.asarray(X, order=order), np.asarray(R, order=order)), X.T @ R, rtol=1e-12, atol=1e-13)
    beside = np.full((30, k + 2), np.nan)
    product(X, A, beside[:, :k])
    assert np.allclose(beside[:, :k], X @ A, rtol=1e-12, atol=1e-13)
    assert np.isnan(beside[:, k:]).all()
    assert np.allclose(product(X.astype(np.float32), A), X @ A, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_parts_of_the_columns_change_no_bit(threads, monkeypatch):
    random = np.random.default_rng(threads)
    X, R = random.normal(size=(200, 60)), random.normal(size=(200, 4))
    monkeypatch.setattr("advcli.features.linear._PRODUCTS", 1)
    monkeypatch.setattr("advcli.features.linear._FEATURES", 7)
    assert np.array_equal(LinearFeatures(X, 4).shared_adjoint(R, threads), plain(X.T, R))


@pytest.mark.parametrize(
    ("X", "A", "F"),
    [
        ((5, 3), (4, 2), (5, 2)),
        ((5, 3), (3, 2), (4, 2)),
        ((5, 3), (3, 2), (5, 3)),
        ((5, 3), (3, MOST + 1), (5, MOST + 1)),
        ((5, 3), (3, 0), (5, 0)),
    ],
)
def test_shapes_that_do_not_fit_are_refused(X, A, F):
    with pytest.raises(ValueError, match=r"must fit X|has 1 to"):
        kernels.few_columns.scores(np.ones(X), np.ones(A), np.ones(F))


def test_rows_in_pieces_are_refused():
    with pytest.raises(ValueError, match="contiguous"):
        kernels.few_columns.scores(np.ones((5, 6))[:, ::2], np.ones((3, 2)), np.ones((5, 2)))


def test_factors_that_may_not_be_written_are_read():
    random = np.random.default_rng(0)
    X, A, R = random.normal(size=(9, 4)), random.normal(size=(4, 3)), random.normal(size=(9, 3))
    for array in (X, A, R):
        array.setflags(write=False)
    assert np.array_equal(product(X, A), plain(X, A))
    assert np.array_equal(transposed_product(X, R), plain(X.T, R))
