"""The results folder: one file per finished cell, merged tables, identity, provenance.

A results folder holds

- ``cells/KEY.json``: one finished cell (a data set x a method), written whole or not at all; these files are the truth (see `cell_files`),
- ``cells/KEY.damaged-N.json``: a damaged cell file; the next run sets it aside and never reads it again,
- ``cells/REQUEST.failed.json`` and ``failures/REQUEST.txt``: a cell that failed, and its traceback; tried again by the next run,
- ``runs.csv`` and ``search.csv``: all cells in one table each, rebuilt from the cell files in an order that does not depend on
  who finished first,
- ``predictions/KEY.npz``: what the cell's fits predict, by which metrics are added (see `advcli.results.predictions`),
- ``proofs/KEY.npz``: where proofs are kept, the parameters and dual points of the cell's fits (see `advcli.results.proofs`),
- ``splits/``, and ``splits.csv`` made of it: where splits are kept, which rows are in which part (see `advcli.results.split_table`),
- ``identity.json``: the configuration that the folder belongs to; every cell file has it too,
- ``provenance.json``: what ran, where, on which data and for how long,
- ``.session.HOST.PROCESS``: while a sweep runs, what its processes tell each other (see `advcli.results.progress`).

Every file is written to a temporary name, flushed to the disk and renamed, so that a process killed at any moment loses the
cell in flight and nothing else.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import itertools
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import ResultsError
from ..core.files import atomic_file, create_text, locked, own_name, read_json, reason, remove_of_the_dead, write_text
from ..core.notes import noted
from . import provenance
from .cell_file import DAMAGED, FAILED, DamagedError, cell_files, cell_text, read_cell_file, read_current
from .cell_tables import CellTables
from .identity import IDENTITY, Owner, identity_text
from .split_table import GivenSplit, lines_of, read_lines, table_text
from .tables import NEEDED, SCHEMA_VERSION, difference, plain, read_table, unpack, with_types

if TYPE_CHECKING:
    import pandas as pd


_SESSION = ".session"


class ResultsFolder:
    """One results folder: the only door through which files of results are written and read; `prepare` creates it.

    Cells that are computed keep the proofs of their fits with ``proofs``, with ``distributions`` also distributions over the classes that
    none of their metrics reads, with ``splits`` the rows of their splits. ``remarks`` has lines about damage that was left out or mended as
    its keys, ``makers`` the makers of the cells that the tables were last made of. ``stands_on`` has the checksum of the content that
    finished cells were made from, by the name of a data set and whether its authors' splits are taken.

    Objects hold no open files and can be pickled; several processes may work in one folder at once.
    """

    merge_seconds = 10.0
    """Shortest time in seconds between two merges while a sweep runs."""
    merge_seconds_per_cell = 0.05
    """Further waiting time per finished cell: a merge takes time in proportion to the cells; its share must stay bounded."""
    flush_seconds = 1.0
    """Shortest time in seconds between two cell files that wait for the disk, which takes longer than a small cell.

    A power cut may cost the cells that were stored since: their seals tell, and the next run computes them again.
    """

    def __init__(self, path: str | os.PathLike[str], proofs: bool = False, distributions: bool = False, splits: bool = False) -> None:
        self.path = Path(path).absolute()
        self.splits_path = self.path / "splits"
        self.cells_path, self.predictions_path, self.proofs_path, self._failures = (
            self.path / name for name in ("cells", "predictions", "proofs", "failures")
        )
        self.keep_proofs, self.keep_distributions, self.keep_splits = proofs, distributions, splits
        self.remarks: dict[str, None] = {}
        self.stands_on: dict[str, str] = {}
        self.makers = provenance.Makers()
        self._identity: Any = None
        self._held = 0
        self._next_merge = 0.0
        self._next_flush = 0.0

    def __repr__(self) -> str:
        return f"ResultsFolder({str(self.path)!r})"

    @contextlib.contextmanager
    def _explained(self, doing: str = "write into", remedy: str = "choose another results_dir or name") -> Iterator[None]:
        """Turn the errors of the system into a `ResultsError` with a remedy."""
        try:
            yield
        except OSError as error:
            raise ResultsError(f"cannot {doing} {self.path}: {reason(error)}; {remedy}") from error

    @contextlib.contextmanager
    def locked(self, wait: bool = True, remedy: str = "choose another results_dir or name") -> Iterator[bool]:
        """Hold the lock of the folder, whose tables are made from the cells that are there.

        Whoever holds it may ask for it again; a folder of tables alone has none. Without ``wait`` for another process what is yielded tells
        whether the lock is held. ``remedy`` is part of the `ResultsError` for a folder that cannot be written.
        """
        with contextlib.ExitStack() as stack:
            held = True
            if not self._held and self.cells_path.is_dir():
                with self._explained(remedy=remedy):
                    held = stack.enter_context(locked(self.cells_path / ".lock", wait))
            self._held += held
            try:
                # Where a network file system has no locks: of two merges at one moment the older may stay until the next.
                yield held
            finally:
                self._held -= held

    def prepare(self, identity: Mapping[str, Any], review: Callable[[Mapping[str, Any]], None] | None = None) -> None:
        """Claim the folder for a configuration, making it if it is not there; set damaged cell files aside.

        A folder belongs to the configuration that wrote its identity.json first. Another one may take it over, as after a mistake in the
        first command, while it has neither cells nor rows nor an open `session`, or only cells that failed. Every cell
        file has the identity too: a lost or damaged identity.json is written again if they agree. ``review`` is called with the content
        (`read_cell_file`) of every finished cell that is there. Raises `ResultsError` for the folder of another configuration, naming the
        keys that differ, or of none that is known.
        """
        wanted = json.loads(json.dumps(plain(identity)))
        with self._explained("create"):
            self.cells_path.mkdir(parents=True, exist_ok=True)
        with self.locked():
            self.remove_leftovers()
            damaged = self._claim(wanted, review)
            self._identity = wanted
            if not os.access(self.path, os.W_OK) or not os.access(self.cells_path, os.W_OK):
                raise ResultsError(f"cannot write into {self.path}: permission denied; choose another results_dir or name")
            for path in damaged:
                self._set_aside(path)

    def _claim(self, wanted: Any, review: Callable[[Mapping[str, Any]], None] | None) -> list[Path]:
        """Take the folder for a configuration, or refuse; return its damaged cell files."""
        file = self.path / IDENTITY
        if not self._occupied() and create_text(file, identity_text(wanted)):
            return []
        owner, damaged = Owner(self.path), []
        for path in cell_files(self.cells_path):
            try:
                content = read_cell_file(path)
            except FileNotFoundError:
                continue
            except DamagedError:
                damaged.append(path)
                continue
            owner.add(path, content)
            if review is not None and content["schema"] == SCHEMA_VERSION and not path.stem.endswith(FAILED):
                review(content)
        remedy = "choose another name= or remove the folder"
        if owner.identity is None and self._occupied():
            what = f"has {'no' if owner.missing else 'a damaged'} {IDENTITY}, and no cell file says which config made it"
            raise ResultsError(f"{self.path} {what}; {remedy}")
        same = owner.identity is not None and owner.is_of(wanted)
        if not same and self._occupied():
            raise ResultsError(f"{self.path} was made by another config ({owner.unlike(wanted)}); {remedy}")
        if owner.stored is None and owner.identity is not None:
            self.remarks[f"{file} was {'missing' if owner.missing else 'damaged'}; written again from the cell files"] = None
        if owner.identity is not None and not same:
            self._forget_failures()
        if owner.stored != wanted:
            write_text(file, identity_text(wanted))
        return damaged

    def _occupied(self) -> bool:
        """Tell whether the folder holds what belongs to a configuration: cells, rows, or a run of another process that is under way.

        A folder of failures alone is free: the mistake that made them may be in the configuration.
        """
        failed = [path for path in cell_files(self.cells_path) if path.stem.endswith(FAILED)]
        if len(failed) < len(cell_files(self.cells_path)) or self._in_use():
            return True
        alone = bool(failed) and len(failed) == len(list(self.cells_path.glob("*.json")))  # none was set aside as damaged
        return (self.path / "runs.csv").exists() and not alone

    def _in_use(self) -> bool:
        """Tell whether a run of another process is under way."""
        return any(path.name != own_name(_SESSION) for path in self.path.glob(f"{_SESSION}.*"))

    def _unlink(self, paths: Iterable[Path]) -> None:
        for path in paths:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise ResultsError(f"cannot remove {path}: {reason(error)}") from error

    def _forget_failures(self) -> None:
        """Remove the cells that failed, their tracebacks and the tables of them alone."""
        self._unlink(path for path in cell_files(self.cells_path) if path.stem.endswith(FAILED))
        self._unlink(self._failures.glob("*.txt"))
        self._unlink(self.path / name for name in ("runs.csv", "search.csv"))

    def drop(self, keys: Iterable[str]) -> int:
        """Remove cells with their predictions, proofs and tracebacks and merge what remains; return how many cells remain.

        ``keys`` are values of the column ``cell`` of the rows. Of a finished cell that failed to get more splits, both files go.
        """
        with self.locked():
            self.remove_leftovers()
            if self._in_use():
                raise ResultsError(f"a run is under way in {self.path}; wait for its end, or stop it")
            wanted = set(keys)
            files: dict[str, set[str]] = {}
            for path in cell_files(self.cells_path):
                content, stem = read_current(path), path.name.removesuffix(".json").removesuffix(FAILED)
                files[stem] = {stem} | ({content["key"], content["request"]} if content else set())
            wanted = wanted.union(*(names for names in files.values() if names & wanted))
            for key in wanted | {stem for stem, names in files.items() if names & wanted}:
                self._unlink(self.cells_path / name for name in (f"{key}.json", f"{key}{FAILED}.json"))
                self._unlink(place / f"{key}.npz" for place in (self.predictions_path, self.proofs_path))
                self._unlink([self._failures / f"{key}.txt"])
            remaining = self.merge()
            if not remaining and not self._had_cells():  # a folder without cell files is left as it is
                self._unlink(self.path / name for name in ("runs.csv", "search.csv"))
        return remaining

    def _set_aside(self, path: Path) -> str:
        """Rename a damaged cell file to a name with ``damaged``, and return the remark on it; empty for a sound file."""
        try:
            read_cell_file(path)
        except FileNotFoundError:
            return ""
        except DamagedError as error:
            stem = path.name.removesuffix(".json")
            numbers = (path.with_name(f"{stem}{DAMAGED}{number}.json") for number in itertools.count(1))
            aside = next(name for name in numbers if not os.path.lexists(name))
            try:
                os.rename(path, aside)
            except OSError as refusal:
                raise ResultsError(f"cannot set aside the damaged {path}: {reason(refusal)}; remove it") from refusal
            text = noted("ADV152", f"{path} is damaged ({error}); kept as {aside.name}, and its cell is computed again")
            self.remarks[text] = None
            return text
        return ""

    def abandon(self) -> bool:
        """Remove the folder if nobody has put anything into it and no other process runs in it; return whether it was removed."""
        with self.locked():
            if self._occupied() or cell_files(self.cells_path):
                return False
            shutil.rmtree(self.path, ignore_errors=True)
        return True

    def remove_leftovers(self) -> None:
        """Remove temporary files and sessions of processes of this machine that no longer live."""
        places = self.cells_path, self.predictions_path, self.proofs_path, self.splits_path, self._failures
        remove_of_the_dead((self.path, *places), _SESSION)

    @contextlib.contextmanager
    def session(self) -> Iterator[Path]:
        """Open a folder for what the processes of one sweep tell each other; it is removed at the end."""
        path = self.path / own_name(_SESSION)
        with self._explained():
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
        try:
            if self._identity is not None:
                with self.locked():
                    # until this session was there, a folder without cells was free
                    owner = Owner(self.path)
                    if owner.stored is None or not owner.is_of(self._identity):
                        raise ResultsError(f"another config has just claimed {self.path}; choose another name=")
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def _had_cells(self) -> bool:
        """Tell whether runs.csv is made of cell files: of none at all, when every one was damaged."""
        return any(self.cells_path.glob("*.json"))

    def finished_keys(self) -> list[str]:
        """Return the keys of the cells that have a file, the failed ones aside."""
        return [path.stem for path in cell_files(self.cells_path) if not path.stem.endswith(FAILED)]

    def requests(self) -> set[str]:
        """Return the keys of the configurations of the cells that have a file, the failed ones aside."""
        contents = [read_current(path) for path in cell_files(self.cells_path) if not path.stem.endswith(FAILED)]
        return {content["request"] for content in contents if content is not None}

    def read_cell(self, key: str) -> dict[str, Any] | None:
        """Return what `write_cell` stored for a finished cell: ``about``, ``rows``, ``search_rows``; None if it is not there."""
        content = read_current(self.cells_path / f"{key}.json")
        if content is None:
            return None
        return {"about": content["about"], "rows": unpack(content["runs"]), "search_rows": unpack(content["search"])}

    def set_aside(self, key: str) -> str:
        """Rename the file of a finished cell if it is damaged; return what to say about it, empty if it is sound or not there."""
        path = self.cells_path / f"{key}.json"
        if read_current(path) is not None or not os.path.lexists(path):
            return ""
        with self.locked():
            return self._set_aside(path)

    def flush_is_due(self) -> bool:
        """Tell whether files of a cell that are written now are to wait for the disk."""
        return time.monotonic() >= self._next_flush

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

        ``rows`` go to runs.csv and ``search`` to search.csv; what a row lacks stays empty. ``about`` are further facts: configuration,
        notes, hash of the data. ``request`` is the key of the configuration alone, which exists even if the data could not be read; default
        ``key``. A ``traceback`` goes to ``failures/REQUEST.txt``, and the cell is stored as failed: the next run tries again what it has
        not.
        """
        request = request or key
        identity = Owner(self.path).identity if self._identity is None else self._identity
        text = cell_text(key, request, identity, about or {}, rows, search_rows)
        if traceback is None:
            flushed = self.flush_is_due()
            write_text(self.cells_path / f"{key}.json", text, flushed=flushed)
            if flushed:
                self._next_flush = time.monotonic() + self.flush_seconds
            self.forget_failure(request)
        else:
            trace_file = self._failures / f"{request}.txt"
            with contextlib.suppress(OSError):
                trace_file.parent.mkdir(exist_ok=True)
            write_text(trace_file, traceback)
            write_text(self.cells_path / f"{request}{FAILED}.json", text)

    def write_splits(self, dataset: str, sha256: str, splits: Sequence[GivenSplit]) -> None:
        """Add the splits of a data set to the stored ones; `merge` makes splits.csv of them."""
        file = self.splits_path / f"{hashlib.sha256(f'{dataset} {sha256}'.encode()).hexdigest()[:16]}.csv"
        with self.locked(), self._explained():
            self.splits_path.mkdir(exist_ok=True)
            # a method whose hyper-parameters are fixed has no folds, and a cell may have more splits than another
            held = {(line[2], line[3]): line for line in (read_lines(file) if file.exists() else ())}
            lines = held | {(line[2], line[3]): line for line in lines_of(dataset, sha256, splits)}
            if lines != held:
                write_text(file, table_text(sorted(lines.values(), key=lambda line: int(line[2]))))

    def forget_failure(self, request: str) -> None:
        """Remove the failure of a cell that is there as it was asked for, if there is one."""
        trace_file = self._failures / f"{request}.txt"
        for file in (self.cells_path / f"{request}{FAILED}.json", trace_file):
            with contextlib.suppress(OSError):
                file.unlink()
        with contextlib.suppress(OSError):
            trace_file.parent.rmdir()  # only if empty

    def merge(self) -> int:
        """Rebuild runs.csv and search.csv from the cell files; return the number of cells.

        The order of rows depends on the cells only, never on time or process: data set, method, seed and key of the cell; within a cell
        the split, then the metric: first the metric of the search, then the others as the protocol lists them. Damaged cell files
        are left out with a remark; the next run computes those cells again. A folder without cell files is left as it is. Imported cells
        have no searches, and no search.csv.
        """
        if not self.cells_path.is_dir():
            return 0
        with self.locked():
            tables = self._tables()
            if not tables.paths and not self._had_cells():
                return 0
            # One pass more over the files instead of all rows in memory: ten thousand cells with searches are millions of rows.
            with contextlib.ExitStack() as stack:
                names = ["runs"] if tables.imported else ["runs", "search"]
                files = {table: stack.enter_context(atomic_file(self.path / f"{table}.csv")) for table in names}
                writers = {table: csv.writer(file, lineterminator="\n") for table, file in files.items()}
                for table, writer in writers.items():
                    writer.writerow(tables.headers[table])
                for cell in tables.cells():
                    for table, writer in writers.items():
                        writer.writerows(tables.lines(cell, table))
            if pieces := sorted(self.splits_path.glob("*.csv")):
                lines = sorted((line for piece in pieces for line in read_lines(piece)), key=lambda line: (line[0], line[1], int(line[2])))
                write_text(self.path / "splits.csv", table_text(lines))
        return len(tables.paths)

    def _tables(self) -> CellTables:
        """Return the tables that the cell files make; the folder gets their remarks and makers."""
        tables = CellTables(self.path, cell_files(self.cells_path))
        self.remarks |= tables.remarks
        self.makers = tables.makers
        return tables

    def _merged(self, table: str) -> list[list[str]]:
        """Return a table, runs or search, as a merge would write it, the header first; nothing without cell files."""
        tables = self._tables()
        if not tables.paths and not self._had_cells():
            return []
        return [tables.headers[table], *(line for cell in tables.cells() for line in tables.lines(cell, table))]

    def of_cells(self, table: str = "runs") -> pd.DataFrame:
        """Return the rows of a table, ``runs`` or ``search``, as a merge of the cell files would; without cell files the merged table."""
        import pandas as pd

        merged = self._merged(table)
        if not merged:
            return self.runs() if table == "runs" else self.search()
        try:
            return with_types(pd.DataFrame(merged[1:], columns=merged[0], dtype=str))
        except ValueError as error:
            raise ResultsError(f"cannot read the rows of {self.cells_path}: {' '.join(str(error).split())}") from error

    def disagreement(self) -> str:
        """Return in one line where runs.csv is not what the cell files make; empty if it is, or if one of the two is not there."""
        path = self.path / "runs.csv"
        try:
            with path.open(encoding="utf-8", newline="") as file:
                return difference(path.name, self._merged("runs"), csv.reader(file))
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, csv.Error) as error:
            raise ResultsError(f"cannot read {path}: {' '.join(str(error).split())}") from error

    def merge_if_due(self) -> bool:
        """Merge unless a merge was done a moment ago, and return whether it was done now; workers call this after each cell.

        Where another process holds the lock nobody waits.
        """
        now = time.time()
        if now < self._next_merge:
            return False
        try:
            last = (self.path / "runs.csv").stat().st_mtime
        except OSError:
            last = float("-inf")
        self._next_merge = last + self.merge_seconds
        if now >= self._next_merge:  # only now: counting the cells takes time as well
            self._next_merge += self.merge_seconds_per_cell * len(cell_files(self.cells_path))
        if now < self._next_merge:
            return False
        with self.locked(wait=False) as free:
            if free:
                self.merge()
        return free

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
        """Write provenance.json: how the numbers of the folder came about, by the composed configuration and ``extra`` keys.

        ``started`` and ``ended``, now by default, are seconds since the epoch. Every call adds one entry to ``sessions``: a resumed sweep
        has several, and ``wall_seconds`` is their sum.
        """
        session = provenance.session(started, time.time() if ended is None else ended)
        file = self.path / "provenance.json"
        with self.locked():
            # the cell files tell who made the rows: a run that computed nothing has made none
            makers = provenance.Makers()
            for path in cell_files(self.cells_path):
                content = read_current(path)
                if content is not None and not path.stem.endswith(FAILED):
                    makers.add(path.stem, content["about"])
            before = read_json(file)
            before = before if isinstance(before, dict) else {}
            document = provenance.document(plain(config), makers, [*before.get("sessions", []), session]) | plain(extra or {})
            write_text(file, json.dumps(document, indent=1) + "\n")
        return file


