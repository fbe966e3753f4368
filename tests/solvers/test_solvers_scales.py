"""Features of any size: refused with a column's name, or fitted to what is never worse than theta = 0."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support import random_problems as problems
from support.pairwise import pairwise
from support.waiting import HANG

from advcli import AdversarialClassifier
from advcli.core.checks import LARGEST
from advcli.core.errors import DataError
from advcli.data.dataset import make_dataset
from advcli.features import make_features
from advcli.losses import make_loss
from advcli.problems.certificate import _STRETCHES, certify, settle
from advcli.problems.risk import Problem, Solution
from advcli.solvers import Limits, make_solver

SCALES = (1e-300, 1e-160, 1e-30, 1e10, 1e20, LARGEST)


@pytest.mark.parametrize(("name", "features", "solver", "scale"), problems.combinations(SCALES))
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")  # what overflows or is no number is settled
def test_no_solver_ends_worse_than_zero(name, features, solver, scale):
    problem = problems.make_problem(problems.make_data("noisy"), name, features=features, X=problems.make_data("noisy").X * scale)
    solution, certificate = settle(problem, make_solver(solver).solve(problem, Limits(1e-3, 50, HANG)), 1e-3)
    at_zero = problem.primal(np.zeros(problem.features.shape))
    assert np.isfinite(solution.theta).all()
    assert repr(certificate) == repr(certify(problem, solution, 1e-3))  # nan too
    assert certificate.status in ("converged", "stalled", "max_passes", "gap_above_tolerance")
    assert certificate.dual <= at_zero * (1 + 1e-9)
    assert certificate.primal <= (at_zero / (1 - 1e-3) if certificate.converged else at_zero)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["zero_one", "absolute", "power", "ww", "llw"]),
    st.sampled_from(["linear", "threshold"]),
    st.floats(-300, 300),
    st.integers(0, 2),
    st.sampled_from([np.asarray, sp.csr_array]),
)
@pytest.mark.filterwarnings("ignore::advcli.core.errors.NotConvergedWarning")
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_an_estimator_refuses_or_fits(loss, features, exponent, column, matrix):
    if features == "threshold" and loss in ("ww", "llw"):  # free thresholds take none
        return
    data = problems.make_data("noisy")
    X = data.X.copy()
    X[:, column] *= 10.0**exponent
    model = AdversarialClassifier(loss, features=features, max_passes=50)
    if np.abs(X).max() > LARGEST:
        with pytest.raises(DataError, match=f"column {column + 1} holds"):
            model.fit(matrix(X), data.y)
        return
    model.fit(matrix(X), data.y)
    assert np.isfinite(model.potentials(matrix(X))).all()
    if loss == "zero_one":
        np.testing.assert_allclose(model.predict_proba(matrix(X)).sum(axis=1), 1.0)


def test_a_column_is_named():
    data = problems.make_data("noisy")
    X = pd.DataFrame(data.X, columns=["size", "ears", "tail"])
    model = AdversarialClassifier().fit(X, data.y)
    X.loc[5, "ears"] = -1e155
    said = r"column 2 \('ears'\) holds -1e\+155, beyond 1e\+50; change its unit"
    for refused in (lambda: model.predict(X), lambda: AdversarialClassifier().fit(X, data.y)):
        with pytest.raises(DataError, match=f"X: {said}"):
            refused()
    with pytest.raises(DataError, match=f"data set 'pets': {said}"):
        make_dataset(name="pets", X=X.to_numpy(), y=data.y, classes="abc", feature_names=list(X.columns))


@pytest.mark.parametrize(("what", "R"), pairwise([(what, R) for what in ("worse", "nan") for R in (None, "bad", "good")]))
def test_settling_takes_zero_where_it_is_better(what, R):
    data = problems.make_data("noisy")
    problem = problems.make_problem(data, "zero_one")
    theta = np.full((3, 3), np.nan) if what == "nan" else 1e6 * np.random.default_rng(0).normal(size=(3, 3))
    good = make_solver("dual").solve(problem, Limits(1e-3)).R
    ends = 0.5 * (np.eye(3)[(data.y + 1) % 3] - np.eye(3)[data.y])
    point = {None: None, "bad": ends * 1e-9 + 0.9 * (np.eye(3)[0] - np.eye(3)[data.y]), "good": good}[R]
    given_ = Solution(theta, point, problem.lam, "none", 1.0, 0.0, "max_passes")
    settled, certificate = settle(problem, given_, 1e-3)
    assert not settled.theta.any()
    assert certificate.status == "max_passes"
    assert certificate.primal == problem.primal(np.zeros((3, 3)))
    if R is not None:
        assert certificate.dual == max(problem.dual(point), problem.dual(np.zeros(good.shape)))


def test_a_certified_fit_stays_as_it_is():
    """Also where theta = 0 has the lower objective, within the tolerance."""
    data = problems.make_data("noisy")
    problem = Problem(problems.make_problem(data, "zero_one").features, make_loss("zero_one", 3), data.y, 1e9)
    given_ = Solution(np.full((3, 3), 1e-7), np.full((24, 3), 1.0 / 3.0) - np.eye(3)[data.y], 1e9, "none", 1.0, 0.0)
    settled, certificate = settle(problem, given_, 1e-3)
    assert certificate.converged
    assert settled is given_
    assert certificate.primal > problem.primal(np.zeros((3, 3)))


@pytest.mark.parametrize("short", [0.0, 1e-14, 1e-12])
def test_margins_that_rounding_breaks_are_kept(short):
    """Two rows at 1e6 and -1e6: the objective is 1.25e-13, beside which a loss of 1e-14 is more than a tolerance."""
    size = 1e6
    problem = Problem(make_features("linear", np.array([[size], [-size]]), 2), make_loss("cs", 2), np.array([0, 1]), 0.5)
    theta = (1.0 - short) / (2.0 * size) * np.array([[1.0, -1.0]])
    mass = 1.0 / (4.0 * size**2)
    found = Solution(theta, mass * np.array([[-1.0, 1.0], [1.0, -1.0]]), 0.5, "newton", 1.0, 0.0, "stalled")
    assert certify(problem, found, 1e-3).converged == (short == 0.0)
    solution, certificate = settle(problem, found, 1e-3)
    assert certificate.converged
    assert certificate.dual == pytest.approx(0.25 / (2.0 * size**2))
    assert np.abs(solution.theta - theta).max() <= 1e-8 * np.abs(theta).max()


@pytest.mark.parametrize("share", _STRETCHES)
def test_each_share_of_a_stretch_is_needed(share):
    """Two light rows fall short of their margins by half of the share; two heavy rows keep the loss of that within what rounding makes.

    A smaller share leaves a loss, and the penalty of a larger one is beyond the tolerance.
    """
    size, lam, tol = 1e6, 0.5, 3.0 * share
    short, heavy = size * (1.0 - 0.5 * share), max(4e10 * share, 1.0)
    X, weight = np.array([[size], [-size], [short], [-short]]), np.array([heavy, heavy, 1.0, 1.0])
    problem = Problem(make_features("linear", X, 2), make_loss("cs", 2), np.array([0, 1, 0, 1]), lam, weight)
    a = lam * problem.n / (4.0 * short**2)  # theta(r) has margins of 1 on the light rows, the optimum
    R = np.array([[0.0, 0.0], [0.0, 0.0], [-a, a], [a, -a]])
    found = Solution(np.array([[1.0, -1.0]]) / (2.0 * size), R, lam, "newton", 1.0, 0.0, "stalled")
    assert not certify(problem, found, tol).converged
    assert settle(problem, found, tol)[1].converged
    for other in set(_STRETCHES) - {share}:
        stretched = replace(found, theta=found.theta * (1.0 + other))
        assert not certify(problem, stretched, tol).converged
