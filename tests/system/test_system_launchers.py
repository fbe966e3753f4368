"""Every launcher gives the same rows, and a job that dies loses only what it had not finished."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from support.nursery import nursery
from support.swept import tables

from advcli.cli import main

WORDS = [
    "-m",
    "dataset=iris,wine",
    "loss=zero_one,cs",
    "protocol.n_splits=2",
    "protocol.folds=2",
    "protocol.stage1.regularisation=[0.1,1]",
    "protocol.stage2.regularisation=[0.5,1]",
]


def needs(module: str) -> pytest.MarkDecorator:
    reason = f'{module} is not installed; pip install "advcli[scale]" has it'
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=reason)


LAUNCHERS = [
    pytest.param("basic", [], id="basic"),
    pytest.param("cores", ["workers=2", "cells_per_job=1"], id="joblib"),
    pytest.param("cores", ["workers=1", "cells_per_job=3"], id="joblib-3-cells-per-job", marks=pytest.mark.slow),
    pytest.param(
        "submitit_local", ["cells_per_job=2"], id="submitit", marks=[pytest.mark.slow, needs("hydra_plugins.hydra_submitit_launcher")]
    ),
    pytest.param("ray", ["workers=2"], id="ray", marks=needs("ray")),
]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("alone")
    # cell by cell, without any sweep
    for dataset in ("iris", "wine"):
        for loss in ("zero_one", "cs"):
            words = [f"dataset={dataset}", f"loss={loss}", "name=x", f"results_dir={path}", "quiet=true", *WORDS[3:]]
            assert main(words) == 0
    return tables(path / "x")


@pytest.mark.parametrize(("launcher", "words"), LAUNCHERS)
def test_same_rows(launcher: str, words: list[str], expected: list[str], tmp_path: Path) -> None:
    command = [*WORDS, f"hydra/launcher={launcher}", *words, "name=x"]
    done = nursery().run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert tables(tmp_path / "results" / "x") == expected
    # one line per cell, whole, from whichever process
    cells = [line for line in done.stderr.splitlines() if line.startswith("[")]
    assert sorted(line[:5] for line in cells) == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    assert all(": accuracy " in line for line in cells)
    assert "Traceback" not in done.stderr
    assert "Warning:" not in done.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir() if not entry.name.startswith(".")) == ["results"]
    assert not [*tmp_path.glob("results/x/.session.*")]


@needs("hydra_plugins.hydra_submitit_launcher")
def test_slurm_preset_composes(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--cfg", "hydra", "--package", "hydra.launcher", "hydra/launcher=slurm", "hydra.launcher.partition=long"]) == 0
    out = capfd.readouterr().out
    assert "SlurmLauncher" in out
    assert "partition: long" in out


def test_launcher_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main([*WORDS, "hydra/launcher=ray", "name=x"]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert 'pip install "advcli[scale]"' in lines[-1]


def test_unknown_launcher_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "hydra/launcher=slrum"]) == 2
    assert "did you mean slurm?" in capfd.readouterr().err
