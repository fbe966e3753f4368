"""Bounds of the second of two stages: a rejector of what the first one gets wrong (Mao, Mohri & Zhong 2024), from the definitions.

With scores r(x) = (f_0 - f_1) / sqrt(2), rows of weights s_i, t_i = 1 where the first stage is wrong, and n' = sum_i s_i (alpha + t_i)

    P = lambda'/2 |theta|^2 + 1/n' sum_i s_i (alpha [1 - r_i]_+ + t_i [1 + r_i]_+)                     at least min P
    D = 1/n' sum_i s_i (alpha a_i + t_i b_i) - |sum_i s_i x_i (t_i b_i - alpha a_i)|^2 / (2 lambda' n'^2)   at most, for a_i, b_i in [0, 1]

where lambda' n' = lambda n is that of the first stage. t is stored, and refuted where the scores of the first stage cannot give it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..core.typing import Array
from .bounds import ball, inverse
from .gap import Bounds, LearnedRows, ScoreMap
from .surrogates import in_pairs, paired


def bound_rejector(features: ScoreMap, rows: LearnedRows, alpha: float, lam: float, arrays: Mapping[str, Array]) -> Bounds:
    """Return the bounds of a rejector, whose parameters (d, k) have the shape of the first stage's, from a, b and t of every row, (n, 3).

    Raises `ValueError` for an array of the wrong shape, or a t that the first stage does not give.
    """
    y, n, first, theta, stored = rows.y, len(rows.y), arrays["theta"], arrays["rejector_theta"], arrays["rejector_r"]
    weights = rows.shares()[0]
    if stored.shape != (n, 3) or not np.isin(stored[:, 2], (0.0, 1.0)).all():
        raise ValueError(f"rejector_r has the shape {stored.shape}, not {(n, 3)}, or its last column is not 0 and 1")
    features.parts(first)
    V, _ = features.parts(theta)
    wrong = stored[:, 2]
    F, row = features.scores(features.X, first), np.arange(n)
    others = np.ones(F.mid.shape, dtype=bool)
    others[row, y] = False
    may_err = (np.where(others, F.high, -np.inf) >= F.low[row, y][:, None]).any(axis=1)
    may_hit = F.high[row, y] >= np.where(others, F.low, -np.inf).max(axis=1)
    if not (np.where(wrong > 0.0, may_err, may_hit) | (weights == 0.0)).all():
        raise ValueError("the rejector learned from errors that are none")
    r = paired(features.scores(features.X, theta))[:, 0]
    accept, reject = ball(weights) * alpha, ball(weights * wrong)
    share = inverse(accept.sum() + reject.sum())
    scaled = ball(lam) * ball(weights).sum() * share
    one = ball(np.ones(n))
    losses = ((one - r).positive() * accept + (one + r).positive() * reject).sum() * share
    a, b = np.clip(stored[:, 0], 0.0, 1.0), np.clip(stored[:, 1], 0.0, 1.0)
    pull = in_pairs((reject * b - accept * a)[:, None], F.mid.shape[1])
    square = features.square_norm(features.moments(pull))
    ridge = features.square_norm(V) * scaled * 0.5
    dual = (accept * a + reject * b).sum() * share - square * share * share * inverse(scaled * 2.0)
    return Bounds(ridge + losses, dual, ridge)
