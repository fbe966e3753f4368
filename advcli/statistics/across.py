"""Tests across data sets: ranks, Friedman, Nemenyi, the critical difference."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import ConfigError
from .tests import TestResult


def friedman(scores: ArrayLike) -> TestResult:
    """Friedman's rank test across data sets (scipy's), tie-corrected, of means (n_datasets, n_methods >= 3); equal columns give p = 1.

    References
    ----------
    Friedman (1937), "The use of ranks to avoid the assumption of normality implicit in the analysis of variance", Journal of the American
    Statistical Association 32.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.statistics import friedman
    >>> errors = np.array([[0.1, 0.2, 0.3], [0.2, 0.3, 0.4], [0.1, 0.3, 0.2], [0.3, 0.4, 0.5], [0.2, 0.3, 0.3]])  # data sets, methods
    >>> round(friedman(errors).p_value, 4)
    0.0156
    """
    from scipy.stats import friedmanchisquare

    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or table.shape[1] < 3 or table.shape[0] < 2:
        raise ConfigError(f"the Friedman test needs at least 2 data sets and 3 methods, got {table.shape}")
    scale = float(np.max(np.abs(table), initial=0.0)) or 1.0
    table = np.round(table / scale, 12)
    if (np.ptp(table, axis=1) == 0).all():
        return TestResult(1.0, 0, 0.0)
    result = friedmanchisquare(*table.T)
    return TestResult(float(result.pvalue), 0, float(result.statistic))


def row_ranks(scores: ArrayLike, higher_is_better: bool = False) -> NDArray[np.float64]:
    """Return the ranks within each row of scores (n_datasets, n_methods) without missing values: 1 is the best, ties share the mean rank.

    Differences below 1e-12 of a row's largest value are ties.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.statistics import row_ranks
    >>> errors = np.array([[0.1, 0.2, 0.3], [0.2, 0.3, 0.4], [0.1, 0.3, 0.2], [0.3, 0.4, 0.5], [0.2, 0.3, 0.3]])  # data sets, methods
    >>> row_ranks(errors)[-1]
    array([1. , 2.5, 2.5])
    """
    from scipy.stats import rankdata

    table = np.asarray(scores, dtype=float)
    scale = np.max(np.abs(table), axis=1, keepdims=True, initial=0.0)
    table = np.round(table / np.where(scale > 0, scale, 1.0), 12)
    return np.asarray(rankdata(-table if higher_is_better else table, axis=1), dtype=float)


def critical_difference(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Return the critical difference of mean ranks of the Nemenyi test: q_alpha sqrt(k (k + 1) / (6 N)).

    q_alpha is the quantile of the studentised range divided by sqrt(2) (Demsar 2006, JMLR 7, section 3.2.2).

    References
    ----------
    Demsar (2006), "Statistical comparisons of classifiers over multiple data sets", JMLR 7.

    Examples
    --------
    >>> from advcli.statistics import critical_difference
    >>> round(critical_difference(4, 12), 3)
    1.354
    """
    from scipy.stats import studentized_range

    quantile = float(studentized_range.ppf(1 - alpha, n_methods, math.inf)) / math.sqrt(2)
    return quantile * math.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))


def nemenyi(mean_ranks: ArrayLike, n_datasets: int) -> NDArray[np.float64]:
    """Return the p-values of the Nemenyi test for all pairs of methods (Demsar 2006, JMLR 7, section 3.2.2), shape (n_methods, n_methods).

    ``mean_ranks`` (n_methods,) are averaged over the data sets; the diagonal is 1.

    References
    ----------
    Nemenyi (1963), "Distribution-free multiple comparisons", doctoral thesis, Princeton University.

    Demsar (2006), "Statistical comparisons of classifiers over multiple data sets", JMLR 7.

    Examples
    --------
    >>> from advcli.statistics import nemenyi
    >>> nemenyi([1.0, 2.4, 2.6], 5).round(3)
    array([[1.   , 0.069, 0.031],
           [0.069, 1.   , 0.946],
           [0.031, 0.946, 1.   ]])
    """
    from scipy.stats import studentized_range

    means = np.asarray(mean_ranks, dtype=float)
    spread = math.sqrt(len(means) * (len(means) + 1) / (6 * n_datasets))
    statistic = np.abs(means[:, None] - means[None, :]) / spread * math.sqrt(2)
    return np.asarray(studentized_range.sf(statistic, len(means), math.inf), dtype=float)
