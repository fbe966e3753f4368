"""Drawing of figures, as SVG text and PDF: one style for all.

Figures need matplotlib and scikit-posthocs, which the extra ``advcli[report]`` brings; `missing_library` tells whether one lacks.
Colours are readable on light and on dark ground; texts and lines are black, which a page may turn to the colour of its own text.
"""

from __future__ import annotations

import importlib.util
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .document import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEEDED = {"matplotlib": "matplotlib", "scikit_posthocs": "scikit-posthocs"}

COLOURS = ("#3b82c4", "#d9822b", "#2f9e6e", "#c2588f", "#8f6fd1", "#a3862b", "#3aa5a5", "#d35f4c")
MARKERS = "osD^vP*X"
MAX_POINTS = 800
"""More results than this make no readable plot."""
WIDTH = 1200
"""Pixels of a PNG."""
MAX_METHODS = 20
"""More methods than this make no readable legend; a sweep over an option has its curves."""


def missing_library() -> str:
    """Return the first package that plots need and that is not installed; empty if all are there."""
    return next((package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None), "")


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of all figures."""
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


def draw(name: str, caption: str, size: tuple[float, float], paint: Callable[[Axes], None], raster: bool = False) -> Figure:
    """Return a figure; the same drawing gives the same bytes.

    Parameters
    ----------
    name : str
        Name of its files without the ending.
    caption : str
        One sentence.
    size : (float, float)
        Width and height in inches.
    paint : callable
        Draws on the axes that it is given.
    raster : bool
        Make a PNG as well, about `WIDTH` pixels wide on white ground.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with style():
        canvas = Canvas(figsize=size, layout="tight")
        FigureCanvasAgg(canvas)
        paint(canvas.add_subplot())
        svg, pdf = io.StringIO(), io.BytesIO()
        # without dates the same rows give the same bytes
        canvas.savefig(svg, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None})
        canvas.savefig(pdf, format="pdf", bbox_inches="tight", metadata={"CreationDate": None})
        png = io.BytesIO()
        if raster:
            canvas.savefig(png, format="png", dpi=WIDTH / size[0], bbox_inches="tight", facecolor="white", metadata={"Software": None})
    return Figure(name, caption, svg.getvalue(), pdf.getvalue(), png.getvalue())


def look(at: int) -> dict[str, Any]:
    """Return colour and marker of a figure's line number ``at``, from 0."""
    return {"color": COLOURS[at % len(COLOURS)], "marker": MARKERS[(at + at // len(COLOURS)) % len(MARKERS)]}


def legend_columns(labels: Sequence[str]) -> int:
    """Return how many columns keep a legend from being wider than the figure, which would squeeze the axes."""
    return max(1, min(4, len(labels), 75 // (max(map(len, labels)) + 6)))


def legend(axes: Axes, labels: Sequence[str]) -> None:
    """Draw the legend above the axes, as wide as they are."""
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=legend_columns(labels), borderaxespad=0.2, handletextpad=0.3)
