"""The levels of sets and the pairwise steps over planes against plain NumPy, at every instruction set."""

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from support.python_planes import pairwise_pass, shuffled, swept_pass
from support.python_sets import levels

from advcli.core.compiled import Kernels, compiled_rows, usable_levels
from advcli.solvers.base import Limits
from advcli.solvers.cutting_planes import Cuts, CuttingPlaneProblem, CuttingPlanes, RowSweeps, Turns, Visits, fit_cutting_planes

LEVELS = usable_levels()


@pytest.mark.parametrize("level", LEVELS)
@given(m=st.integers(1, 9), seed=st.integers(0, 10**6), whole=st.booleans())
@settings(max_examples=30, deadline=None)
def test_levels_are_those_of_all_sets_to_the_bit(level, m, seed, whole):
    random = np.random.default_rng(seed)
    U, table = random.normal(size=(3, m)), random.normal(size=2**m)
    if whole:  # many ties
        U, table = np.round(U), np.round(table)
    centre = random.integers(0, 2**m, size=3).astype(np.intp)
    best, label = np.empty((3, m + 1)), np.empty((3, m + 1), dtype=np.intp)
    Kernels(level).sets.levels(U, table, centre, best, label)
    expected = levels(U, table, centre)
    np.testing.assert_array_equal(best, expected[0])
    np.testing.assert_array_equal(label, expected[1])


class Sentences(CuttingPlaneProblem):
    """Examples of several rows, without labels."""

    def __init__(self, random, thin):
        lengths = random.integers(1, 4, size=5)
        self.start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
        self.X = random.normal(size=(self.start[-1], 3)) * (random.random((self.start[-1], 3)) < 0.6)
        self.X = sparse.csr_array(self.X) if thin else self.X
        self.share = random.random(5)
        self.share /= self.share.sum()
        self.K, self.G = int(random.integers(1, 6)), int(random.integers(0, 4))

    def search(self, U, shared, examples):
        raise NotImplementedError


def stored_planes(random, structure):
    """Return random planes, some with weights."""
    planes = CuttingPlanes(structure)
    for _ in range(3):
        few = np.flatnonzero(random.random(structure.n) < 0.8)
        lengths = np.diff(structure.start)[few]
        parts = np.round(random.normal(size=(len(few), structure.width)), 1) * (random.random((len(few), structure.width)) < 0.5)
        parts[np.arange(structure.width) >= structure.G + structure.K * lengths[:, None]] = 0.0
        planes.add(Cuts(sparse.csr_array(parts), random.random(len(few)), np.zeros(0), np.zeros(0), 0), few)
    planes.alpha = random.random(len(planes.owner)) * (random.random(len(planes.owner)) < 0.7)
    planes.feasible()
    return planes


def visit(kernel, planes, W, shared, lam, steps, passes, seed):
    """Return the kernel's gap, alpha, W and shared weights after passes."""
    structure = planes.problem
    products = [structure.X[a:b] @ structure.X[a:b].T for a, b in itertools.pairwise(structure.start)]
    theta = np.zeros((3, kernel.width(structure.K)))
    theta[:, : structure.K] = W.T
    alpha, common = planes.alpha.copy(), shared.copy()
    gap, done = kernel.visits(
        *compiled_rows(structure.X),
        structure.start.astype(np.int64),
        structure.share,
        np.concatenate([np.asarray(each.todense() if sparse.issparse(each) else each).ravel() for each in products]),
        np.concatenate([[0], np.cumsum(np.diff(structure.start) ** 2)]).astype(np.int64),
        planes.start.astype(np.int64),
        planes.parts.indptr.astype(np.int64),
        planes.parts.indices.astype(np.int32),
        planes.parts.data,
        planes.constant,
        alpha,
        theta,
        common,
        structure.K,
        lam,
        steps,
        passes,
        -1.0,
        seed,
    )
    assert done == passes
    return gap, alpha, theta[:, : structure.K].T, common


@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6), thin=st.booleans())
@settings(max_examples=30, deadline=None)
def test_a_visit_is_a_pairwise_step(level, seed, thin):
    # one step on each example: the two planes of a step are equal after it, and rounding then chooses between them
    random = np.random.default_rng(seed)
    structure, lam = Sentences(random, thin), 0.5
    planes = stored_planes(random, structure)
    W, shared = planes.weights(lam)
    found = visit(Kernels(level).planes, planes, W, shared, lam, 1, 1, seed)
    gap = pairwise_pass(planes, lam, W, shared, shuffled(structure.n, seed), 1)
    for mine, expected in zip(found, (gap, planes.alpha, W, shared), strict=True):
        np.testing.assert_allclose(mine, expected, atol=1e-9)


@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6), thin=st.booleans())
@settings(max_examples=30, deadline=None)
def test_visits_raise_the_dual_and_keep_the_weights(level, seed, thin):
    random = np.random.default_rng(seed)
    structure, lam = Sentences(random, thin), 0.5
    planes = stored_planes(random, structure)
    W, shared = planes.weights(lam)
    before = planes.dual(lam, W, shared)
    gap, planes.alpha, W, shared = visit(Kernels(level).planes, planes, W, shared, lam, 10, 2, seed)
    assert planes.outside() <= 1e-12
    exact = planes.weights(lam)
    np.testing.assert_allclose(W, exact[0], atol=1e-9)
    np.testing.assert_allclose(shared, exact[1], atol=1e-9)
    assert planes.dual(lam, *exact) >= before - 1e-10
    assert gap >= -1e-12


