"""Systems (K_RR + D) X = B over rows R of one kernel matrix, with diagonals D > 0; R and D change little from one system to the next.

The factor of an earlier system, A = K_SS + D', serves later ones. Rows that have left S are held at 0 and rows that have come are
bordered, both exactly, by a Schur complement over the changed rows. What remains is the difference of the diagonals, which conjugate
gradients take away: with D/D' in [a, b] the eigenvalues of the system preconditioned so lie in [min(a, 1), max(b, 1)], and closer to 1
where K has a ridge.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.linalg import LinAlgError, dgetrf, dgetrs, dpotrf, dpotrs
from ...core.typing import Array, Labels

_PRECISION = 1e-3  # error of a solution by conjugate gradients, in the norm of the system: a line search follows the direction
_FIRST = 3.0  # iterations that the first system is taken to need
_READS = 2.5  # time of an operation in a product of a few columns, which waits for memory, in operations of a factor
_ROWS = 400  # rows below which every system is factorised anew


class KernelSystems:
    """Solver of systems over rows of a kernel matrix K (n, n), one after the other.

    ``rows`` are S, the rows of the factor at hand; none before the first system of `_ROWS` rows.
    """

    def __init__(self, K: Array) -> None:
        self.K, self.n = K, len(K)
        self.diagonal, self.place, self.known = np.zeros(self.n), np.zeros(self.n, dtype=np.intp), np.zeros(self.n, dtype=np.intp)
        self.iterations = _FIRST  # of the last system
        self.widest = np.inf  # least ratio of D/D' at two rows that took conjugate gradients too long
        self._forget()

    def solve(self, rows: Labels, D: Array, B: Array) -> Array:
        """Return X (r, c) with (K_RR + D) X = B for rows R in rising order and D (r,) > 0; `LinAlgError` where it has no factor."""
        if self._pays(rows, D, B.shape[1]):
            X = self._updated(rows, D, B)
            if X is not None:
                return X
        self._forget()
        G = self.K[np.ix_(rows, rows)]
        G[np.diag_indices_from(G)] += D
        factor, info = dpotrf(G.T, lower=0, overwrite_a=1, clean=0)
        if info:
            raise LinAlgError("the system of the free rows has no factor")
        if len(rows) >= _ROWS:
            self.rows, self.factor = rows, factor
            self.diagonal[rows] = D
            self.place[rows] = np.arange(len(rows))
            self.columns = np.empty((len(rows), 0), order="F")
        return np.asarray(dpotrs(factor, B, lower=0)[0])

    def _forget(self) -> None:
        """Drop the factor."""
        self.rows = np.empty(0, dtype=np.intp)
        self.factor = self.columns = np.empty((0, 0))
        self.diagonal[:] = 0.0  # D'
        self.place[:] = -1  # positions of rows in S, -1 beyond it
        self.known[:] = -1  # and their columns in ``columns``, -1 before they are asked for

    def _changed(self, rows: Labels) -> tuple[Labels, Labels]:
        """Return the rows of the factor that are not among ``rows``, and the rows that it lacks."""
        left = self.place >= 0
        left[rows] = False
        return np.flatnonzero(left), rows[self.place[rows] < 0]

    def _spread(self, rows: Labels, D: Array) -> float:
        """Return a bound of the condition number that the differing diagonals leave."""
        ratio = D / np.where(self.place[rows] < 0, D, self.diagonal[rows])
        return float(ratio.max(initial=1.0) / ratio.min(initial=1.0))

    def _turn(self, width: int) -> float:
        """Return the operations of an iteration on ``width`` columns, in operations of a factor."""
        return _READS * 2.0 * width * (float(self.n) ** 2 + float(len(self.rows)) ** 2)

    def _pays(self, rows: Labels, D: Array, width: int) -> bool:
        """Tell whether the factor at hand is expected to cost less than a new one."""
        if not len(self.rows) or self._spread(rows, D) >= self.widest:
            return False
        changed = np.concatenate(self._changed(rows))
        size, new, all_changed = float(len(self.rows)), float(np.count_nonzero(self.known[changed] < 0)), float(len(changed))
        complement = 2.0 * new * size**2 + all_changed**2 * (size + all_changed)
        return complement + self.iterations * self._turn(width) < float(len(rows)) ** 3 / 3.0

    def _learned(self, changed: Labels) -> Array:
        """Return the columns A^-1 e of rows that left the factor, A^-1 K_Se of rows that it lacks."""
        new = changed[self.known[changed] < 0]
        if len(new):
            right = np.zeros((len(self.rows), len(new)), order="F")
            inside = self.place[new] >= 0
            right[self.place[new[inside]], np.flatnonzero(inside)] = 1.0
            right[:, ~inside] = self.K[np.ix_(self.rows, new[~inside])]
            columns, _ = dpotrs(self.factor, right, lower=0, overwrite_b=1)
            self.known[new] = self.columns.shape[1] + np.arange(len(new))
            self.columns = np.asfortranarray(np.hstack([self.columns, columns]))
        return self.columns[:, self.known[changed]]

    def _bordered(self, rows: Labels, D: Array) -> Callable[[Array], Array] | None:
        """Return the inverse of the factor's system over ``rows``, for numbers (n, c) of all rows; None where the complement has none."""
        left, come = self._changed(rows)
        gone, k, at = self.place[left], len(left), self.rows
        V = self._learned(np.concatenate([left, come]))
        across = self.K[np.ix_(come, at)]
        complement = np.empty((V.shape[1], V.shape[1]))
        complement[:k], complement[k:] = V[gone], -(across @ V)
        complement[k:, k:] += self.K[np.ix_(come, come)] + np.diag(D[self.place[rows] < 0])
        if V.shape[1]:
            lu, pivots, info = dgetrf(complement)
            if info:
                return None

        def inverse(R: Array) -> Array:
            y, _ = dpotrs(self.factor, R[at], lower=0, overwrite_b=1)
            Z = np.zeros_like(R)
            if V.shape[1]:
                z, _ = dgetrs(lu, pivots, np.vstack([y[gone], R[come] - across @ y]))
                y -= V @ z
                Z[come] = z[k:]
            Z[at] = y
            Z[left] = 0.0
            return Z

        return inverse

    def _updated(self, rows: Labels, D: Array, B: Array) -> Array | None:
        """Return the solution by conjugate gradients behind the factor at hand; None where a new one costs less after all."""
        inverse = self._bordered(rows, D)
        if inverse is None:
            return None
        diagonal, mask, R = np.zeros((self.n, 1)), np.zeros((self.n, 1)), np.zeros((self.n, B.shape[1]))
        diagonal[rows, 0], mask[rows], R[rows] = D, 1.0, B
        X, P = np.zeros_like(R), inverse(R)
        first = size = _dots(R, P)
        most = max(2, int(len(rows) ** 3 / (3.0 * self._turn(B.shape[1]))))
        for turn in range(1, most + 1):
            Q = mask * (P.T @ self.K).T + diagonal * P
            step = _over(size, _dots(P, Q))
            X += step * P
            R -= step * Q
            Z = inverse(R)
            before, size = size, _dots(R, Z)
            fallen = float(_over(size, first).max())
            if fallen <= _PRECISION**2:
                self.iterations = float(turn)
                return X[rows]
            # as many more at the rate so far would cost more than a new factor
            if turn > 1 and not turn * np.log(_PRECISION**2) > most * np.log(fallen):
                break
            P = Z + _over(size, before) * P
        self.widest = self._spread(rows, D)
        return None


def _dots(P: Array, Q: Array) -> Array:
    """Return the inner products of columns."""
    return np.asarray(np.einsum("ij,ij->j", P, Q))


def _over(p: Array, q: Array) -> Array:
    """Return p / q, 0 where q is not positive."""
    return np.divide(p, q, out=np.zeros_like(p), where=q > 0.0)
