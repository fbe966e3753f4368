"""The checker's bounds of sets of leaves hold for any parameters and planes; fits of every surrogate are proved, altered ones not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from support.altered_folders import edit_proof, judged

from advcli.cli import main
from advcli.learners.structured import HierarchicalSetClassifier
from advcli.verify.gap import LearnedRows
from advcli.verify.leaf_sets import SetsOfLeaves
from advcli.verify.surrogates import CannotError

TREE = [("r", "a"), ("r", "b"), ("a", "c"), ("a", "d"), ("d", "e"), ("d", "f")]
FOREST = [("p", "b"), ("q", "c"), ("q", "e"), ("e", "x"), ("q", "f"), ("x", "y")]
LABELS = {"tree": (TREE, ["b", "c", "e", "f"]), "forest": (FOREST, ["b", "c", "f", "y"])}
SURROGATES = ("margin", "slack", "scaling", "log", "prob", "f1")
OPTIONS = {"name": "hierarchical_sets", "search": "auto", "fit_intercept": True, "beta": None, "surrogate": "slack"}


def rows(seed: int, n: int = 24) -> tuple[Any, Any, Any]:
    """Return rows, some of them equal, sets of labels and weights."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2)).round(1)
    Y = (X @ random.normal(size=(2, 4)) + 0.5 * random.normal(size=(n, 4)) > 0).astype(int)
    Y[np.arange(n), random.integers(0, 4, n)] = 1
    X[:5], Y[:5] = X[5:10], Y[5:10]
    return X, Y, random.integers(1, 4, size=n).astype(float)


@pytest.mark.parametrize("graph", LABELS)
@pytest.mark.parametrize("surrogate", SURROGATES)
@given(seed=st.integers(0, 10**6), share=st.floats(0.0, 1.0))
@settings(max_examples=5, deadline=None)
def test_bounds_hold_for_any_proof_and_are_tight_for_that_of_a_fit(surrogate: str, graph: str, seed: int, share: float) -> None:
    X, Y, weight = rows(seed)
    edges, labels = LABELS[graph]
    fit = HierarchicalSetClassifier({"edges": edges}, surrogate=surrogate, C=0.7, tol=1e-2).fit(X, Y, sample_weight=weight)
    stated, proof = fit.certificate_, fit.proof(X, sparse.csr_array(Y), weight)
    order = [fit.sets_.graph.names[leaf] for leaf in fit.sets_.graph.leaves[fit.positions_]]
    assert sorted(order) == labels
    checker = SetsOfLeaves({**OPTIONS, "surrogate": surrogate}, order, edges)
    features, learned = checker.score_map({"name": "linear"}, None, X), LearnedRows(sparse.csr_array(Y), weight, None, None)
    proved = checker.bounds(features, learned, fit.lam_, proof)
    assert float(proved.primal.high) == pytest.approx(stated.primal, rel=1e-10)
    assert float(proved.dual.low) == pytest.approx(stated.dual, rel=1e-10)
    assert proved.primal.low <= stated.primal <= proved.primal.high
    random = np.random.default_rng(seed)
    theta, planes = proof["theta"], proof["r"].copy()
    theta = share * theta + (1.0 - share) * random.normal(size=theta.shape)
    planes[:, 1] += random.normal(size=len(planes))
    planes[:, 2] += random.normal(size=len(planes))
    planes[:, 3:] = np.eye(4)[random.integers(0, 4, len(planes))]
    other = checker.bounds(features, learned, fit.lam_, {"theta": theta, "r": planes})
    assert float(other.dual.low) <= stated.primal
    assert float(other.primal.high) >= stated.dual


