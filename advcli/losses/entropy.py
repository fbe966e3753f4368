"""The surrogates of Arimoto's entropies: logistic regression at one end, the adversarial zero-one surrogate at the other.

With b = alpha / (alpha - 1) and H(q) = b (1 - |q|_alpha), |.|_alpha the norm of order alpha,

    S(f, y) = max over distributions q of H(q) + f.q - f_y = max f + delta(f) - f_y,    sum_j [1 + (f_j - max f - delta) / b]_+^b = 1,  (1)

and the maximiser q_j is proportional to [1 + (f_j - max f - delta) / b]_+^(b - 1). At alpha = 1, b is infinite, H is Shannon's entropy, (1)
is the logistic loss and q the softmax of the scores. At alpha = infinity, b = 1, H(q) = 1 - max q and (1) is `zero_one`. In between the
surrogate is smooth and strictly proper: at its minimum q(f) is the distribution of the labels, so that q(f) is what a fit predicts as
probabilities. Sources: Blondel, Martins & Niculae 2020 (JMLR 21:35) for (1) as a Fenchel-Young loss, Mazuelas, Shen & Perez 2022 (IEEE
Trans. Inf. Theory 68) and Bondugula et al. 2026 (PMLR 300) for alpha in a game.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from ..core.checks import is_real, refuse, rule
from ..core.linalg import plus_own
from ..core.typing import Array, Labels
from .base import Answer, SimplexLoss, register

MOST_STEPS = 100
"""Newton steps for delta, at most: from the left on a convex function they never pass the root."""

ALPHA = rule("a number of at least 1, or infinity", lambda value: is_real(value) and value >= 1)


@register("entropy")
class EntropyLoss(SimplexLoss):
    """The surrogate of Arimoto's entropy of order ``alpha`` >= 1; `SurrogateClassifier` predicts its q(f) as probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.losses import make_loss
    >>> F, y = np.array([[1.0, 0.0, -1.0]]), np.array([0])
    >>> make_loss("entropy", 3, alpha=1).value(F, y).round(4)  # the logistic loss
    array([0.4076])
    >>> make_loss("entropy", 3, alpha=float("inf")).value(F, y).round(4)  # zero_one
    array([0.5])
    """

    kernel = "zero_one"  # of alpha = infinity, the one order with kinks

    def __init__(self, n_classes: int, alpha: Any = 1.0) -> None:
        super().__init__(n_classes)
        refuse("loss.alpha", alpha, ALPHA)
        self.order = float(alpha)
        self.exponent = np.inf if self.order == 1.0 else 1.0 if self.order == np.inf else self.order / (self.order - 1.0)  # b
        self.smooth = self.order < np.inf

    @classmethod
    def estimates(cls, options: Mapping[str, Any]) -> bool:
        """Return whether alpha is finite."""
        return options.get("alpha") != np.inf

    @classmethod
    def examples(cls, n_classes: int) -> list[dict[str, Any]]:
        """Return orders at both ends and between."""
        return [{"alpha": alpha} for alpha in (1.0, 1.3, 2.0, 8.0, float("inf"))]

    # ---- value, maximiser, entropy ------------------------------------------------------------------------------------
    def maximum(self, F: Array) -> tuple[Array, Array]:
        """Return the largest H(q) + f.q, max f + delta(f), shape (n,), and its q, shape (n, k)."""
        F = np.asfortranarray(F)  # sums over the classes of a row are fast where these lie apart
        top = F.max(axis=1)
        Z, b = F - top[:, None], self.exponent
        if b == np.inf:
            np.exp(Z, out=Z)  # memory that is fresh takes longer than the arithmetic
            total = Z.sum(axis=1)
            Z /= total[:, None]
            return top + np.log(total), Z
        delta = np.zeros(len(F))
        for _ in range(MOST_STEPS):
            base = np.maximum(1.0 + (Z - delta[:, None]) / b, 0.0)
            powers = _power(base, b - 1.0)
            slope = powers.sum(axis=1)
            norm = np.einsum("ij,ij->i", powers, base) ** (1.0 / b)
            # of the norm of the base, whose slope in delta is -1/b sum base^(b-1) / norm^(b-1)
            step = b * (norm - 1.0) * norm ** (b - 1.0) / slope
            delta += step
            if (step <= 1e-15 * (1.0 + delta)).all():
                break
        return top + delta, powers / slope[:, None]

    def _entropy(self, Q: Array) -> Array:
        """Return H(q) of distributions (n, k), shape (n,)."""
        if self.exponent == 1.0:
            return 1.0 - Q.max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(Q)
            if self.exponent == np.inf:
                return -np.where(Q > 0.0, Q * logs, 0.0).sum(axis=1)
            if self.order < 2.0:  # sum q^alpha = 1 + sum q (q^(alpha-1) - 1): near alpha = 1 the second term keeps its digits
                excess = np.where(Q > 0.0, Q * np.expm1((self.order - 1.0) * logs), 0.0).sum(axis=1)
                return -self.exponent * np.expm1(np.log1p(excess) / self.order)
        largest = Q.max(axis=1)
        return self.exponent * (1.0 - largest * ((Q / largest[:, None]) ** self.order).sum(axis=1) ** (1.0 / self.order))

    def probabilities(self, F: Array) -> Array:
        """Return q(f) of scores (n, k): at the minimum of the expected surrogate the distribution of the labels, for finite alpha."""
        return self.maximum(F)[1]

    def value(self, F: Array, y: Labels) -> Array:
        """Return S(f_i, y_i), shape (n,)."""
        return self.maximum(F)[0] - F[np.arange(len(y)), y]

    def oracle_reference(self, F: Array, y: Labels) -> Answer:
        """Return (r, c) = (q(f) - e_y, H(q(f))) and the value of every row."""
        rows = np.arange(len(y))
        level, Q = self.maximum(F)
        return Answer(level - F[rows, y], plus_own(Q, y, -1.0), self._entropy(Q))

    def offset_reference(self, R: Array, y: Labels) -> Array:
        """Return H(r + e_y)."""
        return self._entropy(np.maximum(plus_own(R, y), 0.0))

    oracle, offset = oracle_reference, offset_reference

    def pieces(self, y: int) -> list[tuple[Array, float]]:
        """Return, for an infinite alpha, the uniform distributions over sets of labels, less the label."""
        if self.smooth:
            return super().pieces(y)
        sets = np.array(list(product((0.0, 1.0), repeat=self.n_classes)))[1:]
        uniform, own = sets / sets.sum(axis=1, keepdims=True), np.eye(self.n_classes)[y]
        return [(q - own, 1.0 - float(q.max())) for q in uniform]

    def slopes(self, F: Array, maximum: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """Return q(f) and d (n, k) with the Jacobian of q(f) equal to (I - q 1') diag(d) (I - 1 q'); ``maximum`` is `maximum` at F.

        d_j is (b - 1)/b u_j^(b-2) / sum u^(b-1), u the bases in (1); it has no bound at the edge of the support for alpha > 2.
        """
        level, Q = self.maximum(F) if maximum is None else maximum
        if self.exponent == np.inf:
            return Q, Q
        b = self.exponent
        base = np.maximum(1.0 + (F - level[:, None]) / b, 0.0)
        with np.errstate(divide="ignore"):
            D = np.where(base > 0.0, _power(base, b - 2.0), 0.0)
        return Q, D * ((b - 1.0) / b) / _power(base, b - 1.0).sum(axis=1)[:, None]

    def between(self, r: Array, s: Array) -> tuple[Array, Array]:
        """Return the first two derivatives in r of H(s, r), two classes with s = 1 - r > 0, at a finite alpha."""
        if self.exponent == np.inf:
            return np.log(s / r), -1.0 / (r * s)
        norm = (r**self.order + s**self.order) ** (1.0 / self.order)
        r, s = r / norm, s / norm
        slope = self.exponent * (s ** (self.order - 1.0) - r ** (self.order - 1.0))
        return slope, -self.order * (r * s) ** (self.order - 2.0) / norm**3


def _power(base: Array, exponent: float) -> Array:
    """Return base^exponent; numbers and squares without logarithms."""
    return base if exponent == 1.0 else (base > 0.0).astype(float) if exponent == 0.0 else base**exponent
