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
import functools
import importlib.metadata
import itertools
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .errors import ResultsError

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1
"""Raised when the meaning of a row changes; part of every cell key, so that old and new rows never mix."""

NUMBERS_VERSION = 1
"""Raised when a change of the code may change the numbers in rows; part of every cell key, so that a resumed sweep computes them again.

A number that people raise, not a hash of the sources: a new loss, a renamed variable or another compiler would change a hash, and days of
finished cells would be thrown away for the same numbers. `tests/house/test_house_numbers.py` holds a checksum of every source that
makes numbers and fails until a change of one is either recorded as harmless or raises this.
"""

HYPER_COLUMNS = ("C", "lambda", "gamma")
"""Hyper-parameters that always have a column; others are inserted after them in alphabetical order."""

RUN_COLUMNS = (
    "dataset",
    "loss",
    "features",
    "solver",
    "method",
    "split",
    "metric",
    "value",
    *HYPER_COLUMNS,
    "n_train",
    "n_test",
    "n_features",
    "n_classes",
    "objective",
    "dual_objective",
    "relative_gap",
    "gap_scale",
    "passes",
    "converged",
    "game_value",
    "train_expected_loss",
    "test_expected_loss",
    "label_error",
    "confusion_norm",
    "condition",
    "fit_seconds",
    "predict_seconds",
    "seed",
    "status",
    "error",
    "options",
    "proof",
    "cell",
)
"""Columns of runs.csv: one row per (cell, split, metric)."""

_NEEDED = ("dataset", "loss", "features", "solver", "method", "split", "metric", "value", "n_train", "n_test", "seed", "status", "cell")

SEARCH_COLUMNS = (
    "cell",
    "dataset",
    "method",
    "stage",
    "fold",
    *HYPER_COLUMNS,
    "metric",
    "value",
    "n_train",
    "n_test",
    "objective",
    "dual_objective",
    "relative_gap",
    "gap_scale",
    "passes",
    "converged",
    "seconds",
)
"""Columns of search.csv: one row per cross-validation fit."""

TIMING_COLUMNS = ("fit_seconds", "predict_seconds", "seconds")
"""The only columns that may differ between two runs of the same configuration."""

STATUSES = ("ok", "not_converged", "failed")

_STRINGS = frozenset({"dataset", "loss", "features", "solver", "method", "metric", "status", "error", "options", "proof", "cell"})
_INTEGERS = frozenset({"split", "n_train", "n_test", "n_features", "n_classes", "passes", "seed", "stage", "fold"})
_BOOLEANS = frozenset({"converged"})

_counter = itertools.count()


# ---------------------------------------------------------------------------------------------------------------- atomic files


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


_REMEDY = "free space or choose another results_dir, then start again: finished cells are kept"


@contextlib.contextmanager
def _atomic(path: Path, mode: str, remedy: str) -> Iterator[IO[Any]]:
    # The name carries host and process, so that a later run recognises what a killed process left behind.
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.{next(_counter)}.tmp")
    try:
        with temporary.open(mode, encoding=None if "b" in mode else "utf-8", newline=None if "b" in mode else "") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise ResultsError(f"cannot write {path}: {_reason(error)}; {remedy}") from error
        raise
    # Without this the rename itself may be lost in a power cut; some file systems refuse it, which does no harm.
    with contextlib.suppress(OSError):
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def atomic_file(path: Path, remedy: str = _REMEDY) -> contextlib.AbstractContextManager[IO[str]]:
    """Open a text file that appears under its name only when it is complete and on the disk.

    Parameters
    ----------
    path : Path
    remedy : str
        What to do when it cannot be written.

    Raises
    ------
    ResultsError
        If the file cannot be written (no permission, disk full); the temporary file is removed.
    """
    return _atomic(path, "w", remedy)


