"""Labels as people give them: the order that they have, and what each class weighs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d

from ..errors import ConfigError, nearest

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

_SHOWN = 6  # labels that a message writes out


def labels_of(X: Any, y: Any) -> NDArray[Any]:
    """Return the labels of rows X as scikit-learn validates them: one for each row, in one dimension; numbers must be finite."""
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    return np.asarray(y)


def own_order(y: Any) -> list[Any] | None:
    """Return the categories of an ordered pandas column or a polars Enum, lowest first; None for labels without an order of their own."""
    if hasattr(y, "iloc") and getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        y = y.iloc[:, 0]
    kind: Any = getattr(y, "dtype", None)
    if hasattr(kind, "categories") and (getattr(kind, "ordered", False) or type(kind).__name__ == "Enum"):
        return list(kind.categories)
    return None


def in_order(classes: NDArray[Any], codes: Labels, order: Any) -> tuple[NDArray[Any], Labels]:
    """Return the labels of ``order``, those that do not occur too, and the codes by it.

    Parameters
    ----------
    classes : ndarray
        The labels that occur, sorted.
    codes : ndarray (n,)
        Positions in ``classes``.
    order : sequence
        Labels from the lowest to the highest.

    Raises
    ------
    ConfigError
        ``order`` is no list of different labels, or lacks a label that occurs.
    """
    listed = np.asarray(order)
    if isinstance(order, str) or listed.ndim != 1 or len(np.unique(listed)) != len(listed):
        raise ConfigError(f"order={order} is not valid; it must list each label once, from the lowest to the highest")
    place = {label: at for at, label in enumerate(listed.tolist())}
    missing = [str(label) for label in classes.tolist() if label not in place]
    if missing:
        raise ConfigError(f"order lacks the labels {', '.join(missing[:_SHOWN])}: {nearest(missing[0], map(str, place))}")
    ranks = np.array([place[label] for label in classes.tolist()], dtype=np.intp)
    return listed, np.asarray(ranks[codes], dtype=np.intp)


def refuse_unordered(classes: NDArray[Any]) -> None:
    """Refuse labels that are text, which sorting would put in alphabetical order; numbers and dates have an order."""
    if classes.dtype.kind not in "UST" and not (classes.dtype.kind == "O" and any(isinstance(label, str) for label in classes.tolist())):
        return
    said = ", ".join(map(repr, classes.tolist()[:_SHOWN])) + (", ..." if len(classes) > _SHOWN else "")
    raise ConfigError(
        f"steps between classes are counted, and the labels {said} are text without an order: give order=[LOWEST,...,HIGHEST], "
        "or y as an ordered pandas Categorical or a polars Enum"
    )


def weighted_by_class(class_weight: Any, classes: NDArray[Any], codes: Labels, weights: Array | None) -> Array:
    """Return the weights of rows (n,) times those of their classes.

    Parameters
    ----------
    class_weight : mapping or "balanced"
        The weight of each label, at least 0; 1 for those that it leaves out. ``"balanced"``: n / (classes that occur x rows of the class),
        rows counted by their weights, so that all classes weigh the same and all rows together n.
    classes : ndarray (k,)
    codes : ndarray (n,)
        Positions in ``classes``.
    weights : ndarray (n,) or None
        How often rows occur.

    Raises
    ------
    ConfigError
        Neither of the two, a label that is no class, or a weight that is no finite number of at least 0.
    """
    counts = np.bincount(codes, weights=weights, minlength=len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        occurring = counts > 0
        each = np.zeros(len(classes))
        each[occurring] = counts.sum() / (occurring.sum() * counts[occurring])
    elif isinstance(class_weight, Mapping):
        each, place = np.ones(len(classes)), {label: at for at, label in enumerate(classes.tolist())}
        for label, weight in class_weight.items():
            if label not in place:
                raise ConfigError(f"class_weight names {label!r}, which is no class: {nearest(str(label), map(str, place))}")
            if isinstance(weight, bool) or not isinstance(weight, (int, float, np.number)) or not 0 <= float(weight) < np.inf:
                raise ConfigError(f"class_weight of {label!r} must be a finite number of at least 0, got {weight!r}")
            each[place[label]] = float(weight)
    else:
        raise ConfigError(f'class_weight={class_weight!r} is not valid; give "balanced" or a dict {{LABEL: WEIGHT}}')
    own: Array = each[codes]
    return own if weights is None else own * weights
