"""Sets of labels with a weight for every pair: f(y) = sum_j y_j u_j + sum over j < k of P_jk y_j y_k, u = W x; P is free of x.

A set is a number whose bit j says whether it has label j, or a row of 0 and 1.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....core.compiled import kernels
from ....core.typing import Array
from .space import PointSpace

MOST_LABELS = 16  # up to which all sets are enumerated


def pairs_of(m: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return j and k of all pairs j < k of m labels, in the order of their weights."""
    return tuple(np.triu_indices(m, 1))  # type: ignore[return-value]


def set_numbers(Y: Any) -> NDArray[np.intp]:
    """Return sets given as rows of 0 and 1 (n, m) as numbers (n,)."""
    return np.asarray(Y, dtype=np.intp) @ (1 << np.arange(np.shape(Y)[1], dtype=np.intp))


def set_rows(number: Any, m: int) -> NDArray[np.int8]:
    """Return sets given as numbers (n,) as rows of 0 and 1 (n, m)."""
    return ((np.asarray(number, dtype=np.intp)[:, None] >> np.arange(m)) & 1).astype(np.int8)


def pair_table(pairs: Array, m: int) -> Array:
    """Return the sum of pair weights of every set, shape (2^m,), by doubling."""
    square = np.zeros((m, m))
    square[pairs_of(m)] = pairs
    table, linear = np.zeros(1), np.zeros((1, m))  # linear[y, k]: sum of P_jk over j in y
    for j in range(m):
        table = np.concatenate([table, table + linear[:, j]])
        linear = np.concatenate([linear, linear + square[j]])
    return table


def levels_of_sets(U: Array, table: Array, centre: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
    """Return, for every row and every distance l from its centre, the largest score of a set and that set, (n, m + 1) each.

    At scores U (n, m) of labels and ``table`` (2^m,) of pairs; ``centre`` (n,) 0 makes the distance the size. Ties go to smaller numbers.
    """
    shape = (U.shape[0], U.shape[1] + 1)
    best, label = np.empty(shape), np.empty(shape, dtype=np.intp)
    kernels.sets.levels(np.ascontiguousarray(U), table, centre, best, label)
    return best, label


def levels_of_free_labels(U: Array, Y: NDArray[np.int8]) -> tuple[Array, NDArray[np.intp]]:
    """Return the levels of labels without pairs, for any number of them: at distance l the l labels whose change gains most.

    For scores U (n, m) and centres Y (n, m): the largest score at every distance minus the centre's (n, m + 1), and the labels by
    falling gain (n, m): the set at distance l differs from the centre in the first l.
    """
    gain = (1.0 - 2.0 * Y) * U
    order = np.argsort(-gain, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(gain, order, axis=1), axis=1)
    return np.hstack([np.zeros((len(U), 1)), sums]), order


class EnumeratedSets(PointSpace):
    """All sets of at most `MOST_LABELS` labels, seen from the true one y, a number as every set is.

    u (m,) are scores of the labels, ``table`` (2^m,) scores that sets add. In the axes ``margin`` h is the margin and g the number of
    labels that differ, in ``f1`` h is their sum and g minus the sizes of both sets.
    """

    name: ClassVar[str] = "sets"

    def __init__(self, u: Array, table: Array, y: int, axes: str = "margin") -> None:
        score, size, hamming = np.zeros(1), np.zeros(1), np.zeros(1)
        for j, label in enumerate(u):
            has = y >> j & 1
            score, size = np.concatenate([score, score + label]), np.concatenate([size, size + 1.0])
            hamming = np.concatenate([hamming + has, hamming + 1 - has])
        score = score + table
        if axes == "f1":
            super().__init__(score - score[y] + hamming, -(size + size[y]), y)
        else:
            super().__init__(score - score[y], hamming, y)
