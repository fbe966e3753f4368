"""A ``~`` that begins a path means one thing everywhere: a home folder, or a name where there is no such home."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from advcli.cli import main
from advcli.core.paths import expanded

PACKAGE = Path(__file__).resolve().parents[2] / "advcli"
ROWS = "size,weight,kind\n" + "".join(f"{at},{at * at % 7},{'pqr'[at % 3]}\n" for at in range(1, 25))


def test_one_function_expands_paths() -> None:
    found = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if ".expanduser(" in file.read_text(encoding="utf-8")}
    assert found == {"core/paths.py"}


def test_what_a_tilde_means(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/a.csv") == tmp_path / "a.csv"
    assert expanded("~nobody-of-that-name/a.csv") == Path("~nobody-of-that-name/a.csv")
    assert expanded("~old.csv") == Path("~old.csv")
    assert expanded("a~/b") == Path("a~/b")


CSV = ["dataset=csv", "dataset.path=~/data.csv", "dataset.target=kind", "protocol.n_splits=2", "hyper.C=1"]

# Commands whose words name files by a path that begins with ~, and the file that each makes.
COMMANDS = {
    "path": ([*CSV, "results_dir=~/results"], "results/run"),
    "loss.file": ([*CSV, "loss=general", "loss.file=~/costs.csv", "results_dir=~/results"], "results/run"),
    "confusion": ([*CSV[:-1], "loss=uma", "loss.confusion=~/confusion.csv", "results_dir=~/results"], "results/run"),
    "noise.path": ([*CSV, "noise=csv", "noise.path=~/confusion.csv", "results_dir=~/results"], "results/run"),
    "mapped": (
        ["dataset=mapped", "dataset.features=~/X.npy", "dataset.labels=~/y.npy", "hyper.C=1", "results_dir=~/results"],
        "results/run",
    ),
    "out": (["fit", *CSV[:3], "hyper.C=1", "out=~/m.model"], "m.model"),
    "input": (["predict", "model=~/m.model", "input=~/data.csv", "out=~/p.csv", "predict.rejected=~/r.csv"], "p.csv"),
    "check": (["data", "check", "path=~/data.csv", "target=kind"], "data.csv"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_that_is_a_path(command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(home))
    (home / "data.csv").write_text(ROWS)
    (home / "costs.csv").write_text(",p,q,r\np,0,1,1\nq,1,0,1\nr,1,1,0\n")
    (home / "confusion.csv").write_text(".8,.1,.1\n.1,.8,.1\n.1,.1,.8\n")
    np.save(home / "X.npy", np.random.default_rng(0).normal(size=(60, 2)))
    np.save(home / "y.npy", np.arange(60) % 3)
    words, made = COMMANDS[command]
    if command == "input":
        assert main(COMMANDS["out"][0]) == 0
    assert main([*words, *(["name=run"] if made.endswith("run") else [])]) == 0
    assert (home / made).exists()
    assert not list(work.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
@pytest.mark.parametrize(
    "words",
    [
        [*CSV, "loss=general", "loss.file=pipe"],
        [*CSV[:-1], "loss=uma", "loss.confusion=pipe"],
        [*CSV, "noise=csv", "noise.path=pipe"],
        [*CSV, "dataset.hierarchy=pipe", "loss=hierarchical_sets"],
        ["dataset=csv", "dataset.path=pipe", "dataset.target=kind"],
        ["dataset=mapped", "dataset.features=pipe", "dataset.labels=pipe"],
    ],
)
def test_a_pipe_is_refused_where_files_are_read_again(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nobody writes into it: a reader would wait for ever."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data.csv").write_text(ROWS)
    os.mkfifo("pipe")
    assert main([*words, "workers=1"]) in (1, 2)
    assert "read once only" in capfd.readouterr().err
