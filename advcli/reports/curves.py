"""Curves: a metric along a numeric option that a sweep varied, with standard errors over the runs, as in Louche & Ralaivola 2015."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from .summary import numbers as column_numbers

LEAST = 3
"""Different values of an option that make a curve."""

CURVE_MEANINGS = {
    "dataset": "name of the data set",
    "line": "method with the options that stay fixed along the curve",
    "option": "option that the sweep varied",
    "x": "its value",
    "confusion_norm": "mean of the column of runs.csv, under label noise",
    "metric": "name of the metric",
    "mean": "mean of the metric over the runs",
    "standard_error": "deviation over the root of the number of runs",
    "n_runs": "runs of the point",
}
"""Columns of curves.csv with their meanings: one row per point of a curve along an option."""

CURVE_COLUMNS = tuple(CURVE_MEANINGS)


def _options(text: str) -> dict[str, str]:
    return dict(token.split("=", 1) for token in text.split("; ") if "=" in token)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def curve_points(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the points of all curves; empty where no numeric option takes `LEAST` values in the cells of one method.

    The option with the most values is the abscissa; others that vary within a loss tell the lines apart.
    """
    points: list[dict[str, Any]] = []
    for dataset, part in runs[runs["value"].notna()].groupby("dataset", sort=True, observed=True):
        cells = part.drop_duplicates("cell")
        options = {str(row["cell"]): _options(str(row["options"])) for row in cells.to_dict("records")}
        values: dict[str, set[str]] = {}
        for _, group in cells.groupby(["loss", "features"]):
            for key in {key for cell in group["cell"] for key in options[cell]}:
                texts = {options[cell].get(key, "") for cell in group["cell"]}
                if len(texts) > 1:
                    values.setdefault(key, set()).update(texts)
        numeric = {key: texts for key, texts in values.items() if len(texts) >= LEAST and not np.isnan([*map(_number, texts)]).any()}
        if not numeric:
            continue
        option = max(sorted(numeric), key=lambda key: len(numeric[key]))
        others = sorted(set(values) - {option})
        for (cell, metric), rows in part.groupby(["cell", "metric"], sort=False):
            chosen = options[str(cell)]
            if option not in chosen:
                continue
            named = [f"{key.rpartition('.')[2]}={chosen[key]}" for key in others if key in chosen]
            numbers = rows["value"].to_numpy(dtype=float)
            points.append(
                {
                    "dataset": dataset,
                    "line": " ".join([str(rows["loss"].iloc[0]), *named]),
                    "option": option,
                    "x": _number(chosen[option]),
                    "confusion_norm": float(column_numbers(rows, "confusion_norm").mean()),
                    "metric": metric,
                    "mean": float(numbers.mean()),
                    "standard_error": float(numbers.std(ddof=1) / math.sqrt(len(numbers))) if len(numbers) > 1 else math.nan,
                    "n_runs": len(numbers),
                }
            )
    frame = pd.DataFrame(points, columns=list(CURVE_COLUMNS))
    return frame.sort_values(["dataset", "metric", "line", "x"], kind="stable", ignore_index=True)
