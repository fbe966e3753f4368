"""Multiclass linear features: f = Theta' x, one weight vector per class (Fathony et al. 2018, eq. 70)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

from ..compiled import kernels
from .base import Array, Directions, ExplicitMap, Labels, register

MAX_UPDATES = 30  # of a sum over rows before the next full sum, so that rounding errors stay small
_ROWS = 4096  # rows of a sparse product, whose sums take more memory than their total where many rows share a column
_FEW = 4  # directions per parameter up to which Z is written out


def pays_to_update(updates: int, changed: int, rows: int) -> bool:
    """Return whether updating a sum over rows, by the rows that left or entered, is cheaper than a full sum."""
    return updates < MAX_UPDATES and 2 * changed <= rows


def add_squares(total: Array, Z: Array, sign: float) -> None:
    """Add sign Z'Z to the lower triangle of ``total``, in place; its columns are contiguous, the rows of Z too."""
    if len(Z):
        dsyrk(sign, Z.T, beta=1.0, c=total, lower=1, overwrite_c=1)


def _dense(X: Any) -> Array:
    return X.toarray() if hasattr(X, "toarray") else X


class _LinearDirections(Directions):
    """Rows b (x) x: Z Z' = (B B') o (X X'); Z' Z is updated by the faces that differ from those of the directions before."""

    def __init__(self, features: LinearFeatures, B: Array, owner: Labels) -> None:
        super().__init__(B, owner)
        self.features = features
        self.shape = features.shape
        self.before: _LinearDirections | None = None
        self.moments: Array | None = None  # Z' diag(weight) Z, its lower triangle
        self.weight = np.empty(0)
        self.updates = 0  # of `moments` since the last full sum

    @property
    def low_rank(self) -> bool:
        return len(self.owner) <= self.shape[0] * self.shape[1]

    @cached_property
    def X(self) -> Array:
        return _dense(self.features.X[self.owner])

    def forward(self, theta: Array) -> Array:
        return np.einsum("mk,mk->m", self.X @ theta, self.B)

    def backward(self, v: Array) -> Array:
        return self.X.T @ (v[:, None] * self.B)

    def gram(self) -> Array:
        return (self.X @ self.X.T) * (self.B @ self.B.T)

    def columns(self, chosen: Labels) -> Array:
        feature, label = np.divmod(chosen, self.shape[1])
        rows = self.features.X[self.owner][:, feature]
        return np.asarray(_dense(rows) * self.B[:, label])

    def follow(self, before: Directions) -> None:
        assert isinstance(before, _LinearDirections)
        # without a Hessian of its own the previous object hands on the sums of the one before it
        self.before = before if before.moments is not None else before.before
        before.before = None

    def hessian(self, weight: Array, factor: float = 1.0) -> Array:
        before, self.before = self.before, None
        total = None
        if before is not None and before.moments is not None:
            left, entered = np.empty(len(before.owner), dtype=np.bool_), np.empty(len(self.owner), dtype=np.bool_)
            kernels.newton.differing(before.owner, before.B, self.owner, self.B, left.view(np.int8), entered.view(np.int8))
            changed = int(np.count_nonzero(left) + np.count_nonzero(entered))
            if pays_to_update(before.updates, changed, len(self.owner)):
                total, self.updates = before.moments, before.updates + 1
                before._add(total, np.flatnonzero(left), before.weight[left], -1.0)
                self._add(total, np.flatnonzero(entered), weight[entered], 1.0)
        if total is None:
            total = self._sum(weight)
        self.moments, self.weight = total, weight
        H = total * factor
        H.flat[:: len(H) + 1] += 1.0
        return H

    def _add(self, total: Array, rows: Labels, weight: Array, sign: float) -> None:
        """Add sign times Z' diag(weight) Z of some rows of Z, written out, to the lower triangle of ``total``."""
        X = _dense(self.features.X[self.owner[rows]]) * np.sqrt(weight)[:, None]
        add_squares(total, (X[:, :, None] * self.B[rows][:, None, :]).reshape(len(rows), len(total)), sign)

    def _sum(self, weight: Array) -> Array:
        d, k = self.shape
        size = d * k
        if len(self.owner) <= _FEW * size:
            total = np.zeros((size, size), order="F")
            self._add(total, np.arange(len(self.owner)), weight, 1.0)
            return total
        # by pairs of classes, over the examples that move both: Z would be large, with several rows for most examples
        examples, slot = np.unique(self.owner, return_inverse=True)
        M = np.zeros((len(examples), k, k))
        kernels.newton.projectors(self.B, slot.astype(np.intp), M)
        M *= weight[np.searchsorted(self.owner, examples)][:, None, None]
        X = _dense(self.features.X[examples])
        H = np.zeros((d, k, d, k))
        for a in range(k):
            for b in range(a + 1):
                touched = np.flatnonzero(M[:, a, b])
                if len(touched):
                    rows = X if len(touched) == len(examples) else X[touched]
                    H[:, a, :, b] = rows.T @ (rows * M[touched, a, b][:, None])
                    H[:, b, :, a] = H[:, a, :, b]
        flat: Array = H.reshape(size, size).T  # symmetric: the transpose only makes columns contiguous
        return flat


@register("linear", "multiclass")
class LinearFeatures(ExplicitMap):
    """Scores F = X Theta with Theta of shape (d, k); every weight is regularised, a constant column of X like any other."""

    multiclass_linear = True

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (d, k) of the parameters."""
        return int(self.X.shape[1]), self.n_classes

    def scores(self, theta: Array) -> Array:
        """Return X Theta, shape (n, k)."""
        return np.ascontiguousarray(self.X @ theta)

    def adjoint(self, R: Any) -> Array:
        """Return X'R, shape (d, k), for an array R, or for a CSR matrix where X is one."""
        if isinstance(R, np.ndarray):
            return np.ascontiguousarray(self.X.T @ R)
        total = np.zeros(self.shape)
        for first in range(0, self.n_rows, _ROWS):
            found = (self.X[first : first + _ROWS].T @ R[first : first + _ROWS]).tocoo()
            total[found.row, found.col] += found.data  # every place once
        return total

    def squared_adjoint(self, R: Array) -> Array:
        """Return (X o X)'R, shape (d, k)."""
        return np.ascontiguousarray((self.X.multiply(self.X) if hasattr(self.X, "tocsr") else self.X**2).T @ R)

    def largest(self) -> Array:
        """Return max_i |x_i|, repeated for every class, shape (d, k)."""
        top = np.asarray(_dense(abs(self.X).max(axis=0)), dtype=np.float64).ravel()
        return np.repeat(top[:, None], self.n_classes, axis=1)

    def directions(self, B: Array, owner: Labels) -> Directions:
        """Return the rows b (x) x_owner."""
        return _LinearDirections(self, B, owner)
