"""Operator splitting with a kernel: beside the block method, Newton and plain linear algebra, for every kind of dual variables."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from advcli.certificate import certify
from advcli.errors import DataError
from advcli.features import make_features
from advcli.losses import make_loss
from advcli.problem import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.auto import choose
from advcli.solvers.kernel_newton import MAX_FACTORED


def problem_of(C, name="llw", n=90, gamma=0.3, weights=False, features="rbf"):
    """Classes that overlap and rows that occur twice, so that K is singular; labels grow along the first column."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    y = np.clip(np.floor(X[:, 0] + 0.5 * random.normal(size=n) + 1.5), 0, 2).astype(np.intp)
    X[n // 2 :] = X[: n - n // 2]
    sample, cost = (random.integers(0, 3, size=n).astype(float), random.uniform(0.5, 2.0, size=n)) if weights else (None, None)
    total = n if sample is None else sample.sum()
    return Problem(make_features(features, X, 3, gamma=gamma), make_loss(name, 3), y, 1.0 / (C * total), sample, cost)


def solved(problem, tol=1e-4, solver="kernel_splitting", **limits):
    solution = make_solver(solver).solve(problem, Limits(tol, **limits))
    return solution, certify(problem, solution, tol)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["llw", "ww", "zero_one", "cs", "absolute", "squared", "abstain"])
def test_splitting_and_the_block_method_reach_the_same_optimum(name, weights):
    problem = problem_of(4.0, name, weights=weights)
    certificates = [solved(problem, solver=solver)[1] for solver in ("kernel_splitting", "kernel_dual")]
    assert all(certificate.converged for certificate in certificates)
    assert certificates[0].primal == pytest.approx(certificates[1].primal, rel=2e-4)


@pytest.mark.parametrize("gamma", [0.01, 0.3, 30.0])
@pytest.mark.parametrize("C", [0.1, 2.0**6, 2.0**12])
def test_llw_is_solved_at_every_C_and_width(gamma, C):
    problem = problem_of(C, gamma=gamma)
    certificate, other = solved(problem, 1e-3)[1], solved(problem, 1e-6, "kernel_newton")[1]
    assert certificate.converged
    assert other.converged
    assert 0.0 <= certificate.primal / other.primal - 1.0 + 1e-6 <= 1.1e-3


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["zero_one", "absolute", "cs"])
def test_free_thresholds_reach_the_optimum_of_newton(name, weights):
    problem = problem_of(8.0, name, weights=weights, features="rbf_threshold")
    certificates = [solved(problem, solver=solver, max_passes=20_000)[1] for solver in ("kernel_splitting", "kernel_newton")]
    assert all(certificate.converged for certificate in certificates)
    assert certificates[0].primal == pytest.approx(certificates[1].primal, rel=2e-4)


def test_thresholds_over_the_linear_kernel_are_linear_thresholds():
    given = problem_of(2.0, "absolute")
    X = given.features.X
    kernel = Problem(make_features("precomputed_threshold", X @ X.T, 3), given.loss, given.y, given.lam)
    linear = Problem(make_features("threshold", X, 3), given.loss, given.y, given.lam)
    solution, certificate = solved(kernel, max_passes=20_000)
    assert certificate.converged
    assert certificate.primal == pytest.approx(solved(linear, 1e-7, "newton")[1].primal, rel=2e-4)
    explicit = np.concatenate([X.T @ solution.theta[: len(X)], solution.theta[len(X) :]])
    assert linear.primal(explicit) == pytest.approx(certificate.primal, rel=1e-9)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", ["rbf", "rbf_threshold"])
def test_the_proximal_step_is_the_minimum_of_its_quadratic_program(name, k):
    random = np.random.default_rng(1)
    n, sigma = 12, 0.3
    X = random.normal(size=(n, 2))
    features = make_features(name, X, k, gamma=0.5)
    G = random.normal(size=(n, k))
    G -= G.mean(axis=1, keepdims=True)
    labels = np.arange(1.0, k + 1.0)
    Q = np.kron(rbf_kernel(X, gamma=0.5), np.outer(labels, labels) if name == "rbf_threshold" else np.eye(k))
    # rows of X sum to zero; under free thresholds, columns do too
    rows = np.kron(np.eye(n), np.ones(k))
    A = np.vstack([rows, np.kron(np.ones(n), np.eye(k))[:-1]]) if name == "rbf_threshold" else rows
    system = np.block([[Q + sigma * np.eye(n * k), A.T], [A, np.zeros((len(A), len(A)))]])
    expected = np.linalg.solve(system, np.concatenate([sigma * G.ravel(), np.zeros(len(A))]))[: n * k].reshape(n, k)
    found, theta = features.proximal(G, sigma)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    F = features.scores(theta)
    scores = sigma * (found - G)
    np.testing.assert_allclose(F - F.mean(axis=1, keepdims=True), scores - scores.mean(axis=1, keepdims=True), atol=1e-10)


