"""``advcli diff``: settings that differ, of all cells and by method, then numbers, then cells of one folder alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main

QUICK = ["hyper.C=1", "quiet=true", "workers=1", "hydra/launcher=basic", "report=false"]
DIFF = ["diff", "results/a", "results/b"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("diff")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert main(["-m", "dataset=iris,wine", "loss=zero_one,cs", "protocol.n_splits=2", "name=a", *QUICK]) == 0
        words = ["loss=zero_one,ww", "protocol.n_splits=3", "features=linear", "solver.tol=1e-4", "name=b", *QUICK]
        assert main(["-m", "dataset=iris,wine", *words]) == 0
    return place


@pytest.fixture(autouse=True)
def here(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folders)


def test_settings_come_first_then_numbers_then_cells_of_one_folder(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(DIFF) == 0
    out = capfd.readouterr().out
    lines = out.splitlines()
    assert lines[:2] == ["first: results/a", "second: results/b"]
    settings = lines.index("settings of all cells:")
    assert {"  protocol.n_splits: 2 -> 3", "  solver.tol: 0.001 -> 0.0001"} <= set(lines[settings:])
    numbers = next(place for place, line in enumerate(lines) if line.startswith("dataset "))
    assert settings < numbers
    assert lines[-2:] == ["only in results/a: iris, cs linear; wine, cs linear", "only in results/b: iris, ww linear; wine, ww linear"]


def test_numbers_are_the_differences_of_the_means(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*DIFF, "out=d.csv"]) == 0
    assert main([*DIFF, "out=d.json"]) == 0
    found = pd.read_csv("d.csv")
    assert [*dict.fromkeys(found["kind"])] == ["setting", "number", "only"]
    rows = found[found["kind"] == "number"]
    runs = [pd.read_csv(f"results/{name}/runs.csv").groupby(["dataset", "method", "metric"])["value"].mean() for name in "ab"]
    both = runs[0].index.intersection(runs[1].index)
    assert {tuple(row) for row in rows[["dataset", "method", "metric"]].to_numpy()} == {*both}
    for row in rows.to_dict("records"):
        first, second = (run[row["dataset"], row["method"], row["metric"]] for run in runs)
        assert row["difference"] == pytest.approx(second - first, abs=1e-15)
        assert np.isnan(row["relative"]) if first == 0 else row["relative"] == pytest.approx((second - first) / first)
        assert (row["n_first"], row["n_second"]) == (2, 3)
    written = json.loads(Path("d.json").read_text())
    assert [len(written[name]) for name in ("settings", "numbers", "only")] == [
        (found["kind"] == kind).sum() for kind in dict.fromkeys(found["kind"])
    ]


def test_a_folder_does_not_differ_from_itself(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "results/a", "results/a"]) == 0
    out = capfd.readouterr().out
    assert "no setting differs" in out
    assert "8 numbers in both: 8 the same, 0 differ" in out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["diff", "results/a"], "needs two results folders, not 1"),
        (["diff", "results/a", "results/aa"], "no results folder results/aa; did you mean a"),
        ([*DIFF, "out=d.txt"], "give FILE.csv or FILE.json"),
        ([*DIFF, "out=none/d.csv"], "there is no folder none"),
        (["diff", "results/a", "results"], "no runs.csv in"),
    ],
)
def test_mistakes_are_one_line(words: list[str], line: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    out, err = capfd.readouterr()
    assert line in err
    assert (len(err.splitlines()), out) == (1, "")
