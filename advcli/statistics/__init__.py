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

__all__ = ["critical_difference", "friedman", "nemenyi", "row_ranks"]
__all__ += ["CORRECTIONS", "Mark", "Significance", "WinsTiesLosses", "mark_best", "wins_ties_losses"]
__all__ += ["TESTS", "Posterior", "TestResult", "bayesian_correlated_t", "corrected_t", "equivalence", "holm", "paired_t", "paired_test"]
__all__ += ["rank_biserial", "wilcoxon"]
