"""Dual ascent on rows in blocks: visit by visit what plain Python computes, supports that hold any dual point, one optimum."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import python_blocks
from support import surrogates as cases

from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems.risk import Problem
from advcli.problems.row_blocks import SparseDual


def problem(k, n, d, seed, dtype=np.float32):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)).astype(dtype)
    y = np.argmax(X @ random.normal(size=(d, k)) + 0.7 * random.normal(size=(n, k)), axis=1).astype(np.int32)
    return X, y, random


def ascend(kernels, loss, X, y, lam, sample=None, cost=None, rows=16, together=64, tol=1e-6, max_passes=100.0, seed=0, **own):
    """Call the compiled loop as solver=dual_blocks does; return (code, passes, primal, dual, R, theta)."""
    (n, p), k = X.shape if own.get("at") is None else (len(own["at"]), X.shape[1]), loss.n_classes
    constant, none = own.get("constant", False), np.empty(0)
    theta = np.zeros((p + constant, kernels.ascent_row_blocks.width(k)))
    store = kernels.ascent_row_blocks.Store(n, k, rows)
    answer = kernels.ascent_row_blocks.solve(
        *kernels.arguments(loss.family),
        X.ravel() if X.dtype == np.float32 else np.empty(0, np.float32),
        none if X.dtype == np.float32 else X.ravel(),
        own.get("at", np.empty(0, np.int64)),
        n,
        p,
        constant,
        own.get("mean", np.zeros(p)),
        own.get("inverse", np.ones(p)),
        own.get("shift", np.zeros(p)),
        y,
        none if sample is None else sample,
        none if cost is None else cost,
        store,
        theta,
        np.zeros(n, np.float32),
        lam,
        float(n if sample is None else sample.sum()),
        tol,
        max_passes,
        own.get("max_seconds", 600.0),
        seed,
        together,
        threads=own.get("threads", 1),
        visits=own.get("visits", 512),
    )
    R = np.empty((n, k))
    for block in range(-(-n // rows)):
        store.read(block, y, R[block * rows : (block + 1) * rows])
    assert not theta[:, k:].any()
    return *answer, R, theta[:, :k]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "rows", "together"), [(1, 4, 4), (15, 16, 16), (16, 16, 16), (17, 16, 1), (90, 8, 24), (61, 7, 1000)])
def test_the_ascent_is_that_of_plain_python(kernels, n, rows, together, dtype):
    X, y, random = problem(3, n, 4, seed=n, dtype=dtype)
    loss = make_loss("zero_one", 3)
    mean, inverse, shift = random.normal(size=4), random.uniform(0.5, 2.0, size=4), np.array([0.0, 0.0, 1.0, 0.0])
    inverse[2] = 0.0
    meant = np.column_stack([(X.astype(float) - mean) * inverse + shift, np.ones(n)])
    sample, cost = random.integers(0, 3, size=n).astype(float) + (n < 20), random.uniform(0.5, 2.0, size=n)
    for passes in (4.0, 12.0, 40.0):
        limits = {"rows": rows, "together": together, "tol": 1e-5, "max_passes": passes, "seed": 5}
        fast = ascend(kernels, loss, X, y, 0.02, sample, cost, **limits, constant=True, mean=mean, inverse=inverse, shift=shift)
        slow = python_blocks.ascend(loss, meant, y, 0.02, sample, cost, **limits)
        assert fast[:2] == slow[:2]
        assert fast[2:4] == pytest.approx(slow[2:4], rel=1e-9, abs=1e-12)
        assert np.abs(fast[4] - slow[4]).max() <= 1e-7
        assert np.abs(fast[5] - slow[5]).max() <= 1e-7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "rows", "together", "threads", "visits"),
    [(17, 16, 1, 2, 1), (90, 8, 24, 2, 5), (90, 8, 16, 3, 7), (61, 7, 1000, 4, 100), (90, 3, 6, 2, 2)],
)
def test_the_ascent_of_several_threads_is_that_of_plain_python(kernels, n, rows, together, threads, visits, dtype):
    X, y, random = problem(3, n, 4, seed=n, dtype=dtype)
    loss = make_loss("zero_one", 3)
    sample, cost = random.integers(0, 3, size=n).astype(float) + (n < 20), random.uniform(0.5, 2.0, size=n)
    for passes in (4.0, 12.0, 40.0):
        limits = {"rows": rows, "together": together, "tol": 1e-5, "max_passes": passes, "seed": 5, "threads": threads, "visits": visits}
        fast = ascend(kernels, loss, X, y, 0.02, sample, cost, **limits)
        slow = python_blocks.ascend(loss, X.astype(float), y, 0.02, sample, cost, **limits)
        assert fast[:2] == slow[:2]
        assert fast[2:4] == pytest.approx(slow[2:4], rel=1e-9, abs=1e-12)
        assert np.abs(fast[4] - slow[4]).max() <= 1e-7
        assert np.abs(fast[5] - slow[5]).max() <= 1e-7


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", cases.compiled_names())
def test_every_surrogate_reaches_the_optimum_of_the_rows_in_memory(kernels, name, threads):
    X, y, random = problem(4, 40, 3, seed=3)
    sample, cost = random.integers(0, 3, size=40).astype(float), random.uniform(0.5, 2.0, size=40)
    loss = cases.surrogates(name, 4)[0]
    code, _, primal, dual, R, theta = ascend(
        kernels, loss, X, y, 0.05, sample, cost, rows=7, together=14, max_passes=20_000.0, threads=threads, visits=4
    )
    whole = Problem(LinearFeatures(X.astype(float), 4), loss, y.astype(np.intp), 0.05, sample, cost)
    assert code == 0
    assert whole.dual(R) == pytest.approx(dual, rel=1e-10, abs=1e-14)
    assert whole.primal(theta) == pytest.approx(primal, rel=1e-10)
    assert whole.feasible(R)[1] <= 1e-12
    assert np.abs(whole.parameters(R) - theta).max() <= 1e-10 * (1 + np.abs(theta).max())


def test_listed_rows_are_those_rows(kernels):
    X, y, random = problem(3, 50, 3, seed=1)
    at = random.permutation(50)[:33].astype(np.int64)
    loss = make_loss("zero_one", 3)
    listed = ascend(kernels, loss, X, y[at], 0.02, at=at)
    copied = ascend(kernels, loss, np.ascontiguousarray(X[at]), y[at], 0.02)
    assert listed[:4] == copied[:4]
    assert np.array_equal(listed[4], copied[4])


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_same_seed_same_bits_and_limits_hold(kernels, threads):
    X, y, _ = problem(5, 200, 6, seed=2)
    loss, rounds = make_loss("zero_one", 5), {"threads": threads, "visits": 16}
    first, again, other = (ascend(kernels, loss, X, y, 1e-3, tol=1e-4, seed=seed, **rounds) for seed in (1, 1, 2))
    assert first[:4] == again[:4]
    assert np.array_equal(first[4], again[4])
    assert not np.array_equal(first[4], other[4])
    code, passes, primal, dual, *_ = ascend(kernels, loss, X, y, 1e-7, tol=1e-12, max_passes=20.0, **rounds)
    assert (code, passes <= 20.0, dual <= primal) == (1, True, True)
    code, _, primal, dual, *_ = ascend(kernels, loss, X, y, 1e-7, tol=1e-12, max_seconds=0.0, **rounds)
    assert (code, dual <= primal) == (2, True)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 70), st.integers(1, 9), st.integers(1, 20), st.floats(0.0, 1.0), st.integers(0, 2**32 - 1))
def test_supports_hold_any_dual_point(n, k, rows, share, seed):
    random = np.random.default_rng(seed)
    y = random.integers(0, k, size=n).astype(np.int32)
    held = SparseDual(y, k, rows)
    for _ in range(3):  # rewritten with other supports
        R = random.normal(size=(n, k)) * (random.random(size=(n, k)) < share)
        R[np.arange(n), y] = 0.0
        entries = np.count_nonzero(R)
        R[np.arange(n), y] = -R.sum(axis=1)
        for part in held.parts():
            held.write(part, R[part])
        assert np.allclose(held.read(slice(0, n)), R, rtol=0, atol=1e-14 * k)
        assert held.nbytes == 10 * entries + 2 * n + 16 * -(-n // rows)
        assert np.array_equal(held.read(slice(0, n)) != 0, R != 0)
    assert np.allclose(held.scaled(2.0).read(slice(0, n)), 2 * R, rtol=0, atol=1e-13 * k)
    assert not held.empty().read(slice(0, n)).any()
    stored = pickle.loads(pickle.dumps(held))
    assert np.allclose(stored.read(slice(0, n)), R, rtol=0, atol=1e-13 * k)


def test_arguments_that_cannot_be_are_refused(kernels):
    X, y, _ = problem(3, 6, 2, seed=0)
    loss, store = make_loss("zero_one", 3), kernels.ascent_row_blocks.Store(6, 3, 4)
    with pytest.raises(ValueError, match="labels"):
        ascend(kernels, loss, X, y + 3, 0.1)
    with pytest.raises(ValueError, match="listed"):
        ascend(kernels, loss, X, y, 0.1, at=np.array([0, 1, 2, 3, 4, 6], np.int64))
    for wrong in ({"threads": 0}, {"threads": 3}, {"threads": 257}, {"threads": 2, "visits": 0}):  # 6 rows in blocks of 4
        with pytest.raises(ValueError, match="threads"):
            ascend(kernels, loss, X, y, 0.1, rows=4, **wrong)
    with pytest.raises(ValueError, match="block"):
        store.read(2, y, np.empty((2, 3)))
    with pytest.raises(ValueError, match="rows must be there"):
        store.write(1, y, np.empty((4, 3)))
    for of_two in (store.read, store.write):
        with pytest.raises(ValueError, match="whole blocks"):
            of_two(0, y, np.empty((5, 3)))
    with pytest.raises(ValueError, match="classes"):
        kernels.ascent_row_blocks.Store(6, 2**16, 4)
