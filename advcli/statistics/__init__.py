"""Tests over splits and data sets; risk over coverage of a classifier that abstains."""

from .across import critical_difference, friedman, nemenyi, row_ranks
from .marks import CORRECTIONS, Mark, Significance, WinsTiesLosses, mark_best, wins_ties_losses
from .tests import (
    TESTS,
    Posterior,
    TestResult,
    bayesian_correlated_t,
    corrected_t,
    equivalence,
    holm,
    paired_t,
    paired_test,
    rank_biserial,
    wilcoxon,
)

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
