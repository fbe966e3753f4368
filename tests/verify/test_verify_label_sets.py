"""The checker's bounds of structured labels hold for any parameters and planes; fits of every surrogate are proved, altered ones not."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from support.altered_folders import cell_of, copied, edit_rows, judged, refuted_at_another_strength_or_surrogate, refuted_when_altered

from advcli import MultilabelClassifier
from advcli.cli import main
from advcli.learners.base import Rows
from advcli.learners.structured.spaces.psi import make_psi
from advcli.results.folder import ResultsFolder
from advcli.verify.bounds import ball
from advcli.verify.gap import LearnedRows
from advcli.verify.label_sets import SetsOfLabels, SurrogateOfMargin, cut
from advcli.verify.surrogates import CannotError

METRICS = ("hamming", "error", "accuracy", "jaccard", "instance_f1", "micro_f1", "macro_f1")
SURROGATES = ("margin", "slack", "scaling", "log", "prob", "f1")
OPTIONS = {"name": "sets", "search": "auto", "fit_intercept": True, "beta": None}


def rows(seed: int, m: int = 4, n: int = 24) -> tuple[Any, Any, Any]:
    """Return rows, some of them equal, sets of labels and weights."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2)).round(1)
    Y = (X @ random.normal(size=(2, m)) + 0.5 * random.normal(size=(n, m)) > 0).astype(int)
    X[:5], Y[:5] = X[5:10], Y[5:10]
    return X, Y, random.integers(1, 4, size=n).astype(float)


@pytest.mark.parametrize("pairs", ["one", "four", "none"])
@pytest.mark.parametrize("surrogate", [*SURROGATES, "maxmin", "maxmin_f1"])
@given(seed=st.integers(0, 10**6), share=st.floats(0.0, 1.0))
@settings(max_examples=3, deadline=None)
def test_bounds_hold_for_any_proof_and_are_tight_for_that_of_a_fit(surrogate: str, pairs: str, seed: int, share: float) -> None:
    X, Y, weight = rows(seed)
    fit = MultilabelClassifier(surrogate=surrogate, pairs=pairs, C=0.7, tol=1e-2).fit(X, Y, sample_weight=weight)
    stated, proof = fit.certificate_, fit.proof(X, sparse.csr_array(Y), weight)
    checker = SetsOfLabels({**OPTIONS, "surrogate": surrogate, "pairs": pairs}, 4)
    features, learned = checker.score_map({"name": "linear"}, None, X), LearnedRows(sparse.csr_array(Y), weight, None, None)
    proved = checker.bounds(features, learned, fit.lam_, proof)
    assert float(proved.primal.high) == pytest.approx(stated.primal, rel=1e-10)
    assert float(proved.dual.low) == pytest.approx(stated.dual, rel=1e-10)
    random = np.random.default_rng(seed)
    theta, planes = proof["theta"], proof["r"].copy()
    theta = share * theta + (1.0 - share) * random.normal(size=theta.shape)
    planes[:, 1] += random.normal(size=len(planes))
    planes[:, 2] = random.integers(0, 16, len(planes))
    planes[:, 3] += random.normal(size=len(planes))
    p = random.normal(size=(len(X), 4))
    if surrogate == "maxmin_f1":
        p = np.column_stack([random.integers(0, len(X), 60), random.uniform(-0.5, 1.0, 60), random.integers(0, 16, 60)])
    other = checker.bounds(features, learned, fit.lam_, {"theta": theta, "r": planes, "predictor": p})
    assert float(other.dual.low) <= stated.primal
    assert float(other.primal.high) >= stated.dual


def cut_by_hand(planes: np.ndarray) -> np.ndarray:
    """Return planes whose weights are shares of 1 of their example: none below 0, too large a sum in proportion."""
    proved = planes.copy()
    for example in np.unique(planes[:, 0]):
        rows_of_example = planes[:, 0] == example
        weights = np.maximum(planes[rows_of_example, 1], 0.0)
        proved[rows_of_example, 1] = weights / max(1.0, weights.sum())
    return proved


