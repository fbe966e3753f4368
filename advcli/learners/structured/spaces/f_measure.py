"""The set of the largest expected F-measure under a distribution over sets (Dembczynski, Waegeman, Cheng and Huellermeier 2011).

F(z, y) = 2 |z & y| / (|z| + |y|), and 1 where both are empty. Of a distribution its expectation needs no more than

    P_js = Pr(y_j = 1 and |y| = s)  and  Pr(y empty):     E F(z, y) = sum over j in z of sum_s 2 P_js / (|z| + s)  for z not empty,   (1)

so the best set of k labels has the k largest summands, and the empty set is worth Pr(y empty).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.typing import Array
from .enumerated_sets import set_rows


class SizedLabels(NamedTuple):
    """The P_js (n, m, m) at [j, s - 1], s = 1..m, and the probabilities of the empty set (n,) of distributions over sets of m labels."""

    joint: Array
    empty: Array


def sized_of_sets(probability: Array, Y: NDArray[np.int8]) -> SizedLabels:
    """Return P_js of distributions ``probability`` (n, c) over the distinct sets Y (c, m) of 0 and 1."""
    sizes, m = Y.sum(axis=1, dtype=np.intp), Y.shape[1]
    joint = np.zeros((len(probability), m, m))
    for s in range(1, m + 1):
        at = np.flatnonzero(sizes == s)
        joint[:, :, s - 1] = probability[:, at] @ Y[at]
    return SizedLabels(joint, probability[:, sizes == 0].sum(axis=1))


def sized_of_free_labels(p: Array) -> SizedLabels:
    """Return P_js of labels that are there independently with probabilities p (n, m): p_j times the law of the number of the others."""
    n, m = p.shape
    # laws of the numbers of labels before and after each; sums of products that are not negative, so that nothing cancels
    before, after = np.zeros((m, n, m)), np.zeros((m, n, m))
    before[0, :, 0] = after[m - 1, :, 0] = 1.0
    for j in range(1, m):
        before[j] = _one_more(before[j - 1], p[:, j - 1])
        after[m - 1 - j] = _one_more(after[m - j], p[:, m - j])
    joint = np.empty((n, m, m))
    for j in range(m):
        others = np.zeros((n, m))
        for s in range(j + 1):
            others[:, s:] += before[j][:, s, None] * after[j][:, : m - s]
        joint[:, j] = p[:, j, None] * others
    return SizedLabels(joint, np.asarray((1.0 - p).prod(axis=1)))


def _one_more(law: Array, p: Array) -> Array:
    """Return the laws (n, m) of a number of labels with one more, that is there with probabilities p (n,)."""
    more = law * (1.0 - p)[:, None]
    more[:, 1:] += law[:, :-1] * p[:, None]
    return more


def gibbs(U: Array, table: Array) -> Array:
    """Return the probability of every set y of labels, proportional to exp f(y), shape (n, 2^m); column i is the set with number i.

    U (n, m) are scores of the labels, and ``table`` (2^m,) is what each set adds to the sum of its labels' scores
    (`enumerated_sets.pair_table`).
    """
    score = np.zeros((len(U), 1))
    for u in U.T:
        score = np.hstack([score, score + u[:, None]])
    score += table
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def sized_of_gibbs(U: Array, table: Array) -> SizedLabels:
    """Return P_js of `gibbs`, a few rows at a time."""
    m = U.shape[1]
    every = set_rows(np.arange(1 << m), m)
    few = max(1, (1 << 20) >> m)
    parts = [sized_of_sets(gibbs(U[i : i + few], table), every) for i in range(0, len(U), few)]
    return SizedLabels(np.concatenate([part.joint for part in parts]), np.concatenate([part.empty for part in parts]))


def best_f_sets(sized: SizedLabels) -> tuple[NDArray[np.int8], Array]:
    """Return the sets of the largest expected F-measure, 0 and 1 (n, m), and that measure (n,); of equals the smallest."""
    n, m, _ = sized.joint.shape
    k = np.arange(1.0, m + 1.0)
    gain = sized.joint @ (2.0 / (k[:, None] + k))  # [j, k - 1] is the summand of (1)
    order = np.argsort(-gain, axis=1, kind="stable")
    reached = np.cumsum(np.take_along_axis(gain, order, axis=1), axis=1)  # [:, i, k - 1]: the i + 1 largest
    value = np.hstack([sized.empty[:, None], np.diagonal(reached, axis1=1, axis2=2)])
    size, rows = np.argmax(value, axis=1), np.arange(n)
    chosen = order[rows, :, np.maximum(size, 1) - 1]
    sets = np.zeros((n, m), dtype=np.int8)
    np.put_along_axis(sets, chosen, (np.arange(m) < size[:, None]).astype(np.int8), axis=1)
    return sets, value[rows, size]
