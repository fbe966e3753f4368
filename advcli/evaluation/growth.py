"""The growth of a finished cell: more splits, more metrics, nothing fitted again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from .. import metrics
from ..errors import ConfigError, ResultsError
from ..protocol import Protocol
from ..records import ResultsFolder
from ..rows import NUMBERS_VERSION, canonical_json, lasting
from .cell import Cell
from .recipe import PROBABILITIES


def asked_of(cell: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Return the number of splits and the further metrics of a cell as plain data."""
    protocol = cell["protocol"]
    return int(protocol.get("n_splits", Protocol.n_splits)), list(protocol.get("metrics") or ())


def union(asked: tuple[int, list[str]], stored: tuple[int, list[str]]) -> tuple[int, list[str]]:
    """Return the number of splits and the metrics of a cell that has what is asked for and what is there.

    Where every metric is there their order stays; else those asked for stand first, as in a cell that had them from the start.
    """
    more = [] if set(asked[1]) <= set(stored[1]) else asked[1]
    return max(asked[0], stored[0]), list(dict.fromkeys([*more, *stored[1]]))


def beyond(cell: Cell, stored: tuple[int, list[str]]) -> list[str]:
    """Return what a stored cell has beyond what is asked for, in words."""
    n_splits, asked = asked_of(cell.as_mapping())
    others = [name for name in stored[1] if name not in {*asked, cell.protocol.get("metric")}]
    said = [f"{stored[0]} splits are kept and all of them count, {n_splits} were asked for"] if stored[0] > n_splits else []
    return said + ([f"metrics that were not asked for are kept: {', '.join(others)}"] if others else [])


def settled(cells: Iterable[Cell]) -> dict[str, Cell]:
    """Return cells by what determines them but the number of splits and the metrics.

    Raises
    ------
    ConfigError
        One of them is asked for twice, with other splits or metrics.
    """
    found: dict[str, Cell] = {}
    for cell in cells:
        other = found.setdefault(canonical_json(lasting(cell.as_mapping())), cell)
        for key, one, two in zip(("n_splits", "metrics"), *map(asked_of, (other.as_mapping(), cell.as_mapping())), strict=True):
            if one != two:
                named = f"{cell.dataset['name']}, {cell.method}"
                raise ConfigError(f"protocol.{key} varies for {named}; give one value, a later run may ask a finished cell for more")
    return found


class Review:
    """What refuses splits and metrics that cannot be added to the finished cells of a folder, before any work.

    Parameters
    ----------
    folder : ResultsFolder
    cells : mapping
        The cells that are asked for, by `settled`.
    """

    def __init__(self, folder: ResultsFolder, cells: Mapping[str, Cell]) -> None:
        self._folder, self._cells = folder, cells
        self._able: set[str] = set()
        self._unable: dict[str, str] = {}

    def look(self, content: Mapping[str, Any]) -> None:
        """Take the content of a finished cell's file; one with older numbers is computed anew."""
        about = content["about"]
        if not about.get("cell") or content.get("numbers", 0) != NUMBERS_VERSION:
            return
        name = canonical_json(lasting(about["cell"]))
        if name in self._cells:
            problem = self._problem(content, asked_of(self._cells[name].as_mapping()), asked_of(about["cell"]))
            if problem:
                self._unable.setdefault(name, problem)
            else:
                self._able.add(name)

    def finish(self) -> None:
        """Refuse what cannot be added.

        Raises
        ------
        ResultsError
            A cell has no predictions, or not those that a metric reads.
        """
        # of an older version's file and one with predictions the second counts
        problems = [problem for name, problem in self._unable.items() if name not in self._able]
        if problems:
            others = f"; the same holds for {len(problems) - 1} more of the sweep" if len(problems) > 1 else ""
            raise ResultsError(problems[0] + others)

    def _problem(self, content: Mapping[str, Any], asked: tuple[int, list[str]], stored: tuple[int, list[str]]) -> str:
        about, folder = content["about"], self._folder
        named = f"{about['dataset']}, {about['method']}"
        drop = ["advcli", "drop", f"results={folder.path}", f"dataset={about['dataset']}", f"method={about['method']}"]
        remedy = f"{shlex.join(drop)} takes it out, and the same command computes it again"
        if "predictions" not in about:
            if asked == stored:
                return ""
            return (
                f"nothing can be added to {named}: a version of advcli that kept no predictions made it with protocol.n_splits={stored[0]} "
                f"protocol.metrics=[{','.join(stored[1])}]; {remedy}"
            )
        new = [name for name in asked[1] if name not in stored[1]]
        if new and not (folder.predictions_path / f"{content['key']}.npz").is_file():
            return f"{', '.join(new)} cannot be added to {named}: its predictions are missing; {remedy}"
        reading = [name for name in new if PROBABILITIES in metrics.meaning(name).needs]
        if reading and not all(entry["probabilities"] for entry in about["predictions"].values()):
            kept = "no distributions were kept, as record.distributions=true does"
            return f"{', '.join(reading)} cannot be added to {named}: {kept}; {remedy}"
        return ""
