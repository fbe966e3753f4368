"""The results folders that a report is made of: one, or several for one table."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.errors import ResultsError
from ..core.files import read_json
from ..metrics import Missed, declare, missed_classes
from ..results.folder import ResultsFolder
from ..results.identity import Owner
from ..results.provenance import Makers
from ..results.tables import PARTS, TIMING_COLUMNS, canonical_json
from .formats.document import counted
from .summary import DRAWN, RELATION, RESULTS, TOLD, told_apart


class Sources:
    """One results folder, or several whose rows make one table; with ``merge`` the tables of the folders are made anew from their
    cells.

    ``runs`` are the rows of all folders, each cell once, with two columns more: `DRAWN`, equal for cells of one data set whose splits are
    the same, and `TOLD`, further options that tell cells of one method apart; of several folders they have `RESULTS` as well, the folder.
    A folder without rows is refused.
    """

    def __init__(self, folders: Sequence[ResultsFolder], merge: bool = True) -> None:
        self.folders = dict(zip(_labels([folder.path for folder in folders]), folders, strict=True))
        self.name = " and ".join(self.folders)
        self.remarks: list[str] = []  # in what the folders differ, and which cells are in two of them
        self.selected: dict[str, str] = {}  # of a cell with a search: its metric
        self.missed: dict[str, list[Missed]] = {}  # of a cell with counts: classes of which it finds no row over all its splits
        self.units: dict[str, str] = {}  # of a data set with costs: their currency
        self._merged = merge
        for folder in folders if merge else ():
            folder.merge()
        parts = {label: folder.runs() if merge else folder.of_cells() for label, folder in self.folders.items()}
        makers = Makers()
        for folder in folders:
            makers.update(folder.makers)
        self.remarks += makers.mixtures()
        for label, rows in parts.items():
            declare(rows)
            if not len(rows):
                raise ResultsError(f"{self.folders[label].path} holds no rows yet; run or resume its sweep first")
        self._differences()
        metrics = {label: dict.fromkeys(name for name in rows["metric"] if name) for label, rows in parts.items()}
        if all(metrics.values()) and not set.intersection(*map(set, metrics.values())):
            listed = "; ".join(f"{label} has {', '.join(names)}" for label, names in metrics.items())
            self.remarks.append(f"no metric is in all of these folders: {listed}")
        for (one, first), (other, second) in itertools.combinations(parts.items(), 2):
            parts[other] = self._without_doubles(one, first, other, second)
        self._places = {cell: self.folders[label] for label, rows in parts.items() for cell in rows["cell"].tolist()}
        if len(folders) > 1:
            parts = {label: rows.assign(**{RESULTS: label}) for label, rows in parts.items()}
        self.runs = self._described(pd.concat([*parts.values()], ignore_index=True))

    def _described(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return rows with the columns `DRAWN` and `TOLD`, and keep the other facts about their cells."""
        cells = runs.sort_values("split", kind="stable").drop_duplicates("cell")
        drawn, same = {}, set()
        for row in cells.to_dict("records"):
            key = str(row["cell"])
            stored = self._stored(key)
            drawn[key] = _drawn(stored.get("about", {}), row)
            if stored.get("about", {}).get("cell", {}).get("protocol", {}).get("splits") == "official":
                same.add(key)
            if unit := stored.get("about", {}).get("cell", {}).get("dataset", {}).get("currency"):
                self.units[str(row["dataset"])] = str(unit)
            if searched := stored.get("search_rows"):
                self.selected[key] = str(searched[0]["metric"])
            if confusion := stored.get("about", {}).get("confusion"):
                self.missed[key] = missed_classes(confusion["counts"], confusion["labels"])
        further = told_apart(cells, self.about)
        keys = runs["cell"].tolist()
        if same:
            runs[RELATION] = [("same" if key in same else told) for key, told in zip(keys, runs.get(PARTS, [""] * len(keys)), strict=True)]
        return runs.assign(**{DRAWN: [drawn[key] for key in keys], TOLD: [further.get(key, "") for key in keys]})

    @cached_property
    def search(self) -> pd.DataFrame | None:
        """Rows of the searches of all folders, each cell once; None where no folder has a table of searches."""
        tables = []
        for folder in self.folders.values():
            with contextlib.suppress(ResultsError):  # a folder of tables alone may have none
                rows = folder.search() if self._merged else folder.of_cells("search")
                cells = [cell for cell, place in self._places.items() if place is folder]
                tables.append(rows if len(self.folders) == 1 else rows[rows["cell"].isin(cells)])
        return pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0] if tables else None

    def _stored(self, cell: str) -> dict[str, Any]:
        folder = self._places.get(cell)
        return (folder.read_cell(cell) if folder is not None else None) or {}

    def about(self, cell: str) -> dict[str, Any]:
        """Return what the folder of a cell says about it; nothing where it has rows alone."""
        about: dict[str, Any] = self._stored(cell).get("about", {})
        return about

    @property
    def provenance(self) -> dict[str, dict[str, Any]]:
        """The contents of each folder's provenance.json; empty without one."""
        files = {label: read_json(folder.path / "provenance.json") for label, folder in self.folders.items()}
        return {label: content if isinstance(content, dict) else {} for label, content in files.items()}

    def _differences(self) -> None:
        """Add remarks on how the configurations of the folders differ from the first one."""
        (first, folder), *others = self.folders.items()
        owner = Owner(folder.path)
        for label, other in others:
            identity = Owner(other.path).identity
            if any("imported" in (known or {}) for known in (owner.identity, identity)):
                continue  # a checksum, which says nothing to people
            if owner.identity is not None and identity is not None and (unlike := owner.unlike(identity)):
                self.remarks.append(f"{label} was made by another configuration than {first}: {unlike}")

    def _without_doubles(self, one: str, first: pd.DataFrame, other: str, second: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a second folder without the cells that the first one has, and say which these are."""
        double = sorted(set(first["cell"]) & set(second["cell"]))
        if double:
            same = [name for name in first.columns if name in second and name not in TIMING_COLUMNS]
            a, b = (frame[frame["cell"].isin(double)].sort_values(["cell", "split", "metric"])[same] for frame in (first, second))
            equal = len(a) == len(b) and all([*map(str, a[name])] == [*map(str, b[name])] for name in same)
            rows = f"the rows of {one} are shown" if equal else f"their rows differ, and those of {one} are shown"
            self.remarks.append(f"{counted(len(double), 'cell stands', 'cells stand')} in both {one} and {other}; {rows}")
            second = second[~second["cell"].isin(double)]
        head = ["dataset", "method", "options", "seed"]
        done = set(first.loc[first["status"] != "failed", head].itertuples(index=False, name=None))
        late = [row[0] == "failed" and row[1:] in done for row in second[["status", *head]].itertuples(index=False, name=None)]
        return second[~np.array(late, dtype=bool)] if any(late) else second


def _labels(paths: Sequence[Path]) -> list[str]:
    """Return the shortest ends of paths that tell them apart."""
    for length in itertools.count(1):
        labels = ["/".join(path.parts[-length:]) for path in paths]
        if len(set(labels)) == len(paths) or length > max(len(path.parts) for path in paths):
            return labels
    raise AssertionError


def _drawn(about: Mapping[str, Any], row: Mapping[Any, Any]) -> str:
    """Return a text that cells of one data set share if their splits are the same; the first ones are, whatever their number.

    The row is one of the cell's first split. The number of training rows does not count: some methods learn from labelled rows only.
    """
    if "drawn" in about:  # of imported rows, which say no more of their splits than names
        return str(about["drawn"])[:16]
    cell = about.get("cell", {})
    kind = cell.get("protocol", {}).get("splits")
    drawn_by_seed = kind in ("random", "stratified", "grouped", None)
    if rule := about.get("splits"):  # what the splits depend on beside the rows, and with it the file that they are from
        kind = [kind if drawn_by_seed else "", rule["drawn"]]
    seed, sizes = (row["seed"], cell.get("dataset", {}).get("sizes")) if drawn_by_seed else (None, None)
    content = canonical_json([row["dataset"], about.get("dataset_sha256"), kind, str(seed), sizes, str(row["n_test"])])
    return hashlib.sha256(content.encode()).hexdigest()[:16]
