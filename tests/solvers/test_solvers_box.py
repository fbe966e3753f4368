"""Moments in a box: the optimum of independent solvers, what the bound guarantees, MRCpy's bound, and what is refused."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import StandardScaler
from support import random_problems as problems
from support import reference
from support.pairwise import pairwise
from support.waiting import HANG

from advcli import AdversarialClassifier, OrdinalAdversarialClassifier
from advcli.core.compiled import kernels
from advcli.core.errors import ConfigError, IncompatibleError
from advcli.features import make_features
from advcli.losses import make_loss
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem, multipliers
from advcli.solvers import Limits, make_solver
from advcli.solvers.newton.box import minimise_model

LOSSES = [(name, which) for name in problems.canonical_names() for which in range(len(problems.options(name)))]
FEATURES = ("linear", "threshold")


def box_problem(data, name, which=0, features="linear", width=0.5, lam=0.0, sample=None, cost=None, X=None):
    loss = make_loss(name, data.n_classes, **problems.options(name, data.n_classes)[which])
    bound = make_features(features, data.X if X is None else X, data.n_classes, moments="box", tolerance=width)
    return Problem(bound, loss, data.y, lam, sample, cost, bound.tolerance(data.y, sample))


def expected(data, problem, name, which, features):
    found = reference.solve_problem(
        name,
        data.X,
        data.y,
        problem.lam,
        data.n_classes,
        problem.sample_weight,
        problem.cost_weight,
        features,
        problem.tolerance,
        **problems.options(name, data.n_classes)[which],
    )
    return found["primal"]


def check(problem, optimum, tol=1e-7):
    solution = make_solver("box").solve(problem, Limits(tol, max_seconds=HANG))
    certificate = certify(problem, solution, 1e-6)
    assert certificate.converged, certificate
    assert problems.outside(problem, solution.R) <= 1e-9
    assert certificate.primal == pytest.approx(optimum, rel=1e-6, abs=1e-8)
    assert certificate.dual <= optimum + 1e-7
    return solution


@pytest.mark.parametrize(("loss", "features", "kind"), pairwise(product(LOSSES, FEATURES, ("separable", "conflicting", "large"))))
def test_optimum_of_an_independent_solver(loss, features, kind):
    data = problems.make_data(kind)
    problem = box_problem(data, *loss, features)
    check(problem, expected(data, problem, *loss, features))


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize(("name", "which"), LOSSES)
def test_optimum_with_weights_and_a_ridge(name, which, features):
    data = problems.make_data("noisy")
    sample, cost = problems.weights_of(data)
    problem = box_problem(data, name, which, features, 0.3, 0.05, sample, cost)
    if features == "threshold":  # the reference leaves thresholds without lam
        problem = box_problem(data, name, which, features, 0.3, 0.0, sample, cost)
    check(problem, expected(data, problem, name, which, features))


def test_sparse_rows_are_the_same_problem():
    data = problems.make_data("noisy", n=60, d=5, k=4)
    X = data.X * (np.random.default_rng(0).random(data.X.shape) < 0.5)
    for features in FEATURES:
        dense = box_problem(data, "zero_one", features=features, X=X)
        sparse = box_problem(data, "zero_one", features=features, X=sp.csr_array(X))
        np.testing.assert_allclose(dense.tolerance, sparse.tolerance, rtol=1e-12)
        one, other = (make_solver("box").solve(each, Limits(1e-7)) for each in (dense, sparse))
        assert dense.primal(one.theta) == pytest.approx(sparse.primal(other.theta), rel=1e-6)


def worst_case(X, y, k, L, tolerance, P=None):
    """The linear program over the adversary's q: the value of the game, or the worst expected loss of a given predictor P (n, l)."""
    n, d = X.shape
    moments = np.einsum("ia,bc->abic", X, np.eye(k)).reshape(d * k, n * k) / n
    sample = (X.T @ np.eye(k)[y] / n).ravel()
    box = tolerance.ravel()
    limits, bounds = [np.c_[moments, np.zeros((d * k, n))], np.c_[-moments, np.zeros((d * k, n))]], [sample + box, box - sample]
    if P is None:
        limits.append(np.hstack([np.kron(np.eye(n), -L), np.kron(np.eye(n), np.ones((len(L), 1)))]))
        bounds.append(np.zeros(n * len(L)))
        cost = np.r_[np.zeros(n * k), -np.ones(n) / n]
    else:
        cost = np.r_[-(P @ L).ravel() / n, np.zeros(n)]
    equal = np.c_[np.kron(np.eye(n), np.ones((1, k))), np.zeros((n, n))]
    range_of = [(0, None)] * (n * k) + [(None, None) if P is None else (0, 0)] * n
    answer = linprog(cost, np.vstack(limits), np.concatenate(bounds), equal, np.ones(n), range_of, method="highs")
    assert answer.status == 0
    return -answer.fun


