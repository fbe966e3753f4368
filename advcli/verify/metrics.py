"""Metrics of a row of results from the predictions that are possible: one for each test row, or several where rounding leaves it open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .bounds import Array

_CODES = ("error", "accuracy", "mae", "mse")

_ROWS: dict[str, Callable[[Array, Array], Array]] = {
    "accuracy": lambda y, z: (y == z).all(axis=1),
    "error": lambda y, z: (y != z).any(axis=1),
    "hamming": lambda y, z: (y != z).mean(axis=1),
    "jaccard": lambda y, z: _ratio((y * z).sum(axis=1), np.maximum(y, z).sum(axis=1)),
    "instance_f1": lambda y, z: _ratio(2.0 * (y * z).sum(axis=1), (y + z).sum(axis=1)),
}
"""Measures of sets whose mean over rows is the metric."""


def _ratio(part: Array, whole: Array) -> Array:
    """Return shares, 1 of nothing."""
    return np.where(whole > 0.0, part / np.maximum(whole, 1.0), 1.0)


def range_of(metric: str, possible: Any, y: Any) -> tuple[float, float] | None:
    """Return the least and the largest value that a metric can have; None for one that is not judged.

    Parameters
    ----------
    metric : str
    possible : ndarray of bool (n, k), or sequence of n arrays (c, k)
        Which classes, or which sets of labels, may be the prediction of every row.
    y : ndarray of int (n,), or csr_array (n, k)
        The truth.
    """
    if isinstance(possible, np.ndarray):
        if metric not in _CODES:
            return None
        codes = np.arange(possible.shape[1])
        distance = np.abs(codes[:, None] - codes)
        table = {"error": distance > 0, "accuracy": distance == 0, "mae": distance, "mse": distance**2}[metric]
        each = table[:, y].T.astype(float)
        least, most = np.where(possible, each, np.inf).min(axis=1), np.where(possible, each, -np.inf).max(axis=1)
        return float(least.sum()) / len(y), float(most.sum()) / len(y)
    return _range_of_sets(metric, possible, y.toarray().astype(np.float64))


def _range_of_sets(metric: str, possible: Sequence[Array], Y: Array) -> tuple[float, float] | None:
    if metric in _ROWS:
        owner = np.repeat(np.arange(len(Y)), [len(each) for each in possible])
        each = _ROWS[metric](Y[owner], np.concatenate(possible)).astype(np.float64)
        first = np.searchsorted(owner, np.arange(len(Y)))
        return float(np.minimum.reduceat(each, first).mean()), float(np.maximum.reduceat(each, first).mean())
    if metric not in ("micro_f1", "macro_f1") or any(len(each) > 1 for each in possible):
        return None
    Z = np.concatenate(possible)
    both, total = (Y * Z).sum(axis=0), (Y + Z).sum(axis=0)
    if metric == "micro_f1":
        value = 2.0 * both.sum() / total.sum() if total.any() else 0.0
    else:
        value = float(np.mean(2.0 * both[total > 0] / total[total > 0])) if total.any() else 0.0
    return float(value), float(value)
