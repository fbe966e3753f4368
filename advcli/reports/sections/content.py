"""The contents of a full report: which sections, tables and plots stand in it, whatever the format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from ...metrics import shown_as, shown_mean, title
from ...statistics.marks import DEFAULT, Significance
from ..across import MOST_PAIRED, Across
from ..choice import Names
from ..comparison import comparison, result_entry
from ..figures import Material, drawn
from ..formats.document import Document, Figure, ReportTable, Section, TableField, counted, metric_word
from ..published_numbers import FAR, compare_with_published
from ..summary import in_order, wins_ties_losses
from .cells import fixed_text, median_text, number_text, p_value_text, whole_text
from .certificates import certificate_section, failure_section
from .facts import Facts, Row
from .provenance import provenance_section
from .published import far_line, published_section


@dataclass(frozen=True)
class Contents:
    """A report and the tables that are written as files of their own.

    Parameters
    ----------
    document : Document
        What Markdown, LaTeX and HTML show.
    wins, pairs : DataFrame
        Counts of wins, ties and losses, and the tests across data sets, for all metrics.
    published : DataFrame or None
        Published numbers beside ours; None when none were asked for.
    far : tuple of str
        One line for every cell that disagrees with its published number.
    learning : DataFrame or None
        The points of learning curves; None without any.
    """

    document: Document
    wins: pd.DataFrame
    pairs: pd.DataFrame
    published: pd.DataFrame | None
    far: tuple[str, ...]
    learning: pd.DataFrame | None = None


def shown_metrics(summary: pd.DataFrame) -> list[str]:
    """Return the metrics that get a section, the primary one first; a metric and its complement are one table."""
    primary = summary.attrs.get("primary") or ""
    metrics = list(dict.fromkeys([primary, *(str(name) for name in summary["metric"])]))
    first: dict[str, str] = {}
    for name in metrics:
        first.setdefault(shown_as(name).name, name)
    return list(first.values())


def contents(
    name: str,
    runs: pd.DataFrame,
    summary: pd.DataFrame,
    *,
    published: str | None = None,
    facts: Facts | None = None,
    notes: Sequence[str] = (),
    names: Names | None = None,
) -> Contents:
    """Put a report together.

    Parameters
    ----------
    name : str
        Of the results folder.
    runs : DataFrame
        Rows with unique names of methods (`advcli.reports.summary.with_unique_methods`).
    summary : DataFrame
        Made from them.
    published : str, optional
        Name of published numbers (`advcli.reports.published_numbers.published_keys`).
    facts : Facts, optional
        From `read_facts`.
    notes : sequence of str
        Further lines below the comparison tables.
    names : Names, optional
        Names that the document shows in the place of those in rows; the tables beside it keep those of the rows.
    """
    facts, names = facts or Facts(), names or Names()
    significance = summary.attrs.get("significance", DEFAULT)
    metrics = shown_metrics(summary)
    # Before the first section, so that an unknown key writes nothing.
    beside = None if published is None else compare_with_published(summary, runs, published, facts.cuts)
    runs, summary, compared = names.shown(runs), names.shown(summary), None if beside is None else names.shown(beside)
    material = Material(runs, summary, tuple(metrics), metrics[0], significance.alpha, facts.tolerances, compared)
    search, learning = (None if frame is None else _of_cells(frame, runs) for frame in (facts.search, facts.learning))
    material = replace(material, search=search, confusion=facts.confusion, learning=learning)
    sections: list[Section] = []
    wins_parts, pair_parts = [], []
    for metric in metrics:
        wins = wins_ties_losses(runs, metric, significance)
        wins_parts.append(wins.assign(metric=metric))
        of_metric = replace(material, metric=metric)
        pair_parts.append(of_metric.across.pairs)
        sections += _metric_sections(of_metric, wins, notes)
    far: tuple[str, ...] = ()
    if compared is not None and published is not None:
        far = tuple(far_line(row) for row in compared[compared["far"]].to_dict("records"))
        # beside the main table
        sections.insert(1, published_section(compared, published, far, material, names))
    about = "Metrics along the numeric option that the sweep varied, with standard errors over the runs: curves.csv."
    more: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("predictions", "Predictions", ()),
        ("curves", "Curves", (about,) if len(material.points) else ()),
        ("selection", "Selection of hyper-parameters", ()),
    )
    for word, heading, lines in more:
        figures = drawn(word, material)
        if figures or lines:
            sections.append(Section(word, heading, lines, (), figures))
    sections.append(certificate_section(material, facts))
    failures = failure_section(runs)
    sections += [failures] if failures else []
    if facts.notes:
        lines = tuple(f"{names.datasets.get(dataset, dataset)}: {note}" for dataset in sorted(facts.notes) for note in facts.notes[dataset])
        sections.append(Section("data", "Data", lines))
    sections.append(provenance_section(facts))
    cells = runs.drop_duplicates("cell")
    head = [
        ", ".join(
            [
                counted(runs["dataset"].nunique(), "data set"),
                counted(runs["method"].nunique(), "method"),
                counted(len(cells), "cell"),
            ]
        ),
    ]
    if runs["method"].nunique() > 1:
        head.append(f"marks: {significance.row}")
    broken = runs.loc[runs["status"] == "failed", "cell"].nunique()
    late = runs.loc[runs["status"] == "not_converged", "cell"].nunique()
    if broken:
        head.append(f"{counted(broken, 'cell')} with a failed fit: see Failures")
    if late:
        head.append(f"{counted(late, 'cell')} with a fit that did not converge: see Certificates")
    if far:
        head.append(
            f"{counted(len(far), 'number disagrees', 'numbers disagree')} with the published one (|z| > {FAR:g}): see Published numbers"
        )
    return Contents(
        document=Document(f"Results: {name}", tuple(head), tuple(sections)),
        wins=names.kept(pd.concat(wins_parts)[["metric", "method", "other", "wins", "ties", "losses"]]),
        pairs=names.kept(pd.concat([part for part in pair_parts if len(part)] or pair_parts[:1])),
        published=beside,
        far=far,
        learning=facts.learning,
    )


def _of_cells(frame: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table that are of cells in ``runs``, with the names that these have there."""
    cells = runs.drop_duplicates("cell").set_index("cell")
    frame = frame[frame["cell"].isin(list(cells.index))]
    return frame.assign(**{column: cells[column].reindex(frame["cell"]).array for column in ("dataset", "method")})


