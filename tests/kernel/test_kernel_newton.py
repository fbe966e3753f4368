"""Newton on a factor of the kernel matrix, and the way from the block method to it."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from advcli.certificate import certify
from advcli.features import make_features
from advcli.losses import make_loss
from advcli.problem import Problem
from advcli.solvers import Limits, kernel_newton, make_solver
from advcli.solvers.kernel_newton import MAX_ROWS


def problem_of(C, name="zero_one", n=300, gamma=0.3, weights=False):
    """Classes that overlap, so that large C is hard."""
    random = np.random.default_rng(0)
    y = random.integers(3, size=n).astype(np.intp)
    X = random.normal(size=(n, 3)) + random.normal(size=(3, 3))[y]
    X[n // 2 :] = X[: n - n // 2]  # equal rows with other labels: K is singular
    sample, cost = (random.integers(0, 3, size=n).astype(float), random.uniform(0.5, 2.0, size=n)) if weights else (None, None)
    total = n if sample is None else sample.sum()
    return Problem(make_features("rbf", X, 3, gamma=gamma), make_loss(name, 3), y, 1.0 / (C * total), sample, cost)


@pytest.mark.parametrize("gamma", [1e-4, 0.3, 30.0])
def test_the_factor_gives_the_kernel_back_and_stops_at_its_rank(gamma):
    features = problem_of(1.0, gamma=gamma).features
    L, pivots = features.factor
    np.testing.assert_allclose(L @ L.T, rbf_kernel(features.X, gamma=gamma), atol=1e-10)
    assert L.shape[1] <= {1e-4: 40, 0.3: 150, 30.0: 300}[gamma]
    assert not np.triu(L[pivots], 1).any()
    assert features.factor[0] is L


@pytest.mark.parametrize("gamma", [1e-4, 0.03, 0.3])
def test_a_rank_above_a_number_is_told_without_the_factor(gamma):
    features = problem_of(1.0, gamma=gamma).features
    rank = make_features("rbf", features.X, 3, gamma=gamma).factor[0].shape[1]
    told = [features.outranks(most) for most in range(features.n_rows + 2)]
    assert features.store.factor is None
    assert told == sorted(told, reverse=True)
    assert not any(told[rank:])
    assert all(told[: rank // 2])
    _ = features.factor
    assert [features.outranks(most) for most in range(features.n_rows + 2)] == [most < rank for most in range(features.n_rows + 2)]


@pytest.mark.parametrize("gamma", [1e-4, 0.03])
def test_whether_a_factor_pays_is_what_the_factor_says(gamma):
    features = problem_of(1.0, gamma=gamma).features
    whole = make_features("rbf", features.X, 3, gamma=gamma)
    assert kernel_newton.factor_pays(features) == (int(np.prod(whole.explicit().shape)) <= features.n_rows)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["zero_one", "cs", "ww", "llw", "absolute", "squared", "abstain"])
def test_newton_and_the_block_method_reach_the_same_optimum(name, weights):
    problem = problem_of(4.0, name, n=120, weights=weights)
    found = [make_solver(solver).solve(problem, Limits(1e-6, max_seconds=600)) for solver in ("kernel_newton", "kernel_dual")]
    certificates = [certify(problem, solution, 1e-6) for solution in found]
    assert all(certificate.converged for certificate in certificates)
    assert certificates[0].primal == pytest.approx(certificates[1].primal, rel=2e-6)
    np.testing.assert_allclose(problem.features.scores(found[0].theta), problem.features.scores(found[1].theta), atol=0.05)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["zero_one", "ww", "llw", "abstain"])
def test_coefficients_and_parameters_over_the_factor_reach_the_same_optimum(name, weights, monkeypatch):
    problem = problem_of(64.0, name, n=90, gamma=0.02, weights=weights)
    values = []
    for pays in (False, True):
        monkeypatch.setattr(kernel_newton, "factor_pays", lambda features, pays=pays: pays)
        values.append(certify(problem, make_solver("kernel_newton").solve(problem, Limits(1e-7)), 1e-7))
    assert all(value.converged for value in values)
    assert values[0].primal == pytest.approx(values[1].primal, rel=2e-7)


@pytest.mark.parametrize("most", [0, 1000])
def test_the_system_among_free_directions_is_solved_with_and_without_its_matrix(most, monkeypatch):
    monkeypatch.setattr(kernel_newton, "_MOST_FREE", most)
    random = np.random.default_rng(3)
    K = rbf_kernel(random.normal(size=(30, 2)))
    owner = np.sort(random.integers(30, size=40))
    B, shift, scores = random.normal(size=(40, 4)), random.uniform(0.5, 2.0, size=40), random.normal(size=(30, 4))
    Z = np.zeros((40, 30, 4))  # rows of the Jacobian along the directions, in coordinates where the kernel is K
    Z[np.arange(40), owner] = B
    Z = Z.reshape(40, -1)
    v = np.linalg.solve(np.diag(shift) + Z @ np.kron(K, np.eye(4)) @ Z.T, Z @ scores.ravel())
    A, F = kernel_newton._System(make_features("precomputed", K, 4), B, owner, shift).solve(scores)
    np.testing.assert_allclose(A, (Z.T @ v).reshape(30, 4), atol=1e-6 if most == 0 else 1e-10)
    np.testing.assert_allclose(F, K @ A, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_a_sketch_of_the_kernel_gives_the_system_s_solution_in_few_iterations(seed, monkeypatch):
    random = np.random.default_rng(seed)
    features = make_features("rbf", random.normal(size=(60, 3)), 3, gamma=0.01)
    owner = np.sort(random.integers(60, size=90))
    B, shift, scores = random.normal(size=(90, 3)), random.uniform(0.01, 0.1, size=90), random.normal(size=(60, 3))
    A, F = kernel_newton._System(features, B, owner, shift).solve(scores)
    monkeypatch.setattr(kernel_newton, "_FEW_FREE", 0)
    monkeypatch.setattr(kernel_newton, "_QUARTER", 1)
    monkeypatch.setattr(kernel_newton, "_ITERATIONS", 12)
    monkeypatch.setattr(kernel_newton, "_MOST_FREE", 0)  # without the sketch: twelve iterations of another preconditioner
    monkeypatch.setattr(kernel_newton, "_LARGEST_BLOCK", 1)
    sketched = kernel_newton._System(features, B, owner, shift).solve(scores)
    np.testing.assert_allclose(sketched[0], A, atol=1e-6 * np.abs(A).max())
    np.testing.assert_allclose(sketched[1], F, atol=1e-6 * np.abs(F).max())
    monkeypatch.setattr(kernel_newton, "sketch", lambda *given: None)
    assert np.abs(kernel_newton._System(features, B, owner, shift).solve(scores)[0] - A).max() > 1e-3 * np.abs(A).max()


@pytest.mark.parametrize("gamma", [1e-3, 0.03, 0.3])
def test_a_sketch_has_the_fewest_rows_that_leave_no_more(gamma):
    features = problem_of(1.0, gamma=gamma).features
    K = rbf_kernel(features.X, gamma=gamma)
    for left in (0.5, 1e-2, 1e-4):
        rows = features.sketch(left, features.n_rows)
        assert np.diag(K - rows.T @ rows).max() <= left + 1e-12
        assert np.diag(K - rows[:-1].T @ rows[:-1]).max() > left
        assert features.sketch(left, len(rows) - 1) is None
    assert features.sketch(1.0, 0).shape == (0, features.n_rows)
    assert features.sketch(0.0, features.n_rows - 1) is None


def test_newton_begins_with_the_weight_of_the_cheapest_steps(monkeypatch):
    problem = problem_of(256.0, n=120, gamma=0.1)
    R = make_solver("kernel_dual").solve(problem, Limits(1e-3, max_passes=3)).R
    tried = []

    def seconds(problem, free, c):
        tried.append((c, free))
        return float("inf") if len(tried) == 1 else 1.0 if len(tried) == 2 else 0.3

    monkeypatch.setattr(kernel_newton, "step_seconds", seconds)
    passes, weight = kernel_newton.newton_after(problem, R, 2.56)
    assert [c for c, _ in tried] == pytest.approx([2.56, 0.256, 0.0256, 0.00256])
    assert sorted((free for _, free in tried), reverse=True) == [free for _, free in tried]
    assert tried[0][1] > tried[-1][1]
    assert weight == pytest.approx(0.0256)  # 24 steps of .3 s against 12 of 1 s and 48 of .3 s
    support = np.unique(np.concatenate([np.flatnonzero(R.any(axis=1))])).size
    assert 24 * 0.3 / (120 * (2e-7 + 1e-9 * 120)) <= passes <= 24 * 0.3 / (120 * (2e-7 + 1e-9 * support))


def test_too_many_free_directions_for_a_matrix_are_no_obstacle(monkeypatch):
    problem = problem_of(16.0, "llw", n=100, gamma=1.0)
    exact = make_solver("kernel_newton").solve(problem, Limits(1e-6))
    monkeypatch.setattr(kernel_newton, "_MOST_FREE", 10)
    iterated = make_solver("kernel_newton").solve(problem, Limits(1e-6, max_passes=5000))
    assert certify(problem, iterated, 1e-6).converged
    assert problem.primal(iterated.theta) == pytest.approx(problem.primal(exact.theta), rel=2e-6)


@pytest.mark.parametrize("gamma", [1e-3, 0.3])
def test_auto_certifies_large_C_where_the_block_method_does_not_arrive(gamma):
    problem = problem_of(2.0**14, gamma=gamma, n=120)
    solution = make_solver("auto").solve(problem, Limits(1e-3, max_passes=20_000))
    assert certify(problem, solution, 1e-3).converged
    assert solution.solver == "kernel_dual+kernel_newton"
    alone = make_solver("kernel_dual").solve(problem, Limits(1e-3, max_passes=1500))
    assert not certify(problem, alone, 1e-3).converged


def test_a_path_continues_from_the_previous_fit():
    first = make_solver("auto").solve(problem_of(2.0**10, n=80), Limits(1e-3))
    problem = problem_of(2.0**12, n=80)
    warm, cold = (make_solver("kernel_newton").solve(problem, Limits(1e-3), start) for start in (first, None))
    assert warm.passes < cold.passes
    for solution in (warm, cold):
        assert certify(problem, solution, 1e-3).converged


def test_what_newton_cannot_take_is_said():
    problem = problem_of(1.0)
    assert make_solver("kernel_newton").lacks(problem) is None
    linear = Problem(make_features("linear", problem.features.X, 3), problem.loss, problem.y, problem.lam)
    assert "kernel features" in make_solver("kernel_newton").lacks(linear)
    rows = np.zeros((MAX_ROWS + 1, 1))
    many = Problem(make_features("rbf", rows, 3), problem.loss, np.zeros(len(rows), dtype=np.intp), 0.1)
    assert f"at most {MAX_ROWS} rows" in make_solver("kernel_newton").lacks(many)
    small = Problem(make_features("rbf", problem.features.X, 3, memory_mb=0.5), problem.loss, problem.y, 0.1)
    assert "memory_mb" in make_solver("kernel_newton").lacks(small)
    matrix = Problem(problem.features, make_loss("general", 3, matrix=[[0.0, 1.0, 0.2], [0.7, 0.0, 1.0], [1.0, 0.4, 0.0]]), problem.y, 0.1)
    assert make_solver("auto").lacks(matrix) is None
