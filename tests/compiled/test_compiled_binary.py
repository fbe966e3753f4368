"""The compiled ascents on binary problems against the same in plain Python, and against LIBLINEAR where the problem is the same."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC
from support import python_binary

from advcli.core.compiled import Kernels, compiled_rows, usable_levels


def problems(seed, n=24, d=5, m=3):
    """Return rows with one of zeros, labels, bounds with absent rows, margins of both signs."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    X[random.random((n, d)) < 0.3] = 0.0
    X[4] = 0.0
    label = random.choice([-1, 1], size=(m, n)).astype(np.int8)
    bound = random.uniform(0.1, 3.0, size=(m, n))
    bound[1, random.choice(n, size=n // 2, replace=False)] = 0.0
    return X, label, bound, random.normal(size=(m, n)) + 0.7


def linear(kernels, X, label, bound, margin, tol=1e-10, blocks=False, passes=1e5, seed=3):
    """Return A, V and the four results of every problem."""
    (m, n), d = label.shape, X.shape[1]
    A, V, found = np.zeros((m, n)), np.zeros((m, d)), np.empty((m, 4))
    square = np.asarray((X.multiply(X) if sp.issparse(X) else X**2).sum(axis=1), dtype=float).ravel()
    kernels.ascent_binary.linear(*compiled_rows(X), square, label, bound, margin, A, V, tol, passes, 60.0, seed, blocks, found)
    return A, V, found


def kernel(kernels, K, shift, label, bound, margin, tol=1e-10):
    """Return A and the four results of every problem."""
    A, found = np.zeros(label.shape), np.empty((len(label), 4))
    kernels.ascent_binary.kernel(np.ascontiguousarray(K), shift, label, bound, margin, A, tol, 1e5, 60.0, found)
    return A, found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_linear_ends_where_the_reference_does(kernels, seed, blocks, sparse):
    X, label, bound, margin = problems(seed)
    A, V, found = linear(kernels, sp.csr_array(X) if sparse else X, label, bound, margin, blocks=blocks)
    assert (found[:, 0] == 0).all()
    assert (np.clip(A, 0.0, bound) == A).all()
    np.testing.assert_allclose(V, (A * label) @ X, atol=1e-12)
    for q in range(len(label)):
        _, primal, dual = python_binary.ascend(X @ X.T, label[q], bound[q], margin[q])
        assert found[q, 2] == pytest.approx(primal, rel=1e-9)
        assert found[q, 3] == pytest.approx(dual, rel=1e-9)
        values = python_binary.values(X @ X.T, label[q], bound[q], margin[q], A[q])
        np.testing.assert_allclose(found[q, 2:], values, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_kernel_ends_where_the_reference_does(kernels, seed):
    X, label, bound, margin = problems(seed)
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    K[7] = K[:, 7] = 0.0  # no score at all
    for shift in (0.0, 1.0):
        a, given = kernel(kernels, K, shift, label, bound, margin)
        matrix = K + shift
        assert (given[:, 0] == 0).all()
        assert (np.clip(a, 0.0, bound) == a).all()
        for q in range(len(label)):
            _, primal, dual = python_binary.ascend(matrix, label[q], bound[q], margin[q])
            assert given[q, 2] == pytest.approx(primal, rel=1e-9)
            assert given[q, 3] == pytest.approx(dual, rel=1e-9)


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_working_sets_of_a_kernel_end_at_the_optimum(kernels, C, noise):
    # enough rows for a sample, working sets that leave rows out and ones that take all; the gap of the dual numbers proves the optimum
    random = np.random.default_rng(7)
    X = random.normal(size=(300, 3))
    label = np.where((X[:, 0] ** 2 + X[:, 1] > 0.5) ^ (random.random((4, 300)) < noise), 1, -1).astype(np.int8)
    bound = C * random.uniform(0.5, 1.5, size=(4, 300))
    bound[2, ::3] = bound[3, 100:] = 0.0
    margin = random.uniform(0.5, 1.5, size=(4, 300))
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    K[7] = K[:, 7] = 0.0
    before = None
    for shift in (0.0, 1.0):
        A, found = np.zeros(label.shape) if before is None else before, np.empty((4, 4))
        kernels.ascent_binary.kernel(K, shift, label, bound, margin, A, 1e-7, 1e5, 60.0, found)
        assert (found[:, 0] == 0).all()
        assert (np.clip(A, 0.0, bound) == A).all()
        for q in range(4):
            primal, dual = python_binary.values(K + shift, label[q], bound[q], margin[q], A[q])
            np.testing.assert_allclose(found[q, 2:], (primal, dual), rtol=1e-9)
            assert primal - dual <= 1.01e-7 * primal
        before = A  # the dual numbers of the next begin where these end


@pytest.mark.parametrize("passes", [0.0, 0.001, 0.3, 1.0, 2.5])
def test_greedy_steps_end_at_the_limit_of_passes(kernels, passes):
    random = np.random.default_rng(3)
    X = random.normal(size=(200, 2))
    label = random.choice([-1, 1], size=(1, 200)).astype(np.int8)
    bound, A, found = np.full((1, 200), 1e3), np.zeros((1, 200)), np.empty((1, 4))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    kernels.ascent_binary.kernel(K, 0.0, label, bound, np.empty((0, 0)), A, 1e-9, passes, np.inf, found)
    assert found[0, 0] == 1
    assert found[0, 1] <= passes
    np.testing.assert_allclose(found[0, 2:], python_binary.values(K, label[0], bound[0], np.ones(200), A[0]), rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 8, 9, 15, 16, 31, 33, 67])
def test_rows_of_any_length_are_read_to_their_end_and_not_beyond(kernels, d):
    # what stands behind the last row and the last parameter must stay unread and unwritten
    random = np.random.default_rng(d)
    n = 9
    X = random.normal(size=(n, d))
    label = random.choice([-1, 1], size=(1, n)).astype(np.int8)
    beyond = np.full(d + 8, np.nan)
    beyond[:d] = 0.0
    V, A, found = beyond[None, :d], np.zeros((1, n)), np.empty((1, 4))
    values = np.full(n * d + 8, np.nan)
    values[: n * d] = X.ravel()
    square = (X**2).sum(axis=1)
    none = np.empty(0, np.int32), np.empty(0, np.int64)
    kernels.ascent_binary.linear(
        values[: n * d], *none, n, d, square, label, np.ones((1, n)), np.empty((0, 0)), A, V, 1e-8, 1e5, 60.0, 1, False, found
    )
    assert found[0, 0] == 0
    np.testing.assert_allclose(V[0], (A * label)[0] @ X, atol=1e-12)
    assert np.isnan(beyond[d:]).all()


def test_liblinear_finds_the_same_hinge_optimum(kernels):
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 6))
    y = np.where(X[:, 0] + random.normal(size=120) > 0, 1, -1)
    C, s = 0.7, random.uniform(0.2, 2.0, size=120)
    rows = np.hstack([X, np.ones((120, 1))])
    _, V, found = linear(kernels, rows, y.astype(np.int8)[None], (C * s)[None], np.empty((0, 0)))
    peer = LinearSVC(loss="hinge", C=C, tol=1e-9, max_iter=1_000_000, random_state=0).fit(X, y, s)
    theirs = np.append(peer.coef_, peer.intercept_)
    np.testing.assert_allclose(V[0], theirs, atol=1e-5)
    assert found[0, 3] <= 0.5 * theirs @ theirs + C * s @ np.maximum(1 - y * (rows @ theirs), 0.0)


def test_limits_end_the_ascent_with_honest_values(kernels):
    X, label, bound, margin = problems(0, n=60)
    A, _, found = linear(kernels, X, label, 1e4 * bound, margin, tol=1e-12, passes=5.0)
    assert (found[:, 0] == 1).all()
    assert ((found[:, 1] > 3.0) & (found[:, 1] <= 5.0)).all()  # a pass and the values after it did not fit
    for q in range(3):
        np.testing.assert_allclose(found[q, 2:], python_binary.values(X @ X.T, label[q], 1e4 * bound[q], margin[q], A[q]), rtol=1e-9)
        assert found[q, 3] <= found[q, 2]


def test_levels_agree():
    X, label, bound, margin = problems(5)
    first, *others = [linear(Kernels(level), X, label, bound, margin)[1] for level in usable_levels()]
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-6)
