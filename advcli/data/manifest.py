"""``MANIFEST.csv`` in a folder of data sets: one line per set, with the checksum of its file."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..errors import DataError

FILE = "MANIFEST.csv"
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
        rows = list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"{where} is damaged: not CSV in UTF-8") from None
    found: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows, start=1):
        missing = [column for column in _NEEDED if row.get(column) is None]
        if missing:
            raise DataError(f"{where} is damaged: row {number} has no {', '.join(missing)}")
        if not row["file"] or Path(row["file"]).name != row["file"] or row["file"].startswith("."):
            raise DataError(f"{where}: row {number} names the file {row['file']!r}; only plain names in the same folder are allowed")
        found[row["name"]] = {key: value or "" for key, value in row.items() if key is not None}
    return found


def write_manifest_row(data_dir: Path, row: Mapping[str, str]) -> None:
    """Add or replace the line of one data set; the file is replaced as a whole."""
    rows = read_manifest(data_dir)
    rows[row["name"]] = dict(row)
    columns = list(dict.fromkeys([*_NEEDED, *(column for line in rows.values() for column in line)]))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows.values())
    write_atomically(data_dir / FILE, out.getvalue().encode())


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under a temporary name beside it and rename it, so that nobody ever sees half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
