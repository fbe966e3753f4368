"""Tables of columns of numbers and text: CSV, read strictly, and files of other formats as frames that pandas reads.

Everything that can be wrong with a person's file is answered by one line that names the file, the column, the row and the remedy.
Rows count from 1 without the heading; lines count from 1 with it, as an editor shows them.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...core.errors import DataError, UnknownNameError, nearest
from ...core.files import check_unpacked
from ...core.garbage import uncollected
from ...core.paths import refuse_pipe
from .cells import cell_text, is_number, number_columns
from .conllu import read_conllu
from .opening import as_text, declared_separator, decode, missing_file, not_text, opened, read_bytes, refuse_zero_bytes
from .options import DEFAULTS, TableOptions, meant

FORMATS = {"parquet": ("read_parquet", "pyarrow"), "feather": ("read_feather", "pyarrow"), "excel": ("read_excel", "openpyxl")}
"""Formats beside CSV: the function of pandas that reads one, and the package that it needs; `advcli[tables]` brings them."""

SUFFIXES = {".conllu": "conllu", ".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".xlsx": "excel", ".xlsm": "excel"}

# What columns of numbers become, by the kind of their type: extension types (nullable, Arrow) and narrow ones end here.
_PLAIN = {"i": np.int64, "u": np.uint64, "f": np.float64, "b": np.bool_}

UNLABELLED = TableOptions(target=None)
"""The options of a table whose rows are to be predicted."""

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Characters that stand between fields where it is not a comma, and what they are called."""


@dataclass(frozen=True)
class Table:
    """A table of raw columns: numbers where all cells of a column are numbers, text elsewhere, so that labels such as 01 stay what they
    are.

    ``path`` is the file, or what else the columns come from, for messages; ``options`` say what the columns mean. ``lines`` is the line of
    the file of every row, None if row i is on line i + 1 (after a heading on line 1); ``before`` counts the rows of the file before this
    part of it. ``has_lines``: rows are lines of a text file.
    """

    path: Path | str
    frame: pd.DataFrame
    options: TableOptions = field(default=DEFAULTS, repr=False)
    lines: NDArray[Any] | None = field(default=None, repr=False)
    before: int = 0
    has_lines: bool = True

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(map(str, self.frame.columns))

    @cached_property
    def numbers(self) -> set[str]:
        """The names of the columns of numbers (`advcli.data.tables.cells.is_number`)."""
        return number_columns(self.frame)

    @property
    def targets(self) -> list[str]:
        """The columns that the target of the options means (`TableOptions.target_columns`)."""
        return self.options.target_columns(self.names)

    def text(self, name: str) -> pd.Series:
        """Return the cells of a column as stripped text (`advcli.data.tables.cells.cell_text`)."""
        return cell_text(self.frame[name])

    def place(self, row: int) -> str:
        """Return words for a 0-based row."""
        if not self.has_lines:
            return f"row {self.before + row + 1}"
        line = self.before + row + 2 if self.lines is None else int(self.lines[row])
        return f"row {self.before + row + 1} (line {line})"

    def refuse_where(self, mask: Any, name: str, what: str, remedy: str = "fill it or remove the row") -> None:
        """Refuse a column that something is wrong with in the rows of a mask (n,); the message names the first of them."""
        rows = np.flatnonzero(mask)
        if rows.size:
            raise DataError(f"{self.path}: column {name!r} {what} in {self.place(int(rows[0]))}; {remedy}")


def read_table(path: Path, options: TableOptions = DEFAULTS, form: str = "csv", raw: bytes | None = None) -> Table:
    """Read a file of any format; what is wrong with it is a `DataError`.

    Columns of labels, and the columns of `TableOptions.text`, stay text. CSV is plain or packed and has a heading line; a first line
    ``sep=;`` gives another separator than the options. ``form`` is as for `format_of`; ``raw`` is the content of a CSV file that was read
    already.
    """
    form = format_of(path, form)
    if form == "conllu":
        frame, lines = read_conllu(path, decode(path, read_bytes(path) if raw is None else raw, "\t", options.encoding)[0])
        return replace(frame_table(frame, str(path), options), lines=lines, has_lines=True)
    if form != "csv":
        return frame_table(read_frame(path, form), str(path), options)
    content, separator = decode(path, read_bytes(path) if raw is None else raw, options.separator, options.encoding)
    return table_of(path, content, separator, options)


def table_of(path: Path, content: str, separator: str, options: TableOptions) -> Table:
    """Return the table of a decoded text whose fields are separated by ``separator``."""
    names, lines, content = check_shape(path, content, separator)
    targets, text = find_target(path, options, names), options.text
    frame = parse(path, content, names, None if text is None else [*targets, *text], separator)
    return Table(path, frame, options, lines)


def exact_numbers() -> dict[str, Any]:
    """Return what lets pandas read numbers to the last bit: from 3.1 on it does so by itself, and warns about the option."""
    return {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}


def parse(path: Path, text: str, names: list[str], as_text: Sequence[str] | None, separator: str) -> pd.DataFrame:
    """Return the frame of a text with a heading whose shape was checked; the columns among ``as_text``, or all (None), stay text."""
    try:
        with uncollected():  # pandas makes some hundred objects a column
            frame = pd.read_csv(
                io.StringIO(text),
                sep=separator,
                header=0,
                names=names,
                index_col=False,
                dtype=dict.fromkeys(names if as_text is None else set(as_text) & set(names), str),
                keep_default_na=False,  # "NA" and "None" may be labels; missing numbers are found below
                **exact_numbers(),
                skipinitialspace=True,
                low_memory=False,
            )
            # columns of one type in one block, or every selection of columns looks at all of them
            return frame.copy()
    except (ValueError, OverflowError) as error:  # what the checks before let through
        raise DataError(f"{path} cannot be read as CSV: {str(error).splitlines()[0]}") from None


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


