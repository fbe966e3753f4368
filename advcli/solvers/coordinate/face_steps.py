"""Newton steps of the dual on the faces that block ascent has found: they end the long tail of passes at small lambda.

Around an exact block step c is linear on a face of conv R(y_i). So over all rows D(r + B a) is a quadratic function of the coordinates a
along the tangents b_m of these faces. In units of e_m = s_i |x_i| / sqrt(lambda n), i the row of b_m, it has its maximum at rho = 0 in

    (G + rho I) z = e o h,  a = z / e,  G_ml = (x_i'x_j)(b_m'b_l) / (|x_i||x_j|),  h_m = (r_i' - r_i)'b_m                          (1)

with r' the block steps at the present scores, whose own optimality makes e o e o h the gradient. rho makes the step shorter and turns it
towards one of Jacobi's (Marquardt 1963, "An algorithm for least-squares estimation of nonlinear parameters", J. SIAM 11, 431-441);
beyond the faces the quadratic function is wrong, so that the step is cut, each row brought back into its set, until D rises.

Passes find the faces, which steps cannot, and run on between them; a step moves all rows together, which passes do in hundreds
(docs/notes/kernels.md, section 2).
"""

from __future__ import annotations

import math

import numpy as np

from ...core.arithmetic import log
from ...core.arrays import is_sparse
from ...core.compiled import kernels
from ...core.linalg import dposv, inner
from ...core.typing import Array, Labels
from ...problems.risk import Problem

# Multiply-adds that cost as much as one of a visit: BLAS is faster per operation, calls from Python wait.
_BLAS, _CALLS = 4.0, 1e7
_FIRST = 20.0  # passes before the first step, at least
_SERIES = 8.0  # steps that take most fits to their end
_STEPS = (1.0, 0.5, 0.25, 0.1, 0.03)
_RIDGES = (0.3, 1.0, 3.0, 6.0, 10.0, 10.0)  # what rho is multiplied by after each of these, and after none raised D
_RIDGE, _LEAST_RIDGE, _LARGEST_RIDGE = 1e-2, 1e-7, 1.0
_MOST = 3000  # rows of a step: its two matrices take 144 MB then


