"""Thresholds over a kernel: the linear kernel gives threshold features back, and what the map computes is what its formula says."""

import pickle

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from support.registered import in_package

from advcli.core.errors import ConfigError, DataError, IncompatibleError
from advcli.features import make_features
from advcli.learners.surrogate import OrdinalAdversarialClassifier
from advcli.losses import make_loss
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver, solver_names
from advcli.solvers.newton.kernel import MAX_FACTORED, explicit

NAMES = ["rbf_threshold", "poly_threshold"]


def ordered(n=60, d=3, k=4, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    g = X @ random.normal(size=d) + 0.5 * random.normal(size=n)
    y = np.searchsorted(np.quantile(g, np.arange(1, k) / k), g).astype(np.intp)
    return X, y


@pytest.mark.parametrize("loss", ["absolute", "squared", "zero_one", "cs"])
@pytest.mark.parametrize("C", [0.5, 100.0])
def test_the_linear_kernel_is_the_threshold_map(loss, C):
    X, y = ordered()
    new, _ = ordered(seed=1, n=20)
    fitted = [
        OrdinalAdversarialClassifier(loss, C=C, tol=1e-7, features=features).fit(rows, y)
        for features, rows in (("threshold", X), ("precomputed_threshold", X @ X.T))
    ]
    linear, kernel = fitted
    assert linear.certificate_.converged
    assert kernel.certificate_.converged
    assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=2e-7)
    # w = X'a, and a strongly convex part pins w down
    assert np.abs(X.T @ kernel.theta_[:60] - linear.theta_[:3]).max() <= 1e-2 * np.abs(linear.theta_[:3]).max()
    agreed = kernel.predict(new @ X.T) == linear.predict(new)
    assert agreed.mean() >= 0.9  # thresholds of a piecewise linear loss need not be unique


@pytest.mark.parametrize(("name", "options", "kernel"), [
    ("rbf_threshold", {"gamma": 0.4}, lambda X, Z: rbf_kernel(X, Z, gamma=0.4)),
    ("poly_threshold", {"degree": 2, "gamma": 0.5, "coef0": 1.5}, lambda X, Z: polynomial_kernel(X, Z, degree=2, gamma=0.5, coef0=1.5)),
])  # fmt: skip
def test_scores_adjoint_and_norm_are_those_of_the_formula(name, options, kernel):
    X, _ = ordered(n=15)
    new, _ = ordered(n=4, seed=2)
    random = np.random.default_rng(0)
    features = make_features(name, X, 4, **options)
    a, eta = random.normal(size=15), random.normal(size=3)
    theta = np.r_[a, eta]
    assert features.shape == (18,)
    for rows, bound in ((X, features), (new, features.at(new))):
        g = kernel(rows, X) @ a
        expected = [[(j + 1) * each + eta[j:].sum() for j in range(4)] for each in g]
        np.testing.assert_allclose(bound.scores(theta), expected, rtol=1e-10, atol=1e-10)
    assert features.square_norm(theta) == pytest.approx(a @ kernel(X, X) @ a, rel=1e-10)
    # <J theta, R> in the scores is <theta, J'R> with the kernel's inner product over a
    R = random.normal(size=(15, 4))
    back = features.adjoint(R)
    inner = a @ kernel(X, X) @ back[:15] + eta @ back[15:]
    assert np.vdot(features.scores(theta), R) == pytest.approx(inner, rel=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_explicit_features_are_the_same_problem(name):
    X, y = ordered(n=40)
    problem = Problem(make_features(name, X, 4, memory_mb=50.0), make_loss("absolute", 4), y, 0.01)
    features = problem.features
    theta = np.r_[np.random.default_rng(0).normal(size=40), 1.0, 2.0, 3.0]
    linear, factor = explicit(features), features.pivots.factor
    there = factor.to_explicit(features, theta)
    np.testing.assert_allclose(linear.scores(there), features.scores(theta), atol=1e-8)
    back = factor.from_explicit(features, there)
    np.testing.assert_allclose(features.scores(back), features.scores(theta), atol=1e-7)
    solution = make_solver("kernel_newton").solve(problem, Limits(1e-6))
    assert certify(problem, solution, 1e-6).converged


def test_an_estimator_fits_warm_starts_and_survives_a_pickle():
    X, y = ordered(n=80)
    first = OrdinalAdversarialClassifier("absolute", C=1.0, features="rbf_threshold", features_options={"gamma": 0.3}).fit(X, y)
    again = OrdinalAdversarialClassifier("absolute", C=8.0, features="rbf_threshold", features_options={"gamma": 0.3}).fit(
        X, y, start=first
    )
    assert again.certificate_.converged
    assert np.abs(again.predict(X) - y).mean() < 0.5
    copy = pickle.loads(pickle.dumps(again))
    assert np.array_equal(copy.potentials(X[:7]), again.potentials(X[:7]))


def test_newton_and_splitting_take_free_thresholds():
    X, y = ordered()
    problem = Problem(make_features("rbf_threshold", X, 4), make_loss("absolute", 4), y, 0.1)
    ours = [name for name in solver_names() if in_package(type(make_solver(name)))]
    assert [name for name in ours if make_solver(name).lacks(problem) is None] == ["auto", "kernel_newton", "kernel_splitting"]
    with pytest.raises(IncompatibleError, match="free parameters"):
        OrdinalAdversarialClassifier("absolute", features="rbf_threshold", solver="kernel_dual").fit(X, y)
    with pytest.raises(IncompatibleError, match="distributions"):
        OrdinalAdversarialClassifier("ww", features="rbf_threshold").fit(X, y)
    many, labels = ordered(n=MAX_FACTORED + 1)
    with pytest.raises(IncompatibleError, match=f"at most {MAX_FACTORED} rows"):
        OrdinalAdversarialClassifier("absolute", features="rbf_threshold", solver="kernel_newton").fit(many, labels)


@pytest.mark.parametrize(
    ("features", "options", "error", "message"),
    [
        ("rbf_threshold", {"gamma": 0.0}, ConfigError, "gamma"),
        ("rbf_threshold", {"gamma": -1.0}, ConfigError, "gamma"),
        ("poly_threshold", {"degree": 0}, ConfigError, "degree"),
        ("rbf_threshold", {"memory_mb": 0.001}, IncompatibleError, "memory_mb"),
        ("rbf_threshold", {"no_such": 1}, ConfigError, "no_such"),
        ("precomputed_threshold", {}, DataError, "not positive semi-definite"),
    ],
)
def test_errors_are_one_line(features, options, error, message):
    X, y = ordered(n=40, d=40)
    rows = X + X.T if features.startswith("precomputed") else X  # symmetric, and indefinite
    with pytest.raises(error, match=message) as caught:
        OrdinalAdversarialClassifier("absolute", features=features, features_options=options).fit(rows, y)
    assert "\n" not in str(caught.value)
