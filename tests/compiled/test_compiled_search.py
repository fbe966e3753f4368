"""The compiled line search and the sums at its end, against the same search by whole block steps and the NumPy tier."""

import numpy as np
import pytest
from support import surrogates as cases

from advcli.core.compiled import Kernels
from advcli.losses import make_loss

C = 5.0


def by_steps(kernels, loss, F, dF, center, y, c, slope, cost, sample, most):
    """Search with all rows at every trial; return t, the block steps there, their faces and the trials."""
    slope0, base, square, factor = slope
    weighted = factor * (dF if sample is None else sample[:, None] * dF)
    low, slope_low, high, slope_high, t = 0.0, slope0, None, 0.0, 1.0
    trials = 0
    while trials < most:
        trials += 1
        last, (R, face) = t, kernels.face(loss.family, scaled(F + t * dF, cost), center, y, c)
        now = base + t * square + float(np.vdot(R, weighted))
        if abs(now) <= 0.5 * abs(slope0):
            break
        if now < 0.0:
            low, slope_low = t, now
            if high is None:
                t *= 2.0
                continue
        else:
            high, slope_high = t, now
        t = low + min(max(slope_low / (slope_low - slope_high), 0.1), 0.9) * (high - low)
    return last, R, face, trials


def scaled(F, cost):
    return F if cost is None else (F - F.max(axis=1, keepdims=True)) / cost[:, None]


def projectors(kernels, loss, face):
    n, k = face.state.shape
    B, owner = kernels.tangents(loss.family, face, np.zeros(n, dtype=bool))
    M = np.zeros((n, k, k))
    kernels.newton_faces.projectors(B, owner, M)
    return M


def line(kernels, loss, n, size, c, weights, seed=0):
    """A line along which psi falls at first, from block steps at random scores; ``size`` tells about how far its minimum is."""
    random = np.random.default_rng([seed, n, loss.n_classes])
    k = loss.n_classes
    center, y = cases.dual_points(loss, n, seed)
    F = random.normal(size=(n, k)) * random.choice([0.3, 1.0, 10.0], size=(n, 1))
    sample = random.integers(0, 3, size=n).astype(np.float64) if "sample" in weights else None
    cost = random.uniform(0.5, 2.0, size=n) if "cost" in weights else None
    R, face = kernels.face(loss.family, scaled(F, cost), center, y, c)
    dF = size * (random.normal(size=(n, k)) - 2.0 * R)
    dF[: n // 2] *= 0.01  # rows that mostly stay where they are
    square = 1e-3 * float(np.vdot(dF, dF))
    total = C * float(np.vdot(R, dF if sample is None else sample[:, None] * dF))
    return F, dF, center, y, c, (0.2 * total, -0.8 * total, square, C), (R, face), cost, sample


def held_to_steps(kernels, loss, F, dF, center, y, c, slope, before, cost, sample, most=40):
    found, scores, R, face, trials = kernels.search(loss.family, F, dF, center, y, c, slope, before, cost, sample, most)
    t, expected, its, count = by_steps(kernels, loss, F, dF, center, y, c, slope, cost, sample, most)
    assert trials == count
    assert found == pytest.approx(t, rel=1e-9)
    np.testing.assert_allclose(scores, F + found * dF, rtol=1e-14, atol=1e-14 * np.abs(F).max())
    assert np.abs(R - expected).max() <= 1e-9 * max(1.0, np.abs(dF).max() / c)
    # a label that just meets its bound may fall on either side
    assert (np.abs(projectors(kernels, loss, face) - projectors(kernels, loss, its)).max(axis=(1, 2)) > 1e-9).mean() <= 0.02
    return trials, found


@pytest.mark.parametrize("name", cases.compiled_names())
@pytest.mark.parametrize("k", [2, 3, 7, 9])
@pytest.mark.parametrize("weights", ["", "sample", "cost", "sample and cost"])
def test_a_search_goes_the_way_of_whole_block_steps(kernels, name, k, weights):
    """Steps that are far too long, about right and far too short."""
    seen = []
    for at, loss in enumerate(cases.surrogates(name, k)):
        for size in (1e-2, 1.0, 30.0):
            given = line(kernels, loss, 61, size, 0.8, weights, seed=at)
            if given[5][0] < 0.0:
                seen.append(held_to_steps(kernels, loss, *given))
    assert max(trials for trials, _ in seen) >= 3
    assert min(t for _, t in seen) < 1.0


@pytest.mark.parametrize("k", [2, 6, 17, 40, 41])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 200])
def test_rows_in_lanes_and_rows_one_by_one(kernels, k, n):
    """Zero-one goes in lanes, up to some number of classes and without cost weights."""
    loss = make_loss("zero_one", k)
    for size in (0.1, 10.0):
        for c in (1e-3, 1.0, 50.0):
            given = line(kernels, loss, n, size, c, "sample" if n > 20 else "")
            if given[5][0] < 0.0:
                held_to_steps(kernels, loss, *given)


