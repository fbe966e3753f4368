"""The comparison table: data sets as rows, methods as columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ..core.errors import ResultsError
from ..metrics import shown, shown_mean, shown_value, title
from ..statistics.marks import DEFAULT, MOST_IN_HOLM
from ..statistics.tests import MIN_WILCOXON_SPLITS
from .formats.document import ReportTable, TableField, metric_word
from .formats.markdown import markdown_table
from .remarks import selection_lines
from .summary import in_order, untested

MOST_COLUMNS = 25
"""Methods that are columns of a comparison table; more are its rows."""
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def result_entry(row: Mapping[Any, Any] | None, metric: str, compared: bool = True) -> TableField:
    """Return the field of one data set and method: its mean, deviation and marks, or what went wrong.

    Parameters
    ----------
    row : mapping or None
        A line of the summary; None when there is none.
    metric : str
        The metric of the line.
    compared : bool
        Whether there are methods to compare with: a single one is not marked as the best.
    """
    if row is None:
        return TableField("-", math.nan, state="missing")
    splits, failed = int(row["n_splits"]), int(row["failed"])
    lack = "undefined" if failed and row.get("undefined", 0) == failed else "failed"
    if splits == 0:
        return TableField(lack, math.nan, state="failed")
    mean, std = float(row["mean"]), float(row["std"])
    marks = (("*" if row["best"] else "=" if row["bold"] else "") if compared else "") + ("!" if row["not_converged"] else "")
    return TableField(
        shown(metric, mean, std),
        shown_value(metric, mean),
        strong=compared and bool(row["bold"]),
        marks=marks,
        suffix=f"{lack} {failed}/{failed + splits}" if failed else "",
        state="failed" if failed else "",
    )


def comparison(
    summary: pd.DataFrame,
    *,
    metric: str | None = None,
    notes: Sequence[str] = (),
) -> ReportTable:
    """Return the comparison table of one metric, fit for every format (see `comparison_table` for its contents)."""
    metric = metric if metric is not None else summary.attrs.get("primary") or (summary["metric"].iloc[0] if len(summary) else "")
    significance = summary.attrs.get("significance", DEFAULT)
    part = summary[summary["metric"] == metric]
    if part.empty:
        raise ResultsError(f"no summary of the metric {metric!r}")
    datasets, methods = in_order(part["dataset"]), in_order(part["method"])
    compared = len(methods) > 1
    lines = {(str(row["dataset"]), str(row["method"])): row for row in part.to_dict("records")}
    body = [[result_entry(lines.get((dataset, method)), metric, compared) for method in methods] for dataset in datasets]
    averages, counts = [TableField("average")], [TableField("count")]
    for method in methods:
        rows = [lines.get((dataset, method)) for dataset in datasets]
        whole = all(row is not None and row["n_splits"] and not row["failed"] for row in rows)
        averages.append(TableField(shown_mean(metric, sum(row["mean"] for row in rows if row is not None) / len(rows)) if whole else "-"))
        counts.append(TableField(str(sum(bool(row is not None and row["bold"]) for row in rows))))
    splits = sorted({int(row["n_splits"]) for row in lines.values() if row["n_splits"]})
    if splits == [1]:
        legend = [f"{title(metric)} of 1 split"]
    elif splits:
        legend = [f"{title(metric)}: mean (sample standard deviation) over {'/'.join(map(str, splits))} splits"]
    else:
        legend = [f"{title(metric) or 'results'}: no fit has a value"]
    footer = [averages] if len(datasets) > 1 else []
    if footer:
        legend.append("average: mean over data sets, for methods with a result on all of them")
    if compared and splits != [1] and not set(datasets) <= set(summary.attrs.get("unpaired", ())):
        footer.append(counts)
        legend.insert(1, f"* best mean; = not significantly worse than the best: {significance.row}")
        legend.append("count: data sets where the method is best or not significantly worse")
        if significance.correction == "holm" and len(methods) > MOST_IN_HOLM:
            legend.append(f"more than {MOST_IN_HOLM} methods in a row: Bonferroni's correction over all their pairs in the place of Holm's")
    gaps = part["worst_gap"].dropna()
    if len(gaps):
        legend.append(f"largest certified relative duality gap of these fits: {gaps.max():.1e}")
    entries = [entry for row in body for entry in row]
    if any("!" in entry.marks for entry in entries):
        legend.append("! at least one fit stopped before its relative gap reached the tolerance")
    if any("undefined" in (entry.text + entry.suffix) for entry in entries):
        legend.append("undefined: the metric has no value on these splits, for example where predictions abstain")
    if any("failed" in (entry.text + entry.suffix) for entry in entries):
        legend.append("failed: at least one fit did not happen (column error of runs.csv); the method is not compared on that data set")
    if any(entry.state == "missing" for entry in entries):
        legend.append("-: not computed yet, or no average over all data sets")
    if compared and significance.test == "wilcoxon" and splits and splits[0] < MIN_WILCOXON_SPLITS:
        legend.append(f"fewer than {MIN_WILCOXON_SPLITS} splits cannot be significant with the Wilcoxon test at 0.05")
    if compared and splits and splits[0] == 1:
        legend.append("a single split allows no test: nobody is marked there")
    elif compared and len(splits) > 1:
        legend.append("marks and tests are of the splits that all methods of a data set have")
    legend += [*untested(summary), *selection_lines(summary, metric)]
    legend += summary.attrs.get("missed", ()) if metric == summary.attrs.get("primary") else ()
    table = ReportTable(
        name=f"comparison-{metric_word(metric)}",
        caption=f"Data sets against methods: {title(metric) or 'results'}." if compared else f"{methods[0]}: {title(metric) or 'results'}.",
        columns=("dataset", *methods),
        rows=tuple((TableField(dataset), *row) for dataset, row in zip(datasets, body, strict=True)),
        footer=tuple(map(tuple, footer)),
        notes=(*legend, *notes),
    )
    return table if len(methods) <= MOST_COLUMNS else _turned(table)


def _turned(table: ReportTable) -> ReportTable:
    """Return a comparison table with a method in every row: nobody reads a hundred columns."""
    columns = [tuple(TableField(method) for method in table.columns[1:])] + [row[1:] for row in (*table.rows, *table.footer)]
    heads = ("method", *(row[0].text for row in (*table.rows, *table.footer)))
    return replace(table, columns=heads, rows=tuple(zip(*columns, strict=True)), footer=())


def comparison_table(
    summary: pd.DataFrame,
    *,
    metric: str | None = None,
    style: str = "terminal",
    colour: bool = False,
    notes: Sequence[str] = (),
) -> str:
    """Return the comparison table of one metric as text.

    Parameters
    ----------
    summary : DataFrame
        From `advcli.reports.summarise`.
    metric : str, optional
        Default: the summary's primary metric.
    style : {"terminal", "markdown"}
        Plain text or Markdown.
    colour : bool
        Bold type by ANSI codes (terminal only): for a tty.
    notes : sequence of str
        Further lines below the table.

    Returns
    -------
    str
        Cells are ``mean (std)`` with marks: ``*`` best, ``=`` not significantly worse, ``!`` a fit did not converge, ``failed``,
        ``undefined``; a single method is compared with nothing and has no marks of the first two.
        The row ``average`` is given for methods with a result on every data set, the row ``count`` is the number of data sets
        where the method is best or not significantly worse.
    """
    from tabulate import tabulate

    table = comparison(summary, metric=metric, notes=notes)
    if style == "markdown":
        return markdown_table(table)

    def strong(text: str) -> str:
        return f"{_BOLD}{text}{_PLAIN}" if colour else text

    body = [[entry.plain(strong) for entry in row] for row in (*table.rows, *table.footer)]
    text = tabulate(body, table.columns, tablefmt="simple", disable_numparse=True, stralign="right", colalign=("left",))
    return "\n".join([text, "", *table.notes]) + "\n"
