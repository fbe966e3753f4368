"""`advcli verify`: every surrogate and feature map is proved, and 100 altered proofs, rows, data and settings are caught."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.altered_folders import edit_cell, edit_config, edit_proof, edit_rows, forge_hashes, judged, write_table

from advcli.cli import main
from advcli.results import proofs
from advcli.results.folder import ResultsFolder
from advcli.verify import Verdict, summary
from advcli.verify.folder import RefutedError, _unfollowed

COMMON = ["-m", "dataset=csv", "dataset.path=rows.csv", "dataset.target=y", "dataset.ordered=true", "quiet=true", "workers=1"]
COMMON += ["protocol.n_splits=2", "record.proofs=true", "hydra/launcher=basic", "report=false"]
MATRIX = "[[0,1,3],[2,0,1],[1.5,2,0]]"

# name of the folder -> words of the sweep, number of fits
SWEEPS: dict[str, tuple[list[str], int]] = {
    "classes": (["loss=zero_one,ww,cs,llw,abstain", "hyper.C=1"], 10),
    "guesses": (["loss=top_k", "loss.K=1,2", "features=linear,rbf", "hyper.C=1", "hyper.gamma=0.3", "protocol.metric=error"], 8),
    "decided": (["loss=absolute,squared,pinball", "loss.rule=predictor,median,mean", "hyper.C=1", "protocol.metric=mse"], 18),
    "more_predictions": (
        ["loss=general", "loss.matrix=[[0,1,3],[2,0,1],[1.5,2,0],[0.4,0.5,2]]", "protocol.metric=cost", "hyper.C=1"],
        2,
    ),
    "sets_at_a_price": (["loss=label_sets", "loss.price=0.2,[0,0.1,0.1]", "features=linear,rbf", "hyper.C=1", "hyper.gamma=0.3"], 8),
    "order": (["loss=absolute,squared,power,huber,pinball", "features=linear,threshold", "hyper.lambda=0.01", "solver.tol=1e-6"], 20),
    "kernels": (["loss=zero_one,ww,abstain", "features=rbf,poly", "hyper.C=1", "hyper.gamma=0.3"], 12),
    "thresholds": (["loss=absolute,cs", "features=rbf_threshold,poly_threshold", "hyper.C=0.5", "hyper.gamma=0.3"], 8),
    "box": (["loss=zero_one,absolute,ww", "features=linear,threshold", "features.moments=box", "hyper.tolerance=0.5"], 12),
    "matrix": (["loss=general", f"loss.matrix={MATRIX}", "features=linear,rbf", "hyper.C=1", "hyper.gamma=0.3"], 4),
    "convex": (["loss=convex", "loss.matrix=[[0,1,2],[1,0,1],[2,1,0]]", "features=linear,threshold", "hyper.C=1"], 4),
    "tree": (["dataset.hierarchy=tree.csv", "loss=tree_distance", "features=linear,rbf", "hyper.C=1", "hyper.gamma=0.3"], 4),
    "counted": (["dataset.weight=w", "loss=zero_one,absolute,cs", "features=linear,rbf", "hyper.C=1", "hyper.gamma=0.3"], 12),
    "hinges": (["dataset.weight=w", "loss=at,it,red_th,svorim,svorex", "features=linear,rbf", "hyper.C=1", "hyper.gamma=0.3"], 20),
    "hinges_in_order": (["loss=it", "loss.ordered=true", "features=linear,poly", "hyper.C=1"], 4),
    "hinges_of_costs": (["loss=red_th", "loss.cost=squared,zero_one", "loss.bias=free,regularised", "features=linear", "hyper.C=1"], 8),
    "hinges_and_bias": (["loss=red_th", "loss.bias=regularised", "loss.ridge=0.01", "features=rbf", "hyper.C=1", "hyper.gamma=0.3"], 2),
    "costs": (
        ["dataset.weight=w", "loss=weighted", "loss.weight=column", "loss.base=zero_one,absolute", "features=linear,rbf_threshold"],
        8,
    ),
    "by_class": (["loss=weighted", "loss.weight=[1,2.5,0.5]", "loss.base=zero_one", "features=linear"], 2),
    "weighted_matrix": (
        # weights by the labels that were learned from, which are not the true ones
        [
            "noise=uniform",
            "noise.rate=0.2",
            "loss=weighted",
            "loss.weight=[1,2.5,0.5]",
            "loss.base=general",
            f"+loss.options={{matrix: {MATRIX}}}",
        ],
        2,
    ),
    "costs_matrix": (
        ["dataset.weight=w", "loss=weighted", "loss.weight=column", "loss.base=general", f"+loss.options={{matrix: {MATRIX}}}"],
        2,
    ),
    "reductions": (["loss=ova,ovo,red_mc,csosr,csovo,csova", "features=linear,rbf", "hyper.C=1", "hyper.gamma=0.3"], 24),
    "reduced_matrix": (["loss=csosr", f"loss.cost={MATRIX}", "dataset.weight=w", "hyper.lambda=0.01"], 2),
    "reduced_pairs": (["loss=csovo", "loss.cost=squared", "loss.pairs=all", "features=linear,rbf", "hyper.C=1", "hyper.gamma=0.3"], 4),
    "reduced_freely": (
        [
            "loss=ova,ovo,red_mc,csosr,csovo,csova",
            "loss.bias=free",
            "features=linear,rbf",
            "dataset.weight=w",
            "hyper.C=1",
            "hyper.gamma=0.3",
        ],
        24,
    ),
    "outcomes": (["loss=adversarial_costs", f"loss.cost={MATRIX}", "dataset.weight=w", "hyper.C=1"], 2),
    "outcomes_in_order": (["loss=adversarial_costs", "loss.cost=squared", "hyper.lambda=0.01", "solver.tol=1e-6"], 2),
    "two_stages": (["loss=two_stage", "loss.base=cs", "loss.alpha=0.2", "dataset.weight=w", "hyper.C=1"], 2),
    "metric": (["loss=metric", "loss.metric=worst_class", "features=linear,rbf", "hyper.C=1", "hyper.gamma=0.3"], 4),
    "abstaining": (["loss=abstain_ova,abstain_cs,abstain_bep,two_stage", "features=linear,rbf", "hyper.C=1", "hyper.gamma=0.3"], 16),
    "abstaining_above": (["loss=abstain_ova,abstain_cs,two_stage", "loss.tau=0.3", "hyper.C=1"], 6),
    "abstaining_cs": (["loss=abstain_cs", "loss.alpha=0.2", "features=linear,rbf", "hyper.C=1", "hyper.gamma=0.3"], 4),
    "abstaining_bep": (["loss=abstain_bep", "loss.alpha=0.3", "loss.code=[[1,-1],[-1,-1],[-1,1]]", "dataset.weight=w", "hyper.C=1"], 2),
    "abstaining_by_class": (["loss=abstain", "loss.alpha=[0.1,0.3,0.4]", "hyper.C=1"], 2),
    "noise": (["noise=uniform", "noise.rate=0.2", "loss=zero_one,ww", "hyper.C=1"], 4),
    "raw": (["protocol.standardise=none", "loss=zero_one", "hyper.C=1"], 2),
    "solvers": (["solver=sgd,lbfgs,constraint_generation,interior_point", "hyper.C=1"], 8),
}


def write_rows(path: Path) -> None:
    """Write 80 rows, some of them equal, of 3 classes in order, with weights, and a tree over the classes."""
    random = np.random.default_rng(5)
    X = random.normal(size=(80, 3)).round(1)
    X[:20] = X[20:40]
    y = (X[:, 0] + 0.5 * random.normal(size=80) > 0).astype(int) + (X[:, 1] > 0.6)
    w = random.uniform(0.5, 2.0, 80).round(2)
    lines = [f"{a},{b},{c},{weight},{label}" for (a, b, c), weight, label in zip(X, w, y, strict=True)]
    path.write_text("a,b,c,w,y\n" + "\n".join(lines) + "\n")
    path.with_name("tree.csv").write_text("parent,child\nany,none\nnone,0\nany,some\nsome,1\nsome,2\n")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function from the name of a sweep to its results folder, which lies beside the data."""
    root = tmp_path_factory.mktemp("verify")
    write_rows(root / "rows.csv")

    def folder(name: str) -> Path:
        path = root / "results" / name
        if not path.is_dir():
            words = SWEEPS[name][0]
            fixed = [] if any(word.startswith("hyper.") for word in words) else ["hyper.C=1"]
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(root)
                # w is a column of weights: no cell has it as a feature
                weight = [] if any(word.startswith("dataset.weight") for word in words) else ["dataset.drop=[w]"]
                assert main([*COMMON, *weight, *words, *fixed, f"name={name}"]) == 0
        return path

    return folder


