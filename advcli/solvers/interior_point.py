"""Primal-dual interior point for adversarial losses: a second solver for large C, built on nothing that `newton` is built on.

Every row's inner game, with loss matrix L (l, k), is the linear program of eq. 11 (Fathony et al. 2018), kept inside the problem:

    maximise over q, v   v + f.q     subject to   q >= 0 (multiplier z),   S = L q - v 1 >= 0 (multiplier p),   sum q = 1 (multiplier tau)

whose conditions f + z + L'p - tau 1 = 0, sum p = 1, q z = mu, S p = mu join the stationarity of theta (p is the predictor's strategy).
One Newton step eliminates row by row: a (k + 2)-square system gives dq = m + M df with M symmetric and positive semi-definite, and theta's
part is one Cholesky factor of I + C sum_i (s_i/w_i) J_i' M_i J_i, which serves Mehrotra's predictor and corrector. The method takes some
ten to eighty iterations whatever C is; each costs as much as Newton's most expensive step, because every row enters every Hessian.

Derivation and numerics: docs/notes/large-c.md, section 10.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.linalg import LinAlgError, cho_factor, cho_solve, eigh, inner, inv
from ..core.typing import Array
from ..problems.risk import Problem, Solution
from .base import Limits, Solver, register
from .best import Best
from .newton.linear import lacks_size

_INSIDE = 0.995  # share of the way to the boundary that a step may go
_MOST = 300  # iterations
_IDLE = 15  # iterations without a better primal or dual value after which rounding has won


@register("interior_point")
class InteriorPointSolver(Solver):
    """Mehrotra's predictor-corrector; adversarial losses of any matrix, explicit features with some thousand parameters.

    Rounding in the rows' systems ends a fit at relative gaps between 1e-8 and 1e-6, or above on badly scaled features; the status then is
    "stalled".
    """

    precision = 1e-6

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs an adversarial loss, and explicit parameters that are not too many."""
        if not problem.is_game:
            return "an adversarial loss"
        return problem.lacks_parameters() or lacks_size(problem)

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the best theta and dual point seen; a start only counts as a candidate, since the path begins at the centre."""
        started = time.perf_counter()
        best = Best(problem, start, limits.max_passes)
        status, iterations = _follow(problem, best, limits, started)
        seconds = time.perf_counter() - started
        return Solution(best.theta, best.R, problem.lam, self.name, best.passes, seconds, status, {"iterations": iterations})


def _follow(problem: Problem, best: Best, limits: Limits, started: float) -> tuple[str, int]:
    """Follow the central path and offer every point to ``best``; return what stopped it, and after how many iterations."""
    point: _Iterate | None = None
    idle = iterations = 0
    while not best.reached(limits.tol):
        if spent := limits.spent(best.passes + 3.0, started):  # an iteration and the value of one point
            return spent, iterations
        if idle > _IDLE or iterations >= _MOST:
            return "stalled", iterations
        point = _Iterate(problem) if point is None else point
        before = best.primal, best.dual
        try:
            point.advance()
        except LinAlgError:
            return "stalled", iterations
        iterations += 1
        best.passes += 2.0  # scores of the step, and the sum over rows of the Hessian
        best.offer(point.theta, point.dual_point())
        idle = idle + 1 if (best.primal, best.dual) == before else 0
    return "converged", iterations


class _Iterate:
    """The iterate: theta and, for every row, q and z (n, k), S and p (n, l), v and tau (n,)."""

    def __init__(self, problem: Problem) -> None:
        loss: Any = problem.loss  # `lacks` lets adversarial ones pass
        self.problem, self.features = problem, problem.features
        n, k, matrix = len(problem.y), loss.n_classes, loss.matrix
        # in units of the matrix's spread; a constant moves v alone
        self.least, self.unit = float(matrix.min()), float(np.ptp(matrix)) or 1.0
        self.L = (matrix - self.least) / self.unit
        l = len(self.L)
        self.sample, self.cost, self.C = problem.counts, problem.costs * self.unit, problem.C
        self.mask = np.ones(self.features.shape) if self.features.regularised is None else self.features.regularised
        self.label = np.zeros((n, k), dtype=bool)
        self.label[np.arange(n), problem.y] = True
        self.theta = np.zeros(self.features.shape)
        self.F = np.zeros((n, k))
        self.q, self.z = np.full((n, k), 1.0 / k), np.full((n, k), 1.0 / k)
        self.p = np.full((n, l), 1.0 / l)
        game = self.q @ self.L.T
        self.v = game.min(axis=1) - 1.0 / k
        self.S = game - self.v[:, None]
        self.tau = np.zeros(n)

    def dual_point(self) -> Array:
        """Return r = q - e_y with q normalised; the label's entry is minus the sum of the others, which keeps small r exact."""
        q = np.maximum(self.q, 0.0)
        R = np.where(self.label, 0.0, q / q.sum(axis=1, keepdims=True))
        R[self.label] = -R.sum(axis=1)
        return R

    def _raw(self) -> Array:
        """Return q - e_y of the iterate, which need not be normalised yet, without cancellation."""
        R = np.where(self.label, 0.0, self.q)
        R[self.label] = -R.sum(axis=1) - (1.0 - self.q.sum(axis=1))
        return R

    def _inverses(self) -> Array:
        """Return the inverses of the rows' systems, (n, k + 2, k + 2)."""
        (n, k), L = self.q.shape, self.L
        b = self.p / self.S
        K = np.zeros((n, k + 2, k + 2))
        K[:, :k, :k] = (b @ (L[:, :, None] * L[:, None, :]).reshape(len(L), -1)).reshape(n, k, k)
        K[:, range(k), range(k)] += self.z / self.q
        g = b @ L
        K[:, :k, k] = K[:, k, :k] = -g
        K[:, k, k] = b.sum(axis=1)
        K[:, :k, k + 1] = K[:, k + 1, :k] = 1.0
        # entries run over many powers of ten near the end: scaled to a unit diagonal, rounding is relative to each row's size
        scale = np.ones((n, k + 2))
        scale[:, : k + 1] = 1.0 / np.sqrt(np.einsum("iaa->ia", K)[:, : k + 1])
        scale[:, k + 1] = 1.0 / scale[:, :k].max(axis=1)
        inverses: Array = inv(K * scale[:, :, None] * scale[:, None, :]) * scale[:, :, None] * scale[:, None, :]
        return inverses

    def _factor(self, M: Array) -> Any:
        """Return the Cholesky factor of theta's system for the rows' M (n, k, k)."""
        weight, vectors = eigh(0.5 * (M + M.transpose(0, 2, 1)))
        rows = (vectors * np.sqrt(np.maximum(weight, 0.0))[:, None, :]).transpose(0, 2, 1)
        used = self.sample > 0.0
        owner = np.repeat(np.flatnonzero(used), M.shape[1] - 1)
        # the eigenvector of the least eigenvalue, 0, is the constant one
        B = np.ascontiguousarray(rows[used, 1:].reshape(-1, M.shape[1]))
        hessian = self.features.directions(B, owner).hessian(self.C * (self.sample / self.cost))
        return cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)

    def advance(self) -> None:
        """Take one predictor-corrector step."""
        L, C, k = self.L, self.C, self.q.shape[1]
        r1 = self.F + self.z + self.p @ L - self.tau[:, None]
        r2, r3 = 1.0 - self.p.sum(axis=1), 1.0 - self.q.sum(axis=1)
        rS = self.q @ L.T - self.v[:, None] - self.S
        gradient = self.mask * self.theta + C * self._back(self._raw())
        inverse = self._inverses()
        factor = self._factor(inverse[:, :k, :k])

        def step(rz: Array, rp: Array) -> tuple[Array, ...]:
            """Return the Newton step for given right-hand sides of q z and S p."""
            free = (rp - self.p * rS) / self.S
            right = np.column_stack([r1 + rz / self.q + free @ L, r2 - free.sum(axis=1), r3])
            m0 = np.einsum("iab,ib->ia", inverse, right)
            down = -gradient - C * self._back(m0[:, :k])
            dtheta = cho_solve(factor, down.ravel(), check_finite=False).reshape(down.shape)
            dF = self.features.scores(dtheta) / self.cost[:, None]
            moved = m0 + np.einsum("iab,ib->ia", inverse[:, :, :k], dF)
            dq, dv, dtau = moved[:, :k], moved[:, k], moved[:, k + 1]
            dz = (rz - self.z * dq) / self.q
            dS = dq @ L.T - dv[:, None] + rS
            dp = (rp - self.p * dS) / self.S
            return dtheta, dF, dq, dv, dtau, dz, dS, dp

        count = self.q.size + self.S.size
        mu = (inner(self.q, self.z) + inner(self.S, self.p)) / count
        guess = step(-self.q * self.z, -self.S * self.p)
        dq, dz, dS, dp = guess[2], guess[5], guess[6], guess[7]
        t = self._room(dq, dz, dS, dp)
        ahead = inner(self.q + t * dq, self.z + t * dz) + inner(self.S + t * dS, self.p + t * dp)
        centre = mu * min(1.0, max(ahead / count / mu, 0.0) ** 3)
        moves = step(centre - self.q * self.z - dq * dz, centre - self.S * self.p - dS * dp)
        if not all(np.isfinite(move).all() for move in moves):
            raise LinAlgError("the step is not finite")
        t = min(1.0, _INSIDE * self._room(moves[2], moves[5], moves[6], moves[7]))
        for name, move in zip(("theta", "F", "q", "v", "tau", "z", "S", "p"), moves, strict=True):
            setattr(self, name, getattr(self, name) + t * move)

    def _back(self, R: Array) -> Array:
        """Return J'(s R)."""
        return self.features.adjoint(R * self.sample[:, None])

    def _room(self, dq: Array, dz: Array, dS: Array, dp: Array) -> float:
        """Return the longest step that keeps q, z, S and p at least 0."""
        room = 1.0 / _INSIDE
        for value, move in ((self.q, dq), (self.z, dz), (self.S, dS), (self.p, dp)):
            falling: NDArray[np.bool_] = move < 0
            if falling.any():
                room = min(room, float((-value[falling] / move[falling]).min()))
        return room
