"""Labels as people give them: the order that they have, and what each class weighs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d

from ...core.checks import NOT_NEGATIVE, refuse_parameter
from ...core.errors import ConfigError, DataError, UnknownNameError, nearest
from ...core.typing import Array, Labels

_SHOWN = 6  # labels that a message writes out


def labels_of(X: Any, y: Any) -> NDArray[Any]:
    """Return the labels of rows X as scikit-learn validates them: one for each row, in one dimension; numbers must be finite."""
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    return np.asarray(y)


def plain_labels(y: Any) -> Any:
    """Return labels as they are; whole numbers of a nullable or Arrow type of pandas as such, which scikit-learn would make floats.

    `DataError` for a gap among labels that are no plain numbers: None, NA, a null of polars or Arrow.
    """
    kind: Any = getattr(y, "dtype", None)
    if getattr(y, "ndim", 1) != 1 or (isinstance(kind, np.dtype) and kind.kind != "O"):
        return y
    gaps = next((getattr(y, name)() for name in ("isna", "is_null") if hasattr(y, name)), None)
    if gaps is None and isinstance(y, np.ndarray):
        gaps = [label is None for label in y.tolist()]
    missing = [] if gaps is None else np.flatnonzero(np.asarray(gaps, dtype=bool)).tolist()
    if len(missing):
        raise DataError(f"y has no label in row {missing[0] + 1}; give it one or remove the row")
    if hasattr(y, "iloc") and getattr(kind, "kind", "") in ("i", "u", "b"):
        return y.to_numpy({"i": np.int64, "u": np.uint64, "b": np.bool_}[kind.kind])
    return y


def own_order(y: Any) -> list[Any] | None:
    """Return the categories of an ordered pandas column or a polars Enum, lowest first; None for labels without an order of their own."""
    if hasattr(y, "iloc") and getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        y = y.iloc[:, 0]
    kind: Any = getattr(y, "dtype", None)
    if hasattr(kind, "categories") and (getattr(kind, "ordered", False) or type(kind).__name__ == "Enum"):
        return list(kind.categories)
    return None


def codes_of(y: Any, labels: NDArray[Any]) -> Labels:
    """Return labels y (n,) as positions in the labels of a fit (k,); `ConfigError` for an unknown label, such as text among numbers."""
    place = {label: code for code, label in enumerate(labels.tolist())}
    cells = np.asarray(y).ravel().tolist()
    strange = next((row for row, label in enumerate(cells) if label not in place), None)
    if strange is not None:
        raise ConfigError(f"y holds {cells[strange]!r} in row {strange + 1}, which is not a class of the fit; it has {_said(labels)}")
    return np.array([place[label] for label in cells], dtype=np.intp)


def sorting(labels: NDArray[Any]) -> Labels | None:
    """Return the places (k,) of labels in sorted order; None where they are sorted, or of types that have no order among themselves."""
    try:
        places = np.argsort(labels, kind="stable")
    except TypeError:
        return None
    return None if (places == np.arange(len(labels))).all() else np.asarray(places, dtype=np.intp)


def in_order(classes: NDArray[Any], codes: Labels, order: Any) -> tuple[NDArray[Any], Labels]:
    """Return all labels of ``order``, lowest first, whether they occur or not, and the codes (n,) by it; ``classes`` occur, sorted.

    Let ``order`` be text and ``classes`` 0..k-1, k the length of ``order``. Then the classes are places of its labels in sorted order, by
    which an ensemble of scikit-learn replaced them; the returned labels are then such places.
    """
    listed = np.asarray(order)
    if isinstance(order, str) or listed.ndim != 1 or len(np.unique(listed)) != len(listed):
        raise ConfigError(f"order={order} is not valid; it must list each label once, from the lowest to the highest")
    text, coded = listed.dtype.kind not in "biufc", classes.dtype.kind in "iu"
    if text and coded and np.array_equal(classes, np.arange(len(listed))):
        listed = np.argsort(np.argsort(listed))
    place = {label: rank for rank, label in enumerate(listed.tolist())}
    missing = [str(label) for label in classes.tolist() if label not in place]
    if missing:
        codes_of = f"; where these are codes of an ensemble of scikit-learn, y must have all {len(listed)} labels" if text and coded else ""
        raise UnknownNameError(f"order lacks the labels {', '.join(missing[:_SHOWN])}: {nearest(missing[0], map(str, place))}{codes_of}")
    ranks = np.array([place[label] for label in classes.tolist()], dtype=np.intp)
    return listed, np.asarray(ranks[codes], dtype=np.intp)


def _encoded_above() -> Any:
    """Return the labels of text that scikit-learn, where it calls this fit in this thread, has replaced by codes; None without such."""
    frame = inspect.currentframe()
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("sklearn."):
            caller = frame.f_locals.get("self")
            bagging = caller if type(caller).__name__ == "BaggingClassifier" else None
            for encoder in (frame.f_locals.get("le"), getattr(caller, "le_", None), getattr(caller, "_label_encoder", None), bagging):
                labels = getattr(encoder, "classes_", None)
                if isinstance(labels, np.ndarray) and _is_text(labels):
                    return labels
        frame = frame.f_back
    return None


def are_codes(classes: NDArray[Any]) -> bool:
    """Tell whether classes are whole numbers 0..k-1."""
    return classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes)))


def refuse_codes_of_text(counts_steps: Callable[[], bool]) -> None:
    """Refuse the codes that a meta-estimator of scikit-learn gives for text where steps between classes are counted: their order is the
    alphabet's.
    """
    labels = _encoded_above()
    if labels is not None and counts_steps():
        raise ConfigError(
            f"steps between classes are counted, and scikit-learn replaced the labels {_said(labels)} by codes in alphabetical order: "
            "give order=[LOWEST,...,HIGHEST]"
        )


def _is_text(classes: NDArray[Any]) -> bool:
    return classes.dtype.kind in "UST" or (classes.dtype.kind == "O" and any(isinstance(label, str) for label in classes.tolist()))


def _said(classes: NDArray[Any]) -> str:
    return ", ".join(map(repr, classes.tolist()[:_SHOWN])) + (", ..." if len(classes) > _SHOWN else "")


def refuse_unordered(classes: NDArray[Any]) -> None:
    """Refuse labels that are text, which sorting would put in alphabetical order; numbers and dates have an order."""
    if not _is_text(classes):
        return
    remedy = "give order=[LOWEST,...,HIGHEST], or y as an ordered pandas Categorical or a polars Enum"
    raise ConfigError(f"steps between classes are counted, and the labels {_said(classes)} are text without an order: {remedy}")


def weighted_by_class(class_weight: Any, classes: NDArray[Any], codes: Labels, weights: Array | None) -> Array:
    """Return the weights of rows (n,) times the weights of their classes; ``codes`` (n,) are positions in ``classes`` (k,).

    ``class_weight`` maps labels to weights of at least 0 (1 for labels that it leaves out), or is ``"balanced"``: n / (classes that occur x
    rows of the class), rows counted by their weights, so that all classes weigh the same and all rows together n.
    """
    counts = np.bincount(codes, weights=weights, minlength=len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        occurring = counts > 0
        by_class = np.zeros(len(classes))
        by_class[occurring] = counts.sum() / (occurring.sum() * counts[occurring])
    elif isinstance(class_weight, Mapping):
        by_class, place = np.ones(len(classes)), {label: code for code, label in enumerate(classes.tolist())}
        for label, weight in class_weight.items():
            if label not in place:
                raise UnknownNameError(f"class_weight names {label!r}, which is not a class: {nearest(str(label), map(str, place))}")
            refuse_parameter(f"class_weight of {label!r}", weight, NOT_NEGATIVE)
            by_class[place[label]] = float(weight)
    else:
        raise ConfigError(f'class_weight={class_weight!r} is not valid; give "balanced" or a dict {{LABEL: WEIGHT}}')
    by_row: Array = by_class[codes]
    return by_row if weights is None else by_row * weights
