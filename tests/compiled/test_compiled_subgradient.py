"""The compiled stochastic passes against the same passes in plain Python, step for step."""

from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from support import python_dual
from support import python_subgradient as plain
from support import surrogates as cases
from support.pairwise import pairwise

LINEAR, THRESHOLD, KERNEL = 0, 1, 2
LAM = 0.2
NAMES = cases.compiled_names()
SGD = [(0, 3, 0, 0), (0, 9, 1, 1), (1, 4, 0, 1), (1, 3, 1, 0)]
"""Shape, classes, weights, sparse rows."""
BATCHES = [(0, 3, 0, 0, 1), (0, 9, 1, 1, 4), (1, 4, 1, 1, 1), (1, 3, 0, 0, 5)]
"""The same, and rows a step."""


def data(k, weights, n=14, d=3):
    random = np.random.default_rng([k, weights])
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.8)
    y = random.integers(0, k, size=n).astype(np.intp)
    sample = random.integers(0, 4, size=n).astype(float) if weights else None
    cost = random.uniform(0.3, 3.0, size=n) if weights else None
    return X, y, sample, cost, random


def arguments(kernels, loss, X, y, sample, cost, shape):
    n, d = X.shape
    if sp.issparse(X):
        rows = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    else:
        rows = np.ascontiguousarray(X).ravel(), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
        squares = X.diagonal().copy() if shape == KERNEL else (X**2).sum(axis=1)
    none = np.empty(0)
    weights = (none if sample is None else sample, none if cost is None else cost)
    mass = float(n if sample is None else sample.sum())
    return (*kernels.arguments(loss.family), shape, *rows, n, d, y, squares, *weights, mass)


def flat_size(kernels, shape, d, k):
    return d + k - 1 if shape == THRESHOLD else d * kernels.subgradient.width(k)


def unpadded(kernels, flat, shape, d, k):
    return flat if shape == THRESHOLD else flat.reshape(d, -1)[:, :k].ravel()


def maps(shape, X, k):
    if shape == THRESHOLD:
        return plain.threshold_map(X, k), np.r_[np.ones(X.shape[1]), np.zeros(k - 1)]
    return plain.linear_map(X, k), np.ones(X.shape[1] * k)


def box_of(kernels, shape, d, k, boxed):
    """Weights of an L1 penalty as the passes take them and as the reference does; with one, every parameter carries lambda."""
    if not boxed:
        return np.empty(0), 0.0
    tolerance = np.random.default_rng(k).uniform(0.0, 0.3, size=(d + k - 1,) if shape == THRESHOLD else (d, k))
    if shape == THRESHOLD:
        return tolerance, tolerance
    padded = np.zeros((d, kernels.subgradient.width(k)))
    padded[:, :k] = tolerance
    return padded.ravel(), tolerance.ravel()


def answers_of(kernels, loss):
    return lambda f, y: kernels.oracle(loss.family, f[None], np.array([y]))[1][0]


@pytest.mark.parametrize(("name", "case", "late"), pairwise(product(NAMES, SGD, [-1, 0, 1])))
def test_sgd_steps(kernels, name, case, late):
    shape, k, weights, sparse = case
    X, y, sample, cost, random = data(k, weights)
    n, d = X.shape
    # steps of a linear price lead to tied classes, of which any may be the best: then the passes part ways by rounding
    loss = cases.surrogates(name, k)[-1 if name == "label_sets" else 0]
    J, penalised = maps(shape, X, k)
    order = np.concatenate([random.permutation(n) for _ in range(3)] + [random.integers(n, size=n)])
    radius = 0.0 if shape == THRESHOLD else 0.4
    u, average = np.zeros((2, flat_size(kernels, shape, d, k)))
    squares, state = np.zeros(k), np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    R, counts = np.zeros((n, kernels.subgradient.width(k))), np.zeros(n, dtype=np.int32)
    bound = arguments(kernels, loss, sp.csr_array(X) if sparse else X, y, sample, cost, shape)
    for part in np.split(order, 4):
        kernels.subgradient.sgd(*bound, part, u, average, squares, R, counts, state, LAM, radius, 0.7, late)
    weight = {-1: None, 0: lambda t: 1.0, 1: float}[late]
    theta, mean, answers = plain.sgd(answers_of(kernels, loss), k, J, penalised, y, LAM, order, sample, cost, radius, 0.7, weight)
    scale = 1.0 + np.abs(theta).max()
    found = unpadded(kernels, u, shape, d, k)
    assert np.abs(np.where(penalised > 0, state[0], 1.0) * found - theta).max() <= 1e-10 * scale
    assert np.abs(R[:, :k] - answers).max() <= 1e-10
    assert not R[:, k:].any()
    if late >= 0:
        sums = unpadded(kernels, average, shape, d, k)
        found = np.where(penalised > 0, state[3] * found - sums, sums) / state[4]
        assert np.abs(found - mean).max() <= 1e-10 * scale


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weights", [0, 1])
def test_kernel_steps_are_linear_steps_with_the_kernel_of_inner_products(kernels, name, weights):
    """K = X X': the coefficients A make the parameters X'A, step for step, projection and average included."""
    k = 4
    X, y, sample, cost, random = data(k, weights)
    n = len(X)
    loss = cases.surrogates(name, k)[0]
    order = random.integers(n, size=4 * n)
    found = []
    for shape, rows in ((LINEAR, X), (KERNEL, X @ X.T)):
        u, average = np.zeros((2, flat_size(kernels, shape, rows.shape[1], k)))
        squares, state = np.zeros(k), np.array([1.0, 0.0, 0.0, 0.0, 0.0])
        R, counts = np.zeros((n, kernels.subgradient.width(k))), np.zeros(n, dtype=np.int32)
        bound = arguments(kernels, loss, rows, y, sample, cost, shape)
        kernels.subgradient.sgd(*bound, order, u, average, squares, R, counts, state, LAM, 0.5, 1.0, 1)
        theta = (state[0] * u).reshape(rows.shape[1], -1)[:, :k]
        mean = ((state[3] * u - average) / state[4]).reshape(rows.shape[1], -1)[:, :k]
        found.append([theta, mean, R] if shape == LINEAR else [X.T @ theta, X.T @ mean, R])
    for one, other in zip(*found, strict=True):
        assert np.abs(one - other).max() <= 1e-9 * (1.0 + np.abs(one).max())


