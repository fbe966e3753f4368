"""Accepting some predictions and not others: risk against coverage, and a threshold with a guarantee.

A prediction is accepted where its margin, a number that says how sure it is, exceeds a threshold tau. Coverage is the share of rows that
are accepted, risk the share of these whose prediction is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import FRACTION, refuse
from ..core.errors import ConfigError, DataError
from ..core.groups import accepted_errors
from ..core.typing import Array

_APART = 20  # held-out rows at least that only set thresholds


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The risk of the accepted at every threshold, for n rows with m different margins.

    Rows of at least the margin ``threshold`` are accepted, largest first. ``aurc`` is the area under the curve: the mean over i = 1..n of
    the risk of the i rows of largest margin (Geifman & El-Yaniv 2017). Rows of equal margin come in random order, in expectation.
    ``excess`` is E-AURC: ``aurc`` minus the ``aurc`` of margins that put all wrong rows last (Geifman, Uziel & El-Yaniv 2019, without their
    approximation). ``augrc`` is the area under the generalised risk, the mean over i of the share of all n rows that are among these i and
    wrong (Traub et al. 2024): at the margins of chance half of the risk of all, and no sum of risks of few rows.
    """

    threshold: Array
    coverage: Array
    risk: Array
    aurc: float
    excess: float
    augrc: float

    @property
    def accuracy(self) -> Array:
        """Share of the accepted that are right, shape (m,)."""
        return 1.0 - self.risk


def risk_coverage(margin: Any, wrong: Any) -> RiskCoverage:
    """Return the curve of risk over coverage.

    ``margin`` (n,) says how sure each prediction is, -inf for a row that is never accepted before all others; ``wrong`` (n,) whether it is
    wrong. `DataError` for no rows, arrays of different lengths, or a margin that is nan.
    """
    margin, wrong = _checked(margin, wrong)
    n = len(margin)
    values, accepted, total, expected = accepted_errors(margin, wrong)
    rank = np.arange(1.0, n + 1.0)
    aurc = float((expected / rank).mean())
    best = float((np.maximum(rank - (n - total[-1]), 0.0) / rank).mean())
    return RiskCoverage(values, accepted / n, total / accepted, aurc, max(aurc - best, 0.0), float(expected.mean()) / n)


@dataclass(frozen=True, eq=False)
class Guarantee:
    """A threshold tau above which predictions are wrong with probability at most epsilon, with confidence 1 - delta.

    Where no threshold passes, tau is infinite and no row is accepted. ``rows`` are the held-out rows that were tested on, ``accepted`` of
    them at tau, of which ``wrong`` are wrong.
    """

    tau: float
    epsilon: float
    delta: float
    rows: int
    accepted: int
    wrong: int

    @property
    def coverage(self) -> float:
        """Share of the held-out rows that are accepted."""
        return self.accepted / self.rows

    def __str__(self) -> str:
        """Say what is guaranteed, in one line."""
        if self.tau == np.inf:
            return (
                f"no threshold keeps the error of the accepted at most {self.epsilon:g} with confidence {1 - self.delta:g} "
                f"on {self.rows} held-out rows: all are left undecided"
            )
        return (
            f"error of the accepted at most {self.epsilon:g} with confidence {1 - self.delta:g}: tau = {self.tau:.4g} accepts "
            f"{self.accepted} of {self.rows} held-out rows, {self.wrong} of them wrong"
        )


