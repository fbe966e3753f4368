"""Bounds of Arimoto's entropies H(q) = b (1 - |q|_alpha), b = alpha / (alpha - 1), Shannon's where alpha = 1, and of their surrogates.

From above: for every number t, max over q of H(q) + z.q <= t + b max(1, |(z - t)_+|_b / b), since (z - t).q <= |(z - t)_+|_b |q|_alpha and
|q|_alpha <= 1 (Hoelder); for alpha = 1 it is at most t + log(sum exp(z - t)) <= t + sum exp(z - t) - 1. NumPy states 4 ulp at most for exp
and log; powers are made of these two.
"""

from __future__ import annotations

import numpy as np

from ..core.typing import Array
from .bounds import UNIT, Ball, ball, exp, outward

HALVINGS = 70
"""Steps of bisection for t: an end that is off makes a bound larger, never false."""


def power(base: Array, exponent: float) -> Ball:
    """Return base^exponent of numbers >= 0, 0 where the base is 0, by exp(exponent log base)."""
    with np.errstate(divide="ignore"):
        raised = exponent * np.log(base)
    raised = np.where(base > 0.0, raised, -800.0)
    found = exp(Ball(raised, outward(16.0 * UNIT * np.abs(raised))))
    return Ball(np.where(base > 0.0, found.mid, 0.0), np.where(base > 0.0, found.rad, 0.0))


def largest(Z: Array, order: float) -> Array:
    """Return upper bounds, shape (n,), of max over distributions q of H(q) + z.q for rows z (n, k)."""
    top = Z.max(axis=1)
    X = Z - top[:, None]  # rounded; the rounding of a row is added below
    lost = UNIT * (np.abs(Z).max(axis=1) + np.abs(X).max(axis=1))
    if order == 1.0:
        level = np.log(np.exp(X).sum(axis=1))
        total = exp(ball(X) - level[:, None]).sum(axis=1).high
        return np.asarray((ball(top) + level + Ball(np.maximum(total - 1.0, 0.0)) + Ball(0.0, lost)).high)
    b = order / (order - 1.0)
    low, high = np.zeros(len(Z)), np.full(len(Z), b)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        inside = (np.maximum(1.0 + (X - middle[:, None]) / b, 0.0) ** b).sum(axis=1) <= 1.0
        low, high = np.where(inside, low, middle), np.where(inside, middle, high)
    base = (ball(X) - high[:, None]) / b + 1.0
    total = power(np.maximum(base.high, 0.0), b).sum(axis=1).high
    norm = power(np.maximum(total, 1.0), 1.0 / b).high
    # b as computed is off by 4 UNIT b at most: |q|_alpha and the norm move by as much
    excess = outward(b * (norm - 1.0) + 64.0 * UNIT * b * (1.0 + np.abs(X).max(axis=1)))
    return np.asarray((ball(top) + high + Ball(excess, lost)).high)


def entropy(Q: Array, order: float) -> Ball:
    """Return H of the distributions Q / sum of Q, for rows of numbers >= 0 whose sums are near 1, shape (n,)."""
    total = ball(Q).sum(axis=1)
    if order == 1.0:
        logs = np.log(np.where(Q > 0.0, Q, 1.0))
        products = (Ball(logs, outward(16.0 * UNIT * np.abs(logs))) * Q).sum(axis=1)
        short = outward((total - 1.0).size)
        # with S the sum: log S - (1/S) sum Q log Q, and |log S|, |1/S - 1| <= 2 |S - 1| for S within 1/2 of 1
        return -products + Ball(0.0, outward(2.0 * short * (1.0 + products.size)))
    b = order / (order - 1.0)
    norm = power(power(Q, order).sum(axis=1).high, 1.0 / order).high
    share = norm / total.low
    return Ball(b * (1.0 - share), outward(64.0 * UNIT * b + 4.0 * UNIT * b * np.abs(1.0 - share)))
