"""Kernel PCA and Nystroem features: against scikit-learn, what they keep of the kernel, new rows, and use by surrogates and methods."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel

from advcli import AdversarialClassifier, UMAClassifier
from advcli.errors import ConfigError
from advcli.features import make_features
from advcli.features.kernel_pca import median_gamma


def rows(n=60, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_exact_components_are_those_of_scikit_learn():
    X, Z = rows(), rows(seed=1)
    features = make_features("kernel_pca", X, 2, dimensions=7, gamma=0.4)
    theirs = KernelPCA(7, kernel="rbf", gamma=0.4).fit(X)
    signs = np.sign(np.sum(features.X * theirs.transform(X), axis=0))
    np.testing.assert_allclose(features.X * signs, theirs.transform(X), atol=1e-9)
    np.testing.assert_allclose(features.at(Z).X * signs, theirs.transform(Z), atol=1e-9)


def test_all_components_keep_the_centred_kernel():
    X = rows()
    K = rbf_kernel(X, gamma=0.4)
    centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    P = make_features("kernel_pca", X, 2, dimensions=60, gamma=0.4).X
    np.testing.assert_allclose(P @ P.T, centred, atol=1e-8)


def test_landmarks_that_are_all_rows_give_the_kernel_itself():
    X = rows()
    P = make_features("nystroem", X, 2, dimensions=60, landmarks=60, gamma=0.4).X
    np.testing.assert_allclose(P @ P.T, rbf_kernel(X, gamma=0.4), atol=1e-8)


def test_more_landmarks_come_closer_and_never_exceed_the_kernel():
    X = rows(200)
    K = rbf_kernel(X, gamma=0.1)
    errors = []
    for landmarks in (5, 20, 80):
        P = make_features("nystroem", X, 2, dimensions=200, landmarks=landmarks, gamma=0.1).X
        assert np.linalg.eigvalsh(K - P @ P.T)[0] > -1e-7
        errors.append(np.linalg.norm(K - P @ P.T))
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_many_rows_use_landmarks():
    X = rows(50)
    exact = make_features("kernel_pca", X, 2, dimensions=5, gamma=0.4).X
    few = make_features("kernel_pca", X, 2, dimensions=5, gamma=0.4, exact_rows=40, landmarks=30).X
    assert few.shape == exact.shape
    assert not np.allclose(few, exact)


def test_width_is_in_units_of_the_median_squared_distance():
    X = rows(30)
    squares = [np.sum((X[i] - X[j]) ** 2) for i in range(30) for j in range(i)]
    assert median_gamma(X) == pytest.approx(1.0 / np.median(squares))
    assert make_features("kernel_pca", 5.0 * X, 2, width=3.0).gamma == pytest.approx(3.0 / (25.0 * np.median(squares)))


def test_sparse_rows_give_the_same_components():
    X = rows() * (rows(seed=3) > 0)
    dense, sparse = (make_features("kernel_pca", each, 2, dimensions=4, gamma=0.3).X for each in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense, sparse, atol=1e-9)


@pytest.mark.parametrize("name", ["kernel_pca", "nystroem"])
def test_surrogates_and_methods_learn_on_them(name):
    X, y = load_iris(return_X_y=True)
    for model in (
        AdversarialClassifier(features=name, C=100.0, features_options={"dimensions": 20, "width": 2.0}),
        UMAClassifier(features=name, features_options={"dimensions": 20, "width": 2.0}),
    ):
        assert model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9


@pytest.mark.parametrize("options", [{"dimensions": 0}, {"width": -1.0}, {"gamma": 0.0}, {"landmarks": 1.5}, {"width": True}])
@pytest.mark.parametrize("name", ["kernel_pca", "nystroem"])
def test_refusals(name, options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        make_features(name, rows(), 2, **options)
