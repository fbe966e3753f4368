"""Intervals: of a share, of the mean difference of two methods over items, and of means over data sets."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.arrays import finite_table
from ..core.checks import FRACTION, at_least, refuse_parameter
from ..core.errors import DataError

RESAMPLES = 10_000
"""Resamples of a bootstrap by default."""
_AT_ONCE = 4_000_000  # numbers that are drawn at a time


class Interval(NamedTuple):
    """An estimate and the ends of its interval.

    Examples
    --------
    >>> from advcli.statistics import wilson
    >>> found = wilson(9, 10)
    >>> found.estimate, found.low < 0.9 < found.high
    (0.9, True)
    """

    estimate: float
    low: float
    high: float


def paired_bootstrap(a: ArrayLike, b: ArrayLike, level: float = 0.95, n_resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """Percentile bootstrap interval of the mean difference a - b over items, which are drawn in pairs.

    The same seed gives the same interval. Items of equal difference are drawn together, as a multinomial count, which is the same
    distribution as drawing them one by one.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Scores of two methods on the same items.
    level : float
        Coverage that is asked for, between 0 and 1.
    n_resamples : int
        Number of resamples.
    seed : int
        Seed of the draws.

    Returns
    -------
    Interval
        The mean difference and the ends of its interval.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapter 13.

    Examples
    --------
    >>> from advcli.statistics import paired_bootstrap
    >>> a = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
    >>> b = [0, 0, 0, 0, 0, 0, 1, 1, 1, 0]
    >>> found = paired_bootstrap(a, b)
    >>> found.estimate, round(found.low, 2), round(found.high, 2)
    (0.5, 0.1, 0.9)
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise DataError(f"both methods need one score for each of the same items, got {first.shape} and {second.shape}")
    if not np.isfinite([first, second]).all():
        raise DataError("a score of an item is not finite")
    values, counts = np.unique(first - second, return_counts=True)
    low, high = _ends(values, counts, level, n_resamples, seed)
    return Interval(float((first - second).mean()), float(low), float(high))


def _ends(values: NDArray[Any], counts: NDArray[Any], level: float, n_resamples: int, seed: int) -> NDArray[np.float64]:
    """Return the ends of the bootstrap intervals of means over n items, of which ``counts`` (m,) have each of ``values`` (m,) or (m, k)."""
    refuse_parameter("the level of an interval", level, FRACTION)
    refuse_parameter("the number of resamples", n_resamples, at_least(1))
    n, generator, means = int(counts.sum()), np.random.default_rng(seed), []
    chunk = max(1, _AT_ONCE // max(values.shape))
    for start in range(0, n_resamples, chunk):
        drawn = generator.multinomial(n, counts / n, size=min(chunk, n_resamples - start))
        means.append(drawn @ values / n)
    return np.quantile(np.concatenate(means), ((1.0 - level) / 2.0, (1.0 + level) / 2.0), axis=0)


def bootstrap_means(table: ArrayLike, level: float = 0.95, n_resamples: int = RESAMPLES, seed: int = 0) -> list[Interval]:
    """Percentile bootstrap intervals of the means of columns, whose rows are drawn together: of methods over data sets.

    Parameters
    ----------
    table : array_like, shape (n_datasets, n_methods)
        A number for each method on each data set, such as its rank; none is missing.
    level, n_resamples, seed
        As of `paired_bootstrap`.

    Returns
    -------
    list of Interval
        For each method the mean and the ends of its interval.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapter 13.

    Examples
    --------
    >>> from advcli.statistics import bootstrap_means
    >>> ranks = [[1, 2], [1, 2], [2, 1], [1, 2], [1, 2]]
    >>> [(found.estimate, float(found.low), float(found.high)) for found in bootstrap_means(ranks)]
    [(1.2, 1.0, 1.6), (1.8, 1.4, 2.0)]
    """
    rows = finite_table(table, "what the bootstrap over data sets takes, (n_datasets, n_methods),")
    low, high = _ends(rows, np.ones(len(rows)), level, n_resamples, seed)
    return [Interval(*map(float, parts)) for parts in zip(rows.mean(axis=0), low, high, strict=True)]


def wilson(right: int, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share: ``right`` of ``n`` items.

    The shares p with |right/n - p| <= z sqrt(p (1 - p) / n), z the normal quantile; it stays within [0, 1] and is no point at 0 or n.

    References
    ----------
    Wilson (1927), "Probable inference, the law of succession, and statistical inference", Journal of the American Statistical
    Association 22.

    Examples
    --------
    >>> from advcli.statistics import wilson
    >>> found = wilson(45, 50)
    >>> found.estimate, round(found.low, 3), round(found.high, 3)
    (0.9, 0.786, 0.957)
    """
    from scipy.special import ndtri

    refuse_parameter("the number of items", n, at_least(1))
    refuse_parameter("the number of items that are right", right, at_least(0, n))
    refuse_parameter("the level of an interval", level, FRACTION)
    share, z = right / n, float(ndtri((1.0 + level) / 2.0))
    middle, width = share + z * z / (2 * n), z * math.sqrt(share * (1.0 - share) / n + z * z / (4 * n * n))
    low, high = ((middle + sign * width) / (1.0 + z * z / n) for sign in (-1, 1))
    return Interval(share, 0.0 if right == 0 else low, 1.0 if right == n else high)
