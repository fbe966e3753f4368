"""Operator splitting with a kernel: beside the block method, Newton and plain linear algebra, for every kind of dual variables."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from advcli.core.errors import DataError
from advcli.features import make_features
from advcli.losses import make_loss
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem
from advcli.solvers import Limits, kernel_splitting, make_solver
from advcli.solvers.auto import choose
from advcli.solvers.kernel_splitting import pivots_for, sketched
from advcli.solvers.newton.kernel import MAX_FACTORED


def problem_of(C, name="llw", n=90, gamma=0.3, weights=False, features="rbf"):
    """Classes that overlap and rows that occur twice, so that K is singular; labels grow along the first column."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    y = np.clip(np.floor(X[:, 0] + 0.5 * random.normal(size=n) + 1.5), 0, 2).astype(np.intp)
    X[n // 2 :] = X[: n - n // 2]
    sample, cost = (random.integers(0, 3, size=n).astype(float), random.uniform(0.5, 2.0, size=n)) if weights else (None, None)
    total = n if sample is None else sample.sum()
    return Problem(make_features(features, X, 3, gamma=gamma), make_loss(name, 3), y, 1.0 / (C * total), sample, cost)


def solved(problem, tol=1e-4, solver="kernel_splitting", **limits):
    solution = make_solver(solver).solve(problem, Limits(tol, **limits))
    return solution, certify(problem, solution, tol)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["llw", "ww", "zero_one", "cs", "absolute", "squared", "abstain"])
def test_splitting_and_the_block_method_reach_the_same_optimum(name, weights):
    problem = problem_of(4.0, name, weights=weights)
    certificates = [solved(problem, solver=solver)[1] for solver in ("kernel_splitting", "kernel_dual")]
    assert all(certificate.converged for certificate in certificates)
    assert certificates[0].primal == pytest.approx(certificates[1].primal, rel=2e-4)


@pytest.mark.parametrize("gamma", [0.01, 0.3, 30.0])
@pytest.mark.parametrize("C", [0.1, 2.0**6, 2.0**12])
def test_llw_is_solved_at_every_C_and_width(gamma, C):
    problem = problem_of(C, gamma=gamma)
    certificate, other = solved(problem, 1e-3)[1], solved(problem, 1e-6, "kernel_newton")[1]
    assert certificate.converged
    assert other.converged
    assert 0.0 <= certificate.primal / other.primal - 1.0 + 1e-6 <= 1.1e-3


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["zero_one", "absolute", "cs"])
def test_free_thresholds_reach_the_optimum_of_newton(name, weights):
    problem = problem_of(8.0, name, weights=weights, features="rbf_threshold")
    certificates = [solved(problem, solver=solver, max_passes=20_000)[1] for solver in ("kernel_splitting", "kernel_newton")]
    assert all(certificate.converged for certificate in certificates)
    assert certificates[0].primal == pytest.approx(certificates[1].primal, rel=2e-4)


def test_thresholds_over_the_linear_kernel_are_linear_thresholds():
    given = problem_of(2.0, "absolute")
    X = given.features.X
    kernel = Problem(make_features("precomputed_threshold", X @ X.T, 3), given.loss, given.y, given.lam)
    linear = Problem(make_features("threshold", X, 3), given.loss, given.y, given.lam)
    solution, certificate = solved(kernel, max_passes=20_000)
    assert certificate.converged
    assert certificate.primal == pytest.approx(solved(linear, 1e-7, "newton")[1].primal, rel=2e-4)
    explicit = np.concatenate([X.T @ solution.theta[: len(X)], solution.theta[len(X) :]])
    assert linear.primal(explicit) == pytest.approx(certificate.primal, rel=1e-9)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", ["rbf", "rbf_threshold"])
