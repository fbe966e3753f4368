"""Certified gaps beside the tolerances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..drawing import MAX_POINTS, draw, look
from ..formats.document import Figure
from ..summary import in_order
from .base import Material, register

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@register("gaps", section="certificates", needs=("relative_gap",))
def gaps(material: Material) -> Iterator[Figure]:
    """Draw the largest certified relative gap of every cell beside the tolerances, unless there are too many cells."""
    fits = material.runs.drop_duplicates(["cell", "split"])
    cells = fits[fits["status"] != "failed"].groupby(["dataset", "method"], sort=True, observed=True)["relative_gap"]
    certificates = cells.max().astype(float).rename("worst_gap").reset_index()
    part = certificates[np.isfinite(certificates["worst_gap"].to_numpy(dtype=float))]
    if part.empty or len(part) > 20 * MAX_POINTS:
        return
    methods = in_order(part["method"])
    if len(methods) > 60:
        return

    def paint(axes: Axes) -> None:
        for at, method in enumerate(methods):
            worst = np.maximum(part.loc[part["method"] == method, "worst_gap"].to_numpy(dtype=float), 1e-16)
            jitter = np.linspace(-0.2, 0.2, len(worst)) if len(worst) > 1 else np.zeros(1)
            axes.plot(np.sort(worst), at + jitter, linestyle="none", markersize=4.5, alpha=0.8, **look(at))
        for tolerance in sorted(set(material.tolerances)):
            axes.axvline(tolerance, color="black", linestyle="--", linewidth=1)
            axes.annotate(f"tol {tolerance:g}", (tolerance, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0e}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        worst = np.maximum(part["worst_gap"].to_numpy(dtype=float), 1e-16)
        # at least two decades: a narrower axis has no labels to read
        right = 2 * max([float(worst.max()), *material.tolerances])
        axes.set_xlim(min(worst.min() / 2, right / 200), right)
        axes.set_yticks(range(len(methods)), methods)
        axes.set_ylim(len(methods) - 0.5, -0.5)
        axes.grid(axis="x")
        axes.set_xlabel("largest certified relative duality gap of a cell")

    caption = "Certificates: the largest relative duality gap among the reported fits of each cell; right of the line is not converged."
    if len(part) < len(certificates):
        caption += f" Not drawn: {len(certificates) - len(part)} without a finite gap."
    yield draw("gaps", caption, (7.0, 1.0 + 0.35 * len(methods)), paint)
