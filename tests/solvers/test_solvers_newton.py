"""Newton's steps for a loss of separate boxes (llw): the maximiser of its smoothed row, and the direction from one block for each class."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from support import random_problems as problems

from advcli.features.linear import LinearFeatures, NewtonSystem, _equal_faces
from advcli.losses import make_loss
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.newton.linear import ProximalStep, Separate, _factor, falls_into_blocks, search_by_steps


def smoothed_problem(n, d, k, sparse=False):
    """A proximal step with a centre inside its boxes, and sum-zero parameters."""
    data = problems.make_data("noisy", n=n, d=d, k=k)
    sample, cost = problems.weights_of(data)
    X = sp.csr_array(data.X) if sparse else data.X
    problem = problems.make_problem(data, "llw", C=3.0, sample_weight=sample, cost_weight=cost, X=X)
    random = np.random.default_rng(0)
    A = random.random((n, k))
    A[np.arange(n), data.y] = 0.0
    smoothed = Separate(problem)
    smoothed.center, smoothed.c = A - A.mean(axis=1, keepdims=True), 2.0
    theta = random.normal(size=(d, k))
    return problem, smoothed, A, theta - theta.mean(axis=1, keepdims=True)


def test_the_smoothed_row_is_maximised():
    """c(a) + f.r(a) - c/2 |a - a_t|^2 at the answer against random points of the box, and every one of them nearer to the answer."""
    problem, smoothed, centre, theta = smoothed_problem(30, 3, 4)
    F = problem.features.scores(theta)
    R, _ = smoothed.block_step(F)
    rows = np.arange(30)
    found = R - R[rows, problem.y][:, None]
    assert found.min() >= -1e-15
    assert found.max() <= 1.0 + 1e-15

    def value(A):
        fitted = np.einsum("ij,ij->i", problem.scaled(F), A - A.mean(axis=1, keepdims=True))
        return A.sum(axis=1) + fitted - smoothed.c / 2 * ((A - centre) ** 2).sum(axis=1)

    random = np.random.default_rng(1)
    for share in (1.0, 0.1, 1e-3):
        for _ in range(50):
            A = found + share * (random.random(found.shape) - found)
            A[rows, problem.y] = 0.0
            assert (value(A) <= value(found) + 1e-12).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("n", "d", "k"), [(12, 40, 3), (200, 3, 5), (200, 30, 2)])
def test_the_direction_solves_the_whole_system(n, d, k, sparse):
    """Few rows take the Woodbury form, many the blocks; both are the Newton system of size d k, written out."""
    problem, smoothed, _, theta = smoothed_problem(n, d, k, sparse)
    F = problem.features.scores(theta)
    point = smoothed.at(theta, F, *smoothed.block_step(F))
    inside = point.R - point.R[np.arange(n), problem.y][:, None]
    H = np.eye(d * k)
    X = problem.features.X.toarray() if sparse else problem.features.X
    for i in range(n):
        for j in range(k):
            if j != problem.y[i] and 0.0 < inside[i, j] < 1.0:
                z = np.outer(X[i], np.eye(k)[j] - 1.0 / k).ravel()
                H += smoothed.C / smoothed.c * problem.sample_weight[i] / problem.cost_weight[i] * np.outer(z, z)
    expected = np.linalg.solve(H, -point.residual.ravel()).reshape(d, k)
    found = smoothed.step(point)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    assert np.abs(found.sum(axis=1)).max() <= 1e-12 * np.abs(found).max()


def test_compiled_faces_are_those_of_the_formula():
    """a_j = (1 + f_j - mean f)/c + t_j - t_y, held in [0, 1], a_y = 0, r = a - mean a."""
    problem, smoothed, _, theta = smoothed_problem(40, 3, 6)
    F = problem.scaled(problem.features.scores(theta))
    R, inside = smoothed.block_step(problem.features.scores(theta))
    rows = np.arange(40)
    expected = (1.0 + F - F.mean(axis=1, keepdims=True)) / smoothed.c + smoothed.center - smoothed.center[rows, problem.y][:, None]
    expected[rows, problem.y] = 0.0
    held = np.clip(expected, 0.0, 1.0)
    np.testing.assert_allclose(inside, expected, atol=1e-13)
    np.testing.assert_allclose(R, held - held.mean(axis=1, keepdims=True), atol=1e-14)
    assert (expected < 0.0).any()
    assert (expected > 1.0).any()


@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_that_follow_a_changing_face_are_those_summed_anew(sparse):
    """Rows enter and leave, few and many at a time, and weights and c differ: every direction is that of a solver without a past."""
    problem, smoothed, _, theta = smoothed_problem(200, 30, 3, sparse)
    random = np.random.default_rng(3)
    kept = 0
    for size in (1.0, 0.01, 0.02, 0.5, 0.01, 0.0, 0.03):
        theta = theta + size * random.normal(size=theta.shape)
        theta -= theta.mean(axis=1, keepdims=True)
        smoothed.c = 2.0 + size
        F = problem.features.scores(theta)
        point = smoothed.at(theta, F, *smoothed.block_step(F))
        fresh = Separate(problem)
        fresh.center, fresh.c = smoothed.center, smoothed.c
        np.testing.assert_allclose(smoothed.step(point), fresh.step(point), rtol=1e-9, atol=1e-12)
        kept += int((smoothed.updates > 1).sum())
    assert kept > 0


def test_a_start_that_does_not_sum_to_zero_is_centred():
    data = problems.make_data("noisy")
    problem = problems.make_problem(data, "llw", C=8.0)
    assert falls_into_blocks(problem)
    start = make_solver("dual").solve(problems.make_problem(data, "llw", C=1.0), Limits(1e-3))
    start.theta += 1.0
    solution = make_solver("newton").solve(problem, Limits(1e-8), start)
    assert certify(problem, solution, 1e-8).converged
    assert np.abs(solution.theta.sum(axis=1)).max() <= 1e-9


def test_a_matrix_whose_ridge_is_lost_to_rounding_is_factorised_all_the_same():
    """Long rows at large C: I + s z z' is s z z' in floating point; the direction must still be one of descent, and exact along z."""
    random = np.random.default_rng(0)
    Z = 1e6 * random.normal(size=(2, 8))
    H = np.eye(8) + 1e8 * Z.T @ Z
    with pytest.raises(LinAlgError):
        cho_factor(H.copy(), lower=True)
    right = random.normal(size=8)
    found = cho_solve((_factor(H.copy()), True), right)
    assert np.isfinite(found).all()
    assert found @ right > 0
    np.testing.assert_allclose(1e8 * Z @ (Z.T @ (Z @ found)), Z @ right, rtol=0.2)


def summing_to_zero(random, m, k):
    B = random.normal(size=(m, k))
    return B - B.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["zero_one", "cs", "absolute", "abstain"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(("n", "d", "k"), [(200, 3, 4), (200, 4, 2), (6, 9, 3)])
def test_the_direction_solves_the_newton_system(name, weights, n, d, k):
    """Systems with a class less and, for few rows, the Woodbury form; parameters whose rows do not sum to zero."""
    data = problems.make_data("noisy", n=n, d=d, k=k)
    sample, cost = problems.weights_of(data) if weights else (None, None)
    problem = problems.make_problem(data, name, C=3.0, sample_weight=sample, cost_weight=cost)
    smoothed = ProximalStep(problem)
    smoothed.c = 20.0
    theta = 0.1 * np.random.default_rng(0).normal(size=(d, k))
    F = problem.features.scores(theta)
    point = smoothed.at(theta, F, *smoothed.block_step(F))
    B, owner = smoothed.bases(point)
    scale = smoothed.scale(owner)
    assert (len(owner) > d * (k - 1)) == (n > 10)
    Z = (data.X[owner][:, :, None] * B[:, None, :]).reshape(len(owner), -1)
    expected = -np.linalg.solve(np.eye(d * k) + Z.T @ (scale[:, None] * Z), point.residual.ravel())
    np.testing.assert_allclose(smoothed.step(point).ravel(), expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["zero_one", "absolute", "general"])
@pytest.mark.parametrize("weights", [False, True])
def test_a_compiled_line_search_goes_the_way_of_one_by_steps(name, weights):
    """From the same point to the same point, by as many block steps; P, D and gaps are the problem's own."""
    data = problems.make_data("noisy", n=80, d=4, k=4)
    sample, cost = problems.weights_of(data) if weights else (None, None)
    problem = problems.make_problem(data, name, C=50.0, sample_weight=sample, cost_weight=cost)
    most = 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        smoothed = ProximalStep(problem)
        smoothed.c = 10.0 ** random.uniform(-2, 1)
        theta = random.normal(size=(4, 4))
        F = problem.features.scores(theta)
        point = smoothed.at(theta, F, *smoothed.block_step(F))
        primal, dual, gaps, R = smoothed.values(point)
        assert primal == pytest.approx(problem.primal(theta) / problem.lam, rel=1e-12)
        assert dual == pytest.approx(problem.dual(R) / problem.lam, rel=1e-9)
        assert primal - dual == pytest.approx(gaps + 0.5 * float(np.vdot(point.residual, point.residual)), rel=1e-9)
        D, dF, slope0 = smoothed.direction(point)
        D, dF, slope0 = 3.0 * D, 3.0 * dF, 3.0 * slope0  # too far
        before = smoothed.projections
        t, scores, R, _ = smoothed.search(point, D, dF, slope0, 40)
        np.testing.assert_allclose(scores, point.F + t * dF, rtol=1e-14, atol=1e-13 * np.abs(dF).max())
        between = smoothed.projections
        expected, _, its, _ = search_by_steps(smoothed, point, D, dF, slope0, 40)
        assert between - before == smoothed.projections - between
        assert t == pytest.approx(expected, rel=1e-9)
        np.testing.assert_allclose(R, its, rtol=0, atol=1e-9)
        most = max(most, between - before)
    assert most > 1


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("d", [3, 8])
def test_a_direction_that_follows_another_is_that_of_a_hessian_summed_anew(d, sparse):
    """A chain of directions, few of which change at once, some without a system of their own; both ways of summing."""
    random = np.random.default_rng(0)
    n, k = 40, 4
    X = random.normal(size=(n, d))
    features = LinearFeatures(sp.csr_array(X) if sparse else X, k)
    sample = random.uniform(0.5, 2.0, size=n)
    owner = np.sort(random.integers(n, size=70))
    B = summing_to_zero(random, 70, k)
    system, updated = NewtonSystem(features, sample, 1), 0
    for step in range(40):
        chosen = random.random(len(owner)) > 0.05
        changed = random.random(len(owner)) < (0.9 if step % 13 == 12 else 0.03)
        B[changed] = summing_to_zero(random, int(changed.sum()), k)
        if step % 7 == 3:
            continue
        factor = 10.0 ** random.uniform(-2, 2)
        gradient = random.normal(size=(d, k))
        found = system.direction(B[chosen], owner[chosen], factor, gradient)
        Z = (X[owner[chosen]][:, :, None] * B[chosen][:, None, :]).reshape(int(chosen.sum()), -1)
        moments = Z.T @ (sample[owner[chosen]][:, None] * Z)
        whole = np.eye(d * k) + factor * moments
        expected = np.triu(moments.reshape(d, k, d, k)[:, :-1, :, :-1].reshape(d * (k - 1), -1))
        np.testing.assert_allclose(np.triu(system.moments), expected, rtol=0, atol=1e-11 * np.abs(expected).max())
        expected = -np.linalg.solve(whole, gradient.ravel()).reshape(d, k)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        found = np.tril(features.directions(B[chosen], owner[chosen]).hessian(sample, factor))
        np.testing.assert_allclose(found, np.tril(whole), rtol=0, atol=1e-11 * np.abs(whole).max())
        updated += system.updates > 0
    assert 10 <= updated <= 33


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(("n", "d"), [(5000, 2), (5000, 1), (300, 1)])
def test_moments_of_equal_faces_are_those_of_all_rows(n, d, sparse, weights):
    """Many examples on few faces, and as many on faces of their own, which are summed by pairs of classes."""
    random, k = np.random.default_rng(1), 4
    X = random.normal(size=(n, d))
    sample = random.uniform(0.5, 2.0, size=n) if weights else np.ones(n)
    features = LinearFeatures(sp.csr_array(X) if sparse else X, k)
    owner = np.sort(random.integers(n, size=2 * n))
    few, face = summing_to_zero(random, 30, k), random.integers(30, size=n)
    for B, faces in ((few[face[owner]], 200), (summing_to_zero(random, 2 * n, k), n)):
        first = np.diff(owner, prepend=-1) > 0
        chosen, which = _equal_faces(B, first)
        assert len(chosen) == len(np.unique(which)) <= faces
        np.testing.assert_array_equal(which[chosen], np.arange(len(chosen)))
        found = features.directions(B, owner).hessian(sample)
        Z = (X[owner][:, :, None] * B[:, None, :]).reshape(2 * n, -1)
        whole = np.eye(d * k) + Z.T @ (sample[owner][:, None] * Z)
        np.testing.assert_allclose(np.tril(found), np.tril(whole), rtol=0, atol=1e-12 * np.abs(whole).max())


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["zero_one", "absolute"])
def test_early_hessians_are_those_of_a_sample_and_the_optimum_is_the_same(name, weights, monkeypatch):
    data = problems.make_data("noisy", n=9000, d=12, k=6)
    sample, cost = problems.weights_of(data) if weights else (None, None)
    problem = problems.make_problem(data, name, C=1.0, sample_weight=sample, cost_weight=cost)
    summed = []

    def direction(self, B, owner, *given, own=NewtonSystem.direction):
        summed.append(len(np.unique(owner)))
        return own(self, B, owner, *given)

    monkeypatch.setattr(NewtonSystem, "direction", direction)
    limits = Limits(tol=1e-7, max_passes=500)
    solution = make_solver("newton").solve(problem, limits)
    assert summed[0] <= 12 * 9000 // 60
    by_sample, summed[:] = list(summed), []
    monkeypatch.setattr("advcli.solvers.newton.linear.SAMPLED_ROWS", 10_000)
    whole = make_solver("newton").solve(problem, limits)
    assert sum(by_sample[:3]) < 0.25 * sum(summed[:3])
    for each in (solution, whole):
        assert certify(problem, each, 1e-7).converged
    assert certify(problem, solution, 1e-7).primal == pytest.approx(certify(problem, whole, 1e-7).primal, rel=2e-7)


