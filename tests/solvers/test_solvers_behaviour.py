"""What every solver owes whatever the problem: honest stops, warm starts, determinism, and a referee that believes nobody."""

import dataclasses
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from support import random_problems as problems
from support.waiting import HANG

from advcli.core.errors import ConfigError
from advcli.losses import make_loss
from advcli.problems.certificate import Certificate, certify
from advcli.problems.risk import Problem, Solution
from advcli.solvers import Limits, make_solver, solver_names
from advcli.testing.solvers import check_no_time, check_other_start, check_path, check_repeats, check_stops

COMBINATIONS = problems.combinations()
# the first map that each solver takes
FEATURES = {solver: features for name, features, solver in reversed(problems.fitting()) if name == "zero_one"}
SOLVERS = sorted(FEATURES)


def slow_problem(name="zero_one", features=problems.LINEAR, C=64.0, **options):
    return problems.make_problem(problems.make_data("noisy", n=60, d=4, k=4), name, features=features, C=C, **options)


@pytest.mark.parametrize(("name", "features", "solver"), COMBINATIONS)
def test_weak_duality_at_every_stop(name, features, solver):
    """Stopped anywhere, the primal is above and the dual below the optimum, and the status says what stopped it."""
    problem = problems.make_problem(problems.make_data("noisy"), name, features=features, C=8.0)
    primal, dual = problems.optimum("noisy", name, features=features, C=8.0)
    room = 1e-7 * abs(primal) + 1e-10
    check_stops(make_solver(solver), problem, primal + room, dual - room, stalls=False)


@pytest.mark.parametrize(("name", "features", "solver"), COMBINATIONS)
def test_no_time_is_a_status_not_a_crash(name, features, solver):
    check_no_time(make_solver(solver), slow_problem(name, features))


@pytest.mark.parametrize("solver", SOLVERS)
def test_max_seconds_is_kept(solver):
    problem = problems.make_problem(problems.make_data("noisy", n=400, d=10, k=6), "zero_one", features=FEATURES[solver], C=2.0**20)
    # passes that take minutes: a solver that ignores the limit of time comes to this one
    solution = make_solver(solver).solve(problem, Limits(1e-14, max_passes=1e6, max_seconds=0.2))
    assert solution.status in ("max_seconds", "stalled", "converged")


@pytest.mark.parametrize(("name", "features", "solver"), COMBINATIONS)
def test_same_seed_same_bits(name, features, solver):
    check_repeats(make_solver(solver), slow_problem(name, features, C=2.0), Limits(1e-4, max_passes=300))


@pytest.mark.parametrize("solver", SOLVERS)
def test_other_seed_same_optimum(solver):
    problem = slow_problem(features=FEATURES[solver])
    tol = max(1e-7, problems.precision(solver))
    found = [
        problem.primal(make_solver(solver).solve(problem, Limits(tol, max_seconds=HANG), seed=seed).theta) for seed in (0, 1, 2**63 + 11)
    ]
    assert np.ptp(found) <= 2 * tol * found[0]


@pytest.mark.parametrize(("name", "features", "solver", "up"), problems.combinations([True, False]))
def test_warm_starts_along_C_reach_the_same_optimum(name, features, solver, up):
    tol = max(1e-6, problems.precision(solver))
    path = [2.0**e for e in ((-3, 0, 2, 5) if tol <= 1e-6 else (-3, 0, 1))]
    data = problems.make_data("noisy")
    check_path(make_solver(solver), [problems.make_problem(data, name, features=features, C=C) for C in (path if up else path[::-1])], tol)


@pytest.mark.parametrize("kind", ["separable", "conflicting"])
# constraint generation starts from nothing: its counts are those of a whole run
@pytest.mark.parametrize("solver", [each for each in SOLVERS if each != "constraint_generation"])
def test_a_solved_start_costs_next_to_nothing(solver, kind):
    problem = problems.make_problem(problems.make_data(kind), "zero_one", features=FEATURES[solver], C=4.0)
    tol = max(1e-6, problems.precision(solver))
    cold = make_solver(solver).solve(problem, Limits(0.1 * tol if tol <= 1e-6 else tol, max_seconds=HANG))
    before = cold.R.copy(), cold.theta.copy()
    again = make_solver(solver).solve(problem, Limits(tol), cold)
    assert certify(problem, again, tol).converged
    assert again.passes <= 3 < cold.passes
    assert np.array_equal(cold.R, before[0])  # and the start itself is not written to
    assert np.array_equal(cold.theta, before[1])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_start_of_another_shape_is_no_start(solver):
    problem = slow_problem(features=FEATURES[solver])
    other = problems.make_problem(problems.make_data("noisy", n=13), "zero_one", features=FEATURES[solver])
    start = make_solver(solver).solve(other, Limits(1e-3))
    check_other_start(make_solver(solver), problem, start, max(1e-6, problems.precision(solver)))


