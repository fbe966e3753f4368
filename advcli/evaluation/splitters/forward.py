"""Splits in the order of time: every test part is later than all rows that a method has learned from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError
from ...data.dataset import Dataset
from ..part import Part
from ..splits import Split, share_of, split_sizes
from .base import SPLITTERS, FoldsOf, Splitter


@SPLITTERS.register("forward")
class ForwardSplits(Splitter):
    """Forward chaining: test parts of equal size, each predicted from all rows before it, in the order of ``dataset.time``.

    The first share ``protocol.train_size`` of the rows is in every training part; the rows after it are cut into the test parts. Rows of
    one time stay together: a border between them moves to the first of them, so that a test part is strictly later.

    References
    ----------
    Tashman (2000), "Out-of-sample tests of forecasting accuracy: an analysis and review", International Journal of Forecasting 16.
    """

    reads = needs = ("time",)
    grows = False

    def splits(self, dataset: Dataset) -> tuple[list[Split], list[str]]:
        """Return training parts that grow, and the test part after each."""
        self.refuse_sequences(dataset)
        n, count = dataset.X.shape[0], self.protocol.n_splits
        what = f"data set {dataset.name!r}: protocol.n_splits={count} forward splits"
        rest = n - share_of(n, self.protocol.train_size)
        size = rest // count
        if size < 1:
            raise DataError(f"{what} need a test row each, and {rest} rows are left; lower protocol.n_splits or protocol.train_size")
        chain, moved = chained(dataset.time, [n - size * left for left in range(count, 0, -1)], what, "protocol.n_splits")
        notes = [f"rows of one time stay together: {moved} of {count} borders between training and test rows moved to the first of them"]
        return chain, notes if moved else []

    def folds(self, part: Part, search: FoldsOf) -> list[Split]:
        """Return folds of a training part, each fitted to the rows before it."""
        return earlier_rows(self, part, search)


def earlier_rows(rule: Splitter, part: Part, search: FoldsOf) -> list[Split]:
    """Return folds of a training part in the order of time, each fitted to the rows before it; with a hold-out its last rows.

    As scikit-learn's TimeSeriesSplit has them: n rows are cut into folds + 1 blocks of n // (folds + 1) rows, the first one with the rest.
    """
    protocol, n = rule.protocol, part.X.shape[0]
    where = f"split {search.number}" if isinstance(search.number, int) else search.number
    folds = 1 if protocol.holdout is not None else protocol.folds
    what = f"data set {search.dataset!r}: {folds} folds in the order of time of the training part of {where}"
    if protocol.holdout is not None:
        borders = [split_sizes(n, 1.0 - protocol.holdout)[0]]
    else:
        size = n // (folds + 1)
        if size < 1:
            raise DataError(f"{what} need {folds + 1} rows, and it has {n}; lower protocol.folds")
        borders = [n - size * left for left in range(folds, 0, -1)]
    return chained(part.time, borders, what, "protocol.folds")[0]


def chained(time: Any, borders: list[int], what: str, key: str) -> tuple[list[Split], int]:
    """Return for each border, a position in the order of time, the rows before it and those up to the next one, and how many borders moved.

    ``what`` the parts are for and the ``key`` of their number are for the message where rows of one time leave a part without rows.
    """
    order: NDArray[Any] = np.argsort(time, kind="stable")
    ordered = np.asarray(time)[order]
    firsts = [int(np.searchsorted(ordered, ordered[border], side="left")) for border in borders]
    ends = [*firsts[1:], len(order)]
    for border, first, end in zip(borders, firsts, ends, strict=True):
        if first == 0 or first == end:
            alike = int((ordered == ordered[border]).sum())
            remedy = f"lower {key}, or give finer times"
            raise DataError(f"{what}: {alike} rows have one time, which stay together and leave a part without rows; {remedy}")
    moved = sum(border != first for border, first in zip(borders, firsts, strict=True))
    return [(order[:first].astype(np.intp), order[first:end].astype(np.intp)) for first, end in zip(firsts, ends, strict=True)], moved
