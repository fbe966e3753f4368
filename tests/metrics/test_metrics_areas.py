"""Areas under risk over coverage, as metrics: brute force, closed cases, and the curve of `advcli coverage`."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest

from advcli import metrics
from advcli.statistics.risk_coverage import risk_coverage


def areas(scores: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    facts = {"scores": scores}
    return tuple(metrics.compute(name, y, scores.argmax(axis=1), scores.shape[1], facts) for name in ("aurc", "augrc"))  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(5))
def test_they_are_means_over_all_orders_of_ties(seed: int) -> None:
    random = np.random.default_rng(seed)
    scores, y = np.round(random.normal(size=(6, 3))), random.integers(0, 3, 6)
    lead = np.sort(scores, axis=1)
    lead, wrong = lead[:, -1] - lead[:, -2], scores.argmax(axis=1) != y
    risks, shares = [], []
    for order in permutations(range(6)):
        if all(lead[a] >= lead[b] for a, b in pairwise(order)):
            errors = np.cumsum(wrong[list(order)])
            risks.append((errors / np.arange(1, 7)).mean())
            shares.append((errors / 6.0).mean())
    found = areas(scores, y)
    assert found == pytest.approx((np.mean(risks), np.mean(shares)))
    curve = risk_coverage(lead, wrong)
    assert found == pytest.approx((curve.aurc, curve.augrc))


def test_closed_cases() -> None:
    random = np.random.default_rng(0)
    right = np.eye(3)[random.integers(0, 3, 50)]
    assert areas(right, right.argmax(axis=1)) == (0.0, 0.0)
    level = np.tile([1.0, 0.0, 0.0], (400, 1))  # no row leads more than another: the order says nothing
    y = np.repeat([0, 1], [300, 100])
    risk, share = areas(level, y)
    assert risk == pytest.approx(0.25)
    assert share == pytest.approx(0.25 * 401 / 800)