@pytest.mark.parametrize("change", [lambda a: 3.0 * a + 0.1, lambda a: a - 0.4, lambda a: 1.0 - 2.0 * a, lambda a: 0.5 * a])
@pytest.mark.parametrize("surrogate", [*SURROGATES, "maxmin", "maxmin_f1"])
def test_weights_of_planes_that_are_no_shares_are_cut(surrogate: str, change: Callable[[Any], Any]) -> None:
    X, Y, weight = rows(7)
    # a strong regulariser: what a weight above 1 adds to the offset, its square hardly takes away
    fit = MultilabelClassifier(surrogate=surrogate, C=0.003, tol=1e-3).fit(X, Y, sample_weight=weight)
    proof = fit.proof(X, sparse.csr_array(Y), weight)
    checker = SetsOfLabels({**OPTIONS, "surrogate": surrogate, "pairs": fit.pairs}, 4)
    features, learned = checker.score_map({"name": "linear"}, None, X), LearnedRows(sparse.csr_array(Y), weight, None, None)
    planes = proof["r"].copy()
    planes[:, 1] = change(planes[:, 1])
    proved, by_hand = (checker.bounds(features, learned, fit.lam_, {**proof, "r": each}).dual for each in (planes, cut_by_hand(planes)))
    assert float(proved.low) <= fit.certificate_.primal
    assert float(proved.low) == pytest.approx(float(by_hand.low), rel=1e-11, abs=1e-13)


