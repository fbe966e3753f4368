"""Adversarial losses whose matrix has columns that are convex in the prediction: absolute, squared, power, Huber, pinball.

Two adjacent predictions suffice: mixing them gives a position r in [0, l - 1]. Its cost under truth j is Ltilde(r, j), the linear
interpolation of column j. No other mixture of the same mean costs less under any truth. So the game is one-dimensional,

    V(f) = min over r in [0, l - 1] of max_j f_j + Ltilde(r, j),

convex in r: binary search finds the integer minimum, then the maximum of k lines is minimised on one unit interval. The adversary answers
with at most two labels. Theorems 6 and 7 of Fathony et al. (2018) are the closed forms of the absolute and the squared case. Costs: Huber
1964, "Robust estimation of a location parameter", Ann. Math. Statist. 35, 73-101; Koenker & Bassett 1978, "Regression quantiles",
Econometrica 46, 33-50.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ConfigError
from ..core.typing import Array, Labels
from . import matrices
from .base import AdversarialLoss, named_matrix, register


# ---- the one-dimensional game ---------------------------------------------------------------------------------------
def solve_convex_columns(matrix: Array, F: Array) -> tuple[Array, Array]:
    """Solve the game of a matrix (l, k): the adversary's Q (n, k), two labels a row, and the predictor's positions in [0, l - 1], (n,)."""
    n, last = len(F), len(matrix) - 1
    if n == 0:
        return np.zeros_like(F, dtype=float), np.zeros(0)
    scores, rows = F - F.max(axis=1, keepdims=True), np.arange(n)
    best = _first_integer_minimum(matrix, scores)

    # slopes to either side of the integer, of the labels that attain the maximum there
    heights = scores + matrix[best]
    active = heights == heights.max(axis=1, keepdims=True)
    rise_after = matrix[np.minimum(best + 1, last)] - matrix[best]
    rise_before = matrix[best] - matrix[np.maximum(best - 1, 0)]
    has_after = best < last
    up = np.argmax(np.where(active, rise_after, -np.inf), axis=1)
    down = np.argmin(np.where(active, rise_before, np.inf), axis=1)
    goes_right = has_after & (rise_after[rows, up] < 0)
    goes_left = (best > 0) & (rise_before[rows, down] > 0) & ~goes_right

    # minimum at the integer itself: one label whose column is least there, or two that balance each other to its right
    fall, climb = rise_after[rows, down], rise_after[rows, up]
    balanced = has_after & (fall < 0)
    share = np.divide(-fall, climb - fall, out=np.zeros(n), where=balanced & (climb > fall))
    position = best.astype(float)

    # minimum strictly inside a unit interval
    inside = goes_right | goes_left
    if inside.any():
        base = np.where(goes_left, best - 1, best)[inside]
        down[inside], up[inside], share[inside], offset = _lowest_envelope(scores[inside] + matrix[base], matrix[base + 1] - matrix[base])
        position[inside] = base + offset
    Q = np.zeros((n, F.shape[1]))
    np.add.at(Q, (rows, down), 1.0 - share)
    np.add.at(Q, (rows, up), share)
    return Q, position


def _first_integer_minimum(matrix: Array, scores: Array) -> Labels:
    """Return for each row the first minimum of the convex sequence a -> max_j f_j + L[a, j]."""
    last = len(matrix) - 1
    low, high = np.zeros(len(scores), dtype=np.intp), np.full(len(scores), last, dtype=np.intp)
    while (low < high).any():
        middle = (low + high) // 2
        here = (scores + matrix[middle]).max(axis=1)
        after = (scores + matrix[np.minimum(middle + 1, last)]).max(axis=1)
        falls = (after < here) & (low < high)
        low, high = np.where(falls, middle + 1, low), np.where(falls, high, middle)
    return low


def _lowest_envelope(heights: Array, slopes: Array) -> tuple[Labels, Labels, Array, Array]:
    """Minimise max_j heights_j + t slopes_j over t in [0, 1], row by row, when the maximum falls at 0 and rises at 1.

    Returns (falling line, rising line, weight of the rising line that makes the mixture flat, t). The crossing of a
    falling and a rising line that are each the highest at one end moves to the highest line there until no line is higher.
    """
    rows = np.arange(len(heights))
    at_end = heights + slopes
    # by their slopes: where lines meet at an end, rounding decides which of them is the highest there
    falling = _highest(heights, slopes < 0, slopes)
    rising = _highest(at_end, slopes > 0, -slopes)
    rounding = 4.0 * np.finfo(float).eps * (np.abs(slopes).max(axis=1) + np.abs(heights.max(axis=1)))
    offset = np.zeros(len(rows))
    # rounding can leave no line that rises: then the highest at 1 is the answer by itself
    flat_at_end = slopes[rows, rising] <= 0
    offset[flat_at_end] = 1.0
    open_ = ~flat_at_end
    for _ in range(2 * heights.shape[1] + 2):
        gap = heights[rows, falling] - heights[rows, rising]
        tilt = slopes[rows, rising] - slopes[rows, falling]
        offset = np.where(open_, np.clip(np.divide(gap, tilt, out=np.zeros_like(gap), where=tilt > 0), 0.0, 1.0), offset)
        lines = heights + offset[:, None] * slopes
        highest = np.argmax(lines, axis=1)
        open_ &= lines[rows, highest] > np.maximum(lines[rows, falling], lines[rows, rising]) + rounding
        if not open_.any():
            break
        falls = slopes[rows, highest] <= 0
        falling = np.where(open_ & falls, highest, falling)
        rising = np.where(open_ & ~falls, highest, rising)
    tilt = slopes[rows, rising] - slopes[rows, falling]
    share = np.divide(-slopes[rows, falling], tilt, out=np.zeros_like(tilt), where=tilt > 0)
    share[flat_at_end] = 1.0
    return falling, rising, np.clip(share, 0.0, 1.0), offset


def _highest(heights: Array, wanted: NDArray[np.bool_], preference: Array) -> Labels:
    """Return in each row the highest of the wanted lines, of all lines where none is wanted; ties go to the larger preference."""
    among = np.where(wanted | ~wanted.any(axis=1, keepdims=True), heights, -np.inf)
    return np.argmax(np.where(among == among.max(axis=1, keepdims=True), preference, -np.inf), axis=1)


def adjacent(position: Array, n_predictions: int) -> Array:
    """Return the distribution (n, l) on the two predictions next to each position r in [0, l - 1], with mean r."""
    below = np.minimum(position.astype(np.intp), max(n_predictions - 2, 0))
    weight = position - below
    P = np.zeros((len(position), n_predictions))
    rows = np.arange(len(position))
    P[rows, below] = 1.0 - weight
    if n_predictions > 1:
        P[rows, below + 1] = weight
    return P


# ---- the losses -----------------------------------------------------------------------------------------------------
class _ConvexGame(AdversarialLoss):
    """What the losses of this file share: the one-dimensional game over ``self.matrix``."""

    kernel = "convex"
    needs_order = True
    metric = "cost"
    tried: ClassVar[tuple[dict[str, Any], ...]] = ({},)  # options of `examples`

    @classmethod
    def examples(cls, n_classes: int) -> list[dict[str, Any]]:
        """Return option sets that tests of the loss should try."""
        return list(cls.tried)

    @property
    def parameters(self) -> Array:
        """The number of predictions l, then the loss matrix row by row, shape (1 + l k,); none of a loss with its own compiled kernel."""
        return np.r_[float(len(self.matrix)), self.matrix.ravel()] if self.kernel == _ConvexGame.kernel else np.empty(0)

    def adversary(self, F: Array) -> Array:
        """Return q, shape (n, k), at most two labels each."""
        return solve_convex_columns(self.matrix, np.asarray(F, dtype=float))[0]

    def predictor(self, F: Array) -> Array:
        """Return p, shape (n, l), two adjacent predictions each."""
        return adjacent(solve_convex_columns(self.matrix, np.asarray(F, dtype=float))[1], self.n_predictions)


@register("convex")
class ConvexColumnsLoss(_ConvexGame):
    """The adversarial loss of any l x k matrix whose columns are convex in the prediction; options as in `GeneralLoss`.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.losses.convex_columns import ConvexColumnsLoss
    >>> loss = ConvexColumnsLoss(3, matrix=[[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> loss.value(np.zeros((1, 3)), np.array([0])).round(3)
    array([1.])
    """

    def __init__(
        self,
        n_classes: int,
        matrix: Any = None,
        file: str | Path | None = None,
        classes: Sequence[Any] | None = None,
        predictions: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(n_classes)
        source = matrices.matrix_from(matrix, file, n_classes, "convex", classes=classes, predictions=predictions)
        self.matrix, self.row_names, self.column_names = source
        bend = matrices.first_bend(self.matrix)
        if bend is not None:
            row, column = bend
            raise ConfigError(
                f"loss=convex needs columns that are convex in the prediction, but row {row} of column {column} lies above "
                "the line between its neighbours: choose loss=general"
            )
        self.note = "; ".join(matrices.describe(self.matrix, self.predicts_classes).notes)

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> frozenset[str]:
        """Return the order, and the classes' labels where the names of a file or of predictions must find theirs."""
        return super().needs(options) | frozenset({"classes"} if named_matrix(options) else ())

    @classmethod
    def examples(cls, n_classes: int) -> list[dict[str, Any]]:
        """Return a symmetric, an asymmetric and a non-square matrix."""
        labels = np.arange(float(n_classes))
        finer = np.linspace(0.0, max(n_classes - 1.0, 0.0), 2 * n_classes + 1)
        too_low = np.maximum(labels - labels[:, None], 0.0)
        too_high = np.maximum(labels[:, None] - labels, 0.0)
        return [
            {"matrix": (3.0 * too_low + too_high**2).tolist()},
            {"matrix": ((finer[:, None] - labels) ** 2).tolist()},
            {"matrix": (too_low - 0.25 * too_high)[: max(1, n_classes // 2)].tolist()},
        ]


@register("absolute", "ordinal")
class AbsoluteLoss(_ConvexGame):
    """The adversarial loss of |prediction - truth|: V(f) = (a + b) / 2, a = max_i f_i - i and b = max_j f_j + j (Theorem 6)."""

    kernel = "absolute"
    metric = "mae"

    def __init__(self, n_classes: int) -> None:
        super().__init__(n_classes)
        self.matrix = matrices.absolute(n_classes)

    def _sides(self, F: Array) -> tuple[Array, Array]:
        # the common level is removed first: beside scores of 1e300 the label codes would be rounded away
        scores = F - F.max(axis=1, keepdims=True)
        codes = np.arange(float(self.n_classes))
        return scores - codes, scores + codes

    def adversary(self, F: Array) -> Array:
        """Return q, shape (n, k): 1/2 on argmax f_i - i and 1/2 on argmax f_j + j."""
        lower, upper = self._sides(np.asarray(F, dtype=float))
        Q, rows = np.zeros_like(lower), np.arange(len(lower))
        Q[rows, np.argmax(lower, axis=1)] += 0.5
        Q[rows, np.argmax(upper, axis=1)] += 0.5
        return Q

    def predictor(self, F: Array) -> Array:
        """Return p, shape (n, k): two adjacent labels with mean (b - a) / 2."""
        lower, upper = self._sides(np.asarray(F, dtype=float))
        mean = 0.5 * (upper.max(axis=1) - lower.max(axis=1))
        return adjacent(np.clip(mean, 0.0, self.n_classes - 1.0), self.n_classes)


@register("squared")
class SquaredLoss(_ConvexGame):
    """The adversarial loss of (prediction - truth)^2 (Theorem 7): V is the upper envelope of k lines against a convex polygon."""

    kernel = "squared"
    metric = "mse"

    def __init__(self, n_classes: int) -> None:
        super().__init__(n_classes)
        self.matrix = matrices.squared(n_classes)


@register("power")
class PowerLoss(_ConvexGame):
    """The adversarial loss of |prediction - truth|^p, p >= 1 (1 is absolute, 2 is squared)."""

    tried = ({}, {"p": 3})

    def __init__(self, n_classes: int, p: float = 1.5) -> None:
        super().__init__(n_classes)
        self.matrix = matrices.power(n_classes, p)
        if p < 1:
            raise ConfigError(f"loss=power needs p >= 1 (a convex cost), got {p:g}: give the matrix to loss=general")


@register("huber")
class HuberLoss(_ConvexGame):
    """The adversarial loss of Huber's cost: d^2/2 up to the distance delta > 0, delta (d - delta/2) beyond."""

    tried = ({}, {"delta": 2.5})

    def __init__(self, n_classes: int, delta: float = 1.0) -> None:
        super().__init__(n_classes)
        self.matrix = matrices.huber(n_classes, delta)


@register("pinball")
class PinballLoss(_ConvexGame):
    """The adversarial loss of the pinball cost: quantile per unit predicted too low, 1 - quantile per unit too high."""

    tried = ({}, {"quantile": 0.8})

    def __init__(self, n_classes: int, quantile: float = 0.5) -> None:
        super().__init__(n_classes)
        self.matrix = matrices.pinball(n_classes, quantile)
