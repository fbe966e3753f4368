"""Predictions of the package are among the possible predictions of the checker, alone without ties, for all losses and rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.losses import make_loss, matrices
from advcli.losses.general import GeneralLoss
from advcli.losses.rejecting import BinaryEncodedLoss, RejectingCrammerSingerLoss, RejectingOneVersusAllLoss
from advcli.verify.bounds import Ball, ball
from advcli.verify.decisions import beyond, of_game
from advcli.verify.surrogates import Surrogate, closed_form

REJECTING = {"abstain_ova": RejectingOneVersusAllLoss, "abstain_cs": RejectingCrammerSingerLoss, "abstain_bep": BinaryEncodedLoss}
RULES = [
    ("zero_one", {}, ("predictor", "potentials")),
    ("absolute", {}, ("default", "predictor", "median", "mean")),
    ("squared", {}, ("predictor", "median", "mean")),
    ("huber", {}, ("median",)),
    ("pinball", {"quantile": 0.3}, ("median", "mean")),
    ("weighted", {"weight": 2.5, "base": "absolute"}, ("median", "mean")),
    ("weighted", {"weight": [1.0, 2.0, 3.0, 0.5], "base": "zero_one"}, ("predictor",)),
    ("general", {"matrix": (3.0 * matrices.zero_one(4)).tolist()}, ("predictor",)),
    ("general", {"matrix": (2.0 * matrices.absolute(4)).tolist()}, ("predictor",)),
    *(("abstain", {"alpha": alpha}, ("default", "potentials")) for alpha in (0.0, 0.2, 0.5, 0.7, 2.0 / 3.0, 1.0)),
    ("abstain", {"alpha": [0.1, 0.3, 0.2, 0.4]}, ("default",)),
]


def scores(seed: int, n: int, k: int, rounded: bool) -> Any:
    """Return scores of a random scale, or halves, which tie."""
    random = np.random.default_rng(seed)
    F = random.normal(size=(n, k)) * 10.0 ** random.uniform(-2, 2)
    return np.round(2.0 * random.normal(size=(n, k))) / 2.0 if rounded else F


def agree(possible: Any, predicted: Any, tied: bool) -> None:
    assert possible[np.arange(len(predicted)), predicted].all()
    if not tied:
        assert (possible.sum(axis=1) == 1).mean() >= 0.9


@pytest.mark.parametrize(("name", "options", "rules"), RULES, ids=lambda value: str(value)[:40])
@given(seed=st.integers(0, 10**6), rounded=st.booleans())
@settings(max_examples=8, deadline=None)
def test_predictions_of_games_are_possible(name: str, options: dict[str, Any], rules: tuple[str, ...], seed: int, rounded: bool) -> None:
    k = 4
    F, loss = scores(seed, 40, k, rounded), make_loss(name, k, **options)
    for rule in rules:
        mine = Surrogate({"name": name, **options, "rule": rule}, k, list("abcd"))
        agree(mine.possible(ball(F)), loss.predict(F, rule), rounded)
        # scores that are known up to a radius allow what any of them predicts
        moved = F + np.random.default_rng(seed).uniform(-0.1, 0.1, F.shape)
        agree(mine.possible(Ball(F, np.full(F.shape, 0.1))), loss.predict(moved, rule), True)


@given(seed=st.integers(0, 10**6), rounded=st.booleans(), l=st.integers(1, 6), backend=st.sampled_from(["simplex", "highs"]))
@settings(max_examples=20, deadline=None)
def test_predictions_of_any_matrix_are_possible(seed: int, rounded: bool, l: int, backend: str) -> None:
    random = np.random.default_rng(seed)
    A = random.uniform(-0.2, 2.0, (l, 3))
    A = np.round(A) if rounded else A
    F = scores(seed, 20, 3, rounded)
    loss = GeneralLoss(3, matrix=A.tolist(), backend=backend)
    agree(of_game(A, ball(F), closed_form(A, {"backend": backend})), loss.predict(F, "predictor"), True)


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.25, 1.0, 7.0]), alpha=st.sampled_from([0.2, 0.5, 0.7]))
@settings(max_examples=20, deadline=None)
def test_a_matrix_of_abstention_at_any_scale_is_decided_as_the_house_does(seed: int, scale: float, alpha: float) -> None:
    A = scale * matrices.abstain(3, alpha)
    F = scores(seed, 30, 3, False)
    agree(of_game(A, ball(F), closed_form(A)), GeneralLoss(3, matrix=A.tolist()).predict(F, "predictor"), False)


def test_the_predictor_of_a_matrix_without_ties_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    A, F = random.uniform(0.0, 2.0, (5, 3)), random.normal(size=(200, 3))
    assert (of_game(A, ball(F)).sum(axis=1) == 1).mean() > 0.9
    monkeypatch.setattr("advcli.verify.decisions._MOST", 200 * 5 * 8)
    assert of_game(A, ball(F)) is not None
    assert of_game(A, ball(F[[*range(200), 0]])) is None


@pytest.mark.parametrize("name", REJECTING)
@pytest.mark.parametrize("alpha", [0.5, 0.3])
@pytest.mark.parametrize("tau", [None, -0.2, 0.0, 0.75])
@given(seed=st.integers(0, 10**6), rounded=st.booleans())
@settings(max_examples=5, deadline=None)
def test_abstentions_are_possible(name: str, alpha: float, tau: float | None, seed: int, rounded: bool) -> None:
    for k in (1, 2, 5):
        loss = REJECTING[name](k, alpha)
        mine = Surrogate({"name": name, "alpha": alpha, "tau": tau}, k, list("abcde")[:k])
        F = scores(seed, 40, mine.k, rounded)
        P = loss.class_scores(F)
        predicted = np.where(loss.margin(P) > (loss.threshold if tau is None else tau), np.argmax(P, axis=1), k)
        # with digits, classes whose worst digit is the same one tie below 0
        agree(mine.possible(ball(F)), predicted, rounded or (name == "abstain_bep" and tau is not None and tau < 0.0))


def test_at_the_threshold_a_classifier_abstains() -> None:
    leaders = np.array([[True, False]] * 3)
    possible = beyond(leaders, ball(np.array([0.5 - 1e-9, 0.5, 0.5 + 1e-9])), 0.5)
    assert possible[[0, 2]].tolist() == [[False, False, True], [True, False, False]]
    assert possible[1, 2]
