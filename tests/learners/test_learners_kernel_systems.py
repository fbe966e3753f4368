"""Systems of one kernel matrix that follow one another, against a dense solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.problems.threshold import ThresholdProblem
from advcli.solvers.newton import systems as kernel_systems
from advcli.solvers.newton.scored_rows import ExplicitRows, KernelRows
from advcli.solvers.newton.systems import KernelSystems
from advcli.solvers.newton.threshold import minimise


@pytest.fixture(scope="module", autouse=True)
def updates_pay():
    """A factor for few rows is cheap; here the one at hand is taken wherever it can be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_systems, "_ROWS", 1)
        patch.setattr(kernel_systems, "_READS", 1e-3)
        yield


def drawn(random, n, ridge):
    X = random.normal(size=(n, 3))
    return np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2)) + ridge * np.eye(n)


def missed(K, rows, D, B, X):
    """Return the error of each column in the norm of the system, beside the solution."""
    A = K[np.ix_(rows, rows)] + np.diag(D)
    right = np.linalg.solve(A, B)
    return np.sqrt(np.einsum("ij,ij->j", X - right, A @ (X - right)) / np.einsum("ij,ij->j", right, B))


@given(seed=st.integers(0, 10**6), ridge=st.sampled_from([0.0, 1e-2]))
@settings(max_examples=40, deadline=None)
def test_solutions_of_changing_rows_and_diagonals_are_those_of_a_dense_solver(seed, ridge):
    random = np.random.default_rng(seed)
    n = int(random.integers(20, 60))
    K, among = drawn(random, n, ridge), random.random(n) < random.choice([0.5, 1.0])
    systems, spread = KernelSystems(K), float(random.choice([1.0, 2.0, 1e3]))
    for _ in range(6):
        among[random.integers(0, n, size=3)] ^= True
        rows = np.flatnonzero(among)
        D, B = 0.1 * spread ** random.random(len(rows)), random.normal(size=(len(rows), 3))
        assert missed(K, rows, D, B, systems.solve(rows, D, B)).max() <= 20.0 * kernel_systems._PRECISION


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_rows_that_leave_and_come_are_exact_with_one_factor(seed):
    random = np.random.default_rng(seed)
    n = 80
    K, D = drawn(random, n, 0.0), 0.05 + random.random(n)
    systems = KernelSystems(K)
    among = np.arange(n) < 60
    systems.solve(np.flatnonzero(among), D[among], np.ones((60, 1)))
    first = systems.rows
    for _ in range(4):
        among[random.integers(0, n, size=2)] ^= True
        rows = np.flatnonzero(among)
        B = random.normal(size=(len(rows), 2))
        assert missed(K, rows, D[rows], B, systems.solve(rows, D[rows], B)).max() <= 1e-8
        assert systems.rows is first
        assert systems.iterations == 1.0


def test_diagonals_far_apart_take_a_new_factor_and_are_not_tried_again():
    random = np.random.default_rng(0)
    K, rows, B = drawn(random, 60, 0.0), np.arange(60), np.ones((60, 1))
    systems = KernelSystems(K)
    systems.solve(rows, np.full(60, 1e-3), B)
    with pytest.MonkeyPatch.context() as patch:
        # two iterations are what a factor costs
        patch.setattr(kernel_systems, "_READS", 60**3 / 3.0 / (4.0 * 60**2) / 2.0)
        patch.setattr(systems, "iterations", 1.0)
        D = 1e-3 * 100.0 ** random.random(60)
        found = systems.solve(rows, D, B)
        assert missed(K, rows, D, B, found).max() <= 1e-8
        assert 10.0 < systems.widest <= 100.0
        factor = systems.factor
        systems.solve(rows, np.full(60, 1.0), B)
        assert systems.factor is not factor


def test_a_system_without_a_factor_is_told():
    with pytest.raises(np.linalg.LinAlgError, match="no factor"):
        KernelSystems(-np.eye(3)).solve(np.arange(3), np.full(3, 0.5), np.ones((3, 1)))


@pytest.mark.parametrize("coupling", ["none", "each", "ordered", "sum"])
def test_fits_end_at_the_optimum_of_explicit_rows(coupling):
    random = np.random.default_rng(3)
    X = random.normal(size=(80, 60))
    y = np.digitize(X[:, 0] + 0.5 * random.normal(size=80), [-0.7, 0.0, 0.7]).astype(np.intp)
    problem = ThresholdProblem(y, np.ones((4, 3)), np.ones(80), 500.0, coupling)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("advcli.solvers.newton.threshold._PAIRS", 0)
        rows = KernelRows(X @ X.T / 60.0)
        kernel = minimise(problem, rows, 1e-8)
    linear = minimise(problem, ExplicitRows(X / np.sqrt(60.0)), 1e-8)
    assert kernel.status == linear.status == "converged"
    assert kernel.primal == pytest.approx(linear.primal, rel=2e-8)
    assert rows.systems.columns.shape[1] > 0
