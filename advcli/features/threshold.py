"""Threshold features for ordered classes: one direction w and k - 1 thresholds eta.

    f_j = j w.x + sum over l >= j of eta_l,   j = 1..k                              (Fathony et al. 2018, eq. 71)

so f_{j+1} - f_j = w.x - eta_j and argmax f counts the thresholds below w.x when they are in order. The authors penalise w and leave eta
free; a constant column would only shift all thresholds and is not appended.

Free parameters are equality constraints of the dual: sum_i s_i sum_{j <= l} r_ij = 0 for every l, that is the adversary's label totals
equal the totals of the data.
"""

from __future__ import annotations

import numpy as np

from ..core.arrays import is_sparse
from ..core.typing import Array, Labels
from .base import Directions, ExplicitMap, register


class _ThresholdDirections(Directions):
    """Rows z = b'J of small length d + k - 1, written out."""

    def __init__(self, features: ThresholdFeatures, B: Array, owner: Labels) -> None:
        super().__init__(B, owner)
        self.shape = features.shape
        weights = B @ features.labels
        X = features.X[owner]
        X = X.multiply(weights[:, None]).toarray() if is_sparse(X) else X * weights[:, None]
        self.Z = np.hstack([X, np.cumsum(B, axis=1)[:, :-1]])
        mask = features.regularised
        self.free = np.zeros(self.shape, dtype=bool) if mask is None else mask == 0

    def columns(self, chosen: Labels) -> Array:
        return self.Z[:, chosen]

    def hessian(self, weight: Array, factor: float = 1.0) -> Array:
        H: Array = self.Z.T @ (self.Z * (factor * weight[self.owner])[:, None])
        diagonal = H.diagonal()
        # a free threshold that no kink example sees has no curvature: a trace of ridge keeps the step finite
        damping = np.where(self.free, 1e-10 * max(1.0, float(diagonal.max(initial=0.0))), 1.0)
        H[np.diag_indices_from(H)] += damping
        return H


def threshold_scores(values: Array, eta: Array) -> Array:
    """Return the scores f, shape (n, k), for the projections w.x of the rows, shape (n,), and the thresholds, shape (k - 1,)."""
    return np.outer(values, np.arange(1.0, len(eta) + 2.0)) + np.append(np.cumsum(eta[::-1])[::-1], 0.0)


def threshold_totals(R: Array, y: Labels, sample_weight: Array | None) -> Array:
    """Return r near R with r + e_y distributions and every threshold's constraint met exactly, shape (n, k).

    The constraints say that the adversary gives each label as much mass in all as it occurs: mass goes from labels that have too
    much to the nearest that have too little, taken from the examples that hold most of it.
    """
    n_classes = R.shape[1]
    s = np.ones(len(y)) if sample_weight is None else sample_weight
    rows = np.arange(len(y))
    Q = R.copy()
    Q[rows, y] += 1.0
    Q = np.maximum(Q, 0.0)
    surplus = s @ Q - np.bincount(y, weights=s, minlength=n_classes)
    for source in range(n_classes):
        for target in sorted(range(n_classes), key=lambda label: abs(label - source)):
            need = min(surplus[source], -surplus[target])
            if need <= 0.0:
                continue
            held = s * Q[:, source]
            order = np.flatnonzero(held > 0.0)  # few, and sorting is most of the time
            order = order[np.argsort(-held[order], kind="stable")]
            before = np.concatenate([[0.0], np.cumsum(held[order])[:-1]])
            taken = np.clip(need - before, 0.0, held[order])
            moved = order[taken > 0]
            amount = taken[taken > 0] / s[moved]
            Q[moved, source] -= amount
            Q[moved, target] += amount
            surplus[source] -= need
            surplus[target] += need
    Q[rows, y] -= 1.0
    return Q


@register("threshold")
class ThresholdFeatures(ExplicitMap):
    """Scores from one direction and free thresholds; parameters (w, eta) as one vector of length d + k - 1."""

    takes_constant = False
    needs_order = True

    @property
    def shape(self) -> tuple[int]:
        """Length d + k - 1 of the parameters."""
        return (int(self.X.shape[1]) + self.n_classes - 1,)

    @property
    def labels(self) -> Array:
        """The numbers 1..k that multiply w.x."""
        return np.arange(1.0, self.n_classes + 1.0)

    @property
    def regularised(self) -> Array | None:
        """1 for w, 0 for eta; None in a box, which holds the thresholds' moments too."""
        if self.box:
            return None
        mask = np.ones(self.shape)
        mask[self.X.shape[1] :] = 0.0
        return mask

    def scores(self, theta: Array) -> Array:
        """Return f, shape (n, k)."""
        d = self.X.shape[1]
        return threshold_scores(self.X @ theta[:d], theta[d:])

    def adjoint(self, R: Array) -> Array:
        """Return (X'(R 1..k), column sums of the cumulated R), shape (d + k - 1,)."""
        return np.concatenate([self.X.T @ (R @ self.labels), np.cumsum(R.sum(axis=0))[:-1]])

    def squared_adjoint(self, R: Array) -> Array:
        """Return the adjoint of the squared entries, shape (d + k - 1,)."""
        return np.concatenate([self.squared_rows.T @ (R @ self.labels**2), np.cumsum(R.sum(axis=0))[:-1]])

    def largest(self) -> Array:
        """Return k max_i |x_i| for w and 1 for the thresholds, shape (d + k - 1,)."""
        return np.concatenate([self.n_classes * self.largest_values, np.ones(self.n_classes - 1)])

    def directions(self, B: Array, owner: Labels) -> Directions:
        """Return the rows b'J_owner."""
        return _ThresholdDirections(self, B, owner)

    def feasible(self, R: Array, y: Labels, sample_weight: Array | None) -> Array:
        """Return r near R with r + e_y distributions and every threshold's constraint met exactly, shape (n, k); R itself in a box."""
        return R if self.box else threshold_totals(R, y, sample_weight)