class Turned(CuttingPlaneProblem):
    """Single rows whose K coordinates turn."""

    def __init__(self, random, thin, n=6, K=None):
        self.K, self.G = K or int(random.integers(1, 30)), 0
        self.X = random.normal(size=(n, 3)) * (random.random((n, 3)) < 0.6)
        self.X = sparse.csr_array(self.X) if thin else self.X
        self.start, self.share = np.arange(n + 1), np.full(n, 1.0 / n)
        level = np.arange(self.K + 1.0)
        signs = random.choice([-1, 1], size=(n, self.K)).astype(np.int8)
        self.turns = self.own = Turns(signs, level ** random.choice([0.0, 0.5, 1.0]), level)

    def search(self, U, shared, examples):
        gain = self.own.sign[examples] * U
        order = np.argsort(-gain, axis=1, kind="stable")
        h = np.cumsum(np.take_along_axis(gain, order, axis=1), axis=1)
        value = np.column_stack([np.zeros(len(U)), self.own.slope[1:] * h + self.own.offset[1:]])
        best = np.argmax(value, axis=1)
        turned = np.zeros_like(gain)
        np.put_along_axis(turned, order, (np.arange(self.K) < best[:, None]).astype(float), axis=1)
        parts = sparse.csr_array(turned * self.own.sign[examples] * self.own.slope[best][:, None])
        value = value[np.arange(len(U)), best]
        return Cuts(parts, self.own.offset[best], value, value, len(U))


@given(seed=st.integers(0, 10**6), thin=st.booleans())
@example(seed=13365, thin=False)
@settings(max_examples=40, deadline=None)
def test_a_sweep_stores_the_worst_set_of_each_row_and_steps(seed, thin):
    random = np.random.default_rng(seed)
    structure, lam = Turned(random, thin), 0.5
    planes, expected, visits = CuttingPlanes(structure), CuttingPlanes(structure), Visits(structure, seed)
    for turn in range(3):
        planes.alpha = random.random(len(planes.owner)) / 8.0  # weights that no step has brought to a tie
        expected.alpha = planes.alpha.copy()
        # W is not that of the planes, where labels have equal gains but for rounding
        apart = random.normal(size=(structure.K, 3))
        W = planes.weights(lam)[0] + apart
        theta = visits.theta(W)
        state = int(np.random.default_rng(seed + turn).integers(2**63))
        visits.random = np.random.default_rng(seed + turn)
        with mock.patch("advcli.solvers.cutting_planes.PAIRWISE_STEPS", 1):  # rounding decides between ties that a step leaves
            gap = visits.sweep(planes, lam, theta)
        assert gap == pytest.approx(swept_pass(expected, lam, W, shuffled(structure.n, state), 1), abs=1e-9)
        np.testing.assert_allclose(theta[:, : structure.K].T, W, atol=1e-9)
        np.testing.assert_allclose(W, planes.weights(lam)[0] + apart, atol=1e-9)
        np.testing.assert_array_equal(planes.owner, expected.owner)
        np.testing.assert_allclose(planes.parts.toarray(), expected.parts.toarray(), atol=1e-12)
        np.testing.assert_allclose(planes.constant, expected.constant)
        np.testing.assert_allclose(planes.alpha, expected.alpha, atol=1e-9)


@given(seed=st.integers(0, 10**6), thin=st.booleans())
@settings(max_examples=15, deadline=None)
def test_sweeps_by_rows_end_at_the_optimum_of_searches_of_all(seed, thin):
    random = np.random.default_rng(seed)
    structure, lam = Turned(random, thin, n=12, K=5), 0.05
    found = fit_cutting_planes(structure, lam, Limits(2e-3, 5000), seed)
    structure.turns = None
    expected = fit_cutting_planes(structure, lam, Limits(1e-5, 5000), seed)
    assert found.stopped == expected.stopped == "converged"
    assert found.dual <= expected.primal + 1e-12
    assert expected.dual <= found.primal + 1e-12
    cuts = structure.all_cuts(found.W, found.shared)
    assert found.primal == pytest.approx(structure.primal(lam, found.W, found.shared, cuts))
    assert found.planes.outside() <= 1e-12


def test_theta_of_sweeps_is_the_weights_and_the_centre_in_proportion():
    structure, lam = Turned(np.random.default_rng(3), False, n=20, K=4), 0.01
    planes, visits = CuttingPlanes(structure), Visits(structure, 3)
    by_rows = RowSweeps(lam, visits.theta(np.zeros((4, 3))))
    by_rows.run(planes, visits, 13, lambda: "")
    own = visits.theta(planes.weights(lam)[0])
    mixed = (lam * own + by_rows.kappa * by_rows.centre) / (lam + by_rows.kappa)
    np.testing.assert_allclose(by_rows.theta, mixed, atol=1e-10)
    assert np.abs(by_rows.centre).max() > 0.1
