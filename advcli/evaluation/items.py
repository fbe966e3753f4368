"""What each test example of a finished cell is worth by itself, which tests over examples compare (`advcli export items`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import ConfigError, ResultsError
from ..results.folder import ResultsFolder
from ..results.predictions import Predictions, entry
from .cell import Cell
from .recipe import Recipe

_AGREES = 1e-9  # of the mean over examples and the value of the metric


class ItemScore(NamedTuple):
    """The value of a metric on one test example: a row, or a sequence of rows."""

    item: int  # number of the row in the data set, or of the sequence, from 1
    value: float


def item_scores(folder: ResultsFolder, key: str, data_dir: Path, metric: str | None = None) -> tuple[str, list[ItemScore]]:
    """Return a metric, by default the first of the cell, and its value on every test example of a finished cell, by the kept predictions.

    Raises
    ------
    ResultsError
        The cell has several splits, whose test rows overlap, or failed, or is not there.
    ConfigError
        The metric is no mean over examples, so that its value on one of them says nothing.
    """
    stored = folder.read_cell(key)
    if stored is None or any(row["status"] == "failed" for row in stored["rows"]) or "imported" in stored["about"]:
        raise ResultsError(f"{folder.path}: cell {key} has no fit of its own to compare by examples")
    about, rows = stored["about"], stored["rows"]
    named = f"{about['dataset']}, {about['method']}"
    if {row["split"] for row in rows} != {1}:
        remedy = "use protocol.n_splits=1 or splits=official"
        raise ResultsError(f"{named}: several splits share test rows, and a test over examples takes one: {remedy}")
    recipe = Recipe(Cell(**about["cell"]), data_dir)
    metric = metric or recipe.protocol.metric or str(rows[0]["metric"])
    test = recipe.part(recipe.splits()[0][0][1])
    predicted = Predictions(folder, key, about["predictions"]).of(entry(1), recipe.n_classes)
    whole = recipe.values([metric], test, predicted)[metric]
    scores, sizes = [], []
    for item, places in _examples(test):
        columns = {name: getattr(predicted, name) for name in ("codes", "probabilities", "relations")}
        one = replace(predicted, **{name: column[places] for name, column in columns.items() if column is not None})
        scores.append(ItemScore(item, recipe.values([metric], test[places], one)[metric]))
        sizes.append(len(places))
    values = np.array([score.value for score in scores])
    means = float(values.mean()), float(np.average(values, weights=sizes))
    if not any(abs(mean - whole) <= _AGREES * max(1.0, abs(whole)) for mean in means):
        raise ConfigError(f"{named}: {metric} is {whole:.6g}, no mean of its values on single examples: choose another report.metric")
    return metric, scores


def _examples(test: Any) -> Iterator[tuple[int, Any]]:
    """Yield the number of every example of a test part, from 1, and the places of its rows."""
    if test.groups is None:
        yield from ((int(number) + 1, np.array([place])) for place, number in enumerate(test.numbers))
        return
    groups = np.asarray(test.groups)
    yield from ((int(groups[part[0]]) + 1, part) for part in np.split(np.arange(len(groups)), np.flatnonzero(np.diff(groups)) + 1))
