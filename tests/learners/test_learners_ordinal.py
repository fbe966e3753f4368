"""Threshold models: known answers, an independent interior point solver, and what the literature proves of them."""

import os
import warnings
from pathlib import Path
from types import SimpleNamespace

import clarabel
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from advcli import OrdinalClassifier, data
from advcli.core.compiled import kernels
from advcli.core.errors import ConfigError, IncompatibleError, NotConvergedWarning
from advcli.learners import Method
from advcli.learners.base import Rows
from advcli.problems.threshold import COUPLINGS, ThresholdProblem, optimal_interval
from advcli.solvers.newton.scored_rows import ExplicitRows, KernelRows
from advcli.solvers.newton.threshold import _by_pairs, minimise, to_face_optimum
from advcli.testing import check_learner

METHODS = ("at", "it", "red_th", "svorim", "svorex")
MODELS = (
    {"method": "at"},
    {"method": "it"},
    {"method": "it", "ordered": True},
    {"method": "red_th"},
    {"method": "red_th", "bias": "regularised"},
)
named = pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join(map(str, model.values())))


def ordered_data(seed, n=40, d=3, k=4, noise=0.7):
    """Return rows and codes of k classes in order, each of which occurs."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    z = X @ random.normal(size=d) + noise * random.normal(size=n)
    y = np.searchsorted(np.quantile(z, np.linspace(0, 1, k + 1)[1:-1]), z)
    return X, y


def peer_optimum(X, y, k, C, model, weight=None):
    """Return the optimum in the scaling lambda/2 |.|^2 + mean, by Clarabel, with theta, b and slacks as the papers write them."""
    n, d = X.shape
    m = k - 1
    weight = np.ones(n) if weight is None else weight
    method = model["method"]
    size = d + m + 1  # w, theta, b
    pieces = [(i, j) for i in range(n) for j in range(m) if method not in ("it", "svorex") or j in (y[i] - 1, y[i])]
    penalty = np.zeros(size + len(pieces))
    penalty[:d] = 1.0
    if method == "red_th":
        penalty[d : d + m] = 1.0
        penalty[d + m] = float(model.get("bias") == "regularised")
    A, low = sparse.lil_array((2 * len(pieces) + m + 1, size + len(pieces))), np.zeros(2 * len(pieces) + m + 1)
    cost = np.zeros(size + len(pieces))
    for at, (i, j) in enumerate(pieces):
        s = 1.0 if y[i] > j else -1.0
        # slack >= 1 - s (w.x + b - theta_j)
        A[at, :d], A[at, d + j], A[at, d + m], A[at, size + at], low[at] = s * X[i], -s, s, 1.0, 1.0
        A[len(pieces) + at, size + at] = 1.0
        cost[size + at] = C * weight[i]
    row = 2 * len(pieces)
    if model.get("ordered"):
        for j in range(m - 1):
            A[row + j, d + j + 1], A[row + j, d + j] = 1.0, -1.0
    equal = sparse.lil_array((1, size + len(pieces)))
    if method != "red_th":
        equal[0, d + m] = 1.0  # the thresholds are free, a bias would be one too many
    G = sparse.vstack([equal.tocsc(), -A.tocsc()]).tocsc()
    options = clarabel.DefaultSettings()
    options.verbose, options.tol_gap_abs, options.tol_gap_rel, options.tol_feas = False, 1e-11, 1e-11, 1e-11
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(len(low))]
    P = sparse.diags_array(penalty).tocsc()
    found = clarabel.DefaultSolver(P, cost, G, np.concatenate([[0.0], -low]), cones, options).solve()
    return found.obj_val / (C * weight.sum())


def fitted(X, y, tol=1e-8, **given):
    return OrdinalClassifier(tol=tol, **given).fit(X, y)


def read_machinecpu():
    """Return the standardised rows of machinecpu and its five classes of equal frequency."""
    folder = os.environ.get("ADVCLI_DATA")
    if not folder or not list(Path(folder).glob("machinecpu*")):
        pytest.skip("set ADVCLI_DATA to a folder with machinecpu")
    options = {"name": "machinecpu", "source": "folder", "cut": "equal_frequency", "n_classes": 5}
    found = data.load(options, Path(folder))
    return (found.X - found.X.mean(axis=0)) / found.X.std(axis=0, ddof=1), found.y


# ---- optima ---------------------------------------------------------------------------------------------------------


@named
@pytest.mark.parametrize("C", [0.05, 3.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_optimum_is_that_of_an_interior_point_solver(model, C, seed):
    X, y = ordered_data(seed)
    found = fitted(X, y, C=C, **model)
    assert found.certificate_.converged
    assert found.certificate_.primal == pytest.approx(peer_optimum(X, y, 4, C, model), rel=2e-7)


@named
def test_a_kernel_has_the_optimum_of_its_factor(model):
    X, y = ordered_data(3, n=30)
    L = np.linalg.cholesky(rbf_kernel(X, gamma=0.5) + 1e-3 * np.eye(len(y)))
    found = fitted(X, y, C=5.0, features="rbf", features_options={"gamma": 0.5}, ridge=1e-3, **model)
    assert found.certificate_.primal == pytest.approx(peer_optimum(L, y, 4, 5.0, model), rel=2e-7)


@named
def test_weights_count_rows_and_sparse_rows_are_dense_ones(model):
    X, y = ordered_data(5)
    X[np.abs(X) < 0.4] = 0.0
    weight = np.random.default_rng(0).integers(0, 4, size=len(y)).astype(float)
    weight[[np.flatnonzero(y == code)[0] for code in range(4)]] = 1.0
    found = OrdinalClassifier(C=0.5, tol=1e-8, **model).fit(X, y, sample_weight=weight)
    assert found.certificate_.primal == pytest.approx(peer_optimum(X, y, 4, 0.5, model, weight), rel=2e-7)
    repeated = fitted(np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int)), C=0.5, **model)
    assert repeated.certificate_.primal == pytest.approx(found.certificate_.primal, rel=1e-8)
    kernel = {"features": "rbf", "features_options": {"gamma": 0.5}, "ridge": 0.2}
    once = OrdinalClassifier(C=0.5, tol=1e-8, **model, **kernel).fit(X, y, sample_weight=weight)
    each = rbf_kernel(np.repeat(X, weight.astype(int), axis=0), gamma=0.5) + 0.2 * np.eye(int(weight.sum()))
    root = np.linalg.cholesky(each)
    peer = peer_optimum(root, np.repeat(y, weight.astype(int)), 4, 0.5, model)
    assert once.certificate_.primal == pytest.approx(peer, rel=2e-7)
    thin = OrdinalClassifier(C=0.5, tol=1e-8, **model).fit(sparse.csr_array(X), y, sample_weight=weight)
    assert thin.certificate_.primal == pytest.approx(found.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(thin.latent(X), found.latent(X), atol=1e-3)


@pytest.mark.parametrize("d", [2, 60])
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_explicit_rows_and_their_kernel_are_one_problem(d, coupling):
    X, y = ordered_data(7, n=50, d=d)
    problem = ThresholdProblem(y.astype(np.intp), np.ones((4, 3)), np.ones(50), 0.7, coupling)
    linear, kernel = minimise(problem, ExplicitRows(X), 1e-9), minimise(problem, KernelRows(X @ X.T), 1e-9)
    assert linear.primal == pytest.approx(kernel.primal, rel=3e-9)
    np.testing.assert_allclose(linear.g, kernel.g, atol=1e-3)
    # pairs are enough for a kernel, but where no constraint couples the dual variables
    rough = minimise(problem, KernelRows(X @ X.T), 1e-3)
    assert rough.solver == ("newton" if coupling == "none" else "pairs")
    assert rough.gap <= 1e-3
    assert rough.dual <= linear.primal <= rough.primal + 1e-9 * rough.primal


@given(st.integers(0, 10**6), st.sampled_from(COUPLINGS), st.floats(0.01, 30.0))
@example(46701, "ordered", 1.0)  # the share of one side is all of it, but for rounding
@settings(max_examples=30, deadline=None)
def test_no_dual_point_is_above_a_primal_one_and_repair_makes_it_feasible(seed, coupling, C):
    random = np.random.default_rng(seed)
    n, m = int(random.integers(2, 9)), int(random.integers(1, 5))
    y, X = random.integers(0, m + 1, size=n), random.normal(size=(n, 2))
    problem = ThresholdProblem(y.astype(np.intp), random.random((m + 1, m)).round(1), random.random(n) + 0.1, C, coupling)
    alpha = problem.feasible(random.normal(size=(m, n)) * C)
    assert problem.outside(alpha) < 1e-12
    np.testing.assert_allclose(problem.feasible(alpha), alpha, rtol=1e-9, atol=1e-12)  # what is feasible stays
    w = X.T @ problem.spanned(alpha)
    for eta in (problem.thresholds(X @ w, alpha), random.normal(size=m)):
        eta = np.sort(eta) if coupling == "ordered" else eta
        v = w if seed % 2 else random.normal(size=2)
        assert problem.dual(alpha, float(w @ w)) <= problem.primal(float(v @ v), X @ v, eta) * (1 + 1e-12) + 1e-12


@given(st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_the_interval_of_a_threshold_is_all_of_its_minimisers(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 9))
    kinks, heights = random.integers(-3, 4, size=n).astype(float), random.integers(0, 3, size=n).astype(float)
    falls = random.random(n) < 0.5
    low, high = optimal_interval(kinks, heights, falls)

    def value(e):
        return float((heights * np.where(falls, np.maximum(kinks - e, 0.0), np.maximum(e - kinks, 0.0))).sum())

    least = min(value(e) for e in np.concatenate([kinks, [-9.0, 9.0]]))
    for e in (max(low, -9.0), min(high, 9.0)):
        assert value(e) == pytest.approx(least, abs=1e-12)
    if np.isfinite(low):
        assert value(low - 0.01) > least
    if np.isfinite(high):
        assert value(high + 0.01) > least


def test_multipliers_of_the_order_survive_a_repair():
    problem = ThresholdProblem(np.array([0, 2]), np.ones((3, 2)), np.ones(2), 1.0, "ordered")
    alpha = np.array([[0.5, 0.0], [0.0, 0.5]])  # totals -0.5 and 0.5: a multiplier of 0.5
    np.testing.assert_array_equal(problem.feasible(alpha), alpha)


def test_a_threshold_lies_in_the_middle_of_its_interval():
    problem = ThresholdProblem(np.array([0, 0, 1, 1]), np.ones((2, 1)), np.ones(4), 1.0, "each")
    assert problem.thresholds(np.array([-5.0, -2.0, 4.0, 7.0]), np.zeros((1, 4))).tolist() == [1.0]  # any of [-1, 3] is best


@pytest.mark.parametrize("rounded", [0.0, -1e-15])
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_a_step_that_leaves_no_hinge_free_ends_however_its_last_sums_are_rounded(monkeypatch, coupling, rounded):
    compiled = kernels.newton_threshold

    def step(y, U, g, eta, *given):
        short, size = compiled.step(y, U, g, eta, *given), float(U.sum() * (1.0 + np.abs(g).max() + np.abs(eta).max()))
        return short if short > 1e-14 * size else rounded * size

    monkeypatch.setattr(
        kernels, "newton_threshold", SimpleNamespace(step=step, slope=compiled.slope, settle=compiled.settle, hinges=compiled.hinges)
    )
    for seed in range(4):
        X, y = ordered_data(seed)
        problem = ThresholdProblem(y.astype(np.intp), np.eye(4, 3) + np.eye(4, 3, -1), np.ones(40), 0.05, coupling)
        found = minimise(problem, ExplicitRows(X), 1e-10)
        assert (found.status, found.steps < 60) == ("converged", True)


@pytest.mark.parametrize(
    ("given", "optimum"),
    [
        ({"method": "at"}, 1.21933778),
        ({"method": "it"}, 1.05624662),
        ({"method": "it", "ordered": True}, 1.05624662),
        ({"method": "red_th"}, 1.46603490),
        ({"method": "red_th", "bias": "regularised"}, 1.46931584),
    ],
)
def test_known_answers_with_linear_features(given, optimum):
    X, y = read_machinecpu()
    assert fitted(X, y, lam=0.1, **given).certificate_.primal == pytest.approx(optimum, abs=2e-8)


@pytest.mark.parametrize(
    ("method", "C", "optimum"),
    [
        ("svorim", 1.0, 1.15753065),
        ("svorex", 1.0, 1.03339666),
        ("red_th", 1.0, 1.17722458),
        ("svorim", 64.0, 0.77677933),
        ("svorex", 64.0, 0.72109190),
        ("red_th", 64.0, 0.77763973),
    ],
)
def test_known_answers_with_the_gaussian_kernel(method, C, optimum):
    X, y = read_machinecpu()
    found = fitted(X, y, method=method, C=C, features="rbf", features_options={"gamma": 1 / 8})
    assert found.certificate_.primal == pytest.approx(optimum, abs=2e-8)


# ---- what is known of the models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", ["linear", "rbf"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_thresholds_of_all_terms_are_in_order_unasked_and_those_of_svorex_by_constraint(features, C):
    X, y = ordered_data(11, n=60, noise=3.0)
    given = {"features": features, "features_options": {"gamma": 0.4} if features == "rbf" else None, "C": C, "tol": 1e-7}
    for method in ("at", "svorim", "red_th"):
        assert (np.diff(OrdinalClassifier(method=method, **given).fit(X, y).thresholds_) > -1e-6).all()
    assert (np.diff(OrdinalClassifier(method="svorex", **given).fit(X, y).thresholds_) >= 0).all()


def test_free_thresholds_can_cross_and_the_order_then_costs():
    # many rows of the outer classes hold the thresholds a margin beyond themselves, one row between them does not
    X = np.repeat([0.0, 1.0, 0.5], [20, 20, 1])[:, None]
    y = np.repeat([0, 2, 1], [20, 20, 1])
    free, held = (fitted(X, y, method="it", ordered=ordered, C=0.02) for ordered in (False, True))
    assert (np.diff(free.thresholds_) < -1e-3).any()
    assert (np.diff(held.thresholds_) >= 0).all()
    assert held.certificate_.primal > free.certificate_.primal * (1 + 1e-4)
    counted = (free.latent(X)[:, None] > free.thresholds_).sum(axis=1)
    np.testing.assert_array_equal(free.predict(X), counted)
    np.testing.assert_array_equal(free.decision_function(X).argmax(axis=1), counted)


@pytest.mark.parametrize("seed", [0, 4])
def test_order_that_holds_unasked_changes_nothing(seed):
    X, y = ordered_data(seed)
    free, held = (fitted(X, y, method="it", ordered=ordered, C=0.3) for ordered in (False, True))
    assert (np.diff(free.thresholds_) > 0).all()
    assert held.certificate_.primal == pytest.approx(free.certificate_.primal, rel=2e-8)
    np.testing.assert_allclose(held.thresholds_, free.thresholds_, atol=1e-3)


def test_two_classes_are_the_support_vector_machine_with_a_free_bias():
    from sklearn.svm import SVC

    X, y = ordered_data(2, k=2)
    peer = SVC(kernel="rbf", gamma=0.3, C=2.0, tol=1e-9).fit(X, y)
    g = peer.decision_function(X)
    coef = np.zeros(len(y))
    coef[peer.support_] = peer.dual_coef_[0]
    optimum = (0.5 * coef @ rbf_kernel(X, gamma=0.3) @ coef + 2.0 * np.maximum(1 - np.where(y, 1, -1) * g, 0).sum()) / (2.0 * len(y))
    for method in ("at", "it", "svorim", "svorex"):
        found = fitted(X, y, method=method, C=2.0, features="rbf", features_options={"gamma": 0.3})
        assert found.certificate_.primal == pytest.approx(optimum, rel=1e-7)
        np.testing.assert_allclose(found.latent(X) - found.thresholds_[0], g, atol=1e-4)
        np.testing.assert_array_equal(found.predict(X), peer.predict(X))


@pytest.mark.parametrize("C", [0.01, 1.0, 50.0])
def test_errors_of_the_binary_machine_bound_the_absolute_error(C):
    X, y = ordered_data(6, noise=2.0)
    found = fitted(X, y, tol=1e-4, method="red_th", C=C)
    eta = np.sort(found.thresholds_)
    wrong = ((found.latent(X)[:, None] > eta) != (y[:, None] > np.arange(3))).sum(axis=1)
    assert (np.abs(found.predict(X) - y) <= wrong).all()
    # and hinges bound the errors
    hinges = np.maximum(1 - np.where(y[:, None] > np.arange(3), 1, -1) * (found.latent(X)[:, None] - found.thresholds_), 0).sum(axis=1)
    assert (wrong <= hinges + 1e-9).all()


def test_penalised_thresholds_become_free_ones_as_their_penalty_vanishes():
    X, y = ordered_data(8)
    free = fitted(X, y, C=1.0).certificate_.primal
    # with v = t w the objective on t x at C / t^2 is that of v on x at C, and of theta with t^2 of its penalty
    first, second, third = (fitted(t * X, y, method="red_th", C=1.0 / t**2).certificate_.primal - free for t in (1.0, 0.1, 0.01))
    assert first > second > third > -1e-8 * free
    assert third < 1e-4 * free


def test_hinges_bunch_the_scores_and_the_fit_counts_them():
    X, y = ordered_data(9, n=60)
    found = fitted(X, y, C=50.0, features="rbf", features_options={"gamma": 1.0})
    assert found.counts_ == {"n_distinct_scores": found.n_distinct_scores_}
    g = np.sort(found.latent(X))
    assert found.n_distinct_scores_ == 1 + int((np.diff(g) > 1e-6).sum())
    assert found.n_distinct_scores_ < 60
    np.testing.assert_allclose(found.thresholds_, fitted(X, y, C=50.0, features="rbf", features_options={"gamma": 1.0}).thresholds_, atol=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_distinct_scores_are_counted_without_the_ridge(weighted):
    X, y = ordered_data(9, n=40)
    X[:10] = X[10:20]  # equal rows of several labels: one score, whatever their variables
    weight = np.arange(1.0, 41.0) if weighted else None
    model = OrdinalClassifier(method="red_th", C=50.0, tol=1e-6, features="rbf", features_options={"gamma": 1.0}, ridge=2.0)
    found = model.fit(X, y, sample_weight=weight)
    assert found.n_distinct_scores_ <= 30
    g = np.sort(found.latent(X))
    assert found.n_distinct_scores_ == 1 + int((np.diff(g) > 1e-6).sum())
    with_ridge = np.sort(found._point.g)
    assert found.n_distinct_scores_ != 1 + int((np.diff(with_ridge) > 1e-6).sum())


# ---- classes that do not occur --------------------------------------------------------------------------------------


@pytest.mark.parametrize("absent", [0, 2, 4])
def test_an_absent_class_takes_its_threshold_along(absent):
    X, y = ordered_data(10, k=4)
    y = y + (y >= absent)
    found = OrdinalClassifier(n_classes=5, tol=1e-8).fit(X, y)
    g = found.latent(X)
    assert not (found.predict(X) == absent).any()
    eta = found.thresholds_
    if absent == 0:
        assert eta[0] == pytest.approx(g.min() - 1)
    elif absent == 4:
        assert eta[3] == pytest.approx(g.max() + 1)
    else:
        assert eta[absent - 1] == pytest.approx(eta[absent], abs=1e-9)
    np.testing.assert_array_equal(found.decision_function(X).argmax(axis=1), found.predict(X))


@pytest.mark.parametrize("method", ["it", "svorex"])
@pytest.mark.parametrize("absent", [0, 2, 4])
def test_immediate_thresholds_are_those_of_the_classes_that_occur(method, absent):
    X, y = ordered_data(10, k=4)
    whole = OrdinalClassifier(method=method, n_classes=5, tol=1e-8).fit(X, y + (y >= absent))
    part = OrdinalClassifier(method=method, n_classes=4, tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(whole.thresholds_, part.thresholds_)
    np.testing.assert_array_equal(whole.predict(X), part.predict(X) + (part.predict(X) >= absent))
    np.testing.assert_array_equal(whole.decision_function(3 * X).argmax(axis=1), whole.predict(3 * X))
    assert whole.remarks_ == ("1 of 5 classes do not occur and are never predicted: thresholds lie between the others",)
    assert part.remarks_ == ()


@named
def test_one_class_is_predicted_always(model):
    X, _ = ordered_data(0)
    found = OrdinalClassifier(n_classes=3, **model).fit(X, np.ones(len(X), dtype=int))
    assert found.certificate_.converged
    assert (found.predict(X) == 1).all()


# ---- paths, limits, parameters --------------------------------------------------------------------------------------


@named
@pytest.mark.parametrize("features", ["linear", "rbf"])
def test_a_warm_start_finds_the_same_optimum(model, features):
    X, y = ordered_data(12, n=80)
    cold, start = None, None
    for C in (0.1, 1.0, 10.0):
        learner = OrdinalClassifier(C=C, tol=1e-7, features=features, **model)
        bound = learner.bind(Rows(X), y)
        start = learner.fit_bound(bound, start)
        cold = OrdinalClassifier(C=C, tol=1e-7, features=features, **model).fit(X, y)
        assert start.certificate_.converged
        assert start.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-7)


def test_skewed_columns_and_many_thresholds_end_certified():
    """Rows whose thresholds come to rest at kinks, where settling them after a step that was cut short went on for ever."""
    random = np.random.default_rng(5)
    X = np.exp(random.normal(size=(100, 4)))
    z = X.sum(axis=1) + 0.5 * random.normal(size=100)
    y = np.minimum((10 * (z - z.min()) / np.ptp(z)).astype(int), 9)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = OrdinalClassifier(method="svorex", lam=4e-5, features="rbf", features_options={"gamma": 0.004}).fit(X, y)
    assert found.certificate_.converged
    # Newton's method from the start: pairs end most fits over a kernel
    _, y = np.unique(y, return_inverse=True)
    m = int(y.max())
    problem = ThresholdProblem(y.astype(np.intp), np.eye(m + 1, m) + np.eye(m + 1, m, -1), np.ones(100), 250.0, "ordered")
    assert minimise(problem, ExplicitRows(X), 1e-3).status == "converged"


def test_a_fit_at_its_limit_says_so():
    X, y = ordered_data(0)
    with pytest.warns(NotConvergedWarning, match="after 1 passes"):
        found = OrdinalClassifier(tol=1e-12, max_passes=1).fit(X, y)
    assert found.certificate_.status == "max_passes"


def test_the_order_of_text_labels_is_the_one_that_is_given():
    X, y = ordered_data(13, k=3)
    words = np.array(["low", "medium", "high"])
    found = OrdinalClassifier(order=words).fit(X, words[y])
    np.testing.assert_array_equal(found.order_, words)
    np.testing.assert_array_equal(found.classes_, np.sort(words))
    np.testing.assert_array_equal(found.predict(X), words[OrdinalClassifier().fit(X, y).predict(X)])
    with pytest.raises(ConfigError, match="order lacks the labels high"):
        OrdinalClassifier(order=["low", "medium"]).fit(X, words[y])
    with pytest.raises(ConfigError, match="each label once"):
        OrdinalClassifier(order=["low", "low"]).fit(X, words[y])


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"method": "ad"}, ConfigError, "did you mean"),
        ({"bias": "free"}, ConfigError, "method=at has no option bias"),
        ({"method": "red_th", "bias": "fre"}, ConfigError, "did you mean free"),
        ({"method": "it", "ordered": "yes"}, ConfigError, "ordered=yes must be true or false"),
        ({"ridge": 0.1}, IncompatibleError, "a kernel"),
        ({"ridge": -1.0, "features": "rbf"}, ConfigError, "at least 0"),
        ({"C": 0.0}, ConfigError, "C must be a positive number"),
        ({"features": "threshold"}, IncompatibleError, "one score"),
        ({"features": "rbf", "features_options": {"memory_mb": 1e-6}}, ConfigError, "keeps the whole kernel matrix"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(given, error, said):
    X, y = ordered_data(0)
    with pytest.raises(error, match=said) as caught:
        OrdinalClassifier(**given).fit(X, y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", METHODS)
def test_labels_without_an_order_are_refused(name):
    with pytest.raises(IncompatibleError, match=r"labels with an order; give it with dataset\.order"):
        Method({"name": name}, {"name": "linear"}, {"name": "auto"}).check(False, 3)


@pytest.mark.parametrize("method", METHODS)
def test_the_contract_of_learners_is_kept(method):
    """Scikit-learn's checks are made of one method here, and of each method's own class in test_learners_sklearn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_learner(OrdinalClassifier(method=method), scikit_learn=method == METHODS[0])


