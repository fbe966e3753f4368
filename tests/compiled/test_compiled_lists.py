"""The ascent on lists of classes against dual ascent in plain Python and against the referee: one optimum, and bounds that hold."""

import numpy as np
import pytest
import scipy.sparse as sp
from support import python_dual
from support import surrogates as cases

from advcli.core.compiled import compiled_rows
from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems.risk import Problem


def sparse_problem(name, k, n=60, d=20, lam=0.05, seed=0, weights=False):
    """Return a problem on rows of few words, with a row of zeros and, where there are weights, one of weight 0."""
    random = np.random.default_rng(seed)
    X = random.random((n, d)) * (random.random((n, d)) < 0.2)
    X[n // 2] = 0.0
    sample = random.integers(0, 3, n).astype(float) if weights else None
    cost = random.uniform(0.4, 2.0, n) if weights else None
    return Problem(LinearFeatures(sp.csr_array(X), k), make_loss(name, k), random.integers(0, k, n), lam, sample, cost)


def ascend(kernels, problem, tol=1e-9, max_passes=3000.0, seed=0, R0=None, turn=np.inf, threads=1):
    """Call the compiled loop as solver=dual_lists does; return (code, passes, primal, dual, R, theta)."""
    (d, k), n, X = problem.features.shape, len(problem.y), problem.features.X
    module, none = kernels.ascent_class_lists, np.empty(0)
    lists, theta = module.Lists(n, k), np.zeros((d, module.width(k)))
    y = problem.y.astype(np.intp)
    if R0 is not None:
        given = sp.csr_array(R0)
        lists.take(y, given.indptr.astype(np.int64), given.indices.astype(np.int32), given.data)
        theta[:, :k] = problem.parameters(R0)
    values, columns, start, *_ = compiled_rows(X)
    sample, cost = (none if weights is None else weights for weights in (problem.sample_weight, problem.cost_weight))
    found = module.solve(
        *kernels.arguments(problem.loss.family),
        values,
        columns,
        start,
        n,
        d,
        y,
        problem.features.squares,
        sample,
        cost,
        lists,
        theta,
        problem.lam,
        problem.n,
        tol,
        max_passes,
        60.0,
        seed,
        turn,
        threads,
    )
    assert not theta[:, k:].any()
    return *found, given_back(lists, n, k), np.ascontiguousarray(theta[:, :k])


def given_back(lists, n, k):
    """Return the dual point of lists as an array."""
    start, labels, numbers = np.empty(n + 1, np.int64), np.empty(lists.entries, np.int32), np.empty(lists.entries)
    lists.give(start, labels, numbers)
    return sp.csr_array((numbers, labels, start), shape=(n, k)).toarray()


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["zero_one", "cs"])
def test_lists_and_python_meet(kernels, name, weights):
    problem = sparse_problem(name, 7, n=15, d=6, lam=0.3, weights=weights)
    code, _, primal, dual, _, theta = ascend(kernels, problem)
    X = problem.features.X.toarray()
    slow, _, primal_slow, dual_slow, _ = python_dual.dual_ascent(
        problem.loss, X, problem.y, problem.lam, problem.sample_weight, problem.cost_weight, tol=1e-6, max_passes=2000
    )
    assert code == 0
    assert primal >= dual_slow - 1e-12
    assert primal_slow >= dual - 1e-12
    assert abs(primal - primal_slow) <= 2e-6 * primal
    assert np.abs(theta - slow).max() <= 5e-3 * (1 + np.abs(slow).max())


# sizes about a vector, about the specialised steps, and about the classes that an evaluation adds
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 9, 12, 15, 16, 17, 33, 40, 65, 130, 300])
@pytest.mark.parametrize("name", ["zero_one", "cs"])
@pytest.mark.parametrize("passes", [1.0, 4.0, 12.0, 3000.0])
def test_bounds_hold_wherever_the_ascent_stops(kernels, name, k, passes):
    problem = sparse_problem(name, k, seed=k, weights=k % 2 == 0)
    code, made, primal, dual, R, theta = ascend(kernels, problem, tol=1e-7, max_passes=passes)
    assert made <= passes
    assert code == 0 or passes < 1000
    exact = problem.primal(theta)
    assert primal >= exact - 1e-12 * (1 + exact)
    assert dual == pytest.approx(problem.dual(R), rel=1e-9, abs=1e-13)
    assert problem.loss.infeasibility(R, problem.y).max() <= 1e-12 * k
    assert np.abs(problem.parameters(R) - theta).max() <= 1e-10 * (1 + np.abs(theta).max())
    if code == 0:
        assert primal - dual <= 1e-7 * primal + 1e-15


