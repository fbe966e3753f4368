"""Newton steps on the faces that block ascent has found: they never lose, they end at the optimum, and pauses leave no trace."""

from itertools import groupby
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from support import random_problems
from support.registered import examples

from advcli.core.compiled import aligned_zeros, kernels
from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.coordinate import face_steps
from advcli.solvers.coordinate.face_steps import FaceSteps


@pytest.fixture
def at_once(monkeypatch):
    """Steps from the first round on, after every round."""
    monkeypatch.setattr(face_steps, "_CALLS", 0.0)
    monkeypatch.setattr(face_steps, "_FIRST", 1.0)
    monkeypatch.setattr(FaceSteps, "price", lambda self, rows: 0.0)


def digits(lam, rows=600):
    X, y = load_digits(return_X_y=True)
    X, y = np.ascontiguousarray(X[:rows] / 16.0), y[:rows].astype(np.intp)
    return Problem(LinearFeatures(X, 10), make_loss("zero_one", 10), y, lam)


def weighted(name, sparse, weights, seed=0):
    """Return a problem of 60 rows with one row of zeros and, with weights, rows of weight 0."""
    random = np.random.default_rng([seed, 7])
    data = random_problems.make_data("noisy", seed, n=60, d=6, k=4)
    X = data.X * (random.random(data.X.shape) < 0.7)
    X[3] = 0.0
    sample = random.integers(0, 3, size=60).astype(float) if weights else None
    cost = random.uniform(0.3, 3.0, size=60) if weights else None
    return Problem(
        LinearFeatures(sp.csr_array(X) if sparse else X, 4), make_loss(name, 4, **examples(name, 4)[0]), data.y, 1e-3, sample, cost
    )


def stepped(problem, R):
    """Return r and theta after one step from r, and whether it raised D."""
    n, k = R.shape
    width = kernels.ascent_dense.width(k)
    padded, theta = aligned_zeros((n, width)), aligned_zeros((problem.features.shape[0], width))
    padded[:, :k], theta[:, :k] = R, problem.parameters(R)
    features = problem.features
    steps = FaceSteps(problem, features.squares, Limits(1e-3))
    faces = steps.faces(padded, theta, steps.off_corners(padded)[0])
    cuts = steps.step(padded, theta, faces)
    assert not padded[:, k:].any()
    assert not theta[:, k:].any()
    return padded[:, :k].copy(), theta[:, :k].copy(), cuts <= len(face_steps._STEPS)


@pytest.mark.parametrize("name", random_problems.canonical_names())
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_a_step_raises_the_dual_value_within_the_set(name, sparse, weights):
    problem = weighted(name, sparse, weights)
    rose = 0
    for passes in (3.0, 5.0, 10.0, 30.0):
        R = make_solver("dual").solve(problem, Limits(1e-12, max_passes=passes)).R
        before = problem.dual(R)
        after, theta, better = stepped(problem, R)
        assert (problem.loss.infeasibility(after, problem.y) <= 1e-12).all()
        assert np.abs(problem.parameters(after) - theta).max() <= 1e-10 * (1.0 + np.abs(theta).max())
        if better:
            assert problem.dual(after) >= before - 1e-12 * abs(before)
        else:
            assert np.array_equal(after, R)
        rose += better
    assert rose


@pytest.mark.parametrize("sparse", [False, True])
def test_on_the_faces_of_the_optimum_one_step_is_the_optimum(monkeypatch, sparse):
    compiled = kernels.ascent_faces
    to_the_end = SimpleNamespace(off_corners=compiled.off_corners, ascend=lambda *given: compiled.ascend(*given, rounds=60, tol=1e-20))
    monkeypatch.setattr(kernels, "ascent_faces", to_the_end)
    problem = digits(1e-3)
    if sparse:
        problem = Problem(LinearFeatures(sp.csr_array(problem.features.X), 10), problem.loss, problem.y, 1e-3)
    near = make_solver("dual").solve(problem, Limits(1e-3))
    for _ in range(4):  # the faces of rows that the last bits decide
        near.R, near.theta, _ = stepped(problem, near.R)
        near = make_solver("dual").solve(problem, Limits(1e-14, max_passes=5.0), near)
    R, theta, _ = stepped(problem, near.R)
    assert problem.primal(theta) - problem.dual(R) <= 1e-9 * problem.primal(theta)
    newton = make_solver("newton").solve(problem, Limits(1e-8))
    assert problem.primal(theta) == pytest.approx(problem.primal(newton.theta), rel=2e-8)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", random_problems.canonical_names())