def atomic_bytes(path: Path, remedy: str = _REMEDY) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open a binary file that appears like `atomic_file`."""
    return _atomic(path, "wb", remedy)


def write_text(path: Path, text: str, remedy: str = _REMEDY) -> None:
    """Write a whole text file atomically (see `atomic_file`)."""
    with atomic_file(path, remedy) as file:
        file.write(text)


def plain(value: Any) -> Any:
    """Return a value made of plain Python types only (NumPy scalars and arrays, paths and tuples converted), fit for JSON."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, 1.0 written as 1 (YAML does not tell them apart)."""

    def settle(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: settle(part) for key, part in item.items()}
        if isinstance(item, list):
            return [settle(part) for part in item]
        if isinstance(item, float) and item.is_integer():
            return int(item)
        return item

    return json.dumps(settle(plain(value)), sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def format_value(value: Any) -> str:
    """Return the CSV text of a value; floats are written so that reading them gives the same bits."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return str(value)


def hyper_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns of runs.csv that hold hyper-parameters: those of every table, and all that stand in no other part of it."""
    return [column for column in columns if column in HYPER_COLUMNS or column not in RUN_COLUMNS]


def _columns(base: Sequence[str], present: Iterable[str]) -> list[str]:
    """Return the base columns with unknown ones (further hyper-parameters) inserted after the known ones."""
    extra = sorted(set(present) - set(base))
    at = base.index(HYPER_COLUMNS[-1]) + 1
    return [*base[:at], *extra, *base[at:]]


def _pack(rows: Sequence[Mapping[str, Any]], base: Sequence[str]) -> dict[str, Any]:
    columns = _columns(base, {key for row in rows for key in row})
    return {"columns": columns, "values": [[plain(row.get(column)) for column in columns] for row in rows]}


def _unpack(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(table["columns"], values, strict=True)) for values in table["values"]]


def _is_table(value: Any) -> bool:
    """Tell whether a value is what `_pack` makes: every row as wide as the columns."""
    if not isinstance(value, dict) or not isinstance(value.get("columns"), list) or not isinstance(value.get("values"), list):
        return False
    return all(isinstance(row, list) and len(row) == len(value["columns"]) for row in value["values"])


def complete_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of runs.csv in plain types with every column, None where a row has nothing."""
    return _unpack(_pack(rows, RUN_COLUMNS))


def _with_types(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert the texts of a table in place: whether pandas' own parser returns the exact bits depends on its version."""
    import numpy as np
    import pandas as pd

    for column in frame.columns.difference(sorted(_STRINGS), sort=False):
        text = frame[column].to_numpy(dtype=object)
        empty = text == ""
        if column in _INTEGERS:
            numbers = np.where(empty, "0", text).astype(np.int64)
            frame[column] = pd.arrays.IntegerArray(numbers, empty)
        elif column in _BOOLEANS:
            unknown = sorted({*text[~empty]} - {"True", "False"})
            if unknown:
                raise ValueError(f"column {column!r} has the value {unknown[0]!r}")
            frame[column] = pd.arrays.BooleanArray(text == "True", empty)
        else:
            frame[column] = np.where(empty, "nan", text).astype(np.float64)
    return frame


def read_table(path: Path) -> pd.DataFrame:
    """Read runs.csv or search.csv with stable column types.

    Strings stay strings (a data set may be called ``null``), whole numbers are ``Int64``, ``converged`` is ``boolean``, all
    else is float64 with the exact bits that were written.

    Raises
    ------
    ResultsError
        If the file is missing or is no table of this program.
    """
    import pandas as pd

    try:
        with path.open(encoding="utf-8", newline="") as file:
            header = next(csv.reader(file), [])
        if "dataset" not in header or "metric" not in header:
            raise ResultsError(f"{path} is not a table written by advcli: its first line has no columns 'dataset' and 'metric'")
        frame = _with_types(pd.read_csv(path, dtype=str, keep_default_na=False))
    except FileNotFoundError:
        raise ResultsError(f"no {path.name} in {path.parent}; run an experiment with this results folder first") from None
    except OSError as error:
        raise ResultsError(f"cannot read {path}: {_reason(error)}") from error
    except (ValueError, csv.Error) as error:
        raise ResultsError(f"cannot read {path}: {' '.join(str(error).split())}") from error
    return frame