def test_scores_that_drown_the_curvature_leave_their_lanes(kernels):
    loss = make_loss("zero_one", 5)
    F, dF, center, y, c, slope, _, cost, sample = line(kernels, loss, 40, 10.0, 1e-17, "")
    before = kernels.face(loss.family, F, center, y, c)
    total = C * float(np.vdot(before[0], dF))
    assert total < 0.0
    slope = (0.2 * total, -0.8 * total, *slope[2:])
    held_to_steps(kernels, loss, F, dF, center, y, c, slope, before, cost, sample)
    assert np.isfinite(kernels.search(loss.family, F, dF, center, y, c, slope, before)[2]).all()


@pytest.mark.parametrize("name", ["zero_one", "cs", "abstain"])
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_the_last_trial_is_taken_where_none_will_do(kernels, name, most):
    """No slope is small enough beside one of 1e-300: the search ends at its limit, at the block steps of the t that it returns."""
    loss = make_loss(name, 4)
    F, dF, center, y, c, slope, before, cost, sample = line(kernels, loss, 50, 3.0, 0.5, "sample")
    slope = (-1e-300, *slope[1:])
    assert held_to_steps(kernels, loss, F, dF, center, y, c, slope, before, cost, sample, most)[0] == most
    t, _, R, _, _ = kernels.search(loss.family, F, dF, center, y, c, slope, before, cost, sample, most)
    assert np.abs(R - kernels.face(loss.family, F + t * dF, center, y, c)[0]).max() <= 1e-12


def test_scores_that_are_no_numbers_end_the_search(kernels):
    loss = make_loss("zero_one", 4)
    F, dF, center, y, c, slope, before, cost, sample = line(kernels, loss, 20, 1.0, 0.5, "")
    dF[3] = np.nan
    assert kernels.search(loss.family, F, dF, center, y, c, slope, before, cost, sample)[4] == 40


@pytest.mark.parametrize("name", cases.compiled_names())
@pytest.mark.parametrize("k", [2, 3, 9, 33])
def test_sums_over_the_rows_are_those_of_the_numpy_tier(kernels, name, k):
    random = np.random.default_rng(k)
    for loss in cases.surrogates(name, k):
        F, _ = cases.score_rows(k, 61)
        R, y = cases.dual_points(loss, 61)
        weight = random.uniform(0.0, 2.0, size=61)
        found = kernels.judge(loss.family, F, R, y, weight)
        value, offset = loss.oracle_reference(F, y).value, loss.offset_reference(R, y)
        gaps = cases.mismatch(loss, F, R, y)
        for mine, terms in zip(found, (value, offset, gaps), strict=True):
            assert mine == pytest.approx(float(weight @ terms), rel=1e-10, abs=1e-10 * float(weight @ (1.0 + np.abs(value))))


@pytest.mark.parametrize("k", [2, 8, 9, 17])
def test_rows_without_a_loss_add_nothing_to_the_sums(kernels, k):
    """r = 0 and a label that leads by 1 or more; a lead with r elsewhere has its gap and its c(r)."""
    random, n, loss = np.random.default_rng(k), 100, make_loss("zero_one", k)
    R, y = cases.dual_points(loss, n)
    R[::2] = 0.0
    F = np.minimum(random.normal(size=(n, k)), 0.0)
    F[np.arange(n), y] = np.resize([1.0, 1.2, 0.7, 1e3], n)
    for chosen in (np.arange(n), np.arange(0, n, 2), np.arange(1, n, 2), np.arange(1)):
        rows = F[chosen], R[chosen], y[chosen]
        weight = random.uniform(0.0, 2.0, size=len(chosen))
        found = kernels.judge(loss.family, *rows, weight)
        value, offset = loss.oracle_reference(F[chosen], y[chosen]).value, loss.offset_reference(R[chosen], y[chosen])
        for mine, terms in zip(found, (value, offset, cases.mismatch(loss, *rows)), strict=True):
            assert mine == pytest.approx(float(weight @ terms), rel=1e-12, abs=1e-12)
    assert kernels.judge(loss.family, 5.0 * np.eye(k)[y], np.zeros((n, k)), y, np.ones(n)) == (0.0, 0.0, 0.0)


def test_gaps_at_large_scores_keep_their_digits():
    """Two labels near a common level of 1e8: a difference of values would keep eight digits."""
    kernels, loss = Kernels(), make_loss("zero_one", 3)
    F = np.array([[0.25, 0.5, -3.0]]) + 1e8
    y, R = np.zeros(1, dtype=np.intp), np.array([[-0.5, 0.5, 0.0]])
    assert kernels.judge(loss.family, F, R, y, np.ones(1))[2] == pytest.approx(0.0, abs=1e-15)
