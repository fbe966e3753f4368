"""Where each method stands over all data sets: mean rank and improvability with bootstrap intervals, and the group of the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..metrics import as_errors, meaning
from ..statistics.across import best_group, improvability, row_ranks
from ..statistics.items import Interval, bootstrap_means
from .across import MIN_DATASETS, Across

LEVEL = 0.95
"""Coverage of the intervals."""


@dataclass(frozen=True)
class Standing:
    """A method over all data sets that all compared methods have."""

    method: str
    rank: Interval
    improvability: Interval | None  # None where the best value of the metric is not known
    in_group: bool  # the best mean rank, or not separable from it


def standings(across: Across, alpha: float) -> list[Standing]:
    """Return the methods by their mean rank; none where there are too few data sets, or too many methods for pairs."""
    if len(across.datasets) < MIN_DATASETS or across.pairs.empty:
        return []
    scores, methods = across.scores, across.methods
    places = {method: at for at, method in enumerate(methods)}
    p_values = np.ones((len(methods), len(methods)))
    for row in across.pairs.to_dict("records"):
        a, b = places[row["method"]], places[row["other"]]
        p_values[a, b] = p_values[b, a] = row["p_wilcoxon"]
    group = best_group(p_values, int(np.argmin(across.mean_ranks)), alpha)
    ranks = bootstrap_means(row_ranks(scores, meaning(across.metric).higher_is_better), LEVEL)
    errors = as_errors(across.metric, scores)
    gaps = [None] * len(methods) if errors is None else bootstrap_means(improvability(errors), LEVEL)
    found = [Standing(*parts) for parts in zip(methods, ranks, gaps, map(bool, group), strict=True)]
    return sorted(found, key=lambda standing: standing.rank.estimate)
