"""Weights on the loss matrix: the game over w L.

S_wL(f, y) = w S_L(f / w, y) (Fathony et al. 2018, Corollaries 9-11; their Theorem 8 holds for the set of extreme points, not for the
adversary at the same f). So a weighted loss is its base with scores and values in units of w.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import ConfigError
from ..core.typing import Array, Labels
from .base import AdversarialLoss, Answer, Loss, loss_class, make_loss, register


@register("weighted")
class WeightedLoss(AdversarialLoss):
    """Another adversarial loss, ``base`` with ``options``, with weights on its costs.

    ``weight`` is one number above 0, one for each class, or ``"column"``: the weights given to `fit` are the examples' own. With one weight
    for all, predictions and the predictor's p follow the weighted game. With weights by class or example a new row's weight is
    unknown: potentials need no weight, and p assumes weight 1, so let the weights average 1.
    """

    kernel = ""  # its base's, as all that is compiled: a fit there knows no weights

    def __init__(self, n_classes: int, base: str = "zero_one", weight: Any = 1.0, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(n_classes)
        cls = loss_class(base)
        if not issubclass(cls, AdversarialLoss) or issubclass(cls, WeightedLoss):
            raise ConfigError(
                f"loss.base={base} cannot be weighted: choose an adversarial loss such as zero_one, absolute, squared or abstain"
            )
        loss = make_loss(base, n_classes, **(options or {}))
        assert isinstance(loss, AdversarialLoss)
        self.base: AdversarialLoss = loss
        self.kernel, self.metric, self.alpha = loss.kernel, loss.metric, loss.alpha  # type: ignore[misc]
        self.example_weights = isinstance(weight, str)
        if self.example_weights:
            if weight != "column":
                raise ConfigError(f'loss.weight={weight!r} must be a number, one number for each class, or "column"')
            weight = 1.0
        if hasattr(weight, "index") and not callable(weight.index):  # a column of a frame
            raise ConfigError(
                "loss.weight has names, and a loss knows no labels: give class_weight={LABEL: WEIGHT}, or numbers in their order"
            )
        values = np.asarray(weight, dtype=object).ravel()
        try:
            self.weight = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"loss.weight={weight!r} must be numbers above 0") from error
        if len(self.weight) not in (1, n_classes):
            raise ConfigError(f"loss.weight has {len(self.weight)} numbers for {n_classes} classes: give one, or one for each class")
        if not (np.isfinite(self.weight) & (self.weight > 0)).all():
            raise ConfigError(f"loss.weight={weight!r} must be numbers above 0")
        self.common = float(self.weight[0]) if len(self.weight) == 1 else 1.0
        self.matrix = self.common * self.base.matrix
        self.row_names, self.column_names = self.base.row_names, self.base.column_names

    @classmethod
    def examples(cls, n_classes: int) -> list[dict[str, Any]]:
        """Return one weight for all, weights by class, and another base."""
        by_class = (0.5 + np.arange(n_classes)).tolist()
        return [{"weight": 2.5}, {"weight": by_class}, {"base": "absolute", "weight": by_class}, {"base": "abstain", "weight": 0.4}]

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> frozenset[str]:
        """Return what the base needs."""
        return loss_class(options.get("base", "zero_one")).needs(options.get("options") or {})

    @classmethod
    def filled(cls, options: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with the base loss's options filled."""
        of_base = dict(options.get("options") or {})
        filled = loss_class(options.get("base", "zero_one")).filled(of_base, facts)
        return dict(options) if filled == of_base else {**options, "options": filled}

    @classmethod
    def reads_file(cls, options: Mapping[str, Any]) -> bool:
        """Return whether the base is read from a file."""
        return loss_class(options.get("base", "zero_one")).reads_file(options.get("options") or {})

    @classmethod
    def agrees(cls, options: Mapping[str, Any]) -> bool:
        """Return whether the base's prediction is the likeliest class."""
        return loss_class(options.get("base", "zero_one")).agrees(options.get("options") or {})

    @property
    def family(self) -> tuple[str, int, Array]:
        """The base's: compiled functions know no weights."""
        return self.base.family

    @property
    def core(self) -> Loss:
        """The base's core."""
        return self.base.core

    @property
    def unweighted(self) -> Loss:
        """The base."""
        return self.base

    def cost_weights(self, y: Labels, example: Array | None) -> Array:
        """Return each example's weight, shape (n,)."""
        if self.example_weights:
            if example is None:
                raise ConfigError('loss.weight="column" needs the examples\' weights: name their column by dataset.weight')
            if not (example > 0).all():
                raise ConfigError(f"example weights must be above 0; row {int(np.argmin(example > 0))} has {example.min():g}")
            weights = example
        else:
            weights = self._weights(y)
        inner = self.base.cost_weights(y, None)
        return weights if inner is None else weights * inner

    def _weights(self, y: Labels) -> Array:
        return np.full(len(y), self.common) if len(self.weight) == 1 else self.weight[y]

    def value(self, F: Array, y: Labels) -> Array:
        """Return w S(f / w, y), shape (n,), by the weights of the labels."""
        w = self._weights(y)
        return w * self.base.value(_shifted(F) / w[:, None], y)

    def oracle(self, F: Array, y: Labels) -> Answer:
        """Return the maximising (r, c) of the weighted game."""
        w = self._weights(y)
        answer = self.base.oracle(_shifted(F) / w[:, None], y)
        return Answer(w * answer.value, answer.R, w * answer.offset)

    def offset(self, R: Array, y: Labels) -> Array:
        """Return w times the base's offset."""
        return self._weights(y) * self.base.offset(R, y)

    def block(self, F: Array, R: Array, y: Labels, curvature: Array) -> Array:
        """Return the base's block step in units of the weights."""
        w = self._weights(y)
        return self.base.block(_shifted(F) / w[:, None], R, y, np.broadcast_to(np.asarray(curvature), w.shape) / w)

    def oracle_reference(self, F: Array, y: Labels) -> Answer:
        """Answer like `oracle`, in plain NumPy."""
        w = self._weights(y)
        answer = self.base.oracle_reference(_shifted(F) / w[:, None], y)
        return Answer(w * answer.value, answer.R, w * answer.offset)

    def offset_reference(self, R: Array, y: Labels) -> Array:
        """Answer like `offset`, in plain NumPy."""
        return self._weights(y) * self.base.offset_reference(R, y)

    def adversary(self, F: Array) -> Array:
        """Return the adversary's q at the common weight."""
        return self.base.adversary(_shifted(F) / self.common)

    def predictor(self, F: Array) -> Array:
        """Return the predictor's p at the common weight."""
        return self.base.predictor(_shifted(F) / self.common)

    def expected_cost(self, F: Array, y: Labels, example: Array | None = None) -> Array:
        """Return w p(f / w)'L at the labels, shape (n,), by the weights of the labels or of the examples."""
        if not self.example_weights and len(self.weight) == 1:
            return super().expected_cost(F, y)
        w = self.matrix_weights(y, example)
        return w * self.base.expected_cost(_shifted(F) / w[:, None], y)

    def matrix_weights(self, y: Labels, example: Array | None) -> Array:
        """Return the weights of the labels, or of the examples."""
        return example if self.example_weights and example is not None else self._weights(y)

    def predict(self, F: Array, rule: str = "default") -> Labels:
        """Return the base's predictions at the common weight."""
        return self.base.predict(_shifted(F) / self.common, rule)


def _shifted(F: Array) -> Array:
    """Return F with row maxima 0: dividing large scores by a weight would cost the digits that decide."""
    return F - F.max(axis=1, keepdims=True)