def test_many_examples_of_one_class_leave_nothing_to_sum():
    problem = Problem(LinearFeatures(np.ones((9000, 2)), 1), make_loss("cs", 1), np.zeros(9000, dtype=np.intp), 1e-3)
    assert certify(problem, make_solver("newton").solve(problem, Limits(tol=1e-6, max_passes=50)), 1e-6).converged


def test_examples_without_weight_make_no_sample():
    data = problems.make_data("noisy", n=9000, d=12, k=6)
    sample = np.zeros(9000)
    sample[:50] = 1.0
    problem = problems.make_problem(data, "zero_one", C=1.0, sample_weight=sample)
    assert certify(problem, make_solver("newton").solve(problem, Limits(tol=1e-6, max_passes=500)), 1e-6).converged


@pytest.mark.parametrize(("failing", "status"), [(26, "converged"), (52, "stalled")])
def test_a_stalled_run_begins_once_more(failing, status, monkeypatch):
    """From the best point so far: after 26 steps that failed, and not again after 26 more."""
    problem = problems.make_problem(problems.make_data("noisy"), "zero_one", C=100.0)
    start = make_solver("newton").solve(problem, Limits(1e-1))
    asked, direction = [], ProximalStep.direction

    def fails(self, point):
        asked.append(point.theta)
        if len(asked) <= failing:
            raise LinAlgError("the Newton system is not positive definite")
        return direction(self, point)

    monkeypatch.setattr(ProximalStep, "direction", fails)
    solution = make_solver("newton").solve(problem, Limits(1e-8), start)
    assert solution.status == status
    assert len(asked) > 26
    if status == "stalled":
        assert len(asked) == 52
        assert problem.primal(solution.theta) <= problem.primal(start.theta)
        assert problem.dual(solution.R) >= problem.dual(start.R)
    else:
        assert certify(problem, solution, 1e-8).converged
