"""The referee is given dual points that lie outside their sets: a little and it moves them back, more and it refuses; it believes none."""

import dataclasses

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from support import random_problems as problems

from advcli import AdversarialClassifier
from advcli.core.errors import ModelError, NotConvergedWarning
from advcli.features.linear import LinearFeatures
from advcli.features.threshold import ThresholdFeatures
from advcli.losses import make_loss
from advcli.losses.base import ROUNDING
from advcli.problems.certificate import TOLERANCE, Certificate, certify, judge
from advcli.problems.risk import Problem, Solution
from advcli.solvers import Limits, make_solver
from advcli.solvers.coordinate.dense import DualSolver

CASES = [(name, which) for name in problems.canonical_names() for which in range(len(problems.options(name)))]


def solved(problem, tol=1e-6):
    return make_solver("auto").solve(problem, Limits(tol))


def ways_out(problem, R, size):
    """Dual points that lie ``size`` outside: moved alike, one number of one row, at random in one direction, lengthened from a corner."""
    random = np.random.default_rng(0)
    n, k = R.shape
    one = R.copy()
    one[n // 2, k - 1] += size
    corner = problem.loss.oracle(100.0 * random.normal(size=(n, k)), problem.y).R
    uneven = R + size * random.choice([-1.0, 1.0], size=n)[:, None] * random.uniform(1.0, 2.0, size=(n, k))
    return {"less": R - size, "more": R + size, "one": one, "uneven": uneven, "longer": corner * (1.0 + 3.0 * size)}


def refused(certificate):
    assert certificate.status == "infeasible_dual"
    assert not certificate.converged
    assert certificate.dual == -np.inf
    assert certificate.gap == certificate.relative_gap == np.inf
    return True


# ---- each row's own set -------------------------------------------------------------------------------------------------
def test_a_dual_point_of_digits_that_was_shifted_certifies_nothing():
    """0.0021 less in every r adds 1 % to D: a fit 1.1 % above its optimum would count as converged to 1e-3."""
    X, y = load_digits(return_X_y=True)
    X = np.column_stack([StandardScaler().fit_transform(X), np.ones(len(y))])
    problem = Problem(LinearFeatures(np.ascontiguousarray(X), 10), make_loss("zero_one", 10), y.astype(np.intp), 1.0 / (0.03 * len(y)))
    best = make_solver("newton").solve(problem, Limits(1e-6))
    optimum = problem.primal(best.theta)
    low, high = 1.0, 2.0
    for _ in range(40):  # how far along its ray theta is 1.1 % above
        middle = 0.5 * (low + high)
        low, high = (middle, high) if problem.primal(middle * best.theta) < 1.011 * optimum else (low, middle)
    rough = dataclasses.replace(best, theta=high * best.theta)
    honest = certify(problem, rough, 1e-3)
    assert honest.relative_gap == pytest.approx(0.011, abs=2e-4)
    assert honest.status == "gap_above_tolerance"
    forged = dataclasses.replace(rough, R=best.R - 0.0021)
    assert problem.primal(rough.theta) - problem.dual(forged.R) < 1e-3 * optimum  # what such a point would prove
    assert refused(certify(problem, forged, 1e-3))


@pytest.mark.parametrize(("name", "which"), CASES)
def test_what_lies_outside_is_moved_back_or_refused_for_every_loss(name, which):
    data = problems.make_data("noisy")
    sample, cost = problems.weights_of(data)
    problem = problems.make_problem(data, name, which, C=4.0, sample_weight=sample, cost_weight=cost)
    solution = solved(problem)
    optimum, dual = problem.primal(solution.theta), problem.dual(solution.R)
    assert problem.feasible(solution.R)[0] is solution.R
    assert certify(problem, solution, 1e-5).dual == dual
    for size in (1e-12, 1e-11, 3e-11):
        for way, R in ways_out(problem, solution.R, size).items():
            point, outside = problem.feasible(R)
            assert 0.3 * size <= outside <= TOLERANCE, way
            assert problems.outside(problem, point) <= 3 * ROUNDING, way
            certificate = certify(problem, dataclasses.replace(solution, R=R), 1e-5)
            assert certificate.dual == problem.dual(point), way
            assert certificate.dual <= optimum * (1 + 1e-12), way
            if way != "longer":
                # abstaining for nothing has the optimum 0, beside which no gap is small
                assert certificate.converged or certificate.gap <= 1e-15, way
                assert certificate.dual == pytest.approx(dual, rel=1e-8, abs=1e-15)
    for size in (1e-9, 1e-6, 0.0021, 0.5):
        for R in ways_out(problem, solution.R, size).values():
            assert refused(certify(problem, dataclasses.replace(solution, R=R), 1e-5))


def test_an_estimator_whose_solver_returns_such_a_point_says_so(monkeypatch):
    solve = DualSolver.solve

    def forged(self, *given, **named):
        found = solve(self, *given, **named)
        return dataclasses.replace(found, R=found.R - 0.0021)

    monkeypatch.setattr(DualSolver, "solve", forged)
    data = problems.make_data("noisy")
    with pytest.warns(NotConvergedWarning, match="infeasible_dual"):
        model = AdversarialClassifier(solver="dual").fit(data.X, data.y)
    assert refused(model.certificate_)


@pytest.mark.parametrize("name", ["zero_one", "ww", "llw"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_dual_point_with_what_is_no_number_is_refused(name, bad):
    problem = problems.make_problem(problems.make_data("noisy"), name)
    solution = solved(problem, 1e-3)
    R = solution.R.copy()
    R[7, 1] = bad
    with np.errstate(invalid="ignore", over="ignore"):
        assert refused(certify(problem, dataclasses.replace(solution, R=R), 1e-2))


def test_rows_are_judged_in_blocks_and_each_is_seen(monkeypatch):
    monkeypatch.setattr("advcli.problems.risk._CHUNK", 16)
    problem = problems.make_problem(problems.make_data("noisy"), "zero_one")
    R = solved(problem, 1e-3).R
    for row in (0, 5, len(R) - 1):
        for size in (1e-11, np.nan):
            moved = R.copy()
            moved[row, 0] += size
            point, outside = problem.feasible(moved)
            assert (np.isnan(outside) and np.isnan(size)) or outside == pytest.approx(size, rel=1e-3)
            if np.isfinite(size):
                np.testing.assert_array_equal(np.delete(point, row, 0), np.delete(R, row, 0))
                assert np.abs(point[row].sum()) <= 3 * ROUNDING


# ---- constraints over the rows ------------------------------------------------------------------------------------------
def with_thresholds(n=24, weights=None, name="zero_one"):
    data = problems.make_data("noisy", n=n)
    total = n if weights is None else float(weights.sum())
    return Problem(ThresholdFeatures(data.X, 3), make_loss(name, 3), data.y, 1.0 / total, weights)


def off_totals(problem, R, mass):
    """Move mass between two labels in one row, so that r + e_y stays a distribution and the labels' totals do not."""
    q = R.copy()
    q[np.arange(len(q)), problem.y] += 1.0
    row = int(np.argmax(q.min(axis=1)))
    heavy = int(np.argmax(q[row]))
    moved = R.copy()
    moved[row, heavy] -= mass
    moved[row, (heavy + 1) % 3] += mass
    assert problem.loss.infeasibility(moved, problem.y).max() <= 3 * ROUNDING
    return moved


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_dual_of_a_point_that_breaks_a_free_parameters_constraint_a_little(unit):
    """Whatever the weights are counted in: beyond the rounding of the sums D is no bound."""
    weights = unit * (1.0 + np.arange(24) % 3)
    problem = with_thresholds(weights=weights)
    solution = solved(problem)
    optimum = problem.primal(solution.theta)
    assert np.isfinite(problem.dual(solution.R))
    for mass in (1e-12, 1e-11, 1e-10):
        moved = off_totals(problem, solution.R, mass)
        assert problem.dual(moved) == -np.inf
        point, outside = problem.feasible(moved)
        assert mass / 48 <= outside <= TOLERANCE
        certificate = certify(problem, dataclasses.replace(solution, R=moved), 1e-5)
        assert certificate.converged
        assert certificate.dual == problem.dual(point) <= optimum
        assert certificate.dual == pytest.approx(problem.dual(solution.R), rel=1e-8)
    for mass in (1e-7, 1e-3):
        moved = off_totals(problem, solution.R, mass)
        assert problem.dual(moved) == -np.inf
        assert refused(certify(problem, dataclasses.replace(solution, R=moved), 1e-5))


def test_both_kinds_of_constraints_are_met_together():
    problem = with_thresholds()
    solution = solved(problem)
    for R in ways_out(problem, solution.R, 3e-11).values():
        point, outside = problem.feasible(R)
        if outside <= TOLERANCE:
            assert problems.outside(problem, point) <= 3 * ROUNDING
            assert np.isfinite(problem.dual(point))


def test_sums_over_many_rows_are_not_taken_for_broken_constraints():
    random = np.random.default_rng(0)
    n = 60_000
    y = np.sort(random.integers(0, 3, n)).astype(np.intp)  # partial sums as large as they get
    problem = Problem(ThresholdFeatures(random.normal(size=(n, 1)), 3), make_loss("zero_one", 3), y, 1.0)
    R = problem.features.feasible(random.dirichlet(np.ones(3), size=n) - np.eye(3)[y], y, None)
    assert np.isfinite(problem.dual(R))
    assert certify(problem, Solution(np.zeros(3), R, 1.0, "none", 0.0, 0.0), 1.0).status != "infeasible_dual"


def test_a_loss_without_distributions_cannot_be_moved_to_the_thresholds_totals():
    problem = with_thresholds(name="ww")
    R = problem.loss.oracle(np.zeros((24, 3)), problem.y).R
    solution = Solution(np.zeros(problem.features.shape), R, problem.lam, "none", 0.0, 0.0)
    assert refused(certify(problem, solution, 1.0))
    balanced = np.zeros_like(R)  # every a at 1 in one row of each label: what no distribution allows
    balanced[[int(np.argmax(problem.y == label)) for label in range(3)]] = 1.0 - 3.0 * np.eye(3)
    assert np.isfinite(certify(problem, dataclasses.replace(solution, R=balanced), 1.0).dual)
    balanced[-1] += 1e-11 * (np.eye(3)[(problem.y[-1] + 1) % 3] - np.eye(3)[problem.y[-1]])
    assert refused(certify(problem, dataclasses.replace(solution, R=balanced), 1.0))
    nothing = dataclasses.replace(solution, R=np.zeros_like(R))
    assert np.isfinite(certify(problem, nothing, 1.0).dual)


def test_moments_a_little_outside_the_box_are_brought_back():
    data = problems.make_data("noisy")
    problem = Problem(LinearFeatures(data.X, 3, "box", 0.5), make_loss("zero_one", 3), data.y, 0.0)
    problem = dataclasses.replace(problem, tolerance=problem.features.tolerance(data.y, None))
    solution = make_solver("lbfgs").solve(problem, Limits(1e-4))
    at_edge = solution.R * (np.min(problem.tolerance / np.abs(problem.dual_gradient(solution.R))))
    assert np.isfinite(problem.dual(at_edge * (1.0 - 1e-12)))
    for excess in (1e-12, 1e-10):
        outside = at_edge * (1.0 + excess)
        assert problem.dual(outside) == -np.inf
        certificate = certify(problem, dataclasses.replace(solution, R=outside), 1.0)
        assert certificate.dual == problem.dual(problem.into_box(outside)) <= problem.primal(solution.theta)
        assert certificate.status == "converged"
    for excess in (1e-9, 1e-3):
        outside = at_edge * (1.0 + excess)
        assert problem.dual(outside) == -np.inf
        assert refused(certify(problem, dataclasses.replace(solution, R=outside), 1.0))


# ---- the verdict --------------------------------------------------------------------------------------------------------
def verdict(primal, dual, tol=1e-3, outside=0.0, status="converged", **more):
    return judge(primal, dual, tol, outside=outside, passes=1.0, status=status, solver="none", seconds=0.0, **more)


@pytest.mark.parametrize(
    ("primal", "dual", "outside", "stopped", "status"),
    [
        (1.0, 0.9995, 0.0, "converged", "converged"),
        (1.0, 0.9995, 0.0, "max_passes", "converged"),
        (1.0, 0.99, 0.0, "converged", "gap_above_tolerance"),
        (1.0, 0.99, 0.0, "max_passes", "max_passes"),
        (1.0, 0.9995, TOLERANCE, "converged", "converged"),
        (1.0, 0.9995, 1.01 * TOLERANCE, "converged", "infeasible_dual"),
        (1.0, 0.9995, np.nan, "converged", "infeasible_dual"),
        (1.0, 0.9995, np.inf, "max_passes", "infeasible_dual"),
        (1.0, -np.inf, 0.0, "converged", "infeasible_dual"),
        (1.0, 1.0 + 1e-13, 0.0, "converged", "converged"),
        (1.0, 1.0 + 1e-10, 0.0, "converged", "converged"),
        (1.0, 1.0 + 1e-8, 0.0, "converged", "negative_gap"),
        (1.0, 1.5, 0.0, "max_passes", "negative_gap"),
        (-1.0, -1.0005, 0.0, "converged", "converged"),
        (-1.0, -0.5, 0.0, "converged", "negative_gap"),
        (0.0, 0.0, 0.0, "converged", "converged"),
        (0.0, 0.0, 1.0, "converged", "infeasible_dual"),
        (np.nan, 0.5, 0.0, "converged", "gap_above_tolerance"),
        (np.inf, 0.5, 0.0, "stalled", "stalled"),
        (1.0, np.nan, 0.0, "max_passes", "max_passes"),
    ],
)
def test_verdicts(primal, dual, outside, stopped, status):
    found = verdict(primal, dual, outside=outside, status=stopped)
    assert found.status == status
    assert found.converged == (status == "converged")
    if status == "infeasible_dual":
        assert found.dual == -np.inf
        assert found.relative_gap == np.inf
        assert found.scale == abs(primal)
    elif not (np.isnan(found.gap) or found.scale == 0 or np.isinf(found.gap)):
        # nothing is cut off but what rounding of the sum of two leaves below zero
        expected = (primal - dual) / found.scale
        assert found.relative_gap == (0.0 if -1e-12 < expected < 0 else expected)


def test_a_gap_is_relative_to_the_objective_unless_another_scale_is_named():
    assert verdict(2.0, 1.0).scale == 2.0
    assert verdict(2.0, 1.0).relative_gap == 0.5
    assert verdict(-1.0, -2.0).scale == 2.0
    assert verdict(0.01, 0.0, scale=0.5).scale == 0.5
    assert verdict(0.01, 0.0, scale=0.5).relative_gap == 0.02
    assert verdict(0.0, -1e-9, least=1e-6).relative_gap == pytest.approx(1e-3)
    assert verdict(2.0, 1.0, least=1e-6).scale == 2.0


def test_a_certificate_from_a_file():
    certificate = verdict(2.0, 1.9995, game_value=3.0)
    document = dataclasses.asdict(certificate)
    assert Certificate.restored(document) == certificate
    for missing in document:
        with pytest.raises(ModelError, match=f"no {missing} that can be"):
            Certificate.restored({name: value for name, value in document.items() if name != missing})