@pytest.mark.parametrize("name", ["zero_one", "cs"])
def test_every_instruction_set_and_the_dense_ascent_find_one_optimum(kernels, name):
    from advcli.solvers import Limits, make_solver

    problem = sparse_problem(name, 90, n=200, d=40, lam=5e-3)
    _, _, primal, dual, R, _ = ascend(kernels, problem, tol=1e-8)
    other = make_solver("dual").solve(problem, Limits(1e-8, max_passes=5000))
    assert abs(primal - problem.primal(other.theta)) <= 2e-8 * primal
    assert abs(dual - problem.dual(other.R)) <= 2e-8 * primal
    assert (R != 0.0).sum() < 0.9 * R.size  # supports are parts of the classes here


def test_same_seed_same_bits_and_another_start(kernels):
    problem = sparse_problem("zero_one", 50, n=120, weights=True)
    one, two = ascend(kernels, problem, tol=1e-4, seed=3), ascend(kernels, problem, tol=1e-4, seed=3)
    assert one[:4] == two[:4]
    assert np.array_equal(one[4], two[4])
    assert np.array_equal(one[5], two[5])
    code, passes, primal, dual, _, _ = ascend(kernels, problem, tol=2e-4, R0=one[4])
    assert code == 0
    assert passes == 1.0  # the evaluation of a start that is good enough
    assert dual == pytest.approx(one[3], rel=1e-12)
    assert primal <= one[2] * (1 + 1e-9)


@pytest.mark.parametrize("name", ["zero_one", "cs"])
@pytest.mark.parametrize("weights", [False, True])
def test_threads_change_no_bit(kernels, name, weights):
    problem = sparse_problem(name, 150, n=70, weights=weights)
    one = ascend(kernels, problem, tol=1e-5)
    assert one[0] == 0
    for threads in (2, 3, 8, 70):
        several = ascend(kernels, problem, tol=1e-5, threads=threads)
        assert several[:4] == one[:4]
        assert np.array_equal(several[4], one[4])
        assert np.array_equal(several[5], one[5])
    for wrong in (0, 71, 257):
        with pytest.raises(ValueError, match="threads"):
            ascend(kernels, problem, threads=wrong)


def test_lists_give_what_they_took(kernels):
    random = np.random.default_rng(0)
    n, k = 9, 6
    R = sp.random_array((n, k), density=0.4, rng=random, format="csr")
    R.sort_indices()
    y = random.integers(0, k, n).astype(np.intp)
    lists = kernels.ascent_class_lists.Lists(n, k)
    assert lists.entries == 0
    for _ in range(2):  # again, over lists that are there
        lists.take(y, R.indptr.astype(np.int64), R.indices.astype(np.int32), R.data)
        assert lists.entries == R.nnz
        assert np.array_equal(given_back(lists, n, k), R.toarray())
    assert lists.nbytes >= 20 * R.nnz
    other = y.copy()
    other[0] = next(label for label in range(k) if label != y[0] and R[0, label] == 0.0)
    with pytest.raises(ValueError, match="must ascend"):
        lists.take(y, np.array([0] + [2] * n), np.array([3, 3], np.int32), np.ones(2))


def test_what_lists_are_not_for(kernels):
    ww = sparse_problem("ww", 5)
    with pytest.raises(ValueError, match="zero_one and cs"):
        ascend(kernels, ww)
    dense = sparse_problem("cs", 5)
    dense = Problem(LinearFeatures(dense.features.X.toarray(), 5), dense.loss, dense.y, dense.lam)
    with pytest.raises(ValueError, match="sparse rows"):
        ascend(kernels, dense)


def test_list_families_are_compiled():
    assert {"zero_one", "cs"} <= set(cases.compiled_names())
