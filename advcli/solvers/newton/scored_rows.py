"""Rows of threshold models, behind a kernel matrix or of explicit features: their scores, and the systems of Newton steps (`threshold`).

A system holds the rows with free hinges alone; its factor is kept where these rows hardly change from step to step (`systems`). Where there
are fewer columns than such rows, it holds the normal equations in (w, eta).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.arrays import dense, is_sparse
from ...core.linalg import LinAlgError, dposv, dpotrf, dpotrs, eigh
from ...core.typing import Array, Labels
from .systems import KernelSystems

Solver = Callable[[Labels, Array, Array], Array]


@dataclass
class ThresholdSystem:
    """The rows with free hinges, and what a Newton system needs of them."""

    rows: Labels
    q: Array  # free hinges of each of these rows
    B: Array  # (rows, m) ones at free hinges
    E: Array  # B / q
    sigma: float
    H: Array  # (m, m) curvature in eta that the rows' part does not hold
    whole: Array  # (m, m) all curvature in eta
    gradient: Array  # minus the gradient in eta


class ScoredRows(ABC):
    """What the solver needs of n rows: coordinates v of w, and scores."""

    n: int
    square: float  # mean of |x_i|^2
    fall: float = 0.3  # of sigma after a proximal step

    @abstractmethod
    def spanned(self, beta: Array) -> Array:
        """Return the coordinates of sum_i beta_i x_i."""

    @abstractmethod
    def scores(self, v: Array) -> Array:
        """Return g (n,)."""

    def inner(self, v: Array, other: Array, scores: Array) -> float:
        """Return <v, other>, from the scores of ``other`` over a kernel."""
        return float(v @ other)

    @abstractmethod
    def among(self, rows: Labels) -> ScoredRows:
        """Return some of the rows, in rising order."""

    def lifted(self, v: Array, rows: Labels) -> Array:
        """Return the coordinates over all rows of a w with coordinates ``v`` over some of them."""
        return v

    @abstractmethod
    def block(self, rows: Labels) -> Array:
        """Return the inner products among some rows."""

    def pull(self, residual: Array) -> Array:
        """Return what <residual, residual> is a product with: the scores over a kernel."""
        return residual

    @abstractmethod
    def direction(self, residual: Array, pull: Array, system: ThresholdSystem) -> tuple[Array, Array, Array]:
        """Return dv, its scores and deta of a Newton step for the residual w(alpha) - w."""

    def solved(self, rows: Labels, diagonal: Array, right: Array) -> Array:
        """Return (G + diagonal)^-1 right for the inner products G among some rows, by a new factor."""
        G = self.block(rows)
        G[np.diag_indices_from(G)] += diagonal
        factor, info = dpotrf(G.T, lower=0, overwrite_a=1, clean=0)
        if info:
            raise LinAlgError("the system of the free rows has no factor")
        return np.asarray(dpotrs(factor, right, lower=0)[0])

    def by_rows(self, pull: Array, system: ThresholdSystem, solved: Solver | None = None) -> tuple[Array, Array]:
        """Return dbeta over the rows with free hinges and deta; ``pull`` are the scores of the residual, ``solved`` solves the system."""
        rows, E, H = system.rows, system.E, system.H
        if not len(rows):
            return np.zeros(0), _solved(H, system.gradient)
        inverse = (solved or self.solved)(rows, system.sigma / system.q, np.column_stack([E, pull[rows]]))
        deta = _solved(H + E.T @ inverse[:, :-1], system.gradient + E.T @ inverse[:, -1])
        return inverse[:, :-1] @ deta - inverse[:, -1], deta


def _solved(H: Array, right: Array) -> Array:
    """Return H^-1 right for a positive semi-definite H; directions without curvature do not move."""
    if H.shape == (1, 1):
        return right / H[0, 0] if H[0, 0] > 0.0 else np.zeros(1)
    values, vectors = eigh(H)
    inverse = np.where(values > 1e-13 * max(float(values[-1]), 1e-300), 1.0 / np.maximum(values, 1e-300), 0.0)
    return np.asarray(vectors @ (inverse * (vectors.T @ right)))


class KernelRows(ScoredRows):
    """Rows behind a kernel matrix; coordinates are coefficients over them."""

    fall = 0.55  # more proximal steps of fewer Newton steps, which are what costs here

    def __init__(self, K: Array) -> None:
        self.K, self.n, self.square = K, len(K), float(K.diagonal().mean())
        self.systems = KernelSystems(K)

    def spanned(self, beta: Array) -> Array:
        """Return beta itself."""
        return beta

    def scores(self, v: Array) -> Array:
        """Return K v."""
        some = np.flatnonzero(v)
        return self.K @ v if 3 * len(some) > len(v) else v[some] @ self.K[some]

    def inner(self, v: Array, other: Array, scores: Array) -> float:
        """Return v'K other."""
        return float(v @ scores)

    def pull(self, residual: Array) -> Array:
        """Return K residual."""
        return self.scores(residual)

    def among(self, rows: Labels) -> ScoredRows:
        """Return the rows of a part of K."""
        return KernelRows(self.K if len(rows) == self.n else np.ascontiguousarray(self.K[np.ix_(rows, rows)]))

    def lifted(self, v: Array, rows: Labels) -> Array:
        """Return coefficients that are 0 at the rows left out."""
        spread = np.zeros(self.n)
        spread[rows] = v
        return spread

    def block(self, rows: Labels) -> Array:
        """Return K among rows."""
        return self.K[np.ix_(rows, rows)]

    def direction(self, residual: Array, pull: Array, system: ThresholdSystem) -> tuple[Array, Array, Array]:
        """Return the step by the rows' system."""
        dbeta, deta = self.by_rows(pull, system, self.systems.solve)
        moved = np.zeros(self.n)
        moved[system.rows] = dbeta
        return residual + moved, pull + self.scores(moved), deta


