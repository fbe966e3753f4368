"""Bounds of the second of two stages: a rejector of what the first one gets wrong (Mao, Mohri & Zhong 2024), from the definitions.

With scores r(x) = (f_0 - f_1) / sqrt(2), rows of weights s_i, t_i = 1 where the first stage is wrong, and n' = sum_i s_i (alpha + t_i)

    P = lambda'/2 |theta|^2 + 1/n' sum_i s_i (alpha [1 - r_i]_+ + t_i [1 + r_i]_+)                     at least min P
    D = 1/n' sum_i s_i (alpha a_i + t_i b_i) - |sum_i s_i x_i (t_i b_i - alpha a_i)|^2 / (2 lambda' n'^2)   at most, for a_i, b_i in [0, 1]

where lambda' n' = lambda n is that of the first stage. t is stored, and refuted where the scores of the first stage cannot give it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.typing import Array
from .bounds import Ball, ball, inverse
from .gap import Bounds, ScoreMap

_HALF = Ball(np.float64(np.sqrt(0.5)), np.float64(2.0**-53))


def bound_rejector(
    features: ScoreMap, y: Any, alpha: float, lam: float, s: Array | None, first: Array, theta: Array, stored: Array
) -> Bounds:
    """Return the bounds of a rejector with parameters theta (d, k), after a first stage with parameters ``first`` of the same shape.

    ``stored`` (n, 3) are a, b and t of every row.

    Raises
    ------
    ValueError
        An array of the wrong shape, or a t that the first stage does not give.
    """
    n = len(y)
    weights = np.ones(n) if s is None else s
    if stored.shape != (n, 3) or not np.isin(stored[:, 2], (0.0, 1.0)).all():
        raise ValueError(f"rejector_r has the shape {stored.shape}, not {(n, 3)}, or its last column is not 0 and 1")
    features.parts(first)
    V, _ = features.parts(theta)
    wrong = stored[:, 2]
    F, rows = features.scores(features.X, first), np.arange(n)
    others = np.ones(F.mid.shape, dtype=bool)
    others[rows, y] = False
    may_err = (np.where(others, F.high, -np.inf) >= F.low[rows, y][:, None]).any(axis=1)
    may_hit = F.high[rows, y] >= np.where(others, F.low, -np.inf).max(axis=1)
    if not (np.where(wrong > 0.0, may_err, may_hit) | (weights == 0.0)).all():
        raise ValueError("the rejector learned from errors that are none")
    R = features.scores(features.X, theta)
    r = (R[:, 0] - R[:, 1]) * _HALF
    accept, reject = ball(weights) * alpha, ball(weights * wrong)
    mass = accept.sum() + reject.sum()
    share = inverse(mass)
    scaled = ball(lam) * ball(weights).sum() * share
    one = ball(np.ones(n))
    losses = ((one - r).positive() * accept + (one + r).positive() * reject).sum() * share
    a, b = np.clip(stored[:, 0], 0.0, 1.0), np.clip(stored[:, 1], 0.0, 1.0)
    pull = (reject * b - accept * a) * _HALF
    mid, rad = np.zeros(F.mid.shape), np.zeros(F.mid.shape)
    mid[:, 0], mid[:, 1] = pull.mid, -pull.mid
    rad[:, 0] = rad[:, 1] = pull.rad
    square = features.square_norm(features.moments(Ball(mid, rad)))
    ridge = features.square_norm(V) * scaled * 0.5
    dual = (accept * a + reject * b).sum() * share - square * share * share * inverse(scaled * 2.0)
    return Bounds(ridge + losses, dual, ridge)
