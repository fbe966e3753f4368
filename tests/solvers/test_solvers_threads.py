"""Evaluations, certificates and Newton's systems by several threads: the bits are those of one."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from advcli.core.threads import LANES, rows_by, shared
from advcli.features import linear, make_features
from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems import risk as problems
from advcli.problems.certificate import certify, settle
from advcli.problems.risk import Problem
from advcli.solvers import Limits, auto, make_solver
from advcli.solvers.newton import kernel as kernel_newton


def rows_of(kind, n=700, d=9, k=5, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.argmax(X @ random.normal(size=(d, k)) + 2.0 * random.normal(size=(n, k)), axis=1)
    if kind == "sparse":
        X = sp.csr_array(X * (random.random((n, d)) < 0.5))
    return np.asfortranarray(X) if kind == "columns" else X, y


@pytest.fixture
def small_parts(monkeypatch):
    """Cut rows, classes and columns into parts that small data have several of."""
    for module, name, value in (
        (linear, "_PRODUCTS", 1),
        (linear, "_SCORES", 1),
        (linear, "_FEATURES", 2),
        (linear, "_ROWS", 100),
        (problems, "_EACH", 1),
        (problems, "_CHUNK", 300),
        (kernel_newton, "_GATHERED", 1),
    ):
        monkeypatch.setattr(module, name, value)


def test_parts_cover_the_rows_and_their_cuts_are_those_of_the_lanes():
    for n in (0, 1, 63, 64, 65, 1000, 1024):
        for least in (0, 1, 64, 65, 200, 5000):
            parts = rows_by(n, least)
            assert [row for part in parts for row in range(part.start, part.stop)] == list(range(n))
            assert all(part.start % LANES == 0 for part in parts)
            assert len(parts) == 1 or all(part.stop - part.start >= least for part in parts)


def test_answers_keep_the_order_and_failures_come_through():
    assert shared(lambda part: part**2, range(20), 3) == [part**2 for part in range(20)]

    def fail(part):
        raise KeyError(part)

    for threads in (1, 3):
        with pytest.raises(KeyError, match="0"):
            shared(fail, range(5), threads)


@pytest.mark.parametrize("kind", ["dense", "columns", "sparse"])
@pytest.mark.parametrize("k", [2, 5, 130])
def test_products_with_the_rows_have_the_bits_of_one_thread(small_parts, kind, k):
    random = np.random.default_rng(k)
    X, _ = rows_of(kind)
    features, theta, R = LinearFeatures(X, k), random.normal(size=(9, k)), random.normal(size=(700, k))
    for threads in (2, 3, 7):
        assert np.array_equal(features.shared_scores(theta, threads), features.scores(theta))
        assert np.array_equal(features.shared_adjoint(R, threads), features.adjoint(R))
    assert np.abs(features.scores(theta) - X @ theta).max() < 1e-12
    assert np.abs(features.adjoint(R) - X.T @ R).max() < 1e-11
    if kind == "sparse":
        few = sp.csr_array(R * (random.random(R.shape) < 0.1))
        assert np.array_equal(features.shared_adjoint(few, 3), features.adjoint(few))
        assert np.abs(features.adjoint(few) - X.T @ few.toarray()).max() < 1e-11


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", ["zero_one", "ww", "llw", "abstain", "absolute", "general"])
def test_values_have_the_bits_of_one_thread(small_parts, name, kind, weights):
    k, random = 12, np.random.default_rng(3)
    X, y = rows_of(kind, k=k)
    options = {"matrix": random.random((k, k)) * (1.0 - np.eye(k))} if name == "general" else {}
    loss = make_loss(name, k, **options)
    sample, cost = (random.uniform(0.5, 2.0, len(y)), random.uniform(0.5, 2.0, len(y))) if weights else (None, None)
    one = Problem(LinearFeatures(X, k), loss, y, 0.1, sample, cost)
    theta = random.normal(size=(9, k))
    R = loss.oracle(one.scaled(one.features.scores(theta)), y).R
    for threads in (2, 3):
        several = replace(one, threads=threads)
        assert several.primal(theta) == one.primal(theta)
        assert several.dual(R) == one.dual(R)
        moved, outside = several.feasible(R * (1.0 + 1e-11))
        assert np.array_equal(moved, one.feasible(R * (1.0 + 1e-11))[0])
        assert outside == one.feasible(R * (1.0 + 1e-11))[1]


def test_a_certificate_takes_the_threads_of_the_fit(small_parts, monkeypatch):
    taken = []

    def counted(work, parts, threads, shared=shared):
        taken.append(threads)
        return shared(work, parts, threads)

    X, y = rows_of("sparse")
    problem = Problem(LinearFeatures(X, 5), make_loss("zero_one", 5), y, 0.01)
    found = [make_solver("dual", threads=threads).solve(problem, Limits(1e-4)) for threads in (1, 2)]
    assert np.array_equal(found[0].theta, found[1].theta)  # visits of sparse rows take one thread
    monkeypatch.setattr(problems, "shared", counted)
    one = certify(problem, found[0], 1e-4)
    assert set(taken) <= {1}
    two = certify(problem, found[1], 1e-4)
    assert 2 in taken
    assert (two.primal, two.dual) == (one.primal, one.dual)
    _, third = settle(problem, found[1], 1e-4)
    assert third.primal == one.primal


@pytest.mark.parametrize("name", ["zero_one", "ww", "llw"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_newton_has_the_bits_of_one_thread(small_parts, monkeypatch, kind, name):
    X, y = rows_of(kind)
    problem = Problem(LinearFeatures(X, 5), make_loss(name, 5), y, 1e-3)
    monkeypatch.setattr(linear, "_SMALL", 0)  # sums by pairs of classes
    found = [make_solver("newton", threads=threads).solve(problem, Limits(1e-7)) for threads in (1, 2, 3)]
    assert [each.memory.get("threads") for each in found] == [None, 2, 3]
    for each in found[1:]:
        assert np.array_equal(each.theta, found[0].theta)
        assert np.array_equal(each.R, found[0].R)
        assert each.passes == found[0].passes
    assert certify(problem, found[1], 1e-7).converged


@pytest.mark.parametrize("gamma", [0.001, 0.5])  # with a factor of K, and over coefficients
def test_newton_with_a_kernel_has_the_bits_of_one_thread(small_parts, gamma):
    X, y = rows_of("dense", n=180)
    problem = Problem(make_features("rbf", X, 5, gamma=gamma), make_loss("zero_one", 5), y, 1e-4)
    one, two = (make_solver("kernel_newton", threads=threads).solve(problem, Limits(1e-6)) for threads in (1, 2))
    assert np.array_equal(one.theta, two.theta)
    assert two.memory["threads"] == 2
    judged = [certify(problem, each, 1e-6) for each in (one, two)]
    assert (judged[0].primal, judged[0].dual) == (judged[1].primal, judged[1].dual)
    assert judged[0].converged


def test_auto_hands_its_threads_to_newton():
    X, y = rows_of("dense")
    problem = Problem(LinearFeatures(X, 5), make_loss("zero_one", 5), y, 1e-3)
    plan = auto.choose(problem, 2)
    assert [solver.threads for solver in plan.solvers] == [2, 2]
    assert "2 threads" in plan.reason
    kernel = Problem(make_features("rbf", X, 5, gamma=0.5), make_loss("zero_one", 5), y, 1e-3)
    assert auto.choose(kernel, 2).solvers[1].threads == 2


def test_python_code_of_a_loss_is_not_called_by_several_threads(small_parts):
    general = make_loss("zero_one", 5)
    assert general.compiled

    class Own(type(general)):
        def value(self, F, y):
            return super().value(F, y)

    assert not Own(5).compiled
    X, y = rows_of("dense")
    assert len(Problem(LinearFeatures(X, 5), Own(5), y, 0.1, threads=4)._shares()) == 1
