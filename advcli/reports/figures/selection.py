"""What the search saw: the metric against the strength of the regularisation, above how well its fits are certified."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from ...core.hyper import SCALES
from ...metrics import meaning, title
from ...results.tables import SEARCH_COLUMNS, hyper_columns
from ..drawing import MAX_METHODS, WIDTH_INCHES, Axes, as_shown, draw, legend, legend_height, log_scale, look, power, scale, tolerance_lines
from ..formats.document import Figure, file_word, metric_word
from ..summary import in_order, numbers
from .base import Material, register

MAX_DATASETS = 12


@register("selection", section="selection", needs=("dataset", "method"))
def selection(material: Material) -> Iterator[Figure]:
    """Draw the mean and standard error over the folds at every strength, and below it the band of relative gaps of those fits.

    With further hyper-parameters a strength shows the best of its candidates.
    """
    search = material.search
    if search is None or search.empty:
        return
    search = search[search["value"].notna()]
    datasets, methods = in_order(search["dataset"])[:MAX_DATASETS], in_order(material.runs["method"])
    search = search[search["dataset"].isin(datasets)]
    for (dataset, metric), part in search.groupby(["dataset", "metric"], sort=True, observed=True):
        strength = next((name for name in SCALES if name in part and part[name].notna().any()), None)
        if strength is None:
            continue
        lines = {str(method): _path(rows, strength, str(metric)) for method, rows in part.groupby("method", sort=True, observed=True)}
        lines = {method: line for method, line in lines.items() if line[strength].nunique() > 1}
        if 0 < len(lines) <= MAX_METHODS:
            looks = {method: look(methods.index(method)) for method in lines}
            yield _one(str(dataset), str(metric), strength, lines, looks, material)


def _path(rows: pd.DataFrame, strength: str, metric: str) -> pd.DataFrame:
    """Return mean, standard error and the range of gaps at every strength of each stage, of the best candidate there."""
    others = [name for name in hyper_columns(map(str, rows), SEARCH_COLUMNS) if name not in SCALES and rows[name].nunique() > 1]
    strengths = (
        rows.groupby(["stage", strength, *others], dropna=False)
        .agg(mean=("value", "mean"), std=("value", "std"), n=("value", "size"), low=("relative_gap", "min"), high=("relative_gap", "max"))
        .reset_index()
    )
    strengths["error"] = strengths["std"].fillna(0.0) / np.sqrt(strengths["n"])
    better = strengths.sort_values("mean", ascending=not meaning(metric).higher_is_better, kind="stable")
    return better.drop_duplicates(["stage", strength]).sort_values(["stage", strength])


def _one(dataset: str, metric: str, strength: str, lines: dict[str, pd.DataFrame], looks: dict[str, Any], material: Material) -> Figure:
    certified = any(np.isfinite(numbers(line, "high")).any() for line in lines.values())
    runs = material.runs[material.runs["dataset"] == dataset]
    chosen = runs.groupby("method", observed=True)[strength].median()

    def paint(panels: list[Axes]) -> None:
        top = panels[0]
        for method, line in lines.items():
            colour = looks[method]["color"]
            for stage, part in line.groupby("stage"):
                last = stage == line["stage"].max()
                kind: dict[str, Any] = {"linestyle": "-" if last else "--", "linewidth": 1.3 if last else 0.9}
                x, spread = numbers(part, strength), scale(metric) * numbers(part, "error")
                marks: dict[str, Any] = {"markersize": 4 if last else 2.5, "capsize": 2, "label": method if last else None, **looks[method]}
                top.errorbar(x, as_shown(metric, part["mean"]), yerr=spread, **kind, **marks)
                if certified:
                    low, high = (np.maximum(numbers(part, name), 1e-12) for name in ("low", "high"))
                    panels[1].fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
                    panels[1].plot(x, high, color=colour, **kind)
            if method in chosen.index and np.isfinite(chosen[method]):
                top.axvline(float(chosen[method]), color=colour, linestyle=":", linewidth=1.3)
        top.set_ylabel(title(metric))
        legend(top, list(lines))
        if certified:
            log_scale(panels[1], "y", power)
            panels[1].set_ylabel("relative gap")
            tolerance_lines(panels[1], material.tolerances)
        for axes in panels:
            log_scale(axes, "x")
            axes.grid()
        for axes in panels[:-1]:
            axes.tick_params(labelbottom=False)
        panels[-1].set_xlabel(strength)

    caption = f"{dataset}: {title(metric)} of the search against {strength}, mean and standard error over its fits; "
    caption += "dotted: the chosen value, the median over the splits."
    if any(line["stage"].nunique() > 1 for line in lines.values()):
        caption += " Dashed: the first stage, on other folds."
    if certified:
        caption += " Below: the band between the smallest and the largest certified relative gap of these fits;"
        caption += " dashed line: the tolerance of the reported fits."
    height = 2.6 + legend_height(list(lines)) + (1.6 if certified else 0.0)
    return draw(f"selection-{metric_word(metric)}-{file_word(dataset)}", caption, (WIDTH_INCHES, height), paint, (2 if certified else 1, 1))
