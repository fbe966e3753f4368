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

import pytest

from advcli.records import TIMING_COLUMNS, ResultsFolder, read_table

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

# Forks one program per line that it reads: a kill at any moment then costs no start of the interpreter.
NURSERY = """
import json, os, sys
import advcli.cli, advcli.estimators, advcli.data.registry, advcli.evaluation.runner, advcli.reports, pandas, psutil, tabulate
advcli.data.registry.sources()
for line in sys.stdin:
    folder, words, log, limit = json.loads(line)
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(folder)
        if limit:
            import resource
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 99
        try:
            code = advcli.cli.main(words)
        finally:
            sys.stderr.flush()
            os._exit(code)
    print(child, flush=True)
    sys.stdin.readline()  # until the test has done what it wants with it
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Nursery:
    """Starts advcli again and again, from one process that has imported everything."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.process = subprocess.Popen([sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, folder: Path, words: list[str], kill_after: float | None = None, limit: int = 0) -> int:
        """Run, or kill after some seconds; return the exit code, negative for a signal."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        folder.mkdir(exist_ok=True)
        self.log.unlink(missing_ok=True)
        self.process.stdin.write(json.dumps([str(folder), words, str(self.log), limit]) + "\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        if kill_after is not None:
            time.sleep(kill_after)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    started = Nursery(tmp_path_factory.mktemp("nursery") / "log")
    yield started
    assert started.process.stdin is not None
    started.process.stdin.close()
    started.process.wait(timeout=30)


def tables(folder: Path) -> list[str]:
    """Return everything that a sweep leaves for its reader, times aside, as texts of the exact bits."""
    frames = [read_table(folder / name) for name in ("runs.csv", "search.csv")]
    texts = [frame.drop(columns=[column for column in TIMING_COLUMNS if column in frame]).to_csv() for frame in frames]
    summary = [line.rpartition(",")[0] for line in (folder / "summary.csv").read_text().splitlines()]
    return [*texts, "\n".join(summary), (folder / "table.md").read_text()]


@pytest.fixture(scope="module")
def undisturbed(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], float]:
    """Return the tables of a sweep that nobody disturbed, and the seconds that it took."""
    path = tmp_path_factory.mktemp("undisturbed")
    began = time.monotonic()
    assert nursery.run(path, [*WORDS, "workers=1"]) == 0, nursery.said()
    return tables(path / "results" / "x"), time.monotonic() - began


def assert_whole(folder: Path) -> int:
    """Assert that every file is complete; return the number of finished cells."""
    results = ResultsFolder(folder)
    files = [file for file in results.cells_path.glob("*.json") if not file.name.startswith(".")]
    assert all(results.has(file.stem) for file in files if not file.name.endswith(".failed.json"))
    if (folder / "runs.csv").exists():
        read_table(folder / "runs.csv")
    for name in ("provenance.json", "identity.json"):
        if (folder / name).exists():
            json.loads((folder / name).read_text())
    return len([file for file in files if not file.name.endswith(".failed.json")])


def assert_clean(folder: Path) -> None:
    assert not [*folder.rglob("*.tmp"), *folder.glob(".session.*")]


@pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_kill_at_random_moments(kills: int, nursery: Nursery, undisturbed: tuple[list[str], float], tmp_path: Path) -> None:
    expected, seconds = undisturbed
    moments = random.Random(kills)
    words = [*WORDS, "workers=1"]
    sweeps, kept = 0, 0
    killed = 0
    while killed < kills:
        folder = tmp_path / str(sweeps) / "results" / "x"
        code = nursery.run(tmp_path / str(sweeps), words, kill_after=moments.uniform(0.0, seconds))
        if code == -signal.SIGKILL:
            killed += 1
            if folder.exists():
                now = assert_whole(folder)
                assert now >= kept, "a finished cell was lost"
                kept = now
        else:
            assert code == 0, nursery.said()
            assert tables(folder) == expected
            sweeps, kept = sweeps + 1, 0
    folder = tmp_path / str(sweeps) / "results" / "x"
    assert nursery.run(tmp_path / str(sweeps), words) == 0, nursery.said()
    assert tables(folder) == expected
    assert_clean(folder)


def start(folder: Path, words: list[str]) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "advcli", *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def test_kill_of_the_parent_alone_leaves_no_worker(undisturbed: tuple[list[str], float], tmp_path: Path) -> None:
    """With limits, a cell is a grandchild of the parent: it must not outlive it either."""
    words = ["-m", "dataset=digits", "loss=zero_one,ww", "solver.tol=1e-11", "limits.seconds=300", "name=y", "workers=2"]
    with start(tmp_path, words) as process:
        session = process.pid
        for _ in range(600):
            events = [file.read_text() for file in tmp_path.glob("results/y/.session.*/*.jsonl")]
            if sum("started" in event for event in events) == 2:
                break
            time.sleep(0.1)
        assert len(events) == 2
        time.sleep(1.0)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    for _ in range(300):
        listed = subprocess.run(["ps", "-o", "stat=,args=", "-s", str(session)], capture_output=True, text=True).stdout
        alive = [line for line in listed.splitlines() if not line.lstrip().startswith("Z")]
        if not alive:
            break
        time.sleep(0.1)
    assert not alive, listed
    # the same folder is taken up again
    with start(tmp_path, [*WORDS, "workers=2", "name=z"]) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert tables(tmp_path / "results" / "z") == undisturbed[0]


def test_two_sweeps_into_one_folder_at_once(undisturbed: tuple[list[str], float], tmp_path: Path) -> None:
    both = [start(tmp_path, [*WORDS, f"workers={workers}"]) for workers in (1, 2)]
    for process in both:
        _, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
        assert "Traceback" not in err
    folder = tmp_path / "results" / "x"
    assert tables(folder) == undisturbed[0]
    assert assert_whole(folder) == CELLS
    assert_clean(folder)


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


def test_full_disk(nursery: Nursery, undisturbed: tuple[list[str], float], tmp_path: Path) -> None:
    place = tmp_path / "disk"
    with mounted(place, "-t", "tmpfs", "-o", "size=96k", "tmpfs"):
        assert nursery.run(place, [*WORDS, "workers=1"]) in (1, 2)
        said = nursery.said()
        assert "No space left on device" in said
        assert "Traceback" not in said
        folder = place / "results" / "x"
        kept = assert_whole(folder)
        assert 0 < kept < CELLS
        assert not [*folder.rglob("*.tmp")]
        subprocess.run(["mount", "-o", "remount,size=32m", str(place)], check=True)
        assert nursery.run(place, [*WORDS, "workers=1"]) == 0, nursery.said()
        assert nursery.said().count("already there") == kept
        assert tables(folder) == undisturbed[0]


@pytest.mark.parametrize("limit", [400, 3000, 6000])
def test_quota(limit: int, nursery: Nursery, undisturbed: tuple[list[str], float], tmp_path: Path) -> None:
    """A limit on the size of a file meets the plan, a cell, or a table."""
    assert nursery.run(tmp_path, [*WORDS, "workers=1"], limit=limit) in (1, 2)
    said = nursery.said()
    assert "File too large" in said
    assert "Traceback" not in said
    folder = tmp_path / "results" / "x"
    if folder.exists():
        assert_whole(folder)
    assert nursery.run(tmp_path, [*WORDS, "workers=1"]) == 0, nursery.said()
    assert tables(folder) == undisturbed[0]
    assert_clean(folder)


def test_folder_that_nobody_may_write(nursery: Nursery, undisturbed: tuple[list[str], float], tmp_path: Path) -> None:
    place = tmp_path / "place"
    assert nursery.run(place, [word if word != "seed=0,1" else "seed=0" for word in WORDS]) == 0
    with mounted(place, "--bind", str(place)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(place)], check=True)
        code = nursery.run(place, WORDS)
        (line,) = nursery.said().splitlines()
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
from advcli.records import ResultsFolder
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
