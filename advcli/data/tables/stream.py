"""Tables that need not fit into memory: a CSV file with a heading line, some rows at a time."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import TextIOWrapper
from itertools import chain
from pathlib import Path

from ...core.errors import DataError
from .opening import as_text, declared_separator, not_text, opened
from .table import Table, check_shape, parse, refuse_zero_bytes, text_among


class _KeptLines:
    """The lines of a file, kept as they are read: a CSV reader on top of it tells where records end, quoted line breaks and all."""

    def __init__(self, file: Iterable[str]) -> None:
        self.file, self.lines = file, list[str]()

    def __iter__(self) -> Iterator[str]:
        for line in self.file:
            self.lines.append(line)
            yield line

    def take(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


def stream_tables(
    path: Path, rows: int, *, separator: str = ",", text: Sequence[str] | None = (), encoding: str | None = None
) -> Iterator[Table]:
    """Yield a CSV file, plain or packed, as tables of at most ``rows`` rows, read once and as strictly as by `read_table`.

    Parameters
    ----------
    path : Path
        A file or a pipe.
    rows : int
        What is in memory at a time.
    separator : str
        Character between fields; a first line ``sep=;`` says another.
    text : sequence of str or None
        Columns that stay text; None: all.
    encoding : str, optional
        As for `advcli.data.tables.opening.as_text`.

    Raises
    ------
    DataError
        As `read_table`; a fault in a later part of the file is raised when that part is reached.
    """
    with opened(path) as packed:
        file = as_text(packed, encoding)
        try:
            yield from _tables(path, file, rows, separator, text)
        except UnicodeError as error:
            raise not_text(path, error, file, False) from None


def _tables(path: Path, file: TextIOWrapper, rows: int, separator: str, text: Sequence[str] | None) -> Iterator[Table]:
    first, separator = declared_separator(file.readline(), separator, file.encoding)
    recorder = _KeptLines(chain([first], file))
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
    refuse_zero_bytes(path, heading)
    if not heading.strip():
        raise DataError(f"{path} is empty; it needs a heading line and rows")
    heading_lines = reader.line_num
    rows_before, lines_before = 0, 0
    while True:
        part, found = records(rows)
        if not found and rows_before:
            return
        refuse_zero_bytes(path, part)
        names, lines, content = check_shape(path, heading + part, separator, rows_before, lines_before)
        frame = parse(path, content, names, text_among(names, text), separator)
        yield Table(path, frame, lines, rows_before)
        rows_before += len(frame)
        lines_before = reader.line_num - heading_lines
