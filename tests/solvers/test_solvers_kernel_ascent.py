"""The kernel dual solver: every surrogate against an independent solver and the linear solvers, rounds, memory, warm starts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel
from support import reference
from support.instruction_sets import levels
from support.registered import canonical_losses, examples, with_kinks

from advcli.core import compiled
from advcli.core.compiled import Kernels, usable_levels
from advcli.features import make_features
from advcli.losses import loss_class, make_loss
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem, Solution
from advcli.solvers import Limits, make_solver
from advcli.solvers.coordinate import kernel as kernel_dual
from advcli.solvers.coordinate.kernel import KernelDualSolver

LOSSES = [name for name in with_kinks(canonical_losses()) if loss_class(name).kernel in compiled.kernels.families]


def blobs(n, d=3, k=4, seed=0, spread=1.0):
    random = np.random.default_rng([seed, n])
    y = random.integers(k, size=n).astype(np.intp)
    y[:k] = np.arange(k)
    return np.ascontiguousarray(random.normal(size=(n, d)) + spread * random.normal(size=(k, d))[y]), y


def loss_options(name, k):
    return next(each for each in examples(name, k) if each.get("backend") != "highs")


def solve(problem, tol=1e-6, start=None, **limits):
    solution = KernelDualSolver().solve(problem, Limits(tol, **{"max_passes": 100_000, "max_seconds": 600, **limits}), start)
    return solution, certify(problem, solution, tol)


@pytest.mark.parametrize("lam", [0.1, 0.01])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_every_surrogate_reaches_the_independent_optimum(name, weighted, lam):
    X, y = blobs(40)
    K, options = X @ X.T, loss_options(name, 4)
    random = np.random.default_rng(1)
    sample = random.integers(0, 3, size=40).astype(float) if weighted else None
    cost = random.uniform(0.5, 2.0, size=40) if weighted else None
    loss = make_loss(name, 4, **options)
    tol = 1e-7
    problem = Problem(make_features("precomputed", K, 4), loss, y, lam, sample, cost)
    solution, certificate = solve(problem, tol)
    expected = reference.solve_problem(name, X, y, lam, 4, sample, cost, **options)
    assert certificate.converged, certificate
    assert certificate.primal == pytest.approx(expected["primal"], rel=2 * tol)
    assert certificate.dual == pytest.approx(expected["primal"], rel=2 * tol)
    assert solution.memory["support"] == np.count_nonzero(solution.R.any(axis=1))


@pytest.mark.parametrize("level", usable_levels())
@pytest.mark.parametrize("weights", ["none", "sample", "cost", "both"])
@pytest.mark.parametrize("name", LOSSES)
def test_the_survey_is_the_sum_of_the_rows(name, weights, level):
    """s_i w_i (S - c - r.f/w) of every row and the three sums, beside the NumPy tier in plain loops."""
    compiled, k, n = Kernels(level).ascent_kernel, 4, 30
    loss = make_loss(name, k, **loss_options(name, k))
    random = np.random.default_rng(7)
    F, y = random.normal(size=(n, k)), random.integers(k, size=n).astype(np.intp)
    corner = loss.oracle_reference(random.normal(size=(n, k)), y).R
    R = random.uniform(size=(n, 1)) * corner  # between a vertex and the label itself
    sample = random.choice([0.0, 1.0, 3.0], size=n) if weights in ("sample", "both") else np.empty(0)
    cost = random.uniform(0.2, 5.0, size=n) if weights in ("cost", "both") else np.empty(0)
    padded, gap = np.zeros((n, compiled.width(k))), np.empty(n)
    padded[:, :k] = R
    sums = compiled.survey(*Kernels(level).arguments(loss.family), np.ascontiguousarray(F.T), y, sample, cost, padded, gap)
    expected, losses, offsets, inners = [], 0.0, 0.0, 0.0
    for i in range(n):
        s, w = sample[i] if len(sample) else 1.0, cost[i] if len(cost) else 1.0
        value = loss.oracle_reference(F[i : i + 1] / w, y[i : i + 1]).value[0]
        c = loss.offset_reference(R[i : i + 1], y[i : i + 1])[0]
        expected.append(s * w * (value - c - R[i] @ F[i] / w))
        losses, offsets, inners = losses + s * w * value, offsets + s * w * c, inners + s * R[i] @ F[i]
    np.testing.assert_allclose(gap, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(sums, [losses, offsets, inners], rtol=0, atol=1e-10)
    assert min(expected) > -1e-12


@pytest.mark.parametrize("name", ["zero_one", "cs", "ww", "llw", "absolute", "abstain"])
def test_the_kernel_of_inner_products_is_the_linear_problem(name):
    X, y = blobs(1500, d=6)
    loss = make_loss(name, 4)
    linear = Problem(make_features("linear", X, 4), loss, y, 0.01)
    kernel = Problem(make_features("precomputed", X @ X.T, 4), loss, y, 0.01)
    one = make_solver("auto").solve(linear, Limits(1e-7, max_seconds=600))
    other, certificate = solve(kernel, 1e-6)
    assert certificate.converged
    assert certificate.primal == pytest.approx(linear.primal(one.theta), rel=1e-6)
    np.testing.assert_allclose(X.T @ other.theta, one.theta, atol=0.02)
    assert linear.dual(other.R) == pytest.approx(certificate.dual, rel=1e-9)


@pytest.fixture(scope="module")
def large():
    X, y = blobs(1600, d=4, spread=1.5)
    return X, y, make_features("rbf", X, 4, gamma=0.5)


def test_rounds_on_a_part_of_the_rows_reach_the_same_optimum(large, monkeypatch):
    """One fit works on growing sets of rows, the other always on all of them."""
    _, y, features = large
    problem = Problem(features, make_loss("zero_one", 4), y, 5e-4)
    sizes = []
    choose = kernel_dual._Working.choose

    def recorded(self, *arguments):
        joined = choose(self, *arguments)
        sizes.append(None if self.rows is None else len(self.rows))
        return joined

    monkeypatch.setattr(kernel_dual._Working, "choose", recorded)
    parts, first = solve(problem, 1e-5)
    assert any(size is not None and size < 1000 for size in sizes)
    monkeypatch.setattr(kernel_dual, "_SAMPLE", 1600)
    sizes.clear()
    everything, second = solve(problem, 1e-5)
    assert set(sizes) == {None}
    assert first.converged
    assert second.converged
    assert first.primal == pytest.approx(second.primal, rel=2e-5)
    assert 0 < parts.memory["support"] < 1600
    np.testing.assert_allclose(features.scores(parts.theta), features.scores(everything.theta), atol=0.1)


def test_a_small_memory_reaches_the_same_optimum(large):
    X, y, features = large
    limited = make_features("rbf", X, 4, gamma=0.5, memory_mb=7.0)
    assert not limited.whole
    assert kernel_dual.largest_block(limited) < 700
    loss = make_loss("zero_one", 4)
    _, expected = solve(Problem(features, loss, y, 1e-3), 1e-5)
    solution, certificate = solve(Problem(limited, loss, y, 1e-3), 1e-5)
    assert certificate.converged
    assert certificate.primal == pytest.approx(expected.primal, rel=2e-5)
    assert limited.store.matrix is None
    assert Problem(features, loss, y, 1e-3).dual(solution.R) == pytest.approx(certificate.dual, rel=1e-9)


def test_rounds_that_do_not_rise_need_no_whole_matrix(large, monkeypatch):
    X, y, _ = large
    limited = make_features("rbf", X, 4, gamma=0.5, memory_mb=7.0)
    refined, refine = [], kernel_dual._Working.refine
    monkeypatch.setattr(kernel_dual, "_DOUBT", 0)
    monkeypatch.setattr(kernel_dual._Working, "refine", lambda self: (refine(self), refined.append(self))[0])
    _, certificate = solve(Problem(limited, make_loss("zero_one", 4), y, 1e-3), 1e-3)
    assert certificate.converged
    assert refined
    assert limited.store.matrix is None


@pytest.mark.parametrize(("name", "C"), [("zero_one", 1.0), ("zero_one", 5000.0), ("llw", 5000.0), ("absolute", 1.0)])
def test_rounded_copies_of_K_reach_the_same_optimum(name, C, large, monkeypatch):
    """In single precision, in double precision after rounds that do not rise, and in double precision from the start."""
    _, y, features = large
    rows = np.arange(0, 1600, 3)
    part = make_features("precomputed", np.ascontiguousarray(features.matrix[np.ix_(rows, rows)]), 4)
    problem = Problem(part, make_loss(name, 4), y[rows], 1.0 / (C * len(rows)))
    monkeypatch.setattr(kernel_dual, "_SAMPLE", 100)
    monkeypatch.setattr(kernel_dual, "_STRAIGHT", 0.0)
    dtypes, refined, tol = [], [], 1e-3 if C > 1 else 1e-7
    fill, refine = kernel_dual._Working._fill, kernel_dual._Working.refine
    monkeypatch.setattr(kernel_dual._Working, "_fill", lambda self, held: (fill(self, held), dtypes.append(self.held.dtype))[0])
    monkeypatch.setattr(kernel_dual._Working, "refine", lambda self: (refine(self), refined.append(self.held.dtype))[0])
    _, single = solve(problem, tol)
    assert set(dtypes) == {np.dtype(np.float32)} or refined
    monkeypatch.setattr(kernel_dual, "_DOUBT", 0)
    refined.clear()
    _, doubted = solve(problem, tol)
    assert refined
    monkeypatch.setattr(kernel_dual, "_SINGLE", 0.0)
    dtypes.clear()
    _, double = solve(problem, tol)
    assert set(dtypes) == {np.dtype(np.float64)}
    for each in (single, doubted, double):
        assert each.converged
        assert each.primal == pytest.approx(double.primal, rel=2 * tol)


def test_a_copy_of_K_takes_no_more_memory_than_there_is_beside_it(large, monkeypatch):
    X, y, _ = large
    features = make_features("rbf", X, 4, gamma=0.5, memory_mb=8.0 * 1.36 * 1600**2 / 2**20)
    assert features.whole
    monkeypatch.setattr(kernel_dual, "_STRAIGHT", 0.0)
    sizes, fill = [], kernel_dual._Working._fill
    monkeypatch.setattr(kernel_dual._Working, "_fill", lambda self, held: (fill(self, held), sizes.append(self.held.nbytes))[0])
    for name, lam in (("zero_one", 1e-3), ("llw", 1e-2)):
        assert solve(Problem(features, make_loss(name, 4), y, lam), 1e-3)[1].converged
    assert 0 < max(sizes) <= kernel_dual.spare(features)
    assert 8.0 * 1600**2 + max(sizes) <= features.memory_mb * 2**20
    assert 0 in sizes  # under llw nearly every row has a gap, and all of K has no room twice


def test_too_little_memory_is_an_error_before_any_work(large):
    X, y, _ = large
    problem = Problem(make_features("rbf", X, 4, gamma=0.5, memory_mb=1.0), make_loss("zero_one", 4), y, 1e-3)
    with pytest.raises(ValueError, match="memory_mb=1 is too small for 1600 rows"):
        solve(problem)


@pytest.mark.parametrize("name", ["zero_one", "ww"])
def test_a_warm_start_saves_passes_and_reaches_the_same_optimum(name, large):
    _, y, features = large
    loss = make_loss(name, 4)
    before, _ = solve(Problem(features, loss, y, 2e-3), 1e-4)
    problem = Problem(features, loss, y, 1e-3)
    cold, first = solve(problem, 1e-4)
    warm, second = solve(problem, 1e-4, start=before)
    assert first.converged
    assert second.converged
    assert warm.passes < cold.passes
    assert second.primal == pytest.approx(first.primal, rel=2e-4)
    _, third = solve(replace(problem, lam=1e-2), 1e-4, start=warm)  # against the path, too
    assert third.converged
    again, _ = solve(problem, 1e-4, start=warm)  # nothing left to do
    assert again.passes == 0.0
    assert np.array_equal(again.R, warm.R)


def test_a_warm_start_keeps_the_better_of_two_points(large):
    """Keeping r and keeping the scores: the dual value at the start is the larger one, computed independently."""
    _, y, features = large
    for before, after in ((1e-1, 1e-2), (1e-3, 1e-5), (1e-3, 1e-2)):
        first, _ = solve(Problem(features, make_loss("zero_one", 4), y, before), 1e-3)
        problem = Problem(features, make_loss("zero_one", 4), y, after)
        unmoved, _ = solve(problem, 1e-3, start=first, max_passes=0)
        candidates = [problem.dual(first.R)] + ([problem.dual(first.R * (after / before))] if after < before else [])
        assert unmoved.passes == 0.0
        assert problem.dual(unmoved.R) == pytest.approx(max(candidates), rel=1e-9, abs=1e-12)


def test_a_start_from_other_rows_is_left_alone(large):
    _, y, features = large
    problem = Problem(features, make_loss("zero_one", 4), y, 1e-2)
    stranger = Solution(np.zeros((3, 4)), np.ones((3, 4)), 1e-2, "kernel_dual", 1.0, 0.0)
    solution, certificate = solve(problem, 1e-3, start=stranger)
    assert certificate.converged
    assert np.array_equal(solution.R, solve(problem, 1e-3)[0].R)


def test_the_same_seed_gives_the_same_bits(large):
    _, y, features = large
    problem = Problem(features, make_loss("zero_one", 4), y, 1e-3)
    one, other = (KernelDualSolver().solve(problem, Limits(1e-3), seed=5) for _ in range(2))
    assert np.array_equal(one.R, other.R)
    assert np.array_equal(one.theta, other.theta)
    assert one.passes == other.passes
    different = KernelDualSolver().solve(problem, Limits(1e-3), seed=6)
    assert not np.array_equal(one.R, different.R)


@pytest.mark.parametrize("limits", [{"max_passes": 2}, {"max_seconds": 0.0}])
def test_a_limit_gives_an_honest_status_and_a_valid_certificate(limits, large):
    _, y, features = large
    problem = Problem(features, make_loss("zero_one", 4), y, 1e-5)
    _, certificate = solve(problem, 1e-9, **limits)
    assert not certificate.converged
    assert certificate.status == next(iter(limits))
    best = solve(problem, 1e-3)[1]
    assert certificate.dual <= best.primal
    assert certificate.primal >= best.dual


def test_a_row_of_zeros_and_equal_rows():
    X, y = blobs(60)
    X[3] = 0.0
    X[30:] = X[:30]
    problem = Problem(make_features("poly", X, 4, degree=2, coef0=0.0), make_loss("zero_one", 4), y, 1e-2)
    assert problem.features.diagonal[3] == 0.0
    assert solve(problem, 1e-6)[1].converged


@pytest.mark.parametrize("name", ["zero_one", "cs", "ww", "llw", "absolute", "squared", "abstain", "general"])
def test_every_instruction_set_climbs_alike(name):
    """One pass over a block from the same start: the same steps, up to rounding."""
    k = 11
    X, y = blobs(37, k=k)
    K, options = rbf_kernel(X), {"matrix": np.abs(np.subtract.outer(np.arange(k), np.arange(k))) ** 0.5} if name == "general" else {}
    loss = make_loss(name, k, **options)
    results = []
    for level in usable_levels():
        kernels = Kernels(level)
        compiled, family = kernels.ascent_kernel, kernels.arguments(loss.family)
        F, R, gap = np.zeros((k, 37)), np.zeros((37, compiled.width(k))), np.empty(37)
        none = np.empty(0)
        compiled.solve(*family, K, y, none, none, F, R, 3.0, 0.0, 0.0, 37.0, 60.0, 1)
        np.testing.assert_allclose(F, -3.0 * (K @ R[:, :k]).T, atol=1e-10)
        sums = compiled.survey(*family, F, y, none, none, R, gap)
        assert gap.min() >= -1e-12
        assert sums[0] - sums[1] - sums[2] == pytest.approx(gap.sum(), abs=1e-9)
        assert sums[0] == pytest.approx(loss.value(np.ascontiguousarray(F.T), y).sum())
        assert sums[1] == pytest.approx(loss.offset(R[:, :k], y).sum())
        results.append(R[:, :k])
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], atol=1e-7)


def shuffled(items, state):
    """The permutation of `_ext/support/adv_loop.pxd` (Fisher and Yates with splitmix64), and the state after it."""
    items, mask = list(items), 2**64 - 1
    for i in range(len(items) - 1, 0, -1):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        j = (z ^ (z >> 31)) % (i + 1)
        items[i], items[j] = items[j], items[i]
    return items, state


def ascent(loss, K, y, s, w, F, R, scale, seed, chunk, sweeps, lanes):
    """One round of `solve` in plain Python, in place: a survey, exact steps in turn by chunks, all rows' scores after each chunk."""
    s, w, state = s if len(s) else np.ones(len(y)), w if len(w) else np.ones(len(y)), seed

    def gaps(rows, F):
        return (s * w)[rows] * (
            loss.value(F / w[rows, None], y[rows]) - loss.offset(R[rows], y[rows]) - np.einsum("ij,ij->i", R[rows], F) / w[rows]
        )

    gap = gaps(np.arange(len(y)), F)
    order = np.flatnonzero(gap > (0.5 if lanes else 0.3) * gap.mean())
    for _ in range(1 if lanes else 3):
        order, state = shuffled(order, state)
        active = 0.0
        for start in range(0, len(order), chunk):
            rows, before = np.array(order[start : start + chunk]), R.copy()
            scores = F[rows].copy()
            for sweep in range(sweeps):
                for a, i in enumerate(rows):
                    active += gaps(rows[a : a + 1], scores[a : a + 1])[0] if sweep == 0 else 0.0
                    if s[i] > 0:
                        own, old = np.array([i]), R[i].copy()
                        R[i] = loss.block(scores[a : a + 1] / w[i], R[own], y[own], s[own] * K[i, i] * scale / w[i])[0]
                        scores -= scale * s[i] * np.outer(K[rows, i], R[i] - old)
            F -= scale * K[:, rows] @ (s[rows, None] * (R - before)[rows])
        if active <= 0.3 * gap[order].sum():
            break


