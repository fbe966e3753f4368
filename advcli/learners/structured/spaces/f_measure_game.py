"""The max-min margin of the F-measure (Nowak-Vila, Bach and Rudi 2020): the game of a predictor of sets and the law of the true one.

    S(f, y_i) = max over laws mu of [ 1 - max over z of E F(z, Y) ] + E f(Y) - f(y_i)
              = min over p of  max over y of [ sum_z p_z (1 - F(z, y)) + f(y) ] - f(y_i),      F(z, y) = 2 |z & y| / (|z| + |y|)      (1)

with F = 1 of two empty sets, as `fmeasure` has it. Any distribution p of predicted sets bounds S from above, by one set; any mixture mu
from below, by its best prediction. With s labels in y

    sum_z p_z F(z, y) = sum over j in y of c_js,   c_js = sum over z that hold j of 2 p_z / (|z| + s),                                  (2)

so that the worst set of s labels is that of the largest score at u_j - c_js.
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
    found = np.zeros(V.shape, dtype=np.int8)
    np.put_along_axis(found, order, np.broadcast_to(np.tri(m, dtype=np.int8), V.shape), axis=2)
    return value, found


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

    Parameters
    ----------
    U : ndarray (n, m)
        Scores of the labels.
    pairs : ndarray (m (m - 1) / 2,), or of size 0
        Weights of the pairs.
    best : BySize
        The best sets by their number of labels, pairs included.
    columns, answers : list of ndarray (c, m)
        True sets and predictions of each row to begin with, at least one of each; those found are added in place.
    tolerance : float
        How far apart both bounds may stay.

    Returns
    -------
    SetGame
        ``targets`` are the likeliest of the predicted sets.
    """
    n, m = U.shape
    first, second = np.triu_indices(m, 1) if len(pairs) else (np.zeros(0, dtype=np.intp),) * 2
    labels, both = np.zeros((n, m)), np.zeros((n, len(pairs)))
    targets, loss, lower, upper = np.zeros((n, m)), np.zeros(n), np.full(n, -np.inf), np.full(n, np.inf)
    shares, predicted = [np.zeros(0)] * n, [(np.zeros(0), np.zeros((0, m), dtype=np.int8))] * n
    left, calls, master = np.arange(n), 0, _FoundGame()
    size = np.arange(1.0, m + 1.0)
    for _ in range(MOST_ROUNDS):
        C, empty = np.zeros((len(left), m, m)), np.zeros(len(left))  # c_js at [s - 1, j], and the share of the empty set among predictions
        likeliest, answer = np.zeros((len(left), m)), np.zeros((len(left), m), dtype=np.int8)
        mixed: list[tuple[Array, Sets]] = []
        for at, i in enumerate(left):
            Y, Z = columns[i], answers[i]
            joint = (Y[:, first] * Y[:, second]).astype(np.float64)
            score = Y @ U[i] + joint @ pairs
            p, q = master.solve(f_measures(Z, Y), score)
            mixed.append((p[p > 0.0], Z[p > 0.0]))
            held = Z.sum(axis=1, dtype=np.intp)
            C[at] = (2.0 * p[:, None] / (held[:, None] + size)).T @ Z
            empty[at], likeliest[at] = p[held == 0].sum(), Z[np.argmax(p)]
            found, measure = best_f_sets(sized_of_sets(q[None], Y))
            answer[at], value = found[0], 1.0 - measure[0] + q @ score
            if value > lower[i]:
                lower[i], loss[i], shares[i] = value, 1.0 - measure[0], q
                labels[i], both[i] = q @ Y, q @ joint
        of_size, sets = best(np.ascontiguousarray(U[left][:, None] - C))
        calls += len(left)
        every = np.hstack([-empty[:, None], of_size])  # the empty set first
        worst = np.argmax(every, axis=1)
        row = np.arange(len(left))
        value = 1.0 + every[row, worst]
        true = np.where(worst[:, None] > 0, sets[row, np.maximum(worst, 1) - 1], 0).astype(np.int8)
        better = value < upper[left]
        upper[left[better]], targets[left[better]] = value[better], likeliest[better]
        for place in np.flatnonzero(better):
            predicted[left[place]] = mixed[place]
        open_ = upper[left] - lower[left] > tolerance
        for place in np.flatnonzero(open_):
            i, new = left[place], False
            for known, one in ((columns, true[place]), (answers, answer[place])):
                if not (known[i] == one).all(axis=1).any():
                    known[i], new = np.vstack([known[i], one]), True
            open_[place] = new  # else what is left is rounding of the linear program
        left = left[open_]
        if not len(left):
            break
    return SetGame(labels, both, targets, loss, upper, calls, tuple(shares), tuple(predicted))


class _FoundGame:
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
        found = self.solver.getSolution()
        p, q = np.maximum(np.array(found.col_value)[:a], 0.0), np.maximum(np.array(found.row_dual)[:b], 0.0)
        return p / p.sum(), q / q.sum()
