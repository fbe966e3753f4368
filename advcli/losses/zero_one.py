"""The zero-one adversarial surrogate (AL0-1).

Game over L = 1 - I (Fathony et al. 2016, eq. 5; 2018, Theorem 5):

    S(f, y) = max over non-empty label sets T of (sum of f_j over T + |T| - 1)/|T|  -  f_y  =  1 + tau(f) - f_y

with tau the threshold of the Euclidean projection of f on the simplex, sum_j (f_j - tau)_+ = 1. The adversary is uniform on
{j: f_j > tau}, the predictor is the projection itself, p_j = (f_j - tau)_+. Fisher consistent for zero-one loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ..core.typing import Array
from . import matrices
from .base import AdversarialLoss, register


def simplex_threshold(F: Array) -> Array:
    """Return tau with sum_j (F_ij - tau_i)_+ = 1 for every row, shape (n,): max over m of (sum of the m largest - 1)/m."""
    top = F.max(axis=1, keepdims=True)
    ordered = np.sort(F - top, axis=1)[:, ::-1]
    means = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, F.shape[1] + 1)
    return means.max(axis=1) + top[:, 0]


@register("zero_one")
class ZeroOneLoss(AdversarialLoss):
    """Adversarial surrogate of the zero-one loss for k classes."""

    kernel = "zero_one"
    thresholded = True

    @cached_property
    def matrix(self) -> Array:  # type: ignore[override]
        """The matrix 1 - I (k, k); no fit and no prediction looks at it."""
        return matrices.zero_one(self.n_classes)

    negative_costs = False  # without the matrix, of k^2 numbers

    def game_values(self, Q: Array) -> Array:
        """Return sum_j q_j - q, without the matrix, shape (n, k)."""
        values: Array = Q.sum(axis=1, keepdims=True) - Q
        return values

    @property
    def n_predictions(self) -> int:
        """Number k of predictions."""
        return self.n_classes

    @classmethod
    def agrees(cls, options: Mapping[str, Any]) -> bool:
        """Return True: p_j = (f_j - tau)_+ rises with f_j."""
        return True

    def adversary(self, F: Array) -> Array:
        """Return the uniform distributions on {j: f_j > tau}, shape (n, k)."""
        top = F.max(axis=1, keepdims=True)
        support = (F - top) > simplex_threshold(F - top)[:, None]
        return support / support.sum(axis=1, keepdims=True)

    def predictor(self, F: Array) -> Array:
        """Return the projections of the scores on the simplex, shape (n, k)."""
        top = F.max(axis=1, keepdims=True)
        P = np.maximum(F - top - simplex_threshold(F - top)[:, None], 0.0)
        return P / P.sum(axis=1, keepdims=True)
