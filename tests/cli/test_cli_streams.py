"""Output that nobody reads, that is full or that cannot write a name: the work is done, and one line or none says what was lost."""

from __future__ import annotations

import errno
import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from advcli.cli import main
from advcli.config.explaining import explain
from advcli.core import plugins
from advcli.core.files import explained

pytestmark = pytest.mark.usefixtures("elsewhere")

RUN = ["dataset=iris", "hyper.C=1", "protocol.n_splits=2"]
LOUD = """
import numpy as np
from advcli.learners import LinearLearner, register

@register("loud")
class Loud(LinearLearner):
    def learn(self, X, y, weights):
        print("learning", flush=True)
        return np.eye(len(self.classes_), X.shape[1])
"""


def unread() -> io.TextIOWrapper:
    """A pipe whose reader has left."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w", encoding="utf-8")


def full() -> io.TextIOWrapper:
    return open("/dev/full", "w", encoding="utf-8")


@pytest.mark.parametrize(
    "words", [["data", "list"], ["--help"], ["--cfg", "job"], ["--version"], ["experiment", "list"], ["--info", "all"]]
)
def test_a_closed_pipe_ends_silently(words: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", unread())
    assert main(words) == 141
    assert capfd.readouterr().err == ""


def test_hydras_own_flags_leave_logging_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    for words in (["--info", "all"], ["--info", "nope"], ["--cfg", "job"]):
        main(words)
        assert (root.level, root.handlers) == before
    assert capfd.readouterr().out


@pytest.mark.parametrize("words", [["data", "list"], ["--help"], ["--version"]])
def test_a_full_output_is_one_line(words: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", full())
    assert main(words) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line == "advcli: cannot write to standard output: No space left on device; send it elsewhere [ADV040]"


def test_a_run_keeps_its_results_where_nobody_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", unread())
    assert main([*RUN, "name=unread"]) == 141
    assert set(pd.read_csv("results/unread/runs.csv")["status"]) == {"ok"}
    assert Path("results/unread/table.md").is_file()


def test_a_method_that_prints_does_not_fail_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", unread())
    monkeypatch.setenv(plugins.FOLDERS, "")
    folder = Path("my/loss")
    folder.mkdir(parents=True)
    (folder / "loud.py").write_text(LOUD)
    (folder / "loud.yaml").write_text("name: loud\n")
    assert main(["--config-dir", "my", "dataset=iris", "loss=loud", "protocol.n_splits=2", "name=loud"]) == 141
    assert set(pd.read_csv("results/loud/runs.csv")["status"]) == {"ok"}


@pytest.mark.slow
@pytest.mark.parametrize("redirected", ["2>&1 | true", "2>&-", "<&- >&- 2>&-"])
def test_a_sweep_goes_on_without_its_terminal(redirected: str) -> None:
    # buffered, as a shell has it: what is lost shows at the interpreter's end
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    line = f"{sys.executable} -m advcli -m {' '.join(RUN)} loss=zero_one,cs workers=2 name=sweep {redirected}"
    subprocess.run(["bash", "-c", f"set -o pipefail; {line}; echo $? >code"], env=environment, capture_output=True, check=True)
    assert Path("code").read_text().strip() == ("141" if "|" in redirected else "0")
    assert set(pd.read_csv("results/sweep/runs.csv")["loss"]) == {"zero_one", "cs"}
    assert Path("results/sweep/table.md").is_file()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_name_that_the_terminal_cannot_write_is_escaped(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.csv").write_text("größe,日本,kind\n" + "".join(f"{i},{i % 5},{'pq'[i > 12]}\n" for i in range(24)), encoding="utf-8")
    for words in (["data", "check", "path=t.csv", "target=kind"], ["data", "check", "path=t.csv", "target=日"]):
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for _ in range(2))
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        assert main(words) == (0 if words[-1].endswith("kind") else 2)
        said = b"".join(stream.buffer.getvalue() for stream in (out, err))  # type: ignore[attr-defined]
        assert b"\\u65e5" in said


def test_a_refusal_of_the_system_names_its_path_and_fits_its_cause() -> None:
    """Only what is about a folder of results speaks of one."""
    folders = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS}
    folders |= {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST}
    for number in errno.errorcode:
        said = explained(OSError(number, os.strerror(number), "some/place"))
        assert said.startswith(f"some/place: {os.strerror(number)}")
        assert ("results_dir=" in said) == (number in folders), said


def test_a_closed_pipe_is_no_folder() -> None:
    assert explain(BrokenPipeError(errno.EPIPE, "Broken pipe"), []) is None


def test_a_name_that_is_too_long_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    for words in (RUN, ["-m", *RUN]):
        assert main([*words, f"name={'x' * 300}"]) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert "File name too long; choose" in line
