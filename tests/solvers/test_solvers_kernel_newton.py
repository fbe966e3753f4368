"""Newton on a factor of the kernel matrix, and the way from the block method to it."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from advcli.features import make_features
from advcli.losses import make_loss
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.newton import kernel
from advcli.solvers.newton.kernel import MAX_ROWS


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
    L, pivots = features.pivots.factor
    np.testing.assert_allclose(L @ L.T, rbf_kernel(features.X, gamma=gamma), atol=1e-10)
    assert L.shape[1] <= {1e-4: 40, 0.3: 150, 30.0: 300}[gamma]
    assert not np.triu(L[pivots], 1).any()
    assert features.pivots.factor.L is L


@pytest.mark.parametrize("gamma", [1e-4, 0.03, 0.3])
def test_a_rank_above_a_number_is_told_without_the_factor(gamma):
    features = problem_of(1.0, gamma=gamma).features
    rank = make_features("rbf", features.X, 3, gamma=gamma).pivots.factor.L.shape[1]
    told = [features.pivots.outranks(most) for most in range(features.n_rows + 2)]
    assert "factor" not in vars(features.pivots)
    assert told == sorted(told, reverse=True)
    assert not any(told[rank:])
    assert all(told[: rank // 2])
    _ = features.pivots.factor
    assert [features.pivots.outranks(most) for most in range(features.n_rows + 2)] == [most < rank for most in range(features.n_rows + 2)]


@pytest.mark.parametrize("gamma", [1e-4, 0.03])
def test_whether_a_factor_pays_is_what_the_factor_says(gamma):
    features = problem_of(1.0, gamma=gamma).features
    whole = make_features("rbf", features.X, 3, gamma=gamma)
    assert kernel.factor_pays(features) == (int(np.prod(kernel.explicit(whole).shape)) <= features.n_rows)


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
        monkeypatch.setattr(kernel, "factor_pays", lambda features, pays=pays: pays)
        values.append(certify(problem, make_solver("kernel_newton").solve(problem, Limits(1e-7)), 1e-7))
    assert all(value.converged for value in values)
    assert values[0].primal == pytest.approx(values[1].primal, rel=2e-7)


@pytest.mark.parametrize("most", [0, 1000])
def test_the_system_among_free_directions_is_solved_with_and_without_its_matrix(most, monkeypatch):
    monkeypatch.setattr(kernel, "_MOST_FREE", most)
    random = np.random.default_rng(3)
    K = rbf_kernel(random.normal(size=(30, 2)))
    owner = np.sort(random.integers(30, size=40))
    B, shift, scores = random.normal(size=(40, 4)), random.uniform(0.5, 2.0, size=40), random.normal(size=(30, 4))
    Z = np.zeros((40, 30, 4))  # rows of the Jacobian along the directions, in coordinates where the kernel is K
    Z[np.arange(40), owner] = B
    Z = Z.reshape(40, -1)
    v = np.linalg.solve(np.diag(shift) + Z @ np.kron(K, np.eye(4)) @ Z.T, Z @ scores.ravel())
    A, F = kernel._System(make_features("precomputed", K, 4), B, owner, shift).solve(scores)
    np.testing.assert_allclose(A, (Z.T @ v).reshape(30, 4), atol=1e-6 if most == 0 else 1e-10)
    np.testing.assert_allclose(F, K @ A, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_a_sketch_of_the_kernel_gives_the_system_s_solution_in_few_iterations(seed, monkeypatch):
    random = np.random.default_rng(seed)
    features = make_features("rbf", random.normal(size=(60, 3)), 3, gamma=0.01)
    owner = np.sort(random.integers(60, size=90))
    B, shift, scores = random.normal(size=(90, 3)), random.uniform(0.01, 0.1, size=90), random.normal(size=(60, 3))
    A, F = kernel._System(features, B, owner, shift).solve(scores)
    monkeypatch.setattr(kernel, "_FEW_FREE", 0)
    monkeypatch.setattr(kernel, "_QUARTER", 1)
    monkeypatch.setattr(kernel, "_ITERATIONS", 12)
    monkeypatch.setattr(kernel, "_MOST_FREE", 0)  # without the sketch: twelve iterations of another preconditioner
    monkeypatch.setattr(kernel, "_LARGEST_BLOCK", 1)
    sketched = kernel._System(features, B, owner, shift).solve(scores)
    np.testing.assert_allclose(sketched[0], A, atol=1e-6 * np.abs(A).max())
    np.testing.assert_allclose(sketched[1], F, atol=1e-6 * np.abs(F).max())
    monkeypatch.setattr(kernel, "sketch", lambda *given: None)
    assert np.abs(kernel._System(features, B, owner, shift).solve(scores)[0] - A).max() > 1e-3 * np.abs(A).max()


@pytest.mark.parametrize("gamma", [1e-3, 0.03, 0.3])
def test_a_sketch_has_the_fewest_rows_that_leave_no_more(gamma):
    features = problem_of(1.0, gamma=gamma).features
    K = rbf_kernel(features.X, gamma=gamma)
    for left in (0.5, 1e-2, 1e-4):
        rows = features.pivots.sketch(left, features.n_rows)
        assert np.diag(K - rows.T @ rows).max() <= left + 1e-12
        assert np.diag(K - rows[:-1].T @ rows[:-1]).max() > left
        assert features.pivots.sketch(left, len(rows) - 1) is None
    assert features.pivots.sketch(1.0, 0).shape == (0, features.n_rows)
    assert features.pivots.sketch(0.0, features.n_rows - 1) is None


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(("C", "passes", "bounds"), [(256.0, 3, (1.0, 30.0)), (1.0, 30, (1.0, 1.0)), (2.0**14, 3, (30.0, 30.0))])
def test_newton_begins_with_a_weight_by_the_gap(C, passes, bounds, weights, monkeypatch):
    problem = problem_of(C, n=120, gamma=0.1, weights=weights)
    found = make_solver("kernel_dual").solve(problem, Limits(1e-9, max_passes=passes))
    R, tried = found.R, []

    def seconds(problem, free, c):
        tried.append((c, free))
        return 0.3

    monkeypatch.setattr(kernel, "step_seconds", seconds)
    after, weight = kernel.newton_after(problem, R)
    gap = (problem.primal(found.theta) - problem.dual(R)) * problem.n  # in the units of the proximal term
    square = float(problem.weight @ (R**2).sum(axis=1))
    assert weight == pytest.approx(min(max(10.0 * gap / square, 1.0), 30.0))
    assert bounds[0] <= weight <= bounds[1]
    assert [c for c, _ in tried] == [weight]
    support = np.flatnonzero(R.any(axis=1)).size
    assert 4 * 0.3 / (120 * (2e-7 + 3e-10 * 120)) <= after <= 4 * 0.3 / (120 * (2e-7 + 3e-10 * support))


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 150])
def test_a_product_reads_the_rows_with_coefficients_alone(rows):
    random = np.random.default_rng(rows)
    K = rbf_kernel(random.normal(size=(150, 3)))
    chosen = random.choice(150, rows, replace=False)
    A = np.zeros((150, 4))
    A[chosen] = random.normal(size=(rows, 4))
    hidden = K.copy()
    hidden[np.setdiff1d(np.arange(150), chosen)] = np.nan
    found = kernel.product(hidden, A)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, K @ A, atol=1e-12)


@pytest.mark.parametrize("weights", [False, True])
def test_scores_that_follow_steps_are_those_of_the_coefficients(weights, monkeypatch):
    problem, seen = problem_of(256.0, n=120, weights=weights), []
    at = kernel.CoefficientSmoothed.at

    def watched(self, *given):
        point = at(self, *given)
        seen.append((point, self.K, self.age))
        return point

    monkeypatch.setattr(kernel, "factor_pays", lambda features: False)
    monkeypatch.setattr(kernel.CoefficientSmoothed, "at", watched)
    assert certify(problem, make_solver("kernel_newton").solve(problem, Limits(1e-6)), 1e-6).converged
    assert {age for _, _, age in seen} == set(range(kernel.CoefficientSmoothed.fresh))
    for point, K, _ in seen:
        size = np.abs(K).max() * (np.abs(point.theta).sum(axis=0).max() + np.abs(point.residual).sum(axis=0).max())
        np.testing.assert_allclose(point.F, K @ point.theta, atol=1e-13 * size)
        np.testing.assert_allclose(point.pull, K @ point.residual, atol=1e-13 * size)


def test_too_many_free_directions_for_a_matrix_are_no_obstacle(monkeypatch):
    problem = problem_of(16.0, "llw", n=100, gamma=1.0)
    exact = make_solver("kernel_newton").solve(problem, Limits(1e-6))
    monkeypatch.setattr(kernel, "_MOST_FREE", 10)
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
