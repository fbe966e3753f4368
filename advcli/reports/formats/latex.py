"""Tables of a report in LaTeX with booktabs, to be included in a paper."""

from __future__ import annotations

from .document import Document, ReportTable, TableField

_SPECIAL = {character: f"\\{character}" for character in "{}&%$#_"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def escape(text: str) -> str:
    """Return text that LaTeX prints unchanged."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def _marks(marks: str) -> str:
    return f"$^{{{marks.replace('*', chr(92) + 'ast ')}}}$" if marks else ""


def _entry(entry: TableField) -> str:
    # the mark follows the figure without a gap, like a footnote's
    text = rf"\textbf{{{escape(entry.text)}}}" if entry.strong else escape(entry.text)
    if entry.state in ("failed", "far") and not entry.suffix:
        text = rf"\emph{{{text}}}"
    return text + _marks(entry.marks) + (rf" \emph{{{escape(entry.suffix)}}}" if entry.suffix else "")


def latex_table(table: ReportTable) -> str:
    """Return one table environment; it needs the package booktabs."""
    words = table.n_text_columns

    def line(entries: tuple[TableField, ...]) -> str:
        return "  " + " & ".join(_entry(entry) for entry in entries) + r" \\"

    notes = [escape(note) for note in table.notes]
    return "\n".join(
        [
            r"\begin{table}[htbp]",
            r"\centering",
            rf"\caption{{{escape(table.caption)}}}",
            rf"\label{{tab:{table.name}}}",
            rf"\begin{{tabular}}{{{'l' * words}{'r' * (len(table.columns) - words)}}}",
            r"\toprule",
            "  " + " & ".join(escape(column) for column in table.columns) + r" \\",
            r"\midrule",
            *(line(row) for row in table.rows),
            *([r"\midrule", *(line(row) for row in table.footer)] if table.footer else []),
            r"\bottomrule",
            r"\end{tabular}",
            *([r"\par\smallskip\footnotesize", r"\parbox{\linewidth}{" + r"; ".join(notes) + ".}"] if notes else []),
            r"\end{table}",
        ]
    )


def latex(document: Document) -> str:
    """Return the tables of a report that are short enough for print."""
    tables = [latex_table(table) for table in document.tables if not table.is_long]
    head = ["% Tables for \\input into a document that loads the package booktabs.", f"% {document.title}"]
    return "\n\n".join(["\n".join(head), *tables]) + "\n"
