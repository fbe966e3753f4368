"""The result of a check as Markdown: a table for a pull request."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ...core.errors import ConfigError
from ...core.files import read_regular, write_text
from ..formats.document import counted
from .check import STATUSES, Change

HEADING = "### advcli check"
"""How such a file begins."""
MOST_ROWS = 50
_SHOWN = {"moved": "moved", "missing": "missing", "stale": "made by other versions", "better": "better", "new": "new"}


def check_markdown(changes: Sequence[Change], name: str, *, finding: str = "", failed: bool = False) -> str:
    """Return the check of a baseline of that name as Markdown: the verdict, the entries that are not as they were, and the counts."""
    rows = [change for change in changes if change.status in _SHOWN]
    order = list(_SHOWN)
    rows.sort(key=lambda change: order.index(change.status))
    lines = [f"{HEADING} {_cell(name)}: {'failed' if failed else 'passed'}", ""]
    lines += [_cell(finding), ""] if finding else []
    if rows:
        lines += ["| | data set | method | metric | baseline | now | reason |", "|---|---|---|---|---:|---:|---|"]
        lines += [f"| {' | '.join(map(_cell, _fields(change)))} |" for change in rows[:MOST_ROWS]]
        lines += [f"\n{len(rows) - MOST_ROWS} more entries are not shown." if len(rows) > MOST_ROWS else ""]
    numbers = {status: sum(change.status == status for change in changes) for status in STATUSES}
    counts = ", ".join(f"{number} {status}" for status, number in numbers.items() if number)
    lines.append(f"{counted(len(changes), 'entry', 'entries')}: {counts}")
    return "\n".join(lines) + "\n"


def error_markdown(error: str) -> str:
    """Return Markdown of a check that came to no verdict."""
    return f"{HEADING}: no result\n\n{_cell(error)}\n"


def _fields(change: Change) -> tuple[str, ...]:
    status = f"**{_SHOWN[change.status]}**" if change.failed else _SHOWN[change.status]
    old, new = change.shown
    return status, change.dataset, change.method, change.metric, old, new, change.reason


def _cell(text: str) -> str:
    """Return a text escaped for a field of a table."""
    plain = " ".join(str(text).split())
    return plain.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _is_step(path: Path) -> bool:
    """Tell whether a file is the page of a GitHub job, which has the summaries of other steps."""
    step = os.environ.get("GITHUB_STEP_SUMMARY")
    return bool(step) and Path(str(step)).absolute() == path


def _content(path: Path) -> bytes:
    return read_regular(path) if path.exists() else b""


def refuse_other(path: Path) -> None:
    """Refuse a file that is there already and no summary of a check."""
    if not _is_step(path) and (there := _content(path).strip()) and not there.startswith(HEADING.encode()):
        raise ConfigError(f"{path} is there already and no summary of a check; choose another summary=FILE.md")


def write_summary(path: Path, text: str) -> None:
    """Write a summary; to the page of a GitHub job it is added."""
    refuse_other(path)
    write_text(path, (_content(path).decode() if _is_step(path) else "") + text, "choose another summary=FILE.md")
