"""Folders and files that actions read and write."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import Settings
from ..errors import ConfigError, ResultsError, nearest
from ..files import destination, reason
from .console import say, short

if TYPE_CHECKING:
    from ..records import ResultsFolder


def existing_folder(settings: Settings) -> Path:
    """Return the results folder that was asked for."""
    path = settings.results or settings.folder
    if not path.is_dir():
        others = [entry.name for entry in path.parent.iterdir() if entry.is_dir()] if path.parent.is_dir() else []
        hint = f"; {nearest(path.name, others)}" if others else ""
        raise ResultsError(f"no results folder {short(path)}{hint}")
    return path


def refuse_unwritable(path: Path, *inputs: str | Path | None) -> None:
    """Refuse an output that cannot be written, or would replace an input, before the work is done."""
    for other in inputs:
        if other is not None and path.exists() and Path(other).expanduser().exists() and path.samefile(Path(other).expanduser()):
            raise ConfigError(f"out={short(path)} is also an input; choose another file")
    if path.is_dir():
        raise ConfigError(f"out={short(path)} is a folder; give the name of a file")
    try:
        target, stream = destination(path)
    except OSError as error:
        raise ConfigError(f"out={short(path)}: {reason(error)}; choose another file") from error
    if stream:
        return
    if not target.parent.is_dir():
        raise ConfigError(f"out={short(path)}: there is no folder {short(target.parent)}; make it first")
    if not os.access(target.parent, os.W_OK):
        raise ConfigError(f"out={short(path)}: the folder {short(target.parent)} cannot be written; choose another one")


def beside(path: Path) -> Callable[[str], None]:
    """Return what says how an output was made: `print`, unless the output may be what is printed to; then stderr takes it."""
    return say if destination(path)[1] else print


def unmake(folder: ResultsFolder, made: list[Path]) -> None:
    """Remove the results folder that this start made, innermost first, unless another process uses it."""
    if made and folder.abandon():
        for parent in made[1:]:
            with contextlib.suppress(OSError):
                parent.rmdir()  # only if empty
