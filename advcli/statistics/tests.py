"""Paired tests over splits, the marks "best" and "not significantly worse", and tests across data sets.

The papers test over 20 overlapping random splits as if they were independent (Fathony et al. 2016: paired t; Fathony et al. 2018: Wilcoxon
signed-rank); such tests reject a true null in about half of the data sets at a nominal 5 %. The corrected resampled t-test of Nadeau and
Bengio (2003, Machine Learning 52, section 3, "corrected resampled t-test") replaces the variance factor 1/J by 1/J + n_test/n_train.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import NOT_NEGATIVE, refuse
from ..core.errors import DataError, UnknownNameError, nearest

MIN_WILCOXON_SPLITS = 6  # five pairs of one sign still have the two-sided p-value 2/32 = 0.0625
_EXACT_PAIRS = 100


@dataclass(frozen=True)
class TestResult:
    """Outcome of a paired two-sided test of ``a`` against ``b``.

    ``p_value`` is nan when the test is undefined (a single split, missing values); ``sign`` is 1 if ``a`` tends to be larger than ``b``, -1
    if smaller, 0 if neither, in the sense of the test's own ``statistic``: t, or the smaller sum of signed ranks.
    """

    __test__ = False  # not a test class, whatever pytest makes of the name

    p_value: float
    sign: int
    statistic: float


def _differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Return a - b on a common scale, free of float noise: rates such as 3/45 - 2/45 and 2/45 - 1/45 must tie."""
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"paired samples need the same length, got shapes {first.shape} and {second.shape}")
    scale = float(np.max(np.abs([first, second]), initial=0.0))
    if not math.isfinite(scale):
        return np.full(len(first), np.nan)
    return np.round((first - second) / (scale or 1.0), 12) + 0.0


def wilcoxon(a: ArrayLike, b: ArrayLike) -> TestResult:
    """Wilcoxon signed-rank test of paired values (J,), two-sided, zero differences dropped, exact also with ties.

    Give means per test row, never counts of parts of different size. All differences zero is a tie: p = 1. With fewer than
    `MIN_WILCOXON_SPLITS` pairs no p-value is below 0.05.

    References
    ----------
    Wilcoxon (1945), "Individual comparisons by ranking methods", Biometrics Bulletin 1.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.statistics import wilcoxon
    >>> a = np.array([0.10, 0.12, 0.11, 0.13, 0.12])  # errors of two methods on five splits
    >>> b = np.array([0.13, 0.14, 0.15, 0.14, 0.16])
    >>> round(wilcoxon(a, b).p_value, 4)
    0.0625
    """
    from scipy.stats import rankdata

    difference = _differences(a, b)
    if len(difference) == 0 or np.isnan(difference).any():
        return TestResult(math.nan, 0, math.nan)
    difference = difference[difference != 0.0]
    if len(difference) == 0:
        return TestResult(1.0, 0, 0.0)
    ranks = rankdata(np.abs(difference))
    positive, negative = float(ranks[difference > 0].sum()), float(ranks[difference < 0].sum())
    sign = int(np.sign(positive - negative))
    if len(difference) > _EXACT_PAIRS:
        from scipy.stats import wilcoxon as library

        return TestResult(float(library(difference, method="approx").pvalue), sign, min(positive, negative))
    # Own distribution instead of scipy's: its exact method ignores ties (pratt with it is invalid), and its normal approximation
    # calls five pairs of one sign significant. Twice the midranks are integers, so the null distribution is a convolution.
    doubled = np.rint(2 * ranks).astype(int)
    chance = np.zeros(doubled.sum() + 1)
    chance[0] = 1.0
    for rank in doubled:
        chance = (chance + np.pad(chance, (rank, 0))[: len(chance)]) / 2
    tail = float(chance[: round(2 * min(positive, negative)) + 1].sum())
    return TestResult(min(1.0, 2 * tail), sign, min(positive, negative))


