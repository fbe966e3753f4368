"""Plots of a report, as SVG text and PDF.

They need matplotlib and scikit-posthocs, which the extra ``advcli[report]`` brings; `missing_library` tells whether one lacks.
Colours are readable on light and on dark ground; texts and lines are black, which a page may turn to the colour of its own text.
"""

from __future__ import annotations

import importlib.util
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..metrics import shown_as, shown_value, title
from .across import Across
from .document import Figure
from .published_numbers import FAR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEEDED = {"matplotlib": "matplotlib", "scikit_posthocs": "scikit-posthocs"}

COLOURS = ("#3b82c4", "#d9822b", "#2f9e6e", "#c2588f", "#8f6fd1", "#a3862b", "#3aa5a5", "#d35f4c")
MARKERS = "osD^vP*X"
MAX_POINTS = 800
"""More results than this make no readable plot."""
MAX_METHODS = 20
"""More methods than this make no readable legend; a sweep over an option has its curves."""


def missing_library() -> str:
    """Return the first package that plots need and that is not installed; empty if all are there."""
    return next((package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None), "")


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib

    settings: Any = {
        "text.parse_math": False,  # a data set may have a dollar in its name
        "svg.fonttype": "none",  # text stays text: it can be searched, read aloud and takes the page's colour
        "svg.hashsalt": "advcli",
        "font.size": 9,
        "font.family": "sans-serif",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.color": "#888888",
        "grid.alpha": 0.3,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "pdf.fonttype": 42,
    }
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _draw(name: str, caption: str, size: tuple[float, float], paint: Callable[[Axes], None]) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with _style():
        canvas = Canvas(figsize=size, layout="tight")
        FigureCanvasAgg(canvas)
        paint(canvas.add_subplot())
        svg, pdf = io.StringIO(), io.BytesIO()
        # without dates the same rows give the same bytes
        canvas.savefig(svg, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None})
        canvas.savefig(pdf, format="pdf", bbox_inches="tight", metadata={"CreationDate": None})
    return Figure(name, caption, svg.getvalue(), pdf.getvalue())