# ---- red_th with other costs ----------------------------------------------------------------------------------------
STEEP = np.array([[0.0, 1.0, 9.0], [2.0, 0.0, 3.0], [5.0, 0.5, 0.0]])


@pytest.mark.parametrize("cost", ["absolute", "squared", "zero_one", STEEP])
@pytest.mark.parametrize("kernel", [False, True])
def test_red_th_is_a_weighted_machine_on_extended_examples(cost, kernel):
    """LIBSVM on rows (x, e_j) with the kernel K + [j = j'] and the weights |c_y[j] - c_y[j + 1]|."""
    X, y = ordered_data(21, n=40)
    y = np.digitize(y, [y.max() / 3, 2 * y.max() / 3])
    c = {"absolute": np.abs(np.subtract.outer(range(3), range(3)))}
    c |= {"squared": c["absolute"] ** 2, "zero_one": 1 - np.eye(3)}
    c = c[cost] if isinstance(cost, str) else cost
    own = {"features": "rbf", "features_options": {"gamma": 0.4}} if kernel else {}
    model = OrdinalClassifier(method="red_th", cost=cost, C=2.0, tol=1e-8, **own).fit(X, y)
    K = rbf_kernel(X, gamma=0.4) if kernel else X @ X.T
    row, j = np.repeat(np.arange(40), 2), np.tile(np.arange(2), 40)
    label, weight = np.where(y[row] > j, 1, -1), np.abs(c[j, y[row]] - c[j + 1, y[row]])
    used = weight > 0
    row, j, label, weight = row[used], j[used], label[used], weight[used]
    G = K[np.ix_(row, row)] + (j[:, None] == j)
    peer = SVC(C=2.0, kernel="precomputed", tol=1e-9).fit(G, label, sample_weight=weight)
    beta = np.zeros(len(row))
    beta[peer.support_] = peer.dual_coef_[0]
    value = 0.5 * beta @ G @ beta + 2.0 * weight @ np.maximum(1 - label * peer.decision_function(G), 0.0)
    assert model.certificate_.converged
    ours = model.certificate_.primal * 2.0 * 40
    assert ours == pytest.approx(value, rel=1e-5)
    assert model.metric_ == {"absolute": "mae", "squared": "mse", "zero_one": "error"}.get(cost if isinstance(cost, str) else "", "cost")


