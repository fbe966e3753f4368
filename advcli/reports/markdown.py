"""Reports in Markdown (with pipe tables)."""

from __future__ import annotations

from .document import Document, ReportTable, Section


def _escape(text: str) -> str:
    return text.replace("|", r"\|").replace("*", r"\*")


def markdown_table(table: ReportTable) -> str:
    """Return a table and the lines below it in Markdown."""
    from tabulate import tabulate

    # A star in Markdown would open emphasis; a bar would end the field.
    body = [[entry.plain(lambda text: f"**{text}**", _escape).replace("|", r"\|") for entry in row] for row in (*table.rows, *table.footer)]
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
    parts = [f"## {section.title}"]
    if section.lines:
        parts.append("\n".join(f"- {_escape(line)}" for line in section.lines))
    for table in section.tables:
        parts += [f"**{_escape(table.caption)}**", markdown_table(table).rstrip("\n")]
    parts += [f"![{_escape(figure.caption)}]({plots}/{figure.name}.svg)" for figure in section.figures]
    if section.details:
        parts.append("\n".join(f"- {_escape(key)}: `{value}`" for key, value in section.details))
    return "\n\n".join(parts)


def markdown(document: Document, plots: str = "plots") -> str:
    """Return a report in Markdown.

    Parameters
    ----------
    document : Document
        The report.
    plots : str
        Folder of the plots as seen from the file.
    """
    head = [f"# {document.title}"]
    if document.lines:
        head.append("\n".join(f"- {_escape(line)}" for line in document.lines))
    return "\n\n".join([*head, *(_section(section, plots) for section in document.sections)]) + "\n"
