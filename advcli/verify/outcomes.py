"""Bounds of the game of costs with many outcomes a_1, .., a_m, from the definitions.

    P(Theta) = lambda/2 |Theta|^2 + 1/n sum_i s_i [u_i.c_i + max over k of (p_i - u_i).a_k]   at least min P, for any distributions p_i
    D(C)     = 1/n sum_i s_i min_j C_ij - |sum_i s_i x_i (c_i - C_i)'|^2 / (2 lambda n^2)     at most min P, for C_i in the hull

with scores u_i = Theta x_i. The stored mixtures are rows (example, outcome, share); what an example's shares leave of 1 is its own c_i, so
that shares of at least 0 whose sum is at most 1 are all that has to hold.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse

from ..core.typing import Array
from .bounds import Ball, ball, dot, inverse, join, outward
from .gap import Bounds, LearnedRows, ScoreMap
from .surrogates import CannotError

_ROWS = 256  # rows that are looked at with all outcomes at once


def bound_outcomes(features: ScoreMap, rows: LearnedRows, outcomes: Array, lam: float, arrays: Mapping[str, Array]) -> Bounds:
    """Return the bounds of a fit to rows with costs (n, l) and outcomes (l, m), from its dual point (p, 3) and predictor (n, l).

    Raises `ValueError` for an array of the wrong shape, or a row or an outcome that is none, `CannotError` without a stored predictor.
    """
    costs, theta, mixtures, predictor = rows.costs, arrays["theta"], arrays["r"], arrays.get("predictor")
    assert costs is not None
    (n, l), m = costs.shape, outcomes.shape[1]
    if predictor is None or predictor.shape != (n, l):
        raise CannotError("many outcomes need the stored predictor, shape (n, l)")
    at = mixtures[:, :2].astype(np.intp)
    if not (at == mixtures[:, :2]).all() or not ((at >= 0) & (at < (n, m))).all():
        raise ValueError(f"mixtures must name rows below {n} and outcomes below {m}")
    weights, share = rows.shares()
    V, _ = features.parts(theta)
    U = features.scores(features.X, theta)
    P = np.maximum(predictor, 0.0)
    astray = (ball(P).sum(axis=1) - 1.0).size  # P / sum of P is a distribution
    largest = float(np.abs(outcomes).max())
    worst = join(*((dot(ball(P[i : i + _ROWS]) - U[i : i + _ROWS], outcomes).max(axis=1) + 0.0)[:, None] for i in range(0, n, _ROWS)))
    losses = worst[:, 0] + Ball(np.zeros(n), outward(largest * astray)) + (U * costs).sum(axis=1)
    # shares of sum at most 1
    held = sparse.csr_array((np.maximum(mixtures[:, 2], 0.0), (at[:, 0], at[:, 1])), shape=(n, m))
    held.sum_duplicates()
    sums = outward(np.asarray(held.sum(axis=1)).ravel(), m)
    held = sparse.csr_array(sparse.diags_array(np.where(sums > 1.0, (1.0 - 1e-12) / np.maximum(sums, 1.0), 1.0)) @ held)
    left = ball(np.ones(n)) - dot(held, np.ones((m, 1)))[:, 0]
    C = dot(held, np.ascontiguousarray(outcomes.T)) + ball(costs) * left[:, None]
    least = -(-C).max(axis=1)
    moments = features.moments((ball(costs) - C) * weights[:, None])
    ridge = features.square_norm(V) * (0.5 * lam)
    dual = (least * weights).sum() * share - features.square_norm(moments) * share * share * inverse(ball(2.0 * lam))
    return Bounds(ridge + (losses * weights).sum() * share, dual, ridge)