def _look(at: int) -> dict[str, Any]:
    return {"color": COLOURS[at % len(COLOURS)], "marker": MARKERS[(at + at // len(COLOURS)) % len(MARKERS)]}


def _legend_columns(labels: Sequence[str]) -> int:
    """Return how many columns keep a legend from being wider than the figure, which would squeeze the axes."""
    return max(1, min(4, len(labels), 75 // (max(map(len, labels)) + 6)))


def _legend(axes: Axes, labels: Sequence[str]) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=_legend_columns(labels), borderaxespad=0.2, handletextpad=0.3)


def means_plot(summary: pd.DataFrame, metric: str) -> Figure | None:
    """Draw mean and deviation of every method on every data set; None if there is nothing to draw or too much."""
    part = summary[(summary["metric"] == metric) & (summary["n_splits"] > 0)]
    if part.empty or len(part) > MAX_POINTS:
        return None
    datasets, methods = sorted(set(part["dataset"])), sorted(set(part["method"]))
    if len(methods) > MAX_METHODS:
        return None
    factor = 100.0 if shown_as(metric).percent else 1.0
    step = 0.7 / max(1, len(methods))

    def paint(axes: Axes) -> None:
        for at, method in enumerate(methods):
            rows = part[part["method"] == method]
            places = np.array([datasets.index(dataset) for dataset in rows["dataset"]]) + (at - (len(methods) - 1) / 2) * step
            values = rows["mean"].to_numpy(dtype=float)
            values = factor * shown_value(metric, values)
            spread = factor * np.nan_to_num(rows["std"].to_numpy(dtype=float))
            axes.errorbar(values, places, xerr=spread, linestyle="none", markersize=4.5, linewidth=1.2, label=method, **_look(at))
        axes.set_yticks(range(len(datasets)), datasets)
        axes.set_ylim(len(datasets) - 0.5, -0.5)
        for line in range(1, len(datasets)):
            axes.axhline(line - 0.5, color="#888888", linewidth=0.5, alpha=0.4)
        axes.grid(axis="x")
        axes.set_xlabel(title(metric))
        _legend(axes, methods)

    height = 1.0 + max(len(datasets) * 0.4, len(part) * 0.13) + 0.2 * -(-len(methods) // _legend_columns(methods))
    side = "right" if shown_as(metric).higher_is_better else "left"
    caption = f"Mean and sample standard deviation over the splits: {title(metric)}; further {side} is better."
    return _draw(f"means-{metric}".replace("_", "-"), caption, (7.0, height), paint)


def rank_plot(across: Across, alpha: float) -> Figure | None:
    """Draw the critical-difference diagram (Demsar 2006, figure 1); None if there is too little data for it."""
    if across.friedman is None:
        return None
    import scikit_posthocs

    order = np.argsort(across.mean_ranks, kind="stable")
    names = [across.methods[at] for at in order]
    ranks = pd.Series(across.mean_ranks[order], index=names)
    significance = pd.DataFrame(across.nemenyi[np.ix_(order, order)], index=names, columns=names)

    def paint(axes: Axes) -> None:
        scikit_posthocs.critical_difference_diagram(
            ranks,
            significance,
            alpha=alpha,
            ax=axes,
            label_fmt_left="{label} ({rank:.2f})",
            label_fmt_right="({rank:.2f}) {label}",
            color_palette={name: COLOURS[at % len(COLOURS)] for at, name in enumerate(names)},
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
        f"{across.critical_difference:.2f}, alpha = {alpha:g}."
    )
    name = f"ranks-{across.metric}".replace("_", "-")
    return _draw(name, caption, (7.0, 1.1 + 0.24 * len(names)), paint)


def gap_plot(certificates: pd.DataFrame, tolerances: Sequence[float]) -> Figure | None:
    """Draw the worst certified relative gap of every cell beside the tolerance.

    Parameters
    ----------
    certificates : DataFrame
        Columns ``dataset``, ``method``, ``worst_gap``.
    tolerances : sequence of float
        Tolerances of the fits; each is a line.
    """
    part = certificates[np.isfinite(certificates["worst_gap"].to_numpy(dtype=float))]
    if part.empty or len(part) > 20 * MAX_POINTS:
        return None
    methods = sorted(set(part["method"]))
    if len(methods) > 60:
        return None

    def paint(axes: Axes) -> None:
        for at, method in enumerate(methods):
            gaps = np.maximum(part.loc[part["method"] == method, "worst_gap"].to_numpy(dtype=float), 1e-16)
            jitter = np.linspace(-0.2, 0.2, len(gaps)) if len(gaps) > 1 else np.zeros(1)
            axes.plot(np.sort(gaps), at + jitter, linestyle="none", markersize=4.5, alpha=0.8, **_look(at))
        for tolerance in sorted(set(tolerances)):
            axes.axvline(tolerance, color="black", linestyle="--", linewidth=1)
            axes.annotate(f"tol {tolerance:g}", (tolerance, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0e}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        gaps = np.maximum(part["worst_gap"].to_numpy(dtype=float), 1e-16)
        # at least two decades: a narrower axis has no labels to read
        right = 2 * max([float(gaps.max()), *tolerances])
        axes.set_xlim(min(gaps.min() / 2, right / 200), right)
        axes.set_yticks(range(len(methods)), methods)
        axes.set_ylim(len(methods) - 0.5, -0.5)
        axes.grid(axis="x")
        axes.set_xlabel("largest certified relative duality gap of a cell")

    caption = "Certificates: the largest relative duality gap among the reported fits of each cell; right of the line is not converged."
    if len(part) < len(certificates):
        caption += f" Not drawn: {len(certificates) - len(part)} without a finite gap."
    return _draw("gaps", caption, (7.0, 1.0 + 0.35 * len(methods)), paint)


def curve_plot(points: pd.DataFrame) -> Figure | None:
    """Draw the curves of one data set and metric (`advcli.reports.curves.curve_points`); None if there are none or too many points.

    Along a family of label noise the abscissa is the mean size of the noise, |C - diag C|_F.
    """
    if points.empty or len(points) > MAX_POINTS:
        return None
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
            axes.errorbar(x[order], values[order], yerr=spread[order], markersize=4.5, linewidth=1.2, capsize=2, label=line, **_look(at))
        axes.grid()
        axes.set_xlabel(f"mean |C - diag C| (Frobenius) over the runs, {option}" if noise else option)
        axes.set_ylabel(title(metric))
        _legend(axes, lines)

    least = int(points["n_runs"].min())
    caption = f"{dataset}: {title(metric)} along {option}; bars are standard errors over the runs (at least {least})."
    return _draw(f"curves-{metric}-{dataset}".replace("_", "-"), caption, (6.0, 4.0), paint)


def published_plot(compared: pd.DataFrame) -> Figure | None:
    """Draw the z-scores against the published numbers, beyond `FAR` in another colour."""
    part = compared[np.isfinite(compared["z"].to_numpy(dtype=float))]
    if part.empty or len(part) > MAX_POINTS:
        return None
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
            axes.plot(rows["z"], places, linestyle="none", markersize=5, label=label, **_look(at))
        axes.set_yticks(range(len(datasets)), datasets)
        axes.set_ylim(len(datasets) - 0.5, -0.5)
        limit = 1.1 * max(FAR, float(part["z"].abs().max()))
        axes.set_xlim(-limit, limit)
        axes.grid(axis="x")
        axes.set_xlabel("z-score of our mean against the published mean")
        _legend(axes, [f"{method}, {metric}" if several else method for method, metric in names])

    caption = f"Ours against the published means: z-scores; beyond the shaded band (|z| > {FAR:g}) the two disagree."
    return _draw("published", caption, (7.0, 1.4 + 0.3 * len(datasets)), paint)
