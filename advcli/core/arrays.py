"""Dense arrays and sparse matrices: which of them rows are, either as the other's readers need them, and checks of what callers give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import DataError

if TYPE_CHECKING:
    from .typing import Array, Labels

MOST_COLUMNS = 2**31 - 1  # columns that compiled loops can count


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array of SciPy, of any format."""
    return hasattr(X, "tocsr")


def dense(X: Any) -> Any:
    """Return a matrix with all its zeros: a sparse one as an array, anything else as it is."""
    return X.toarray() if is_sparse(X) else X


def finite_table(values: Any, what: str) -> Array:
    """Return a table (n, m) of finite numbers, n and m at least 1, as float64; `DataError`, which calls it ``what``, for all else."""
    import numpy as np

    try:
        table = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{what} must be a table of numbers") from None
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise DataError(f"{what} must be a table of finite numbers with two axes, got shape {table.shape}")
    return table


def class_codes(y: Any, n: int, k: int) -> Labels:
    """Return the classes of n rows, whole numbers from 0 to k - 1; `DataError` for all else."""
    import numpy as np

    codes = np.asarray(y)
    if codes.shape != (n,) or codes.dtype.kind not in "iu" or not 0 <= codes.min() <= codes.max() < k:
        raise DataError(f"y must have a whole number from 0 to {k - 1}, the place of its class, for each of the {n} rows")
    return codes.astype(np.intp)


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
