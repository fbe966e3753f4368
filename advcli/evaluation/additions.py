"""Additions to a finished cell: more splits, more metrics, nothing fitted again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .. import metrics
from ..core import plugins
from ..core.errors import ConfigError, ResultsError
from ..core.notes import noted
from ..results.folder import ResultsFolder
from ..results.tables import GROWING, NUMBERS_VERSION, canonical_json, lasting
from .cell import Cell
from .inputs import GROUPS, SPLITS, with_paths
from .selection import PROBABILITIES, SCORES


def asked_of(protocol: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Return the number of splits and the further metrics of a cell's protocol as plain data."""
    return int(protocol["n_splits"]), list(protocol["metrics"])


def union(asked: tuple[int, list[str]], stored: tuple[int, list[str]]) -> tuple[int, list[str]]:
    """Return the number of splits and the metrics of a cell that has both the requested and the stored ones.

    Where every requested metric is stored, the order stays; else the requested ones come first, as in a cell that had them from the start.
    """
    more = [] if set(asked[1]) <= set(stored[1]) else asked[1]
    return max(asked[0], stored[0]), list(dict.fromkeys([*more, *stored[1]]))


def beyond(cell: Cell, stored: tuple[int, list[str]]) -> list[str]:
    """Return in words what a stored cell has more than the command asks for."""
    n_splits = cell.protocol.n_splits
    others = [name for name in stored[1] if name not in {*cell.protocol.metrics, cell.protocol.metric}]
    remarks = [f"{stored[0]} splits are kept and all of them count, {n_splits} were asked for"] if stored[0] > n_splits else []
    remarks += [f"metrics that were not asked for are kept: {', '.join(others)}"] if others else []
    return [noted("ADV119", remark) for remark in remarks]


def content_of(dataset: Mapping[str, Any], splits: str) -> str:
    """Return what all cells of a folder take from one content: a data set by its name, or its authors' own file of it."""
    return str(dataset["name"]) + (" by its authors" if splits == "author" else "")


def other_content(what: str, folder: ResultsFolder, made: Iterable[tuple[str, str]], remedy: str) -> str:
    """Return in one line that ``what`` has changed since cells, each a data set and a method, were made from it."""
    cells = [", ".join(cell) for cell in made]
    listed = "; ".join(cells[:2]) + (f" and {len(cells) - 2} more" if len(cells) > 2 else "")
    return (
        f"{what} since these cells of {folder.path} were made: {listed}; one table cannot hold old and new rows: "
        f"advcli drop results={folder.path} {remedy} takes the old ones out, another name= keeps them"
    )


def _configuration(cell: Mapping[str, Any], files: Mapping[str, Mapping[str, str]]) -> str:
    """Return what determines a cell but its number of splits and its metrics; ``files`` are its files as `Cell.files` has them."""

    def content(key: str, text: str) -> str:
        return "" if key.startswith("dataset.") else files.get(key, {}).get("sha256", text)

    groups = {group: with_paths(group, cell.get(group), content) for group in ("dataset", *GROUPS)}
    if SPLITS in files:
        groups["protocol"] = {**cell["protocol"], "splits": files[SPLITS]["sha256"]}
    return canonical_json(lasting({**cell, **groups}))


def distinct(cells: Iterable[Cell]) -> dict[str, Cell]:
    """Return cells by all but their splits and metrics; `ConfigError` where one is asked for twice, with others of these."""
    unlike: dict[str, Cell] = {}
    for cell in cells:
        other = unlike.setdefault(_configuration(cell.as_mapping(), cell.files), cell)
        for key in GROWING:
            if getattr(other.protocol, key) != getattr(cell.protocol, key):
                named = f"{cell.dataset['name']}, {cell.method}"
                raise ConfigError(f"protocol.{key} varies for {named}; give one value, a later run may ask a finished cell for more")
    return unlike