LONG = {"reduced_freely"}  # more fits than `reductions` has, with a bias


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in SWEEPS])
def test_every_fit_is_proved(name: str, made: Callable[[str], Path]) -> None:
    verdicts = judged(made(name))
    assert [each.reason for each in verdicts if each.verdict != "proved"] == []
    assert len(verdicts) == SWEEPS[name][1]
    # proved gaps equal the gaps of the rows but for rounding
    assert all(0 <= each.relative_gap <= each.stated_gap + 1e-9 for each in verdicts)
    # counts of a fit's work are not metrics of predictions
    if name in ("sets_at_a_price", "metric"):  # of predicted sets and of drawn classifiers the checker follows none
        assert all("the predictions are not followed" in each.unfollowed for each in verdicts)
        return
    assert all(text.startswith("n_") for each in verdicts for text in each.unfollowed.split("; ") if text)
    assert all(each.metrics for each in verdicts)


# metrics of predictions of every kind: what each of them says of these fits follows, and another value does not
METRICS = ("error", "accuracy", "abstention_loss", "abstain_rate", "accuracy_accepted", "cost", "mae", "confusion_rate")
FALSIFIED = {
    "abstaining": METRICS,
    "abstaining_above": METRICS,
    "abstaining_by_class": tuple(name for name in METRICS if name != "abstention_loss"),
    "outcomes": ("cost", "error", "amae", "mmae", "amse", "accuracy_within_one", "quadratic_kappa", "kendall_tau"),
}


