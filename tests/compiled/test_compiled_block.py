"""The compiled block step argmax c(r') + f.r' - w/2 |r' - r|^2: optimality, an independent quadratic program, plain Python."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from support import python_dual, reference
from support import surrogates as cases

import advcli.core.compiled
from advcli.losses import make_loss

CURVATURES = (1e-6, 1e-2, 0.3, 1.0, 30.0, 1e4)


def instances(loss, n, seed=0):
    """Scores, dual points, labels and curvatures (n rows each)."""
    F, _ = cases.score_rows(loss.n_classes, n, seed)
    R, y = cases.dual_points(loss, n, seed + 1)
    w = np.resize(np.repeat(CURVATURES, 2), n)
    return F, R, y, w


def gaps(kernels, loss, F, R, y):
    """Block gaps as a row's own step reports them."""
    found = np.empty(len(F))
    kernels.face(loss.family, F, R, y, 1.0, gap=found)
    return found


def spread(loss):
    return 1.0 + (0.0 if loss.matrix is None else np.ptp(loss.matrix))


@pytest.mark.parametrize(("name", "k"), [(name, k) for name in cases.compiled_names() for k in cases.sizes(name)])
def test_exact_block_is_optimal(kernels, name, k):
    """r* maximises c(r') + f.r' - w/2 |r' - r|^2 if and only if it attains the surrogate at the moved scores f - w (r* - r)."""
    for loss in cases.surrogates(name, k):
        F, R, y, w = instances(loss, cases.rows(name, k))
        new, gap = kernels.block(loss.family, F, R, y, w), gaps(kernels, loss, F, R, y)
        assert cases.distance_outside(loss, new, y) <= 1e-9
        moved = F - w[:, None] * (new - R)
        left = cases.mismatch(loss, moved, new, y)
        # what rounding alone costs: the last digit of the scores becomes that of r through 1/w, the last digit of r costs w
        size = spread(loss) + np.ptp(F, axis=1)
        slack = 1e-9 * size + 1e-15 * size**2 / w + (1e-13 * k + 2e-15 * k**2) * w
        assert (left <= slack).all(), (left - slack).max()
        # and the gap that it reports is that of the old point at the old scores
        assert (np.abs(gap - cases.mismatch(loss, F, R, y)) <= 1e-9 * (spread(loss) + np.ptp(F, axis=1))).all()


@pytest.mark.parametrize("seed", range(20))
def test_exact_block_from_a_vertex_where_rows_tie(kernels, seed):
    """Rows of zeros and ones tie at every vertex: a label that rounding moves below 0 must not leave, or the active set goes round."""
    random = np.random.default_rng(seed)
    for _ in range(10):
        matrix, unit = random.integers(0, 2, size=(7, 5)) * random.choice([1.0, 0.3, 0.7]), np.eye(5)[random.integers(5)]
        f, w, y = random.integers(-1, 2, size=5) * random.choice([0.0, 0.05, 0.5]), 10.0 ** random.uniform(-2, 1), int(random.integers(5))
        loss, r = make_loss("general", 5, matrix=matrix), unit - np.eye(5)[y]
        new = kernels.block(loss.family, f[None], r[None], np.array([y]), np.array([w]))[0]
        best = reference.block_qp("general", f, r, y, w, matrix=matrix)

        def value(step, matrix=matrix, f=f, r=r, w=w, y=y):
            q = step + np.eye(5)[y]
            return (matrix @ q).min() + f @ q - 0.5 * w * ((step - r) ** 2).sum()

        assert value(new) >= value(best) - 1e-6


@pytest.mark.parametrize("name", cases.compiled_names())
@pytest.mark.parametrize("k", [2, 3, 5])
def test_exact_block_against_a_quadratic_program(kernels, name, k):
    for loss, given in zip(cases.surrogates(name, k), cases.options(name, k), strict=True):
        F, R, y, w = instances(loss, 12, seed=3)
        w = np.clip(w, 1e-1, 1e2)
        new = kernels.block(loss.family, F, R, y, w)
        for i in range(len(y)):
            expected = reference.block_qp(loss.name, F[i], R[i], int(y[i]), float(w[i]), **given)
            assert np.abs(new[i] - expected).max() <= 1e-5, (given, F[i], R[i], y[i], w[i])


@pytest.mark.parametrize("seed", range(12))
def test_exact_block_of_a_matrix_with_many_equal_entries(kernels, seed):
    """More rows are tight than labels are left, so that they depend on each other and the active set meets degenerate corners."""
    matrix = [
        [0, 2, 2, 4, 4],
        [2, 0, 2, 4, 4],
        [2, 2, 0, 2, 4],
        [4, 4, 2, 0, 4],
        [4, 4, 4, 4, 0],
    ]  # steps in a graph, two parents of a leaf
    loss = make_loss("general", 5, matrix=matrix)
    F, R, y, w = instances(loss, 12, seed=seed)
    w = np.clip(w, 1e-1, 1e2)
    new = kernels.block(loss.family, F, R, y, w)
    for i in range(len(y)):
        assert np.abs(new[i] - reference.block_qp("general", F[i], R[i], int(y[i]), float(w[i]), matrix=matrix)).max() <= 1e-5


