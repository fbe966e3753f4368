"""The compiled dual ascent against the same ascent in plain Python: one optimum, certificates that agree, padding that stays empty."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from support import python_dual, python_rounds, reference
from support import surrogates as cases
from support.compiled_ascent import ascend, small_problem

from advcli.core import compiled
from advcli.core.compiled import Kernels, usable_levels
from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver

LAM = 0.3


def weighted_problem(weights):
    random = np.random.default_rng(1)
    X, y = small_problem(n=10)
    X[3] = 0.0  # a row without features has no curvature
    sample = random.integers(0, 4, size=len(y)).astype(float) if weights in ("sample", "both") else None
    cost = random.uniform(0.3, 3.0, size=len(y)) if weights in ("cost", "both") else None
    return X, y, sample, cost


@cache
def solved_in_python(name, which, weights):
    X, y, sample, cost = weighted_problem(weights)
    loss = cases.surrogates(name, 3)[which]
    return python_dual.dual_ascent(loss, X, y, LAM, sample, cost, tol=1e-6, max_passes=200)


@pytest.mark.parametrize(
    ("name", "which", "weights"),
    [(name, 0, weights) for name in cases.compiled_names() for weights in ("sample", "cost", "both")]
    + [
        # the search for a level of every block takes plain Python half a minute; two prices are among the short tests
        pytest.param(name, which, "none", marks=[pytest.mark.slow] if name == "label_sets" and which > 1 else [])
        for name in cases.compiled_names()
        for which in range(len(cases.options(name, 3)))
    ],
)
def test_compiled_and_python_ascent_meet(kernels, name, which, weights):
    X, y, sample, cost = weighted_problem(weights)
    loss = cases.surrogates(name, 3)[which]
    code, _, primal, dual, R, theta, problem = ascend(kernels, loss, X, y, LAM, sample, cost, tol=1e-9)
    theta_slow, _, primal_slow, dual_slow, _ = solved_in_python(name, which, weights)
    assert code == 0
    # two feasible pairs: neither primal lies below the other's dual, and both gaps are small
    size = abs(primal) + 1e-12
    assert primal >= dual_slow - 1e-12 * size
    assert primal_slow >= dual - 1e-12 * size
    assert abs(primal - primal_slow) <= 2e-6 * size
    assert abs(dual - dual_slow) <= 2e-6 * size
    assert np.abs(theta[:, :3] - theta_slow).max() <= 5e-3 * (1 + np.abs(theta_slow).max())
    # what the loop reports is what the problem says of the point that it returns
    assert problem.primal(np.ascontiguousarray(theta[:, :3])) == pytest.approx(primal, rel=1e-10, abs=1e-14)
    assert problem.dual(np.ascontiguousarray(R[:, :3])) == pytest.approx(dual, rel=1e-10, abs=1e-14)
    assert np.abs(problem.parameters(R[:, :3]) - theta[:, :3]).max() <= 1e-10 * (1 + np.abs(theta).max())


def one_pass(loss, X, y, lam, sample, cost, seed):
    """Return R and theta after one pass in plain Python, in the order of the compiled loop: every row sees what those before it changed."""
    order = list(range(len(y)))
    python_rounds.Bits(seed).shuffle(order)
    R, theta, scale = np.zeros((len(y), loss.n_classes)), np.zeros((X.shape[1], loss.n_classes)), 1.0 / (lam * sample.sum())
    for i in order:
        if sample[i] > 0.0:
            new = python_dual.block(loss, X[i] @ theta / cost[i], R[i], y[i], sample[i] * scale * (X[i] @ X[i]) / cost[i])
            theta -= sample[i] * scale * np.outer(X[i], new - R[i])
            R[i] = new
    return R, theta


@pytest.mark.parametrize("name", ["zero_one", "cs"])
@pytest.mark.parametrize("k", [2, 4, 7, 8, 9, 13, 17, 26, 40])
@pytest.mark.parametrize("d", [1, 2, 5, 8, 15, 37, 130, 131])  # up to four classes, rows of more than 128 are visited one by one
def test_a_pass_over_dense_rows_is_one_row_after_the_other(kernels, name, k, d):
    """Rows that share products with Theta see what those before them changed: every remainder of d, k and n, and rows without weight."""
    random = np.random.default_rng(k + d)
    n = 21 + (k + d) % 4
    X, y = small_problem(k, n, d, seed=k + d)
    sample, cost = random.integers(0, 4, size=n).astype(float), random.uniform(0.3, 3.0, size=n)
    sample[-1] = 2.0
    loss = make_loss(name, k)
    code, passes, _, _, R, theta, _ = ascend(kernels, loss, X, y, 0.05, sample, cost, tol=1e-12, max_passes=3.0, seed=k)
    assert (code, passes) == (1, 3.0)
    R_slow, theta_slow = one_pass(loss, X, y, 0.05, sample, cost, k)
    assert np.abs(R[:, :k] - R_slow).max() <= 1e-9
    assert np.abs(theta[:, :k] - theta_slow).max() <= 1e-9 * (1 + np.abs(theta_slow).max())


@pytest.mark.parametrize("k", [1, 2, 3, 7, 8, 9, 16, 17, 33])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_padding_stays_empty_at_every_width(kernels, k, sparse, d):
    """Every remainder of d and k in the unrolled loops; columns beyond k of R and Theta must be exactly 0."""
    X, y = small_problem(k, 20, d, seed=k + d)
    X = sp.csr_array(X * (np.random.default_rng(0).random(X.shape) < 0.6)) if sparse else X
    loss = make_loss("zero_one", k)
    code, _, primal, dual, R, theta, problem = ascend(kernels, loss, X, y, 0.1, tol=1e-6)
    assert code == 0
    assert not R[:, k:].any()
    assert not theta[:, k:].any()
    assert np.abs(R[:, :k].sum(axis=1)).max() <= 1e-12 * k
    assert problem.primal(theta[:, :k].copy()) == pytest.approx(primal, rel=1e-10, abs=1e-15)
    assert problem.dual(R[:, :k].copy()) == pytest.approx(dual, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("name", cases.compiled_names())
def test_padding_stays_empty_for_every_loss(kernels, name):
    for loss in cases.surrogates(name, 5):
        X, y = small_problem(5, 25)
        _, _, _, _, R, theta, _ = ascend(kernels, loss, X, y, 0.02, tol=1e-4, max_passes=200.0)
        assert not R[:, 5:].any()
        assert not theta[:, 5:].any()
        assert cases.distance_outside(loss, R[:, :5], y) <= 1e-10


@pytest.mark.parametrize("name", cases.compiled_names())
def test_dual_value_never_falls_and_never_passes_the_primal(kernels, name):
    X, y = small_problem(4, 30, 4)
    for loss in cases.surrogates(name, 4):
        last, lowest = -np.inf, np.inf
        for passes in (1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0):
            code, done, primal, dual, _, _, _ = ascend(kernels, loss, X, y, 0.01, tol=1e-12, max_passes=passes)
            assert dual >= last - 1e-12 * max(1.0, abs(dual))
            lowest = min(lowest, primal)
            assert dual <= lowest + 1e-12 * max(1.0, abs(dual))
            assert code in (0, 1)
            if code == 1:
                assert passes - 2.0 < done <= passes  # a pass and the values after it did not fit
            last = dual


def test_sparse_and_dense_loops_agree(kernels):
    random = np.random.default_rng(0)
    X, y = small_problem(40, 60, 30)  # so many classes that sparse updates touch single coordinates
    X *= random.random(X.shape) < 0.3
    for name in ("zero_one", "cs", "ww"):
        loss = make_loss(name, 40)
        dense = ascend(kernels, loss, X, y, 0.02, tol=1e-8)
        sparse = ascend(kernels, loss, sp.csr_array(X), y, 0.02, tol=1e-8)
        assert dense[2] == pytest.approx(sparse[2], rel=1e-7)
        assert dense[3] == pytest.approx(sparse[3], rel=1e-7)


def test_same_seed_same_bits_other_seed_same_optimum(kernels):
    X, y = small_problem(4, 40, 4)
    loss = make_loss("zero_one", 4)
    first, again, other = (ascend(kernels, loss, X, y, 0.01, tol=1e-6, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(first[4], again[4])
    assert np.array_equal(first[5], again[5])
    assert first[1:4] == again[1:4]
    assert not np.array_equal(first[4], other[4])
    assert other[2] == pytest.approx(first[2], rel=1e-5)


def test_a_solved_start_is_only_certified(kernels):
    X, y = small_problem(3, 40, 4)
    loss = make_loss("zero_one", 3)
    _, passes, primal, dual, R, _, _ = ascend(kernels, loss, X, y, 0.05, tol=1e-7)
    code, again, primal_again, dual_again, R_again, _, _ = ascend(kernels, loss, X, y, 0.05, tol=1e-6, R0=R[:, :3])
    assert code == 0
    assert again <= 1.0 < passes
    assert np.array_equal(R, R_again)
    assert primal_again == pytest.approx(primal, rel=1e-9)
    assert dual_again == pytest.approx(dual, rel=1e-9)


def test_limits_are_kept(kernels):
    X, y = small_problem(5, 200, 6)
    loss = make_loss("zero_one", 5)
    code, passes, _, _, _, _, _ = ascend(kernels, loss, X, y, 1e-7, tol=1e-12, max_passes=20.0)
    assert code == 1
    assert 18.0 < passes <= 20.0  # the last pass must leave room for the values after it
    turned = ascend(kernels, loss, X, y, 1e-7, tol=1e-12, turn=20.0)
    assert turned[0] == 1
    assert 20.0 <= turned[1] <= 20.0 + 2 + 10  # a round of visits is one full pass, up to ten over the active set and the check
    code, _, primal, dual, _, _, _ = ascend(kernels, loss, X, y, 1e-7, tol=1e-12, max_passes=1e9, max_seconds=0.0)
    assert code == 2
    assert dual <= primal


def test_read_only_inputs(kernels):
    X, y = small_problem(3, 20, 3)
    sample, cost = np.full(20, 2.0), np.full(20, 0.5)
    expected = ascend(kernels, make_loss("zero_one", 3), X, y, 0.1, sample, cost)
    for array in (X, y, sample, cost):
        array.setflags(write=False)
    frozen = ascend(kernels, make_loss("zero_one", 3), X, y, 0.1, sample, cost)
    assert np.array_equal(expected[4], frozen[4])


def test_wrong_shapes_and_kinds_are_refused(kernels):
    X, y = small_problem(3, 6, 2)
    good = [X.ravel(), np.empty(0, np.int32), np.empty(0, np.int64), 6, 2, y, np.ones(6), np.empty(0), np.empty(0)]
    rest = [0.1, 6.0, 1e-3, 10.0, 10.0, 0]
    with pytest.raises(ValueError, match="padded"):
        kernels.ascent_dense.solve(0, 3, np.empty(0), *good, np.zeros((6, 3)), np.zeros((2, 3)), *rest)
    width = kernels.ascent_dense.width(3)
    with pytest.raises(ValueError, match="unknown surrogate"):
        kernels.ascent_dense.solve(77, 3, np.empty(0), *good, np.zeros((6, width)), np.zeros((2, width)), *rest)


def test_all_levels_give_one_optimum():
    X, y = small_problem(11, 50, 7)
    for name in ("zero_one", "ww", "absolute"):
        found = [ascend(Kernels(level), make_loss(name, 11), X, y, 0.02, tol=1e-8)[2] for level in usable_levels()]
        assert np.ptp(found) <= 1e-7 * found[0]


def test_few_classes_take_short_vectors(kernels, monkeypatch):
    loop = kernels.ascent_dense_for(4, 128)
    assert loop.width(4) == (4 if kernels.level == "avx512" and "avx2" in usable_levels() else kernels.ascent_dense.width(4))
    short = object()
    monkeypatch.setattr(kernels, "_short_ascent", short)
    for k, d in ((2, 1), (3, 30), (4, 128)):
        assert kernels.ascent_dense_for(k, d) is short
    for k, d in ((4, 129), (5, 30), (200, 30)):
        assert kernels.ascent_dense_for(k, d) is kernels.ascent_dense


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_fit_to_few_classes_meets_one_with_long_vectors(monkeypatch, sparse, threads):
    X, y = small_problem(4, 200, 6)
    problem = Problem(LinearFeatures(sp.csr_array(X) if sparse else X, 4), make_loss("zero_one", 4), y, 0.02)
    found = [make_solver("dual", threads=threads).solve(problem, Limits(1e-9))]
    monkeypatch.setattr(compiled.kernels, "_short_ascent", compiled.kernels.ascent_dense)
    found.append(make_solver("dual", threads=threads).solve(problem, Limits(1e-9)))
    values = [problem.primal(each.theta) for each in found]
    assert abs(values[0] - values[1]) <= 1e-8 * values[0]


def test_rows_at_rest_are_left_only_when_nothing_comes_near(kernels):
    """A visit with r = 0 may end early when no other score lies within 1 of the label's; one that ends too early never reaches the optimum.

    Digits at a weak regularisation: four rows of five rest at the end, and many of them moved on the way.
    """
    X, y = load_digits(return_X_y=True)
    deviation = X.std(axis=0, ddof=1)
    X = np.hstack([(X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0), np.ones((len(X), 1))])
    loss, lam = make_loss("zero_one", 10), 1.0 / (10.0 * len(X))
    code, _, primal, dual, R, theta, problem = ascend(
        kernels, loss, X, y.astype(np.intp), lam, tol=1e-3, max_passes=2000.0, max_seconds=300.0
    )
    assert code == 0
    theta, R = np.ascontiguousarray(theta[:, :10]), np.ascontiguousarray(R[:, :10])
    assert problem.primal(theta) == pytest.approx(primal, rel=1e-9)
    assert problem.dual(R) == pytest.approx(dual, rel=1e-9)
    resting = ~R.any(axis=1)
    assert 0.7 < resting.mean() < 0.95


def test_one_row_at_rest_on_the_wrong_side(kernels):
    """Forty rows have put their class ahead before the first visit of a row of another one, which is then off by 5: it must move."""
    X = np.concatenate([np.ones((40, 1)), [[5.0]]])
    y = np.array([0] * 40 + [1], dtype=np.intp)
    R0 = np.concatenate([np.tile([-0.5, 0.25, 0.25], (40, 1)), np.zeros((1, 3))])
    loss, lam = make_loss("zero_one", 3), 0.7
    for seed in range(3):
        code, _, _, _, R, theta, problem = ascend(kernels, loss, X, y, lam, tol=1e-9, max_passes=2000.0, R0=R0, seed=seed)
        assert code == 0
        assert R[40].any()
        expected = reference.solve_problem("zero_one", X, y, lam, 3)
        assert problem.primal(np.ascontiguousarray(theta[:, :3])) == pytest.approx(expected["primal"], rel=1e-8)


@pytest.mark.parametrize("ahead", [0.5, 0.9, 0.99, 1.01])
def test_one_row_at_rest(kernels, ahead):
    """The first row alone puts its label ahead by 1, for the second that makes ``ahead``: it moves if that is below 1."""
    X, y = np.array([[1.0, 0.0], [ahead, 1e-3]]), np.array([0, 0], dtype=np.intp)
    loss, lam = make_loss("zero_one", 3), 0.25
    code, _, _, _, R, theta, problem = ascend(kernels, loss, X, y, lam, tol=1e-12, max_passes=500.0)
    expected = reference.solve_problem("zero_one", X, y, lam, 3)
    assert code == 0
    assert problem.primal(np.ascontiguousarray(theta[:, :3])) == pytest.approx(expected["primal"], rel=1e-9)
    assert R[1].any() == (ahead < 1.0)


@pytest.mark.parametrize("name", ["zero_one", "top_k"])
def test_a_row_whose_label_is_far_ahead_comes_to_rest(kernels, name):
    """A visit may end early where the label is so far ahead that its row would not move from r = 0; one with another r moves to 0."""
    random = np.random.default_rng(0)
    loss = cases.surrogates(name, 4)[-1]
    y = np.repeat(np.arange(4), 6).astype(np.intp)
    X = 4.0 * np.eye(4)[y] + 0.1 * random.normal(size=(24, 4))
    R0, own = cases.dual_points(loss, 24, 1)
    shift = [np.roll(row, label - before) for row, label, before in zip(R0, y, own, strict=True)]
    code, _, _, dual, R, _, problem = ascend(kernels, loss, X, y, 0.1, tol=1e-5, max_passes=500.0, R0=np.array(shift))
    assert code == 0
    assert (~R.any(axis=1)).any()
    assert problem.dual(np.ascontiguousarray(R[:, :4])) == pytest.approx(dual, rel=1e-9)
