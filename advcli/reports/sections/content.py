"""The contents of a full report: its sections, tables and plots, whatever the format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ...metrics import shown_as
from ...statistics.marks import DEFAULT
from ..across import across_datasets
from ..choice import Names, in_given_order
from ..figures import Material, drawn
from ..formats.document import Document, Section, counted
from ..published_numbers import FAR, compare_with_published, far_line, published_section
from ..summary import imported, wins_ties_losses
from .certificates import certificate_section, failure_section
from .facts import Facts, made_lines, provenance_section, settings_section
from .items import item_sections
from .results import across_section, results_section
from .verdict import direction, verdict_section


@dataclass(frozen=True)
class Contents:
    """A report and the tables that are written as files of their own."""

    document: Document
    wins: pd.DataFrame  # wins, ties and losses of all metrics
    pairs: pd.DataFrame  # tests across data sets of all metrics
    published: pd.DataFrame | None  # published numbers beside ours, where they were asked for
    far: tuple[str, ...]  # a line for every cell that disagrees with its published number
    learning: pd.DataFrame | None = None  # points of learning curves


def shown_metrics(summary: pd.DataFrame) -> list[str]:
    """Return the metrics that get a section, the primary one first; a metric and its complement are one table."""
    first: dict[str, str] = {}
    for name in dict.fromkeys([summary.attrs.get("primary") or "", *map(str, summary["metric"])]):
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
    """Put the report of a results folder of that name together.

    ``runs`` have unique names of methods (`advcli.reports.summary.with_unique_methods`), and ``summary`` is made from them; ``published``
    is a name of published numbers, ``notes`` are further lines below the comparison tables. The document shows ``names`` instead of names
    of rows, which the CSV tables keep.
    """
    facts, names = facts or Facts(), names or Names()
    significance = summary.attrs.get("significance", DEFAULT)
    metrics = shown_metrics(summary)
    # before the first section, so that an unknown key writes nothing
    beside = None if published is None else compare_with_published(summary, runs, published, facts.cuts)
    runs, summary, compared = names.shown(runs), names.shown(summary), None if beside is None else names.shown(beside)
    pairs = [across_datasets(summary, metric, significance.alpha).pairs for metric in metrics]
    runs, summary = in_given_order(runs, facts.order), in_given_order(summary, facts.order)
    search, learning = (None if frame is None else _of_cells(frame, runs) for frame in (facts.search, facts.learning))
    more: dict[str, Any] = {"compared": compared, "search": search, "confusion": facts.confusion, "learning": learning}
    material = Material(runs, summary, tuple(metrics), metrics[0], significance.alpha, facts.tolerances, **more)
    of_metrics = [replace(material, metric=metric) for metric in metrics]
    wins = [wins_ties_losses(runs, metric, significance).assign(metric=metric) for metric in metrics]
    sections = [section for of_metric, counts in zip(of_metrics, wins, strict=True) for section in _of_metric(of_metric, counts, notes)]
    far: tuple[str, ...] = ()
    if compared is not None and published is not None:
        far = tuple(far_line(row) for row in compared[compared["far"]].to_dict("records"))
        # beside the main table
        sections.insert(1, _with_figures(published_section(compared, published, far, names), "published", material))
    sections += _of_all(material, facts, names)
    head = [*made_lines(facts), *direction(metrics), *_head(runs, len(far))]
    first = verdict_section(summary, metrics[0], of_metrics[0].across, significance.alpha)
    return Contents(
        document=Document(f"Results: {name}", tuple(head), (*first, *sections)),
        wins=names.kept(pd.concat(wins)[["metric", "method", "other", "wins", "ties", "losses"]]),
        pairs=names.kept(pd.concat([part for part in pairs if len(part)] or pairs[:1])),
        published=beside,
        far=far,
        learning=facts.learning,
    )


def _of_cells(frame: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table that are of cells in ``runs``, with the names that these have there."""
    cells = runs.drop_duplicates("cell").set_index("cell")
    frame = frame[frame["cell"].isin(list(cells.index))]
    return frame.assign(**{column: cells[column].reindex(frame["cell"]).array for column in ("dataset", "method")})


def _with_figures(section: Section, word: str, material: Material) -> Section:
    return replace(section, figures=drawn(word, material))


def _of_metric(material: Material, wins: pd.DataFrame, notes: Sequence[str]) -> list[Section]:
    """Return the sections of one metric."""
    results = results_section(material, wins, notes)
    if not material.metric:
        return [results]
    sections = [_with_figures(results, "results", material), *item_sections(material)]
    part = material.summary[material.summary["metric"] == material.metric]
    if part["method"].nunique() > 1 and len(material.across.pairs):
        sections.append(_with_figures(across_section(material), "across", material))
    return sections


def _of_all(material: Material, facts: Facts, names: Names) -> list[Section]:
    """Return the sections that are not of one metric."""
    about = "Metrics along the numeric option that the sweep varied, with standard errors over the runs: curves.csv."
    sections = [
        _with_figures(section, section.name, material)
        for section in (
            Section("predictions", "Predictions"),
            Section("curves", "Curves", (about,) if len(material.points) else ()),
            Section("selection", "Selection of hyper-parameters"),
        )
    ]
    sections = [section for section in sections if section.figures or section.lines]
    fitted = material.runs[~imported(material.runs)]
    if len(fitted):
        sections.append(_with_figures(certificate_section(fitted, facts), "certificates", material))
    sections += failure_section(fitted)
    if facts.notes:
        lines = (f"{names.datasets.get(dataset, dataset)}: {note}" for dataset in sorted(facts.notes) for note in facts.notes[dataset])
        sections.append(Section("data", "Data", tuple(lines)))
    return [*sections, *settings_section(facts, names), provenance_section(facts)]


def _head(runs: pd.DataFrame, far: int) -> list[str]:
    """Return the lines at the top of a report."""
    sizes = ((runs["dataset"].nunique(), "data set"), (runs["method"].nunique(), "method"), (runs["cell"].nunique(), "cell"))
    lines = [", ".join(counted(count, noun) for count, noun in sizes)]
    theirs = runs.loc[imported(runs), "cell"].nunique()
    if theirs:
        lines.append(f"{counted(theirs, 'cell')} imported: numbers of another program, without certificates")
    broken, late = (runs.loc[runs["status"] == status, "cell"].nunique() for status in ("failed", "not_converged"))
    gaps = runs.loc[(runs["status"] == "failed") & imported(runs), "cell"].nunique()
    if gaps:
        lines.append(f"{counted(gaps, 'imported cell')} with gaps, not compared on that data set")
    if broken - gaps:
        broken -= gaps
        lines.append(f"{counted(broken, 'cell')} with a failed fit: see Failures")
    if late:
        lines.append(f"{counted(late, 'cell')} with a fit that did not converge: see Certificates")
    if far:
        which = counted(far, "number disagrees", "numbers disagree")
        lines.append(f"{which} with the published one (|z| > {FAR:g}): see Published numbers")
    return lines
