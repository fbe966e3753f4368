"""The stochastic solvers: where their dual points come from, what their options do, and how they refuse wrong ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from support import random_problems as problems

from advcli.core.errors import ConfigError
from advcli.core.paths import conf_dir
from advcli.problems.certificate import certify
from advcli.solvers import Limits, make_solver, solver_names, solvers_for_a_box
from advcli.solvers.base import registry
from advcli.solvers.best import Best
from advcli.solvers.stochastic.passes import Passes
from advcli.solvers.stochastic.subgradient import SgdDescent


@pytest.mark.parametrize("name", ["zero_one", "absolute", "ww", "general"])
@pytest.mark.parametrize("weights", [False, True])
def test_after_every_whole_pass_sgd_stands_where_its_mean_answers_say(name, weights):
    """theta = theta(r) with r the mean answers: the gap of SGD is a duality gap of its own iterate."""
    data = problems.make_data("noisy")
    sample, cost = problems.weights_of(data) if weights else (None, None)
    problem = problems.make_problem(data, name, C=3.0, sample_weight=sample, cost_weight=cost)
    descent = SgdDescent(Passes(problem), Best(problem), None, "none")
    random = np.random.default_rng(0)
    for _ in range(5):
        descent.run(random.permutation(len(data.y)))
        theta = descent.passes.shaped(descent.state[0] * descent.theta)
        spanned = problem.parameters(descent.R[:, : data.n_classes])
        assert np.abs(theta - spanned).max() <= 1e-10 * np.abs(spanned).max()
        assert problems.outside(problem, descent.R[:, : data.n_classes]) <= 1e-12


def test_the_gap_of_sgd_falls_like_one_over_the_passes():
    problem = problems.make_problem(problems.make_data("noisy", n=60), "zero_one", C=1.0)
    gaps = []
    for passes in (40, 400, 4000):
        solution = make_solver("sgd").solve(problem, Limits(1e-12, max_passes=passes))
        gaps.append(certify(problem, solution, 1e-12).gap)
    assert gaps[1] < 0.5 * gaps[0]
    assert gaps[2] < 0.5 * gaps[1]


@pytest.mark.parametrize("features", [problems.LINEAR, "precomputed"])
@pytest.mark.parametrize("options", [{"averaging": "late"}, {"averaging": "uniform"}, {"projection": True}, {"sampling": "permutation"}])
def test_every_option_of_pegasos_reaches_the_optimum(features, options):
    problem = problems.make_problem(problems.make_data("noisy"), "zero_one", features=features)
    solution = make_solver("pegasos", **options).solve(problem, Limits(1e-2, max_passes=20_000))
    assert certify(problem, solution, 1e-2).converged
    primal, _ = problems.optimum("noisy", "zero_one")
    assert problem.primal(solution.theta) <= primal * 1.011


def test_projection_keeps_the_iterate_in_a_ball_that_holds_the_optimum():
    problem = problems.make_problem(problems.make_data("noisy"), "zero_one", C=50.0)
    radius = np.sqrt(2.0 * problem.primal(np.zeros(problem.features.shape)) / problem.lam)
    best = make_solver("newton").solve(problem, Limits(1e-8))
    assert np.linalg.norm(best.theta) <= radius
    free, held = (SgdDescent(Passes(problem), Best(problem), None, "none", each) for each in (0.0, float(radius)))
    order = np.random.default_rng(0).integers(len(problem.y), size=3)  # the first steps are the long ones
    norms = []
    for descent in (free, held):
        descent.run(order)
        norms.append(np.linalg.norm(descent.state[0] * descent.theta))
    assert norms[1] <= radius * (1 + 1e-9)
    assert norms[1] < norms[0]


@pytest.mark.parametrize("solver", ["adagrad", "adam", "sag"])
def test_a_given_batch_and_step_are_used(solver):
    data = problems.make_data("noisy")
    for X in (data.X, sp.csr_array(data.X)):
        problem = problems.make_problem(data, "zero_one", X=X)
        solution = make_solver(solver, step=0.5, batch=4).solve(problem, Limits(3e-2, max_passes=20_000))
        assert certify(problem, solution, 3e-2).converged


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        ("sgd", {"averaging": "lat"}, "late"),
        ("pegasos", {"sampling": "permute"}, "permutation"),
        ("pegasos", {"averaging": None}, "averaging"),
        ("adagrad", {"step": 0.0}, "step"),
        ("adam", {"batch": 0}, "batch"),
        ("adam", {"beta1": 1.0}, "beta1"),
        ("adam", {"beta2": 0.0}, "beta2"),
        ("sag", {"step": -1}, "step"),
        ("sag", {"batch": 2.5}, "batch"),
        ("lbfgs", {"pairs": 0}, "pairs"),
    ],
)
def test_wrong_options_are_one_line(solver, options, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make_solver(solver, **options)
    assert "\n" not in str(caught.value)


def test_they_are_there_for_comparison_alone():
    folder = conf_dir() / "solver"
    for name in solver_names():
        chosen = registry.get(name)
        stochastic = chosen.__module__.startswith("advcli.solvers.stochastic.")
        assert chosen.comparison == stochastic
        assert (folder / f"{name}.yaml").read_text(encoding="utf-8").startswith("# For comparison: ") == stochastic
    assert solvers_for_a_box() == ["auto", "box", "lbfgs"]


def test_what_they_lack_is_said():
    data = problems.make_data("noisy")
    kernel = problems.make_problem(data, "zero_one", features="precomputed")
    for solver in ("sgd", "adagrad", "adam", "sag", "lbfgs", "interior_point"):
        assert "explicit parameters" in make_solver(solver).lacks(kernel)
    threshold = problems.make_problem(data, "ww", features="threshold")
    for solver in ("sgd", "lbfgs"):
        assert "distributions" in make_solver(solver).lacks(threshold)
    assert "kernel" in make_solver("pegasos").lacks(threshold)
    assert "adversarial" in make_solver("interior_point").lacks(problems.make_problem(data, "ww"))
    assert make_solver("sgd").lacks(problems.make_problem(data, "general")) is None
