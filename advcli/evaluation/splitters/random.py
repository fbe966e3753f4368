"""Splits drawn at random: of rows, of rows class by class, and of groups of rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import is_sparse
from ...core.errors import DataError
from ...core.groups import group_starts, rows_of
from ...data.dataset import Dataset
from ..part import Part
from ..splits import Split, derive_seed, keeping_groups, random_splits, share_of, split_sizes
from .base import SPLITTERS, FoldsOf, Splitter


@SPLITTERS.register("random")
class RandomSplits(Splitter):
    """Membership drawn anew for each split, not stratified, as the papers state; sequences stay whole."""

    def splits(self, dataset: Dataset) -> tuple[list[Split], list[str]]:
        """Return `random_splits` of rows, or of sequences."""
        protocol, n = self.protocol, dataset.X.shape[0]
        notes = self.size_notes(dataset, n if dataset.groups is None else len(group_starts(dataset.groups, n)) - 1)
        if dataset.groups is not None:
            notes.append("random splits and folds keep sequences whole; their sizes count sequences")

        def draw(units: int) -> list[Split]:
            return random_splits(units, protocol.n_splits, protocol.train_size, self.seed, dataset.name, dataset.sizes)

        return keeping_groups(dataset.groups, n, draw), notes

    def size_notes(self, dataset: Dataset, units: int) -> list[str]:
        """Return the line about published sizes that differ from those that were asked for."""
        share = share_of(units, self.protocol.train_size)
        if dataset.sizes is None or (share, units - share) == tuple(dataset.sizes):
            return []
        return [
            f"the published sizes {dataset.sizes[0]}/{dataset.sizes[1]} win over protocol.train_size={self.protocol.train_size:g}; "
            "dataset.sizes=null frees them"
        ]


@SPLITTERS.register("stratified")
class StratifiedSplits(RandomSplits):
    """Random splits and folds in which every class has its share of each part (StratifiedShuffleSplit, StratifiedKFold of scikit-learn)."""

    def splits(self, dataset: Dataset) -> tuple[list[Split], list[str]]:
        """Return splits of the sizes of `random_splits`; the rows of split j depend on the seed, the data set and j alone."""
        self._refuse(dataset)
        protocol, n = self.protocol, dataset.X.shape[0]
        n_train, n_test = split_sizes(n, protocol.train_size, dataset.sizes)
        seeds = [derive_seed(self.seed, "stratified split", dataset.name, number) for number in range(protocol.n_splits)]
        return [self._one(dataset.y, n_train, n_test, seed) for seed in seeds], self.size_notes(dataset, n)

    def _refuse(self, dataset: Dataset) -> None:
        self.refuse_sequences(dataset)
        if is_sparse(dataset.y):
            raise DataError(
                f"protocol.splits=stratified is for rows with one label, {dataset.name} has several; use protocol.splits=random"
            )
        alone = [label for label, count in dataset.class_sizes().items() if count == 1]
        if alone:
            raise DataError(
                f"data set {dataset.name!r}: class {alone[0]} has one row, and protocol.splits=stratified needs one for each part; "
                "merge or remove it, or use protocol.splits=random"
            )

    def _one(self, y: Any, n_train: int, n_test: int, seed: int) -> Split:
        from sklearn.model_selection import StratifiedShuffleSplit

        splitter = StratifiedShuffleSplit(1, train_size=n_train, test_size=n_test, random_state=seed)
        try:
            ((train, test),) = splitter.split(np.empty((len(y), 0)), y)
        except ValueError as error:  # more classes than rows of a part
            raise DataError(f"protocol.splits=stratified: {str(error).splitlines()[0]}; use protocol.splits=random") from None
        return train.astype(np.intp), test.astype(np.intp)

    def folds(self, part: Part, search: FoldsOf) -> list[Split]:
        """Return folds, or the rows that are held out, with the shares of the classes."""
        from sklearn.model_selection import StratifiedKFold

        protocol, n = self.protocol, part.X.shape[0]
        if protocol.holdout is not None:
            n_fit, n_held = split_sizes(n, 1.0 - protocol.holdout)
            return [self._one(part.y, n_fit, n_held, derive_seed(search.seed, "stratified holdout", search.dataset))]
        seed = derive_seed(search.seed, "stratified folds", search.dataset, search.stage)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than folds is in some of them
            try:
                pairs = [*StratifiedKFold(protocol.folds, shuffle=True, random_state=seed).split(np.empty((n, 0)), part.y)]
            except ValueError as error:
                raise DataError(f"protocol.splits=stratified: {str(error).splitlines()[0]}; lower protocol.folds") from None
        return [(fit.astype(np.intp), held.astype(np.intp)) for fit, held in pairs]


@SPLITTERS.register("grouped")
class GroupedSplits(Splitter):
    """Random splits and folds of groups: all rows of a group (``dataset.group``) are in one part, and sizes count groups."""

    reads = needs = ("group",)

    def splits(self, dataset: Dataset) -> tuple[list[Split], list[str]]:
        """Return `random_splits` of groups, whose rows stand in the order of the data."""
        groups, protocol, name = dataset.group, self.protocol, dataset.name
        assert groups is not None
        if dataset.groups is not None:
            _refuse_torn(dataset.groups, groups, name)
        count = int(groups.max()) + 1
        if count < 2:
            raise DataError(f"data set {name!r}: dataset.group has one group, and training and test rows need different ones")
        drawn = random_splits(count, protocol.n_splits, protocol.train_size, self.seed, name)
        shares = [len(of_groups(groups, train)) / len(groups) for train, _ in drawn]
        share = " to ".join(dict.fromkeys(f"{share:.0%}" for share in (min(shares), max(shares))))
        notes = [f"{count} groups are split whole: training parts have {share} of the rows"]
        return [(of_groups(groups, train), of_groups(groups, test)) for train, test in drawn], notes

    def folds(self, part: Part, search: FoldsOf) -> list[Split]:
        """Return folds of the groups of a training part."""
        return whole_groups(self, part, search)


def whole_groups(rule: Splitter, part: Part, search: FoldsOf) -> list[Split]:
    """Return shuffled folds of a training part that keep its groups whole; `DataError` where it has fewer groups than folds."""
    names, groups = np.unique(np.asarray(part.group), return_inverse=True)
    folds = 2 if rule.protocol.holdout is not None else rule.protocol.folds
    if len(names) < folds:
        where = f"split {search.number}" if isinstance(search.number, int) else search.number
        raise DataError(
            f"data set {search.dataset!r}: the training part of {where} has {len(names)} groups, too few for {folds} folds; lower "
            "protocol.folds, or fix the hyper-parameters"
        )
    return [(of_groups(groups, fit), of_groups(groups, held)) for fit, held in rule.shuffled(search)(len(names))]


def of_groups(groups: NDArray[Any], chosen: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rows of some groups, one group after the other; codes (n,) from 0 on, rows of a group need not stand together."""
    order = np.argsort(groups, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(groups)))
    return order[rows_of(start, chosen)].astype(np.intp)


def _refuse_torn(sequences: NDArray[Any], groups: NDArray[Any], name: str) -> None:
    """Refuse a sequence whose rows are of several groups."""
    torn = np.flatnonzero((sequences[1:] == sequences[:-1]) & (groups[1:] != groups[:-1]))
    if torn.size:
        row = int(torn[0]) + 1
        raise DataError(
            f"data set {name!r}: rows {row} and {row + 1} are one sequence and two groups; dataset.group must keep sequences whole"
        )
