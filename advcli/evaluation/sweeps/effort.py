"""What a sweep would compute, and about how long: the number of fits of each cell times the time of one."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import learners
from ...config.protocol import Protocol
from ..axes import Axes, find_axes, split_hyper
from ..recipe import Recipe, shared_data
from ..selection import searched_points
from .jobs import cell_of_sweep

if TYPE_CHECKING:
    from ...config import Settings

LONGEST = 5.0
"""Seconds after which the one fit that is timed is ended: a longer one counts as that long."""


@dataclass(frozen=True)
class Estimate:
    """What a cell would compute.

    Attributes
    ----------
    dataset, method, options : str
        As in its rows.
    searches, fits_of_a_search, fits : int
        Searches, fits of each of them before its grid grows, and reported fits.
    search_seconds, seconds : float
        Processor time of one fit of a search and of one reported fit, at the middle of the grid, here and now; one that was ended takes
        longer.
    """

    dataset: str
    method: str
    options: str
    searches: int
    fits_of_a_search: int
    fits: int
    search_seconds: float
    seconds: float

    @property
    def all_fits(self) -> int:
        """Fits of the searches and reported ones."""
        return self.searches * self.fits_of_a_search + self.fits

    @property
    def total(self) -> float:
        """Seconds of all fits, as if each took as long as the timed ones."""
        return self.searches * self.fits_of_a_search * self.search_seconds + self.fits * self.seconds


def count(settings: Settings) -> tuple[int, int, int]:
    """Return the searches of a cell, the fits of each before its grid grows, and its reported fits.

    No data are read: fewer splits than the protocol asks for, as with published ones, are not known here.
    """
    protocol = Protocol.from_mapping(settings.protocol)
    names = learners.searched(settings.loss, settings.features)
    axes = find_axes(protocol, names, split_hyper(names, settings.hyper)[0], learners.candidates(settings.loss))
    of_a_search = searched_points(protocol, axes) * (1 if protocol.holdout else protocol.folds)
    searches = 0 if not of_a_search else protocol.n_splits if protocol.search == "every_split" else 1
    return searches, of_a_search, protocol.n_splits


def estimate(cells: Sequence[Settings]) -> list[Estimate]:
    """Return what cells would compute, in their order; equal methods on one data set are timed once.

    Raises
    ------
    AdvcliError
        A cell that cannot be computed.
    """
    found: dict[int, Estimate] = {}
    timed: dict[str, tuple[float, float]] = {}
    with shared_data():
        for at in sorted(range(len(cells)), key=lambda at: str(cells[at].dataset["name"])):
            settings = cells[at]
            cell = cell_of_sweep(settings)
            recipe = Recipe(cell, settings.data_dir)
            splits, _ = recipe.splits()
            key = repr((settings.dataset, cell.loss, settings.features, settings.solver, cell.hyper))
            if key not in timed:
                tols = [float(settings.solver.get("search_tol") or settings.solver["tol"]), float(settings.solver["tol"])]
                search, reported = (_seconds(recipe, splits[0][0], tol) for tol in tols)
                timed[key] = search, reported
            searches, of_a_search, _ = count(settings)
            there = len(splits)
            found[at] = Estimate(recipe.dataset.name, cell.method, cell.options, min(searches, there), of_a_search, there, *timed[key])
    return [found[at] for at in range(len(cells))]


def _seconds(recipe: Recipe, rows: object, tol: float) -> float:
    """Return how long a fit to a tolerance takes the processor; a short one twice, as the first one loads what it needs."""
    train, hyper = recipe.part(rows), middle(recipe.axes, recipe)
    taken: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(taken) < 2 and sum(taken) < LONGEST / 10:
            began = time.process_time()  # other work of the machine is none of the sweep's
            recipe.fit(train, hyper, 1, tol=tol, max_seconds=LONGEST)
            taken.append(time.process_time() - began)
    return min(taken)


def middle(axes: Axes, recipe: Recipe) -> dict[str, object]:
    """Return the fixed hyper-parameters and, of what is searched, the middle of the lists."""
    grid = recipe.protocol.stage1
    chosen = {name: sorted(grid[name])[len(grid[name]) // 2] for name in axes.names if name not in axes.own}
    named = {(axes.strength or name) if name not in axes.others else name: value for name, value in chosen.items()}
    return {**axes.fixed, **named, **{name: values[len(values) // 2] for name, values in axes.own.items()}}


def lines(estimates: Sequence[Estimate], workers: int) -> list[str]:
    """Return the estimates as lines of text: one for each cell, then their sum."""
    said = []
    for one in estimates:
        search = f"{one.searches} x {one.fits_of_a_search} fits of searches, " if one.searches else ""
        said.append(f"{one.dataset}, {one.method}: {search}{one.fits} reported fits; one takes {one.seconds:.2g} s")
    total = sum(one.total for one in estimates)
    longest = max((one.total for one in estimates), default=0.0)
    at_least = max(longest, total / workers)
    fits = sum(one.all_fits for one in estimates)
    said.append(
        f"in all {fits} fits, about {duration(total)} of computing, {duration(at_least)} by {workers} at a time; growing grids add to it"
    )
    return said


def duration(seconds: float) -> str:
    """Return a time in the unit that people would choose."""
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{max(math.ceil(seconds), 1)} s"
