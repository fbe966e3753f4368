"""Losses with options of their own, from the command line to the rows: matrices in files, weights of examples, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main

pytestmark = pytest.mark.usefixtures("elsewhere")

COSTS = {"virginica": (0, 1, 4), "setosa": (5, 0, 1), "versicolor": (1, 2, 0)}  # rows and columns: virginica, setosa, versicolor
QUICK = ["hyper.C=4", "protocol.n_splits=3", "workers=1", "results_dir=."]


def write_costs(path: Path, order: list[str], columns: list[str]) -> None:
    table = pd.DataFrame(COSTS, index=list(COSTS)).T.set_axis(list(COSTS), axis=1)
    table.loc[order, columns].to_csv(path, index_label="said")


def rows(name: str, *words: str) -> pd.DataFrame:
    assert main([*words, *QUICK, f"name={name}"]) == 0
    found = pd.read_csv(Path(name) / "runs.csv")
    return found[["split", "metric", "value", "objective", "dual_objective"]]


def test_named_columns_of_a_matrix_find_their_classes() -> None:
    labels = ["setosa", "versicolor", "virginica"]  # the data set's order
    write_costs(Path("mixed.csv"), ["virginica", "setosa", "versicolor"], ["versicolor", "virginica", "setosa"])
    table = pd.DataFrame(COSTS, index=list(COSTS)).T.set_axis(list(COSTS), axis=1).loc[labels, labels].to_numpy().tolist()
    by_file = rows("by_file", "loss=general", "loss.file=mixed.csv")
    by_hand = rows("by_hand", "loss=general", f"loss.matrix={table}".replace(" ", ""))
    pd.testing.assert_frame_equal(by_file, by_hand)
    # inside another loss too
    outside = ["loss=weighted", "loss.base=general", "loss.weight=2"]
    wrapped = rows("wrapped", *outside, "+loss.options.file=mixed.csv")
    pd.testing.assert_frame_equal(wrapped, rows("wrapped_by_hand", *outside, f"+loss.options.matrix={table}".replace(" ", "")))


def test_another_content_of_the_file_is_another_cell() -> None:
    write_costs(Path("costs.csv"), list(COSTS), list(COSTS))
    first = rows("again", "loss=general", "loss.file=costs.csv")
    table = pd.read_csv("costs.csv", index_col=0)
    table.loc["virginica", "versicolor"] = 50
    table.to_csv("costs.csv")
    second = rows("other", "loss=general", "loss.file=costs.csv")
    assert {*first["objective"]} != {*second["objective"]}
    write_costs(Path("costs.csv"), list(COSTS), list(COSTS))
    third = rows("third", "loss=general", "loss.file=costs.csv")
    pd.testing.assert_frame_equal(third, first)
    cells = [{path.name for path in Path(name, "cells").glob("*.json")} for name in ("again", "other", "third")]
    assert cells[0] == cells[2] != cells[1]


def weights_file(path: Path, weight: float | None) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.7 * random.normal(size=60) > 0, "up", "down")
    found = pd.DataFrame(X, columns=["a", "b"]).assign(label=y)
    found.assign(w=random.uniform(0.5, 3.0, 60) if weight is None else weight).to_csv(path, index=False)


def test_weights_of_a_column_are_the_loss_s_own() -> None:
    weights_file(Path("two.csv"), 2.0)
    data = ["dataset=csv", "dataset.path=two.csv", "dataset.target=label"]
    column = rows("column", *data, "dataset.weight=w", "loss=weighted", "loss.weight=column")
    number = rows("number", *data, "dataset.drop=[w]", "loss=weighted", "loss.weight=2")
    np.testing.assert_allclose(column["objective"], number["objective"], rtol=2e-3)
    weights_file(Path("own.csv"), None)
    own = rows(
        "own", "dataset=csv", "dataset.path=own.csv", "dataset.target=label", "dataset.weight=w", "loss=weighted", "loss.weight=column"
    )
    assert (np.abs(own["objective"] - number["objective"]) > 1e-2).any()


def test_a_weighted_loss_that_may_abstain_is_judged_by_the_alpha_of_its_base() -> None:
    plain = rows("plain", "loss=abstain")
    for name, words in (("default", []), ("given", ["+loss.options.alpha=0.5"])):
        found = rows(name, "loss=weighted", "loss.base=abstain", "loss.weight=1", *words)
        assert found["metric"].tolist() == plain["metric"].tolist()
        np.testing.assert_allclose(found["value"], plain["value"], rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["loss=general", "loss.matrix=[[0,1],[1,0]]"], "has 2 columns but there are 3 classes"),
        (["loss=general", "loss.matrix=[[0,1,x],[1,0,1],[1,1,0]]"], "row 0, column 2, must be a finite number, got 'x'"),
        (["loss=general", "loss.matrix=[[0,1,.nan],[1,0,1],[1,1,0]]"], "row 0, column 2, must be a finite number"),
        (["loss=general", "loss.matrix=[[0,1,1],[1,0],[1,1,0]]"], "the loss matrix"),
        (["loss=general"], "needs either matrix"),
        (["loss=general", "loss.file=none.csv"], "cannot be read"),
        (["loss=abstain", "loss.alpha=1.5"], "alpha of loss=abstain must be a number from 0 to 1 "),
        (["loss=abstain", "loss.alpha=-0.1"], "alpha of loss=abstain must be a number from 0 to 1 "),
        (["loss=weighted", "loss.weight=0"], "must be numbers above 0"),
        (["loss=weighted", "loss.weight=[1,2]"], "has 2 numbers for 3 classes"),
        (["loss=weighted", "loss.weight=column"], "name their column by dataset.weight"),
        (["loss=absolute"], "give it with dataset.order=[lowest,...,highest]"),
        (["loss=zero_one", "features=threshold"], "give it with dataset.order=[lowest,...,highest]"),
    ],
)
def test_options_of_losses_that_are_refused(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*words, *QUICK]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1, err
    assert said in err
    assert list(Path.cwd().rglob("runs.csv")) == []


@pytest.mark.parametrize(("column", "said"), [("virgin", "no column for class 'virginica'"), ("rose", "no column for class 'virginica'")])
def test_a_matrix_whose_columns_are_no_classes(column: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    write_costs(Path("costs.csv"), list(COSTS), list(COSTS))
    text = Path("costs.csv").read_text().replace("virginica", column)
    Path("costs.csv").write_text(text)
    assert main(["loss=general", "loss.file=costs.csv", *QUICK]) == 2
    assert said in capfd.readouterr().err


def test_a_sweep_may_mix_methods_with_and_without_a_hyper_parameter(capsys: pytest.CaptureFixture[str]) -> None:
    """A key that a method lacks is a note, and its rows are those without it; but for C, a key that none has is an error."""
    sweep = ["-m", "loss=zero_one,uma,forward", *QUICK]
    assert main([*sweep, "name=mixed"]) == 0
    said = capsys.readouterr().err
    assert said.count("advcli: note: hyper.C is no hyper-parameter of uma linear") == 1
    mixed = pd.read_csv("mixed/runs.csv").set_index("loss")
    assert set(mixed.loc["zero_one", "C"]) == set(mixed.loc["forward", "C"]) == {4.0}
    assert mixed.loc["uma", "C"].isna().all()
    assert main(["loss=uma", *QUICK[1:], "name=alone"]) == 0
    alone = pd.read_csv("alone/runs.csv")
    assert set(alone["cell"]) == set(mixed.loc["uma", "cell"])
    assert main([*sweep, "name=mixed"]) == 0
    assert "already there" in capsys.readouterr().out
    for words, methods in ((["loss=uma"], "uma linear"), (["-m", "loss=uma,perceptron"], "uma linear, perceptron linear")):
        assert main([*words, *QUICK, f"name=noted{len(words)}"]) == 0
        assert capsys.readouterr().err.count(f"note: hyper.C is no hyper-parameter of {methods}: no part of these cells") == 1
    assert set(pd.read_csv("noted1/runs.csv")["cell"]) == set(alone["cell"])
    assert main(["-m", "features=linear,rbf", "hyper.gama=1", *QUICK, "name=refused"]) == 2


def test_an_option_that_all_swept_losses_have_is_set_once(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["-m", "dataset=iris", "loss=csosr,csovo", "hyper.C=1", "protocol.n_splits=1", "workers=1", "hydra/launcher=basic"]
    assert main([*words, "loss.cost=[[0,1,5],[1,0,5],[1,1,0]]", "name=x"]) == 0
    rows = pd.read_csv("results/x/runs.csv")
    assert set(rows["loss"]) == {"csosr", "csovo"}
    assert rows.loc[rows["metric"] == "cost", "value"].notna().all()
    capfd.readouterr()
    for word in ("loss.alpha=3", "loss.cost=[[0,1"):
        assert main([*words, word, "name=y"]) == 2
        assert len(capfd.readouterr().err.splitlines()) == 1


def test_loss_check_says_whether_a_matrix_is_consistent_and_what_breaks_it(capsys: pytest.CaptureFixture[str]) -> None:
    write_costs(Path("mixed.csv"), ["virginica", "setosa", "versicolor"], ["versicolor", "virginica", "setosa"])
    assert main(["loss", "check", "mixed.csv"]) == 0  # rows and columns in other orders: each class is cheapest where it is right
    assert "mixed.csv, 3 classes, 3 predictions: Fisher consistent" in capsys.readouterr().out
    assert main(["loss", "check", "cs", "classes=4"]) == 1
    out = capsys.readouterr().out
    assert "broken by the distribution (0.2, 0.4, 0.2, 0.2)" in out
    assert out.count("broken by the same distribution") == 2
    Path("other.csv").write_text("said,a,b\nyes,0,1\nno,1,0\n")
    Path("few.csv").write_text("0,1,1\n1,0,1\n")
    for words, fault in (
        (["check"], "needs a cost matrix or a loss"),
        (["check", "absent.csv"], "cannot be read"),
        (["check", "other.csv"], "are not its classes"),
        (["check", "few.csv"], "are not its classes"),
        (["check", "mixed.csv", "classes=3"], "is for a loss by its name"),
        (["check", "ww", "classes=1"], "not a whole number of at least 2"),
        (["check", "ww", "classes=7"], "at most 6 classes"),
        (["check", "ww", "clases=3"], "did you mean classes"),
    ):
        assert main(["loss", *words]) == 2
        said = capsys.readouterr().err
        assert fault in said
        assert said.count("\n") == 1
