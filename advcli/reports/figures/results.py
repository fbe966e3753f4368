"""Figures of one metric: means, single splits, ranks across data sets, and published numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...metrics import shown_as, title
from ..comparison import shown_rows
from ..drawing import MAX_METHODS, MAX_POINTS, WIDTH_INCHES, Axes, as_shown, draw, legend, legend_height, look, name_rows, scale
from ..formats.document import Figure, metric_word
from ..published_numbers import FAR
from ..summary import in_order
from .base import Material, register

MAX_DATASETS = 12
"""More panels make no readable figure; the means stand in another one."""
LEAST = 3
"""Splits that make a box."""


def _beside(datasets: Sequence[str], rows: pd.DataFrame, at: int, count: int, width: float) -> Any:
    """Return the heights of points of data sets; each of ``count`` methods, here number ``at``, has a band."""
    return np.array([datasets.index(dataset) for dataset in rows["dataset"]]) + (at - (count - 1) / 2) * width / count


def _better(metric: str) -> str:
    return f"further {'right' if shown_as(metric).higher_is_better else 'left'} is better."


@register("means", section="results", needs=("dataset", "method", "value"))
def means(material: Material) -> Iterator[Figure]:
    """Draw mean and deviation of every method on every data set, unless there are too many."""
    summary, metric = material.summary, material.metric
    part = summary[(summary["metric"] == metric) & (summary["n_splits"] > 0)]
    datasets, methods = in_order(part["dataset"]), in_order(part["method"])
    if part.empty or len(part) > MAX_POINTS or len(methods) > MAX_METHODS:
        return

    def paint(axes: Axes) -> None:
        for at, method in enumerate(methods):
            rows = part[part["method"] == method]
            heights = _beside(datasets, rows, at, len(methods), 0.7)
            deviation = [row["std"] for row in shown_rows(material.summary, rows)]
            spread = scale(metric) * np.nan_to_num(np.array(deviation, dtype=float))
            kind = {"linestyle": "none", "markersize": 4.5, "linewidth": 1.2, "label": method, **look(at)}
            axes.errorbar(as_shown(metric, rows["mean"]), heights, xerr=spread, **kind)
        name_rows(axes, datasets)
        for line in range(1, len(datasets)):
            axes.axhline(line - 0.5, color="#888888", linewidth=0.5, alpha=0.4)
        axes.set_xlabel(title(metric))
        legend(axes, methods)

    height = 1.0 + max(len(datasets) * 0.4, len(part) * 0.13) + legend_height(methods)
    items = set(material.summary.attrs.get("items", ()))
    over = "sample standard deviation over the splits" + (", of items standard error" if items else "")
    over = "standard error over the items" if items >= set(datasets) else over
    caption = f"Mean and {over}: {title(metric)}; {_better(metric)}"
    yield draw(f"means-{metric_word(metric)}", caption, (WIDTH_INCHES, height), paint)


@register("splits", section="results", needs=("dataset", "method", "split", "value"))
def splits(material: Material) -> Iterator[Figure]:
    """Draw the values of all splits: a panel for each data set, a box and points for each method."""
    metric = material.metric
    rows = material.runs[(material.runs["metric"] == metric) & material.runs["value"].notna()]
    rows = rows[~rows["dataset"].isin(material.summary.attrs.get("items", ()))]  # of items hundreds of zeros and ones
    groups = rows.groupby(["dataset", "method"], observed=True)["value"]
    datasets, methods = in_order(rows["dataset"]), in_order(rows["method"])
    if rows.empty or groups.size().max() < LEAST or len(datasets) > MAX_DATASETS or len(methods) > MAX_METHODS:
        return
    values = {key: as_shown(metric, part) for key, part in groups}

    def paint(panels: list[Axes]) -> None:
        for dataset, axes in zip(datasets, panels, strict=True):
            for place, method in enumerate(methods):
                if (dataset, method) in values:
                    _box(axes, values[dataset, method], place)
            name_rows(axes, methods)
            axes.locator_params(axis="x", nbins=5)
            axes.set_title(dataset, fontsize=9)
        panels[-1].set_xlabel(title(metric))

    caption = (
        f"Every split: {title(metric)}; points are splits, boxes reach from the first to the third quartile, the bold line "
        f"is the median; {_better(metric)}"
    )
    size = (WIDTH_INCHES, 0.6 + len(datasets) * (0.55 + 0.2 * len(methods)))
    yield draw(f"splits-{metric_word(metric)}", caption, size, paint, (len(datasets), 1))


def _box(axes: Axes, values: Any, place: int) -> None:
    """Draw the box and the points of one method on its line."""
    colour = look(place)["color"]
    if len(values) >= LEAST:
        line = {"color": colour, "linewidth": 1.2}
        kinds: dict[str, Any] = dict.fromkeys(("boxprops", "whiskerprops", "capprops"), line)
        kinds["medianprops"] = {"color": "black", "linewidth": 2.4, "zorder": 3}
        axes.boxplot([values], positions=[place], orientation="horizontal", widths=0.62, showfliers=False, **kinds)
    # points of one value side by side
    nudge = 0.44 * (((np.arange(len(values)) * 0.618034) % 1.0) - 0.5)
    axes.plot(values, place + nudge, linestyle="none", marker="o", markersize=2.6, alpha=0.6, color=colour)


@register("ranks", section="across", needs=("dataset", "method", "value"))
def ranks(material: Material) -> Iterator[Figure]:
    """Draw the critical-difference diagram (Demsar 2006, figure 1), unless there is too little data for it."""
    across = material.across
    if across.friedman is None:
        return
    import scikit_posthocs

    order = np.argsort(across.mean_ranks, kind="stable")
    names = [across.methods[at] for at in order]
    places = pd.Series(across.mean_ranks[order], index=names)
    methods = in_order(material.runs["method"])  # colours as in other figures
    significance = pd.DataFrame(across.nemenyi[np.ix_(order, order)], index=names, columns=names)

    def paint(axes: Axes) -> None:
        scikit_posthocs.critical_difference_diagram(
            places,
            significance,
            alpha=material.alpha,
            ax=axes,
            label_fmt_left="{label} ({rank:.2f}) ",
            label_fmt_right=" ({rank:.2f}) {label}",
            color_palette={name: str(look(methods.index(name))["color"]) for name in names},
            crossbar_props={"color": "black", "linewidth": 2.5},
            marker_props={"zorder": 3},
            text_h_margin=0.03,
        )
        axes.spines["top"].set_visible(True)
        axes.set_xticks(range(1, len(names) + 1))
        axes.set_xlim(0.9, len(names) + 0.1)
        # own bar for the critical difference: the library's lies on the labels of the ticks
        left, right, height = 1.0, 1.0 + across.critical_difference, 2.0
        axes.plot([left, left, left, right, right, right], height + np.array([0.2, -0.2, 0, 0, -0.2, 0.2]), color="black", linewidth=1)
        axes.text((left + right) / 2, height + 0.3, f"critical difference {across.critical_difference:.2f}", ha="center", va="bottom")
        axes.set_ylim(top=height + 1)

    caption = (
        f"Critical-difference diagram, {title(across.metric)}: mean ranks over {len(across.datasets)} data sets (1 is the best). "
        "A bar joins methods that the Nemenyi test does not tell apart: critical difference "
        f"{across.critical_difference:.2f}, alpha = {material.alpha:g}."
    )
    yield draw(f"ranks-{metric_word(across.metric)}", caption, (WIDTH_INCHES, 1.1 + 0.24 * len(names)), paint)


@register("published", section="published", needs=("dataset", "method", "value"))
def published(material: Material) -> Iterator[Figure]:
    """Draw the z-scores against the published numbers, and the band of those within `FAR`."""
    if material.compared is None:
        return
    part = material.compared[np.isfinite(material.compared["z"].to_numpy(dtype=float))]
    if part.empty or len(part) > MAX_POINTS:
        return
    datasets = list(dict.fromkeys(part["dataset"]))
    names = list(dict.fromkeys(zip(part["method"], part["metric"], strict=True)))
    several = len(set(part["metric"])) > 1

    def paint(axes: Axes) -> None:
        axes.axvspan(-FAR, FAR, color="#888888", alpha=0.15, linewidth=0)
        axes.axvline(0, color="black", linewidth=0.8)
        for at, (method, metric) in enumerate(names):
            rows = part[(part["method"] == method) & (part["metric"] == metric)]
            label = f"{method}, {metric.replace('_', ' ')}" if several else method
            heights = _beside(datasets, rows, at, len(names), 0.6)
            axes.plot(rows["z"], heights, linestyle="none", markersize=5, label=label, **look(at))
        name_rows(axes, datasets)
        limit = 1.1 * max(FAR, float(part["z"].abs().max()))
        axes.set_xlim(-limit, limit)
        axes.set_xlabel("z-score of our mean against the published mean")
        legend(axes, [f"{method}, {metric}" if several else method for method, metric in names])

    caption = f"Ours against the published means: z-scores; beyond the shaded band (|z| > {FAR:g}) the two disagree."
    yield draw("published", caption, (WIDTH_INCHES, 1.4 + 0.3 * len(datasets)), paint)
