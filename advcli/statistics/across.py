"""Tests across data sets: ranks, Friedman, Nemenyi, the critical difference."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import ConfigError
from .tests import TestResult, holm


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
    import pandas as pd  # takes half of scipy.stats' time, and reports have it

    table = np.asarray(scores, dtype=float)
    scale = np.max(np.abs(table), axis=1, keepdims=True, initial=0.0)
    table = np.round(table / np.where(scale > 0, scale, 1.0), 12)
    return pd.DataFrame(-table if higher_is_better else table).rank(axis=1).to_numpy(dtype=float)


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


def improvability(errors: ArrayLike) -> NDArray[np.float64]:
    """Return by which share of its error each method could be better on each data set: (e - e_best) / e, in [0, 1].

    0 is the best method of the data set; 0.25 says that the best method has a quarter less error. Where a method has no error it is 0.

    Parameters
    ----------
    errors : array_like, shape (n_datasets, n_methods)
        Errors of at least 0, of which 0 is perfect, such as 1 minus a share; `ConfigError` for others.

    Returns
    -------
    ndarray, shape (n_datasets, n_methods)
        The shares, for each data set and method.

    References
    ----------
    Erickson et al. (2025), "TabArena: A Living Benchmark for Machine Learning on Tabular Data", NeurIPS Datasets and Benchmarks.

    Examples
    --------
    >>> from advcli.statistics import improvability
    >>> improvability([[0.1, 0.2], [0.3, 0.3], [0.0, 0.5]])
    array([[0. , 0.5],
           [0. , 0. ],
           [0. , 1. ]])
    """
    table = np.asarray(errors, dtype=float)
    if table.ndim != 2 or not table.size or not (np.isfinite(table).all() and table.min() >= 0):
        raise ConfigError(f"improvability needs finite errors of at least 0 (n_datasets, n_methods), got shape {table.shape}")
    return np.asarray(1.0 - table.min(axis=1, keepdims=True) / np.where(table > 0, table, 1.0)) * (table > 0)


def best_group(p_values: ArrayLike, best: int, alpha: float = 0.05) -> NDArray[np.bool_]:
    """Return which methods are the best one or not separable from it, (n_methods,), by the p-values of all pairs.

    Every method is compared with the best only, as "not separable" is not transitive. Since the best is read off the data, Holm's
    correction is over all pairs. A pair without a p-value (nan) is not separated.

    Parameters
    ----------
    p_values : array_like, shape (n_methods, n_methods)
        Symmetric, of two-sided tests; the diagonal does not count.
    best : int
        The method with the best mean rank.
    alpha : float
        Level of the group.

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6.

    Examples
    --------
    >>> from advcli.statistics import best_group
    >>> best_group([[1, 0.4, 0.001], [0.4, 1, 0.002], [0.001, 0.002, 1]], best=0)
    array([ True,  True, False])
    """
    table = np.asarray(p_values, dtype=float)
    upper = np.triu_indices(len(table), 1)
    adjusted = np.full(table.shape, np.nan)
    adjusted[upper] = holm(table[upper].tolist())
    against = np.fmax(adjusted[best], adjusted[:, best])
    return np.asarray(~(against < alpha))