@pytest.mark.parametrize("level", usable_levels())
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("weights", ["none", "both"])
@pytest.mark.parametrize("k", [5, 23])
@pytest.mark.parametrize("name", ["zero_one", "cs", "ww", "llw", "absolute", "abstain"])
def test_a_round_by_chunks_is_the_python_one(name, k, weights, single, level):
    """From a random point of 75 rows in the corner of a larger matrix: the same order, the same steps, the same scores."""
    kernels, n, scale = Kernels(level), 75, 2.0
    compiled, loss = kernels.ascent_kernel, make_loss(name, k)
    random = np.random.default_rng(3)
    X, y = blobs(n, k=k)
    K = rbf_kernel(X) * np.sqrt(np.outer(d := random.uniform(0.5, 2.0, size=n), d))
    sample = random.integers(0, 3, size=n).astype(float) if weights == "both" else np.empty(0)
    cost = random.uniform(0.5, 2.0, size=n) if weights == "both" else np.empty(0)
    if single:
        K = K.astype(np.float32).astype(float)
    R = random.uniform(size=(n, 1)) * loss.oracle_reference(random.normal(size=(n, k)), y).R
    F = -scale * K @ (R * (sample if len(sample) else np.ones(n))[:, None])
    held = np.full((n + 6, n + 9), np.nan, dtype=np.float32 if single else np.float64)
    held[:n, :n] = K
    padded, by_class, family = _padded(R, compiled, k), np.ascontiguousarray(F.T), kernels.arguments(loss.family)
    lanes, started = name in ("zero_one", "cs", "ww", "llw"), R.copy()  # whether gaps are computed for several rows side by side
    ascent(loss, K, y, sample, cost, F, R, scale, 11, 8, 2, lanes)
    assert np.abs(R - started).max() > 0.05
    code, _ = compiled.solve(*family, held, y, sample, cost, by_class, padded, scale, 0.0, -1.0, 1e9, 60.0, 11, 1.0, chunk=8)
    assert code == 1
    # steps in single precision differ by its rounding; on faces that are nearly flat dual variables differ by more
    np.testing.assert_allclose(by_class.T, F, atol=2e-4 if single else 1e-9)
    np.testing.assert_allclose(padded[:, :k], R, atol=2e-3 if single else 1e-8)


