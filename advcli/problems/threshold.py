"""Threshold models as one convex problem: a score g, thresholds eta, and hinges between them.

    minimise  1/2 |w|^2 + 1/2 eta'M eta + C sum_i s_i sum_j W[y_i, j] [1 - s_ij (g_i - eta_j)]_+,    g_i = w.x_i            (1)

over w and eta, j = 1..m = k - 1, s_ij = +1 where y_i > j, else -1; rows may have offsets o, and hinges then see g_i + o_i. The learners
of `ordinal` differ in which terms occur (W), in the penalty M of the thresholds and in whether these are held in order. Dual variables
alpha_ij in [0, U_ij], U_ij = C s_i W[y_i, j], span

    w = sum_i beta_i x_i,   beta_i = sum_j s_ij alpha_ij,   total_j = sum_i s_ij alpha_ij

and the dual is sum alpha - beta.o - 1/2 |w|^2 - 1/2 total'M^+ total, subject to

    total = 0                                       M = 0, thresholds free
    total_1 + ... + total_j <= 0, all of them 0     M = 0, thresholds in order: these sums are minus the order's multipliers
    sum of total = 0                                M = I - 11'/m: theta penalised, one free bias b, eta = theta - b with b at its best
    none                                            M = I - 11'/(m + 1): theta and b penalised

With a smooth ``margin`` a hinge [1 - z]_+ is phi(z) = max over r in [0, 1] of H(1 - r, r) - r z instead, the surrogate of an entropy H at
two classes whose scores differ by z (`losses.entropy`); in the dual, alpha_ij is U_ij H(1 - r_ij, r_ij) then, r_ij = alpha_ij / U_ij.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..core.compiled import kernels
from ..core.typing import Array, Labels

_EVEN = 1e-11  # share of all slopes below which a slope is 0: sums of n weights are not more exact
COUPLINGS = ("none", "each", "ordered", "sum")
"""The constraints of the dual point: none, a total of 0 for each threshold, multipliers of the order, a sum of all totals of 0."""


@dataclass(frozen=True, eq=False)
class ThresholdProblem:
    """Labels, weights and penalty of (1); rows come with the solver."""

    y: Labels  # codes 0..m, (n,)
    W: Array  # weight of each threshold's hinge in the loss of each class (m + 1, m); 0 where it does not occur
    weight: Array  # sample weights s (n,)
    C: float  # weight of the summed loss
    coupling: str  # one of `COUPLINGS`
    offset: Array | None = None  # seen by the hinges beside the scores, (n,)
    margin: Any = None  # `EntropyLoss` of two classes, whose surrogate replaces the hinge

    @property
    def m(self) -> int:
        """Number of thresholds."""
        return self.W.shape[1]

    @cached_property
    def U(self) -> Array:
        """Upper ends of the dual variables, shape (m, n)."""
        return np.ascontiguousarray((self.C * self.weight) * self.W.T[:, self.y])

    @cached_property
    def signs(self) -> Array:
        """s_ij, shape (m, n)."""
        return np.where(self.y > np.arange(self.m)[:, None], 1.0, -1.0)

    @property
    def mass(self) -> float:
        """Sum of the sample weights, the n of the objective."""
        return float(self.weight.sum())

    @cached_property
    def M(self) -> Array:
        """Penalty of the thresholds, shape (m, m)."""
        m = self.m
        if self.coupling in ("each", "ordered"):
            return np.zeros((m, m))
        return np.eye(m) - 1.0 / (m if self.coupling == "sum" else m + 1)

    def seen(self, g: Array) -> Array:
        """Return scores g (n,) as the hinges see them."""
        return g if self.offset is None else g + self.offset

    # ---- values, in the scaling of (1) ----------------------------------------------------------------------------
    def primal(self, square: float, g: Array, eta: Array) -> float:
        """Return the objective at |w|^2 = ``square``, scores g (n,) and thresholds eta (m,)."""
        penalty = 0.5 * square + 0.5 * float(eta @ self.M @ eta)
        if self.margin is None:
            return penalty + kernels.newton_threshold.hinges(self.y, self.U, self.seen(g), eta)
        pairs = _pairs(self.margins(g, eta))
        return penalty + float(self.U[self.occurs] @ self.margin.value(pairs, np.zeros(len(pairs), dtype=np.intp)))

    def dual(self, alpha: Array, square: float) -> float:
        """Return the dual value of a feasible alpha (m, n) with |w(alpha)|^2 = ``square``."""
        total = self.totals(alpha)
        if self.coupling == "none":
            penalty = float(total @ total) + float(total.sum()) ** 2
        else:
            penalty = float(total @ total) if self.coupling == "sum" else 0.0
        moved = 0.0 if self.offset is None else float(self.spanned(alpha) @ self.offset)
        return self._gained(alpha) - moved - 0.5 * square - 0.5 * penalty

    def _gained(self, alpha: Array) -> float:
        """Return the sum of alpha, or of the entropies in its place."""
        if self.margin is None:
            return float(alpha.sum())
        U = self.U[self.occurs]
        r = alpha[self.occurs] / U
        return float(U @ self.margin.offset(np.column_stack([-r, r]), np.zeros(len(r), dtype=np.intp)))

    def spanned(self, alpha: Array) -> Array:
        """Return beta (n,)."""
        return np.asarray(np.einsum("ji,ji->i", self.signs, alpha))

    def totals(self, alpha: Array) -> Array:
        """Return the totals (m,)."""
        return np.asarray(np.einsum("ji,ji->j", self.signs, alpha))

    # ---- smooth margins -------------------------------------------------------------------------------------------
    @cached_property
    def occurs(self) -> Any:
        """Where U > 0, shape (m, n): the terms of the objective."""
        return self.U > 0.0

    def margins(self, g: Array, eta: Array) -> Array:
        """Return z of every term, at scores g (n,) and thresholds eta (m,)."""
        return np.asarray((self.signs * (self.seen(g) - eta[:, None]))[self.occurs])

    def shares(self, z: Array) -> Array:
        """Return r(z) = -phi'(z) of every term."""
        return np.asarray(self.margin.probabilities(_pairs(z))[:, 1])

    def spread(self, r: Array) -> Array:
        """Return U r (m, n) of shares r of the terms."""
        alpha = np.zeros(self.U.shape)
        alpha[self.occurs] = self.U[self.occurs] * r
        return alpha

    # ---- dual points ----------------------------------------------------------------------------------------------
    def feasible(self, alpha: Array) -> Array:
        """Return a feasible dual point near alpha (m, n): held in [0, U], the larger side of each constraint scaled down."""
        alpha = np.clip(np.nan_to_num(alpha, nan=0.0), 0.0, self.U)
        up = self.signs > 0
        if self.coupling == "sum":
            return _scaled(alpha, up, np.zeros(1), each=False)
        if self.coupling == "each":
            return _scaled(alpha, up, np.zeros(self.m))
        if self.coupling == "ordered":
            high, low = (alpha * up).sum(axis=1), (alpha * ~up).sum(axis=1)
            total = self.totals(alpha)
            mu = np.maximum(-np.cumsum(total), 0.0)
            mu[-1] = 0.0
            goal = np.diff(-mu, prepend=0.0)
            # multipliers are scaled down together where a side is too small for them, not where it is so by rounding
            rounding = np.abs(high - low - total).sum() + 2.0 * self.m * np.finfo(np.float64).eps * alpha.sum()
            share = np.divide(np.where(goal > 0.0, high, low) + rounding, np.abs(goal), out=np.ones(self.m), where=goal != 0.0)
            goal = np.clip(min(1.0, float(share.min())) * goal, -low, high)
            return _scaled(alpha, up, goal)
        return alpha

    def outside(self, alpha: Array) -> float:
        """Return how far alpha (m, n) lies outside its set: beyond [0, U] in shares of C, and what the constraints miss per row."""
        total = self.totals(alpha)
        missed = {
            "none": 0.0,
            "each": np.abs(total).max(),
            "sum": abs(total.sum()),
            "ordered": max(float(np.cumsum(total).max(initial=0.0)), abs(float(total.sum()))),
        }[self.coupling]
        most = max(float(self.U.max(initial=0.0)), 1e-300)
        beyond = max(float((-alpha).max(initial=0.0)), float((alpha - self.U).max(initial=0.0)))
        # nan where alpha holds a nan
        return float(np.max([beyond / most, missed / (most * len(self.y)), alpha.sum() * 0.0]))

    # ---- thresholds -----------------------------------------------------------------------------------------------
    def thresholds(self, g: Array, alpha: Array) -> Array:
        """Return the best thresholds for scores g (n,), midpoints of the optimal intervals, or their finite ends.

        Where thresholds are penalised they follow from the totals of the dual point alpha, and the free bias from the scores.
        """
        kinks, heights = self.seen(g) - self.signs, self.weight * self.W.T[:, self.y]
        if self.coupling == "none":
            total = self.totals(alpha)
            return -(total + total.sum())
        if self.coupling == "sum":
            theta = -self.totals(alpha)
            theta -= theta.mean()
            shift = optimal_interval((kinks - theta[:, None]).ravel(), heights.ravel(), (self.signs < 0).ravel())
            return theta + _middle(*shift)
        falls = self.signs < 0
        blocks: list[tuple[int, int, float]] = []  # thresholds from, to, and their level
        for j in range(self.m):
            first, level = j, _middle(*optimal_interval(kinks[j], heights[j], falls[j]))
            while self.coupling == "ordered" and blocks and blocks[-1][2] > level:
                first = blocks.pop()[0]
                part = slice(first, j + 1)
                level = _middle(*optimal_interval(kinks[part].ravel(), heights[part].ravel(), falls[part].ravel()))
            blocks.append((first, j + 1, level))
        return np.concatenate([np.full(stop - first, level) for first, stop, level in blocks])


