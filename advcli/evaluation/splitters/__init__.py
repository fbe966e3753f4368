"""Rules of splits (``protocol.splits``): each draws training and test rows, and the folds of a search by the same rule.

Every module here, or in the folder ``splits`` of a user's own files, registers its rules by ``@register("NAME")``.
"""

from __future__ import annotations

from ...config.protocol import Protocol
from ...core.errors import UnknownNameError, nearest
from .base import SPLITTERS, Splitter

register = SPLITTERS.register

__all__ = ["Splitter", "register", "splitter_names", "splitter_of"]


def splitter_names() -> list[str]:
    """Return the names of all rules; a table of splits is named by its file."""
    return [name for name in SPLITTERS if name != "file"]


def splitter_of(protocol: Protocol, seed: int) -> Splitter:
    """Return the rule of a protocol's splits; `ConfigError` for a name that is none."""
    name = "file" if protocol.splits_file is not None else protocol.splits
    if name not in SPLITTERS or (name == "file" and protocol.splits_file is None):
        remedy = f"{nearest(name, splitter_names())}, or give FILE.csv, a table of splits"
        raise UnknownNameError(f"protocol.splits={name} is not valid; {remedy}")
    return SPLITTERS.get(name)(protocol, seed)
