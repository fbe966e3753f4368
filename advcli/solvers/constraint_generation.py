"""Constraint generation for the dual quadratic program (Fathony et al. 2016, section 3.3.4, Algorithm 1), n-slack, linear and kernel.

Every row has a growing set of constraints xi_i >= r.f_i + c, one for each answer (r, c) of its oracle that was needed; the first is that of
its own label, r = 0. The master program over the weights beta_i of these answers, a subset of the simplex for each row, is

    maximise  sum_i C s_i w_i sum_k beta_ik c_ik - 1/2 |C sum_i s_i J_i' sum_k beta_ik r_ik|^2                      (eq. 6-8 there)

A row whose oracle violates what it has by more than epsilon gets one more constraint; then the master is solved again, to the last digits
of an interior point method. With linear features its systems have the size of the parameters, and all constraints take part (`_weights`).
With a kernel they have that of the weights (PIQP), so only constraints that carry weight or are violated enter, the others wait. The end is
a round over all rows without a violation: with epsilon = 0, the paper's choice, that means none beyond the master's accuracy.
`Solution.memory` counts the constraints added and those with weight at the end.

The algorithm as printed solves the master after every single constraint. The printed counts (Table 1) are those of one solution a round,
the default here: one random split of iris, glass and vehicle at C = 1 gets 54, 295 and 575 constraints with `batch` 1, 1 and 10, and 222,
532 and 1332 with one solution a round; the table has 213, 578 and 1310.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..errors import ConfigError
from ..features.base import KernelMap
from ..problem import Array, Labels, Problem, Solution
from .base import Limits, Solver, register

_ACCURACY = 1e-6  # of scores and slacks, in units of the loss: what the master's solution is good for
_WEIGHT = 1e-6  # share of a row's weight from which a constraint counts as active
_ROUNDS = 1000  # solutions of one master; never reached unless rounding cycles
_ROOM = 800  # most constraints that enter a master at once
_INSIDE = 0.995  # share of the way to the boundary that a step of the interior point may go
_RESIDUAL = 1e-12  # of its conditions, where it ends
_IDLE = 15  # iterations without progress after which rounding has won


class _Master:
    """The constraints of all rows and the optimum over them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        n, k = len(problem.y), problem.loss.n_classes
        self.sample = np.ones(n) if problem.sample_weight is None else problem.sample_weight
        self.owner = np.empty(0, dtype=np.intp)
        self.r, self.c = np.empty((0, k)), np.empty(0)
        self.beta = np.empty(0)
        self.base = problem.loss.offset(np.zeros((n, k)), problem.y)  # c of the constraint that every row starts with, r = 0
        self.R = np.zeros((n, k))
        self.theta = np.zeros(problem.features.shape)
        self.F = problem.scaled(problem.features.scores(self.theta))
        self.solved = 0

    def slack(self) -> tuple[Array, Array]:
        """Return what each constraint asks of its row's slack at the present scores, and the largest of each row."""
        asked = np.einsum("mk,mk->m", self.r, self.F[self.owner]) + self.c
        slack = self.base.copy()
        np.maximum.at(slack, self.owner, asked)
        return asked, slack

    def add(self, rows: Labels, r: Array, c: Array) -> None:
        """Add one constraint to each of the rows."""
        self.owner = np.concatenate([self.owner, rows])
        self.r, self.c = np.vstack([self.r, r]), np.concatenate([self.c, c])
        self.beta = np.concatenate([self.beta, np.zeros(len(rows))])

    def optimise(self, deadline: float) -> None:
        """Solve over all constraints, or until the deadline; with a kernel over those with weight or violated, until no other is."""
        if not isinstance(self.problem.features, KernelMap):
            found, theta = _weights(self.problem, self.owner, self.r, self.c, self.base, deadline)
            self._take(np.arange(len(self.beta)), found, theta)
            return
        inside = self.beta > 0
        fresh = np.arange(self.solved, len(self.beta))
        self.solved = len(self.beta)
        inside[fresh[:: -(-len(fresh) // _ROOM)]] = True
        for _ in range(_ROUNDS):
            self._solve(np.flatnonzero(inside))
            asked, _ = self.slack()
            kept = self.base.copy()
            np.maximum.at(kept, self.owner[inside], asked[inside])
            excess = np.where(inside, 0.0, asked - kept[self.owner])
            late = np.flatnonzero(excess > 0.1 * _ACCURACY * self.scale)
            if not len(late) or time.perf_counter() > deadline:
                return
            inside = self.beta > 0
            inside[late[np.argsort(-excess[late], kind="stable")[:_ROOM]]] = True

    @property
    def scale(self) -> float:
        """Unit of scores and slacks."""
        return max(1.0, float(np.abs(self.base).max(initial=0.0)), float(np.abs(self.c).max(initial=0.0)))

    def _solve(self, chosen: Labels) -> None:
        """Set the weights of the chosen constraints to the optimum over them, all others to 0, and bring the scores up to date."""
        import piqp

        problem = self.problem
        owner, r = self.owner[chosen], self.r[chosen]
        rows, slot = np.unique(owner, return_inverse=True)
        gram = _gram(problem, rows)
        weight = self.sample[owner]
        C = problem.C
        # divided by C: costs and curvature of the weights, each a share of its row's total
        P = (C * np.outer(weight, weight)) * gram[np.ix_(slot, slot)] * (r @ r.T)
        q = -problem.weight[owner] * (self.c[chosen] - self.base[owner])
        sums = np.zeros((len(rows), len(chosen)))
        sums[slot, np.arange(len(chosen))] = 1.0
        solver: Any = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
        solver.settings.max_iter = 500
        m = len(chosen)
        solver.setup(P, q, None, None, sums, np.full(len(rows), -np.inf), np.ones(len(rows)), np.zeros(m), np.ones(m))
        solver.solve()
        self._take(chosen, np.array(solver.result.x))

    def _take(self, chosen: Labels, found: Array, theta: Array | None = None) -> None:
        """Give the chosen constraints the weights that were found, all others none, and bring the scores up to date."""
        problem, owner, r = self.problem, self.owner[chosen], self.r[chosen]
        beta = np.clip(found, 0.0, 1.0)
        beta[beta < 1e-3 * _WEIGHT] = 0.0
        total = np.bincount(owner, weights=beta, minlength=len(self.base))
        beta /= np.maximum(total, 1.0)[owner]
        self.beta[:] = 0.0
        self.beta[chosen] = beta
        self.R[:] = 0.0
        np.add.at(self.R, owner, beta[:, None] * r)
        self.theta = problem.parameters(self.R) if theta is None else theta
        self.F = problem.scaled(problem.features.scores(self.theta))


def _weights(problem: Problem, owner: Labels, r: Array, c: Array, base: Array, deadline: float) -> tuple[Array, Array]:
    """Return the weights (m,) and the parameters of the optimum over all constraints and those that every row starts with; linear features.

    Mehrotra's predictor-corrector on theta, the rows' slacks xi, t = xi - (r.f + c) >= 0 and the weights beta >= 0 of the constraints,

        theta + C sum_i s_i J_i' sum_k beta_k r_k = 0,   sum_k beta_k = 1 in every row,   beta_k t_k = mu.
    """
    n, k = len(base), r.shape[1]
    rows = np.concatenate([owner, np.arange(n)])
    order = np.argsort(rows, kind="stable")
    rows, r, c = rows[order], np.vstack([r, np.zeros((n, k))])[order], np.concatenate([c, base])[order]
    program = _Program(problem, rows, r, np.searchsorted(rows, np.arange(n)))
    theta = np.zeros(problem.features.shape)
    xi = np.maximum.reduceat(c, program.first) + 1.0
    t = xi[rows] - c
    beta = 1.0 / np.bincount(rows, minlength=n)[rows]
    unit = max(1.0, float(np.abs(c).max(initial=0.0)))
    length = float(np.sqrt(problem.features.squares.max(initial=0.0)))  # of a row: errors of theta are judged by what they do to scores
    least, idle = np.inf, 0
    while idle < _IDLE and time.perf_counter() <= deadline:
        mu = float(beta @ t) / len(t)
        stationarity = theta + program.gradient(program.sums(beta[:, None] * r))
        primal = xi[rows] - program.products(problem.features.scores(theta)) - c - t
        balance = 1.0 - program.sums(beta)
        wrong = max(length * np.abs(stationarity).max(initial=0.0) / unit, np.abs(primal).max() / unit, np.abs(balance).max(), mu / unit)
        if wrong <= _RESIDUAL:
            break
        least, idle = (wrong, 0) if wrong < 0.5 * least else (least, idle + 1)  # idle: iterations since the last halving
        try:
            system = _System(program, beta / t, t, stationarity, primal, balance)
        except LinAlgError:  # rounding has won
            break
        _, _, dt, dbeta = system.direction(beta * t)
        step = min(_longest(t, dt), _longest(beta, dbeta))
        ahead = float((beta + step * dbeta) @ (t + step * dt)) / len(t)
        dtheta, dxi, dt, dbeta = system.direction(beta * t + dbeta * dt - mu * (ahead / mu) ** 3)
        step = _INSIDE * min(_longest(t, dt), _longest(beta, dbeta))
        theta, xi, t, beta = theta + step * dtheta, xi + step * dxi, t + step * dt, beta + step * dbeta
    result = np.empty(len(rows))
    result[order] = beta
    return result[: len(owner)], theta


class _Program:
    """All constraints, sorted by their rows; ``first`` holds where each row's begin."""

    def __init__(self, problem: Problem, rows: Labels, r: Array, first: Labels) -> None:
        self.problem, self.rows, self.r, self.first = problem, rows, r, first
        ones = np.ones(len(first))
        self.sample = ones if problem.sample_weight is None else problem.sample_weight
        self.cost = ones if problem.cost_weight is None else problem.cost_weight

    def sums(self, values: Array) -> Array:
        """Sum over the constraints of every row."""
        total: Array = np.add.reduceat(values, self.first, axis=0)
        return total

    def gradient(self, R: Array) -> Array:
        """Return C sum_i s_i J_i' R_i."""
        return self.problem.C * self.problem.features.adjoint(R * self.sample[:, None])

    def products(self, F: Array) -> Array:
        """Return r.f of every constraint at the scores F (n, k)."""
        return np.einsum("mk,mk->m", self.r, (F / self.cost[:, None])[self.rows])


class _System:
    """The linear system of one iterate: row by row t, beta and xi are eliminated, and what is left in theta is

    I + C sum_i (s_i/w_i) J_i' N_i J_i,   N_i = sum D (r - mean r)(r - mean r)',   D = beta/t, the weights of the mean.

    Near the optimum D spans all magnitudes; deviations from the mean keep what differences of the large sums would lose.
    """

    def __init__(self, program: _Program, D: Array, t: Array, stationarity: Array, primal: Array, balance: Array) -> None:
        self.program, self.D, self.t = program, D, t
        self.stationarity, self.primal, self.balance = stationarity, primal, balance
        r, problem = program.r, program.problem
        self.total = program.sums(D)
        self.mean = program.sums(D[:, None] * r) / self.total[:, None]
        self.apart = r - self.mean[program.rows]
        N = program.sums(np.einsum("m,ma,mb->mab", D, self.apart, self.apart))
        N *= (problem.C * program.sample / program.cost)[:, None, None]
        self.factor = cho_factor(_curvature(problem.features.X, N), lower=True, overwrite_a=True, check_finite=False)

    def direction(self, complementarity: Array) -> tuple[Array, Array, Array, Array]:
        """Return the changes of theta, xi, t and beta that cancel the residuals and this complementarity (m,)."""
        program = self.program
        push = -complementarity / self.t - self.D * self.primal
        pull = program.sums(push) - self.balance
        fixed = program.sums(push[:, None] * self.apart) + self.mean * self.balance[:, None]
        right = -self.stationarity - program.gradient(fixed)
        dtheta = cho_solve(self.factor, right.ravel(), check_finite=False).reshape(right.shape)
        dF = program.problem.features.scores(dtheta) / program.cost[:, None]
        shift = pull / self.total
        moved = shift[program.rows] - np.einsum("mk,mk->m", self.apart, dF[program.rows])
        dxi = shift + np.einsum("nk,nk->n", self.mean, dF)
        return dtheta, dxi, moved + self.primal, push - self.D * moved


def _longest(values: Array, change: Array) -> float:
    """Return the longest step, at most 1 / _INSIDE, that keeps positive values positive."""
    falling = change < 0
    return min(1.0 / _INSIDE, float((-values[falling] / change[falling]).min(initial=np.inf)))


def _curvature(X: Any, N: Array) -> Array:
    """Return I + sum_i N_i (x) x_i x_i' over parameters (d, k) row by row, from symmetric N (n, k, k)."""
    d, k = X.shape[1], N.shape[1]
    X = X.toarray() if hasattr(X, "toarray") else X
    H = np.zeros((d, k, d, k))
    for a in range(k):
        for b in range(a + 1):
            seen = np.flatnonzero(np.abs(N[:, a, b]) > 1e-14)
            H[:, a, :, b] = X[seen].T @ (X[seen] * N[seen, a, b][:, None])
            H[:, b, :, a] = H[:, a, :, b]
    flat: Array = H.reshape(d * k, d * k)
    flat[np.diag_indices_from(flat)] += 1.0
    return flat


def _gram(problem: Problem, rows: Labels) -> Array:
    """Return the kernel among the rows, (m, m)."""
    assert isinstance(problem.features, KernelMap)
    return problem.features.block(rows)


@register("constraint_generation")
class ConstraintGenerationSolver(Solver):
    """Algorithm 1 of Fathony et al. 2016; its end is the last violation, so it goes beyond any tolerance that is asked for.

    Parameters
    ----------
    epsilon : float
        Violation that is left alone, at least 0, in units of the loss.
    batch : int or None
        Rows whose constraints are added between two solutions of the master, at least 1. None: all.
    """

    def __init__(self, epsilon: float = 0.0, batch: int | None = None) -> None:
        if not isinstance(epsilon, (int, float)) or not 0 <= epsilon < np.inf:
            raise ConfigError(f"solver.epsilon={epsilon} is not valid; give a finite number of at least 0")
        if batch is not None and (isinstance(batch, bool) or batch != int(batch) or batch < 1):
            raise ConfigError(f"solver.batch={batch} is not valid; give a whole number of at least 1, or null")
        self.epsilon, self.batch = float(epsilon), None if batch is None else int(batch)

    def lacks(self, problem: Problem) -> str | None:
        """Linear multiclass or kernel features."""
        features = problem.features
        if features.regularised is not None or not (features.multiclass_linear or isinstance(features, KernelMap)):
            return "multiclass linear or kernel features"
        return None

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the master's last optimum; a start is not used, because the counts are those of a run from nothing."""
        started = time.perf_counter()
        if isinstance(problem.features, KernelMap):
            problem.features.check_memory()
        master = _Master(problem)
        loss, y, n = problem.loss, problem.y, len(problem.y)
        allowed = max(self.epsilon, _ACCURACY)
        passes, status = 0.0, "converged"
        while status == "converged":
            added = 0
            size = self.batch or n
            for first in range(0, n, size):
                rows = np.arange(first, min(first + size, n))
                answer = loss.oracle(master.F[rows], y[rows])
                _, slack = master.slack()
                broken = (answer.value > slack[rows] + allowed * master.scale) & (master.sample[rows] > 0)
                passes += len(rows) / n
                if not broken.any():
                    continue
                master.add(rows[broken], answer.R[broken], answer.offset[broken])
                added += int(broken.sum())
                master.optimise(started + limits.max_seconds)
                passes += 1.0
                if passes >= limits.max_passes or time.perf_counter() - started > limits.max_seconds:
                    break
            if added == 0:
                break
            if passes >= limits.max_passes:
                status = "max_passes"
            elif time.perf_counter() - started > limits.max_seconds:
                status = "max_seconds"
        # equal rows that a fit has merged are counted as often as they occur, as the paper's are
        times = master.sample[master.owner]
        memory = {
            "n_constraints_added": float(times.sum()),
            "n_constraints_active": float(times[master.beta > _WEIGHT].sum()),
        }
        seconds = time.perf_counter() - started
        return Solution(master.theta, master.R.copy(), problem.lam, self.name, passes, seconds, status, memory)
