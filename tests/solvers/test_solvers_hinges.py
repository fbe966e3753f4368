"""Hinges that share nothing but the rows: solved as binary problems, to the optimum that the solvers of all surrogates find."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from advcli.features import make_features
from advcli.losses import make_loss
from advcli.losses.rejecting import PairedHingesLoss, RejectingCrammerSingerLoss, RejectingOneVersusAllLoss
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.auto import choose
from advcli.solvers.newton.hinges import HingesSolver


def rows(seed, n=40, d=3, k=3):
    random = np.random.default_rng(seed)
    y = np.r_[np.arange(k), random.integers(k, size=n - k)].astype(np.intp)
    return random, random.normal(size=(n, d)) + random.normal(size=(k, d))[y], y


def problem_of(seed, features="linear", C=1.0, loss=None, weighted=True, sparse=False):
    """Return a problem with both kinds of weights, of which some sample weights are 0; a given kernel is X X'."""
    random, X, y = rows(seed)
    sample = random.integers(0, 3, size=len(y)).astype(float) if weighted else None
    cost = random.uniform(0.5, 2.0, size=len(y)) if weighted else None
    given = X @ X.T if features == "precomputed" else sp.csr_array(X) if sparse else X
    loss = loss or RejectingOneVersusAllLoss(3, 0.3)
    mass = float(len(y) if sample is None else sample.sum())
    return Problem(make_features(features, given, loss.n_classes), loss, y, 1.0 / (C * mass), sample, cost)


@pytest.mark.parametrize("features", ["linear", "precomputed"])
@pytest.mark.parametrize("C", [2.0**-4, 1.0, 2.0**9])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_is_that_of_the_solvers_of_all_surrogates(features, C, weighted):
    for seed in range(3):
        problem = problem_of(seed, features, C, weighted=weighted)
        found = HingesSolver().solve(problem, Limits(1e-7))
        own = certify(problem, found, 1e-7)
        assert own.converged
        assert problem.feasible(found.R)[1] <= 1e-12
        for name in ("newton", "dual")[: 1 + (C <= 1.0)] if features == "linear" else ("kernel_newton",):
            other = certify(problem, make_solver(name).solve(problem, Limits(1e-5)), 1e-5)
            assert other.dual * (1 - 1e-9) <= own.primal
            assert own.dual <= other.primal * (1 + 1e-9)


def test_unequal_hinges_of_several_numbers():
    random = np.random.default_rng(5)
    loss = PairedHingesLoss(random.choice([-1.0, 1.0], size=(3, 4)) * random.uniform(0.1, 3.0, size=(3, 4)))
    problem = problem_of(1, loss=loss)
    best = certify(problem, make_solver("newton").solve(problem, Limits(1e-9)), 1e-9)
    found = certify(problem, HingesSolver().solve(problem, Limits(1e-9)), 1e-9)
    assert found.converged
    assert found.primal == pytest.approx(best.primal, rel=2e-9)
    sparse = replace(problem, features=make_features("linear", sp.csr_array(problem.features.X), loss.n_classes))
    assert HingesSolver().lacks(sparse) is None
    assert certify(sparse, HingesSolver().solve(sparse, Limits(1e-9)), 1e-9).primal == pytest.approx(best.primal, rel=2e-9)


@pytest.mark.parametrize("features", ["linear", "precomputed"])
def test_a_start_is_taken_and_one_of_other_rows_is_not(features):
    problem = problem_of(2, features, 8.0)
    first = HingesSolver().solve(problem, Limits(1e-6))
    again = HingesSolver().solve(problem, Limits(1e-6), first)
    assert again.passes <= 2.0 < first.passes + 2.0
    assert certify(problem, again, 1e-6).converged
    block = make_solver("newton" if features == "linear" else "kernel_dual").solve(problem, Limits(1e-6))
    assert HingesSolver().solve(problem, Limits(1e-6), block).passes <= 2.0
    stranger = replace(first, R=np.zeros((3, problem.loss.n_classes)))
    anew = HingesSolver().solve(problem, Limits(1e-6), stranger)
    assert np.array_equal(anew.theta, first.theta)


def test_a_limit_of_passes_is_kept_and_told():
    problem = problem_of(3, C=2.0**12)
    found = HingesSolver().solve(problem, Limits(1e-12, max_passes=3.0))
    assert found.status == "max_passes"
    assert found.passes <= 3.0
    assert certify(problem, found, 1e-12).gap >= 0.0


@pytest.mark.parametrize("features", ["linear", "precomputed"])
def test_auto_takes_it_and_says_so(features):
    problem = problem_of(4, features)
    assert [type(solver) for solver in choose(problem).solvers] == [HingesSolver]
    found = make_solver("auto").solve(problem, Limits(1e-6))
    assert found.solver == "binary"
    assert found.memory["choice"] == "binary: hinges that share nothing but 40 rows"


def test_what_it_does_not_take():
    def lacks(problem):
        return HingesSolver().lacks(problem) or ""

    assert "nothing but the rows" in lacks(problem_of(0, loss=RejectingCrammerSingerLoss(3, 0.3)))
    assert "nothing but the rows" in lacks(problem_of(0, loss=make_loss("cs", 3)))
    problem = problem_of(0)
    assert "ball" in lacks(replace(problem, tolerance=np.ones(problem.features.shape)))
    assert "threshold" not in lacks(problem)
    assert "linear or kernel" in lacks(replace(problem, features=make_features("threshold", problem.features.X, 6)))
    _, X, y = rows(0, n=600)
    small = make_features("rbf", X, 6, memory_mb=2.5)
    assert "memory_mb" in lacks(Problem(small, RejectingOneVersusAllLoss(3, 0.3), y, 1.0 / 600))
    assert make_solver("auto").solve(Problem(small, RejectingOneVersusAllLoss(3, 0.3), y, 1.0 / 600), Limits(1e-2)).solver != "binary"
