"""The tables runs.csv and search.csv as the cell files of a folder make them: which cells, in which order, with which columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .cell_file import FAILED, DamagedError, read_cell_file, read_current
from .identity import Owner
from .provenance import Makers
from .tables import RUN_COLUMNS, SCHEMA_VERSION, SEARCH_COLUMNS, all_columns, canonical_json, format_value, lasting


class CellTables:
    """The tables of a results folder, read from its cell files; nothing is written. Cells of several configurations are a `ResultsError`.

    ``paths`` are the cell files whose rows the tables have, in the order of the rows, which depends on the cells alone: data set, method,
    seed and name of the file. Damaged files and files of another schema are left out; ``remarks`` has a line each as its keys. So are
    failures of cells that succeeded since, and finished cells that failed to get more splits (the failure has their rows). So are cells
    that the folder has again from a newer `NUMBERS_VERSION`. ``headers`` are the columns of ``runs`` and ``search``, ``makers`` the makers
    of the finished cells. Cells of `advcli import` have no fits: with them ``imported`` is true, and ``runs`` has only the columns with a
    value.
    """

    def __init__(self, folder: Path, files: Sequence[Path]) -> None:
        self.remarks: dict[str, None] = {}
        self.makers = Makers()
        self._owner = Owner(folder)
        self._order: dict[Path, tuple[str, ...]] = {}
        self._columns: dict[str, set[str]] = {"runs": set(), "search": set()}
        self._valued: set[str] = set()  # columns of imported rows with a value
        self._finished: dict[str, tuple[Path, int]] = {}  # by request: the file and its number of splits
        self._numbers: dict[Path, int] = {}
        self._overtaken: set[Path] = set()
        abouts: dict[Path, Mapping[str, Any]] = {}
        # Finished cells first: a failure is left out when the same request succeeded meanwhile in another process.
        for path in sorted(files, key=lambda file: (file.stem.endswith(FAILED), file.name)):
            content = self._read(path)
            if content is not None and self._takes(path, content):
                self._add(path, content)
                if path in self._numbers:
                    abouts[path] = {name: content["about"].get(name) for name in ("made_by", "dataset", "dataset_sha256")}
        omitted = self._overtaken | self._superseded()
        for path, about in abouts.items():
            if path not in omitted:
                self.makers.add(path.stem, about)
        self.paths = [path for path in sorted(self._order, key=self._order.__getitem__) if path not in omitted]
        bases = {"runs": RUN_COLUMNS, "search": SEARCH_COLUMNS}
        self.headers = {table: all_columns(base, self._columns[table]) for table, base in bases.items()}
        self.imported = bool(self._valued)
        if self.imported:
            self.headers["runs"] = [column for column in self.headers["runs"] if column in self._valued]

    def _read(self, path: Path) -> dict[str, Any] | None:
        """Return the content of a cell's file; None, with a remark, where it cannot be used."""
        try:
            content = read_cell_file(path)
        except FileNotFoundError:  # a failed cell that succeeded in this very moment
            return None
        except DamagedError as error:
            self.remarks[f"{path} is damaged ({error}) and left out; the next run computes its cell again"] = None
            return None
        if content["schema"] != SCHEMA_VERSION:
            self.remarks[f"{path} is of another version of advcli and left out"] = None
            return None
        return content

    def _takes(self, path: Path, content: Mapping[str, Any]) -> bool:
        """Return whether the tables have a cell's rows; finished cells come first."""
        self._owner.add(path, content)
        request = content["request"]
        if not path.stem.endswith(FAILED):
            self._finished[request] = path, _n_splits(content)
            self._numbers[path] = content["numbers"]
        elif request in self._finished:
            finished, n_splits = self._finished[request]
            if _n_splits(content) <= n_splits:
                return False
            self._overtaken.add(finished)
        return True

    def _add(self, path: Path, content: Mapping[str, Any]) -> None:
        runs = content["runs"]
        head = dict(zip(runs["columns"], runs["values"][0], strict=True)) if runs["values"] else {}
        dataset, method, seed = (str(head.get(column, "")) for column in ("dataset", "method", "seed"))
        self._order[path] = dataset, method, seed.zfill(20), path.name
        for table, present in self._columns.items():
            present.update(content[table]["columns"])
        if "imported" in content["about"]:
            columns = zip(runs["columns"], zip(*runs["values"], strict=True), strict=True)
            self._valued.update(column for column, values in columns if any(value not in (None, "") for value in values))

    def _superseded(self) -> set[Path]:
        """Return the finished cells whose configuration is also in another file with newer numbers."""
        if len(set(self._numbers.values())) < 2:
            return set()
        newest: dict[str, int] = {}
        configuration: dict[Path, str] = {}
        for path, version in self._numbers.items():
            if cell := (read_current(path) or {}).get("about", {}).get("cell"):
                configuration[path] = canonical_json(lasting(cell))
                newest[configuration[path]] = max(version, newest.get(configuration[path], version))
        return {path for path, text in configuration.items() if self._numbers[path] < newest[text]}

    def cells(self) -> Iterator[dict[str, Any]]:
        """Yield the content of each cell's file in the order of the rows; a file that has gone meanwhile is left out."""
        for path in self.paths:
            content = read_current(path)
            if content is not None:
                yield content

    def lines(self, cell: Mapping[str, Any], table: str) -> Iterator[list[str]]:
        """Yield a cell's rows of one table, ``runs`` or ``search``, as texts in the order of its header."""
        position = {column: place for place, column in enumerate(cell[table]["columns"])}
        places = [position.get(column) for column in self.headers[table]]
        for values in cell[table]["values"]:
            yield ["" if place is None else format_value(values[place]) for place in places]


def _n_splits(content: Mapping[str, Any]) -> int:
    """Return the number of splits that a cell's file has rows of."""
    column = content["runs"]["columns"].index("split")
    return len({values[column] for values in content["runs"]["values"]} - {None})
