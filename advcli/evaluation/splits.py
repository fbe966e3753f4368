"""Train/test splits and folds: random and not stratified, as the papers state ("20 random splits")."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..core.groups import group_starts, rows_of
from ..results.tables import canonical_json

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def derive_seed(seed: int, *dimensions: str | int) -> int:
    """Return a seed in [0, 2^31) that depends on the experiment's seed and on named dimensions only, such as ``"split", "glass", 3``.

    The method is never a dimension of a split or fold, so every method sees the same ones; and no seed depends on how many
    random numbers something else has drawn, so neither order nor number of workers matters.
    """
    digest = hashlib.sha256(canonical_json([int(seed), *dimensions]).encode()).digest()
    return int.from_bytes(digest[:8], "big") % 2**31


@dataclass(frozen=True)
class SplitSeeds:
    """The seeds of one split: `derive_seed` of the experiment's seed, a purpose, the data set and the number of the split."""

    seed: int
    dataset: str
    split: int | str

    def of(self, purpose: str) -> int:
        """Return the seed of one purpose."""
        return derive_seed(self.seed, purpose, self.dataset, self.split)


def share_of(n: int, train_size: float) -> int:
    """Return floor(train_size n) in exact decimal arithmetic: 0.7 means 7/10, not the nearest double."""
    return math.floor(Fraction(Decimal(repr(float(train_size)))) * n)


def split_sizes(n: int, train_size: float, sizes: tuple[int, int] | None = None) -> tuple[int, int]:
    """Return the numbers of training and test rows of n; sizes printed in the papers win. `DataError` for an empty part or too few rows."""
    if sizes is not None:
        n_train, n_test = (int(size) for size in sizes)
    else:
        n_train = share_of(n, train_size)
        n_test = n - n_train
    if n_train < 1 or n_test < 1 or n_train + n_test > n:
        raise DataError(f"{n} rows cannot be split into {n_train} training and {n_test} test rows; change protocol.train_size")
    return n_train, n_test


def random_splits(n: int, n_splits: int, train_size: float, seed: int, dataset: str, sizes: tuple[int, int] | None = None) -> list[Split]:
    """Return random (training, test) rows, 0-based, in random order: membership drawn anew for each split, not stratified.

    Split j depends on (seed, dataset name, j) only: asking for more splits leaves the first ones as they are.
    """
    n_train, n_test = split_sizes(n, train_size, sizes)
    splits = []
    for number in range(n_splits):
        order = np.random.default_rng(derive_seed(seed, "split", dataset, number)).permutation(n).astype(np.intp)
        splits.append((order[:n_train], order[n_train : n_train + n_test]))
    return splits


def make_folds(n: int, folds: int, seed: int, dataset: str, stage: int) -> list[Split]:
    """Return shuffled folds (not stratified) of n training rows, as (fit, held-out) positions; each stage shuffles anew.

    They are scikit-learn's ``KFold(folds, shuffle=True)``, whose import takes half a second.
    """
    if n < folds:
        raise DataError(f"{n} training rows are too few for {folds} folds; lower protocol.folds or fix the hyper-parameters")
    order = np.random.RandomState(derive_seed(seed, "folds", dataset, stage)).permutation(n)
    return [(np.delete(np.arange(n), held), np.sort(held)) for held in np.array_split(order, folds)]


def keeping_groups(groups: NDArray[Any] | None, n: int, draw: Callable[[int], list[Split]]) -> list[Split]:
    """Return splits of ``n`` rows that keep groups whole: ``draw`` splits a number of rows, here of groups.

    The rows of a group follow each other, in their order, in the part that it falls into. Without groups it is ``draw(n)``.
    """
    if groups is None:
        return draw(n)
    start = group_starts(groups, n)
    return [(rows_of(start, one), rows_of(start, other)) for one, other in draw(len(start) - 1)]


def make_holdout(n: int, share: float, seed: int, dataset: str) -> Split:
    """Return a random split of n training rows into positions (to fit, a ``share`` held out); `DataError` if a part would be empty."""
    n_fit, _ = split_sizes(n, 1.0 - share)
    order = np.random.default_rng(derive_seed(seed, "holdout", dataset)).permutation(n).astype(np.intp)
    return order[:n_fit], order[n_fit:]
