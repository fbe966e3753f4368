"""A results folder: one file per finished cell; tables are made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .folder import ResultsFolder
    from .importing import from_frame

__all__ = ["ResultsFolder", "from_frame"]


def __getattr__(name: str) -> Any:
    if name == "ResultsFolder":
        from .folder import ResultsFolder

        return ResultsFolder
    if name == "from_frame":  # brings NumPy, for which completion on every <TAB> does not wait
        from .importing import from_frame

        return from_frame
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
