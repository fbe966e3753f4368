"""The check of a learner."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
from sklearn.base import clone

from ..learners import Learner
from .losses import require


def check_learner(learner: Learner) -> None:
    """Check an unfitted learner on rows of three classes.

    It is cloned with its parameters, fits labels of any kind and codes with ``n_classes`` alike, repeats its bits, writes to no input, has
    scores of shape (n, k) whose largest entry is the prediction of its code, and predicts the same after pickling.

    Raises
    ------
    AssertionError
    """
    what = type(learner).__name__
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 12)
    X = random.normal(size=(36, 3)) + 2.0 * y[:, None]
    names = np.array(["ant", "bee", "cat"])
    for array in (X, y):
        array.setflags(write=False)
    own = learner.get_params(deep=False)
    written = [name for name in inspect.signature(type(learner).__init__).parameters if name != "self"]
    require(set(own) == set(written), f"{what}: its parameters are not the arguments of __init__")
    copied = clone(learner).get_params(deep=False)
    require(repr(copied) == repr(own), f"{what}: a clone has other parameters")
    fitted = clone(learner).fit(X, names[y])
    again = clone(learner).fit(X, names[y])
    F = fitted.potentials(X)
    require(F.shape == (36, 3), f"{what}: potentials have shape {F.shape}, not (n, k) = (36, 3)")
    require(np.isfinite(F).all(), f"{what}: a potential is no finite number")
    require(np.array_equal(F, again.potentials(X)), f"{what}: two fits to the same rows have other bits")
    codes = fitted.predict_codes(X)
    require(np.array_equal(fitted.predictions_[codes], fitted.predict(X)), f"{what}: predict is not the label of predict_codes")
    require(list(fitted.classes_) == list(names), f"{what}: classes_ are not the sorted labels")
    if "n_classes" in own:
        coded = clone(learner).set_params(n_classes=3).fit(X, y)
        require(np.array_equal(coded.potentials(X), F), f"{what}: codes with n_classes=3 are fitted otherwise than labels")
    loaded = pickle.loads(pickle.dumps(fitted))
    require(np.array_equal(loaded.potentials(X), F), f"{what}: it predicts otherwise after pickling")
