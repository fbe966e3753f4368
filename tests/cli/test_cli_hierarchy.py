"""Labels with a hierarchy and sets of labels from the command line: rows, and one line for every graph that is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main

TREE = "parent,child\nr,a\nr,b\na,c\na,d\n"
QUICK = ["dataset=csv", "dataset.path=t.csv", "dataset.target=label", "dataset.hierarchy=e.csv", "workers=1", "results_dir=.", "hyper.C=1"]
SETS = [
    "dataset.label_separator=+",
    "dataset.allow_small_classes=true",
    "protocol.metric=instance_f1",
    "protocol.metrics=[hierarchical_f1]",
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(30, 2)), np.arange(30) % 3
    X += 3 * np.array([(0, 0), (0, 1), (1, 0)])[codes]
    for name, said in (("t.csv", ["b", "c", "d"]), ("sets.csv", ["b", "c+d", "d+b"])):
        pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "label": [said[code] for code in codes]}).to_csv(name, index=False)
    Path("e.csv").write_text(TREE)


@pytest.mark.parametrize("loss", ["flat", "hsvm", "nhsvm", "ssvm"])
def test_one_label_a_row(loss: str) -> None:
    options = {"hsvm": ["loss.margin_power=1"], "nhsvm": ["loss.rho=1"]}.get(loss, [])
    assert main([*QUICK, f"loss={loss}", *options, "protocol.n_splits=2", "protocol.metrics=[accuracy,tree_loss]", "name=one"]) == 0
    rows = pd.read_csv("one/runs.csv")
    assert set(rows["metric"]) >= {"accuracy", "tree_loss"}
    assert (rows["relative_gap"] <= 1e-3).all()
    assert rows[rows["metric"] == "accuracy"]["value"].min() > 0.5


@pytest.mark.parametrize("loss", ["flat", "hsvm", "nhsvm", "ssvm", "hierarchical_sets", "hierarchical_sets_slack"])
def test_several_labels_a_row(loss: str) -> None:
    options = {"hsvm": ["loss.margin_power=1"], "nhsvm": ["loss.rho=1"]}.get(loss, [])
    assert main([*QUICK, *SETS, "dataset.path=sets.csv", f"loss={loss}", *options, "protocol.n_splits=2", "name=sets"]) == 0
    rows = pd.read_csv("sets/runs.csv")
    assert (rows["relative_gap"] <= 1e-3).all()
    assert rows[rows["metric"] == "instance_f1"]["value"].min() > 0.5


def test_any_loss_has_hierarchical_metrics() -> None:
    assert main([*QUICK, "loss=zero_one", "protocol.n_splits=2", "protocol.metrics=[hierarchical_f1]", "name=any"]) == 0
    assert "hierarchical_f1" in set(pd.read_csv("any/runs.csv")["metric"])


def test_a_holdout_chooses_with_one_fit_a_candidate() -> None:
    words = [word for word in QUICK if word != "hyper.C=1"]
    search = [
        "protocol.holdout=0.3",
        "protocol.extend=null",
        "protocol.stage1.regularisation=[0.1,1,10]",
        "protocol.stage2.regularisation=[1]",
    ]
    assert main([*words, "loss=flat", "protocol.n_splits=1", *search, "name=held"]) == 0
    rows = pd.read_csv("held/search.csv")
    assert (rows["stage"] == 1).sum() == 3
    assert set(rows["n_test"]) == {7}  # 0.3 of 21 training rows, rounded down for the rows to fit


@pytest.mark.parametrize(
    ("edges", "words", "said"),
    [
        ("parent,child\nr,a\na,b\nb,a\n", [], "form a cycle"),
        ("parent,child\nr,b\nr,c\n", [], "'d' of the examples' labels is no node"),
        ("parent,child\nr,b\nb,c\nr,d\n", [], "1 of 3 labels are inner nodes"),
        (TREE + "s,b\n", ["dataset.root=r"], "'s' cannot be reached from the root 'r'"),
        (TREE + "s,b\n", [], "2 nodes have no parent: 'r', 's'"),
        (TREE, ["dataset.hierarchy=no.csv"], "there is no file no.csv"),
        (TREE, ["dataset.path=sets.csv", *SETS, "loss=zero_one"], "loss=zero_one needs one label a row"),
        (TREE, ["dataset.path=sets.csv", *SETS, "noise=uniform"], "noisy labels are for rows with one label"),
        (TREE, ["dataset.path=sets.csv", *SETS, "protocol.metrics=[mae]"], "metric mae is for one label a row"),
        (TREE, ["dataset.hierarchy=null", "loss=ssvm"], "needs a label graph"),
        (TREE, ["dataset.hierarchy=null", "protocol.metric=tree_loss", "loss=flat"], "tree_loss needs a hierarchy over the labels"),
        (TREE, ["protocol.holdout=2"], "protocol.holdout"),
    ],
)
def test_what_is_refused_in_one_line(edges: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.csv").write_text(edges)
    chosen = [] if any(word.startswith("loss=") for word in words) else ["loss=hsvm", "loss.margin_power=1"]
    assert main([*QUICK, *chosen, "protocol.n_splits=2", "name=no", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_models_of_sets_predict_in_the_form_that_they_were_read_in() -> None:
    """Joined in a cell or in columns; an inner node that is a label by its own name, not that of its stub leaf."""
    table = pd.read_csv("sets.csv")
    table["label"] = table["label"].str.replace("d+b", "a+b")
    table.to_csv("sets.csv", index=False)
    wide = table[["x", "z"]].join(pd.DataFrame({f"is_{name}": table["label"].str.contains(name).astype(int) for name in "abcd"}))
    wide.to_csv("wide.csv", index=False)
    options = ["dataset=csv", "dataset.hierarchy=e.csv", "dataset.stub_leaves=true", "dataset.allow_small_classes=true", "loss=hsvm"]
    options += ["loss.margin_power=1", "hyper.C=10", "protocol.metric=instance_f1"]
    assert main(["fit", *options, "dataset.path=sets.csv", "dataset.target=label", SETS[0], "out=cells.model"]) == 0
    assert main(["fit", *options, "dataset.path=wide.csv", "dataset.target=is_*", "out=columns.model"]) == 0
    assert main(["predict", "model=cells.model", "input=sets.csv", "out=cells.csv"]) == 0
    assert main(["predict", "model=columns.model", "input=wide.csv", "out=columns.csv"]) == 0
    cells = pd.read_csv("cells.csv")["label"].str.split("+").map(set)
    columns = pd.read_csv("columns.csv")
    assert set(columns) == {"is_a", "is_b", "is_c", "is_d"}
    assert [{name for name in "abcd" if row[f"is_{name}"]} for _, row in columns.iterrows()] == list(cells)
    assert np.mean([found == set(true.split("+")) for found, true in zip(cells, table["label"], strict=True)]) > 0.7
