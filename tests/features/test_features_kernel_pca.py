"""Kernel PCA and Nystroem features: against scikit-learn, what they keep of the kernel, new rows, and use by surrogates and methods."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel

from advcli import AdversarialClassifier, UMAClassifier
from advcli.core.errors import ConfigError
from advcli.features import cache, kept_in, make_features
from advcli.features.kernels import pca
from advcli.features.kernels.pca import median_gamma


def rows(n=60, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("dimensions", [7, 24, 25, 40])  # few are computed alone, many with all the others
def test_exact_components_are_those_of_scikit_learn(dimensions):
    X, Z = rows(), rows(seed=1)
    features = make_features("kernel_pca", X, 2, dimensions=dimensions, gamma=0.4)
    theirs = KernelPCA(dimensions, kernel="rbf", gamma=0.4).fit(X)
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


def fresh(X, Z):
    """Components of X and Z as another process finds them."""
    pca._recent.clear()
    features = make_features("kernel_pca", X, 2, dimensions=4, gamma=0.3)
    return features.X, features.at(Z).X


def test_processes_share_what_one_has_computed(tmp_path, monkeypatch):
    X, Z = rows(), rows(seed=1)
    alone = fresh(X, Z)
    with kept_in(tmp_path):
        first = fresh(X, Z)
        with monkeypatch.context() as patch:
            patch.setattr(pca, "_principal", None)
            patch.setattr(pca._Projection, "_project", None)
            second = fresh(X, Z)
        for path in tmp_path.iterdir():
            content = path.read_bytes()
            path.unlink()  # the arrays above are mapped to it
            path.write_bytes(content[:-9])
        damaged = fresh(X, Z)
    for found in (first, second, damaged):
        np.testing.assert_array_equal(found[0], alone[0])
        np.testing.assert_array_equal(found[1], alone[1])
    assert len(list(tmp_path.iterdir())) == 3
    assert len(fresh(rows(seed=2), Z)) == 2
    assert len(list(tmp_path.iterdir())) == 3  # outside nothing is kept


def test_a_short_disk_costs_time_only(tmp_path, monkeypatch):
    X, Z = rows(), rows(seed=1)
    monkeypatch.setattr(cache, "_FREE_BYTES", 2**62)
    with kept_in(tmp_path):
        np.testing.assert_array_equal(fresh(X, Z)[1], fresh(X, Z)[1])
    assert not list(tmp_path.iterdir())


def test_rows_asked_for_again_are_not_projected_again(monkeypatch):
    X, asked = rows(), []
    project = pca._Projection._project
    monkeypatch.setattr(pca._Projection, "_project", lambda self, X: asked.append(len(X)) or project(self, X))
    pca._recent.clear()
    for other in (rows(7), rows(8), rows(8)):
        features = make_features("kernel_pca", X, 2, dimensions=4, gamma=0.3)
        np.testing.assert_array_equal(features.at(X).X, features.X)
        features.at(other)
    assert asked == [60, 7, 8]


@pytest.mark.parametrize("options", [{"dimensions": 0}, {"width": -1.0}, {"gamma": 0.0}, {"landmarks": 1.5}, {"width": True}])
@pytest.mark.parametrize("name", ["kernel_pca", "nystroem"])
def test_refusals(name, options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        make_features(name, rows(), 2, **options)
