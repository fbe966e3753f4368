"""What makes no sense in the labels or the protocol is said before any work, whether or not there is a search."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest

from advcli.cli import main
from advcli.config.presets import names
from advcli.config.words import command
from advcli.core.errors import MOST, ConfigError, readable

pytestmark = pytest.mark.usefixtures("elsewhere")

RUN = ["dataset=csv", "dataset.path=t.csv", "dataset.target=y", "hyper.C=1", "protocol.n_splits=2", "name=x"]


def table(labels: list[str]) -> None:
    Path("t.csv").write_text("u,v,y\n" + "".join(f"{at % 7},{at % 5},{label}\n" for at, label in enumerate(labels)))


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([f"name {at}" for at in range(60)], "60 of its 60 rows are the only ones of their class; is dataset.target the right column?"),
        (["a", "b" * 300_000] * 30, "a label of 300000 characters ('bbbbbbbbbbbbbbbbbbbb' and so on), more than 1000"),
    ],
)
def test_labels_that_are_none(labels: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    table(labels)
    assert main(RUN) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert said in line
    assert len(line) < MOST + 100
    assert not Path("results").exists()


def test_a_class_that_occurs_once_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    table([*"ab" * 29, "c", "d"])
    assert main(RUN) == 0
    assert "classes that occur once are in one part of a split alone: c, d; merge or remove them" in capfd.readouterr().err
    assert main([*RUN, "dataset.allow_small_classes=true", "name=y"]) == 0
    assert "occur once" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("protocol.stage1.regularisation=3", "protocol.stage1.regularisation=3 is no list; give protocol.stage1.regularisation=[3]"),
        ("protocol.stage2.regularisation=true", "protocol.stage2.regularisation=True is no list"),
        ("protocol.extend.regularisation=5", "protocol.extend.regularisation=5 is no list"),
        ("protocol.rough_per_class=1000000", "is more rows than any class has; the largest of iris has 50"),
    ],
)
def test_amounts_of_the_protocol(word: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=iris", "loss=zero_one", word]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert said in line
    assert not Path("results").exists()


def test_lines_for_people_keep_their_ends() -> None:
    assert readable("  one\n two ") == "one two"
    line = ConfigError("wrong: " + "x" * 5237 + "; do this").lines[0]
    assert line.startswith("wrong: x")
    assert line.endswith("; do this")
    assert len(line) < MOST + 50


def test_commands_can_be_pasted() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        value = "results/" + "".join(random.choice(list("ab c'\"(),$[]{}\\&;é")) for _ in range(6))
        words = shlex.split(command("drop", results=value))
        assert words[:2] == ["advcli", "drop"]
        assert len(words) == 3
    assert command("report", results="results/a b") == "advcli report 'results=results/a b'"


def test_a_warning_is_a_line_of_ours(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    from advcli.cli.actions.data import Data

    monkeypatch.setattr(Data, "act", lambda *_: warnings.warn("something\nodd", UserWarning, stacklevel=99))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["data", "list"]) == 0
    assert capfd.readouterr().err == "advcli: warning: something odd\n"


def test_the_first_preset_is_the_one_to_begin_with() -> None:
    assert names()[0] == "quickstart"
    assert names()[1:] == sorted(names()[1:])