class Review:
    """Refuses, before any work, new cells that do not fit the finished cells of a folder.

    Splits and metrics of such a cell cannot be added, or its data, files or code have the same names as before and other contents.
    ``cells`` come from `distinct`, and ``contents`` are the checksums of the data sets that were read, by `content_of`.
    """

    def __init__(self, folder: ResultsFolder, cells: Mapping[str, Cell], contents: Mapping[str, str] | None = None) -> None:
        self._folder, self._cells, self._contents = folder, cells, contents or {}
        self._asked_data = {content_of(cell.dataset, cell.protocol.splits) for cell in cells.values()}
        self._files = {(key, file["path"]): file["sha256"] for cell in cells.values() for key, file in cell.files.items()}
        self._code = plugins.fingerprint()
        self._changed: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
        self._unable: list[str] = []

    def look(self, content: Mapping[str, Any]) -> None:
        """Take the content of a finished cell's file; one with older numbers is computed anew."""
        about = content["about"]
        if not about.get("cell") or content["numbers"] != NUMBERS_VERSION:
            return
        for what, remedy in self._other_inputs(about):
            self._changed.setdefault((what, remedy), {})[about["dataset"], about["method"]] = None
        name = _configuration(about["cell"], about.get("files", {}))
        if name in self._cells:
            (_, asked), (_, stored) = asked_of(vars(self._cells[name].protocol)), asked_of(about["cell"]["protocol"])
            self._unable += self._problem(content, [metric for metric in asked if metric not in stored])

    def _other_inputs(self, about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield what a finished cell was made from that is another now, and the words that drop it."""
        cell = about["cell"]
        of_method = f"dataset={about['dataset']} 'method={about['method']}'"
        content = content_of(cell["dataset"], cell["protocol"]["splits"])
        if about.get("dataset_sha256") and content in self._asked_data:
            self._folder.stands_on[content] = about["dataset_sha256"]
            if self._contents.get(content, about["dataset_sha256"]) != about["dataset_sha256"]:
                yield f"the data of {content} have changed", f"dataset={about['dataset']}"
        for key, file in about.get("files", {}).items():
            if self._files.get((key, file["path"]), file["sha256"]) != file["sha256"]:
                yield f"{key}={file['path']} has changed", of_method
        if about.get("plugins", self._code) != self._code and _configuration(cell, about.get("files", {})) in self._cells:
            yield "Python files of --config-dir have changed", of_method

    def finish(self) -> None:
        """Raise `ResultsError` for cells that do not fit the stored cells."""
        for (what, remedy), made in self._changed.items():
            raise ResultsError(other_content(what, self._folder, made, remedy))
        if self._unable:
            others = f"; the same holds for {len(self._unable) - 1} more of the sweep" if len(self._unable) > 1 else ""
            raise ResultsError(self._unable[0] + others)

    def _problem(self, content: Mapping[str, Any], new: list[str]) -> list[str]:
        """Return why a finished cell cannot get new metrics; nothing if it can."""
        about, folder = content["about"], self._folder
        named = f"{about['dataset']}, {about['method']}"
        drop = ["advcli", "drop", f"results={folder.path}", f"dataset={about['dataset']}", f"method={about['method']}"]
        remedy = f"{shlex.join(drop)} takes it out, and the same command computes it again"
        if new and not (folder.predictions_path / f"{content['key']}.npz").is_file():
            return [f"{', '.join(new)} cannot be added to {named}: its predictions are missing; {remedy}"]
        reading = [name for name in new if PROBABILITIES in metrics.meaning(name).needs]
        if any(SCORES in metrics.meaning(name).needs for name in new):
            return [f"{', '.join(new)} cannot be added to {named}: no file keeps the scores of the classes; {remedy}"]
        if reading and not all(entry["probabilities"] for entry in about["predictions"].values()):
            missing = "no distributions were kept, as record.distributions=true does"
            return [f"{', '.join(reading)} cannot be added to {named}: {missing}; {remedy}"]
        return []
