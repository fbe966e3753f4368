"""The labels that methods learn from: as they are, corrupted by noise, or made by a rough classifier from a few true ones.

Test labels are never touched. Everything random is drawn from the experiment's seed, the data set and the split, so that all methods see
the same labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ConfigError, DataError
from ..core.linalg import norm
from ..core.notes import noted
from ..core.typing import Labels
from ..data.labels.confusion import conditioning, estimate_confusion
from ..data.labels.noise import corrupt, make_confusion
from ..learners import Method
from .cell import Cell
from .splits import SplitSeeds

CONFUSION = "confusion"
"""The option of a method's loss group that takes the confusion matrix; null there means the matrix of these labels."""


@dataclass(frozen=True)
class TrainingLabels:
    """The labels of one training part: true codes (n,), and those ``seen``, which methods learn from.

    ``confusion`` (k, k) is P(seen = row | truth = column) as methods receive it, None where labels are not corrupted; ``sample`` the rows
    whose true labels are known too. ``facts`` are columns of the rows: ``label_error``, ``confusion_norm``, ``condition``.
    """

    truth: Labels
    seen: Labels
    confusion: NDArray[np.float64] | None = None
    sample: Labels | None = None
    facts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def view(self, method: Method) -> tuple[Method, Labels, NDArray[np.bool_] | None]:
        """Return what a method gets: itself with the confusion matrix filled in, codes (n,), and the rows that it fits, None for all.

        Codes are -1 on the unlabelled rows of a semi-supervised method.
        """
        kind = method.learner.view
        if CONFUSION in method.learner.needs(method.loss) and method.loss.get(CONFUSION) is None and self.confusion is not None:
            method = replace(method, loss={**method.loss, CONFUSION: self.confusion.tolist()})
        if kind == "true":
            return method, self.truth, None
        if kind in ("sample", "partial"):
            if self.sample is None:
                remedy = "choose protocol=louche2015, which draws one"
                raise ConfigError(f"loss={method.loss['name']} learns from a small clean sample; {remedy}")
            fitted = np.zeros(len(self.truth), dtype=bool)
            fitted[self.sample] = True
            codes = np.where(fitted, self.truth, -1 if kind == "partial" else self.seen)
            return method, codes, fitted if kind == "sample" else None
        return method, self.seen, None


def training_labels(cell: Cell, X: Any, truth: Labels, classes: tuple[Any, ...], seeds: SplitSeeds) -> TrainingLabels:
    """Return the labels of the training part X (n, d) of a split, whose true codes are ``truth`` (n,)."""
    if cell.protocol.rough_per_class is not None:
        if cell.noise:
            raise ConfigError("protocol.rough_per_class already makes noisy labels by a rough classifier; leave out the group noise")
        return _rough_labels(cell, X, truth, classes, seeds)
    if not cell.noise:
        return TrainingLabels(truth, truth)
    confusion = make_confusion(cell.noise, len(classes), seeds.of("noise"))
    seen = corrupt(truth, confusion.true, seeds.of("noisy labels"))
    return TrainingLabels(truth, seen, confusion.assumed, None, _facts(truth, seen, confusion.true, confusion.assumed))


def _facts(truth: Labels, seen: Labels, true: NDArray[np.float64], stated: NDArray[np.float64]) -> dict[str, float]:
    return {
        "label_error": float(np.mean(truth != seen)),
        "confusion_norm": norm(true - np.diag(np.diag(true))),
        "condition": conditioning(stated)[0],
    }


def _rough_labels(cell: Cell, X: Any, truth: Labels, classes: tuple[Any, ...], seeds: SplitSeeds) -> TrainingLabels:
    """Label all rows by a perceptron that saw m rows per class, and count its confusion on a small clean sample.

    The sample is drawn from all rows, so that small classes keep their share of it. Its rows that the perceptron learned from do not count
    for the confusion, unless a class has no others (Louche & Ralaivola 2015, section 4.2).
    """
    k, n, protocol = len(classes), len(truth), cell.protocol
    m = protocol.rough_per_class
    assert m is not None
    order = np.random.default_rng(seeds.of("rough")).permutation(n)
    chosen, notes = [], []
    for label in range(k):
        rows = order[truth[order] == label][:m]
        if not len(rows):
            raise DataError(f"data set {seeds.dataset!r}: class {classes[label]} has no row in the training part of split {seeds.split}")
        if len(rows) < m:
            text = f"protocol.rough_per_class={m} takes all rows of class {classes[label]} where a training part has fewer"
            notes.append(noted("ADV114", text))
        chosen.append(rows)
    rough_rows = np.concatenate(chosen).astype(np.intp)
    # a separate order: the perceptron's rows come first in the other one
    drawn = np.random.default_rng(seeds.of("clean sample")).permutation(n)
    sample = np.sort(drawn[: max(1, round(protocol.labelled_share * n))]).astype(np.intp)
    perceptron = Method({"name": "uma", "confusion": "identity", "max_updates": protocol.rough_updates}, cell.features, {"name": "auto"})
    # weight 0 for all other rows, because maps that are fitted to rows (kernel PCA) see every row, as for the methods
    weight, padded = np.zeros(n), np.zeros(n, dtype=np.intp)
    weight[rough_rows], padded[rough_rows] = 1.0, truth[rough_rows]
    seen: Labels = perceptron.make(k, seeds.of("rough fit"), 1.0).fit(X, padded, sample_weight=weight).predict_codes(X)
    fresh = sample[~np.isin(sample, rough_rows)]
    counted = np.concatenate([fresh, sample[~np.isin(truth[sample], truth[fresh])]])
    confusion, missing = estimate_confusion(seen[counted], truth[counted], k)
    if missing:
        notes.append(noted("ADV114", "a class without a row in the clean sample counts as labelled right"))
    facts = _facts(truth, seen, confusion, confusion)
    return TrainingLabels(truth, seen, confusion, sample, facts, tuple(notes))