def _t_test(a: ArrayLike, b: ArrayLike, factor: float) -> TestResult:
    from scipy.special import stdtr

    difference = _differences(a, b)
    count = len(difference)
    if count == 0 or np.isnan(difference).any():
        return TestResult(math.nan, 0, math.nan)
    if not difference.any():
        return TestResult(1.0, 0, 0.0)
    mean = float(difference.mean())
    sign = int(np.sign(round(mean, 12)))
    if count == 1:
        return TestResult(math.nan, sign, math.nan)
    if np.ptp(difference) == 0:
        # No spread to compare the mean with: t is infinite, which two splits can never justify. Under exchangeable signs J equal
        # signs have this chance.
        return TestResult(2.0 ** (1 - count), sign, math.copysign(math.inf, mean))
    statistic = mean / math.sqrt(factor * float(difference.var(ddof=1)))
    return TestResult(float(2 * stdtr(count - 1, -abs(statistic))), sign, statistic)


def paired_t(a: ArrayLike, b: ArrayLike) -> TestResult:
    """Paired t-test, two-sided. If all differences are 0, p = 1; if they are equal and not 0, p = 2^(1 - J), as in a sign test.

    References
    ----------
    Student (1908), "The probable error of a mean", Biometrika 6.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.statistics import paired_t
    >>> a = np.array([0.10, 0.12, 0.11, 0.13, 0.12])  # errors of two methods on five splits
    >>> b = np.array([0.13, 0.14, 0.15, 0.14, 0.16])
    >>> round(paired_t(a, b).p_value, 4)
    0.0086
    """
    return _t_test(a, b, 1.0 / max(1, len(np.asarray(a))))


def corrected_t(a: ArrayLike, b: ArrayLike, n_train: float, n_test: float) -> TestResult:
    """Corrected resampled t-test, two-sided: t = mean / sqrt((1/J + n_test/n_train) var), J - 1 degrees of freedom.

    ``a`` and ``b`` (J,) are paired values over J random splits with ``n_train`` and ``n_test`` rows (Nadeau and Bengio 2003, section 3).
    Differences without spread are judged as by `paired_t`.

    References
    ----------
    Nadeau and Bengio (2003), "Inference for the generalization error", Machine Learning 52.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.statistics import corrected_t
    >>> a = np.array([0.10, 0.12, 0.11, 0.13, 0.12])  # errors of two methods on five splits
    >>> b = np.array([0.13, 0.14, 0.15, 0.14, 0.16])
    >>> round(corrected_t(a, b, n_train=105, n_test=45).p_value, 4)
    0.0536
    """
    return _t_test(a, b, 1.0 / max(1, len(np.asarray(a))) + n_test / n_train)


def mcnemar(a: ArrayLike, b: ArrayLike) -> TestResult:
    """Exact McNemar test of two methods that are right (1) or wrong (0) on the same items, two-sided.

    Given the number of items on which one alone is right, either of the two is equally likely on each: the p-value is twice the smaller
    tail of the binomial distribution with share 1/2, at most 1. ``statistic`` is the smaller count; without such items p = 1.

    Parameters
    ----------
    a, b : array_like of 0 and 1, shape (n,)
        Outcomes of the two methods; `DataError` for other values or lengths.

    References
    ----------
    McNemar (1947), "Note on the sampling error of the difference between correlated proportions or percentages", Psychometrika 12.

    Examples
    --------
    >>> from advcli.statistics import mcnemar
    >>> a = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
    >>> b = [0, 0, 0, 0, 0, 0, 1, 1, 1, 0]
    >>> found = mcnemar(a, b)
    >>> found.p_value, found.sign
    (0.125, 1)
    """
    from scipy.stats import binom

    first, second = _outcomes(a, b)
    more, less = int(((first == 1) & (second == 0)).sum()), int(((first == 0) & (second == 1)).sum())
    smaller = min(more, less)
    p_value = 1.0 if more == less else min(1.0, 2.0 * float(binom.cdf(smaller, more + less, 0.5)))
    return TestResult(p_value, int(np.sign(more - less)), float(smaller))


