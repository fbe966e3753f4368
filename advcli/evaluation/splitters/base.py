"""What a rule of splits is."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...config.protocol import PLAIN_SPLITS, Protocol
from ...core.errors import ConfigError, DataError
from ...core.registry import Registry
from ...data.dataset import Dataset
from ..part import Part
from ..splits import Split, keeping_groups, make_folds, make_holdout


@dataclass(frozen=True)
class FoldsOf:
    """Which search folds are for: name of the data set, number of the split (a text for all rows), stage of the search, and its seed."""

    dataset: str
    number: int | str
    stage: int
    seed: int


class Splitter:
    """A rule of splits, made of a protocol and the seed of the experiment; subclasses are registered by name.

    Attributes
    ----------
    reads : tuple of str
        Options of the data set that the rule reads: ``group``, ``time``.
    needs : tuple of str
        Those of them without which it cannot be.
    grows : bool
        Whether the first splits stay what they are when more are asked for; else the number of splits is a part of a cell's key.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.evaluation.splitters import Splitter, register, splitter_names
    >>> @register("thirds")
    ... class Thirds(Splitter):
    ...     def splits(self, dataset):
    ...         rows = np.arange(dataset.X.shape[0])
    ...         return [(rows[rows % 3 != part], rows[rows % 3 == part]) for part in range(3)], []
    >>> "thirds" in splitter_names()
    True
    """

    name: ClassVar[str]
    reads: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    grows: ClassVar[bool] = True

    def __init__(self, protocol: Protocol, seed: int) -> None:
        self.protocol, self.seed = protocol, seed

    def attached(self, dataset: Dataset) -> Dataset:
        """Return a data set with the splits that it is given, if there are such; `ConfigError` for one that lacks what the rule needs."""
        for key in self.needs:
            if getattr(dataset, key) is None:
                what = "of groups, such as a patient" if key == "group" else "of times"
                remedy = f"give dataset.{key}=COLUMN, or use protocol.splits=random"
                raise ConfigError(f"protocol.splits={self.name} needs a column {what}; {remedy}")
        return dataset

    def splits(self, dataset: Dataset) -> tuple[list[Split], list[str]]:
        """Return the splits of a data set, (training, test) rows each, and notes on them; `DataError` where it cannot be split so."""
        raise NotImplementedError

    def folds(self, part: Part, search: FoldsOf) -> list[Split]:
        """Return the folds of a search, positions (to fit, held out) in a training part; one pair with ``protocol.holdout``."""
        return keeping_groups(part.groups, part.X.shape[0], self.shuffled(search))

    def shuffled(self, search: FoldsOf) -> Callable[[int], list[Split]]:
        """Return what draws folds of a number of units at random."""
        protocol = self.protocol

        def draw(units: int) -> list[Split]:
            if protocol.holdout is None:
                return make_folds(units, protocol.folds, search.seed, search.dataset, search.stage)
            return [make_holdout(units, protocol.holdout, search.seed, search.dataset)]

        return draw

    def drawn_from(self, dataset: Dataset) -> str:
        """Return a checksum of what splits depend on beside rows, labels and seed; empty where there is nothing."""
        columns = [getattr(dataset, key) for key in self.reads if getattr(dataset, key) is not None]
        return hashlib.sha256(b"".join(np.ascontiguousarray(column).tobytes() for column in columns)).hexdigest() if columns else ""

    @property
    def told(self) -> bool:
        """Whether rows and files of cells say more of the splits than the name of their protocol."""
        return self.name not in PLAIN_SPLITS

    def refuse_sequences(self, dataset: Dataset) -> None:
        """Refuse a data set whose rows form sequences."""
        if dataset.groups is not None:
            raise DataError(
                f"protocol.splits={self.name} is for rows that stand alone, {dataset.name} has sequences; use grouped or random"
            )


SPLITTERS: Registry[type[Splitter]] = Registry("rule of splits", "splits", __package__)
"""All rules by name."""


def relation(splits: list[Split]) -> str:
    """Return how the parts of splits relate, as far as tests over splits depend on it.

    ``same``: all test parts have the same rows. ``growing``: every training part has all rows of the one before, and more. Else empty:
    training parts overlap as those of random splits and cross-validation do.
    """
    if len(splits) < 2:
        return ""
    tests = [np.sort(test) for _, test in splits]
    if all(np.array_equal(tests[0], test) for test in tests[1:]):
        return "same"
    trains: list[Any] = [np.sort(train) for train, _ in splits]
    grow = all(len(a) < len(b) and np.isin(a, b, assume_unique=True).all() for a, b in itertools.pairwise(trains))
    return "growing" if grow else ""