def test_costs_of_red_th_that_are_none_are_told():
    X, y = ordered_data(3)
    with pytest.raises(ConfigError, match="did you mean squared"):
        OrdinalClassifier(method="red_th", cost="square").fit(X, y)
    with pytest.raises(ConfigError, match="method=at has no option cost"):
        OrdinalClassifier(method="at", cost="squared").fit(X, y)
    with pytest.raises(ConfigError, match="cost"):
        OrdinalClassifier(method="red_th", cost=[[0.0, 1.0], [1.0, 0.0]]).fit(X, y)


# ---- a peer ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "C"), [("svorim", 1.0), ("svorex", 1.0), ("red_th", 1.0), ("red_th", 64.0)])
def test_skordinal_predicts_the_same(method, C):
    peers = pytest.importorskip("skordinal.classifiers", reason="skordinal is not installed: pip install skordinal")
    X, y = ordered_data(14, n=120, noise=0.3)
    given = {"C": C, "kernel": "rbf", "gamma": 0.3, "tol": 1e-4}
    if method == "red_th":
        peer = peers.REDSVM(**given)
    else:
        peer = peers.SVOR(constraints="implicit" if method == "svorim" else "explicit", **given)
    peer.fit(X, y)
    # SVOR adds 0.001 to the diagonal
    own = {"ridge": 0.0 if method == "red_th" else 1e-3, "features": "rbf", "features_options": {"gamma": 0.3}}
    found = fitted(X, y, tol=1e-7, method=method, C=C, **own)
    new = np.random.default_rng(1).normal(size=(400, 3))
    near = np.abs(found.latent(new)[:, None] - found.thresholds_).min(axis=1) > 1e-2  # their tolerance moves thresholds
    assert near.mean() > 0.9
    np.testing.assert_array_equal(peer.predict(new)[near], found.predict(new)[near])


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_rows_of_weight_zero_of_a_given_kernel_are_as_good_as_gone(ridge):
    X, y = ordered_data(15)
    weight = np.ones(len(y))
    weight[::5] = 0.0
    held = weight > 0
    K = rbf_kernel(X, gamma=0.5)
    given = {"method": "svorim", "features": "precomputed", "ridge": ridge, "tol": 1e-8}
    whole = OrdinalClassifier(**given).fit(K, y, sample_weight=weight)
    part = OrdinalClassifier(**given).fit(K[np.ix_(held, held)], y[held])
    assert whole.certificate_.primal == pytest.approx(part.certificate_.primal, rel=2e-8)
    assert np.isfinite(whole.proof(K, y, weight)["theta"]).all()
    np.testing.assert_allclose(whole.latent(K), part.latent(K[:, held]), atol=1e-3)