def optimal_interval(kinks: Array, heights: Array, falls: Any) -> tuple[float, float]:
    """Return the ends of the set of minimisers of a sum of hinges in one variable; infinite where it has no end.

    The slope is minus the heights of the hinges that ``fall``, and rises by the height of each at its kink.
    """
    weighed = heights > 0.0
    kinks, heights, falls = kinks[weighed], heights[weighed], falls[weighed]
    if not len(kinks):
        return -np.inf, np.inf
    order = np.argsort(kinks, kind="stable")
    beyond = np.cumsum(heights[order]) - heights[falls].sum()  # slope right of each kink
    even = _EVEN * heights.sum()
    first, last = int(np.searchsorted(beyond, -even)), int(np.searchsorted(beyond, even, side="right"))
    rising = not falls.any()
    low = -np.inf if rising else kinks[order[min(first, len(order) - 1)]]
    high = kinks[order[0]] if rising else (kinks[order[last]] if last < len(order) else np.inf)
    return float(low), float(high)


def _pairs(z: Array) -> Array:
    """Return scores (z, 0) of two classes, of which the first is right."""
    return np.column_stack([z, np.zeros(len(z))])


def _middle(low: float, high: float) -> float:
    if np.isfinite(low) and np.isfinite(high):
        return 0.5 * (low + high)
    return low if np.isfinite(low) else high if np.isfinite(high) else 0.0


def _scaled(alpha: Array, up: Any, goal: Array, each: bool = True) -> Array:
    """Return alpha with the larger side scaled down so that the totals, or their sum, equal ``goal``."""
    axis = 1 if each else None
    high, low = np.atleast_1d((alpha * up).sum(axis=axis)), np.atleast_1d((alpha * ~up).sum(axis=axis))
    # high - low = goal by shrinking one of the two
    shrink_high = high - low > goal
    wanted_high, wanted_low = np.where(shrink_high, goal + low, high), np.where(shrink_high, low, high - goal)
    by_high = np.divide(wanted_high, high, out=np.ones_like(high), where=high > 0)
    by_low = np.divide(wanted_low, low, out=np.ones_like(low), where=low > 0)
    return alpha * np.where(up, by_high[:, None], by_low[:, None])
