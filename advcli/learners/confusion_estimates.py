"""Confusion matrices C[p, q] = P(label p is seen | the true class is q), estimated from rows with noisy labels alone.

anchors  Column q is the estimated distribution of seen labels at the row whose P(q is seen) is the 97th percentile of all rows, as if that
         row were surely of class q (Patrini, Rozza, Menon, Nock & Qu 2017, CVPR).
joint    Rows that are seen as p and look like q, where their cross-fitted P(q is seen) reaches the mean of that number over the rows seen
         as q, are counted, and the counts are scaled to the shares of the labels seen (Northcutt, Jiang & Chuang 2021, JAIR 70).
hoc      The labels of a row and of its two nearest neighbours, taken to share their true class, agree as often as first-, second- and
         third-order equations in C and the shares p of the classes say: c1_a = sum_q p_q C_aq, c2_ab = sum_q p_q C_aq C_bq and c3_abc
         likewise; C and p solve them by least squares (Zhu, Song & Liu 2021, PMLR 139).

Each is a function of rows X (n, d), codes y (n,) and k, and every class must have rows. The classes of a solution are told apart by the
assumption that a class is seen as itself more often than another class is.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors

from ..core.errors import DataError
from ..core.typing import Array, Labels

PERCENTILE = 97.0
"""Percentile of the estimated probabilities at which the row of `anchors` stands: the largest may be an outlier."""
FOLDS = 5
CHANCE = 0.5
"""Least excess of agreeing labels over chance, in units of sqrt(largest share / n): labels drawn without a look at rows stay below."""
STARTS = 4
"""Starts of `hoc`: the best of several solutions counts, and their disagreement says that the counts identify no matrix."""


def _model() -> Any:
    return LogisticRegression(C=1.0, max_iter=2000)


def anchors(X: Any, y: Labels, k: int) -> Array:
    """Return C (k, k) from the rows that look most like each class."""
    P = _model().fit(X, y).predict_proba(X)
    order = np.argsort(P, axis=0, kind="stable")
    return P[order[min(len(P), int(np.ceil(PERCENTILE / 100.0 * len(P)))) - 1]].T


def joint(X: Any, y: Labels, k: int) -> Array:
    """Return C (k, k) from counts of confident rows."""
    folds = StratifiedKFold(min(FOLDS, int(np.bincount(y).min())), shuffle=True, random_state=0)
    P = cross_val_predict(_model(), X, y, cv=folds, method="predict_proba")
    level = np.array([P[y == q, q].mean() for q in range(k)])
    confident = np.where(level <= P, P, -1.0)
    looks = confident.argmax(axis=1)
    sure = confident.max(axis=1) >= 0.0
    counts = np.zeros((k, k))
    np.add.at(counts, (y[sure], looks[sure]), 1.0)
    counts[np.arange(k), np.arange(k)] += counts.sum(axis=1) == 0.0  # a label without a confident row is taken as right
    scaled = counts / counts.sum(axis=1, keepdims=True) * np.bincount(y, minlength=k)[:, None]
    scaled[np.arange(k), np.arange(k)] += scaled.sum(axis=0) == 0.0
    return np.asarray(scaled / scaled.sum(axis=0))


def hoc(X: Any, y: Labels, k: int) -> Array:
    """Return C (k, k) from how often labels of neighbours agree; `DataError` where they agree no more than by chance."""
    _, places = NearestNeighbors(n_neighbors=3).fit(X).kneighbors(X)
    own = places == np.arange(len(y))[:, None]
    own[~own.any(axis=1), 2] = True  # among equal rows the row itself may be missing
    beside = places[~own].reshape(len(y), 2)
    counts = np.zeros((k, k, k))
    np.add.at(counts, (y, y[beside[:, 0]], y[beside[:, 1]]), 1.0)
    third = np.mean([counts.transpose(order) for order in permutations(range(3))], axis=0) / len(y)
    second, first = third.sum(axis=2), third.sum(axis=(1, 2))
    excess = np.linalg.svd(second - np.outer(first, first), compute_uv=False)
    if k > 1 and excess[k - 2] <= CHANCE * np.sqrt(first.max() / len(y)):
        raise DataError(
            "confusion=hoc: the labels of neighbours agree no more than by chance for some classes, so their counts identify no matrix: "
            "choose confusion=joint or anchors"
        )
    return solve_counts(first, second, third)[0]


def solve_counts(first: Array, second: Array, third: Array) -> tuple[Array, Array, float]:
    """Return C (k, k), p (k,) and the sum of squares that is left, for counts c1 (k,), c2 (k, k) and c3 (k, k, k)."""
    k = len(first)

    def unpacked(flat: Array) -> tuple[Array, Array]:
        logits = flat.reshape(k + 1, k)
        E = np.exp(logits - logits.max(axis=1, keepdims=True))
        E /= E.sum(axis=1, keepdims=True)
        return E[:k].T, E[k]  # columns of C are distributions

    def squares(flat: Array) -> tuple[float, Array]:
        C, p = unpacked(flat)
        weighted = C * p
        lost1, lost2 = weighted.sum(axis=1) - first, weighted @ C.T - second
        pairs = (C[:, None, :] * C[None, :, :]).reshape(k * k, k)
        lost3 = (pairs @ weighted.T).reshape(k, k, k) - third
        # each order weighs by its number of equations, so that none drowns
        scale = np.array([k, k * k, k**3], dtype=float)
        value = scale[0] * (lost1**2).sum() + scale[1] * (lost2**2).sum() + scale[2] * (lost3**2).sum()
        inner = lost3.reshape(k * k, k)
        slope_C = 2.0 * p * (scale[0] * lost1[:, None] + 2.0 * scale[1] * lost2 @ C + 3.0 * scale[2] * (inner.T @ pairs))
        slope_p = 2.0 * (
            scale[0] * C.T @ lost1 + scale[1] * np.einsum("aq,ab,bq->q", C, lost2, C) + scale[2] * np.einsum("cq,mq,mc->q", C, pairs, inner)
        )
        rows = np.vstack([C.T * (slope_C.T - (C * slope_C).sum(axis=0)[:, None]), p * (slope_p - p @ slope_p)])
        return float(value), rows.ravel()

    found = []
    for start in range(STARTS):
        logits = np.vstack([(1.5 + start) * np.eye(k), np.log(np.maximum(first, 1e-3))])
        solved = minimize(
            squares, logits.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-12}
        )
        found.append((float(solved.fun), solved.x))
    value, flat = min(found, key=lambda each: each[0])
    C, p = unpacked(flat)
    _, order = linear_sum_assignment(-C)  # the counts know the classes up to their order
    return C[:, order], p[order], value


ESTIMATES: dict[str, Callable[[Any, Labels, int], Array]] = {"anchors": anchors, "joint": joint, "hoc": hoc}


def estimated(name: str, X: Any, y: Labels, k: int) -> Array:
    """Return the estimate of that name; `DataError` for a label without two rows, or too few rows."""
    rows = np.bincount(y, minlength=k)
    if len(y) < 3 * k or rows.min() < 2:
        raise DataError(
            f"confusion={name} needs two rows of each label seen, and three a class; label {int(rows.argmin())} has {int(rows.min())}"
        )
    return ESTIMATES[name](X, y, k)
