"""Hydra's flags in argparse of Python 3.14, which looks at every help text when a flag is registered."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def lazy_help_texts() -> Iterator[None]:
    """Let Hydra register a flag whose help is an object that makes its text when it is shown, which argparse would refuse.

    Python 3.14 formats a help text as soon as a flag is added, and raises for what is no text. The object of Hydra 1.3 is left alone, no
    other one is; before 3.14 there is nothing to do.
    """
    check: Any = getattr(argparse.ArgumentParser, "_check_help", None)
    if check is None:
        yield
        return

    def checked(parser: argparse.ArgumentParser, action: argparse.Action) -> None:
        if isinstance(action.help, str) or not type(action.help).__module__.startswith("hydra."):
            check(parser, action)

    setattr(argparse.ArgumentParser, "_check_help", checked)  # noqa: B010  (types know it from 3.14 on)
    try:
        yield
    finally:
        setattr(argparse.ArgumentParser, "_check_help", check)  # noqa: B010
