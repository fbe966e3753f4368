"""The identity of a results folder: what all its cells have in common, and whether all its files agree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import ResultsError
from ..core.files import read_json
from .tables import SCHEMA_VERSION, short_json

IDENTITY = "identity.json"

A_FILE = "a file, whose content counts cell by cell"
"""Replaces a path: the identity does not depend on the place of a file."""

_ABSENT = object()


def identity_text(identity: Any) -> str:
    """Return the text of identity.json."""
    return json.dumps(identity, indent=1, sort_keys=True) + "\n"


class Owner:
    """The configuration that a results folder belongs to, by its identity.json and by its cell files.

    ``stored`` is what identity.json says, None if it is ``missing`` or damaged, ``identity`` that or what the first cell says.
    """

    def __init__(self, folder: Path) -> None:
        file = folder / IDENTITY
        content = read_json(file)
        self.stored: Mapping[str, Any] | None = content if isinstance(content, dict) else None
        self.missing = not file.exists()
        self.identity, self._source = self.stored, file

    def add(self, path: Path, content: Mapping[str, Any]) -> None:
        """Take the identity that a cell's file states, none in a folder without a configuration; `ResultsError` for another one."""
        identity = content.get("identity")
        if identity is None or content["schema"] != SCHEMA_VERSION:
            return
        if self.identity is None:
            self.identity, self._source = identity, path
        elif not self.is_of(identity):
            raise ResultsError(
                f"{path} was made by another config than {self._source.name} in the same folder ({self.unlike(identity)}); "
                "one table cannot hold both: move it to another folder"
            )

    def is_of(self, other: Any) -> bool:
        """Tell whether another identity is the same."""
        return bool(self.identity == other)

    def unlike(self, other: Any) -> str:
        """Return in a few words how another identity differs."""
        old, new = _flatten(self.identity), _flatten(other)
        keys = [key for key in sorted({*old, *new}) if old.get(key, _ABSENT) != new.get(key, _ABSENT)]
        changes = [f"{key}: {_short(old.get(key, _ABSENT))} -> {_short(new.get(key, _ABSENT))}" for key in keys]
        return ", ".join(changes[:4]) + (f" and {len(keys) - 4} more" if len(keys) > 4 else "")


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping) and value:
        flat: dict[str, Any] = {}
        for key, item in value.items():
            flat |= _flatten(item, f"{prefix}.{key}" if prefix else str(key))
        return flat
    return {prefix: value}


def _short(value: Any) -> str:
    return "(absent)" if value is _ABSENT else short_json(value)
