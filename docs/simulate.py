"""How often the tests of the tables err: equal methods on random splits, and how many rows deny one of them its mark.

    python docs/simulate.py          the tables of docs/explanation/statistics.md, in some two minutes
    python docs/simulate.py 100      the same from 100 data sets instead of 1,000

The methods of a row are equally good by construction: each sees one of equally informative features. A stable learner (nearest class
mean) and an unstable one (nearest neighbour) are compared over 20 random splits, 70 % of the rows for training.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from advcli.statistics.marks import CORRECTIONS, Significance, mark_best
from advcli.statistics.tests import TESTS, paired_test

ROWS, TRAIN, SPLITS, ALPHA = 200, 140, 20, 0.05
Values = NDArray[np.float64]
Labels = NDArray[np.int64]


def nearest_mean(x: Values, y: Labels, new: Values) -> Labels:
    """Predict the class whose mean is nearest; class 1 has the larger values."""
    return (new > (x[y == 0].mean() + x[y == 1].mean()) / 2).astype(np.int64)


def nearest_neighbour(x: Values, y: Labels, new: Values) -> Labels:
    """Predict the class of the nearest training row."""
    return y[np.abs(new[:, None] - x[None, :]).argmin(axis=1)]


LEARNERS: dict[str, Callable[[Values, Labels, Values], Labels]] = {"nearest mean": nearest_mean, "nearest neighbour": nearest_neighbour}


def errors(random: np.random.Generator, learner: Callable[[Values, Labels, Values], Labels], methods: int) -> dict[str, Values]:
    """Return the error counts of equal methods over the splits of a data set drawn anew."""
    y = random.integers(0, 2, ROWS)
    X = random.normal(size=(ROWS, methods)) + y[:, None]
    counts = np.zeros((methods, SPLITS))
    for split in range(SPLITS):
        order = random.permutation(ROWS)
        train, test = order[:TRAIN], order[TRAIN:]
        for method in range(methods):
            counts[method, split] = np.sum(learner(X[train, method], y[train], X[test, method]) != y[test])
    return {str(method): row for method, row in enumerate(counts)}


def rejections(data_sets: int) -> None:
    """Print how often each test finds a difference between two equal methods."""
    for name, learner in LEARNERS.items():
        random = np.random.default_rng(0)
        rejected = dict.fromkeys(TESTS, 0)
        for _ in range(data_sets):
            counts = errors(random, learner, 2)
            for test in TESTS:
                rejected[test] += paired_test(test, counts["0"], counts["1"], TRAIN, ROWS - TRAIN).p_value < ALPHA
        print(f"two equal methods, {name}: " + ", ".join(f"{test} {100 * count / data_sets:.1f} %" for test, count in rejected.items()))


def denials(data_sets: int) -> None:
    """Print in how many rows the corrected resampled t-test denies the mark to one of several equal methods."""
    for name, learner in LEARNERS.items():
        for methods in (2, 4, 6):
            random = np.random.default_rng(1)
            denied = dict.fromkeys(CORRECTIONS, 0)
            for _ in range(data_sets):
                counts = errors(random, learner, methods)
                for correction in CORRECTIONS:
                    rule = Significance(alpha=ALPHA, correction=correction)
                    marks = mark_best(counts, rule, n_train=TRAIN, n_test=ROWS - TRAIN)
                    denied[correction] += not all(mark.bold for mark in marks.values())
            shares = ", ".join(f"{correction} {100 * count / data_sets:.1f} %" for correction, count in denied.items())
            print(f"{methods} equal methods, {name}: {shares}")


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rejections(number)
    denials(number)
