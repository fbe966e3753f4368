"""The section on values of single items: shares with Wilson's intervals, and pairs of methods on the same items."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...metrics import meaning, shown_as, title
from ...statistics.items import RESAMPLES, paired_bootstrap, wilson
from ...statistics.tests import holm, mcnemar, wilcoxon
from ..figures import Material
from ..formats.document import ReportTable, Section, metric_word
from ..standing import LEVEL
from ..summary import Samples, samples
from .columns import ReportColumn, lay_out, p_value, whole
from .standing import interval

MOST_PAIRS = 6
"""Methods of a data set that are all compared with each other; of more, each is compared with the best."""


def item_sections(material: Material) -> list[Section]:
    """Return the section of a metric whose values are of items; none without such values."""
    found = {dataset: part for dataset, part in samples(material.runs, material.metric).items() if part.items and part.values}
    if not found:
        return []
    word = metric_word(material.metric)
    tables = [*_shares(material, found), *_pairs(material, found)]
    return [Section(f"items-{word}", f"Items: {title(material.metric)}", (), tuple(tables))]


def _binary(part: Samples) -> bool:
    return all(np.isin(values, (0.0, 1.0)).all() for values in part.values.values())


def _shares(material: Material, found: dict[str, Samples]) -> list[ReportTable]:
    rows = []
    for dataset, part in found.items():
        for method, values in part.values.items() if _binary(part) else ():
            n, ones = len(values), int(values.sum())
            rows.append({"dataset": dataset, "method": method, "items": n, "ones": ones, "share": wilson(ones, n, LEVEL)})
    if not rows:
        return []
    columns = [
        *map(ReportColumn, ("dataset", "method")),
        ReportColumn("items", whole),
        ReportColumn("with value 1", whole, "ones"),
        ReportColumn("share in percent", lambda share: interval(share, 100.0), "share"),
    ]
    name, caption = f"shares-{metric_word(material.metric)}", f"Shares of items: {shown_as(material.metric).name.replace('_', ' ')}."
    return [lay_out(name, caption, columns, rows, [f"in brackets Wilson's {100 * LEVEL:g} % interval of the share"])]


def _pairs(material: Material, found: dict[str, Samples]) -> list[ReportTable]:
    rows: list[dict[str, Any]] = []
    for dataset, part in found.items():
        pairs = _chosen(part, meaning(material.metric).higher_is_better)
        test = mcnemar if _binary(part) else wilcoxon
        compared = [_pair(part.values[a], part.values[b]) for a, b in pairs]
        raw = [test(part.values[a], part.values[b]).p_value for a, b in pairs]
        for (a, b), facts, p, adjusted in zip(pairs, compared, raw, holm(raw), strict=True):
            rows.append({"dataset": dataset, "method": a, "other": b, **facts, "p": p, "holm": adjusted})
    if not rows:
        return []
    binary = all(map(_binary, found.values()))
    scale = 100.0 if binary else 1.0
    columns = [
        *map(ReportColumn, ("dataset", "method", "other")),
        ReportColumn("first higher", whole, "more"),
        ReportColumn("second higher", whole, "less"),
        ReportColumn("difference", lambda found: interval(found, scale)),
        ReportColumn("p McNemar" if binary else "p", p_value, "p"),
        ReportColumn("p Holm", p_value, "holm"),
    ]
    unit = "percentage points" if binary else "the unit of the metric"
    notes = [
        f"difference: first method minus second, in {unit}; in brackets the {100 * LEVEL:g} % interval of {RESAMPLES} paired bootstrap "
        "resamples of the items",
        "first higher, second higher: items on which that method alone has the higher value",
        ("exact McNemar test" if binary else "exact McNemar test of values 0 and 1, Wilcoxon signed-rank test of others")
        + ", two-sided; Holm's correction over the pairs of a data set",
    ]
    name = f"item-pairs-{metric_word(material.metric)}"
    return [lay_out(name, f"Pairs of methods on the same items: {title(material.metric)}.", columns, rows, notes)]


def _chosen(part: Samples, higher: bool) -> list[tuple[str, str]]:
    methods = list(part.values)
    if len(methods) <= MOST_PAIRS:
        return list(itertools.combinations(methods, 2))
    best = (max if higher else min)(methods, key=lambda method: float(part.values[method].mean()))
    return [(best, other) for other in methods if other != best]


def _pair(a: NDArray[np.float64], b: NDArray[np.float64]) -> dict[str, Any]:
    return {"more": int((a > b).sum()), "less": int((a < b).sum()), "difference": paired_bootstrap(a, b, LEVEL)}
