"""Costs of rows through a whole run: splits, search, fits, metric, model file and proof, from the columns of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from advcli import CostSensitiveClassifier
from advcli.cli import main
from advcli.models import read

COSTS = "dataset.costs=[stay,left,right]"
COMMON = ["dataset=csv", "dataset.path=rows.csv", COSTS, "quiet=true", "protocol.n_splits=2"]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2)).round(3)
    table = pd.DataFrame(X, columns=["a", "b"])
    table["stay"] = (0.2 + (X[:, 0] > 0) * 2.0).round(3)
    table["left"] = np.abs(X[:, 0]).round(3)
    table["right"] = 3.0  # never the cheapest
    table.to_csv("rows.csv", index=False)
    return table


@pytest.mark.parametrize("loss", ["adversarial_costs", "csosr", "csovo", "csova", "ova", "zero_one"])
def test_every_method_is_judged_by_what_its_predictions_cost(rows: Any, loss: str) -> None:
    assert main([*COMMON, f"loss={loss}", "hyper.C=1", "name=run", "record.proofs=true"]) == 0
    result = pd.read_csv("results/run/runs.csv")
    assert result["metric"].iloc[0] == "cost"
    result = result[result["metric"] == "cost"]
    assert (result["n_classes"] == 3).all()
    costs = rows[["stay", "left", "right"]].to_numpy()
    assert (result["value"] >= costs.min(axis=1).mean() * 0.5).all()
    assert (result["value"] < 1.0).all()  # staying everywhere costs about 1.2
    assert main(["verify", "results=results/run"]) == 0


def test_the_search_is_by_cost_and_the_model_is_that_of_python(rows: Any) -> None:
    assert main(["fit", *COMMON[:3], "loss=csosr", "hyper.C=2", "protocol.standardise=none", "out=m.advcli"]) == 0
    model = read(Path("m.advcli"))
    assert model.classes == ("stay", "left", "right")
    X, costs = rows[["a", "b"]].to_numpy(), rows[["stay", "left", "right"]].to_numpy()
    refitted = CostSensitiveClassifier(method="csosr", C=2.0, random_state=model.estimator.random_state).fit(X, costs=costs)
    np.testing.assert_allclose(refitted.theta_, model.estimator.theta_, atol=1e-9)
    assert main(["fit", *COMMON[:3], "loss=csosr", "out=searched.advcli"]) == 0
    assert read(Path("searched.advcli")).about["metric"] == "cost"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dataset.costs=[stay,up]"], "has no column 'up', which dataset.costs names"),
        (["dataset.costs=[stay]"], "must list at least two columns"),
        (["dataset.costs=[stay,stay]"], "each once"),
        ([COSTS, "dataset.features=[a,left]"], "dataset.features names 'left', which is the target, a cost or the weight"),
        ([COSTS, "dataset.order=[stay,left,right]"], "dataset.order is about labels"),
        ([COSTS, "dataset.cut=equal_width"], "dataset.cut is about labels"),
        ([COSTS, "noise=uniform"], "noisy labels are for rows that are learned from labels"),
        (["dataset.costs=[a,b]"], "is below 0"),
        ([COSTS, "loss=abstain"], "loss=abstain needs a cost of every prediction"),
    ],
)
def test_costs_without_meaning_are_told_by_one_line(rows: Any, words: list[str], message: str, capsys: Any) -> None:
    rest = [] if any(word.startswith("loss=") for word in words) else ["loss=csosr"]
    assert main([*COMMON[:2], *COMMON[3:], *rest, *words, "hyper.C=0.01", "name=bad"]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert message in said[-1]
