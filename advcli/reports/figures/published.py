"""Ours against the published means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..drawing import MAX_POINTS, draw, legend, look
from ..formats.document import Figure
from ..published_numbers import FAR
from .base import Material, register

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@register("published", section="published", needs=("dataset", "method", "value"))
def published(material: Material) -> Iterator[Figure]:
    """Draw the z-scores against the published numbers, and the band of those within `FAR`."""
    compared = material.compared
    if compared is None or compared.empty:
        return
    part = compared[np.isfinite(compared["z"].to_numpy(dtype=float))]
    if part.empty or len(part) > MAX_POINTS:
        return
    datasets = list(dict.fromkeys(part["dataset"]))
    names = list(dict.fromkeys(zip(part["method"], part["metric"], strict=True)))

    def paint(axes: Axes) -> None:
        axes.axvspan(-FAR, FAR, color="#888888", alpha=0.15, linewidth=0)
        axes.axvline(0, color="black", linewidth=0.8)
        several = len(set(part["metric"])) > 1
        for at, (method, metric) in enumerate(names):
            rows = part[(part["method"] == method) & (part["metric"] == metric)]
            places = [datasets.index(dataset) + (at - (len(names) - 1) / 2) * 0.6 / len(names) for dataset in rows["dataset"]]
            label = f"{method}, {metric.replace('_', ' ')}" if several else method
            axes.plot(rows["z"], places, linestyle="none", markersize=5, label=label, **look(at))
        axes.set_yticks(range(len(datasets)), datasets)
        axes.set_ylim(len(datasets) - 0.5, -0.5)
        limit = 1.1 * max(FAR, float(part["z"].abs().max()))
        axes.set_xlim(-limit, limit)
        axes.grid(axis="x")
        axes.set_xlabel("z-score of our mean against the published mean")
        legend(axes, [f"{method}, {metric}" if several else method for method, metric in names])

    caption = f"Ours against the published means: z-scores; beyond the shaded band (|z| > {FAR:g}) the two disagree."
    yield draw("published", caption, (7.0, 1.4 + 0.3 * len(datasets)), paint)
