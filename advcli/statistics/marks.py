"""The marks "best" and "not significantly worse" of a table, and wins, ties and losses."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import UnknownNameError, nearest
from .tests import ITEM_TESTS, TESTS, TestResult, holm, paired_test


class WinsTiesLosses(NamedTuple):
    """On how many data sets a method is significantly better, neither, and significantly worse than another."""

    wins: int
    ties: int
    losses: int


CORRECTIONS: dict[str, str] = {
    "holm": "Holm's correction over all pairs of methods in a row",
    "none": "not corrected for the number of methods",
}
"""Corrections of the marks for the number of comparisons, with what a table says about them."""


_ALL_TESTS = TESTS | ITEM_TESTS


@dataclass(frozen=True)
class Significance:
    """What "significantly worse" means in a table; `ConfigError` for an unknown name.

    ``test`` is a name in `TESTS` or `ITEM_TESTS`, ``correction`` one in `CORRECTIONS`; ``alpha`` is the level of a whole row with a
    correction, of every single comparison without.
    """

    test: str = "corrected_ttest"
    alpha: float = 0.05
    correction: str = "holm"

    def __post_init__(self) -> None:
        for what, name, choices in (("test", self.test, _ALL_TESTS), ("correction", self.correction, CORRECTIONS)):
            if name not in choices:
                raise UnknownNameError(f"no {what} {name!r}; {nearest(name, choices)}")

    @classmethod
    def chosen(cls, *options: Mapping[str, Any]) -> Significance:
        """Return the significance by the first mapping with a value for each key; other keys of the mappings are passed over."""
        keys = ("test", "alpha", "correction")
        return cls(**{key: part[key] for part in reversed(options) for key in keys if part.get(key) is not None})

    def fitting(self, values: Mapping[str, ArrayLike], n_train: float, n_test: float, items: bool = False) -> Significance:
        """Return the significance by the test that the values of methods allow.

        Items have exact McNemar's test where all values are 0 or 1, else Wilcoxon's. On splits Wilcoxon's test takes the place of the
        corrected resampled t-test where the sizes of the parts, which that needs, are not known (nan).
        """
        if items:
            binary = all(np.isin(np.asarray(value), (0.0, 1.0)).all() for value in values.values())
            return replace(self, test="mcnemar" if binary else "wilcoxon_items")
        unknown = math.isnan(n_train) or math.isnan(n_test)
        return replace(self, test="wilcoxon") if self.test == "corrected_ttest" and unknown else self

    @property
    def single(self) -> str:
        """Words for one comparison."""
        return f"{_ALL_TESTS[self.test]}, alpha = {self.alpha:g}"

    @property
    def row(self) -> str:
        """Words for the marks of a row."""
        return f"{self.single}, {CORRECTIONS[self.correction]}"


DEFAULT = Significance()


@dataclass(frozen=True)
class Mark:
    """Mark of one method in one row of a table.

    ``best`` means may be several. ``p_value`` is against the best (the largest if several are best); nan for the best itself and where no
    test was possible; ``p_adjusted`` is the same with the row's correction. ``bold`` methods are best or not significantly worse.
    """

    best: bool
    p_value: float
    p_adjusted: float
    bold: bool


UNMARKED = Mark(best=False, p_value=math.nan, p_adjusted=math.nan, bold=False)
MIN_SPLITS = 2  # one split says nothing of how splits vary
MOST_IN_HOLM = 200  # methods of a row whose pairs are all tested; ten thousand methods would have fifty million pairs


def mark_best(
    values: Mapping[str, ArrayLike],
    significance: Significance,
    *,
    higher_is_better: bool = False,
    n_train: float = math.nan,
    n_test: float = math.nan,
) -> dict[str, Mark]:
    """Mark the best methods and all methods that are not significantly worse.

    Every method is compared with the best only, never along a chain: "not worse" is not transitive. With several bests a method is bold if
    it is not significantly worse than at least one of them. A significant difference in the method's favour (the best mean need not have
    the best ranks) is not "worse". A method with a missing value takes no part, nor does one whose test is undefined. A single split allows
    no test and marks nobody. Corrections are made over all pairs of a row.

    ``values`` hold the paired means per test row (J,) of every method over the same splits; ``n_train`` and ``n_test`` are the rows in the
    parts of a split, for the corrected test.

    Examples
    --------
    >>> from advcli.statistics import Significance, mark_best
    >>> errors = {"A": [0.10, 0.12, 0.11, 0.13, 0.11], "B": [0.11, 0.11, 0.12, 0.14, 0.10], "C": [0.30, 0.33, 0.32, 0.31, 0.35]}
    >>> marks = mark_best(errors, Significance("ttest", 0.05, "holm"))
    >>> {name: mark.bold for name, mark in marks.items()}
    {'A': True, 'B': True, 'C': False}
    """
    arrays = {method: np.asarray(value, dtype=float) for method, value in values.items()}
    complete = {method: array for method, array in arrays.items() if len(array) and np.isfinite(array).all()}
    marks = dict.fromkeys(arrays, UNMARKED)
    if max(map(len, complete.values()), default=0) < MIN_SPLITS:
        return marks
    better = 1 if higher_is_better else -1
    means = {method: float(array.mean()) * better for method, array in complete.items()}
    top = max(means.values())
    bests = [method for method, mean in means.items() if mean >= top - 1e-12 * max(1.0, abs(top))]

    # Long sweeps have many methods with the very same values: what is alike is tested once.
    @functools.cache
    def compared(first: bytes, second: bytes) -> TestResult:
        return paired_test(significance.test, np.frombuffer(first), np.frombuffer(second), n_train, n_test)

    content = {method: array.tobytes() for method, array in complete.items()}
    corrected = _corrected(content, compared, significance.correction)
    against = list({content[best]: best for best in bests}.values())
    for method in complete:
        if method in bests:
            marks[method] = Mark(best=True, p_value=math.nan, p_adjusted=math.nan, bold=True)
            continue
        results = [compared(content[method], content[best]) for best in against]
        raw, final = [result.p_value for result in results], [corrected(method, best) for best in against]
        bold = any(
            p >= significance.alpha or (p < significance.alpha and result.sign == better) for p, result in zip(final, results, strict=True)
        )
        p_value, p_adjusted = (math.nan if np.isnan(p).all() else float(np.nanmax(p)) for p in (raw, final))
        marks[method] = Mark(best=False, p_value=p_value, p_adjusted=p_adjusted, bold=bold)
    return marks


def _corrected(
    content: Mapping[str, bytes], compared: Callable[[bytes, bytes], TestResult], correction: str
) -> Callable[[str, str], float]:
    """Return the p-value of two methods of a row after its correction.

    The best method is read off the row, so that its comparison with k - 1 others looks at the extremes of all k (k - 1) / 2 pairs: these
    pairs are the family of Holm's correction. With k - 1 comparisons instead some of four equal methods lose their mark in 7 % of the
    rows, some of six in 9 % (docs/explanation/statistics.md has the simulation). Of more than `MOST_IN_HOLM` methods the pairs are too
    many to test; Bonferroni's correction over the same family, a little stricter, needs the tests with the best alone.
    """
    if correction == "none":
        return lambda method, best: compared(content[method], content[best]).p_value
    if len(content) > MOST_IN_HOLM:
        family = len(content) * (len(content) - 1) // 2
        return lambda method, best: float(np.minimum(1.0, family * compared(content[method], content[best]).p_value))
    pairs = list(itertools.combinations(content, 2))
    adjusted = holm([compared(*sorted((content[a], content[b]))).p_value for a, b in pairs]).tolist()
    table = {frozenset(pair): p for pair, p in zip(pairs, adjusted, strict=True)}
    return lambda method, best: table[frozenset((method, best))]


def wins_ties_losses(
    first: Sequence[ArrayLike],
    second: Sequence[ArrayLike],
    significance: Significance | Sequence[Significance] = DEFAULT,
    *,
    higher_is_better: bool = False,
    n_train: ArrayLike = math.nan,
    n_test: ArrayLike = math.nan,
) -> WinsTiesLosses:
    """Count the data sets on which ``first`` is significantly better than ``second``, neither, and significantly worse.

    One test for each data set at the level ``significance.alpha``; its correction does not count. Data sets may have a significance each.
    A data set whose test is undefined, for want of splits or of values, is a tie. Of ten data sets on which two methods are alike, one or
    more are marked by chance in four of ten cases: a count says how differences are spread, `friedman` and `wilcoxon` over the means say
    whether there is one. ``first`` and ``second`` hold the paired values (J,) of every data set; ``n_train`` and ``n_test``, one for all or
    for each, are the rows in the parts of a split.

    Examples
    --------
    >>> from advcli.statistics import Significance, wins_ties_losses
    >>> first = [[0.10, 0.11, 0.12], [0.20, 0.21, 0.20]]  # errors of a method on the splits of two data sets
    >>> second = [[0.20, 0.22, 0.21], [0.21, 0.20, 0.20]]
    >>> found = wins_ties_losses(first, second, Significance("ttest", 0.05, "none"))
    >>> found.wins, found.ties, found.losses
    (1, 1, 0)
    """
    if len(first) != len(second):
        raise ValueError(f"both methods need values of the same data sets, got {len(first)} and {len(second)}")
    parts = [np.broadcast_to(np.asarray(n, dtype=float), len(first)) for n in (n_train, n_test)]
    counts = {1: 0, 0: 0, -1: 0}
    tests = [significance] * len(first) if isinstance(significance, Significance) else significance
    for how, a, b, train, test in zip(tests, first, second, *parts, strict=True):
        result = paired_test(how.test, a, b, float(train), float(test))
        counts[result.sign if result.p_value < how.alpha else 0] += 1
    wins, losses = (counts[1], counts[-1]) if higher_is_better else (counts[-1], counts[1])
    return WinsTiesLosses(wins, counts[0], losses)
