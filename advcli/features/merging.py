"""Rows of X before a fit: equal rows become one row of their summed weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.arrays import is_sparse
from ..core.compiled import kernels
from ..core.typing import Array, Labels

_MERGE_LIMIT = 1_000_000  # entries of X up to which looking for equal rows costs little beside the fit


def equal_rows(X: Any, tail: Array) -> tuple[Labels, Labels] | None:
    """Return a row of every set of equal rows of X and ``tail`` (n, m), in one canonical order, and every row's set; None for large X."""
    if is_sparse(X):
        if X.nnz > _MERGE_LIMIT // 10:
            return None
        rows = zip(X.indptr[:-1], X.indptr[1:], tail, strict=True)
        keys: Any = np.array([X.indices[a:b].tobytes() + X.data[a:b].tobytes() + end.tobytes() for a, b, end in rows], dtype=object)
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return first, inverse
    if X.size > _MERGE_LIMIT:
        return None
    first, inverse = np.empty((2, len(X)), dtype=np.intp)
    X, tail = (np.ascontiguousarray(part, dtype=np.float64) for part in (X, tail))
    return first[: kernels.equal_rows.sets(X, tail, first, inverse)], inverse


def summed(inverse: Labels, weights: Array | None) -> Array | None:
    """Return the summed weight of every set of rows; None where all are 1."""
    counts = np.bincount(inverse, weights=weights).astype(np.float64)
    return None if bool((counts == 1.0).all()) else counts


def merge_rows(
    X: Any, y: Labels, weights: Array | None, cost: Array | None = None
) -> tuple[Any, Labels, Array | None, Array | None, Labels]:
    """Return X, y, sample weights and cost weights with equal rows of equal label and cost merged, in one canonical order.

    Large X only loses its rows of weight 0. A row of weight 2 and a row given twice are then the same problem to the last bit, and the
    order of the rows cannot move the result. The last array (n,) holds the row of the result that each given row became, -1 for none.
    """

    def take(rows: Labels, weights: Array | None) -> tuple[Any, Labels, Array | None, Array | None]:
        return X[rows], y[rows], weights, None if cost is None else cost[rows]

    weighed = None if weights is None or weights.all() else np.flatnonzero(weights)
    n = len(y)
    if weighed is not None:
        X, y, weights, cost = take(weighed, weights[weighed])  # type: ignore[index]
    tail = y[:, None].astype(np.float64) if cost is None else np.column_stack([y, cost])
    first, became = equal_rows(X, tail) or (None, np.arange(len(y)))
    if first is not None:
        X, y, weights, cost = take(first, summed(became, weights))
    if weighed is not None:
        spread = np.full(n, -1)
        spread[weighed] = became
        became = spread
    return X, y, weights, cost, became


def over_all_rows(coefficients: Array, rows: Labels) -> Array:
    """Return coefficients of merged rows as coefficients of all rows: the first of equal rows gets the coefficient, the others 0.

    ``rows`` (n,) are the rows that `merge_rows` made of them, -1 for none.
    """
    held = np.flatnonzero(rows >= 0)
    merged, first = np.unique(rows[held], return_index=True)
    spread = np.zeros((len(rows), *coefficients.shape[1:]))
    spread[held[first]] = coefficients[merged]
    return spread
