"""Tables from files of any format, whole or some rows at a time: CSV by the strict reader, others as frames that pandas reads."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...core.errors import ConfigError, DataError, nearest
from ...core.files import check_unpacked
from ...core.paths import refuse_pipe
from .cells import cell_text
from .opening import as_text, declared_separator, missing_file, not_text, opened
from .table import Table, check_names, check_shape, find_target, is_number, parse, refuse_zero_bytes

FORMATS = {"parquet": ("read_parquet", "pyarrow"), "feather": ("read_feather", "pyarrow"), "excel": ("read_excel", "openpyxl")}
"""Formats beside CSV: the function of pandas that reads one, and the package that it needs; `advcli[tables]` brings them."""

SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".xlsx": "excel", ".xlsm": "excel"}

# What columns of numbers become, by the kind of their type: extension types (nullable, Arrow) and narrow ones end here.
_PLAIN = {"i": np.int64, "u": np.uint64, "f": np.float64, "b": np.bool_}


def format_of(path: Path, form: str = "csv") -> str:
    """Return the format of a file: the one that is asked for, or, where that is CSV, the one that the end of its name tells."""
    if form != "csv":
        if form not in FORMATS:
            raise ConfigError(f"dataset.format={form} does not exist; {nearest(form, ['csv', 'svmlight', *FORMATS])}")
        return form
    return SUFFIXES.get(path.suffix.lower(), "csv")


def read_frame(path: Path, form: str) -> pd.DataFrame:
    """Return a file of one of `FORMATS` as a frame; of Excel the first sheet."""
    function, package = FORMATS[form]
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file; name the {form} file in it")
    refuse_pipe(path)
    if not path.is_file():
        raise missing_file(path)
    try:
        if form == "excel" and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                check_unpacked(archive, path.stat().st_size)
        # cells of text stay as they are written: 01, NA
        how: dict[str, Any] = {"dtype": object, "keep_default_na": False, "na_values": [""]} if form == "excel" else {}
        return getattr(pd, function)(path, **how)
    except ImportError:
        raise DataError(f'{path}: reading {form} files takes the package {package}; pip install "advcli[tables]", or save as CSV') from None
    except Exception as error:  # each engine has its own
        reason = str(error).strip().splitlines()
        raise DataError(f"{path} cannot be read as {form}: {reason[0] if reason else type(error).__name__}") from None


def frame_table(frame: pd.DataFrame, target: str | None, where: str) -> Table:
    """Return a frame of any types as a table: the target as text, other columns as numbers where their type is one, else as text.

    ``target`` as for `read_table`; ``where`` is what messages call the frame, such as its file. A cell without a value (None, NaN, NA) is
    one in the table.
    """
    names = [str(name).strip() for name in frame.columns]
    check_names(where, names)
    if not len(frame):
        raise DataError(f"{where} has columns but no rows")
    for name, (_, column) in zip(names, frame.items(), strict=True):
        _refuse_broken(column, name, where)
    targets = [] if target is None else find_target(where, target, names)
    special, typed = set(targets), (_typed(column) for _, column in frame.items())
    columns = {
        name: _plain(column) if is_number(column) and name not in special else cell_text(column).reset_index(drop=True)
        for name, column in zip(names, typed, strict=True)
    }
    return Table(where, pd.DataFrame(columns), has_lines=False)


def _refuse_broken(column: pd.Series, name: str, where: str) -> None:
    """Refuse text with half of a surrogate pair, which Python holds and no encoding writes, nor a column of text by Arrow."""
    cells = [cell if isinstance(cell, str) else "" for cell in column] if column.dtype.kind == "O" else []
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        row = next(at for at, cell in enumerate(cells) if any("\ud800" <= letter <= "\udfff" for letter in cell))
        raise DataError(f"{where}: column {name!r} holds half a letter in row {row + 1}, which no file can hold; correct it") from None


def _plain(column: pd.Series) -> pd.Series:
    if column.isna().any():
        return pd.Series(column.to_numpy(np.float64, na_value=np.nan))
    return pd.Series(column.to_numpy(_PLAIN[column.dtype.kind]))


def _typed(column: pd.Series) -> pd.Series:
    """Return a column of objects that are all numbers, or all true and false, with the type of these; each cell has its own in Excel."""
    if column.dtype != object:
        return column
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind == "decimal":
        return column.astype(np.float64)
    return column.convert_dtypes() if kind in ("integer", "floating", "mixed-integer-float", "boolean") else column


def read_parts(
    path: Path, rows: int, *, separator: str = ",", text: Sequence[str] | None = (), encoding: str | None = None
) -> Iterator[Table]:
    """Yield a file as tables of at most ``rows`` rows; the other parameters as for `read_table`.

    CSV, plain, packed or from a pipe, is read once, a part at a time, as strictly as by `read_table`: a fault in a later part is raised
    when that part is reached. Files of other formats are in memory as a whole.
    """
    form = format_of(path)
    if form != "csv":
        frame = frame_table(read_frame(path, form), None, str(path)).frame
        for start in range(0, len(frame), rows):
            yield Table(path, frame.iloc[start : start + rows].reset_index(drop=True), before=start, has_lines=False)
        return
    with opened(path) as packed:
        file = as_text(packed, encoding)
        try:
            yield from _csv_parts(path, file, rows, separator, text)
        except UnicodeError as error:
            raise not_text(path, error, file, False) from None


def _csv_parts(path: Path, file: TextIOWrapper, rows: int, separator: str, text: Sequence[str] | None) -> Iterator[Table]:
    first, separator = declared_separator(file.readline(), separator, file.encoding)
    lines: list[str] = []  # since the last part: a CSV reader on top tells where records end, quoted line breaks and all

    def recorded() -> Iterator[str]:
        for line in chain([first], file):
            lines.append(line)
            yield line

    reader = csv.reader(recorded(), delimiter=separator, skipinitialspace=True, strict=True)

    def records(most: int) -> tuple[str, int]:
        """Return the text of the next records, blank lines included, and how many there are."""
        count = 0
        try:
            for fields in reader:
                count += fields not in ([], [""])  # blank lines are none
                if count == most:
                    break
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: {error}; is a quotation mark not closed?") from None
        part = "".join(lines)
        lines.clear()
        refuse_zero_bytes(path, part)
        return part, count

    heading, _ = records(1)
    if not heading.strip():
        raise DataError(f"{path} is empty; it needs a heading line and rows")
    heading_lines = reader.line_num
    rows_before, lines_before = 0, 0
    while True:
        part, count = records(rows)
        if not count and rows_before:
            return
        names, line_numbers, content = check_shape(path, heading + part, separator, rows_before, lines_before)
        frame = parse(path, content, names, text, separator)
        yield Table(path, frame, line_numbers, rows_before)
        rows_before += len(frame)
        lines_before = reader.line_num - heading_lines
