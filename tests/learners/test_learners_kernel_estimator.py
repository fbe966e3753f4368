"""The estimator with kernel features: prediction, paths, scikit-learn's checks, and the search over two axes."""

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score

import advcli
from advcli.core.errors import ConfigError, IncompatibleError
from advcli.learners import Method
from advcli.learners.refitting import KERNEL_OPTIONS
from advcli.learners.surrogate import SurrogateClassifier
from advcli.models import save
from advcli.testing import check_learner


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[order], y[order]


def test_scikit_learn_accepts_the_estimator():
    """The other kernel is among the estimators of tests/learners; a class of little weight goes away by a constant in the scores alone."""
    check_learner(SurrogateClassifier(features="poly", max_passes=10_000), skip={"check_class_weight_classifiers"})


def test_new_rows_are_scored_by_the_kernel_with_the_training_rows(iris):
    X, y = iris
    fitted = SurrogateClassifier(features="rbf", features_options={"gamma": 0.4}, C=5.0, tol=1e-4).fit(X[:100], y[:100])
    anchors, coefficients = fitted.features_.anchors, fitted.theta_
    assert coefficients.shape == (len(anchors), 3)
    np.testing.assert_allclose(fitted.decision_function(X[100:]), rbf_kernel(X[100:], anchors, gamma=0.4) @ coefficients, atol=1e-9)
    assert np.mean(fitted.predict(X[100:]) == y[100:]) > 0.9
    np.testing.assert_allclose(pickle.loads(pickle.dumps(fitted)).decision_function(X[100:]), fitted.decision_function(X[100:]))


def test_a_precomputed_kernel_is_the_same_model(iris):
    X, y = iris
    direct = SurrogateClassifier(features="rbf", features_options={"gamma": 0.4}, C=5.0, tol=1e-5).fit(X[:100], y[:100])
    given = SurrogateClassifier(features="precomputed", C=5.0, tol=1e-5).fit(rbf_kernel(X[:100], gamma=0.4), y[:100])
    assert given.certificate_.primal == pytest.approx(direct.certificate_.primal, rel=2e-5)
    new = rbf_kernel(X[100:], X[:100], gamma=0.4)
    np.testing.assert_allclose(given.decision_function(new), direct.decision_function(X[100:]), atol=0.05)
    scores = cross_val_score(clone(given), rbf_kernel(X, gamma=0.4), y, cv=3)  # scikit-learn cuts rows and columns alike
    assert scores.mean() > 0.9


def test_zero_weights_do_not_touch_a_precomputed_kernel(iris):
    X, y = iris
    weight = np.ones(100)
    weight[::4] = 0.0
    kept = weight > 0
    K = rbf_kernel(X[:100], gamma=0.4)
    all_rows = SurrogateClassifier(features="precomputed", tol=1e-6, lam=0.01).fit(K, y[:100], sample_weight=weight)
    some = SurrogateClassifier(features="precomputed", tol=1e-6, lam=0.01).fit(K[np.ix_(kept, kept)], y[:100][kept])
    assert all_rows.certificate_.primal == pytest.approx(some.certificate_.primal, rel=1e-5)
    assert not all_rows.theta_[~kept].any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e60])
@pytest.mark.parametrize("where", ["one", "two", "diagonal", "all"])
def test_a_kernel_matrix_with_a_number_that_none_has_is_refused(where, value, iris):
    """By the one read that checks it: numbers that are not finite, huge ones, and such that are too large for the diagonal."""
    X, y = iris
    K = rbf_kernel(X)
    if where == "all":
        K *= value
    else:
        K[(7, 7) if where == "diagonal" else (3, 7)] = value
    if where == "two":
        K[7, 3] = value
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=r"NaN|infinity|symmetric|positive semi-definite|change its unit"):
        SurrogateClassifier(features="precomputed").fit(K, y)
    if where != "all":  # the same for a matrix that scikit-learn has to convert first
        with pytest.raises(ValueError, match=r"NaN|infinity|symmetric|positive semi-definite|change its unit"):
            SurrogateClassifier(features="precomputed").fit(K.tolist(), y)


def test_the_path_shares_the_kernel_matrix_and_refuses_another_width(iris):
    X, y = iris
    first = SurrogateClassifier(features="rbf", features_options={"gamma": 0.4}, C=1.0).fit(X, y)
    second = clone(first).set_params(C=4.0).fit(X, y, start=first)
    assert second.features_.store is first.features_.store
    cold = clone(first).set_params(C=4.0).fit(X, y)
    assert second.certificate_.passes < cold.certificate_.passes
    # a start of another kernel is only a dual point
    wider = clone(first).set_params(features_options={"gamma": 2.0}).fit(X, y, start=first)
    assert wider.features_.store is not first.features_.store
    again = clone(wider).fit(X, y)
    assert wider.certificate_.converged
    assert wider.certificate_.primal == pytest.approx(again.certificate_.primal, rel=2e-3)


def test_sparse_rows_give_the_same_model(iris):
    X, y = iris
    X = X * (np.abs(X) > 0.7)
    dense = SurrogateClassifier(features="rbf", tol=1e-6).fit(X, y)
    sparse = SurrogateClassifier(features="rbf", tol=1e-6).fit(sp.csr_array(X), y)
    assert sparse.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=0.02)


