"""The check of a learner."""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Collection

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

from ..core.errors import NotConvergedWarning
from ..learners import Learner
from .losses import require

ENGINES = 1e-9
"""How far scores of the same rows, dense and sparse, may lie apart: sums run in another order."""


TEXT = {"check_classifiers_classes"}
"""scikit-learn's checks that give text without an order."""


def check_learner(learner: Learner, skip: Collection[str] = (), scikit_learn: bool = True) -> None:
    """Check an unfitted learner on rows of three classes, and by scikit-learn's checks of classifiers.

    It is cloned with its parameters, fits labels of any kind and codes with ``n_classes`` alike, repeats its bits, writes to no input, has
    scores of shape (n, k) whose largest entry is the prediction of its code, has one score a row as decision function for two classes,
    keeps room for a class that does not occur, predicts the same for sparse rows, for some rows alone, for rows that were looked at before
    and after pickling, and its certificate, where it has one, holds what it says.

    Parameters
    ----------
    learner : Learner
    skip : collection of str
        Names of scikit-learn's checks that it breaks on purpose, such as a learner that abstains. One that counts steps between classes
        (`Learner.counts_steps`) refuses text without an order, and is spared the check that gives such.
    scikit_learn : bool
        False leaves scikit-learn's checks out, for a learner that needs to know more of the data than its rows.

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
    labels = names[y]
    if learner.counts_steps:  # which text has only with an order
        labels = pd.Series(pd.Categorical(labels, names, ordered=True))
        skip = {*skip, *TEXT}
    own = learner.get_params(deep=False)
    written = [name for name in inspect.signature(type(learner).__init__).parameters if name != "self"]
    require(set(own) == set(written), f"{what}: its parameters are not the arguments of __init__")
    copied = clone(learner).get_params(deep=False)
    require(repr(copied) == repr(own), f"{what}: a clone has other parameters")
    fitted = clone(learner).fit(X, labels)
    again = clone(learner).fit(X, labels)
    F = fitted.potentials(X)
    require(F.shape == (36, 3), f"{what}: potentials have shape {F.shape}, not (n, k) = (36, 3)")
    require(np.isfinite(F).all(), f"{what}: a potential is no finite number")
    require(np.array_equal(F, again.potentials(X)), f"{what}: two fits to the same rows have other bits")
    require(np.array_equal(fitted.decision_function(X), F), f"{what}: its decision function are not its potentials")
    codes = fitted.predict_codes(X)
    within = codes.min() >= 0 and codes.max() < len(fitted.predictions_)
    require(within, f"{what}: a code is none of its predictions")
    require(np.array_equal(fitted.predictions_[codes], fitted.predict(X)), f"{what}: predict is not the label of predict_codes")
    require(list(fitted.classes_) == list(names), f"{what}: classes_ are not the sorted labels")
    require(np.array_equal(fitted.potentials(fitted.look(X)), F), f"{what}: rows that were looked at have other potentials")
    if "n_classes" in own:
        coded = clone(learner).set_params(n_classes=3).fit(X, y)
        require(np.array_equal(coded.potentials(X), F), f"{what}: codes with n_classes=3 are fitted otherwise than labels")
    loaded = pickle.loads(pickle.dumps(fitted))
    require(np.array_equal(loaded.potentials(X), F), f"{what}: it predicts otherwise after pickling")
    _check_certificate(fitted, what)
    if get_tags(learner).input_tags.sparse:
        same = np.allclose(fitted.potentials(sparse.csr_array(X)), F, rtol=ENGINES, atol=ENGINES)
        require(same, f"{what}: sparse rows have other potentials than the same dense ones")
    if len(fitted.predictions_) > 3 and own.get("extra_labels", 0) is None:  # scikit-learn's checks compare numbers
        learner = clone(learner).set_params(extra_labels=[-99])
    if scikit_learn:
        _check_two_classes(learner, X, y, what)
        _check_as_scikit_learn(learner, skip, what)


def _check_certificate(fitted: Learner, what: str) -> None:
    certificate = fitted.certificate_
    if certificate is None:
        require(not fitted.certified, f"{what}: it says that its fits are certified, but there is no certificate")
        return
    require(certificate.relative_gap >= 0, f"{what}: its certificate's dual value lies above the primal one")
    require(np.isclose(certificate.gap, certificate.primal - certificate.dual), f"{what}: its certificate's gap is not primal minus dual")
    require(certificate.converged == (certificate.status == "converged"), f"{what}: its certificate's status is not its outcome")


def _check_two_classes(learner: Learner, X: np.ndarray, y: np.ndarray, what: str) -> None:
    """Two classes, and then one more that does not occur."""
    rows = y < 2
    two = clone(learner).fit(X[rows], y[rows])
    F = two.potentials(X)
    require(F.shape == (36, 2), f"{what}: potentials of two classes have shape {F.shape}, not (n, 2)")
    require(np.array_equal(two.decision_function(X), F[:, 1] - F[:, 0]), f"{what}: its decision function for two classes is not f_1 - f_0")
    if "n_classes" in learner.get_params(deep=False):
        roomy = clone(learner).set_params(n_classes=4).fit(X, y)
        require(roomy.potentials(X).shape == (36, 4), f"{what}: n_classes=4 leaves no room for a class that does not occur")
        require(list(roomy.classes_) == [0, 1, 2, 3], f"{what}: n_classes=4 does not make the classes 0..3")


def _check_as_scikit_learn(learner: Learner, skip: Collection[str], what: str) -> None:
    made = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        for each, check in estimator_checks_generator(learner):
            title = check.func.__name__
            if title in skip:
                continue
            try:
                check(each)
            except Exception as error:
                if type(error).__name__ in ("SkipTest", "Skipped"):
                    continue
                raise AssertionError(f"{what}: scikit-learn's {title} fails: {error}") from error
            made += 1
    require(made, f"{what}: scikit-learn makes no check of it")
