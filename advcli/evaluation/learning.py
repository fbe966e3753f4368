"""What a cell keeps for figures beside its rows: counts of confusions, and scores of fits to fewer training rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.row_blocks import BlockRows
from ..metrics import missed_classes, missed_words
from ..results.predictions import Predictions, entry
from .part import Part
from .recipe import Fitted, Recipe
from .splits import derive_seed

MAX_CLASSES = 40
"""Nobody reads a matrix of more classes, and its file would grow with the square of their number."""


@dataclass
class ConfusionCounts:
    """Test rows of each true class that are predicted as each of the k classes, summed over the splits.

    ``counts`` (k, k + 1): rows are true classes, columns predictions; the last column counts predictions beyond the classes: abstentions.
    """

    labels: tuple[str, ...]
    counts: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros((len(self.labels), len(self.labels) + 1), dtype=np.int64)

    @classmethod
    def of(cls, recipe: Recipe, before: Mapping[str, Any] | None = None) -> ConfusionCounts | None:
        """Return empty counts, or the stored ones (``before``); None with sets of labels, or over `MAX_CLASSES` classes."""
        dataset = recipe.dataset
        if dataset.multilabel or recipe.method.predicts_sets or recipe.n_classes > MAX_CLASSES:
            return None
        counts = cls(tuple(map(str, dataset.classes)))
        if before is not None:
            counts.counts += np.asarray(before["counts"], dtype=np.int64)
        return counts

    def add(self, y: Any, predicted: Any) -> None:
        """Count the rows of true codes y (n,) and predicted codes (n,)."""
        np.add.at(self.counts, (np.asarray(y), np.minimum(predicted, len(self.labels))), 1)

    def about(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {"labels": list(self.labels), "counts": self.counts.tolist()}


def missed_rows(recipe: Recipe, fitted: Fitted, part: Part) -> list[str]:
    """Return the line about classes of whose training rows a fit to a part finds none; empty without such classes."""
    counts = ConfusionCounts.of(recipe)
    if counts is None:
        return []
    part = replace(part, X=fitted.rows(part.X))
    counts.add(part.y, fitted.learner.predict_codes(part.X if isinstance(part.X, BlockRows) else fitted.learner.look(part.rows)))
    missed = missed_classes(counts.counts, counts.labels)
    return [f"{recipe.cell.method} {missed_words(missed, 'training rows')}"] if missed else []


def learning_curve(
    recipe: Recipe,
    number: int,
    train: Part,
    test: Part,
    hyper: Mapping[str, Any],
    predictions: Predictions,
    distributions: bool = False,
) -> list[dict[str, Any]]:
    """Return what a method reaches on the test rows of split ``number`` when it learns from a share of the training rows alone.

    ``protocol.learning_curve`` lists the shares; the rows of a smaller share are part of a larger one, and each has rows of every class.
    All points have the hyper-parameters of the whole training part: where C was chosen, C stays and lambda follows. A point has ``split``,
    ``share``, ``n_train``, ``relative_gap`` (None without a certificate) and ``values`` by metric; the predictions of every point are added
    to ``predictions``.
    """
    points = []
    for share, rows in _shares(recipe, number, train):
        part = train[rows]
        fitted: Fitted = recipe.fit(part, hyper, number)
        columns, values, predicted = recipe.score(fitted, part, test, distributions)
        predictions.add(entry(number, share), predicted)
        point = {"split": number, "share": share, "n_train": fitted.n_train, "relative_gap": columns.get("relative_gap")}
        points.append(point | {"values": values})
    return points


def _shares(recipe: Recipe, number: int, train: Part) -> Iterator[tuple[float, NDArray[np.intp]]]:
    """Yield every share and its rows, positions in the training part in their order."""
    shares = sorted(set(recipe.protocol.learning_curve or ()))
    if not shares:
        return
    n = train.X.shape[0]
    random = np.random.default_rng(derive_seed(recipe.cell.seed, "learning", recipe.dataset.name, number))
    if train.groups is not None or recipe.dataset.multilabel:
        units = np.arange(n) if train.groups is None else np.unique(train.groups, return_inverse=True)[1]
        place = random.permutation(int(units.max()) + 1)[units] / (int(units.max()) + 1)
    else:
        # the j-th row of a class of m rows stands at j/m: a share of all rows is about that share of each class, and has its first one
        place = np.empty(n)
        for code in np.unique(train.y):
            rows_of_class = random.permutation(np.flatnonzero(train.y == code))
            place[rows_of_class] = np.arange(len(rows_of_class)) / len(rows_of_class)
    for share in shares:
        yield share, np.flatnonzero(place < share).astype(np.intp)
