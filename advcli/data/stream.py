"""Tables that need not fit into memory: a CSV file with a heading line, some rows at a time."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from ..errors import DataError
from .table import Table, check_shape, missing_file, parse, text_among


class _KeptLines:
    """The lines of a file, kept as they are read: a CSV reader on top of it tells where records end, quoted line breaks and all."""

    def __init__(self, file: IO[str]) -> None:
        self.file, self.lines = file, list[str]()

    def __iter__(self) -> Iterator[str]:
        for line in self.file:
            self.lines.append(line)
            yield line

    def take(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


def stream_tables(path: Path, rows: int, *, separator: str = ",", text: Sequence[str] | None = ()) -> Iterator[Table]:
    """Yield a CSV file (plain or gzip) as tables of at most ``rows`` rows, read as strictly as by `read_table`.

    Parameters
    ----------
    path : Path
    rows : int
        What is in memory at a time.
    separator : str
        Character between fields.
    text : sequence of str or None
        Columns that stay text; None: all.

    Raises
    ------
    DataError
        As `read_table`; a fault in a later part of the file is raised when that part is reached.
    """
    try:
        with _open(path) as file:
            yield from _tables(path, file, rows, separator, text)
    except FileNotFoundError:
        raise missing_file(path) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{path} is a damaged gzip file; get it again") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV with the encoding UTF-8") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def _open(path: Path) -> IO[str]:
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file; name the CSV file in it")
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    # newline="": line breaks inside quoted fields stay what they are
    return gzip.open(path, "rt", encoding="utf-8-sig", newline="") if packed else path.open(encoding="utf-8-sig", newline="")


def _tables(path: Path, file: IO[str], rows: int, separator: str, text: Sequence[str] | None) -> Iterator[Table]:
    recorder = _KeptLines(file)
    reader = csv.reader(recorder, delimiter=separator, skipinitialspace=True, strict=True)

    def records(count: int) -> tuple[str, int]:
        """Return the text of the next records, blank lines included, and how many there are."""
        found = 0
        try:
            for fields in reader:
                found += fields not in ([], [""])  # blank lines are none
                if found == count:
                    break
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: {error}; is a quotation mark not closed?") from None
        return "".join(recorder.take()), found

    heading, found = records(1)
    if "\0" in heading:
        raise DataError(f"{path} is not a text file (it has zero bytes); save it as CSV with the encoding UTF-8")
    if not heading.strip():
        raise DataError(f"{path} is empty; it needs a heading line and rows")
    heading_lines = reader.line_num
    rows_before, lines_before = 0, 0
    while True:
        part, found = records(rows)
        if not found and rows_before:
            return
        if "\0" in part:
            raise DataError(f"{path} is not a text file (it has zero bytes); save it as CSV with the encoding UTF-8")
        names, lines, content = check_shape(path, heading + part, separator, rows_before, lines_before)
        frame = parse(path, content, names, text_among(names, text), separator)
        yield Table(path, frame, lines, rows_before)
        rows_before += len(frame)
        lines_before = reader.line_num - heading_lines
