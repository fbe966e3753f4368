"""Rows and labels that are not shown to scikit-learn's validation are those that it would return as they are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from advcli import AdversarialClassifier
from advcli.core.checks import LARGEST
from advcli.core.rows import is_validated

Y = np.array([0, 1, 2, 0, 1, 2])


def rows(**changed):
    X = np.random.default_rng(0).normal(size=(6, 3))
    for at, value in changed.items():
        X.flat[int(at[1:])] = value
    return X


@pytest.mark.parametrize("y", [Y, Y.astype(str), Y.astype(np.uint8), Y > 0, Y.astype(np.int32)], ids=lambda y: str(y.dtype))
@pytest.mark.parametrize("X", [rows(), rows(_4=LARGEST), rows()[:6, :3], rows()[::1]])
def test_what_passes_is_what_scikit_learn_returns(X, y):
    assert is_validated(X, y)
    found = validate_data(BaseEstimator(), X, y, accept_sparse="csr", dtype=np.float64, order="C")
    assert found[0] is X
    assert found[1].dtype == y.dtype
    assert np.array_equal(found[1], y)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (rows(_4=np.nan), Y),
        (rows(_4=np.inf), Y),
        (rows(_4=-np.inf), Y),
        (rows(_4=-2.0 * LARGEST), Y),
        (rows(), Y[:5]),
        (rows(), Y[:, None]),
        (rows(), Y.astype(float)),
        (rows(), Y.astype(object)),
        (rows(), Y.tolist()),
        (rows().astype(np.float32), Y),
        (rows().astype(">f8"), Y),
        (np.asfortranarray(rows()), Y),
        (rows()[:, ::2], Y),
        (rows().tolist(), Y),
        (rows().view(np.matrix), Y),
        (np.ma.masked_array(rows()), Y),
        (rows()[0], Y),
        (np.empty((0, 3)), Y[:0]),
        (np.empty((6, 0)), Y),
        (pd.DataFrame(rows()), Y),
    ],
)
def test_all_else_is_left_to_scikit_learn(X, y):
    assert not is_validated(X, y)


def test_names_of_a_former_fit_are_forgotten():
    model = AdversarialClassifier().fit(pd.DataFrame(rows(), columns=["a", "b", "c"]), Y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    model.fit(rows()[:, :2].copy(), Y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2


@pytest.mark.parametrize(
    ("X", "said"),
    [(rows(_4=np.nan), "NaN"), (rows(_4=-2.0 * LARGEST), "column 2"), (rows()[:, :2].copy(), "2 features"), ([[1.0], [1.0, 2.0]], None)],
)
def test_new_rows_are_refused_as_scikit_learn_and_we_refuse_them(X, said):
    model = AdversarialClassifier().fit(rows(), Y)
    with pytest.raises(ValueError, match=said):
        model.predict(X)


def test_new_rows_without_names_are_told_of_where_the_fit_had_names():
    model = AdversarialClassifier().fit(pd.DataFrame(rows(), columns=["a", "b", "c"]), Y)
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(rows())


def test_new_rows_that_are_plain_are_predicted_as_any_others():
    model = AdversarialClassifier().fit(rows(), Y)
    X = rows()
    assert np.array_equal(model.decision_function(X), model.decision_function(np.asfortranarray(X)))
    assert np.array_equal(model.decision_function(X), model.decision_function(X.tolist()))