@pytest.mark.parametrize("name", FALSIFIED)
def test_a_falsified_value_of_any_metric_is_refuted(name: str, tmp_path: Path, made: Callable[[str], Path]) -> None:
    root, metrics = made(name).parents[1], FALSIFIED[name]
    shutil.copy(root / "rows.csv", tmp_path / "rows.csv")
    words = [word for word in SWEEPS[name][0] if not word.startswith(("features", "hyper.gamma"))]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        weight = [] if any(word.startswith("dataset.weight") for word in words) else ["dataset.drop=[w]"]
        assert main([*COMMON, *weight, *words, f"protocol.metrics=[{','.join(metrics)}]", "name=all"]) == 0
    path = tmp_path / "results" / "all"
    verdicts = judged(path)
    assert [(each.verdict, each.unfollowed) for each in verdicts] == [("proved", "")] * len(verdicts)
    assert all(set(metrics) <= set(each.metrics.split()) for each in verdicts)
    with (path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for place in range(len(verdicts)):
        copy = tmp_path / "results" / f"copy{place}"
        shutil.copytree(path, copy)
        metric = metrics[place % len(metrics)]
        edit_metric(copy, place, metric, rows)
        reasons = [each.reason for each in judged(copy) if each.verdict == "refuted"]
        assert len(reasons) == 1
        assert reasons[0].startswith(f"{metric} is ")


def test_rows_that_tie_are_named_and_a_value_out_of_their_range_is_refuted() -> None:
    possible = np.array([[True, False], [True, True]])
    row = {"metric": "error", "value": "0.5"}
    truth, facts = np.array([0, 0]), {"n_classes": 2}
    assert _unfollowed(row, possible, truth, facts) == "rows that tie: 1, between 0 and 0.5"
    assert _unfollowed({**row, "metric": "amae"}, possible, truth, facts) == "rows that tie: 1"
    assert _unfollowed({**row, "metric": "log_loss"}, possible[:1], truth[:1], facts) == "not judged"
    assert _unfollowed({**row, "value": "0.0"}, possible[:1], truth[:1], facts) == ""
    assert _unfollowed(row, None, truth, facts) == "the predictions are not followed"
    with pytest.raises(RefutedError, match=r"error is between 0 and 0\.5, not 0\.75"):
        _unfollowed({**row, "value": "0.75"}, possible, truth, facts)
    verdicts = [
        Verdict("d", "m", "c", 1, "proved", metrics="error"),
        Verdict("d", "m", "c", 2, "proved", metrics="mae", unfollowed="error (rows that tie: 1); log_loss (not judged)"),
        Verdict("d", "m", "c", 3, "refuted"),
    ]
    assert summary(verdicts) == [
        "2 proved, 1 refuted, 0 cannot; of the proved 1 with all their metrics, 1 the fit alone",
        "not followed: error (fits: 1; m): rows that tie: 1",
        "not followed: log_loss (fits: 1; m): not judged",
    ]


def edit_metric(path: Path, place: int, metric: str, rows: list[dict[str, str]]) -> None:
    """Add a little to one metric of the fit at a place, in the table and in the cell's file."""
    fits = list(dict.fromkeys((row["cell"], row["split"]) for row in rows))
    key, split = fits[place]
    changed = [dict(row) for row in rows]
    for row in changed:
        if (row["cell"], row["split"], row["metric"]) == (key, split, metric):
            row["value"] = repr(float(row["value"] or 0.0) + 1e-6)
    write_table(path, changed)

    def change(shard: dict[str, Any]) -> None:
        columns = shard["runs"]["columns"]
        for values in shard["runs"]["values"]:
            if str(values[columns.index("split")]) == split and values[columns.index("metric")] == metric:
                values[columns.index("value")] = (values[columns.index("value")] or 0.0) + 1e-6

    edit_cell(path, change, sorted(file.stem for file in (path / "cells").glob("*.json")).index(key))


def test_the_command_says_what_it_found(made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    path = made("classes")
    monkeypatch.chdir(path.parents[1])
    capfd.readouterr()
    assert main(["verify", "results=results/classes"]) == 0
    out, err = capfd.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert lines[0] == "[1/5] csv, abstain linear: 2 proved, 0 refuted, 0 cannot"
    counted = "10 proved, 0 refuted, 0 cannot; of the proved 10 with all their metrics, 0 the fit alone"
    assert re.fullmatch(rf"results/classes: {counted}, \d+\.\d s; verify\.csv", lines[-1])
    with (path / "verify.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["verdict"] for row in table] == ["proved"] * 10
    assert all(float(row["dual_objective"]) <= float(row["objective"]) for row in table)

    copy = path.with_name("copied")
    shutil.copytree(path, copy)
    edit_rows(copy, 0, "objective", lambda text: repr(float(text) * (1 - 1e-6)), both=True)
    assert main(["verify", "results=results/copied"]) == 1
    out, _ = capfd.readouterr()
    assert "1 proved, 1 refuted, 0 cannot: split 1: objective is" in out

    # bad input
    for words, message in (
        (["results=results/nowhere"], "no results folder results/nowhere"),
        (["results=results/plain"], "was made without proofs; run it again with record.proofs=true"),
    ):
        if "plain" in words[0]:
            assert main(["dataset=iris", "hyper.C=1", "protocol.n_splits=1", "name=plain", "quiet=true"]) == 0
        capfd.readouterr()
        assert main(["verify", *words]) == 2
        assert message in capfd.readouterr().err


def test_what_cannot_be_proved_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["dataset=iris", "protocol.n_splits=1", "quiet=true"]
    assert main([*words, "name=odd", "record.proofs=true", "features=nystroem", "hyper.C=1"]) == 0
    assert main([*words, "name=odd", "loss=ww", "hyper.C=1"]) == 0
    assert main([*words, "name=other", "record.proofs=true", "loss=perceptron"]) == 0
    odd = {each.method: (each.verdict, each.reason) for each in judged(tmp_path / "results" / "odd")}
    assert odd["ww linear"] == ("cannot", "kept without proofs")
    assert odd["zero_one nystroem"][0] == "cannot"
    assert "fitted to the rows" in odd["zero_one nystroem"][1]
    (other,) = judged(tmp_path / "results" / "other")
    assert (other.verdict, other.reason) == ("cannot", "nothing was kept of loss=perceptron")


# ---- alterations ------------------------------------------------------------------------------------------------------------------


def alter_theta(path: Path, random: np.random.Generator, forge: bool) -> None:
    def change(arrays: dict[str, np.ndarray]) -> None:
        flat = arrays["theta"].reshape(-1)
        flat[random.integers(len(flat))] += random.choice([-1, 1]) * 10.0 ** random.uniform(-2, 1)

    edit_proof(path, int(random.integers(8)), change, forge)


def alter_r(path: Path, random: np.random.Generator, forge: bool) -> None:
    def change(arrays: dict[str, np.ndarray]) -> None:
        R = arrays["r"]
        kind = random.integers(4)
        if kind == 0:  # as in the audit: every r a little lower, not all by the same, which is nothing to potentials that sum to 0 (llw)
            R -= 0.0021 * np.arange(1, R.shape[1] + 1)
        elif kind == 1:
            row = random.integers(len(R))  # halved first: more than 1 is nothing to a variable of ww or llw that is 1 already
            R[row] = 0.5 * R[row] + random.uniform(0.05, 0.5, R.shape[1])
        elif kind == 2:
            R *= random.uniform(0.5, 0.99)
        else:
            R[:] = R[::-1].copy()

    edit_proof(path, int(random.integers(8)), change, forge)


def alter_row(path: Path, random: np.random.Generator, forge: bool) -> None:
    column, change = [
        ("objective", lambda text: repr(float(text) * 1.000001)),
        ("dual_objective", lambda text: repr(float(text) * 1.000001)),
        ("relative_gap", lambda text: repr(float(text) * 0.9)),
        ("game_value", lambda text: repr(float(text) * 0.9999) if text else "0.1"),
        ("value", lambda text: repr(float(text) + 0.25)),
        ("n_train", lambda text: str(int(text) - 1)),
        ("n_test", lambda text: str(int(text) + 1)),
        ("n_features", lambda text: str(int(text) + 1)),
        ("converged", lambda text: str(text != "True")),
        ("status", lambda text: "not_converged" if text == "ok" else "ok"),
        ("proof", lambda text: text[::-1]),
    ][random.integers(11)]
    place = int(random.integers(2, 10))  # the first two fits are fits of abstain, whose values theta alone does not give
    edit_rows(path, 8 if column == "game_value" and forge else place, column, change, both=forge)


def alter_strength(path: Path, random: np.random.Generator, forge: bool) -> None:
    factor = 10.0 ** random.uniform(0.001, 1)
    edit_rows(path, int(random.integers(10)), "C", lambda text: repr(float(text) * factor), both=forge)


def alter_settings(path: Path, random: np.random.Generator, forge: bool) -> None:
    group, change = [
        ("seed", lambda seed: seed + 1),
        ("dataset", lambda options: {**options, "sizes": [60, 20]}),
        ("dataset", lambda options: {**options, "drop": ["w", "a"]}),
        ("protocol", lambda options: {**options, "standardise": "none"}),
        ("protocol", lambda options: {**options, "train_size": 0.6}),
        ("features", lambda options: {**options, "name": "threshold"}),
        ("loss", lambda options: {**options, "name": "absolute"}),
        ("noise", lambda options: {"name": "uniform", "rate": 0.3}),
    ][random.integers(8)]
    edit_config(path, int(random.integers(5)), group, change)


def alter_loss(path: Path, random: np.random.Generator, forge: bool) -> None:
    """Another cost of abstaining, or another loss under every name that a row gives it."""
    if forge:
        keys = sorted(file.stem for file in (path / "cells").glob("*.json"))
        names = [ResultsFolder(path).read_cell(key)["about"]["cell"]["loss"]["name"] for key in keys]
        alpha = float(random.choice([0.1, 0.3, 0.45, 0.7]))
        edit_config(path, names.index("abstain"), "loss", lambda options: {**options, "alpha": alpha})
        return
    place = int(random.integers(2, 10))
    with (path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    fits = list(dict.fromkeys((row["cell"], row["split"]) for row in rows))
    key = fits[place][0]
    old = next(row["loss"] for row in rows if row["cell"] == key)
    new = {"cs": "ww", "ww": "cs", "llw": "ww", "zero_one": "absolute", "abstain": "zero_one"}[old]
    for number in range(len(fits)):
        if fits[number][0] == key:
            edit_rows(path, number, "loss", lambda text: new, both=True)
    order = sorted(file.stem for file in (path / "cells").glob("*.json")).index(key)
    edit_config(path, order, "loss", lambda options: {**options, "name": new})


def alter_data(path: Path, random: np.random.Generator, forge: bool) -> None:
    """Other numbers in the table; the forger writes its checksum into the cells."""
    file = path.parents[1] / "rows.csv"
    lines = file.read_text().splitlines()
    for place in random.choice(len(lines) - 1, 10, replace=False) + 1:  # some of them are training rows
        cells = lines[place].split(",")
        cells[random.integers(3)] = repr(round(float(cells[0]) + random.uniform(1, 3), 3))
        lines[place] = ",".join(cells)
    file.write_text("\n".join(lines) + "\n")
    if forge:
        from advcli.data import load

        for number in range(5):
            config = ResultsFolder(path).read_cell(sorted(each.stem for each in (path / "cells").glob("*.json"))[number])["about"]["cell"]
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(path.parents[1])
                checksum = load(config["dataset"], path).sha256
            edit_cell(path, lambda shard, checksum=checksum: shard["about"].update({"dataset_sha256": checksum}), number)


def alter_files(path: Path, random: np.random.Generator, forge: bool) -> None:
    files = sorted((path / "proofs").iterdir())
    one, other = random.choice(len(files), 2, replace=False)
    kind = random.integers(5 if not forge else 2)
    arrays = proofs.read(ResultsFolder(path), files[one].stem)
    if kind == 0:  # the splits of a cell change places
        np.savez_compressed(
            files[one], **{f"{part}_{3 - number}": array for number, parts in arrays.items() for part, array in parts.items()}
        )
        if forge:
            forge_hashes(path, files[one].stem)
    elif kind == 1:
        shutil.copy(files[other], files[one])
        if forge:
            forge_hashes(path, files[one].stem)
    elif kind == 2:
        files[one].unlink()
    elif kind == 3:
        files[one].write_bytes(files[one].read_bytes()[:-100])
    else:
        np.savez_compressed(files[one], **{f"{part}_1": array for part, array in arrays[1].items()})


ALTERATIONS = (alter_theta, alter_r, alter_row, alter_strength, alter_settings, alter_loss, alter_data, alter_files)


@pytest.mark.parametrize("seed", range(100))
def test_alterations_are_caught(seed: int, made: Callable[[str], Path], tmp_path: Path) -> None:
    """Careless ones and forged ones, which change every hash and copy that they can: of 10 fits at least one is refuted."""
    random = np.random.default_rng(seed)
    root = made("classes")
    copy = tmp_path / "results" / "copy"
    shutil.copytree(root, copy)
    shutil.copy(root.parents[1] / "rows.csv", tmp_path / "rows.csv")
    ALTERATIONS[seed % len(ALTERATIONS)](copy, random, forge=bool(seed // len(ALTERATIONS) % 2))
    verdicts = judged(copy)
    assert any(each.verdict == "refuted" for each in verdicts), [each.reason for each in verdicts]
    assert not any(each.reason.startswith(("AttributeError", "TypeError")) for each in verdicts)


def spoil(arrays: dict[str, np.ndarray]) -> None:
    arrays["theta"].reshape(-1)[0] = np.nan


def more(text: str) -> str:
    return str(int(text) + 1)


# one change that all other checks pass -> the words of the refutation
ALONE: dict[str, Callable[[Path], Any]] = {
    "their checksum differs": lambda copy: edit_cell(copy, lambda shard: shard["about"].update({"dataset_sha256": "0" * 64}), 1),
    "differ in the column passes": lambda copy: edit_rows(copy, 3, "passes", more, both=False),
    "the rows' loss differs from their cell's": lambda copy: edit_rows(copy, 3, "loss", lambda text: "other", both=True),
    "the rows' features differs": lambda copy: edit_rows(copy, 3, "features", lambda text: "rbf", both=True),
    "holds numbers that are not finite": lambda copy: edit_proof(copy, 2, spoil, forge=True),
    "the hash of the proof differs from the row's": lambda copy: edit_rows(copy, 3, "proof", lambda text: text[::-1], both=True),
    "objective is": lambda copy: edit_rows(copy, 3, "objective", lambda text: repr(float(text) * (1 + 1e-7)), both=True),
    "game_value is": lambda copy: edit_rows(copy, 8, "game_value", lambda text: repr(float(text) * (1 - 1e-7)), both=True),
    "relative_gap is": lambda copy: edit_rows(copy, 3, "relative_gap", lambda text: repr(float(text) * 0.9), both=True),
    "do not follow from the gap": lambda copy: edit_rows(copy, 3, "converged", lambda text: str(text != "True"), both=True),
    "status=not_converged do not follow": lambda copy: edit_rows(copy, 3, "status", lambda text: "not_converged", both=True),
    "n_test is": lambda copy: edit_rows(copy, 3, "n_test", more, both=True),
    "error is": lambda copy: edit_rows(copy, 3, "value", lambda text: repr(float(text) + 1e-6), both=True),
}


@pytest.mark.parametrize("said", ALONE)
def test_what_one_check_alone_sees_is_refuted(said: str, made: Callable[[str], Path], tmp_path: Path) -> None:
    root = made("classes")
    shutil.copytree(root, tmp_path / "results" / "copy")
    shutil.copy(root.parents[1] / "rows.csv", tmp_path / "rows.csv")
    ALONE[said](tmp_path / "results" / "copy")
    reasons = [each.reason for each in judged(tmp_path / "results" / "copy") if each.verdict == "refuted"]
    assert reasons
    assert all(said in reason for reason in reasons)


def test_a_predictor_that_is_not_the_games_is_refuted(made: Callable[[str], Path], tmp_path: Path) -> None:
    copy = tmp_path / "results" / "copy"
    shutil.copytree(made("matrix"), copy)
    shutil.copy(made("matrix").parents[1] / "rows.csv", tmp_path / "rows.csv")

    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays["predictor"] *= 0.5  # no distributions: half of the loss

    edit_proof(copy, 0, change, forge=True)
    assert [each.verdict for each in judged(copy)].count("refuted") == 1


def test_rows_that_are_gone_or_doubled_are_refuted(made: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copy(made("classes").parents[1] / "rows.csv", tmp_path / "rows.csv")
    for name, keep in (("gone", slice(1, None)), ("foreign", slice(None))):
        copy = tmp_path / "results" / name
        shutil.copytree(made("classes"), copy)
        with (copy / "runs.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))[keep]
        if name == "foreign":
            rows.append({**rows[0], "cell": "0" * 32})
        write_table(copy, rows)
        reasons = [each.reason for each in judged(copy) if each.verdict == "refuted"]
        assert any("rows of" in reason for reason in reasons), reasons
