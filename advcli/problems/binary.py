"""Binary problems over the same rows: what reductions of a multiclass problem are made of, and what their solver hands back.

For each of m problems on its own, with labels s_i = +-1, weights w_i >= 0 (0: the row is absent) and margins m_i,

    P(v) = lambda/2 |v|^2 + 1/n sum_i p_i w_i [m_i - s_i v.x_i]_+                                                          (1)
    D(a) = 1/n sum_i p_i a_i m_i - lambda/2 |v(a)|^2,   0 <= a_i <= w_i,   v(a) = 1/(lambda n) sum_i p_i a_i s_i x_i       (2)

and the sum over the problems is what is minimised. The sample weights p count how often a row occurs. Their sum over all rows is n, the
number of rows when all are 1; it is the same for every problem. With a kernel v is a function, its parameters are coefficients over the
rows, and ``constant`` is added to the kernel: the regularised constant. Instead of it a problem may have a free bias, the last row of its
parameters: scores are v.x + b, b is not penalised, and (2) holds for

    sum_i p_i a_i s_i = 0                                                                                                  (3)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IncompatibleError
from ..core.linalg import inner
from ..core.typing import Array
from ..features.base import FeatureMap, KernelMap

Signs = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class BinaryProblems:
    """Problems (1) that share their rows, lambda and sample weights."""

    features: FeatureMap  # linear or a kernel, bound to the n training rows, with as many scores as there are problems
    labels: Signs  # +1 or -1, (m, n)
    weights: Array  # at least 0, (m, n)
    lam: float  # above 0
    sample_weight: Array | None = None  # p >= 0 of (1), (n,)
    margins: Array | None = None  # (m, n); None: all 1
    constant: float = 0.0  # added to the kernel; 0 with linear features, whose rows hold their constant
    free: bool = False  # whether every problem has a free bias; rows then hold no constant

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit the rows; `ValueError`."""
        shape = (self.features.n_classes, self.features.n_rows)
        if self.labels.shape != shape or self.labels.dtype != np.int8 or not (np.abs(self.labels) == 1).all():
            raise ValueError(f"labels must be {shape[0]} x {shape[1]} numbers of type int8, +1 or -1")
        if self.weights.shape != shape or not np.isfinite(self.weights).all() or (self.weights < 0.0).any():
            raise ValueError(f"weights must be {shape[0]} x {shape[1]} finite numbers of at least 0")
        if self.margins is not None and not (self.margins.shape == shape and np.isfinite(self.margins).all()):
            raise ValueError(f"margins must be {shape[0]} x {shape[1]} finite numbers")
        sample = self.sample_weight
        if sample is not None and not (sample.shape == shape[1:] and np.isfinite(sample).all() and (sample >= 0.0).all()):
            raise ValueError(f"sample_weight must be {shape[1]} finite numbers of at least 0")
        if not (0.0 < self.lam < np.inf and 0.0 < self.n < np.inf):
            raise ValueError(f"lambda and n must be finite numbers above 0, got {self.lam} and {self.n}")

    def check_features(self) -> None:
        """Raise `IncompatibleError` for a map without a function for each problem, or a kernel matrix that does not fit in memory."""
        features, n = self.features, self.features.n_rows
        if (lacking := features.lacks_columns()) is None:
            return
        if not isinstance(features, KernelMap):
            raise IncompatibleError("a set of binary problems", lacking, "choose features=linear or features=rbf")
        instead = f"give features.memory_mb={8 * 2 * n * n / 2**20:.0f} or choose features=nystroem"
        raise IncompatibleError(f"{n} rows", "the whole kernel matrix in memory", instead)

    @cached_property
    def n(self) -> float:
        """The n of (1)."""
        return float(self.features.n_rows if self.sample_weight is None else self.sample_weight.sum())

    @property
    def C(self) -> float:
        """Weight of the summed hinges against 1/2 |v|^2: 1 / (lambda n)."""
        return 1.0 / (self.lam * self.n)

    @property
    def least_scale(self) -> float:
        """0: all terms of the primal are at least 0."""
        return 0.0

    @cached_property
    def bounds(self) -> Array:
        """The largest p_i a_i of (2) in C form, C p_i w_i, shape (m, n)."""
        return np.ascontiguousarray(self.weights * (self.C if self.sample_weight is None else self.C * self.sample_weight))

    def _counted(self, R: Array) -> Array:
        """Return p_i a_i of dual numbers (n, m)."""
        return R if self.sample_weight is None else R * self.sample_weight[:, None]

    @cached_property
    def _margins(self) -> Array:
        return np.ones((1, 1)) if self.margins is None else self.margins.T

    def scores(self, theta: Array) -> Array:
        """Return the scores of parameters (d or n, m), with a free bias one row more, shape (n, m)."""
        return scores_of(self.features, theta, self.constant, self.free)

    def ridge(self, theta: Array) -> float:
        """Return lambda/2 |theta|^2 over the penalised parameters, summed over the problems."""
        if self.free:
            theta = theta[:-1]
        square = self.features.square_norm(theta) + self.constant * float((theta.sum(axis=0) ** 2).sum())
        return 0.5 * self.lam * square

    def empirical(self, theta: Array) -> float:
        """Return the mean weighted hinges, summed over the problems."""
        hinges = np.maximum(self._margins - self.labels.T * self.scores(theta), 0.0)
        return inner(self.weights.T, self._counted(hinges)) / self.n

    def primal(self, theta: Array) -> float:
        """Return the sum of (1)."""
        return self.ridge(theta) + self.empirical(theta)

    def parameters(self, R: Array) -> Array:
        """Return v(a) of (2) for dual numbers (n, m), shape (d or n, m); a free bias is 0."""
        theta = self.features.adjoint(self._counted(R) * self.labels.T) * self.C
        return np.vstack([theta, np.zeros((1, theta.shape[1]))]) if self.free else theta

    def feasible(self, R: Array) -> tuple[Array, float]:
        """Return dual numbers inside their boxes near R (n, m), and how far outside R lies in units of the largest weight.

        With a free bias the larger side of (3) is scaled down, and outside is, if that is more, what (3) misses, per row.
        """
        weights = self.weights.T
        inside = np.clip(R, 0.0, weights)
        unit = float(weights.max(initial=0.0)) or 1.0
        outside = float(np.abs(R - inside).max(initial=0.0))
        if self.free:
            sums = (self._counted(inside) * self.labels.T).sum(axis=0)
            outside = max(outside, float(np.abs(sums).max(initial=0.0)) / self.n)
            inside = self._balanced(inside)
        return inside, outside / unit

    def _balanced(self, R: Array) -> Array:
        """Return dual numbers R (n, m), at least 0, with the larger side of every problem scaled down to meet (3)."""
        counted, positive = self._counted(R), self.labels.T > 0
        up, down = (counted * positive).sum(axis=0), (counted * ~positive).sum(axis=0)
        by = np.divide(np.minimum(up, down), np.maximum(up, down), out=np.ones_like(up), where=up + down > 0.0)
        return np.asarray(R * np.where(positive == (up > down), by, 1.0))

    def dual(self, R: Array) -> float:
        """Return the sum of (2) for dual numbers (n, m) inside their boxes."""
        return float((self._counted(R) * self._margins).sum()) / self.n - self.ridge(self.parameters(R))

    def game_value(self, theta: Array, primal: float | None = None) -> float:
        """Return nan: hinges have no game."""
        return float("nan")


def scores_of(features: FeatureMap, theta: Array, constant: float, free: bool) -> Array:
    """Return the scores of parameters over a kernel to which ``constant`` is added, or with a free bias as their last row, (rows, m)."""
    if free:
        return features.scores(np.ascontiguousarray(theta[:-1])) + theta[-1]
    F = features.scores(theta)
    return F if constant == 0.0 else F + constant * theta.sum(axis=0)
