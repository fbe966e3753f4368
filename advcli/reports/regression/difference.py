"""Two results folders side by side: which settings differ, then which numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from ...core.errors import ResultsError
from ...results.folder import ResultsFolder
from ...results.tables import plain
from ..formats.document import counted
from .baseline import CheckedEntry, folder_facts, read_entries

SETTING_COLUMNS = ("dataset", "method", "setting", "first", "second")
NUMBER_COLUMNS = ("dataset", "method", "metric", "first", "second", "difference", "relative", "n_first", "n_second")
_ABSENT = "null"
_EVERY = ""


@dataclass(frozen=True, eq=False)
class FolderDifference:
    """What `folder_difference` found of two folders, here by their ``names``.

    Attributes
    ----------
    settings : DataFrame
        Settings that differ, `SETTING_COLUMNS`: an empty ``dataset`` and ``method`` means all cells that both folders have, an empty
        ``dataset`` all cells of the method.
    numbers : DataFrame
        Every number that both have, `NUMBER_COLUMNS`: means over the splits, second - first, that as a share of the first, and the numbers
        of splits.
    only : DataFrame
        Cells that one folder has alone: ``dataset``, ``method``, ``folder``.
    """

    names: tuple[str, str]
    settings: pd.DataFrame
    numbers: pd.DataFrame
    only: pd.DataFrame

    def text(self) -> str:
        """Return the differences for people: settings, numbers that differ, and cells of one folder alone."""
        moved = self.numbers[self.numbers["difference"] != 0]
        lines = [f"first: {self.names[0]}", f"second: {self.names[1]}", ""]
        lines += (
            _settings_lines(self.settings) if len(self.settings) else ["no setting differs" if len(self.numbers) else "no cell is in both"]
        )
        if len(moved):
            lines += ["", *_table(moved)]
        count = counted(len(self.numbers), "number")
        lines += ["", f"{count} in both: {len(self.numbers) - len(moved)} the same, {len(moved)} differ"]
        for name, cells in self.only.groupby("folder", sort=False):
            listed = "; ".join(f"{row['dataset']}, {row['method']}" for row in cells.to_dict("records"))
            lines.append(f"only in {name}: {listed}")
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Return the differences as one table: ``kind`` is setting, number or only, and what a kind does not have stays empty."""
        parts = [("setting", self.settings), ("number", self.numbers), ("only", self.only)]
        columns = ["kind", *dict.fromkeys([*SETTING_COLUMNS[:3], *NUMBER_COLUMNS[2:], "folder"])]
        rows = [{"kind": kind} | row for kind, frame in parts for row in frame.to_dict("records")]
        return str(pd.DataFrame(rows, columns=columns, dtype=object).to_csv(index=False, lineterminator="\n"))

    def json(self) -> str:
        """Return the differences as JSON: ``first``, ``second``, ``settings``, ``numbers``, ``only``; null where there is no number."""
        lists = {name: _records(getattr(self, name)) for name in ("settings", "numbers", "only")}
        return json.dumps({"first": self.names[0], "second": self.names[1], **lists}, indent=1) + "\n"


def _records(frame: pd.DataFrame) -> list[dict[str, object]]:
    rows = [{key: plain(value) for key, value in row.items()} for row in frame.to_dict("records")]
    return [{str(key): None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()} for row in rows]


def folder_difference(first: ResultsFolder, second: ResultsFolder, names: tuple[str, str]) -> FolderDifference:
    """Compare two results folders, which are read only; cells are matched by data set and method, as tables name them.

    Raises `ResultsError` for a folder without rows.
    """
    entries = [_entries(first), _entries(second)]
    cells = [{(entry.dataset, entry.method): entry for entry in some.values()} for some in entries]
    both = sorted(cells[0].keys() & cells[1].keys())
    only = [
        {"dataset": dataset, "method": method, "folder": name}
        for name, mine, others in zip(names, cells, reversed(cells), strict=True)
        for dataset, method in sorted(mine.keys() - others.keys())
    ]
    numbers = [_number(entries[0][name], entries[1][name]) for name in sorted(entries[0].keys() & entries[1].keys())]
    return FolderDifference(
        names,
        pd.DataFrame(_settings({cell: _changes(cells[0][cell], cells[1][cell]) for cell in both}), columns=list(SETTING_COLUMNS)),
        pd.DataFrame(numbers, columns=list(NUMBER_COLUMNS)),
        pd.DataFrame(only, columns=["dataset", "method", "folder"]),
    )


