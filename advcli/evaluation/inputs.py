"""The files that the options of a cell name: the content of a file is part of the cell, the place of the file is not.

Losses, learners, sources of data and noise declare which of their options are paths. An option that nobody declares, such as one of an
estimator from another package, is taken for a path where its text looks like one and a file is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .. import data, learners
from ..core.files import file_sha256
from ..core.paths import expanded
from ..data.labels.noise import PATHS
from ..results.tables import plain

GROUPS = ("loss", "features", "solver", "noise")
"""The groups whose files count by their bytes; files of ``dataset`` count by the rows and labels that are read from them."""

_CHOICES = ("name", "learner", "base", "source", "description")
"""Options of a group itself that name a choice or explain it."""


def path_of(text: str) -> Path:
    """Return the absolute path that an option names, with symbolic links resolved."""
    return Path(os.path.realpath(expanded(text)))


def with_paths(group: str, options: Any, change: Callable[[str, str], Any]) -> Any:
    """Return the options of a group, in which ``change(dotted key, text)`` replaces every path."""
    declared = _declared(group, options or {})

    def changed(value: Any, key: str) -> Any:
        if isinstance(value, Mapping):
            skipped = _CHOICES if key == group else ()
            return {name: item if name in skipped else changed(item, f"{key}.{name}") for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [changed(item, f"{key}.{place}") for place, item in enumerate(value)]
        if isinstance(value, str | Path) and (_last(key) in declared or _is_file(str(value))):
            return change(key, str(value))
        return value

    return changed(options, group)


def _declared(group: str, options: Mapping[str, Any]) -> frozenset[str]:
    if group == "dataset":
        return data.path_names(options)
    if group == "noise":
        return PATHS
    return learners.path_names(options) if group == "loss" else frozenset()


def _last(key: str) -> str:
    """Return the name of the option that a dotted key is of, whose elements are numbered."""
    return next(part for part in reversed(key.split(".")) if not part.isdecimal())


def _is_file(text: str) -> bool:
    """Tell whether a text that nobody has declared looks like a path and a file is there."""
    return ("." in text or "/" in text) and "\0" not in text and os.path.isfile(expanded(text))


def with_paths_of(cell: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the groups of a cell that name files, by the paths that another cell of the same files has."""

    def theirs(key: str, text: str) -> Any:
        value: Any = other
        for part in key.split("."):
            value = value[int(part)] if isinstance(value, list) else value.get(part) if isinstance(value, Mapping) else None
        return text if value is None else value

    return {group: with_paths(group, cell.get(group), theirs) for group in ("dataset", *GROUPS)}


SPLITS = "protocol.splits"
"""The key that names a rule of splits, or the file of a table of splits."""


def _splits_of(cell: Mapping[str, Any]) -> str | None:
    """Return the file of splits that a cell names; its protocol may be plain data."""
    protocol = cell.get("protocol")
    splits = protocol.get("splits") if isinstance(protocol, Mapping) else getattr(protocol, "splits", None)
    return splits if isinstance(splits, str) and splits.endswith(".csv") else None


def splits_by_content(protocol: Any) -> Any:
    """Return the rule of a protocol's splits; the checksum of a file replaces its path."""
    return protocol.splits if protocol.splits_file is None else _content(SPLITS, protocol.splits_file)


def splits_by_name(protocol: Any) -> str:
    """Return the rule of a protocol's splits, or the name of their file and the beginning of its checksum, for people."""
    return str(protocol.splits) if protocol.splits_file is None else _named(SPLITS, protocol.splits_file)


def path_keys(groups: Mapping[str, Any]) -> set[str]:
    """Return the dotted keys of the options of a cell that are paths, including ``dataset``."""
    return set(_paths(groups, ("dataset", *GROUPS))) | ({SPLITS} if _splits_of(groups) is not None else set())


def files_of(groups: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the files that `GROUPS` name by their dotted keys, each with its ``path`` and the ``sha256`` of its bytes.

    Text that names no file, such as a matrix that is called identity, is left out.
    """
    named = _paths(groups, GROUPS)
    if (splits := _splits_of(groups)) is not None:
        named[SPLITS] = splits
    paths = {key: path_of(text) for key, text in named.items()}
    return {key: {"path": str(path), "sha256": digest} for key, path in paths.items() if (digest := file_sha256(path)) is not None}


def _paths(groups: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, str]:
    """Return the paths of these groups by their dotted keys."""
    paths: dict[str, str] = {}
    for group in names:
        with_paths(group, groups.get(group), paths.__setitem__)
    return paths


def by_content(group: str, options: Any) -> Any:
    """Return the plain options of a group in which the checksum of a file replaces its path."""
    return plain(with_paths(group, options, _content))


def by_name(group: str, options: Any) -> Any:
    """Return the options of a group in which a file's name and the beginning of its checksum replace its path, for people."""
    return with_paths(group, options, _named)


def _content(_: str, text: str) -> Any:
    digest = file_sha256(path_of(text))
    return text if digest is None else {"file": digest}


def _named(_: str, text: str) -> str:
    digest = file_sha256(path_of(text))
    return text if digest is None else f"{Path(text).name}#{digest[:8]}"