def test_pegasos_potentials_of_step_t_use_one_over_lambda_times_t_minus_one(kernels):
    """Theta before step t is minus the sum of the answers over lambda (t - 1), 0 at t = 1 (docs/notes/misprints.md, section 2)."""
    k = 3
    X, y, _, _, random = data(k, 0)
    n = len(y)
    loss = cases.surrogates("zero_one", k)[0]
    K, order = X @ X.T, random.integers(n, size=50)
    alpha = np.zeros((n, k))
    for t, i in enumerate(order, start=1):
        f = np.zeros(k) if t == 1 else -(K[i] @ alpha) / (LAM * (t - 1))
        alpha[i] += loss.oracle_reference(f[None], y[i : i + 1]).R[0]
    u, average = np.zeros((2, n * kernels.subgradient.width(k)))
    state = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    R, counts = np.zeros((n, kernels.subgradient.width(k))), np.zeros(n, dtype=np.int32)
    bound = arguments(kernels, loss, K, y, None, None, KERNEL)
    kernels.subgradient.sgd(*bound, order, u, average, np.zeros(k), R, counts, state, LAM, 0.0, 1.0, -1)
    assert np.abs((state[0] * u).reshape(n, -1)[:, :k] + alpha / (LAM * 50)).max() <= 1e-12
    assert np.array_equal(counts, np.bincount(order, minlength=n))


