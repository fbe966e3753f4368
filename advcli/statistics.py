"""Paired tests over splits, the marks "best" and "not significantly worse", and tests across data sets.

The papers test over 20 overlapping random splits as if they were independent (fathony2016: paired t; fathony2018: Wilcoxon
signed-rank); such tests reject a true null in about half of the data sets at a nominal 5 %. The corrected resampled t-test of
Nadeau and Bengio (2003, Machine Learning 52, section 3, "corrected resampled t-test") replaces the variance factor 1/J by
1/J + n_test/n_train.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ConfigError, nearest

__all__ = [
    "CORRECTIONS",
    "TESTS",
    "Mark",
    "Posterior",
    "Significance",
    "TestResult",
    "WinsTiesLosses",
    "bayesian_correlated_t",
    "corrected_t",
    "critical_difference",
    "equivalence",
    "friedman",
    "holm",
    "mark_best",
    "nemenyi",
    "paired_t",
    "paired_test",
    "rank_biserial",
    "row_ranks",
    "wilcoxon",
    "wins_ties_losses",
]

MIN_WILCOXON_SPLITS = 6
"""Five pairs of one sign still have the two-sided p-value 2/32 = 0.0625."""

_EXACT_PAIRS = 100


@dataclass(frozen=True)
class TestResult:
    """Outcome of a paired two-sided test of ``a`` against ``b``.

    Parameters
    ----------
    p_value : float
        In [0, 1]; nan when the test is undefined (a single split, missing values).
    sign : int
        1 if ``a`` tends to be larger than ``b``, -1 if smaller, 0 if neither, in the sense of the test's own statistic.
    statistic : float
        t, or the smaller sum of signed ranks.
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
    """Wilcoxon signed-rank test, two-sided, zero differences dropped, exact also with ties.

    Give means per test row, never counts of parts of different size. All differences zero is a tie: p = 1. With fewer than
    `MIN_WILCOXON_SPLITS` pairs no p-value is below 0.05.

    Parameters
    ----------
    a, b : array_like, shape (J,)
        Paired values.
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
        shifted = np.zeros_like(chance)
        shifted[rank:] = chance[: len(chance) - rank]
        chance = (chance + shifted) / 2
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
    """Paired t-test, two-sided; all differences zero gives p = 1, one constant other difference 2^(1 - J) as a sign test does.

    Parameters
    ----------
    a, b : array_like, shape (J,)
        Paired values.
    """
    return _t_test(a, b, 1.0 / max(1, len(np.asarray(a))))


def corrected_t(a: ArrayLike, b: ArrayLike, n_train: float, n_test: float) -> TestResult:
    """Corrected resampled t-test, two-sided: t = mean / sqrt((1/J + n_test/n_train) var), J - 1 degrees of freedom.

    Nadeau and Bengio (2003), section 3. Differences without spread are judged as by `paired_t`.

    Parameters
    ----------
    a, b : array_like, shape (J,)
        Paired values over J random splits.
    n_train, n_test : float
        Rows in the training and the test part of a split.
    """
    return _t_test(a, b, 1.0 / max(1, len(np.asarray(a))) + n_test / n_train)


@dataclass(frozen=True)
class Posterior:
    """Probabilities of what the mean difference a - b is, given the values; they sum to 1.

    Parameters
    ----------
    smaller : float
        Below -rope: ``a`` is practically smaller.
    equivalent : float
        In [-rope, rope], the region of practical equivalence.
    larger : float
        Above rope.
    """

    smaller: float
    equivalent: float
    larger: float


def bayesian_correlated_t(a: ArrayLike, b: ArrayLike, n_train: float, n_test: float, rope: float = 0.0) -> Posterior:
    """Bayesian correlated t-test: how likely one of two methods is better by more than ``rope``, on one data set.

    The mean difference has the posterior mean(d) + sqrt((1/J + n_test/n_train) var(d)) t_{J-1}, the correlation of the splits being
    n_test / (n_train + n_test) (Corani and Benavoli 2015, Machine Learning 100, eq. 8; Benavoli et al. 2017, JMLR 18, section 3).

    Parameters
    ----------
    a, b : array_like, shape (J,)
        Paired values over J random splits, or over the J folds of one cross-validation with n_test/n_train = 1/(J - 1).
    n_train, n_test : float
        Rows in the training and the test part of a split.
    rope : float
        Half the width of the region of practical equivalence, in the unit of the values; at least 0.

    Returns
    -------
    Posterior
        All nan with fewer than two values or missing ones. Differences without spread are taken for certain: one probability is 1.

    Raises
    ------
    ConfigError
        A ``rope`` below 0 or not finite.
    """
    from scipy.special import stdtr

    if not 0.0 <= rope < math.inf:
        raise ConfigError(f"rope={rope} is not valid; give a number from 0")
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


class WinsTiesLosses(NamedTuple):
    """On how many data sets a method is significantly better, neither, and significantly worse than another."""

    wins: int
    ties: int
    losses: int


TESTS: dict[str, str] = {
    "corrected_ttest": "corrected resampled t-test (Nadeau and Bengio 2003), two-sided",
    "ttest": "paired t-test, two-sided, on these splits",
    "wilcoxon": "Wilcoxon signed-rank test, two-sided, on these splits",
}
"""Tests by the name that the configuration uses, with what a table says about them."""


def paired_test(test: str, a: ArrayLike, b: ArrayLike, n_train: float = math.nan, n_test: float = math.nan) -> TestResult:
    """Run the test of that name (see `TESTS`); ``n_train`` and ``n_test`` matter to the corrected one only.

    Raises
    ------
    ConfigError
        If there is no test of that name.
    """
    if test == "wilcoxon":
        return wilcoxon(a, b)
    if test == "ttest":
        return paired_t(a, b)
    if test == "corrected_ttest":
        return corrected_t(a, b, n_train, n_test)
    raise ConfigError(f"no test {test!r}; {nearest(test, TESTS)}")


CORRECTIONS: dict[str, str] = {
    "holm": "Holm's correction over all pairs of methods in a row",
    "none": "not corrected for the number of methods",
}
"""Corrections of the marks for the number of comparisons, with what a table says about them."""


@dataclass(frozen=True)
class Significance:
    """What "significantly worse" means in a table.

    Parameters
    ----------
    test : str
        Name in `TESTS`.
    alpha : float
        Level: of a whole row with a correction, of every single comparison without.
    correction : str
        Name in `CORRECTIONS`.

    Raises
    ------
    ConfigError
        For an unknown name.
    """

    test: str = "corrected_ttest"
    alpha: float = 0.05
    correction: str = "holm"

    def __post_init__(self) -> None:
        for what, name, known in (("test", self.test, TESTS), ("correction", self.correction, CORRECTIONS)):
            if name not in known:
                raise ConfigError(f"no {what} {name!r}; {nearest(name, known)}")

    @classmethod
    def chosen(cls, *options: Mapping[str, Any]) -> Significance:
        """Return what the first mapping with a value for a key says of it; other keys of the mappings are passed over."""
        found = {key: next((part[key] for part in options if part.get(key) is not None), None) for key in ("test", "alpha", "correction")}
        return cls(**{key: value for key, value in found.items() if value is not None})

    @property
    def single(self) -> str:
        """Words for one comparison."""
        return f"{TESTS[self.test]}, alpha = {self.alpha:g}"

    @property
    def row(self) -> str:
        """Words for the marks of a row."""
        return f"{self.single}, {CORRECTIONS[self.correction]}"


DEFAULT = Significance()


@dataclass(frozen=True)
class Mark:
    """Mark of one method in one row of a table.

    Parameters
    ----------
    best : bool
        Whether its mean is the best; several may be.
    p_value : float
        Against the best (the largest p-value if several are best); nan for the best itself and where no test was possible.
    p_adjusted : float
        The same with the row's correction.
    bold : bool
        Best or not significantly worse than the best.
    """

    best: bool
    p_value: float
    p_adjusted: float
    bold: bool


MIN_SPLITS = 2
"""One split says nothing of how splits vary."""
MOST_IN_HOLM = 200
"""Methods of a row whose pairs are all tested; those of the ten thousand cells of a sweep would be fifty million."""


def mark_best(
    values: Mapping[str, ArrayLike],
    significance: Significance,
    *,
    higher_is_better: bool = False,
    n_train: float = math.nan,
    n_test: float = math.nan,
) -> dict[str, Mark]:
    """Mark the best methods and those that are not significantly worse.

    Every method is compared with the best only, never along a chain: "not worse" is not transitive. With several bests a method
    is bold if it is not significantly worse than at least one of them. A significant difference in the method's favour (the
    best mean need not have the best ranks) is not "worse". A method with a missing value takes no part, nor does one whose
    test is undefined. A single split allows no test and marks nobody.

    Which method is the best is itself read off the row, so that its comparison with k - 1 others looks at the extremes of all
    k (k - 1) / 2 pairs: those are the family of Holm's correction. With k - 1 comparisons in its place some of four equal methods
    lose their mark in 7 % of the rows, some of six in 9 % (docs/statistics.md has the simulation). Of more than `MOST_IN_HOLM` methods
    the pairs are too many to test; Bonferroni's correction over the same family, a little stricter, needs the tests with the best alone.

    Parameters
    ----------
    values : mapping of method to array_like, shape (J,)
        Paired values over the same splits: means per test row.
    significance : Significance
        Test, level and correction.
    higher_is_better : bool
        Direction of the metric.
    n_train, n_test : float
        Rows in the parts of a split, for the corrected test.
    """
    arrays = {method: np.asarray(value, dtype=float) for method, value in values.items()}
    complete = {method: array for method, array in arrays.items() if len(array) and np.isfinite(array).all()}
    marks = {method: Mark(best=False, p_value=math.nan, p_adjusted=math.nan, bold=False) for method in arrays}
    if max(map(len, complete.values()), default=0) < MIN_SPLITS:
        return marks
    means = {method: float(array.mean()) * (1 if higher_is_better else -1) for method, array in complete.items()}
    top = max(means.values())
    slack = 1e-12 * max(1.0, abs(top))
    bests = [method for method, mean in means.items() if mean >= top - slack]
    better = 1 if higher_is_better else -1

    # Long sweeps have many methods with the very same values: what is alike is tested once.
    @functools.cache
    def compared(first: bytes, second: bytes) -> TestResult:
        return paired_test(significance.test, np.frombuffer(first), np.frombuffer(second), n_train, n_test)

    content = {method: array.tobytes() for method, array in complete.items()}
    adjusted: dict[frozenset[str], float] = {}
    family = len(complete) * (len(complete) - 1) // 2
    many = len(complete) > MOST_IN_HOLM
    # equal ones of the best are one in every test
    against = list({content[best]: best for best in bests}.values()) if many else bests
    if significance.correction == "holm" and not many:
        pairs = list(itertools.combinations(complete, 2))
        corrected = holm([compared(*sorted((content[a], content[b]))).p_value for a, b in pairs]).tolist()
        adjusted = {frozenset(pair): p for pair, p in zip(pairs, corrected, strict=True)}
    for method in complete:
        if means[method] >= top - slack:
            marks[method] = Mark(best=True, p_value=math.nan, p_adjusted=math.nan, bold=True)
            continue
        results = [compared(content[method], content[best]) for best in against]
        raw = [result.p_value for result in results]
        if significance.correction == "holm" and many:
            final = np.minimum(1.0, np.multiply(raw, family)).tolist()
        else:
            final = [adjusted.get(frozenset((method, best)), p) for best, p in zip(against, raw, strict=True)]
        bold = any(
            p >= significance.alpha or (p < significance.alpha and result.sign == better) for p, result in zip(final, results, strict=True)
        )
        p_value, p_adjusted = (math.nan if np.isnan(p).all() else float(np.nanmax(p)) for p in (raw, final))
        marks[method] = Mark(best=False, p_value=p_value, p_adjusted=p_adjusted, bold=bold)
    return marks


def wins_ties_losses(
    first: Sequence[ArrayLike],
    second: Sequence[ArrayLike],
    significance: Significance = DEFAULT,
    *,
    higher_is_better: bool = False,
    n_train: ArrayLike = math.nan,
    n_test: ArrayLike = math.nan,
) -> WinsTiesLosses:
    """Count the data sets on which ``first`` is significantly better than ``second``, neither, and significantly worse.

    One test for each data set at the level ``significance.alpha``; its correction does not count. A data set whose test is undefined, for
    want of splits or of values, is a tie. Of ten data sets on which two methods are alike, one or more are marked by chance in four of
    ten cases: a count says how differences are spread, `friedman` and `wilcoxon` over the means say whether there is one.

    Parameters
    ----------
    first, second : sequence of array_like, shape (J,)
        Paired values of every data set.
    significance : Significance
        Test and level.
    higher_is_better : bool
        Direction of the metric.
    n_train, n_test : float or array_like, one for each data set
        Rows in the parts of a split, for the corrected test.
    """
    if len(first) != len(second):
        raise ValueError(f"both methods need values of the same data sets, got {len(first)} and {len(second)}")
    parts = [np.broadcast_to(np.asarray(n, dtype=float), len(first)) for n in (n_train, n_test)]
    counts = {1: 0, 0: 0, -1: 0}
    for a, b, train, test in zip(first, second, *parts, strict=True):
        found = paired_test(significance.test, a, b, float(train), float(test))
        counts[found.sign if found.p_value < significance.alpha else 0] += 1
    wins, losses = (counts[1], counts[-1]) if higher_is_better else (counts[-1], counts[1])
    return WinsTiesLosses(wins, counts[0], losses)


def friedman(scores: ArrayLike) -> TestResult:
    """Friedman's rank test across data sets (scipy's), tie-corrected.

    Parameters
    ----------
    scores : array_like, shape (n_datasets, n_methods)
        One mean per data set and method; at least three methods. Identical columns give p = 1.
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


