"""How fast solvers close the gap on one problem: the fits behind `advcli bench`.

A trace is a series of fits from scratch with the same seed and limits of 1, 2, 4, ... passes: the same iterates each time, stopped later.
So every solver is traced through the one seam that all have, its clock leaves out what only the trace evaluates, and each point carries
a certificate computed from the returned fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError, NotConvergedWarning
from . import parts
from .seeds import derive_seed
from .standardise import Standardiser

COLUMNS = (
    "dataset",
    "loss",
    "features",
    "solver",
    "lambda",
    "n",
    "time",
    "passes",
    "primal",
    "dual",
    "gap",
    "relative_gap",
    "status",
)
"""Columns of convergence.csv: ``time`` in seconds, the objective as lambda/2 |theta|^2 + mean loss, no dual value where there is none."""


def trace(
    dataset: Mapping[str, Any],
    loss: Mapping[str, Any],
    features: Mapping[str, Any],
    solver: Mapping[str, Any],
    protocol: Mapping[str, Any],
    hyper: Mapping[str, float],
    *,
    seed: int,
    data_dir: Path,
    tol: float,
    seconds: float,
    told: Callable[[dict[str, Any]], None] = lambda row: None,
) -> list[dict[str, Any]]:
    """Return one row (`COLUMNS`) per limit of passes, for one solver on all rows of a data set.

    Parameters
    ----------
    dataset, loss, features, solver, protocol : mapping
        Options of the configuration groups; of the protocol only ``standardise`` counts.
    hyper : mapping
        Hyper-parameters; C = 1 unless ``C`` or ``lambda`` is given.
    seed : int
        Seed of the experiment.
    data_dir : Path
        Folder of the data sets.
    tol : float
        Relative gap at which the trace ends.
    seconds : float
        Time of the longest fit; all together may take twice as long.
    told : callable
        Called with every row as it is made.

    Raises
    ------
    ConfigError, DataError, IncompatibleError
        For input that cannot be fitted.
    """
    data = parts.load(dataset, data_dir, False)
    loss = parts.fill_labels(loss, data)
    parts.check_compatible(loss, features, solver, bool(data.ordered), len(data.classes))
    X = data.X
    if protocol["standardise"] != "none":
        X = Standardiser().fit(X).transform(X)
    given = dict(hyper) if {"C", "lambda"} & set(hyper) else {"C": 1.0, **hyper}
    unknown = set(given) - {"C", "lambda", *parts.hyper_names(features, loss)}
    if unknown:
        raise ConfigError(f"hyper.{sorted(unknown)[0]} is no hyper-parameter of features={features['name']}")
    rows: list[dict[str, Any]] = []
    passes, most = 1, int(solver["max_passes"])
    while True:
        limits = {**solver, "max_passes": passes, "max_seconds": seconds}
        estimator = parts.make_estimator(
            loss, features, limits, given, len(data.classes), derive_seed(seed, "bench", str(dataset["name"])), tol
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            estimator.fit(X, data.y, sample_weight=data.example_weight)
        certificate = estimator.certificate_
        row = {
            "dataset": data.name,
            "loss": loss["name"],
            "features": features["name"],
            "solver": solver["name"],
            "lambda": estimator.solution_.lam,
            "n": X.shape[0],
            "time": certificate.seconds,
            "passes": certificate.passes,
            "primal": certificate.primal,
            "dual": certificate.dual,
            "gap": certificate.gap,
            "relative_gap": certificate.relative_gap,
            "status": certificate.status,
        }
        # a fit that the clock stopped before the one with a smaller limit tells nothing new
        if rows and certificate.status == "max_seconds" and certificate.passes <= rows[-1]["passes"]:
            return rows
        rows.append(row)
        told(row)
        # a solver that counts in larger units than a pass stops late: the next limit that can change anything lies beyond
        passes = 2 * max(passes, int(certificate.passes))
        if certificate.converged or certificate.status in ("max_seconds", "stalled") or passes > most:
            return rows
