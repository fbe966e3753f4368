"""The contents of a full report: which sections, tables and plots stand in it, whatever the format."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from ..metrics import shown_as, shown_mean, title
from ..rows import hyper_columns, hyper_text, over_splits
from ..statistics import DEFAULT, Significance
from .across import MOST_PAIRED, Across
from .choice import Names
from .comparison import comparison, result_entry
from .document import Document, Figure, ReportTable, Section, TableField, counted, metric_word
from .figures import LEARNING_COLUMNS, Material, drawn
from .published_numbers import FAR, compare_with_published
from .sources import Sources
from .summary import DRAWN, RESULTS, TOLD, in_order, wins_ties_losses

Row = tuple[TableField, ...]


@dataclass(frozen=True)
class Facts:
    """What a folder knows beside its rows.

    Parameters
    ----------
    provenance : dict of folder to dict
        The contents of each results folder's provenance.json; empty without one.
    notes : dict of data set to list of str
        What was done to the data.
    cuts : dict of data set to str
        How a continuous target was cut into classes, or whose splits were used, in a few words.
    edges : dict of cell key to list of str
        Chosen hyper-parameters at the end of what was tried.
    tolerances : tuple of float
        The relative gaps asked for.
    confusion : dict of cell key to dict
        Confusion counts of the cells (`advcli.reports.figures.Material`).
    learning : DataFrame or None
        Fits to shares of the training rows; None without any.
    search : DataFrame or None
        Rows of search.csv; None without the file.
    """

    provenance: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    cuts: dict[str, str] = field(default_factory=dict)
    edges: dict[str, list[str]] = field(default_factory=dict)
    tolerances: tuple[float, ...] = ()
    confusion: dict[str, Any] = field(default_factory=dict)
    learning: pd.DataFrame | None = None
    search: pd.DataFrame | None = None


def read_facts(sources: Sources, cells: Iterable[str]) -> Facts:
    """Read what results folders say beside their rows; a folder with rows alone says nothing."""
    facts = Facts(provenance=sources.provenance, search=sources.search)
    tolerances = set()
    learned: list[dict[str, Any]] = []
    for key in dict.fromkeys(cells):
        about = sources.about(key)
        dataset = str(about.get("dataset", ""))
        for note in about.get("notes", ()):
            known = facts.notes.setdefault(dataset, [])
            known += [note] if note not in known else []
        if about.get("edges"):
            facts.edges[key] = list(about["edges"])
        cell = about.get("cell", {})
        if cell.get("protocol", {}).get("splits") == "author":
            facts.cuts[dataset] = "the authors' splits"
        elif cell.get("dataset", {}).get("cut") not in (None, "none"):
            facts.cuts[dataset] = f"cut: {str(cell['dataset']['cut']).replace('_', ' ')}"
        if isinstance(cell.get("solver", {}).get("tol"), (int, float)):
            tolerances.add(float(cell["solver"]["tol"]))
        if about.get("confusion"):
            facts.confusion[key] = about["confusion"]
        for point in about.get("learning", ()):
            fit = {name: point[name] for name in ("split", "share", "n_train", "relative_gap")} | {"cell": key, "dataset": dataset}
            learned += [fit | {"metric": metric, "value": value} for metric, value in point["values"].items()]
    learning = pd.DataFrame(learned, columns=list(LEARNING_COLUMNS)) if learned else None
    return replace(facts, tolerances=tuple(sorted(tolerances)), learning=learning)


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
        far = tuple(_far_line(row) for row in compared[compared["far"]].to_dict("records"))
        # beside the main table
        sections.insert(1, _published_section(compared, published, far, material, names))
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
    sections.append(_certificate_section(material, facts))
    failures = _failure_section(runs)
    sections += [failures] if failures else []
    if facts.notes:
        lines = tuple(f"{names.datasets.get(dataset, dataset)}: {note}" for dataset in sorted(facts.notes) for note in facts.notes[dataset])
        sections.append(Section("data", "Data", lines))
    sections.append(_provenance_section(facts))
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


def _number(value: Any, digits: int = 3) -> TableField:
    number = float(value)
    return TableField("-", math.nan, state="missing") if math.isnan(number) else TableField(f"{number:.{digits}g}", number)


def _fixed(value: Any, digits: int = 2) -> TableField:
    number = float(value)
    return _number(number) if math.isnan(number) else TableField(f"{number:.{digits}f}", number)


def _median(metric: str, value: float) -> TableField:
    return _number(value) if math.isnan(value) else TableField(shown_mean(metric, value), value)


def _p_value(value: Any) -> TableField:
    number = float(value)
    if math.isnan(number):
        return TableField("-", math.nan, state="missing")
    return TableField("< 0.001" if number < 0.001 else f"{number:.3f}", number)


def _whole(value: Any) -> TableField:
    return TableField("-", math.nan, state="missing") if pd.isna(value) else TableField(str(int(value)), float(value))


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
                _fixed(places.get(str(method), math.nan)),
                TableField(shown_mean(metric, good["mean"].mean()), good["mean"].mean()) if len(good) else _number(math.nan),
                _whole(good["best"].sum()),
                _whole(good["bold"].sum()),
                *(_whole(own[kind].sum()) for kind in counted_pairs),
                _whole(len(good)),
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
        against = (_fixed(row["rank"], 1), _p_value(row["p_value"]), _p_value(row["p_adjusted"]), _fixed(row["effect_size"]))
        rows.append(
            (
                TableField(str(row["dataset"])),
                TableField(str(row["method"])),
                result_entry(row, metric, several),
                _median(metric, row["median"]),
                *(against if several else ()),
                _whole(row["n_splits"]),
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
            p_holm = _p_value(row["p_holm"])
            rows.append(
                (
                    TableField(row["method"]),
                    TableField(row["other"]),
                    TableField(f"{row['wins']}/{row['ties']}/{row['losses']}", float(row["wins"] - row["losses"])),
                    _number(factor * row["median_difference"]),
                    _fixed(row["effect_size"]),
                    _p_value(row["p_wilcoxon"]),
                    TableField(p_holm.text, p_holm.value, strong=significant),
                    _p_value(row["p_nemenyi"]),
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


def _digits(metric: str) -> int:
    return 3 if metric in ("mae", "mse", "abstention_loss") else 1


def _far_line(row: Mapping[Any, Any]) -> str:
    digits = _digits(row["metric"])
    return (
        f"{row['dataset']}, {row['method']}, {row['metric'].replace('_', ' ')}: ours {row['mean']:.{digits}f} ({row['std']:.{digits}f}), "
        f"published {row['printed']}, z = {row['z']:+.1f}" + (f"; {row['note']}" if row["note"] else "")
    )


def ours_beside(row: Mapping[Any, Any]) -> tuple[str, str]:
    """Return our mean with its deviation, and its difference from the published one, with one digit more than the paper prints."""
    digits = _digits(row["metric"]) + (row["metric"] not in ("mae", "mse", "abstention_loss"))
    spread = "" if math.isnan(row["std"]) else f" ({row['std']:.{digits}f})"
    return f"{row['mean']:.{digits}f}{spread}", f"{row['difference']:+.{digits}f}"


def published_lines(compared: pd.DataFrame, key: str) -> list[str]:
    """Return the source of published numbers, and how many agree with ours."""
    known = compared["z"].notna()
    lines = [f"Published numbers beside ours: {next(iter(compared['source']), key)}."]
    if known.any():
        far = int(compared["far"].sum())
        cells = len(compared[known].drop_duplicates(["dataset", "published_method", "metric"]))
        lines.append(
            f"{counted(int(known.sum()), 'number')} compared ({cells} of {compared.attrs['published']} published), "
            f"{far or 'none'} with |z| > {FAR:g}; "
            f"largest |z| {compared['z'].abs().max():.1f}, root mean square {math.sqrt(float((compared['z'] ** 2).mean())):.2f}"
        )
    elif compared.empty:
        lines.append("no published number has a counterpart in these results")
    return lines


def _published_section(compared: pd.DataFrame, key: str, far: tuple[str, ...], material: Material, names: Names) -> Section:
    rows: list[Row] = []
    for row in compared.to_dict("records"):
        ours, difference = ours_beside(row)
        z = TableField("-", math.nan, state="missing") if math.isnan(row["z"]) else TableField(f"{row['z']:+.2f}", abs(row["z"]))
        rows.append(
            (
                TableField(str(row["dataset"])),
                TableField(str(row["method"])),
                TableField(str(row["metric"]).replace("_", " ")),
                TableField(str(row["published_method"])),
                TableField(str(row["printed"]), row["published_mean"]),
                TableField(ours, row["mean"]),
                TableField(difference, row["difference"]),
                TableField(z.text, z.value, strong=bool(row["far"]), state="far" if row["far"] else z.state),
                TableField(str(row["note"])),
            )
        )
    caption, *lines = published_lines(compared, key)
    lines += [f"disagrees: {line}" for line in far]
    if compared.attrs.get("without_ours"):
        lines.append(f"{counted(compared.attrs['without_ours'], 'published number')} without a counterpart in these results")
    alone = compared.attrs.get("without_published", [])
    lonely = [f"{names.datasets.get(dataset, dataset)}, {names.methods.get(method, method)}" for dataset, method in alone]
    if lonely:
        shown = "; ".join(lonely[:8]) + (f" and {len(lonely) - 8} more" if len(lonely) > 8 else "")
        lines.append(f"not published: {shown}")
    table = ReportTable(
        "published",
        caption,
        ("dataset", "method", "metric", "published as", "published", "ours", "difference", "z", "note"),
        tuple(rows),
        notes=(
            "z: difference of the means in units of its standard error, sqrt(std1^2/n1 + std2^2/n2), n = number of splits of each; "
            "the page sorts by its size",
            "splits, the folds of the search and roundings differ between the two: about one |z| in 20 lies above 2 by chance",
        ),
        n_text_columns=4,
    )
    if not compared["note"].any():
        table = replace(table, columns=table.columns[:-1], rows=tuple(row[:-1] for row in rows))
    tables = (table,) if rows else ()
    return Section("published-numbers", "Published numbers", tuple(lines), tables, drawn("published", material))


def _certificate_section(material: Material, facts: Facts) -> Section:
    fits = material.runs.drop_duplicates(["cell", "split"])
    fits = fits[fits["status"] != "failed"]
    hyper = [name for name in hyper_columns(map(str, fits.columns)) if name not in (RESULTS, DRAWN, TOLD)]
    rows: list[Row] = []
    worst: list[float] = []
    for (dataset, method), part in fits.groupby(["dataset", "method"], sort=True, observed=True):
        gaps = part["relative_gap"].to_numpy(dtype=float, na_value=np.nan) if "relative_gap" in part else np.array([np.nan])
        gap = math.nan if np.isnan(gaps).all() else float(np.nanmax(gaps))
        late = int((part["status"] == "not_converged").sum())
        passes = part["passes"].astype("Float64").to_numpy(dtype=float, na_value=np.nan) if "passes" in part else np.array([np.nan])
        seconds = part["fit_seconds"].mean() if "fit_seconds" in part else math.nan
        chosen = ", ".join(
            f"{name} = {hyper_text(over_splits(values))}"
            for name in hyper
            if (values := [value for value in part[name] if pd.notna(value) and value != ""])
        )
        edges = facts.edges.get(str(part["cell"].iloc[0]), [])
        solvers = sorted({str(name) for name in part["solver"]}) if "solver" in part else []
        worst.append(gap)
        rows.append(
            (
                TableField(str(dataset)),
                TableField(str(method)),
                TableField("/".join(solvers)),
                TableField(chosen),
                _whole(len(part)),
                TableField(str(late), float(late), state="failed" if late else ""),
                TableField("no certificate", math.nan, state="missing") if math.isnan(gap) else TableField(f"{gap:.1e}", gap),
                _number(np.nanmean(passes) if np.isfinite(passes).any() else math.nan),
                _whole(np.nanmax(passes) if np.isfinite(passes).any() else math.nan),
                _number(seconds),
                TableField("; ".join(edges)),
            )
        )
    lines = []
    certified = [gap for gap in worst if not math.isnan(gap)]
    if certified:
        asked = f" (asked for: {', '.join(f'{tolerance:g}' for tolerance in facts.tolerances)})" if facts.tolerances else ""
        lines.append(f"largest certified relative duality gap: {max(certified):.1e}{asked}")
    n_late = int((fits["status"] == "not_converged").sum())
    without = int(fits["relative_gap"].isna().sum()) if "relative_gap" in fits else len(fits)
    told = len(fits) - without
    if told or not without:
        lines.append(f"{n_late} of {counted(told, 'fit')} did not converge" if n_late else f"all of {counted(told, 'fit')} converged")
    if without:
        lines.append(f"{counted(without, 'fit has', 'fits have')} no certificate: how far they are from an optimum is not known")
    table = ReportTable(
        "certificates",
        "Certificates, chosen hyper-parameters and effort of every cell.",
        (
            "dataset",
            "method",
            "solver",
            "hyper-parameters",
            "fits",
            "not converged",
            "worst gap",
            "mean passes",
            "most passes",
            "seconds per fit",
            "edge of the search",
        ),
        tuple(rows),
        n_text_columns=4,
        is_long=True,
    )
    tables = (table,) if rows else ()
    return Section("certificates-and-effort", "Certificates", tuple(lines), tables, drawn("certificates", material))


def _failure_section(runs: pd.DataFrame) -> Section | None:
    failed = runs[runs["status"] == "failed"]
    if failed.empty:
        return None
    rows: list[Row] = []
    for (dataset, method, cell), part in failed.groupby(["dataset", "method", "cell"], sort=True, observed=True):
        splits = sorted({int(split) for split in part["split"].dropna()})
        errors = [str(error) for error in dict.fromkeys(part["error"]) if error]
        where = ", ".join(map(str, splits)) or "before the first"
        place = f"{part[RESULTS].iloc[0]}/" if RESULTS in part else ""
        rows.append(
            (
                TableField(str(dataset)),
                TableField(str(method)),
                TableField(where),
                TableField("; ".join(errors)),
                TableField(f"{place}failures/{cell}.txt"),
            )
        )
    table = ReportTable(
        "failures",
        "Fits that did not happen.",
        ("dataset", "method", "splits", "error", "traceback"),
        tuple(rows),
        notes=("a method with a failed split is not compared on that data set; the next run tries such cells again",),
        n_text_columns=5,
    )
    return Section("failed-fits", "Failures", (), (table,))


def _flat(value: Any, prefix: str) -> list[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        return [pair for key, item in value.items() for pair in _flat(item, f"{prefix}.{key}" if prefix else str(key))]
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [pair for at, item in enumerate(value, start=1) for pair in _flat(item, f"{prefix}.{at}")]
    return [(prefix, value if isinstance(value, str) else json.dumps(value))]


def _provenance_section(facts: Facts) -> Section:
    lines: list[str] = []
    details: list[tuple[str, str]] = []
    for label, known in facts.provenance.items():
        where = f"{label}: " if len(facts.provenance) > 1 else ""
        lines += [f"{where}{line}" for line in _made(known) or ["no provenance.json in this folder"]]
        details += [(f"{where}{key}", value) for key, value in _flat(known.get("config") or {}, "")]
    return Section("provenance", "Provenance", tuple(lines), details=tuple(details))


def _made(known: Mapping[str, Any]) -> list[str]:
    """Return in lines how the rows of a folder were made, by its provenance.json."""
    lines = []
    sets = known.get("made_by") or [known]
    for made in sets:
        cells = f"{counted(len(made['cells']), 'cell')}: " if len(sets) > 1 else ""
        lines += [f"{cells}{line}" for line in _made_by(made)]
    if "wall_seconds" in known:
        memory = known.get("peak_memory_bytes", 0) / 2**20
        lines.append(
            f"from {known.get('start')} to {known.get('end')}: {known['wall_seconds']:.0f} s of work in "
            f"{counted(len(known.get('sessions', [1])), 'session')}, peak memory {memory:.0f} MiB"
        )
    if known.get("command"):
        lines.append(f"command: {shlex.join(map(str, known['command']))}")
    data = known.get("data") or {}
    for name, contents in data.items():
        lines += [f"data {name}: sha256 {digest}" for digest in ([contents] if isinstance(contents, str) else contents)]
    return lines


def _made_by(made: Mapping[str, Any]) -> list[str]:
    """Return in lines what made some cells of a folder."""
    lines = [] if made.get("versions") else ["versions: not recorded"] if "cells" in made else []
    if made.get("versions"):
        lines.append("versions: " + ", ".join(f"{name} {version}" for name, version in made["versions"].items()))
    git = made.get("git") or {}
    if git.get("commit"):
        changed = " with uncommitted changes" if git.get("dirty") else ""
        lines.append(f"commit {git['commit']}{changed}")
    cpu = made.get("cpu") or {}
    if cpu:
        level = f", {made['instruction_set']} kernels" if made.get("instruction_set") else ""
        lines.append(f"processor: {cpu.get('model')}, {cpu.get('logical_cores')} logical cores, {cpu.get('machine')}{level}")
    return lines
