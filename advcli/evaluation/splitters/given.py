"""Splits that are not drawn: by the authors of a paper, official ones, and those of a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...config.protocol import Protocol
from ...core.errors import DataError
from ...core.paths import expanded
from ...data.dataset import Dataset
from ...results.split_table import GivenSplit, digest_of, read_splits
from ..part import Part
from ..splits import Split
from .base import SPLITTERS, FoldsOf, Splitter
from .forward import earlier_rows
from .random import whole_groups


class GivenSplits(Splitter):
    """Splits that come with the data; folds keep groups whole or the order of time where the data set has such a column."""

    reads = ("group", "time")

    def folds(self, part: Part, search: FoldsOf) -> list[Split]:
        """Return folds of a training part."""
        if part.group is not None:
            return whole_groups(self, part, search)
        if part.time is not None:
            return earlier_rows(self, part, search)
        return super().folds(part, search)

    def few(self, n: int, what: str) -> list[str]:
        """Return the line about fewer splits than were asked for."""
        return [f"{n} {what} exist, {self.protocol.n_splits} were asked for"] if n < self.protocol.n_splits else []

    def unread_share(self, what: str) -> list[str]:
        """Return the line about a share of training rows that was asked for and that parts of known rows leave without a meaning."""
        share = self.protocol.train_size
        return [] if share == Protocol.train_size else [f"{what} win over protocol.train_size={share:g}; protocol.splits=random reads it"]


@SPLITTERS.register("author")
class AuthorSplits(GivenSplits):
    """The splits that a paper's authors published."""

    def splits(self, dataset: Dataset) -> tuple[list[Split], list[str]]:
        """Return the first of them."""
        if not dataset.splits:
            raise DataError(f"{dataset.name} has no published splits; use protocol.splits=random")
        splits = list(dataset.splits)[: self.protocol.n_splits]
        return splits, [*self.few(len(splits), "published splits"), *self.unread_share("the published splits")]


@SPLITTERS.register("official")
class OfficialSplits(GivenSplits):
    """The official training and test rows, in every split."""

    def splits(self, dataset: Dataset) -> tuple[list[Split], list[str]]:
        """Return the same rows for every split."""
        if dataset.official is None:
            raise DataError(f"{dataset.name} has no official training and test rows; use protocol.splits=random")
        notes = ["all runs have the official training and test rows"]
        return [dataset.official] * self.protocol.n_splits, [*notes, *self.unread_share("the official parts")]


@SPLITTERS.register("file")
class FileSplits(GivenSplits):
    """The splits of a table (`advcli.results.split_table`), with its folds where it has such."""

    def __init__(self, protocol: Protocol, seed: int) -> None:
        super().__init__(protocol, seed)
        self.path = expanded(str(protocol.splits_file)).absolute()
        self._given: list[GivenSplit] = []

    def attached(self, dataset: Dataset) -> Dataset:
        """Return the data set with the splits that the table has of it."""
        self._given = read_splits(self.path, dataset.name, dataset.sha256, dataset.X.shape[0])
        return replace(dataset, splits=tuple((split.train, split.test) for split in self._given))

    def splits(self, dataset: Dataset) -> tuple[list[Split], list[str]]:
        """Return the first splits of the table."""
        splits = list(dataset.splits or ())[: self.protocol.n_splits]
        return splits, [*self.few(len(splits), f"splits of {self.path.name}"), *self.unread_share(f"the splits of {self.path.name}")]

    def folds(self, part: Part, search: FoldsOf) -> list[Split]:
        """Return the folds of the table for the rows of a part; drawn ones where it has none."""
        split = self._given[search.number - 1] if isinstance(search.number, int) else None
        if split is None or not split.folds or part.numbers is None:
            return super().folds(part, search)
        place = np.full(int(max(part.numbers.max(), split.train.max())) + 1, -1, dtype=np.intp)
        place[part.numbers] = np.arange(len(part.numbers))
        pairs = split.folds.get(search.stage, split.folds[1])
        # a method that learns from some of the training rows has folds of these
        return [(place[fit][place[fit] >= 0], place[held][place[held] >= 0]) for fit, held in pairs]

    def drawn_from(self, dataset: Dataset) -> str:
        """Return the checksum of the splits of this data set."""
        return digest_of(self._given)