def test_pairs_that_add_up_to_none_end_the_ascent(monkeypatch):
    calls = []

    def ascend(*given):
        calls.append(given[-1])
        assert len(calls) < 100
        return max(given[-1] - 1, 0), 0.4

    monkeypatch.setattr("advcli.solvers.newton.threshold.kernels", SimpleNamespace(ascent_pairs=SimpleNamespace(ascend=ascend)))
    problem = ThresholdProblem(np.array([0, 1, 1]), np.ones((2, 1)), np.ones(3), 1.0, "each")
    found = _by_pairs(problem, KernelRows(np.eye(3)), 1e-3, 10, None)
    assert found.status == "max_passes"
    assert min(calls) >= 1
    assert calls[-1] == 1


@pytest.mark.parametrize("method", ["svorim", "svorex", "red_th"])
def test_without_systems_of_faces_a_large_C_costs_more_steps(method, monkeypatch):
    def steps():
        fits = [OrdinalClassifier(method=method, C=4096.0, tol=1e-3, features="rbf", features_options={"gamma": 0.3}) for _ in range(6)]
        return sum(fit.fit(*ordered_data(seed, 300, noise=0.1)).n_iter_ for seed, fit in enumerate(fits))

    with_systems = steps()
    monkeypatch.setattr("advcli.solvers.newton.threshold._LARGEST_FACE", 0)
    assert with_systems < 0.8 * steps()


