"""Methods compared across data sets: mean ranks, Friedman, Wilcoxon with Holm's correction, Nemenyi, effect sizes.

The unit is a data set: every data set gives one mean per method. Demsar (2006, JMLR 7) recommends this analysis.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..metrics import meaning
from ..statistics.across import critical_difference, friedman, nemenyi, row_ranks
from ..statistics.tests import TestResult, holm, rank_biserial, wilcoxon
from .formats.document import counted, listed

MIN_DATASETS = 5
"""Fewer data sets support no test: five of one sign still have the Wilcoxon p-value 0.0625."""
MIN_METHODS = 3
"""The Friedman test and the critical difference are about at least three methods."""
MOST_PAIRED = 40
"""Methods of a report that are compared pair by pair: thousands, of a sweep over two long axes, would be millions of tests."""

PAIR_MEANINGS = {
    "metric": "name of the metric",
    "method": "first method",
    "other": "second method",
    "n_datasets": "data sets that have both",
    "wins": "data sets where the mean of `method` is better",
    "ties": "data sets where the means are equal",
    "losses": "data sets where the mean of `method` is worse",
    "median_difference": "median over the data sets of mean of `method` - mean of `other`",
    "effect_size": "matched-pairs rank-biserial correlation: 1 if `method` is better on every data set, -1 if worse",
    "p_wilcoxon": "p-value of the Wilcoxon signed-rank test over the data sets",
    "p_holm": "the same after Holm's correction for all pairs",
    "p_nemenyi": "p-value of the Nemenyi test",
}
"""Columns of pairs.csv with their meanings: one row per pair of methods, over all data sets."""

PAIR_COLUMNS = tuple(PAIR_MEANINGS)


@dataclass(frozen=True)
class Across:
    """What can be said across data sets about one metric."""

    metric: str
    methods: tuple[str, ...]  # every one of them has a complete result on every one of the data sets
    datasets: tuple[str, ...]
    mean_ranks: NDArray[np.float64]  # (n_methods,); 1 is the best; empty if nothing is comparable
    friedman: TestResult | None  # None when there are too few data sets or methods
    critical_difference: float  # of the Nemenyi test; nan as above
    nemenyi: NDArray[np.float64]  # its p-values (n_methods, n_methods); empty as above
    pairs: pd.DataFrame  # columns `PAIR_COLUMNS`; empty when there are too few data sets
    scores: NDArray[np.float64]  # means (n_datasets, n_methods)
    remarks: tuple[str, ...]  # what was left out or cannot be said, and why


def across_datasets(summary: pd.DataFrame, metric: str, alpha: float = 0.05) -> Across:
    """Compare the methods of a summary across data sets, at a level of the tests.

    Methods without a complete result on at least half of the data sets are left out first, then the data sets that a remaining method
    lacks.
    """
    unpaired = summary.attrs.get("unpaired", [])
    summary = summary[(summary["metric"] == metric) & ~summary["dataset"].isin(unpaired)]
    table = summary[(summary["failed"] == 0) & (summary["n_splits"] > 0)].pivot(index="dataset", columns="method", values="mean")
    thin = set(summary["method"]) - {str(method) for method in table.columns[table.notna().sum() * 2 >= summary["dataset"].nunique()]}
    table = table.drop(columns=list(thin), errors="ignore")
    whole = table.dropna()
    lacking = set(summary["dataset"]) - set(map(str, whole.index)) if len(table.columns) else set()
    left_out = {
        "as splits differ there": unpaired,
        "as complete on fewer than half of the data sets": sorted(thin),
        "as a method has no complete result there": sorted(lacking),
    }
    remarks = [f"left out, {reason}: {listed(names)}" for reason, names in left_out.items() if names]
    methods, datasets = tuple(map(str, whole.columns)), tuple(map(str, whole.index))
    scores = whole.to_numpy(dtype=float)
    higher = meaning(metric).higher_is_better
    enough_data = len(datasets) >= MIN_DATASETS and len(methods) >= 2
    enough_methods = enough_data and len(methods) >= MIN_METHODS
    means = row_ranks(scores, higher).mean(axis=0) if len(methods) >= 2 and len(datasets) >= 1 else np.empty(0)
    pairwise = nemenyi(means, len(datasets)) if enough_methods else np.empty((0, 0))
    paired = enough_data and len(methods) <= MOST_PAIRED
    pairs = _pairs(metric, methods, scores, higher, pairwise) if paired else pd.DataFrame(columns=list(PAIR_COLUMNS))
    remarks += _limits(len(methods), len(datasets), len(pairs), alpha)
    return Across(
        metric=metric,
        methods=methods,
        datasets=datasets,
        mean_ranks=means,
        friedman=friedman(scores) if enough_methods else None,
        critical_difference=critical_difference(len(methods), len(datasets), alpha) if enough_methods else math.nan,
        nemenyi=pairwise,
        pairs=pairs,
        scores=scores,
        remarks=tuple(remarks),
    )


def _limits(n_methods: int, n_datasets: int, n_pairs: int, alpha: float) -> list[str]:
    """Return what so few data sets or methods, or so many, do not allow."""
    if n_datasets < MIN_DATASETS or n_methods < 2:
        have = f"{counted(n_datasets, 'data set')} and {counted(n_methods, 'method')}"
        wanted = f"at least {MIN_DATASETS} data sets and 2 methods ({MIN_METHODS} for the Friedman test and the critical difference)"
        return [f"too little to test across data sets: {have} with complete results; needed are {wanted}"]
    lines = []
    if n_methods < MIN_METHODS:
        lines.append(f"two methods only: no Friedman test and no critical difference, which are about {MIN_METHODS} or more")
    if n_methods > MOST_PAIRED:
        return [*lines, f"more than {MOST_PAIRED} methods are not compared pair by pair; report.methods=[...] chooses some"]
    smallest = n_pairs * 2.0 ** (1 - n_datasets)
    if smallest >= alpha:
        lines.append(
            f"{counted(n_datasets, 'data set is', 'data sets are')} too few for {counted(n_pairs, 'pair')}: "
            f"the smallest p-value possible after Holm's correction is {min(1.0, smallest):.2g}"
        )
    return lines


def _pairs(
    metric: str, methods: tuple[str, ...], scores: NDArray[np.float64], higher: bool, nemenyi_p: NDArray[np.float64]
) -> pd.DataFrame:
    lines = []
    sign = 1.0 if higher else -1.0
    for a, b in itertools.combinations(range(len(methods)), 2):
        first, second = sign * scores[:, a], sign * scores[:, b]
        both = row_ranks(np.column_stack([first, second]), higher_is_better=True)
        lines.append(
            {
                "metric": metric,
                "method": methods[a],
                "other": methods[b],
                "n_datasets": len(scores),
                "wins": int((both[:, 0] < both[:, 1]).sum()),
                "ties": int((both[:, 0] == both[:, 1]).sum()),
                "losses": int((both[:, 0] > both[:, 1]).sum()),
                "median_difference": float(np.median(scores[:, a] - scores[:, b])),
                "effect_size": rank_biserial(first, second),
                "p_wilcoxon": wilcoxon(first, second).p_value,
                "p_nemenyi": float(nemenyi_p[a, b]) if len(nemenyi_p) else math.nan,
            }
        )
    frame = pd.DataFrame(lines)
    frame["p_holm"] = holm(frame["p_wilcoxon"].tolist())
    return frame[list(PAIR_COLUMNS)]
