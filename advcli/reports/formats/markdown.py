"""Reports in Markdown (with pipe tables)."""

from __future__ import annotations

import re
from dataclasses import replace

from .document import Document, ReportTable, Section, TableField


def _escape(text: str) -> str:
    """Return a text of the data as Markdown shows it: no tag, entity, emphasis or end of a field begins in it."""
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text)
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text).replace("|", r"\|").replace("*", r"\*")


def _code(text: str) -> str:
    """Return a text as code, between more backticks than it has in a row."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    gap = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{gap}{text}{gap}{fence}"


def _field(entry: TableField) -> str:
    entry = replace(entry, text=_escape(entry.text), marks=_escape(entry.marks), suffix=_escape(entry.suffix))
    return entry.plain(lambda text: f"**{text}**")


def markdown_table(table: ReportTable) -> str:
    """Return a table and the lines below it in Markdown."""
    from tabulate import tabulate

    body = [[_field(entry) for entry in row] for row in (*table.rows, *table.footer)]
    words = table.n_text_columns
    text = tabulate(
        body,
        [_escape(column) for column in table.columns],
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["left"] * words + ["right"] * (len(table.columns) - words) if body else None,
    )
    notes = [f"- {_escape(note)}" for note in table.notes]
    return "\n".join([text, *(["", *notes] if notes else [])]) + "\n"


def _section(section: Section, plots: str) -> str:
    parts = [f"## {_escape(section.title)}"]
    if section.lines:
        parts.append("\n".join(f"- {_escape(line)}" for line in section.lines))
    for table in section.tables:
        parts += [f"**{_escape(table.caption)}**", markdown_table(table).rstrip("\n")]
    parts += [f"![{_escape(figure.caption)}]({plots}/{figure.name}.svg)" for figure in section.figures]
    if section.details:
        parts.append("\n".join(f"- {_escape(key)}: {_code(value)}" for key, value in section.details))
    return "\n\n".join(parts)


def markdown(document: Document, plots: str = "plots") -> str:
    """Return a report in Markdown; ``plots`` is the folder of the plots as seen from the file."""
    head = [f"# {_escape(document.title)}"]
    if document.lines:
        head.append("\n".join(f"- {_escape(line)}" for line in document.lines))
    return "\n\n".join([*head, *(_section(section, plots) for section in document.sections)]) + "\n"
