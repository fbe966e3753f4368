"""What a sweep shows while it runs: one line that is drawn again on a terminal, plain lines elsewhere, next to nothing when quiet."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import struct
import termios
from pathlib import Path

import pytest
from support.nursery import nursery
from support.waiting import until

from advcli.cli import main
from advcli.results.progress import Journal, Progress

QUICK = ["hyper.C=1", "protocol.n_splits=2"]


@pytest.fixture(autouse=True)
def _no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


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


def test_numbers_tell_done_running_failed_and_time_left(tmp_path: Path) -> None:
    progress = Progress(tmp_path, 10, lambda text: None, stream=io.StringIO())
    assert progress.numbers(0.0) == "0/10 done"
    progress._began = 100.0
    progress.running = {7}
    assert progress.numbers(165.0) == "0/10 done, 1 running, 1:05"
    for number in range(5):
        # three were there already: they say nothing about the time that a cell takes
        progress.finished(number, "failed" if number == 4 else "ok", number < 3, ["x"])
    assert progress.numbers(120.0) == "5/10 done, 1 running, 1 failed, about 0:50 left"
    assert progress.numbers(100.0 + 2 * 3600 / 5).endswith("about 1:00:00 left")


@pytest.mark.parametrize(("variable", "results"), [("CI", True), ("", False)])
def test_a_log_of_ci_and_a_caller_with_its_own_words_get_failures_and_warnings(
    variable: str, results: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        monkeypatch.setenv(variable, "true")
    said: list[str] = []
    journal = Journal(tmp_path)
    with Progress(tmp_path, 3, said.append, results=results, stream=io.StringIO()):
        journal.finished(0, "ok", False, ["fine"])
        journal.finished(1, "ok", False, ["fine", "advcli: warning: hm"])
        journal.finished(2, "failed", False, ["bad"])
    assert said == ["advcli: warning: hm", "[3/3] bad"]


def test_the_bar_wraps_nothing_and_reads_no_marks(tmp_path: Path) -> None:
    screen = Terminal()
    long = "advcli: warning: [bold]" + " words" * 60
    journal = Journal(tmp_path)
    with Progress(tmp_path, 2, print, stream=screen):
        journal.finished(0, "ok", False, ["fine", long])
    assert f"{long}\n" in screen.getvalue()
    assert "1/2 done" in screen.getvalue()
    assert "fine" not in screen.getvalue()


def screen(text: str) -> list[str]:
    """Return the lines that stay on a terminal that is wide enough."""
    lines, at, column = [""], 0, 0
    for step in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b]", text):
        if step == "\n":
            at, column = at + 1, 0
            lines += [""] * (at == len(lines))
        elif step == "\r":
            column = 0
        elif len(step) > 1 and step.endswith("A"):
            at -= int(step[2:-1] or 1)
        elif step == "\x1b[2K":
            lines[at] = ""
        elif len(step) == 1:
            lines[at] = f"{lines[at][:column]:{column}}{step}{lines[at][column + 1 :]}"
            column += 1
    return lines


@pytest.mark.usefixtures("damaged")
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_terminal_shows_one_bar_and_leaves_nothing_of_it(workers: int, tmp_path: Path) -> None:
    """Through a real terminal, as the user's own sees it."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    words = ["-m", "dataset=iris,glass", "data_dir=nothing", "loss=zero_one,cs", f"workers={workers}", "name=x", *QUICK]
    started = nursery().start(words, tmp_path, err=os.ttyname(child), TERM="xterm")
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
    assert "/4 done" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h"), "the cursor is back"
    left = screen(shown)
    assert [line for line in left if " done" in line] == []
    assert sum(line.startswith("[") and ": failed: " in line for line in left) == 2
    assert not [line for line in left if "accuracy" in line]


@pytest.mark.usefixtures("damaged")
def test_quiet_sweep_prints_the_table_and_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["-m", "dataset=iris,glass", "data_dir=nothing", "workers=1", "name=x", "quiet=true", *QUICK]) == 1
    out, err = capfd.readouterr()
    (line,) = err.splitlines()
    assert "glass, zero_one linear: failed" in line
    assert out.startswith("dataset ")
    assert "results/x" not in out
    assert main(["dataset=iris", "name=y", "quiet=true", *QUICK]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert re.fullmatch(r"iris, zero_one linear: accuracy \d\d\.\d\d \(\d\.\d\d\) %\n", out)


def test_one_method_prints_its_result_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dataset=iris", "name=x", *QUICK]) == 0
    out, err = capfd.readouterr()
    assert len(re.findall(r"\d\d\.\d\d \(", out + err)) == 1
    assert "\nsolver=auto took " in out
    for word in (" passes\n", "best", "count", "*"):
        assert word not in out + err
    assert main(["dataset=iris", "name=x", "verbose=true", *QUICK]) == 0
    assert "passes\nsolver=auto took " in capfd.readouterr().out.replace(", 0 passes", "")
    # a second method in the folder: now there is something to compare
    assert main(["dataset=iris", "loss=cs", "name=x", *QUICK]) == 0
    assert "not significantly worse" in capfd.readouterr().out


def test_a_line_is_number_hyper_parameters_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["-m", "dataset=iris", "loss=zero_one,cs", "workers=1", "report=false", *QUICK]
    assert main([*words, "name=x"]) == 0
    out, err = capfd.readouterr()
    lines = [line for line in err.splitlines() if line.startswith("[")]
    assert len(lines) == 2
    result = r"\[\d/2\] iris, \w+ linear: accuracy \d\d\.\d\d \(\d\.\d\d\) %, C = 1"
    assert all(re.fullmatch(result + r", \d\.\d s", line) for line in lines)
    assert not (tmp_path / "results/x/report.html").exists()
    assert "report.html" not in out
    assert main([*words, "name=y", "verbose=true"]) == 0
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("[")]
    assert all(re.fullmatch(result + r", gap \d\.\de-\d\d, \d\.\d s; solver=auto took .*", line) for line in lines)


@pytest.mark.usefixtures("drawn_figures")
def test_a_sweep_ends_with_the_path_of_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["-m", "dataset=iris", "loss=zero_one,cs", "workers=1", "name=x", *QUICK]) == 0
    assert capfd.readouterr().out.endswith("\nreport: results/x/report.html\n")
    page = (tmp_path / "results/x/report.html").read_text()
    assert "<svg " in page
    assert "command: advcli -m dataset=iris" in page
