"""A report as one HTML page that needs nothing else: style, script (in the folder ``page/``) and plots inside, no network."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from .document import MARKS, Document, Figure, ReportTable, Section, TableField

FOLDER = Path(__file__).parent / "page"

# The page asks the browser to refuse any request, should one ever slip in.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"

_PROSE = 40  # longer texts may wrap
_NOTES = 8  # below a table; where there are more, the last ones are folded


def _entry(entry: TableField, words: bool) -> str:
    classes = ["words"] * words
    if len(entry.text) > _PROSE:
        classes.append("prose")
    classes += ["best"] * ("*" in entry.marks) + ["equal"] * ("=" in entry.marks) + [entry.state] * bool(entry.state)
    title = "; ".join(MARKS[mark] for mark in entry.marks if mark in MARKS)
    attributes = f' class="{" ".join(classes)}"' if classes else ""
    if entry.value is not None:
        attributes += f' data-value="{str(float(entry.value)).replace("inf", "Infinity")}"'
    attributes += f' title="{escape(title)}"' if title else ""
    safe = TableField(escape(entry.text), strong=entry.strong, marks=entry.marks, suffix=escape(entry.suffix))
    text = safe.plain(lambda part: f"<b>{part}</b>")
    return f"<td{attributes}>{text}</td>"


def html_table(table: ReportTable) -> str:
    """Return a table whose rows a click on a header sorts."""

    def line(row: tuple[TableField, ...]) -> str:
        return f"<tr>{''.join(_entry(entry, at < table.n_text_columns) for at, entry in enumerate(row))}</tr>"

    words = [' class="words"' if at < table.n_text_columns else "" for at in range(len(table.columns))]
    head = "".join(
        f'<th scope="col"{kind}><button type="button">{escape(column)}</button></th>'
        for kind, column in zip(words, table.columns, strict=True)
    )
    parts = [
        f'<div class="scroll"><table id="{escape(table.name)}">',
        f"<caption><span>{escape(table.caption.removesuffix('.'))}</span></caption>",
        f"<thead><tr>{head}</tr></thead>",
        "<tbody>",
        *map(line, table.rows),
        "</tbody>",
    ]
    if table.footer:
        parts += ["<tfoot>", *map(line, table.footer), "</tfoot>"]
    parts.append("</table></div>")
    shown = table.notes if len(table.notes) <= _NOTES else table.notes[: _NOTES - 1]
    folded = table.notes[len(shown) :]
    parts += [_notes(shown)] * bool(shown)
    parts += [f"<details><summary>{len(folded)} more notes</summary>{_notes(folded)}</details>"] * bool(folded)
    return "\n".join(parts)


def _notes(notes: tuple[str, ...]) -> str:
    return f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in notes)}</ul>'


def inline_svg(figure: Figure) -> str:
    """Return the SVG element of a plot for a page: its black becomes the page's own colour, its ids differ from other plots'."""
    svg = figure.svg[figure.svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{figure.name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{figure.name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{figure.name}-\1)", svg)
    svg = svg.replace("#000000", "currentColor")
    # SVG text is black by default
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(figure.caption)}" fill="currentColor" ', 1)


def _figure(figure: Figure) -> str:
    return f'<figure id="figure-{figure.name}">\n{inline_svg(figure)}\n<figcaption>{escape(figure.caption)}</figcaption>\n</figure>'


def _lines(lines: tuple[str, ...]) -> list[str]:
    return [f'<ul class="lines">{"".join(f"<li>{escape(line)}</li>" for line in lines)}</ul>'] if lines else []


def _folded(table: ReportTable) -> str:
    return f"<details><summary>{escape(table.caption.removesuffix('.'))}</summary>\n{html_table(table)}\n</details>"


def _section(section: Section) -> str:
    parts = [f'<section id="{escape(section.name)}">', f"<h2>{escape(section.title)}</h2>", *_lines(section.lines)]
    plots = "\n".join(map(_figure, section.figures))
    figures = [f'<div class="figures{" one" * (len(section.figures) == 1)}">\n{plots}\n</div>'] if section.figures else []
    short = [html_table(table) for table in section.tables if not table.is_long]
    long = [_folded(table) for table in section.tables if table.is_long]
    parts += [*short, *figures, *long]
    if section.details:
        pairs = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in section.details)
        parts.append(f"<details><summary>settings that all cells have in common</summary>\n<dl>{pairs}</dl>\n</details>")
    return "\n".join([*parts, "</section>"])


def html_page(document: Document) -> str:
    """Return a report as one HTML page."""
    style, script = ((FOLDER / name).read_text(encoding="utf-8") for name in ("style.css", "sort.js"))
    links = "".join(f'<li><a href="#{escape(section.name)}">{escape(section.title)}</a></li>' for section in document.sections)
    body = "\n".join([*_lines(document.lines), f"<nav><ul>{links}</ul></nav>", *map(_section, document.sections)])
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(document.title)}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<h1>{escape(document.title)}</h1>
{body}
<script>
{script}</script>
</body>
</html>
"""
