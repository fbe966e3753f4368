"""The compiled ascent by pairs against one in plain Python."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.python_pairs import EACH, ORDERED, SUM, ascend, dual_value, signs_of

from advcli.core.compiled import Kernels, usable_levels

LEVELS = usable_levels()


def drawn(seed, most_rows=11, most_thresholds=4):
    """Return labels, upper ends, a kernel matrix and offsets; some rows absent, some terms too, some kernels singular."""
    random = np.random.default_rng(seed)
    n, m = int(random.integers(1, most_rows)), int(random.integers(1, most_thresholds))
    y = random.integers(0, m + 1, size=n).astype(np.intp)
    U = np.exp(random.normal(size=(m, n))) * (random.random((m, n)) < 0.8)
    X = random.normal(size=(n, int(random.integers(1, 4)))) * random.choice([0.3, 2.0])
    offset = random.normal(size=n) if seed % 2 else np.empty(0)
    return y, U, np.ascontiguousarray(X @ X.T), offset


def run(level, y, U, K, offset, coupling, tol, most=10**5):
    alpha, g = np.zeros(U.shape), np.zeros(len(y))
    steps, gap = Kernels(level).ascent_pairs.ascend(y, U, K, offset, coupling, alpha, g, tol, most)
    return alpha, g, steps, gap


@pytest.mark.parametrize("coupling", [EACH, ORDERED, SUM])
@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6))
@example(seed=726173)  # the row that grows most is its own partner of largest gain, by rounding
@settings(max_examples=25, deadline=None)
def test_the_ascent_ends_where_the_reference_does(level, coupling, seed):
    y, U, K, offset = drawn(seed)
    shift = offset if len(offset) else np.zeros(len(y))
    best = dual_value(y, K, shift, coupling, ascend(y, U, K, shift, coupling))
    alpha, _, _, gap = run(level, y, U, K, offset, coupling, 1e-7)
    assert dual_value(y, K, shift, coupling, alpha) == pytest.approx(best, rel=2e-7, abs=1e-9)
    assert gap <= 1e-7 or best <= 1e-7  # a gap relative to an optimum of 0 may stay what it is


@pytest.mark.parametrize("coupling", [EACH, ORDERED, SUM])
@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6), most=st.integers(0, 60))
@settings(max_examples=25, deadline=None)
def test_wherever_it_stops_the_point_is_feasible_and_the_gap_is_honest(level, coupling, seed, most):
    y, U, K, offset = drawn(seed, 30, 6)
    shift = offset if len(offset) else np.zeros(len(y))
    alpha, g, steps, gap = run(level, y, U, K, offset, coupling, 0.0, most)
    assert steps <= most
    assert (np.clip(alpha, 0.0, U) == alpha).all()
    b = signs_of(y, len(U)) * alpha
    total, scale = b.sum(axis=1), 1e-12 * (1.0 + U.sum())
    missed = {EACH: np.abs(total).max(), ORDERED: max(np.cumsum(total).max(), abs(total.sum())), SUM: abs(total.sum())}
    assert missed[coupling] <= scale
    np.testing.assert_allclose(g, K @ b.sum(axis=0), atol=1e-10 * (1.0 + np.abs(K).max() * U.sum()))
    # the gap names a primal value, which no dual value of any point exceeds
    dual = dual_value(y, K, shift, coupling, alpha)
    assert dual >= -scale
    if gap < 1.0:
        further, *_ = run(level, y, U, K, offset, coupling, 1e-7)
        assert dual_value(y, K, shift, coupling, further) <= dual / (1.0 - gap) + 1e-9 * (1.0 + abs(dual))


@pytest.mark.parametrize("coupling", [EACH, ORDERED, SUM])
@pytest.mark.parametrize("level", LEVELS)
@given(seed=st.integers(0, 10**6), most=st.sampled_from([100, 700, 10**5]))
@settings(max_examples=5, deadline=None)
def test_parts_of_the_rows_keep_the_scores_of_all(level, coupling, seed, most):
    """With few rows inside their ends most pairs move among a part; scores, constraints and gap are those of all rows."""
    random = np.random.default_rng(seed)
    n, m = int(random.integers(130, 200)), int(random.integers(1, 4))
    X = random.normal(size=(n, 2))
    y = np.digitize(X[:, 0] + 0.3 * random.normal(size=n), np.linspace(-1.0, 1.0, m)).astype(np.intp)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    U, offset = np.full((m, n), 20.0), random.normal(size=n) if seed % 2 else np.empty(0)
    shift = offset if len(offset) else np.zeros(n)
    alpha, g, steps, gap = run(level, y, U, K, offset, coupling, 1e-4, most)
    assert steps <= most
    assert gap <= 1e-4 or most < 10**5
    assert (np.clip(alpha, 0.0, U) == alpha).all()
    b = signs_of(y, m) * alpha
    total = b.sum(axis=1)
    missed = {EACH: np.abs(total).max(), ORDERED: max(np.cumsum(total).max(), abs(total.sum())), SUM: abs(total.sum())}
    assert missed[coupling] <= 1e-12 * (1.0 + U.sum())
    np.testing.assert_allclose(g, K @ b.sum(axis=0), atol=1e-10 * U.sum())
    further, *_ = run(level, y, U, K, offset, coupling, 1e-6)
    assert dual_value(y, K, shift, coupling, further) <= dual_value(y, K, shift, coupling, alpha) / (1.0 - gap) * (1.0 + 1e-9)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_it_goes_on_where_it_stopped(seed):
    y, U, K, offset = drawn(seed, 30, 6)
    for coupling in (EACH, ORDERED, SUM):
        alpha, g = np.zeros(U.shape), np.zeros(len(y))
        values = []
        for _ in range(4):
            Kernels(LEVELS[0]).ascent_pairs.ascend(y, U, K, offset, coupling, alpha, g, 1e-9, 15)
            values.append(dual_value(y, K, offset if len(offset) else np.zeros(len(y)), coupling, alpha))
        assert (np.diff(values) >= -1e-9 * (1.0 + np.abs(values[1:]))).all()
