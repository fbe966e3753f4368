"""Limits of a whole sweep: its time, and the question before many fits."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from advcli.cli import console, main
from advcli.core.errors import ResultsError
from advcli.evaluation import sweep
from advcli.evaluation.sweeps import jobs

QUICK = ["hyper.C=1", "protocol.n_splits=2", "workers=1", "hydra/launcher=basic", "report=false", "name=x"]
SWEEP = ["-m", "dataset=iris", "loss=zero_one,cs,ww", *QUICK]
OVER = "limits.total_seconds=1e-9"


@pytest.fixture(autouse=True)
def here(elsewhere: None) -> None:
    """Run in an empty folder."""


def test_cells_that_did_not_start_are_counted_and_the_same_command_goes_on(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*SWEEP, OVER]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "limits.total_seconds=1e-09 is over: 3 of 3 cells were not run; resume with: advcli -m dataset=iris" in err
    # the time is over when the first cell has been computed
    clock = SimpleNamespace(now=0.0)
    compute = jobs.run_one

    def computed(*arguments: object, **more: object) -> object:
        clock.now = 1e12
        return compute(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "time", SimpleNamespace(time=lambda: clock.now))
        patch.setattr(jobs, "run_one", computed)
        assert main([*SWEEP, "limits.total_seconds=1e11"]) == 1
    out, err = capfd.readouterr()
    assert "2 of 3 cells were not run" in err
    assert "results/x: 3 cells, 2 not run" in out
    assert len(pd.read_csv("results/x/runs.csv")["cell"].unique()) == 1
    assert main(SWEEP) == 0
    assert "1 already there" in capfd.readouterr().out
    # what is there counts as done, however little time there is
    assert main([*SWEEP, OVER]) == 0
    assert "not run" not in "".join(capfd.readouterr())


def test_a_call_from_python_has_the_same_limit(capfd: pytest.CaptureFixture[str]) -> None:
    words = "dataset=iris loss=zero_one,cs hyper.C=1 protocol.n_splits=2"
    with pytest.raises(ResultsError, match="2 of 2 cells were not run; the same call goes on with a higher limit"):
        sweep(f"{words} {OVER}", "results/two", workers=1, quiet=True)
    assert len(sweep(words, "results/two", workers=1, quiet=True)) == 8
    sweep(f"{words.replace('cs', 'cs,ww')} {OVER}", "results/two", workers=1, quiet=True)
    assert "1 of 3 cells were not run; the same call goes on with them" in capfd.readouterr().out


@pytest.mark.parametrize("value", ["0", "-1", "soon"])
def test_a_limit_is_a_time(value: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*SWEEP, f"limits.total_seconds={value}"]) == 2
    assert "limits.total_seconds" in capfd.readouterr().err


class Terminal:
    """A stream that says that it is a terminal."""

    def __init__(self, stream: object) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)

    def isatty(self) -> bool:
        """Return true."""
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make standard input and output terminals, whose person says no; return the list of what is asked."""
    questions: list[str] = []
    for name in ("CI", "ADVCLI_CONFIRM"):
        monkeypatch.delenv(name, raising=False)
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(sys, name, Terminal(getattr(sys, name)))
    monkeypatch.setattr("builtins.input", lambda text: questions.append(text) or "n")
    return questions


def test_many_fits_are_asked_for_in_a_terminal(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = terminal(monkeypatch)
    assert main([*SWEEP, "confirm=6"]) == 1
    assert asked == ["go on? [y/N] "]
    err = capfd.readouterr().err
    assert "fits: 6: 0 of searches, before a grid grows, and 6 reported ones" in err
    assert "how long: very roughly" in err
    assert "nothing was computed; confirm=false begins without a question" in err
    assert not Path("results").exists()
    assert main(["dataset=iris", *QUICK, "confirm=2"]) == 1
    assert len(asked) == 2
    monkeypatch.setattr("builtins.input", lambda text: "yes")
    assert main([*SWEEP, "confirm=6"]) == 0
    # nothing is left to compute
    monkeypatch.setattr("builtins.input", lambda text: "no")
    assert main([*SWEEP, "confirm=1"]) == 0


@pytest.mark.parametrize(
    ("words", "variable"), [(["confirm=7"], ""), (["confirm=false"], ""), (["confirm=1"], "ADVCLI_CONFIRM"), (["confirm=1"], "CI")]
)
def test_few_fits_and_people_who_said_so_are_not_asked(words: list[str], variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = terminal(monkeypatch)
    if variable:
        monkeypatch.setenv(variable, "false" if variable == "ADVCLI_CONFIRM" else "1")
    assert main([*SWEEP, "quiet=true", *words]) == 0
    assert asked == []


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_nobody_is_asked_through_a_pipe(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch)
    assert console.asks()
    monkeypatch.setattr(sys, stream, getattr(sys, stream).stream)
    assert not console.asks()


def test_a_question_needs_a_number(capfd: pytest.CaptureFixture[str]) -> None:
    for value in ("true", "0", "often"):
        assert main([*SWEEP, f"confirm={value}"]) == 2
        assert "confirm=" in capfd.readouterr().err
