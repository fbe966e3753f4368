"""What every split gave: boxes and points of every method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...metrics import shown_as, shown_value, title
from ..drawing import MAX_METHODS, draw, look
from ..formats.document import Figure, metric_word
from ..summary import in_order
from .base import Material, register

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_DATASETS = 12
"""More data sets make no readable figure; the means stand in another one."""
LEAST = 3
"""Splits that make a box."""


@register("splits", section="results", needs=("dataset", "method", "split", "value"))
def splits(material: Material) -> Iterator[Figure]:
    """Draw the values of all splits: a panel for each data set, a box and points for each method."""
    rows = material.runs[(material.runs["metric"] == material.metric) & material.runs["value"].notna()]
    counts = rows.groupby(["dataset", "method"], observed=True)["value"].size()
    datasets, methods = in_order(rows["dataset"]), in_order(rows["method"])
    if rows.empty or counts.max() < LEAST or len(datasets) > MAX_DATASETS or len(methods) > MAX_METHODS:
        return
    about = shown_as(material.metric)
    factor = 100.0 if about.percent else 1.0
    values = {
        key: factor * shown_value(material.metric, part["value"].to_numpy(dtype=float))
        for key, part in rows.groupby(["dataset", "method"], observed=True)
    }
    wide = 1 if len(datasets) == 1 else 2
    high = -(-len(datasets) // wide)

    def paint(panels: list[Axes]) -> None:
        for at, axes in enumerate(panels):
            if at >= len(datasets):
                axes.set_visible(False)
                continue
            for place, method in enumerate(methods):
                found = values.get((datasets[at], method))
                if found is None:
                    continue
                style = look(place)
                if len(found) >= LEAST:
                    lines = {"color": style["color"], "linewidth": 1.2}
                    axes.boxplot(
                        [found], positions=[place], orientation="horizontal", widths=0.62, showfliers=False,
                        boxprops=lines, whiskerprops=lines, capprops=lines, medianprops=lines | {"linewidth": 2.4},
                    )  # fmt: skip
                # points of one value side by side
                nudge = 0.44 * (((np.arange(len(found)) * 0.618034) % 1.0) - 0.5)
                axes.plot(found, place + nudge, linestyle="none", marker="o", markersize=2.6, alpha=0.6, color=style["color"])
            axes.set_yticks(range(len(methods)), methods if at % wide == 0 else [""] * len(methods))
            axes.set_ylim(len(methods) - 0.5, -0.5)
            axes.locator_params(axis="x", nbins=5)
            axes.grid(axis="x")
            axes.set_title(datasets[at], fontsize=9)
            if at >= len(datasets) - wide:
                axes.set_xlabel(title(material.metric))

    side = "right" if about.higher_is_better else "left"
    caption = (
        f"Every split: {title(material.metric)}; points are splits, boxes reach from the first to the third quartile, the thick line "
        f"is the median; further {side} is better."
    )
    size = (7.0 if wide == 2 else 6.0, 0.6 + high * (0.55 + 0.24 * len(methods)))
    yield draw(f"splits-{metric_word(material.metric)}", caption, size, paint, (high, wide))