@pytest.mark.parametrize("change", [lambda a: 3.0 * a + 0.1, lambda a: a - 0.4])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_weights_of_sets_that_are_no_shares_are_cut(surrogate: str, change: Callable[[Any], Any]) -> None:
    X, Y, weight = rows(3)
    edges, labels = LABELS["tree"]
    checker = SetsOfLeaves({**OPTIONS, "surrogate": surrogate}, labels, edges)
    features, learned = checker.score_map({"name": "linear"}, None, X), LearnedRows(sparse.csr_array(Y), weight, None, None)
    random = np.random.default_rng(3)
    owner = np.repeat(np.arange(len(X)), 2)
    alpha = change(random.uniform(0.0, 0.5, len(owner)))
    by_hand = np.maximum(alpha, 0.0)
    by_hand /= np.maximum(1.0, np.bincount(owner, weights=by_hand))[owner]
    rest = random.normal(size=len(owner)), np.eye(4)[random.integers(0, 4, len(owner))]
    theta = np.zeros(3 * checker.M)
    lows = [
        float(checker.bounds(features, learned, 50.0, {"theta": theta, "r": np.column_stack([owner, each, *rest])}).dual.low)
        for each in (alpha, by_hand)
    ]
    assert lows[0] == pytest.approx(lows[1], rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("change", ["theta", "columns", "example", "half", "empty"])
def test_arrays_of_another_problem_are_refused(change: str) -> None:
    X, Y, _ = rows(0)
    fit = HierarchicalSetClassifier(TREE, surrogate="slack", tol=1e-2).fit(X, Y)
    proof = fit.proof(X, sparse.csr_array(Y), None)
    if change == "theta":
        proof["theta"] = proof["theta"][:-1]
    elif change == "columns":
        proof["r"] = proof["r"][:, :-1]
    elif change == "empty":
        proof["r"][0, 3:] = 0.0  # a plane of no set may lie above the surrogate
    else:
        proof["r"][0, 0 if change == "example" else 3] = 0.5
    checker = SetsOfLeaves(OPTIONS, ["b", "c", "e", "f"], TREE)
    with pytest.raises(ValueError, match=r"theta has the shape|r has the shape|r names an example|r names a set"):
        checker.bounds(checker.score_map({"name": "linear"}, None, X), LearnedRows(sparse.csr_array(Y), None, None, None), 0.1, proof)


@pytest.mark.parametrize(
    ("change", "edges", "said"),
    [
        ({"surrogate": "hinge"}, TREE, "loss.surrogate=hinge"),
        ({"search": "angular"}, TREE, "loss.search=angular"),
        ({"training": "sgd"}, TREE, "loss.training=sgd"),
        ({}, [*TREE, ("b", "f")], "'f' has several parents"),
        ({}, TREE[:-1], "'f' is not a leaf"),
        ({}, None, "'b' is not a leaf"),
        ({}, [*TREE, ("f", "r")], "'f' is not a leaf"),
    ],
)
def test_what_it_cannot_prove_has_a_reason(change: dict[str, Any], edges: Any, said: str) -> None:
    with pytest.raises(CannotError, match=said):
        SetsOfLeaves({**OPTIONS, **change}, ["b", "c", "e", "f"], edges)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results folder of several surrogates over a tree; a second folder next to it has slack rescaling."""
    root = tmp_path_factory.mktemp("verify")
    X, Y, _ = rows(5, n=40)
    lines = [",".join(map(str, [*x, *y])) for x, y in zip(X, Y, strict=True)]
    (root / "rows.csv").write_text("a,b,y_b,y_c,y_e,y_f\n" + "\n".join(lines) + "\n")
    (root / "tree.csv").write_text("parent,child\n" + "".join(f"{up},{down}\n" for up, down in TREE))
    words = ["-m", "dataset=csv", "dataset.path=rows.csv", "dataset.target=y_*", "hyper.C=1", "protocol.n_splits=2", "record.proofs=true"]
    words += ["dataset.allow_small_classes=true", "solver.tol=1e-2", "quiet=true", "workers=1", "hydra/launcher=basic"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        tree = [*words, "dataset.hierarchy=tree.csv"]
        assert main([*tree, "loss=hierarchical_sets", "loss.surrogate=margin,prob", "name=made"]) == 0
        assert main([*tree, "loss=hierarchical_sets_slack", "name=made_slack"]) == 0
    return root / "results" / "made"


@pytest.mark.parametrize("name", ["made", "made_slack"])
def test_every_fit_is_proved(name: str, made: Path) -> None:
    verdicts = judged(made.with_name(name))
    assert [each.reason for each in verdicts if each.verdict != "proved"] == []
    assert len(verdicts) == (4 if name == "made" else 2)
    assert all(0 <= each.relative_gap <= each.stated_gap + 1e-9 for each in verdicts)


def lighter(arrays: dict[str, np.ndarray]) -> None:
    arrays["r"][0, 1] -= 1e-3


def heavier(arrays: dict[str, np.ndarray]) -> None:
    arrays["theta"][0] += 1e-3


def other_sets(arrays: dict[str, np.ndarray]) -> None:
    arrays["r"][:, 3:] = arrays["r"][::-1, 3:].copy()


@pytest.mark.parametrize(("change", "said"), [(lighter, "dual_objective is"), (heavier, "objective is"), (other_sets, "dual_objective is")])
def test_altered_proofs_are_refuted(change: Callable[[dict[str, np.ndarray]], None], said: str, made: Path, tmp_path: Path) -> None:
    copy = tmp_path / "results" / "copy"
    shutil.copytree(made.with_name("made_slack"), copy)
    for name in ("rows.csv", "tree.csv"):
        shutil.copy(made.parents[1] / name, tmp_path / name)
    edit_proof(copy, 0, change, True)
    reasons = [each.reason for each in judged(copy) if each.verdict == "refuted"]
    assert len(reasons) == 1
    assert said in reasons[0]
