"""One method on one data set: splits, search, fit, score, rows; `sweeps` runs many of them."""

from .outcome import CellOutcome
from .runner import Cell, run_cell
from .sweeps.sweep import sweep

__all__ = ["Cell", "CellOutcome", "run_cell", "sweep"]
