"""Curves along an option that the sweep varied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...metrics import shown_as, shown_value, title
from ..drawing import MAX_POINTS, draw, legend, look
from ..formats.document import Figure, file_word, metric_word
from .base import Material, register

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@register("curves", section="curves", needs=("options", "value"))
def curves(material: Material) -> Iterator[Figure]:
    """Draw the curves of every data set and metric that is shown (`advcli.reports.curves.curve_points`).

    Along a family of label noise the abscissa is the mean size of the noise, |C - diag C|_F.
    """
    shown = material.points[material.points["metric"].isin(material.metrics)]
    for _, points in shown.groupby(["dataset", "metric"], sort=False):
        if len(points) <= MAX_POINTS:
            yield _curve(points)


def _curve(points: pd.DataFrame) -> Figure:
    dataset, metric, option = (str(points[column].iloc[0]) for column in ("dataset", "metric", "option"))
    noise = option.startswith("noise.") and points.groupby("x")["confusion_norm"].first().nunique() > 1
    lines = list(dict.fromkeys(points["line"]))
    factor = 100.0 if shown_as(metric).percent else 1.0

    def paint(axes: Axes) -> None:
        for at, line in enumerate(lines):
            rows = points[points["line"] == line]
            x = rows["confusion_norm" if noise else "x"].to_numpy(dtype=float)
            order = np.argsort(x)
            values = factor * shown_value(metric, rows["mean"].to_numpy(dtype=float))
            spread = factor * np.nan_to_num(rows["standard_error"].to_numpy(dtype=float))
            axes.errorbar(x[order], values[order], yerr=spread[order], markersize=4.5, linewidth=1.2, capsize=2, label=line, **look(at))
        axes.grid()
        axes.set_xlabel(f"mean |C - diag C| (Frobenius) over the runs, {option}" if noise else option)
        axes.set_ylabel(title(metric))
        legend(axes, lines)

    least = int(points["n_runs"].min())
    caption = f"{dataset}: {title(metric)} along {option}; bars are standard errors over the runs (at least {least})."
    return draw(f"curves-{metric_word(metric)}-{file_word(dataset)}", caption, (6.0, 4.0), paint)
