"""Multiclass linear features: f = Theta' x, one weight vector per class (Fathony et al. 2018, eq. 70)."""

from __future__ import annotations

import numpy as np

from .base import Array, FeatureMap, register


@register("linear")
class LinearFeatures(FeatureMap):
    """Scores F = X Theta with Theta of shape (d, k); every weight is regularised, a constant column of X like any other."""

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (d, k) of the parameters."""
        return int(self.X.shape[1]), self.n_classes

    @property
    def squares(self) -> Array:
        """Squared row norms |x_i|^2, shape (n,)."""
        if hasattr(self.X, "tocsr"):
            return np.asarray(self.X.multiply(self.X).sum(axis=1), dtype=np.float64).ravel()
        return np.einsum("ij,ij->i", self.X, self.X)

    def scores(self, theta: Array) -> Array:
        """Return X Theta, shape (n, k)."""
        return np.ascontiguousarray(self.X @ theta)

    def adjoint(self, R: Array) -> Array:
        """Return X'R, shape (d, k)."""
        return np.ascontiguousarray(self.X.T @ R)
