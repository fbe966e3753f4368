"""Facts that all sections of a report read from its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from ..figures import LEARNING_COLUMNS
from ..formats.document import TableField
from ..sources import Sources

Row = tuple[TableField, ...]


@dataclass(frozen=True)
class Facts:
    """What a folder knows beside its rows.

    Parameters
    ----------
    provenance : dict of folder to dict
        The contents of each results folder's provenance.json; empty without one.
    notes : dict of data set to list of str
        What was done to the data.
    cuts : dict of data set to str
        How a continuous target was cut into classes, or whose splits were used, in a few words.
    edges : dict of cell key to list of str
        Chosen hyper-parameters at the end of what was tried.
    tolerances : tuple of float
        The relative gaps asked for.
    confusion : dict of cell key to dict
        Confusion counts of the cells (`advcli.reports.figures.Material`).
    learning : DataFrame or None
        Fits to shares of the training rows; None without any.
    search : DataFrame or None
        Rows of search.csv; None without the file.
    """

    provenance: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    cuts: dict[str, str] = field(default_factory=dict)
    edges: dict[str, list[str]] = field(default_factory=dict)
    tolerances: tuple[float, ...] = ()
    confusion: dict[str, Any] = field(default_factory=dict)
    learning: pd.DataFrame | None = None
    search: pd.DataFrame | None = None


def read_facts(sources: Sources, cells: Iterable[str]) -> Facts:
    """Read what results folders say beside their rows; a folder with rows alone says nothing."""
    facts = Facts(provenance=sources.provenance, search=sources.search)
    tolerances = set()
    learned: list[dict[str, Any]] = []
    for key in dict.fromkeys(cells):
        about = sources.about(key)
        dataset = str(about.get("dataset", ""))
        for note in about.get("notes", ()):
            known = facts.notes.setdefault(dataset, [])
            known += [note] if note not in known else []
        if about.get("edges"):
            facts.edges[key] = list(about["edges"])
        cell = about.get("cell", {})
        if cell.get("protocol", {}).get("splits") == "author":
            facts.cuts[dataset] = "the authors' splits"
        elif cell.get("dataset", {}).get("cut") not in (None, "none"):
            facts.cuts[dataset] = f"cut: {str(cell['dataset']['cut']).replace('_', ' ')}"
        if isinstance(cell.get("solver", {}).get("tol"), (int, float)):
            tolerances.add(float(cell["solver"]["tol"]))
        if about.get("confusion"):
            facts.confusion[key] = about["confusion"]
        for point in about.get("learning", ()):
            fit = {name: point[name] for name in ("split", "share", "n_train", "relative_gap")} | {"cell": key, "dataset": dataset}
            learned += [fit | {"metric": metric, "value": value} for metric, value in point["values"].items()]
    learning = pd.DataFrame(learned, columns=list(LEARNING_COLUMNS)) if learned else None
    return replace(facts, tolerances=tuple(sorted(tolerances)), learning=learning)
