"""Estimates of class probabilities from the potentials of a learner, by a calibration of cross-fitted potentials.

The p of an adversarial loss is a strategy of the game: it is 0 at most classes of most rows, whatever their chances are. An estimate needs
labels of rows that the fit has not seen. So every fold is scored by a fit to the others; `VectorScaling` or scikit-learn's
`CalibratedClassifierCV` learns from these scores.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted

from ..core.errors import ConfigError, ModelError, StrategyWarning
from ..core.stored_arrays import Entries
from ..core.typing import Array, Labels, Options
from ..data.labels.order import codes_of
from ..data.labels.soft import as_frame, by_label, is_soft
from .options import one_of
from .scaling import MOST_CLASSES, VectorScaling

METHODS = ("vector", "temperature", "sigmoid", "isotonic")
FOLDS = 5
"""Parts of the rows that are scored by a fit to the others, as `CalibratedClassifierCV` has them; fewer where a class has fewer rows."""


SCORES = ("log_loss", "brier_score_loss", "d2_log_loss_score", "d2_brier_score")
"""Functions of scikit-learn that score estimates of probabilities, and nothing else."""
_DEEP = 16  # frames from a scorer to what it asks
_told = False


def warn_scorers() -> None:
    """Warn where a scorer of scikit-learn that needs estimates asks for the strategy of a game; once in a process.

    Only the caller tells what for: area under the curve, stacking and plots ask for the same and are right to.
    """
    global _told
    frame, depth = inspect.currentframe(), 0
    while not _told and frame is not None and depth < _DEEP:
        if frame.f_globals.get("__name__") == "sklearn.metrics._scorer":
            name = getattr(getattr(frame.f_locals.get("self"), "_score_func", None), "__name__", "")
            if name in SCORES:
                _told = True
                said = 'the strategy of a game, which is no estimate of chances; AdversarialClassifier(calibrate="vector") estimates them'
                warnings.warn(f"{name} scores {said}", StrategyWarning, stacklevel=2)
        frame, depth = frame.f_back, depth + 1


class _Scores(ClassifierMixin, BaseEstimator):
    """A classifier that has nothing to learn: its rows are the scores themselves."""

    def fit(self, F: Array, y: Labels, sample_weight: Any = None) -> Self:
        """Take the labels' values."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, F: Array) -> Array:
        """Return the scores (n, k); of two classes their difference (n,)."""
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F

    def predict(self, F: Array) -> Labels:
        """Return the class of the largest score."""
        return self.classes_[np.argmax(F, axis=1)]


@dataclass(frozen=True, eq=False)
class Calibration:
    """The map from potentials to estimates of class probabilities."""

    classes: Labels  # (p,), codes of the classes that have rows; the others have probability 0
    fitted: Any  # VectorScaling or CalibratedClassifierCV
    scores: Array  # (n, p), cross-fitted potentials of these classes, which the map is fitted to
    codes: Labels  # (n,)
    weights: Array  # (n,), how often rows occur

    @classmethod
    def of(cls, method: str, scores: Array, codes: Labels, weights: Array) -> Calibration:
        """Return the calibration by a method of `METHODS`, fitted to the columns of occurring classes."""
        classes = np.unique(codes)
        if method == "vector":
            return cls(classes, VectorScaling.of(scores, np.searchsorted(classes, codes), weights), scores, codes, weights)
        from sklearn.calibration import CalibratedClassifierCV  # which imports a third of scikit-learn

        fitted = CalibratedClassifierCV(_Scores(), method=method, cv=[(np.arange(len(codes)),) * 2], ensemble=False)
        with np.errstate(over="ignore"):  # of exp at scores far out, whose probability is 0
            fitted.fit(scores, codes, sample_weight=weights)
        return cls(classes, fitted, scores, codes, weights)

    def probabilities(self, F: Array) -> Array:
        """Return estimates of the class probabilities, rows that sum to 1, at potentials F (n, k)."""
        P = np.zeros_like(F)
        with np.errstate(over="ignore"):
            P[:, self.classes] = self.fitted.predict_proba(F[:, self.classes])
        return P


def check_method(method: Any) -> None:
    """Refuse a method that is unknown."""
    one_of("calibrate", method, METHODS)


