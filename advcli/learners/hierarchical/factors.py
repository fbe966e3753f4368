"""Weights of very many labels as factors, and the lists in which their dual sums are kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ...core.typing import Array

LISTS, CELLS = 4096, 2**27
"""From so many labels, or labels x features, on, the dual sums of sparse rows are kept as lists per feature."""


@dataclass(frozen=True, eq=False)
class FactoredWeights:
    """Leaf weights U = scale K Z, never formed: Z is sparse, U is dense because all labels share the weights of nodes near the top.

    Attributes
    ----------
    sums : csr_array (k, d)
        Z.
    membership : csr_array (k, M)
        A, labels x nodes.
    alpha : ndarray (M,)
        Of K = A diag(alpha) A'.
    scale : float
    """

    sums: sparse.csr_array
    membership: sparse.csr_array
    alpha: Array
    scale: float

    @cached_property
    def by_feature(self) -> sparse.csr_array:
        """Z' (d, k): the scores of a row of X need the row's own features alone."""
        return self.sums.T.tocsr()

    def scores(self, X: Any) -> Array:
        """Return X U', shape (n, k), for rows X (n, d)."""
        own = X @ self.by_feature
        below = (own.toarray() if hasattr(own, "toarray") else own) @ self.membership
        below *= self.scale * self.alpha
        return np.asarray(below @ self.membership.T)


def keeps_lists(X: Any, k: int) -> bool:
    """Return whether the dual sums of rows X (n, d) and k labels are kept as lists."""
    return hasattr(X, "tocsr") and (k >= LISTS or k * X.shape[1] > CELLS)
