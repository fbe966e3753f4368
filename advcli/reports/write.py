"""Report files of a results folder."""

from __future__ import annotations

import contextlib
import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.errors import AdvcliError, ConfigError, ResultsError, nearest
from ..core.files import write_bytes, write_text
from ..core.spreadsheets import as_text
from ..metrics import names as metric_names
from ..results.folder import ResultsFolder
from ..results.tables import format_value, plain
from ..statistics.marks import DEFAULT, Significance
from .choice import Choice, Names
from .comparison import comparison_table, result_entry
from .curves import CURVE_COLUMNS, curve_points
from .drawing import svg_only
from .figures import LEARNING_COLUMNS, is_of
from .formats.html_page import html_page
from .formats.latex import latex
from .formats.markdown import markdown
from .remarks import missed_lines, selected_by
from .sections.content import Contents, contents, shown_metrics
from .sections.facts import read_facts
from .sources import Sources
from .summary import SUMMARY_COLUMNS, in_order, summarise

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
    """Write reports of the cells of a folder, or of several for one table, from their rows alone.

    Without ``out`` the tables of the cells are merged first, and the folder is locked from then on: of two processes that end together
    neither writes what it has read before the other. With ``out`` the folders are only read, and may lie where nobody can write.

    Works on a finished or a partial sweep. Always written are summary.csv (all metrics) and table.md (one metric). The full
    report adds table.csv (the comparison tables, one row per metric and data set), wins.csv, pairs.csv (tests across data sets),
    published.csv, report.md, report.tex, report.html and the folder plots/. The page alone is report.html, with its plots inside.

    Parameters
    ----------
    folder : ResultsFolder or sequence of ResultsFolder
    significance : Significance
        Test, level and correction of the marks.
    metric : str, optional
        Metric of table.md, and the first one of the full report; default the one that the searches used.
    notes : sequence of str
        Lines below the tables.
    full : bool
        Whether to write the full report.
    page : bool
        Whether to write its page alone, as at the end of a sweep, where what keeps the page from being made is a remark; a folder of more
        than `PAGE_CELLS` cells gets none.
    published : str, optional
        Name of published numbers to set beside ours (`advcli.reports.published_numbers.published_keys`); default: what the key
        ``published`` of the configuration in provenance.json says. Only for the full report and the page.
    choice : Choice, optional
        Methods and data sets that are shown, their order and their names; default all. Files of numbers keep the names of rows.
    out : Path, optional
        Where the reports are written; default the folder, and needed for several.
    spreadsheets : bool
        Whether texts in CSV files that look like formulas get an apostrophe (`advcli.core.spreadsheets`).

    Returns
    -------
    DataFrame
        The summary, with the names that are shown; give it to `comparison_table` for the terminal. ``attrs["files"]`` names what was
        written, seen from the folder; ``attrs["remarks"]`` are lines to say: in what folders differ, cells that disagree with published
        numbers, and why there is no page. ``attrs["published"]`` are published numbers beside ours, if they were asked for.

    Raises
    ------
    ResultsError
        If there are no rows or the files cannot be written.
    ConfigError
        For an unknown metric, name of published numbers, method or data set, and several folders without a place to write to; nothing is
        written then.
    """
    folders = [folder] if isinstance(folder, ResultsFolder) else list(folder)
    if out is None and len(folders) > 1:
        raise ConfigError("tables of several results folders need out=FOLDER, where they are written")
    asked: dict[str, Any] = {"significance": significance, "metric": metric, "notes": notes, "full": full, "page": page}
    asked |= {"published": published, "choice": choice, "out": out, "spreadsheets": spreadsheets}
    if out is not None:
        return _write(Sources(folders, merge=False), out, **asked)
    with folders[0].locked(remedy="out=FOLDER takes the tables elsewhere"):
        return _write(Sources(folders), folders[0].path, **asked)


def _write(
    sources: Sources,
    place: Path,
    *,
    significance: Significance,
    metric: str | None,
    notes: Sequence[str],
    full: bool,
    page: bool,
    published: str | None,
    choice: Choice | None,
    out: Path | None,
    spreadsheets: bool,
) -> pd.DataFrame:
    """Write what `write_reports` was asked for into a folder, and return the summary."""
    runs, names = (choice or Choice()).rows(sources.runs)
    if metric is not None:
        _refuse_unknown(metric, runs, sources)
    summary = summarise(runs, significance)
    if metric is not None:
        summary.attrs["primary"] = metric
    shown_runs = names.shown(runs)
    summary.attrs |= {"selected": selected_by(shown_runs, sources.selected), "missed": missed_lines(shown_runs, sources.missed)}
    files = {"summary.csv": _csv(summary, SUMMARY_COLUMNS)}
    shown = names.shown(summary)
    files["table.md"] = comparison_table(shown, style="markdown", notes=notes)
    remarks = [*sources.remarks]
    report: Contents | None = None
    if full:
        report = _contents(sources, runs, summary, published, notes, names)
        files |= _texts(report, summary)
        points = curve_points(runs)
        if len(points):
            files["curves.csv"] = _csv(points, CURVE_COLUMNS)
        if report.learning is not None:
            files["learning.csv"] = _csv(report.learning, LEARNING_COLUMNS)
    elif page and runs["cell"].nunique() > PAGE_CELLS:
        remarks.append(f"no report.html: more than {PAGE_CELLS} cells; advcli report results=... writes it")
    elif page:
        try:
            with svg_only():
                of_page = _contents(sources, runs, summary, published, notes, names)
            files["report.html"] = html_page(of_page.document)
            remarks += [f"disagrees with the published number: {line}" for line in of_page.far]
        except AdvcliError as error:
            remarks.append(f"no report.html: {error}")
    if report is not None:
        remarks += [f"disagrees with the published number: {line}" for line in report.far]
    if out is not None:
        try:
            out.mkdir(exist_ok=True)
        except OSError as error:
            raise ResultsError(f"cannot create {out}: {error.strerror}; choose another out=") from error
    for name, text in files.items():
        write_text(place / name, _as_texts(text) if spreadsheets and name.endswith(".csv") else text)
    if report is not None:
        files |= dict.fromkeys(_write_plots(place, report), "")
        if report.published is None:
            # left from a report with published numbers it would look like a part of this one
            with contextlib.suppress(OSError):
                (place / "published.csv").unlink()
    shown.attrs |= {"files": list(files), "remarks": remarks}
    return shown


