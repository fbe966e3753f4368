"""Structured labels on the command line: rows without a label, a limit of time."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from advcli.cli import main
from advcli.core.errors import NotConvergedWarning
from advcli.learners.structured import ChainClassifier, MultilabelClassifier

WORDS = ["dataset=csv", "dataset.path=rows.csv", "dataset.target=y_*", "dataset.allow_small_classes=true", "hyper.C=1", "quiet=true"]


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Return sets of labels of a table, a quarter of them empty."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2)).round(2)
    Y = (X @ random.normal(size=(2, 3)) + 0.3 * random.normal(size=(40, 3)) > 0.5).astype(int)
    Y[::4] = 0
    Path("rows.csv").write_text("a,b,y_1,y_2,y_3\n" + "".join(",".join(map(str, [*x, *y])) + "\n" for x, y in zip(X, Y, strict=True)))
    return Y


def test_rows_of_no_label_are_learned_and_judged(rows):
    metrics = "protocol.metrics=[hamming,accuracy,jaccard,instance_f1]"
    assert main([*WORDS, "loss=sets", "protocol.n_splits=2", metrics, "name=made"]) == 0
    with Path("results/made/runs.csv").open() as file:
        values = {(row["split"], row["metric"]): float(row["value"]) for row in csv.DictReader(file)}
    for split in ("1", "2"):
        # a set that is right counts 1 in each, an empty one too
        assert values[split, "accuracy"] <= values[split, "jaccard"] <= values[split, "instance_f1"]
    assert main(["fit", *WORDS, "loss=sets", "protocol.standardise=none", "out=sets.model"]) == 0
    assert main(["predict", "model=sets.model", "input=rows.csv", "out=found.csv"]) == 0
    with Path("found.csv").open() as file:
        found = np.array([[int(row[f"y_{j}"]) for j in (1, 2, 3)] for row in csv.DictReader(file)])
    assert (found.sum(axis=1) == 0).any()
    assert (found != rows).mean() < 0.4


def test_a_loss_that_needs_labels_refuses_rows_without_one(rows, capsys):
    assert main([*WORDS, "loss=flat", "name=made"]) == 2
    said = capsys.readouterr().err.strip()
    assert f"loss=flat needs a label in every row; {(~rows.any(axis=1)).sum()} rows of csv have none: choose loss=sets" in said
    assert "\n" not in said


@pytest.mark.parametrize("loss", ["sets", "chain"])
def test_the_limit_of_time_of_the_solver_is_that_of_the_fit(loss, rows):
    options = ["dataset.target=y_1"] if loss == "chain" else []
    late = ["solver.max_seconds=1e-9", "solver.tol=1e-9", "hyper.C=100", "protocol.n_splits=1", "name=late"]
    assert main([*WORDS, *options, f"loss={loss}", *late]) == 0
    cell = json.loads(next(Path("results/late/cells").glob("*.json")).read_text())
    columns = cell["runs"]["columns"]
    row = dict(zip(columns, cell["runs"]["values"][0], strict=True))
    assert (row["status"], row["converged"]) == ("not_converged", False)


@pytest.mark.parametrize("training", ["planes", "bcfw", "sgd"])
def test_sets_that_take_too_long_say_so_and_keep_their_certificate(training, rows):
    X = np.random.default_rng(1).normal(size=(40, 2))
    with pytest.warns(NotConvergedWarning, match="max_seconds"):
        short = MultilabelClassifier(training=training, C=100.0, tol=1e-9, max_seconds=1e-9).fit(X, rows).certificate_
    assert short.status == "max_seconds"
    best = MultilabelClassifier(C=100.0, tol=1e-4).fit(X, rows).certificate_
    assert short.dual <= best.primal
    assert best.dual <= short.primal


def test_chains_that_take_too_long_say_so_and_keep_their_certificate():
    random = np.random.default_rng(1)
    X, y, groups = random.normal(size=(60, 3)), random.integers(3, size=60), np.repeat(np.arange(12), 5)
    with pytest.warns(NotConvergedWarning, match="max_seconds"):
        short = ChainClassifier(lam=0.01, tol=1e-9, max_seconds=1e-9).fit(X, y, groups=groups).certificate_
    assert short.status == "max_seconds"
    best = ChainClassifier(lam=0.01, tol=1e-4).fit(X, y, groups=groups).certificate_
    assert short.dual <= best.primal
    assert best.dual <= short.primal
