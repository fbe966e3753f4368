"""The first section of a report: which method is best on which data set, which differences are significant, and what failed."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from ...metrics import shown_as, title
from ..across import Across
from ..formats.document import Section, counted, listed
from ..standing import standings
from ..summary import in_order, untested


def verdict_section(summary: pd.DataFrame, metric: str, across: Across, alpha: float) -> list[Section]:
    """Return the section about the primary metric in words; none where there is a single method or no value."""
    part = summary[summary["metric"] == metric]
    valued = part[part["n_splits"] > 0]
    if not metric or part["method"].nunique() < 2 or valued.empty:
        return []
    lines = [*_best(valued, metric), *_significant(part, summary), *_across(across, alpha), *_lacking(part), *untested(summary)]
    return [Section("verdict", "Verdict", tuple(lines))]


def _best(valued: pd.DataFrame, metric: str) -> list[str]:
    """Return the line about the best mean on each data set."""
    about = shown_as(metric)
    whole = valued[valued["failed"] == 0]
    extreme = "highest" if about.higher_is_better else "lowest"
    winners: dict[str, list[str]] = {}
    for dataset in in_order(whole["dataset"]):
        for method in whole.loc[(whole["dataset"] == dataset) & whole["best"], "method"]:
            winners.setdefault(str(method), []).append(dataset)
    order = [method for method in in_order(whole["method"]) if method in winners]
    if not order:
        return []
    return [f"{extreme} mean {about.name.replace('_', ' ')}: " + "; ".join(f"{method} on {listed(winners[method])}" for method in order)]


def _significant(part: pd.DataFrame, summary: pd.DataFrame) -> list[str]:
    """Return the lines about methods that are significantly worse than the best on a data set, and about the other methods."""
    apart = set(summary.attrs.get("unpaired", ()))
    tested = part[(part["failed"] == 0) & (part["n_splits"] > 1) & ~part["dataset"].isin(apart)]
    tested = tested[tested.groupby("dataset", observed=True)["method"].transform("size") > 1]
    if tested.empty:
        return []
    several = tested["dataset"].nunique()
    worse = {method: _datasets(tested[(tested["method"] == method) & ~tested["bold"]]) for method in in_order(tested["method"])}
    lines = [
        f"{method}: significantly worse than the best on {listed(datasets)}"
        + (f" ({len(datasets)} of {several} data sets)" if several > 1 else "")
        for method, datasets in worse.items()
        if datasets
    ]
    equal = [method for method, datasets in worse.items() if not datasets]
    where = "" if several == 1 else " on any data set"
    if not lines:
        return [f"no method is significantly worse than the best{where}: chance may explain the differences"]
    return [*lines, f"not significantly worse than the best{where}: {listed(equal)}"] if equal else lines


def _across(across: Across, alpha: float) -> list[str]:
    """Return the lines of the tests over the data sets, where there are enough of them."""
    if across.friedman is None:
        return []
    differ = "the methods differ" if across.friedman.p_value < alpha else "no difference between the methods is shown"
    lines = [f"over all {counted(len(across.datasets), 'data set')}: {differ} (Friedman test, p = {across.friedman.p_value:.2g})"]
    group = [one.method for one in standings(across, alpha) if one.in_group]
    if len(group) > 1:
        lines.append(f"best mean rank: {group[0]}; not separable from it over the data sets: {listed(group[1:])}")
    elif group:
        lines.append(f"best mean rank, separable from all others over the data sets: {group[0]}")
    return lines


def _lacking(part: pd.DataFrame) -> list[str]:
    """Return the lines about failed fits and fits that did not converge."""
    lines = []
    for column, what in (("failed", "failed"), ("not_converged", "not converged")):
        cells = part[part[column] > 0]
        names = [f"{row['method']} on {row['dataset']} ({counted(int(row[column]), 'split')})" for row in cells.to_dict("records")]
        lines += [f"{what}: {listed(names, '; ')}"] if names else []
    return lines


def _datasets(rows: pd.DataFrame) -> list[str]:
    return in_order(rows["dataset"])


def direction(metrics: Iterable[str]) -> list[str]:
    """Return for each metric which direction is better."""
    return [f"{title(metric)}: {'higher' if shown_as(metric).higher_is_better else 'lower'} is better" for metric in metrics if metric]