def _refuse_unknown(metric: str, runs: pd.DataFrame, sources: Sources) -> None:
    """Refuse a metric that no row has, and say how cells with kept predictions get it."""
    recorded = list(dict.fromkeys(name for name in runs["metric"] if name))
    if metric in recorded:
        return
    if metric in metric_names() and any(sources.about(cell).get("predictions") for cell in runs["cell"].unique()):
        listed = ",".join([*recorded, metric])
        raise ConfigError(
            f"report.metric={metric} is not recorded; predictions are kept: the sweep's own command with protocol.metrics=[{listed}] "
            "adds it without a fit"
        )
    raise ConfigError(f"no rows with the metric {metric!r}; {nearest(metric, recorded)}")


def _contents(
    sources: Sources, runs: pd.DataFrame, summary: pd.DataFrame, published: str | None, notes: Sequence[str], names: Names
) -> Contents:
    facts = read_facts(sources, runs["cell"])
    keys = ((known.get("config") or {}).get("published") for known in facts.provenance.values())
    key = published or next((key for key in keys if key), None)
    return contents(sources.name, runs, summary, published=key, facts=facts, notes=notes, names=names)


def _csv(frame: pd.DataFrame, columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in frame[list(columns)].itertuples(index=False):
        # An undefined number is an empty field, as in runs.csv.
        writer.writerow(["" if value != value else format_value(value) for value in map(plain, row)])
    return text.getvalue()


def _as_texts(table: str) -> str:
    """Return a table in CSV whose cells that look like formulas are texts."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([as_text(cell) for cell in row] for row in csv.reader(io.StringIO(table)))
    return text.getvalue()


def _texts(report: Contents, summary: pd.DataFrame) -> dict[str, str]:
    files = {
        "table.csv": _wide_csv(summary),
        "wins.csv": _csv(report.wins, list(report.wins.columns)),
        "pairs.csv": _csv(report.pairs, list(report.pairs.columns)),
        "report.md": markdown(report.document, PLOTS),
        "report.tex": latex(report.document),
        "report.html": html_page(report.document),
    }
    if report.published is not None:
        files["published.csv"] = _csv(report.published, list(report.published.columns))
    return files


def _wide_csv(summary: pd.DataFrame) -> str:
    """Return the comparison tables as one CSV: for every method its mean, its deviation and its marks."""
    methods = in_order(summary["method"])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["metric", "dataset", *(f"{method} {what}" for method in methods for what in ("mean", "std", "mark"))])
    for metric in shown_metrics(summary):
        part = summary[summary["metric"] == metric]
        for dataset, rows in part.groupby("dataset", sort=True, observed=True):
            lines = {row["method"]: row for row in rows.to_dict("records")}
            fields: list[str] = []
            for method in methods:
                row = lines.get(method)
                if row is None:
                    fields += ["", "", "missing"]
                    continue
                mark = "" if len(methods) == 1 else "best" if row["best"] else "not worse" if row["bold"] else ""
                mark = result_entry(row, metric).state or mark
                fields += ["" if math.isnan(row[what]) else format_value(float(row[what])) for what in ("mean", "std")] + [mark]
            writer.writerow([metric, dataset, *fields])
    return text.getvalue()


def _write_plots(folder: Path, report: Contents) -> list[str]:
    place = folder / PLOTS
    names: list[str] = []
    if report.document.figures:
        try:
            place.mkdir(exist_ok=True)
        except OSError as error:
            raise ResultsError(f"cannot create {place}: {error.strerror}; choose another results_dir") from error
    for figure in report.document.figures:
        write_text(place / f"{figure.name}.svg", figure.svg)
        names.append(f"{PLOTS}/{figure.name}.svg")
        for kind, content in (("pdf", figure.pdf), ("png", figure.png)):
            if content:  # a figure of one's own may have fewer
                write_bytes(place / f"{figure.name}.{kind}", content)
                names.append(f"{PLOTS}/{figure.name}.{kind}")
    # A plot of an earlier report that this one does not have would look like a part of it.
    for old in [each for kind in ("svg", "pdf", "png") for each in place.glob(f"*.{kind}")]:
        if f"{PLOTS}/{old.name}" not in names and is_of(old.stem):
            with contextlib.suppress(OSError):
                old.unlink()
    return names
