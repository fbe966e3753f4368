"""Threshold features for ordered classes: one direction w and k - 1 thresholds eta.

    f_j = j w.x + sum over l >= j of eta_l,   j = 1..k                              (Fathony et al. 2018, eq. 71)

so f_{j+1} - f_j = w.x - eta_j and argmax f counts the thresholds below w.x when they are in order. The authors penalise w and leave eta free;
a constant column would only shift all thresholds and is not appended.

Free parameters are equality constraints of the dual: sum_i s_i sum_{j <= l} r_ij = 0 for every l. `feasible` restores them exactly: moving mass e of
an adversary's distribution from label l to l + 1 changes constraint l by -e and no other.
"""

from __future__ import annotations

import numpy as np

from .base import Array, Directions, FeatureMap, Labels, register


class _ThresholdDirections(Directions):
    """Rows z = b'J of small length d + k - 1, written out."""

    def __init__(self, features: ThresholdFeatures, B: Array, owner: Labels) -> None:
        super().__init__(B, owner)
        self.shape = features.shape
        weights = B @ features.labels
        X = features.X[owner]
        X = X.multiply(weights[:, None]).toarray() if hasattr(X, "tocsr") else X * weights[:, None]
        self.Z = np.hstack([X, np.cumsum(B, axis=1)[:, :-1]])
        self.free = features.regularised == 0

    def hessian(self, scale: Array) -> Array:
        H = self.Z.T @ (self.Z * scale[:, None])
        diagonal = H.diagonal()
        # a free threshold that no kink example sees has no curvature: a trace of ridge keeps the step finite
        damping = np.where(self.free, 1e-10 * max(1.0, float(diagonal.max(initial=0.0))), 1.0)
        H[np.diag_indices_from(H)] += damping
        return H


@register("threshold")
class ThresholdFeatures(FeatureMap):
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
    def regularised(self) -> Array:
        """1 for w, 0 for eta."""
        mask = np.ones(self.shape)
        mask[self.X.shape[1] :] = 0.0
        return mask

    def scores(self, theta: Array) -> Array:
        """Return f, shape (n, k)."""
        d = self.X.shape[1]
        tail = np.zeros(self.n_classes)
        tail[:-1] = np.cumsum(theta[d:][::-1])[::-1]
        return np.outer(self.X @ theta[:d], self.labels) + tail

    def adjoint(self, R: Array) -> Array:
        """Return (X'(R 1..k), column sums of the cumulated R), shape (d + k - 1,)."""
        return np.concatenate([self.X.T @ (R @ self.labels), np.cumsum(R.sum(axis=0))[:-1]])

    def directions(self, B: Array, owner: Labels) -> Directions:
        """Return the rows b'J_owner."""
        return _ThresholdDirections(self, B, owner)

    def feasible(self, R: Array, y: Labels, sample_weight: Array | None) -> Array:
        """Return r near R with r + e_y distributions and every threshold's constraint met exactly; (n, k)."""
        s = np.ones(len(y)) if sample_weight is None else sample_weight
        R = R.copy()
        rows = np.arange(len(y))
        R[rows, y] += 1.0
        for l in range(self.n_classes - 1):
            excess = float(s @ (R[:, : l + 1].sum(axis=1) - (y <= l)))
            source, target = (l, l + 1) if excess > 0 else (l + 1, l)
            need = abs(excess)
            if need == 0.0:
                continue
            available = s * np.maximum(R[:, source], 0.0)
            # take it where most of it is: few examples carry a small correction
            order = np.argsort(-available, kind="stable")
            taken = np.minimum(available[order], np.maximum(need - np.concatenate([[0.0], np.cumsum(available[order])[:-1]]), 0.0))
            moved = order[taken > 0]
            amount = taken[taken > 0] / s[moved]
            R[moved, source] -= amount
            R[moved, target] += amount
        R[rows, y] -= 1.0
        return R
