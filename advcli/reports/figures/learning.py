"""Learning curves: what a method reaches with fewer training rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...metrics import shown_as, shown_value, title
from ..drawing import MAX_METHODS, draw, legend, look
from ..formats.document import Figure, file_word, metric_word
from ..summary import in_order
from .base import Material, register

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@register("learning", section="curves", needs=("dataset", "method", "cell", "value", "n_train"))
def learning(material: Material) -> Iterator[Figure]:
    """Draw the learning curves of every data set (``protocol.learning_curve``): mean and standard error over the splits.

    The last point is the fit to all training rows.
    """
    points = material.learning
    if points is None or points.empty:
        return
    metric = material.metrics[0]
    points = points[points["metric"] == metric]
    whole = material.runs[(material.runs["metric"] == metric) & material.runs["cell"].isin(set(points["cell"]))].assign(share=1.0)
    columns = ["dataset", "method", "share", "split", "n_train", "value"]
    for dataset in in_order(points["dataset"]):
        both = pd.concat([part.loc[part["dataset"] == dataset, columns] for part in (points, whole)]).dropna(subset=["value"])
        lines = {}
        for method in in_order(points.loc[points["dataset"] == dataset, "method"]):
            rows = both[both["method"] == method].groupby("share")
            lines[method] = rows.agg(x=("n_train", "mean"), mean=("value", "mean"), std=("value", "std"), n=("value", "size"))
        if len(lines) <= MAX_METHODS:
            yield _one(dataset, metric, lines)


def _one(dataset: str, metric: str, lines: dict[str, pd.DataFrame]) -> Figure:
    factor = 100.0 if shown_as(metric).percent else 1.0

    def paint(axes: Axes) -> None:
        for at, (method, line) in enumerate(lines.items()):
            mean = factor * shown_value(metric, line["mean"].to_numpy(dtype=float))
            error = factor * np.nan_to_num(line["std"].to_numpy(dtype=float)) / np.sqrt(line["n"].to_numpy(dtype=float))
            x = line["x"].to_numpy(dtype=float)
            axes.errorbar(x, mean, yerr=error, markersize=4.5, linewidth=1.3, capsize=2, label=method, **look(at))
        axes.set_xlabel("training rows")
        axes.set_ylabel(title(metric))
        axes.set_xlim(left=0)
        axes.grid()
        legend(axes, list(lines))

    splits = int(min(line["n"].min() for line in lines.values()))
    caption = (
        f"{dataset}: {title(metric)} against the number of training rows; bars are standard errors over the splits (at least {splits})."
    )
    return draw(f"learning-{metric_word(metric)}-{file_word(dataset)}", caption, (6.0, 3.6), paint)
