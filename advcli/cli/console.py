"""What an action says: whole lines on stderr, paths and counts as people read them, the comparison table on stdout."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..results.progress import warning


def say(text: str) -> None:
    """Write whole lines to stderr in one go: lines of several processes do not mix."""
    sys.stderr.flush()
    sys.stderr.write(f"{text}\n" if text.startswith(("[", "advcli: ")) else f"advcli: {text}\n")
    sys.stderr.flush()


def warn(texts: Iterable[str]) -> None:
    """Write a line for each warning to stderr."""
    for text in texts:
        say(warning(text))


def short(path: Path) -> str:
    """Return a path as seen from here if it lies below, so that it can be copied into the next command."""
    with contextlib.suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def counted(cells: int) -> str:
    """Return a number of cells in words."""
    return "1 cell" if cells == 1 else f"{cells} cells"


def hyper_words(values: Mapping[str, Any], fixed: Iterable[str]) -> list[str]:
    """Return hyper-parameters as people read them, those that were fixed marked."""
    from ..results.tables import hyper_text

    return [f"{name} = {hyper_text(value)}{' (fixed)' if name in fixed else ''}" for name, value in values.items()]


def print_lines(lines: Mapping[str, Any], width: int | None = None) -> None:
    """Print labelled lines one below the other, their texts broken at ``width`` columns."""
    from tabulate import tabulate

    print(tabulate([[f"{key}:", text] for key, text in lines.items()], tablefmt="plain", disable_numparse=True, maxcolwidths=[None, width]))


def print_table(summary: Any) -> None:
    """Print the comparison of methods, in colour on a terminal."""
    from ..reports import comparison_table

    print(comparison_table(summary, colour=sys.stdout.isatty()))
