"""A loss given to the estimators as a class, as what makes one, or made: the same fit as by name; model files keep names alone."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from advcli import AdversarialClassifier
from advcli.core.errors import ConfigError, NotConvergedWarning
from advcli.losses import Loss, make_loss
from advcli.losses.abstain import AbstainLoss
from advcli.losses.general import GeneralLoss
from advcli.losses.hinge import CrammerSingerLoss
from advcli.losses.zero_one import ZeroOneLoss
from advcli.models import read, save

RNG = np.random.default_rng(3)
CLASSES = np.array(["ant", "bee", "caterpillar"])
Y = CLASSES[RNG.integers(3, size=60)]
X = RNG.normal(size=(60, 3)) + np.searchsorted(CLASSES, Y)[:, None]


class LengthLoss(GeneralLoss):
    """A stranger's loss, registered nowhere: costs by the lengths of the classes' names."""

    def __init__(self, n_classes: int, classes: Any = None, scale: float = 1.0) -> None:
        length = np.array([len(name) for name in classes], dtype=float)
        super().__init__(n_classes, matrix=scale * (np.abs(length[:, None] - length) + 1.0 - np.eye(n_classes)))

    @classmethod
    def needs(cls, options: Any) -> frozenset[str]:
        return frozenset({"classes"})


def made_by_function(n_classes: int, alpha: float = 0.4) -> Loss:
    return AbstainLoss(n_classes, alpha)


SAME = [
    (ZeroOneLoss, "zero_one", None),
    (partial(AbstainLoss, alpha=0.3), "abstain", {"alpha": 0.3}),
    (made_by_function, "abstain", {"alpha": 0.4}),
    (AbstainLoss(3, 0.3), "abstain", {"alpha": 0.3}),
    (CrammerSingerLoss, "cs", None),
]


@pytest.mark.parametrize(("given", "name", "options"), SAME)
def test_a_loss_that_is_given_is_the_loss_of_that_name(given: Any, name: str, options: Any) -> None:
    one, other = AdversarialClassifier(given).fit(X, Y), AdversarialClassifier(name, loss_options=options).fit(X, Y)
    np.testing.assert_array_equal(one.theta_, other.theta_)
    for method in ("predictor_distribution", "predict_proba"):
        # by a function only the fitted estimator knows what it has
        assert hasattr(one, method) == hasattr(other, method)
        if not callable(given) or isinstance(given, (type, partial)):
            assert hasattr(clone(one), method) == hasattr(clone(other), method)
    assert clone(one).get_params()["loss"] is given or isinstance(given, (Loss, partial))
    np.testing.assert_array_equal(clone(one).fit(X, Y).theta_, one.theta_)
    np.testing.assert_array_equal(AdversarialClassifier("ww").set_params(loss=given).fit(X, Y).theta_, one.theta_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).predict(X), one.predict(X))


def test_a_stranger_learns_the_labels_and_is_selected_by_scikit_learn() -> None:
    model = AdversarialClassifier(LengthLoss, loss_options={"scale": 2.0})
    assert model.fit(X, Y).cost_matrix_.tolist() == [[0, 2, 18], [2, 0, 18], [18, 18, 0]]
    assert AdversarialClassifier(partial(LengthLoss, scale=2.0)).fit(X, Y).cost_matrix_.tolist() == model.cost_matrix_.tolist()
    assert cross_val_score(model, X, Y, cv=3).shape == (3,)


@pytest.mark.parametrize("given", [ZeroOneLoss, partial(AbstainLoss, alpha=0.3)])
def test_registered_classes_are_saved_by_their_names(given: Any, tmp_path: Path) -> None:
    model = AdversarialClassifier(given).fit(X, Y)
    save(model, tmp_path / "m")
    back = read(tmp_path / "m").estimator
    assert back.get_params()["loss"] == model.loss_.name
    np.testing.assert_array_equal(back.predictor_distribution(X), model.predictor_distribution(X))


@pytest.mark.parametrize("given", [LengthLoss, partial(LengthLoss, scale=2.0), made_by_function, AbstainLoss(3, 0.3)])
def test_others_are_not_saved(given: Any, tmp_path: Path) -> None:
    model = AdversarialClassifier(given).fit(X, Y)
    with pytest.raises(ConfigError, match=r"cannot save this model: loss=(LengthLoss|AbstainLoss|made_by_function) has no name") as raised:
        save(model, tmp_path / "m")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (ZeroOneLoss, {"typo": 1}, "loss=ZeroOneLoss: .*typo"),
        (make_loss("zero_one", 4), None, "loss=ZeroOneLoss was made for 4 classes, the labels have 3"),
        (lambda n_classes: n_classes, None, "made a int; give what makes an advcli.losses.Loss"),
        (dict, None, "loss=dict: 'int' object is not iterable"),
    ],
)
def test_what_makes_no_loss_is_refused(given: Any, options: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        AdversarialClassifier(given, loss_options=options).fit(X, Y)


def test_warnings_name_the_class() -> None:
    with pytest.warns(NotConvergedWarning, match="^loss=LengthLoss, "):
        AdversarialClassifier(LengthLoss, tol=1e-9, max_passes=1, C=100.0).fit(X, Y)