def find_target(path: Path | str, options: TableOptions, names: Sequence[str]) -> list[str]:
    """Return the columns of labels, which stay text: the target's, or the first column of costs, from which labels follow.

    Without a target there are none; a `DataError` for a missing column names the columns of the table.
    """
    for pattern in options.several:
        if not any(meant(name, pattern) for name in names):
            key = "target" if options.shares else "annotators"
            raise DataError(f"{path} has no column {pattern!r}, which dataset.{key} names; {choose_column(pattern.rstrip('*'), names)}")
    target = options.costs[0] if options.costs else options.target
    columns = [name for name in options.costs[:1] if name in names] if options.costs else options.target_columns(names)
    if target is None or columns:
        return columns
    if target == "target":  # by default: nobody asked for it
        there = f"{', '.join(names[:12])}{', ...' if len(names) > 12 else ''}"
        raise DataError(f"{path}: say which column holds the labels with dataset.target=COLUMN; it has {there}")
    raise DataError(f"{path} has no column {target!r} for the target; {choose_column(target, names)} (dataset.target=...)")


def listed(values: Sequence[Any]) -> str:
    """Return the first five values as words."""
    return ", ".join(map(str, values[:5])) + (", ..." if len(values) > 5 else "")


def choose_column(name: str, names: Sequence[str]) -> str:
    """Name the nearest columns, or some of them where nothing is near and there are many."""
    clause = nearest(name, names)
    return clause if len(clause) <= 200 else f"it has {len(names)} columns: {', '.join(names[:5])}, ..., {names[-1]}"


def table_sha256(table: Table, target: str = "target") -> str:
    """Return the canonical checksum of a table: shape, then every feature column in order, then the target; a column ``split`` is left out.

    Names of columns, the way numbers are written, line ends and compression do not matter; the order of rows and columns and every value
    do. It recognises a data set that came another way than as the very file whose checksum is known.
    """
    frame = table.frame
    columns = [name for name in table.names if name not in (target, "split")] + [target]
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


# ---- files of other formats, and files of any format some rows at a time ------------------------------------------------
def format_of(path: Path, form: str = "csv") -> str:
    """Return the format of a file: ``form``, or, where that is ``csv``, the format by the end of the file's name."""
    if form != "csv":
        if form not in ("conllu", *FORMATS):
            raise UnknownNameError(f"dataset.format={form} does not exist; {nearest(form, ['csv', 'svmlight', 'conllu', *FORMATS])}")
        return form
    return SUFFIXES.get(path.suffix.lower(), "csv")


def read_frame(path: Path, form: str) -> pd.DataFrame:
    """Return a file of one of `FORMATS`, or CoNLL-U, as a frame; of Excel the first sheet."""
    if form == "conllu":
        return read_conllu(path, decode(path, read_bytes(path), "\t", None)[0])[0]
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


def frame_table(frame: pd.DataFrame, where: str, options: TableOptions = UNLABELLED) -> Table:
    """Return a frame of any types as a table: columns of labels as text, others as numbers where their type is one, else as text.

    ``where`` is what messages call the frame, such as its file. A cell without a value (None, NaN, NA) is one in the table.
    """
    names = [str(name).strip() for name in frame.columns]
    check_names(where, names)
    if not len(frame):
        raise DataError(f"{where} has columns but no rows")
    for name, (_, column) in zip(names, frame.items(), strict=True):
        _refuse_broken(column, name, where)
    special, typed = set(find_target(where, options, names)), (_typed(column) for _, column in frame.items())
    columns = {
        name: _plain(column) if is_number(column) and name not in special else cell_text(column).reset_index(drop=True)
        for name, column in zip(names, typed, strict=True)
    }
    return Table(where, pd.DataFrame(columns), options, has_lines=False)


def _refuse_broken(column: pd.Series, name: str, where: str) -> None:
    """Refuse text with half of a surrogate pair, which Python holds and no encoding writes, nor a column of text by Arrow."""
    cells = [cell if isinstance(cell, str) else "" for cell in column] if column.dtype.kind == "O" else []
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        row = next(place for place, cell in enumerate(cells) if any("\ud800" <= letter <= "\udfff" for letter in cell))
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
    if kind in ("integer", "floating", "mixed-integer-float", "boolean"):
        # pandas 2.3 raises where whole numbers have more than 64 bits; such a column becomes text
        with contextlib.suppress(OverflowError):
            return column.convert_dtypes()
    return column


def read_parts(
    path: Path, rows: int, *, separator: str = ",", text: Sequence[str] | None = (), encoding: str | None = None
) -> Iterator[Table]:
    """Yield a file as tables of at most ``rows`` rows; the other parameters as for `read_table`.

    CSV, plain, packed or from a pipe, is read once, a part at a time, as strictly as by `read_table`: a fault in a later part is raised
    when that part is reached. Files of other formats are in memory as a whole.
    """
    form = format_of(path)
    if form != "csv":
        frame = frame_table(read_frame(path, form), str(path)).frame
        for start in range(0, len(frame), rows):
            yield Table(path, frame.iloc[start : start + rows].reset_index(drop=True), UNLABELLED, before=start, has_lines=False)
        return
    with opened(path) as packed:
        file = as_text(packed, encoding)
        try:
            yield from _csv_parts(path, file, rows, separator, text)
        except UnicodeError as error:
            raise not_text(path, error, file, False) from None


def _csv_parts(path: Path, file: io.TextIOWrapper, rows: int, separator: str, text: Sequence[str] | None) -> Iterator[Table]:
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
        yield Table(path, frame, UNLABELLED, line_numbers, rows_before)
        rows_before += len(frame)
        lines_before = reader.line_num - heading_lines
