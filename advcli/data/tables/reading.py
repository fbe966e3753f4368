"""Tables from files of any format: CSV text by the strict reader, parquet, feather and Excel by pandas."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import ConfigError, DataError, nearest
from ...core.files import check_unpacked
from ...core.paths import refuse_pipe
from .frames import frame_table
from .opening import missing_file
from .stream import stream_tables
from .table import Table, read_table

if TYPE_CHECKING:
    import pandas as pd

FORMATS = {"parquet": ("read_parquet", "pyarrow"), "feather": ("read_feather", "pyarrow"), "excel": ("read_excel", "openpyxl")}
"""Formats beside CSV: the function of pandas that reads one, and the package that it needs; `advcli[tables]` brings them."""

_AS_WRITTEN: dict[str, dict[str, Any]] = {"excel": {"dtype": object, "keep_default_na": False, "na_values": [""]}}
"""What pandas is told, so that cells of text stay as they are written: 01, NA."""

SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".xlsx": "excel", ".xlsm": "excel"}


def format_of(path: Path, form: str = "csv") -> str:
    """Return the format of a file: the one that is asked for, or, where that is CSV, the one that the end of its name tells.

    Raises
    ------
    ConfigError
        No such format.
    """
    if form != "csv":
        if form not in FORMATS:
            raise ConfigError(f"dataset.format={form} does not exist; {nearest(form, ['csv', 'svmlight', *FORMATS])}")
        return form
    return SUFFIXES.get(path.suffix.lower(), "csv")


def read_frame(path: Path, form: str) -> pd.DataFrame:
    """Return a file of one of `FORMATS` as a frame; of Excel the first sheet.

    Raises
    ------
    DataError
        Missing, a folder, damaged, or no package that reads it.
    """
    import pandas as pd

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
        return getattr(pd, function)(path, **_AS_WRITTEN.get(form, {}))
    except ImportError:
        raise DataError(f'{path}: reading {form} files takes the package {package}; pip install "advcli[tables]", or save as CSV') from None
    except Exception as error:  # each engine has its own
        reason = str(error).strip().splitlines()
        raise DataError(f"{path} cannot be read as {form}: {reason[0] if reason else type(error).__name__}") from None


def read_any(
    path: Path, target: str | None, form: str = "csv", separator: str = ",", text: Sequence[str] | None = (), encoding: str | None = None
) -> Table:
    """Read a file as a table; CSV as by `advcli.data.tables.table.read_table`, whose ``separator``, ``text`` and ``encoding`` these are.

    Parameters
    ----------
    path : Path
    target : str or None
        The column of labels, which stays text; None: there need be none.
    form : str
        As for `format_of`.
    """
    found = format_of(path, form)
    if found != "csv":
        return frame_table(read_frame(path, found), target, str(path))
    return read_table(path, target, separator=separator, text=text, encoding=encoding)


def read_parts(
    path: Path, rows: int, *, separator: str = ",", text: Sequence[str] | None = (), encoding: str | None = None
) -> Iterator[Table]:
    """Yield a file as tables of at most ``rows`` rows; files that are not CSV are in memory as a whole."""
    form = format_of(path)
    if form == "csv":
        yield from stream_tables(path, rows, separator=separator, text=text, encoding=encoding)
        return
    frame = frame_table(read_frame(path, form), None, str(path)).frame
    for start in range(0, len(frame), rows):
        yield Table(path, frame.iloc[start : start + rows].reset_index(drop=True), before=start, has_lines=False)
