"""Sweeps from a notebook: the rows, the folder and the errors of the command line."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf
from support.waiting import HANG, until

from advcli.cli import main
from advcli.config.composing import compose_cells
from advcli.config.words import word, words_for
from advcli.core import plugins
from advcli.core.errors import ConfigError, ResultsError
from advcli.evaluation import sweep
from advcli.evaluation.sweeps import jobs
from advcli.results.tables import TIMING_COLUMNS, read_table

pytestmark = pytest.mark.usefixtures("elsewhere")

COMMON = "protocol.n_splits=2 protocol.folds=2 protocol.stage1.regularisation=[0.1,1] protocol.stage2.regularisation=[1]"
CELLS = [f"dataset={dataset} loss={loss} {COMMON}" for dataset in ("iris", "wine") for loss in ("zero_one", "cs")]
SHORT = "dataset=iris hyper.C=1 protocol.n_splits=1 solver.tol=0.01"


def bits(folder: str) -> list[str]:
    """Return what a sweep leaves, times aside, as texts of the exact bits."""
    frames = [read_table(Path(folder) / name) for name in ("runs.csv", "search.csv")]
    return [frame.drop(columns=[column for column in TIMING_COLUMNS if column in frame]).to_csv() for frame in frames]


def test_rows_are_those_of_the_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "dataset=iris,wine", "loss=zero_one,cs", *COMMON.split(), "name=command", "workers=1", "quiet=true"]) == 0
    rows = sweep(CELLS, "results/notebook", workers=2)
    assert bits("results/notebook") == bits("results/command")
    assert rows["value"].tolist() == read_table(Path("results/command/runs.csv"))["value"].tolist()
    printed = [line for line in capfd.readouterr().out.splitlines() if line.startswith("[")]
    assert [line[:5] for line in printed] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    # the folder belongs to both, and so do its cells
    assert main(["-m", "dataset=iris,wine", "loss=zero_one,cs", *COMMON.split(), "name=notebook", "workers=1"]) == 0
    assert "4 cells, 4 already there" in capfd.readouterr().out


def test_words_and_mappings_are_one_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    written: list[Any] = [
        f"{SHORT} loss=zero_one,cs",
        [*SHORT.split(), "loss=ww"],
        {"dataset": "iris", "loss": "llw", "hyper": {"C": np.float64(1)}, "protocol.n_splits": np.int64(1), "solver": {"tol": 1e-2}},
    ]
    rows = sweep(written, "mine", workers=1, quiet=True)
    assert set(rows["loss"]) == {"zero_one", "cs", "ww", "llw"}
    assert capsys.readouterr().out == ""


def test_a_sweep_that_was_ended_resumes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [f"{SHORT} loss={loss}" for loss in ("zero_one", "cs", "ww")]
    expected = sweep(cells, "whole", workers=1, quiet=True)
    run = jobs.run_one

    def ended(settings: Any, *rest: Any, **options: Any) -> Any:
        if settings.loss["name"] == "ww":
            raise KeyboardInterrupt
        return run(settings, *rest, **options)

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "run_one", ended)
        with pytest.raises(KeyboardInterrupt):
            sweep(cells, "ended", workers=1)
    capsys.readouterr()
    rows = sweep(cells, "ended", workers=1)
    pd.testing.assert_frame_equal(*(frame.drop(columns=[*TIMING_COLUMNS], errors="ignore") for frame in (rows, expected)))
    assert [line.endswith("already there") for line in capsys.readouterr().out.splitlines()] == [True, True, False]
    assert not list(Path("ended").glob(".session.*"))


def test_n_jobs_is_another_word_for_workers() -> None:
    rows = sweep(f"{SHORT} loss=zero_one", "counted", n_jobs=1, quiet=True)
    assert rows["split"].nunique() == 1
    with pytest.raises(ConfigError, match="workers and n_jobs are the same number"):
        sweep(f"{SHORT} loss=zero_one", "refused", n_jobs=1, workers=1, quiet=True)
    assert not Path("refused").exists()


SCRIPT = "from advcli.evaluation import sweep\nsweep({cells!r}, 'killed', workers=2)\n"


@pytest.mark.slow
def test_a_killed_sweep_resumes() -> None:
    """A script without a guard of its main module, as a notebook's cells are."""
    Path("script.py").write_text(SCRIPT.format(cells=CELLS))
    child = subprocess.Popen([sys.executable, "script.py"], start_new_session=True)
    until(lambda: list(Path("killed/cells").glob("[!.]*.json")) or child.poll() is not None)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert subprocess.run([sys.executable, "script.py"], check=True, capture_output=True, text=True, timeout=HANG).stdout.count("[") == 4
    sweep(CELLS, "whole", workers=1, quiet=True)
    assert bits("killed") == bits("whole")


LOSS = """
from advcli.losses import register
from advcli.losses.zero_one import ZeroOneLoss


@register("swept")
class Swept(ZeroOneLoss):
    pass
"""


def test_an_item_of_one_s_own_works_in_the_workers() -> None:
    Path("my/loss").mkdir(parents=True)
    Path("my/loss/swept.py").write_text(LOSS)
    Path("my/loss/swept.yaml").write_text("# Mine.\nname: swept\n")
    with pytest.raises(ConfigError, match="unknown loss 'swept'"):
        sweep([f"{SHORT} loss=swept"], "mine")
    plugins.use_folders(["my"])
    rows = sweep([f"{SHORT} loss={loss}" for loss in ("swept", "zero_one")], "mine", workers=2, quiet=True)
    swept, ours = (rows.loc[rows["loss"] == loss, "objective"].tolist() for loss in ("swept", "zero_one"))
    assert swept == ours
    assert set(rows["status"]) == {"ok"}