@pytest.mark.parametrize("width", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("loss", ["zero_one", "absolute", "abstain"])
def test_game_value_is_the_linear_program_of_the_adversary(loss, width):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X[::2])
    y = y[::2]
    model = AdversarialClassifier(loss, tol=1e-6, features_options={"moments": "box", "tolerance": width}).fit(X, y)
    rows = np.c_[X, np.ones(len(X))]
    box = make_features("linear", rows, 3, moments="box", tolerance=width).tolerance(y, None)
    value = worst_case(rows, y, 3, model.loss_.matrix, box)
    assert model.certificate_.game_value == pytest.approx(value, rel=2e-6)
    # what the bound promises: no distribution in the box costs this predictor more
    assert worst_case(rows, y, 3, model.loss_.matrix, box, model.predictor_distribution(X)) <= model.certificate_.game_value + 1e-9


KINDS_OF_MATRIX = {
    "any": lambda draw, l, k: draw(l, k),
    "whole": lambda draw, l, k: np.round(2.0 * draw(l, k)),
    "rewards": lambda draw, l, k: -np.abs(draw(l, k)),
    "rewarded label": lambda draw, l, k: -np.eye(k),
    "value 0": lambda draw, l, k: (lambda A: A - A.T)(draw(k, k)),
}


@settings(max_examples=30, deadline=None)
@example("rewarded label", 3, 3, 1.0, 0.5, 0)
@example("whole", 4, 3, 1e-3, 2.0, 517)  # of value 0
@given(
    st.sampled_from(sorted(KINDS_OF_MATRIX)),
    st.integers(2, 4),
    st.integers(2, 5),
    st.sampled_from([1e-3, 1.0, 1e3]),
    st.sampled_from([0.1, 0.5, 2.0]),
    st.integers(0, 2**32 - 1),
)
def test_any_matrix_is_certified(kind, k, l, size, width, key):
    """Games of any sign against the linear program of the adversary: the scale of the proximal terms is no value of the game."""
    random = np.random.default_rng(key)
    L = size * KINDS_OF_MATRIX[kind](lambda *shape: random.normal(size=shape), l, k)
    X = np.c_[random.normal(size=(12, 2)), np.ones(12)]
    y = random.integers(0, k, 12)
    bound = make_features("linear", X, k, moments="box", tolerance=width)
    problem = Problem(bound, make_loss("general", k, matrix=L), y, 0.0, tolerance=bound.tolerance(y, None))
    certificate = certify(problem, make_solver("box").solve(problem, Limits(1e-6, max_seconds=HANG)), 1e-6)
    assert certificate.converged, certificate
    # HiGHS keeps constraints to 1e-7
    assert certificate.game_value == pytest.approx(worst_case(X, y, k, L, problem.tolerance), rel=2e-6, abs=1e-6 * size)


def test_a_game_of_value_zero_is_certified():
    """Rock, paper, scissors: no features help either player, and a gap beside values of 0 would never be small."""
    L = np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]])
    X, y = np.c_[np.random.default_rng(0).normal(size=(12, 2)), np.ones(12)], np.arange(12) % 3
    bound = make_features("linear", X, 3, moments="box", tolerance=50.0)
    problem = Problem(bound, make_loss("general", 3, matrix=L), y, 0.0, tolerance=bound.tolerance(y, None))
    solution = make_solver("box").solve(problem, Limits(1e-6, max_seconds=HANG))
    certificate = certify(problem, replace(solution, theta=solution.theta + 1e-15 * np.arange(9.0).reshape(solution.theta.shape)), 1e-6)
    assert certificate.converged
    assert 1e-14 < certificate.primal - certificate.dual <= 1e-12


def test_a_constant_cost_changes_no_unit():
    data = problems.make_data("noisy")
    bound = make_features("linear", data.X, 3)
    L = np.random.default_rng(0).normal(size=(4, 3))
    units = [Problem(bound, make_loss("general", 3, matrix=L + shift), data.y, 1.0).unit for shift in (-3.0, 0.0, 5.0)]
    np.testing.assert_allclose(units, units[1], rtol=1e-12)


