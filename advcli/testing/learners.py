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
from .losses import named, require

ENGINES = 1e-9  # how far scores of the same rows, dense and sparse, may lie apart: sums run in another order
TEXT = {"check_classifiers_classes"}  # scikit-learn's checks that give text without an order


def check_learner(learner: Learner, skip: Collection[str] = (), scikit_learn: bool = True) -> None:
    """Check an unfitted learner on rows of three classes, and by scikit-learn's checks of classifiers; AssertionError names what is broken.

    It is cloned with its parameters. It fits labels of any kind, and codes with ``n_classes``, alike. It repeats its bits and writes to no
    input. Its scores have the shape (n, k), and the largest is the prediction's; for two classes the decision function has one score a row.
    It keeps room for a class that does not occur. It predicts the same for sparse rows, for some rows alone, for rows that it has seen, and
    after pickling. Its certificate, where it has one, is true.

    ``skip`` names scikit-learn's checks that it breaks on purpose, such as a learner that abstains; one that counts steps between classes
    (`Learner.counts_steps`) is spared the check that gives text without an order. ``scikit_learn=False`` leaves these checks out, for a
    learner that needs to know more of the data than its rows.

    Examples
    --------
    >>> from advcli import OneVersusAllClassifier
    >>> from advcli.testing import check_learner
    >>> check_learner(OneVersusAllClassifier(), scikit_learn=False)
    """
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 12)
    X = random.normal(size=(36, 3)) + 2.0 * y[:, None]
    for array in (X, y):
        array.setflags(write=False)
    if learner.counts_steps:
        skip = {*skip, *TEXT}
    with named(type(learner).__name__):
        _check_parameters(learner)
        fitted = _check_answers(learner, X, y)
        _check_certificate(fitted)
        if len(fitted.predictions_) > 3 and learner.get_params(deep=False).get("extra_labels", 0) is None:
            learner = clone(learner).set_params(extra_labels=[-99])  # scikit-learn's checks compare numbers
        if scikit_learn:
            _check_two_classes(learner, X, y)
            _check_as_scikit_learn(learner, skip)


def _check_parameters(learner: Learner) -> None:
    parameters = learner.get_params(deep=False)
    written = [name for name in inspect.signature(type(learner).__init__).parameters if name != "self"]
    require(set(parameters) == set(written), "its parameters are not the arguments of __init__")
    require(repr(clone(learner).get_params(deep=False)) == repr(parameters), "a clone has other parameters")


def _check_answers(learner: Learner, X: np.ndarray, y: np.ndarray) -> Learner:
    """Return a fit to three labels whose answers agree with each other."""
    names = np.array(["ant", "bee", "cat"])
    labels = names[y]
    if learner.counts_steps:  # which text has only with an order
        labels = pd.Series(pd.Categorical(labels, names, ordered=True))
    fitted, again = clone(learner).fit(X, labels), clone(learner).fit(X, labels)
    F = fitted.potentials(X)
    require(F.shape == (36, 3), f"potentials have shape {F.shape}, not (n, k) = (36, 3)")
    require(np.isfinite(F).all(), "a potential is no finite number")
    require(np.array_equal(F, again.potentials(X)), "two fits to the same rows have other bits")
    require(np.array_equal(fitted.decision_function(X), F), "its decision function are not its potentials")
    codes = fitted.predict_codes(X)
    require(codes.min() >= 0 and codes.max() < len(fitted.predictions_), "a code is none of its predictions")
    require(np.array_equal(fitted.predictions_[codes], fitted.predict(X)), "predict is not the label of predict_codes")
    require(list(fitted.classes_) == list(names), "classes_ are not the sorted labels")
    require(np.array_equal(fitted.potentials(fitted.look(X)), F), "rows that were looked at have other potentials")
    if "n_classes" in learner.get_params(deep=False):
        coded = clone(learner).set_params(n_classes=3).fit(X, y)
        require(np.array_equal(coded.potentials(X), F), "codes with n_classes=3 are fitted otherwise than labels")
    loaded = pickle.loads(pickle.dumps(fitted))
    require(np.array_equal(loaded.potentials(X), F), "it predicts otherwise after pickling")
    if get_tags(learner).input_tags.sparse:
        same = np.allclose(fitted.potentials(sparse.csr_array(X)), F, rtol=ENGINES, atol=ENGINES)
        require(same, "sparse rows have other potentials than the same dense ones")
    return fitted


def _check_certificate(fitted: Learner) -> None:
    certificate = fitted.certificate_
    if certificate is None:
        require(not fitted.certified, "it says that its fits are certified, but there is no certificate")
        return
    require(certificate.relative_gap >= 0, "its certificate's dual value lies above the primal one")
    require(np.isclose(certificate.gap, certificate.primal - certificate.dual), "its certificate's gap is not primal minus dual")
    require(certificate.converged == (certificate.status == "converged"), "its certificate's status is not its outcome")


def _check_two_classes(learner: Learner, X: np.ndarray, y: np.ndarray) -> None:
    """Two classes, and then one more that does not occur."""
    rows = y < 2
    two = clone(learner).fit(X[rows], y[rows])
    F = two.potentials(X)
    require(F.shape == (36, 2), f"potentials of two classes have shape {F.shape}, not (n, 2)")
    require(np.array_equal(two.decision_function(X), F[:, 1] - F[:, 0]), "its decision function for two classes is not f_1 - f_0")
    if "n_classes" in learner.get_params(deep=False):
        roomy = clone(learner).set_params(n_classes=4).fit(X, y)
        require(roomy.potentials(X).shape == (36, 4), "n_classes=4 leaves no room for a class that does not occur")
        require(list(roomy.classes_) == [0, 1, 2, 3], "n_classes=4 does not make the classes 0..3")


def _check_as_scikit_learn(learner: Learner, skip: Collection[str]) -> None:
    checked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        for model, check in estimator_checks_generator(learner):
            title = check.func.__name__
            if title in skip:
                continue
            try:
                check(model)
            except Exception as error:
                if type(error).__name__ in ("SkipTest", "Skipped"):
                    continue
                raise AssertionError(f"scikit-learn's {title} fails: {error}") from error
            checked += 1
    require(checked, "scikit-learn makes no check of it")
