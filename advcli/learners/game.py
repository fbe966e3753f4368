"""What the game of an adversarial loss says of a fit: distributions of both players, expected costs, and the guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..core.typing import Array
from ..losses import AdversarialLoss
from ..problems.certificate import WorstCase
from .calibrated import warn_scorers
from .loss_parameter import given_options, loss_said, loss_type
from .refitting import Minimiser


def _is_adversarial(estimator: PlaysGame) -> bool:
    loss = estimator.given_loss
    kind = loss_type(loss)
    if kind is None and callable(loss):
        kind = loss_type(getattr(estimator, "loss_", None))  # what the function made
    if (kind is None or issubclass(kind, AdversarialLoss)) and estimator.decides:
        return True
    raise AttributeError(f"loss={loss_said(loss)} has no predictor's distribution; the adversarial losses have")


def _has_proba(estimator: PlaysGame) -> bool:
    """Probabilities over the classes whose largest is the prediction: what scikit-learn means by predict_proba."""
    if estimator.calibrates:
        return True
    if not estimator.decides:
        raise AttributeError("the loss alone makes no predictions here, so that its probabilities are not theirs")
    loss = estimator.given_loss
    kind = loss_type(loss)
    if kind is not None and kind.estimates(given_options(loss, estimator.loss_options)):
        return True
    if _is_adversarial(estimator) and kind is not None and kind.agrees(given_options(loss, estimator.loss_options)):
        return True
    said = repr(loss) if isinstance(loss, str) else loss_said(loss)
    raise AttributeError(f"loss={said} does not predict the likeliest class of its distribution: use predictor_distribution")


class PlaysGame(Minimiser):
    """A fit of a surrogate ``loss_``, which may come from a game."""

    loss: Any
    loss_: Any
    loss_options: Any
    rule: str | None

    @property
    def given_loss(self) -> Any:
        """The parameter that the surrogate is made from: ``loss``, unless other parameters say it."""
        return self.loss

    @property
    def weights_are_costs(self) -> bool:  # type: ignore[override]
        """Whether weights multiply the rows' loss matrices."""
        options = given_options(self.given_loss, self.loss_options)
        return bool(getattr(self.given_loss, "example_weights", False)) or options.get("weight") == "column"

    @property
    def decides(self) -> bool:
        """Whether the loss alone makes the predictions."""
        return True

    @property
    def rule_(self) -> str:
        """The rule that `predict` follows where it is not told another; empty for a loss with one rule."""
        if not isinstance(self.loss_, AdversarialLoss):
            return ""
        return self.loss_.default_rule if self.rule in (None, "default") else str(self.rule)

    def mean_cost(self, X: Any, y: NDArray[np.intp], weight: Array | None) -> float | None:
        """Return the mean expected loss for adversarial losses; weights count as in the objective, or the game value would be no bound."""
        loss = self.loss_
        if not isinstance(loss, AdversarialLoss) or not self.decides:
            return None
        costs = loss.expected_cost(self.potentials(X), y, weight if loss.example_weights else None)
        if weight is None or loss.example_weights:
            return float(costs.mean())
        return float(weight @ costs / weight.sum())

    def worst_case(self, X: Any, y: NDArray[np.intp], weight: Array | None) -> WorstCase | None:
        """Return what the guarantee says of the predictions on the rows of the fit (`advcli.problems.certificate.WorstCase`)."""
        loss, certificate = self.loss_, self.certificate_
        if certificate is None or not isinstance(loss, AdversarialLoss) or not self.decides:
            return None
        example, share = (weight, None) if loss.example_weights else (None, weight)
        bounds, seen = loss.worst_cost(self.potentials(X), self.predict_codes(X), y, example)
        penalty, _ = self._objective(X, y, weight)
        return WorstCase.of(certificate, penalty, np.average(bounds, weights=share), np.average(seen, weights=share), self.rule_)

    def probabilities(self, X: Any) -> Array | None:
        """Return estimates of smooth surrogates, or the predictor's distribution where its predictions are the classes, shape (n, k).

        The distribution is a strategy of the game, no estimate.
        """
        loss = self.loss_
        if loss.smooth and self.decides:
            return np.asarray(loss.probabilities(self.potentials(X)))
        plays = self.decides and isinstance(loss, AdversarialLoss) and loss.n_predictions == len(self.classes_) and self.predicts_classes_
        return loss.predictor(self.potentials(X)) if plays else None

    @available_if(_is_adversarial)
    def predictor_distribution(self, X: Any) -> Array:
        """Return the predictor's p, shape (n, l) in the order of `predictions_`: it minimises the worst-case expected loss (eq. 131)."""
        F = self.potentials(X)
        return np.asarray(self.loss_.predictor(F))

    @available_if(_is_adversarial)
    def adversary_distribution(self, X: Any) -> Array:
        """Return the adversary's q, shape (n, k) by `order_`: the worst class probabilities that the moments allow, as seen by this fit."""
        F = self.potentials(X)
        return np.asarray(self.loss_.adversary(F))

    @available_if(_is_adversarial)
    def expected_loss(self, X: Any) -> Array:
        """Return the expected loss of the predictor's p under every true class of `order_`, shape (n, k)."""
        P = self.predictor_distribution(X)
        return np.asarray(P @ self.loss_.matrix)

    @available_if(_has_proba)
    def predict_proba(self, X: Any) -> Array:
        """Return probabilities of `classes_`, shape (n, k): estimates for ``loss="entropy"``, else the predictor's distribution.

        The predictor's distribution is there only where its largest entry is the prediction (zero-one). It is a mixed strategy in the game,
        no estimate of class probabilities, and often 0 at the true class. Do not score it by log-loss or Brier score: a scorer of
        scikit-learn that does warns once (`StrategyWarning`). ``calibrate`` of `AdversarialClassifier` gives estimates in its place.
        """
        check_is_fitted(self)
        if not self.calibrates and not self.loss_.smooth:
            warn_scorers()
            return self.by_class(self.predictor_distribution(X))
        return self.by_class(np.asarray(self.probabilities(X)))
