"""The readable version of `_ext/structured/outcomes.pyx`: a game over many outcomes by a few columns; the best outcome is added."""

import numpy as np
from support.python_game import solve_game

from advcli.core.typing import Array


def solve_outcomes(outcomes: Array, s: Array, tolerance: float) -> tuple[Array, Array, Array]:
    """Solve one game of outcomes (l, m) at scores s (l,).

    Returns
    -------
    p : ndarray of shape (l,)
    q : ndarray of shape (m,)
    values : ndarray of shape (2,)
        min_j (A q)_j - s.A q and max over k of (p - s).a_k, at most ``tolerance`` apart.
    """
    columns = [int(np.argmax(-s @ outcomes))]
    while True:
        A = outcomes[:, columns]
        shares, p, _ = solve_game(A, -s @ A)
        lower = (A @ shares).min() - s @ A @ shares
        against = (p - s) @ outcomes
        best = int(np.argmax(against))
        if against[best] - lower <= tolerance or best in columns:
            q = np.zeros(outcomes.shape[1])
            q[columns] = shares
            return p, q, np.array([lower, against[best]])
        columns.append(best)
