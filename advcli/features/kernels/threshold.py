"""Threshold features over a kernel for ordered classes (Fathony et al. 2018, section 6.2 with the features of eq. 71):

    f_j(x) = j g(x) + sum over l >= j of eta_l,   j = 1..k,    g = sum_i a_i K(x_i, .)

one function g in the kernel's space and k - 1 free thresholds. K((x, j), (z, j')) = j j' K(x, z) is the kernel of the penalised part, so
|theta|^2 = a'K a. The dual point spans a = -1/(lambda n) s R (1..k)'. As in `threshold`, the thresholds are equality constraints of the
dual: the adversary's label totals equal the totals of the data. No block of one row can move under them, so Newton on a factor of K
(`solver=kernel_newton`) or operator splitting (`solver=kernel_splitting`) solves these problems, not the block method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.typing import Array, Labels
from ..base import KernelMap, register
from ..threshold import ThresholdFeatures, threshold_scores, threshold_totals
from .gaussian import GaussianFeatures
from .kernel_map import KernelFeatures, PrecomputedFeatures, SketchedFeatures
from .polynomial import PolynomialFeatures


class KernelThresholdFeatures(KernelFeatures):
    """Scores from one function of a kernel and free thresholds; parameters (a, eta) as one vector of length n + k - 1.

    The other base class has the kernel.
    """

    needs_order = True
    explicit = ThresholdFeatures

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Return a (n, 1) and eta (k - 1,)."""
        end = len(theta) - (self.n_classes - 1)
        return np.ascontiguousarray(theta[:end, None]), theta[end:]

    def joined(self, A: Array, free: Array) -> Array:
        """Return a followed by eta."""
        return np.concatenate([A[:, 0], free])

    def support(self, theta: Array) -> tuple[Any, Array]:
        """Return the anchors whose coefficients are not 0, and these coefficients followed by the thresholds."""
        a, eta = self.split(theta)
        rows, held = super().support(a)
        return rows, self.joined(held, eta)

    def sketched(self, rows: Array, gram: Array) -> KernelMap:
        """Return the same thresholds over the kernel L L'."""
        return _SketchedThresholdFeatures(rows, gram, self.n_classes)

    def proximal(self, G: Array, sigma: float) -> tuple[Array, Array]:
        """Return X and (a, eta): one system with K along the labels' numbers, none across them, and the thresholds' multipliers.

        With l the numbers 1..k less their mean, X = xi l' + X0 and G = gamma l' + G0, rows of X0 and G0 orthogonal to l: then
        (K + s I) xi = s gamma - s t 1 with s = sigma / |l|^2 and t such that xi sums to zero. X0 is G0 with centred columns. The part
        of the scores outside the kernel's reach, -sigma (t l + mean G0), belongs to the thresholds (docs/notes/kernels.md, section 6).
        """
        n, k = G.shape
        labels = np.arange(k) - 0.5 * (k - 1)
        square = float(labels @ labels) or 1.0  # one class has no labels to tell apart
        along = G @ labels / square
        moved, _ = super().proximal(np.column_stack([along, np.ones(n)]), sigma / square)
        t = moved[:, 0].sum() / moved[:, 1].sum()
        xi = moved[:, 0] - t * moved[:, 1]
        across = G - np.outer(along, labels)
        mean = across.mean(axis=0)
        tail = -sigma * (t * labels + mean)
        return across - mean + np.outer(xi, labels), np.concatenate([-square * xi, tail[:-1] - tail[1:]])

    @property
    def shape(self) -> tuple[int, ...]:
        """Length n + k - 1 of the parameters, n the training rows."""
        return (super().shape[0] + self.n_classes - 1,)

    @property
    def regularised(self) -> Array:
        """1 for a, 0 for eta."""
        mask = np.ones(self.shape)
        mask[super().shape[0] :] = 0.0
        return mask

    def scores(self, theta: Array) -> Array:
        """Return f, shape (n, k)."""
        a, eta = self.split(theta)
        return threshold_scores(self.values(a)[:, 0], eta)

    def adjoint(self, R: Array) -> Array:
        """Return (R (1..k)', column sums of the cumulated R), shape (n + k - 1,); training rows only."""
        return np.concatenate([R @ np.arange(1.0, self.n_classes + 1.0), np.cumsum(R.sum(axis=0))[:-1]])

    def feasible(self, R: Array, y: Labels, sample_weight: Array | None) -> Array:
        """Return r near R that meets the thresholds' constraints, shape (n, k)."""
        return threshold_totals(R, y, sample_weight)


class _SketchedThresholdFeatures(KernelThresholdFeatures, SketchedFeatures):
    """Thresholds over the kernel L L'."""


@register("rbf_threshold")
class GaussianThresholdFeatures(KernelThresholdFeatures, GaussianFeatures):
    """Thresholds over the Gaussian kernel; options as `GaussianFeatures`."""


@register("poly_threshold")
class PolynomialThresholdFeatures(KernelThresholdFeatures, PolynomialFeatures):
    """Thresholds over the polynomial kernel; options as `PolynomialFeatures`."""


@register("precomputed_threshold")
class PrecomputedThresholdFeatures(KernelThresholdFeatures, PrecomputedFeatures):
    """Thresholds over a given kernel matrix, as `PrecomputedFeatures` takes it."""
