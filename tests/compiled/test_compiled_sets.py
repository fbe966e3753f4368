"""The levels of sets and the pairwise steps over planes against plain NumPy, at every instruction set."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_planes import pairwise_pass, shuffled
from python_sets import levels
from scipy import sparse

from advcli.compiled import Kernels, compiled_rows, usable_levels
from advcli.learners.structured.planes import Cuts, Planes, Structure

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


class Sentences(Structure):
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
    planes = Planes(structure)
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
    structure = planes.structure
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
