"""solver=auto: the solver that suits a problem, and one line that says which and why."""

import numpy as np
import pytest
import scipy.sparse as sp
from support import random_problems as problems

from advcli.core.errors import ConfigError
from advcli.features import make_features
from advcli.learners.surrogate import SurrogateClassifier
from advcli.losses import make_loss
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.auto import choose
from advcli.solvers.coordinate import threaded


def names(problem):
    return [solver.name for solver in choose(problem).solvers]


def problem_of(name="zero_one", features=problems.LINEAR, d=3, sparse=False, **more):
    data = problems.make_data("noisy")
    X = np.random.default_rng(0).normal(size=(len(data.y), d)) if d != 3 else data.X
    return problems.make_problem(data, name, features=features, X=sp.csr_array(X) if sparse else X, **more)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (problem_of(), ["dual", "newton"]),
        (problem_of("llw"), ["dual", "newton"]),
        (problem_of(d=5000), ["dual"]),
        (problem_of(d=5000, sparse=True), ["dual"]),
        (problem_of("absolute", "threshold"), ["newton", "interior_point", "newton"]),
        (problem_of("absolute", "threshold", d=7000, sparse=True), ["lbfgs"]),
        (problem_of("general", "threshold"), ["newton", "interior_point", "newton"]),
        (problem_of("general", "threshold", d=7000, sparse=True), ["lbfgs"]),
        (problem_of(features="precomputed"), ["kernel_dual", "kernel_newton"]),
    ],
)
def test_choice(problem, expected):
    assert names(problem) == expected
    if not all(solver.lacks(problem) is None for solver in choose(problem).solvers):
        raise AssertionError("auto chose a solver that lacks something")
    assert not any(solver.comparison for solver in choose(problem).solvers)
    assert make_solver("auto").lacks(problem) is None


def test_the_reason_names_what_decided():
    assert "15000 parameters" in choose(problem_of(d=5000)).reason
    assert "newton needs at most" in choose(problem_of(d=5000)).reason
    assert "sparse" in choose(problem_of(sparse=True)).reason
    assert "dual needs multiclass linear features" in choose(problem_of("absolute", "threshold")).reason


@pytest.mark.parametrize("features", [problems.LINEAR, "threshold", "precomputed"])
@pytest.mark.parametrize("C", [2.0**-4, 2.0**12])
def test_the_solution_says_what_was_taken(features, C):
    problem = problem_of("absolute", features, C=C)
    solution = make_solver("auto").solve(problem, Limits(1e-3))
    choice = solution.memory["choice"]
    assert choice.startswith(f"{solution.solver}: ")
    assert "\n" not in choice
    assert "24 rows" in choice


def test_what_no_solver_takes_is_said():
    problem = problem_of("ww", "threshold")
    assert "distributions" in make_solver("auto").lacks(problem)


@pytest.mark.parametrize(("C", "taken"), [(2.0**-4, "dual"), (2.0**10, "dual+newton")])
def test_labels_that_move_alone_are_left_to_the_ascent_at_small_strengths_alone(C, taken):
    """Passes of ascent are many times as fast at small C (benchmarks/journal/benchopt.md); at large C they end at the look."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 6)), random.integers(0, 4, size=300).astype(np.intp)
    problem = Problem(make_features("linear", X, 4), make_loss("llw", 4), y, 1.0 / (C * 300))
    solution = make_solver("auto").solve(problem, Limits(1e-3))
    assert (solution.status, solution.solver) == ("converged", taken)
    assert taken == "dual" or solution.passes - solution.memory["newton_steps"] < 60.0


def test_the_estimator_tells():
    data = problems.make_data("noisy")
    assert SurrogateClassifier(C=0.1).fit(data.X, data.y).solver_choice_.startswith("dual: 12 parameters, 24 rows")
    assert SurrogateClassifier(C=0.1, solver="newton").fit(data.X, data.y).solver_choice_ == ""


def test_threads_are_one_unless_asked_for_and_then_said(monkeypatch):
    small, large = problem_of(), problem_of(d=5000)
    assert "threads" not in choose(small).reason
    assert "2 threads" in choose(small, 2).reason
    assert "2 threads for the certificate" in choose(problem_of(d=5000, sparse=True), 2).reason
    assert choose(small, "auto").solvers[0].threads_for(small) == 1
    found = [make_solver(name, threads=2).solve(small, Limits(1e-6)) for name in ("dual", "auto", "dual")]
    assert "2 threads" in found[1].memory["choice"]
    assert found[0].memory["threads"] == 2
    assert np.array_equal(found[0].theta, found[2].theta)
    one = make_solver("dual").solve(small, Limits(1e-6))
    assert small.primal(found[0].theta) == pytest.approx(small.primal(one.theta), rel=2e-6)
    monkeypatch.setattr(threaded.ThreadedSolver, "worth", 1.0)
    monkeypatch.setattr(threaded.ThreadedSolver, "rows_each", 2)
    monkeypatch.setattr(threaded, "usable_cores", lambda: 3)
    assert choose(large, "auto").solvers[0].threads_for(large) == 3


def test_a_turn_ends_early_where_the_gap_falls_too_slowly_for_it():
    slow, quick = problem_of(C=2.0**12), problem_of(C=2.0**-2)
    solver = make_solver("dual")
    turn, both = Limits(1e-9, turn=200.0), Limits(1e-9, turn=200.0, look=20.0)
    assert solver.solve(slow, turn).passes >= turn.turn
    left = solver.solve(slow, both)
    assert left.status == "max_passes"
    assert both.look <= left.passes < 2.0 * both.look
    # where the turn will do, the look changes no bit
    through, looked = solver.solve(quick, turn), solver.solve(quick, both)
    assert both.look < looked.passes == through.passes < turn.turn
    assert looked.status == "converged"
    assert np.array_equal(looked.theta, through.theta)


@pytest.mark.parametrize("threads", [0, -1, 257, 1.5, True, "two", None, float("nan")])
def test_threads_that_nobody_means_are_refused(threads):
    for name in ("dual", "auto", "newton", "kernel_newton"):
        with pytest.raises(ConfigError, match=r"solver\.threads"):
            make_solver(name, threads=threads)
