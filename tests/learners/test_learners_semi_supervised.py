"""The perceptrons on other labels and the semi-supervised SVM."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from advcli import UMAClassifier
from advcli.core.errors import ConfigError
from advcli.learners import learner_class
from advcli.learners.base import registry
from advcli.learners.semi_supervised import SemiSupervisedSVM


def blobs(seed=0, n=300):
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = np.eye(3)[y] * 3.0 + random.standard_normal((n, 3))
    return X - X.mean(axis=0), y


def test_every_method_says_which_labels_it_learns_from():
    views = {name: learner_class(name).view for name in sorted(registry)}
    assert views["f_y"] == views["uma"] == "noisy"
    assert (views["f_conf"], views["f_full"], views["s3vm"]) == ("sample", "true", "partial")
    assert "zero_one" not in registry


def test_the_batch_perceptron_is_uma_without_confusion():
    X, y = blobs()
    np.testing.assert_array_equal(
        learner_class("f_y")(max_updates=50).fit(X, y).coef_, UMAClassifier("identity", max_updates=50).fit(X, y).coef_
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [300, 6])
def test_without_unlabelled_rows_the_svm_is_ridge_regression_on_the_codes(n, sparse):
    X, y = blobs(n=n)
    X = np.hstack([X, np.random.default_rng(1).standard_normal((n, 20))])
    model = SemiSupervisedSVM(ridge=0.3).fit(sp.csr_array(X) if sparse else X, y)
    ridge = Ridge(0.3 * np.mean(np.sum(X * X, axis=1)), fit_intercept=False).fit(X, np.eye(3)[y] - 1 / 3)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-8)


def test_unlabelled_rows_help_and_labels_agree_with_weights():
    gained = []
    for seed in range(6):
        X, y = blobs(seed)
        codes = np.where(np.arange(len(y)) < 6, y, -1)
        few = SemiSupervisedSVM(n_classes=3).fit(X[:6], codes[:6])
        model = SemiSupervisedSVM(n_classes=3).fit(X, codes)
        gained.append(np.mean(model.predict(X) == y) - np.mean(few.predict(X) == y))
        assert model.remarks_ == ("weights and labels agree",)
        # weights exact for the labels, labels exact for the weights
        F, c, penalty = X @ model.coef_.T, np.eye(3) - 1 / 3, 0.1 * np.mean(np.sum(X * X, axis=1))
        labels = np.where(codes >= 0, codes, np.argmin(((F[:, None, :] - c) ** 2).sum(axis=2), axis=1))
        weights = np.where(codes >= 0, 1.0, 0.1)
        errors = F - c[labels]
        np.testing.assert_allclose(X.T @ (weights[:, None] * errors) + penalty * model.coef_.T, 0.0, atol=1e-10)
        objective = weights @ (errors**2).sum(axis=1) + penalty * np.vdot(model.coef_, model.coef_)
        assert model.objective_ == pytest.approx(objective, rel=1e-12)
    assert min(gained) > 0


@pytest.mark.parametrize("shape", [(200, 90), (90, 200)])
def test_iterating_on_sparse_rows_gives_the_weights_of_the_factored_problem(shape, monkeypatch):
    random = np.random.default_rng(2)
    (n, d), k = shape, 4
    y = random.integers(0, k, n)
    X = sp.random_array(shape, density=0.1, random_state=3).toarray() + 0.3 * np.eye(k, d)[y]
    codes = np.where(random.random(n) < 0.2, y, -1)
    weights = random.integers(1, 4, n).astype(float)
    factored = SemiSupervisedSVM(n_classes=k, ridge=0.02).fit(X, codes, sample_weight=weights)
    monkeypatch.setattr("advcli.learners.semi_supervised._DIRECT", 10)
    iterated = SemiSupervisedSVM(n_classes=k, ridge=0.02).fit(sp.csr_array(X), codes, sample_weight=weights)
    assert factored.n_iter_ == iterated.n_iter_ > 4
    np.testing.assert_allclose(iterated.coef_, factored.coef_, atol=1e-8)
    assert iterated.objective_ == pytest.approx(factored.objective_, rel=1e-12)


def test_refusals():
    X, y = blobs()
    with pytest.raises(ConfigError, match="labelled"):
        SemiSupervisedSVM(n_classes=3).fit(X, np.full(len(y), -1))
    with pytest.raises(ConfigError, match="ratio"):
        SemiSupervisedSVM(ratio=0).fit(X, y)