def test_the_command_line_s_faces(iris):
    X, y = iris
    assert Method({"name": "zero_one"}, {"name": "rbf", "memory_mb": 100}, {}).searched == ("regularisation", "gamma")
    assert Method({"name": "zero_one"}, {"name": "poly"}, {}).searched == ("regularisation",)
    solver = {"name": "auto", "tol": 1e-3, "search_tol": 1e-2, "max_passes": 1000, "max_seconds": None}
    arguments = ({"name": "zero_one"}, {"name": "rbf", "memory_mb": 100}, solver)
    fitted = Method(*arguments, {"C": 4.0, "gamma": 0.25}).make(3, 0, 1e-3).fit(X, y)
    assert fitted.features_.gamma == 0.25
    assert fitted.features_.memory_mb == 100
    assert fitted.certificate_.solver.startswith("kernel_dual")
    with pytest.raises(ConfigError, match=r"features\.gamma=-1"):
        Method(*arguments, {"C": 4.0, "gamma": -1.0}).make(3, 0, 1e-3).fit(X, y)
    with pytest.raises(ConfigError, match=r"features\.degree=0"):
        Method({"name": "zero_one"}, {"name": "poly", "degree": 0}, solver).check(False, 3)
    with pytest.raises(IncompatibleError, match="kernel features"):
        SurrogateClassifier(solver="kernel_dual").fit(X, y)
    with pytest.raises(IncompatibleError, match="solver=auto"):
        SurrogateClassifier(solver="dual", features="rbf").fit(X, y)


def test_the_search_moves_on_two_axes(iris):
    from advcli.evaluation.cell import Cell
    from advcli.evaluation.recipe import Recipe

    protocol = {
        "folds": 3,
        "stage1": {"regularisation": [0.01, 1.0, 100.0], "gamma": [1e-4, 0.3]},
        "stage2": {"regularisation": [0.5, 1.0], "gamma": [1.0, 2.0]},
    }
    cell = Cell(
        {"name": "iris", "source": "sklearn"},
        {"name": "zero_one"},
        {"name": "rbf", "memory_mb": 100},
        {"name": "auto", "tol": 1e-3, "search_tol": 1e-2},
        protocol,
    )
    recipe = Recipe(cell, Path("data"))
    selection = recipe.search(recipe.part())
    assert selection.hyper["gamma"] >= 0.3
    assert selection.hyper["C"] >= 0.5
    tried = {(row["C"], row["gamma"]) for row in selection.rows if row["stage"] == 1}
    assert tried == {(C, gamma) for C in (0.01, 1.0, 100.0) for gamma in (1e-4, 0.3)}
    assert all(row["converged"] for row in selection.rows)


# ---- scikit-learn's names of kernels and their options -----------------------------------------------------------------
WITH_KERNELS = [
    each for name in advcli.__all__ if inspect.isclass(each := getattr(advcli, name)) and "kernel" in inspect.signature(each).parameters
]
WIDTHS = st.floats(0.1, 1.0)
KERNELS = st.one_of(
    st.fixed_dictionaries({"kernel": st.just("rbf")}, optional={"gamma": WIDTHS}),
    st.fixed_dictionaries({"kernel": st.just("poly")}, optional={"gamma": WIDTHS, "degree": st.integers(1, 3), "coef0": WIDTHS}),
    st.just({"kernel": "linear"}),
    st.just({"kernel": "precomputed"}),
    st.just({"kernel": "linear", "gamma": 0.5}),  # an option that the map does not have
)


def outcome(model: Any, X: Any, y: Any, path: Path) -> bytes | str:
    """Return the model file of a fit, or the words that refuse it."""
    try:
        save(model.fit(X, y), path)
    except ConfigError as error:
        return str(error)
    return path.read_bytes()


@pytest.mark.parametrize("kind", WITH_KERNELS)
@settings(max_examples=8, deadline=None)
@given(given_=KERNELS)
def test_the_names_of_scikit_learn_give_the_very_model_file(kind, given_, iris, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m"
    X, y = iris[0][:40], iris[1][:40]
    options = {name: given_[name] for name in KERNEL_OPTIONS if name in given_}  # in the order of the file
    model, other = kind(**given_), kind(features=given_["kernel"], features_options=options or None)
    rows = rbf_kernel(X) if given_["kernel"] == "precomputed" else X
    assert outcome(model, rows, y, path) == outcome(other, rows, y, path)
    assert clone(model).get_params() == model.get_params() == kind().get_params() | given_


def test_a_search_over_gamma_is_one_over_the_options_of_the_map(iris):
    gammas = np.logspace(-2, 0, 3)
    one = GridSearchCV(SurrogateClassifier(kernel="rbf"), {"gamma": gammas}, cv=3).fit(*iris)
    other = GridSearchCV(SurrogateClassifier(features="rbf"), {"features_options": [{"gamma": gamma} for gamma in gammas]}, cv=3).fit(*iris)
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    assert clone(one.best_estimator_).gamma == one.best_params_["gamma"] == other.best_params_["features_options"]["gamma"]
    assert one.best_estimator_.set_params(kernel="poly").mapped_by == "poly"
