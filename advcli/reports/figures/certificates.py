"""Figures of certificates: the gaps of cells beside the tolerances, and what the gaps of fits cost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..drawing import (
    MAX_METHODS,
    MAX_POINTS,
    WIDTH_INCHES,
    Axes,
    draw,
    finish,
    legend_height,
    log_scale,
    look,
    name_rows,
    power,
    tolerance_lines,
)
from ..formats.document import Figure
from ..summary import in_order, numbers
from .base import Material, register

FLOOR = 1e-3
"""Gaps below this share of the smallest tolerance are drawn there: exact fits would stretch the axis over many empty decades."""
MAX_FITS = 4000
"""More points make no readable plot and a slow page."""


def _floor(material: Material, gaps: NDArray[np.float64]) -> tuple[float, str]:
    """Return the smallest gap that is drawn, and the sentence of the caption about smaller ones."""
    floor = max(1e-16, FLOOR * min(material.tolerances, default=0.0))
    return floor, f" Gaps below {floor:.0e} are drawn there." if (gaps < floor).any() else ""


@register("effort", section="certificates", needs=("cell", "split", "relative_gap", "fit_seconds"))
def effort(material: Material) -> Iterator[Figure]:
    """Draw the certified relative gap of every fit against its seconds, unless there are too many; `advcli bench` traces single fits."""
    fits = material.runs.drop_duplicates(["cell", "split"])
    fits = fits[np.isfinite(numbers(fits, "relative_gap")) & np.isfinite(numbers(fits, "fit_seconds"))]
    methods = in_order(fits["method"])
    if not methods or len(fits) > MAX_FITS or len(methods) > MAX_METHODS:
        return
    floor, below = _floor(material, numbers(fits, "relative_gap"))

    def paint(axes: Axes) -> None:
        for at, method in enumerate(methods):
            part = fits[fits["method"] == method]
            x, y = np.maximum(numbers(part, "fit_seconds"), 1e-6), np.maximum(numbers(part, "relative_gap"), floor)
            axes.plot(x, y, linestyle="none", markersize=3.6, alpha=0.65, label=method, **look(at))
        tolerance_lines(axes, sorted(set(material.tolerances)))
        log_scale(axes, "x")
        log_scale(axes, "y", power)
        for limits, widen in ((axes.get_xlim(), axes.set_xlim), (axes.get_ylim(), axes.set_ylim)):
            if limits[1] < 100 * limits[0]:  # at least two decades: a narrower axis has no labels to read
                middle = float(np.sqrt(limits[0] * limits[1]))
                widen(middle / 10, middle * 10)
        finish(axes, "seconds of a fit", "certified relative duality gap", methods)

    caption = f"Every fit: its certified relative duality gap against its seconds; fits above the line did not converge.{below}"
    yield draw("effort", caption, (WIDTH_INCHES, 3.4 + legend_height(methods)), paint)


@register("gaps", section="certificates", needs=("relative_gap",))
def gaps(material: Material) -> Iterator[Figure]:
    """Draw the largest certified relative gap of every cell beside the tolerances, unless there are too many cells."""
    fits = material.runs.drop_duplicates(["cell", "split"])
    cells = fits[fits["status"] != "failed"].groupby(["dataset", "method"], sort=True, observed=True)["relative_gap"]
    certificates = cells.max().astype(float).rename("worst_gap").reset_index()
    part = certificates[np.isfinite(certificates["worst_gap"])]
    methods = in_order(part["method"])
    if part.empty or len(part) > 20 * MAX_POINTS or len(methods) > 60:
        return
    floor, below = _floor(material, numbers(part, "worst_gap"))

    def paint(axes: Axes) -> None:
        for at, method in enumerate(methods):
            worst = np.maximum(part.loc[part["method"] == method, "worst_gap"].to_numpy(), floor)
            jitter = np.linspace(-0.2, 0.2, len(worst)) if len(worst) > 1 else np.zeros(1)
            axes.plot(np.sort(worst), at + jitter, linestyle="none", markersize=4.5, alpha=0.8, **look(at))
        for tolerance in sorted(set(material.tolerances)):
            axes.axvline(tolerance, color="black", linestyle="--", linewidth=1)
            axes.annotate(f"tol {tolerance:g}", (tolerance, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom")
        log_scale(axes, "x", power)
        # at least two decades: a narrower axis has no labels to read
        smallest, largest = (max(float(bound), floor) for bound in (part["worst_gap"].min(), part["worst_gap"].max()))
        right = 2 * max([largest, *material.tolerances])
        axes.set_xlim(min(smallest / 2, right / 200), right)
        name_rows(axes, methods)
        axes.set_xlabel("largest certified relative duality gap of a cell")

    caption = (
        "Certificates: the largest relative duality gap among the reported fits of each cell; cells right of the line did not "
        f"converge.{below}"
    )
    if len(part) < len(certificates):
        caption += f" Not drawn: {len(certificates) - len(part)} without a finite gap."
    yield draw("gaps", caption, (WIDTH_INCHES, 1.0 + 0.35 * len(methods)), paint)
