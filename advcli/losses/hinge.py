"""The multiclass support vector machines that the adversarial surrogates are compared with.

Definitions of Fathony et al. 2018, section 2.3.1, as support functions S(f, y) = max over (r, c) of r.f + c:

    WW   sum over j != y of [1 + f_j - f_y]_+          r = sum a_j (e_j - e_y),  c = sum a_j,  a in [0,1]^(k-1)   Weston & Watkins 1999
    CS   max over j != y of [1 + f_j - f_y]_+          r = 0 or e_j - e_y,       c = 0 or 1                       Crammer & Singer 2002
    LLW  sum over j != y of [1 + f_j]_+, sum_j f_j = 0 r = sum a_j (e_j - 1/k),  c = sum a_j,  a in [0,1]^(k-1)   Lee, Lin & Wahba 2004

LLW's sum-zero constraint is the centring of the scores: with a ridge penalty the parameters of least norm sum to zero over classes.
Under an L1 penalty such parameters need not sum to zero, and are held to zero sums (`Problem.centred`).
Only LLW is Fisher consistent; none of them has a predictor's distribution.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..core.typing import Array, Labels
from .base import Answer, Loss, SimplexLoss, by_class, register


def _columns(F: Array, y: Labels) -> NDArray[np.bool_]:
    """Return the mask of shape (n, k) that is True off the label."""
    off = np.ones(F.shape, dtype=bool)
    off[np.arange(len(y)), y] = False
    return off


def _outside(A: Array, R: Array) -> Array:
    """Return how far a lies outside [0, 1]^k, or r from summing to zero, shape (n,)."""
    A, total = by_class(A), by_class(R).sum(axis=0)
    return np.maximum(np.maximum(-A.min(axis=0), A.max(axis=0) - 1.0), np.abs(total))


def _box(A: Array, rates: Array) -> tuple[Array, Array]:
    """Return the slacks of 0 <= a <= 1, and their rates."""
    return np.hstack([A, 1.0 - A]), np.hstack([rates, -rates])


def _sums(R: Array) -> list[tuple[Array, float]]:
    """Return the pieces of a sum of hinges whose own r are the rows of R: every subset, with c its size."""
    subsets = (np.array(subset) for subset in product((0.0, 1.0), repeat=len(R)))
    return [(a @ R, float(a.sum())) for a in subsets]


@register("ww")
class WestonWatkinsLoss(Loss):
    """Sum of relative hinges over the other classes."""

    kernel = "ww"

    def infeasibility(self, R: Array, y: Labels) -> Array:
        """Return how far a lies outside [0, 1]^k or r from summing to zero; a_j = r_j off the label, shape (n,)."""
        return _outside(np.where(_columns(R, y), R, 0.0), R)

    def inside(self, R: Array, y: Labels) -> Array:
        """Return the r of a held in [0, 1], shape (n, k)."""
        A = np.clip(np.where(_columns(R, y), R, 0.0), 0.0, 1.0)
        A[np.arange(len(y)), y] = -A.sum(axis=1)
        return A

    def slacks(self, R: Array, near: Array, y: Labels, B: Array, owner: Labels) -> tuple[Array, Array]:
        """Return a and 1 - a, shape (n, 2k), and their rates."""
        return _box(np.where(_columns(R, y), R, 0.0), np.where(_columns(B, y[owner]), B, 0.0))

    def oracle_reference(self, F: Array, y: Labels) -> Answer:
        """Answer like `oracle`: a_j = 1 where the margin 1 + f_j - f_y is positive."""
        rows = np.arange(len(y))
        margins = 1.0 + (F - F[rows, y][:, None])
        A = ((margins > 0) & _columns(F, y)).astype(float)
        R = A.copy()
        R[rows, y] = -A.sum(axis=1)
        return Answer((A * margins).sum(axis=1), R, A.sum(axis=1))

    def offset_reference(self, R: Array, y: Labels) -> Array:
        """Return sum_j a_j = -r_y."""
        return -R[np.arange(len(y)), y]

    def pieces(self, y: int) -> list[tuple[Array, float]]:
        """Return the sums of e_j - e_y over every subset of the other classes."""
        return _sums(np.delete(np.eye(self.n_classes), y, axis=0) - np.eye(self.n_classes)[y])


@register("cs")
class CrammerSingerLoss(SimplexLoss):
    """The largest relative hinge over the other classes."""

    kernel = "cs"
    thresholded = True

    def oracle_reference(self, F: Array, y: Labels) -> Answer:
        """Answer like `oracle`: the most violating class, or y itself when none violates."""
        rows = np.arange(len(y))
        margins = 1.0 + (F - F[rows, y][:, None])
        margins[rows, y] = 0.0
        worst = np.argmax(margins, axis=1)
        worst = np.where(margins[rows, worst] > 0, worst, y)
        R = np.zeros(F.shape)
        R[rows, worst] += 1.0
        R[rows, y] -= 1.0
        return Answer(margins[rows, worst], R, (worst != y).astype(float))

    def offset_reference(self, R: Array, y: Labels) -> Array:
        """Return 1 - q_y = -r_y."""
        return -R[np.arange(len(y)), y]

    def pieces(self, y: int) -> list[tuple[Array, float]]:
        """Return (0, 0) and (e_j - e_y, 1) for every other class."""
        unit = np.eye(self.n_classes)
        return [(r - unit[y], float(j != y)) for j, r in enumerate(unit)]


@register("llw")
class LeeLinWahbaLoss(Loss):
    """Sum of absolute hinges over the other classes, for scores that sum to zero."""

    kernel = "llw"
    separate = True

    def infeasibility(self, R: Array, y: Labels) -> Array:
        """Return how far a lies outside [0, 1]^k or r from summing to zero; a_j = r_j - r_y, shape (n,)."""
        return _outside(R - R[np.arange(len(y)), y][:, None], R)

    def inside(self, R: Array, y: Labels) -> Array:
        """Return the r of a held in [0, 1], shape (n, k)."""
        A = np.clip(R - R[np.arange(len(y)), y][:, None], 0.0, 1.0)
        return A - A.mean(axis=1, keepdims=True)

    def slacks(self, R: Array, near: Array, y: Labels, B: Array, owner: Labels) -> tuple[Array, Array]:
        """Return a and 1 - a, shape (n, 2k), and their rates."""
        return _box(R - R[np.arange(len(y)), y][:, None], B - B[np.arange(len(B)), y[owner]][:, None])

    def oracle_reference(self, F: Array, y: Labels) -> Answer:
        """Answer like `oracle`: a_j = 1 where the margin 1 + f_j - mean f is positive."""
        relative = F - F[np.arange(len(y)), y][:, None]  # differences keep their digits at any common level of the scores
        margins = 1.0 + (relative - relative.mean(axis=1, keepdims=True))
        A = ((margins > 0) & _columns(F, y)).astype(float)
        return Answer((A * margins).sum(axis=1), A - A.mean(axis=1, keepdims=True), A.sum(axis=1))

    def offset_reference(self, R: Array, y: Labels) -> Array:
        """Return sum_j a_j = -k r_y (a_y = 0, so r_y is minus the mean of a)."""
        return -self.n_classes * R[np.arange(len(y)), y]

    def pieces(self, y: int) -> list[tuple[Array, float]]:
        """Return the sums of e_j - 1/k over every subset of the other classes."""
        return _sums(np.delete(np.eye(self.n_classes), y, axis=0) - 1.0 / self.n_classes)
