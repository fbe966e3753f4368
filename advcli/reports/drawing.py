"""Drawing of figures, as SVG text, PDF and PNG: one style for all, and the parts of axes that several have.

Colours are readable on light and on dark ground; texts and lines are black, which a page may turn to the colour of its text.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import shown_as, shown_value
from .formats.document import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # the library is imported by what draws

COLOURS = ("#3b82c4", "#d9822b", "#2f9e6e", "#c2588f", "#8f6fd1", "#a3862b", "#3aa5a5", "#d35f4c")
MARKERS = "osD^vP*X"
MAX_POINTS = 800
"""More results than this make no readable plot."""
WIDTH = 1200
"""Pixels of a PNG."""
WIDTH_INCHES = 5.2
"""Width of the figures of a report: two stand side by side on a wide page, and one fits a narrow screen with texts that can be read."""
MAX_METHODS = 20
"""More methods than this make no readable legend; a sweep over an option has its curves."""

_STYLE: Any = {
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
# without dates the same rows give the same bytes
_METADATA: dict[str, Any] = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}

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
def canvas(size: tuple[float, float], layout: Any = "constrained") -> Iterator[Any]:
    """Give an empty matplotlib figure of so many inches, in the style of all figures."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        warnings.simplefilter("ignore", DeprecationWarning)
        figure = Canvas(figsize=size, layout=layout)
        FigureCanvasAgg(figure)
        yield figure


def saved(figure: Any, kind: str, **how: Any) -> bytes:
    """Return a matplotlib figure as a file of that kind: svg, pdf or png."""
    content = io.BytesIO()
    figure.savefig(content, format=kind, metadata=_METADATA[kind], **how)
    return content.getvalue()


def draw(name: str, caption: str, size: tuple[float, float], paint: Callable[[Any], None], panels: tuple[int, int] | None = None) -> Figure:
    """Return a figure; the same drawing gives the same bytes.

    ``name`` is the stem of its files, ``caption`` one sentence, ``size`` width and height in inches. ``paint`` draws on the
    axes that it is given: one, or a flat list of ``panels`` rows and columns.

    Examples
    --------
    >>> from advcli.reports.drawing import draw, legend, look
    >>> def paint(axes):
    ...     axes.plot([1, 2, 3], [1, 4, 9], label="squares", **look(0))
    ...     legend(axes, ["squares"])
    >>> figure = draw("squares", "Squares of three numbers.", (4.0, 3.0), paint)
    >>> figure.name, figure.png[1:4]
    ('squares', b'PNG')
    """
    pdf = png = b""
    with canvas(size, "tight") as figure:
        paint(figure.add_subplot() if panels is None else list(figure.subplots(*panels, squeeze=False).ravel()))
        svg = saved(figure, "svg", transparent=True, bbox_inches="tight")
        if not _svg_only.get():
            pdf = saved(figure, "pdf", bbox_inches="tight")
            png = saved(figure, "png", dpi=WIDTH / size[0], bbox_inches="tight", facecolor="white")
    return Figure(name, caption, svg.decode(), pdf, png)


def look(at: int) -> dict[str, Any]:
    """Return colour and marker of a figure's line number ``at``, from 0.

    Examples
    --------
    >>> from advcli.reports.drawing import look
    >>> sorted(look(0))
    ['color', 'marker']
    """
    return {"color": COLOURS[at % len(COLOURS)], "marker": MARKERS[(at + at // len(COLOURS)) % len(MARKERS)]}


def _legend_columns(labels: Sequence[str]) -> int:
    """Return how many columns keep a legend from being wider than the figure, which would squeeze the axes."""
    return max(1, min(4, len(labels), 60 // (max(map(len, labels)) + 6)))


def legend_height(labels: Sequence[str]) -> float:
    """Return the inches that the legend takes above the axes."""
    return 0.2 * -(-len(labels) // _legend_columns(labels))


def legend(axes: Axes, labels: Sequence[str]) -> None:
    """Draw the legend above the axes, as wide as they are.

    Examples
    --------
    >>> from advcli.reports.drawing import draw, legend, look
    >>> def paint(axes):
    ...     axes.plot([1, 2, 3], [1, 4, 9], label="squares", **look(0))
    ...     legend(axes, ["squares"])
    >>> figure = draw("squares", "Squares of three numbers.", (4.0, 3.0), paint)
    >>> "squares" in figure.svg
    True
    """
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=_legend_columns(labels), borderaxespad=0.2, handletextpad=0.3)


def finish(axes: Axes, x: str, y: str, labels: Sequence[str]) -> None:
    """Name the axes, and draw the grid and the legend."""
    axes.set(xlabel=x, ylabel=y)
    axes.grid()
    legend(axes, labels)


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Name the axes of a picture, whose texts are larger than in a report."""
    axes.set_xlabel(x, fontsize=12)
    axes.set_ylabel(y, fontsize=12)
    axes.tick_params(labelsize=11)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Give a line of the axes to each name, the first on top, and draw the grid across them."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x")


def power(value: float, _: Any) -> str:
    """Return the label of a tick at a power of ten."""
    return f"{value:.0e}"


def log_scale(axes: Axes, which: str, label: Any = "{x:g}") -> None:
    """Make the axis ``x`` or ``y`` logarithmic, with labels at its major ticks alone."""
    axes.set(**{f"{which}scale": "log"})
    axis: Any = getattr(axes, f"{which}axis")
    axis.set_major_formatter(label)
    axis.set_minor_formatter(lambda value, _: "")


def tolerance_lines(axes: Axes, tolerances: Iterable[float]) -> None:
    """Draw a line at each tolerance of gaps that are the ordinates, its number at the right of the axes."""
    for tolerance in tolerances:
        axes.axhline(tolerance, color="black", linestyle="--", linewidth=1)
        where: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "left", "va": "center"}
        axes.annotate(f" {tolerance:g}", (1.0, tolerance), **where)


def scale(metric: str) -> float:
    """Return the factor of differences of a metric in figures: shares are shown in percent."""
    return 100.0 if shown_as(metric).percent else 1.0


def as_shown(metric: str, values: Any) -> NDArray[np.float64]:
    """Return values of a metric as figures show them."""
    return np.asarray(scale(metric) * shown_value(metric, np.asarray(values, dtype=float)))
