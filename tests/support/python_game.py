"""The readable version of the compiled simplex method for one game (`solve_game` of `_ext/families/adv_general.pxd`)."""

import numpy as np

from advcli.core.typing import Array
from advcli.losses.general import _normalised


def solve_game(matrix: Array, f: Array) -> tuple[Array, Array, int]:
    """Solve one game by the simplex method on a small dense dictionary.

    Parameters
    ----------
    matrix : ndarray of shape (l, k)
    f : ndarray of shape (k,)

    Returns
    -------
    q : ndarray of shape (k,)
    p : ndarray of shape (l,)
    pivots : int
        Number of pivots; -1 when the limit was reached, q and p are then distributions but not optimal.
    """
    L, scores, _ = _normalised(matrix, f[None])
    l, k = L.shape
    start = int(np.argmax(scores[0]))
    tight = int(np.argmin(L[:, start]))
    # Variables: q_j is number j, the slack s_i = (Lq)_i - v is number k + i. Outside the basis at the start: s_tight and
    # all q but q_start. A row of the dictionary says: basic variable = constant - coefficients . non-basic variables.
    outside = np.array([j for j in range(k) if j != start] + [k + tight])
    inside = np.array([start] + [k + i for i in range(l) if i != tight])
    others, free = outside[:-1], [i for i in range(l) if i != tight]
    table = np.zeros((l + 1, k + 1))  # last row: reduced costs; last column: constants
    table[0, :-2], table[0, -1] = 1.0, 1.0
    relative = L - L[tight]
    table[1:-1, :-2] = (relative[:, start, None] - relative[:, others])[free]
    table[1:-1, -2] = -1.0
    table[1:-1, -1] = relative[free, start]
    table[-1, :-2] = scores[0, others] - scores[0, start] + L[tight, others] - L[tight, start]
    table[-1, -2] = -1.0

    tolerance, stalled, limit = 1e-12, 0, 50 * (l + k) + 100
    pivots = 0
    while True:
        gains = table[-1, :-1]
        improving = np.flatnonzero(gains > tolerance)
        if len(improving) == 0:
            break
        if pivots == limit:
            pivots = -1
            break
        if stalled > l + k:  # Bland's rule: the lowest number enters and leaves, which cannot cycle
            enter = improving[np.argmin(outside[improving])]
        else:
            enter = improving[np.argmax(gains[improving])]
        column = table[:-1, enter]
        blocking = np.flatnonzero(column > tolerance)
        if len(blocking) == 0:
            pivots = -1  # the set is bounded: only rounding can come here
            break
        ratios = np.maximum(table[blocking, -1], 0.0) / column[blocking]
        step = ratios.min()
        tied = blocking[ratios <= step * (1 + 1e-14)]
        leave = tied[np.argmin(inside[tied])] if stalled > l + k else tied[np.argmax(column[tied])]
        stalled = stalled + 1 if step * gains[enter] <= tolerance else 0
        _pivot(table, leave, enter)
        inside[leave], outside[enter] = outside[enter], inside[leave]
        pivots += 1

    q, p = np.zeros(k), np.zeros(l)
    labels = inside < k
    q[inside[labels]] = np.maximum(table[:-1, -1][labels], 0.0)
    slacks = outside >= k
    p[outside[slacks] - k] = np.maximum(-table[-1, :-1][slacks], 0.0)
    return q / q.sum(), p / p.sum(), pivots


def _pivot(table: Array, leave: int, enter: int) -> None:
    """Exchange the basic variable of row ``leave`` and the non-basic variable of column ``enter``, in place."""
    head = table[leave, enter]
    table[leave] /= head
    table[leave, enter] = 1.0 / head
    factors = table[:, enter].copy()
    factors[leave] = 0.0
    table[:, enter] = np.where(np.arange(len(table)) == leave, table[:, enter], 0.0)
    table -= factors[:, None] * table[leave]
