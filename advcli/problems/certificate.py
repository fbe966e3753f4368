"""The referee: primal value, dual value and gap of a returned iterate, computed from scratch and never by a solver.

For any theta and any r with r_i in conv R(y_i) that meets the constraints of the free parameters and of the box: D(r) <= min P <= P(theta)
(problem.py), so P - D bounds how far the fit is from its optimum. An r outside its set proves nothing. Where rounding accounts for the
distance, r is moved back and D is evaluated at the new r; else r is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, cast

import numpy as np

from ..core.errors import ModelError, warn_not_converged
from ..core.typing import Array
from .risk import Problem, Solution, gap_scale

# how far a dual point may lie outside its set, 2.3e-10: what a million roundings of numbers near 1 add up to at most
TOLERANCE = 2.0**20 * float(np.finfo(np.float64).eps)
_NOISE = 1e-12  # a negative relative gap no larger counts as zero: at an exact optimum P and D are equal but for rounding
_ROUNDING_GAP = 1e-10  # a gap that the rounding of margins can make, beside the loss of theta = 0
_STRETCHES = (1e-12, 1e-9, 1e-7, 1e-5, 1e-4)  # shares by which theta is then made longer

_ADVICE = {
    "max_passes": "raise solver.max_passes or solver.tol",
    "max_seconds": "raise solver.max_seconds or solver.tol",
    "stalled": "the solver makes no more progress: raise solver.tol or choose another solver",
    "inexact_search": "what is left of the gap is the search's, which planes cannot close: choose loss.search=auto or exact",
    "not_convex": "the objective is not convex and has no bound from below: choose a convex surrogate for one",
    "gap_above_tolerance": "the solver's own bounds were better than these: choose another solver",
    "infeasible_dual": "the solver's dual point lies outside its set and proves nothing, which no limit changes: choose another solver",
    "negative_gap": "the bounds contradict each other, which no limit changes: a value, an offset or a feature map is wrong",
}


def advice(status: str) -> str:
    """Return what to do about a fit that did not converge, by the status of its certificate; another solver's status is named as it is."""
    return _ADVICE.get(status, f"the solver says {status}")


