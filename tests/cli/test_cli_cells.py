"""Cells from a file to a command line to a model and back: labels, gaps and notations, in files of any format and parts of any size."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main

pytestmark = pytest.mark.usefixtures("elsewhere")

FIT = ["dataset=csv", "dataset.path=train.csv", "dataset.target=kind", "hyper.C=1", "solver.tol=1e-3"]


def frame(labels: list[str], n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    y = np.arange(n) % len(labels)
    return pd.DataFrame({"size": np.round(10000 + 2000 * y + rng.normal(0, 300, n), 2), "kind": np.array(labels, dtype=object)[y]})


def command(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[str, list[str]]:
    """Return what `data check` prints and the words of the command that it ends with."""
    capfd.readouterr()
    assert main(["data", "check", *words]) == 0
    out = capfd.readouterr().out
    return out, shlex.split(out.partition("The command line that fits it:")[2].replace("\\\n", " "))[1:]


def accuracy(words: list[str], name: str) -> float:
    assert main([*words, "hyper.C=1", "protocol.n_splits=2", "solver.tol=0.01", f"name={name}"]) == 0
    rows = pd.read_csv(f"results/{name}/runs.csv")
    return float(rows["value"][rows["metric"] == "accuracy"].mean())


@pytest.mark.parametrize("labels", [["01001", "02134", "10001"], ["1.0", "2.0"], ["1.50", "2"], ["-1", "+1"]])
def test_predictions_are_written_as_the_labels_were(labels: list[str]) -> None:
    frame(labels).to_csv("train.csv", index=False)
    assert main(["fit", *FIT, "out=m.model"]) == 0
    assert main(["predict", "model=m.model", "input=train.csv", "out=p.csv"]) == 0
    found = pd.read_csv("p.csv", dtype=str, keep_default_na=False)
    assert set(found["label"]) == set(labels)
    assert (found["label"] == frame(labels)["kind"]).mean() > 0.9
    assert {f"potential_{label}" for label in labels} <= set(found.columns)
    assert main(["coverage", "model=m.model", "input=train.csv", "out=found"]) == 0
    counts = pd.read_csv("found/confusion.csv", index_col="class", dtype={"class": str})
    assert sorted(counts.index) == sorted(labels)
    assert np.trace(counts[list(counts.index)].to_numpy()) == (found["label"] == frame(labels)["kind"]).sum()


def test_a_matrix_an_order_and_a_hierarchy_are_keyed_by_the_labels_as_they_are_written() -> None:
    frame(["01", "1", "2.0"]).to_csv("train.csv", index=False)
    Path("costs.csv").write_text("prediction,2.0,1,01\n2.0,0,1,1\n1,1,0,1\n01,5,1,0\n")
    assert main(["fit", *FIT, "loss=general", "loss.file=costs.csv", "out=m.model"]) == 0
    assert main(["fit", *FIT, "dataset.order=['01','1','2.0']", "loss=absolute", "out=m.model"]) == 0
    Path("tree.csv").write_text("parent,child\nany,01\nany,some\nsome,1\nsome,2.0\n")
    assert main(["fit", *FIT, "dataset.hierarchy=tree.csv", "loss=tree_distance", "out=m.model"]) == 0
    assert main(["predict", "model=m.model", "input=train.csv", "out=p.csv"]) == 0
    assert set(pd.read_csv("p.csv", dtype=str)["label"]) == {"01", "1", "2.0"}


@pytest.mark.parametrize("missing", ["refuse", "median"])
def test_one_gap_among_truths_is_a_gap_in_any_part_of_the_file(missing: str) -> None:
    table = frame(["a", "b"]).assign(smoker=["TRUE", "FALSE", "FALSE"] * 20)
    table.to_csv("train.csv", index=False)
    assert main(["fit", *FIT, f"dataset.missing={missing}", "out=m.model"]) == 0
    table.loc[7, "smoker"] = ""
    table.to_csv("new.csv", index=False)
    found = []
    for rows in (1, 3, 8, 100):
        words = ["predict", "model=m.model", "input=new.csv", "out=p.csv", "predict.rejected=bad.csv", f"chunk_rows={rows}"]
        assert main(words) == 0
        found.append(pd.read_csv("p.csv"))
        assert pd.read_csv("bad.csv")["row"].tolist() == ([8] if missing == "refuse" else [])
    for other in found[1:]:
        pd.testing.assert_frame_equal(found[0], other)


@pytest.mark.parametrize("mark", ["x", "1", "TRUE"])
def test_the_command_of_a_box_that_is_ticked_or_empty_keeps_what_it_says(capfd: pytest.CaptureFixture[str], mark: str) -> None:
    rng = np.random.default_rng(9)
    table = pd.DataFrame({"u": rng.normal(size=40).round(2), "ticked": [mark, ""] * 20, "kind": ["a", "b"] * 20})
    table.to_csv("train.csv", index=False)
    out, words = command(capfd, "path=train.csv", "target=kind")
    assert "one value or nothing in ticked" in out
    assert accuracy(words, "made") == 1.0
    assert main(["fit", *words, "hyper.C=1", "out=m.model"]) == 0
    assert main(["predict", "model=m.model", "input=train.csv", "out=p.csv"]) == 0
    assert pd.read_csv("p.csv")["label"].tolist() == table["kind"].tolist()
    capfd.readouterr()
    assert main(["model", "show", "m.model"]) == 0
    assert "ticked by nothing" in capfd.readouterr().out


NOTATIONS = {
    "de": (";", lambda value: f"{value:,.2f}".translate(str.maketrans(",.", ".,"))),
    "fr": (",", lambda value: f"{value:,.2f}".replace(",", "\u202f")),
    "money": (",", lambda value: f"${value:,.2f}"),
    "percent": (",", lambda value: f"{value} %"),
    "comma": (",", lambda value: f"{value:.2f}".replace(".", ",")),
    "bound": (",", lambda value: f"<{value}" if value > 13000 else str(value)),
}


@pytest.mark.parametrize("name", NOTATIONS)
def test_the_command_of_numbers_in_another_notation_reads_them(capfd: pytest.CaptureFixture[str], name: str) -> None:
    separator, write = NOTATIONS[name]
    table = frame(["a", "b", "c"])
    table.to_csv("plain.csv", index=False)
    table.assign(size=table["size"].map(write)).to_csv("train.csv", index=False, sep=separator)
    out, words = command(capfd, "path=train.csv", "target=kind")
    assert "numbers in size are written in another way" in out
    plain = command(capfd, "path=plain.csv", "target=kind")[1]
    assert accuracy(words, "made") == accuracy(plain, "plain") > 0.9
    assert main(["fit", *words, "hyper.C=1", "out=m.model"]) == 0
    capfd.readouterr()
    assert main(["model", "show", "m.model"]) == 0
    assert "read by" in capfd.readouterr().out
    assert main(["fit", *plain, "hyper.C=1", "out=plain.model"]) == 0
    assert main(["predict", "model=plain.model", "input=plain.csv", "out=plain_p.csv"]) == 0
    for rows in (1, 7, 100):
        assert main(["predict", "model=m.model", "input=train.csv", "out=p.csv", f"chunk_rows={rows}"]) == 0
        pd.testing.assert_frame_equal(pd.read_csv("p.csv"), pd.read_csv("plain_p.csv"))


def test_what_may_be_thousands_or_a_fraction_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    table = frame(["a", "b"])
    table.assign(size=table["size"].map(lambda value: f"{value:,.0f}")).to_csv("train.csv", index=False)
    out, words = command(capfd, "path=train.csv", "target=kind")
    assert "size could also be read otherwise" in out
    assert "dataset.decimal=comma" in out
    assert "dataset.thousands=comma" in words


def test_columns_of_labels_are_checked(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).normal(size=(40, 2)).round(2)
    pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "tag_red": x[:, 0] > 0, "tag_big": x[:, 1] > 0}).to_csv("train.csv", index=False)
    out, words = command(capfd, "path=train.csv", "target=tag_*")
    assert "red " in out
    assert "loss=sets" in out
    assert 'dataset.target="tag_*"' in words
    assert main([*words, "loss=sets", "hyper.C=1", "protocol.n_splits=2", "protocol.metric=hamming", "name=made"]) == 0


def test_labels_in_two_writings_are_a_remark(capfd: pytest.CaptureFixture[str]) -> None:
    pd.DataFrame({"x": range(30), "kind": ["1", "1.0", "2"] * 10}).to_csv("train.csv", index=False)
    out, _ = command(capfd, "path=train.csv", "target=kind")
    assert "one label in several writings" in " ".join(out.split())
