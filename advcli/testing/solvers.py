"""Checks of solvers: what a solver owes on any problem, one function for each obligation and one for all of them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..features import make_features
from ..losses import make_loss
from ..problems.certificate import certify
from ..problems.risk import Problem, Solution
from ..solvers import Limits, Solver
from .losses import named, require

PATIENCE = 600.0  # seconds after which a fit that does not end is a failure


def check_solver(solver_class: type[Solver], **options: Any) -> None:
    """Check a class of solvers, with its options, on small zero-one problems of dense or sparse rows, a kernel matrix, or moments in a
    box, or on one of logistic regression.

    Weak duality holds wherever it is stopped, the status names what stopped it; it makes at most ``max_passes``; the same seed gives the
    same bits; its tolerance is reached; a warm start is not written to and leads to the tolerance, one of another shape is ignored or
    refused by a `ValueError` such as `ConfigError`; and inputs are read-only. AssertionError says the class and what is broken.

    Examples
    --------
    >>> from advcli.solvers.base import registry
    >>> from advcli.testing import check_solver
    >>> check_solver(registry.get("dual"))
    """
    with named(solver_class.__name__):
        _check(solver_class(**options), max(1e-2, solver_class.precision))


def _check(solver: Solver, tol: float) -> None:
    kinds = ("linear", "sparse", "precomputed", "box", "smooth")
    features = next((kind for kind in kinds if solver.lacks(_problem(1.0, features=kind)) is None), "")
    lacking = f"lacks {solver.lacks(_problem(1.0))} for linear features, and takes no sparse rows, kernel, box or smooth surrogate"
    require(features, lacking)
    problem = _problem(0.5, features=features)
    solved = check_converges(solver, problem, tol)
    bounds = certify(problem, solved, tol)
    check_stops(solver, problem, bounds.primal, bounds.dual)
    check_no_time(solver, _problem(64.0, 60, features))
    check_repeats(solver, problem, Limits(tol, max_passes=50))
    check_path(solver, [problem, _problem(1.0, features=features)], tol)
    check_other_start(solver, _problem(0.5, 13, features), solved, tol)


def _problem(C: float, n: int = 24, features: str = "linear") -> Problem:
    random = np.random.default_rng(n)
    X = np.ascontiguousarray(random.normal(size=(n, 3)))
    y = np.argmax(X @ random.normal(size=(3, 3)) + random.normal(size=(n, 3)), axis=1).astype(np.intp)
    y[:3] = np.arange(3)
    if features == "precomputed":
        X = np.ascontiguousarray(X @ X.T)
    for array in (X, y):
        array.setflags(write=False)
    loss = make_loss("entropy" if features == "smooth" else "zero_one", 3)
    if features == "smooth":
        return Problem(make_features("linear", X, 3), loss, y, 1.0 / (C * n))
    if features == "sparse":
        rows = sparse.csr_array(X)
        rows.data.setflags(write=False)
        return Problem(make_features("linear", rows, 3), loss, y, 1.0 / (C * n))
    if features == "box":
        bound = make_features("linear", X, 3, moments="box", tolerance=0.5)
        return Problem(bound, loss, y, 0.0, tolerance=bound.tolerance(y, None))
    return Problem(make_features(features, X, 3), loss, y, 1.0 / (C * n))


def check_converges(solver: Solver, problem: Problem, tol: float, start: Solution | None = None) -> Solution:
    """Check that a certificate confirms the tolerance, from a start if there is one; return the solution."""
    solved = solver.solve(problem, Limits(tol, max_passes=1e5, max_seconds=PATIENCE), start)
    best = certify(problem, solved, tol)
    begun = "" if start is None else " from a start"
    require(best.converged, f"stopped{begun} at a relative gap of {best.relative_gap:.1e} ({best.status}), asked for {tol:g}")
    return solved


def check_stops(
    solver: Solver, problem: Problem, primal: float, dual: float, passes: Sequence[float] = (1, 2, 3, 5, 8, 13, 40), stalls: bool = True
) -> None:
    """Check that weak duality holds wherever the solver is stopped, that its r are dual points, and that it says what stopped it.

    ``primal`` and ``dual`` are bounds of the optimum from above and below; no limit of passes is exceeded. ``stalls``: it may find no
    better point before either.
    """
    room = 1e-12 * abs(primal) + 1e-15
    allowed = ("max_passes", "gap_above_tolerance", *(["stalled"] if stalls else []))
    for limit in passes:
        part = solver.solve(problem, Limits(1e-9, max_passes=limit))
        judged = certify(problem, part, 1e-9)
        above = judged.primal >= dual - room and not judged.dual > primal + room and judged.gap >= -room
        require(above, f"stopped after {limit:g} passes, its bounds contradict those of the solution")
        require(np.isfinite(part.theta).all(), f"stopped after {limit:g} passes, a parameter is no finite number")
        require(0 <= part.passes <= limit, f"makes {part.passes:g} passes, allowed were {limit:g}")
        if part.R is not None:
            outside = problem.loss.infeasibility(part.R, problem.y).max()
            require(outside <= 1e-9, f"stopped after {limit:g} passes, a row of r lies {outside:.1e} outside its set")
        explained = judged.converged or (judged.status in allowed and judged.relative_gap > 1e-9)
        require(explained, f"stopped by max_passes={limit:g}, the certificate says {judged.status!r}")


def check_no_time(solver: Solver, problem: Problem) -> None:
    """Check that no time is a status, and no crash, on a problem that takes some."""
    timed = solver.solve(problem, Limits(1e-12, max_passes=1e9, max_seconds=0.0))
    judged = certify(problem, timed, 1e-12)
    explained = timed.status == judged.status == "max_seconds" and judged.dual <= judged.primal
    require(explained, f"without any time it says {timed.status!r}, not 'max_seconds'")


def check_repeats(solver: Solver, problem: Problem, limits: Limits) -> None:
    """Check that the same seed gives the same bits, passes and status."""
    one, two = (solver.solve(problem, limits, seed=5) for _ in range(2))
    same = pickle.dumps((one.theta, one.R, one.passes, one.status)) == pickle.dumps((two.theta, two.R, two.passes, two.status))
    require(same, "the same seed gives other bits, passes or another status")


def check_path(solver: Solver, problems: Sequence[Problem], tol: float) -> None:
    """Check that every problem of a path, started from the solution before, which is read only, ends at the optimum of a cold start."""
    previous: Solution | None = None
    for problem in problems:
        before = None if previous is None else pickle.dumps((previous.theta, previous.R))
        warm = check_converges(solver, problem, tol, previous)
        if previous is not None:
            require(pickle.dumps((previous.theta, previous.R)) == before, "writes to the solution that it starts from")
            cold = problem.primal(check_converges(solver, problem, tol).theta)
            near = abs(problem.primal(warm.theta) - cold) <= 2 * tol * abs(cold)
            require(near, "a start from another problem ends at another optimum than a cold one")
        previous = warm


def check_other_start(solver: Solver, problem: Problem, start: Solution, tol: float) -> None:
    """Check that a start of other rows is ignored, or refused by a `ValueError`."""
    try:
        other = solver.solve(problem, Limits(tol, max_passes=1e5, max_seconds=PATIENCE), start)
    except ValueError:  # refusing is as good as ignoring
        return
    require(certify(problem, other, tol).converged, "does not converge from a start for other rows")
