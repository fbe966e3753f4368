"""Runs and sweeps as a user starts them: files, tables, resume, failures, workers, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from omegaconf import ListConfig, OmegaConf
from support.nursery import nursery
from support.waiting import HANG, hold, listens_to_interrupts, processes_of_session, until

from advcli.cli import actions, main
from advcli.cli.task import PARTICULAR
from advcli.results.tables import TIMING_COLUMNS, hyper_text, over_splits

# Small enough for a test, with a search and with more than one split.
SMALL = [
    "protocol.n_splits=2",
    "protocol.folds=2",
    "protocol.stage1.regularisation=[0.1,1]",
    "protocol.stage2.regularisation=[0.5,1]",
    "solver.tol=1e-2",
]
FILES = {"runs.csv", "search.csv", "summary.csv", "table.md", "provenance.json"}


pytestmark = pytest.mark.usefixtures("elsewhere")


def started_cells(name: str) -> int:
    """Return how many cells of a running sweep have started, by its journals."""
    return sum(file.read_text().count('"started"') for file in Path("results", name).glob(".session.*/*.jsonl"))


def rows(name: str, table: str = "runs.csv") -> pd.DataFrame:
    frame = pd.read_csv(Path("results", name, table))
    return frame.drop(columns=[column for column in TIMING_COLUMNS if column in frame])


def no_fits(*_: Any, **__: Any) -> Any:
    raise AssertionError("a fit was made although all rows are there")


def test_single_run_writes_every_file_and_prints_the_result(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=iris", "name=one", *SMALL]) == 0
    out, err = capfd.readouterr()
    assert {entry.name for entry in Path("results/one").iterdir()} >= FILES
    assert [entry.name for entry in Path.cwd().iterdir()] == ["results"]
    runs = rows("one")
    assert set(runs["metric"]) == {"error", "accuracy"}
    assert len(runs) == 2 * 2
    assert (runs["relative_gap"] <= 1e-2).all()
    assert "zero_one linear" in out
    assert f"hyper-parameters: C = {hyper_text(over_splits(runs['C'].tolist()))}" in out
    assert "largest certified relative gap: " in out
    assert "results/one" in out
    assert out.startswith("iris, zero_one linear: accuracy")
    assert "[1/1]" not in err
    provenance = json.loads(Path("results/one/provenance.json").read_text())
    assert provenance["config"]["name"] == "one"
    assert provenance["config"]["solver"]["tol"] == 1e-2
    assert provenance["command"][:2] == ["advcli", "dataset=iris"]


def test_unnamed_runs_get_folders_of_their_own() -> None:
    done = [nursery().run(["hyper.C=1", *SMALL]) for _ in range(2)]
    assert [run.returncode for run in done] == [0, 0]
    assert len(list(Path("results").iterdir())) == 2


def test_sweep_resumes_and_computes_nothing_twice(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["-m", "dataset=iris,wine", "loss=zero_one,cs", "name=sweep", "workers=1", *SMALL]
    assert main([*words[:1], "dataset=iris", *words[2:]]) == 0
    first = rows("sweep")
    assert main(words) == 0
    out, err = capfd.readouterr()
    assert err.count("already there") == 2
    assert "2 already there" in out
    assert "average" in out
    both = rows("sweep")
    assert set(zip(both["dataset"], both["loss"], strict=True)) == {(d, m) for d in ("iris", "wine") for m in ("zero_one", "cs")}
    pd.testing.assert_frame_equal(both[both["dataset"] == "iris"].reset_index(drop=True), first)

    monkeypatch.setattr("advcli.learners.Method.make", no_fits)
    assert main(words) == 0
    pd.testing.assert_frame_equal(rows("sweep"), both)


def test_preset_runs_as_a_sweep_without_a_flag(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["+experiment=quickstart", "dataset=iris", "loss=ww,cs", "workers=1", *SMALL]
    assert main(words) == 0
    assert set(rows("quickstart")["method"]) == {"ww linear", "cs linear"}
    assert "2 cells" in capfd.readouterr().out


@pytest.mark.usefixtures("damaged")
def test_failing_cell_is_a_row_and_the_others_go_on(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "dataset=glass,iris", "data_dir=nothing", "name=partly", "workers=1", *SMALL]) == 1
    out, err = capfd.readouterr()
    runs = rows("partly")
    assert set(runs["status"]) == {"failed", "ok"}
    (error,) = runs.loc[runs["status"] == "failed", "error"]
    assert "glass.csv.gz" in error
    assert "1 failed" in out
    assert "[1/2] glass, zero_one linear: failed: " in err
    assert "Traceback" not in err

    assert main(["report", "results=results/partly"]) == 0
    assert "failed" in capfd.readouterr().out


@pytest.mark.usefixtures("damaged")
def test_sweep_whose_cells_all_fail_still_ends_in_order(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "dataset=glass", "data_dir=nothing", "loss=ww,cs", "name=none", "workers=1", *SMALL]) == 1
    out, err = capfd.readouterr()
    assert "2 failed" in out
    assert "Traceback" not in out + err


def test_fit_that_fails_is_a_failed_row(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise FloatingPointError("the sky fell down")

    monkeypatch.setattr("advcli.learners.Method.make", broken)
    assert main(["dataset=iris", "hyper.C=1", "name=broken", *SMALL]) == 1
    assert set(rows("broken")["status"]) == {"failed"}
    err = capfd.readouterr().err
    assert "the sky fell down" in err
    assert "Traceback" not in err
    assert main(["dataset=iris", "hyper.C=1", "name=quiet", "quiet=true", *SMALL]) == 1


def test_fit_that_does_not_converge_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=wine", "hyper.C=100", "name=late", "solver=dual", "solver.max_passes=1", *SMALL, "solver.tol=1e-9"]) == 0
    out, err = capfd.readouterr()
    assert set(rows("late")["status"]) == {"not_converged"}
    assert "not converged" in err
    assert "(asked for: 1e-09, not reached)" in out


def test_choice_at_the_edge_of_the_grid_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["dataset=iris", "name=edge", *SMALL, "protocol.stage1.regularisation=[1e-6,1e-5]", "protocol.stage2.regularisation=[1]"]) == 0
    )
    assert "advcli: warning: iris, zero_one linear: C=1e-06" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ("seed=1", "seed"),
        ("protocol.folds=3", "protocol.folds"),
        ("solver.tol=1e-4", "solver.tol"),
        ("hyper.C=2", "hyper.C"),
        ("dataset.sizes=null", "options.dataset.sizes"),
    ],
)
def test_folder_of_another_config_is_refused_and_left_alone(change: str, key: str, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["dataset=iris", "hyper.C=1", "name=mine", *SMALL]
    assert main(words) == 0
    before = {path: path.read_bytes() for path in Path("results/mine").rglob("*") if path.is_file()}
    capfd.readouterr()
    assert main([*words, change]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "made by another config" in err
    assert key in err
    assert {path: path.read_bytes() for path in Path("results/mine").rglob("*") if path.is_file()} == before


def test_folder_takes_more_methods_and_another_test_in_its_reports() -> None:
    words = ["dataset=iris", "hyper.C=1", "name=mine", *SMALL]
    assert main(words) == 0
    assert main([*words, "loss=cs"]) == 0
    assert main([*words, "loss=cs", "protocol.test=ttest"]) == 0
    assert set(rows("mine")["loss"]) == {"zero_one", "cs"}
    assert "paired t-test" in Path("results/mine/table.md").read_text()


def test_report_rebuilds_everything_from_the_cells(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "dataset=iris", "loss=zero_one,cs", "name=again", "workers=1", "protocol.test=ttest", *SMALL]) == 0
    kept = ("runs.csv", "search.csv", "summary.csv", "table.md")
    before = {name: Path("results/again", name).read_bytes() for name in kept}
    for name in kept:
        Path("results/again", name).unlink()
    capfd.readouterr()
    assert main(["report", "results=results/again"]) == 0
    assert "paired t-test" in capfd.readouterr().out  # the test that the sweep named, not the default
    assert {name: Path("results/again", name).read_bytes() for name in kept} == before
    assert main(["report", "name=again", "report.test=wilcoxon", "report.metric=accuracy"]) == 0
    assert "Wilcoxon" in capfd.readouterr().out
    assert main(["report", "name=again", "report.metric=mae"]) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt_keeps_what_is_done_and_says_how_to_resume(number: signal.Signals) -> None:
    hold(Path(), n_classes=10)  # the loss waits on digits: the interrupt falls into it
    words = ["--config-dir", "my", "-m", "dataset=iris,digits", "loss=holding", "name=cut", "workers=1", "hyper.C=1", "protocol.n_splits=2"]
    if number == signal.SIGINT:
        with subprocess.Popen(  # as a user starts it
            [sys.executable, "-m", "advcli", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=listens_to_interrupts,
        ) as process:
            until(Path("holds").exists)
            process.send_signal(number)
            out, err = process.communicate(timeout=HANG)
            code = process.returncode
    else:
        child = nursery().start(words)
        until(Path("holds").exists)
        os.kill(child.pid, number)
        done = child.wait()
        out, err, code = done.stdout, done.stderr, done.returncode
    assert code == 128 + number
    assert out == ""
    assert "Traceback" not in err
    (line,) = [line for line in err.splitlines() if "interrupted" in line]
    assert "1 in results/cut" in line
    assert "resume with: advcli --config-dir my -m dataset=iris,digits loss=holding name=cut" in line
    assert len(list(Path("results/cut/cells").glob("*.json"))) == 1
    assert main(["report", "results=results/cut"]) == 0
    assert set(rows("cut")["dataset"]) == {"iris"}


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_interrupt_of_parallel_work_leaves_no_process_behind() -> None:
    hold(Path(), n_classes=10)  # the cells on iris are done, those on digits wait
    words = ["--config-dir", "my", "-m", "dataset=iris,digits", "loss=zero_one,holding", "name=cut", "workers=2", "hyper.C=1"]
    child = nursery().start([*words, "protocol.n_splits=2"])
    until(lambda: Path("holds").exists() and started_cells("cut") >= 3)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does: every process of the group gets it
    done = child.wait()
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert "resume with" in done.stderr
    until(lambda: not processes_of_session(child.pid))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model=my.model"], "advcli run does not read the key model, which is for advcli certify, coverage, predict"),
        (["-m", "dataset=iris,wine", "out=x"], "advcli run does not read the key out"),
        (["check", "results=results/x", "input=new.csv"], "advcli check does not read the key input"),
        (["-m", "hydra/sweeper=optuna", "dataset=iris,wine"], "hydra/sweeper=optuna is not supported"),
        (["-m", "hydra/sweeper=basic", "dataset=iris,wine"], "hydra/sweeper=basic is not supported"),
    ],
)
def test_what_would_be_ignored_is_refused(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    out, err = capfd.readouterr()
    assert said in err
    assert (out, len(err.splitlines())) == ("", 1)
    assert not Path("results").exists()


def test_actions_read_what_they_say() -> None:
    for name in actions.names():
        kind = actions.get(name)
        source = Path(str(sys.modules[kind.__module__].__file__)).read_text(encoding="utf-8")
        found = {key for key in PARTICULAR if re.search(rf"settings\.{key}\b", source)}
        found |= {"results"} if "existing_folder" in source else set()
        assert {key for key, readers in PARTICULAR.items() if name in readers} == found, name


def test_commands_of_one_process_and_second_have_folders_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    monkeypatch.setattr(sys.modules[main.__module__], "datetime", Stopped)
    for dataset in ("iris", "wine"):
        assert main([f"dataset={dataset}", "hyper.C=1", "protocol.n_splits=1", "quiet=true"]) == 0
    assert len(list(Path("results").glob("2026-01-02_03-04-05_*"))) == 2


def test_a_worker_that_is_used_again_knows_the_folders_of_its_sweep_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plug-ins stand in the keys of cells: one of an earlier sweep would make them others."""
    monkeypatch.setenv("ADVCLI_PLUGINS", "")
    words = ["-m", "dataset=iris", "loss=zero_one,ww", "hyper.C=1", "protocol.n_splits=1", "quiet=true"]
    (tmp_path / "my" / "loss").mkdir(parents=True)
    (tmp_path / "my" / "loss" / "idle.py").write_text("")
    assert main([*words, "workers=2", "name=with", f"--config-dir={tmp_path / 'my'}"]) == 0
    monkeypatch.setenv("ADVCLI_PLUGINS", "")
    for name, workers in (("one", 1), ("two", 2)):
        assert main([*words, f"workers={workers}", f"name={name}"]) == 0
    keys = [sorted(file.name for file in Path(f"results/{name}/cells").glob("*.json")) for name in ("with", "one", "two")]
    assert keys[1] == keys[2] != keys[0]


def test_an_interrupt_before_any_action_has_its_exit_code(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def interrupted(words: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules[main.__module__], "_command", interrupted)
    assert main([]) == 130
    assert capfd.readouterr().err == "advcli: interrupted\n"


@pytest.mark.parametrize("words", [["help"], ["dataset=iris", "hyper.C=1", "name=cut"]], ids=" ".join)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_is_seen_where_a_library_fails_on_it(
    words: list[str], number: int, code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """OmegaConf fails with an error of its own on a list that an interrupt has left half made."""
    load = OmegaConf.load

    def interrupted(*item: object, **more: object) -> None:
        signal.raise_signal(number)

    def loaded(file: Any) -> Any:
        with monkeypatch.context() as patched:
            patched.setattr(ListConfig, "_set_item_impl", interrupted)
            OmegaConf.create({"items": [1]})
        return load(file)

    monkeypatch.setattr(OmegaConf, "load", staticmethod(loaded))
    assert main(words) == code
    assert "interrupted" in capfd.readouterr().err


def test_an_interrupt_that_the_caller_handles_is_none_of_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert main(["hepl"]) == 2
    assert "did you mean help" in capfd.readouterr().err
