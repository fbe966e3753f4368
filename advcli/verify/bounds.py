"""Outward-rounded arithmetic on arrays: midpoints and radii (Rump 1999, "Fast and parallel interval arithmetic", BIT 39).

A `Ball` holds every real number within ``rad`` of ``mid``. With u = 2^-53 one rounded operation errs by at most u times its result. A sum
of m products, in any order and with or without fused operations, errs by at most g_m |a|.|b| with g_m = m u / (1 - m u) (Higham 2002,
"Accuracy and Stability of Numerical Algorithms", section 3.1). Both bounds hold for every BLAS that multiplies matrices by the definition.
Radii are sums of non-negative terms; the factor of `outward` covers their own rounding, its summand underflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

UNIT = 2.0**-53
_TINY = 1e-290
_EXP = 16 * UNIT  # allowance for the relative error of numpy.exp; NumPy states 4 ulp at most


def outward(radius: Any, terms: int = 8) -> Any:
    """Return a number above a non-negative expression of that many roundings."""
    return np.nextafter(radius * (1.0 + 4.0 * (terms + 2) * UNIT) + _TINY, np.inf)


@dataclass(frozen=True, eq=False)
class Ball:
    """All real numbers within ``rad`` of ``mid``, entry by entry."""

    mid: Any
    rad: Any = 0.0

    @property
    def high(self) -> Any:
        """A number above."""
        return np.nextafter(self.mid + self.rad, np.inf)

    @property
    def low(self) -> Any:
        """A number below."""
        return np.nextafter(self.mid - self.rad, -np.inf)

    @property
    def size(self) -> Any:
        """A number above the absolute value."""
        return outward(np.abs(self.mid) + self.rad)

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    @property
    def T(self) -> Ball:
        """The transpose."""
        return Ball(self.mid.T, np.broadcast_to(self.rad, np.shape(self.mid)).T)

    def __getitem__(self, place: Any) -> Ball:
        return Ball(self.mid[place], np.broadcast_to(self.rad, np.shape(self.mid))[place])

    def __add__(self, other: Any) -> Ball:
        other = ball(other)
        mid = self.mid + other.mid
        return Ball(mid, outward(self.rad + other.rad + UNIT * np.abs(mid)))

    def __sub__(self, other: Any) -> Ball:
        return self + -ball(other)

    def __mul__(self, other: Any) -> Ball:
        other = ball(other)
        mid = self.mid * other.mid
        return Ball(mid, outward(np.abs(self.mid) * other.rad + self.rad * (np.abs(other.mid) + other.rad) + UNIT * np.abs(mid)))

    def __truediv__(self, other: float) -> Ball:
        """Divide by an exact number above 0."""
        mid = self.mid / other
        return Ball(mid, outward(self.rad / other + UNIT * np.abs(mid)))

    def sum(self, axis: int | None = None) -> Ball:
        """Return the sum along an axis."""
        count = np.size(self.mid) if axis is None else np.shape(self.mid)[axis]
        spread = np.broadcast_to(self.rad, np.shape(self.mid))
        return Ball(self.mid.sum(axis=axis), outward(spread.sum(axis=axis) + _gamma(count) * np.abs(self.mid).sum(axis=axis), count))

    def max(self, axis: int) -> Ball:
        """Return the largest along an axis."""
        return between(self.low.max(axis=axis), self.high.max(axis=axis))

    def may_lead(self) -> Any:
        """Return which entries of each row may be its largest."""
        return self.high >= self.low.max(axis=1, keepdims=True)

    def positive(self) -> Ball:
        """Return the positive part."""
        return Ball(np.maximum(self.mid, 0.0), self.rad)


def ball(value: Any) -> Ball:
    """Return a value that is exact as a ball of radius 0."""
    return value if isinstance(value, Ball) else Ball(value)


def between(low: Any, high: Any) -> Ball:
    """Return all numbers between two."""
    mid = 0.5 * (low + high)
    return Ball(mid, outward(np.maximum(high - mid, mid - low) + UNIT * np.abs(mid)))


def join(*parts: Ball, axis: int = 0) -> Ball:
    """Return balls of shapes (a, m), (b, m), ... as one of shape (a + b + ..., m), or side by side."""
    radii = [np.broadcast_to(part.rad, np.shape(part.mid)) for part in parts]
    return Ball(np.concatenate([part.mid for part in parts], axis=axis), np.concatenate(radii, axis=axis))


def exp(x: Ball) -> Ball:
    """Return the exponential of numbers with radii below 1: exp(x + e) - exp(x) is at most exp(x) (e + e^2)."""
    mid = np.exp(x.mid)
    return Ball(mid, outward(mid * (x.rad + x.rad**2 + _EXP * (1.0 + 3.0 * x.rad))))


def _gamma(terms: int) -> float:
    return float(outward((terms + 1) * UNIT / (1.0 - (terms + 1) * UNIT)))


def dot(A: Any, B: Any) -> Ball:
    """Return A B for A (a, m), dense, sparse or a ball, and B (m, b), dense or a ball.

    Sums are made in pieces of about sqrt(m) terms, whose bound is far below the bound of one long sum.
    """
    A, B = ball(A), ball(B)
    m = A.mid.shape[1]
    piece = max(64, int(m**0.5))
    terms = piece + -(-m // piece)
    spread = np.broadcast_to(B.rad, B.mid.shape)
    inexact = bool(np.any(A.rad))
    mid, rad = np.zeros((A.mid.shape[0], B.mid.shape[1])), np.zeros((A.mid.shape[0], B.mid.shape[1]))
    for start in range(0, m, piece):
        columns = slice(start, start + piece)
        part, b = A.mid[:, columns], B.mid[columns]
        mid += part @ b
        rad += abs(part) @ outward(_gamma(terms) * np.abs(b) + spread[columns])
        if inexact:
            rad += np.broadcast_to(A.rad, A.mid.shape)[:, columns] @ outward(np.abs(b) + spread[columns])
    return Ball(mid, outward(rad, terms + 8))


def inverse(x: Ball) -> Ball:
    """Return 1 / x of one number above its radius."""
    mid = 1.0 / x.mid
    return Ball(mid, outward(x.rad * mid / (x.mid - x.rad) + UNIT * mid))
