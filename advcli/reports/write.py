"""Report files of a results folder."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..core.errors import AdvcliError, ConfigError, ResultsError, UnknownNameError, nearest
from ..core.files import csv_text, write_bytes, write_text
from ..core.spreadsheets import as_text
from ..metrics import names as metric_names
from ..results.folder import ResultsFolder
from ..results.tables import format_value, plain
from ..statistics.marks import DEFAULT, Significance
from .choice import Choice
from .comparison import comparison_table, missed_lines, result_entry, selected_by
from .curves import curve_points
from .drawing import svg_only
from .figures import is_of
from .formats.html_page import html_page
from .formats.latex import latex
from .formats.markdown import markdown
from .sections.content import Contents, contents, shown_metrics
from .sections.facts import read_facts
from .sources import Sources
from .summary import in_order, summarise

PLOTS = "plots"
"""Folder of the plots inside a results folder."""
PAGE_CELLS = 2000
"""A sweep of more cells does not wait for a page at its end."""


def write_reports(
    folder: ResultsFolder | Sequence[ResultsFolder],
    significance: Significance = DEFAULT,
    metric: str | None = None,
    notes: Sequence[str] = (),
    *,
    full: bool = False,
    page: bool = False,
    published: str | None = None,
    choice: Choice | None = None,
    out: Path | None = None,
    spreadsheets: bool = False,
) -> pd.DataFrame:
    """Write reports of the cells of a folder, or of several for one table, from their rows alone; return the summary with shown names.

    Without ``out`` the tables of the cells are merged first, and the folder is locked from then on: of two processes that end together
    neither writes what it has read before the other. With ``out``, which several folders need, they are only read. The sweep may be
    partial.

    Always written are summary.csv (all metrics) and table.md (one metric: ``metric``, default the metric of the searches). The
    ``full`` report adds table.csv (the comparison tables, one row per metric and data set), wins.csv, pairs.csv (tests across data sets),
    published.csv, report.md, report.tex, report.html and plots/; the ``page`` alone is report.html, with its plots inside, and what keeps
    it from being made is a remark. ``published`` names numbers to set beside ours (`published_keys`), default the key ``published`` of the
    configuration in provenance.json. Files of numbers keep the names of rows, whatever the choice. With ``spreadsheets`` texts in CSV
    files that look like formulas get an apostrophe. ``attrs["files"]`` of the summary names what was written, ``attrs["remarks"]`` are
    lines to say.
    """
    folders = [folder] if isinstance(folder, ResultsFolder) else list(folder)
    if out is None and len(folders) > 1:
        raise ConfigError("tables of several results folders need out=FOLDER, where they are written")
    locked = folders[0].locked(remedy="out=FOLDER takes the tables elsewhere") if out is None else contextlib.nullcontext()
    with locked:
        sources = Sources(folders, merge=out is None)
        report = _ReportFiles(sources, choice or Choice(), significance, metric, notes, published)
        report.make(full, page)
        return report.write(folders[0].path if out is None else out, out is not None, spreadsheets)


class _ReportFiles:
    """The files of a report, by name, and the lines to say."""

    def __init__(
        self, sources: Sources, choice: Choice, significance: Significance, metric: str | None, notes: Sequence[str], published: str | None
    ) -> None:
        self.sources, self.notes, self.published = sources, notes, published
        self.runs, self.names = choice.rows(sources.runs)
        if metric is not None:
            _refuse_unknown(metric, self.runs, sources)
        self.summary = summarise(self.runs, significance)
        if metric is not None:
            self.summary.attrs["primary"] = metric
        shown = self.names.shown(self.runs)
        self.summary.attrs |= {"selected": selected_by(shown, sources.selected), "missed": missed_lines(shown, sources.missed)}
        self.summary.attrs["units"] = {self.names.datasets.get(name, name): unit for name, unit in sources.units.items()} | sources.units
        self.files = {"summary.csv": _csv(self.summary)}
        self.shown = self.names.shown(self.summary)
        self.files["table.md"] = comparison_table(self.shown, style="markdown", notes=notes)
        self.remarks = [*sources.remarks]
        self.contents: Contents | None = None

    def make(self, full: bool, page: bool) -> None:
        """Add the files of the full report, or its page alone, for which a folder of too many cells does not wait."""
        if full:
            self.contents = self._contents()
            self.files |= _texts(self.contents, self.summary, curve_points(self.runs))
        elif page and self.runs["cell"].nunique() > PAGE_CELLS:
            self.remarks.append(f"no report.html: more than {PAGE_CELLS} cells; advcli report results=... writes it")
        elif page:
            try:
                with svg_only():
                    self.files["report.html"] = html_page(self._contents().document)
            except AdvcliError as error:
                self.remarks.append(f"no report.html: {error}")

    def _contents(self) -> Contents:
        facts = read_facts(self.sources, self.runs["cell"])
        keys = ((document.get("config") or {}).get("published") for document in facts.provenance.values())
        key = self.published or next((key for key in keys if key), None)
        report = contents(self.sources.name, self.runs, self.summary, published=key, facts=facts, notes=self.notes, names=self.names)
        self.remarks += [f"disagrees with the published number: {line}" for line in report.far]
        return report

    def write(self, place: Path, new: bool, spreadsheets: bool) -> pd.DataFrame:
        """Write all files, into a folder that may be new, and return the shown summary."""
        if new:
            _make(place, "out=")
        for name, text in self.files.items():
            write_text(place / name, _as_texts(text) if spreadsheets and name.endswith(".csv") else text)
        files = list(self.files)
        if self.contents is not None:
            files += _write_plots(place / PLOTS, self.contents)
            if self.contents.published is None:
                # left from a report with published numbers it would look like a part of this one
                with contextlib.suppress(OSError):
                    (place / "published.csv").unlink()
        self.shown.attrs |= {"files": files, "remarks": self.remarks}
        return self.shown


def _make(place: Path, key: str) -> None:
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise ResultsError(f"cannot create {place}: {error.strerror}; choose another {key}") from error


def _refuse_unknown(metric: str, runs: pd.DataFrame, sources: Sources) -> None:
    """Refuse a metric that no row has, and say how cells with kept predictions get it."""
    recorded = list(dict.fromkeys(name for name in runs["metric"] if name))
    if metric in recorded:
        return
    if metric in metric_names() and any(sources.about(cell).get("predictions") for cell in runs["cell"].unique()):
        listed = ",".join([*recorded, metric])
        remedy = f"predictions are kept: the sweep's own command with protocol.metrics=[{listed}] adds it without a fit"
        raise ConfigError(f"report.metric={metric} is not recorded; {remedy}")
    raise UnknownNameError(f"no rows with the metric {metric!r}; {nearest(metric, recorded)}")


def _csv(frame: pd.DataFrame) -> str:
    # An undefined number is an empty field, as in runs.csv.
    rows = (["" if value != value else format_value(value) for value in map(plain, row)] for row in frame.itertuples(index=False))
    return csv_text([frame.columns, *rows])


def _as_texts(table: str) -> str:
    """Return a table in CSV whose cells that look like formulas are texts."""
    return csv_text([as_text(cell) for cell in row] for row in csv.reader(io.StringIO(table)))


def _texts(report: Contents, summary: pd.DataFrame, points: pd.DataFrame) -> dict[str, str]:
    """Return the files of the full report beside its plots."""
    files = {
        "table.csv": _wide_csv(summary),
        "wins.csv": _csv(report.wins),
        "pairs.csv": _csv(report.pairs),
        "report.md": markdown(report.document, PLOTS),
        "report.tex": latex(report.document),
        "report.html": html_page(report.document),
    }
    tables = {"published.csv": report.published, "curves.csv": points if len(points) else None, "learning.csv": report.learning}
    return files | {name: _csv(table) for name, table in tables.items() if table is not None}


def _wide_csv(summary: pd.DataFrame) -> str:
    """Return the comparison tables as one CSV: for every method its mean, its deviation and its marks."""
    methods = in_order(summary["method"])
    lines = []
    for metric in shown_metrics(summary):
        part = summary[summary["metric"] == metric]
        for dataset, rows in part.groupby("dataset", sort=True, observed=True):
            line = {"metric": metric, "dataset": dataset} | {f"{method} mark": "missing" for method in methods}
            for row in rows.to_dict("records"):
                mark = "" if len(methods) == 1 else "best" if row["best"] else "not worse" if row["bold"] else ""
                mark = result_entry(row, metric).state or mark
                line |= {f"{row['method']} {what}": value for what, value in (("mean", row["mean"]), ("std", row["std"]), ("mark", mark))}
            lines.append(line)
    columns = ["metric", "dataset", *(f"{method} {what}" for method in methods for what in ("mean", "std", "mark"))]
    return _csv(pd.DataFrame(lines, columns=columns))


def _write_plots(place: Path, report: Contents) -> list[str]:
    """Write the plots of a report, and remove plots of an earlier report, which would look like a part of this one; return their names."""
    names: list[str] = []
    if report.document.figures:
        _make(place, "results_dir")
    for figure in report.document.figures:
        for kind, content in (("svg", figure.svg.encode()), ("pdf", figure.pdf), ("png", figure.png)):
            if content:  # a user's figure may have fewer
                write_bytes(place / f"{figure.name}.{kind}", content)
                names.append(f"{PLOTS}/{figure.name}.{kind}")
    for old in [path for kind in ("svg", "pdf", "png") for path in place.glob(f"*.{kind}")]:
        if f"{PLOTS}/{old.name}" not in names and is_of(old.stem):
            with contextlib.suppress(OSError):
                old.unlink()
    return names
