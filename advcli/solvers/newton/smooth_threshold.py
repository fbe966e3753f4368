"""A primal-dual interior point method for threshold models with smooth margins.

In shares r = alpha / U, of which s = 1 - r is the rest, a term's part of the dual is U H(s, r), and its optimum is

    H'(r) - z + p - q = 0,    p r = q s = 0,    r, s, p, q >= 0,    z = the margin at w = sum_i beta_i x_i and eta

where H' is finite at r = 0 for alpha > 1, so that shares reach their ends. A Newton step for these equations with mu in place of 0 has the
system of `scored_rows`, the terms' curvatures U / (p/r + q/s - H'') in place of free hinges. Newton's method on the primal alone takes half
as many steps at alpha = 1, but stalls at 2 and above, where the curvatures of the primal have no bound; those of the dual have one.
"""

from __future__ import annotations

import numpy as np

from ...core.linalg import LinAlgError
from ...core.typing import Array
from ...problems.threshold import ThresholdProblem
from ..best import BestSeen
from .scored_rows import ScoredRows, ThresholdSystem
from .threshold import ThresholdPoint

_FALL = 0.1  # mu after a step, as a share of the mean of p r and q s
_INSIDE = 0.99  # share of the way to the nearest end that a step may go
_GROWTH = 1.2  # most growth of the first equation in a step; shares that overshoot a bend of H, sharp at large alpha, come back
_HALVINGS = 10
_BENDS = 2.0  # alpha above which that is looked at
_LEAST = 1e-150  # of a share: its inverse has a square
_IDLE = 25  # steps without a better bound, after which rounding has won


def minimise(problem: ThresholdProblem, rows: ScoredRows, tol: float, max_steps: float = 1000) -> ThresholdPoint:
    """Minimise (1) of `problems.threshold` with a smooth margin to a relative gap of ``tol``.

    After ``max_steps`` Newton steps the best point is returned as it is.
    """
    v, g, eta, U = rows.spanned(np.zeros(rows.n)), np.zeros(rows.n), np.zeros(problem.m), problem.U[problem.occurs]
    r, s, p, q = np.full((4, len(U)), [[0.5], [0.5], [1.0], [1.0]])
    best, steps, idle = BestSeen(), 0, 0
    while True:
        z = problem.margins(g, eta)
        better = best.take((v, g, eta), problem.primal(rows.inner(v, v, g), g, eta), None, -np.inf)
        better |= _offer(best, problem, rows, r) | _offer(best, problem, rows, problem.shares(z))
        idle = 0 if better else idle + 1
        if best.reached(tol) or steps + 1 > max_steps or idle >= _IDLE:
            break
        slope, bend = problem.margin.between(r, s)
        mu = _FALL * float(U @ (p * r + q * s)) / (2.0 * float(U.sum()))
        give = 1.0 / (p / r + q / s - bend)
        wanted = give * (slope - z + mu / r - mu / s)
        alpha = problem.spread(r + wanted)
        residual = rows.spanned(problem.spanned(alpha)) - v
        try:
            dv, dg, deta = rows.direction(residual, rows.pull(residual), _system(problem.spread(give), -problem.totals(alpha)))
        except LinAlgError:
            break
        dz = problem.margins(dg, deta)
        dr = wanted - give * dz
        dp, dq = mu / r - p - p / r * dr, mu / s - q + q / s * dr
        t = min(
            1.0, *(_INSIDE * float((-x[dx < 0.0] / dx[dx < 0.0]).min(initial=np.inf)) for x, dx in ((r, dr), (s, -dr), (p, dp), (q, dq)))
        )
        if problem.margin.order > _BENDS:
            most = max(_GROWTH * float(U @ np.abs(slope - z + p - q)), 10.0 * mu * float(U.sum()))
            for _ in range(_HALVINGS):
                first, _ = problem.margin.between(r + t * dr, s - t * dr)
                if U @ np.abs(first - z - t * dz + p + t * dp - q - t * dq) <= most:
                    break
                t *= 0.5
        v, g, eta = v + t * dv, g + t * dg, eta + t * deta
        r, s, p, q = np.maximum(r + t * dr, _LEAST), np.maximum(s - t * dr, _LEAST), p + t * dp, q + t * dq
        steps += 1
    status = "converged" if best.reached(tol) else "max_passes" if steps + 1 > max_steps else "stalled"
    v, g, eta = best.theta
    return ThresholdPoint(v, eta, g, best.R, best.primal, best.dual, steps, 1.0, status, "interior_point", problem.C)


def _offer(best: BestSeen, problem: ThresholdProblem, rows: ScoredRows, r: Array) -> bool:
    """Compare the feasible dual point near shares of the terms with the best; return whether it is better."""
    alpha = problem.feasible(problem.spread(r))
    v = rows.spanned(problem.spanned(alpha))
    return best.take(None, np.inf, alpha, problem.dual(alpha, rows.inner(v, v, rows.scores(v))))


def _system(curvature: Array, gradient: Array) -> ThresholdSystem:
    """Return the system of curvatures (m, n) and minus the gradient in eta."""
    rows = np.flatnonzero(curvature.any(axis=0))
    B = np.ascontiguousarray(curvature[:, rows].T)
    q = B.sum(axis=1)
    E, whole = B / q[:, None], np.diag(B.sum(axis=0))
    return ThresholdSystem(rows, q, B, E, 1.0, whole - B.T @ E, whole, gradient)
