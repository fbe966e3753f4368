"""Binary problems over shared rows: certified at any C, linear and with a kernel, alone or together, from scratch or along a path."""

from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.sparse as sp

from advcli import CostSensitiveClassifier
from advcli.core.errors import IncompatibleError, NotConvergedWarning
from advcli.features import make_features
from advcli.problems.binary import BinaryProblems
from advcli.problems.certificate import certify
from advcli.solvers import Limits
from advcli.solvers.newton import binary
from advcli.solvers.newton.binary import solve_binary


def problems(C, n=120, d=4, m=3, noise=0.5, features="linear", sparse=False, seed=0, margins=False):
    """Return noisy problems, of which one has absent rows."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    scores = X @ random.normal(size=(d, m)) + noise * random.normal(size=(n, m))
    labels = np.where(scores > 0, 1, -1).T.astype(np.int8)
    weights = random.uniform(0.5, 2.0, size=(m, n))
    weights[1, : n // 2] = 0.0
    own = random.normal(size=(m, n)) + 1.0 if margins else None
    X = np.hstack([X, np.ones((n, 1))]) if features == "linear" else X
    options = {} if features == "linear" else {"gamma": 0.3}
    mapped = make_features(features, sp.csr_array(X) if sparse else X, m, **options)
    return BinaryProblems(mapped, labels, weights, 1.0 / (n * C), None, own, 0.0 if features == "linear" else 1.0)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("C", [2.0**-6, 1.0, 2.0**12])
@pytest.mark.parametrize(("features", "sparse"), [("linear", False), ("linear", True), ("rbf", False)])
@pytest.mark.parametrize("margins", [False, True])
def test_every_strength_is_certified(C, features, sparse, tol, margins):
    given = problems(C, features=features, sparse=sparse, margins=margins)
    certificate = certify(given, solve_binary(given, Limits(tol, 1e5)), tol)
    assert certificate.converged, certificate
    assert certificate.gap >= -1e-12 * certificate.primal


def test_separable_data_end_at_the_hard_margin():
    # two points at distance 2 with the constant in v: the optimum is w = 1, b = 0 and P = 1/2
    X = np.array([[1.0, 1.0], [-1.0, 1.0]])
    given = BinaryProblems(make_features("linear", X, 1), np.array([[1, -1]], np.int8), np.ones((1, 2)), 1.0 / (2 * 4096.0))
    found = solve_binary(given, Limits(1e-9, 1e5))
    np.testing.assert_allclose(found.theta[:, 0], [1.0, 0.0], atol=1e-6)
    assert given.primal(found.theta) / given.lam == pytest.approx(0.5, rel=1e-8)


@pytest.mark.parametrize("features", ["linear", "rbf"])
def test_problems_do_not_see_each_other(features):
    together = problems(1.0, features=features)
    theta = solve_binary(together, Limits(1e-10, 1e5)).theta
    for q in range(3):
        options = {} if features == "linear" else {"gamma": 0.3}
        alone = BinaryProblems(
            make_features(features, together.features.X, 1, **options),
            together.labels[q : q + 1],
            together.weights[q : q + 1],
            together.lam,
            constant=together.constant,
        )
        own = solve_binary(alone, Limits(1e-10, 1e5)).theta
        np.testing.assert_allclose(alone.scores(own)[:, 0], together.scores(theta)[:, q], atol=1e-4)


@pytest.mark.parametrize("features", ["linear", "rbf"])
@pytest.mark.parametrize("C", [0.01, 64.0])
def test_a_fit_from_its_own_optimum_needs_no_steps(features, C):
    given = problems(C, features=features)
    first = solve_binary(given, Limits(1e-6, 1e5))
    again = solve_binary(given, Limits(1e-6, 1e5), first)
    assert certify(given, again, 1e-6).converged
    assert again.passes <= 2.0


def test_the_same_seed_gives_the_same_numbers():
    given = problems(1.0)
    first, second = (solve_binary(given, Limits(1e-4, 1e5), seed=5) for _ in range(2))
    assert np.array_equal(first.theta, second.theta)
    assert np.array_equal(first.R, second.R)


def test_a_limit_leaves_honest_bounds():
    given = problems(4096.0, n=400, d=10)
    found = solve_binary(given, Limits(1e-9, 3.0))
    certificate = certify(given, found, 1e-9)
    assert certificate.status == "max_passes"
    assert certificate.dual <= certify(given, solve_binary(given, Limits(1e-9, 1e5)), 1e-9).primal <= certificate.primal


def test_dual_numbers_outside_their_boxes_are_refused():
    given = problems(1.0)
    found = solve_binary(given, Limits(1e-6, 1e5))
    found.R[0, 0] = -0.1
    assert certify(given, found, 1e-6).status == "infeasible_dual"


def test_maps_without_one_column_a_problem_are_refused():
    given = problems(1.0)
    thresholds = make_features("threshold", given.features.X, 3)
    other = BinaryProblems(thresholds, given.labels, given.weights, given.lam)
    with pytest.raises(IncompatibleError, match="needs multiclass linear or kernel features"):
        solve_binary(other, Limits())


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"labels": np.zeros((3, 120), np.int8)}, "labels must be 3 x 120"),
        ({"weights": -np.ones((3, 120))}, "weights must be 3 x 120"),
        ({"margins": np.full((3, 120), np.nan)}, "margins must be 3 x 120"),
        ({"lam": 0.0}, "lambda and n"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(what, message):
    given = problems(1.0)
    with pytest.raises(ValueError, match=message):
        BinaryProblems(**{**{each.name: getattr(given, each.name) for each in fields(given)}, **what})


@pytest.mark.parametrize("features", ["linear", "rbf"])
def test_a_row_of_weight_two_is_a_row_given_twice(features):
    given = problems(1.0, n=40, features=features)
    twice = np.r_[np.arange(40), np.arange(20)]
    options = {} if features == "linear" else {"gamma": 0.3}
    double = BinaryProblems(
        make_features(features, given.features.X[twice], 3, **options),
        given.labels[:, twice],
        given.weights[:, twice],
        given.lam,
        constant=given.constant,
    )
    weighed = replace(given, sample_weight=np.repeat([2.0, 1.0], 20))
    assert weighed.n == double.n
    first, second = (certify(each, solve_binary(each, Limits(1e-10, 1e5)), 1e-10) for each in (double, weighed))
    assert first.converged
    assert second.converged
    assert first.primal == pytest.approx(second.primal, rel=1e-9)


@pytest.mark.parametrize("size", [1e10, 1e49])
def test_newton_ends_where_its_smallest_steps_move_nothing(size, monkeypatch):
    rounds, judge = 0, binary._ColumnStep.judge

    def counted(*arguments):
        nonlocal rounds
        rounds += 1
        assert rounds < 10_000, "Newton's method goes on without an end"
        return judge(*arguments)

    monkeypatch.setattr(binary._ColumnStep, "judge", counted)
    # equal rows of all labels, whose squares leave no digits to the margins: a limit of passes does not count rounds without a step
    with pytest.warns(NotConvergedWarning):
        found = CostSensitiveClassifier(method="csosr", max_passes=50, tol=1e-2).fit(np.full((12, 4), size), np.arange(12) % 3)
    assert np.isfinite(found.potentials(np.zeros((1, 4)))).all()
    assert rounds > 0
