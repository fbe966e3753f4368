"""`loss=metric`: the mixtures against linear programs over all mixtures, slopes against differences, the estimator against metrics."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from advcli import MetricClassifier, SurrogateClassifier, metrics
from advcli.core.errors import ConfigError, DataError, IncompatibleError, NotConvergedWarning
from advcli.learners.costs.mixtures import MEASURES, Member
from advcli.testing import check_learner, check_metric

NAMES = sorted(MEASURES)
BOUNDED = [name for name in NAMES if name != "macro_f1"]
OF_RECALLS = ["g_mean", "h_mean", "q_mean", "worst_class"]


def confusion(truth, predicted):
    """Return the shares of rows of each class (rows) that are predicted as each class, ``truth`` (n, k) adding to 1 over all rows."""
    C = np.zeros((truth.shape[1],) * 2)
    for row, code in zip(truth, predicted, strict=True):
        C[:, code] += row
    return C


def problem(seed, n=7, k=3):
    """Return what n rows add to each class, from random probabilities of classes of unequal shares."""
    random = np.random.default_rng(seed)
    Q = random.gamma(0.6, size=(n, k)) * random.uniform(0.2, 1.0, k) + 1e-3
    return Q / Q.sum(axis=1, keepdims=True) * random.dirichlet(np.ones(n))[:, None]


def optimised(name, truth, tol=1e-3, counted=None, most=1000):
    def step(costs):
        picked = np.argmin(truth @ costs.T, axis=1)
        return Member(costs, confusion(truth, picked))

    counted = np.ones(truth.shape[1], dtype=bool) if counted is None else counted
    measure = MEASURES[name](truth.sum(axis=0), counted)
    return measure, measure.optimise(step, most, tol)


def polytope(truth):
    """Return A (k k, n k) and B (n, n k): C = A z, and B z = 1 for the chances z of all predictions of the rows."""
    n, k = truth.shape
    A, B = np.zeros((k, k, n, k)), np.kron(np.eye(n), np.ones(k))
    for y, i, j in itertools.product(range(k), range(n), range(k)):
        A[y, j, i, j] = truth[i, y]
    return A.reshape(k * k, n * k), B


def largest(name, measure, truth):
    """Return the largest value over all randomised classifiers: a linear program, one of levels, or a convex program in the chances."""
    (n, k), (A, B) = truth.shape, polytope(truth)
    if name == "worst_class":
        recalls = A.reshape(k, k, -1)[np.arange(k), np.arange(k)] / truth.sum(axis=0)[:, None]
        program = linprog(
            np.append(np.zeros(n * k), -1.0),
            np.hstack([-recalls, np.ones((k, 1))]),
            np.zeros(k),
            np.hstack([B, np.zeros((n, 1))]),
            np.ones(n),
            method="highs",
        )
        return -program.fun
    if name == "quadratic_kappa":  # Charnes & Cooper 1962: N.z / D.z, z = u / t with D.u = 1
        N, D = (part.ravel() @ A for part in (measure.N, measure.D))
        equal = np.vstack([np.hstack([B, -np.ones((n, 1))]), np.append(D, 0.0)])
        return -linprog(np.append(-N, 0.0), A_eq=equal, b_eq=np.append(np.zeros(n), 1.0), method="highs").fun
    found = minimize(
        lambda z: -measure.value((A @ z).reshape(k, k)),
        np.full(n * k, 1.0 / k),
        jac=lambda z: -measure.tangent((A @ z).reshape(k, k))[0].ravel() @ A,
        bounds=[(0.0, 1.0)] * (n * k),
        constraints={"type": "eq", "fun": lambda z: B @ z - 1.0, "jac": lambda _: B},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    return -found.fun


# ---- mixtures ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", BOUNDED)
def test_the_mixture_and_its_bound_enclose_the_optimum_over_all_mixtures(name, seed):
    truth = problem(seed, n=7 + 4 * seed)
    measure, mixture = optimised(name, truth, 1e-4)
    best = largest(name, measure, truth)
    assert mixture.value <= best + 1e-7
    assert mixture.bound >= best - 1e-7
    assert mixture.bound - mixture.value <= 1e-4
    C = sum(weight * member.confusion for weight, member in zip(mixture.weights, mixture.members, strict=True))
    assert measure.value(C) == pytest.approx(mixture.value, abs=1e-12)
    assert mixture.weights.sum() == pytest.approx(1.0)
    assert (np.diff(mixture.weights) <= 0.0).all()


@pytest.mark.parametrize("seed", range(4))
def test_no_weights_of_all_classifiers_beat_the_bound_of_worst_class(seed):
    """Brute force: the linear program over every one of the 3^5 classifiers of five rows."""
    truth = problem(seed, n=5)
    shares = truth.sum(axis=0)
    R = np.array([np.diagonal(confusion(truth, picked)) / shares for picked in itertools.product(range(3), repeat=5)])
    m = len(R)
    program = linprog(
        np.append(np.zeros(m), -1.0),
        np.hstack([-R.T, np.ones((3, 1))]),
        np.zeros(3),
        np.append(np.ones(m), 0.0)[None],
        [1.0],
        method="highs",
    )
    _, mixture = optimised("worst_class", truth, 1e-9)
    assert mixture.value == pytest.approx(-program.fun, abs=1e-8)
    assert max(R.min(axis=1)) <= mixture.value + 1e-8  # a mixture is at least as good as each classifier


@pytest.mark.parametrize("seed", range(4))
def test_macro_f1_ends_where_no_classifier_leads_uphill_and_above_the_start(seed):
    truth = problem(seed, n=40, k=4)
    measure, mixture = optimised("macro_f1", truth, 1e-6)
    C = sum(weight * member.confusion for weight, member in zip(mixture.weights, mixture.members, strict=True))
    G, _ = measure.tangent(C)
    uphill = confusion(truth, np.argmax(truth @ G, axis=1))
    assert np.vdot(G, uphill - C) <= 1e-6
    assert mixture.value >= measure.value(confusion(truth, truth.argmax(axis=1))) - 0.05
    assert not measure.bounds


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("worst_class", "quadratic_kappa")])
def test_slopes_are_those_of_differences(name, seed):
    random = np.random.default_rng(seed)
    truth = problem(seed, n=30, k=4)
    measure = MEASURES[name](truth.sum(axis=0), np.array([True, True, seed % 2 == 0, True]))
    C = confusion(truth, random.integers(4, size=30))
    for picked in (random.integers(4, size=30), truth.argmax(axis=1)):  # in the middle, where every recall is above 0
        C = 0.5 * (C + confusion(truth, picked))
    C = 0.5 * C + 0.5 * np.outer(truth.sum(axis=0), np.full(4, 0.25))
    G, b = measure.tangent(C)
    assert np.vdot(G, C) + b == pytest.approx(measure.value(C))
    D = confusion(truth, random.integers(4, size=30)) - C
    step = 1e-6
    difference = (measure.value(C + step * D) - measure.value(C - step * D)) / (2.0 * step)
    assert np.vdot(G, D) == pytest.approx(difference, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", OF_RECALLS)
def test_tangents_of_concave_metrics_lie_above_them_everywhere(name, seed):
    random = np.random.default_rng(seed)
    truth = problem(seed, n=20, k=3)
    measure = MEASURES[name](truth.sum(axis=0), np.ones(3, dtype=bool))
    for _ in range(20):
        at, other = (confusion(truth, random.integers(random.integers(1, 4), size=20)) for _ in range(2))  # recalls of 0 among them
        G, b = measure.tangent(at)
        assert np.vdot(G, other) + b >= measure.value(other) - 1e-9


@pytest.mark.parametrize("name", [name for name in NAMES if name != "quadratic_kappa"])
def test_relabelling_relabels_the_mixture(name):
    truth, order = problem(3, n=30, k=4), np.array([2, 0, 3, 1])
    _, one = optimised(name, truth, 1e-6)
    _, other = optimised(name, truth[:, order], 1e-6)
    # of macro_f1 two ends can differ, of the others the optimum cannot
    assert other.value == pytest.approx(one.value, abs=2e-6 if name != "macro_f1" else 0.02)


def test_kappa_of_the_reversed_order_is_the_same():
    truth = problem(5, n=30, k=4)
    assert optimised("quadratic_kappa", truth, 1e-6)[1].value == pytest.approx(
        optimised("quadratic_kappa", truth[:, ::-1], 1e-6)[1].value, abs=1e-6
    )


@pytest.mark.parametrize("name", OF_RECALLS)
def test_classes_that_no_first_classifier_finds_are_found(name):
    """Rows that are all alike: each classifier predicts one class, and the mixture of one for each is the best."""
    truth = np.full((6, 4), 1.0 / 24) * np.array([1.3, 0.9, 1.0, 0.8])
    _, mixture = optimised(name, truth)
    assert mixture.value == pytest.approx(0.25)
    assert mixture.bound == pytest.approx(0.25)
    np.testing.assert_allclose(mixture.weights, 0.25, atol=1e-6)


def test_a_limit_of_steps_keeps_an_honest_gap():
    truth = problem(1, n=60, k=6)
    _, rough = optimised("worst_class", truth, 1e-9, most=2)
    _, fine = optimised("worst_class", truth, 1e-9)
    assert rough.steps == 2
    assert rough.value <= fine.value + 1e-12
    assert rough.bound >= fine.value - 1e-12
    assert fine.bound - fine.value <= 1e-9


# ---- metrics ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_measures_of_matrices_are_the_metrics_of_codes(name):
    random = np.random.default_rng(2)
    for _ in range(20):
        y, predicted = random.integers(4, size=50), random.integers(4, size=50)
        y[:4] = np.arange(4)
        C = np.zeros((4, 4))
        np.add.at(C, (y, predicted), 1.0 / 50)
        value = MEASURES[name](C.sum(axis=1), np.ones(4, dtype=bool)).value(C)
        of_codes = metrics.compute(name, y, predicted, 4, {})
        assert value == pytest.approx(1.0 - of_codes if name == "worst_class" else of_codes, abs=1e-12)


@pytest.mark.parametrize("name", OF_RECALLS)
def test_metrics_of_recalls(name):
    check_metric(name)
    y = np.array([0, 0, 2, 2, 2, 2])  # no row of class 1
    assert metrics.compute(name, y, y, 3, {}) == (0.0 if name == "worst_class" else 1.0)
    r = np.array([0.5, 0.75])
    expected = {"g_mean": r.prod() ** 0.5, "h_mean": 2.0 / (1.0 / r).sum(), "q_mean": 1.0 - (((1.0 - r) ** 2).mean()) ** 0.5}
    assert metrics.compute(name, y, np.array([0, 1, 2, 2, 2, 3]), 3, {}) == pytest.approx({**expected, "worst_class": 0.5}[name])
    assert metrics.compute(name, y, np.zeros(6, dtype=int), 3, {}) == pytest.approx(
        {"g_mean": 0.0, "h_mean": 0.0, "q_mean": 1.0 - 0.5**0.5, "worst_class": 1.0}[name]
    )


# ---- the estimator ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    keep = np.r_[:178][(y != 2) | (np.arange(178) % 4 == 0)]  # a rare class
    return StandardScaler().fit_transform(X[keep, :3]), y[keep]


@pytest.mark.parametrize("inner", ["plugin", "general"])
@pytest.mark.parametrize("name", NAMES)
def test_variants_pass_the_contract(name, inner):
    check_learner(MetricClassifier(name, inner=inner), scikit_learn=False)


@pytest.mark.parametrize("name", NAMES)
def test_the_confusion_matrix_is_that_of_the_probabilities(name, wine):
    X, y = wine
    model = MetricClassifier(name, C=3.0, tol=1e-5).fit(X, y)
    P = SurrogateClassifier("entropy", C=3.0, tol=1e-5).fit(X, y).probabilities(X)
    members = [np.argmin(P @ costs.T, axis=1) for costs in model.costs_]
    C = sum(weight * confusion(P / len(y), picked) for weight, picked in zip(model.weights_, members, strict=True))
    np.testing.assert_allclose(model.confusion_, C, atol=1e-9)
    chances = sum(weight * np.eye(3)[picked] for weight, picked in zip(model.weights_, members, strict=True))
    np.testing.assert_allclose(model.probabilities(X), chances, atol=1e-12)
    assert ("outer_gap" in model.counts_) is (name != "macro_f1")
    assert model.counts_.get("outer_gap", 0.0) <= 2e-5
    # the metric that was optimised is no worse than with the likeliest class
    measure = MEASURES[name](P.mean(axis=0), np.ones(3, dtype=bool))
    assert model.value_ >= measure.value(confusion(P / len(y), P.argmax(axis=1))) - 1e-4
    assert model.metric_ == name
    assert model.certificate_.converged


def test_draws_are_a_function_of_the_row_and_the_seed_with_the_chances_of_the_weights(wine):
    X, y = wine
    model = MetricClassifier("worst_class", C=3.0).fit(X, y)
    assert len(model.weights_) > 1
    new = np.random.default_rng(0).normal(size=(4000, 3))
    drawn, chances = model.predict_codes(new), model.predictor_distribution(new)
    assert chances[np.arange(4000), drawn].min() > 0.0
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 4000, chances.mean(axis=0), atol=0.03)
    assert np.array_equal(model.predict_codes(new[::7]), drawn[::7])
    assert np.array_equal(model.predict_codes(csr_array(new)), drawn)
    holes = csr_array(new)
    holes.data[::3] = 0.0  # stored, as other packages do
    assert np.array_equal(model.predict_codes(holes), model.predict_codes(holes.toarray()))
    assert np.array_equal(model.predict_codes(np.vstack([new[:5], new[:5]])), np.tile(drawn[:5], 2))
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert np.array_equal(other.costs_, model.costs_)
    assert not np.array_equal(other.predict_codes(new), drawn)
    heaviest = np.argmin(model.loss_.probabilities(model.look(new).at[0].scores(model.theta_)) @ model.costs_[0].T, axis=1)
    assert np.array_equal(model.predict_codes(new, rule="heaviest"), heaviest)
    assert np.array_equal(clone(model).set_params(rule="heaviest").fit(X, y).predict_codes(new), heaviest)


def test_weights_count_rows(wine):
    X, y = wine
    times = np.random.default_rng(0).integers(1, 3, size=len(y))
    weighted = MetricClassifier("g_mean", lam=0.01).fit(X, y, sample_weight=times)
    repeated = MetricClassifier("g_mean", lam=0.01).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert np.array_equal(weighted.predict(X), repeated.predict(X))
    assert weighted.value_ == pytest.approx(repeated.value_, abs=1e-9)


def test_a_class_without_rows_is_left_out(wine):
    X, y = wine
    for inner in ("plugin", "general"):
        model = MetricClassifier("worst_class", inner=inner, n_classes=5, C=3.0).fit(X, y)
        assert set(model.predict(X)) <= {0, 1, 2}
        assert model.value_ > 0.3


@pytest.mark.parametrize("name", OF_RECALLS)
def test_adversarial_classifiers_of_costs_serve_too(name, wine):
    X, y = wine
    model = MetricClassifier(name, inner="general", C=3.0).fit(X, y)
    members = [np.argmax(F, axis=1) for F in np.moveaxis(model._of_members(model.look(X).at[0]), 1, 0)]
    C = sum(weight * confusion(np.eye(3)[y] / len(y), picked) for weight, picked in zip(model.weights_, members, strict=True))
    np.testing.assert_allclose(model.confusion_, C, atol=1e-12)
    zero_one = SurrogateClassifier("zero_one", C=3.0).fit(X, y).predict_codes(X)
    measure = MEASURES[name](np.bincount(y) / len(y), np.ones(3, dtype=bool))
    assert model.value_ >= measure.value(confusion(np.eye(3)[y] / len(y), zero_one)) - 1e-9
    assert "outer_gap" not in model.counts_
    assert np.isinf(model.bound_)


@pytest.mark.parametrize("inner", ["plugin", "general"])
@pytest.mark.parametrize("name", OF_RECALLS)
def test_rows_without_information_are_mixed_alike(name, inner):
    model = MetricClassifier(name, inner=inner).fit(np.ones((21, 2)), np.arange(21) % 3)
    assert model.value_ == pytest.approx(1 / 3, abs=1e-3)
    np.testing.assert_allclose(model.predictor_distribution(np.ones((1, 2))), 1 / 3, atol=0.01)


def test_kappa_needs_an_order(wine):
    X, y = wine
    text = np.array(["low", "middle", "high"])[y]
    with pytest.raises(ConfigError, match="text without an order"):
        MetricClassifier("quadratic_kappa").fit(X, text)
    ordered = pd.Series(pd.Categorical(text, ["low", "middle", "high"], ordered=True))
    model = MetricClassifier("quadratic_kappa").fit(X, ordered)
    assert list(model.order_) == ["low", "middle", "high"]
    assert np.array_equal(model.predict_codes(X), MetricClassifier("quadratic_kappa").fit(X, y).predict_codes(X))


def test_what_it_has_not():
    model = MetricClassifier()
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "expected_loss")


HOSTILE = [
    ({"metric": "macrof1"}, "metric=macrof1 is unknown; did you mean macro_f1"),
    ({"metric": None}, "metric=None is unknown"),
    ({"metric": "error"}, "metric=error is unknown"),
    ({"inner": "plug"}, "inner=plug is unknown; did you mean plugin"),
    ({"rule": "predictor"}, "rule=predictor is unknown"),
    ({"max_steps": 0}, "max_steps must be a whole number of at least 1, got 0"),
    ({"max_steps": 2.5}, "max_steps must be a whole number of at least 1, got 2.5"),
    ({"features": "threshold"}, "loss=metric needs scores of each class alone"),
    ({"features_options": {"moments": "box"}}, "loss=metric has no moments to hold"),
    ({"random_state": "x"}, "random_state must be a whole number"),
]


@pytest.mark.parametrize(("options", "said"), HOSTILE, ids=str)
def test_bad_parameters_are_one_line(options, said, wine):
    with pytest.raises((ConfigError, IncompatibleError), match=said) as caught:
        MetricClassifier(**options).fit(*wine)
    assert "\n" not in str(caught.value)


def test_bad_rows_are_one_line(wine):
    X, y = wine
    for rows, labels, weight, said in (
        (X[:0], y[:0], None, "0 sample"),
        (X, np.zeros(len(y)), None, "1 class|one class"),
        (X, y, np.zeros(len(y)), "non-zero|zero for every row"),
        (np.where(X > 2.0, np.nan, X), y, None, "NaN"),
        (X[:, :0], y, None, "0 feature"),
    ):
        with pytest.raises(ValueError, match=said):
            MetricClassifier().fit(rows, labels, sample_weight=weight)
    model = MetricClassifier().fit(X, y)
    with pytest.raises(ConfigError, match="rule=median is unknown"):
        model.predict(X, rule="median")
    with pytest.raises(DataError, match="column 1 holds 1e\\+308"):
        model.predict(np.full((1, 3), 1e308))
    with pytest.warns(NotConvergedWarning):
        MetricClassifier(C=1e4, tol=1e-9, max_passes=1).fit(X, y)
