"""Drawing of figures, as SVG text, PDF and PNG: one style for all.

Colours are readable on light and on dark ground; texts and lines are black, which a page may turn to the colour of its own text.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .formats.document import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#3b82c4", "#d9822b", "#2f9e6e", "#c2588f", "#8f6fd1", "#a3862b", "#3aa5a5", "#d35f4c")
MARKERS = "osD^vP*X"
MAX_POINTS = 800
"""More results than this make no readable plot."""
WIDTH = 1200
"""Pixels of a PNG."""
MAX_METHODS = 20
"""More methods than this make no readable legend; a sweep over an option has its curves."""


_svg_only: ContextVar[bool] = ContextVar("svg_only", default=False)


@contextmanager
def svg_only() -> Iterator[None]:
    """Draw without PDF and PNG, which take most of the time and which a page does not show."""
    before = _svg_only.set(True)
    try:
        yield
    finally:
        _svg_only.reset(before)


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


def draw(
    name: str,
    caption: str,
    size: tuple[float, float],
    paint: Callable[[Any], None],
    panels: tuple[int, int] | None = None,
) -> Figure:
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
    panels : (int, int), optional
        Rows and columns of axes, of which ``paint`` is given a flat list; default one, given by itself.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with style():
        canvas = Canvas(figsize=size, layout="tight")
        FigureCanvasAgg(canvas)
        paint(canvas.add_subplot() if panels is None else list(canvas.subplots(*panels, squeeze=False).ravel()))
        svg, pdf, png = io.StringIO(), io.BytesIO(), io.BytesIO()
        # without dates the same rows give the same bytes
        canvas.savefig(svg, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None})
        if not _svg_only.get():
            canvas.savefig(pdf, format="pdf", bbox_inches="tight", metadata={"CreationDate": None})
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