def test_standard_errors_are_those_of_the_moments():
    data = problems.make_data("noisy", n=40, d=3, k=4)
    for features in FEATURES:
        bound = make_features(features, data.X, 4, moments="box")
        one = np.zeros((40, 4))
        samples = []
        for i in range(40):
            one[:] = 0.0
            one[i, data.y[i]] = 1.0
            samples.append(bound.adjoint(one))
        found = np.std(samples, axis=0) / np.sqrt(40)
        np.testing.assert_allclose(bound.standard_errors(data.y), found, rtol=1e-9, atol=1e-12)
    # whole weights count rows
    weights = np.random.default_rng(1).integers(1, 4, 40)
    again = np.repeat(np.arange(40), weights)
    weighted = make_features("linear", data.X, 4).standard_errors(data.y, weights.astype(float))
    repeated = make_features("linear", data.X[again], 4).standard_errors(data.y[again])
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


def test_a_moment_that_never_varied_gets_the_error_of_one_that_varied_once():
    X = np.c_[np.r_[np.zeros(9), 5.0], np.ones(10)]
    y = np.r_[np.zeros(5, dtype=int), np.ones(5, dtype=int)]
    errors = make_features("linear", X, 3, moments="box").standard_errors(y)
    assert errors[0, 0] == pytest.approx(0.5)  # class 0 never saw feature 0: max |x| / n
    assert errors[1, 2] == pytest.approx(0.1)  # class 2 never occurred
    assert errors[0, 1] == pytest.approx(np.std(X[:, 0] * y) / np.sqrt(10))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10_000))
def test_model_is_minimised(p, seed):
    """Against the subgradient condition of the quadratic plus the penalty."""
    random = np.random.default_rng(seed)
    A = random.normal(size=(p + 3, p))
    H = A.T @ A + 0.01 * np.eye(p)
    gradient, weight = random.normal(size=p), random.uniform(0.0, 1.0, p)
    x = random.normal(size=p) * (random.random(p) < 0.5)
    z = minimise_model(H, gradient, weight, x)
    slope = gradient + H @ (z - x)
    defect = np.where(z != 0, slope + weight * np.sign(z), np.maximum(np.abs(slope) - weight, 0))
    assert np.abs(defect).max() <= 1e-6 * (1 + np.abs(gradient).max())


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 10), st.integers(0, 10_000))
def test_coordinate_descent_follows_its_reference(p, seed):
    random = np.random.default_rng(seed)
    A = random.normal(size=(p + 2, p))
    H = np.ascontiguousarray(A.T @ A + 0.1 * np.eye(p))
    gradient, weight, x = random.normal(size=p), random.uniform(0, 1, p), random.normal(size=p)
    slope, z = gradient.copy(), x.copy()
    for _ in range(3):
        for j in range(p):
            target = H[j, j] * z[j] - slope[j]
            new = np.sign(target) * max(abs(target) - weight[j], 0.0) / H[j, j]
            slope += H[j] * (new - z[j])
            z[j] = new
    compiled, kept = x.copy(), gradient.copy()
    assert kernels.newton_faces.l1_quadratic(H, kept, weight, compiled, 0.0, 3) <= 3
    np.testing.assert_allclose(compiled, z, atol=1e-12)
    np.testing.assert_allclose(kept, slope, atol=1e-12)


def test_bound_of_mrcpy():
    """Where MRCpy is installed: the bound of its constrained minimax risk classifier for the 0-1 loss, found by its convex solver."""
    MRCpy = pytest.importorskip("MRCpy", reason="MRCpy is not installed")
    if tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 7):
        pytest.skip("MRCpy 3.0 cannot fit with scikit-learn 1.7 or newer")
    for load, width in ((load_iris, 0.3), (load_wine, 1.0)):
        X, y = load(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        theirs = MRCpy.CMRC(loss="0-1", s=width, phi="linear", solver="cvx", deterministic=False).fit(X, y).get_upper_bound()
        ours = AdversarialClassifier("zero_one", tol=1e-6, features_options={"moments": "box", "tolerance": width}).fit(X, y)
        assert ours.certificate_.game_value == pytest.approx(theirs, rel=1e-4)


def test_a_warm_start_helps_and_changes_nothing():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    first = AdversarialClassifier(features_options={"moments": "box", "tolerance": 1.0}, tol=1e-5).fit(X, y)
    cold = AdversarialClassifier(features_options={"moments": "box", "tolerance": 0.9}, tol=1e-5).fit(X, y)
    warm = AdversarialClassifier(features_options={"moments": "box", "tolerance": 0.9}, tol=1e-5).fit(X, y, start=first)
    assert warm.certificate_.converged
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-5)