@pytest.mark.parametrize(
    "words",
    [
        ["dataset=irys"],
        ["hyper.C=-1"],
        ["protocol.n_split=3"],
        ["+protocol.extra=3"],
        ["loss=../loss/cs"],
        ["dataset=iris", "loss=ordinal", "solver=kernel_dual"],
        ["loss=zero_one", "features=rbf", "hyper.rho=3"],
        ["protocol.stage1={C:[1]}"],
        ["loss=[1"],
    ],
)
def test_errors_are_the_lines_of_the_command_line(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", *words, "name=x"]) == 2
    said = capfd.readouterr().err.splitlines()[-1].removeprefix("advcli: ")
    with pytest.raises(ConfigError) as caught:
        sweep([words], "results/x")
    assert f"{' '.join(str(caught.value).split())} [{caught.value.code}]" == said
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([], "at least one cell"),
        ([SHORT + " name=x"], "name=x is no part of a cell"),
        ([SHORT + " hydra/launcher=ray"], "hydra/launcher=ray is no part of a cell"),
        ([SHORT + " -m"], "cannot read '-m'"),
        ([3], "3 is no cell"),
        ([SHORT, SHORT + " dataset.ordered=true"], "dataset.ordered varies under one name"),
    ],
)
def test_what_is_no_cell_is_refused(cells: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        sweep(cells, "results/x")


def test_the_folder_of_another_configuration_is_refused() -> None:
    sweep(SHORT, "mine", workers=1, quiet=True)
    with pytest.raises(ResultsError, match=r"mine was made by another config \(seed: 0 -> 1\)"):
        sweep(f"{SHORT} seed=1", "mine", workers=1)


@pytest.mark.usefixtures("damaged")
def test_a_failed_cell_is_a_row_and_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    rows = sweep([f"{SHORT} data_dir=nothing", f"{SHORT} dataset=glass data_dir=nothing"], "mine", workers=1, quiet=True)
    assert sorted(rows["status"].unique()) == ["failed", "ok"]
    assert "failed: " in capsys.readouterr().out


def test_a_folder_that_is_removed_meanwhile_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    run = jobs.run_one

    def removed(*arguments: Any, **options: Any) -> Any:
        outcome = run(*arguments, **options)
        shutil.rmtree("mine")
        return outcome

    monkeypatch.setattr(jobs, "run_one", removed)
    with pytest.raises(ResultsError, match="mine was removed while its cells ran"):
        sweep(SHORT, "mine", workers=1, quiet=True)


def test_what_was_done_to_the_data_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{i % 7},{'' if i == 5 else i % 5},{'ab'[i % 2]}" for i in range(40)]
    Path("rows.csv").write_text("one,two,y\n" + "\n".join(rows) + "\n")
    words = f"{SHORT} dataset=csv dataset.path=rows.csv dataset.target=y dataset.missing=mean"
    sweep(words, "mine", workers=1)
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
    assert len(said) == 1
    assert "1 cells without a value hold the mean" in said[0]


def test_a_preset_is_its_cells() -> None:
    words, configs = compose_cells(["+experiment=quickstart dataset=iris,wine"], {"name": "x"})
    assert len(words) == len(configs) == 8
    assert {(config["dataset"]["name"], config["loss"]["name"]) for config in configs} == {
        (dataset, loss) for dataset in ("iris", "wine") for loss in ("zero_one", "ww", "cs", "llw")
    }


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.text("${}\\'\",[]:=a ", max_size=12),
)


@given(st.one_of(VALUES, st.lists(VALUES, max_size=3)))
def test_a_run_reads_a_value_as_it_was_written(value: Any) -> None:
    """Hydra takes the quotes from a text, and OmegaConf the backslash that keeps ``${`` from being an interpolation."""
    (override,) = OverridesParser.create().parse_overrides([word("key", value)])
    config: Any = OmegaConf.to_container(OmegaConf.create({"key": override.value()}), resolve=True)
    assert config["key"] == value
    assert isinstance(config["key"], type(value))
    assert words_for({"a": {"b": value}}) == [word("a.b", value)]


def test_a_file_is_read_once_before_the_first_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns left out, notes and options that do not fit come from one reading of each file, whatever the methods."""
    from advcli.config import check
    from advcli.data.tables import table

    random = np.random.default_rng(0)
    for name in ("one", "two"):
        grades = pd.DataFrame({"id": np.arange(60), "size": random.normal(size=60), "label": random.choice(["low", "mid", "high"], 60)})
        grades.assign(code=[f"c{i}" for i in range(60)]).to_csv(f"{name}.csv", index=False)
    cells = [
        f"dataset=csv dataset.path={name}.csv dataset.name={name} dataset.target=label dataset.categorical=auto loss={loss} {COMMON}"
        for name in ("two", "one")
        for loss in ("zero_one", "cs", "logistic")
    ]
    words, configs = compose_cells(cells, {})
    settled = [check(config) for config in configs]
    read, said = [], []
    real = table.read_bytes
    monkeypatch.setattr(table, "read_bytes", lambda path, *more: (read.append(Path(path).name), real(path, *more))[1])
    jobs.check_cells(settled, words, said.append)
    assert sorted(read) == ["one.csv", "two.csv"]
    assert sum("code" in line for line in said) == 2  # a code in every row is left out, and said once for each file
