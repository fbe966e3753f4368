"""Linear programs in HiGHS that stay: further calls change costs, bounds or coefficients and begin at the last basis."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@cache
def _silent_class() -> Any:
    """Return the class of solvers that are silent from the start: since 1.16 HiGHS greets on standard output when callbacks are enabled."""
    import highspy

    class Silent(highspy.Highs):
        def enableCallbacks(self) -> None:  # called while the solver is made
            self.silent()
            super().enableCallbacks()

    return Silent


def quiet_solver(tolerance: float | None = None, presolve: bool = True) -> Any:
    """Return HiGHS with one thread and no words; ``tolerance`` holds for both feasibilities; None is HiGHS' default."""
    solver = _silent_class()()
    solver.silent()
    solver.setOptionValue("threads", 1)
    if not presolve:
        solver.setOptionValue("presolve", "off")
    if tolerance is not None:
        for side in ("primal", "dual"):
            solver.setOptionValue(f"{side}_feasibility_tolerance", tolerance)
    return solver


def pass_program(
    solver: Any,
    cost: NDArray[np.float64],
    columns: tuple[ArrayLike, ArrayLike],
    rows: tuple[ArrayLike, ArrayLike],
    matrix: Any,
    maximise: bool = False,
) -> None:
    """Give a solver the program of the least, or largest, cost.x, x between the ends ``columns``, matrix x between the ends ``rows``."""
    import highspy

    m, n = matrix.shape
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = m, n
    program.sense_ = highspy.ObjSense.kMaximize if maximise else highspy.ObjSense.kMinimize
    program.col_cost_ = cost
    program.col_lower_, program.col_upper_ = (np.array(np.broadcast_to(end, n), dtype=np.float64) for end in columns)
    program.row_lower_, program.row_upper_ = (np.array(np.broadcast_to(end, m), dtype=np.float64) for end in rows)
    entries = program.a_matrix_
    entries.format_ = highspy.MatrixFormat.kRowwise
    if isinstance(matrix, np.ndarray):
        entries.start_, entries.index_, entries.value_ = np.arange(0, m * n + 1, n), np.tile(np.arange(n), m), matrix.ravel()
    else:
        entries.start_, entries.index_, entries.value_ = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data
    solver.passModel(program)


def largest(solver: Any, cost: NDArray[np.float64], columns: tuple[Any, Any], rows: tuple[Any, Any], matrix: Any) -> Any:
    """Return the solution, ``col_value`` and ``row_dual``, of the largest cost.x of `pass_program`; None where there is no optimum."""
    import highspy

    pass_program(solver, cost, columns, rows, matrix, maximise=True)
    solver.run()
    return solver.getSolution() if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal else None
