"""How fast solvers close the gap on one problem: the fits behind `advcli bench`.

A trace is a series of fits from scratch with the same seed and limits of 1, 2, 4, ... passes: the same iterates each time, stopped later.
So every solver is traced by the interface that all share, and its clock leaves out what only the trace evaluates. Each point carries a
certificate computed from the returned fit.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from ..core.errors import ConfigError, IncompatibleError, NotConvergedWarning
from ..core.hyper import SCALES
from ..learners import Method
from .cell import Cell
from .recipe import ALL, Recipe
from .splits import derive_seed

_JUDGED_MEANINGS = {
    "primal": "certified objective lambda/2 |theta|^2 + mean loss",
    "dual": "certified lower bound of the optimum; empty where the solver has no dual point",
    "gap": "primal - dual",
    "relative_gap": "the gap over its scale",
    "status": "converged, or what stopped the solver",
}  # of a certificate

MEANINGS = {
    "dataset": "name of the data set",
    "loss": "name of the loss",
    "features": "name of the feature map",
    "solver": "name of the solver; for learners that choose among several trainings the training",
    "lambda": "regularisation, 1/(n C)",
    "n": "rows of the problem",
    "time": "wall time of the solver in seconds, without the certificate",
    "passes": "visits of the solver, in passes over the rows",
    "calls": "calls of the oracle of structured labels; empty elsewhere",
    **_JUDGED_MEANINGS,
}
"""Columns of convergence.csv with their meanings: one row per limit of passes."""

COLUMNS, _JUDGED = tuple(MEANINGS), tuple(_JUDGED_MEANINGS)


def trace(cell: Cell, data_dir: Path, *, tol: float, seconds: float) -> list[dict[str, Any]]:
    """Return one row (`COLUMNS`) per limit of passes, for one method with one solver on all rows of a data set.

    Of the protocol only ``standardise`` counts; C = 1 unless ``hyper`` has C or lambda. The trace ends at the relative gap ``tol``;
    ``seconds`` is the time of the longest fit, all together may take twice as long. Learners whose fits have no certificate are an
    `IncompatibleError`.
    """
    check_traceable(cell)
    recipe = Recipe(cell, data_dir, search=False)
    hyper = recipe.axes.fixed if {*SCALES} & set(recipe.axes.fixed) else {"C": 1.0, **recipe.axes.fixed}
    everything, seed = recipe.part(), derive_seed(cell.seed, "bench", recipe.dataset.name)
    rows: list[dict[str, Any]] = []
    # a learner without a solver of this package brings its limit as an option of the loss
    passes, most = 1, int(cell.loss.get("max_passes") or cell.solver.get("max_passes") or 100_000)
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            learner = recipe.fit(everything, hyper, ALL, seed, tol=tol, max_passes=passes, max_seconds=seconds).learner
        certificate = learner.certificate_
        assert certificate is not None
        row = {"dataset": recipe.dataset.name, "loss": cell.loss["name"], "features": cell.features["name"]}
        row |= {"solver": cell.loss.get("training", cell.solver["name"]), "lambda": learner.lam_, "n": everything.X.shape[0]}
        row |= {"time": certificate.seconds, "passes": certificate.passes, "calls": learner.counts_.get("oracle_calls")}
        row |= {name: getattr(certificate, name) for name in _JUDGED}
        # a fit that the clock stopped before the one with a smaller limit tells nothing new
        if rows and certificate.status == "max_seconds" and certificate.passes <= rows[-1]["passes"]:
            return rows
        # a limit that has no room for the next round of a solver adds nothing to the one before
        if not rows or certificate.passes > rows[-1]["passes"] or certificate.status != "max_passes":
            rows.append(row)
        passes *= 2
        if certificate.converged or certificate.status in ("max_seconds", "stalled") or passes > most:
            return rows


def check_traceable(cell: Cell) -> None:
    """Refuse a method whose fits have no certificate, and one whose labels or splits a trace has not."""
    method = Method.of(cell)
    if not method.learner.certified:
        raise IncompatibleError("advcli bench", "fits with a certificate", f"loss={cell.loss['name']} has none: leave it out")
    for name in method.searched:
        if name in cell.loss and cell.hyper.get(name) is None:
            raise ConfigError(f"advcli bench searches nothing, and loss={cell.loss['name']} sets no {name}: give hyper.{name}=VALUE")
    if cell.noise:
        raise ConfigError(f"advcli bench traces fits to the labels of the data; leave out noise={cell.noise['name']}")
