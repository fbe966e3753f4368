"""Vector scaling (Guo et al. 2017): class probabilities from scores by a slope and a bias for each class, fitted to a matched mean.

With centred scores F_ij = f_ij - mean over l of f_il, the estimate is

    P(class j | row i) = exp z_ij / sum_l exp z_il,    z_ij = s_j F_ij + b_j,

with the slopes s and biases b that minimise the convex function  sum_i w_i (log sum_l exp z_il - sum_j t_ij z_ij).  Row i has the targets
t_i = (1 - e) (1 at its class) + e (shares of the classes) with e = 1/(n + 2) for n rows: as in Platt (1999) none is 0, so that there is a
minimum where scores separate the classes, too. In it the mean probability of every class is the share of its rows, which one temperature
for all classes cannot reach (Alexandari, Kundaje & Shrikumar 2020).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from ..core.errors import NotConvergedWarning
from ..core.linalg import solve
from ..core.typing import Array, Labels

MOST_CLASSES = 2000
"""Most classes: all slopes and biases are solved for at once."""
TOLERANCE = 1e-9
"""Largest entry of the gradient at which the fit is accepted: the difference between mean probabilities and shares, for one."""
_STEPS, _SHORTEST, _ENOUGH = 100, 1e-10, 1e-4


def _softmax(Z: Array) -> Array:
    E = np.exp(Z - Z.max(axis=1, keepdims=True))
    return np.asarray(E / E.sum(axis=1, keepdims=True))


def _centred(F: Array) -> Array:
    return np.asarray(F - F.mean(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class VectorScaling:
    """A slope and a bias for each of p classes."""

    slopes: Array  # (p,)
    biases: Array  # (p,), -inf of classes without rows of positive weight
    gradient: float  # its largest entry at these numbers, in units of the scores' root mean square

    @classmethod
    def of(cls, scores: Array, codes: Labels, weights: Array) -> VectorScaling:
        """Return the minimum for scores (n, p), codes (n,) of the columns, and weights (n,) of at least 0 that are not all 0.

        A fit that rounding stops above `TOLERANCE` warns (`NotConvergedWarning`).
        """
        p = scores.shape[1]
        w = weights / weights.sum()
        share = np.bincount(codes, weights=w, minlength=p)
        seen = np.flatnonzero(share)
        rows = np.flatnonzero(w)
        F, w, share = _centred(scores[np.ix_(rows, seen)]), w[rows], share[seen]
        largest = float(np.abs(F).max()) or 1.0
        unit = largest * (float(np.sqrt((w[:, None] * (F / largest) ** 2).sum() / len(seen))) or 1.0)
        smooth = 1.0 / (len(rows) + 2.0)
        T = np.tile(smooth * share, (len(rows), 1))
        T[np.arange(len(rows)), np.searchsorted(seen, codes[rows])] += 1.0 - smooth
        minimum, gradient = _minimised(F / unit, T, w, np.r_[np.zeros(len(seen)), np.log(share)])
        if not gradient <= TOLERANCE:
            warnings.warn(f"calibrate=vector stopped where its gradient is {gradient:.1e}", NotConvergedWarning, stacklevel=4)
        slopes, biases = np.zeros(p), np.full(p, -np.inf)
        slopes[seen], biases[seen] = minimum[: len(seen)] / unit, minimum[len(seen) :]
        return cls(slopes, biases, gradient)

    def predict_proba(self, F: Array) -> Array:
        """Return the probabilities (n, p) at scores F (n, p)."""
        seen = np.isfinite(self.biases)
        P = np.zeros_like(F)
        P[:, seen] = _softmax(_centred(F[:, seen]) * self.slopes[seen] + self.biases[seen])
        return P


def _minimised(F: Array, T: Array, w: Array, v: Array) -> tuple[Array, float]:
    """Return the minimum over v = (slopes, biases) by Newton's method with halved steps, and the largest entry of the gradient there."""
    p = F.shape[1]

    def value(v: Array) -> float:
        Z = F * v[:p] + v[p:]
        top = Z.max(axis=1)
        return float(w @ (top + np.log(np.exp(Z - top[:, None]).sum(axis=1)) - (T * Z).sum(axis=1)))

    now, gradient = value(v), np.inf
    for _ in range(_STEPS):
        P = _softmax(F * v[:p] + v[p:])
        R = w[:, None] * (P - T)
        slope = np.r_[(R * F).sum(axis=0), R.sum(axis=0)]
        gradient = float(np.abs(slope).max())
        if gradient <= TOLERANCE:
            break
        step = -solve(_curvature(F, P, w), slope)
        length, gain = 1.0, float(slope @ step)
        while not value(v + length * step) <= now + _ENOUGH * length * gain and length > _SHORTEST:
            length *= 0.5
        if length <= _SHORTEST:  # rounding hides what is left to gain
            break
        v = v + length * step
        now = value(v)
    return v, gradient


def _curvature(F: Array, P: Array, w: Array) -> Array:
    """Return the second derivative (2p, 2p), made regular in the direction of equal biases, which changes nothing."""
    p, Q = F.shape[1], P * F
    J = np.hstack([Q, P])
    H = -(J * w[:, None]).T @ J
    at = np.arange(p)
    H[at, at] += w @ (Q * F)
    H[at, at + p] += w @ Q
    H[at + p, at] += w @ Q
    H[at + p, at + p] += w @ P
    H[p:, p:] += 1.0 / p
    H[np.diag_indices(2 * p)] += 1e-13
    return np.asarray(H)
