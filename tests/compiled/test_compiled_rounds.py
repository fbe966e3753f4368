"""Dual ascent by several threads: visit by visit what plain Python computes, the same bits whenever it runs, one optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from support import python_rounds
from support import surrogates as cases
from support.compiled_ascent import ascend, small_problem

from advcli.losses import make_loss


@pytest.mark.parametrize(("threads", "together"), [(1, 7), (2, 1), (2, 5), (3, 4), (4, 100)])
def test_threads_move_theta_as_plain_python_does(kernels, threads, together):
    X, y = small_problem(3, 37, 4, seed=threads)
    loss = make_loss("zero_one", 3)
    for passes in (2.0, 12.0):
        given = {"tol": 1e-5, "max_passes": passes, "seed": 5}
        code, done, primal, dual, R, theta, _ = ascend(kernels, loss, X, y, 0.02, threads=threads, together=together, **given)
        slow = python_rounds.ascend(loss, X, y, 0.02, threads, together, **given)
        assert (code, done) == slow[:2]
        assert (primal, dual) == pytest.approx(slow[2:4], rel=1e-9)
        assert np.abs(R[:, :3] - slow[4]).max() <= 1e-8
        assert np.abs(theta[:, :3] - slow[5]).max() <= 1e-8


@pytest.mark.parametrize("name", cases.compiled_names())
def test_threads_reach_the_optimum_of_one(kernels, name):
    random = np.random.default_rng(3)
    X, y = small_problem(4, 40, 3)
    sample, cost = random.integers(0, 3, size=40).astype(float), random.uniform(0.5, 2.0, size=40)
    loss = cases.surrogates(name, 4)[0]
    one = ascend(kernels, loss, X, y, 0.05, sample, cost, tol=1e-6)
    for threads in (2, 3):
        code, _, primal, dual, R, theta, problem = ascend(kernels, loss, X, y, 0.05, sample, cost, tol=1e-6, threads=threads, together=4)
        assert code == 0
        assert primal == pytest.approx(one[2], rel=2e-6)
        assert dual <= primal
        assert not R[:, 4:].any()
        assert np.abs(problem.parameters(R[:, :4]) - theta[:, :4]).max() <= 1e-10 * (1 + np.abs(theta).max())
        assert problem.dual(np.ascontiguousarray(R[:, :4])) == pytest.approx(dual, rel=1e-10, abs=1e-14)


def test_same_seed_and_threads_same_bits(kernels):
    X, y = load_iris(return_X_y=True)
    X, y, loss = np.ascontiguousarray(X), y.astype(np.intp), make_loss("zero_one", 3)
    first, again, other = (ascend(kernels, loss, X, y, 0.01, tol=1e-4, threads=2, together=32, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first[4], again[4])
    assert np.array_equal(first[5], again[5])
    assert first[:4] == again[:4]
    assert not np.array_equal(first[4], other[4])


def test_limits_hold_for_all_threads(kernels):
    X, y = small_problem(5, 60, 6)
    loss = make_loss("zero_one", 5)
    assert ascend(kernels, loss, X, y, 1e-7, tol=1e-12, max_passes=20.0, threads=2)[0] == 1
    code, _, primal, dual, *_ = ascend(kernels, loss, X, y, 1e-7, tol=1e-12, max_seconds=0.0, threads=2)
    assert code == 2
    assert dual <= primal


def test_threads_that_cannot_be_are_refused(kernels):
    X, y = small_problem(3, 6, 2)
    loss = make_loss("zero_one", 3)
    for threads in (0, -1, 257, 7):
        with pytest.raises(ValueError, match="thread"):
            ascend(kernels, loss, X, y, 0.1, threads=threads)
    with pytest.raises(ValueError, match="dense"):
        ascend(kernels, loss, sp.csr_array(X), y, 0.1, threads=2)
    with pytest.raises(ValueError, match="visit"):
        ascend(kernels, loss, X, y, 0.1, threads=2, together=0)


def test_a_thread_that_cannot_start_ends_the_others(kernels, monkeypatch):
    import threading

    X, y = small_problem(3, 30, 2)
    real = threading.Thread.start
    started = []

    def start(self):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(self)
        real(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="new thread"):
        ascend(kernels, make_loss("zero_one", 3), X, y, 0.1, threads=3)
    assert not started[0].is_alive()