@cache
def blocks_in_python(name, k):
    """Return instances of each surrogate and their new blocks, which all levels are compared with."""
    found = []
    for loss in cases.surrogates(name, k):
        F, R, y, w = instances(loss, 12, seed=5)
        w = np.clip(w, 1e-1, 1e2)
        new = [python_dual.block(loss, F[i], R[i], int(y[i]), float(w[i])) for i in range(len(y))]
        found.append((loss, F, R, y, w, np.array(new)))
    return found


@pytest.mark.parametrize("name", cases.compiled_names())
@pytest.mark.parametrize("k", [2, 4, 9])
def test_exact_block_against_plain_python(kernels, name, k):
    for loss, F, R, y, w, expected in blocks_in_python(name, k):
        assert np.abs(kernels.block(loss.family, F, R, y, w) - expected).max() <= 1e-6


@pytest.mark.parametrize("name", cases.compiled_names())
@pytest.mark.parametrize("k", [2, 3, 9])
def test_without_curvature_the_step_is_a_vertex(kernels, name, k):
    """A row of zeros has |x|^2 = 0: the block is the oracle's problem."""
    for loss in cases.surrogates(name, k):
        F, R, y, _ = instances(loss, 24)
        for w in (0.0, 1e-300):
            new = kernels.block(loss.family, F, R, y, w)
            assert cases.distance_outside(loss, new, y) <= 1e-12
            # a step that moves nothing is right when the old point is optimal already
            assert (cases.mismatch(loss, F, new, y) <= 1e-9 * (spread(loss) + np.ptp(F, axis=1))).all()


@pytest.mark.parametrize("name", cases.compiled_names())
@pytest.mark.parametrize("k", [2, 3, 9, 33])
def test_with_huge_curvature_nothing_moves(kernels, name, k):
    for loss in cases.surrogates(name, k):
        F, R, y, _ = instances(loss, 24)
        F = np.clip(F, -20, 20)
        new = kernels.block(loss.family, F, R, y, 1e12)
        assert np.abs(new - R).max() <= 1e-9 + 4e-12 * spread(loss)


@pytest.mark.parametrize("name", cases.compiled_names())
@pytest.mark.parametrize("size", [1e8, -1e8])
def test_block_at_extreme_scores(kernels, name, size):
    k = 6
    for loss in cases.surrogates(name, k):
        F, R, y, _ = instances(loss, 24)
        F = np.round(4 * F) / 4 * size
        for w in (1e-3, 1.0, 1e9):
            new = kernels.block(loss.family, F, R, y, w)
            assert np.isfinite(new).all()
            assert cases.distance_outside(loss, new, y) <= 1e-7
            # a common level of 1e8 would cost the moved scores their digits
            left = cases.mismatch(loss, F - F.max(axis=1, keepdims=True) - w * (new - R), new, y)
            assert (left <= 1e-12 * k * (1e3 + np.ptp(F, axis=1) + w)).all()


@pytest.mark.parametrize("name", cases.compiled_names())
def test_an_optimal_point_stays(kernels, name):
    """The block step from its own answer, at the scores that the step left behind, does not move."""
    k = 7
    for loss in cases.surrogates(name, k):
        F, R, y, w = instances(loss, 36)
        w = np.clip(w, 1e-2, 1e2)
        new = kernels.block(loss.family, F, R, y, w)
        moved = F - w[:, None] * (new - R)
        again, gap = kernels.block(loss.family, moved, new, y, w), gaps(kernels, loss, moved, new, y)
        assert np.abs(gap).max() <= 1e-9 * (spread(loss) + np.abs(moved).max())
        assert np.abs(again - new).max() <= 1e-6


def test_curvature_may_be_a_number_or_one_per_row(kernels):
    loss = make_loss("zero_one", 4)
    F, R, y, w = instances(loss, 8)
    rows = np.array([kernels.block(loss.family, F[i : i + 1], R[i : i + 1], y[i : i + 1], float(w[i]))[0] for i in range(8)])
    assert np.array_equal(kernels.block(loss.family, F, R, y, w), rows)
    assert np.array_equal(loss.block(F, R, y, w), advcli.core.compiled.kernels.block(loss.family, F, R, y, w))


@pytest.mark.parametrize("k", [6, 10, 17, 40])
def test_rows_really_go_in_lanes(kernels, k):
    """The lanes sum in another order than a row alone: were they not taken, all last digits would agree."""
    loss = make_loss("zero_one", k)
    F, R, y, w = instances(loss, 200)
    F = np.random.default_rng(k).normal(size=F.shape)
    together = kernels.block(loss.family, F, R, y, w)
    alone, _ = kernels.face(loss.family, F, R, y, w, gap=np.empty(len(F)))
    assert np.count_nonzero((together != alone).any(axis=1)) > 0
    assert np.abs(together - alone).max() <= 1e-10
    values, (by_oracle, _, _) = kernels.value(loss.family, F, y), kernels.oracle(loss.family, F, y)
    assert np.count_nonzero(values != by_oracle) > 0
    assert np.abs(values - by_oracle).max() <= 1e-12 * k


