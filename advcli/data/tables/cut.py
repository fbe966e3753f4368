"""Continuous targets cut into ordered classes, once, on the whole data set.

Intervals are closed on the left and open on the right, the last one is closed. How the targets of the papers are cut stands in
`advcli.data.catalogue`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ConfigError, DataError, nearest

MOST_CLASSES = 10_000
"""Classes that a target is cut into at most."""

CUTS = ("none", "equal_width", "equal_frequency", "edges")


def equal_width(values: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    """Return the n_classes - 1 inner edges of equally wide intervals between the smallest and the largest value."""
    return np.linspace(values.min(), values.max(), n_classes + 1)[1:-1]


def equal_frequency(values: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    """Return the n_classes - 1 inner edges at the quantiles; equal values are never parted, so ties make classes uneven."""
    return np.quantile(values, np.arange(1, n_classes) / n_classes)


def cut_target(
    values: NDArray[Any], cut: str, n_classes: int | None, edges: Sequence[float] | None
) -> tuple[NDArray[np.intp], tuple[int, ...], list[str]]:
    """Cut continuous values into ordered classes.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Finite target values.
    cut : str
        ``equal_width``, ``equal_frequency`` or ``edges``.
    n_classes : int or None
        Number of intervals, for the first two.
    edges : sequence of float or None
        Strictly increasing inner edges, for the last.

    Returns
    -------
    codes : ndarray of intp, shape (n,)
        0-based class of every value; empty classes are dropped.
    levels : tuple of int
        The 1-based number of the interval of every class that occurs.
    notes : list of str
        The cut in words: intervals, sizes, empty classes.
    """
    if cut not in CUTS[1:]:
        raise ConfigError(f"dataset.cut={cut} is not a way to cut a target; {nearest(cut, CUTS)}")
    if cut == "edges":
        if not edges:
            raise ConfigError("dataset.cut=edges needs dataset.edges, the increasing inner edges, for example [10,20,30]")
        try:
            inner = np.asarray(list(edges), dtype=np.float64)
        except (TypeError, ValueError):
            raise ConfigError(f"dataset.edges={list(edges)} must be numbers") from None
        if not np.all(np.isfinite(inner)) or not np.all(np.diff(inner) > 0):
            raise ConfigError(f"dataset.edges={list(edges)} must be finite and strictly increasing")
    else:
        if isinstance(n_classes, bool) or not isinstance(n_classes, int) or n_classes < 2:
            raise ConfigError(f"dataset.cut={cut} needs dataset.n_classes, a whole number of at least 2 (is {n_classes})")
        if n_classes > MOST_CLASSES:
            raise ConfigError(f"dataset.n_classes={n_classes} is too many; a target is cut into {MOST_CLASSES} classes at most")
        if values.min() == values.max():
            raise DataError(f"the target has the same value {values.min():g} in every row; it cannot be cut into classes")
        inner = (equal_width if cut == "equal_width" else equal_frequency)(values, n_classes)
    k = len(inner) + 1
    interval = np.searchsorted(inner, values, side="right")
    counts = np.bincount(interval, minlength=k)
    occupied = np.flatnonzero(counts)
    codes = np.searchsorted(occupied, interval).astype(np.intp)
    levels = tuple((occupied + 1).tolist())
    text = ", ".join(f"{edge:.6g}" for edge in inner)
    notes = [f"target cut into {k} classes ({cut.replace('_', ' ')}), inner edges {text}; rows {', '.join(map(str, counts[occupied]))}"]
    if len(occupied) < k:
        empty = ", ".join(str(level + 1) for level in range(k) if not counts[level])
        notes.append(f"empty classes dropped: {empty} of 1 to {k}; {len(occupied)} classes remain")
    return codes, levels, notes
