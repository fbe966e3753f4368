"""What certificates cost: the gap of every fit against its seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..drawing import MAX_METHODS, draw, legend, legend_columns, look
from ..formats.document import Figure
from ..summary import in_order
from .base import Material, register

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_FITS = 4000
"""More points make no readable plot and a slow page."""


@register("effort", section="certificates", needs=("cell", "split", "relative_gap", "fit_seconds"))
def effort(material: Material) -> Iterator[Figure]:
    """Draw the certified relative gap of every fit against its seconds, unless there are too many; `advcli bench` traces single fits."""
    fits = material.runs.drop_duplicates(["cell", "split"])
    gaps = fits["relative_gap"].to_numpy(dtype=float, na_value=np.nan)
    seconds = fits["fit_seconds"].to_numpy(dtype=float, na_value=np.nan)
    fits = fits[np.isfinite(gaps) & np.isfinite(seconds)]
    methods = in_order(fits["method"])
    if not methods or len(fits) > MAX_FITS or len(methods) > MAX_METHODS:
        return

    def paint(axes: Axes) -> None:
        for at, method in enumerate(methods):
            part = fits[fits["method"] == method]
            x, y = np.maximum(part["fit_seconds"].to_numpy(float), 1e-6), np.maximum(part["relative_gap"].to_numpy(float), 1e-16)
            axes.plot(x, y, linestyle="none", markersize=3.6, alpha=0.65, label=method, **look(at))
        for tolerance in sorted(set(material.tolerances)):
            axes.axhline(tolerance, color="black", linestyle="--", linewidth=1)
            axes.annotate(f"tol {tolerance:g}", (1.0, tolerance), xycoords=("axes fraction", "data"), ha="right", va="bottom")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}")
        axes.yaxis.set_minor_formatter(lambda value, _: "")
        for limits, widen in ((axes.get_xlim(), axes.set_xlim), (axes.get_ylim(), axes.set_ylim)):
            if limits[1] < 100 * limits[0]:  # at least two decades: a narrower axis has no labels to read
                middle = float(np.sqrt(limits[0] * limits[1]))
                widen(middle / 10, middle * 10)
        axes.set_xlabel("seconds of a fit")
        axes.set_ylabel("certified relative duality gap")
        axes.grid()
        legend(axes, methods)

    caption = "Every fit: its certified relative duality gap against its seconds; above the line is not converged."
    yield draw("effort", caption, (6.0, 3.4 + 0.2 * -(-len(methods) // legend_columns(methods))), paint)
