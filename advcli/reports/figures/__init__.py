"""Figures of a report, made of its rows: one file each, imported at the first name asked for."""

from .base import LEARNING_COLUMNS, Material, ReportFigure, drawn, is_of, register, registry

__all__ = ["LEARNING_COLUMNS", "Material", "ReportFigure", "drawn", "is_of", "register", "registry"]
