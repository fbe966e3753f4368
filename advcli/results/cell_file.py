"""The file of one cell: what stands in it, its checksum, and what a file must be for its rows to be believed.

A cell file is one line of JSON whose last entry, ``sha256``, is the SHA-256 of the line without that entry. Older versions of the program
wrote neither it nor the ``identity`` of the folder: such a file is believed if the name is the key, every column holds values of its kind,
and splits and metrics are those of whole cells.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.files import read_regular, reason
from .tables import BOOLEANS, INTEGERS, NEEDED, NUMBERS_VERSION, RUN_COLUMNS, SCHEMA_VERSION, SEARCH_COLUMNS, STATUSES, STRINGS, pack, plain

FAILED = ".failed"
"""Stands before ``.json`` in the name of a cell that failed, which is named by its request."""
DAMAGED = ".damaged-"
"""Stands before a number and ``.json`` in the name of a damaged file that was set aside; nothing reads it."""

_SEAL = re.compile(rb',"sha256":"([0-9a-f]{64})"\}\n\Z')


class DamagedError(Exception):
    """A cell file that cannot be believed; the text says why."""


def cell_text(
    key: str,
    request: str,
    identity: Mapping[str, Any] | None,
    about: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    search_rows: Sequence[Mapping[str, Any]],
) -> str:
    """Return the text of a cell's file.

    Parameters
    ----------
    key, request : str
        Keys of the cell and of its configuration alone.
    identity : mapping or None
        What all cells of the folder have in common; None where the folder belongs to no configuration.
    about : mapping
        Facts about the cell.
    rows, search_rows : sequences of mappings
        Rows of runs.csv and search.csv.
    """
    content = {
        "schema": SCHEMA_VERSION,
        "numbers": NUMBERS_VERSION,
        "key": key,
        "request": request,
        "identity": None if identity is None else plain(identity),
        "about": plain(about),
        "runs": pack(rows, RUN_COLUMNS),
        "search": pack(search_rows, SEARCH_COLUMNS),
    }
    text = json.dumps(content, separators=(",", ":"))
    return f'{text[:-1]},"sha256":"{hashlib.sha256(text.encode()).hexdigest()}"}}\n'


def read_cell_file(path: Path) -> dict[str, Any]:
    """Return the content of a cell's file, whose rows `rows.unpack` gives; ``schema`` may be that of another version of the program.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DamagedError
        The file is not what the program wrote for the cell of that name.
    """
    try:
        raw = read_regular(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(reason(error)) from None
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        raise DamagedError("empty" if not raw.strip() else "not JSON to its end") from None
    if not isinstance(content, dict):
        raise DamagedError("no JSON object")
    seal = _SEAL.search(raw)
    if seal is not None:
        if hashlib.sha256(raw[: seal.start()] + b"}").hexdigest().encode() != seal[1]:
            raise DamagedError("its checksum is not that of its content")
    elif "sha256" in content or "identity" in content:
        raise DamagedError("its checksum is missing")
    if seal is None or content.get("schema") == SCHEMA_VERSION:
        _check_names(path, content)
    if seal is None and content["schema"] == SCHEMA_VERSION:
        _check_unsealed(content)
    return content


def _check_names(path: Path, content: Mapping[str, Any]) -> None:
    if not isinstance(content.get("schema"), int) or not all(isinstance(content.get(name), str) for name in ("key", "request")):
        raise DamagedError("it has no schema, key or request")
    name = path.name.removesuffix(".json")
    if name != (f"{content['request']}{FAILED}" if name.endswith(FAILED) else content["key"]):
        raise DamagedError(f"it holds the cell {content['key']}")


def _check_unsealed(content: Mapping[str, Any]) -> None:
    """Check what the checksum would have shown."""
    numbers = content.get("numbers", 0)
    if not isinstance(content.get("about"), dict) or not isinstance(numbers, int) or isinstance(numbers, bool):
        raise DamagedError("it does not say what it is about")
    for table in ("runs", "search"):
        _check_table(content.get(table), table)
    table = content["runs"]
    columns = {column: [values[at] for values in table["values"]] for at, column in enumerate(table["columns"])}
    if missing := [column for column in NEEDED if column not in columns]:
        raise DamagedError(f"its rows have no column {missing[0]!r}")
    if not table["values"]:
        raise DamagedError("it has no rows")
    if not set(columns["status"]) <= set(STATUSES):
        raise DamagedError("a row has an unknown status")
    if None in columns["metric"] or any(cell not in (None, content["key"]) for cell in columns["cell"]):
        raise DamagedError("a row is of another cell")
    places = list(zip(columns["split"], columns["metric"], strict=True))
    splits = {split for split in columns["split"] if split is not None}
    # counts of the algorithm, n_..., need not be those of every split
    metrics = {metric for metric in columns["metric"] if not metric.startswith("n_")}
    whole = {place for place in places if place[1] in metrics}
    if len(set(places)) < len(places) or len(whole) < len(splits) * len(metrics) or splits != set(range(1, len(splits) + 1)):
        raise DamagedError("its rows are not one for each split and metric")


def _check_table(table: Any, name: str) -> None:
    shaped = isinstance(table, dict) and isinstance(table.get("columns"), list) and isinstance(table.get("values"), list)
    if not shaped or not all(isinstance(column, str) for column in table["columns"]):
        raise DamagedError(f"its part {name!r} is no table")
    columns = table["columns"]
    if len(set(columns)) < len(columns) or not all(isinstance(row, list) and len(row) == len(columns) for row in table["values"]):
        raise DamagedError(f"its part {name!r} has rows that do not fit its columns")
    for at, column in enumerate(columns):
        kinds: tuple[type, ...] = (int, float)
        if column in BOOLEANS:
            kinds = (bool,)
        elif column in STRINGS:
            kinds = (str,)
        elif column in INTEGERS:
            kinds = (int,)
        for row in table["values"]:
            if row[at] is not None and (not isinstance(row[at], kinds) or (bool not in kinds and isinstance(row[at], bool))):
                raise DamagedError(f"its column {column!r} holds {str(row[at])[:40]!r}")
