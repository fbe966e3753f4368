"""Many classes on sparse rows: which solver takes them, and dual points that are CSR matrices, from the referee to a warm start."""

import numpy as np
import pytest
import scipy.sparse as sp
from support import random_problems

from advcli.core.errors import ConfigError
from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems import risk as problems
from advcli.problems.certificate import certify, settle
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.auto import choose
from advcli.solvers.coordinate import class_lists, threaded


def documents(k, name="zero_one", n=80, d=30, weights=False):
    random = np.random.default_rng(k)
    X = sp.random_array((n, d), density=0.2, rng=random, format="csr")
    sample, cost = (random.uniform(0.5, 2.0, n), random.uniform(0.5, 2.0, n)) if weights else (None, None)
    return Problem(LinearFeatures(X, k), make_loss(name, k), random.integers(0, k, n), 0.02, sample, cost)


def test_auto_takes_lists_for_many_classes():
    def names(problem):
        return [solver.name for solver in choose(problem).solvers]

    assert names(documents(1000)) == names(documents(1000, "cs")) == ["dual_lists"]
    assert names(documents(999)) == ["dual"]
    assert names(documents(1000, "ww")) == ["dual"]
    found = make_solver("auto").solve(documents(1000), Limits(1e-3))
    assert found.solver == "dual_lists"
    assert "1000 classes" in found.memory["choice"]


def test_threads_are_one_where_problems_are_small(monkeypatch):
    small, solver = documents(50), make_solver("dual_lists", threads="auto")
    assert solver.threads_for(small) == 1
    assert make_solver("dual_lists", threads=3).threads_for(small) == 3
    monkeypatch.setattr(class_lists.ListedDualSolver, "worth", 0)
    monkeypatch.setattr(class_lists.ListedDualSolver, "rows_each", 20)
    monkeypatch.setattr(threaded, "usable_cores", lambda: 16)
    assert solver.threads_for(small) == 4  # 80 rows
    found = solver.solve(small, Limits(1e-4))
    assert found.memory["threads"] == 4
    assert np.array_equal(found.theta, make_solver("dual_lists").solve(small, Limits(1e-4)).theta)
    with pytest.raises(ConfigError, match=r"solver\.threads=0"):
        make_solver("dual_lists", threads=0)
    large = documents(1000)
    assert "4 threads" in make_solver("auto", threads="auto").solve(large, Limits(1e-2)).memory["choice"]


def test_what_lists_lack():
    dense = documents(20)
    dense = Problem(LinearFeatures(dense.features.X.toarray(), 20), dense.loss, dense.y, dense.lam)
    assert "sparse" in make_solver("dual_lists").lacks(dense)
    assert make_solver("dual_lists").lacks(documents(20, "ww")) == "zero_one or cs"
    assert make_solver("dual_lists").lacks(documents(20)) is None


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["zero_one", "cs"])
def test_the_referee_says_the_same_of_a_csr_dual_point(monkeypatch, name, weights):
    problem = documents(120, name, weights=weights)
    dense = make_solver("dual_lists").solve(problem, Limits(1e-5))
    monkeypatch.setattr(class_lists, "_DENSE", 0)
    monkeypatch.setattr(problems, "_SCORES", 4 * 7 * 120)  # parts of seven rows
    monkeypatch.setattr(problems, "_CHUNK", 9 * 120)
    compact = make_solver("dual_lists").solve(problem, Limits(1e-5))
    assert sp.issparse(compact.R)
    assert np.array_equal(compact.R.toarray(), dense.R)
    one, two = certify(problem, dense, 1e-5), certify(problem, compact, 1e-5)
    assert two.converged
    assert two.primal == pytest.approx(one.primal, rel=1e-12)
    assert two.dual == pytest.approx(one.dual, rel=1e-12)
    # the start of another lambda, where r is scaled or kept, and one of a feasible point moved a little
    other = Problem(problem.features, problem.loss, problem.y, 0.5 * problem.lam, problem.sample_weight, problem.cost_weight)
    warm = make_solver("dual_lists").solve(other, Limits(1e-4), compact)
    assert certify(other, warm, 1e-4).converged
    assert sp.issparse(warm.R)
    compact.R = compact.R * (1.0 + 1e-13)
    assert certify(problem, compact, 1e-5).converged
    compact.R = compact.R * 2.0
    assert certify(problem, compact, 1e-5).status == "infeasible_dual"


def test_a_csr_dual_point_worse_than_nothing_is_dropped(monkeypatch):
    monkeypatch.setattr(class_lists, "_DENSE", 0)
    problem = documents(60)
    found = make_solver("dual_lists").solve(problem, Limits(1e-9, max_passes=3))
    found.R = sp.csr_array(np.eye(60)[(problem.y + 1) % 60] - np.eye(60)[problem.y])  # all mass on another class
    settled, _ = settle(problem, found, 1e-9)
    assert settled.R.nnz == 0


@pytest.mark.parametrize("name", ["zero_one", "cs"])
@pytest.mark.parametrize("kind", [kind for kind in random_problems.KINDS_OF_DATA if kind != "large"])
@pytest.mark.parametrize("C", [2.0**-6, 1.0, 32.0])
def test_the_optimum_is_that_of_a_quadratic_program(name, kind, C):
    data = random_problems.make_data(kind)
    problem = random_problems.make_problem(data, name, C=C, X=sp.csr_array(data.X))
    primal, dual = random_problems.optimum(kind, name, C=C)
    found = certify(problem, make_solver("dual_lists").solve(problem, Limits(1e-6, max_passes=200_000)), 1e-6)
    room = 1e-7 * max(abs(primal), 1e-9) + 1e-10
    assert found.converged
    assert found.primal >= dual - room
    assert found.dual <= primal + room
    assert abs(found.primal - primal) <= 1e-6 * found.primal + room