def test_the_proximal_step_is_the_minimum_of_its_quadratic_program(name, k):
    random = np.random.default_rng(1)
    n, sigma = 12, 0.3
    X = random.normal(size=(n, 2))
    features = make_features(name, X, k, gamma=0.5)
    G = random.normal(size=(n, k))
    G -= G.mean(axis=1, keepdims=True)
    labels = np.arange(1.0, k + 1.0)
    Q = np.kron(rbf_kernel(X, gamma=0.5), np.outer(labels, labels) if name == "rbf_threshold" else np.eye(k))
    # rows of X sum to zero; under free thresholds, columns do too
    rows = np.kron(np.eye(n), np.ones(k))
    A = np.vstack([rows, np.kron(np.ones(n), np.eye(k))[:-1]]) if name == "rbf_threshold" else rows
    system = np.block([[Q + sigma * np.eye(n * k), A.T], [A, np.zeros((len(A), len(A)))]])
    expected = np.linalg.solve(system, np.concatenate([sigma * G.ravel(), np.zeros(len(A))]))[: n * k].reshape(n, k)
    found, theta = features.proximal(G, sigma)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    F = features.scores(theta)
    scores = sigma * (found - G)
    np.testing.assert_allclose(F - F.mean(axis=1, keepdims=True), scores - scores.mean(axis=1, keepdims=True), atol=1e-10)


def test_neighbouring_values_of_C_share_a_factor():
    features = problem_of(1.0).features
    features.proximal(np.zeros((90, 3)), 0.5)
    factor = features.store.shifted
    features.proximal(np.ones((90, 3)), 0.5)
    assert features.store.shifted is factor
    features.proximal(np.ones((90, 3)), 0.25)
    assert features.store.shifted is not factor


def test_a_matrix_that_is_no_kernel_is_refused():
    random = np.random.default_rng(0)
    K = random.normal(size=(600, 600))  # too many rows for a look at all eigenvalues
    K = 0.05 * (K + K.T)
    K[np.diag_indices(600)] = 1.0
    y = np.arange(600, dtype=np.intp) % 3
    problem = Problem(make_features("precomputed", K, 3), make_loss("llw", 3), y, 1e-4)
    with pytest.raises(DataError, match="not positive semi-definite"):
        make_solver("kernel_splitting").solve(problem, Limits(1e-3))


def test_a_limit_gives_an_honest_status_and_a_start_is_never_made_worse():
    problem = problem_of(2.0**10, gamma=1.0)
    short, certificate = solved(problem, 1e-6, max_passes=20)
    assert short.passes <= 20
    assert certificate.status == "max_passes"
    assert certificate.dual < certificate.primal
    good, better = solved(problem, 1e-3)
    again = make_solver("kernel_splitting").solve(problem, Limits(1e-3), good)
    assert again.passes <= 2
    tried = certify(problem, make_solver("kernel_splitting").solve(problem, Limits(1e-9, max_passes=30), good), 1e-9)
    assert tried.primal <= better.primal * (1 + 1e-9)
    assert tried.dual >= better.dual * (1 - 1e-9)


def test_auto_goes_from_the_block_method_to_splitting_under_llw_and_for_thresholds_of_many_rows():
    problem = problem_of(2.0**8)
    assert [solver.name for solver in choose(problem).solvers] == ["kernel_dual", "kernel_splitting", "kernel_newton"]
    solution, certificate = solved(problem, 1e-3, "auto")
    assert certificate.converged
    assert solution.solver == "kernel_dual+kernel_splitting"
    assert "kernel_dual" in solution.memory["choice"]
    many = np.zeros((MAX_FACTORED + 1, 1))
    thresholds = Problem(make_features("rbf_threshold", many, 3), make_loss("absolute", 3), np.zeros(len(many), dtype=np.intp), 0.1)
    assert [solver.name for solver in choose(thresholds).solvers] == ["kernel_splitting"]
    small = Problem(make_features("rbf", problem.features.X, 3, memory_mb=0.05), problem.loss, problem.y, 0.1)
    assert "memory_mb" in make_solver("kernel_splitting").lacks(small)
    assert [solver.name for solver in choose(small).solvers] == ["kernel_dual"]
    ww = Problem(make_features("rbf_threshold", problem.features.X, 3), make_loss("ww", 3), problem.y, 0.1)
    assert "distributions" in make_solver("kernel_splitting").lacks(ww)