@dataclass(kw_only=True, eq=False, repr=False)
class Calibrated:
    """The parameter ``calibrate`` of learners with potentials; in front of their class among the bases.

    Parameters
    ----------
    calibrate : {"vector", "temperature", "sigmoid", "isotonic"} or None
        How `predict_proba` estimates class probabilities: softmax(s_j f_j + b_j) with a slope and a bias for each class, or softmax(f / T)
        with one T (Guo et al. 2017); a logistic curve (Platt 1999) or a monotone step function (Zadrozny & Elkan 2002) of each class's
        potential against the others, scaled to sum 1. They are learned from cross-fitted potentials at the same lambda, so a fit costs up
        to six times as much. `predict` stays as it is; temperature alone never changes the likeliest class, and cannot give a rare
        class its share. None: `predict_proba`, where there is one, is the strategy of the game.

    Attributes
    ----------
    calibration_ : Calibration
        Where ``calibrate`` is not None.
    """

    calibrate: str | None = None

    @classmethod
    def has_probabilities(cls, loss: Options) -> bool:
        """Tell whether ``calibrate`` asks for estimates or the loss itself has probabilities."""
        return loss.get("calibrate") is not None or super().has_probabilities(loss)  # type: ignore[misc]

    @classmethod
    def check(cls, loss: Options, *parts: Any) -> None:
        """Refuse a way of calibration that there is not, and what the learner refuses."""
        if loss.get("calibrate") is not None:
            check_method(loss["calibrate"])
        super().check(loss, *parts)  # type: ignore[misc]

    @classmethod
    def options_of(cls, loss: Options, *parts: Any) -> dict[str, Any]:
        """Return the parameters that the groups set, the way of calibration among them."""
        return {**super().options_of(loss, *parts), "calibrate": loss.get("calibrate")}  # type: ignore[misc]

    @property
    def calibrates(self) -> bool:
        """Whether ``calibrate`` is set."""
        return self.calibrate is not None

    def needs_memory(self: Any) -> str | None:
        """Return what needs rows in memory: fits to parts of the rows, or what the learner says."""
        return super().needs_memory() if self.calibrate is None else f"calibrate={self.calibrate}"  # type: ignore[misc]

    def check_parameters(self: Any) -> None:
        """Refuse parameters that no data can mend."""
        super().check_parameters()  # type: ignore[misc]
        if self.calibrate is not None:
            check_method(self.calibrate)

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, start: Any = None) -> Any:
        """Fit as `Learner.fit` does; then learn the map from potentials to probabilities.

        Raises
        ------
        ConfigError
            A class with one row, which no fold can spare; more classes than vector scaling takes.
        """
        if self.calibrate is not None and is_soft(y):
            y = as_frame(y)  # rows of which can be taken
        labels = y if not hasattr(y, "idxmax") or np.ndim(y) < 2 else y.columns
        if self.calibrate == "vector" and np.ndim(labels) and len(set(np.asarray(labels).ravel().tolist())) > MOST_CLASSES:
            raise ConfigError(f"calibrate=vector takes at most {MOST_CLASSES} classes; choose calibrate=temperature")
        super().fit(X, y, sample_weight, start)  # type: ignore[misc]
        if self.calibrate is not None:
            scores, codes, weights = self._cross_fitted(X, y, sample_weight)
            self.calibration_ = Calibration.of(self.calibrate, scores, codes, weights)
        return self

    def _cross_fitted(self: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Labels, Array]:
        """Return potentials of every row by a fit without its fold, codes and weights, of the classes that occur."""
        soft = is_soft(y)
        codes = codes_of(y.idxmax(axis=1) if soft else y, self.order_)
        weights = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        counts = np.bincount(codes, minlength=len(self.order_))
        least = int(counts[counts > 0].min())
        if least < 2:
            label = self.order_.tolist()[int(np.flatnonzero(counts == 1)[0])]
            raise ConfigError(f"calibrate={self.calibrate} needs at least 2 rows of every class, and {label!r} has one")
        P = y[self.order_.tolist()].to_numpy() if soft else None
        present, pairwise = np.flatnonzero(counts if P is None else P.sum(axis=0)), get_tags(self).input_tags.pairwise
        labels_present = self.order_[present].tolist()
        scores = np.empty((len(codes), len(present)))
        options = {"calibrate": None} | ({"lam": self.lam_} if self.lam_ > 0 else {})
        from sklearn.model_selection import StratifiedKFold

        folds = StratifiedKFold(min(FOLDS, least), shuffle=True, random_state=self.random_state)
        for train, test in folds.split(np.zeros(len(codes)), codes):
            rows, new = (_safe_indexing(X, part) for part in (train, test))
            if pairwise:
                rows, new = (_safe_indexing(part, train, axis=1) for part in (rows, new))
            fitted = clone(self).set_params(**options)
            fitted.fit(rows, _safe_indexing(y, train), None if sample_weight is None else weights[train])
            column_of = {label: column for column, label in enumerate(fitted.order_.tolist())}
            scores[test] = fitted.potentials(new)[:, [column_of[label] for label in labels_present]]
        if P is None:
            return scores, codes, weights
        places, codes, each = by_label(P, weights)
        return scores[places], codes, weights if each is None else each

    def probabilities(self: Any, X: Any) -> Array | None:
        """Return the calibrated estimates where ``calibrate`` is set, else what the learner has; shape (n, k)."""
        if self.calibrate is None:
            return super().probabilities(X)  # type: ignore[misc]
        check_is_fitted(self, "calibration_")
        return self.calibration_.probabilities(self.potentials(X))

    def saved(self: Any) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds; of the calibration the data of its fit, since a file holds no code."""
        parameters, attributes, rows = super().saved()  # type: ignore[misc]
        if self.calibrate is not None:
            calibration = self.calibration_
            attributes |= {
                "calibration_scores": calibration.scores,
                "calibration_codes": calibration.codes,
                "calibration_weights": calibration.weights,
            }
        return parameters, attributes, rows

    def restore(self: Any, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model, and fit the calibration again."""
        super().restore(attributes)  # type: ignore[misc]
        if self.calibrate is not None:
            check_method(self.calibrate)
            codes = attributes.array("calibration_codes", (None,), "i", 0, len(self.classes_) - 1).astype(np.intp)
            scores = attributes.array("calibration_scores", (len(codes), len(np.unique(codes))))
            weights = attributes.array("calibration_weights", (len(codes),), least=0.0)
            try:
                self.calibration_ = Calibration.of(self.calibrate, scores, codes, weights)
            except Exception as error:  # scikit-learn's, of whatever numbers a file holds
                raise ModelError(f"its calibration cannot be fitted again ({type(error).__name__})") from error
