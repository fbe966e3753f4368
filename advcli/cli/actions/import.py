"""The action ``import``: anybody's table of scores becomes a results folder."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

from ...config import Settings
from ...config.words import command, word
from ...core.errors import ConfigError, DataError
from ...core.paths import expanded
from ..console import short
from ..folders import refuse_file
from ..task import Task


class Import(Task):
    """Make a results folder of a table of scores that another program wrote: CSV, parquet, Excel or JSON lines.

    Tables are tidy (one score a row) or wide (a column of scores for each method, metric or data set); scores are of splits, or of items
    such as questions. Numbers are kept exactly. Keys of columns are written without ``imported.``: ``dataset=COLUMN method=COLUMN``.
    """

    section = "Check, keep and share"
    place = 40
    summary = "take over a table of anybody's scores as a results folder"
    usage = (
        ("import FILE out=results/NAME", "which columns were taken for what is said; FILE is .csv, .jsonl, .parquet or .xlsx"),
        ("import FILE out=results/NAME dataset=COLUMN method=COLUMN", "name columns; also split, item, metric, value, n_train, n_test"),
        ("import FILE out=results/NAME method=[A,B] metric=accuracy", "a wide table with a column for each method"),
    )
    example = "advcli import scores.csv out=results/theirs"
    keys = ("out", "imported")

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        first, *rest = words or [""]
        named = bool(first) and not first.startswith(("-", "+", "~")) and "=" not in first
        self.file = first if named else ""
        self.overrides = [_full(text) for text in (rest if named else words)]

    def act(self, settings: Settings) -> None:
        """Read the file, check all of it, write the folder."""
        if not self.file:
            raise ConfigError("advcli import needs a FILE first, such as advcli import scores.csv out=results/theirs")
        out = self.needed(settings.out, "out=results/NAME, the results folder to make")
        refuse_file(out)
        path = expanded(self.file)
        from ...core.files import file_sha256
        from ...results.importing import read_scores

        table, places = _read(path)
        options = dict(settings.imported)
        keys = {key: options.pop(key) for key in ("dataset", "method", "split", "item", "metric", "value", "n_train", "n_test")}
        source = {"file": path.name, "sha256": file_sha256(path)}
        try:
            found = read_scores(table, keys, **options, name=path.name.split(".")[0], places=places, source=source)
        except (ConfigError, DataError) as error:
            raise type(error)(f"{self.file}: {error}") from None
        folder = found.write(out, ["advcli", "import", *self.words])
        print("; ".join(found.said))
        sizes = ((len(found.methods), "method"), (len(found.datasets), "data set"), (len(found.scores), "score"))
        counts = ", ".join(f"{size} {noun}{'' if size == 1 else 's'}" for size, noun in sizes)
        print(f"{short(folder.path)}: {counts}; {command('report', results=short(folder.path))} makes its tables")


_SHORT = ("dataset", "method", "metric", "split", "item", "value", "n_train", "n_test", "direction", "percent", "incomplete")


def _full(text: str) -> str:
    """Return a key of columns with the word ``imported``; the heading of a column may have any characters."""
    key, equals, value = text.partition("=")
    if key not in _SHORT or not equals:
        return text
    listed = re.fullmatch(r"\[(.*)\]", value)
    if listed:
        return word(f"imported.{key}", [part.strip().strip("'\"") for part in listed[1].split(",")])
    return word(f"imported.{key}", None if value == "null" else value.strip("'\""))


def _read(path: Path) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the columns of a file and words for the place of each row."""
    from ...data.tables.opening import NotTextError, decode, read_bytes
    from ...data.tables.table import format_of, read_frame, separator_of
    from ...results.importing import columns_of

    lines = re.search(r"\.(jsonl|ndjson)(\.gz)?$", path.name.lower())
    form = "csv" if lines else format_of(path)
    if form != "csv":
        columns = columns_of(read_frame(path, form))
        return columns, [f"row {number}" for number in range(1, max(map(len, columns.values()), default=0) + 1)]
    try:
        text, separator = decode(path, read_bytes(path))
    except NotTextError as error:  # the option that it names is of data sets
        raise DataError(re.sub(r"dataset\.encoding.*?, or ", "", str(error))) from None
    if lines:
        return _json_lines(path, text)
    return _separated(path, text, separator_of(text) if separator == "," else separator)


def _separated(path: Path, text: str, separator: str) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the columns of a text as texts; empty columns without a heading, which a spreadsheet leaves at its end, are left out."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    rows, places = [], []
    start = 1
    try:
        for fields in reader:
            if any(map(str.strip, fields)):
                rows.append(fields)
                places.append(f"line {start}")
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}; is a quotation mark not closed?") from None
    heading, *rows = rows
    names = [name.strip() for name in heading]
    for fields, place in zip(rows, places[1:], strict=True):
        if len(fields) > len(names) and any(map(str.strip, fields[len(names) :])):
            raise DataError(f"{path}, {place}: {len(fields)} fields, the heading has {len(names)}; quote text that contains the separator")
    columns: dict[str, list[Any]] = {}
    for at, name in enumerate(names):
        column = [fields[at] if at < len(fields) else "" for fields in rows]
        if name in columns:
            raise DataError(f"{path} has more than one column named {name!r}; rename them")
        if not name and any(map(str.strip, column)):
            raise DataError(f"{path}: column {at + 1} has no name in the heading; name it or remove it")
        if name:
            columns[name] = column
    return columns, places[1:]


def _json_lines(path: Path, text: str) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the columns of a text with a JSON object a line; columns of lists and objects are left out."""
    records, places = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: no JSON ({error}); write one object a line") from None
        if not isinstance(record, dict):
            raise DataError(f'{path}, line {number}: no JSON object; write one object a line, such as {{"model": "A", "score": 0.5}}')
        records.append(record)
        places.append(f"line {number}")
    names = dict.fromkeys(name for record in records for name in record)
    columns = {str(name).strip(): [record.get(name) for record in records] for name in names}
    return {name: column for name, column in columns.items() if not any(isinstance(entry, dict | list) for entry in column)}, places
