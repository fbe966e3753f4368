"""``advcli drop``: cells leave a results folder, nothing else does; a folder of failures alone is free."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from advcli.cli import main
from advcli.results.folder import ResultsFolder

QUICK = ["hyper.C=1", "protocol.n_splits=2", "quiet=true", "workers=1", "hydra/launcher=basic", "name=x"]
SWEEP = ["-m", "dataset=iris,wine", "loss=zero_one,cs,abstain", *QUICK]
DROP = ["drop", "results=results/x"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pairs() -> set[tuple[str, str]]:
    runs = pd.read_csv("results/x/runs.csv")
    return {*zip(runs["dataset"], runs["loss"], strict=True)}


def test_cells_are_dropped_and_computed_again(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*SWEEP, "record.proofs=true"]) == 0
    everything, columns = pairs(), ["dataset", "method", "split", "metric", "value", "objective", "proof", "cell"]
    before = pd.read_csv("results/x/runs.csv")[columns]
    capfd.readouterr()
    assert main([*DROP, "method=cs linear"]) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[:2] == ["dropped: iris, cs linear", "dropped: wine, cs linear"]
    assert "4 cells left" in out
    assert err == ""
    assert pairs() == {pair for pair in everything if pair[1] != "cs"}
    assert main([*DROP, "method=abstain", "dataset=wine"]) == 0
    assert pairs() == {("iris", "zero_one"), ("iris", "abstain"), ("wine", "zero_one")}
    folder = ResultsFolder("results/x")
    assert sorted(path.stem for path in folder.proofs_path.glob("*.npz")) == sorted(folder.finished_keys())
    assert main(["verify", "results=results/x"]) == 0
    assert main([*SWEEP, "record.proofs=true"]) == 0
    pd.testing.assert_frame_equal(pd.read_csv("results/x/runs.csv")[columns], before)


def test_what_is_not_there_is_not_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=iris", *QUICK]) == 0
    before = {path: path.read_bytes() for path in Path("results").rglob("*.*") if path.is_file()}
    capfd.readouterr()
    for words, said in (
        (["method=zero_on linear"], "no method 'zero_on linear' in results/x; did you mean zero_one linear?"),
        (["dataset=wine"], "no dataset 'wine' in results/x"),
        ([], "advcli drop needs method=NAME or dataset=NAME"),
        (["results=results/y", "method=cs"], "no results folder results/y"),
    ):
        assert main([*DROP, *words]) == 2
        assert said in capfd.readouterr().err
    # a run of another process is under way
    (Path("results/x") / f".session.{os.uname().nodename}.{os.getppid()}").mkdir()
    assert main([*DROP, "method=zero_one"]) == 2
    assert "a run is under way" in capfd.readouterr().err
    assert {path: path.read_bytes() for path in before} == before


def test_the_last_cell_leaves_a_free_folder() -> None:
    assert main(["dataset=iris", *QUICK]) == 0
    assert main([*DROP, "dataset=iris"]) == 0
    assert not Path("results/x/runs.csv").exists()
    assert main(["dataset=iris", "seed=7", *QUICK]) == 0
    assert set(pd.read_csv("results/x/runs.csv")["seed"]) == {7}


def test_a_folder_where_all_failed_is_not_locked(capfd: pytest.CaptureFixture[str]) -> None:
    failing = ["dataset=wine", "limits.seconds=0.000001"]
    assert main(["-m", *failing, *QUICK]) == 1
    assert list(Path("results/x/cells").glob("*.failed.json"))
    assert main(["dataset=iris", "seed=7", *QUICK]) == 0
    assert pairs() == {("iris", "zero_one")}
    assert not list(Path("results/x/failures").glob("*.txt"))
    # one that is not
    capfd.readouterr()
    assert main(["dataset=iris", "seed=8", *QUICK]) == 2
    assert "was made by another config (seed: 7 -> 8)" in capfd.readouterr().err
    assert main(["-m", *failing, "seed=7", *QUICK]) == 1
    assert main(["dataset=iris", "seed=8", *QUICK]) == 2
    assert pairs() == {("iris", "zero_one"), ("wine", "zero_one")}


def test_a_failed_method_is_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=iris", *QUICK]) == 0
    assert main(["-m", "dataset=iris", "loss=cs", "limits.seconds=0.000001", *QUICK]) == 1
    capfd.readouterr()
    assert main([*DROP, "method=cs"]) == 0
    assert "dropped: iris, cs linear" in capfd.readouterr().out
    assert pairs() == {("iris", "zero_one")}
    assert not list(Path("results/x").rglob("*failed*"))
