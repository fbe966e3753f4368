"""Figures of lines: along an option of the sweep, over the coverage of methods that abstain, over the number of training rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...metrics import title
from ..drawing import MAX_METHODS, MAX_POINTS, WIDTH_INCHES, Axes, as_shown, draw, finish, look, scale
from ..formats.document import Figure, file_word, metric_word
from ..summary import in_order
from .base import Material, register


def _lines(
    name: str,
    caption: str,
    lines: Mapping[str, tuple[Any, Any, Any]],
    labels: tuple[str, str],
    *,
    height: float = 4.0,
    width: float = 1.2,
    **limits: Any,
) -> Figure:
    """Return the figure of lines: abscissae, ordinates and half the length of their bars, or None, by label."""

    def paint(axes: Axes) -> None:
        for at, (label, (x, y, error)) in enumerate(lines.items()):
            kind = {"markersize": 4.5, "linewidth": width, "label": label, **look(at)}
            if error is None:
                axes.plot(x, y, **kind)
            else:
                axes.errorbar(x, y, yerr=error, capsize=2, **kind)
        axes.set(**limits)
        finish(axes, *labels, list(lines))

    return draw(name, caption, (WIDTH_INCHES, height), paint)


@register("curves", section="curves", needs=("options", "value"))
def curves(material: Material) -> Iterator[Figure]:
    """Draw the curves of every data set and metric that is shown (`advcli.reports.curves.curve_points`).

    Along a family of label noise the abscissa is the mean size of the noise, |C - diag C|_F.
    """
    shown = material.points[material.points["metric"].isin(material.metrics)]
    for _, points in shown.groupby(["dataset", "metric"], sort=False):
        if len(points) > MAX_POINTS:
            continue
        dataset, metric, option = (str(points[column].iloc[0]) for column in ("dataset", "metric", "option"))
        noise = option.startswith("noise.") and points.groupby("x")["confusion_norm"].first().nunique() > 1
        lines = {}
        for line, rows in points.groupby("line", sort=False):
            x = rows["confusion_norm" if noise else "x"].to_numpy(dtype=float)
            error = scale(metric) * np.nan_to_num(rows["standard_error"].to_numpy(dtype=float))
            order = np.argsort(x)
            lines[str(line)] = x[order], as_shown(metric, rows["mean"])[order], error[order]
        least = int(points["n_runs"].min())
        caption = f"{dataset}: {title(metric)} along {option}; bars are standard errors over the runs (at least {least})."
        along = f"mean |C - diag C| (Frobenius) over the runs, {option}" if noise else option
        yield _lines(f"curves-{metric_word(metric)}-{file_word(dataset)}", caption, lines, (along, title(metric)))


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
        lines: dict[str, tuple[Any, Any, Any]] = {}
        for line, rows in part.sort_values(["coverage", "risk"]).groupby("line", sort=True):
            lines[str(line)] = rows["coverage"].to_numpy(float), rows["risk"].to_numpy(float), None
        means = "mean risk of the accepted over mean coverage, over the splits"
        caption = f"{dataset}: {means}; a line joins the cells of one loss and feature map."
        if 1 < len(part) <= MAX_POINTS and len(lines) <= MAX_METHODS:
            labels = ("coverage: share of rows that are accepted", "risk: share of these that are wrong")
            yield _lines(f"coverage-{file_word(str(dataset))}", caption, lines, labels, ylim=(0.0, None))


@register("learning", section="curves", needs=("dataset", "method", "cell", "value", "n_train"))
def learning(material: Material) -> Iterator[Figure]:
    """Draw the learning curves of every data set (``protocol.learning_curve``): mean and standard error over the splits.

    The last point is the fit to all training rows.
    """
    points, metric = material.learning, material.metrics[0]
    if points is None or points.empty:
        return
    points = points[points["metric"] == metric]
    whole = material.runs[(material.runs["metric"] == metric) & material.runs["cell"].isin(set(points["cell"]))].assign(share=1.0)
    both = pd.concat([part[["dataset", "method", "share", "n_train", "value"]] for part in (points, whole)]).dropna(subset=["value"])
    for dataset in in_order(points["dataset"]):
        lines, least = {}, []
        for method in in_order(points.loc[points["dataset"] == dataset, "method"]):
            shares = both[(both["dataset"] == dataset) & (both["method"] == method)].groupby("share")
            mean, count = shares["value"].mean(), shares["value"].size().to_numpy(dtype=float)
            error = scale(metric) * np.nan_to_num(shares["value"].std().to_numpy(dtype=float)) / np.sqrt(count)
            lines[method] = shares["n_train"].mean().to_numpy(dtype=float), as_shown(metric, mean), error
            least.append(count.min())
        if len(lines) > MAX_METHODS:
            continue
        caption = (
            f"{dataset}: {title(metric)} against the number of training rows; bars are standard errors over the splits "
            f"(at least {int(min(least))})."
        )
        name = f"learning-{metric_word(metric)}-{file_word(dataset)}"
        yield _lines(name, caption, lines, ("training rows", title(metric)), height=3.6, width=1.3, xlim=(0, None))
