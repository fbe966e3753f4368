"""The comparison table: data sets as rows, methods as columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from ..errors import ResultsError
from ..records import meaning
from ..statistics import MIN_WILCOXON_SPLITS, TESTS

_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def shown(metric: str, mean: float, std: float) -> str:
    """Return ``mean (std)`` as the papers print it: the error as accuracy in percent, other shares in percent, the rest plain."""
    about = meaning(metric)
    if metric == "error":
        mean = 1.0 - mean
    digits, factor = (2, 100.0) if about.percent else (3, 1.0)
    spread = "-" if math.isnan(std) else f"{factor * std:.{digits}f}"
    return f"{factor * mean:.{digits}f} ({spread})"


def shown_mean(metric: str, mean: float) -> str:
    """Return a mean without a spread (see `shown`)."""
    return shown(metric, mean, math.nan).removesuffix(" (-)")


def title(metric: str) -> str:
    """Return what a table of the metric shows."""
    if metric == "error":
        return "accuracy in percent"
    return f"{metric.replace('_', ' ')} in percent" if meaning(metric).percent else metric.replace("_", " ")


def comparison_table(
    summary: pd.DataFrame,
    *,
    test: str = "corrected_ttest",
    alpha: float = 0.05,
    metric: str | None = None,
    style: str = "terminal",
    colour: bool = False,
    notes: Sequence[str] = (),
) -> str:
    """Return the comparison table of one metric.

    Parameters
    ----------
    summary : DataFrame
        From `advcli.reports.summarise`.
    test, alpha
        What the summary was made with; named below the table.
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
        Cells are ``mean (std)`` with marks: ``*`` best, ``=`` not significantly worse, ``!`` a fit did not converge, ``failed``.
        The row ``average`` is given for methods with a result on every data set, the row ``count`` is the number of data sets
        where the method is best or not significantly worse.
    """
    from tabulate import tabulate

    metric = metric if metric is not None else summary.attrs.get("primary") or (summary["metric"].iloc[0] if len(summary) else "")
    part = summary[summary["metric"] == metric]
    if part.empty:
        raise ResultsError(f"no summary of the metric {metric!r}")
    markdown = style == "markdown"
    datasets, methods = list(dict.fromkeys(part["dataset"])), list(dict.fromkeys(part["method"]))
    lines = {(str(row["dataset"]), str(row["method"])): row for row in part.to_dict("records")}
    used: set[str] = set()

    def strong(text: str) -> str:
        if markdown:
            return f"**{text}**"
        return f"{_BOLD}{text}{_PLAIN}" if colour else text

    def cell(dataset: str, method: str) -> str:
        row = lines.get((dataset, method))
        if row is None:
            used.add("missing")
            return "-"
        if row["n_splits"] == 0:
            used.add("failed")
            return "failed"
        text = shown(metric, row["mean"], row["std"])
        marks = ""
        if row["best"]:
            marks += "*"
        elif row["bold"]:
            marks += "="
        if row["not_converged"]:
            marks += "!"
            used.add("not_converged")
        text = strong(text) if row["bold"] else text
        if marks:
            # A star in Markdown would open emphasis.
            text += " " + (marks.replace("*", r"\*") if markdown else marks)
        if row["failed"]:
            used.add("failed")
            text += f" failed {row['failed']}/{row['failed'] + row['n_splits']}"
        return text

    escaped = [method.replace("|", r"\|") for method in methods] if markdown else methods
    body = [[dataset, *(cell(dataset, method) for method in methods)] for dataset in datasets]
    averages, counts = ["average"], ["count"]
    for method in methods:
        rows = [lines.get((dataset, method)) for dataset in datasets]
        whole = all(row is not None and row["n_splits"] and not row["failed"] for row in rows)
        averages.append(shown_mean(metric, sum(row["mean"] for row in rows if row is not None) / len(rows)) if whole else "-")
        counts.append(str(sum(bool(row is not None and row["bold"]) for row in rows)))
    if len(datasets) > 1:
        body += [averages]
    body += [counts]
    table = tabulate(
        body,
        ["dataset", *escaped],
        tablefmt="pipe" if markdown else "simple",
        disable_numparse=True,
        stralign="right",
        colalign=("left",),
    )
    splits = sorted({int(row["n_splits"]) for row in lines.values() if row["n_splits"]})
    legend = [
        f"{title(metric)}: mean (sample standard deviation) over {'/'.join(map(str, splits)) or 'no'} splits",
        f"* best mean; = not significantly worse than the best: {TESTS[test]}, alpha = {alpha:g}",
        "count: data sets where the method is best or not significantly worse",
    ]
    if len(datasets) > 1:
        legend.insert(2, "average: mean over data sets, for methods with a result on all of them")
    gaps = part["worst_gap"].dropna()
    if len(gaps):
        legend.append(f"largest certified relative duality gap of these fits: {gaps.max():.1e}")
    if "not_converged" in used:
        legend.append("! at least one fit stopped before its relative gap reached the tolerance")
    if "failed" in used:
        legend.append("failed: at least one fit did not happen (column error of runs.csv); the method is not compared on that data set")
    if "missing" in used:
        legend.append("-: not computed yet, or no average over all data sets")
    if test == "wilcoxon" and splits and splits[0] < MIN_WILCOXON_SPLITS:
        legend.append(f"fewer than {MIN_WILCOXON_SPLITS} splits cannot be significant with the Wilcoxon test at 0.05")
    if splits and splits[0] == 1:
        legend.append("a single split allows no test")
    legend += notes
    if markdown:
        return (
            "\n".join(
                [
                    table,
                    "",
                    *(f"- {line.replace('*', chr(92) + '*', 1)}" if line.startswith("*") else f"- {line}" for line in legend),
                ]
            )
            + "\n"
        )
    return "\n".join([table, "", *legend]) + "\n"
