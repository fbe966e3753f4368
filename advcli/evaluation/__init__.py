"""Evaluation: splits, two-stage selection, the runner of one cell, sweeps over many."""

from .runner import Cell, CellOutcome, run_cell
from .sweep import sweep

__all__ = ["Cell", "CellOutcome", "run_cell", "sweep"]
