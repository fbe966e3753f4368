"""An algorithm sees a problem, says what it lacks, returns a solution that others certify.

One file a solver; a file registers it, and the registry imports all files at the first name asked for.
"""

from .base import Limits, Solver, make_solver, register, solver_names, solvers_for_a_box
from .best import Best

__all__ = ["Best", "Limits", "Solver", "make_solver", "register", "solver_names", "solvers_for_a_box"]
