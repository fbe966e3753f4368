"""The Gaussian kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.arrays import is_sparse
from ...core.compiled import aligned_zeros, kernels
from ...core.errors import ConfigError
from ...core.typing import Array
from ..base import register
from .kernel_map import KernelFeatures, positive_option

_FEW_COLUMNS = 256  # up to which the compiled loop is faster than a product of matrices


def _squared_distances(X: Any, Z: Any) -> Array:
    """Return |x - z|^2 of rows (n, d) and (m, d), shape (n, m)."""
    if is_sparse(X) or is_sparse(Z):
        from sklearn.metrics.pairwise import euclidean_distances  # takes a third of a second, with what it imports

        return np.asarray(euclidean_distances(X, Z, squared=True))
    # the sum of scikit-learn's euclidean_distances, bit for bit, without validation and copies of valid rows
    squares = X @ Z.T
    squares *= -2.0
    squares += np.einsum("ij,ij->i", X, X)[:, None]
    squares += np.einsum("ij,ij->i", Z, Z)
    return np.asarray(np.maximum(squares, 0.0, out=squares))


@register("rbf")
class GaussianFeatures(KernelFeatures):
    """Gaussian kernel exp(-gamma |x - z|^2), plus a constant, the intercept.

    Parameters
    ----------
    gamma : float or None
        Inverse squared width, above 0. None: 1 / d.
    constant : float
        At least 0; learners whose scores need an intercept set it to 1.
    """

    hyper = ("gamma",)

    def __init__(self, X: Any, n_classes: int, *, gamma: float | None = None, constant: float = 0.0, memory_mb: float = 1000.0) -> None:
        super().__init__(X, n_classes, memory_mb=memory_mb)
        self.gamma = 1.0 / X.shape[1] if gamma is None else positive_option("gamma", gamma)
        self.constant = positive_option("constant", constant) if constant else 0.0

    @property
    def options(self) -> dict[str, float]:
        """The width and the constant."""
        return {"gamma": self.gamma, "constant": self.constant}

    def kernel(self, X: Any, Z: Any) -> Array:
        """Return exp(-gamma |x - z|^2) plus the constant."""
        K = _squared_distances(X, Z)
        K *= -self.gamma
        np.exp(K, out=K)
        if self.constant:
            K += self.constant
        return K

    @property
    def matrix(self) -> Array:
        """The whole matrix K (n, n), exactly symmetric; computed once, of few dense columns by the compiled loop."""
        store = self.store
        if store.matrix is None and self.X.shape[1] <= _FEW_COLUMNS and not is_sparse(self.X):
            X, K = np.ascontiguousarray(self.X, dtype=np.float64), aligned_zeros((self.n_rows, self.n_rows))
            try:
                kernels.gaussian.matrix(X, self.gamma, self.constant, K)
            except ValueError as error:
                raise ConfigError(f"features.gamma={self.gamma:g} is too large for these rows; choose a smaller one: {error}") from error
            store.matrix = K
        return super().matrix

    @property
    def diagonal(self) -> Array:
        """One plus the constant."""
        return np.full(self.n_rows, 1.0 + self.constant)
