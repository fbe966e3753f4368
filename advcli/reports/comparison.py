"""The comparison table: data sets as rows, methods as columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ..core.errors import ResultsError
from ..metrics import Missed, missed_words, shown, shown_as, shown_mean, shown_value, title
from ..statistics.marks import DEFAULT, MOST_IN_HOLM
from ..statistics.tests import ITEM_TESTS, MIN_WILCOXON_SPLITS
from .formats.document import ReportTable, TableField, listed, metric_word
from .formats.markdown import markdown_table
from .summary import in_order, untested

MOST_COLUMNS = 25
"""Methods that are columns of a comparison table; more are its rows."""
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def result_entry(row: Mapping[Any, Any] | None, metric: str, compared: bool = True) -> TableField:
    """Return the field of a line of the summary: mean, deviation and marks, or what went wrong; a dash without a line.

    ``compared`` tells whether there are methods to compare with: a single one is not marked as the best.
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


def comparison(summary: pd.DataFrame, *, metric: str | None = None, notes: Sequence[str] = ()) -> ReportTable:
    """Return the comparison table of one metric, fit for every format (see `comparison_table` for its contents)."""
    metric = metric if metric is not None else summary.attrs.get("primary") or (summary["metric"].iloc[0] if len(summary) else "")
    part = summary[summary["metric"] == metric]
    if part.empty:
        raise ResultsError(f"no summary of the metric {metric!r}")
    datasets, methods = in_order(part["dataset"]), in_order(part["method"])
    compared = len(methods) > 1
    lines = {(str(row["dataset"]), str(row["method"])): row for row in shown_rows(summary, part)}
    grid = {method: [lines.get((dataset, method)) for dataset in datasets] for method in methods}
    fields = [[result_entry(row, metric, compared) for row in rows] for rows in grid.values()]
    footer = []
    if len(datasets) > 1:
        footer.append([TableField("average"), *(_average(rows, metric) for rows in grid.values())])
    if compared and _has_tests(summary, part):
        best = (sum(bool(row is not None and row["bold"]) for row in rows) for rows in grid.values())
        footer.append([TableField("count"), *(TableField(str(count)) for count in best)])
    label = with_unit(summary, metric) or "results"
    table = ReportTable(
        name=f"comparison-{metric_word(metric)}",
        caption=f"Data sets against methods: {label}." if compared else f"{methods[0]}: {label}.",
        columns=("dataset", *methods),
        rows=tuple((TableField(dataset), *row) for dataset, row in zip(datasets, zip(*fields, strict=True), strict=True)),
        footer=tuple(map(tuple, footer)),
        notes=(*_legend(summary, part, metric, [field for row in fields for field in row]), *notes),
    )
    return table if len(methods) <= MOST_COLUMNS else _turned(table)


