"""Kernel feature maps: values, memory limits, errors."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from advcli.core.errors import ConfigError, DataError
from advcli.features import make_features
from advcli.solvers.coordinate.kernel import check_memory, largest_block

N, D, K = 700, 5, 4


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(N, D))


def kernel_of(name, X, Z):
    if name == "rbf":
        return rbf_kernel(X, Z, gamma=0.3)
    return polynomial_kernel(X, Z, degree=3, gamma=0.5, coef0=2.0)


OPTIONS = {"rbf": {"gamma": 0.3}, "poly": {"degree": 3, "gamma": 0.5, "coef0": 2.0}}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_the_matrix_is_the_kernel_and_exactly_symmetric(name, sparse, rows):
    features = make_features(name, sp.csr_array(rows) if sparse else rows, K, **OPTIONS[name])
    expected = kernel_of(name, rows, rows)
    np.testing.assert_allclose(features.matrix, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(features.diagonal, expected.diagonal(), rtol=1e-12)
    assert np.array_equal(features.matrix, features.matrix.T)


@pytest.mark.parametrize("name", OPTIONS)
def test_scores_and_norm_come_from_the_coefficients(name, rows):
    features = make_features(name, rows, K, **OPTIONS[name])
    A = np.random.default_rng(1).normal(size=(N, K))
    A[::3] = 0.0
    expected = kernel_of(name, rows, rows)
    np.testing.assert_allclose(features.scores(A), expected @ A, rtol=1e-9, atol=1e-9 * np.abs(expected @ A).max())
    assert features.square_norm(A) == pytest.approx(np.vdot(A, expected @ A), rel=1e-9)
    new = np.random.default_rng(2).normal(size=(300, D))
    other = kernel_of(name, new, rows) @ A
    np.testing.assert_allclose(features.at(new).scores(A), other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


def test_scores_are_remembered_for_the_same_coefficients_only(rows):
    features = make_features("rbf", rows, K, gamma=0.3)
    A = np.random.default_rng(1).normal(size=(N, K))
    first = features.scores(A)
    assert features.scores(A.copy()) is first
    A[0, 0] += 1.0
    np.testing.assert_allclose(features.scores(A) - first, np.outer(features.matrix[:, 0], np.eye(K)[0]), atol=1e-10)


def test_a_small_memory_gives_the_same_values(rows):
    """2.8 MiB hold 2 x 256 rows of 700 numbers, and the whole matrix would need 5.1."""
    whole, limited = (make_features("rbf", rows, K, gamma=0.3, memory_mb=memory) for memory in (1000.0, 3.2))
    assert whole.whole
    assert not limited.whole
    check_memory(limited)
    random = np.random.default_rng(3)
    for _ in range(6):  # different sets of rows, so that kept rows are replaced
        picked = np.sort(random.choice(N, 320, replace=False))
        A = random.normal(size=(320, K)) * (random.random((320, K)) < 0.5)
        one, other = np.ones((K, N)), np.ones((K, N))
        whole.accumulate(one, picked, A)
        limited.accumulate(other, picked, A)
        np.testing.assert_allclose(other, one, atol=1e-10)
        np.testing.assert_allclose(limited.block(picked), whole.block(picked), atol=1e-12)
        store = limited.store
        held = np.flatnonzero(store.owner >= 0)
        assert np.array_equal(store.slot[store.owner[held]], held)
        assert np.count_nonzero(store.slot >= 0) == len(held)
        np.testing.assert_allclose(store.rows[held], whole.matrix[store.owner[held]], atol=1e-12)
    assert len(held) > 0
    assert limited.store.rows.nbytes + 8 * largest_block(limited) ** 2 <= 3.2 * 2**20


def test_a_map_over_the_same_rows_takes_the_values_over(rows):
    first = make_features("rbf", rows, K, gamma=0.3)
    matrix = first.matrix
    same, wider, others = (make_features("rbf", X, K, gamma=gamma) for X, gamma in ((rows.copy(), 0.3), (rows, 0.4), (rows + 1e-3, 0.3)))
    for features in (same, wider, others):
        features.adopt(first)
    assert same.matrix is matrix
    assert wider.matrix is not matrix
    assert others.matrix is not matrix


def test_pickles_leave_the_kernel_values_out(rows):
    features = make_features("rbf", rows, K, gamma=0.3)
    assert features.matrix.nbytes > 10 * rows.nbytes
    packed = pickle.dumps(features)
    assert len(packed) < 2 * rows.nbytes
    A = np.ones((N, K))
    np.testing.assert_allclose(pickle.loads(packed).scores(A), features.scores(A))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("rbf", {"gamma": 0.0}, "features.gamma=0.0"),
        ("rbf", {"gamma": -1.0}, "above 0"),
        ("rbf", {"gamma": float("nan")}, "above 0"),
        ("rbf", {"gamma": "wide"}, "features.gamma=wide"),
        ("rbf", {"degree": 2}, "features=rbf"),
        ("rbf", {"memory_mb": 0}, "features.memory_mb=0"),
        ("poly", {"degree": 0}, "features.degree=0"),
        ("poly", {"degree": 1.5}, "whole number"),
        ("poly", {"gamma": -2.0}, "above 0"),
        ("poly", {"coef0": -1.0}, "features.coef0=-1.0"),
    ],
)
def test_options_without_meaning_are_refused_in_one_line(name, options, words):
    with pytest.raises(ConfigError, match=words) as caught:
        make_features(name, np.ones((3, 2)), 2, **options)
    assert "\n" not in str(caught.value)


def test_a_width_whose_distances_overflow_is_refused(rows):
    with pytest.raises(ConfigError, match=r"features\.gamma=1e\+308 is too large for these rows"):
        make_features("rbf", rows, K, gamma=1e308).matrix  # noqa: B018


def test_too_little_memory_is_refused_with_the_least_that_works(rows):
    features = make_features("rbf", rows, K, memory_mb=1.0)
    with pytest.raises(ConfigError, match=r"features.memory_mb=1 is too small for 700 rows; give at least 3 \(6 keep"):
        check_memory(features)
    check_memory(make_features("rbf", rows, K, memory_mb=3.0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda K: K[:, :-1], "square"),
        (lambda K: K + np.triu(np.full(K.shape, 1e-3), 1), "symmetric"),
        (lambda K: K - 2.0 * np.eye(len(K)), "diagonal"),
        (lambda K: np.where(np.eye(len(K), k=1) + np.eye(len(K), k=-1) > 0, 1.5, K), r"K\[0, 1\]\^2"),
    ],
)
@pytest.mark.parametrize("n", [30, 600])
def test_a_matrix_that_is_no_kernel_is_refused(n, change, words):
    K = rbf_kernel(np.random.default_rng(0).normal(size=(n, 3)), gamma=1.0)
    with pytest.raises(DataError, match=words):
        _ = make_features("precomputed", change(K), 3).matrix
    assert make_features("precomputed", K, 3).matrix.shape == (n, n)


def test_small_matrices_are_checked_by_their_eigenvalues():
    angles = np.array([0.0, 2.0, 4.0])
    K = 1.2 * np.cos(np.subtract.outer(angles, angles)) - 0.1  # every 2 x 2 minor is positive, the matrix is not
    K[np.diag_indices(3)] = 1.1
    assert np.linalg.eigvalsh(K)[0] < -0.05
    with pytest.raises(DataError, match="least eigenvalue"):
        _ = make_features("precomputed", K, 3).matrix


def test_a_negative_norm_is_reported():
    K = np.eye(600)
    K[:3, :3] = [[1.0, -0.9, -0.9], [-0.9, 1.0, -0.9], [-0.9, -0.9, 1.0]]  # too large for eigenvalues, minors positive
    features = make_features("precomputed", K, 2)
    A = np.zeros((600, 2))
    A[:3] = 1.0
    with pytest.raises(DataError, match="positive semi-definite"):
        features.square_norm(A)