def holm(p_values: Sequence[float]) -> NDArray[np.float64]:
    """Return p-values adjusted for several comparisons (Holm 1979), in the given order; nan stays nan and is not counted."""
    raw = np.asarray(p_values, dtype=float)
    adjusted = np.full(raw.shape, np.nan)
    known = np.flatnonzero(~np.isnan(raw))
    order = known[np.argsort(raw[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(raw[order] * factors))
    return adjusted


def rank_biserial(a: ArrayLike, b: ArrayLike) -> float:
    """Matched-pairs rank-biserial correlation, the effect size of the Wilcoxon signed-rank test.

    (R+ - R-) / (R+ + R-) with the sums of ranks of the positive and the negative differences a - b (Kerby 2014, "The simple
    difference formula", Comprehensive Psychology 3).

    Parameters
    ----------
    a, b : array_like, shape (J,)
        Paired values.

    Returns
    -------
    float
        In [-1, 1]; 1 if ``a`` is larger in every pair, 0 if there is no difference; nan with missing values or without pairs.
    """
    from scipy.stats import rankdata

    difference = _differences(a, b)
    if len(difference) == 0 or np.isnan(difference).any():
        return math.nan
    ranks = rankdata(np.abs(difference[difference != 0.0]))
    positive = difference[difference != 0.0] > 0
    return float((ranks[positive].sum() - ranks[~positive].sum()) / ranks.sum()) if len(ranks) else 0.0


def row_ranks(scores: ArrayLike, higher_is_better: bool = False) -> NDArray[np.float64]:
    """Return the ranks within each row: 1 is the best, ties share the mean rank.

    Parameters
    ----------
    scores : array_like, shape (n_datasets, n_methods)
        Without missing values; differences below 1e-12 of a row's largest value are ties.
    higher_is_better : bool
        Direction of the scores.

    Returns
    -------
    ndarray, shape (n_datasets, n_methods)
        From 1 to n_methods.
    """
    from scipy.stats import rankdata

    table = np.asarray(scores, dtype=float)
    scale = np.max(np.abs(table), axis=1, keepdims=True, initial=0.0)
    table = np.round(table / np.where(scale > 0, scale, 1.0), 12)
    return np.asarray(rankdata(-table if higher_is_better else table, axis=1), dtype=float)


def critical_difference(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Return the critical difference of mean ranks of the Nemenyi test.

    q_alpha sqrt(k (k + 1) / (6 N)) with q_alpha the quantile of the studentised range divided by sqrt(2) (Demsar 2006, JMLR 7,
    section 3.2.2).
    """
    from scipy.stats import studentized_range

    quantile = float(studentized_range.ppf(1 - alpha, n_methods, math.inf)) / math.sqrt(2)
    return quantile * math.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))


def nemenyi(mean_ranks: ArrayLike, n_datasets: int) -> NDArray[np.float64]:
    """Return the p-values of the Nemenyi test for all pairs of methods (Demsar 2006, JMLR 7, section 3.2.2).

    Parameters
    ----------
    mean_ranks : array_like, shape (n_methods,)
        Ranks averaged over the data sets.
    n_datasets : int
        Number of data sets.

    Returns
    -------
    ndarray, shape (n_methods, n_methods)
        Symmetric, 1 on the diagonal.
    """
    from scipy.stats import studentized_range

    means = np.asarray(mean_ranks, dtype=float)
    spread = math.sqrt(len(means) * (len(means) + 1) / (6 * n_datasets))
    statistic = np.abs(means[:, None] - means[None, :]) / spread * math.sqrt(2)
    return np.asarray(studentized_range.sf(statistic, len(means), math.inf), dtype=float)


def equivalence(mean_a: float, std_a: float, n_a: int, mean_b: float, std_b: float, n_b: int, margin: float) -> TestResult:
    """Two one-sided Welch tests: a small p-value shows that two means differ by less than the margin.

    Schuirmann (1987, Journal of Pharmacokinetics and Biopharmaceutics 15) with Welch's standard error and degrees of freedom.

    Parameters
    ----------
    mean_a, std_a, n_a, mean_b, std_b, n_b
        Mean, sample standard deviation and number of values of two independent samples.
    margin : float
        The largest difference of means that counts as no difference, at least 0.

    Returns
    -------
    TestResult
        ``p_value`` is the larger of the two one-sided p-values; nan when a sample has fewer than two values. Without any spread
        it is 0 or 1: the means themselves tell.
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
