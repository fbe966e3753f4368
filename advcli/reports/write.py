"""Report files of a results folder."""

from __future__ import annotations

import contextlib
import csv
import io
import math
from collections.abc import Sequence

import pandas as pd

from ..errors import AdvcliError, ResultsError
from ..files import write_bytes, write_text
from ..records import ResultsFolder
from ..rows import format_value, plain
from ..statistics import DEFAULT, Significance
from .comparison import comparison_table, result_entry
from .content import Contents, contents, read_facts, shown_metrics
from .curves import CURVE_COLUMNS, curve_points
from .drawing import svg_only
from .figures import LEARNING_COLUMNS, is_of
from .html_page import html_page
from .latex import latex
from .markdown import markdown
from .summary import SUMMARY_COLUMNS, summarise, with_unique_methods

PLOTS = "plots"
"""Folder of the plots inside a results folder."""
PAGE_CELLS = 2000
"""A sweep of more cells does not wait for a page at its end."""


def write_reports(
    folder: ResultsFolder,
    significance: Significance = DEFAULT,
    metric: str | None = None,
    notes: Sequence[str] = (),
    *,
    full: bool = False,
    page: bool = False,
    published: str | None = None,
) -> pd.DataFrame:
    """Merge the folder's cells and write its reports from the rows alone.

    Works on a finished or a partial sweep. Always written are summary.csv (all metrics) and table.md (one metric). The full
    report adds table.csv (the comparison tables, one row per metric and data set), wins.csv, pairs.csv (tests across data sets),
    published.csv, report.md, report.tex, report.html and the folder plots/. The page alone is report.html, with its plots inside.

    Parameters
    ----------
    folder : ResultsFolder
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
        ``published`` of the configuration in provenance.json says. Only for the full report.

    Returns
    -------
    DataFrame
        The summary; give it to `comparison_table` for the terminal. ``attrs["files"]`` names what was written, seen from the
        folder; ``attrs["remarks"]`` are lines to say: cells that disagree with published numbers, and why there is no page.

    Raises
    ------
    ResultsError
        If there are no rows or the files cannot be written.
    ConfigError
        For an unknown metric or name of published numbers; nothing is written then.
    """
    folder.merge()
    runs = folder.runs()
    if metric is not None:
        summarise(runs, significance, metric)  # refuses a metric that no row has, before anything is written
    summary = summarise(runs, significance)
    if metric is not None:
        summary.attrs["primary"] = metric
    files = {"summary.csv": _csv(summary, SUMMARY_COLUMNS)}
    files["table.md"] = comparison_table(summary, style="markdown", notes=notes)
    remarks: list[str] = []
    report: Contents | None = None
    if full:
        report = _contents(folder, runs, summary, published, notes)
        files |= _texts(report, summary)
        points = curve_points(with_unique_methods(runs))
        if len(points):
            files["curves.csv"] = _csv(points, CURVE_COLUMNS)
        if report.learning is not None:
            files["learning.csv"] = _csv(report.learning, LEARNING_COLUMNS)
    elif page and runs["cell"].nunique() > PAGE_CELLS:
        remarks.append(f"no report.html: more than {PAGE_CELLS} cells; advcli report results=... writes it")
    elif page:
        try:
            with svg_only():
                of_page = _contents(folder, runs, summary, published, notes)
            files["report.html"] = html_page(of_page.document)
            remarks += [f"disagrees with the published number: {line}" for line in of_page.far]
        except AdvcliError as error:
            remarks.append(f"no report.html: {error}")
    if report is not None:
        remarks += [f"disagrees with the published number: {line}" for line in report.far]
    for name, text in files.items():
        write_text(folder.path / name, text)
    if report is not None:
        files |= dict.fromkeys(_write_plots(folder, report), "")
        if report.published is None:
            # left from a report with published numbers it would look like a part of this one
            with contextlib.suppress(OSError):
                (folder.path / "published.csv").unlink()
    summary.attrs["files"] = list(files)
    summary.attrs["remarks"] = remarks
    return summary


def _contents(folder: ResultsFolder, runs: pd.DataFrame, summary: pd.DataFrame, published: str | None, notes: Sequence[str]) -> Contents:
    runs = with_unique_methods(runs)
    facts = read_facts(folder, runs["cell"])
    key = published or (facts.provenance.get("config") or {}).get("published")
    return contents(folder.path.name, runs, summary, published=key, facts=facts, notes=notes)


def _csv(frame: pd.DataFrame, columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in frame[list(columns)].itertuples(index=False):
        # An undefined number is an empty field, as in runs.csv.
        writer.writerow(["" if value != value else format_value(value) for value in map(plain, row)])
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
    methods = list(dict.fromkeys(summary["method"]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["metric", "dataset", *(f"{method} {what}" for method in methods for what in ("mean", "std", "mark"))])
    for metric in shown_metrics(summary):
        part = summary[summary["metric"] == metric]
        for dataset, rows in part.groupby("dataset", sort=True):
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


def _write_plots(folder: ResultsFolder, report: Contents) -> list[str]:
    place = folder.path / PLOTS
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