class FaceSteps:
    """Steps on the faces of one ascent to the relative gap ``tol``, and when they pay."""

    def __init__(self, problem: Problem, squares: Array, tol: float) -> None:
        self.loss, self.C, self.tol, self.X = problem.loss, problem.C, tol, problem.features.X
        self.y, self.squares = np.ascontiguousarray(problem.y, dtype=np.intp), squares
        self.sample, self.cost = problem.sample_weight, problem.cost_weight
        n, d = self.X.shape
        self.length = self.X.nnz / max(n, 1) if is_sparse(self.X) else float(d)
        width = kernels.ascent_dense_for(self.loss.n_classes, d).width(self.loss.n_classes)
        self.one_pass = max(2.0 * n * self.length * width, 1.0)  # rows may hold nothing but zeros
        self.ridge, self.patience, self.last = _RIDGE, 1.0, 0.0
        self.work = np.empty((2, 0))  # kept, since the pages of a new block cost as much as what is written to them

    def first(self) -> float:
        """Return the passes before which no step pays."""
        return max(_FIRST, _CALLS / self.one_pass)

    def price(self, directions: int) -> float:
        """Return the cost of a step over so many directions, in passes."""
        m = float(directions)
        return (_CALLS + (m * m * (self.length + self.loss.n_classes) + m**3 / 3.0) / _BLAS) / self.one_pass

    def rest(self, passes: float, gap: float) -> float:
        """Return the passes that are left if the logarithm of the relative gap, now ``gap``, goes on falling as it has on average."""
        if not self.tol < gap < 1.0:
            return 0.0 if gap <= self.tol else math.inf
        return passes * log(gap / self.tol) / -log(gap)

    def take(self, R: Array, theta: Array, passes: float, most: float, gap: float) -> tuple[float, float]:
        """Make a step in place on r (n, kp) and theta (d, kp) = theta(r) if it pays; return when the next may pay, and the passes read.

        The first pays where passes alone would go on for longer than `_SERIES` steps, every further one after as much has gone to passes.
        No step is made that reads more than ``most`` leave.
        """
        moved = np.flatnonzero(R.any(axis=1) & (self.squares > 0.0))
        wait = self.price(len(moved)) * self.patience
        if not 0 < len(moved) <= _MOST or (self.last == 0.0 and self.rest(passes, gap) < _SERIES * wait):
            return 1.2 * passes, 0.0
        if wait > passes - self.last or passes + self.reads(len(moved), len(_STEPS)) > most:
            return max(min(self.last + wait, 1.2 * passes), passes + 1.0), 0.0
        chosen, trials = self.step(R, theta, moved)
        self.ridge = min(max(self.ridge * _RIDGES[chosen], _LEAST_RIDGE), _LARGEST_RIDGE)
        self.patience = 2.0 * self.patience if chosen == len(_STEPS) else 1.0
        read = self.reads(len(moved), trials)
        self.last = passes + read
        return self.last + wait, read

    def reads(self, rows: int, trials: int) -> float:
        """Return the passes that a step reads its rows for: their scores, their products, the moments of each trial."""
        return (2.0 + trials) * rows / len(self.y)

    def step(self, R: Array, theta: Array, rows: Labels) -> tuple[int, int]:
        """Make a step over some rows; return which of `_STEPS` raised D most, and how many were tried."""
        k, C = self.loss.n_classes, self.C
        X, y, before = self.X[rows], self.y[rows], np.ascontiguousarray(R[rows, :k])
        s = np.ones(len(rows)) if self.sample is None else self.sample[rows]
        w = np.ones(len(rows)) if self.cost is None else self.cost[rows]
        F = X @ theta[:, :k]
        length = np.sqrt(self.squares[rows])
        after, face = kernels.face(self.loss.family, F / w[:, None], before, y, C * s * length**2 / w)
        B, owner = kernels.tangents(self.loss.family, face, s == 0.0)
        if len(owner) == 0:
            return len(_STEPS), 0
        e = np.sqrt(C) * (s * length)[owner]
        m = len(owner)
        if self.work.shape[1] < m * m:
            self.work = np.empty((2, m * m))
        G, H = (part[: m * m].reshape(m, m) for part in self.work)
        np.matmul(B, B.T, out=H)
        if is_sparse(X):
            unit = X.multiply(1.0 / length[:, None]).tocsr()
            G[:] = (unit @ unit.T).toarray()[np.ix_(owner, owner)]
        else:
            unit = (X / length[:, None])[owner]
            np.matmul(unit, unit.T, out=G)
        G *= H
        G.flat[:: len(G) + 1] += self.ridge
        h = np.einsum("mk,mk->m", (after - before)[owner], B)
        _, z, failed = dposv(G.T, e * h, lower=1, overwrite_a=1)
        if failed or not np.isfinite(z).all():
            return len(_STEPS), 0
        change = np.zeros_like(before)
        np.add.at(change, owner, (z / e)[:, None] * B)
        base, best, chosen, trials = self.loss.offset(before, y), 0.0, len(_STEPS), 0
        for index, t in enumerate(_STEPS):
            trial = self.loss.inside(before + t * change, y)
            moments = X.T @ ((trial - before) * s[:, None])
            # D(trial) - D(before) in C form
            gain = C * float((s * w) @ (self.loss.offset(trial, y) - base)) + C * inner(moments, theta[:, :k])
            gain -= 0.5 * C * C * inner(moments, moments)
            trials += 1
            if gain > best:
                best, chosen, raised, shift = gain, index, trial, moments
            elif chosen < len(_STEPS):
                break
        if chosen < len(_STEPS):
            R[rows, :k] = raised
            theta[:, :k] -= C * shift
        return chosen, trials
