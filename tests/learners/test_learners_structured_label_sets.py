"""Sets of labels: optima against a conic solver over all sets, gradients, weak duality, one optimum for all searches, and bad input."""

import warnings

import clarabel
import numpy as np
import pytest
import support.thesis_searches  # noqa: F401 - registers them
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from support.every_set import axes, objective, points, weights
from support.every_set import small_problem as problem

from advcli.core.errors import ConfigError, IncompatibleError, NotConvergedWarning
from advcli.learners.structured import MultilabelClassifier
from advcli.learners.structured.label_sets import PairWeights, SearchedSets
from advcli.learners.structured.spaces.psi import make_psi
from advcli.solvers.base import Limits
from advcli.solvers.cutting_planes import CuttingPlanes, fit_cutting_planes

SURROGATES = [("margin", None), ("slack", None), ("scaling", 0.5), ("scaling", 0.0), ("f1", None), ("log", None), ("prob", None)]
AFFINE = [each for each in SURROGATES if each[0] not in ("log", "prob")]


def fitted(X, Y, **options):
    given = {"C": 1.0, "tol": 1e-7, "max_passes": 2000, "fit_intercept": False}
    return MultilabelClassifier(**given | options).fit(X, Y)


def conic_optimum(listed, psi, lam):
    """Return min P by Clarabel: a quadratic program, with exponential cones for ``log``."""
    n, D = len(listed), listed[0][0].shape[1]
    logs = psi.name == "log"
    many = sum(len(wrong) for _, wrong, _ in listed) if logs else 0
    width = D + n + 3 * many  # w, xi, and t, u, v of every set: t >= log(1 + e^h) where u + v <= 1, u >= e^(h - t), v >= e^(-t)
    P = sparse.diags_array(np.concatenate([np.full(D, lam), np.zeros(n + 3 * many)])).tocsc()
    q = np.concatenate([np.zeros(D), np.full(n, 1.0 / n), np.zeros(3 * many)])
    linear, linear_b, cone, cone_b, at = [], [], [], [], D + n
    for i, (A, wrong, sizes) in enumerate(listed):
        for a, l, s in zip(A, wrong, sizes, strict=True):
            row = np.zeros(width)
            row[D + i] = -1.0
            if logs:
                row[at] = l
                linear += [row, np.eye(width)[at + 1] + np.eye(width)[at + 2]]
                linear_b += [0.0, 1.0]
                for place, slope in ((at + 1, a), (at + 2, 0.0 * a)):
                    first = np.zeros(width)
                    first[:D], first[at] = -slope, 1.0
                    last = np.zeros(width)
                    last[place] = -1.0
                    cone += [first, np.zeros(width), last]
                    cone_b += [0.0, 1.0, 0.0]
                at += 3
                continue
            h, g = axes(psi, 0.0, float(l), float(s))
            slope, constant = float(psi.slopes(h, g)[0]), float(psi.value(h, g))
            row[:D] = slope * a
            linear.append(row)
            linear_b.append(-constant)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(len(linear)), *[clarabel.ExponentialConeT() for _ in range(len(cone) // 3)]]
    solver = clarabel.DefaultSolver(P, q, sparse.csc_array(np.array(linear + cone)), np.array(linear_b + cone_b), cones, settings)
    return solver.solve().obj_val


@pytest.mark.parametrize(
    ("surrogate", "beta", "pairs"), [(*each, pairs) for each in AFFINE for pairs in ("one", "four", "none")] + [("log", None, "one")]
)
def test_the_optimum_is_that_of_a_conic_solver_over_all_sets(surrogate, beta, pairs):
    X, Y = problem(3)
    # log needs ever new tangents: the last digits take as many searches as all before
    model = fitted(X, Y, surrogate=surrogate, beta=beta, pairs=pairs, tol=5e-7 if surrogate == "log" else 1e-7)
    listed = points(X, Y, pairs)
    psi = make_psi(surrogate, beta)
    expected = conic_optimum(listed, psi, model.lam_)
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-6)
    assert objective(psi, model.lam_, listed, weights(model)) == pytest.approx(model.certificate_.primal, rel=1e-12)


def test_the_optimum_of_prob_is_that_of_a_solver_of_smooth_programs():
    X, Y = problem(5, n=4, m=2)
    model = fitted(X, Y, surrogate="prob", C=0.5, tol=1e-6)
    listed, psi = points(X, Y, "one"), make_psi("prob")
    D, n = listed[0][0].shape[1], len(listed)

    def room(z):
        return np.concatenate([z[D + i] - psi.value(A @ z[:D], wrong.astype(float)) for i, (A, wrong, _) in enumerate(listed)])

    start = np.concatenate([np.zeros(D), np.full(n, 3.0)])
    found = minimize(
        lambda z: 0.5 * model.lam_ * z[:D] @ z[:D] + z[D:].mean(),
        start,
        constraints={"type": "ineq", "fun": room},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.success
    assert model.certificate_.primal == pytest.approx(found.fun, rel=1e-5)
    assert model.certificate_.dual <= found.fun * (1 + 1e-9)


@given(seed=st.integers(0, 10**6), which=st.sampled_from(SURROGATES), pairs=st.sampled_from(["one", "four", "none"]))
@settings(max_examples=40, deadline=None)
def test_the_worst_set_is_that_of_all_and_its_plane_is_a_gradient(seed, which, pairs):
    X, Y = problem(seed, m=1 + seed % 4)
    random = np.random.default_rng(seed)
    model = MultilabelClassifier(surrogate=which[0], beta=which[1], pairs=pairs, fit_intercept=False)
    model.classes_, model.of_sets_ = np.arange(Y.shape[1]), True
    structure = model.problem(X, sparse.csr_array(Y), np.full(len(X), 1 / len(X)), model.psi())
    W, shared = random.normal(size=(Y.shape[1], X.shape[1])), random.normal(size=structure.G)
    cuts = structure.all_cuts(W, shared)
    w, listed = np.concatenate([W.ravel(), shared]), points(X, Y, pairs)
    psi = make_psi(*which)

    def surrogates(at):
        return np.array([psi.value(*axes(psi, A @ at, wrong.astype(float), sizes.astype(float))).max() for A, wrong, sizes in listed])

    values = surrogates(w)
    np.testing.assert_allclose(cuts.value, values, atol=1e-10)
    np.testing.assert_array_equal(cuts.upper, cuts.value)
    parts = cuts.parts.toarray()
    a = np.hstack([np.einsum("nk,nd->nkd", parts[:, structure.G :], X).reshape(len(X), -1), parts[:, : structure.G]])
    # the plane touches the surrogate, lies below it, and is its derivative where there is one
    np.testing.assert_allclose(cuts.constant + a @ w, values, atol=1e-10)
    other = w + random.normal(size=len(w))
    assert (cuts.constant + a @ other <= surrogates(other) + 1e-10).all()
    step = 1e-6 * random.normal(size=len(w))
    difference = (surrogates(w + step) - surrogates(w - step)) / 2.0
    np.testing.assert_allclose(difference, a @ step, atol=1e-9)


@given(seed=st.integers(0, 10**6), which=st.sampled_from(SURROGATES))
@settings(max_examples=30, deadline=None)
def test_the_dual_of_any_stored_planes_is_below_any_primal(seed, which):
    X, Y = problem(seed)
    random = np.random.default_rng(seed)
    model = MultilabelClassifier(surrogate=which[0], beta=which[1], fit_intercept=False)
    model.classes_, model.of_sets_ = np.arange(Y.shape[1]), True
    structure = model.problem(X, sparse.csr_array(Y), np.full(len(X), 1 / len(X)), model.psi())
    planes, lam = CuttingPlanes(structure), float(random.uniform(0.01, 1.0))
    for _ in range(3):
        cuts = structure.all_cuts(random.normal(size=(structure.K, 2)), random.normal(size=structure.G))
        planes.add(cuts, np.arange(structure.n))
    planes.alpha = random.random(len(planes.owner)) * 3.0 - 0.5
    planes.feasible()
    assert planes.outside() <= 1e-12
    dual = planes.dual(lam, *planes.weights(lam))
    listed, psi = points(X, Y, "one"), make_psi(*which)
    w = np.concatenate([each.ravel() for each in planes.weights(lam)])
    for at in (w, np.zeros(len(w)), random.normal(size=len(w))):
        assert dual <= objective(psi, lam, listed, at) + 1e-10


@pytest.mark.parametrize("search", ["levels", "exact", "angular", "auto"])
def test_exact_searches_have_one_optimum(search):
    X, Y = problem(11, n=10)
    model = fitted(X, Y, surrogate="slack", search=search, tol=1e-6)
    assert model.oracle_gap_ == 0.0
    assert model.certificate_.primal == pytest.approx(fitted(X, Y, surrogate="slack").certificate_.primal, rel=2e-6)


@pytest.mark.parametrize("search", ["hull", "bisecting", "binary"])
def test_inexact_searches_say_what_they_cost(search):
    X, Y = problem(11, n=10)
    exact = fitted(X, Y, surrogate="slack").certificate_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model = fitted(X, Y, surrogate="slack", search=search)
    found = model.certificate_
    assert found.dual <= exact.primal * (1 + 1e-9) <= found.primal * (1 + 2e-9)
    assert 0.0 < model.oracle_gap_ <= found.gap * (1 + 1e-9)
    assert found.status == "inexact_search"
    assert model.counts_ == {"oracle_gap": model.oracle_gap_, "oracle_calls": float(model.oracle_calls_)}


def test_hull_search_is_exact_for_margin_and_f1():
    X, Y = problem(13, n=10)
    for surrogate in ("margin", "f1"):
        model = fitted(X, Y, surrogate=surrogate, search="hull", tol=1e-6)
        assert model.oracle_gap_ <= 1e-12
        assert model.certificate_.primal == pytest.approx(fitted(X, Y, surrogate=surrogate).certificate_.primal, rel=2e-6)


def test_many_labels_go_to_the_relaxation_and_its_surrogate_is_certified():
    X, Y = problem(17, n=12, m=18)
    model = fitted(X, Y, C=0.1, tol=1e-3)
    assert "18 labels are too many" in model.remarks_[0]
    assert model.certificate_.converged
    assert model.predict(X).shape == (12, 18)
    with pytest.raises(IncompatibleError, match=r"levels"):
        fitted(X, Y, search="levels")
    # without pairs the levels are exact for any number of labels
    free = fitted(X, Y, C=0.1, tol=1e-6, pairs="none", surrogate="slack")
    assert free.certificate_.converged
    assert free.remarks_ == ()


def test_labels_without_pairs_are_learned_one_by_one_by_margin_rescaling():
    X, Y = problem(19, n=20)
    together = fitted(X, Y, pairs="none")
    alone = [fitted(X, Y[:, [j, j]], pairs="none").certificate_.primal / 2 for j in range(3)]
    assert together.certificate_.primal == pytest.approx(sum(alone), rel=1e-6)


def test_four_weights_of_a_pair_are_the_same_functions():
    X, Y = problem(23)
    model = fitted(X, Y, pairs="four")
    best = model.predict(X).toarray()
    for x, chosen in zip(X, best, strict=True):
        listed = points(x[None], chosen[None], "four")[0][0] @ weights(model)
        assert listed.max() <= 1e-12  # no set scores more than the chosen one


def test_weights_of_rows_are_repetitions():
    X, Y = problem(29)
    twice = fitted(np.vstack([X, X[:3]]), np.vstack([Y, Y[:3]]))
    weighed = MultilabelClassifier(tol=1e-7, fit_intercept=False).fit(X, Y, sample_weight=[2, 2, 2, 1, 1, 1])
    assert weighed.lam_ == twice.lam_
    assert weighed.certificate_.primal == pytest.approx(twice.certificate_.primal, rel=1e-6)


def test_sparse_rows_are_dense_ones():
    X, Y = problem(31)
    assert fitted(sparse.csr_array(X), Y).certificate_.primal == pytest.approx(fitted(X, Y).certificate_.primal, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"surrogate": "hinge"}, "surrogate=hinge is unknown"),
        ({"beta": 0.5}, "beta=0.5 is an option of loss.surrogate=scaling"),
        ({"surrogate": "scaling", "beta": 2.0}, "must have beta >= 0"),
        ({"pairs": "two"}, "pairs=two is unknown"),
        ({"search": "oracle"}, "search=oracle is unknown"),
        ({"search": "angular"}, "search=angular"),
        ({"C": -1.0}, "C must be a positive number"),
        ({"fit_intercept": "no"}, "fit_intercept=no must be true or false"),
    ],
)
def test_options_without_meaning_are_refused(options, words):
    X, Y = problem(0)
    with pytest.raises(ConfigError, match=words):
        MultilabelClassifier(**options).fit(X, Y)