# ------------------------------------------------------------------------------------------------------------------ the folder


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping) and value:
        flat: dict[str, Any] = {}
        for key, item in value.items():
            flat |= _flatten(item, f"{prefix}.{key}" if prefix else str(key))
        return flat
    return {prefix: value}


def _short(value: Any) -> str:
    text = "(absent)" if value is _ABSENT else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


_ABSENT = object()


def _without_descriptions(value: Any) -> Any:
    """Return nested options without the texts that explain them, which determine no row."""
    if isinstance(value, Mapping):
        return {key: _without_descriptions(item) for key, item in value.items() if key != "description"}
    return value


def _difference(name: str, merged: Sequence[Sequence[str]], table: Iterable[Sequence[str]]) -> str:
    """Return the first difference between the rows that cells make and the table that stands beside them, columns matched by name."""
    if not merged:
        return ""
    (mine, *expected), (header, *found) = merged, [*table] or [[]]
    columns = [*mine, *(column for column in header if column not in mine)]
    places = [[names.index(column) if column in names else None for column in columns] for names in (mine, header)]
    for number, (wanted, given) in enumerate(itertools.zip_longest(expected, found), start=2):
        if given is None:
            return f"{name} ends before line {number}; its cell files make {len(expected)} rows"
        if wanted is None:
            return f"{name} goes on at line {number}; its cell files make {len(expected)} rows"
        if len(given) != len(header):
            return f"{name}, line {number}: {len(given)} fields, {len(header)} columns"
        for column, mine_at, at in zip(columns, *places, strict=True):
            cell, text = "" if mine_at is None else wanted[mine_at], "" if at is None else given[at]
            if cell != text:
                return f"{name}, line {number}: {column} is {_short(text)}, its cell file has {_short(cell)}"
    return ""


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
        import fcntl

        try:
            handle = os.open(self.cells_path / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise ResultsError(f"cannot write into {self.path}: {_reason(error)}; choose another results_dir or name") from error
        try:
            # Some network file systems have no locks; there, of two merges at one moment the older may stay until the next.
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

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
            raise ResultsError(f"cannot create {self.path}: {_reason(error)}; choose another results_dir or name") from error
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
        places = (self.path, self.cells_path, self.proofs_path, self.path / "failures")
        for file in [*self.path.glob(".session.*"), *(file for place in places for file in place.glob(".*.tmp"))]:
            if file.name.startswith(".session."):
                host, _, process = file.name.rpartition(".")
            else:
                host, _, process = file.name.removesuffix(".tmp").rpartition(".")[0].rpartition(".")
            if not process.isdigit() or not host.endswith(f".{socket.gethostname()}"):
                continue
            try:
                os.kill(int(process), 0)
            except ProcessLookupError:
                if file.is_dir():
                    shutil.rmtree(file, ignore_errors=True)
                else:
                    with contextlib.suppress(OSError):
                        file.unlink()
            except OSError:
                continue

    @contextlib.contextmanager
    def session(self) -> Iterator[Path]:
        """Open a folder for what the processes of one sweep tell each other; it is removed at the end.

        Raises
        ------
        ResultsError
            If it cannot be made.
        """
        path = self.path / f".session.{socket.gethostname()}.{os.getpid()}"
        try:
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
        except OSError as error:
            raise ResultsError(f"cannot write into {self.path}: {_reason(error)}; choose another results_dir or name") from error
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
            return shard if _is_table(shard["runs"]) and _is_table(shard["search"]) else None
        return None

    def has(self, key: str) -> bool:
        """Tell whether a cell is there, complete and without failure."""
        return self._read_shard(self.cells_path / f"{key}.json") is not None

    def read_cell(self, key: str) -> dict[str, Any] | None:
        """Return what `write_cell` stored for a finished cell: ``about``, ``rows``, ``search_rows``; None if it is not there."""
        shard = self._read_shard(self.cells_path / f"{key}.json")
        if shard is None:
            return None
        return {"about": shard["about"], "rows": _unpack(shard["runs"]), "search_rows": _unpack(shard["search"])}

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
            "runs": _pack(rows, RUN_COLUMNS),
            "search": _pack(search_rows, SEARCH_COLUMNS),
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
            first = _unpack({"columns": shard["runs"]["columns"], "values": shard["runs"]["values"][:1]})
            head = first[0] if first else {}
            names = [str(head.get(column, "")) for column in ("dataset", "method")]
            order = (*names, str(head.get("seed", "")).zfill(20), path.name)
            listing.append((order, path))
            for table, present in columns.items():
                present.update(shard[table]["columns"])
        old = self._superseded(made_by) if len(set(made_by.values())) > 1 else set()
        headers = {"runs": _columns(RUN_COLUMNS, columns["runs"]), "search": _columns(SEARCH_COLUMNS, columns["search"])}
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
            return _with_types(pd.DataFrame(rows, columns=header, dtype=str))
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
                return _difference(path.name, list(self._merged_runs()), csv.reader(file))
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
        for column in _NEEDED:
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
        ended = time.time() if ended is None else ended
        file = self.path / "provenance.json"
        # Called by the parent when the work is done: the cell files tell which data and kernels the rows stand on.
        hashes: dict[str, str] = {}
        levels: set[str] = set()
        for path in self._cell_files():
            about = (self._read_shard(path) or {}).get("about", {})
            if about.get("dataset_sha256"):
                hashes[about.get("dataset", path.stem)] = about["dataset_sha256"]
            if about.get("instruction_set"):
                levels.add(about["instruction_set"])
        memory = peak_memory_bytes()
        session = {"start": _stamp(started), "end": _stamp(ended), "wall_seconds": ended - started, "peak_memory_bytes": memory}
        with self._locked():
            before = self._read_json(file) if file.exists() else None
            sessions = [*(before or {}).get("sessions", []), session]
            document = {
                "config": plain(config),
                "versions": versions(),
                "git": git_state(),
                "cpu": cpu(),
                "instruction_sets": sorted(levels),
                "data": dict(sorted(hashes.items())),
                "start": sessions[0]["start"],
                "end": session["end"],
                "wall_seconds": sum(part["wall_seconds"] for part in sessions),
                "peak_memory_bytes": max(part["peak_memory_bytes"] for part in sessions),
                "sessions": sessions,
                **plain(extra or {}),
            }
            write_text(file, json.dumps(document, indent=1) + "\n")
        return file


# ------------------------------------------------------------------------------------------------------------------ provenance


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="seconds")


@functools.cache
def package_version() -> str:
    """Return the version of the installed package, ``unknown`` when it runs from a folder that was never installed."""
    try:
        return importlib.metadata.version("advcli")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that can change numbers."""
    found = {"python": platform.python_version(), "advcli": package_version()}
    for name in ("numpy", "scipy", "scikit-learn", "pandas", "hydra-core", "omegaconf", "joblib", "threadpoolctl"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def git_state() -> dict[str, Any] | None:
    """Return commit and dirtiness of the checkout that this package runs from; None if it runs from an installed copy."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None

    def ask(*arguments: str) -> str | None:
        try:
            answer = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=20, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        return answer.stdout.strip()

    status = ask("status", "--porcelain")
    return {"commit": ask("rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}


def cpu() -> dict[str, Any]:
    """Return the processor's model name, the architecture and the number of logical cores."""
    model = platform.processor()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {"model": model, "machine": platform.machine(), "logical_cores": os.cpu_count()}


def peak_memory_bytes() -> int:
    """Return the largest resident memory of this process and of any one of its finished children, in bytes."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
