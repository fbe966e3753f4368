"""Groups of rows that are one example, such as the tokens of a sentence: a group's rows stand together, and a column names the group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError

Starts = NDArray[np.int64]
Numbers = NDArray[np.float64]


def group_starts(groups: Any, n: int) -> Starts:
    """Return the first row of every group in ``groups`` (n,), and n, shape (g + 1,); `DataError` where a group goes on after another."""
    groups = np.asarray(groups)
    if groups.shape != (n,) or n == 0:
        raise DataError(f"groups must name the group of each of {n} rows, at least one; they have the shape {groups.shape}")
    start = np.append(np.flatnonzero(np.append(True, groups[1:] != groups[:-1])), n).astype(np.int64)
    row = interrupted(groups, start)
    if row is not None:
        raise DataError(f"group {groups[row]!s} goes on in row {row + 1} after another has begun; the rows of a group must stand together")
    return start


def interrupted(groups: NDArray[Any], start: Starts) -> int | None:
    """Return the first row at which a group goes on after another has begun (`group_starts`); None where there is none."""
    _, first = np.unique(groups[start[:-1]], return_index=True)
    again = np.setdiff1d(np.arange(len(start) - 1), first)
    return int(start[again[0]]) if len(again) else None


def rows_of(start: Starts, chosen: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rows of some groups, one group after the other."""
    sizes = np.diff(start)[chosen]
    before = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return (np.repeat(start[chosen], sizes) + np.arange(int(sizes.sum())) - before).astype(np.intp)


def accepted_errors(margin: Any, wrong: Any) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return what is wrong among the rows of largest margin, from margins (n,) and whether each row is wrong (n,).

    The m different margins from the largest down, the rows of at least each (m,), the wrong ones among them (m,); and the expected number
    of wrong ones among the first i = 1..n rows (n,), where a group of equal margin comes in random order.
    """
    values, group = np.unique(-margin, return_inverse=True)
    size = np.bincount(group).astype(np.float64)
    errors = np.bincount(group, weights=wrong)
    accepted, total = np.cumsum(size), np.cumsum(errors, dtype=np.float64)
    of = np.repeat(np.arange(len(values)), size.astype(np.intp))
    before = np.r_[0.0, accepted[:-1]], np.r_[0.0, total[:-1]]
    return -values, accepted, total, before[1][of] + (np.arange(1.0, len(margin) + 1.0) - before[0][of]) * (errors / size)[of]
