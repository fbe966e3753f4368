"""All searches along one training: the training ends where no label is violated, and what is recorded is what the searches find."""

from __future__ import annotations

import numpy as np
import pytest

from advcli.core.errors import ConfigError
from advcli.learners.structured.label_sets import PairWeights, SearchedSets
from advcli.learners.structured.spaces.psi import make_psi
from advcli.learners.structured.trials import RATIO, Trial, try_searches


def structure(relaxed: bool, n: int = 8, m: int = 4) -> SearchedSets:
    """Return rows whose labels depend on their features and on each other."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    Y = (X @ random.normal(size=(3, m)) + 0.5 * random.normal(size=(n, m)) > 0.0).astype(np.int8)
    return SearchedSets(X, Y, np.full(n, 1.0 / n), make_psi("slack"), PairWeights(m, "one"), relaxed=relaxed)


def by_round(trials: list[Trial], name: str) -> list[list[Trial]]:
    """Return the trials of one search, round by round."""
    return [[each for each in trials if each.round == turn and each.search == name] for turn in range(trials[-1].round + 1)]


@pytest.mark.parametrize("relaxed", [False, True])
def test_the_training_ends_where_the_leading_search_finds_no_violation(relaxed: bool) -> None:
    epsilon, names = 0.2, ["angular", "hull", *([] if relaxed else ["levels", "sarawagi"])]
    trials = try_searches(structure(relaxed), 0.1, epsilon, names)
    rounds = by_round(trials, "angular")
    assert len(rounds) > 3
    assert all(any(each.value > each.slack + epsilon for each in some) for some in rounds[:-1])
    assert all(each.value <= each.slack + epsilon for each in rounds[-1])
    assert {each.search for each in trials} == set(names)
    assert len(trials) == len(rounds) * 8 * len(names)
    # at w = 0 the largest loss is the worst, whatever the label
    assert all(each.value == pytest.approx(4.0) for each in rounds[0])
    whole = by_round(trials, "hull" if relaxed else "levels")
    for some, best in zip(rounds, whole, strict=True):
        for each, other in zip(some, best, strict=True):
            assert other.value >= each.value * (1.0 - 1e-6)
            assert each.value >= RATIO * other.value - 1e-6
            # the planes that are stored lie below the surrogate
            assert other.slack <= other.upper + 1e-9


def test_the_leading_search_must_be_among_them() -> None:
    with pytest.raises(ConfigError, match="must have angular among them"):
        try_searches(structure(False), 0.1, 0.2, ["hull"])
