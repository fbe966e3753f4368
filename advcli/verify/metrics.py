"""Metrics of a row of results from the predictions that are possible: one for each test row, or several where rounding leaves it open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.typing import Array

_ROWS: dict[str, Callable[[Array, Array], Array]] = {
    "accuracy": lambda y, z: (y == z).all(axis=1),
    "error": lambda y, z: (y != z).any(axis=1),
    "hamming": lambda y, z: (y != z).mean(axis=1),
    "jaccard": lambda y, z: _ratio((y * z).sum(axis=1), np.maximum(y, z).sum(axis=1)),
    "instance_f1": lambda y, z: _ratio(2.0 * (y * z).sum(axis=1), (y + z).sum(axis=1)),
}
"""Measures of sets whose mean over rows is the metric."""
OF_COSTS = ("cost", "savings")
"""Metrics that read what predictions cost."""
_OF_ORDER = ("mae", "mse", "accuracy_within_one", "amae", "mmae", "amse", "kendall_tau", "quadratic_kappa")
"""Metrics in which an abstention has no place: they are nan where there is one."""


def _ratio(part: Array, whole: Array) -> Array:
    """Return shares, 1 of nothing."""
    return np.where(whole > 0.0, part / np.maximum(whole, 1.0), 1.0)


def range_of(metric: str, possible: Any, y: Any, facts: Mapping[str, Any] | None = None) -> tuple[float, float] | None:
    """Return the least and the largest value that a metric can have; None for a metric that is not judged.

    ``possible`` (n, l) says which classes may be the prediction of every row; the last of l = k + 1 is to abstain. For sets of labels it is
    a list of arrays (c, k) of the sets that may be predicted. y are the true codes (n,), sets of labels, a csr_array (n, k), or what every
    prediction costs (n, l). ``facts`` are what some metrics need: ``alpha``, the cost of abstaining, ``cost_matrix`` (l, k), ``n_classes``,
    without which there are l, ``groups``, the sequence of every row, and ``right``, which words have the right relation at the true head
    for certain and which may have it, (n,) each.
    """
    if not isinstance(possible, np.ndarray):
        return _range_of_sets(metric, possible, y.toarray().astype(np.float64))
    facts = {"n_classes": possible.shape[1], **(facts or {})}
    costs, y = (y, y.argmin(axis=1)) if y.ndim == 2 else (None, y)
    worth = costs if metric in OF_COSTS and costs is not None else _of_codes(metric, y, possible.shape[1], facts)
    k = int(facts["n_classes"])
    if metric in _OF_ORDER and possible[:, k:].any():
        return (np.nan, np.nan) if (possible[:, k:].any(axis=1) & ~possible[:, :k].any(axis=1)).any() else None
    if worth is not None and worth.shape == possible.shape:
        least, most = np.where(possible, worth, np.inf).min(axis=1), np.where(possible, worth, -np.inf).max(axis=1)
        return _said_as(metric, float(least.sum()) / len(y), float(most.sum()) / len(y), worth)
    if metric == "labelled_attachment" and facts.get("right") is not None:
        right = possible[np.arange(len(y)), y]
        sure, may = facts["right"]
        return float((right & (possible.sum(axis=1) == 1) & sure).mean()), float((right & may).mean())
    if metric == "whole_trees" and facts.get("groups") is not None:
        right = possible[np.arange(len(y)), y]
        first = np.flatnonzero(np.append(True, facts["groups"][1:] != facts["groups"][:-1]))
        ends = [np.logical_and.reduceat(rows, first) for rows in (right & (possible.sum(axis=1) == 1), right)]
        return float(ends[0].mean()), float(ends[1].mean())
    if metric not in _WHOLE or (possible.sum(axis=1) != 1).any():
        return None
    value = float(_WHOLE[metric](y, possible.argmax(axis=1), k))
    return value, value


def _said_as(metric: str, least: float, most: float, worth: Array) -> tuple[float, float] | None:
    """Return the range of a mean as the range of the metric, which may be a share of what the best constant prediction costs."""
    if metric != "savings":
        return least, most
    constant = float(worth.mean(axis=0).min())
    return (1.0 - most / constant, 1.0 - least / constant) if constant > 0.0 else (np.nan, np.nan)


def _of_codes(metric: str, y: Any, l: int, facts: Mapping[str, Any]) -> Array | None:
    """Return what the predictions (n, l) are worth at labels y, where the metric is the mean of that; else None."""
    k, codes = int(facts["n_classes"]), np.arange(l)[:, None]
    distance = np.abs(codes - np.arange(k))
    tables: dict[str, Any] = {
        "error": distance > 0,
        "accuracy": distance == 0,
        "unlabelled_attachment": distance == 0,
        "mae": distance,
        "mse": distance**2,
        "accuracy_within_one": distance <= 1,
        "abstain_rate": np.broadcast_to(codes >= k, (l, k)),
        **dict.fromkeys(OF_COSTS, facts.get("cost_matrix")),
    }
    if facts.get("alpha") is not None:
        tables["abstention_loss"] = np.where(codes >= k, facts["alpha"], distance > 0)
    table = tables.get(metric)
    return None if table is None or len(table) < l else np.asarray(table)[:l, y].T.astype(float)


# ---- metrics of all predictions together: labels y, predictions z, number of classes ------------------------------------------------
def _class_errors(y: Any, z: Any, k: int, power: int) -> Array:
    """Return the mean of the power of the distance within each class that has rows."""
    return np.array([np.mean(np.abs(y[y == label] - z[y == label]) ** power) for label in range(k) if (y == label).any()])


def _accepted(y: Any, z: Any, k: int) -> float:
    return float((y == z)[z < k].mean()) if (z < k).any() else np.nan


def _kappa(y: Any, z: Any, k: int) -> float:
    counts = _table(y, z, k) / len(y)
    squares = (np.arange(float(k))[:, None] - np.arange(float(k))) ** 2
    by_chance = float((np.outer(counts.sum(axis=1), counts.sum(axis=0)) * squares).sum())
    return 1.0 - float((counts * squares).sum()) / by_chance if by_chance else 0.0


def _kendall(y: Any, z: Any, k: int) -> float:
    counts = _table(y, z, k)
    sign = np.sign(np.arange(k)[:, None] - np.arange(k)).astype(float)
    agreeing = float((counts * (sign @ counts @ sign.T)).sum())  # pairs in the same order less pairs in the other
    untied = [float(len(y) ** 2 - (counts.sum(axis=axis) ** 2).sum()) for axis in (0, 1)]
    return agreeing / (untied[0] * untied[1]) ** 0.5 if all(untied) else 0.0


def _table(y: Any, z: Any, k: int) -> Array:
    """Return how many rows have each pair of a label and a prediction, (k, k)."""
    counts = np.zeros((k, k))
    np.add.at(counts, (y, z), 1.0)
    return counts


def _confusion(y: Any, z: Any, k: int) -> float:
    shares = np.zeros((max(k, int(z.max(initial=0)) + 1), k))
    np.add.at(shares, (z, y), 1.0)
    shares /= np.maximum(shares.sum(axis=0), 1.0)
    np.fill_diagonal(shares, 0.0)
    return float(np.sqrt((shares**2).sum()))


_WHOLE: dict[str, Callable[[Any, Any, int], float]] = {
    "accuracy_accepted": _accepted,
    "amae": lambda y, z, k: float(_class_errors(y, z, k, 1).mean()),
    "mmae": lambda y, z, k: float(_class_errors(y, z, k, 1).max()),
    "amse": lambda y, z, k: float(_class_errors(y, z, k, 2).mean()),
    "kendall_tau": _kendall,
    "quadratic_kappa": _kappa,
    "confusion_rate": _confusion,
    "confusion_rate_scaled": lambda y, z, k: _confusion(y, z, k) / k**0.5,
}


def _range_of_sets(metric: str, possible: Sequence[Array], Y: Array) -> tuple[float, float] | None:
    if metric in _ROWS:
        owner = np.repeat(np.arange(len(Y)), [len(sets) for sets in possible])
        worth = _ROWS[metric](Y[owner], np.concatenate(possible)).astype(np.float64)
        first = np.searchsorted(owner, np.arange(len(Y)))
        return float(np.minimum.reduceat(worth, first).mean()), float(np.maximum.reduceat(worth, first).mean())
    if metric not in ("micro_f1", "macro_f1") or any(len(sets) > 1 for sets in possible):
        return None
    Z = np.concatenate(possible)
    both, total = (Y * Z).sum(axis=0), (Y + Z).sum(axis=0)
    if metric == "micro_f1":
        value = 2.0 * both.sum() / total.sum() if total.any() else 0.0
    else:
        value = float(np.mean(2.0 * both[total > 0] / total[total > 0])) if total.any() else 0.0
    return float(value), float(value)
