"""Means and deviations of every method on every data set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...metrics import shown_as, shown_value, title
from ..drawing import MAX_METHODS, MAX_POINTS, draw, legend, legend_columns, look
from ..formats.document import Figure, metric_word
from ..summary import in_order
from .base import Material, register

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@register("means", section="results", needs=("dataset", "method", "value"))
def means(material: Material) -> Iterator[Figure]:
    """Draw mean and deviation of every method on every data set, unless there are too many."""
    summary, metric = material.summary, material.metric
    part = summary[(summary["metric"] == metric) & (summary["n_splits"] > 0)]
    if part.empty or len(part) > MAX_POINTS:
        return
    datasets, methods = in_order(part["dataset"]), in_order(part["method"])
    if len(methods) > MAX_METHODS:
        return
    factor = 100.0 if shown_as(metric).percent else 1.0
    step = 0.7 / max(1, len(methods))

    def paint(axes: Axes) -> None:
        for at, method in enumerate(methods):
            rows = part[part["method"] == method]
            places = np.array([datasets.index(dataset) for dataset in rows["dataset"]]) + (at - (len(methods) - 1) / 2) * step
            values = rows["mean"].to_numpy(dtype=float)
            values = factor * shown_value(metric, values)
            spread = factor * np.nan_to_num(rows["std"].to_numpy(dtype=float))
            axes.errorbar(values, places, xerr=spread, linestyle="none", markersize=4.5, linewidth=1.2, label=method, **look(at))
        axes.set_yticks(range(len(datasets)), datasets)
        axes.set_ylim(len(datasets) - 0.5, -0.5)
        for line in range(1, len(datasets)):
            axes.axhline(line - 0.5, color="#888888", linewidth=0.5, alpha=0.4)
        axes.grid(axis="x")
        axes.set_xlabel(title(metric))
        legend(axes, methods)

    height = 1.0 + max(len(datasets) * 0.4, len(part) * 0.13) + 0.2 * -(-len(methods) // legend_columns(methods))
    side = "right" if shown_as(metric).higher_is_better else "left"
    caption = f"Mean and sample standard deviation over the splits: {title(metric)}; further {side} is better."
    yield draw(f"means-{metric_word(metric)}", caption, (7.0, height), paint)
