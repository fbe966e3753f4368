"""The sections of one metric: its results, and its methods across data sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ...metrics import shown_as, title
from ...statistics.marks import DEFAULT, Significance
from ..across import MOST_PAIRED, Across
from ..comparison import MOST_COLUMNS, comparison, result_entry, shown_rows, with_unit
from ..figures import Material
from ..formats.document import ReportTable, Section, counted, metric_word
from ..published_numbers import printed, z_field
from ..summary import in_order
from .certificates import chosen_text, hyper_names
from .columns import BLANK, MISSING, ReportColumn, alarm, fixed, in_metric, itself, lay_out, number, p_value, record, whole
from .standing import single_tables, standing_tables


def results_section(material: Material, wins: pd.DataFrame, notes: Sequence[str]) -> Section:
    """Return the section with the comparison table of a metric and the tables below it."""
    summary, metric = material.summary, material.metric
    label = with_unit(summary, metric) or "results"
    part = summary[summary["metric"] == metric]
    several = part["method"].nunique() > 1
    tables = [_with_published(comparison(summary, metric=metric, notes=notes), material)]
    if metric == material.metrics[0]:
        tables += _chosen(material)
    if metric and part["method"].nunique() > 2:
        tested = wins if part["n_splits"].max() > 1 else wins.iloc[:0]  # a single split allows no test
        tables += [_overview(part, tested, material.across), *_wins_tables(part, tested, summary.attrs.get("significance", DEFAULT))]
    if metric:
        tables.append(_details(part, metric, several, shown_rows(summary, part)))
    return Section(f"results-{metric_word(metric)}", f"Results: {label}", (), tuple(tables))


def _chosen(material: Material) -> list[ReportTable]:
    """Return the table of the chosen hyper-parameters, data sets against methods; none where nothing is chosen or methods are many."""
    fits = material.runs[material.runs["status"] != "failed"].drop_duplicates(["cell", "split"])
    hyper = hyper_names(fits)
    cells = fits.groupby(["dataset", "method"], observed=True)
    texts = {(str(dataset), str(method)): chosen_text(part, hyper) for (dataset, method), part in cells}
    methods = [method for method in in_order(fits["method"]) if any(text for (_, name), text in texts.items() if name == method)]
    if not methods or len(methods) > MOST_COLUMNS:
        return []
    datasets, columns = in_order(fits["dataset"]), [*map(ReportColumn, ("dataset", *methods))]
    rows = [{"dataset": dataset} | {method: texts.get((dataset, method), "") for method in methods} for dataset in datasets]
    note = "of several splits the median and the range of the chosen values"
    return [lay_out("chosen", "Chosen hyper-parameters.", columns, rows, [note], is_long=True)]


def _with_published(table: ReportTable, material: Material) -> ReportTable:
    """Return the comparison table of a single method with its published numbers beside ours, where there are any."""
    compared = material.compared
    if compared is None or len(table.columns) != 2:
        return table
    compared = compared[compared["metric"] == shown_as(material.metric).name].drop_duplicates("dataset")
    if compared.empty:
        return table
    beside = {str(row["dataset"]): (printed(row), z_field(row)) for row in compared.to_dict("records")}
    return replace(
        table,
        columns=(*table.columns, f"published: {', '.join(dict.fromkeys(compared['published_method']))}", "z"),
        rows=tuple((*row, *beside.get(row[0].text, (MISSING, MISSING))) for row in table.rows),
        footer=tuple((*row, BLANK, BLANK) for row in table.footer),
    )


def _overview(part: pd.DataFrame, wins: pd.DataFrame, across: Across) -> ReportTable:
    metric, tested = across.metric, bool(part["n_splits"].max() > 1)
    ranks = dict(zip(across.methods, across.mean_ranks, strict=True)) if len(across.mean_ranks) else {}
    rows: list[dict[str, Any]] = []
    for method, lines in part.groupby("method", sort=True, observed=True):
        good = lines[(lines["n_splits"] > 0) & (lines["failed"] == 0)]
        rows.append(
            {"method": method, "mean rank": ranks.get(str(method), math.nan), "mean": good["mean"].mean()}
            | {name: good[name].sum() for name in ("best", "bold")}
            | {name: wins.loc[wins["method"] == method, name].sum() for name in ("wins", "ties", "losses")}
            | {"complete": len(good), "with failures": len(lines) - len(good)}
        )
    counts = [ReportColumn(name, whole, shown=len(wins) > 0) for name in ("wins", "ties", "losses")]
    columns = [
        ReportColumn("method"),
        ReportColumn("mean rank", fixed),
        ReportColumn("mean", in_metric(metric)),
        ReportColumn("best", whole, shown=tested),
        ReportColumn("not worse", whole, "bold", tested),
    ]
    columns += [*counts, ReportColumn("complete", whole), ReportColumn("with failures", alarm)]
    common = counted(len(across.datasets), "data set")
    over = f"mean rank: over the {common} on which all ranked methods have complete results; 1 is the best"
    best = "; best: data sets where the method is best; not worse: where it is best or not significantly worse than the best"
    notes = [
        over if ranks else "no method has complete results on a common data set with another",
        "mean: over the data sets of that method alone" + (best if tested else ""),
    ]
    if len(wins):
        notes.append("wins, ties, losses: over all pairs with another method on one data set, by the test within the data set")
    elif len(rows) > MOST_PAIRED:
        notes.append(f"more than {MOST_PAIRED} methods are not compared pair by pair; report.methods=[...] chooses some")
    return lay_out(f"overview-{metric_word(metric)}", f"Methods at a glance: {title(metric)}.", columns, rows, notes)


def _wins_tables(part: pd.DataFrame, wins: pd.DataFrame, significance: Significance) -> list[ReportTable]:
    if wins.empty:
        return []
    metric, methods = str(part["metric"].iloc[0]), in_order(part["method"])
    counts = {(row["method"], row["other"]): record(row) for row in wins.to_dict("records")}
    columns = [ReportColumn("method"), *(ReportColumn(other, lambda field: field) for other in methods)]
    rows = [{"method": method} | {other: counts.get((method, other), BLANK) for other in methods} for method in methods]
    note = (
        f"data sets on which the row's method is significantly better / not different / significantly worse than the column's: "
        f"{significance.single} for every pair, not corrected for their number; a column is sorted by wins minus losses"
    )
    return [lay_out(f"wins-{metric_word(metric)}", f"Wins/ties/losses: {title(metric)}.", columns, rows, [note])]


def _details(part: pd.DataFrame, metric: str, several: bool, rows: Sequence[Mapping[Any, Any]]) -> ReportTable:
    columns = [
        ReportColumn("dataset"),
        ReportColumn("method"),
        ReportColumn("mean (deviation)", lambda row: result_entry(row, metric, several), itself),
        ReportColumn("median", in_metric(metric)),
        ReportColumn("rank", lambda rank: number(rank, ".1f"), shown=several),
        ReportColumn("p against best", p_value, "p_value", several),
        ReportColumn("p adjusted", p_value, "p_adjusted", several),
        ReportColumn("effect size", fixed, "effect_size", several),
        ReportColumn("splits", whole, "n_splits"),
        ReportColumn("failed splits", alarm, "failed"),
    ]
    notes = (
        "p adjusted: with the correction for the number of methods, by which the marks go",
        "effect size: matched-pairs rank-biserial correlation with the best method over the splits; 1 is worse on every split, "
        "-1 better on every split",
    )
    name, caption = f"details-{metric_word(metric)}", f"Every cell: {title(metric)}."
    return lay_out(name, caption, columns, rows, notes if several else (), is_long=True)


def across_section(material: Material) -> Section:
    """Return the section on tests across data sets."""
    across, alpha = material.across, material.alpha
    lines = []
    if across.friedman is not None:
        p = across.friedman.p_value
        verdict = "the methods differ" if p < alpha else "no difference between the methods is shown"
        lines.append(
            f"Friedman test over {counted(len(across.datasets), 'data set')} and {counted(len(across.methods), 'method')}: "
            f"chi-squared = {across.friedman.statistic:.2f}, p = {p:.2g}: {verdict} at alpha = {alpha:g}"
        )
    tables = [*standing_tables(material), *([_pairs_table(across, alpha)] if len(across.pairs) else []), *single_tables(material)]
    word = metric_word(across.metric)
    return Section(f"across-{word}", f"Across data sets: {title(across.metric)}", (*lines, *across.remarks), tuple(tables))


def _pairs_table(across: Across, alpha: float) -> ReportTable:
    about = shown_as(across.metric)
    # the difference of the shown metric: of the accuracies, although the rows have errors
    factor = (100.0 if about.percent else 1.0) * (1.0 if about.name == across.metric else -1.0)
    unit = f"percentage points of {about.name}" if about.percent else f"the unit of the metric {about.name}"
    columns = [
        ReportColumn("method"),
        ReportColumn("other"),
        ReportColumn("better/equal/worse", record, itself),
        ReportColumn("median difference", lambda difference: number(factor * difference), "median_difference"),
        ReportColumn("effect size", fixed, "effect_size"),
        ReportColumn("p Wilcoxon", p_value, "p_wilcoxon"),
        ReportColumn("p Holm", lambda p: replace(p_value(p), strong=p < alpha), "p_holm"),
        ReportColumn("p Nemenyi", p_value, "p_nemenyi"),
    ]
    notes = (
        f"Wilcoxon signed-rank test over the means of the data sets, two-sided; Holm's correction over all pairs; bold: below {alpha:g}",
        "effect size: matched-pairs rank-biserial correlation; 1 if the first method is better on every data set; the median "
        f"difference is in {unit.replace('_', ' ')}",
    )
    name, caption = f"pairs-{metric_word(across.metric)}", f"Pairs of methods across data sets: {title(across.metric)}."
    return lay_out(name, caption, columns, across.pairs.to_dict("records"), notes)
