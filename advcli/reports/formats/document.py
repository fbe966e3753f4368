"""What a report says, apart from how a format writes it: sections of text, tables and figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...metrics import shown_as

MARKS = {"*": "best mean", "=": "not significantly worse than the best", "!": "a fit did not converge"}
"""Marks behind the figures of a table and what they mean."""
_MOST = 6  # names in a line


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number of things in words; without ``several`` the plural has an s."""
    return f"{count} {one if count == 1 else several or one + 's'}"


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Return names in a line, the first of many and the number of the others."""
    return between.join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")


def file_word(text: str) -> str:
    """Return a text as a word that a file or an anchor of a page may be named by."""
    return re.sub(r"\W+", "-", text.replace("_", "-")).strip("-") or "x"


def metric_word(metric: str) -> str:
    """Return the word that names tables and files of a metric: the shown metric, ``accuracy`` for the error."""
    return shown_as(metric).name.replace("_", "-") or "none"


@dataclass(frozen=True)
class TableField:
    """One field of a table."""

    text: str
    value: float | None = None  # what a page sorts by; None sorts by the text, nan goes last
    strong: bool = False
    marks: str = ""  # any of `MARKS`
    suffix: str = ""  # plain words after the marks
    state: str = ""  # what a page colours: failed, missing or far

    def plain(self, strong: Callable[[str], str] = str, marks: Callable[[str], str] = str) -> str:
        """Return the field as text, its bold part and its marks as the two functions write them."""
        parts = [strong(self.text) if self.strong else self.text, marks(self.marks), self.suffix]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class ReportTable:
    """A table."""

    name: str  # a word of letters, digits and hyphens that no other table of the report has
    caption: str  # one sentence
    columns: tuple[str, ...]
    rows: tuple[tuple[TableField, ...], ...]
    footer: tuple[tuple[TableField, ...], ...] = ()  # not sorted
    notes: tuple[str, ...] = ()  # lines below the table
    n_text_columns: int = 1  # how many from the left hold words
    is_long: bool = False  # for pages only: too long for print


@dataclass(frozen=True)
class Figure:
    """A plot."""

    name: str  # of its files without the ending
    caption: str  # one sentence
    svg: str  # its SVG text, whose texts and lines are black
    pdf: bytes
    png: bytes = b""  # on white ground, where one was asked for


@dataclass(frozen=True)
class Section:
    """A section: lines of text, then tables, then figures; ``details`` are (key, value) lines that a page can fold away."""

    name: str
    title: str
    lines: tuple[str, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    lines: tuple[str, ...] = ()
    sections: tuple[Section, ...] = field(default=())

    @property
    def tables(self) -> tuple[ReportTable, ...]:
        """All tables in order."""
        return tuple(table for section in self.sections for table in section.tables)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures in order."""
        return tuple(figure for section in self.sections for figure in section.figures)