def _entries(folder: ResultsFolder) -> dict[tuple[str, str, str], CheckedEntry]:
    runs, facts = folder_facts(folder)
    if not len(runs):
        raise ResultsError(f"{folder.path} holds no rows yet; run or resume its sweep first")
    return {entry.name: entry for entry in read_entries(runs, **facts)}


def _number(first: CheckedEntry, second: CheckedEntry) -> dict[str, object]:
    difference = second.mean - first.mean
    if math.isnan(first.mean) and math.isnan(second.mean):  # neither has a value
        difference = 0.0
    relative = difference / abs(first.mean) if first.mean else (0.0 if difference == 0 else math.nan)
    values = (*first.name, first.mean, second.mean, difference, relative, first.n, second.n)
    return dict(zip(NUMBER_COLUMNS, values, strict=True))


def _facts(entry: CheckedEntry) -> dict[str, str]:
    """Return the configuration of an entry, its number of splits and the versions that made it, by name."""
    texts = [part.partition("=")[::2] for text in (entry.config, entry.made_by) for part in text.split("; ") if part]
    return {"protocol.n_splits": str(entry.n + entry.failed)} | dict(texts)


def _changes(first: CheckedEntry, second: CheckedEntry) -> dict[str, tuple[str, str]]:
    """Return the settings of a cell that differ, with both values."""
    old, new = _facts(first), _facts(second)
    pairs = {key: (old.get(key, _ABSENT), new.get(key, _ABSENT)) for key in dict.fromkeys([*old, *new])}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _settings(changes: Mapping[tuple[str, str], Mapping[str, tuple[str, str]]]) -> list[dict[str, str]]:
    """Return one line for what all cells have, then for what all cells of a method have, then for what single cells have."""
    lines: list[dict[str, str]] = []
    shared = _in_all(changes.values())
    lines += [_line(_EVERY, _EVERY, key, pair) for key, pair in shared.items()]
    for method in sorted({method for _, method in changes}):
        mine = {cell: found for cell, found in changes.items() if cell[1] == method}
        of_method = {key: pair for key, pair in _in_all(mine.values()).items() if key not in shared}
        lines += [_line(_EVERY, method, key, pair) for key, pair in of_method.items()]
        known = {*shared, *of_method}
        lines += [_line(*cell, key, pair) for cell, found in mine.items() for key, pair in found.items() if key not in known]
    return lines


def _in_all(changes: Iterable[Mapping[str, tuple[str, str]]]) -> dict[str, tuple[str, str]]:
    """Return the changes that are the same in all of several."""
    first, *others = [*changes] or [{}]
    return {key: pair for key, pair in first.items() if all(other.get(key) == pair for other in others)}


def _line(dataset: str, method: str, setting: str, pair: tuple[str, str]) -> dict[str, str]:
    return dict(zip(SETTING_COLUMNS, (dataset, method, setting, *pair), strict=True))


def _settings_lines(settings: pd.DataFrame) -> list[str]:
    lines = []
    for names, part in settings.groupby(["dataset", "method"], sort=False):
        where = ", ".join(str(name) for name in names if name) or "all cells"
        lines.append(f"settings of {where}:")
        lines += [f"  {row['setting']}: {row['first']} -> {row['second']}" for row in part.to_dict("records")]
    return lines


def _table(numbers: pd.DataFrame) -> list[str]:
    from tabulate import tabulate

    heads = ["dataset", "method", "metric", "first", "second", "difference", "relative"]
    rows = [
        [
            *(str(row[name]) for name in heads[:3]),
            *(f"{row[name]:.6g}" for name in ("first", "second")),
            f"{row['difference']:+.3g}",
            "-" if math.isnan(row["relative"]) else f"{100 * row['relative']:+.3g} %",
        ]
        for row in numbers.to_dict("records")
    ]
    align = ("left",) * 3 + ("right",) * 4
    return tabulate(rows, heads, tablefmt="simple", disable_numparse=True, colalign=align).splitlines()
