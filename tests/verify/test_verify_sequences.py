"""The checker's bounds of label sequences hold for any parameters and planes; fits of every surrogate are proved, altered ones not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.altered_folders import cell_of, copied, edit_rows, judged, refuted_at_another_strength_or_surrogate, refuted_when_altered

from advcli import ChainClassifier
from advcli.cli import main
from advcli.learners.structured.spaces.chain_game import chain_game
from advcli.learners.structured.spaces.psi import make_psi
from advcli.verify.bounds import Ball, ball
from advcli.verify.gap import LearnedRows
from advcli.verify.sequences import SequencesOfLabels, starts_of

SURROGATES = ("margin", "slack", "scaling", "log", "prob", "maxmin")
OPTIONS = {"name": "chain", "rule": "potentials", "fit_intercept": True, "beta": None}


def rows(seed: int, chains: int = 12, k: int = 3) -> tuple[Any, Any, Any, Any]:
    """Return rows, labels, the sequence of each, two of them equal, and weights, one of them 0."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 5, chains)
    sizes[1] = sizes[0]
    groups = np.repeat(np.arange(chains), sizes)
    X = random.normal(size=(len(groups), 2)).round(1)
    y = np.argmax(X @ random.normal(size=(2, k)) + 0.7 * random.normal(size=(len(groups), k)), axis=1)
    y[:k] = np.arange(k)
    X[groups == 1], y[groups == 1] = X[groups == 0], y[groups == 0]
    weight = random.integers(1, 4, size=chains).astype(float)
    weight[3] = 0.0
    return X, y, groups, weight[groups]


def fitted(seed: int, surrogate: str) -> tuple[Any, Any, Any, Any, Any]:
    """Return a fit to `rows`, what proves it, the checker, its feature map and the rows that it sees."""
    X, y, groups, weight = rows(seed)
    y = np.unique(y, return_inverse=True)[1]
    fit = ChainClassifier(surrogate=surrogate, C=2.0, tol=1e-2).fit(X, y, groups=groups, sample_weight=weight)
    checker = SequencesOfLabels({**OPTIONS, "surrogate": surrogate}, len(fit.classes_))
    features = checker.score_map({"name": "linear"}, None, X)
    return fit, fit.proof(X, y, weight), checker, features, LearnedRows(y, weight, None, None, groups)


@pytest.mark.parametrize("surrogate", SURROGATES)
@given(seed=st.integers(0, 10**6), share=st.floats(0.0, 1.0))
@settings(max_examples=5, deadline=None)
def test_bounds_hold_for_any_proof_and_are_tight_for_that_of_a_fit(surrogate: str, seed: int, share: float) -> None:
    fit, proof, checker, features, learned = fitted(seed, surrogate)
    stated = fit.certificate_
    proved = checker.bounds(features, learned, fit.lam_, proof)
    assert float(proved.primal.high) == pytest.approx(stated.primal, rel=1e-10)
    assert float(proved.dual.low) == pytest.approx(stated.dual, rel=1e-10)
    random, k = np.random.default_rng(seed), checker.k
    theta, planes = proof["theta"], []
    theta = share * theta + (1.0 - share) * random.normal(size=theta.shape)
    sizes = np.diff(starts_of(learned.groups, len(learned.y)))
    for s in random.integers(0, len(sizes), 20):
        planes += [s, random.normal(), random.normal(), *random.integers(0, k, sizes[s])]
    other = {"theta": theta, "r": np.array(planes), "predictor": random.normal(size=(len(learned.y), k))}
    bounds = checker.bounds(features, learned, fit.lam_, other)
    assert float(bounds.dual.low) <= stated.primal
    assert float(bounds.primal.high) >= stated.dual


