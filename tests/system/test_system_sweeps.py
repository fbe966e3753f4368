"""Sweeps that are killed, doubled, out of space or without permission: the final tables are those of an undisturbed sweep."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.nursery import nursery
from support.swept import tables
from support.waiting import hold, processes_of_session, until

from advcli.results.folder import ResultsFolder
from advcli.results.tables import read_table

WORDS = [
    "-m",
    "dataset=iris,wine",
    "loss=zero_one,cs",
    "seed=0,1",
    "protocol.n_splits=3",
    "protocol.folds=2",
    "protocol.stage1.regularisation=[0.1,1]",
    "protocol.stage2.regularisation=[0.5,1]",
    "name=x",
]
CELLS = 8


class Program:
    """The command line again and again, each time a process that may be killed."""

    told = ""

    def run(self, folder: Path, words: list[str], kill_after: float | None = None, limit: int = 0) -> int:
        """Run, or kill after some seconds; return the exit code, negative for a signal."""
        folder.mkdir(exist_ok=True)
        child = nursery().start(words, folder, limit=limit)
        if kill_after is not None:
            time.sleep(kill_after)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        done = child.wait()
        self.told = done.stderr
        return done.returncode

    def said(self) -> str:
        return self.told


@pytest.fixture(scope="module")
def program() -> Program:
    return Program()


@pytest.fixture(scope="module")
def undisturbed(program: Program, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], float]:
    """Return the tables of a sweep that nobody disturbed, and the seconds that it took."""
    path = tmp_path_factory.mktemp("undisturbed")
    began = time.monotonic()
    assert program.run(path, [*WORDS, "workers=1"]) == 0, program.said()
    return tables(path / "results" / "x"), time.monotonic() - began


def assert_whole(folder: Path) -> int:
    """Assert that every file is complete; return the number of finished cells."""
    results = ResultsFolder(folder)
    files = [file for file in results.cells_path.glob("*.json") if not file.name.startswith(".")]
    assert all(results.read_cell(file.stem) is not None for file in files if not file.name.endswith(".failed.json"))
    if (folder / "runs.csv").exists():
        read_table(folder / "runs.csv")
    for name in ("provenance.json", "identity.json"):
        if (folder / name).exists():
            json.loads((folder / name).read_text())
    return len([file for file in files if not file.name.endswith(".failed.json")])


def assert_clean(folder: Path) -> None:
    assert not [*folder.rglob("*.tmp"), *folder.glob(".session.*")]


KILLS = "sweeps: killed at a random moment, taken up again"


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.assault(KILLS)])])
def test_kill_at_random_moments(kills: int, program: Program, undisturbed: tuple[list[str], float], tmp_path: Path, tally: Any) -> None:
    expected, seconds = undisturbed
    moments = random.Random(kills)
    words = [*WORDS, "workers=1"]
    sweeps, kept = 0, 0
    killed = 0
    while killed < kills:
        folder = tmp_path / str(sweeps) / "results" / "x"
        code = program.run(tmp_path / str(sweeps), words, kill_after=moments.uniform(0.0, seconds))
        if code == -signal.SIGKILL:
            killed += 1
            if folder.exists():
                now = assert_whole(folder)
                assert now >= kept, "a finished cell was lost"
                kept = now
            tally.count(killed)
        else:
            assert code == 0, program.said()
            assert tables(folder) == expected
            sweeps, kept = sweeps + 1, 0
    folder = tmp_path / str(sweeps) / "results" / "x"
    assert program.run(tmp_path / str(sweeps), words) == 0, program.said()
    assert tables(folder) == expected
    assert_clean(folder)


def grandchildren(parent: int) -> int:
    """Return how many processes were started by children of this one, the fork servers' own aside."""
    found = psutil.Process(parent).children(recursive=True)
    children = {process.pid for process in psutil.Process(parent).children()}
    parents = []
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended since
            parents.append(process.ppid())
    return sum(each not in {parent, *children} for each in parents)


