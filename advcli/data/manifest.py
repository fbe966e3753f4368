"""A folder of data sets: ``NAME.csv.gz`` files and ``MANIFEST.csv``, one line per set with the checksum of its file."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import DataError
from ..core.files import write_text
from .catalogue import CATALOGUE, stored_set
from .source import Entry

FILE = "MANIFEST.csv"
REMEDY = "free space or choose another data_dir"
_NEEDED = ("name", "file", "rows", "features", "classes", "task", "sha256")


def read_manifest(data_dir: Path) -> dict[str, dict[str, str]]:
    """Return the lines of ``MANIFEST.csv`` by name of the data set; empty if the folder has none."""
    path = data_dir / FILE
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    return parse_manifest(raw, str(path))


def parse_manifest(raw: bytes, where: str) -> dict[str, dict[str, str]]:
    """Return the lines of a manifest by name, after checking the columns that are needed and the file names."""
    try:
        reader = csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline=""), strict=True)
        rows, heading = list(reader), reader.fieldnames or ()
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"{where} is damaged: not CSV in UTF-8") from None
    if raw.strip() and not set(_NEEDED) <= set(heading):
        raise DataError(f"{where} is no list of data sets: its first line lacks {', '.join(one for one in _NEEDED if one not in heading)}")
    manifest: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows, start=1):
        missing = [column for column in _NEEDED if row.get(column) is None]
        if missing:
            raise DataError(f"{where} is damaged: row {number} has no {', '.join(missing)}")
        if not row["file"] or Path(row["file"]).name != row["file"] or row["file"].startswith("."):
            raise DataError(f"{where}: row {number} names the file {row['file']!r}; only plain names in the same folder are allowed")
        manifest[row["name"]] = {key: value or "" for key, value in row.items() if key is not None}
    return manifest


def find_file(name: str, file: str | None, data_dir: Path, manifest: Mapping[str, Mapping[str, str]]) -> Path:
    """Return the path of a set in the folder, whether or not it exists."""
    if file is not None:
        return data_dir / file
    if name in manifest:
        return data_dir / manifest[name]["file"]
    plain = data_dir / f"{name}.csv"
    return plain if plain.is_file() and not (data_dir / f"{name}.csv.gz").is_file() else data_dir / f"{name}.csv.gz"


def own_file(options: Mapping[str, Any], data_dir: Path) -> list[Path]:
    """Return the file of a set that is one file of the folder (`Source.files`)."""
    return [find_file(options["name"], options["file"], data_dir, read_manifest(data_dir))]


def check_file(path: Path, raw: bytes, row: Mapping[str, str] | None, remedy: str) -> None:
    """Refuse a file whose checksum differs from the checksum in its line of the manifest, if it has one."""
    if row is not None and row["sha256"] and path.name == row["file"] and hashlib.sha256(raw).hexdigest() != row["sha256"].lower():
        raise DataError(f"{path} is damaged or was changed: its checksum differs from the checksum in MANIFEST.csv; {remedy}")


def missing_line(name: str, path: Path) -> str:
    """Return in one line that a file of a data set is not here, and what to do."""
    fetch = f"run `advcli data fetch {name}`, or " if stored_set(name) is not None else ""
    return f"data set {name!r} is not here: no file {path}; {fetch}point data_dir= or ADVCLI_DATA to the folder that has {path.name}"


def entries_by_file(source: str, data_dir: Path) -> list[Entry]:
    """Return the catalogue's sets of a source that reads the folder, here or not."""
    manifest, entries = read_manifest(data_dir), []
    for name, facts in CATALOGUE[source].items():
        others = (data_dir / file for file in list(facts.files)[1:])
        here = all(path.is_file() for path in (find_file(name, None, data_dir, manifest), *others))
        command = facts.override if here else f"advcli data fetch {name}"
        sizes = (facts.rows, facts.features, facts.classes)
        entries.append(Entry(name, source, *sizes, facts.task, here, command, facts.citation, facts.options, facts.size, facts.licence))
    return entries


def write_manifest_row(data_dir: Path, row: Mapping[str, str]) -> None:
    """Add or replace the line of one data set; the file is replaced as a whole."""
    rows = read_manifest(data_dir)
    rows[row["name"]] = dict(row)
    columns = list(dict.fromkeys([*_NEEDED, *(column for line in rows.values() for column in line)]))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows.values())
    write_text(data_dir / FILE, out.getvalue(), REMEDY)
