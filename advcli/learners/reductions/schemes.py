"""Schemes of reductions: which binary problems a multiclass problem becomes, and how their scores become scores of the classes.

With costs c_i (k,), one number for each class and never less than at the label y_i, the schemes are

    ova      j = 1..k      label + where y = j                    weight 1
    ovo      i < j         rows of i and j, + where y = i         weight 1
    red_mc   j = 1..k-1    + where y > j                          weight |c_j - c_(j+1)|         Lin & Li 2012
    csosr    j = 1..k      + where c_j is the least cost          [Z (r_j - c_j)]_+, Z = +-1     Tu & Lin 2010
    csovo    i < j         rows of i and j, + where y = i         weight |c_i - c_j|             Lin 2014, ``pairs="own"``
                           rows with c_i != c_j, + where c_i < c_j      the same                 Lin 2014, ``pairs="all"``
    csova    j = 1..k      + where y = j                          + max c, - c_j                 Lin 2008

whose loss is weight [1 - label score]_+, one-sided regression of the costs for csosr. ova and ovo are csova and csovo at zero-one costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.typing import Array, Labels
from ...problems.binary import Signs

Split = tuple[Signs, Array, Array | None]  # labels, weights and margins, each (m, n)

PAIRS = ("own", "all")


def pairs_of(k: int) -> tuple[Labels, Labels]:
    """Return i and j of every pair i < j of classes, in the order of the problems."""
    first, second = np.triu_indices(k, 1)
    return first.astype(np.intp), second.astype(np.intp)


def _signs(positive: NDArray[np.bool_]) -> Signs:
    return np.where(positive, 1, -1).astype(np.int8)


def _red(y: Labels, costs: Array, pairs: str) -> Split:
    return _signs(y > np.arange(costs.shape[1] - 1)[:, None]), np.ascontiguousarray(np.abs(np.diff(costs, axis=1)).T), None


def _one_sided_regression(y: Labels, costs: Array, pairs: str) -> Split:
    Z = np.where(costs == costs.min(axis=1, keepdims=True), 1.0, -1.0).T
    return _signs(Z < 0), np.ones(Z.shape), np.ascontiguousarray(-Z * costs.T)


def _weighted_one_versus_one(y: Labels, costs: Array, pairs: str) -> Split:
    i, j = pairs_of(costs.shape[1])
    left, right = costs[:, i].T, costs[:, j].T
    weights = np.ascontiguousarray(np.abs(left - right))
    if pairs == "all":
        return _signs(left < right), weights, None
    i, j = i[:, None], j[:, None]
    return _signs(y == i), weights * ((y == i) | (y == j)), None


def _weighted_one_versus_all(y: Labels, costs: Array, pairs: str) -> Split:
    positive = np.arange(costs.shape[1])[:, None] == y
    return _signs(positive), np.where(positive, costs.max(axis=1), costs.T), None


def _counted(S: Array, k: int, trained: NDArray[np.bool_]) -> Array:
    """Return for class j the sum of the j - 1 largest scores: largest where j - 1 is the number of scores above 0."""
    F = np.zeros((len(S), k))
    np.cumsum(-np.sort(-S, axis=1), axis=1, out=F[:, 1:])
    return F


def _votes(S: Array, k: int, trained: NDArray[np.bool_]) -> Array:
    """Return the votes: of a score above 0 for the first class of the pair, else for the second; none where the pair had no rows."""
    F = np.zeros((len(S), k))
    for at, (i, j) in enumerate(zip(*pairs_of(k), strict=True)):
        if trained[at]:
            F[:, i] += S[:, at] > 0.0
            F[:, j] += S[:, at] <= 0.0
    return F


class Scheme(NamedTuple):
    """One reduction."""

    problems: Callable[[int], int]  # the number of problems for k classes
    split: Callable[[Labels, Array, str], Split]  # from labels (n,), costs (n, k) and `PAIRS`
    join: Callable[[Array, int, NDArray[np.bool_]], Array]  # scores (n, k) from the problems', k, and which problems had rows (m,)


SCHEMES = {
    "ova": Scheme(lambda k: k, _weighted_one_versus_all, lambda S, k, trained: S),
    "ovo": Scheme(lambda k: k * (k - 1) // 2, _weighted_one_versus_one, _votes),
    "red_mc": Scheme(lambda k: k - 1, _red, _counted),
    "csosr": Scheme(lambda k: k, _one_sided_regression, lambda S, k, trained: -S),
    "csovo": Scheme(lambda k: k * (k - 1) // 2, _weighted_one_versus_one, _votes),
    "csova": Scheme(lambda k: k, _weighted_one_versus_all, lambda S, k, trained: S),
}
