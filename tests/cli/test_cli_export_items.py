"""Scores of test examples: the metric on each alone, for tests over examples of folders with one split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.sentences import related, texts, written

from advcli.cli import main
from advcli.data import load
from advcli.evaluation import splits
from advcli.results.tables import read_table

pytestmark = pytest.mark.usefixtures("elsewhere")

QUICK = ["hyper.C=1", "protocol.n_splits=1", "workers=1", "quiet=true", "hydra/launcher=basic", "report=false"]


def test_rows_are_right_or_wrong_and_import_tests_them(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "dataset=wine", "loss=zero_one,cs", "protocol.metrics=[mae]", *QUICK, "name=x"]) == 0
    assert main(["export", "items", "results=results/x", "out=items.csv"]) == 0
    assert "108 scores of 54 examples" in capfd.readouterr().out
    table, rows = pd.read_csv("items.csv"), read_table(Path("results/x/runs.csv"))
    assert list(table.columns) == ["dataset", "method", "item", "metric", "value"]
    for method, scores in table.groupby("method"):
        assert set(scores["value"]) <= {0.0, 1.0}
        of_method = rows[(rows["method"] == method) & (rows["metric"] == "error")]
        assert scores["value"].mean() == pytest.approx(of_method["value"].iloc[0], abs=1e-12)
    wine = load({"name": "wine", "source": "sklearn"}, Path())
    test = splits.random_splits(len(wine.y), 1, 0.7, 0, "wine")[0][1]
    assert table["item"][:54].tolist() == (np.asarray(test) + 1).tolist()
    assert main(["import", "items.csv", "out=results/tested"]) == 0
    assert main(["report", "results=results/tested"]) == 0
    assert "exact McNemar test, two-sided, on these items" in capfd.readouterr().out


def test_sentences_are_examples_and_methods_have_the_names_of_reports(capfd: pytest.CaptureFixture[str]) -> None:
    made_up = texts(3, sentences=30)
    Path("rows.csv").write_text(written(*made_up, related(*made_up)), encoding="utf-8")
    words = ["-m", "dataset=csv", "dataset.path=rows.csv", "dataset.sequence=s", "dataset.tokens=word", "dataset.head=head"]
    words += ["dataset.relation=rel", "loss=dependency_trees", "loss.surrogate=margin,prob", "loss.hash_bits=10", "name=x"]
    words += ["protocol.standardise=none", "protocol.metric=unlabelled_attachment", "protocol.metrics=[whole_trees]"]
    assert main([*words, *QUICK]) == 0
    for metric in ("unlabelled_attachment", "labelled_attachment", "whole_trees"):
        capfd.readouterr()
        assert main(["export", "items", "results=results/x", f"report.metric={metric}", "out=items.csv"]) == 0
        assert "18 scores of 9 examples" in capfd.readouterr().out
        table = pd.read_csv("items.csv")
        assert set(table["metric"]) == {metric}
        assert set(table["method"]) == {f"dependency_trees linear [loss.surrogate={name}]" for name in ("margin", "prob")}
        assert table["item"].between(1, 30).all()
    # another metric of a finished cell comes from the kept predictions, relations among them
    assert main([*words[:-1], "protocol.metrics=[whole_trees,labelled_attachment]", *QUICK]) == 0
    rows = read_table(Path("results/x/runs.csv"))
    heads, both = (rows.loc[rows["metric"] == name, "value"].to_numpy() for name in ("unlabelled_attachment", "labelled_attachment"))
    assert len(both) == 2
    assert (both <= heads).all()


def test_what_has_no_scores_of_examples_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=iris", *QUICK, "name=one"]) == 0
    assert main(["dataset=iris", *QUICK, "protocol.n_splits=2", "name=two"]) == 0
    Path("answers.csv").write_text("question,method,correct\nq1,a,1\nq1,b,0\n", encoding="utf-8")
    assert main(["import", "answers.csv", "out=results/foreign"]) == 0
    for words, said in (
        (["results=results/two"], "iris, zero_one linear: several splits share test rows"),
        (["results=results/one", "report.metric=amae"], "amae is"),
        (["results=results/one", "report.metric=unlabelled_attachment"], "needs rows that form sequences"),
        (["results=results/foreign"], "has no fit of its own to compare by examples"),
    ):
        capfd.readouterr()
        assert main(["export", "items", *words, "out=items.csv"]) == 2
        assert said in capfd.readouterr().err
        assert not Path("items.csv").exists()