def overview(results_dir: Path) -> list[dict[str, Any]]:
    """Return what every results folder holds, the latest last; None where a folder does not say.

    ``ended`` is local time, ``minutes`` the time of work; ``data sets`` and ``methods`` occur in the rows, ``metric`` is the metric that
    the folder's table shows.
    """
    entries = []
    for path in results_dir.iterdir() if results_dir.is_dir() else ():
        folder = ResultsFolder(path)
        if not folder.cells_path.is_dir():
            continue
        made = read_json(path / "provenance.json") or {}
        ended = datetime.fromisoformat(made["end"]).astimezone() if made.get("end") else None
        try:
            runs = folder.runs()
        except ResultsError:
            runs = None
        entries.append(
            {
                "name": path.name,
                "ended": None if ended is None else f"{ended:%Y-%m-%d %H:%M}",
                "minutes": None if ended is None else round(made["wall_seconds"] / 60.0, 1),
                "cells": len(folder.finished_keys()),
                "failed": len(list(folder.cells_path.glob(f"*{FAILED}.json"))),
                "data sets": None if runs is None else runs["dataset"].nunique(),
                "methods": None if runs is None else len(runs[["method", "options"]].drop_duplicates()),
                "metric": None if runs is None or not len(runs) else str(runs["metric"].iloc[0]),
            }
        )
    return sorted(entries, key=lambda entry: (entry["ended"] is None, entry["ended"] or "", entry["name"]))
