"""The numbers that a label graph gives to (1): inner products K = A diag(alpha) A' of labels, margins and divisors; U = K Z as factors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.errors import ConfigError
from ...core.label_graph import LabelGraph
from ...core.typing import Array
from ...data.labels.node_weights import best_weights, parents_of

TABLES = 128
"""Up to so many labels, K, margins and divisors are tables; beyond, they follow from passes over the graph."""

LISTS, CELLS = 4096, 2**27
"""From so many labels, or labels x features, on, the dual sums of sparse rows are kept as lists per feature."""

_FARTHER = 2.0  # power of an update of alpha by which the next squared lengths are expected to change
_BLEND = 1e-2  # share of positive weights in new weights, over the tolerance


@dataclass(frozen=True, eq=False)
class Attributes:
    """Weights of a label graph's nodes, for K and for the margins of k labels at ``positions`` (k,) among the graph's leaves.

    alpha (M,) are squared attributes. The sum of mu (M,) over the symmetric difference of two labels, to a ``power``, is their margin; 0
    makes every margin 1. ``normalised`` is the objective (6.13): margins 1, score differences divided by the root of that sum.
    """

    graph: LabelGraph
    positions: NDArray[np.intp]
    alpha: Array
    mu: Array
    power: float
    normalised: bool = False

    @cached_property
    def membership(self) -> sparse.csr_array:
        """Labels x nodes, shape (k, M)."""
        return self.graph.membership[self.positions]

    def common(self, weights: Array, labels: NDArray[Any] | slice = slice(None)) -> Array:
        """Return the sums of weights over the nodes that each pair of labels shares, shape (len(labels), k)."""
        A = self.membership
        return np.asarray(((A[labels] * weights[None, :]) @ A.T).toarray())

    def margins_at(self, true: NDArray[Any], other: NDArray[Any]) -> tuple[Array, Array]:
        """Return margins and divisors of pairs of labels, shape (pairs,)."""
        A = self.membership
        total = np.asarray(A @ self.mu)
        sums = np.maximum(total[true] + total[other] - 2.0 * (A[true].multiply(A[other]) @ self.mu), 0.0)
        return self._of_sums(sums, true == other)

    def margins(self, labels: NDArray[Any] | slice = slice(None)) -> tuple[Array, Array]:
        """Return margins and divisors, shape (len(labels), k): row = true label."""
        total = np.asarray(self.membership @ self.mu)
        sums = np.maximum(total[labels][:, None] + total - 2.0 * self.common(self.mu, labels), 0.0)
        own = np.arange(len(total))[labels]
        return self._of_sums(sums, (np.arange(len(own)), own))

    def _of_sums(self, sums: Array, same: Any) -> tuple[Array, Array]:
        """Return margins and divisors for sums over symmetric differences; ``same`` selects the pairs of equal labels."""
        if self.normalised:
            margins, divisors = np.ones_like(sums), np.sqrt(sums)
        else:
            margins, divisors = sums**self.power, np.ones_like(sums)
        margins[same], divisors[same] = 0.0, 1.0
        return margins, divisors

    def spread(self, Z: Any) -> Any:
        """Return K Z for dual sums Z (k, d)."""
        A = self.membership
        return A @ (self.alpha[:, None] * (A.T @ Z))

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """The labels as arrays for the compiled solver."""
        graph, k = self.graph, len(self.positions)
        A = self.membership
        nothing = np.empty((0, 0))
        table = margins = divisors = nothing
        if k <= TABLES:
            margins, divisors = (np.ascontiguousarray(each.T) for each in self.margins())
            table = np.ascontiguousarray(self.common(self.alpha))
            if not divisors.all():
                raise ConfigError("objective=normalised needs labels that differ, two leaves' own nodes weigh 0; choose difference")
        parent = parents_of(graph) if graph.is_tree else np.empty(0, dtype=np.int32)
        node = np.ascontiguousarray(graph.leaves[self.positions], dtype=np.int32)
        start, up = A.indptr.astype(np.int64), A.indices.astype(np.int32)
        return node, parent, start, up, self.alpha, self.mu, float(self.power), self.normalised, table, margins, divisors


def away_from_zero(alpha: Array, positive: Array, tol: float) -> Array:
    """Return alpha mixed with a little of positive weights: a weight of 0 would stay 0."""
    blend = _BLEND * tol
    return (1.0 - blend) * alpha + blend * positive


def farther_weights(graph: LabelGraph, lengths: Array, alpha: Array, best: Array) -> Array:
    """Return weights beyond the ``best`` ones for squared lengths that alpha gave: updates are small and mostly in one direction."""
    ratio = np.divide(best, alpha, out=np.ones_like(best), where=alpha > 0)
    return best_weights(graph, lengths * ratio**_FARTHER)[0]


@dataclass(frozen=True, eq=False)
class FactoredWeights:
    """Leaf weights U = scale K Z, never formed: Z is sparse, U is dense because all labels share the weights of nodes near the top.

    ``sums`` (k, d) is Z, ``membership`` (k, M) A, labels x nodes, and ``alpha`` (M,) that of K = A diag(alpha) A'.
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
        direct = X @ self.by_feature
        below = (direct.toarray() if hasattr(direct, "toarray") else direct) @ self.membership
        below *= self.scale * self.alpha
        return np.asarray(below @ self.membership.T)


def keeps_lists(X: Any, k: int) -> bool:
    """Return whether the dual sums of rows X (n, d) and k labels are kept as lists."""
    return hasattr(X, "tocsr") and (k >= LISTS or k * X.shape[1] > CELLS)
