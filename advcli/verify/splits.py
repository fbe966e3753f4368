"""The splits of a cell, drawn again from its configuration and its data without the code that ran it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from ..core.paths import expanded
from ..results.split_table import read_splits
from ..results.tables import canonical_json
from .surrogates import CannotError

Parts = list[tuple[Any, Any]]


def seed_of(*dimensions: Any) -> int:
    """Return the seed that belongs to named dimensions: the first 8 bytes of a SHA-256, below 2^31."""
    return int.from_bytes(hashlib.sha256(canonical_json(list(dimensions)).encode()).digest()[:8], "big") % 2**31


def splits_of(dataset: Any, protocol: Mapping[str, Any], seed: int) -> Parts:
    """Return the (training rows, test rows) of every split; `CannotError` for a rule of somebody's own.

    Random splits keep sequences whole and count sequences as rows; grouped ones do so with groups, whose rows need not stand together.
    """
    rule, count, n = str(protocol["splits"]), int(protocol["n_splits"]), dataset.X.shape[0]
    if rule == "author":
        return list(dataset.splits or ())
    if rule == "official":
        return [dataset.official] * count
    if rule.endswith(".csv"):
        return [(split.train, split.test) for split in read_splits(expanded(rule), dataset.name, dataset.sha256, n)]
    share = Fraction(Decimal(repr(float(protocol["train_size"]))))
    if rule == "forward":
        return _forward(dataset.time, n, math.floor(share * n), count)
    if rule not in ("random", "stratified", "grouped"):
        raise CannotError(f"protocol.splits={rule} is a rule that the checker does not know")
    column = dataset.group if rule == "grouped" else dataset.groups
    units = None if column is None else [np.flatnonzero(column == code) for code in range(int(column.max()) + 1)]
    n = n if units is None else len(units)
    n_train = math.floor(share * n)
    n_train, n_test = (dataset.sizes if rule != "grouped" else None) or (n_train, n - n_train)
    if rule == "stratified":
        return _stratified(dataset, n_train, n_test, count, seed)
    parts = []
    for number in range(count):
        order = np.random.default_rng(seed_of(seed, "split", dataset.name, number)).permutation(n)
        train, test = order[:n_train], order[n_train : n_train + n_test]
        if units is not None:
            train, test = (np.concatenate([units[unit] for unit in part]) for part in (train, test))
        parts.append((train, test))
    return parts


def _stratified(dataset: Any, n_train: int, n_test: int, count: int, seed: int) -> Parts:
    from sklearn.model_selection import StratifiedShuffleSplit

    seeds = [seed_of(seed, "stratified split", dataset.name, number) for number in range(count)]
    drawn = [StratifiedShuffleSplit(1, train_size=n_train, test_size=n_test, random_state=one) for one in seeds]
    return [next(splitter.split(dataset.y, dataset.y)) for splitter in drawn]


def _forward(time: Any, n: int, n_train: int, count: int) -> Parts:
    """Return the parts around borders in the order of time, each at the first of the rows that have the time of the row behind it."""
    order = sorted(range(n), key=lambda row: time[row])
    size = (n - n_train) // count
    borders = []
    for place in range(n - size * count, n, size):
        while place and time[order[place - 1]] == time[order[place]]:
            place -= 1
        borders.append(place)
    return [
        (np.array(order[:a], dtype=np.intp), np.array(order[a:b], dtype=np.intp)) for a, b in zip(borders, [*borders[1:], n], strict=True)
    ]