@dataclass(frozen=True)
class Certificate:
    """The objective of a fit, a lower bound of the optimum and their gap, in the scaling lambda/2 |theta|^2 + mean loss.

    Attributes
    ----------
    primal, dual : float
        P(theta) and D(r); the dual is nan when the solver has no dual point, and -inf when that was refused.
    gap, relative_gap : float
        primal - dual, and that over ``scale``.
    passes : float
        Reads of the data by the solver, in passes over all rows.
    converged : bool
        relative_gap <= tol, by a feasible dual point.
    status : str
        "converged", "infeasible_dual" (the dual point lies outside its set by more than `TOLERANCE`), "negative_gap" (D above P by more
        than rounding: a value, an offset or a feature map is wrong), or what stopped the solver.
    solver : str
        The solver that ran.
    seconds : float
        Wall time of the solver, without this certificate.
    game_value : float
        The worst case that the fit guarantees for predictions drawn from the predictor's distribution (`Problem.game_value`;
        `WorstCase` has other rules); nan for losses without a game.
    scale : float
        What the gap is relative to: the primal; |dual| where matrices with negative entries make the primal negative, and no less than
        `Problem.least_scale`; for corrected losses, which can be 0, the larger of |primal| and the loss at scores 0.
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
    scale: float = float("nan")

    @property
    def advice(self) -> str:
        """What to do about a fit that did not converge, by its ``status``."""
        return advice(self.status)

    @classmethod
    def restored(cls, document: Mapping[str, Any]) -> Certificate:
        """Return the certificate that a file holds by the names of its attributes; `ModelError` for a missing one or another type."""
        kinds: dict[str, Any] = {"bool": bool, "str": str}
        values: dict[str, Any] = {}
        for field in fields(cls):
            values[field.name] = value = cast(Any, document.get(field.name))
            right = isinstance(value, kinds.get(str(field.type), (int, float))) and isinstance(value, bool) == (field.type == "bool")
            if not right or (field.name == "passes" and not 0 <= value < float("inf")):
                raise ModelError(f"its certificate has no {field.name} that can be")
        return cls(**values)


@dataclass(frozen=True)
class WorstCase:
    """The largest expected cost of predictions on the rows of a fit, under all label distributions that the moments allow.

    With theta the parameters, a distribution q_i of labels for every row is allowed where its moments J'q/n lie within lambda |theta| of
    the sample's (`Problem.game_value`). For predictions of expected costs a_i(j) under the label j, from any rule, the mean of q_i.a_i is
    at most

        penalty + ridge + mean over i of max_j (a_i(j) + f_ij) - f_iy.
    """

    mixed: float  # of predictions that are drawn from the predictor's distribution: the game value
    predicted: float  # of the very predictions that the fit makes, by its rule
    seen: float  # cost of these at the labels of the fit, a distribution that is allowed; never above ``predicted``
    rule: str  # that they follow

    @classmethod
    def of(cls, certificate: Certificate, penalty: float, bound: float, seen: float, rule: str) -> WorstCase:
        """Return the guarantee of a fit, from its penalty and the means over its rows of the bounds and of the costs at the true labels."""
        ridge = certificate.game_value - certificate.primal
        return cls(float(certificate.game_value), float(penalty + ridge + bound), float(seen), rule)

    def __str__(self) -> str:
        """Say in one line what is guaranteed, and for which predictions."""
        return (
            f"predictions by rule={self.rule} cost at most {self.predicted:.4g} in expectation under every label distribution of the "
            f"training rows that the moments allow, {self.seen:.4g} at the labels themselves; drawn from the predictor's distribution they "
            f"cost at most {self.mixed:.4g}"
        )


class Judged(Protocol):
    """What the referee asks of a problem: both values of any point, and how far a dual point lies outside its set."""

    @property
    def least_scale(self) -> float:
        """The least that a gap is relative to."""

    def primal(self, theta: Array) -> float:
        """Return P(theta)."""

    def feasible(self, R: Array) -> tuple[Array, float]:
        """Return a feasible dual point near R, and how far outside R lies."""

    def dual(self, R: Array) -> float:
        """Return D(r)."""

    def game_value(self, theta: Array, primal: float | None = None) -> float:
        """Return the worst case that theta guarantees, nan where there is none."""


def _shared(problem: Judged, solution: Solution) -> Judged:
    """Return the problem whose evaluations the threads of a fit share; no bit of them depends on the threads."""
    threads = solution.memory.get("threads", 1)
    return replace(problem, threads=threads) if threads > 1 and isinstance(problem, Problem) else problem


def certify(problem: Judged, solution: Solution, tol: float) -> Certificate:
    """Evaluate the returned iterate of ``solution`` and compare its relative gap with ``tol``; by as many threads as its fit had."""
    problem = _shared(problem, solution)
    primal = problem.primal(solution.theta)
    if isinstance(problem, Problem):
        primal += problem.lost_digits(solution.theta, primal)
    dual, outside = float("nan"), 0.0
    if solution.R is not None:
        R, outside = problem.feasible(solution.R)
        dual = problem.dual(R)
    ran = {name: getattr(solution, name) for name in ("passes", "status", "solver", "seconds")}
    game_value = problem.game_value(solution.theta, primal)
    return judge(primal, dual, tol, outside=outside, game_value=game_value, least=problem.least_scale, **ran)


def settle(problem: Judged, solution: Solution, tol: float) -> tuple[Solution, Certificate]:
    """Return a solver's solution and its certificate, with theta = 0 or r = 0 instead of a worse theta or r, unless it converged.

    Where labels separate, the optimum can be so tiny that the rounding of margins, which should be met exactly, outweighs it. A fit whose
    gap is rounding beside the loss of theta = 0 is then stretched by a tiny share: the margins are met, at twice that share of the penalty.
    """
    problem = _shared(problem, solution)
    certificate = certify(problem, solution, tol)
    if certificate.converged:
        return solution, certificate
    theta = np.zeros(solution.theta.shape)
    empty = problem.primal(theta)
    better = solution if certificate.primal <= empty else replace(solution, theta=theta)
    if 0.0 < certificate.gap <= _ROUNDING_GAP * empty:
        stretched = [solution.theta * (1.0 + share) for share in (0.0, *_STRETCHES)]
        best = min(stretched, key=problem.primal)
        better = better if best is stretched[0] else replace(better, theta=best)
    if solution.R is not None and certificate.status != "infeasible_dual":  # a refused dual point is to be seen in the certificate
        R, _ = problem.feasible(solution.at_rest())
        better = better if certificate.dual >= problem.dual(R) else replace(better, R=R)
    return (solution, certificate) if better is solution else (better, certify(problem, better, tol))


def judge(
    primal: float,
    dual: float,
    tol: float,
    *,
    outside: float,
    passes: float,
    status: str,
    solver: str,
    seconds: float,
    game_value: float = float("nan"),
    scale: float | None = None,
    least: float = 0.0,
) -> Certificate:
    """Return the certificate of a primal value, and of a dual one at the dual point moved into its set; nan where there is none.

    ``outside`` is how far the dual point lay outside its set, in units in which the set has size 1: more than `TOLERANCE`, or nan, is
    refused. ``status`` is what stopped the solver; the gap is relative to ``scale``, `gap_scale` where none is given, and to no less than
    ``least`` (`Problem.least_scale`).
    """
    refused = not outside <= TOLERANCE or dual == float("-inf")
    if refused:
        dual = float("-inf")
    gap = primal - dual
    if scale is None:
        scale = abs(primal) if refused else gap_scale(primal, dual)
    scale = max(scale, least)
    if scale > 0:
        relative = gap / scale
    else:  # one class only: nothing to lose
        relative = 0.0 if gap <= 0 else float("inf")
    relative = 0.0 if -_NOISE < relative < 0 else relative
    # where labels separate P is far below the terms that it is summed from, whose rounding shows in the gap
    negative = gap < -1e-9 * abs(scale) - 1e-15
    converged = bool(relative <= tol and not refused and not negative)
    if refused:
        status = "infeasible_dual"
    elif converged:
        status = "converged"
    elif negative:
        status = "negative_gap"
    elif status == "converged":
        status = "gap_above_tolerance"
    return Certificate(primal, dual, gap, relative, passes, converged, status, solver, seconds, game_value, float(scale))


def warn_unless_converged(what: str, certificate: Certificate, tol: float) -> None:
    """Warn (`NotConvergedWarning`) of a fit, which ``what`` names, whose relative gap is not within ``tol``."""
    if not certificate.converged:
        reached = f"relative gap {certificate.relative_gap:.2e} after {certificate.passes:.0f} passes ({certificate.status})"
        warn_not_converged(f"{what}: {reached}, tolerance {tol:g}")