@pytest.mark.slow
def test_kill_of_the_parent_alone_leaves_no_worker(undisturbed: tuple[list[str], float], tmp_path: Path) -> None:
    """With limits, a cell is a grandchild of the parent: it must not outlive it either."""
    hold(tmp_path)
    words = ["--config-dir", "my", "-m", "dataset=iris", "loss=holding", "seed=1,2", "limits.seconds=300", "name=y", "workers=2"]
    child = nursery().start(words, tmp_path)
    until(lambda: sum("started" in file.read_text() for file in tmp_path.glob("results/y/.session.*/*.jsonl")) == 2)
    until(lambda: grandchildren(child.pid) >= 2)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait().returncode == -signal.SIGKILL
    until(lambda: not processes_of_session(child.pid))
    # the folder of results takes other sweeps
    done = nursery().run([*WORDS, "workers=1", "name=z"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert tables(tmp_path / "results" / "z") == undisturbed[0]


ONE_CELL = ["dataset=iris", "protocol.n_splits=2", "name=x", "workers=1"]


def workers(session: int) -> list[psutil.Process]:
    """Return the pool's workers in a session, from the moment that they are Python."""
    found = []
    for process in processes_of_session(session):
        with contextlib.suppress(psutil.Error):
            if "joblib.externals.loky.backend.popen_loky_posix" in process.cmdline():
                found.append(process)
    return found


def has_a_job(process: psutil.Process) -> bool:
    """Tell whether a worker is about to read its first job, which imports Hydra and with it the YAML library."""
    with contextlib.suppress(psutil.Error):
        return any("_yaml" in part.path for part in process.memory_maps())
    return False


STARTS = {
    "a worker": lambda session: workers(session),
    "its first job": lambda session: any(map(has_a_job, workers(session))),
}


def holding_sweep(folder: Path) -> list[str]:
    """Return the words of a sweep whose cells never end."""
    hold(folder)
    return ["--config-dir", "my", "-m", *ONE_CELL, "loss=holding", "seed=range(4)", "hyper.C=1", "workers=2", "cells_per_job=1"]


@pytest.mark.parametrize("moment", STARTS)
def test_kill_of_the_parent_while_workers_start_leaves_none(moment: str, tmp_path: Path) -> None:
    child = nursery().start(holding_sweep(tmp_path), tmp_path)
    until(lambda: STARTS[moment](child.pid))
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait().returncode == -signal.SIGKILL
    until(lambda: not processes_of_session(child.pid))
    assert not [*tmp_path.rglob("cells/*.json")]


@pytest.mark.slow
@pytest.mark.assault("sweeps: the parent alone killed, no process left")
@pytest.mark.parametrize("limit", [[], ["limits.seconds=3600"]], ids=["workers", "limited"])
def test_kills_of_the_parent_at_random_moments_leave_no_process(limit: list[str], tmp_path: Path, tally: Any) -> None:
    """Up to the moment that a cell is computed; with a limit, the fork server's child computes it."""
    words = [*holding_sweep(tmp_path), *limit]
    holds = tmp_path / "holds"
    began = time.monotonic()
    child = nursery().start(words, tmp_path)
    until(holds.exists)
    seconds = time.monotonic() - began
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    until(lambda: not processes_of_session(child.pid))
    moments = random.Random(len(limit))
    for number in range(50):
        child = nursery().start([*words, f"name={number}"], tmp_path)
        time.sleep(moments.uniform(0.0, 1.2 * seconds))
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait().returncode == -signal.SIGKILL
        until(lambda session=child.pid: not processes_of_session(session))
        tally.count(number)


def test_two_sweeps_into_one_folder_at_once(undisturbed: tuple[list[str], float], tmp_path: Path) -> None:
    both = [nursery().start([*WORDS, f"workers={workers}"], tmp_path) for workers in (1, 2)]
    for child in both:
        done = child.wait()
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    folder = tmp_path / "results" / "x"
    assert tables(folder) == undisturbed[0]
    assert assert_whole(folder) == CELLS
    assert_clean(folder)


def assert_refused(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert "another config" in line
    assert done.stdout == ""


@pytest.mark.parametrize("sweep", [[], ["-m"]], ids=["single", "sweep"])
def test_another_configuration_before_the_first_cell_is_refused(sweep: list[str], tmp_path: Path) -> None:
    hold(tmp_path)
    words = ["--config-dir", "my", *sweep, *ONE_CELL, "loss=holding"]
    first = nursery().start([*words, "seed=0", "hyper.C=1"], tmp_path)
    until((tmp_path / "holds").exists)
    assert_refused(nursery().run([*words, "seed=1", "hyper.C=2"], tmp_path))
    (tmp_path / "go").touch()
    done = first.wait()
    assert done.returncode == 0, done.stderr
    rows = read_table(tmp_path / "results/x/runs.csv")
    assert (set(rows["seed"]), set(rows["C"])) == ({0}, {1.0})


@pytest.mark.slow
@pytest.mark.assault("results folders: two configurations at once")
def test_two_configurations_started_at_once_never_share_a_folder(tmp_path: Path, tally: Any) -> None:
    for number in range(60):
        words = [["-m", *ONE_CELL, f"name={number}", f"seed={seed},{seed + 2}", f"hyper.C={seed + 1}"] for seed in (0, 1)]
        both = [nursery().start(each, tmp_path) for each in (words if number % 2 else words[::-1])]
        ended = [child.wait() for child in both]
        won, lost = sorted(ended, key=lambda done: done.returncode)
        assert won.returncode == 0, won.stderr
        assert_refused(lost)
        rows = read_table(tmp_path / f"results/{number}/runs.csv")
        seeds, strength = set(rows["seed"]), set(rows["C"])
        assert (seeds, strength) in [({0, 2}, {1.0}), ({1, 3}, {2.0})]
        tally.count(number)


@contextlib.contextmanager
def mounted(place: Path, *options: str) -> Iterator[None]:
    """Mount something over a folder, or skip where this is not allowed."""
    place.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    done = subprocess.run(["mount", *options, str(place)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_full_disk(program: Program, undisturbed: tuple[list[str], float], tmp_path: Path) -> None:
    place = tmp_path / "disk"
    with mounted(place, "-t", "tmpfs", "-o", "size=96k", "tmpfs"):
        assert program.run(place, [*WORDS, "workers=1"]) in (1, 2)
        said = program.said()
        assert "No space left on device" in said
        assert "Traceback" not in said
        folder = place / "results" / "x"
        kept = assert_whole(folder)
        assert 0 < kept < CELLS
        assert not [*folder.rglob("*.tmp")]
        subprocess.run(["mount", "-o", "remount,size=32m", str(place)], check=True)
        assert program.run(place, [*WORDS, "workers=1"]) == 0, program.said()
        assert program.said().count("already there") == kept
        assert tables(folder) == undisturbed[0]


@pytest.mark.parametrize("limit", [pytest.param(400, marks=pytest.mark.slow), 3000, pytest.param(6000, marks=pytest.mark.slow)])
def test_quota(limit: int, program: Program, undisturbed: tuple[list[str], float], tmp_path: Path) -> None:
    """A limit on the size of a file meets the plan, a cell, or a table."""
    assert program.run(tmp_path, [*WORDS, "workers=1"], limit=limit) in (1, 2)
    said = program.said()
    assert "File too large" in said
    assert "Traceback" not in said
    folder = tmp_path / "results" / "x"
    if folder.exists():
        assert_whole(folder)
    assert program.run(tmp_path, [*WORDS, "workers=1"]) == 0, program.said()
    assert tables(folder) == undisturbed[0]
    assert_clean(folder)


def test_folder_that_nobody_may_write(program: Program, undisturbed: tuple[list[str], float], tmp_path: Path) -> None:
    place = tmp_path / "place"
    words = [*WORDS, "workers=1"]
    assert program.run(place, [word if word != "seed=0,1" else "seed=0" for word in words]) == 0
    with mounted(place, "--bind", str(place)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(place)], check=True)
        code = program.run(place, words)
        (line,) = program.said().splitlines()
        assert code == 2
        assert "cannot write into" in line or "made by another config" in line


def test_user_without_permission(tmp_path: Path) -> None:
    """As root permission bits say nothing: the check is made by another user."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent == Path(parent.anchor) or os.stat(parent).st_uid != os.geteuid():
            break
        parent.chmod(0o755)
    script = """
import os, sys
from advcli.results.folder import ResultsFolder
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    ResultsFolder(sys.argv[1]).prepare({})
except Exception as error:
    print(type(error).__name__, error)
"""
    place = tmp_path / "closed"
    place.mkdir()
    place.chmod(0o555)
    told = subprocess.run([sys.executable, "-c", script, str(place / "x")], capture_output=True, text=True)
    assert told.stdout.startswith("ResultsError cannot create"), told.stdout + told.stderr
    assert "Permission denied" in told.stdout
    made = tmp_path / "made"
    ResultsFolder(made).prepare({})
    for folder in (made, made / "cells"):
        folder.chmod(0o555)
    told = subprocess.run([sys.executable, "-c", script, str(made)], capture_output=True, text=True)
    assert told.stdout.startswith("ResultsError cannot write into"), told.stdout + told.stderr


def test_limit_of_file_sizes_is_an_error_not_a_signal() -> None:
    """The premise of `test_quota`."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN
