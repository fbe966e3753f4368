"""The compiled ascent on faces against its algorithm in plain Python, and its optima against an independent solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from advcli.core.compiled import Kernels, compiled_rows, usable_levels

LEVELS = usable_levels()


def quadratic(seed, sparse, pairs=False, most=30, slacks=3):
    """Return rows, directions and their owners, g, slacks and rates of a random problem; some slacks are 0, some rows own nothing.

    With ``pairs``, most rows of one direction have one of three, each in two classes and of either sign, and rows side by side share it.
    """
    random = np.random.default_rng(seed)
    n, d, k = int(random.integers(1, most)), int(random.integers(most, 2 * most)), int(random.integers(3, 9))
    m = int(random.integers(1, 2 * n + 1))
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.5 if sparse else 1.0)
    X[:, 0] = random.random(n) + 0.1
    X /= np.linalg.norm(X, axis=1)[:, None]
    owner = np.sort(random.choice(np.repeat(np.arange(n), 2), size=m, replace=False)).astype(np.intp)
    B = random.normal(size=(m, k)) * (random.random((m, k)) < random.random())
    B[np.arange(m), np.arange(m) % 2] += 2.0  # the two directions of a row differ
    if pairs:
        few = np.zeros((3, k))
        few[0, :2], few[1, 1:3], few[2, [0, 2]] = [np.sqrt(0.5), -np.sqrt(0.5)], [0.6, -0.8], [1.6, 1.2]
        turn = np.repeat(random.integers(0, 3, size=m), random.integers(1, 9, size=m))[:m]
        alone = (np.bincount(owner)[owner] == 1) & (random.random(m) < 0.9)
        B[alone] = (few[turn] * random.choice([-1.0, 1.0], size=m)[:, None])[alone]
    slack, rate = np.zeros((n, 8)), np.zeros((m, 8))
    slack[:, :slacks] = np.maximum(random.normal(size=(n, slacks)), 0.0)
    rate[:, :slacks] = random.normal(size=(m, slacks)) * random.integers(0, 2, size=(m, slacks))
    return sp.csr_array(X) if sparse else X, B, owner, 3.0 * random.normal(size=m), slack, rate


def matrix(X, B, owner):
    """Return G."""
    X = X.toarray() if sp.issparse(X) else X
    return (B @ B.T) * (X @ X.T)[np.ix_(owner, owner)]


def room(slack, rate, length):
    """Return what of a length leaves all slacks at least 0."""
    for s, r in zip(slack, rate, strict=True):
        if s + length * r < 0.0:
            length = -s / r
    return length


def in_python(X, B, owner, g, slack, rate, rounds, sweeps, products, tol):
    """Return z and the slacks where `ascent_faces.ascend` ends, and the rounds made."""
    G = matrix(X, B, owner)
    m, n = len(G), len(slack)
    z, g, slack, most, first, made = np.zeros(m), g.copy(), slack.copy(), products, None, 0
    while made < rounds:
        for _ in range(sweeps):
            held, total = np.zeros(n, dtype=bool), 0.0
            for t in range(m):
                i, wanted = owner[t], g[t] / G[t, t]
                length = room(slack[i], rate[t], wanted)
                held[i] |= length != wanted
                if length != wanted and not length * wanted > 1e-12 * wanted * wanted:
                    continue
                slack[i] = np.maximum(slack[i] + length * rate[t], 0.0)
                z[t] += length
                total += length * length
                g -= length * G[t]
            first = total if first is None else first
            if not total > tol * first:
                break
        made += 1
        if not total > tol * first:
            break
        loose = np.flatnonzero(~held[owner])
        x, residual, p = np.zeros(m), np.zeros(m), np.zeros(m)
        residual[loose] = p[loose] = g[loose]
        square = start = residual @ residual
        flat = None
        for _ in range(most):
            if not square > 1e-4 * start:
                break
            curvature = p @ G @ p
            flat = 1e-12 * curvature / square if flat is None else flat
            if not curvature > flat * (p @ p):
                break
            length = square / curvature
            x += length * p
            residual[loose] -= length * (G @ p)[loose]
            last, square = square, residual @ residual
            p[loose] = residual[loose] + square / last * p[loose]
        move = np.zeros_like(slack)
        np.add.at(move, owner, x[:, None] * rate)
        longer, most = min(2 * most, 100), products
        for number, length in enumerate((1.0, 0.3, 0.3 * 0.3)):
            part = np.array([room(slack[i], move[i], length) for i in range(n)])
            step = part[owner] * x
            if step @ g > 0.5 * step @ G @ step:
                if number == 0 and (part == 1.0).all():
                    most = longer
                slack = np.maximum(slack + part[:, None] * move, 0.0)
                z += step
                g -= G @ step
                break
    return z, slack, made


def compiled(level, problem, *how):
    """Return the same from the compiled ascent."""
    X, B, owner, g, slack, rate = problem
    z, slack = np.zeros(len(B)), slack.copy()
    made = Kernels(level).ascent_faces.ascend(*compiled_rows(X), B, owner, g, slack, rate, z, *how)
    return z, slack, made


@pytest.mark.parametrize("level", LEVELS)
@given(
    seed=st.integers(0, 10**6),
    sparse=st.booleans(),
    pairs=st.booleans(),
    rounds=st.integers(0, 3),
    sweeps=st.integers(1, 3),
    products=st.integers(0, 12),
)
@settings(max_examples=100, deadline=None)
def test_an_ascent_is_its_algorithm(level, seed, sparse, pairs, rounds, sweeps, products):
    problem = quadratic(seed, sparse, pairs)
    how = rounds, sweeps, products, 1e-6
    found, wanted = compiled(level, problem, *how), in_python(*problem, *how)
    scale = 1.0 + np.abs(wanted[0]).max()
    assert found[2] == wanted[2]
    for one, other in zip(found[:2], wanted[:2], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6), pairs=st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_conjugate_gradients_end_at_a_flat_direction(level, seed, pairs):
    """Rows that stand twice with one direction: the second direction of conjugate gradients has no curvature but that of rounding."""
    random = np.random.default_rng(seed)
    X, B = np.repeat(np.eye(pairs + 1)[:pairs], 2, axis=0), random.normal(size=(pairs, 3))
    B = np.repeat(B / np.linalg.norm(B, axis=1)[:, None], 2, axis=0)
    slack, rate = np.zeros((2 * pairs, 8)), np.zeros((2 * pairs, 8))
    slack[:, :2], rate[:, :2] = 1e3, [1.0, -1.0]
    problem = X, B, np.arange(2 * pairs), random.normal(size=2 * pairs), slack, rate
    found, wanted = compiled(level, problem, 1, 1, 10, 0.0), in_python(*problem, 1, 1, 10, 0.0)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6), sparse=st.booleans(), pairs=st.booleans())
@settings(max_examples=60, deadline=None)
def test_an_ascent_rises_within_the_slacks(level, seed, sparse, pairs):
    X, B, owner, g, slack, rate = quadratic(seed, sparse, pairs)
    G, value = matrix(X, B, owner), 0.0
    for rounds in range(1, 5):
        z, left, _ = compiled(level, (X, B, owner, g, slack, rate), rounds, 2, 5, 0.0)
        assert g @ z - 0.5 * z @ G @ z >= value - 1e-12 * (1.0 + abs(value))
        value = g @ z - 0.5 * z @ G @ z
        moved = slack.copy()
        np.add.at(moved, owner, z[:, None] * rate)
        assert left.min() >= 0.0
        np.testing.assert_allclose(left, moved, atol=1e-9 * (1.0 + np.abs(z).max()))


@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_within_a_box_an_ascent_ends_at_the_optimum(level, seed):
    random = np.random.default_rng(seed)
    m = int(random.integers(1, 25))
    A, b = random.normal(size=(m + 5, m)), random.normal(size=m + 5)
    A /= np.linalg.norm(A, axis=0)
    low, high = random.random(m) * random.integers(0, 2, size=m), random.random(m) + 0.01
    slack, rate = np.zeros((m, 8)), np.zeros((m, 8))
    slack[:, 0], slack[:, 1], rate[:, 0], rate[:, 1] = low, high, 1.0, -1.0
    pairs = np.tile([[0.6, -0.8]], (m, 1))
    z, *_ = compiled(level, (A.T, pairs, np.arange(m), A.T @ b, slack, rate), 400, 3, 10, 1e-28)
    wanted = lsq_linear(A, b, bounds=(-low, high), method="bvls", tol=1e-14, max_iter=1000).x
    assert 0.5 * np.square(A @ z - b).sum() <= 0.5 * np.square(A @ wanted - b).sum() * (1.0 + 1e-9) + 1e-12


@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_rows_off_the_corners_hold_a_fraction(level, seed):
    random = np.random.default_rng(seed)
    n, k = int(random.integers(1, 40)), int(random.integers(1, 20))
    R = random.integers(-3, 4, size=(n, k)) + np.where(random.random((n, k)) < 0.5 / k, random.choice([1e-12, 1e-8, 0.3], (n, k)), 0.0)
    rows = np.empty(n, dtype=np.intp)
    count, total = Kernels(level).ascent_faces.off_corners(R, rows)
    fractions = np.abs(R - np.rint(R)) > 1e-9
    assert total == fractions.sum()
    assert rows[:count].tolist() == np.flatnonzero(fractions.any(axis=1)).tolist()
