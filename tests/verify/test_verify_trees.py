"""The checker's bounds of dependency trees hold for any parameters and planes; fits of every surrogate are proved, altered ones not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.altered_folders import cell_of, copied, edit_rows, judged, refuted_at_another_strength_or_surrogate, refuted_when_altered
from support.projective_trees import trees
from support.python_parser import arc_scores, worst_tree
from support.sentences import corpus, related, texts, written

from advcli import DependencyParser
from advcli.cli import main
from advcli.learners.structured.spaces.psi import make_psi
from advcli.learners.structured.stored_planes import KINDS, PSI_KINDS
from advcli.learners.structured.tree_training import nearest_projective
from advcli.verify.bounds import Ball
from advcli.verify.gap import LearnedRows
from advcli.verify.sequences import starts_of
from advcli.verify.trees import Arcs, DependencyTrees, largest, nearest, through

OPTIONS = {"name": "dependency_trees", "search": "auto", "training": "planes", "beta": None, "hash_bits": 10}


def fitted(seed: int, surrogate: str) -> tuple[Any, Any, Any, Any, Any]:
    """Return a fit to sentences, what proves it, the checker, its feature map and the rows that it sees."""
    X, y, groups = corpus(seed, crossing=True)
    weight = np.random.default_rng(seed).integers(1, 4, size=int(groups.max()) + 1).astype(float)
    weight[1] = 0.0
    fit = DependencyParser(surrogate=surrogate, hash_bits=10, lam=0.3, tol=1e-2).fit(X, y, groups=groups, sample_weight=weight[groups])
    checker = DependencyTrees({**OPTIONS, "surrogate": surrogate}, 6)
    features = checker.score_map({"name": "linear"}, None, X)
    return fit, fit.proof(X, y, weight[groups]), checker, features, LearnedRows(y, weight[groups], None, None, groups)


@pytest.mark.parametrize("surrogate", KINDS)
@given(seed=st.integers(0, 10**6), share=st.floats(0.0, 1.0))
@settings(max_examples=5, deadline=None)
def test_bounds_hold_for_any_proof_and_are_tight_for_that_of_a_fit(surrogate: str, seed: int, share: float) -> None:
    fit, proof, checker, features, learned = fitted(seed, surrogate)
    stated = fit.certificate_
    proved = checker.bounds(features, learned, fit.lam_, proof)
    assert float(proved.primal.high) == pytest.approx(stated.primal, rel=1e-10)
    assert float(proved.dual.low) == pytest.approx(stated.dual, rel=1e-10, abs=1e-12)
    random = np.random.default_rng(seed)
    theta, planes = share * proof["theta"] + (1.0 - share) * random.normal(size=proof["theta"].shape), []
    sizes = np.diff(starts_of(learned.groups, len(learned.y)))
    for s in random.integers(0, len(sizes), 20):
        every = trees(int(sizes[s]))
        planes += [s, random.normal(), random.normal(), *every[random.integers(len(every))]]
    other = {name: share * array + random.normal(size=array.shape) for name, array in proof.items() if name == "predictor"}
    bounds = checker.bounds(features, learned, fit.lam_, {"theta": theta, "r": np.array(planes, dtype=np.float64), **other})
    assert float(bounds.dual.low) <= stated.primal
    assert float(bounds.primal.high) >= stated.dual


@given(seed=st.integers(0, 10**6), T=st.integers(1, 14))
@settings(max_examples=20, deadline=None)
def test_scores_are_those_of_plain_python(seed: int, T: int) -> None:
    random = np.random.default_rng(seed)
    words, tags, theta = random.integers(2**48, size=(2, T)), random.integers(3, size=(2, T)), random.normal(size=2**9)
    found = Arcs(words.astype(float), tags.astype(float), 9).scores(theta)
    for s in range(2):
        expected = arc_scores(words[s], tags[s], theta)
        there = ~np.eye(T + 1, dtype=bool)
        there[:, 0] = False
        assert (np.abs(found.mid[s] - expected) <= found.rad[s] + 1e-13)[there].all()
        assert found.rad[s].max() <= 1e-10


@pytest.mark.parametrize("surrogate", PSI_KINDS)
@given(seed=st.integers(0, 10**6), T=st.integers(1, 5), scale=st.sampled_from([0.1, 1.0, 4.0]))
@settings(max_examples=20, deadline=None)
def test_the_surrogate_is_that_of_all_trees(surrogate: str, seed: int, T: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    U = random.normal(scale=scale, size=(T + 1, T + 1))
    truth = trees(T)[random.integers(len(trees(T)))]
    expected, _ = worst_tree(U, truth, make_psi(surrogate))
    checker = DependencyTrees({**OPTIONS, "surrogate": surrogate}, 6)
    exact = checker.worst(Ball(U[None], np.zeros((1, T + 1, T + 1))), np.array([truth]), surrogate != "margin")
    assert exact.low[0] <= expected <= exact.high[0]
    assert exact.rad[0] <= 1e-11 * max(1.0, abs(expected))
    moved = Ball((U + random.uniform(-0.1, 0.1, U.shape))[None], np.full((1, T + 1, T + 1), 0.1))
    around = checker.worst(moved, np.array([truth]), surrogate != "margin")
    assert around.low[0] <= expected <= around.high[0]


def test_the_best_tree_at_every_number_of_wrong_heads_is_that_of_all_trees() -> None:
    random = np.random.default_rng(0)
    for T in (1, 2, 3, 4, 5):
        scores, wrong = random.normal(size=(3, T + 1, T + 1)), random.random((3, T + 1, T + 1)) < 0.6
        found = largest(scores, wrong, T + 1)
        for s in range(3):
            best = np.full(T + 1, -np.inf)
            for heads in trees(T):
                arcs = [(head, word) for word, head in enumerate(heads, start=1)]
                g = sum(bool(wrong[s][arc]) for arc in arcs)
                best[g] = max(best[g], sum(float(scores[s][arc]) for arc in arcs))
            np.testing.assert_allclose(found[s], best, atol=1e-12)


@given(seed=st.integers(0, 10**6), T=st.integers(1, 5))
@settings(max_examples=20, deadline=None)
def test_the_best_tree_with_an_arc_is_that_of_all_trees(seed: int, T: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(2, T + 1, T + 1))
    expected = np.full(scores.shape, -np.inf)
    for heads in trees(T):
        arcs = tuple(zip(*((head, word) for word, head in enumerate(heads, start=1)), strict=True))
        for s in range(2):
            expected[s][arcs] = np.maximum(expected[s][arcs], scores[s][arcs].sum())
    np.testing.assert_allclose(through(scores), expected, atol=1e-12)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_predictions_are_the_only_possible_ones_where_scores_are_no_tie(seed: int) -> None:
    fit, proof, checker, features, learned = fitted(seed, "margin")
    possible = checker.possible(features, features.X, learned.groups, learned, proof)
    heads = fit.predict_codes(features.X, learned.groups)
    assert possible[np.arange(len(heads)), heads].all()
    theta = np.random.default_rng(seed).normal(size=proof["theta"].shape)
    assert (checker.possible(features, features.X, learned.groups, learned, {"theta": theta}).sum(axis=1) == 1).all()
    every = checker.possible(features, features.X, learned.groups, learned, {"theta": 0.0 * theta})
    assert every.sum() == sum(len({(w, h) for tree in trees(n) for w, h in enumerate(tree)}) for n in np.bincount(learned.groups))


@given(seed=st.integers(0, 10**6), T=st.integers(2, 9))
@settings(max_examples=40, deadline=None)
def test_the_nearest_projective_tree_is_the_one_that_was_learned(seed: int, T: int) -> None:
    random = np.random.default_rng(seed)
    order = random.permutation(T)
    heads = np.zeros(T, dtype=np.int32)
    for place in range(1, T):  # a tree of any shape, mostly with crossing arcs
        heads[order[place]] = order[random.integers(place)] + 1
    learned, shared = nearest_projective(heads, np.array([0, T]))
    assert nearest(heads.astype(np.intp)).tolist() == learned.tolist()
    assert shared[0] == (learned == heads).sum()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r[:-1], "r ends within a sequence"),
        (lambda r: np.concatenate([[99.0], r[1:]]), "r names a sequence"),
        (lambda r: np.concatenate([r[:3], [77.0], r[4:]]), "r names a label"),
        (lambda r: np.concatenate([r[:3], [1.0], r[4:]]), "r names a head"),
        (lambda r: r[None], "not one axis"),
    ],
)
def test_planes_of_another_problem_are_refused(change: Any, said: str) -> None:
    fit, proof, checker, features, learned = fitted(0, "margin")
    with pytest.raises(ValueError, match=said):
        checker.bounds(features, learned, fit.lam_, {**proof, "r": change(proof["r"])})
    with pytest.raises(ValueError, match="theta has the shape"):
        checker.bounds(features, learned, fit.lam_, {**proof, "theta": proof["theta"][1:]})


# ---- relations ----------------------------------------------------------------------------------------------------------------------


def with_relations(seed: int) -> tuple[Any, Any, Any, Any, Any]:
    """Return `fitted` with relations of the words to their heads."""
    X, y, groups = corpus(seed, crossing=True)
    names = related(texts(seed, crossing=True)[0], y, groups)
    weight = np.random.default_rng(seed).integers(1, 4, size=int(groups.max()) + 1).astype(float)
    fit = DependencyParser(hash_bits=12, lam=0.3, tol=1e-2)
    fit.fit(X, y, groups=groups, sample_weight=weight[groups], relations=names)
    checker = DependencyTrees({**OPTIONS, "surrogate": "margin", "hash_bits": 12}, 6)
    learned = LearnedRows(y, weight[groups], None, None, groups, names)
    return fit, fit.proof(X, y, weight[groups]), checker, checker.score_map({"name": "linear"}, None, X), learned


@given(seed=st.integers(0, 10**6), share=st.floats(0.0, 1.0))
@settings(max_examples=10, deadline=None)
def test_bounds_of_relations_hold_for_any_proof_and_are_tight_for_that_of_a_fit(seed: int, share: float) -> None:
    fit, proof, checker, features, learned = with_relations(seed)
    stated = fit.stages_["relations"]
    proved = checker.bounds(features, learned, fit.lam_, proof).stages["relations"]
    assert float(proved.primal.high) == pytest.approx(stated.primal, rel=1e-9)
    assert float(proved.dual.low) == pytest.approx(stated.dual, rel=1e-9, abs=1e-12)
    random = np.random.default_rng(seed)
    other = {name: share * proof[name] + (1.0 - share) * random.normal(size=proof[name].shape) for name in proof if "relations" in name}
    loose = checker.bounds(features, learned, fit.lam_, {**proof, **other}).stages["relations"]
    assert loose.primal.high >= stated.dual
    assert loose.dual.low <= stated.primal


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_right_relations_are_those_that_are_predicted_where_scores_are_no_tie(seed: int) -> None:
    fit, proof, checker, features, learned = with_relations(seed)
    right = learned.relations == fit.predict_relations(features.X, groups=learned.groups, heads=learned.y)
    sure, may = checker.right_relations(features.X, learned.groups, learned.y, learned.relations, learned, proof)
    assert (right >= sure).all()
    assert (right <= may).all()
    unknown = checker.right_relations(features.X, learned.groups, learned.y, np.full(len(right), "zzz"), learned, proof)
    assert not np.any(unknown)
    level = {"relations_theta": 0.0 * proof["relations_theta"]}
    sure, may = checker.right_relations(features.X, learned.groups, learned.y, learned.relations, learned, level)
    assert may.all()
    assert not sure.any()


# ---- folders ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results folder of every surrogate."""
    root = tmp_path_factory.mktemp("verify")
    made_up = texts(5, sentences=30, crossing=True)
    (root / "rows.csv").write_text(written(*made_up, related(*made_up)))
    words = [
        "-m",
        "dataset.relation=rel",
        "dataset=csv",
        "dataset.path=rows.csv",
        "dataset.sequence=s",
        "dataset.tokens=word",
        "dataset.head=head",
    ]
    words += ["hyper.C=3", "protocol.n_splits=2", "protocol.standardise=none", "record.proofs=true", "solver.tol=1e-2", "quiet=true"]
    words += ["protocol.metric=unlabelled_attachment", "protocol.metrics=[labelled_attachment,whole_trees]"]
    words += ["workers=1", "hydra/launcher=basic", "loss=dependency_trees", "loss.hash_bits=10", "name=made"]
    words += [f"loss.surrogate={','.join(KINDS)}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert main(words) == 0
    return root / "results" / "made"


def test_every_fit_is_proved(made: Path) -> None:
    verdicts = judged(made)
    assert [each.reason for each in verdicts if each.verdict != "proved"] == []
    assert len(verdicts) == 12
    assert all(0 <= each.relative_gap <= each.stated_gap + 1e-9 for each in verdicts)
    assert {each.metrics for each in verdicts} == {"unlabelled_attachment labelled_attachment whole_trees"}


@pytest.mark.parametrize("metric", ["unlabelled_attachment", "labelled_attachment"])
def test_another_value_of_a_metric_is_refuted(metric: str, made: Path, tmp_path: Path) -> None:
    copy = copied(made, tmp_path)
    edit_rows(copy, metric == "labelled_attachment", "value", lambda text: repr(float(text) + 0.01), both=True)
    reasons = [each.reason for each in judged(copy) if each.verdict == "refuted"]
    assert len(reasons) == 1
    assert f"{metric} is" in reasons[0]


def heavier(arrays: dict[str, np.ndarray]) -> None:
    arrays["theta"][np.argmax(np.abs(arrays["theta"]))] += 0.1


def alpha(arrays: dict[str, np.ndarray]) -> None:
    arrays["r"][1] *= 0.9


def related_otherwise(arrays: dict[str, np.ndarray]) -> None:
    arrays["relations_theta"][np.unravel_index(np.argmax(np.abs(arrays["relations_theta"])), arrays["relations_theta"].shape)] += 0.1


def moved(arrays: dict[str, np.ndarray]) -> None:
    arrays["relations_r"][:5] *= 0.5


@pytest.mark.parametrize(
    ("surrogate", "change", "said"),
    [
        ("margin", heavier, "objective is"),
        ("prob", alpha, "dual_objective is"),
        ("log", related_otherwise, "relations_objective is"),
        ("slack", moved, "relations_dual_objective is"),
    ],
)
@pytest.mark.parametrize("forge", [False, True])
def test_altered_proofs_are_refuted(surrogate: str, change: Any, said: str, forge: bool, made: Path, tmp_path: Path) -> None:
    copy = copied(made, tmp_path)
    refuted_when_altered(copy, cell_of(copy, surrogate=surrogate), change, forge, said)


def test_another_strength_or_surrogate_is_refuted(made: Path, tmp_path: Path) -> None:
    refuted_at_another_strength_or_surrogate(made, tmp_path)
