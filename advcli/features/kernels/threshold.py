"""Threshold features over a kernel for ordered classes (Fathony et al. 2018, section 6.2 with the features of eq. 71):

    f_j(x) = j g(x) + sum over l >= j of eta_l,   j = 1..k,    g = sum_i a_i K(x_i, .)

one function g in the kernel's space and k - 1 free thresholds. K((x, j), (z, j')) = j j' K(x, z) is the kernel of the penalised part, so
|theta|^2 = a'K a, and the dual point spans a = -1/(lambda n) s R (1..k)'. As in `threshold`, the thresholds are equality constraints of
the dual: the adversary's label totals are those of the data. No block of one row can move under them, so Newton on a factor of K
(`solver=kernel_newton`) or operator splitting (`solver=kernel_splitting`) solves these problems, not the block method.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ...core.typing import Array, Labels
from ..base import Directions, FeatureMap, KernelMap, Sketch, register
from ..threshold import ThresholdFeatures, threshold_totals
from .gaussian import GaussianFeatures
from .kernel_map import KernelFeatures, PrecomputedFeatures
from .polynomial import PolynomialFeatures


class KernelThresholdFeatures(KernelMap):
    """Scores from one function of a kernel and free thresholds; parameters (a, eta) as one vector of length n + k - 1.

    Parameters
    ----------
    X : ndarray (n, d) or csr_array
        The rows, or the kernel matrix for `precomputed_threshold`.
    n_classes : int
        Number k of scores per row.
    **options
        Those of the kernel.
    """

    takes_constant = False
    needs_order = True
    kernel: ClassVar[type[KernelFeatures]]

    def __init__(self, X: Any, n_classes: int, **options: Any) -> None:
        super().__init__(X, n_classes)
        self.function = self.kernel(X, 1, **options)

    # ---- the kernel's side ----------------------------------------------------------------------------------------
    def at(self, X: Any) -> KernelThresholdFeatures:
        """Return the map at other rows, with the same anchors."""
        other = type(self)(X, self.n_classes, memory_mb=self.function.memory_mb, **self.function.options)
        other.function = self.function.at(X)
        return other

    def support(self, theta: Array) -> tuple[Any, Array]:
        """Return the anchors whose coefficients are not 0, and these coefficients followed by the thresholds."""
        a, eta = self._parts(theta)
        rows, kept = self.function.support(a)
        return rows, np.concatenate([kept.ravel(), eta])

    def adopt(self, other: FeatureMap | None) -> None:
        """Take the kernel values of a map over the same rows with the same kernel."""
        if isinstance(other, KernelThresholdFeatures):
            self.function.adopt(other.function)

    @property
    def whole(self) -> bool:
        """Whether all n^2 values fit in the memory that was allowed."""
        return self.function.whole

    @property
    def room_for_factor(self) -> bool:
        """Whether a factor of K fits beside it."""
        return self.function.room_for_factor

    @property
    def spare(self) -> float:
        """Bytes that copies of a part of K may take beside it."""
        return self.function.spare

    @property
    def largest_block(self) -> int:
        """Most rows m whose (m, m) block may be asked for."""
        return self.function.largest_block

    @property
    def diagonal(self) -> Array:
        """K(x_i, x_i) of the training rows."""
        return self.function.diagonal

    @property
    def matrix(self) -> Array:
        """The matrix K (n, n)."""
        return self.function.matrix

    @property
    def factor(self) -> tuple[Array, Labels]:
        """L (n, p) with K = L L', and its pivot rows."""
        return self.function.factor

    def pivots_for(self, left: float, most: int) -> int | None:
        """Return how many pivots of K leave no diagonal value above ``left``; None if more than ``most``."""
        return self.function.pivots_for(left, most)

    def sketched(self, p: int) -> Sketch:
        """Return the same thresholds over a sketch of K."""
        found = self.function.sketched(p)
        other = copy.copy(self)
        other.function = found.features  # type: ignore[assignment]
        return replace(found, features=other)

    def unsketched(self, theta: Array, sketch: Sketch) -> Array:
        """Return (a, eta) with a on the pivot rows."""
        a, eta = self._parts(theta)
        return np.concatenate([self.function.unsketched(a, sketch).ravel(), eta])

    def unseen(self, theta: Array, sketch: Sketch) -> float:
        """Return the sum over the diagonal of a'(K - L L')a."""
        return self.function.unseen(self._parts(theta)[0], sketch)

    def explicit(self) -> FeatureMap:
        """Return threshold features on the rows of L."""
        return ThresholdFeatures(self.function.factor[0], self.n_classes)

    def to_explicit(self, theta: Array) -> Array:
        """Return (L'a, eta)."""
        a, eta = self._parts(theta)
        return np.concatenate([self.function.to_explicit(a)[:, 0], eta])

    def from_explicit(self, theta: Array) -> Array:
        """Return (a, eta) with the same function on the training rows."""
        split = len(theta) - (self.n_classes - 1)
        return np.concatenate([self.function.from_explicit(theta[:split, None])[:, 0], theta[split:]])

    def proximal(self, G: Array, sigma: float) -> tuple[Array, Array]:
        """Return X and (a, eta): one system with K along the labels' numbers, none across them, and the thresholds' multipliers.

        With l the numbers 1..k less their mean, X = xi l' + X0 and G = gamma l' + G0, rows of X0 and G0 orthogonal to l: then
        (K + s I) xi = s gamma - s t 1 with s = sigma / |l|^2 and t such that xi sums to zero, and X0 is G0 with centred columns. The part
        of the scores outside the kernel's reach, -sigma (t l + mean G0), is that of the thresholds (docs/notes/kernels.md, section 6).
        """
        n, k = G.shape
        labels = np.arange(k) - 0.5 * (k - 1)
        square = float(labels @ labels) or 1.0  # one class has no labels to tell apart
        along = G @ labels / square
        moved, _ = self.function.proximal(np.column_stack([along, np.ones(n)]), sigma / square)
        t = moved[:, 0].sum() / moved[:, 1].sum()
        xi = moved[:, 0] - t * moved[:, 1]
        across = G - np.outer(along, labels)
        mean = across.mean(axis=0)
        tail = -sigma * (t * labels + mean)
        return across - mean + np.outer(xi, labels), np.concatenate([-square * xi, tail[:-1] - tail[1:]])

    def check_memory(self) -> None:
        """Raise `ConfigError` when the memory allowed cannot hold what a solver needs at least."""
        self.function.check_memory()

    def check_square(self, square: float, theta: Array) -> float:
        """Return |theta|^2, at least 0; `DataError` when it is negative beyond rounding."""
        return self.function.check_square(square, self._parts(theta)[0])

    def block(self, rows: Labels) -> Array:
        """Return K among the given training rows."""
        return self.function.block(rows)

    def accumulate(self, F: Array, rows: Labels, A: Array) -> None:
        """Add K[:, rows] A to F."""
        self.function.accumulate(F, rows, A)

    # ---- the map --------------------------------------------------------------------------------------------------
    def _parts(self, theta: Array) -> tuple[Array, Array]:
        """Return a (n, 1) and eta (k - 1,)."""
        split = len(theta) - (self.n_classes - 1)
        return np.ascontiguousarray(theta[:split, None]), theta[split:]

    @property
    def shape(self) -> tuple[int]:
        """Length n + k - 1 of the parameters, n the training rows."""
        return (self.function.shape[0] + self.n_classes - 1,)

    @property
    def regularised(self) -> Array:
        """1 for a, 0 for eta."""
        mask = np.ones(self.shape)
        mask[self.function.shape[0] :] = 0.0
        return mask

    def square_norm(self, theta: Array) -> float:
        """Return a'K a."""
        return self.function.square_norm(self._parts(theta)[0])

    def scores(self, theta: Array) -> Array:
        """Return f, shape (n, k)."""
        a, eta = self._parts(theta)
        tail = np.zeros(self.n_classes)
        tail[:-1] = np.cumsum(eta[::-1])[::-1]
        return self.function.scores(a) * np.arange(1.0, self.n_classes + 1.0) + tail

    def adjoint(self, R: Array) -> Array:
        """Return (R (1..k)', column sums of the cumulated R), shape (n + k - 1,); training rows only."""
        return np.concatenate([R @ np.arange(1.0, self.n_classes + 1.0), np.cumsum(R.sum(axis=0))[:-1]])

    def feasible(self, R: Array, y: Labels, sample_weight: Array | None) -> Array:
        """Return r near R that meets the thresholds' constraints, shape (n, k)."""
        return threshold_totals(R, y, sample_weight)

    def directions(self, B: Array, owner: Labels) -> Directions:
        """Kernel maps have no Jacobian rows to hand out."""
        raise NotImplementedError("kernel features have no explicit parameters")


@register("rbf_threshold")
class GaussianThresholdFeatures(KernelThresholdFeatures):
    """Thresholds over the Gaussian kernel; options as `GaussianFeatures`."""

    hyper = GaussianFeatures.hyper
    kernel = GaussianFeatures


@register("poly_threshold")
class PolynomialThresholdFeatures(KernelThresholdFeatures):
    """Thresholds over the polynomial kernel; options as `PolynomialFeatures`."""

    kernel = PolynomialFeatures


@register("precomputed_threshold")
class PrecomputedThresholdFeatures(KernelThresholdFeatures):
    """Thresholds over a given kernel matrix, as `PrecomputedFeatures` takes it."""

    pairwise = True
    kernel = PrecomputedFeatures
