"""What the search saw: the metric against the strength of the regularisation, above how well its fits are certified."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...core.hyper import SCALES
from ...metrics import meaning, shown_as, shown_value, title
from ...results.tables import SEARCH_COLUMNS, hyper_columns
from ..drawing import MAX_METHODS, draw, legend, legend_columns, look
from ..formats.document import Figure, file_word, metric_word
from ..summary import in_order
from .base import Material, register

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_DATASETS = 12


@register("selection", section="selection", needs=("dataset", "method"))
def selection(material: Material) -> Iterator[Figure]:
    """Draw the mean and standard error over the folds at every strength, and below it the band of relative gaps of those fits.

    With further hyper-parameters a strength stands for the best of its candidates.
    """
    search = material.search
    if search is None or search.empty:
        return
    search = search[search["value"].notna()]
    datasets, methods = in_order(search["dataset"])[:MAX_DATASETS], in_order(material.runs["method"])
    search = search[search["dataset"].isin(datasets)]
    for (dataset, metric), part in search.groupby(["dataset", "metric"], sort=True, observed=True):
        scale = next((name for name in SCALES if name in part and part[name].notna().any()), None)
        if scale is None:
            continue
        lines = {str(method): _path(rows, scale, str(metric)) for method, rows in part.groupby("method", sort=True, observed=True)}
        lines = {method: line for method, line in lines.items() if line[scale].nunique() > 1}
        if 0 < len(lines) <= MAX_METHODS:
            chosen = material.runs[material.runs["dataset"] == dataset].groupby("method", observed=True)[scale].median()
            looks = {method: look(methods.index(method)) for method in lines}
            yield _one(str(dataset), str(metric), scale, lines, looks, chosen, material.tolerances)


def _path(rows: pd.DataFrame, scale: str, metric: str) -> pd.DataFrame:
    """Return mean, standard error and the range of gaps at every strength of each stage, of the best candidate there."""
    others = [name for name in hyper_columns(map(str, rows), SEARCH_COLUMNS) if name not in SCALES and rows[name].nunique() > 1]
    found = (
        rows.groupby(["stage", scale, *others], dropna=False)
        .agg(mean=("value", "mean"), std=("value", "std"), n=("value", "size"), low=("relative_gap", "min"), high=("relative_gap", "max"))
        .reset_index()
    )
    found["error"] = found["std"].fillna(0.0) / np.sqrt(found["n"])
    better = found.sort_values("mean", ascending=not meaning(metric).higher_is_better, kind="stable")
    return better.drop_duplicates(["stage", scale]).sort_values(["stage", scale])


def _one(
    dataset: str,
    metric: str,
    scale: str,
    lines: dict[str, pd.DataFrame],
    looks: dict[str, Any],
    chosen: pd.Series,
    tolerances: tuple[float, ...],
) -> Figure:
    factor = 100.0 if shown_as(metric).percent else 1.0
    certified = any(np.isfinite(line["high"].to_numpy(dtype=float)).any() for line in lines.values())

    def paint(panels: list[Axes]) -> None:
        top = panels[0]
        for method, line in lines.items():
            style = looks[method]
            for stage, part in line.groupby("stage"):
                x = part[scale].to_numpy(dtype=float)
                mean = factor * shown_value(metric, part["mean"].to_numpy(dtype=float))
                spread = factor * part["error"].to_numpy(dtype=float)
                last = stage == line["stage"].max()
                kind = {"linestyle": "-" if last else "--", "label": method if last else None, **style}
                top.errorbar(x, mean, yerr=spread, markersize=4 if last else 2.5, linewidth=1.3 if last else 0.9, capsize=2, **kind)
                if certified:
                    low, high = (np.maximum(part[name].to_numpy(dtype=float), 1e-12) for name in ("low", "high"))
                    panels[1].fill_between(x, low, high, color=style["color"], alpha=0.2, linewidth=0)
                    panels[1].plot(x, high, color=style["color"], linewidth=1.3 if last else 0.9, linestyle=kind["linestyle"])
            if method in chosen.index and np.isfinite(chosen[method]):
                top.axvline(float(chosen[method]), color=style["color"], linestyle=":", linewidth=1.3)
        top.set_ylabel(title(metric))
        legend(top, list(lines))
        if certified:
            panels[1].set_yscale("log")
            panels[1].set_ylabel("relative gap")
            for tolerance in tolerances:
                panels[1].axhline(tolerance, color="black", linestyle="--", linewidth=1)
                panels[1].annotate(f"tol {tolerance:g} of the last fits", (1.0, tolerance), xycoords=("axes fraction", "data"),
                                   ha="right", va="bottom", fontsize=7.5)  # fmt: skip
            panels[1].yaxis.set_major_formatter(lambda value, _: f"{value:.0e}")
            panels[1].yaxis.set_minor_formatter(lambda value, _: "")
        for axes in panels:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(lambda value, _: "")
            axes.grid()
        for axes in panels[:-1]:
            axes.tick_params(labelbottom=False)
        panels[-1].set_xlabel(scale)

    caption = (
        f"{dataset}: {title(metric)} of the search against {scale}, mean and standard error over its fits; dotted: what was chosen."
        + (" Dashed: the first stage, on other folds." if any(line["stage"].nunique() > 1 for line in lines.values()) else "")
        + (" Below: the band between the smallest and the largest certified relative gap of these fits." if certified else "")
    )
    height = 2.6 + 0.2 * -(-len(lines) // legend_columns(list(lines))) + (1.6 if certified else 0.0)
    return draw(f"selection-{metric_word(metric)}-{file_word(dataset)}", caption, (6.0, height), paint, (2 if certified else 1, 1))
