"""Threshold models with smooth margins: against a general solver, logistic regression, and populations whose chances are known."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel

from advcli import OrdinalClassifier
from advcli.core.errors import ConfigError, NotConvergedWarning
from advcli.testing import check_learner

ORDERS = [1.0, 1.5, 2.0, 8.0]
both = pytest.mark.parametrize("method", ["at", "it"])


def share(z, order):
    """Return the q in [0, 1] with the largest H(1 - q, q) - q z, by bisection on its slope."""
    if order == 1.0:
        return np.exp(-np.logaddexp(0.0, z))
    low, high = np.zeros_like(z), np.ones_like(z)
    for _ in range(60):
        q = 0.5 * (low + high)
        norm = (q**order + (1.0 - q) ** order) ** (1.0 / order)
        slope = order / (order - 1.0) * (((1.0 - q) / norm) ** (order - 1.0) - (q / norm) ** (order - 1.0))
        low, high = np.where(slope > z, q, low), np.where(slope > z, high, q)
    return 0.5 * (low + high)


def margin(z, order):
    """Return the surrogate of the margin z."""
    if order == 1.0:
        return np.logaddexp(0.0, -z)
    q = share(z, order)
    return order / (order - 1.0) * (1.0 - (q**order + (1.0 - q) ** order) ** (1.0 / order)) - q * z


def terms(y, k, method):
    """Return signs and occurrence of the terms of every row."""
    j = np.arange(k - 1)
    near = (y[:, None] == j) | (y[:, None] == j + 1)
    return np.where(y[:, None] > j, 1.0, -1.0), near.astype(float) if method == "it" else np.ones(near.shape)


def peer_optimum(X, y, k, lam, method, order, weight):
    """Return the least value of lambda/2 |w|^2 + mean of the terms that L-BFGS finds."""
    d = X.shape[1]
    signs, occurs = terms(y, k, method)

    def objective(x):
        z = signs * ((X @ x[:d])[:, None] - x[d:])
        U = occurs * weight[:, None] / weight.sum()
        pull = U * signs * share(z, order)
        return 0.5 * lam * x[:d] @ x[:d] + (U * margin(z, order)).sum(), np.concatenate([lam * x[:d] - X.T @ pull.sum(1), pull.sum(0)])

    x, least = np.zeros(d + k - 1), np.inf
    for _ in range(30):  # a new start forgets what was learned on the other side of a bend
        found = minimize(objective, x, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "maxcor": 30, "ftol": 0.0, "gtol": 1e-12})
        if found.fun >= least:
            break
        x, least = found.x, found.fun
    return least


def drawn(seed, n=60, d=3, k=4):
    """Return rows, codes of k classes that all occur, and weights, some of them 0."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    z = X @ random.normal(size=d) + random.normal(size=n)
    y = np.searchsorted(np.quantile(z, np.linspace(0, 1, k + 1)[1:-1]), z)
    weight = random.integers(0, 4, size=n).astype(float)
    weight[np.unique(y, return_index=True)[1]] = 1.0
    return X, y, weight


@both
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_a_general_solver(method, order, seed):
    X, y, weight = drawn(seed, k=3 + seed)
    found = OrdinalClassifier(method=method, alpha=order, lam=0.05, tol=1e-10).fit(X, y, sample_weight=weight)
    peer = peer_optimum(X, y, 3 + seed, 0.05, method, order, weight)
    assert found.certificate_.converged
    assert found.certificate_.primal == pytest.approx(peer, rel=1e-8)
    assert found.certificate_.dual <= peer * (1.0 + 1e-12)
    assert found.objective(X, y, sample_weight=weight) == pytest.approx(found.certificate_.primal, rel=1e-12)


@both
@pytest.mark.parametrize("order", [1.0, 1.001, 2.0, 16.0])
@pytest.mark.parametrize("C", [1e-3, 1e3])
@pytest.mark.parametrize("d", [2, 200])
def test_weak_and_strong_regularisers_end_certified(method, order, C, d):
    X, y, _ = drawn(5, n=80, d=d)
    assert OrdinalClassifier(method=method, alpha=order, C=C, tol=1e-6).fit(X, y).certificate_.converged


@both
@pytest.mark.parametrize("order", [1.0, 8.0])
@pytest.mark.parametrize("n", [40, 450])  # the larger kernel keeps factors
def test_a_kernel_has_the_optimum_of_its_factor(method, order, n):
    X, y, weight = drawn(7, n=n)
    K = rbf_kernel(X, gamma=0.5) + np.diag(1e-2 / np.where(weight > 0, weight, 1.0))
    kernel = {"features": "rbf", "features_options": {"gamma": 0.5}, "ridge": 1e-2}
    first = OrdinalClassifier(method=method, alpha=order, lam=0.02, tol=1e-8, **kernel).fit(X, y, sample_weight=weight)
    second = OrdinalClassifier(method=method, alpha=order, lam=0.02, tol=1e-8).fit(np.linalg.cholesky(K), y, sample_weight=weight)
    assert first.certificate_.primal == pytest.approx(second.certificate_.primal, rel=3e-8)


@both
def test_two_classes_are_logistic_regression(method):
    X, y, weight = drawn(1, k=2)
    found = OrdinalClassifier(method=method, alpha=1, C=0.7, tol=1e-10).fit(X, y, sample_weight=weight)
    peer = LogisticRegression(C=0.7, tol=1e-12, max_iter=10000).fit(X, y, sample_weight=weight)
    log_loss = weight @ np.logaddexp(0.0, -np.where(y == 1, 1.0, -1.0) * peer.decision_function(X))
    value = (0.5 / 0.7 * np.sum(peer.coef_**2) + log_loss) / weight.sum()
    assert found.certificate_.primal == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(found.predict_proba(X), peer.predict_proba(X), atol=1e-4)


