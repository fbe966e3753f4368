"""The surrogates of Arimoto's entropies: against general solvers, scikit-learn's logistic regression and zero_one."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from advcli import SurrogateClassifier
from advcli.core.errors import ConfigError, IncompatibleError
from advcli.data.registry import load
from advcli.losses import make_loss
from advcli.losses.entropy import EntropyLoss

ORDERS = [1.0, 1.0005, 1.2, 2.0, 3.0, 8.0, 64.0]
SETS = {"iris": load_iris, "wine": load_wine}


def direct(f: np.ndarray, order: float) -> float:
    """Return max over distributions q of H(q) + f.q by sequential quadratic programming, H from its definition."""

    def negative(q: np.ndarray) -> float:
        q = np.maximum(q, 1e-300)
        if order == 1.0:
            return float((q * np.log(q)).sum() - f @ q)
        return float(order / (order - 1.0) * ((q**order).sum() ** (1.0 / order) - 1.0) - f @ q)

    k = len(f)
    simplex = {"type": "eq", "fun": lambda q: q.sum() - 1.0}
    starts = [np.full(k, 1.0 / k), 0.9 * np.eye(k)[np.argmax(f)] + 0.1 / k]
    found = [
        minimize(negative, q, bounds=[(0, 1)] * k, constraints=simplex, method="SLSQP", options={"ftol": 1e-15, "maxiter": 500})
        for q in starts
    ]
    return -min(each.fun for each in found)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("k", [2, 5])
def test_the_closed_form_is_the_largest_value(order: float, k: int) -> None:
    random = np.random.default_rng(k)
    F = random.normal(size=(6, k)) * np.array([[0.1], [0.5], [1.0], [1.0], [3.0], [8.0]])
    found = make_loss("entropy", k, alpha=order).value(F, np.zeros(6, dtype=int)) + F[:, 0]
    expected = np.array([direct(f, order) for f in F])
    np.testing.assert_allclose(found, expected, atol=2e-8)
    assert (found >= expected - 1e-11).all()  # the solver's point is feasible: never above the maximum


@pytest.mark.parametrize("order", ORDERS)
def test_answers_are_gradients_and_attain_their_values(order: float) -> None:
    random = np.random.default_rng(1)
    loss, F, y = make_loss("entropy", 4, alpha=order), random.normal(size=(40, 4)) * 2.0, random.integers(0, 4, 40)
    answer, step = loss.oracle(F, y), 1e-6
    np.testing.assert_allclose(np.einsum("ij,ij->i", answer.R, F) + answer.offset, answer.value, atol=1e-11)
    for j, move in enumerate(step * np.eye(4)):
        slope = (loss.value(F + move, y) - loss.value(F - move, y)) / (2.0 * step)
        assert np.median(np.abs(slope - answer.R[:, j])) < 1e-6


def test_both_ends_are_the_logistic_and_the_zero_one_loss() -> None:
    random = np.random.default_rng(2)
    F, y = random.normal(size=(50, 5)) * 3.0, random.integers(0, 5, 50)
    rows = np.arange(50)
    logistic = np.log(np.exp(F - F.max(axis=1, keepdims=True)).sum(axis=1)) + F.max(axis=1) - F[rows, y]
    np.testing.assert_allclose(make_loss("entropy", 5).value(F, y), logistic, rtol=1e-12)
    last = make_loss("entropy", 5, alpha=float("inf")).oracle(F, y)
    zero_one = make_loss("zero_one", 5).oracle(F, y)
    np.testing.assert_allclose(last.value, zero_one.value, atol=1e-12)
    np.testing.assert_allclose(last.R, zero_one.R, atol=1e-12)
    values = [make_loss("entropy", 5, alpha=order).value(F, y) for order in (1.0, 1.2, 2.0, 8.0, 64.0, float("inf"))]
    assert (np.diff(values, axis=0) <= 1e-12).all()  # Arimoto's entropy falls with its order


@pytest.mark.parametrize("features", ["linear", "rbf"])
@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 4.0])
def test_fits_are_certified_and_both_solvers_agree(order: float, features: str) -> None:
    X, y = load_iris(return_X_y=True)
    options = {"C": 2.0, "features": features, "loss_options": {"alpha": order}, "tol": 1e-6}
    first = SurrogateClassifier("entropy", **options).fit(scale(X), y)
    assert first.certificate_.converged
    assert first.certificate_.solver == "smooth_newton"
    P = first.predict_proba(scale(X))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (first.predict(scale(X)) == np.argmax(P, axis=1)).mean() > 0.95  # ties of alpha > 1 aside
    if features == "linear":
        second = SurrogateClassifier("entropy", solver="lbfgs", **(options | {"tol": 1e-5})).fit(scale(X), y)
        assert second.certificate_.primal == pytest.approx(first.certificate_.primal, rel=2e-5)


def test_weights_and_a_saved_model() -> None:
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    often = np.random.default_rng(3).integers(0, 3, len(y))
    repeated = np.repeat(np.arange(len(y)), often)
    by_weight = SurrogateClassifier("entropy", lam=0.01, tol=1e-8).fit(X, y, sample_weight=often.astype(float))
    by_rows = SurrogateClassifier("entropy", lam=0.01, tol=1e-8).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(by_weight.predict_proba(X), by_rows.predict_proba(X), atol=1e-5)


def compare(X: np.ndarray, y: np.ndarray, C: float) -> None:
    """Check that the certified optimum at alpha = 1 is the objective of scikit-learn's logistic regression."""
    ours = SurrogateClassifier("entropy", C=C, tol=1e-10, fit_intercept=False).fit(X, y)
    assert ours.certificate_.converged
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = LogisticRegression(C=C, fit_intercept=False, solver="newton-cg", tol=1e-9, max_iter=1000).fit(X, y)
    binary = len(theirs.classes_) == 2  # one vector of weights w has twice the penalty of two, -w/2 and w/2: another problem
    W = np.vstack([-theirs.coef_ / 2.0, theirs.coef_ / 2.0]) if binary else theirs.coef_
    F = X @ W.T
    # by the scores: `log_loss` cuts probabilities off, as those of the outliers of pageblocks
    value = (
        float((W**2).sum()) / (2.0 * C * len(y)) + (logsumexp(F, axis=1) - F[np.arange(len(y)), np.searchsorted(theirs.classes_, y)]).mean()
    )
    assert ours.certificate_.dual <= value * (1.0 + 1e-8)
    if not binary:
        assert ours.certificate_.primal == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_alpha_one_is_logistic_regression(name: str, C: float) -> None:
    X, y = SETS[name](return_X_y=True)
    compare(scale(X), y, C)


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize(
    "name", ["glass", "vehicle", "segment", "sat", "optdigits", "pageblocks", "redwine", "ecoli", "vertebral", "libras"]
)
def test_alpha_one_is_logistic_regression_on_many_sets(name: str, C: float, shared: Path) -> None:
    table = load({"name": name, "source": "folder"}, shared)
    compare(scale(np.asarray(table.X)), table.y, C)


