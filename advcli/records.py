"""Rows and the folder that keeps them: one file per finished cell, merged tables, identity, provenance.

A results folder holds

- ``cells/KEY.json``: one finished cell (a data set x a method), written whole or not at all; these files are the truth,
- ``cells/REQUEST.failed.json`` and ``failures/REQUEST.txt``: a cell that failed, and its traceback; tried again by the next run,
- ``runs.csv`` and ``search.csv``: all cells in one table each, rebuilt from the cell files in an order that does not depend on
  who finished first,
- ``proofs/KEY.npz``: where proofs are kept, the parameters and dual points of the cell's fits (see `advcli.proofs`),
- ``identity.json``: the configuration that the folder belongs to,
- ``provenance.json``: what ran, where, on which data and for how long,
- ``.session.HOST.PROCESS``: while a sweep runs, what its processes tell each other (see `advcli.progress`).

Every file is written to a temporary name, flushed to the disk and renamed, so that a process killed at any moment loses the
cell in flight and nothing else.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import provenance
from .errors import ResultsError
from .files import atomic_file, locked, own_name, reason, remove_of_the_dead, write_text
from .rows import (
    NEEDED,
    NUMBERS_VERSION,
    RUN_COLUMNS,
    SCHEMA_VERSION,
    SEARCH_COLUMNS,
    all_columns,
    canonical_json,
    difference,
    format_value,
    is_table,
    pack,
    plain,
    read_table,
    short_json,
    unpack,
    with_types,
)

if TYPE_CHECKING:
    import pandas as pd


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping) and value:
        flat: dict[str, Any] = {}
        for key, item in value.items():
            flat |= _flatten(item, f"{prefix}.{key}" if prefix else str(key))
        return flat
    return {prefix: value}


_ABSENT = object()


def _short(value: Any) -> str:
    return "(absent)" if value is _ABSENT else short_json(value)


def _without_descriptions(value: Any) -> Any:
    """Return nested options without the texts that explain them, which determine no row."""
    if isinstance(value, Mapping):
        return {key: _without_descriptions(item) for key, item in value.items() if key != "description"}
    return value


_SESSION = ".session"


class ResultsFolder:
    """One results folder: the only door through which files of results are written and read.

    Parameters
    ----------
    path : path-like
        The folder; `prepare` creates it.
    keep_proofs : bool
        Whether cells that are computed keep the proofs of their fits.

    Notes
    -----
    Objects hold no open files and can be pickled; several processes may work in one folder at once.
    """

    merge_seconds = 10.0
    """Shortest time in seconds between two merges while a sweep runs."""
    merge_seconds_per_cell = 0.05
    """Further waiting time per finished cell: a merge takes time in proportion to the cells; its share must stay bounded."""

    def __init__(self, path: str | os.PathLike[str], keep_proofs: bool = False) -> None:
        self.path = Path(path).absolute()
        self.keep_proofs = keep_proofs
        self._next_merge = 0.0

    def __repr__(self) -> str:
        return f"ResultsFolder({str(self.path)!r})"

    @property
    def cells_path(self) -> Path:
        """Folder of the cell files."""
        return self.path / "cells"

    @property
    def proofs_path(self) -> Path:
        """Folder of the proofs."""
        return self.path / "proofs"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(self.cells_path / ".lock"))
            except OSError as error:
                raise ResultsError(f"cannot write into {self.path}: {reason(error)}; choose another results_dir or name") from error
            # Where a network file system has no locks: of two merges at one moment the older may stay until the next.
            yield

    def prepare(self, identity: Mapping[str, Any]) -> None:
        """Create the folder, or check that it belongs to the same configuration.

        Parameters
        ----------
        identity : mapping
            What every cell of the folder has in common; nested mappings are compared key by key.

        Raises
        ------
        ResultsError
            If the folder cannot be written, or holds cells of another configuration (the differing keys are named).
        """
        try:
            self.cells_path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultsError(f"cannot create {self.path}: {reason(error)}; choose another results_dir or name") from error
        with self._locked():
            self.remove_leftovers()
            wanted = json.loads(json.dumps(plain(identity)))
            file = self.path / "identity.json"
            found = self._read_json(file) if file.exists() else None
            # A folder without cells belongs to nobody yet: a corrected configuration may take it over.
            if found is not None and found != wanted and self._cell_files():
                old, new = _flatten(found), _flatten(wanted)
                keys = [key for key in sorted({*old, *new}) if old.get(key, _ABSENT) != new.get(key, _ABSENT)]
                if keys:
                    changes = [f"{key}: {_short(old.get(key, _ABSENT))} -> {_short(new.get(key, _ABSENT))}" for key in keys]
                    shown = ", ".join(changes[:4]) + (f" and {len(keys) - 4} more" if len(keys) > 4 else "")
                    remedy = "choose another name= or remove the folder"
                    raise ResultsError(f"{self.path} was made by another config ({shown}); {remedy}")
            if found != wanted:
                write_text(file, json.dumps(wanted, indent=1, sort_keys=True) + "\n")
            elif not os.access(self.path, os.W_OK) or not os.access(self.cells_path, os.W_OK):
                raise ResultsError(f"cannot write into {self.path}: permission denied; choose another results_dir or name")

    def remove_leftovers(self) -> None:
        """Remove temporary files and sessions of processes of this machine that no longer live."""
        remove_of_the_dead((self.path, self.cells_path, self.proofs_path, self.path / "failures"), _SESSION)

    @contextlib.contextmanager
    def session(self) -> Iterator[Path]:
        """Open a folder for what the processes of one sweep tell each other; it is removed at the end.

        Raises
        ------
        ResultsError
            If it cannot be made.
        """
        path = self.path / own_name(_SESSION)
        try:
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
        except OSError as error:
            raise ResultsError(f"cannot write into {self.path}: {reason(error)}; choose another results_dir or name") from error
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    @staticmethod
    def _read_json(path: Path) -> Any:
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def _cell_files(self) -> list[Path]:
        try:
            return sorted(file for file in self.cells_path.iterdir() if file.suffix == ".json" and not file.name.startswith("."))
        except OSError:
            return []

    def _read_shard(self, path: Path) -> dict[str, Any] | None:
        shard = self._read_json(path)
        if isinstance(shard, dict) and shard.get("schema") == SCHEMA_VERSION and {"key", "runs", "search"} <= shard.keys():
            return shard if is_table(shard["runs"]) and is_table(shard["search"]) else None
        return None

    def has(self, key: str) -> bool:
        """Tell whether a cell is there, complete and without failure."""
        return self._read_shard(self.cells_path / f"{key}.json") is not None

    def read_cell(self, key: str) -> dict[str, Any] | None:
        """Return what `write_cell` stored for a finished cell: ``about``, ``rows``, ``search_rows``; None if it is not there."""
        shard = self._read_shard(self.cells_path / f"{key}.json")
        if shard is None:
            return None
        return {"about": shard["about"], "rows": unpack(shard["runs"]), "search_rows": unpack(shard["search"])}

    def write_cell(
        self,
        key: str,
        rows: Sequence[Mapping[str, Any]],
        search_rows: Sequence[Mapping[str, Any]] = (),
        *,
        about: Mapping[str, Any] | None = None,
        request: str | None = None,
        traceback: str | None = None,
    ) -> None:
        """Store one cell atomically.

        Parameters
        ----------
        key : str
            The cell's key.
        rows, search_rows : sequences of mappings
            Rows of runs.csv and search.csv (see `RUN_COLUMNS`, `SEARCH_COLUMNS`); what a row lacks stays empty.
        about : mapping, optional
            Further facts about the cell (its configuration, notes, hash of the data).
        request : str, optional
            Key of the configuration alone, which exists even if the data could not be read; default ``key``.
        traceback : str, optional
            Given for a failed cell only: the cell is stored as failed (`has` stays False, so the next run tries again) and the
            text goes to ``failures/REQUEST.txt``.

        Raises
        ------
        ResultsError
            If the files cannot be written.
        """
        request = request or key
        shard = {
            "schema": SCHEMA_VERSION,
            "numbers": NUMBERS_VERSION,
            "key": key,
            "request": request,
            "about": plain(about or {}),
            "runs": pack(rows, RUN_COLUMNS),
            "search": pack(search_rows, SEARCH_COLUMNS),
        }
        text = json.dumps(shard, separators=(",", ":")) + "\n"
        failed_file, trace_file = self.cells_path / f"{request}.failed.json", self.path / "failures" / f"{request}.txt"
        if traceback is None:
            write_text(self.cells_path / f"{key}.json", text)
            for file in (failed_file, trace_file):
                with contextlib.suppress(OSError):
                    file.unlink()
            with contextlib.suppress(OSError):
                trace_file.parent.rmdir()  # only if empty
        else:
            with contextlib.suppress(OSError):
                trace_file.parent.mkdir(exist_ok=True)
            write_text(trace_file, traceback)
            write_text(failed_file, text)

    def _listing(self) -> tuple[list[Path], dict[str, list[str]]]:
        """Return the cell files that make the tables, in the order of the rows, and the columns of each table.

        Left out: damaged files (with a warning), failures of what succeeded since, and cells that an older `NUMBERS_VERSION` made and
        this folder has again from a newer one.
        """
        listing: list[tuple[tuple[str, ...], Path]] = []
        columns: dict[str, set[str]] = {"runs": set(), "search": set()}
        done: set[str] = set()
        made_by: dict[Path, int] = {}
        # Finished cells first: a failure is left out when the same request succeeded meanwhile in another process.
        for path in sorted(self._cell_files(), key=lambda file: (file.name.endswith(".failed.json"), file.name)):
            shard = self._read_shard(path)
            if shard is None:
                if not path.exists():  # a failed cell that succeeded in this very moment
                    continue
                warnings.warn(f"{path} is damaged and left out; the next run computes its cell again", stacklevel=3)
                continue
            if path.name.endswith(".failed.json"):
                if shard["request"] in done:
                    continue
            else:
                done.add(shard["request"])
                made_by[path] = shard.get("numbers", 0)
            first = unpack({"columns": shard["runs"]["columns"], "values": shard["runs"]["values"][:1]})
            head = first[0] if first else {}
            names = [str(head.get(column, "")) for column in ("dataset", "method")]
            order = (*names, str(head.get("seed", "")).zfill(20), path.name)
            listing.append((order, path))
            for table, present in columns.items():
                present.update(shard[table]["columns"])
        old = self._superseded(made_by) if len(set(made_by.values())) > 1 else set()
        headers = {"runs": all_columns(RUN_COLUMNS, columns["runs"]), "search": all_columns(SEARCH_COLUMNS, columns["search"])}
        return [path for _, path in sorted(listing) if path not in old], headers

    def _superseded(self, made_by: Mapping[Path, int]) -> set[Path]:
        """Return the finished cells whose configuration stands in another file with newer numbers."""
        newest: dict[str, int] = {}
        configuration: dict[Path, str] = {}
        for path, version in made_by.items():
            cell = (self._read_shard(path) or {}).get("about", {}).get("cell")
            if cell:
                configuration[path] = canonical_json(_without_descriptions(cell))
                newest[configuration[path]] = max(version, newest.get(configuration[path], version))
        return {path for path, text in configuration.items() if made_by[path] < newest[text]}

    @staticmethod
    def _lines(table: Mapping[str, Any], header: Sequence[str]) -> Iterator[list[str]]:
        """Yield the rows of one table of a cell file as texts in the order of the header."""
        position = {column: at for at, column in enumerate(table["columns"])}
        order_of = [position.get(column) for column in header]
        for values in table["values"]:
            yield ["" if at is None else format_value(values[at]) for at in order_of]

    def merge(self) -> int:
        """Rebuild runs.csv and search.csv from the cell files; return the number of cells.

        The order of rows depends on the cells only, never on time or process: data set, method, seed and key of the cell; within a cell
        the split, then the metric, the one that the search used first and the others as the protocol lists them. Damaged cell files
        are left out with a warning; the next run computes those cells again. A folder without cell files is left as it is.
        """
        if not self.cells_path.is_dir():
            return 0
        with self._locked():
            listing, headers = self._listing()
            if not listing:
                return 0
            # One pass more over the files instead of all rows in memory: ten thousand cells with searches are millions of rows.
            with atomic_file(self.path / "runs.csv") as runs_file, atomic_file(self.path / "search.csv") as search_file:
                files = {"runs": runs_file, "search": search_file}
                writers = {table: csv.writer(file, lineterminator="\n") for table, file in files.items()}
                for table, writer in writers.items():
                    writer.writerow(headers[table])
                for path in listing:
                    shard = self._read_shard(path)
                    if shard is None:
                        continue
                    for table, writer in writers.items():
                        writer.writerows(self._lines(shard[table], headers[table]))
        return len(listing)

    def _merged_runs(self) -> Iterator[list[str]]:
        """Yield runs.csv as a merge would write it, the header first; nothing without cell files. Nothing is written."""
        listing, headers = self._listing()
        if listing:
            yield headers["runs"]
        for path in listing:
            shard = self._read_shard(path)
            if shard is not None:
                yield from self._lines(shard["runs"], headers["runs"])

    def runs_of_cells(self) -> pd.DataFrame:
        """Return the rows of the cell files as a merge would put them into runs.csv, without writing anything.

        Without cell files these are the rows of runs.csv.

        Raises
        ------
        ResultsError
            If a cell file holds what is no value of its column, or if there are neither cell files nor a runs.csv.
        """
        import pandas as pd

        header, *rows = list(self._merged_runs()) or [[]]
        if not header:
            return self.runs()
        try:
            return with_types(pd.DataFrame(rows, columns=header, dtype=str))
        except ValueError as error:
            raise ResultsError(f"cannot read the rows of {self.cells_path}: {' '.join(str(error).split())}") from error

    def disagreement(self) -> str:
        """Return in one line where runs.csv is not what the cell files make; empty if it is, or if one of the two is not there.

        Raises
        ------
        ResultsError
            If runs.csv cannot be read.
        """
        path = self.path / "runs.csv"
        try:
            with path.open(encoding="utf-8", newline="") as file:
                return difference(path.name, list(self._merged_runs()), csv.reader(file))
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, csv.Error) as error:
            raise ResultsError(f"cannot read {path}: {' '.join(str(error).split())}") from error

    def merge_if_due(self) -> bool:
        """Merge unless it was done a moment ago; what workers call after each cell. Returns whether it merged."""
        now = time.time()
        if now < self._next_merge:
            return False
        try:
            last = (self.path / "runs.csv").stat().st_mtime
        except OSError:
            last = float("-inf")
        self._next_merge = last + self.merge_seconds
        if now >= self._next_merge:  # only now: counting the cells takes time as well
            self._next_merge += self.merge_seconds_per_cell * len(self._cell_files())
        if now < self._next_merge:
            return False
        self.merge()
        return True

    def runs(self) -> pd.DataFrame:
        """Return runs.csv as last merged (see `read_table` for the types)."""
        runs = read_table(self.path / "runs.csv")
        for column in NEEDED:
            if column not in runs:
                raise ResultsError(f"{self.path / 'runs.csv'} has no column {column!r}; run the experiment again with this results folder")
        return runs

    def search(self) -> pd.DataFrame:
        """Return search.csv as last merged (see `read_table` for the types)."""
        return read_table(self.path / "search.csv")

    def write_provenance(
        self, config: Mapping[str, Any], started: float, ended: float | None = None, extra: Mapping[str, Any] | None = None
    ) -> Path:
        """Write provenance.json: how these numbers came about.

        Parameters
        ----------
        config : mapping
            The composed configuration.
        started, ended : float
            Seconds since the epoch; ``ended`` defaults to now. Every call adds one entry to ``sessions`` (a resumed sweep has
            several), ``wall_seconds`` is their sum.
        extra : mapping, optional
            Further keys.
        """
        session = provenance.session(started, time.time() if ended is None else ended)
        file = self.path / "provenance.json"
        # Called by the parent when the work is done: the cell files tell which data the rows stand on.
        hashes: dict[str, str] = {}
        for path in self._cell_files():
            about = (self._read_shard(path) or {}).get("about", {})
            if about.get("dataset_sha256"):
                hashes[about.get("dataset", path.stem)] = about["dataset_sha256"]
        with self._locked():
            before = self._read_json(file) if file.exists() else None
            sessions = [*(before or {}).get("sessions", []), session]
            document = provenance.document(plain(config), hashes, sessions) | plain(extra or {})
            write_text(file, json.dumps(document, indent=1) + "\n")
        return file
