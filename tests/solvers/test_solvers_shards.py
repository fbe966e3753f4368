"""Rows in shards: sums that make the objective of all rows whatever the shards, and workers that die without a trace in the result."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import random_problems as problems
from support.sharded_problems import Alone, weighted_problem

from advcli.core.errors import ConfigError, KilledError
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.shards import rows
from advcli.solvers.shards.rows import Move, RemoteDualPoint, Rounds, Shard, ShardedObjective, Whole, WorkerLost, Workers, split
from advcli.solvers.shards.solver import DistributedSolver
from advcli.solvers.smoothing import SmoothedObjective


class Mortal(Workers):
    """Workers of which some die before they answer, at random calls; what they knew is lost."""

    def __init__(self, makers, seed, share, most=10**9):
        super().__init__(makers)
        self.random, self.share, self.left = np.random.default_rng(seed), share, most

    def receive(self, at, awaited):
        if self.left and self.random.random() < self.share:
            self.left -= 1
            del self.held[at]
            raise WorkerLost("a test")
        return super().receive(at, awaited)


class Dying(DistributedSolver):
    """The solver with mortal workers in this process."""

    seed, share, most = 0, 0.03, 10**9

    def held(self, makers):
        self.made = Mortal(makers, self.seed, self.share, self.most)
        return self.made


def rounds_of(problem, count, centre=None):
    centre = np.zeros((len(problem.y), problem.loss.n_classes)) if centre is None else centre
    return Rounds(Workers([(Shard, each) for each in split(problem, centre, count)]))


LOSSES = ("zero_one", "absolute", "llw", "general", "ww", "cs")


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(LOSSES),
    seed=st.integers(0, 9),
    count=st.integers(1, 40),
    block=st.integers(1, 41),
    sparse=st.booleans(),
    mu=st.floats(0.01, 9),
)
def test_sums_of_the_shards_are_the_objective_of_all_rows(name, seed, count, block, sparse, mu):
    problem = weighted_problem(name, seed, sparse=sparse)
    random = np.random.default_rng(seed)
    first, theta = random.normal(size=(2, *problem.features.shape))
    whole = Whole(problem.n, problem.lam, problem.least_scale)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_BLOCK", 4 * block)  # of 4 classes
        rounds = rounds_of(problem, count)
        moved = ShardedObjective(rounds, whole, RemoteDualPoint(0, first, 2.0 * mu), mu)
        point = moved.at(theta)
        R = np.concatenate(rounds.ask("dual_point", point.R))
        before = np.concatenate(rounds.ask("dual_point", RemoteDualPoint(0, first, 2.0 * mu)))
        judged = rounds.total("judge", theta, point.R)
    centre = SmoothedObjective(problem, np.zeros((len(problem.y), problem.loss.n_classes)), 2.0 * mu).at(first).R
    smoothed = SmoothedObjective(problem, centre, mu)
    expected = smoothed.at(theta)
    close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12)
    close(before, centre)
    close(R, expected.R)
    close(point.value, expected.value)
    close(point.gradient, expected.gradient)
    close(moved.gaps(point)[:3], smoothed.gaps(expected)[:3], atol=1e-11)
    close(problem.penalty(theta) + judged.value / problem.n, problem.primal(theta))
    close(whole.dual(judged.offset, judged.gradient), problem.dual(expected.R))
    assert judged.outside <= 1e-12


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("count", [2, 7, 100])
def test_optimum_whatever_the_shards(name, count):
    """A few, or more workers than rows: the optimum that Newton steps on all rows find."""
    problem = weighted_problem(name, n=24)
    found = certify(problem, Alone(workers=count).solve(problem, Limits(1e-7)), 1e-7)
    other = certify(problem, make_solver("newton").solve(problem, Limits(1e-8)), 1e-8)
    assert found.converged
    assert other.converged
    assert abs(found.primal - other.primal) <= 1e-6 * abs(other.primal)


@pytest.mark.parametrize("seed", range(5))
def test_workers_that_die_leave_no_trace(seed):
    """The same bits as without deaths, whenever they happen, with moves made before."""
    problem = weighted_problem(C=64.0)
    untouched = Alone(workers=3).solve(problem, Limits(1e-6))
    solver = Dying(workers=3, restarts=10**6)
    solver.seed = seed
    found = solver.solve(problem, Limits(1e-6))
    assert found.memory["restarted"] > 5
    assert len(solver.made.makers) == 3
    assert np.array_equal(found.theta, untouched.theta)
    assert np.array_equal(found.R, untouched.R)
    assert (found.passes, found.status) == (untouched.passes, untouched.status)


def test_worker_that_always_dies_ends_the_fit_in_one_line():
    solver = Dying(workers=2, restarts=2)
    solver.share = 1.0
    with pytest.raises(KilledError, match=r"^solver=distributed: worker 1 of 2 died 3 times \(a test\); the fit has no result: .*$"):
        solver.solve(weighted_problem(), Limits(1e-6))


def test_no_more_deaths_than_allowed():
    problem = weighted_problem()
    solver = Dying(workers=2, restarts=2)
    solver.share, solver.most = 1.0, 2
    assert certify(problem, solver.solve(problem, Limits(1e-6)), 1e-6).converged


def test_workers_know_centres_of_before():
    problem = weighted_problem()
    random = np.random.default_rng(0)
    thetas = random.normal(size=(4, *problem.features.shape))
    rounds = rounds_of(problem, 3)
    seen, points = [], [RemoteDualPoint(0, None, 0.0)]
    for at, theta in enumerate(thetas):
        points += [RemoteDualPoint(at, theta, 0.5)]
        seen += [np.concatenate(rounds.ask("dual_point", points[-1]))]
        rounds.moves.append(Move(theta, 0.5))
    assert not np.concatenate(rounds.ask("dual_point", points[0])).any()
    for point, R in zip(points[1:], seen, strict=True):
        assert np.array_equal(np.concatenate(rounds.ask("dual_point", point)), R)
        assert np.array_equal(np.concatenate(rounds.ask("dual_point", RemoteDualPoint(point.moves + 1, None, 0.0))), R)


def test_worker_refuses_moves_that_do_not_follow_its_own():
    shard = Shard(weighted_problem())
    theta = np.zeros((3, 4))
    shard.sums(0, [Move(theta, 1.0)], theta, 1.0)
    with pytest.raises(RuntimeError, match="made 1 moves and is told of 0"):
        shard.sums(0, [Move(theta, 1.0)], theta, 1.0)


def test_rounds_count_what_moves():
    problem = weighted_problem()
    rounds = rounds_of(problem, 2)
    rounds.total("sums", np.zeros((3, 4)), 1.0)
    # to each worker the moves it knows, theta and mu; back four sums and the gradient
    assert (rounds.count, rounds.moved) == (1, 2 * (8 + 96 + 8 + 32 + 96))


def test_warm_start_at_another_lambda():
    problem = weighted_problem(C=4.0)
    solver = Alone(workers=3)
    before = solver.solve(problem, Limits(1e-7))
    near = Problem(problem.features, problem.loss, problem.y, problem.lam * 0.9, problem.sample_weight, problem.cost_weight)
    warm, cold = solver.solve(near, Limits(1e-5), before), solver.solve(near, Limits(1e-5))
    assert certify(near, warm, 1e-5).converged
    assert warm.passes < cold.passes


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"workers": 0}, "solver.workers=0 is not valid"),
        ({"workers": 2.5}, "solver.workers=2.5 is not valid"),
        ({"restarts": 0}, "solver.restarts=0 is not valid"),
        ({"pairs": 0}, "solver.pairs=0 is not valid"),
        ({"address": 7}, "solver.address=7 is not valid"),
        ({"address": " "}, "solver.address=' ' is not valid"),
        ({"wokers": 2}, "did you mean solver.workers"),
    ],
)
def test_options_that_cannot_be_used(options, text):
    with pytest.raises(ConfigError, match=text):
        make_solver("distributed", **options)


@pytest.mark.parametrize("features", ["threshold", "precomputed"])
def test_features_that_it_does_not_take(features):
    problem = problems.make_problem(problems.make_data("noisy"), "zero_one", features=features)
    assert make_solver("distributed").lacks(problem) == "linear features"
