"""The polynomial kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from ...core.checks import NOT_NEGATIVE, at_least, is_number, refuse
from ...core.errors import ConfigError
from ...core.typing import Array
from ..base import register
from .kernel_map import KernelFeatures, positive_option

_MOST_DEGREE = 1000  # a power of values is that many products
_LARGEST = 1e100  # kernel value whose squares, summed over rows, stay finite


@register("poly")
class PolynomialFeatures(KernelFeatures):
    """Polynomial kernel (gamma x.z + coef0)^degree.

    Parameters
    ----------
    degree : int
        From 1 to 1000.
    gamma : float or None
        Scale of the inner product, above 0. None: 1 / d.
    coef0 : float
        Weight of the lower degrees and of the constant, at least 0 (below 0 the kernel is not positive semi-definite).
    """

    def __init__(
        self, X: Any, n_classes: int, *, degree: int = 3, gamma: float | None = None, coef0: float = 1.0, memory_mb: float = 1000.0
    ) -> None:
        super().__init__(X, n_classes, memory_mb=memory_mb)
        degree = int(degree) if is_number(degree) and degree == int(degree) else degree
        refuse("features.degree", degree, at_least(1, _MOST_DEGREE))
        refuse("features.coef0", coef0, NOT_NEGATIVE, "a number of at least 0 (below 0 the kernel is not positive semi-definite)")
        self.degree, self.coef0 = degree, float(coef0)
        self.gamma = 1.0 / X.shape[1] if gamma is None else positive_option("gamma", gamma)
        with np.errstate(over="ignore"):
            largest = float(self.diagonal.max(initial=0.0))
        if not largest <= _LARGEST:
            raise ConfigError(f"features.degree={degree} makes kernel values up to {largest:.0e}; give a smaller degree or gamma")

    @property
    def options(self) -> dict[str, float]:
        """Degree, scale and constant."""
        return {"degree": self.degree, "gamma": self.gamma, "coef0": self.coef0}

    def kernel(self, X: Any, Z: Any) -> Array:
        """Return (gamma x.z + coef0)^degree."""
        from sklearn.metrics.pairwise import polynomial_kernel  # takes a third of a second, with what it imports

        K = np.asarray(polynomial_kernel(X, Z, degree=1, gamma=self.gamma, coef0=self.coef0))
        if self.degree == 1:
            return K
        power = K.copy()
        for _ in range(self.degree - 1):  # repeated products: many times faster than pow for the degrees in use
            power *= K
        return power

    @property
    def diagonal(self) -> Array:
        """(gamma |x_i|^2 + coef0)^degree."""
        squares = row_norms(self.X, squared=True)
        return (self.gamma * squares + self.coef0) ** self.degree
