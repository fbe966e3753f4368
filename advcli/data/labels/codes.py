"""Labels as codes: the classes of one label a row, and the sets of several, as learners take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

from ...core.arrays import checked_csr, is_sparse
from ...core.checks import at_least, refuse
from ...core.errors import ConfigError
from ...core.row_blocks import coded_by_parts
from ...core.typing import Labels
from .order import are_codes, refuse_codes_of_text, refuse_unordered

MOST_CLASSES = 1_000_000  # that a learner takes, since scores are stored for every class
MOST_EMPTY = 100_000  # classes beyond the number of rows, which cannot occur, that a learner takes


def coded(y: NDArray[Any], compact: bool = False) -> tuple[NDArray[Any], Labels]:
    """Return the labels that occur in y (n,), sorted, and their codes (n,); `ValueError` for one class alone.

    ``compact``: codes of four bytes, and no copy of the labels.
    """
    if y.dtype.kind not in "biuUS":  # one column of these is labels in any case, and the look at its values is longer than a small fit
        check_classification_targets(y)
    classes, codes = coded_by_parts(y) if compact else occurring(y)
    if len(classes) < 2:
        raise ValueError(f"y holds one class only ({classes[0]!r}); a classifier needs at least 2 classes")
    return classes, codes.astype(np.int32 if compact else np.intp, copy=False)


def occurring(y: NDArray[Any]) -> tuple[NDArray[Any], Labels]:
    """Return the labels that occur in y (n,), sorted, and the position of each one of y among them, as `numpy.unique` does.

    Whole numbers no further apart than there are rows are counted: sorting takes three to seven times as long, a twentieth of a small fit.
    """
    if y.dtype.kind in "iu" and len(y):
        least, largest = int(y.min()), int(y.max())
        if largest - least <= len(y) and largest <= np.iinfo(np.intp).max:
            offsets = y.astype(np.intp) - least
            occurs = np.bincount(offsets) > 0
            return (np.flatnonzero(occurs) + least).astype(y.dtype), (np.cumsum(occurs) - 1)[offsets]
    return np.unique(y, return_inverse=True)


def given_codes(y: NDArray[Any], n_classes: int, unlabelled: bool = False, compact: bool = False) -> Labels:
    """Return labels y (n,) that are codes 0..n_classes-1 already, with ``unlabelled`` also -1; `ConfigError` for others."""
    if y.dtype.kind not in "biuUS":
        check_classification_targets(y)
    refuse("n_classes", n_classes, at_least(2, MOST_CLASSES), f"a whole number from 2 to {MOST_CLASSES}, or None")
    if n_classes > len(y) + MOST_EMPTY:
        why = f"every class has weights and a score in every row, and at most {len(y)} classes occur; number those"
        raise ConfigError(f"n_classes={n_classes} is too many for {len(y)} rows: {why}")
    codes, least = np.asarray(y), -1 if unlabelled else 0
    if codes.dtype.kind not in "iu" or codes.min() < least or codes.max() >= n_classes:
        raise ConfigError(f"n_classes={n_classes} needs labels that are whole numbers {least}..{n_classes - 1}")
    return codes.astype(np.int32 if compact else np.intp)


def order_of(classes: NDArray[Any], own: list[Any] | None) -> list[Any] | None:
    """Return the order in which steps between classes are counted: the labels' own; None for numbers, whose order is the sorted one.

    `ConfigError` for text without an order, and for its codes by an ensemble of scikit-learn.
    """
    if own is None:
        refuse_unordered(classes)
        if are_codes(classes):
            refuse_codes_of_text(lambda: True)
    return own


def coded_sets(Y: Any, n_classes: int | None, empty_sets: bool) -> sparse.csr_array:
    """Return an array (n, k), 1 where a row has a label; `ValueError` for other numbers, and for an empty row unless ``empty_sets``."""
    Y = sparse.csr_array(checked_csr(Y, "y") if is_sparse(Y) else Y)
    Y.eliminate_zeros()
    Y.sum_duplicates()
    if not (Y.data == 1).all():
        raise ValueError("y of several columns must hold 0 and 1")
    if n_classes not in (None, Y.shape[1]):
        raise ConfigError(f"n_classes={n_classes}, but y has {Y.shape[1]} columns")
    empty = np.flatnonzero(np.diff(Y.indptr) == 0)
    if len(empty) and not empty_sets:
        raise ValueError(f"{len(empty)} rows of y have no label, the first is row {empty[0] + 1}; every row needs one")
    return Y
