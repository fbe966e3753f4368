"""Rows as scikit-learn validates them, without its validation where it would return them as they are; and rows with a constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from .arrays import checked_csr, is_sparse
from .checks import LARGEST, collected, refuse_huge
from .errors import DataError
from .row_blocks import BlockRows
from .stored_arrays import MOST_COLUMNS


def is_plain(X: Any, read: bool = True) -> bool:
    """Return whether scikit-learn and `refuse_huge` would return rows as they are; without ``read`` as far as shape and type tell."""
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not X.flags.c_contiguous or X.size == 0:
        return False
    return not read or bool(X.min() >= -LARGEST and X.max() <= LARGEST)  # false for nan too


def is_validated(X: Any, y: Any, read: bool = True) -> bool:
    """Return whether rows and labels are plain arrays that scikit-learn and `refuse_huge` would return as they are."""
    return type(y) is np.ndarray and y.dtype.kind in "biuUS" and is_plain(X, read) and y.shape == X.shape[:1]


def validated(estimator: Any, X: Any, *y: Any, read: bool = True, reset: bool = True) -> Any:
    """Return rows (and labels) as scikit-learn validates them, once the parts of a sparse matrix are known to fit each other.

    ``reset`` sets what the estimator knows of the columns, else they are compared with that. Without ``read`` the numbers of plain rows
    are checked elsewhere.
    """
    # what scikit-learn asks takes longer than a small fit
    if y and reset and is_validated(X, y[0], read):
        estimator.n_features_in_ = X.shape[1]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return X, *y
    columns = None if hasattr(estimator, "feature_names_in_") else getattr(estimator, "n_features_in_", None)
    if not reset and not y and is_plain(X) and X.shape[1] == columns:
        return X
    if sparse.issparse(X):
        X = checked_csr(X)
        if X.shape[1] > MOST_COLUMNS:
            raise DataError(f"X has {X.shape[1]} columns, rows have {MOST_COLUMNS} at most: leave out empty columns, or hash them to fewer")
    else:
        X = collected(X)
    result = validate_data(estimator, X, *y, reset=reset, accept_sparse="csr", dtype=np.float64, order="C")
    refuse_huge(result[0] if y else result, getattr(estimator, "feature_names_in_", None), "X")
    return result


def validate_blocks(estimator: Any, X: BlockRows, reset: bool = True) -> None:
    """Look at all numbers of rows that are read in blocks, as `validated` looks at the numbers of an array."""
    if X.constant:
        raise DataError("rows have a column of ones already; give them without, fit_intercept appends it")
    for part in [*X.parts()] or [slice(0, 0)]:
        raw = X.raw(part.start, part.stop)
        validate_data(estimator, raw, dtype=np.float64, order="C", reset=reset and part.start == 0)
        refuse_huge(raw, None, "X")


def with_constant(X: Any) -> Any:
    """Return rows X (n, d), dense, sparse or in blocks, with a last column of ones."""
    if isinstance(X, BlockRows):
        return X.with_constant()
    n, d = X.shape
    if is_sparse(X):
        stack: Any = sparse.hstack  # its stubs do not know estimators' X
        return stack([X, np.ones((n, 1))], format="csr")
    extended = np.empty((n, d + 1))
    extended[:, :d], extended[:, d] = X, 1.0
    return extended
