"""One text a line, its label before it and a tab between them; an official part a file."""

from __future__ import annotations

from collections.abc import Sequence

from ..catalogue import Upstream
from .rows import TextTable, join


def tables(parts: Sequence[str], upstream: Upstream) -> dict[str, TextTable]:
    """Return the column ``text``, the official part and the label."""
    pairs = [[line.split("\t") for line in part.splitlines()] for part in parts]
    return {"": join([TextTable(["text", "target"], [[text.strip(), label] for label, text in part]) for part in pairs])}
