"""Limits of time and memory hold from outside, and a crash stays in the child."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import limited_calls
from support.waiting import HANG, hold

from advcli.cli import main
from advcli.core import plugins, processes
from advcli.core.errors import IncompatibleError, KilledError
from advcli.core.processes import call_limited
from advcli.results.tables import read_table

pytestmark = pytest.mark.usefixtures("elsewhere")

QUICK = ["hyper.C=1", "protocol.n_splits=2", "protocol.folds=2"]


def test_result_and_error_come_back() -> None:
    assert call_limited(limited_calls.add, (1, 2), seconds=60) == 3
    assert call_limited(limited_calls.identity, memory_mb=10_000) != os.getpid()
    with pytest.raises(ValueError, match=r"^no$"):
        call_limited(limited_calls.fail, seconds=60)
    with pytest.raises(RuntimeError, match="pickle"):
        call_limited(limited_calls.lock, seconds=60)


def test_the_environment_is_the_callers_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that of the first call, which started the fork server: in a notebook a folder of plug-ins may come later."""
    call_limited(limited_calls.add, (1, 1))
    monkeypatch.setenv(plugins.FOLDERS, "later")
    assert call_limited(limited_calls.environment, (plugins.FOLDERS,)) == "later"
    monkeypatch.delenv(plugins.FOLDERS)
    assert call_limited(limited_calls.environment, (plugins.FOLDERS,)) is None


def test_time_limit_ends_compiled_code_that_holds_the_interpreter() -> None:
    # a limit that does not hold lets the call return after its minute, without an error
    with pytest.raises(KilledError, match=r"0\.5 seconds.*limits\.seconds"):
        call_limited(limited_calls.hold_the_interpreter, (60,), seconds=0.5)


def test_memory_limit_counts_what_is_used() -> None:
    with pytest.raises(KilledError, match=r"its limit is 400; raise limits\.memory_mb"):
        call_limited(limited_calls.eat, (1000, 60.0), memory_mb=400)  # held until it is ended
    assert call_limited(limited_calls.eat, (20, 0.0), memory_mb=400) == 2


def test_crash_and_exit_are_told() -> None:
    with pytest.raises(KilledError, match="SIGSEGV"):
        call_limited(limited_calls.crash, seconds=60)
    with pytest.raises(KilledError, match="exit code 3"):
        call_limited(limited_calls.leave, seconds=60)


BOUND = """
import ctypes, os, sys, threading
from advcli.core.processes import end_with_parent
end_with_parent(os.getppid(), sys.argv[1] == "signal")
print("bound", flush=True)
if sys.argv[1] == "signal":
    ctypes.PyDLL(None).sleep(10**6)  # no thread of Python runs meanwhile
threading.Event().wait()
"""
STARTER = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"


SIGNALS = pytest.mark.skipif(sys.platform != "linux", reason="Linux signals the end of a parent")


@pytest.mark.parametrize("kind", [pytest.param("signal", marks=SIGNALS), "thread"])
def test_a_bound_process_ends_with_its_parent(kind: str) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTER, BOUND, kind], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"bound\n"
        parent.kill()
        assert parent.communicate(timeout=HANG)[0] == b"", "the pipe ends when all have ended that hold it"


@pytest.mark.parametrize("by_signal", [True, False])
def test_a_process_whose_parent_has_gone_ends_at_once(by_signal: bool) -> None:
    script = f"from advcli.core.processes import end_with_parent; end_with_parent(1 + {os.getpid()}, {by_signal}); print('alive')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_errors_survive_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(IncompatibleError("solver=dual", "a fully regularised parameter", "choose solver=newton")))
    assert (error.what, error.needs, error.missing) == ("solver=dual", "a fully regularised parameter", "choose solver=newton")
    assert str(error) == "solver=dual needs a fully regularised parameter; choose solver=newton"


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_cell_over_its_limit_is_a_row_and_is_tried_again(
    workers: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Digits waits for a file that comes later; until it does, the clock of one worker stands, that of two allows iris half a minute."""
    hold(Path(), n_classes=10)
    words = ["--config-dir", "my", "-m", "dataset=iris,digits", "loss=holding", "name=x", f"workers={workers}", "hyper.C=1", "solver=dual"]
    words += ["protocol.n_splits=2"]
    seconds = 0.8 if workers == 1 else 30.0
    with monkeypatch.context() as patched:
        patched.setattr(processes, "time", SimpleNamespace(monotonic=lambda: 1e6 if Path("holds").exists() else 0.0))
        assert main([*words, f"limits.seconds={seconds}"]) == 1
    err = capfd.readouterr().err
    assert f"digits, holding linear dual: failed: ended after {seconds:g} seconds, its limit; raise limits.seconds" in err
    assert "Traceback" not in err
    runs = read_table(Path("results/x/runs.csv"))
    by_name = runs.groupby("dataset")["status"].unique().to_dict()
    assert {name: list(found) for name, found in by_name.items()} == {"iris": ["ok"], "digits": ["failed"]}
    assert not [*Path("results").rglob("*.tmp")]
    if workers > 1:
        return
    # a limit is no part of what determines the rows: the same folder goes on, and only what is missing is computed
    Path("go").touch()
    assert main([*words, "limits.seconds=600", "limits.memory_mb=4000"]) == 0
    assert "1 already there" in capfd.readouterr().out
    limited = read_table(Path("results/x/runs.csv"))
    assert main([word if word != "name=x" else "name=free" for word in words]) == 0
    free = read_table(Path("results/free/runs.csv"))
    times = ["fit_seconds", "predict_seconds"]
    assert limited.drop(columns=times).equals(free.drop(columns=times))


def test_memory_limit_of_a_single_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=iris", "name=x", *QUICK, "limits.memory_mb=20"]) == 1
    err = capfd.readouterr().err
    assert "its limit is 20; raise limits.memory_mb" in err
    assert set(read_table(Path("results/x/runs.csv"))["status"]) == {"failed"}


def test_errors_about_the_input_are_the_same_with_a_limit(capfd: pytest.CaptureFixture[str]) -> None:
    told = []
    for words in ([], ["limits.seconds=600"]):
        assert main(["dataset=csv", "dataset.path=nowhere.csv", "dataset.target=y", "name=x", *QUICK, *words]) == 2
        told.append(capfd.readouterr().err)
    assert told[0] == told[1]
    assert not Path("results").exists()


def test_warnings_are_the_same_with_a_limit(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["dataset=wine", "hyper.C=100", "solver=dual", "solver.max_passes=1", "solver.tol=1e-9", "protocol.n_splits=2"]
    told = []
    for name, limit in (("a", []), ("b", ["limits.seconds=600"])):
        assert main([*words, f"name={name}", *limit]) == 0
        told.append([line for line in capfd.readouterr().err.splitlines() if "warning" in line])
    assert told[0] == told[1]
    assert told[0]


def test_no_limit_means_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a child was started")

    monkeypatch.setattr("advcli.evaluation.runner.call_limited", never)
    assert main(["dataset=iris", "name=x", *QUICK]) == 0


@pytest.mark.parametrize("word", ["limits.seconds=0", "limits.memory_mb=-1", "limits.seconds=soon", "limits.second=3", "limits=3"])
def test_limits_that_cannot_be_are_refused(word: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=iris", word]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "limits" in line


def test_the_caller_keeps_its_threads() -> None:
    before = {thread.name for thread in threading.enumerate()}
    call_limited(limited_calls.add, (1, 1), seconds=60)
    assert {thread.name for thread in threading.enumerate()} == before