def test_ordinal_threshold_in_a_box():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = OrdinalAdversarialClassifier(features="threshold", features_options={"moments": "box", "tolerance": 0.5}).fit(X, y)
    assert model.certificate_.converged
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"moments": "bix"}, "box"),
        ({"moments": "box", "tolerance": 0.0}, "tolerance above 0"),
        ({"moments": "box", "tolerance": float("nan")}, "tolerance above 0"),
        ({"moments": "box", "tolerance": "wide"}, "tolerance above 0"),
    ],
)
def test_bad_options_are_one_clear_line(options, words):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ConfigError, match=words):
        AdversarialClassifier(features_options=options).fit(X, y)


# the gap that first-order solvers reach here within 20,000 passes
FIRST_ORDER = {"sgd": 3e-2, "adagrad": 1e-2, "adam": 1e-2, "sag": 1e-3, "lbfgs": 1e-4}


@pytest.mark.parametrize(
    ("name", "features", "solver"),
    [
        each
        for each in pairwise(product(["zero_one", "absolute", "llw", "general"], FEATURES, FIRST_ORDER))
        if each[:2] != ("llw", "linear")  # refused
    ],
)
def test_first_order_solvers_certify_themselves(name, features, solver):
    """Dense and sparse, with and without weights and a ridge: never beyond the optimum, and within the gap that they claim."""
    data = problems.make_data("noisy", n=60)
    sample, cost = problems.weights_of(data)
    for problem in (
        box_problem(data, name, 0, features),
        box_problem(data, name, 0, features, 0.3, 0.05, sample, cost, X=sp.csr_array(data.X)),
    ):
        optimum = problem.primal(make_solver("box").solve(problem, Limits(1e-8)).theta)
        tol = FIRST_ORDER[solver]
        solution = make_solver(solver).solve(problem, Limits(tol, max_passes=20_000))
        certificate = certify(problem, solution, tol)
        assert certificate.converged, certificate
        assert problems.outside(problem, solution.R) <= 1e-9
        assert certificate.dual <= optimum * (1 + 1e-7)
        assert optimum * (1 - 1e-7) <= certificate.primal <= optimum / (1 - tol)
        again = make_solver(solver).solve(problem, Limits(tol), solution)
        assert again.passes <= 3


def test_dual_averaging_gives_exact_zeros():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    options = {"features_options": {"moments": "box", "tolerance": 2.0}, "tol": 0.05}
    exact = AdversarialClassifier(**options).fit(X, y)
    model = AdversarialClassifier(solver="sgd", solver_options={"averaging": "none"}, **options).fit(X, y)
    assert model.certificate_.converged
    assert (exact.theta_ == 0).mean() >= 0.2
    assert (model.theta_ == 0).mean() >= 0.2


def test_solvers_of_the_ball_refuse_a_box():
    X, y = load_iris(return_X_y=True)
    for solver in ("dual", "newton", "pegasos"):
        with pytest.raises(IncompatibleError, match=r"moments in a ball.*takes one: auto, box, lbfgs"):
            AdversarialClassifier(solver=solver, features_options={"moments": "box"}).fit(X, y)
    with pytest.raises(IncompatibleError, match="box"):
        AdversarialClassifier(solver="box").fit(X, y)
    for solver in FIRST_ORDER:
        with pytest.raises(IncompatibleError, match=r"without a constraint \(loss=llw"):
            AdversarialClassifier("llw", solver=solver, features_options={"moments": "box"}).fit(X, y)


@pytest.mark.parametrize("lam", [0.0, 0.05])
@pytest.mark.parametrize("width", [0.1, 1.0])
@pytest.mark.parametrize("kind", problems.KINDS_OF_DATA)
def test_llw_keeps_its_sums_at_zero(kind, width, lam):
    """Against Clarabel with the constraint written out; without it the value is lower."""
    data = problems.make_data(kind, k=4)
    problem = box_problem(data, "llw", width=width, lam=lam)
    solution = check(problem, expected(data, problem, "llw", 0, "linear"))
    np.testing.assert_allclose(solution.theta.sum(axis=1), 0.0, atol=1e-12 * np.abs(solution.theta).max())


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_multipliers_make_the_sums_zero(d, k, key):
    random = np.random.default_rng(key)
    gradient, tolerance = np.round(random.normal(size=(d, k)), 1), np.abs(np.round(random.normal(size=(d, k)), 1))
    beyond = gradient - multipliers(gradient, tolerance)[:, None]
    soft = np.sign(beyond) * np.maximum(np.abs(beyond) - tolerance, 0.0)
    np.testing.assert_allclose(soft.sum(axis=1), 0.0, atol=1e-12)
