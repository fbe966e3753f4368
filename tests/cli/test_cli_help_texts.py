"""Hydra's flags under argparse of Python 3.14, imitated: it formats every help text as soon as a flag is added."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from hydra._internal.utils import get_args_parser

from advcli.cli import main
from advcli.cli.help_texts import lazy_help_texts

pytestmark = pytest.mark.usefixtures("elsewhere")


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make argparse check help texts as 3.14 does, and return the texts that it looked at."""
    seen: list[str] = []
    add = argparse._ActionsContainer.add_argument

    def check_help(parser: Any, action: argparse.Action) -> None:
        if not action.help:
            return
        try:
            if "%" in action.help:  # TypeError for an object that is no text
                parser._get_formatter()._expand_help(action)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError("badly formed help string") from error
        seen.append(action.help)

    def add_argument(container: Any, *names: Any, **options: Any) -> argparse.Action:
        action = add(container, *names, **options)
        getattr(container, "_check_help", lambda _: None)(action)
        return action

    monkeypatch.setattr(argparse.ArgumentParser, "_check_help", check_help, raising=False)
    monkeypatch.setattr(argparse._ActionsContainer, "add_argument", add_argument)
    return seen


def test_without_the_guard_hydra_cannot_register_its_flags(strict: list[str]) -> None:
    with pytest.raises(ValueError, match="badly formed help string"):
        get_args_parser()
    with lazy_help_texts():
        get_args_parser()
    with pytest.raises(ValueError, match="badly formed help string"):
        get_args_parser()


def test_only_hydras_objects_are_left_alone(strict: list[str]) -> None:
    with lazy_help_texts():
        parser = argparse.ArgumentParser()
        parser.add_argument("--share", help="in %% of the rows")
        for wrong in ("100 % of the rows", 3):
            with pytest.raises(ValueError, match="badly formed help string"):
                parser.add_argument(f"--other-{wrong}", help=wrong)  # type: ignore[arg-type]
    assert "in %% of the rows" in strict


def test_the_command_line_works(strict: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main(["dataset=iris", "--cfg", "job"]) == 0
    assert main(["dataset=iris", "loss=cs", "hyper.C=1", "protocol.n_splits=1", "name=one"]) == 0
    assert "cs linear: error" in capsys.readouterr().out or strict
    assert "Application's help" in strict