@pytest.mark.parametrize("change", [lambda a: 3.0 * a + 0.1, lambda a: a - 0.4])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_weights_of_sequences_that_are_no_shares_are_cut(surrogate: str, change: Callable[[Any], Any]) -> None:
    _, proof, checker, features, learned = fitted(2, surrogate)
    sizes, stored, place, heads = np.diff(starts_of(learned.groups, len(learned.y))), proof["r"].copy(), 0, []
    while place < len(stored):
        heads.append(place)
        place += 3 + int(sizes[int(stored[place])])
    head = np.array(heads)
    stored[head + 1] = change(stored[head + 1])
    by_hand = stored.copy()
    for s in np.unique(stored[head]):
        rows_of_sequence = head[stored[head] == s] + 1
        weights = np.maximum(stored[rows_of_sequence], 0.0)
        by_hand[rows_of_sequence] = weights / max(1.0, weights.sum())
    lows = [float(checker.bounds(features, learned, 50.0, {**proof, "r": each}).dual.low) for each in (stored, by_hand)]
    assert lows[0] == pytest.approx(lows[1], rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("surrogate", SURROGATES)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_the_surrogate_is_that_of_all_sequences(surrogate: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    k, T = random.integers(2, 4, 2)
    U, A, truth = random.normal(size=(T, k)), random.normal(size=(k, k)), random.integers(0, k, T)
    every = np.array(list(itertools.product(range(k), repeat=int(T))))
    f = U[np.arange(T), every].sum(axis=1) + A[every[:, :-1], every[:, 1:]].sum(axis=1)
    h, g = f - f[(every == truth).all(axis=1)], (every != truth).sum(axis=1).astype(float)
    p = chain_game(U, A).targets
    cost = 1.0 - p if surrogate == "maxmin" else np.where(np.arange(k) == truth[:, None], 0.0, 1.0)
    added = cost[np.arange(T), every].sum(axis=1)
    expected = (h + added).max() if surrogate == "maxmin" else make_psi(surrogate).value(h, g).max()
    checker = SequencesOfLabels({**OPTIONS, "surrogate": surrogate}, k)
    exact = checker.above(ball(U), A, truth, np.array([0, T]), cost)
    assert exact.low[0] <= expected <= exact.high[0]
    assert exact.rad[0] <= 1e-12 * max(1.0, abs(expected))
    # the ball for scores that are known up to a number holds the value of all such scores
    moved = checker.above(Ball(U + random.uniform(-0.1, 0.1, U.shape), 0.1), A, truth, np.array([0, T]), cost)
    assert moved.low[0] <= expected <= moved.high[0]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_predictions_are_among_the_possible_ones_and_alone_where_scores_are_no_tie(seed: int) -> None:
    fit, proof, checker, features, learned = fitted(seed, "margin")
    possible = checker.possible(features, features.X, learned.groups, learned, proof)
    proved = fit.predict_codes(features.X, learned.groups)
    assert possible[np.arange(len(proved)), proved].all()
    random = np.random.default_rng(seed)
    theta = random.normal(size=proof["theta"].shape)
    assert (checker.possible(features, features.X, learned.groups, learned, {"theta": theta}).sum(axis=1) == 1).all()
    assert checker.possible(features, features.X, learned.groups, learned, {"theta": 0.0 * theta}).all()
    assert SequencesOfLabels({**OPTIONS, "surrogate": "maxmin", "rule": "predictor"}, 3).possible(None, None, None, None, None) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r[:-1], "r ends within a sequence"),
        (lambda r: np.concatenate([[99.0], r[1:]]), "r names a sequence"),
        (lambda r: np.concatenate([[0.5], r[1:]]), "r names a sequence"),
        (lambda r: np.concatenate([r[:3], [7.0], r[4:]]), "r names a label"),
        (lambda r: r[None], "not one axis"),
    ],
)
def test_planes_of_another_problem_are_refused(change: Callable[[Any], Any], said: str) -> None:
    fit, proof, checker, features, learned = fitted(0, "margin")
    with pytest.raises(ValueError, match=said):
        checker.bounds(features, learned, fit.lam_, {**proof, "r": change(proof["r"])})
    with pytest.raises(ValueError, match="theta has the shape"):
        checker.bounds(features, learned, fit.lam_, {**proof, "theta": proof["theta"][1:]})


# ---- folders ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results folder of every surrogate."""
    root = tmp_path_factory.mktemp("verify")
    X, y, groups, _ = rows(5, chains=30)
    lines = [f"{s},{a},{b},{'ABC'[code]}" for s, (a, b), code in zip(groups, X, y, strict=True)]
    (root / "rows.csv").write_text("s,a,b,y\n" + "\n".join(lines) + "\n")
    words = ["-m", "dataset=csv", "dataset.path=rows.csv", "dataset.target=y", "dataset.sequence=s", "hyper.C=3", "protocol.n_splits=2"]
    words += [
        "record.proofs=true",
        "dataset.allow_small_classes=true",
        "solver.tol=1e-2",
        "quiet=true",
        "workers=1",
        "hydra/launcher=basic",
    ]
    words += ["loss=chain", f"loss.surrogate={','.join(SURROGATES)}", "name=made"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert main(words) == 0
    return root / "results" / "made"


def test_every_fit_is_proved_and_its_error_follows(made: Path) -> None:
    verdicts = judged(made)
    assert [each.reason for each in verdicts if each.verdict != "proved"] == []
    assert len(verdicts) == 12
    assert all(0 <= each.relative_gap <= each.stated_gap + 1e-9 for each in verdicts)
    assert {each.metrics for each in verdicts} == {"error accuracy"}


def heavier(arrays: dict[str, np.ndarray]) -> None:
    arrays["theta"][-1] += 1e-3  # a weight of labels that follow each other


def alpha(arrays: dict[str, np.ndarray]) -> None:
    arrays["r"][1] *= 0.99


def label(arrays: dict[str, np.ndarray]) -> None:
    arrays["r"][3] = (arrays["r"][3] + 1) % 3


def tangent(arrays: dict[str, np.ndarray]) -> None:
    arrays["r"][2] += 0.5


def believed(arrays: dict[str, np.ndarray]) -> None:
    arrays["predictor"] = np.roll(arrays["predictor"], 1, axis=1)


ALTERATIONS: dict[str, tuple[str, Callable[[dict[str, np.ndarray]], None], str]] = {
    "weights": ("margin", heavier, "objective is"),
    "alpha": ("slack", alpha, "dual_objective is"),
    "label": ("scaling", label, "dual_objective is"),
    "tangent": ("log", tangent, "dual_objective is"),
    "mixture": ("maxmin", alpha, "dual_objective is"),
    "targets": ("maxmin", believed, "objective is"),
}


@pytest.mark.parametrize("name", ALTERATIONS)
@pytest.mark.parametrize("forge", [False, True])
def test_altered_proofs_are_refuted(name: str, forge: bool, made: Path, tmp_path: Path) -> None:
    surrogate, change, said = ALTERATIONS[name]
    copy = copied(made, tmp_path)
    refuted_when_altered(copy, cell_of(copy, surrogate=surrogate), change, forge, said)


def test_another_strength_option_or_metric_is_refuted(made: Path, tmp_path: Path) -> None:
    refuted_at_another_strength_or_surrogate(made, tmp_path)
    copy = copied(made, tmp_path / "value")
    edit_rows(copy, 0, "value", lambda text: repr(float(text) + 0.01), both=True)
    assert ["error is" in each.reason for each in judged(copy) if each.verdict == "refuted"] == [True]