def _outcomes(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if first.shape != second.shape or first.ndim != 1:
        raise DataError(f"both methods need one outcome for each of the same items, got {first.shape} and {second.shape}")
    if not np.isin([first, second], (0.0, 1.0)).all():
        raise DataError("the McNemar test is about outcomes 1 (right) and 0 (wrong) on each item; paired_bootstrap takes any scores")
    return first, second


@dataclass(frozen=True)
class Posterior:
    """Probabilities that the mean difference a - b is negative, negligible or positive, given the values; they sum to 1.

    ``smaller`` is below -rope: ``a`` is practically smaller; ``equivalent`` in [-rope, rope], the region of practical equivalence;
    ``larger`` above.
    """

    smaller: float
    equivalent: float
    larger: float


def bayesian_correlated_t(a: ArrayLike, b: ArrayLike, n_train: float, n_test: float, rope: float = 0.0) -> Posterior:
    """Bayesian correlated t-test: how likely one of two methods has values smaller by more than ``rope``, on one data set.

    The mean difference has the posterior mean(d) + sqrt((1/J + n_test/n_train) var(d)) t_{J-1}. The correlation of the splits is taken as
    n_test / (n_train + n_test) (Corani and Benavoli 2015, Machine Learning 100, eq. 8; Benavoli et al. 2017, JMLR 18, section 3).

    Parameters
    ----------
    a, b : array_like, shape (J,)
        Paired values over J random splits, or over the J folds of one cross-validation with n_test/n_train = 1/(J - 1).
    n_train, n_test : float
        Rows in the training and the test part of a split.
    rope : float
        Half the width of the region of practical equivalence, in the unit of the values; `ConfigError` unless finite and at least 0.

    Returns
    -------
    Posterior
        The probabilities that a is smaller than b by more than ``rope``, that neither is, and that a is larger. They are nan with fewer
        than two values or missing ones, and 0 or 1 where all differences are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.statistics import bayesian_correlated_t
    >>> a = np.array([0.10, 0.12, 0.11, 0.13, 0.12])  # errors of two methods on five splits
    >>> b = np.array([0.13, 0.14, 0.15, 0.14, 0.16])
    >>> found = bayesian_correlated_t(a, b, n_train=105, n_test=45, rope=0.01)
    >>> round(found.smaller, 2), round(found.equivalent, 2), round(found.larger, 2)
    (0.92, 0.07, 0.01)
    """
    from scipy.special import stdtr

    refuse("rope", rope, NOT_NEGATIVE)
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    unit = _differences(first, second)  # free of float noise, on a common scale
    scale = float(np.max(np.abs([first, second]), initial=0.0)) or 1.0
    count = len(unit)
    if count < 2 or np.isnan(unit).any():
        return Posterior(math.nan, math.nan, math.nan)
    mean, spread, margin = float(unit.mean()), math.sqrt((1.0 / count + n_test / n_train) * float(unit.var(ddof=1))), rope / scale
    if np.ptp(unit) == 0:
        smaller, larger = float(mean < -margin), float(mean > margin)
    else:
        smaller, larger = (float(stdtr(count - 1, (-margin + sign * mean) / spread)) for sign in (-1, 1))
    return Posterior(smaller, max(0.0, 1.0 - smaller - larger), larger)


TESTS: dict[str, str] = {
    "corrected_ttest": "corrected resampled t-test (Nadeau and Bengio 2003), two-sided",
    "ttest": "paired t-test, two-sided, on these splits",
    "wilcoxon": "Wilcoxon signed-rank test, two-sided, on these splits",
}
"""Tests by the name that the configuration uses, with what a table says about them."""

ITEM_TESTS: dict[str, str] = {
    "mcnemar": "exact McNemar test, two-sided, on these items",
    "wilcoxon_items": "Wilcoxon signed-rank test, two-sided, on these items",
}
"""The same of items, which choose the test themselves: outcomes right and wrong have the first, other scores the second."""


def paired_test(test: str, a: ArrayLike, b: ArrayLike, n_train: float = math.nan, n_test: float = math.nan) -> TestResult:
    """Run the test of that name (`TESTS`, `ITEM_TESTS`, else `ConfigError`); ``n_train`` and ``n_test`` matter to the corrected one only.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.statistics import paired_test
    >>> a = np.array([0.10, 0.12, 0.11, 0.13, 0.12])  # errors of two methods on five splits
    >>> b = np.array([0.13, 0.14, 0.15, 0.14, 0.16])
    >>> round(paired_test("ttest", a, b).p_value, 4)
    0.0086
    """
    if test == "corrected_ttest":
        return corrected_t(a, b, n_train, n_test)
    others = {"ttest": paired_t, "wilcoxon": wilcoxon, "wilcoxon_items": wilcoxon, "mcnemar": mcnemar}
    if test not in others:
        raise UnknownNameError(f"no test {test!r}; {nearest(test, TESTS)}")
    return others[test](a, b)


def holm(p_values: Sequence[float]) -> NDArray[np.float64]:
    """Return p-values adjusted for several comparisons (Holm 1979), in the given order; nan stays nan and is not counted.

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6.

    Examples
    --------
    >>> from advcli.statistics import holm
    >>> [round(float(p), 2) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    return _adjusted(p_values, lambda rising: np.maximum.accumulate(rising * np.arange(len(rising), 0, -1)))


def benjamini_hochberg(p_values: Sequence[float]) -> NDArray[np.float64]:
    """Return p-values adjusted for the expected share of false discoveries, in the given order; nan stays nan and is not counted.

    The smallest level of the step-up procedure at which each is rejected. It holds for independent tests and for positively dependent ones.

    References
    ----------
    Benjamini and Hochberg (1995), "Controlling the false discovery rate: a practical and powerful approach to multiple testing", Journal of
    the Royal Statistical Society B 57.

    Examples
    --------
    >>> from advcli.statistics import benjamini_hochberg
    >>> [round(float(p), 3) for p in benjamini_hochberg([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    return _adjusted(p_values, lambda rising: np.minimum.accumulate(rising[::-1] * (len(rising) / np.arange(len(rising), 0, -1)))[::-1])


def _adjusted(p_values: Sequence[float], step: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return what ``step`` makes of p-values in rising order, at most 1, in the given order; nan stays nan and is not counted."""
    raw = np.asarray(p_values, dtype=float)
    adjusted = np.full(raw.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(raw))
    order = tested[np.argsort(raw[tested], kind="stable")]
    adjusted[order] = np.minimum(1.0, step(raw[order]))
    return adjusted


def rank_biserial(a: ArrayLike, b: ArrayLike) -> float:
    """Matched-pairs rank-biserial correlation of values (J,), the effect size of the Wilcoxon signed-rank test, in [-1, 1].

    (R+ - R-) / (R+ + R-) with the sums of ranks of the positive and the negative differences a - b (Kerby 2014, "The simple difference
    formula: an approach to teaching nonparametric correlation", Comprehensive Psychology 3): 1 if ``a`` is larger in every pair, 0 if all
    pairs are equal; nan with missing values or without pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.statistics import rank_biserial
    >>> a = np.array([0.10, 0.12, 0.11, 0.13, 0.12])  # errors of two methods on five splits
    >>> b = np.array([0.13, 0.14, 0.15, 0.14, 0.16])
    >>> rank_biserial(a, b)
    -1.0
    """
    from scipy.stats import rankdata

    difference = _differences(a, b)
    if len(difference) == 0 or np.isnan(difference).any():
        return math.nan
    ranks = rankdata(np.abs(difference[difference != 0.0]))
    positive = difference[difference != 0.0] > 0
    return float((ranks[positive].sum() - ranks[~positive].sum()) / ranks.sum()) if len(ranks) else 0.0


def equivalence(mean_a: float, std_a: float, n_a: int, mean_b: float, std_b: float, n_b: int, margin: float) -> TestResult:
    """Two one-sided Welch tests: a small p-value shows that two means differ by less than the margin.

    Schuirmann (1987, Journal of Pharmacokinetics and Biopharmaceutics 15) with Welch's standard error and degrees of freedom, for two
    independent samples of n values with a mean and a sample standard deviation; ``margin`` >= 0 is the largest difference of means that
    counts as none. ``p_value`` is the larger of the two one-sided p-values; nan when a sample has fewer than two values. Without any spread
    it is 0 or 1: the means themselves tell.

    Examples
    --------
    >>> from advcli.statistics import equivalence
    >>> round(equivalence(0.100, 0.02, 20, 0.105, 0.02, 20, margin=0.02).p_value, 3)
    0.011
    """
    from scipy.stats import t as student

    difference = mean_a - mean_b
    sign = int(np.sign(difference))
    if min(n_a, n_b) < 2 or not all(map(math.isfinite, (difference, std_a, std_b))):
        return TestResult(math.nan, sign, math.nan)
    parts = std_a**2 / n_a, std_b**2 / n_b
    variance = sum(parts)
    room = margin - abs(difference)
    if variance == 0:
        return TestResult(0.0 if room >= 0 else 1.0, sign, math.copysign(math.inf, room))
    freedom = variance**2 / (parts[0] ** 2 / (n_a - 1) + parts[1] ** 2 / (n_b - 1))
    statistic = room / math.sqrt(variance)
    return TestResult(float(student.sf(statistic, freedom)), sign, statistic)
