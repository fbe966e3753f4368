"""Figures of a report: one file each; every module here registers itself on import."""

import importlib
import pkgutil

from .base import LEARNING_COLUMNS, Material, ReportFigure, drawn, is_of, register, registry

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["LEARNING_COLUMNS", "Material", "ReportFigure", "drawn", "is_of", "register", "registry"]