@both
@pytest.mark.parametrize("order", [1.0, 2.0])
def test_equal_rows_are_merged(method, order):
    X, y, weight = drawn(2)
    often = weight.astype(int)
    once = OrdinalClassifier(method=method, alpha=order, lam=0.05, tol=1e-9).fit(X, y, sample_weight=weight)
    each = OrdinalClassifier(method=method, alpha=order, lam=0.05, tol=1e-9).fit(np.repeat(X, often, axis=0), np.repeat(y, often))
    assert each.certificate_.primal == pytest.approx(once.certificate_.primal, rel=1e-12)


@both
@pytest.mark.parametrize("order", ORDERS)
def test_probabilities_of_a_population_are_its_chances(method, order):
    """Two points whose chances a model of this kind has: without a regulariser to speak of the fit finds them."""
    g, eta = np.array([-0.3, 0.4]), np.array([-0.5, 0.1, 0.6])
    above = share(eta - g[:, None], order)
    if method == "at":
        P = -np.diff(np.hstack([np.ones((2, 1)), above, np.zeros((2, 1))]), axis=1)
    else:
        P = np.hstack([np.ones((2, 1)), np.cumprod(above / (1.0 - above), axis=1)])
        P /= P.sum(axis=1, keepdims=True)
    assert (P > 1e-3).all()
    X, y = np.repeat([[0.0], [1.0]], 4, axis=0), np.tile(np.arange(4), 2)
    fit = OrdinalClassifier(method=method, alpha=order, lam=1e-9, tol=1e-12, max_passes=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        found = fit.fit(X, y, sample_weight=P.ravel()).predict_proba([[0.0], [1.0]])
    np.testing.assert_allclose(found, P, atol=2e-3 if order > 2.0 else 2e-5)


@both
@pytest.mark.parametrize("order", [*ORDERS, 64.0])
def test_probabilities_are_distributions_far_out_too(method, order):
    X, y, _ = drawn(4, k=5)
    fit = OrdinalClassifier(method=method, alpha=order, C=10.0, tol=1e-2, max_passes=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        fit.fit(X, y)
    P = fit.predict_proba(np.vstack([X, 1e6 * X]))
    assert (P >= 0.0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    if method == "at":  # the prediction is the median
        median = (np.cumsum(P, axis=1)[:, :-1] < 0.5 - 1e-9).sum(axis=1)
        np.testing.assert_array_equal(median, fit.predict(np.vstack([X, 1e6 * X])))


@both
@pytest.mark.parametrize("absent", [0, 2, 4])
def test_a_class_that_does_not_occur_has_no_probability(method, absent):
    X, y, _ = drawn(6, k=4)
    y = np.where(y >= absent, y + 1, y)
    fit = OrdinalClassifier(method=method, alpha=1, lam=0.05, tol=1e-9, n_classes=5).fit(X, y)
    assert (fit.probabilities(X)[:, absent] == 0.0).all()
    assert len(fit.thresholds_) == 3
    if method == "at" and absent == 2:  # the objective is that of two equal thresholds
        assert fit.certificate_.primal == pytest.approx(peer_optimum(X, y, 5, 0.05, "at", 1.0, np.ones(len(y))), rel=1e-8)


def test_thresholds_of_all_terms_are_in_order():
    X, y, _ = drawn(8, k=6)
    assert (np.diff(OrdinalClassifier(method="at", alpha=1.5, tol=1e-8).fit(X, y).thresholds_) >= 0.0).all()


def test_ends_and_hinges_have_no_probabilities():
    X, y, _ = drawn(0)
    hinge = OrdinalClassifier(method="at").fit(X, y)
    assert not hasattr(hinge, "predict_proba")
    assert hinge.probabilities(X) is None
    limited = OrdinalClassifier(method="at", alpha=1, tol=1e-12, max_passes=2)
    with pytest.warns(NotConvergedWarning, match="max_passes"):
        limited.fit(X, y)
    assert limited.certificate_.dual < limited.certificate_.primal


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"alpha": 0.9}, "alpha must be a finite number of at least 1, or null for the hinge, got 0.9"),
        ({"alpha": float("nan")}, "alpha must be a finite number of at least 1, or null for the hinge, got nan"),
        ({"alpha": "x"}, "alpha must be a finite number of at least 1, or null for the hinge, got 'x'"),
        ({"alpha": float("inf")}, "alpha must be a finite number of at least 1, or null for the hinge, got inf"),
        ({"method": "it", "alpha": 1, "ordered": True}, "ordered=true is for the hinge"),
        ({"method": "red_th", "alpha": 1}, "method=red_th has no option alpha"),
        ({"method": "svorex", "alpha": 1}, "method=svorex has no option alpha"),
    ],
)
def test_bad_orders_are_refused_in_one_line(given, said):
    X, y, _ = drawn(0)
    with pytest.raises(ConfigError) as told:
        OrdinalClassifier(**given).fit(X, y)
    assert str(told.value).startswith(f"OrdinalClassifier: {said}")
    assert "\n" not in str(told.value)


@both
def test_the_contract_of_learners_is_kept(method):
    # the median of the probabilities, which at predicts, need not be the likeliest class that scikit-learn asks for
    check_learner(OrdinalClassifier(method=method, alpha=1.5), scikit_learn=method == "it")