@pytest.mark.parametrize(("name", "case", "betas", "boxed"), pairwise(product(NAMES, BATCHES, [(0.0, 0.0), (0.9, 0.99)], [False, True])))
def test_adaptive_steps(kernels, name, case, betas, boxed):
    shape, k, weights, sparse, batch = case
    X, y, sample, cost, random = data(k, weights)
    n, d = X.shape
    loss = cases.surrogates(name, k)[0]
    J, penalised = maps(shape, X, k)
    padded, tolerance = box_of(kernels, shape, d, k, boxed)
    penalised = np.ones_like(penalised) if boxed else penalised
    order = np.concatenate([random.permutation(n) for _ in range(2)])
    theta, scratch, first, second = np.zeros((4, flat_size(kernels, shape, d, k)))
    R, counts = np.zeros((n, kernels.subgradient.width(k))), np.zeros(n, dtype=np.int32)
    bound = arguments(kernels, loss, sp.csr_array(X) if sparse else X, y, sample, cost, shape)
    steps = kernels.subgradient.adaptive(*bound, order, batch, theta, scratch, first, second, R, counts, 0.0, LAM, 0.3, *betas, padded)
    expected, answers = plain.adaptive(
        answers_of(kernels, loss), k, J, penalised, y, LAM, order, batch, 0.3, *betas, sample, cost, None, tolerance
    )
    assert steps == -(-len(order) // batch)
    assert np.abs(unpadded(kernels, theta, shape, d, k) - expected).max() <= 1e-9 * (1.0 + np.abs(expected).max())
    assert np.abs(R[:, :k] - answers).max() <= 1e-9


@pytest.mark.parametrize(("name", "case", "boxed"), pairwise(product(NAMES, BATCHES, [False, True])))
def test_averaged_gradient_steps(kernels, name, case, boxed):
    shape, k, weights, sparse, batch = case
    X, y, sample, cost, random = data(k, weights)
    n, d = X.shape
    loss = cases.surrogates(name, k)[0]
    J, penalised = maps(shape, X, k)
    padded, tolerance = box_of(kernels, shape, d, k, boxed)
    penalised = np.ones_like(penalised) if boxed else penalised
    order = random.integers(n, size=2 * n)
    theta, total = np.zeros((2, flat_size(kernels, shape, d, k)))
    width = kernels.subgradient.width(k)
    R, centre = np.zeros((2, n, width))
    bound = arguments(kernels, loss, sp.csr_array(X) if sparse else X, y, sample, cost, shape)
    kernels.subgradient.averaged_gradient(*bound, order, batch, theta, total, R, centre, LAM, 1.5, 0.2, padded)
    block = partial(python_dual.block, loss)
    expected, answers = plain.averaged_gradient(
        block, J, penalised, y, LAM, order, batch, 0.2, 1.5, np.zeros((n, k)), sample, cost, tolerance
    )
    assert np.abs(unpadded(kernels, theta, shape, d, k) - expected).max() <= 1e-6 * (1.0 + np.abs(expected).max())
    assert np.abs(R[:, :k] - answers).max() <= 1e-6


@pytest.mark.parametrize(("name", "case", "late"), pairwise(product(NAMES, BATCHES, [-1, 0, 1])))
def test_dual_averaging_steps(kernels, name, case, late):
    shape, k, weights, sparse, batch = case
    X, y, sample, cost, random = data(k, weights)
    n, d = X.shape
    loss = cases.surrogates(name, k)[0]
    J, _ = maps(shape, X, k)
    padded, tolerance = box_of(kernels, shape, d, k, True)
    order = np.concatenate([random.permutation(n) for _ in range(2)])
    theta, total, average = np.zeros((3, flat_size(kernels, shape, d, k)))
    R, counts = np.zeros((n, kernels.subgradient.width(k))), np.zeros(n, dtype=np.int32)
    bound = arguments(kernels, loss, sp.csr_array(X) if sparse else X, y, sample, cost, shape)
    kernels.subgradient.dual_averaging(*bound, order, batch, theta, total, average, R, counts, np.zeros(5), LAM, 0.7, late, padded)
    weight = {-1: None, 0: lambda t: 1.0, 1: float}[late]
    answers = answers_of(kernels, loss)
    expected, mean, kept = plain.dual_averaging(answers, k, J, y, LAM, 0.7, tolerance, order, batch, sample, cost, weight)
    scale = 1.0 + np.abs(expected).max()
    assert (expected == 0).any() or name not in ("zero_one", "cs")  # the soft threshold is at work
    assert np.abs(unpadded(kernels, theta, shape, d, k) - expected).max() <= 1e-9 * scale
    assert np.abs(unpadded(kernels, average, shape, d, k) - mean).max() <= 1e-9 * scale
    assert np.abs(R[:, :k] - kept).max() <= 1e-9


def test_arrays_that_do_not_fit_are_refused(kernels):
    X, y, _, _, _ = data(3, 0)
    loss = cases.surrogates("zero_one", 3)[0]
    bound = arguments(kernels, loss, X, y, None, None, LINEAR)
    width = kernels.subgradient.width(3)
    order, R, counts = np.arange(len(y)), np.zeros((len(y), width)), np.zeros(len(y), dtype=np.int32)
    right, wrong, state = np.zeros(3 * width), np.zeros(3 * width + 1), np.zeros(5)
    with pytest.raises(ValueError, match="theta must hold"):
        kernels.subgradient.sgd(*bound, order, wrong, wrong, np.zeros(3), R, counts, state, LAM, 0.0, 1.0, 0)
    with pytest.raises(ValueError, match="do not fit"):
        kernels.subgradient.sgd(*bound, order, right, wrong, np.zeros(3), R, counts, state, LAM, 0.0, 1.0, 0)
    with pytest.raises(ValueError, match="batch must hold a row"):
        kernels.subgradient.adaptive(*bound, order, 0, right, right, right, right, R, counts, 0.0, LAM, 0.1, 0.0, 0.0, np.empty(0))
    with pytest.raises(ValueError, match="do not fit"):
        kernels.subgradient.averaged_gradient(*bound, order, 1, right, wrong, R, R, LAM, 1.0, 0.1, np.empty(0))
    with pytest.raises(ValueError, match="penalty do not fit"):
        kernels.subgradient.averaged_gradient(*bound, order, 1, right, right, R, R, LAM, 1.0, 0.1, wrong)
    with pytest.raises(ValueError, match="do not fit"):  # without a penalty there is nothing to average for
        kernels.subgradient.dual_averaging(*bound, order, 1, right, right, right, R, counts, state, LAM, 1.0, 0, np.empty(0))