def _metric_sections(material: Material, wins: pd.DataFrame, notes: Sequence[str]) -> list[Section]:
    summary, metric, alpha = material.summary, material.metric, material.alpha
    significance = summary.attrs.get("significance", DEFAULT)
    label, word = (title(metric) or "results"), metric_word(metric)
    part = summary[summary["metric"] == metric]
    several = part["method"].nunique() > 1
    tables = [_with_published(comparison(summary, metric=metric, notes=notes), material)]
    if not metric:
        return [Section(f"results-{word}", f"Results: {label}", (), tuple(tables))]
    if several:
        tables += [_overview(part, metric, wins, material.across), *_wins_tables(part, wins, word, label, significance)]
    tables.append(_details(part, metric, several))
    sections = [Section(f"results-{word}", f"Results: {label}", (), tuple(tables), drawn("results", material))]
    if several and part["dataset"].nunique() > 1:
        sections.append(_across_section(material.across, alpha, drawn("across", material)))
    return sections


def _with_published(table: ReportTable, material: Material) -> ReportTable:
    """Return the comparison table of a single method with its published numbers beside ours, where there are any."""
    compared = material.compared
    if compared is None or len(table.columns) != 2:
        return table
    found = compared[compared["metric"] == shown_as(material.metric).name].drop_duplicates("dataset")
    if found.empty:
        return table
    lines = {str(row["dataset"]): row for row in found.to_dict("records")}
    nothing = TableField("-", math.nan, state="missing")

    def beside(dataset: str) -> Row:
        row = lines.get(dataset)
        if row is None:
            return nothing, nothing
        z = nothing if math.isnan(row["z"]) else TableField(f"{row['z']:+.2f}", abs(row["z"]), state="far" if row["far"] else "")
        return TableField(str(row["printed"]), row["published_mean"]), z

    blank = TableField("", math.nan)
    return replace(
        table,
        columns=(*table.columns, f"published: {', '.join(dict.fromkeys(found['published_method']))}", "z"),
        rows=tuple((*row, *beside(row[0].text)) for row in table.rows),
        footer=tuple((*row, blank, blank) for row in table.footer),
    )


def _overview(part: pd.DataFrame, metric: str, wins: pd.DataFrame, across: Across) -> ReportTable:
    places = dict(zip(across.methods, across.mean_ranks, strict=True)) if len(across.mean_ranks) else {}
    rows: list[Row] = []
    counted_pairs = ("wins", "ties", "losses") if len(wins) else ()
    for method, lines in part.groupby("method", sort=True, observed=True):
        own = wins[wins["method"] == method]
        good = lines[(lines["n_splits"] > 0) & (lines["failed"] == 0)]
        rows.append(
            (
                TableField(str(method)),
                fixed_text(places.get(str(method), math.nan)),
                TableField(shown_mean(metric, good["mean"].mean()), good["mean"].mean()) if len(good) else number_text(math.nan),
                whole_text(good["best"].sum()),
                whole_text(good["bold"].sum()),
                *(whole_text(own[kind].sum()) for kind in counted_pairs),
                whole_text(len(good)),
                TableField(str(len(lines) - len(good)), len(lines) - len(good), state="failed" if len(good) < len(lines) else ""),
            )
        )
    note = "no method has complete results on a common data set with another"
    if places:
        over = counted(len(across.datasets), "data set")
        note = f"mean rank: over the {over} on which all ranked methods have complete results; 1 is the best"
    return ReportTable(
        f"overview-{metric_word(metric)}",
        f"Methods at a glance: {title(metric)}.",
        ("method", "mean rank", "mean", "best", "bold", *counted_pairs, "complete", "with failures"),
        tuple(rows),
        notes=(
            note,
            "mean: over the data sets of that method alone; best, bold: data sets where it is best, or best or not significantly worse",
            "wins, ties, losses: over all pairs with another method on one data set, by the test within the data set"
            if len(wins)
            else f"more than {MOST_PAIRED} methods are not compared pair by pair; report.methods=[...] chooses some",
        ),
    )


