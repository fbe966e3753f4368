"""Results for other programs: the rows are those of runs.csv, and nothing of the folder changes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.exact_tables import exact

from advcli.cli import main


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    words = ["-m", "dataset=iris", "loss=zero_one,cs", "hyper.C=1", "protocol.n_splits=2", "protocol.metrics=[mse]", "workers=1", "name=x"]
    assert main(words) == 0
    return tmp_path / "results" / "x"


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_rows_and_tables(made: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before, rows = content(made), exact(made / "runs.csv")
    for to, out in (("csv", "rows.csv"), ("latex", "tables.tex")):
        assert main(["export", to, "results=results/x", f"out={out}"]) == 0
    assert content(made) == before
    again = exact("rows.csv")
    assert list(again.columns) == list(rows.columns)
    pd.testing.assert_frame_equal(
        again[["dataset", "loss", "metric", "split", "value"]], rows[["dataset", "loss", "metric", "split", "value"]]
    )
    text = Path("tables.tex").read_text(encoding="utf-8")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") >= 2
    assert "rows.csv: 8 rows" in capfd.readouterr().out


def test_parquet(made: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    assert main(["export", "parquet", "results=results/x", "out=rows.parquet"]) == 0
    assert pd.read_parquet("rows.parquet")["value"].tolist() == exact(made / "runs.csv")["value"].tolist()


def test_mlflow(made: Path) -> None:
    tracking = pytest.importorskip("mlflow.tracking", reason="mlflow is not installed")
    for _ in range(2):  # the second adds nothing
        assert main(["export", "mlflow", "results=results/x", "out=mlruns"]) == 0
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"  # SECURITY.md says that nothing is reported
    client: Any = tracking.MlflowClient(tracking_uri=Path("mlruns").absolute().as_uri())
    runs = client.search_runs([client.get_experiment_by_name("x").experiment_id])
    assert {run.data.params["loss"] for run in runs} == {"zero_one", "cs"}
    assert len(runs) == 2
    rows = exact(made / "runs.csv")
    for run in runs:
        own = rows[(rows["loss"] == run.data.params["loss"]) & (rows["metric"] == "error")]
        kept = {each.step: each.value for each in client.get_metric_history(run.info.run_id, "error")}
        assert kept == dict(zip(own["split"], own["value"], strict=True))
    # a sweep that has grown since
    words = ["-m", "dataset=iris", "loss=zero_one,cs", "hyper.C=1", "protocol.n_splits=3", "protocol.metrics=[mse]", "workers=1", "name=x"]
    assert main(words) == 0
    assert main(["export", "mlflow", "results=results/x", "out=mlruns"]) == 0
    for run in client.search_runs([client.get_experiment_by_name("x").experiment_id]):
        assert [each.step for each in client.get_metric_history(run.info.run_id, "error")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export"], "export needs csv, items, latex, mlflow or parquet"),
        (["export", "cvs"], "did you mean csv"),
        (["export", "csv", "results=results/none", "out=a.csv"], "no results folder"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    err = capfd.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
