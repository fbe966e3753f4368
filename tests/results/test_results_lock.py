"""What is written to a folder is made from the cells that are there: no process writes what it read before another one's writing."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.waiting import HANG

from advcli.cli import main
from advcli.core.errors import ResultsError
from advcli.core.files import read_json
from advcli.reports import write, write_reports
from advcli.results import provenance
from advcli.results.folder import ResultsFolder


def fill(folder: ResultsFolder, name: str) -> None:
    head = {"dataset": name, "loss": "cs", "features": "linear", "solver": "auto", "method": "cs linear", "metric": "error", "cell": name}
    rows = [head | {"split": split, "value": 0.1 * split, "n_train": 5, "n_test": 5, "seed": 0, "status": "ok"} for split in (1, 2)]
    folder.write_cell(name, rows, about={"dataset": name, "dataset_sha256": name})


class Meeting:
    """Two processes in one folder, here two threads that share nothing else: the second works in the midst of the first."""

    def __init__(self, put: Callable[[Any, str, Any], None]) -> None:
        self.reached, self.thread, self.error, self._flock = threading.Event(), None, None, fcntl.flock
        put(fcntl, "flock", self.flock)

    def flock(self, handle: int, how: int) -> None:
        """Take the lock; the second says before it has to wait."""
        if threading.current_thread() is self.thread:
            try:
                self._flock(handle, how | fcntl.LOCK_NB)
            except BlockingIOError:
                self.reached.set()
                if how & fcntl.LOCK_NB:
                    raise
            else:
                return
        self._flock(handle, how)

    def begin(self, work: Callable[[], object]) -> None:
        """Let the second work until it has ended or waits for the lock; it begins once."""
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, args=(work,))
            self.thread.start()
            assert self.reached.wait(HANG)

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            self.error = error
        finally:
            self.reached.set()

    def end(self) -> None:
        """Wait for the end of the second."""
        assert self.thread is not None, "the first did not come to the place where they meet"
        self.thread.join()
        assert self.error is None


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> Meeting:
    return Meeting(monkeypatch.setattr)


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    folder = ResultsFolder(tmp_path / "results")
    folder.prepare({})
    fill(folder, "first")
    return folder


def before(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, then: Callable[[], object]) -> None:
    real = getattr(place, name)
    monkeypatch.setattr(place, name, lambda *arguments, **more: (then(), real(*arguments, **more))[1])


def end_of_a_sweep(folder: ResultsFolder) -> None:
    """Do what a sweep does at its end, in a separate process."""
    fill(folder, "second")
    second = ResultsFolder(folder.path)
    second.write_provenance({}, 0.0, 1.0)
    write_reports(second)


@pytest.mark.parametrize("step", ["summarise", "comparison_table", "write_text"])
def test_tables_of_two_sweeps_that_end_together_have_all_cells(
    step: str, folder: ResultsFolder, meeting: Meeting, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(monkeypatch, write, step, lambda: meeting.begin(lambda: end_of_a_sweep(folder)))
    write_reports(folder)
    meeting.end()
    for name in ("runs.csv", "summary.csv"):
        assert set(pd.read_csv(folder.path / name)["dataset"]) == {"first", "second"}
    assert "second" in (folder.path / "table.md").read_text()


def test_provenance_of_two_sweeps_that_end_together_has_all_cells(
    folder: ResultsFolder, meeting: Meeting, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(monkeypatch, provenance, "document", lambda: meeting.begin(lambda: end_of_a_sweep(folder)))
    folder.write_provenance({}, 0.0, 1.0)
    meeting.end()
    made = read_json(folder.path / "provenance.json")
    assert made["data"] == {"first": "first", "second": "second"}
    assert len(made["sessions"]) == 2


def test_a_worker_does_not_wait_for_a_report(folder: ResultsFolder, meeting: Meeting) -> None:
    merged: list[bool] = []
    with folder.locked():
        meeting.begin(lambda: merged.append(ResultsFolder(folder.path).merge_if_due()))
        meeting.end()
    assert merged == [False]
    assert not (folder.path / "runs.csv").exists()
    assert ResultsFolder(folder.path).merge_if_due()


@pytest.fixture
def archive(folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> Iterator[ResultsFolder]:
    """A folder that nothing may be written into, whoever runs the test."""
    fill(folder, "second")
    kept = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    real = fcntl.flock

    def refuse(*_: Any) -> None:
        raise AssertionError("a folder that is only read is locked")

    monkeypatch.setattr(fcntl, "flock", refuse)
    yield ResultsFolder(folder.path)
    monkeypatch.setattr(fcntl, "flock", real)
    assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == kept


def test_a_report_elsewhere_only_reads(archive: ResultsFolder, tmp_path: Path) -> None:
    write_reports(archive, full=True, out=tmp_path / "out")
    assert set(pd.read_csv(tmp_path / "out" / "summary.csv")["dataset"]) == {"first", "second"}


def test_a_report_into_a_folder_that_cannot_be_written_names_the_remedy(folder: ResultsFolder) -> None:
    (folder.cells_path / ".lock").unlink()
    (folder.cells_path / ".lock").mkdir()
    with pytest.raises(ResultsError, match=r"cannot write into .*; out=FOLDER takes the tables elsewhere"):
        write_reports(folder)


def test_verify_holds_the_lock_from_its_first_row_to_its_table(folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    held = []

    def look(results: ResultsFolder, *_: object) -> list[object]:
        with ResultsFolder(results.path).locked(wait=False) as free:
            held.append(not free)
        return []

    monkeypatch.setattr("advcli.verify.verify_folder", look)
    assert main(["verify", f"results={folder.path}"]) == 1  # nothing was proved
    assert held == [True]