def _padded(R, compiled, k):
    padded = np.zeros((len(R), compiled.width(k)))
    padded[:, :k] = R
    return padded


@pytest.mark.parametrize("level", usable_levels())
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 3, 2), (8, 64, 5), (9, 65, 1), (30, 333, 11), (17, 1100, 3)])
def test_scores_follow_from_the_rows_of_K(shape, level):
    rows, n, k = shape
    random = np.random.default_rng(rows)
    K, F, A = random.normal(size=(rows + 5, n)), random.normal(size=(k, n)), random.normal(size=(rows, k))
    A[random.random(size=A.shape) < 0.4] = 0.0
    chosen = random.permutation(rows + 5)[:rows].astype(np.intp)
    expected = F + (K[chosen].T @ A).T
    Kernels(level).ascent_kernel.accumulate(K, chosen, A, F)
    np.testing.assert_allclose(F, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("level", usable_levels())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_block_of_K_grows_by_what_it_lacks(dtype, level):
    random = np.random.default_rng(0)
    K = random.normal(size=(90, 90))
    K = K + K.T
    rows, out = random.permutation(90)[:70].astype(np.intp), np.full((75, 80), np.nan, dtype=dtype)
    extend = Kernels(level).ascent_kernel.extend
    for held, count in ((0, 3), (3, 3), (3, 41), (41, 70)):
        extend(K, rows[:count], held, out)
        assert np.array_equal(out[:count, :count], K[np.ix_(rows[:count], rows[:count])].astype(dtype))
    assert np.isnan(out[70:]).all()
    assert np.isnan(out[:, 70:]).all()


@pytest.mark.parametrize("level", usable_levels())
@pytest.mark.parametrize("n", [1, 2, 4, 7, 16, 61])
def test_one_read_of_K_gives_both_products_and_the_largest_minor(n, level):
    random = np.random.default_rng(n)
    K, v, root = random.normal(size=(n, n)), random.normal(size=n), random.uniform(size=n)
    u, w = np.full(n, np.nan), np.full(n, np.nan)
    excess = Kernels(level).ascent_kernel.examine(K, v, root, u, w)
    np.testing.assert_allclose(u, K @ v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(w, K.T @ v, rtol=0, atol=1e-12)
    assert excess == pytest.approx((np.abs(K) - np.outer(root, root)).max(), abs=1e-12)


def listed_sets(seed, n=6, k=4, most=5):
    """Hulls of some points for every row, their weights, a kernel matrix and weights of rows."""
    random = np.random.default_rng(seed)
    first = np.concatenate([[0], np.cumsum(random.integers(1, most + 1, size=n))]).astype(np.intp)
    r, offset = random.normal(size=(first[-1], k)), random.uniform(size=first[-1])
    weight = np.concatenate([random.dirichlet(np.ones(size)) for size in np.diff(first)])
    weight[first[:-1][np.diff(first) > 1]] = 0.0
    weight /= np.repeat(np.add.reduceat(weight, first[:-1]), np.diff(first))
    sample, cost = random.integers(0, 3, size=n).astype(float), random.uniform(0.5, 2.0, size=n)
    return first, r, offset, weight, rbf_kernel(random.normal(size=(n, 3))), sample, cost


def listed_scores(first, r, weight, K, sample, scale):
    """Class by class, as the compiled side keeps them."""
    return np.ascontiguousarray((-scale * K @ (sample[:, None] * np.add.reduceat(weight[:, None] * r, first[:-1]))).T)


def visit_listed(points, offset, weight, f, curvature):
    """Move weight from the point that asks least to the one that asks most; return the weights, and the gap that was there before."""
    asked = points @ f + offset
    best, worst = int(asked.argmax()), int(np.argmin(np.where(weight > 0, asked, np.inf)))
    gap, apart, after = asked[best] - weight @ asked, points[best] - points[worst], weight.copy()
    if gap > 0:
        t = min(weight[worst], (asked[best] - asked[worst]) / (curvature * (apart @ apart)))
        after[best] += t
        after[worst] -= t
    return after, gap


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("seed", range(4))
def test_a_pass_over_listed_points_is_the_python_one(seed, level):
    """With rows that do not touch each other, so that their order does not matter, and one move each: a second may begin with a tie."""
    scale = 2.5
    first, r, offset, weight, K, sample, cost = listed_sets(seed, n=40, most=2)
    K = np.diag(np.random.default_rng(seed).uniform(0.5, 2.0, size=len(K)))
    F = listed_scores(first, r, weight, K, sample, scale)
    expected = weight.copy()
    for i in np.flatnonzero(sample):
        own = slice(first[i], first[i + 1])
        expected[own], _ = visit_listed(r[own], offset[own], weight[own], F[:, i] / cost[i], scale * sample[i] * K[i, i] / cost[i])
    assert np.abs(expected - weight).max() > 0.1
    solve_listed = Kernels(level).ascent_kernel.solve_listed
    assert solve_listed(K, first, r, offset, weight, sample, cost, F, scale, np.inf, 0.0, 1e9, 60.0, 1) == (0, len(K))
    np.testing.assert_allclose(weight, expected, atol=1e-12)
    np.testing.assert_allclose(F, listed_scores(first, r, weight, K, sample, scale), atol=1e-12)


@pytest.mark.parametrize("level", levels())
def test_a_visit_leaves_little_of_a_row_of_listed_points(level):
    scale = 2.5
    first, r, offset, weight, K, sample, cost = listed_sets(0, n=40, most=9)
    K = np.diag(np.diag(K))
    F = listed_scores(first, r, weight, K, sample, scale)
    before, scores = weight.copy(), F.copy()
    Kernels(level).ascent_kernel.solve_listed(K, first, r, offset, weight, sample, cost, F, scale, np.inf, 0.0, 1e9, 60.0, 1)
    for i in np.flatnonzero(sample):
        own, curvature = slice(first[i], first[i + 1]), scale * sample[i] * K[i, i] / cost[i]
        _, gap = visit_listed(r[own], offset[own], before[own], scores[:, i] / cost[i], curvature)
        _, left = visit_listed(r[own], offset[own], weight[own], F[:, i] / cost[i], curvature)
        assert left <= 0.05 * gap + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_listed_points_reach_the_independent_optimum(seed):
    scale = 2.5
    first, r, offset, weight, K, sample, cost = listed_sets(seed)
    own = np.repeat(np.arange(len(K)), np.diff(first))
    # maximise scale sum_j s w beta_j c_j - 1/2 |theta|^2, theta the sum of -scale s_i r_i K(x_i, .)
    Q = scale**2 * (sample[own][:, None] * sample[own]) * K[np.ix_(own, own)] * (r @ r.T)
    c = scale * (sample * cost)[own] * offset
    best = minimize(
        lambda b: 0.5 * b @ Q @ b - c @ b,
        np.full(len(own), 1.0) / np.diff(first)[own],
        jac=lambda b: Q @ b - c,
        bounds=[(0.0, 1.0)] * len(own),
        constraints={"type": "eq", "fun": lambda b: np.add.reduceat(b, first[:-1]) - 1.0, "jac": lambda b: np.eye(len(K))[:, own]},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    F = listed_scores(first, r, weight, K, sample, scale)
    code, _ = Kernels().ascent_kernel.solve_listed(K, first, r, offset, weight, sample, cost, F, scale, 1e-11, 0.0, 1e7, 60.0, 1)
    assert code == 0
    assert weight.min() >= 0.0
    np.testing.assert_allclose(np.add.reduceat(weight, first[:-1]), 1.0, atol=1e-12)
    assert 0.5 * weight @ Q @ weight - c @ weight == pytest.approx(best.fun, abs=1e-8)
    np.testing.assert_allclose(F, listed_scores(first, r, weight, K, sample, scale), atol=1e-11)


def test_the_compiled_faces_refuse_shapes_that_do_not_fit():
    compiled, none = Kernels().ascent_kernel, np.empty(0)
    K, y, F, R = np.eye(5), np.zeros(5, dtype=np.intp), np.zeros((3, 5)), np.zeros((5, compiled.width(3)))
    settings = (1.0, 0.0, 0.0, 10.0, 1.0, 1)
    family = Kernels().arguments(make_loss("zero_one", 3).family)
    compiled.solve(*family, K, y, none, none, F, R, *settings)
    for wrong in ((K[:4], y, none, none, F, R), (K, y[:4], none, none, F, R), (K, y, np.ones(4), none, F, R), (K, y, none, none, F[:2], R)):
        with pytest.raises(ValueError, match="must be"):
            compiled.solve(*family, *wrong, *settings)
    with pytest.raises(ValueError, match="must be"):
        compiled.accumulate(np.eye(5), np.arange(2), np.ones((3, 3)), F)
    with pytest.raises(ValueError, match="must be"):
        compiled.gather(np.eye(5), np.arange(2), np.arange(2), np.empty((2, 3)))
    first, r, offset, weight, K, sample, cost = listed_sets(0)
    F, settings = listed_scores(first, r, weight, K, sample, 1.0), (1.0, 0.0, 0.0, 10.0, 1.0, 1)
    compiled.solve_listed(K, first, r, offset, weight, sample, cost, F, *settings)
    empty = first.copy()
    empty[1] = 0
    for wrong in ((first[:-1], offset, F), (empty, offset, F), (first, offset[1:], F), (first, offset, F[1:])):
        with pytest.raises(ValueError, match=r"must be|needs"):
            compiled.solve_listed(K, wrong[0], r, wrong[1], weight, sample, cost, wrong[2], *settings)


def test_other_solvers_refuse_kernels_and_this_one_refuses_the_rest():
    X, y = blobs(20)
    kernel = Problem(make_features("rbf", X, 4), make_loss("zero_one", 4), y, 0.1)
    linear = Problem(make_features("linear", X, 4), make_loss("zero_one", 4), y, 0.1)
    assert make_solver("dual").lacks(kernel) is not None
    assert make_solver("newton").lacks(kernel) is not None
    assert make_solver("kernel_dual").lacks(linear) is not None
    assert make_solver("auto").lacks(kernel) is None
    assert make_solver("auto").solve(kernel, Limits()).solver.startswith("kernel_dual")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zero_one", "ww", "cs", "llw"])
def test_twenty_thousand_rows_need_no_square_matrix(name):
    random = np.random.default_rng(5)
    n = 20_000
    y = random.integers(4, size=n).astype(np.intp)
    X = random.normal(size=(n, 6)) + 1.5 * random.normal(size=(4, 6))[y]
    features = make_features("rbf", X, 4, gamma=0.2, memory_mb=300.0)  # the whole matrix would take 3052
    assert not features.whole
    problem = Problem(features, make_loss(name, 4), y, 1e-4)
    solution = make_solver("auto").solve(problem, Limits(1e-2))
    assert solution.solver == "kernel_dual"
    assert certify(problem, solution, 1e-2).converged
    assert features.store.matrix is None
    assert features.store.rows.nbytes <= 300 * 2**20
