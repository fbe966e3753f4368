"""Tests over splits, items and data sets; risk over coverage of a classifier that abstains."""

from .across import best_group, critical_difference, friedman, improvability, nemenyi, row_ranks
from .items import Interval, bootstrap_means, paired_bootstrap, wilson
from .marks import CORRECTIONS, Mark, Significance, WinsTiesLosses, mark_best, wins_ties_losses
from .tests import (
    ITEM_TESTS,
    TESTS,
    Posterior,
    TestResult,
    bayesian_correlated_t,
    benjamini_hochberg,
    corrected_t,
    equivalence,
    holm,
    mcnemar,
    paired_t,
    paired_test,
    rank_biserial,
    wilcoxon,
)

__all__ = ["best_group", "critical_difference", "friedman", "improvability", "nemenyi", "row_ranks"]
__all__ += ["Interval", "bootstrap_means", "paired_bootstrap", "wilson"]
__all__ += ["CORRECTIONS", "Mark", "Significance", "WinsTiesLosses", "mark_best", "wins_ties_losses"]
__all__ += [
    "ITEM_TESTS",
    "TESTS",
    "Posterior",
    "TestResult",
    "bayesian_correlated_t",
    "benjamini_hochberg",
    "corrected_t",
    "equivalence",
    "holm",
]
__all__ += ["mcnemar", "paired_t", "paired_test", "rank_biserial", "wilcoxon"]