def test_the_factor_counts_against_the_memory_limit():
    """K of 400 rows takes 1.2 MB: 2 MB hold it and what the block method gathers, but no factor beside it; auto leaves splitting out."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(400, 3)), random.integers(3, size=400)

    def problem(memory_mb, features="rbf"):
        return Problem(make_features(features, X, 3, gamma=0.3, memory_mb=memory_mb), make_loss("llw", 3), y, 1e-2)

    small, large = problem(2.0), problem(3.0)
    assert small.features.whole
    assert "twice in features.memory_mb" in make_solver("kernel_splitting").lacks(small)
    assert make_solver("kernel_splitting").lacks(large) is None
    assert "kernel_splitting" in [solver.name for solver in choose(large).solvers]
    assert "kernel_splitting" not in [solver.name for solver in choose(small).solvers]


def sketch_of(name="rbf", k=3, gamma=0.02, p=17, n=120):
    """Features with rows that occur twice, and a sketch of their kernel matrix."""
    X = np.random.default_rng(3).normal(size=(n, 3))
    X[n // 2 :] = X[: n - n // 2]
    features = make_features(name, X, k, gamma=gamma)
    return features, sketched(features, p)


@pytest.mark.parametrize("first", [0, 5])
@pytest.mark.parametrize("gamma", [1e-3, 0.03, 1.0])
def test_a_sketch_is_the_kernel_matrix_but_for_what_it_leaves(gamma, first):
    random = np.random.default_rng(4)
    X = random.normal(size=(300, 3))
    X[200:] = X[:100]
    features, K = make_features("rbf", X, 3, gamma=gamma), rbf_kernel(X, gamma=gamma)
    features.pivots.outranks(first)  # rows that are found one by one may stand before those found by blocks
    counts = []
    for left in (0.5, 1e-2, 1e-4, 1e-6):
        counts.append(pivots_for(features, left, 100))
        if counts[-1] is None:
            assert np.linalg.eigvalsh(K)[-101 + 1 :].min() > 0.0
            assert sketched(features, 100).left.max() > left
            continue
        sketch = sketched(features, counts[-1])
        L, pivots = sketch.factor
        rest = K - L @ L.T
        np.testing.assert_allclose(rest.diagonal(), sketch.left, atol=1e-12)
        assert sketch.left.max() <= left + 1e-15
        assert np.linalg.eigvalsh(rest)[0] > -1e-10
        assert len(sketch.factor.pivots) == counts[-1]
        np.testing.assert_allclose(np.triu(L[pivots], 1), 0.0, atol=1e-7)
        np.testing.assert_allclose(sketch.features.gram, L.T @ L, atol=1e-10)
    known = [count for count in counts if count is not None]
    assert known == sorted(known)
    assert counts[len(known) :] == [None] * (4 - len(known))
    assert (counts[-1] is None) == (gamma == 1.0)


def test_a_sketch_ends_where_rounding_begins():
    features, sketch = sketch_of(gamma=1e-4, p=100)
    assert len(sketch.factor.pivots) < 60
    assert pivots_for(features, 0.0, 120) is None
    nothing = make_features("precomputed", np.zeros((9, 9)), 2)
    assert pivots_for(nothing, 1e-3, 5) == 0
    assert sketched(nothing, 5).factor.L.shape == (9, 0)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", ["rbf", "rbf_threshold"])
def test_the_proximal_step_of_a_sketch_is_that_of_its_matrix(name, k):
    _, sketch = sketch_of(name, k)
    same = make_features(name.replace("rbf", "precomputed"), sketch.factor.L @ sketch.factor.L.T, k)
    random = np.random.default_rng(5)
    for sigma in (0.3, 1e-3):
        G = random.normal(size=(120, k))
        G -= G.mean(axis=1, keepdims=True)
        (X, theta), (other, expected) = sketch.features.proximal(G, sigma), same.proximal(G, sigma)
        np.testing.assert_allclose(X, other, atol=1e-9)
        np.testing.assert_allclose(sketch.features.scores(theta), same.scores(expected), atol=1e-9)
        assert sketch.features.square_norm(theta) == pytest.approx(same.square_norm(expected), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["rbf", "rbf_threshold"])
def test_a_function_of_the_sketch_is_one_of_the_kernel_with_coefficients_on_the_pivots(name):
    features, sketch = sketch_of(name)
    theta = np.random.default_rng(6).normal(size=features.shape)
    moved = sketch.of_kernel(theta)
    np.testing.assert_allclose(features.scores(moved), sketch.features.scores(theta), atol=1e-9)
    assert features.square_norm(moved) == pytest.approx(sketch.features.square_norm(theta), rel=1e-9)
    assert np.flatnonzero(moved[:120].reshape(120, -1).any(axis=1)).tolist() == sorted(sketch.factor.pivots.tolist())
    assert sketch.features.square_norm(theta) < features.square_norm(theta)
    single = np.zeros(features.shape)
    single[7] = 2.0
    assert sketch.unseen(single) == pytest.approx(features.square_norm(single) - sketch.features.square_norm(single), abs=1e-12)


@pytest.fixture
def systems(monkeypatch):
    """The maps whose systems splitting has solved, by name, in the order of the iterations."""
    seen = []
    found = kernel_splitting._Iteration._take

    def take(self, left, before, limit):
        found(self, left, before, limit)
        seen.append(0 if self.sketch is None else len(self.sketch.factor.pivots))

    monkeypatch.setattr(kernel_splitting._Iteration, "_take", take)
    return seen


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(("name", "features"), [("llw", "rbf"), ("ww", "rbf"), ("zero_one", "rbf"), ("absolute", "rbf_threshold")])
def test_a_sketch_leads_to_the_optimum_of_the_whole_matrix(name, features, weights, tol, systems, monkeypatch):
    for C in (8.0, 2.0**9):
        problem = problem_of(C, name, 240, 0.01, weights, features)
        certificate = solved(problem, tol, max_passes=20_000)[1]
        assert systems.pop(0) > 0
        systems.clear()
        with monkeypatch.context() as patch:
            patch.setattr(kernel_splitting, "_COARSE", 0.0)
            other = solved(problem_of(C, name, 240, 0.01, weights, features), tol, max_passes=20_000)[1]
        assert systems == []
        assert certificate.converged
        assert other.converged
        assert certificate.dual <= other.primal * (1 + 1e-12)
        assert other.dual <= certificate.primal * (1 + 1e-12)


def test_a_sketch_serves_kernels_with_a_constant_and_warm_starts(systems):
    X = np.random.default_rng(7).normal(size=(300, 4))
    y = (X[:, 0] + 0.3 * X[:, 1] ** 2 > 0.5).astype(np.intp) + (X[:, 2] > 0.8)
    features, previous = make_features("rbf", X, 3, gamma=0.01, constant=1.0), None
    for C in (1.0, 8.0, 64.0, 512.0, 4096.0):
        problem = Problem(features, make_loss("llw", 3), y, 1.0 / (C * 300))
        previous = make_solver("kernel_splitting").solve(problem, Limits(1e-3), previous)
        certificate = certify(problem, previous, 1e-3)
        assert certificate.converged
        other = Problem(make_features("rbf", X, 3, gamma=0.01, constant=1.0), problem.loss, y, problem.lam)
        assert certify(other, make_solver("kernel_newton").solve(other, Limits(1e-6)), 1e-6).primal >= certificate.dual * (1 - 1e-9)
        assert systems
        systems.clear()


@pytest.mark.parametrize("weights", [False, True])
def test_no_gap_is_claimed_that_the_kernel_matrix_does_not_confirm(weights, systems, monkeypatch):
    """Sketches that are far too coarse: their own gap closes long before that of K, and more rows are taken, at last all."""
    monkeypatch.setattr(kernel_splitting, "_LOST", 1e-9)
    monkeypatch.setattr(kernel_splitting, "_COARSE", 10.0)
    monkeypatch.setattr(kernel_splitting, "_FEWEST_ROWS", 1)
    monkeypatch.setattr(kernel_splitting, "_LARGEST_CUT", 4.0)
    problem = problem_of(2.0**8, n=240, gamma=0.05, weights=weights)
    solution, certificate = solved(problem, 1e-3)
    assert solution.status == "converged"
    assert certificate.converged
    assert len(systems) > 2
    short, judged = solved(problem, 1e-3, max_passes=25)
    assert short.passes <= 25
    assert short.status == "max_passes"
    assert not judged.converged
    late = make_solver("kernel_splitting").solve(problem, Limits(1e-3, max_seconds=0.0))
    assert late.status == "max_seconds"


def test_a_sketch_that_ends_at_rounding_makes_way_for_the_matrix(systems, monkeypatch):
    monkeypatch.setattr(kernel_splitting, "_MOST_ROWS", 1.0)
    problem = problem_of(64.0, n=240, gamma=1e-4)
    run = kernel_splitting._Iteration(problem, Limits(1e-3), None, None)
    run._take(0.0, 0, 240)
    rows = systems[-1]
    assert 0 < rows < 240
    run._take(0.0, rows, 240)
    assert systems[-1] == 0
    assert run.near is problem


def distant(problem):
    """A start far from rest: the coefficients of a fit to moved labels, a thousand times as large."""
    moved = replace(problem, y=(problem.y + 1) % 3)
    found = make_solver("kernel_splitting").solve(moved, Limits(1e-3))
    return replace(found, theta=1e3 * found.theta, R=np.zeros_like(found.R))


@pytest.fixture
def rests(monkeypatch):
    """The solutions that splitting has begun at."""
    seen = []
    found = kernel_splitting._Iteration._rest
    monkeypatch.setattr(kernel_splitting._Iteration, "_rest", lambda self, start: seen.append(start) or found(self, start))
    return seen


@pytest.mark.parametrize("weights", [False, True])
def test_a_fit_that_stands_still_begins_once_more_at_a_neighbouring_C(weights, rests):
    problem = problem_of(512.0, n=240, weights=weights)
    before = solved(problem_of(256.0, n=240, weights=weights), 1e-3)[0]
    start, found = distant(problem), {}
    for name, reserve in (("alone", None), ("neighbour", before), ("far", replace(before, lam=8.0 * before.lam))):
        solver, _ = make_solver("kernel_splitting"), rests.clear()
        solver.reserve = reserve
        found[name] = solver.solve(problem, Limits(1e-3, max_passes=20_000), start)
        assert rests == ([start, before] if name == "neighbour" else [start])
        assert certify(problem, found[name], 1e-3).converged
        for most in (20.0, 37.0, 38.0, 39.0, 40.0, 45.0):
            assert solver.solve(problem, Limits(1e-9, max_passes=most), start).passes <= most
        solver.reserve = start
        rests.clear()
        assert solver.solve(problem, Limits(1e-3, max_passes=20_000), start).passes == found["alone"].passes
    assert found["neighbour"].passes < found["alone"].passes == found["far"].passes


def test_the_path_of_C_is_the_reserve_behind_the_block_method(rests, monkeypatch):
    monkeypatch.setattr(kernel_splitting, "_STILL", 0.0)
    auto, problem = make_solver("auto"), problem_of(512.0, n=240, gamma=1.0)
    before = auto.solve(problem_of(256.0, n=240, gamma=1.0), Limits(1e-3))
    rests.clear()
    found = auto.solve(problem, Limits(1e-6), before)
    assert found.solver.startswith("kernel_dual+kernel_splitting")
    assert rests[1] is before
    assert certify(problem, found, 1e-6).converged


def test_without_room_for_a_sketch_the_factor_serves(systems):
    """K of 240 rows takes 0.44 MB, and a factor as much."""
    problem = problem_of(64.0, n=240, gamma=0.01)
    small = Problem(make_features("rbf", problem.features.X, 3, gamma=0.01, memory_mb=1.0), problem.loss, problem.y, problem.lam)
    assert make_solver("kernel_splitting").lacks(small) is None
    assert solved(small, 1e-3)[1].converged
    assert systems == []
    assert solved(problem, 1e-3)[1].converged
    assert systems
