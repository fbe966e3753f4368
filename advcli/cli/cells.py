"""Cells as a checked config describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..config import Settings

if TYPE_CHECKING:
    from ..evaluation import Cell


def cell_of(settings: Settings, hyper: Mapping[str, float] | None = None) -> Cell:
    """Return the cell of a config, at these fixed hyper-parameters in the place of its own."""
    from ..evaluation import Cell

    groups = ("dataset", "loss", "features", "solver", "protocol", "seed")
    noise = None if settings.noise["name"] == "none" else settings.noise
    return Cell(**{group: getattr(settings, group) for group in groups}, hyper=settings.hyper if hyper is None else hyper, noise=noise)