def _wins_tables(part: pd.DataFrame, wins: pd.DataFrame, word: str, label: str, significance: Significance) -> list[ReportTable]:
    methods = in_order(part["method"])
    if len(methods) < 2 or wins.empty:
        return []
    counts = {(row["method"], row["other"]): row for row in wins.to_dict("records")}
    rows = []
    for method in methods:
        entries = [TableField(str(method))]
        for other in methods:
            row = counts.get((method, other))
            if row is None:
                entries.append(TableField("", math.nan))
            else:
                entries.append(TableField(f"{row['wins']}/{row['ties']}/{row['losses']}", float(row["wins"] - row["losses"])))
        rows.append(tuple(entries))
    notes = (
        f"data sets on which the row's method is significantly better / not different / significantly worse than the column's: "
        f"{significance.single} for every pair, not corrected for their number; the page sorts by wins minus losses",
    )
    return [ReportTable(f"wins-{word}", f"Wins/ties/losses: {label}.", ("method", *methods), tuple(rows), notes=notes)]


def _details(part: pd.DataFrame, metric: str, several: bool) -> ReportTable:
    rows: list[Row] = []
    for row in part.to_dict("records"):
        against = (
            fixed_text(row["rank"], 1),
            p_value_text(row["p_value"]),
            p_value_text(row["p_adjusted"]),
            fixed_text(row["effect_size"]),
        )
        rows.append(
            (
                TableField(str(row["dataset"])),
                TableField(str(row["method"])),
                result_entry(row, metric, several),
                median_text(metric, row["median"]),
                *(against if several else ()),
                whole_text(row["n_splits"]),
                TableField(str(row["failed"]), float(row["failed"]), state="failed" if row["failed"] else ""),
            )
        )
    return ReportTable(
        f"details-{metric_word(metric)}",
        f"Every cell: {title(metric)}.",
        (
            "dataset",
            "method",
            "mean (deviation)",
            "median",
            *(("rank", "p against best", "p adjusted", "effect size") if several else ()),
            "splits",
            "failed splits",
        ),
        tuple(rows),
        notes=()
        if not several
        else (
            "p adjusted: with the correction for the number of methods, by which the marks go",
            "effect size: matched-pairs rank-biserial correlation with the best method over the splits; 1 is worse on every split, "
            "-1 better on every split",
        ),
        n_text_columns=2,
        is_long=True,
    )


def _across_section(across: Across, alpha: float, figures: tuple[Figure, ...]) -> Section:
    lines = []
    if across.friedman is not None:
        p = across.friedman.p_value
        said = "the methods differ" if p < alpha else "no difference between the methods is shown"
        lines.append(
            f"Friedman test over {counted(len(across.datasets), 'data set')} and {counted(len(across.methods), 'method')}: "
            f"chi-squared = {across.friedman.statistic:.2f}, p = {p:.2g}: {said} at alpha = {alpha:g}"
        )
    lines += across.remarks
    tables = []
    if len(across.pairs):
        rows: list[Row] = []
        about = shown_as(across.metric)
        # the difference of what is shown: of the accuracies, not of the errors that stand in the rows
        factor = (100.0 if about.percent else 1.0) * (1.0 if about.name == across.metric else -1.0)
        unit = f"percentage points of {about.name}" if about.percent else f"the unit of the metric {about.name}"
        for row in across.pairs.to_dict("records"):
            significant = row["p_holm"] < alpha
            p_holm = p_value_text(row["p_holm"])
            rows.append(
                (
                    TableField(row["method"]),
                    TableField(row["other"]),
                    TableField(f"{row['wins']}/{row['ties']}/{row['losses']}", float(row["wins"] - row["losses"])),
                    number_text(factor * row["median_difference"]),
                    fixed_text(row["effect_size"]),
                    p_value_text(row["p_wilcoxon"]),
                    TableField(p_holm.text, p_holm.value, strong=significant),
                    p_value_text(row["p_nemenyi"]),
                )
            )
        tables.append(
            ReportTable(
                f"pairs-{metric_word(across.metric)}",
                f"Pairs of methods across data sets: {title(across.metric)}.",
                ("method", "other", "better/equal/worse", "median difference", "effect size", "p Wilcoxon", "p Holm", "p Nemenyi"),
                tuple(rows),
                notes=(
                    "Wilcoxon signed-rank test over the means of the data sets, two-sided; Holm's correction over all pairs; "
                    f"bold: below {alpha:g}",
                    "effect size: matched-pairs rank-biserial correlation; 1 if the first method is better on every data set; the median "
                    f"difference is in {unit.replace('_', ' ')}",
                ),
                n_text_columns=2,
            )
        )
    return Section(
        f"across-{metric_word(across.metric)}", f"Across data sets: {title(across.metric)}", tuple(lines), tuple(tables), figures
    )
