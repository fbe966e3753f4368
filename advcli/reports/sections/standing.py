"""Tables of methods over data sets: where each stands, and one method against others on each data set."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ...metrics import meaning, shown_as, title
from ...statistics.items import Interval
from ...statistics.marks import DEFAULT
from ...statistics.tests import benjamini_hochberg, holm, paired_test
from ..figures import Material
from ..formats.document import ReportTable, TableField, counted, metric_word
from ..standing import LEVEL, standings
from ..summary import Samples, in_order, samples
from .columns import MISSING, ReportColumn, lay_out, number, p_value

MOST_RIVALS = 5
"""Methods that the best one is compared with on each data set: those with the next mean ranks."""


def interval(found: Interval | None, factor: float = 1.0) -> TableField:
    """Return an estimate with its interval."""
    if found is None:
        return MISSING
    estimate, low, high = (factor * part for part in found)
    return TableField(f"{estimate:.2f} [{low:.2f}, {high:.2f}]", estimate)


def standing_tables(material: Material) -> list[ReportTable]:
    """Return the table of mean ranks and improvability; none where there are too few data sets."""
    across = material.across
    rows = [
        {"method": one.method, "rank": one.rank, "improvability": one.improvability, "group": one.in_group}
        for one in standings(across, material.alpha)
    ]
    if not rows:
        return []
    columns = [
        ReportColumn("method"),
        ReportColumn("mean rank", interval, "rank"),
        ReportColumn("improvability in percent", lambda gap: interval(gap, 100.0), "improvability", rows[0]["improvability"] is not None),
        ReportColumn("best or not separable", lambda inside: TableField("yes" if inside else "", float(inside), strong=inside), "group"),
    ]
    of = f"in brackets {100 * LEVEL:g} % bootstrap intervals over {counted(len(across.datasets), 'data set')}"
    notes = [
        f"mean rank: 1 is the best; {of}",
        "improvability: by how much less error the best method of a data set has, as a share of the method's own error; mean over data "
        "sets (Erickson et al. 2025)",
        "best or not separable: the best mean rank, and methods that the Wilcoxon test over data sets with Holm's correction over all "
        f"pairs does not separate from it at {material.alpha:g}",
    ]
    notes = notes if rows[0]["improvability"] is not None else [notes[0], notes[2]]
    name = f"standing-{metric_word(across.metric)}"
    return [lay_out(name, f"Where methods stand over data sets: {title(across.metric)}.", columns, rows, notes)]


def single_tables(material: Material) -> list[ReportTable]:
    """Return the table of the best method against the next ones on each data set; none where a test is possible on fewer than two."""
    found = {dataset: part for dataset, part in samples(material.runs, material.metric).items() if _testable(part)}
    if len(found) < 2:
        return []
    methods = [method for method in _by_rank(material, found) if any(method in part.values for part in found.values())]
    significance = material.summary.attrs.get("significance", DEFAULT)
    rows: list[dict[str, Any]] = []
    for best, other in itertools.product(methods[:1], methods[1 : MOST_RIVALS + 1]):
        shared = {dataset: part for dataset, part in found.items() if best in part.values and other in part.values}
        raw = [_test(part, best, other, significance) for part in shared.values()]
        for (dataset, part), p, by_holm, by_bh in zip(shared.items(), raw, holm(raw), benjamini_hochberg(raw), strict=True):
            row = {"method": best, "other": other, "dataset": dataset, "p": p, "holm": by_holm, "bh": by_bh}
            rows.append(row | {"difference": part.values[best].mean() - part.values[other].mean()})
    return [_single_table(material, rows, len(methods) - 1)] if rows else []


def _single_table(material: Material, rows: list[dict[str, Any]], rivals: int) -> ReportTable:
    about = shown_as(material.metric)
    factor = (100.0 if about.percent else 1.0) * (1.0 if about.name == material.metric else -1.0)

    def bold(p: Any) -> TableField:
        return replace(p_value(p), strong=bool(p < material.alpha))

    columns = [
        *map(ReportColumn, ("method", "other", "dataset")),
        ReportColumn("difference", lambda difference: number(factor * difference)),
        ReportColumn("p", p_value),
        ReportColumn("p Holm", bold, "holm"),
        ReportColumn("p Benjamini-Hochberg", bold, "bh"),
    ]
    unit = f"percentage points of {about.name}" if about.percent else f"the unit of {about.name}"
    notes = [
        f"difference: first method minus second, in {unit.replace('_', ' ')}; p by the test within the data set",
        "Holm and Benjamini-Hochberg: corrected over the data sets of one comparison; the first bounds the chance of any false finding, "
        f"the second the expected share of false findings; bold: below {material.alpha:g}",
    ]
    if rivals > MOST_RIVALS:
        notes.append(f"the {MOST_RIVALS} methods with the next mean ranks; report.methods=[...] chooses others")
    caption = f"The best method against others on single data sets: {title(material.metric)}."
    return lay_out(f"single-{metric_word(material.metric)}", caption, columns, rows, notes, is_long=True)


def _testable(part: Samples) -> bool:
    return len(part.values) > 1 and len(next(iter(part.values.values()))) > 1


def _test(part: Samples, a: str, b: str, significance: Any) -> float:
    how = part.significance(significance)
    return paired_test(how.test, part.values[a], part.values[b], part.n_train, part.n_test).p_value


def _by_rank(material: Material, found: Mapping[str, Samples]) -> list[str]:
    """Return the methods by their mean rank over all data sets, or, where that is not known, by their mean."""
    across = material.across
    if len(across.mean_ranks):
        return [across.methods[at] for at in np.argsort(across.mean_ranks, kind="stable")]
    part = material.summary[material.summary["metric"] == material.metric]
    means = {method: part.loc[part["method"] == method, "mean"].mean() for method in in_order(part["method"])}
    sign = -1.0 if meaning(material.metric).higher_is_better else 1.0
    return sorted(means, key=lambda method: math.inf if pd.isna(means[method]) else sign * means[method])
