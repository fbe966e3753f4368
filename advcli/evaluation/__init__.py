"""Evaluation: splits, two-stage selection, metrics and the runner of one cell."""

from .runner import Cell, CellOutcome, run_cell

__all__ = ["Cell", "CellOutcome", "run_cell"]