def test_alpha_64_is_near_zero_one() -> None:
    X, y = load_iris(return_X_y=True)
    near = SurrogateClassifier("entropy", C=1.0, loss_options={"alpha": 64.0}).fit(scale(X), y).certificate_
    limit = SurrogateClassifier("zero_one", C=1.0, tol=1e-6).fit(scale(X), y).certificate_
    assert near.converged
    assert abs(near.primal - limit.primal) < 1e-2


def test_probabilities_are_calibrated_where_the_model_holds() -> None:
    random = np.random.default_rng(5)
    X = random.normal(size=(6000, 2))
    P = np.exp(X @ np.array([[1.0, -1.0, 0.0], [0.5, 0.5, -1.0]]))
    P /= P.sum(axis=1, keepdims=True)
    y = np.array([random.choice(3, p=p) for p in P])
    for order, within in ((1.0, 0.03), (1.5, 0.06)):
        found = SurrogateClassifier("entropy", C=10.0, loss_options={"alpha": order}).fit(X, y).predict_proba(X)
        assert np.abs(found - P).mean() < within


def test_sparse_rows_give_the_fit_of_dense_ones() -> None:
    import scipy.sparse as sp

    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300]
    dense, thin = (SurrogateClassifier("entropy", C=1.0, tol=1e-7).fit(rows, y) for rows in (X, sp.csr_array(X)))
    assert thin.certificate_.converged
    assert thin.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=2e-7)


def test_what_is_no_order_is_refused() -> None:
    for order in (0.5, -1.0, float("nan"), "two", None, True):
        with pytest.raises(ConfigError, match=r"loss\.alpha"):
            make_loss("entropy", 3, alpha=order)
    with pytest.raises(IncompatibleError, match="kinks"):
        SurrogateClassifier("entropy", solver="dual").fit(*load_iris(return_X_y=True))
    with pytest.raises(IncompatibleError, match="smooth surrogate"):
        SurrogateClassifier("zero_one", solver="smooth_newton").fit(*load_iris(return_X_y=True))
    with pytest.raises(AttributeError, match="predict_proba"):
        SurrogateClassifier("entropy", loss_options={"alpha": float("inf")}).fit(*load_iris(return_X_y=True)).predict_proba([[0.0] * 4])


def test_the_class_says_when_it_estimates() -> None:
    assert EntropyLoss.estimates({})
    assert EntropyLoss.estimates({"alpha": 2})
    assert not EntropyLoss.estimates({"alpha": float("inf")})