@pytest.mark.parametrize(("name", "features", "solver"), COMBINATIONS)
def test_inputs_are_read_only(name, features, solver):
    data = problems.make_data("noisy")
    sample, cost = problems.weights_of(data)
    for array in (data.X, data.y, sample, cost):
        array.setflags(write=False)
    problem = problems.make_problem(data, name, features=features, sample_weight=sample, cost_weight=cost)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a division by a weight of zero is a warning that users see
        solution = make_solver(solver).solve(problem, Limits(1e-3, max_passes=500))
    assert np.isfinite(solution.theta).all()


def test_weight_two_is_the_row_twice():
    data = problems.make_data("noisy", n=30)
    weights = np.random.default_rng(0).integers(0, 4, size=30).astype(float)
    rows = np.repeat(np.arange(30), weights.astype(int))
    for solver in [each for each in SOLVERS if FEATURES[each] == problems.LINEAR]:
        weighted = problems.make_problem(data, "zero_one", C=4.0, sample_weight=weights)
        repeated = Problem(type(weighted.features)(data.X[rows], 3), weighted.loss, data.y[rows], weighted.lam)
        tol = max(1e-8, problems.precision(solver))
        one = make_solver(solver).solve(weighted, Limits(tol, max_seconds=HANG))
        other = make_solver(solver).solve(repeated, Limits(tol, max_seconds=HANG))
        assert weighted.primal(one.theta) == pytest.approx(repeated.primal(other.theta), rel=10 * tol)
        assert repeated.primal(one.theta) == pytest.approx(repeated.primal(other.theta), rel=10 * tol)


# ---- the referee ----------------------------------------------------------------------------------------------------
@pytest.fixture
def solved():
    problem = slow_problem(C=1.0)
    return problem, make_solver("dual").solve(problem, Limits(1e-6))


def test_certify_recomputes_everything(solved):
    problem, solution = solved
    certificate = certify(problem, solution, 1e-5)
    F = problem.features.X @ solution.theta
    value = problem.loss.oracle_reference(F, problem.y).value.mean() + 0.5 * problem.lam * (solution.theta**2).sum()
    theta = -problem.features.X.T @ solution.R / (problem.lam * len(problem.y))
    dual = problem.loss.offset_reference(solution.R, problem.y).mean() - 0.5 * problem.lam * (theta**2).sum()
    assert certificate.primal == pytest.approx(value, rel=1e-12)
    assert certificate.dual == pytest.approx(dual, rel=1e-12)
    assert certificate.gap == pytest.approx(value - dual, abs=1e-14)
    assert certificate.relative_gap == pytest.approx((value - dual) / value, abs=1e-13)
    assert (certificate.converged, certificate.status, certificate.solver) == (True, "converged", "dual")


def test_certify_does_not_believe_the_solver(solved):
    problem, solution = solved
    worse = dataclasses.replace(solution, theta=solution.theta + 0.5)
    certificate = certify(problem, worse, 1e-5)
    assert not certificate.converged
    assert certificate.status == "gap_above_tolerance"
    modest = dataclasses.replace(solution, status="max_passes")
    assert certify(problem, modest, 1e-5).converged


def test_certify_of_any_feasible_pair_is_a_gap(solved):
    problem, solution = solved
    random = np.random.default_rng(0)
    for scale in (0.0, 0.1, 1.0, 100.0):
        q = random.dirichlet(np.ones(problem.loss.n_classes), size=len(problem.y))
        R = q - np.eye(problem.loss.n_classes)[problem.y]
        pair = dataclasses.replace(solution, theta=scale * random.normal(size=solution.theta.shape), R=R)
        certificate = certify(problem, pair, 1e-5)
        assert certificate.gap > 0
        assert certificate.dual <= problem.primal(solution.theta)
        assert not certificate.converged


