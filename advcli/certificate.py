"""The referee: primal value, dual value and gap of a returned iterate, computed from scratch and never by a solver.

For any theta and any r with r_i in conv R(y_i): D(r) <= min P <= P(theta) (problem.py), so P - D bounds how far the fit is from its
optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

from .problem import Problem, Solution, gap_scale


@dataclass(frozen=True)
class Certificate:
    """How good a fit is, in the scaling lambda/2 |theta|^2 + mean loss.

    Attributes
    ----------
    primal, dual : float
        P(theta) and D(r); nan for the dual when the solver has no dual point.
    gap, relative_gap : float
        primal - dual, and that over primal; over |dual| where matrices with negative entries make the primal negative.
    passes : float
        Reads of the data by the solver, in passes over all rows.
    converged : bool
        relative_gap <= tol.
    status : str
        "converged", or what stopped the solver.
    solver : str
        The solver that ran.
    seconds : float
        Wall time of the solver, without this certificate.
    game_value : float
        The worst case that the fit guarantees (`Problem.game_value`); nan for losses that are no game.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    passes: float
    converged: bool
    status: str
    solver: str
    seconds: float
    game_value: float = float("nan")


def certify(problem: Problem, solution: Solution, tol: float) -> Certificate:
    """Evaluate the returned iterate of ``solution`` and compare its relative gap with ``tol``."""
    primal = problem.primal(solution.theta)
    dual = problem.dual(solution.R) if solution.R is not None else float("nan")
    gap = primal - dual
    scale = gap_scale(primal, dual)
    if scale > 0:
        relative = gap / scale
    else:  # one class only: nothing to lose
        relative = 0.0 if gap <= 0 else float("inf")
    # rounding may leave a gap a few ulps below zero at an exact optimum
    relative = 0.0 if -1e-12 < relative < 0 else relative
    # a gap below zero by more than rounding would mean a wrong dual point, never a good fit
    converged = bool(relative <= tol and gap >= -1e-9 * abs(primal) - 1e-15)
    status = "converged" if converged else (solution.status if solution.status != "converged" else "gap_above_tolerance")
    game = problem.game_value(solution.theta, primal)
    return Certificate(primal, dual, gap, relative, solution.passes, converged, status, solution.solver, solution.seconds, game)
