"""Classification with the option to abstain at a cost alpha, exact for every alpha in [0, 1].

The adversary maximises f.q + min(1 - max q, alpha) over distributions q. When the zero-one adversary already has max q >= 1 - alpha,
abstaining does not help the predictor and the game is the zero-one game; else the adversary fills the best labels with 1 - alpha each and
the predictor mixes labels with abstaining. For alpha <= 1/2 these are Theorems 12 and 13 and Corollary 14 of Fathony et al. (2018); for
larger alpha the theorems do not hold, this does (docs/notes/oracles.md, section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ConfigError
from ..core.typing import Array, Labels
from . import matrices
from .base import AdversarialLoss, register
from .general import GeneralLoss


@register("abstain")
class AbstainLoss(AdversarialLoss):
    """The adversarial loss of zero-one with abstention, whose prediction code k is to abstain.

    The default rule is Corollary 14 for alpha <= 1/2 (the best label when it leads by at least 1/2, else abstain) and argmax of the
    predictor's p above. ``alpha`` is the cost of abstaining in [0, 1], where a wrong label costs 1; or one for each class where it matters
    who is left without an answer: the game of that matrix (`advcli.losses.general`), whose metric is ``cost``.
    """

    kernel = "abstain"
    metric = "abstention_loss"

    def __init__(self, n_classes: int, alpha: float | Sequence[float] = 0.5) -> None:
        super().__init__(n_classes)
        several = isinstance(alpha, Sequence | np.ndarray) and not isinstance(alpha, str)
        costs = [matrices.check_alpha(cost) for cost in (alpha if several else [alpha])]  # type: ignore[union-attr]
        if several and len(costs) not in (0, n_classes):
            raise ConfigError(f"alpha of loss=abstain has {len(costs)} numbers for {n_classes} classes: give one, or one for each class")
        self.general: GeneralLoss | None = None
        if len(set(costs)) > 1:
            self.matrix = np.vstack([matrices.zero_one(n_classes), costs])
            self.general = GeneralLoss(n_classes, matrix=self.matrix, structure=False)
            self.kernel, self.metric, self.note = "general", "cost", self.general.note  # type: ignore[misc]
            return
        self.alpha = costs[0] if costs else matrices.check_alpha(alpha)
        self.matrix = matrices.abstain(n_classes, self.alpha)

    @classmethod
    def examples(cls, n_classes: int) -> list[dict[str, Any]]:
        """Return alphas on both sides of 1/2 and at the ends, and one for each class."""
        # a general game of many classes takes long
        by_class = [{"alpha": [0.1 + 0.3 * (label % 3) for label in range(n_classes)]}] if n_classes <= 9 else []
        return [{}, {"alpha": 0.0}, {"alpha": 0.3}, {"alpha": 0.72}, {"alpha": 1.0}, *by_class]

    @property
    def abstention_costs(self) -> Array:
        """The last row of the matrix."""
        return self.matrix[-1]

    @property
    def parameters(self) -> Array:
        """Alpha, shape (1,); where each class has its own, the parameters of the game of the matrix."""
        return np.array([self.alpha]) if self.general is None else self.general.parameters

    def adversary(self, F: Array) -> Array:
        """Return q, shape (n, k): uniform on a prefix of the best labels, or 1 - alpha each until the mass is gone."""
        if self.general is not None:
            return self.general.adversary(F)
        assert self.alpha is not None
        order, ordered, threshold = _zero_one(F)
        n, k = ordered.shape
        support = np.argmax(threshold, axis=1) + 1
        cap = 1.0 - self.alpha
        before = np.arange(float(k))
        uniform = np.where(before < support[:, None], 1.0 / support[:, None], 0.0)
        filled = np.clip(1.0 - cap * before, 0.0, cap)
        Q = np.empty((n, k))
        np.put_along_axis(Q, order, np.where((1.0 / support >= cap)[:, None], uniform, filled), axis=1)
        return Q

    def predictor(self, F: Array) -> Array:
        """Return p, shape (n, k + 1): p_j = max(f_j - tau, 0) for labels, the rest of the mass on abstaining.

        Moving mass from abstaining to labels costs 1 - alpha per unit and lowers tau by 1/m, m the number of labels above it: it pays while
        1/m > 1 - alpha. So tau stops at the score of rank ceil(1 / (1 - alpha)), or at the simplex threshold of zero-one when that is
        higher.
        """
        if self.general is not None:
            return self.general.predictor(F)
        assert self.alpha is not None
        order, ordered, thresholds = _zero_one(F)
        n, k = ordered.shape
        tau = thresholds.max(axis=1)
        if self.alpha < 1:
            paying = max(1.0, np.ceil(1.0 / (1.0 - self.alpha)) - 1.0)  # how many labels may share mass
            if paying < k:
                tau = np.maximum(tau, ordered[:, int(paying)])
        P = np.zeros((n, k + 1))
        np.put_along_axis(P, order, np.maximum(ordered - tau[:, None], 0.0), axis=1)
        mass = P.sum(axis=1, keepdims=True)
        P /= np.maximum(mass, 1.0)
        P[:, k:] = np.maximum(1.0 - mass, 0.0)
        return P


def _zero_one(F: Array) -> tuple[Labels, Array, Array]:
    """Return labels by falling score, those scores minus the best, and (S_m - 1) / m over their prefixes, all (n, k)."""
    scores = np.asarray(F, dtype=float)
    scores = scores - scores.max(axis=1, keepdims=True)
    order = np.argsort(-scores, axis=1, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=1)
    with np.errstate(over="ignore"):  # a sum of scores of -1e308 may leave the range: -inf is as good a loser
        thresholds = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1.0, scores.shape[1] + 1)
    return order, ordered, thresholds