def test_certify_refuses_a_dual_point_that_proves_too_much(solved):
    """A dual value above the primal is no proof: such a point lies outside its set (here r no longer sums to zero)."""
    problem, solution = solved
    worse = dataclasses.replace(solution, R=solution.R - 1e-3)
    assert problem.dual(worse.R) > problem.primal(solution.theta)
    certificate = certify(problem, worse, 1e-5)
    assert certificate.dual == -np.inf
    assert not certificate.converged
    assert certificate.status == "infeasible_dual"


def test_certify_never_calls_a_dual_value_above_the_primal_converged(solved):
    """However little it lies above, and however loose the tolerance: what is within it in size is no gap below 0."""
    problem, solution = solved
    for excess in (1e-3, 1e-4, 1e-5):
        certificate = certify(problem, dataclasses.replace(solution, R=solution.R - excess), 0.5)
        assert not (certificate.converged and certificate.dual > certificate.primal * (1 + 1e-8))


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_certify_of_a_broken_iterate_is_not_converged(solved, broken):
    problem, solution = solved
    with np.errstate(all="ignore"):
        certificate = certify(problem, dataclasses.replace(solution, theta=np.full_like(solution.theta, broken)), 1e-5)
    assert not certificate.converged
    assert certificate.status != "converged"


def test_certify_without_a_dual_point(solved):
    problem, solution = solved
    certificate = certify(problem, dataclasses.replace(solution, R=None), 1e-5)
    assert isinstance(certificate, Certificate)
    assert np.isnan(certificate.dual)
    assert np.isnan(certificate.gap)
    assert not certificate.converged
    assert certificate.status != "converged"


# ---- the registry ---------------------------------------------------------------------------------------------------
def test_unknown_solver_and_options_are_named():
    assert set(SOLVERS) <= set(solver_names())
    with pytest.raises(ConfigError, match="newton"):
        make_solver("neuton")
    with pytest.raises(ConfigError, match="solver=dual"):
        make_solver("dual", no_such_option=3)


def test_solvers_say_what_they_lack():
    data = problems.make_data("noisy")
    threshold = problems.make_problem(data, "zero_one", features="threshold")
    assert "linear" in make_solver("dual").lacks(threshold)
    general = problems.make_problem(data, "general")
    assert make_solver("newton").lacks(general) is None
    assert make_solver("dual").lacks(general) is None
    wide = problems.make_problem(data, "zero_one", X=np.zeros((len(data.y), 50_000)))
    assert "150000" in make_solver("newton").lacks(wide)
    assert make_solver("auto").lacks(wide) is None


def test_sparse_rows_have_a_solver():
    data = problems.make_data("noisy")
    sparse = problems.make_problem(data, "zero_one", X=sp.csr_array(data.X))
    assert make_solver("dual").lacks(sparse) is None
    assert make_solver("auto").lacks(sparse) is None


def test_auto_uses_both_solvers_where_the_block_method_crawls():
    easy, hard = slow_problem(C=2.0**-8), slow_problem(C=2.0**16)
    assert make_solver("auto").solve(easy, Limits(1e-3)).solver == "dual"
    solution = make_solver("auto").solve(hard, Limits(1e-6))
    assert "newton" in solution.solver
    assert certify(hard, solution, 1e-6).converged


def test_problem_scales():
    """C and lambda are one thing, n is the sum of the sample weights, and cost weights are those of w S(f / w)."""
    data = problems.make_data("noisy", n=10)
    sample, cost = problems.weights_of(data)
    problem = problems.make_problem(data, "zero_one", C=3.0, sample_weight=sample, cost_weight=cost)
    assert problem.n == sample.sum()
    assert problem.lam == pytest.approx(1.0 / (3.0 * sample.sum()))
    assert pytest.approx(3.0) == problem.C
    theta = np.random.default_rng(0).normal(size=(3, 3))
    F = data.X @ theta
    loss = make_loss("zero_one", 3)
    by_hand = sum(s * w * loss.oracle_reference(f[None] / w, y[None]).value[0] for s, w, f, y in zip(sample, cost, F, data.y, strict=True))
    assert problem.primal(theta) == pytest.approx(0.5 * problem.lam * (theta**2).sum() + by_hand / sample.sum(), rel=1e-12)
    R = np.eye(3)[(data.y + 1) % 3] - np.eye(3)[data.y]
    expected = -data.X.T @ (sample[:, None] * R) / (problem.lam * sample.sum())
    assert np.abs(problem.parameters(R) - expected).max() <= 1e-12 * np.abs(expected).max()
    assert isinstance(Solution(theta, None, 1.0, "x", 0.0, 0.0).memory, dict)