class ExplicitRows(ScoredRows):
    """Rows of features; coordinates are w itself."""

    def __init__(self, X: Any) -> None:
        self.X, self.n = X, X.shape[0]
        self.square = float((X.multiply(X) if is_sparse(X) else np.square(X)).sum()) / self.n

    def spanned(self, beta: Array) -> Array:
        """Return X'beta."""
        return np.asarray(self.X.T @ beta)

    def scores(self, v: Array) -> Array:
        """Return X w."""
        return np.asarray(self.X @ v)

    def among(self, rows: Labels) -> ScoredRows:
        """Return some rows of X."""
        return ExplicitRows(self.X if len(rows) == self.n else self.X[rows])

    def block(self, rows: Labels) -> Array:
        """Return X_R X_R'."""
        part = self.X[rows]
        return np.asarray(dense(part @ part.T))

    def direction(self, residual: Array, pull: Array, system: ThresholdSystem) -> tuple[Array, Array, Array]:
        """Return the step by the smaller of the two systems."""
        d = len(residual)
        if d <= len(system.rows):
            dv, deta = self._by_columns(residual, system)
        else:
            dbeta, deta = self.by_rows(self.scores(residual), system)
            dv = residual + np.asarray(self.X[system.rows].T @ dbeta)
        return dv, self.scores(dv), deta

    def _by_columns(self, residual: Array, system: ThresholdSystem) -> tuple[Array, Array]:
        part, d, m = self.X[system.rows], len(residual), len(system.gradient)
        weighed = part.multiply(system.q[:, None]).tocsr() if is_sparse(part) else part * system.q[:, None]
        H = np.empty((d + m, d + m))
        H[:d, :d] = dense(part.T @ weighed) / system.sigma
        H[:d, d:] = -np.asarray(part.T @ system.B) / system.sigma
        H[d:, :d] = H[:d, d:].T
        H[d:, d:] = system.whole
        H[np.arange(d), np.arange(d)] += 1.0
        # a threshold that no free hinge sees has no curvature, and need not move
        H[np.arange(d, d + m), np.arange(d, d + m)] += 1e-12 * max(1.0, float(system.whole.diagonal().max()))
        _, step, info = dposv(H, np.concatenate([residual, system.gradient]), overwrite_a=1)
        if info:
            raise LinAlgError("the system of the columns has no factor")
        return step[:d], step[d:]
