"""Tables in comma-separated text, read strictly: from bytes to columns of numbers and text.

Everything that can be wrong with a person's file is answered by one line that names the file, the column, the row and the remedy.
Rows count from 1 without the heading; lines count from 1 with it, as an editor shows them.
"""

from __future__ import annotations

import csv
import gc
import hashlib
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...core.errors import DataError, nearest
from ...core.paths import refuse_pipe
from .opening import as_text, declared_separator, missing_file, not_text, open_bytes, opened

_NUMBERS = "iufb"  # kinds of types that are numbers
# Numbers are read to the last bit; from 3.1 on pandas does so by itself and warns about the option.
_EXACT: dict[str, Any] = {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Characters that stand between fields where it is not a comma, and what they are called."""


@dataclass(frozen=True)
class Table:
    """A table of raw columns: numbers where all cells of a column are numbers, text elsewhere, so that labels such as 01 stay what they
    are.

    ``path`` is the file, or what else the columns come from, for messages. ``lines`` is the line of the file of every row, None if row i is
    on line i + 1 (after a heading on line 1); ``before`` counts the rows of the file before this part of it. ``has_lines``: rows are lines
    of a text file.
    """

    path: Path | str
    frame: pd.DataFrame
    lines: NDArray[Any] | None = field(default=None, repr=False)
    before: int = 0
    has_lines: bool = True

    def place(self, row: int) -> str:
        """Return words for a 0-based row."""
        if not self.has_lines:
            return f"row {self.before + row + 1}"
        line = self.before + row + 2 if self.lines is None else int(self.lines[row])
        return f"row {self.before + row + 1} (line {line})"


def read_bytes(path: Path, once: bool = False) -> bytes:
    """Return the content of a file; a pipe is read only if nobody asks for the same content again (``once``)."""
    try:
        if not once:
            refuse_pipe(path)
        with open_bytes(path) as file:
            return file.read()
    except FileNotFoundError:
        raise missing_file(path) from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def decode(path: Path, raw: bytes, separator: str = ",", encoding: str | None = None) -> tuple[str, str]:
    """Return the text of a file, unpacked, and the separator of its fields, which the file may say (`declared_separator`)."""
    with opened(path, raw) as file:
        wrapped = as_text(file, encoding)
        try:
            text = wrapped.read()
        except UnicodeError as error:
            raise not_text(path, error, wrapped, True) from None
    refuse_zero_bytes(path, text)
    if not text.strip():
        raise DataError(f"{path} is empty; it needs a heading line and rows")
    return declared_separator(text, separator, wrapped.encoding)


def refuse_zero_bytes(path: Path, text: str) -> None:
    """Refuse text that is none."""
    if "\0" in text:
        raise DataError(f"{path} is not a text file (it has zero bytes); save it as CSV with the encoding UTF-8")


def read_table(
    path: Path,
    target: str | None,
    raw: bytes | None = None,
    separator: str = ",",
    text: Sequence[str] | None = (),
    encoding: str | None = None,
) -> Table:
    """Read a CSV file with a heading line, plain or packed; what is wrong with it is a `DataError`.

    ``target`` is the column of labels, which stays text; ``label_*`` stands for all columns whose names begin with ``label_``, None for no
    column. ``raw`` is the file's content, when it was read already. ``text`` are further columns that stay text (None: all). A first line
    ``sep=;`` says another ``separator``; ``encoding`` is as for `advcli.data.tables.opening.as_text`.
    """
    content, separator = decode(path, read_bytes(path) if raw is None else raw, separator, encoding)
    return table_of(path, content, separator, target, text)


def table_of(path: Path, content: str, separator: str, target: str | None, text: Sequence[str] | None) -> Table:
    """Return the table of a decoded text; the parameters as for `read_table`."""
    names, lines, content = check_shape(path, content, separator)
    targets = [] if target is None else find_target(path, target, names)
    frame = parse(path, content, names, None if text is None else [*targets, *text], separator)
    return Table(path, frame, lines)


def target_columns(target: str, names: Sequence[str]) -> list[str]:
    """Return the columns that a target means: the one of that name, or all that begin as the name does before a final ``*``."""
    if target.endswith("*") and target not in names:
        return [name for name in names if name.startswith(target[:-1])]
    return [target] if target in names else []


def parse(path: Path, text: str, names: list[str], as_text: Sequence[str] | None, separator: str) -> pd.DataFrame:
    """Return the frame of a text with a heading whose shape was checked; the columns among ``as_text``, or all (None), stay text."""
    collects = gc.isenabled()
    gc.disable()  # pandas makes some hundred objects a column, none of them garbage; looking for it takes longer than reading
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=0,
            names=names,
            index_col=False,
            dtype=dict.fromkeys(names if as_text is None else set(as_text) & set(names), str),
            keep_default_na=False,  # "NA" and "None" may be labels; missing numbers are found below
            **_EXACT,
            skipinitialspace=True,
            low_memory=False,
        )
        # columns of one type in one block, or every selection of columns looks at all of them
        return frame.copy()
    except (ValueError, OverflowError) as error:  # what the checks before let through
        raise DataError(f"{path} cannot be read as CSV: {str(error).splitlines()[0]}") from None
    finally:
        if collects:
            gc.enable()


def _records(text: str, separator: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)


def separator_of(text: str) -> str:
    """Return the separator by which the heading of a text has most fields, a comma where none has several."""

    def fields(separator: str) -> int:
        try:
            return len(next(filter(None, _records(text, separator))))
        except (csv.Error, StopIteration):
            return 0

    return max((",", *SEPARATORS), key=fields)


def check_shape(
    path: Path, text: str, separator: str, rows_before: int = 0, lines_before: int = 0
) -> tuple[list[str], NDArray[Any] | None, str]:
    """Return the names, the lines of the rows and the text without blank lines; every row has as many fields as the heading.

    ``rows_before`` and ``lines_before`` are those between the heading and the rows of a text that is a part of its file.
    """
    if '"' in text:
        heading, counts, lines = _quoted_shape(path, text, separator, lines_before)
    else:
        every = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        filled = [number for number, line in enumerate(every) if line.strip()]
        heading = next(csv.reader([every[filled[0]]], delimiter=separator, skipinitialspace=True))
        lines = [number + 1 for number in filled[1:]]
        counts = [every[number].count(separator) + 1 for number in filled[1:]]
        text = "\n".join(every[number] for number in filled)
    names = [name.strip() for name in heading]
    if len(names) == 1:
        for other, word in SEPARATORS.items():
            if other in names[0] and other != separator:
                raise DataError(f"{path} seems to be separated by {word}, not by {separator!r}; save it with commas")
    check_names(path, names)
    if not counts:
        raise DataError(f"{path} has a heading but no rows")
    for row, count in enumerate(counts):
        if count != len(names):
            raise DataError(
                f"{path}: row {rows_before + row + 1} (line {lines_before + lines[row]}) has {count} fields, the heading has {len(names)}; "
                "add or remove fields, or quote text that contains the separator"
            )
    regular = lines[-1] == len(lines) + 1 and lines_before == rows_before
    return names, None if regular else lines_before + np.asarray(lines), text


def _quoted_shape(path: Path, text: str, separator: str, lines_before: int) -> tuple[list[str], list[int], list[int]]:
    """Return the heading, and the number of fields and the first line of every row, of a text with quotation marks."""
    reader, start = _records(text, separator), 1
    heading: list[str] = []
    counts, lines = [], []
    try:
        for fields in reader:
            if fields and not heading:
                heading = fields
            elif fields:
                counts.append(len(fields))
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {lines_before + reader.line_num}: {error}; is a quotation mark not closed?") from None
    return heading, counts, lines


def check_names(path: Path | str, names: Sequence[str]) -> None:
    """Refuse a column without a name, and two of one name."""
    for position, name in enumerate(names):
        if not name:
            raise DataError(f"{path}: column {position + 1} has no name in the heading; name it or remove it")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{path} has more than one column named {' and '.join(map(repr, twice))}; rename them")


def find_target(path: Path | str, target: str, names: Sequence[str]) -> list[str]:
    """Return the columns that a target means, at least one; a `DataError` names those that are there."""
    columns = target_columns(target, names)
    if not columns and target == "target":  # by default: nobody asked for it
        there = f"{', '.join(names[:12])}{', ...' if len(names) > 12 else ''}"
        raise DataError(f"{path}: say which column holds the labels with dataset.target=COLUMN; it has {there}")
    if not columns:
        raise DataError(f"{path} has no column {target!r} for the target; {choose_column(target, names)} (dataset.target=...)")
    return columns


def listed(values: Sequence[Any]) -> str:
    """Return the first five values as words."""
    return ", ".join(map(str, values[:5])) + (", ..." if len(values) > 5 else "")


def is_number(column: pd.Series) -> bool:
    """Return whether a column came as numbers, or as true and false."""
    return column.dtype.kind in _NUMBERS


def number_columns(frame: pd.DataFrame) -> set[str]:
    """Return the names of the columns that `is_number`, without a look at each of them."""
    return {str(name) for name, kind in zip(frame.columns.tolist(), frame.dtypes.tolist(), strict=True) if kind.kind in _NUMBERS}


def choose_column(name: str, names: Sequence[str]) -> str:
    """Name the nearest columns, or some of them where nothing is near and there are many."""
    clause = nearest(name, names)
    return clause if len(clause) <= 200 else f"it has {len(names)} columns: {', '.join(names[:5])}, ..., {names[-1]}"


def table_sha256(table: Table, target: str = "target", ignore: Sequence[str] = ("split",)) -> str:
    """Return the canonical checksum of a table: shape, then every feature column in order, then the target.

    Names of columns, the way numbers are written, line ends and compression do not matter; the order of rows and columns and every value
    do. It recognises a data set that came another way than as the very file whose checksum is known.
    """
    frame = table.frame
    columns = [name for name in map(str, frame.columns) if name != target and name not in ignore] + [target]
    digest = hashlib.sha256(f"advcli table 1: {len(frame)} rows, {len(columns)} columns".encode())
    for name in columns:
        column = frame[name]
        values = column if is_number(column) else pd.to_numeric(column.astype(str).str.strip(), errors="coerce")
        numbers = values.to_numpy(np.float64)
        if not np.isnan(numbers).any():
            digest.update(b"number")
            digest.update((numbers + 0.0).astype("<f8").tobytes())  # adding 0.0 turns -0.0 into 0.0
        else:
            digest.update(b"text")
            for cell in column.astype(str).str.strip():
                encoded = cell.encode()
                digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()
