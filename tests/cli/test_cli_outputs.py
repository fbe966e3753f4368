"""``out=`` is what a user means by it: a symlink's target, a pipe, the terminal."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from advcli.cli import main

CSV = "x,y\n" + "".join(f"{i % 7},{'ab'[i % 2]}\n" for i in range(24))
FIT = ["fit", "dataset=csv", "dataset.path=t.csv", "dataset.target=y", "hyper.C=1"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # models of two fits are compared


def test_commands_follow_what_out_names(capfd: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text(CSV)
    Path("m.model").symlink_to("kept.model")
    assert main([*FIT, "out=m.model"]) == 0
    assert Path("m.model").is_symlink()
    os.mkfifo("fifo")
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(Path("fifo").read_bytes()), daemon=True)
    thread.start()
    capfd.readouterr()
    assert main([*FIT, "out=fifo"]) == 0
    thread.join()
    assert found == [Path("kept.model").read_bytes()]
    assert capfd.readouterr().out == ""
    predict = ["predict", "model=m.model", "input=t.csv"]
    assert main([*predict, "out=p.csv"]) == 0
    capfd.readouterr()
    assert main([*predict, "out=/dev/stdout"]) == 0
    shown = capfd.readouterr()
    assert shown.out == Path("p.csv").read_text()
    assert "24 predictions" in shown.err
    assert main([*predict, "out=/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()
    Path("folder").mkdir()
    for name, target in (("loop", "loop"), ("f", "folder")):
        Path(name).symlink_to(target)
    for name, said in (("loop", "symbolic links"), ("folder", "is a folder"), ("f", "is a folder")):
        capfd.readouterr()
        assert main([*predict, f"out={name}"]) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert f"out={name}" in line
        assert said in line


def test_an_input_behind_a_symlink_is_not_replaced(capfd: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text(CSV)
    Path("out.csv").symlink_to("t.csv")
    assert main([*FIT, "out=out.csv"]) == 2
    assert "is also an input" in capfd.readouterr().err
    assert Path("t.csv").read_text() == CSV
