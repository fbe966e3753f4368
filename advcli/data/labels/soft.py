"""Labels as distributions: what several people, or a model, say of a row instead of one label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _check_sample_weight

from ...core.arrays import is_sparse
from ...core.errors import DataError
from ...core.typing import Array, Labels

ROUNDING = 1e-3
"""How far a row of probabilities may sum from 1; what is within is rounding, and is divided out."""


def shares(table: Any, what: str = "y", place: Any = None, names: Any = None) -> tuple[Array, bool]:
    """Return distributions over k classes (n, k), and whether the table held votes.

    Parameters
    ----------
    table : array (n, k)
        Probabilities, rows that sum to 1; or votes, whole numbers that count who chose each class, which are divided by their sum.
    what, place, names : str, callable, sequence, optional
        What the table, row i and column j are called in a message.

    Raises
    ------
    DataError
        Fewer than two columns; cells that are no finite numbers of at least 0; rows that hold nothing, or do not sum to 1.

    Examples
    --------
    >>> from advcli.data.labels.soft import shares
    >>> shares([[3, 1], [0, 5]])
    (array([[0.75, 0.25],
           [0.  , 1.  ]]), True)
    """
    place = place or (lambda row: f"row {row + 1}")
    try:
        P = np.array(table, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise DataError(f"{what} of several columns must hold numbers: a probability, or a count of votes, for each class") from None
    if P.ndim != 2 or P.shape[1] < 2:
        raise DataError(f"{what} must have a column for each of at least 2 classes, got the shape {P.shape}")
    wrong = np.argwhere(~(np.isfinite(P) & (P >= 0.0)))
    if len(wrong):
        i, j = wrong[0].tolist()
        column = f"column {j + 1}" if names is None else f"column {names[j]!r}"
        raise DataError(f"{what}, {place(i)}, {column}, is {P[i, j]:g}; probabilities and votes are finite numbers of at least 0")
    with np.errstate(over="ignore"):
        total = P.sum(axis=1)
    if not total.all():
        raise DataError(f"{what}, {place(int(np.argmin(total)))}, holds no vote and no probability; give it one or remove the row")
    votes = not (P % 1.0).any()
    off = np.flatnonzero(~(np.abs(total - 1.0) <= ROUNDING))
    if off.size and not votes:
        i = int(off[0])
        raise DataError(f"{what}, {place(i)}, sums to {total[i]:g}, and probabilities sum to 1: divide each row by its sum")
    return np.where((total == 1.0)[:, None], P, P / total[:, None]), votes


def by_label(P: Array, weight: NDArray[Any] | None = None) -> tuple[Labels, Labels, Array | None]:
    """Return rows with one label each that together are rows with distributions P (n, k): places, codes and weights, (m,) each.

    Row i becomes a row for each class that P_i gives mass, whose weight is that mass times ``weight`` (n,). The weights are None, and the
    places 0..n-1, where all mass lies on one class in every row and there is no ``weight``.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.data.labels.soft import by_label
    >>> by_label(np.array([[0.75, 0.25], [0.0, 1.0]]))
    (array([0, 0, 1]), array([0, 1, 1]), array([0.75, 0.25, 1.  ]))
    """
    places, codes = np.nonzero(P)
    weights = P[places, codes]
    if len(places) == len(P):
        return places, codes, weight
    return places, codes, weights if weight is None else weights * np.asarray(weight)[places]


def is_soft(y: Any) -> bool:
    """Tell whether y has several columns, (n, k), so that its rows are no single labels."""
    if is_sparse(y):
        return False
    if not hasattr(y, "shape") and isinstance(y, list | tuple) and len(y):
        return np.ndim(y[0]) == 1 and len(y[0]) > 1
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return len(shape) == 2 and shape[1] > 1


def distributions(y: Any) -> tuple[Array, NDArray[Any]]:
    """Return the distributions of y (n, k), and its classes (k,): the names of the columns of a frame, else 0..k-1."""
    columns = list(getattr(y, "column_names", getattr(y, "columns", ())))  # a table of Arrow has arrays as columns
    P, _ = shares(y, names=columns or None)
    return P, np.asarray(columns) if columns else np.arange(P.shape[1])


def as_frame(y: Any) -> pd.DataFrame:
    """Return distributions y (n, k) as a frame whose columns are the classes."""
    P, names = distributions(y)
    return pd.DataFrame(P, columns=names)


def one_label_a_row(X: Any, y: Any, weight: Any = None, named: bool = False) -> tuple[Any, Any, Any]:
    """Return rows X (m, d) with one label each and weights that have the objective of rows with distributions y (n, k).

    The loss of a row with the distribution P is the expected one, sum_y P_y S(f, y), which is the loss of a row for every class that P
    gives mass, whose weight is that mass. So a fit to these rows minimises, and its certificate bounds,

        lambda/2 |theta|^2 + 1/n sum_i s_i sum_y P_iy S(f_i, y),    n = sum_i s_i,

    with s the ``weight`` (n,). A class that no row gives mass has a row of weight 0, unless the classes are ``named`` elsewhere.
    """
    P, names = distributions(y)
    X = X if hasattr(X, "shape") else np.asarray(X)
    check_consistent_length(X, P)
    if weight is not None:
        weight = _check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=True)
    places, codes, weights = by_label(P, weight)
    missing = np.setdiff1d(np.arange(0 if named else P.shape[1]), codes)
    if len(missing):
        places, codes = np.append(places, np.zeros_like(missing)), np.append(codes, missing)
        weights = np.append(np.ones(len(P)) if weights is None else weights, np.zeros(len(missing)))
    return X if np.array_equal(places, np.arange(len(P))) else _safe_indexing(X, places), names[codes], weights
