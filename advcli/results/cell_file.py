"""The file of one cell: its content, its checksum, and the checks that it must pass before its rows are used.

A cell file is one line of JSON whose last entry, ``sha256``, is the SHA-256 of the line without that entry.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.files import read_regular, reason
from .tables import NUMBERS_VERSION, RUN_COLUMNS, SCHEMA_VERSION, SEARCH_COLUMNS, pack, plain

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
    """Return the text of a cell's file: the keys of the cell and of its configuration, and its rows of runs.csv and search.csv.

    ``identity`` is what all cells of the folder have in common, None where the folder belongs to no configuration; ``about`` are facts.
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
    """Return the content of a cell's file, whose rows `tables.unpack` gives; ``schema`` may belong to another version of the program.

    Raises `DamagedError` where the file is not what the program wrote for the cell of that name.
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
    if seal is None:
        raise DamagedError("its checksum is missing")
    if hashlib.sha256(raw[: seal.start()] + b"}").hexdigest().encode() != seal[1]:
        raise DamagedError("its checksum does not fit its content")
    if content.get("schema") == SCHEMA_VERSION:
        _check_names(path, content)
    return content


def read_current(path: Path) -> dict[str, Any] | None:
    """Return the content of a cell's file; None if it is not there, damaged, or of another version of the schema."""
    try:
        content = read_cell_file(path)
    except (FileNotFoundError, DamagedError):
        return None
    return content if content["schema"] == SCHEMA_VERSION else None


def cell_files(folder: Path) -> list[Path]:
    """Return the cell files of a folder by name, including failed cells, without files set aside as damaged."""
    try:
        return sorted(
            file for file in folder.iterdir() if file.suffix == ".json" and not file.name.startswith(".") and DAMAGED not in file.name
        )
    except OSError:
        return []


def _check_names(path: Path, content: Mapping[str, Any]) -> None:
    if not isinstance(content.get("schema"), int) or not all(isinstance(content.get(name), str) for name in ("key", "request")):
        raise DamagedError("it has no schema, key or request")
    name = path.name.removesuffix(".json")
    if name != (f"{content['request']}{FAILED}" if name.endswith(FAILED) else content["key"]):
        raise DamagedError(f"it holds the cell {content['key']}")