def guarantee(scores: Any, wrong: Any, level: float = 0.05, delta: float = 0.1, thresholds: Any = None) -> Guarantee:
    """Return the smallest threshold that held-out rows prove good enough, for any classifier (learn then test, Angelopoulos et al. 2021).

    The hypothesis of a threshold t is that a prediction with a score above t is wrong with probability above ``level``. Given how many
    held-out rows are accepted, N, the number of wrong ones is binomial, so P(Binomial(N, level) <= wrong) is an exact p-value. The
    hypotheses are tested in turn, from the largest threshold down, at level delta each, until one is not rejected (fixed-sequence
    testing): the probability that any rejected one is true is at most delta.

    Assumed: the held-out rows and the rows to come are drawn independently from one law, in an order that says nothing. What was fitted
    does not depend on the held-out rows. Nothing is assumed of the scores. Of all draws of held-out rows at most the share delta gives a
    bad threshold.

    Parameters
    ----------
    scores : array (n,)
        How sure the prediction of each held-out row is, larger for surer: the largest probability, the lead of the largest score.
    wrong : array (n,)
        Whether the prediction is wrong.
    level, delta : float
        Error of the accepted at most, and the probability that this is false, both in (0, 1).
    thresholds : array, optional
        Numbers that fall, chosen without a look at these rows. None: scores of a first tenth of the rows, at least 20, which are not tested
        on.

    Returns
    -------
    Guarantee
        The threshold ``tau``: accept a prediction whose score is above it. Infinite where no threshold passes.

    Raises
    ------
    ConfigError
        Numbers outside their range.
    DataError
        Too few rows, arrays of different lengths, or a score that is nan.

    References
    ----------
    Angelopoulos, Bates, Candes, Jordan and Lei (2021), "Learn then test: calibrating predictive algorithms to achieve risk control",
    arXiv 2110.01052.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import train_test_split
    >>> from advcli import guarantee
    >>> X, held, y, truth = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
    >>> model = LogisticRegression(C=1e-4).fit(X, y)
    >>> found = guarantee(model.predict_proba(held).max(axis=1), model.predict(held) != truth, level=0.02)
    >>> 0.5 < found.coverage < 1.0
    True
    """
    margin, wrong = _checked(scores, wrong)
    epsilon = level
    from scipy.stats import binom  # takes half a second

    for name, value in (("level", level), ("delta", delta)):
        refuse(name, value, FRACTION)
    if thresholds is None:
        levels, margin, wrong = _apart(margin, wrong, epsilon, delta)
    else:
        levels = np.asarray(thresholds, dtype=np.float64)
        if levels.ndim != 1 or not len(levels) or not (np.diff(levels) <= 0.0).all():
            raise ConfigError("thresholds must be numbers that fall")
    order = np.argsort(-margin, kind="stable")
    accepted = np.searchsorted(-margin[order], -levels, side="left")  # margins above the threshold
    errors = np.r_[0, np.cumsum(wrong[order])].astype(np.intp)[accepted]
    passes = binom.cdf(errors, accepted, epsilon) <= delta
    last = int(np.argmin(np.r_[passes, False])) - 1
    if last < 0:
        return Guarantee(float("inf"), float(epsilon), float(delta), len(margin), 0, 0)
    return Guarantee(float(levels[last]), float(epsilon), float(delta), len(margin), int(accepted[last]), int(errors[last]))


def _apart(margin: Array, wrong: NDArray[np.bool_], epsilon: float, delta: float) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return thresholds, the margins of a first tenth of the rows from one on that can be proved, and the rows that are left."""
    apart = max(_APART, len(margin) // 10)
    if len(margin) <= apart:
        raise DataError(f"{len(margin)} held-out rows are too few: {apart} are set apart for the choice of thresholds")
    seen, margin, wrong = np.sort(margin[:apart])[::-1], margin[apart:], wrong[apart:]
    first = 3.0 * np.log(delta) / np.log1p(-epsilon) / len(margin)
    # just below the margins, so that rows of equal margin are accepted
    return np.r_[np.nextafter(seen[int(min(first, 0.5) * apart) :], -np.inf), -np.inf], margin, wrong


def _checked(margin: Any, wrong: Any) -> tuple[Array, NDArray[np.bool_]]:
    margin, wrong = np.asarray(margin, dtype=np.float64), np.asarray(wrong, dtype=bool)
    if margin.ndim != 1 or margin.shape != wrong.shape or not len(margin):
        raise DataError(f"margins and errors must be one number a row each, got {margin.shape} and {wrong.shape}")
    if np.isnan(margin).any():
        raise DataError("a margin is nan")
    return margin, wrong
