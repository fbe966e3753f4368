"""From rows to one line per (data set, method, metric), with the marks of the chosen test."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ConfigError, ResultsError, nearest
from ..records import meaning
from ..statistics import TESTS, mark_best

SUMMARY_COLUMNS = (
    "dataset",
    "method",
    "metric",
    "mean",
    "std",
    "n_splits",
    "best",
    "p_value",
    "bold",
    "failed",
    "not_converged",
    "worst_gap",
)
"""Columns of summary.csv; ``failed`` and ``not_converged`` count splits, ``worst_gap`` is the largest certified relative gap."""


def _tokens(row: Mapping[Any, Any]) -> list[str]:
    return [*(part for part in str(row["options"]).split("; ") if part), f"seed={row['seed']}"]


def with_unique_methods(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with method names that tell apart several cells of one method on one data set.

    The name gets those options, and the seed, in which the cells of the method differ, and the key's start if nothing else
    tells them apart: ``abstain linear [loss.alpha=0.3]``.
    """
    runs = runs.copy()
    for column, default in (("cell", ""), ("options", ""), ("seed", 0)):
        if column not in runs:
            runs[column] = default
    cells = runs[["dataset", "method", "cell", "options", "seed"]].drop_duplicates("cell")
    renamed: dict[str, str] = {}
    for method, group in cells.groupby("method", sort=False):
        if not group.duplicated("dataset").any():
            continue
        tokens = {str(row["cell"]): _tokens(row) for row in group.to_dict("records")}
        common = set.intersection(*(set(part) for part in tokens.values()))
        names = {cell: [token for token in part if token not in common] for cell, part in tokens.items()}
        labels = {cell: f"{method} [{', '.join(part)}]" if part else str(method) for cell, part in names.items()}
        seen = group.assign(label=group["cell"].map(labels))
        for cell in seen.loc[seen.duplicated(["dataset", "label"], keep=False), "cell"]:
            labels[cell] += f" #{cell[:6]}"
        renamed |= labels
    if renamed:
        runs["method"] = [renamed.get(cell, method) for cell, method in zip(runs["cell"], runs["method"], strict=True)]
    return runs


def primary_metric(runs: pd.DataFrame) -> str:
    """Return the metric to show: the first one of a cell that all cells have, else the most frequent first one.

    The first metric of a cell is the one that its search used.

    Raises
    ------
    ResultsError
        If no row has a metric.
    """
    known = runs[runs["metric"] != ""]
    if known.empty:
        raise ResultsError("no cell has a result yet; see the column 'error' of runs.csv")
    key = ["dataset", "method"] + (["cell"] if "cell" in known else [])
    firsts = known.groupby(key, sort=False)["metric"].first().value_counts()
    ordered = sorted(firsts.index, key=lambda metric: (-firsts[metric], metric))
    shared = set.intersection(*(set(part) for _, part in known.groupby(key, sort=False)["metric"]))
    return next((metric for metric in ordered if metric in shared), min(shared) if shared else ordered[0])


def summarise(runs: pd.DataFrame, test: str = "corrected_ttest", alpha: float = 0.05, metric: str | None = None) -> pd.DataFrame:
    """Summarise rows per data set, method and metric, and mark the best and those not significantly worse.

    Parameters
    ----------
    runs : DataFrame
        Rows of runs.csv (`advcli.records.ResultsFolder.runs`).
    test : str
        Name in `advcli.statistics.TESTS`.
    alpha : float
        Level of the test.
    metric : str, optional
        Only this metric; default all.

    Returns
    -------
    DataFrame
        Columns `SUMMARY_COLUMNS`, sorted by metric, data set and method; ``std`` has n - 1 in the denominator; ``p_value`` is
        against the best and empty for the best itself. A method with a failed split is not compared. ``attrs["primary"]`` is
        the metric to show.

    Raises
    ------
    ConfigError
        For an unknown test or a metric that no row has.
    ResultsError
        If there are no rows.
    """
    if test not in TESTS:
        raise ConfigError(f"no test {test!r}; {nearest(test, TESTS)}")
    if runs.empty:
        raise ResultsError("no rows to summarise; run an experiment first")
    runs = with_unique_methods(runs)
    known = list(dict.fromkeys(name for name in runs["metric"] if name))
    if metric is not None and metric not in known:
        raise ConfigError(f"no rows with the metric {metric!r}; {nearest(metric, known)}")
    wanted = [metric] if metric is not None else known
    # Cells that failed before their first split have no metric: they appear under every metric.
    lost = runs[runs["metric"] == ""]
    lines: list[dict[str, Any]] = []
    for name in wanted or [""]:
        rows = pd.concat([runs[runs["metric"] == name], lost]) if name else lost
        for dataset, block in rows.groupby("dataset", sort=True):
            lines += _block(str(dataset), name, block, test, alpha)
    summary = pd.DataFrame(lines, columns=list(SUMMARY_COLUMNS))
    summary = summary.sort_values(["metric", "dataset", "method"], kind="stable", ignore_index=True)
    summary.attrs["primary"] = metric or (primary_metric(runs) if known else "")
    return summary


def _block(dataset: str, metric: str, block: pd.DataFrame, test: str, alpha: float) -> list[dict[str, Any]]:
    about = meaning(metric)
    lines: list[dict[str, Any]] = []
    samples: dict[str, pd.Series] = {}
    for method, rows in block.groupby("method", sort=True):
        # A method without a metric on some split is a failure of that split, whatever the reason.
        good = rows[(rows["status"] != "failed") & rows["value"].notna()].sort_values("split")
        failed = len(rows) - len(good)
        values = good["value"].to_numpy(dtype=float)
        gaps = good["relative_gap"].to_numpy(dtype=float, na_value=np.nan) if "relative_gap" in good else np.array([])
        lines.append(
            {
                "dataset": dataset,
                "method": str(method),
                "metric": metric,
                "mean": float(values.mean()) if len(values) else math.nan,
                "std": float(values.std(ddof=1)) if len(values) > 1 else math.nan,
                "n_splits": len(values),
                "failed": failed,
                "not_converged": int((good["status"] == "not_converged").sum()),
                "worst_gap": float(np.nanmax(gaps)) if np.isfinite(gaps).any() else math.nan,
            }
        )
        if not failed:
            counts = np.rint(values * good["n_test"].to_numpy(dtype=float)) if about.is_count else values
            samples[str(method)] = pd.Series(counts, index=good["split"].to_numpy())
    # Pairs are pairs only on common splits of the same sizes.
    common = sorted(set.intersection(*(set(sample.index) for sample in samples.values()))) if samples else []
    shape = block[block["split"].isin(common)] if common else block.iloc[:0]
    marks = (
        mark_best(
            {method: sample.loc[common].to_numpy() for method, sample in samples.items()},
            test=test,
            alpha=alpha,
            higher_is_better=about.higher_is_better,
            n_train=float(shape["n_train"].mean()),
            n_test=float(shape["n_test"].mean()),
        )
        if common
        else {}
    )
    for line in lines:
        mark = marks.get(line["method"])
        line |= {
            "best": bool(mark and mark.best),
            "p_value": mark.p_value if mark else math.nan,
            "bold": bool(mark and mark.bold),
        }
    return lines