def test_ascent_with_steps_meets_newton(name):
    problem = weighted(name, False, True, seed=1)
    found = make_solver("dual").solve(problem, Limits(1e-6))
    assert found.status == "converged"
    primal, dual = problem.primal(found.theta), problem.dual(found.R)
    assert -1e-12 <= primal - dual <= 1e-6 * abs(primal) * (1.0 + 1e-9)
    other = make_solver("newton").solve(problem, Limits(1e-7))
    assert primal == pytest.approx(problem.primal(other.theta), rel=2e-6)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("most", [4.0, 7.0, 15.0, 40.0])
def test_steps_keep_the_limit_of_passes(most):
    problem = digits(1e-5)
    found = make_solver("dual").solve(problem, Limits(1e-12, max_passes=most))
    assert found.status == "max_passes"
    assert most - 3.0 < found.passes <= most


def test_steps_save_passes_at_small_lambda(monkeypatch):
    problem = digits(1e-5)
    monkeypatch.setattr(face_steps, "_CALLS", 0.0)
    with_steps = make_solver("dual").solve(problem, Limits(1e-3))
    monkeypatch.setattr(face_steps, "_FIRST", np.inf)
    without = make_solver("dual").solve(problem, Limits(1e-3))
    assert with_steps.status == without.status == "converged"
    assert with_steps.passes < 0.7 * without.passes


@pytest.mark.parametrize("pause", [0.0, 3.0, 20.0])
def test_a_pause_without_a_step_leaves_no_trace(monkeypatch, pause):
    problem = digits(1e-4)
    monkeypatch.setattr(face_steps, "_FIRST", np.inf)
    straight = make_solver("dual").solve(problem, Limits(1e-3), seed=5)
    monkeypatch.setattr(FaceSteps, "first", lambda self: pause)
    monkeypatch.setattr(FaceSteps, "take", lambda self, R, theta, passes, gap: (passes, 0.0))
    paused = make_solver("dual").solve(problem, Limits(1e-3), seed=5)
    assert straight.passes == paused.passes
    assert np.array_equal(straight.theta, paused.theta)
    assert np.array_equal(straight.R, paused.R)


def test_no_step_where_it_costs_more_than_the_passes_left(monkeypatch):
    monkeypatch.setattr(FaceSteps, "step", None)
    for problem in (digits(1e-1), weighted("zero_one", False, True)):  # few passes; too few numbers
        assert make_solver("dual").solve(problem, Limits(1e-3)).status == "converged"


def test_rows_that_move_in_the_same_classes_stand_side_by_side():
    """Order alone decides how many rows share a group of `_ext/ascent/adv_factors.pxd`: here three in the mean, at least two."""
    problem = digits(1e-3)
    solution = make_solver("dual").solve(problem, Limits(tol=1e-6))
    steps = FaceSteps(problem, problem.features.squares, Limits())
    moved, _ = steps.off_corners(solution.R)
    faces = steps.faces(solution.R, solution.theta, moved)
    alone = np.flatnonzero(np.bincount(faces.owner) == 1)
    classes = [tuple(np.flatnonzero(faces.B[faces.owner == row][0])) for row in alone]
    assert len(list(groupby(classes))) <= len(classes) / 2


@pytest.mark.parametrize("k", [62, 63, 1100])
def test_faces_of_many_classes_are_those_of_their_rows(k):
    """Rows are ordered by a sum of as many whole numbers as there are classes, which must not overflow into a warning or another face."""
    random = np.random.default_rng(k)
    X, y = random.normal(size=(40, 3)), random.integers(0, k, size=40)
    problem = Problem(LinearFeatures(X, k), make_loss("zero_one", k), y, 1e-2)
    R = np.zeros((40, k))
    R[np.arange(40), y] = -0.5
    R[np.arange(40), (y + random.integers(1, 3, size=40)) % k] = 0.5
    steps = FaceSteps(problem, problem.features.squares, Limits())
    rows, _ = steps.off_corners(R)
    with np.errstate(all="raise"):
        faces = steps.faces(R, problem.parameters(R), rows)
    assert rows.tolist() == list(range(40))
    assert len(set(faces.rows)) == len(faces.rows)
    assert (faces.before == R[faces.rows]).all()
