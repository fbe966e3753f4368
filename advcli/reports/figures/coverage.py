"""Risk over coverage: what is wrong among the accepted, beside how many are accepted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from ..drawing import MAX_METHODS, MAX_POINTS, draw, legend, look
from ..formats.document import Figure, file_word
from .base import Material, register

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@register("coverage", section="curves", needs=("loss", "features", "metric", "value"))
def coverage(material: Material) -> Iterator[Figure]:
    """Draw the mean risk of the accepted over the mean coverage of every data set; rows need ``abstain_rate`` and ``accuracy_accepted``.

    A line joins the cells of one loss and feature map: a sweep over loss.tau or loss.alpha.
    """
    kinds = material.runs.drop_duplicates(["dataset", "method"])[["dataset", "method", "loss", "features"]]
    wide = material.summary.pivot_table(index=["dataset", "method"], columns="metric", values="mean", observed=True).reset_index()
    if not {"abstain_rate", "accuracy_accepted"} <= set(wide.columns):
        return
    points = wide.merge(kinds, on=["dataset", "method"]).dropna(subset=["abstain_rate", "accuracy_accepted"])
    points = points.assign(coverage=1.0 - points["abstain_rate"], risk=1.0 - points["accuracy_accepted"])
    points["line"] = points["loss"] + " " + points["features"]
    for dataset, part in points.groupby("dataset", sort=True, observed=True):
        lines = sorted(set(part["line"]))
        if 1 < len(part) <= MAX_POINTS and len(lines) <= MAX_METHODS:
            yield _one(str(dataset), part, lines)


def _one(dataset: str, points: pd.DataFrame, lines: list[str]) -> Figure:
    def paint(axes: Axes) -> None:
        for at, line in enumerate(lines):
            rows = points[points["line"] == line].sort_values(["coverage", "risk"])
            axes.plot(rows["coverage"].to_numpy(float), rows["risk"].to_numpy(float), label=line, markersize=4.5, linewidth=1.2, **look(at))
        axes.set_xlabel("coverage: share of rows that are accepted")
        axes.set_ylabel("risk: share of these that are wrong")
        axes.set_ylim(bottom=0.0)
        axes.grid()
        legend(axes, lines)

    caption = (
        f"{dataset}: mean risk of the accepted over mean coverage, over the splits; a line joins the cells of one loss and feature map."
    )
    return draw(f"coverage-{file_word(dataset)}", caption, (6.0, 4.0), paint)
