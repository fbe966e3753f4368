"""How many fits a sweep has, and roughly how long they take, without reading its data.

Each method is timed for a moment on a small made-up data set; the facts of `advcli.data.catalogue` say how much larger the sweep's own are.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ... import learners
from ...core.errors import AdvcliError
from ...data.catalogue import known_set
from ..axes import split_hyper
from ..recipe import Recipe, shared_data
from .effort import Estimate, count, duration, middle
from .jobs import cell_of

if TYPE_CHECKING:
    from ...config import Settings

SIZE = (210, 8, 5)
"""Training rows, features and classes of the made-up set."""
BUDGET, LONGEST = 1.0, 0.25
"""Seconds of all trials, after which further methods count as the mean of those timed, and of one fit."""
POWERS = {"linear": (0.5, 0.5, 0.5), "kernel": (2.0, 0.0, 0.5)}
"""Growth of the time of a fit with rows, features and classes, read off fits of the papers' data sets; they scatter around it by a factor
of five to either side, since the strength of the regularisation and the noise of the labels decide how many passes a fit takes."""


def rough(cells: Sequence[Settings], trial: Mapping[str, Any]) -> list[Estimate]:
    """Return what cells would compute, their seconds by a trial of each method; nan where the size of the data is not known.

    Parameters
    ----------
    cells : sequence of Settings
    trial : mapping
        Options of the made-up data set, of `SIZE`.
    """
    timed: dict[str, float] = {}
    began = time.perf_counter()
    found = []
    with shared_data():
        for settings in cells:
            numbers = count(settings)
            method = repr((settings.loss, settings.features, settings.solver))
            if method not in timed:
                spent = time.perf_counter() - began >= BUDGET
                timed[method] = math.nan if spent else _trial(settings, trial)
            cell = cell_of(settings)
            seconds = timed[method] if not math.isnan(timed[method]) else _mean(timed.values())
            seconds *= _larger(settings)
            found.append(Estimate(str(settings.dataset["name"]), cell.method, cell.options, *numbers, seconds, seconds))
    return found


def _mean(values: Any) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _trial(settings: Settings, trial: Mapping[str, Any]) -> float:
    """Return the processor seconds of one fit of a method to the made-up set, the second one; nan if it is for other data."""
    protocol = {**settings.protocol, "splits": "random", "n_splits": 1, "train_size": 0.7}
    own = split_hyper(learners.searched(settings.loss, settings.features), settings.hyper)[0]
    cell = replace(cell_of(replace(settings, dataset=dict(trial), protocol=protocol), own), noise=None)
    try:
        recipe = Recipe(cell, settings.data_dir)
        train = recipe.part(recipe.splits()[0][0][0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(2):
                began = time.process_time()
                recipe.fit(train, middle(recipe.axes, recipe), 1, tol=float(settings.solver["tol"]), max_seconds=LONGEST)
                seconds = time.process_time() - began
    except AdvcliError:
        return math.nan
    return seconds


def _larger(settings: Settings) -> float:
    """Return how many times longer a fit takes on a cell's data than on the made-up set; nan where their size is not known."""
    known = known_set(str(settings.dataset["name"]), str(settings.dataset["source"]))
    classes = None if known is None else known.classes or known.cut_classes
    if known is None or not known.rows or not known.features or not classes:
        return math.nan
    sizes = settings.dataset.get("sizes") or known.options.get("sizes")
    rows = sizes[0] if sizes else known.rows * float(settings.protocol["train_size"])
    powers = POWERS["kernel" if "gamma" in learners.searched(settings.loss, settings.features) else "linear"]
    return math.prod((own / made) ** power for own, made, power in zip((rows, known.features, classes), SIZE, powers, strict=True))


def lines(estimates: Sequence[Estimate]) -> dict[str, str]:
    """Return the number of fits and the rough time of a sweep, as labelled lines of text."""
    fits = sum(one.all_fits for one in estimates)
    searched, reported = sum(one.searches * one.fits_of_a_search for one in estimates), sum(one.fits for one in estimates)
    said = {"fits": f"{fits}: {searched} of searches, before a grid grows, and {reported} reported ones"}
    unknown = sum(math.isnan(one.total) for one in estimates)
    total = sum(one.total for one in estimates if not math.isnan(one.total))
    if unknown == len(estimates):
        said["how long"] = "not known before the data are read; dry_run=true times one fit of each method on each data set"
        return said
    rest = f", {unknown} cells aside whose data it does not know" if unknown else ""
    said["how long"] = (
        f"very roughly {duration(total)} on one core of this machine (between a fifth of it and five times as long{rest}): "
        "each method was timed for a moment on made-up rows; dry_run=true times it on the data"
    )
    return said