@given(alpha=st.lists(st.floats(-3.0, 3.0), min_size=1, max_size=12), seed=st.integers(0, 10**6))
def test_cut_weights_are_shares_and_those_that_are_shares_stay(alpha: list[float], seed: int) -> None:
    owner = np.random.default_rng(seed).integers(0, 3, len(alpha))
    proved = cut(np.array(alpha), owner, 3)
    sums = np.array([math.fsum(proved[owner == example]) for example in range(3)])
    assert (proved >= 0.0).all()
    assert (sums <= 1.0).all()
    planes = np.column_stack([owner, alpha])
    np.testing.assert_allclose(proved, cut_by_hand(planes)[:, 1], rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("surrogate", SURROGATES)
@given(h=st.floats(-60.0, 60.0), h0=st.floats(-60.0, 60.0), g=st.integers(0, 16), kept=st.integers(0, 5))
def test_the_checkers_psi_is_that_of_the_house_and_above_its_tangents(surrogate: str, h: float, h0: float, g: int, kept: int) -> None:
    mine, theirs = SurrogateOfMargin({"surrogate": surrogate, "beta": None}), make_psi(surrogate)
    wrong, sizes = np.array([float(g)]), np.array([float(g + 2 * kept)])
    point = (h + wrong, -sizes) if surrogate == "f1" else (np.array([h]), wrong)
    value = mine.value(ball(np.array([h])), wrong, sizes)
    assert value.low[0] <= theirs.value(*point)[0] <= value.high[0]
    assert value.rad[0] <= 1e-12 * max(1.0, abs(value.mid[0]))
    slope, constant = mine.tangent(np.array([h0]), wrong, sizes)
    assert (slope * h + constant).low[0] <= value.high[0]


@pytest.mark.parametrize("change", ["theta", "columns", "example", "label"])
def test_arrays_of_another_problem_are_refused(change: str) -> None:
    X, Y, _ = rows(0)
    fit = MultilabelClassifier(tol=1e-2).fit(X, Y)
    proof = fit.proof(X, sparse.csr_array(Y), None)
    checker = SetsOfLabels({**OPTIONS, "surrogate": "margin", "pairs": "one"}, 4)
    if change == "theta":
        proof["theta"] = proof["theta"][:-1]
    elif change == "columns":
        proof["r"] = proof["r"][:, :3]
    else:
        proof["r"][0, 0 if change == "example" else 2] = 0.5 if change == "example" else 16.0
    with pytest.raises(ValueError, match=r"theta has the shape|r has the shape|r names an example|r names a label"):
        checker.bounds(checker.score_map({"name": "linear"}, None, X), LearnedRows(sparse.csr_array(Y), None, None, None), 0.1, proof)


@pytest.mark.parametrize(
    ("m", "change", "said"),
    [
        (4, {"surrogate": "hinge"}, "loss.surrogate=hinge"),
        (4, {"search": "hull"}, "loss.search=hull"),
        (4, {"training": "bcfw"}, "loss.training=bcfw"),
        (17, {}, "17 labels"),
    ],
)
def test_what_it_cannot_prove_has_a_reason(m: int, change: dict[str, Any], said: str) -> None:
    with pytest.raises(CannotError, match=said):
        SetsOfLabels({**OPTIONS, "surrogate": "margin", "pairs": "one", **change}, m)


# ---- folders ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results folder of every surrogate, next to its data; two further folders have weighted rows and games."""
    root = tmp_path_factory.mktemp("verify")
    X, Y, weight = rows(5, n=40)
    lines = [",".join(map(str, [*x, w, *y])) for x, w, y in zip(X, weight, Y, strict=True)]
    (root / "rows.csv").write_text("a,b,w,y_1,y_2,y_3,y_4\n" + "\n".join(lines) + "\n")
    words = ["-m", "dataset=csv", "dataset.path=rows.csv", "dataset.target=y_*", "hyper.C=1", "protocol.n_splits=2", "record.proofs=true"]
    words += [f"protocol.metrics=[{','.join(METRICS)}]"]
    words += ["dataset.allow_small_classes=true", "solver.tol=1e-2", "quiet=true", "workers=1", "hydra/launcher=basic", "loss=sets"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert main([*words, "dataset.drop=[w]", f"loss.surrogate={','.join(SURROGATES)}", "name=made"]) == 0
        assert main([*words, "dataset.weight=w", "loss.pairs=four,none", "loss.surrogate=log", "name=counted"]) == 0
        assert main([*words, "dataset.drop=[w]", "loss.pairs=one,none", "loss.surrogate=maxmin", "name=game"]) == 0
        assert main([*words, "dataset.weight=w", "loss.pairs=one,none", "loss.surrogate=maxmin_f1", "name=f_game"]) == 0
    return root / "results" / "made"


@pytest.mark.parametrize("name", ["made", "counted", "game", "f_game"])
def test_every_fit_is_proved(name: str, made: Path) -> None:
    verdicts = judged(made.with_name(name))
    assert [each.reason for each in verdicts if each.verdict != "proved"] == []
    assert len(verdicts) == (12 if name == "made" else 4)
    assert all(0 <= each.relative_gap <= each.stated_gap + 1e-9 for each in verdicts)
    assert {frozenset(each.metrics.split()) for each in verdicts} == {frozenset(METRICS)}


def believed(arrays: dict[str, np.ndarray]) -> None:
    arrays["predictor"] = 1.0 - arrays["predictor"]


def beyond(arrays: dict[str, np.ndarray]) -> None:
    arrays["r"][:, 1] += 2.0  # every sum is above 1


def parted(arrays: dict[str, np.ndarray]) -> None:
    arrays["r"][:, 3] = np.arange(len(arrays["r"]))  # every set becomes a mixture by itself, which has no loss


def another_set(arrays: dict[str, np.ndarray]) -> None:
    arrays["predictor"][:, 2] = 15.0 - arrays["predictor"][:, 2]  # the complement of every predicted set


def less_predicted(arrays: dict[str, np.ndarray]) -> None:
    arrays["predictor"][:, 1] *= 0.9


def other_sets(arrays: dict[str, np.ndarray]) -> None:
    arrays["r"][:, 2] = 15.0 - arrays["r"][:, 2]


ALTERED_GAMES = [
    ("game", believed, "objective is"),
    ("game", parted, "dual_objective is"),
    ("f_game", another_set, "objective is"),
    ("f_game", less_predicted, "objective is"),
    ("f_game", parted, "dual_objective is"),
    ("f_game", other_sets, "dual_objective is"),
    ("f_game", beyond, "dual_objective is"),
]


@pytest.mark.parametrize(("name", "change", "said"), ALTERED_GAMES)
@pytest.mark.parametrize("place", [0, 1])
def test_altered_games_are_refuted(
    name: str, change: Callable[[dict[str, np.ndarray]], None], said: str, place: int, made: Path, tmp_path: Path
) -> None:
    copy = copied(made.with_name(name), tmp_path)
    refuted_when_altered(copy, place, change, True, said)


@pytest.mark.parametrize("surrogate", ["maxmin", "maxmin_f1"])
@pytest.mark.parametrize("pairs", ["one", "none"])
def test_a_game_that_began_at_the_planes_of_another_is_proved_by_the_sets_of_both(pairs: str, surrogate: str) -> None:
    X, Y, _ = rows(3)
    bound = MultilabelClassifier().bind(Rows(X), Y)
    fits = [MultilabelClassifier(surrogate=surrogate, pairs=pairs, C=C, tol=1e-2) for C in (0.1, 0.2, 5.0)]
    for number, fit in enumerate(fits):
        fit.fit_bound(bound, fits[number - 1] if number else None)
    proof = fits[-1].proof(X, sparse.csr_array(Y), None)
    checker = SetsOfLabels({**OPTIONS, "surrogate": surrogate, "pairs": pairs}, 4)
    features, learned = checker.score_map({"name": "linear"}, None, X), LearnedRows(sparse.csr_array(Y), None, None, None)
    proved = checker.bounds(features, learned, fits[-1].lam_, proof)
    assert float(proved.primal.high) == pytest.approx(fits[-1].certificate_.primal, rel=1e-10)
    assert float(proved.dual.low) == pytest.approx(fits[-1].certificate_.dual, rel=1e-10)


def test_splits_keep_sequences_whole_for_the_checker_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    sequence = np.repeat(np.arange(12), random.integers(2, 6, 12))
    a = random.normal(size=len(sequence)).round(2)
    lines = [f"{one},{value},{'AB'[int(value > 0)]}" for one, value in zip(sequence, a, strict=True)]
    Path("rows.csv").write_text("s,a,y\n" + "\n".join(lines) + "\n")
    words = ["dataset=csv", "dataset.path=rows.csv", "dataset.target=y", "dataset.sequence=s", "hyper.C=1", "protocol.n_splits=2"]
    words += ["record.proofs=true", "quiet=true"]
    assert main([*words, "loss=zero_one", "name=rows"]) == 0
    assert [each.verdict for each in judged(tmp_path / "results" / "rows")] == ["proved"] * 2
    assert main([*words, "loss=chain", "name=chains"]) == 0
    assert [each.verdict for each in judged(tmp_path / "results" / "chains")] == ["proved"] * 2


def turned(alpha: float = 0.0, label: int = 0, h: float = 0.0) -> Callable[[dict[str, np.ndarray]], None]:
    def change(arrays: dict[str, np.ndarray]) -> None:
        planes = arrays["r"]
        planes[0, 1] += alpha
        planes[0, 2] = int(planes[0, 2]) ^ label
        planes[:, 3] += h

    return change


def heavier(arrays: dict[str, np.ndarray]) -> None:
    arrays["theta"][-1] += 1e-3  # a weight that labels share


def exchanged(arrays: dict[str, np.ndarray]) -> None:
    arrays["r"][:, 0] = arrays["r"][::-1, 0].copy()


ALTERATIONS: dict[str, tuple[dict[str, str], Callable[[dict[str, np.ndarray]], None], str]] = {
    "weights": ({"surrogate": "margin"}, heavier, "objective is"),
    "alpha": ({"surrogate": "slack"}, turned(alpha=-1e-3), "dual_objective is"),
    "alpha beyond": ({"surrogate": "slack"}, beyond, "dual_objective is"),
    "label": ({"surrogate": "scaling"}, turned(label=3), "dual_objective is"),
    "tangent": ({"surrogate": "log"}, turned(h=0.1), "dual_objective is"),
    "examples": ({"surrogate": "prob"}, exchanged, "dual_objective is"),
}


@pytest.mark.parametrize("name", ALTERATIONS)
@pytest.mark.parametrize("forge", [False, True])
def test_altered_proofs_are_refuted(name: str, forge: bool, made: Path, tmp_path: Path) -> None:
    wanted, change, said = ALTERATIONS[name]
    copy = copied(made, tmp_path)
    folder, key = ResultsFolder(copy), sorted(file.stem for file in (copy / "cells").glob("*.json"))[cell_of(copy, **wanted)]
    place = [file.stem for file in sorted(folder.proofs_path.iterdir())].index(key)
    refuted_when_altered(copy, place, change, forge, said)


def test_another_strength_option_or_table_is_refuted(made: Path, tmp_path: Path) -> None:
    refuted_at_another_strength_or_surrogate(made, tmp_path)
    copy = copied(made, tmp_path / "value")
    edit_rows(copy, 0, "value", lambda text: repr(float(text) + 1e-6), both=True)
    assert sum(each.verdict == "refuted" for each in judged(copy)) == 1

    copy = copied(made, tmp_path / "table")
    table = copy.parents[1] / "rows.csv"
    lines = table.read_text().splitlines()
    lines[3] = lines[3].replace(lines[3].split(",")[0], "2.5", 1)
    table.write_text("\n".join(lines) + "\n")
    assert {each.reason for each in judged(copy) if each.verdict == "refuted"} == {
        "the data are not the data of the rows: their checksum differs"
    }
