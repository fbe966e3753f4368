"""Dense arrays and sparse matrices: which of them rows are, and either as the other's readers need them."""

from __future__ import annotations

from typing import Any

from .errors import DataError

MOST_COLUMNS = 2**31 - 1  # columns that compiled loops can count


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array of SciPy, of any format."""
    return hasattr(X, "tocsr")


def dense(X: Any) -> Any:
    """Return a matrix with all its zeros: a sparse one as an array, anything else as it is."""
    return X.toarray() if is_sparse(X) else X


def checked_csr(X: Any, what: str = "X") -> Any:
    """Return a sparse matrix as CSR that compiled loops can follow, X itself where it can, which is not changed; else `DataError`."""
    import numpy as np

    origin = X
    try:
        if X.ndim != 2:
            raise ValueError(f"it has {X.ndim} dimensions, not 2")
        if X.format in ("csr", "csc", "bsr"):
            if len(X.indptr) > 1 and np.diff(X.indptr).min() < 0:  # SciPy's check leaves this out where the last start is 0
                raise ValueError("index pointers must not fall")
            # a separate matrix around the same arrays: SciPy's check trims and converts in place
            X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
            X.check_format(full_check=True)
        elif X.format == "coo":
            X = type(X)((X.data, X.coords), shape=X.shape)  # checks the positions
        X = X.tocsr()
        X.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"{what} is no valid sparse matrix: {' '.join(str(error).split())}; build it again") from None
    if X.shape[1] > MOST_COLUMNS:
        raise DataError(f"{what} has {X.shape[1]} columns; the most is {MOST_COLUMNS}")
    return origin if origin.format == "csr" and len(origin.indices) == X.nnz and origin.indices.dtype == origin.indptr.dtype else X