@pytest.mark.parametrize("k", [2, 3, 6, 10, 17, 40])
def test_rows_in_lanes_take_the_step_of_a_row_alone(kernels, k):
    """Zero-one blocks without gaps run many rows at once; with gaps every row takes the solvers' own step. They agree."""
    loss = make_loss("zero_one", k)
    F, R, y, w = instances(loss, 61)
    w[::9] = 0.0  # no quadratic term: such rows leave their lane
    F += 1e-3 * np.random.default_rng(k).normal(size=F.shape)  # label states at exact ties are decided by rounding
    together, face = kernels.face(loss.family, F, R, y, w)
    alone, its = kernels.face(loss.family, F, R, y, w, gap=np.empty(len(F)))
    assert np.abs(together - alone).max() <= 1e-12 * max(1.0, np.ptp(F))
    assert np.array_equal(face.state, its.state)


@pytest.mark.parametrize("k", [2, 3, 8, 9, 17, 40])
def test_rows_whose_label_leads_end_at_zero_whether_in_lanes_or_not(kernels, k):
    """Where f + w r is 1 larger at the label than elsewhere, or nearly: the step of a row alone, and beyond 1 exactly r = 0."""
    loss = make_loss("zero_one", k)
    _, R, y, w = instances(loss, 400)
    random, rows = np.random.default_rng(k), np.arange(400)
    lead = np.resize([1.0 + 1e-6, 1.0 - 1e-6, 1.5, 0.5, 30.0], 400)
    others = np.minimum(random.normal(size=(400, k)), 0.0)
    others[rows, (y + 1) % k] = 0.0
    others[rows, y] = lead
    F = others - w[:, None] * R
    together, face = kernels.face(loss.family, F, R, y, w)
    alone, its = kernels.face(loss.family, F, R, y, w, gap=np.empty(400))
    assert np.abs(together - alone).max() <= 1e-9
    near = (w < 1e3) & (w > 1e-3)  # else the last digits of the scores decide
    assert np.array_equal(face.state[near], its.state[near])
    assert (together[near & (lead > 1.0)] == 0.0).all()
    assert (together[near & (lead < 1.0)] != 0.0).any(axis=1).all()


def test_scores_that_are_no_numbers_do_not_make_a_label_lead(kernels):
    loss = make_loss("zero_one", 3)
    F, y = np.array([[5.0, 0.0, 0.0], [5.0, np.nan, 0.0], [np.nan, 0.0, 0.0]]), np.zeros(3, dtype=np.intp)
    R, _ = kernels.face(loss.family, F, np.zeros((3, 3)), y, 1.0)
    assert (R[0] == 0.0).all()
    assert (R[1:] != 0.0).any(axis=1).all()


def exact_zero_one(f, q, w):
    """Return the new q and the block gap at the old one in rational numbers; thresholds are the largest (sum of the m largest - mass)/m."""
    f, q, w = [Fraction(each) for each in f], [Fraction(each) for each in q], Fraction(w)

    def threshold(z, mass):
        ordered = sorted(z, reverse=True)
        return max((sum(ordered[:m]) - mass) / m for m in range(1, len(z) + 1))

    g = [a + w * b for a, b in zip(f, q, strict=True)]
    u, mu = threshold(g, 1), threshold(g, 1 + w)
    new = [max(min(each, u) - mu, 0) / w for each in g]
    gap = threshold(f, 1) + max(q) - sum(a * b for a, b in zip(f, q, strict=True))
    return np.array([float(each) for each in new]), float(gap)


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 7, 8, 9, 12])
@pytest.mark.parametrize("seed", range(3))
def test_steps_on_rows_of_any_size_against_rational_numbers(kernels, k, seed):
    """Scores, a level common to all labels, and the curvature: each of any size; labels tie, and lie within 1 of each other or not."""
    random, loss, eps = np.random.default_rng([k, seed]), make_loss("zero_one", k), np.finfo(float).eps
    n = 60
    sizes = 10.0 ** random.uniform(-12, 15, size=(2, n, 1)) * random.choice([0.0, 1.0, 1.0], size=(2, n, 1))
    F = sizes[0] * random.normal(size=(n, k)).round(random.integers(16)) + sizes[1] * random.normal(size=(n, 1))
    R, y = cases.dual_points(loss, n, seed)
    w = 10.0 ** random.uniform(-6, 15, size=n)
    found = np.empty(n)
    new, _ = kernels.face(loss.family, F, R, y, w, gap=found)
    for i in range(n):
        unit = np.eye(k)[y[i]]
        q, gap = exact_zero_one(F[i], R[i] + unit, w[i])
        largest = np.abs(F[i] - F[i, y[i]]).max() + 2 * np.abs(F[i]).max() + 1.0
        assert abs(found[i] - gap) <= 4 * k * eps * largest, (F[i], R[i], y[i], w[i])
        assert np.abs(new[i] + unit - q).max() <= 4 * k * eps * (largest / w[i] + 1.0), (F[i], R[i], y[i], w[i])
