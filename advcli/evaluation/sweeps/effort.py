"""What a sweep would compute, and about how long: the number of fits of each cell times the time of one.

The fit is timed on the data, or, without reading them, on a small made-up data set: the facts of `advcli.data.catalogue` then say how much
larger the sweep's own are.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...core.errors import AdvcliError
from ...data.catalogue import known_set
from ...learners import Method
from ..cell import Cell
from ..recipe import Recipe, shared_data
from ..selection import find_axes, searched_points

if TYPE_CHECKING:
    from ...config import Settings

LONGEST = 5.0
"""Seconds after which the one fit that is timed is ended: a longer one counts as that long."""
TRIAL_SIZE = (210, 8, 5)
"""Training rows, features and classes of the made-up set."""
TRIALS, LONGEST_TRIAL = 1.0, 0.25
"""Seconds of all trials, after which further methods count as the mean of those timed, and of one fit."""
POWERS = {"linear": (0.5, 0.5, 0.5), "kernel": (2.0, 0.0, 0.5)}
"""Growth of the time of a fit with rows, features and classes, read off fits of the papers' data sets. They scatter around it by a factor
of five to either side: the strength of the regularisation and the noise of the labels decide how many passes a fit takes."""


@dataclass(frozen=True)
class Estimate:
    """What a cell would compute: searches, fits of each of them before its grid grows, and reported fits.

    ``search_seconds`` and ``seconds`` are the processor time of one fit of a search and of one reported fit, at the middle of the grid,
    on this machine; a fit that was stopped takes longer.
    """

    dataset: str
    method: str
    searches: int
    fits_of_a_search: int
    fits: int
    search_seconds: float
    seconds: float

    @property
    def fits_of_searches(self) -> int:
        """Fits of all searches."""
        return self.searches * self.fits_of_a_search

    @property
    def all_fits(self) -> int:
        """Fits of the searches and reported ones."""
        return self.fits_of_searches + self.fits

    @property
    def total(self) -> float:
        """Seconds of all fits, as if each took as long as the timed ones."""
        return self.fits_of_searches * self.search_seconds + self.fits * self.seconds


def count(cell: Cell) -> tuple[int, int, int]:
    """Return the searches of a cell, the fits of each before its grid grows, and its reported fits.

    No data are read: fewer splits than the protocol asks for, as with published ones, are not known here.
    """
    protocol = cell.protocol
    of_a_search = searched_points(protocol, find_axes(protocol, Method.of(cell))) * (1 if protocol.holdout else protocol.folds)
    searches = 0 if not of_a_search else protocol.n_splits if protocol.search == "every_split" else 1
    return searches, of_a_search, protocol.n_splits


def fits_of(cell: Cell) -> int:
    """Return the number of fits of a cell before its grids grow."""
    searches, of_a_search, fits = count(cell)
    return searches * of_a_search + fits


def estimate(cells: Sequence[Settings]) -> list[Estimate]:
    """Return what cells would compute, in their order; equal methods on one data set are timed once."""
    estimates: dict[int, Estimate] = {}
    timed: dict[str, tuple[float, float]] = {}
    with shared_data():
        for number in sorted(range(len(cells)), key=lambda number: str(cells[number].dataset["name"])):
            cell = Cell.of(cells[number]).in_sweep
            recipe = Recipe(cell, cells[number].data_dir)
            splits, _ = recipe.splits()
            key = repr((cell.dataset, Method.of(cell)))
            if key not in timed:
                tols = [float(method.solver["tol"]) for method in (recipe.method.in_search, recipe.method)]
                search, reported = (_seconds(recipe, splits[0][0], tol, LONGEST, LONGEST / 10) for tol in tols)
                timed[key] = search, reported
            searches, of_a_search, _ = count(cell)
            there = len(splits)
            estimates[number] = Estimate(recipe.dataset.name, cell.method, min(searches, there), of_a_search, there, *timed[key])
    return [estimates[number] for number in range(len(cells))]


def estimate_by_trials(cells: Sequence[Settings], trial: Mapping[str, Any]) -> list[Estimate]:
    """Return what cells would compute, their seconds by a trial of each method; nan where the size of the data is not known.

    ``trial`` has the options of the made-up data set, of `TRIAL_SIZE`.
    """
    timed: dict[str, float] = {}
    began = time.perf_counter()
    estimates = []
    with shared_data():
        for settings in cells:
            cell = Cell.of(settings).in_sweep
            method = repr((cell.loss, cell.features, cell.solver))
            if method not in timed:
                timed[method] = math.nan if time.perf_counter() - began >= TRIALS else _trial(settings, trial)
            timings = [seconds for seconds in timed.values() if not math.isnan(seconds)]
            mean = sum(timings) / len(timings) if timings else math.nan
            seconds = (mean if math.isnan(timed[method]) else timed[method]) * _larger(cell)
            estimates.append(Estimate(str(cell.dataset["name"]), cell.method, *count(cell), seconds, seconds))
    return estimates


def _trial(settings: Settings, trial: Mapping[str, Any]) -> float:
    """Return the processor seconds of one fit of a method to the made-up set; nan if it is for other data."""
    protocol = replace(settings.protocol, splits="random", n_splits=1, train_size=0.7)
    cell = replace(Cell.of(settings, trial).in_sweep, protocol=protocol, noise=None)
    try:
        recipe = Recipe(cell, settings.data_dir)
        return _seconds(recipe, recipe.splits()[0][0][0], float(cell.solver["tol"]), LONGEST_TRIAL, math.inf)
    except AdvcliError:
        return math.nan


def _seconds(recipe: Recipe, rows: object, tol: float, longest: float, short: float) -> float:
    """Return how long a fit to a tolerance takes the processor; one below ``short`` twice, as the first one loads what it needs."""
    train, hyper = recipe.part(rows), middle(recipe)
    taken: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(taken) < 2 and sum(taken) < short:
            began = time.process_time()  # other work of the machine is none of the sweep's
            recipe.fit(train, hyper, 1, tol=tol, max_seconds=longest)
            taken.append(time.process_time() - began)
    return min(taken)


def middle(recipe: Recipe) -> dict[str, object]:
    """Return the fixed hyper-parameters and, of what is searched, the middle of the lists."""
    axes, grid = recipe.axes, recipe.protocol.stage1
    values = {name: axes.lists[name] if name in axes.lists else sorted(grid[name]) for name in axes.names}
    return axes.hyper({name: candidates[len(candidates) // 2] for name, candidates in values.items()})


def _larger(cell: Cell) -> float:
    """Return how many times longer a fit takes on a cell's data than on the made-up set; nan where their size is not known."""
    facts = known_set(str(cell.dataset["name"]), str(cell.dataset["source"]))
    classes = None if facts is None else facts.classes or facts.cut_classes
    if facts is None or not facts.rows or not facts.features or not classes:
        return math.nan
    sizes = cell.dataset.get("sizes") or facts.options.get("sizes")
    rows = sizes[0] if sizes else facts.rows * cell.protocol.train_size
    powers = POWERS["kernel" if "gamma" in Method.of(cell).searched else "linear"]
    return math.prod((size / made) ** power for size, made, power in zip((rows, facts.features, classes), TRIAL_SIZE, powers, strict=True))


