"""Multiclass linear features: f = Theta' x, one weight vector per class (Fathony et al. 2018, eq. 70)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..compiled import kernels
from .base import Array, Directions, ExplicitMap, Labels, register


def _dense(X: Any) -> Array:
    return X.toarray() if hasattr(X, "toarray") else X


class _LinearDirections(Directions):
    """Rows b (x) x, never written out: Z Z' = (B B') o (X X'), and the Hessian by pairs of classes from the rows that touch both."""

    def __init__(self, features: LinearFeatures, B: Array, owner: Labels) -> None:
        super().__init__(B, owner)
        self.features = features
        self.shape = features.shape

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

    def hessian(self, scale: Array) -> Array:
        d, k = self.shape
        examples, slot = np.unique(self.owner, return_inverse=True)
        M = np.zeros((len(examples), k, k))
        kernels.newton.projectors(self.B, slot.astype(np.intp), M)
        M *= scale[np.searchsorted(self.owner, examples)][:, None, None]
        X = _dense(self.features.X[examples])
        H = np.zeros((d, k, d, k))
        for a in range(k):
            for b in range(a + 1):
                touched = np.flatnonzero(M[:, a, b])
                if len(touched):
                    rows = X if len(touched) == len(examples) else X[touched]
                    H[:, a, :, b] = rows.T @ (rows * M[touched, a, b][:, None])
                    H[:, b, :, a] = H[:, a, :, b]
        flat: Array = H.reshape(d * k, d * k)
        flat[np.diag_indices_from(flat)] += 1.0
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

    def adjoint(self, R: Array) -> Array:
        """Return X'R, shape (d, k)."""
        return np.ascontiguousarray(self.X.T @ R)

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