def test_neighbouring_values_of_C_share_a_factor():
    features = problem_of(1.0).features
    features.proximal(np.zeros((90, 3)), 0.5)
    factor = features.store.shifted
    features.proximal(np.ones((90, 3)), 0.5)
    assert features.store.shifted is factor
    features.proximal(np.ones((90, 3)), 0.25)
    assert features.store.shifted is not factor


def test_a_matrix_that_is_no_kernel_is_refused():
    random = np.random.default_rng(0)
    K = random.normal(size=(600, 600))  # too many rows for a look at all eigenvalues
    K = 0.05 * (K + K.T)
    K[np.diag_indices(600)] = 1.0
    y = np.arange(600, dtype=np.intp) % 3
    problem = Problem(make_features("precomputed", K, 3), make_loss("llw", 3), y, 1e-4)
    with pytest.raises(DataError, match="not positive semi-definite"):
        make_solver("kernel_splitting").solve(problem, Limits(1e-3))


def test_a_limit_gives_an_honest_status_and_a_start_is_never_made_worse():
    problem = problem_of(2.0**10, gamma=1.0)
    short, certificate = solved(problem, 1e-6, max_passes=20)
    assert short.passes <= 20
    assert certificate.status == "max_passes"
    assert certificate.dual < certificate.primal
    good, better = solved(problem, 1e-3)
    again = make_solver("kernel_splitting").solve(problem, Limits(1e-3), good)
    assert again.passes <= 2
    tried = certify(problem, make_solver("kernel_splitting").solve(problem, Limits(1e-9, max_passes=30), good), 1e-9)
    assert tried.primal <= better.primal * (1 + 1e-9)
    assert tried.dual >= better.dual * (1 - 1e-9)


def test_auto_goes_from_the_block_method_to_splitting_under_llw_and_for_thresholds_of_many_rows():
    problem = problem_of(2.0**8)
    assert [solver.name for solver in choose(problem)[0]] == ["kernel_dual", "kernel_splitting", "kernel_newton"]
    solution, certificate = solved(problem, 1e-3, "auto")
    assert certificate.converged
    assert solution.solver == "kernel_dual+kernel_splitting"
    assert "kernel_dual" in solution.memory["choice"]
    many = np.zeros((MAX_FACTORED + 1, 1))
    thresholds = Problem(make_features("rbf_threshold", many, 3), make_loss("absolute", 3), np.zeros(len(many), dtype=np.intp), 0.1)
    assert [solver.name for solver in choose(thresholds)[0]] == ["kernel_splitting"]
    small = Problem(make_features("rbf", problem.features.X, 3, memory_mb=0.05), problem.loss, problem.y, 0.1)
    assert "memory_mb" in make_solver("kernel_splitting").lacks(small)
    assert [solver.name for solver in choose(small)[0]] == ["kernel_dual"]
    ww = Problem(make_features("rbf_threshold", problem.features.X, 3), make_loss("ww", 3), problem.y, 0.1)
    assert "distributions" in make_solver("kernel_splitting").lacks(ww)


def test_the_factor_counts_against_the_memory_limit():
    """K of 400 rows takes 1.2 MB: 2 MB hold it and what the block method gathers, but no factor beside it; auto leaves splitting out."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(400, 3)), random.integers(3, size=400)

    def problem(memory_mb, features="rbf"):
        return Problem(make_features(features, X, 3, gamma=0.3, memory_mb=memory_mb), make_loss("llw", 3), y, 1e-2)

    small, large = problem(2.0), problem(3.0)
    assert small.features.whole
    assert "twice in features.memory_mb" in make_solver("kernel_splitting").lacks(small)
    assert make_solver("kernel_splitting").lacks(large) is None
    assert "kernel_splitting" in [solver.name for solver in choose(large)[0]]
    assert "kernel_splitting" not in [solver.name for solver in choose(small)[0]]
