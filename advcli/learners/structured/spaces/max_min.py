"""The max-min margin of sets of labels (Nowak-Vila, Bach and Rudi 2020), an adversarial game between a predictor and the law of the labels.

    S(f, y_i) = max over mu of [ min over z of L(z, mu) ] + f(mu) - f(y_i)
              = min over p in [0, 1]^m of  max over y of [ sum_j |y_j - p_j| + f(y) ] - f(y_i)                                  (1)

for the number of wrong labels L, of which min over z of L(z, mu) = sum_j min(mu_j, 1 - mu_j). Any p bounds S from above, by one set; any
mixture mu of sets from below. p at 0 and 1 of the true set is margin rescaling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.highs import pass_program, quiet_solver
from ....core.typing import Array

BestSets = Callable[[Array], tuple[Array, NDArray[np.int8]]]
MOST_ROUNDS = 200


class SetGame(NamedTuple):
    """Solved games of n rows."""

    labels: Array  # shares of the labels in the mixture mu, (n, m)
    pairs: Array  # shares of the pairs that are both there, (n, m (m - 1) / 2)
    targets: Array  # the predictor's p, of the F-measure its likeliest set, (n, m)
    loss: Array  # min over z of L(z, mu), (n,)
    upper: Array  # the maximum over y of (1) at p, with f(y) instead of f(y) - f(y_i), (n,)
    calls: int  # maximisations over sets
    shares: tuple[Array, ...] = ()  # mu itself over the first columns of each row, of ties those found first; none without pairs
    predicted: tuple[tuple[Array, NDArray[np.int8]], ...] = ()  # of the F-measure: the predictor's mixture, which proves `upper`


def free_game(U: Array) -> SetGame:
    """Solve the game of labels without pairs: each label's game is the zero-one loss of two classes.

    At score u >= 1 a label is in every set of the mixture, at u <= -1 in none; between, in half of them, and p = (1 + u) / 2.
    """
    labels = np.where(np.abs(U) < 1.0, 0.5, (U > 0.0).astype(np.float64))
    loss = np.minimum(labels, 1.0 - labels).sum(axis=1)
    targets = np.clip((1.0 + U) / 2.0, 0.0, 1.0)
    upper = np.maximum(targets, 1.0 - targets + U).sum(axis=1)
    return SetGame(labels, np.zeros((len(U), 0)), targets, loss, upper, len(U))


def solve_games(U: Array, pairs: Array, best: BestSets, columns: list[NDArray[np.int8]], tolerance: float) -> SetGame:
    """Solve the games of sets with pairs by columns: a linear program over the sets found, and the best set at its p, until none is better.

    U (n, m) are scores of the labels, ``pairs`` weights of the pairs. ``best`` takes scores (r, m) and returns the largest scores (r,) with
    the sets (r, m) that have them, pairs included. ``columns`` are sets (c, m) of each row to begin with, at least one; those found are
    added in place. A set must be better by ``tolerance``.
    """
    n, m = U.shape
    first, second = np.triu_indices(m, 1)
    labels, both = np.zeros((n, m)), np.zeros((n, len(pairs)))
    targets, loss, upper = np.zeros((n, m)), np.zeros(n), np.full(n, np.inf)
    shares = [np.zeros(0)] * n
    open_rows, calls, master = np.arange(n), 0, _GameOfSets(m)
    for _ in range(MOST_ROUNDS):
        lower, p = np.zeros(len(open_rows)), np.zeros((len(open_rows), m))
        for place, i in enumerate(open_rows):
            Y = columns[i].astype(np.float64)
            joint = Y[:, first] * Y[:, second]
            p[place], q, lower[place] = master.solve(Y, Y @ U[i] + joint @ pairs)
            shares[i], labels[i], both[i] = q, q @ Y, q @ joint
            loss[i] = np.minimum(labels[i], 1.0 - labels[i]).sum()
        value, sets = best(U[open_rows] + 1.0 - 2.0 * p)
        value, calls = value + p.sum(axis=1), calls + len(open_rows)
        better = value < upper[open_rows]
        targets[open_rows[better]], upper[open_rows[better]] = p[better], value[better]
        open_ = upper[open_rows] - lower > tolerance
        for i, y in zip(open_rows[open_], sets[open_], strict=True):
            if (columns[i] == y).all(axis=1).any():
                open_[open_rows == i] = False  # what is left is rounding of the linear program
            else:
                columns[i] = np.vstack([columns[i], y])
        open_rows = open_rows[open_]
        if not len(open_rows):
            break
    return SetGame(labels, both, targets, loss, upper, calls, tuple(shares))


class _GameOfSets:
    """The game over a few sets as a linear program in HiGHS: least t >= sum_j |y_j - p_j| + score for every set."""

    def __init__(self, m: int) -> None:
        self.m, self.solver = m, quiet_solver(1e-10, presolve=False)

    def solve(self, Y: Array, score: Array) -> tuple[Array, Array, float]:
        """Return p (m,), the mixture q (c,) of the sets Y (c, m) and its value, a lower bound of the game's."""
        count, m = len(Y), self.m
        if count == 1:
            return Y[0].copy(), np.ones(1), float(score[0])
        # t - sum_j (1 - 2 y_j) p_j >= score + |y|
        columns = np.append(np.zeros(m), -np.inf), np.append(np.ones(m), np.inf)
        rows = np.hstack([2.0 * Y - 1.0, np.ones((count, 1))])
        pass_program(self.solver, np.append(np.zeros(m), 1.0), columns, (score + Y.sum(axis=1), np.inf), rows)
        self.solver.run()
        solution = self.solver.getSolution()
        q = np.maximum(np.array(solution.row_dual), 0.0)
        q /= q.sum()
        value = float(q @ score + np.minimum(q @ Y, 1.0 - q @ Y).sum())
        return np.clip(np.array(solution.col_value)[:m], 0.0, 1.0), q, value
