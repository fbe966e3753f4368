"""What a sweep shows while it runs: one line that is drawn again on a terminal, plain lines elsewhere, next to nothing when quiet."""

from __future__ import annotations

import io
import os
import pty
import re
import select
from pathlib import Path

import pytest
from nursery import nursery
from waiting import until

from advcli.cli import main
from advcli.progress import Journal, Progress

QUICK = ["hyper.C=1", "protocol.n_splits=2"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_are_counted_in_the_order_of_finishing(tmp_path: Path) -> None:
    said: list[str] = []
    journal = Journal(tmp_path)
    with Progress(tmp_path, 3, said.append, stream=io.StringIO()):
        for number in (2, 0, 1):
            journal.started(number)
            journal.finished(number, "failed" if number == 0 else "ok", False, [f"cell {number}", "advcli: warning: hm"])
    assert said == [f"[{at}/3] cell {number}\nadvcli: warning: hm" for at, number in ((1, 2), (2, 0), (3, 1))]


def test_quiet_says_failures_only(tmp_path: Path) -> None:
    said: list[str] = []
    journal = Journal(tmp_path)
    with Progress(tmp_path, 2, said.append, quiet=True, stream=Terminal()) as progress:
        journal.finished(0, "ok", False, ["fine"])
        journal.finished(1, "failed", False, ["bad"])
    assert said == ["[2/2] bad"]
    assert not progress.drawn
    assert progress.done == {0, 1}


def test_half_written_and_broken_lines_do_no_harm(tmp_path: Path) -> None:
    said: list[str] = []
    file = tmp_path / "other.jsonl"
    file.write_text('{"started": 0}\nnonsense\n{"finished": 0, "status": "ok", ')
    with Progress(tmp_path, 1, said.append, stream=io.StringIO()) as progress:
        until(lambda: progress.running == {0})
        with file.open("a") as stream:
            stream.write('"skipped": false, "lines": ["whole"]}\n')
    assert said == ["[1/1] whole"]


def test_journal_without_a_place_to_write_is_silent(tmp_path: Path) -> None:
    Journal(tmp_path / "gone").started(1)


def test_line_tells_done_running_failed_and_time_left(tmp_path: Path) -> None:
    progress = Progress(tmp_path, 10, print, stream=Terminal())
    assert progress.line(0.0) == "[--------------------] 0/10 done"
    progress.drawn = False
    progress._began = 100.0
    progress.running = {7}
    assert progress.line(165.0) == "[--------------------] 0/10 done, 1 running, 1:05"
    progress.say = lambda text: None
    for number in range(5):
        # three were there already: they say nothing about the time that a cell takes
        progress.finished(number, "failed" if number == 4 else "ok", number < 3, ["x"])
    assert progress.line(120.0) == "[##########----------] 5/10 done, 1 running, 1 failed, about 0:50 left"
    assert progress.line(100.0 + 2 * 3600 / 5).endswith("about 1:00:00 left")


@pytest.mark.parametrize("workers", [1, 2])
def test_terminal_shows_one_line_and_leaves_nothing_of_it(workers: int, tmp_path: Path) -> None:
    """Through a real terminal, as the user's own sees it."""
    parent, child = pty.openpty()
    words = ["-m", "dataset=iris,csv", "loss=zero_one,cs", f"workers={workers}", "name=x", *QUICK]
    started = nursery().start(words, tmp_path, err=os.ttyname(child), TERM="xterm", COLUMNS="60")
    text = b""
    os.close(child)
    while True:
        if select.select([parent], [], [], 60)[0]:
            try:
                text += os.read(parent, 65536)
                continue
            except OSError:
                pass
        break
    assert started.wait().returncode == 1
    shown = text.decode().replace("\r\n", "\n")
    drawn = re.findall(r"\r(\[[#-]{20}\][^\r\n]*)\x1b\[K", shown)
    assert drawn
    assert all(len(line) < 60 for line in drawn)
    # what stays on the screen: each line after its last return to the margin
    left = [line.rpartition("\r")[2].replace("\x1b[K", "") for line in shown.split("\n")]
    assert [line for line in left if "#" in line or "[-" in line] == []
    assert sum(line.startswith("[") and ": failed: " in line for line in left) == 2
    assert not [line for line in left if "gap" in line]


def test_quiet_sweep_prints_the_table_and_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["-m", "dataset=iris,csv", "workers=1", "name=x", "quiet=true", *QUICK]) == 1
    out, err = capfd.readouterr()
    (line,) = err.splitlines()
    assert "csv, zero_one linear: failed" in line
    assert out.startswith("dataset ")
    assert "results/x" not in out
    assert main(["dataset=iris", "name=y", "quiet=true", *QUICK]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert out.startswith("dataset ")
