"""Solvers: one file each; every module here registers itself on import."""

import importlib
import pkgutil

from .base import Limits, Solver, make_solver, register, solver_names, solvers_for_a_box
from .best import Best

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Best", "Limits", "Solver", "make_solver", "register", "solver_names", "solvers_for_a_box"]
