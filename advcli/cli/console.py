"""What an action says: whole lines on stderr, paths and counts as people read them, the comparison table on stdout."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.notes import code_of
from ..results.progress import warning

_NARROW = 30
"""Columns below which a text is hard to read."""


_silenced: set[str] = set()


def silence(codes: Iterable[str]) -> None:
    """Leave out notes and warnings of these codes (`advcli.core.notes.NOTES`) from now on."""
    _silenced.clear()
    _silenced.update(codes)


def say(text: str) -> None:
    """Write whole lines to stderr in one go: lines of several processes do not mix. Silenced notes are left out."""
    text = "\n".join(line for line in text.split("\n") if code_of(line) not in _silenced)
    if not text:
        return
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


def hyper_words(values: Mapping[str, Any], fixed: Iterable[str]) -> list[str]:
    """Return hyper-parameters as people read them; fixed ones are marked."""
    from ..results.tables import hyper_text

    return [f"{name} = {hyper_text(value)}{' (fixed)' if name in fixed else ''}" for name, value in values.items()]


def filled(text: str, indent: int = 0) -> list[str]:
    """Return a text in lines as wide as the terminal, each behind ``indent`` spaces; no word is broken."""
    return wrap(text, max(terminal_width() - indent, 20), indent)


def wrap(text: str, width: int, indent: int = 0) -> list[str]:
    """Return a text in lines of at most ``width`` columns, each behind ``indent`` spaces; a longer word has a whole line."""
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [f"{'':<{indent}}{line}" for line in lines] or [""]


def terminal_width() -> int:
    """Return the columns of the terminal, or of the environment variable COLUMNS; 80 where there is neither."""
    return shutil.get_terminal_size().columns


def columns(rows: Iterable[Sequence[str]], indent: int = 0, least: int = 0) -> list[str]:
    """Return rows of short texts and one long text in lines as wide as the terminal.

    Short texts are in columns of at least ``least`` characters; the long text, the last one, takes the rest of the line and as many further
    lines as it needs. Where the rest is narrow the long text begins below.
    """
    table = [tuple(map(str, row)) for row in rows]
    widths = [max(least, *map(len, column)) for column in list(zip(*table, strict=True))[:-1]]
    start = indent + sum(widths) + 2 * len(widths)
    room = terminal_width() - start
    below = room < min(_NARROW, max(len(row[-1]) for row in table))
    lines = []
    for *short, text in table:
        head = " " * indent + "".join(f"{word:<{width}}  " for word, width in zip(short, widths, strict=True))
        rest = filled(text, indent + 4 if below else start)
        lines += [head.rstrip(), *rest] if below else [(head + rest[0].lstrip()).rstrip(), *rest[1:]]
    return lines


def print_lines(lines: Mapping[str, Any]) -> None:
    """Print labelled lines one below the other; on a terminal their texts are broken at its width, in a file each is one line."""
    rows = [(f"{key}:", str(text)) for key, text in lines.items()]
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        print("\n".join(columns(rows)))
    else:
        widest = max(len(label) for label, _ in rows)
        print("\n".join(f"{label:<{widest}}  {text}".rstrip() for label, text in rows))


def print_table(summary: Any) -> None:
    """Print the comparison of methods, on a terminal in colour and with lines of notes as wide as it is."""
    from ..reports import comparison_table

    terminal = sys.stdout.isatty()
    table, gap, notes = comparison_table(summary, colour=terminal).partition("\n\n")
    lines = [line for note in notes.splitlines() for line in (filled(note) if terminal else [note])]
    print(table + gap + "\n".join([*lines, ""]))


def asks() -> bool:
    """Return whether a question reaches a person: standard input and output are terminals, and nobody has switched questions off."""
    off = os.environ.get("CI") or os.environ.get("ADVCLI_CONFIRM", "").lower() == "false"
    return not off and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def confirmed(lines: Iterable[str]) -> bool:
    """Print lines and ask whether to go on; anything but a yes is a no."""
    for line in lines:
        say(line)
    return input("go on? [y/N] ").strip().lower() in ("y", "yes")
