"""Folders and files that actions read and write."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import STARTED, Settings
from ..core.errors import ConfigError, ResultsError, nearest
from ..core.files import destination, reason
from ..core.paths import expanded
from .console import say, short

if TYPE_CHECKING:
    from ..results.folder import ResultsFolder


def existing_folders(settings: Settings) -> list[Path]:
    """Return the results folders that were asked for, each once."""
    paths = list(dict.fromkeys(settings.results or (settings.folder,)))
    if not settings.results and settings.name == os.environ.get(STARTED) and not settings.folder.is_dir():
        raise ResultsError(f"no results folder is given; {_newest(settings.results_dir)}")
    for path in paths:
        if not path.is_dir():
            others = [entry.name for entry in path.parent.iterdir() if entry.is_dir()] if path.parent.is_dir() else []
            hint = f"; {nearest(path.name, others)}" if others else ""
            raise ResultsError(f"no results folder {short(path)}{hint}")
    return paths


def _newest(results_dir: Path) -> str:
    """Return the clause that offers the newest results folder."""
    from ..results.folder import overview

    runs = overview(results_dir)
    if not runs:
        return f"there are none in {short(results_dir)}: advcli -m dataset=iris,wine name=first makes one"
    newest = max(runs, key=lambda run: run["ended"] or "")["name"]
    return f"the newest is results={shlex.quote(short(results_dir / str(newest)))} (advcli runs list shows all)"


def existing_folder(settings: Settings) -> Path:
    """Return the results folder that was asked for; several are for tables alone."""
    path, *more = existing_folders(settings)
    if more:
        raise ConfigError(f"results=[...] of {len(more) + 1} folders is for advcli report and advcli export; give one folder")
    return path


def list_of_folders(words: Iterable[str]) -> list[str]:
    """Return the words of a command in which folders between commas, ``results=a,b``, have become a list."""
    return [
        f"results=[{value}]" if key == "results" and "," in value and value[0] not in "[\"'" else word
        for word in words
        for key, _, value in [word.partition("=")]
    ]


def refuse_file(path: Path, remedy: str = "give the name of a folder") -> None:
    """Refuse a file where an output is a folder."""
    if path.exists() and not path.is_dir():
        raise ConfigError(f"out={short(path)} is a file; {remedy}")


def refuse_unwritable(path: Path, *inputs: str | Path | None) -> None:
    """Refuse an output that cannot be written, or would replace an input, before the work is done."""
    for other in inputs:
        if other is not None and path.exists() and expanded(other).exists() and path.samefile(expanded(other)):
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
