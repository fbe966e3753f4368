"""The max-min margin of the F-measure (Nowak-Vila, Bach and Rudi 2020): the game of a predictor of sets and the law of the true one.

    S(f, y_i) = max over laws mu of [ 1 - max over z of E F(z, Y) ] + E f(Y) - f(y_i)
              = min over p of  max over y of [ sum_z p_z (1 - F(z, y)) + f(y) ] - f(y_i),      F(z, y) = 2 |z & y| / (|z| + |y|)      (1)

with F = 1 of two empty sets, as `fmeasure` has it. Any distribution p of predicted sets bounds S from above, by one set; any mixture mu
from below, by its best prediction. With s labels in y

    sum_z p_z F(z, y) = sum over j in y of c_js,   c_js = sum over z that hold j of 2 p_z / (|z| + s),                                  (2)

so that the worst set of s labels has the largest score at u_j - c_js.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ....core.highs import pass_program, quiet_solver
from ....core.typing import Array
from .enumerated_sets import levels_of_sets, set_rows
from .f_measure import best_f_sets, sized_of_sets
from .max_min import MOST_ROUNDS, SetGame

Sets = NDArray[np.int8]

BySize = Callable[[Array], tuple[Array, Sets]]
"""Takes scores (r, m, m); returns the largest scores (r, m) of sets of s = 1..m labels at scores [:, s - 1], and these sets (r, m, m)."""


def free_by_size(V: Array) -> tuple[Array, Sets]:
    """Return the sets of s labels of the largest scores V[:, s - 1], labels without pairs (`BySize`)."""
    m = V.shape[2]
    order = np.argsort(-V, axis=2, kind="stable")
    value = np.diagonal(np.cumsum(np.take_along_axis(V, order, axis=2), axis=2), axis1=1, axis2=2)
    sets = np.zeros(V.shape, dtype=np.int8)
    np.put_along_axis(sets, order, np.broadcast_to(np.tri(m, dtype=np.int8), V.shape), axis=2)
    return value, sets


def by_size_of_table(table: Array) -> BySize:
    """Return `BySize` of sets that get what ``table`` (2^m,) says beside the scores of their labels."""

    def best(V: Array) -> tuple[Array, Sets]:
        r, m, _ = V.shape
        value, label = levels_of_sets(V.reshape(r * m, m), table, np.zeros(r * m, dtype=np.intp))
        at, size = np.arange(r * m), np.tile(np.arange(1, m + 1), r)
        return value[at, size].reshape(r, m), set_rows(label[at, size], m).reshape(r, m, m)

    return best


def f_measures(Z: Sets, Y: Sets) -> Array:
    """Return F(z, y) of sets Z (a, m) and Y (b, m), shape (a, b)."""
    sizes = Z.sum(axis=1, dtype=np.intp)[:, None] + Y.sum(axis=1, dtype=np.intp)
    return np.asarray(np.where(sizes > 0, 2.0 * (Z.astype(np.float64) @ Y.T) / np.maximum(sizes, 1), 1.0))


def solve_f_games(U: Array, pairs: Array, best: BySize, columns: list[Sets], answers: list[Sets], tolerance: float) -> SetGame:
    """Solve the games by a matrix game over the sets found on both sides, to which the best answer to each side comes in turn.

    U (n, m) are scores of the labels, ``pairs`` weights of the pairs or of size 0, ``best`` the best sets by their number of labels, pairs
    included. ``columns`` and ``answers`` are true sets and predictions (c, m) of each row to begin with, at least one of each; those found
    are added in place. The bounds may stay apart by ``tolerance``. The ``targets`` are the likeliest of the predicted sets.
    """
    games = _Games(U, pairs, columns, answers)
    open_rows = np.arange(len(U))
    for _ in range(MOST_ROUNDS):
        C, empty, predicted, answer = games.solve(open_rows)
        true = games.bound(open_rows, best, C, empty, predicted)
        open_rows = games.take(open_rows, true, answer, tolerance)
        if not len(open_rows):
            break
    shares, mixtures = tuple(games.shares), tuple(games.predicted)
    return SetGame(games.labels, games.both, games.targets, games.loss, games.upper, games.calls, shares, mixtures)


class _Games:
    """The games under way, with the best bounds that were found and the sets and mixtures that prove them."""

    def __init__(self, U: Array, pairs: Array, columns: list[Sets], answers: list[Sets]) -> None:
        n, m = U.shape
        self.U, self.pairs, self.columns, self.answers = U, pairs, columns, answers
        self.first, self.second = np.triu_indices(m, 1) if len(pairs) else (np.zeros(0, dtype=np.intp),) * 2
        self.labels, self.both, self.targets = np.zeros((n, m)), np.zeros((n, len(pairs))), np.zeros((n, m))
        self.loss, self.lower, self.upper = np.zeros(n), np.full(n, -np.inf), np.full(n, np.inf)
        self.shares, self.predicted = [np.zeros(0)] * n, [(np.zeros(0), np.zeros((0, m), dtype=np.int8))] * n
        self.calls, self.master = 0, _MatrixGame()

    def solve(self, rows: NDArray[np.intp]) -> tuple[Array, Array, list[tuple[Array, Sets]], Sets]:
        """Solve the matrix games of some rows and raise their lower bounds.

        Returns c_js at [s - 1, j], the share of the empty set among predictions, their mixture, and the best answer to the true sets'.
        """
        count, m = len(rows), self.U.shape[1]
        C, empty, size = np.zeros((count, m, m)), np.zeros(count), np.arange(1.0, m + 1.0)
        answer, predicted = np.zeros((count, m), dtype=np.int8), []
        for place, i in enumerate(rows):
            Y, Z = self.columns[i], self.answers[i]
            joint = (Y[:, self.first] * Y[:, self.second]).astype(np.float64)
            score = Y @ self.U[i] + joint @ self.pairs
            p, q = self.master.solve(f_measures(Z, Y), score)
            predicted.append((p[p > 0.0], Z[p > 0.0]))
            sizes = Z.sum(axis=1, dtype=np.intp)
            C[place] = (2.0 * p[:, None] / (sizes[:, None] + size)).T @ Z
            empty[place] = p[sizes == 0].sum()
            sets, measure = best_f_sets(sized_of_sets(q[None], Y))
            answer[place], value = sets[0], 1.0 - measure[0] + q @ score
            if value > self.lower[i]:
                self.lower[i], self.loss[i], self.shares[i] = value, 1.0 - measure[0], q
                self.labels[i], self.both[i] = q @ Y, q @ joint
        return C, empty, predicted, answer

    def bound(self, rows: NDArray[np.intp], best: BySize, C: Array, empty: Array, predicted: list[tuple[Array, Sets]]) -> Sets:
        """Return the worst true sets of some rows against their predictions, and lower the upper bounds."""
        of_size, sets = best(np.ascontiguousarray(self.U[rows][:, None] - C))
        self.calls += len(rows)
        every = np.hstack([-empty[:, None], of_size])  # the empty set first
        worst, row = np.argmax(every, axis=1), np.arange(len(rows))
        value = 1.0 + every[row, worst]
        for place in np.flatnonzero(value < self.upper[rows]):
            i, (p, Z) = rows[place], predicted[place]
            self.upper[i], self.predicted[i], self.targets[i] = value[place], (p, Z), Z[np.argmax(p)]
        return np.where(worst[:, None] > 0, sets[row, np.maximum(worst, 1) - 1], 0).astype(np.int8)

    def take(self, rows: NDArray[np.intp], true: Sets, answer: Sets, tolerance: float) -> NDArray[np.intp]:
        """Add the sets that are new to the games; return the rows whose bounds are apart and whose games have grown."""
        open_ = self.upper[rows] - self.lower[rows] > tolerance
        for place in np.flatnonzero(open_):
            i, new = rows[place], False
            for sets, one in ((self.columns, true[place]), (self.answers, answer[place])):
                if not (sets[i] == one).all(axis=1).any():
                    sets[i], new = np.vstack([sets[i], one]), True
            open_[place] = new  # else what is left is rounding of the linear program
        return rows[open_]


class _MatrixGame:
    """The matrix game of the sets found as a linear program in HiGHS: least t >= 1 - sum_z p_z F(z, y) + score of every y."""

    def __init__(self) -> None:
        self.solver = quiet_solver(1e-10, presolve=False)

    def solve(self, F: Array, score: Array) -> tuple[Array, Array]:
        """Return the predictor's distribution p (a,) and the mixture q (b,) of true sets at F (a, b) and scores (b,)."""
        a, b = F.shape
        if b == 1:
            return np.eye(a)[np.argmax(F[:, 0])], np.ones(1)
        rows = np.vstack([np.hstack([F.T, np.ones((b, 1))]), np.append(np.ones(a), 0.0)])
        ends = np.append(1.0 + score, 1.0), np.append(np.full(b, np.inf), 1.0)
        pass_program(self.solver, np.append(np.zeros(a), 1.0), (np.append(np.zeros(a), -np.inf), np.inf), ends, rows)
        self.solver.run()
        solution = self.solver.getSolution()
        p, q = np.maximum(np.array(solution.col_value)[:a], 0.0), np.maximum(np.array(solution.row_dual)[:b], 0.0)
        return p / p.sum(), q / q.sum()
