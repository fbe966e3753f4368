"""What is to be solved, and what a solver hands back.

    minimise over theta  P(theta) = lambda/2 |theta|^2 + 1/n sum_i s_i w_i S(f_i / w_i, y_i),  F = J theta,  n = sum_i s_i      (1)

The scaling is written here once: the mean loss over n rows, lambda = 1/(n C). Sample weights s count how often an example occurs, so n
is their sum (the number of rows when all are 1); cost weights w multiply an example's loss matrix (Fathony et al. 2018, Corollaries
9-11: S_wL(f) = w S_L(f / w)). The dual of (1) is

    maximise over r_i in conv R(y_i)   D(r) = 1/n sum_i s_i w_i c(r_i) - lambda/2 |theta(r)|^2,
    theta(r) = -1/(lambda n) J'(s r).                                                                                  (2)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .features.base import FeatureMap
from .losses.base import AdversarialLoss, Loss

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


@dataclass(frozen=True)
class Problem:
    """A regularised empirical risk: feature map, surrogate, labels, lambda and weights. Solvers and referee see nothing else.

    Attributes
    ----------
    features : FeatureMap
        Bound to the n training rows.
    loss : Loss
        The surrogate for k classes.
    y : ndarray (n,)
        Labels as codes 0..k-1.
    lam : float
        Ridge coefficient lambda > 0.
    sample_weight, cost_weight : ndarray (n,) or None
        s >= 0 and w > 0 of (1).
    """

    features: FeatureMap
    loss: Loss
    y: Labels
    lam: float
    sample_weight: Array | None = None
    cost_weight: Array | None = None

    @cached_property
    def n(self) -> float:
        """The n of (1): the sum of the sample weights, the number of rows when there are none."""
        return float(len(self.y) if self.sample_weight is None else self.sample_weight.sum())

    @property
    def C(self) -> float:
        """Weight of the summed loss against 1/2 |theta|^2."""
        return 1.0 / (self.lam * self.n)

    @cached_property
    def weight(self) -> Array:
        """The products s_i w_i, shape (n,)."""
        weight = np.ones(len(self.y))
        for factor in (self.sample_weight, self.cost_weight):
            if factor is not None:
                weight = weight * factor
        return weight

    def scaled(self, F: Array) -> Array:
        """Return the scores in units of the cost weights, f_i / w_i up to a constant a row, which no surrogate sees."""
        if self.cost_weight is None:
            return F
        return (F - F.max(axis=1, keepdims=True)) / self.cost_weight[:, None]

    def penalty(self, theta: Array) -> float:
        """Return lambda/2 |theta|^2 over the regularised parameters."""
        return 0.5 * self.lam * self.features.square_norm(theta)

    def empirical(self, F: Array) -> float:
        """Return the mean weighted surrogate at scores F (n, k)."""
        return float(self.weight @ self.loss.value(self.scaled(F), self.y)) / self.n

    def primal(self, theta: Array) -> float:
        """Return P(theta)."""
        return self.penalty(theta) + self.empirical(self.features.scores(theta))

    def game_value(self, theta: Array, primal: float | None = None) -> float:
        """Return mean S(f, y) + lambda |theta|^2 for adversarial losses, nan for others.

        No distribution of labels on the training rows whose moments J'q/n lie within lambda |theta| of the sample's (Euclidean norm)
        costs the predictor at theta more in expectation: Fathony et al. 2018, Theorem 18, with the ball of moments that a ridge penalty
        stands for.
        """
        if not isinstance(self.loss, AdversarialLoss):
            return float("nan")
        return (self.primal(theta) if primal is None else primal) + self.penalty(theta)

    def dual_gradient(self, R: Array) -> Array:
        """Return 1/n J'(s r) in the shape of the parameters."""
        return self.features.adjoint(R if self.sample_weight is None else R * self.sample_weight[:, None]) / self.n

    def parameters(self, R: Array) -> Array:
        """Return theta(r) of (2)."""
        theta = self.dual_gradient(R) / -self.lam
        mask = self.features.regularised
        return theta if mask is None else theta * mask

    def dual(self, R: Array) -> float:
        """Return D(r), a lower bound of the optimum; -inf where r breaks a constraint that a free parameter puts on the dual."""
        mask = self.features.regularised
        if mask is not None:
            broken = np.abs(self.dual_gradient(R)[mask == 0])
            if broken.max(initial=0.0) > 1e-11:  # beyond rounding
                return float("-inf")
        return float(self.weight @ self.loss.offset(R, self.y)) / self.n - self.penalty(self.parameters(R))


@dataclass
class Solution:
    """What a solver returns: the iterate, not its quality (`advcli.certificate.certify` judges that)."""

    theta: Array  # parameters
    R: Array | None  # dual point (n, k), or None when the solver has none
    lam: float
    solver: str
    passes: float  # reads of the data, in units of one pass over all n rows
    seconds: float
    status: str = "converged"  # or "max_passes", "max_seconds", "stalled": what stopped the solver
    memory: dict[str, Any] = field(default_factory=dict)  # what the solver wants back on a warm start