def shown_rows(summary: pd.DataFrame, part: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return lines of a summary as tables show them: of items the spread is the standard error of the mean."""
    items = set(summary.attrs.get("items", ()))
    rows = part.to_dict("records")
    return [row | {"std": row["std"] / math.sqrt(row["n_splits"])} if row["dataset"] in items and row["n_splits"] else row for row in rows]


def with_unit(summary: pd.DataFrame, metric: str) -> str:
    """Return the title of a metric; of costs with the currency that all data sets have, ``attrs["units"]`` by data set."""
    units = {summary.attrs.get("units", {}).get(str(dataset), "") for dataset in summary["dataset"].unique()}
    unit = units.pop() if metric == "cost" and len(units) == 1 else ""
    return title(metric) + (f" in {unit}" if unit else "")


def _average(rows: Sequence[Mapping[Any, Any] | None], metric: str) -> TableField:
    """Return the mean over the data sets of a method that has a complete result on each."""
    means = [row["mean"] for row in rows if row is not None and row["n_splits"] and not row["failed"]]
    return TableField(shown_mean(metric, sum(means) / len(rows)) if len(means) == len(rows) else "-")


def _splits(part: pd.DataFrame) -> list[int]:
    """Return the different numbers of splits, or of items, without 0."""
    return sorted({int(count) for count in part["n_splits"] if count})


def _spread(summary: pd.DataFrame, part: pd.DataFrame) -> str:
    """Return what the fields of a table are."""
    of_items = part["dataset"].isin(summary.attrs.get("items", ()))
    splits, items = _splits(part[~of_items]), _splits(part[of_items])
    words = ["of 1 split"] if splits == [1] else []
    words += [f"mean (sample standard deviation) over {'/'.join(map(str, splits))} splits"] if splits and splits != [1] else []
    words += [f"mean (standard error) over {'/'.join(map(str, items))} items"] if items else []
    return (" " if words[0].startswith("of") else ": ") + "; ".join(words)


def _tests(summary: pd.DataFrame, metric: str) -> list[str]:
    """Return lines about data sets whose test is not the one that was asked for, and why."""
    tests = {dataset: test for (name, dataset), test in summary.attrs.get("tests", {}).items() if name == metric}
    items, exempt = set(summary.attrs.get("items", ())), set(summary.attrs.get("uncorrected", ()))
    lines = []
    if named := [dataset for dataset in tests if dataset not in items | exempt]:
        where = "" if len(named) == summary.loc[summary["metric"] == metric, "dataset"].nunique() else f" on {listed(named)}"
        unknown = f"sizes of training and test parts are not known{where}, which the corrected resampled t-test needs"
        lines.append(f"{unknown}: Wilcoxon signed-rank test there")
    if set(tests.values()) != {summary.attrs.get("significance", DEFAULT).test}:
        for test, words in ITEM_TESTS.items():
            named = [dataset for dataset, other in tests.items() if other == test]
            lines += [f"{words}: {listed(named)}"] if named else []
    return lines


def _has_tests(summary: pd.DataFrame, part: pd.DataFrame) -> bool:
    """Return whether methods are tested on some data set."""
    return _splits(part) != [1] and not set(in_order(part["dataset"])) <= set(summary.attrs.get("unpaired", ()))


def _legend(summary: pd.DataFrame, part: pd.DataFrame, metric: str, fields: Sequence[TableField]) -> list[str]:
    """Return the lines below a comparison table."""
    significance, splits = summary.attrs.get("significance", DEFAULT), _splits(part)
    compared = (n_methods := part["method"].nunique()) > 1
    titled = with_unit(summary, metric)
    lines = [f"{titled or 'results'}: no fit has a value"]
    if splits:
        lines = [titled + _spread(summary, part)]
    tested = compared and _has_tests(summary, part)
    if tested:
        lines.append(f"* best mean; = not significantly worse than the best: {significance.row}")
        lines += _tests(summary, metric)
    if part["dataset"].nunique() > 1:
        lines.append("average: mean over data sets, for methods with a result on all of them")
    if tested:
        lines.append("count: data sets where the method is best or not significantly worse")
    if tested and significance.correction == "holm" and n_methods > MOST_IN_HOLM:
        lines.append(f"more than {MOST_IN_HOLM} methods in a row: Bonferroni's correction over all their pairs in the place of Holm's")
    gaps = part["worst_gap"].dropna()
    if len(gaps):
        lines.append(f"largest certified relative duality gap of these fits: {gaps.max():.1e}")
    texts = [field.text + field.suffix for field in fields]
    if any("!" in field.marks for field in fields):
        lines.append("! at least one fit stopped before its relative gap reached the tolerance")
    if any("undefined" in text for text in texts):
        lines.append("undefined: the metric has no value on these splits, for example where predictions abstain")
    if any("failed" in text for text in texts):
        lines.append("failed: at least one split has no value (column error of runs.csv); the method is not compared on that data set")
    if any(field.state == "missing" for field in fields):
        lines.append("-: not computed yet, or no average over all data sets")
    wilcoxon = significance.test == "wilcoxon" or summary.attrs.get("uncorrected")
    if compared and wilcoxon and splits and 1 < splits[0] < MIN_WILCOXON_SPLITS:
        lines.append(f"fewer than {MIN_WILCOXON_SPLITS} splits cannot be significant with the Wilcoxon test at 0.05")
    if compared and splits and splits[0] == 1:
        lines.append("a single split allows no test: nobody is marked there")
    elif compared and len(splits) > 1:
        lines.append("marks and tests are of the splits that all methods of a data set have")
    lines += [*untested(summary), *selection_lines(summary, metric)]
    return [*lines, *(summary.attrs.get("missed", ()) if metric == summary.attrs.get("primary") else ())]


def _turned(table: ReportTable) -> ReportTable:
    """Return a comparison table with a method in every row: nobody reads a hundred columns."""
    columns = [tuple(TableField(method) for method in table.columns[1:])] + [row[1:] for row in (*table.rows, *table.footer)]
    heads = ("method", *(row[0].text for row in (*table.rows, *table.footer)))
    return replace(table, columns=heads, rows=tuple(zip(*columns, strict=True)), footer=())


def comparison_table(
    summary: pd.DataFrame, *, metric: str | None = None, style: str = "terminal", colour: bool = False, notes: Sequence[str] = ()
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
        The row ``average`` is given for methods with a result on every data set. The row ``count`` is the number of data sets where the
        method is best or not significantly worse.

    Examples
    --------
    >>> from advcli.evaluation import sweep
    >>> from advcli.reports import comparison_table, summarise
    >>> rows = sweep("dataset=iris loss=zero_one,cs hyper.C=1 protocol.n_splits=2", "results/two", workers=1, quiet=True)
    >>> "zero_one linear" in comparison_table(summarise(rows))
    True
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


# ---- lines about more than the rows of a table ---------------------------------------------------------------
def selected_by(runs: pd.DataFrame, selected: Mapping[str, str]) -> dict[str, list[str]]:
    """Return for each metric that selected hyper-parameters the methods that it did this for, in the order of tables.

    ``selected`` is the metric of the search of each cell that has one; ``runs`` have the names of methods that are shown.
    """
    cells = runs.drop_duplicates("cell")
    chosen: dict[str, list[str]] = {}
    for method in in_order(cells["method"]):
        keys = map(str, cells.loc[cells["method"] == method, "cell"])
        for metric in dict.fromkeys(selected[key] for key in keys if key in selected):
            chosen.setdefault(metric, []).append(method)
    return chosen


def selection_lines(summary: pd.DataFrame, metric: str) -> list[str]:
    """Return the line that says by which metric hyper-parameters were selected; none where that is the metric of the table for all."""
    selected = {name: methods for name, methods in summary.attrs.get("selected", {}).items() if methods}
    if {shown_as(name).name for name in selected} <= {shown_as(metric).name}:
        return []
    words = {name: shown_as(name).name.replace("_", " ") for name in selected}
    if len(set(words.values())) == 1:
        return [f"hyper-parameters are selected by {next(iter(words.values()))}"]
    return ["hyper-parameters are selected by " + "; by ".join(f"{words[name]}: {listed(methods)}" for name, methods in selected.items())]


def missed_lines(runs: pd.DataFrame, missed: Mapping[str, Sequence[Missed]]) -> list[str]:
    """Return a line for every method that finds no row of some class, of ``missed`` by cell (`advcli.metrics.missed_classes`)."""
    cells = runs.drop_duplicates("cell")
    lines = []
    for method in in_order(cells["method"]):
        part = cells[cells["method"] == method]
        lacks = [(dataset, missed[str(cell)]) for dataset, cell in zip(part["dataset"], part["cell"], strict=True) if missed.get(str(cell))]
        if lacks:
            lines.append(f"{method}: {listed([f'on {dataset} it {missed_words(classes)}' for dataset, classes in lacks], '; ')}")
    return lines
