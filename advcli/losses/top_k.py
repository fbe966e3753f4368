"""K guesses: the adversarial surrogate of a loss that is 0 where one of K predicted classes is the label, else 1.

The game's predictions are the sets of K classes, G(q) = 1 - (sum of the K largest q), and no matrix of the C(k, K) sets is needed:

    S(f, y) = max over m of [mean of the m largest f + max(0, 1 - K/m)]  -  f_y  =  1 + tau(f) - f_y

with tau = max(max f - 1, t) and sum_j (f_j - t)_+ = K; K = 1 is `advcli.losses.zero_one`. Games: Fathony et al. (2018), eq. 10; the loss:
the top-K error of Lapin, Hein & Schiele (2015) and Thilagar et al. (2022).
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ..core.checks import at_least, refuse_parameter
from ..core.errors import ConfigError
from ..core.linalg import plus_own
from ..core.typing import Array, Labels
from .base import Answer, SimplexLoss, register


@register("top_k")
class TopKLoss(SimplexLoss):
    """Adversarial surrogate of the top-K error for k > K classes; the K largest scores are the guesses."""

    kernel = "top_k"

    def __init__(self, n_classes: int, K: int = 2) -> None:
        super().__init__(n_classes)
        refuse_parameter("K of loss=top_k", K, at_least(1))
        if max(n_classes, 2) <= K:
            raise ConfigError(f"K={K} of loss=top_k needs more than {K} classes, there are {n_classes}: give a smaller K")
        self.K = int(K)
        if K == 1:
            self.kernel, self.thresholded = "zero_one", True  # type: ignore[misc]
        else:
            self.metric = f"top_{K}_accuracy"  # type: ignore[misc]

    @property
    def parameters(self) -> Array:
        """K, shape (1,); nothing where the compiled family is that of zero_one."""
        return np.array([self.K] if self.K > 1 else [], dtype=np.float64)

    @classmethod
    def examples(cls, n_classes: int) -> list[dict[str, Any]]:
        """Return 2 guesses, one, and all classes but one, as far as there are as many."""
        return [{"K": K} for K in dict.fromkeys((2, 1, n_classes - 1)) if 1 <= K < max(n_classes, 2)]

    def oracle_reference(self, F: Array, y: Labels) -> Answer:
        """Answer like `oracle`: uniform on the best number of largest scores."""
        order = np.argsort(-F, axis=1, kind="stable")
        top = F.max(axis=1, keepdims=True)
        m = np.arange(1.0, F.shape[1] + 1)
        with np.errstate(over="ignore"):  # a sum of scores of -1e308 may leave the range: -inf is as good a loser
            worth = np.cumsum(np.take_along_axis(F - top, order, axis=1), axis=1) / m + np.maximum(0.0, 1.0 - self.K / m)
        size = worth.argmax(axis=1) + 1
        R, rows = np.zeros(F.shape), np.arange(len(y))
        np.put_along_axis(R, order, np.where(m <= size[:, None], 1.0 / size[:, None], 0.0), axis=1)
        R[rows, y] -= 1.0
        return Answer(worth.max(axis=1) + (top[:, 0] - F[rows, y]), R, np.maximum(0.0, 1.0 - self.K / size))

    def offset_reference(self, R: Array, y: Labels) -> Array:
        """Return 1 - (sum of the K largest q)."""
        return np.asarray(1.0 - np.sort(plus_own(R, y), axis=1)[:, -self.K :].sum(axis=1))

    def pieces(self, y: int) -> list[tuple[Array, float]]:
        """Return the uniform distributions on every set of classes, less e_y, with c = max(0, 1 - K/m) for m classes."""
        unit, every = np.eye(self.n_classes), range(1, self.n_classes + 1)
        sets = (list(labels) for m in every for labels in combinations(range(self.n_classes), m))
        return [(unit[labels].mean(axis=0) - unit[y], max(0.0, 1.0 - self.K / len(labels))) for labels in sets]
