"""Which predictions are possible at scores that are known up to rounding: beyond a margin, or of the predictor of a game.

A classifier that may abstain predicts the class of the largest decision value where its margin exceeds tau, and else abstains, code k.

The predictor of a game over a matrix A (l, k) is a distribution p that minimises max_j (p'A)_j + f_j, and predicts its largest entry. Games
may have several such p. So a prediction r counts as possible where some p with p_r at least every other p_s is as good as the best one, up
to a slack: one linear program for each r tells. Where columns are convex in the prediction the program takes the p on two neighbours of a
position t. Its largest entry, its median and its mean, rounded, are all the whole number next to t, and the best positions are an interval.
Of zero-one with abstention at cost alpha the program takes the p that abstains most: labels get their lead on the larger of two levels:
the level of zero-one, at which abstaining gets nothing, and the score of rank ceil(1 / (1 - alpha)).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ..core.typing import Array
from ..losses import matrices
from .bounds import UNIT, Ball, between, outward

_SLACK = 1e-6  # of the value of a linear program, in units of the largest entry of the matrix
_SLACK_OF_POSITIONS = 1e-10
_CLOSE = 1e-9  # of shares and positions
_MOST = 2**21  # rows times l (l + k) of linear programs


def computed(F: Ball) -> Ball:
    """Return what another order of the same sums, rounded, may give."""
    return Ball(F.mid, outward(2.0 * F.rad + 8.0 * UNIT * np.abs(F.mid)))


def lead(P: Ball) -> Ball:
    """Return by how much the largest of each row (n, k) leads the second, (n,); 1e300 where there is one column."""
    if P.mid.shape[1] < 2:
        return Ball(np.full(len(P.mid), 1e300), np.zeros(len(P.mid)))
    low, high = (np.sort(each, axis=1)[:, -2:] for each in (P.low, P.high))
    least, most = np.maximum(low[:, 1] - high[:, 0], 0.0), high[:, 1] - low[:, 0]
    return between(least, most)


def beyond(leaders: Any, margin: Ball, tau: float) -> Any:
    """Return which predictions are possible, (n, k + 1): ``leaders`` (n, k) at margins above tau, else to abstain."""
    margin = computed(margin)
    return np.column_stack([leaders & (margin.high > tau)[:, None], margin.low <= tau])


def of_game(A: Array, F: Ball, form: matrices.Description | None = None) -> Any:
    """Return which predictions of a game over A (l, k) are possible at scores F (n, k), (n, l); None where the rows are too many.

    ``form`` is the closed form that the program takes; None where it solves the game.
    """
    F = computed(F)
    if form is not None and form.alpha is not None:
        return _abstaining(F / form.scale, form.alpha)
    top = F.mid.max(axis=1, keepdims=True)
    spread = float(A.max() - A.min())
    scores = np.maximum(F.mid - top, -spread)  # a class further below never matters
    error = 2.0 * np.max(np.broadcast_to(F.rad, F.mid.shape), axis=1)
    if form is not None and form.structure in ("absolute", "squared", "convex"):
        low, high = _positions(A, scores, error + _SLACK_OF_POSITIONS * max(spread, UNIT))
        prediction = np.arange(len(A))
        return (low[:, None] - _CLOSE <= prediction + 0.5) & (high[:, None] + _CLOSE >= prediction - 0.5)
    n, (l, k) = len(scores), A.shape
    if n * l * (l + k) > _MOST:
        return None
    unit = max(spread, 1e-300)  # programs are solved in units of the matrix
    best = _values(A / unit, scores / unit, None)
    worse = np.column_stack([_values(A / unit, scores / unit, r) for r in range(l)])
    return worse <= best[:, None] + _SLACK + (error / unit)[:, None]


def _abstaining(F: Ball, alpha: float) -> Any:
    """Return which predictions of zero-one with abstention are possible, (n, k + 1)."""
    k = F.mid.shape[1]
    scores = F.mid - F.mid.max(axis=1, keepdims=True)
    error = outward(4.0 * k * np.max(np.broadcast_to(F.rad, scores.shape), axis=1, keepdims=True) + 16.0 * k * UNIT)
    ordered = -np.sort(-scores, axis=1)
    level = ((np.cumsum(ordered, axis=1) - 1.0) / np.arange(1.0, k + 1)).max(axis=1, keepdims=True)
    rank = int(np.ceil(1.0 / (1.0 - alpha))) if alpha < 1.0 else k + 1
    if rank <= k:
        level = np.maximum(level, ordered[:, [max(rank, 2) - 1]])
    shares = np.maximum(scores - level, 0.0)
    P = np.hstack([shares, np.maximum(1.0 - shares.sum(axis=1, keepdims=True), 0.0)])
    return P.max(axis=1, keepdims=True) - 2.0 * error <= P


def rows_at(A: Array, position: Array) -> Array:
    """Return rows of A (l, k) at positions (n,) from 0 to l - 1, linear between two rows."""
    below = np.minimum(position.astype(np.intp), max(len(A) - 2, 0))
    share = (position - below)[:, None]
    return np.asarray(A[below] * (1.0 - share) + A[np.minimum(below + 1, len(A) - 1)] * share)


def best_position(A: Array, F: Array) -> Array:
    """Return the positions (n,) at which the convex max_j A(position, j) + f_j is least, for scores F (n, k)."""
    low, high = np.zeros(len(F)), np.full(len(F), len(A) - 1.0)
    for _ in range(110):
        third = (high - low) / 3.0
        down = (rows_at(A, low + third) + F).max(axis=1) > (rows_at(A, high - third) + F).max(axis=1)
        low, high = np.where(down, low + third, low), np.where(down, high, high - third)
    return 0.5 * (low + high)


def _positions(A: Array, scores: Array, slack: Array) -> tuple[Array, Array]:
    """Return the least and the largest position whose worst cost is best up to the slack, (n,) each."""
    n, l = len(scores), len(A)

    def worst(position: Array) -> Array:
        return np.asarray((rows_at(A, position) + scores).max(axis=1))

    best = best_position(A, scores)
    enough = worst(best) + slack
    ends = []
    for end in (0.0, l - 1.0):
        outside, inside = np.full(n, end), best
        for _ in range(60):
            middle = 0.5 * (outside + inside)
            good = worst(middle) <= enough
            outside, inside = np.where(good, outside, middle), np.where(good, middle, inside)
        ends.append(np.where(worst(np.full(n, end)) <= enough, end, outside))
    return ends[0], ends[1]


def _values(A: Array, scores: Array, largest: int | None) -> Array:
    """Return the value of every row's game over A (l, k), (n,), where p has its largest entry at ``largest``."""
    n, (l, k) = len(scores), A.shape
    above = [np.hstack([A.T, -np.ones((k, 1))])]  # (p'A)_j - v <= -f_j
    if largest is not None:
        others = np.delete(np.eye(l), largest, axis=0)
        others[:, largest] = -1.0
        above.append(np.hstack([others, np.zeros((l - 1, 1))]))
    block = np.vstack(above)
    limits = np.hstack([-scores, np.full((n, len(block) - k), _CLOSE)]).ravel()
    rows = sparse.eye_array(n, format="csr")
    bounds: Any = [*[(0.0, None)] * l, (None, None)] * n
    exact: Any = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
    answer = linprog(  # type: ignore[call-overload]
        np.tile(np.r_[np.zeros(l), 1.0], n),
        A_ub=sparse.kron(rows, block, format="csr"),
        b_ub=limits,
        A_eq=sparse.kron(rows, np.r_[np.ones(l), 0.0][None, :], format="csr"),
        b_eq=np.ones(n),
        bounds=bounds,
        method="highs",
        options=exact,
    )
    return np.asarray(answer.x.reshape(n, l + 1)[:, l]) if answer.x is not None else np.full(n, -np.inf if largest is not None else np.inf)
