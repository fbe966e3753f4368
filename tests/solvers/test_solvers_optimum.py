"""Every solver with every loss and feature map that it takes: the optimum of an independent quadratic program, certified."""

import numpy as np
import pytest
import scipy.sparse as sp
from support import random_problems as problems

from advcli.problems.certificate import certify
from advcli.solvers import Limits, make_solver

COMBINATIONS = problems.combinations()


def tolerance(solver):
    return max(1e-7, problems.precision(solver))


def solve(problem, solver, tol, max_passes=200_000):
    limits = Limits(tol, max_passes=max_passes, max_seconds=600)  # passes are the limit; seconds end a hang
    return make_solver(solver).solve(problem, limits)


def check(problem, solution, primal, dual, tol):
    """The certificate holds, brackets the independent optimum, and the fit is as close to it as its status says."""
    certificate = certify(problem, solution, tol)
    size = max(abs(primal), 1e-9)
    room = 1e-7 * size + 1e-10  # the accuracy of the quadratic program
    assert certificate.primal >= dual - room
    assert certificate.dual <= primal + room
    assert problems.outside(problem, solution.R) <= 1e-9
    assert solution.theta.shape == problem.features.shape
    assert certificate.converged == (certificate.relative_gap <= tol)
    if certificate.converged:
        allowed = tol * max(size, certificate.primal) + room  # the gap is relative to the primal value found
        assert abs(certificate.primal - primal) <= allowed
        assert abs(certificate.dual - primal) <= allowed
    return certificate


@pytest.mark.parametrize(("name", "features", "solver", "kind"), problems.combinations(problems.KINDS_OF_DATA))
def test_optimum(name, features, solver, kind):
    tol = tolerance(solver)
    problem = problems.make_problem(problems.make_data(kind), name, features=features)
    # rows 1000 times as long are C a million times as large: the block method may say that it did not get there
    crawls = kind == "large" and problems.crawls(name, features, solver)
    solution = solve(problem, solver, tol, 300 if crawls else 200_000)
    certificate = check(problem, solution, *problems.optimum(kind, name, features=features), max(tol, 1e-6))
    assert certificate.converged or crawls, certificate
    assert certificate.converged or certificate.status in ("max_passes", "stalled")


@pytest.mark.parametrize(("name", "features", "solver", "C"), problems.combinations([2.0**-6, 32.0], all_losses=True))
def test_optimum_over_regularisation(name, features, solver, C):
    if problems.precision(solver) > 1e-6:
        C = 2.0 if C > 1 else 2.0**-3  # where these solvers arrive at once
    for which in range(len(problems.options(name))):
        problem = problems.make_problem(problems.make_data("noisy"), name, which, features, C)
        if make_solver(solver).lacks(problem) is not None:
            continue
        tol = tolerance(solver)
        expected = problems.optimum("noisy", name, which, features, C)
        assert check(problem, solve(problem, solver, tol), *expected, max(tol, 1e-6)).converged


@pytest.mark.parametrize(("name", "features", "solver"), COMBINATIONS)
def test_optimum_with_weights(name, features, solver):
    """Sample weights (whole, fractional and zero) and cost weights, together."""
    tol = tolerance(solver)
    data = problems.make_data("noisy")
    sample, cost = problems.weights_of(data)
    problem = problems.make_problem(data, name, features=features, sample_weight=sample, cost_weight=cost)
    expected = problems.optimum("noisy", name, features=features, weights=True)
    assert check(problem, solve(problem, solver, tol), *expected, max(tol, 1e-6)).converged


@pytest.mark.parametrize(("name", "features", "solver", "shape"), problems.combinations([(5, 1, 2), (3, 6, 3), (10, 2, 9)]))
def test_optimum_at_other_shapes(name, features, solver, shape):
    """Two classes, one feature, fewer rows than features, more classes than a vector is wide."""
    n, d, k = shape
    tol = tolerance(solver)
    problem = problems.make_problem(problems.make_data("noisy", 1, n, d, k), name, features=features)
    expected = problems.optimum("noisy", name, features=features, n=n, d=d, k=k, seed=1)
    assert check(problem, solve(problem, solver, tol), *expected, max(tol, 1e-6)).converged


def sparse_data():
    data = problems.make_data("noisy")
    X = data.X * (np.random.default_rng(0).random(data.X.shape) < 0.6)
    X[4] = 0.0
    return data, X


def takes_sparse(name, features, solver):
    data, X = sparse_data()
    if problems.is_kernel(features):
        return False
    return make_solver(solver).lacks(problems.make_problem(data, name, features=features, X=sp.csr_array(X))) is None


@pytest.mark.parametrize(("name", "features", "solver"), [each for each in COMBINATIONS if takes_sparse(*each)])
def test_sparse_rows_are_the_same_problem(name, features, solver):
    data, X = sparse_data()
    dense = problems.make_problem(data, name, features=features, X=X)
    sparse = problems.make_problem(data, name, features=features, X=sp.csr_array(X))
    tol = tolerance(solver)
    one, other = solve(dense, solver, tol), solve(sparse, solver, tol)
    for problem in (dense, sparse):  # each certifies the other's answer
        for solution in (one, other):
            certificate = certify(problem, solution, 2 * tol)
            assert certificate.converged, certificate
    assert dense.primal(one.theta) == pytest.approx(sparse.primal(other.theta), rel=2 * tol)


@pytest.mark.parametrize(("name", "features", "solver"), COMBINATIONS)
def test_one_class_is_solved_at_once(name, features, solver):
    """k = 1 is no game: the objective is a constant plus the penalty, whose minimum is at 0."""
    data = problems.make_data("noisy", n=4, d=2, k=1)
    problem = problems.make_problem(data, name, features=features)
    solution = solve(problem, solver, 1e-6, 100)
    assert np.abs(solution.theta).max(initial=0.0) <= 1e-9
    assert certify(problem, solution, 1e-6).gap == pytest.approx(0.0, abs=1e-12)


def test_a_combination_exists_for_every_solver_and_feature_map():
    # problems with moments in a box and smooth surrogates have their own tests; sparse rows alone are in test_solvers_lists.py
    assert {solver for _, _, solver in COMBINATIONS} == set(problems.package_solvers()) - {"box", "dual_lists", "smooth_newton"}
    assert {features for _, features, _ in COMBINATIONS} == set(problems.feature_maps())
    for name in problems.canonical_names():
        assert any(name == each and features == problems.LINEAR for each, features, _ in COMBINATIONS)
