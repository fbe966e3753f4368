"""What louche2015, section 4.2, compares UMA with: perceptrons on rough, few or all true labels, and a semi-supervised SVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from ..errors import ConfigError
from .base import Array, Labels, Method, register
from .ultraconservative import UMAClassifier


class _BatchPerceptron(UMAClassifier):
    """UMA with C = I; parameters as in `UMAClassifier`."""

    takes_confusion: ClassVar[bool] = False

    def __init__(
        self,
        *,
        rule: str = "error",
        step: str = "perceptron",
        unit_step: bool = False,
        tol: float = 1e-12,
        max_updates: int = 1000,
        features: str = "linear",
        features_options: Mapping[str, Any] | None = None,
        n_classes: int | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            rule=rule,
            step=step,
            unit_step=unit_step,
            tol=tol,
            max_updates=max_updates,
            features=features,
            features_options=features_options,
            n_classes=n_classes,
            random_state=random_state,
        )


@register("f_y")
class NoisyPerceptron(_BatchPerceptron):
    """Batch perceptron on the labels as they are seen."""


@register("f_conf")
class SamplePerceptron(_BatchPerceptron):
    """Batch perceptron on the small clean sample alone."""

    view = "sample"


@register("f_full")
class TruePerceptron(_BatchPerceptron):
    """Batch perceptron on the true labels of all training rows."""

    view = "true"


@register("s3vm")
class SemiSupervisedSVM(Method):
    """Multiclass semi-supervised SVM after Bennett & Demiriz (1998), with squared errors.

    minimise  sum_labelled |f_i - c_{y_i}|^2 + ratio sum_unlabelled min_y |f_i - c_y|^2 + ridge |W|^2,  f_i = W'x_i, c_y = e_y - 1/k

    Theirs is a two-class mixed-integer program: every unlabelled row costs the smaller of its errors under the two labels. Here the labels
    are k, the minimum runs over all of them, and errors are squared, so that W is exact for given labels and the labels (argmax f) exact
    for given W. The two alternate to a local minimum, from the fit on the labelled rows, while ``ratio`` grows to its value in ``stages``
    steps (a start that trusts no guess). The hinge and integer programming are not reproduced: they do not reach 3,823 rows and 10 classes.

    Parameters
    ----------
    ratio : float
        Weight of an unlabelled row against a labelled one.
    ridge : float
        Weight of |W|^2 against the summed squared errors, in units of the mean squared row norm.
    stages : int
        Steps of ``ratio``, each ten times the one before.
    max_rounds : int
        Limit of alternations in each.
    features, features_options, n_classes, random_state
        As in `UMAClassifier`. Unlabelled rows have code -1 with ``n_classes``; else all rows are labelled.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        W'.
    objective_ : float
        The objective at the end.
    """

    view = "partial"

    def __init__(
        self,
        *,
        ratio: float = 0.1,
        ridge: float = 0.1,
        stages: int = 4,
        max_rounds: int = 100,
        features: str = "linear",
        features_options: Mapping[str, Any] | None = None,
        n_classes: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.ratio = ratio
        self.ridge = ridge
        self.stages = stages
        self.max_rounds = max_rounds
        self.features = features
        self.features_options = features_options
        self.n_classes = n_classes
        self.random_state = random_state

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Alternate weights and labels."""
        for name in ("ratio", "ridge", "stages", "max_rounds"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
                raise ConfigError(f"{name}={value} must be a number above 0")
        k, unlabelled = len(self.classes_), y < 0
        if unlabelled.all():
            raise ConfigError("loss=s3vm needs labelled rows")
        base = np.ones(len(y)) if weights is None else weights
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if hasattr(X, "multiply") else np.einsum("ij,ij->i", X, X)
        penalty = float(self.ridge) * max(float(base @ squares / base.sum()), 1e-300)
        codes = np.eye(k) - 1.0 / k
        labels, rounds, settled = np.where(unlabelled, 0, y), 0, True
        W = np.zeros((X.shape[1], k))
        for stage in range(-1, int(self.stages)):
            trust = 0.0 if stage < 0 else float(self.ratio) * 10.0 ** (stage - int(self.stages) + 1)
            solve = _ridge(X, base * np.where(unlabelled, trust, 1.0), penalty)
            if stage < 0:
                W = solve(codes[labels])
            for done in range(int(self.max_rounds) if stage >= 0 and unlabelled.any() else 0):
                before, labels = labels, np.where(unlabelled, np.argmax(X @ W, axis=1), y)
                settled = done > 0 and bool((labels == before).all())  # W is that of these labels at this ratio
                if settled:
                    break
                rounds += 1
                W = solve(codes[labels])
        labels = np.where(unlabelled, np.argmax(X @ W, axis=1), y)
        errors = ((X @ W - codes[labels]) ** 2).sum(axis=1)
        self.objective_ = float((base * np.where(unlabelled, self.ratio, 1.0)) @ errors + penalty * np.vdot(W, W))
        self.n_iter_ = max(1, rounds)
        self.remarks_ = ("weights and labels agree" if settled else "max_rounds was reached",)
        return np.ascontiguousarray(W.T)


def _ridge(X: Any, weights: Array, penalty: float) -> Any:
    """Return T -> argmin over W (d, k) of sum_i weights_i |W'x_i - T_i|^2 + penalty |W|^2, through the smaller of the two Gram matrices."""
    used = np.flatnonzero(weights)
    rows, root = X[used], np.sqrt(weights[used])
    scaled = rows.multiply(root[:, None]).tocsr() if hasattr(rows, "multiply") else rows * root[:, None]
    primal = X.shape[1] <= len(used)
    gram = scaled.T @ scaled if primal else scaled @ scaled.T
    gram = gram.toarray() if hasattr(gram, "toarray") else gram
    gram[np.diag_indices_from(gram)] += penalty
    factor = linalg.cho_factor(gram, overwrite_a=True, check_finite=False)

    def solve(T: Array) -> Array:
        target = root[:, None] * T[used]
        if primal:
            return linalg.cho_solve(factor, scaled.T @ target, check_finite=False)
        return np.asarray(scaled.T @ linalg.cho_solve(factor, target, check_finite=False))

    return solve