def lines(estimates: Sequence[Estimate], workers: int) -> list[str]:
    """Return the estimates as lines of text: one for each cell, then their sum."""
    texts = []
    for one in estimates:
        search = f"{one.searches} x {one.fits_of_a_search} fits of searches, " if one.searches else ""
        texts.append(f"{one.dataset}, {one.method}: {search}{one.fits} reported fits; one takes {one.seconds:.2g} s")
    total = sum(one.total for one in estimates)
    at_least = max(max((one.total for one in estimates), default=0.0), total / workers)
    fits = sum(one.all_fits for one in estimates)
    texts.append(
        f"in all {fits} fits, about {duration(total)} of computing, {duration(at_least)} by {workers} at a time; growing grids add to it"
    )
    return texts


def made_up() -> dict[str, Any]:
    """Return the options of the data set of trials, of `TRIAL_SIZE`."""
    from ...config import check
    from ...config.composing import compose_cells

    rows, features, classes = TRIAL_SIZE
    made = [f"dataset.rows={rows * 10 // 7}", f"dataset.features={features}", f"dataset.classes={classes}"]
    _, (trial,) = compose_cells([["dataset=synthetic_ordinal", *made]], {})
    return check(trial).dataset


def trial_lines(estimates: Sequence[Estimate]) -> dict[str, str]:
    """Return the number of fits and the time of a sweep by trials, as labelled lines of text."""
    searched, reported = sum(one.fits_of_searches for one in estimates), sum(one.fits for one in estimates)
    fits = f"{searched + reported}: {searched} of searches, before a grid grows, and {reported} reported ones"
    totals = [one.total for one in estimates if not math.isnan(one.total)]
    if not totals:
        return {"fits": fits, "how long": "not known before the data are read; dry_run=true times one fit of each method on each data set"}
    unknown = len(estimates) - len(totals)
    rest = f", {unknown} cells aside whose data it does not know" if unknown else ""
    how_long = (
        f"very roughly {duration(sum(totals))} on one core of this machine (between a fifth of it and five times as long{rest}): "
        "each method was timed for a moment on made-up rows; dry_run=true times it on the data"
    )
    return {"fits": fits, "how long": how_long}


def duration(seconds: float) -> str:
    """Return a time in the unit that people would choose."""
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{max(math.ceil(seconds), 1)} s"