@pytest.mark.parametrize("coupling", ["each", "ordered", "sum"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_on_a_face_the_dual_rises_to_where_its_slopes_agree(coupling, seed):
    random = np.random.default_rng(seed)
    n, m = 25, int(random.integers(1, 4))
    X = random.normal(size=(n, 3))
    rows = KernelRows(np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)))
    y = random.integers(0, m + 1, size=n).astype(np.intp)
    offset = random.normal(size=n) if seed % 2 else None
    problem = ThresholdProblem(y, np.ones((m + 1, m)), np.ones(n), 50.0, coupling, offset)
    # most at an end, some rows with two variables inside
    alpha = problem.feasible(problem.U * random.choice([0.0, 0.3, 0.5, 1.0], p=[0.4, 0.15, 0.15, 0.3], size=(m, n)))
    held = (alpha == 0.0) | (alpha == problem.U)
    g = rows.scores(problem.spanned(alpha))
    before, totals = problem.dual(alpha, float(problem.spanned(alpha) @ g)), problem.totals(alpha)
    start = alpha.copy()
    for _ in range(5 * n * m):
        inside = (alpha > 0.0) & (alpha < problem.U)
        to_face_optimum(problem, rows, alpha, g, 4)
        if np.array_equal(inside, (alpha > 0.0) & (alpha < problem.U)):
            break
    scale = 1e-9 * problem.U.sum()
    assert ((alpha >= 0.0) & (alpha <= problem.U)).all()
    np.testing.assert_array_equal(alpha[held], start[held])
    np.testing.assert_allclose(g, rows.scores(problem.spanned(alpha)), atol=scale)
    moved = problem.totals(alpha) - totals
    assert abs(moved.sum()) <= scale
    assert coupling == "sum" or np.abs(moved).max() <= scale
    assert problem.dual(alpha, float(problem.spanned(alpha) @ g)) >= before - scale
    # slopes h of the module's pairs: equal among the variables inside, of one threshold or of all
    inside = (alpha > 0.0) & (alpha < problem.U)
    h = problem.signs - problem.seen(g) - (problem.totals(alpha)[:, None] if coupling == "sum" else 0.0)
    if inside.sum(axis=0).max() <= 1:
        for part in [h[inside]] if coupling == "sum" else [h[j, inside[j]] for j in range(m)]:
            assert len(part) == 0 or np.ptp(part) <= 1e-6
