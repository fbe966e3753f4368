"""What a figure of a report is given, and the registry of figures.

A figure is a function ``(material) -> iterator of Figure`` registered here, or in a file of a user's folder ``figure``, under its name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from ...core import plugins
from ...core.errors import AdvcliError, ConfigError, ResultsError
from ...core.registry import Registry
from ..across import Across, across_datasets
from ..curves import curve_points
from ..formats.document import Figure

SECTIONS = ("results", "across", "published", "predictions", "curves", "selection", "certificates")
"""Where a figure may stand; the first two once for each metric that is shown."""
LEARNING_COLUMNS = ("cell", "dataset", "split", "share", "n_train", "relative_gap", "metric", "value")
"""One row for every fit to a share of the training rows and every metric."""


@dataclass(frozen=True)
class Material:
    """What a figure may draw: rows, and what reports make of them."""

    runs: pd.DataFrame  # as runs.csv, with unique names of methods as they are shown; `advcli.reports.summary.in_order` orders names
    summary: pd.DataFrame  # `advcli.reports.summarise` of them
    metrics: tuple[str, ...]  # shown metrics, the primary one first
    metric: str  # of the section; the primary one where the section has none
    alpha: float = 0.05  # level of the tests
    tolerances: tuple[float, ...] = ()  # the relative gaps that were asked for
    compared: pd.DataFrame | None = None  # published numbers beside ours, where they were asked for
    search: pd.DataFrame | None = None  # rows as in search.csv of the cells in ``runs``, with their names
    # by key of a cell: ``labels`` of the k classes and ``counts``, a row a true class, a column a prediction, abstentions last
    confusion: Mapping[str, Any] = field(default_factory=dict)
    learning: pd.DataFrame | None = None  # columns `LEARNING_COLUMNS` and ``method``, where a learning curve was asked for

    @cached_property
    def across(self) -> Across:
        """The tests across data sets."""
        return across_datasets(self.summary, self.metric, self.alpha)

    @cached_property
    def points(self) -> pd.DataFrame:
        """The points of all curves."""
        return curve_points(self.runs)


Draw = Callable[[Material], Iterator[Figure]]


@dataclass(frozen=True)
class ReportFigure:
    """A figure of a report."""

    name: str  # letters, digits and hyphens: the stem of its files, which are NAME or begin with NAME-
    section: str  # one of `SECTIONS`
    needs: tuple[str, ...]  # columns of the rows that it reads; without one of them it is not drawn
    draw: Draw


registry: Registry[ReportFigure] = Registry("figure", "figure", __package__)


def register(name: str, *, section: str, needs: tuple[str, ...]) -> Callable[[Draw], Draw]:
    """Register a function as a figure of a section in `SECTIONS`; the arguments are attributes of `ReportFigure`.

    Examples
    --------
    >>> from advcli.reports.drawing import draw
    >>> from advcli.reports.figures import register
    >>> @register("seconds", section="certificates", needs=("fit_seconds",))
    ... def seconds(material):
    ...     yield draw("seconds", "Seconds of every fit.", (6.0, 3.5), lambda axes: axes.plot(material.runs["fit_seconds"]))
    """
    if section not in SECTIONS:
        raise ConfigError(f"figure {name}: section={section} is not valid; choose one of {', '.join(SECTIONS)}")
    if not name.replace("-", "").isalnum():
        raise ConfigError(f"figure {name!r}: a name has letters, digits and hyphens only, since files are named by it")

    def keep(draw: Draw) -> Draw:
        registry.put(name, ReportFigure(name, section, tuple(needs), draw))
        return draw

    return keep


def _figures() -> list[ReportFigure]:
    """Return the figures of the package and of the users' folders in use; figures of other folders are left out."""
    current = {module.__name__ for module in plugins.load("figure")}
    figures = [registry.get(name) for name in registry]
    return [figure for figure in figures if not plugins.is_plugin(figure.draw.__module__) or figure.draw.__module__ in current]


def is_of(stem: str) -> bool:
    """Tell whether a file of that stem is of one of the figures."""
    return any(_belongs(stem, figure) for figure in _figures())


def _belongs(stem: str, figure: ReportFigure) -> bool:
    return stem == figure.name or stem.startswith(f"{figure.name}-")


def drawn(section: str, material: Material) -> tuple[Figure, ...]:
    """Return the figures of a section; an error of one is one line that names the figure, its file and the reason."""
    drawings: list[Figure] = []
    for figure in _figures():
        if figure.section != section or not set(figure.needs) <= set(material.runs.columns):
            continue
        where = f"figure {figure.name} ({sys.modules[figure.draw.__module__].__file__})"
        try:
            figures = list(figure.draw(material))
        except AdvcliError:
            raise
        except Exception as error:
            place = "" if plugins.at_fault(error) else plugins.defined_at(figure.draw)
            raise ResultsError(f"figure {figure.name}: {plugins.one_line(error)}{place}") from error
        for drawing in figures:
            if not isinstance(drawing, Figure):
                raise ResultsError(f"{where}: it yields a {type(drawing).__name__}, not what advcli.reports.drawing.draw returns")
            if not _belongs(drawing.name, figure):
                raise ResultsError(f"{where}: the file {drawing.name} must be named {figure.name} or {figure.name}-WORDS")
        drawings += figures
    return tuple(drawings)