def test_labels_that_are_not_0_and_1_are_refused():
    X, Y = problem(0)
    with pytest.raises(ValueError, match="must hold 0 and 1"):
        MultilabelClassifier().fit(X, 2 * Y)


def test_searches_by_blocks_end_at_the_same_optimum_in_fewer_passes_where_labels_share_weights():
    random = np.random.default_rng(29)
    X = random.normal(size=(24, 3))
    Y = (X @ random.normal(size=(3, 7)) + random.normal(size=(24, 7)) > 0.5).astype(np.int8)
    fits = {}
    for blocks, passes in ((1, 10), (16, 10), (1, 1000), (16, 1000)):
        structure = SearchedSets(X, Y, np.full(24, 1 / 24), make_psi("margin"), PairWeights(7, "one"), relaxed=True)
        assert structure.blocks == 16
        structure.blocks = blocks
        fit = fits[blocks, passes] = fit_cutting_planes(structure, 0.03, Limits(1e-3, passes))
        assert fit.passes <= passes
    assert [fits[blocks, 1000].stopped for blocks in (1, 16)] == ["converged"] * 2
    assert max(fits[blocks, 1000].dual for blocks in (1, 16)) <= min(fits[blocks, 1000].primal for blocks in (1, 16))
    one, many = (fits[blocks, 10].primal - fits[blocks, 10].dual for blocks in (1, 16))
    assert many < 0.7 * one
