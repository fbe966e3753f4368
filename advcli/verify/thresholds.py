"""Bounds of threshold models: one score g, thresholds eta, hinges between them (advcli.verify of ``loss=at`` and its kin).

    P(w, eta) = lambda/2 (|w|^2 + |theta|^2 + b^2) + 1/n sum_i s_i sum_j [1 - t_ij (g_i - eta_j)]_+,   t_ij = +1 where y_i > j, else -1

each hinge of red_th times the step |c_y[j] - c_y[j + 1]| of the costs. theta and b only for red_th, with eta = theta - b: for a free b,
|theta|^2 is at least |eta less its mean|^2; for a penalised b, |eta + b|^2 + b^2 is least at b = -sum(eta)/k. The stored r in [0, 1]
are shares of the dual variables: alpha_ij = s_i r_ij / (lambda n), times the step.
With beta_i = sum_j t_ij alpha_ij and u_j = sum_i t_ij alpha_ij, D = lambda (sum alpha - |w(beta)|^2/2 - penalty(u)) is at most the optimum
for an alpha that meets

    u = 0 | u_1 + .. + u_j <= 0, sum of u = 0 (thresholds in order) | sum of u = 0 (red_th, free b) | nothing (red_th, penalised b)

Rounding breaks these constraints by a little. Shrinking some alpha by m in all meets them again, m being what the sums of the thresholds
miss. That lowers sum alpha by m, and |w| and |u| rise by at most m times the longest row of the extended examples.

With an option alpha, of at and it, the hinge is max over q of H(1 - q, q) - q z at z = t_ij (g_i - eta_j), H Arimoto's entropy
(`entropies`), and H(1 - r_ij, r_ij) takes the place of r_ij in sum alpha. Shrinking the shares of one side of a threshold by a factor
lowers that side's entropies by no larger one, since H is concave and 0 at r = 0. Thresholds lie between the classes that occur; in at each
counts as often as there would be thresholds between its two classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.typing import Array
from .binary import cost_matrix
from .bounds import UNIT, Ball, ball, dot, inverse, join, outward
from .entropies import entropy, largest
from .gap import Bounds, LearnedRows, ScoreMap, longer
from .surrogates import CannotError

_TIE = 1e-9  # a score no further than this above a threshold counts as lying on the threshold
THRESHOLD_MODELS = ("at", "it", "red_th", "svorim", "svorex")


class ThresholdModel:
    """The threshold model of a cell on k classes, by its group ``loss`` and its labels, which order the named columns of a matrix."""

    game = example_costs = has_costs = sequences = False

    def __init__(self, options: Mapping[str, Any], k: int, labels: list[str]) -> None:
        self.name, self.k = str(options["name"]), k
        self.near = self.name in ("it", "svorex")
        self.ordered = bool(options.get("ordered", self.name == "svorex")) and self.near
        self.order = None if options.get("alpha") is None else float(options["alpha"])
        self.bias = str(options.get("bias", "free")) if self.name == "red_th" else None
        self.ridge = float(options.get("ridge", 0.0))
        self.matrix = cost_matrix(options, k, labels, ordered=True) if self.name == "red_th" else None
        self.steps = np.ones((k, max(k - 1, 0)))  # of red_th: differences between the costs of neighbouring predictions
        if self.matrix is not None:
            self.steps = np.abs(np.diff(self.matrix, axis=0)).T

    # ---- the map --------------------------------------------------------------------------------------------------
    def score_map(self, options: Mapping[str, Any], gamma: float | None, X: Any) -> ScoreMap:
        """Return the map of the one score over training rows X (n, d)."""
        if options["name"] not in ("linear", "multiclass", "rbf", "poly"):
            raise CannotError(f"features={options['name']} are fitted to the rows, and the checker has no second way to fit them")
        features = ScoreMap(options, gamma, X, 1)
        features.constant = False
        return features

    def _parts(self, features: ScoreMap, theta: Array, y: Any, s: Array) -> tuple[Array, Array, Any]:
        """Return the coordinates of w (rows, 1), the thresholds, and the codes between which they lie."""
        rows = features.X.shape[1] if features.explicit else features.X.shape[0]
        observed = np.unique(y[s > 0]) if self.near or self.order is not None else np.arange(self.k)
        if theta.shape != (rows + len(observed) - 1,):
            raise ValueError(f"theta has the shape {theta.shape}, not {(rows + len(observed) - 1,)}")
        return theta[:rows, None], theta[rows:], observed

    def scores(self, features: ScoreMap, X: Any, theta: Array, y: Any, s: Array | None) -> Ball:
        """Return (rows of X, k) scores, whose largest is the prediction."""
        V, eta, observed = self._parts(features, theta, y, np.ones(len(y)) if s is None else s)
        steps = features.times(X, V) - np.sort(eta)[None, :]
        steps = Ball(steps.mid, steps.rad + _TIE)
        F = ball(np.zeros((1, X.shape[0])))
        if len(eta):
            F = join(F, dot(np.tri(len(eta)), steps.T))
        low = -2.0 * float(np.abs(F.mid).max() + F.rad.max()) - 1.0
        mid, rad = np.full((X.shape[0], self.k), low), np.zeros((X.shape[0], self.k))
        mid[:, observed], rad[:, observed] = F.mid.T, F.rad.T
        return Ball(mid, rad)

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, arrays: Mapping[str, Array]) -> Any:
        """Return which classes may be the predictions on rows X, (n, k): several where rounding leaves it open."""
        return self.scores(features, X, arrays["theta"], rows.y, rows.counts).may_lead()

    def facts(self) -> Mapping[str, Any]:
        """Return the matrix of the costs of red_th."""
        return {} if self.matrix is None else {"cost_matrix": self.matrix}

    # ---- bounds ---------------------------------------------------------------------------------------------------
    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        """Return the bounds of a fit to the rows of ``features``; arrays as in `gap.bound`."""
        y, theta, r = rows.y, arrays["theta"], arrays["r"]
        weights, share = rows.shares()
        V, eta, observed = self._parts(features, theta, y, weights)
        m = len(eta)
        if r.shape != (len(y), m):
            raise ValueError(f"r has the shape {r.shape}, not {(len(y), m)}")
        code = np.minimum(np.searchsorted(observed, y), m)
        signs = np.where(code[:, None] > np.arange(m), 1.0, -1.0)
        occurs = self.steps[y] if self.bias is not None else np.ones((len(y), m))
        if self.near:
            occurs = ((code[:, None] == np.arange(m)) | (code[:, None] == np.arange(m) + 1)).astype(float)
        elif self.order is not None:
            occurs = occurs * np.diff(observed)
        if self.ordered and (np.diff(eta) < 0).any():
            raise ValueError("the thresholds are not in order")
        # a row of weight s is s equal rows with a ridge each
        ridge = Ball(np.full(len(y), self.ridge)) / np.where(weights > 0, weights, 1.0)
        # above: the objective at the stored parameters
        g = features.times(features.X, V)
        if self.ridge:
            g = g + ball(V) * ridge[:, None]
        margins = (g - eta[None, :]) * signs
        scale: Any = occurs * weights[:, None] if self.order is None else ball(occurs) * weights[:, None]
        hinges = ((-margins + 1.0).positive() if self.order is None else self._smooth(margins, self.order)) * scale
        # |w|^2 from its coordinates and, with a kernel, the scores of the training rows
        regular = ((ball(V) * (V if features.explicit else g)).sum() + self._penalty(eta)) * (0.5 * lam)
        primal = regular + hinges.sum() * share
        # below: shares of the dual variables, in units of 1 / (lambda n)
        alpha = np.clip(r, 0.0, 1.0) * occurs * weights[:, None]
        rounded = 0.0 if self.order is None else outward(4.0 * UNIT * alpha)  # of the shares whose entropies are taken
        exact = Ball(alpha, rounded) * signs
        beta, total = exact.sum(axis=1), exact.sum(axis=0)
        moved = self._missed(total)
        column = dot(features.X.T, beta[:, None]) if features.explicit else beta[:, None]
        image = column if features.explicit else features.times(features.X, column) + column * ridge[:, None]
        square = (column * image).sum() + self._dual_penalty(total)
        square = longer(square, outward(np.sqrt(features.longest**2 + float(ridge.high.max()) + 2.0)), moved)
        gained, paid = ball(alpha).sum(), moved
        if self.order is not None:
            pairs = np.clip(np.stack([1.0 - r, r], axis=2), 0.0, 1.0).reshape(-1, 2)
            found = entropy(pairs, self.order)
            entropies = (Ball(found.mid.reshape(r.shape), found.rad.reshape(r.shape)) * scale).sum(axis=0)
            high = np.where(signs > 0, alpha, 0.0).sum(axis=0)
            larger = np.maximum(np.maximum(high, alpha.sum(axis=0) - high) * (1.0 - 1e-12), 1e-290)
            lost = np.minimum(outward(total.size / larger), 1.0) * np.maximum(entropies.high, 0.0)
            gained, paid = entropies.sum(), outward(float(lost.sum()), len(lost))
        dual = gained * share - paid * share.size - square * share * share * inverse(ball(2.0 * lam))
        return Bounds(primal, dual, regular)

    @staticmethod
    def _smooth(margins: Ball, order: float) -> Ball:
        """Return upper bounds of max over q of H(1 - q, q) - q z for all margins z of a ball."""
        pairs = np.stack([np.zeros(margins.mid.shape), -margins.mid], axis=2).reshape(-1, 2)
        return ball(largest(pairs, order).reshape(margins.mid.shape)) + Ball(0.0, margins.rad)  # it moves no faster than the margins

    def _penalty(self, eta: Array) -> Ball:
        """Return the penalty of the thresholds, at the best bias."""
        if self.bias is None or not len(eta):
            return ball(0.0)
        total, square = ball(eta).sum(), (ball(eta) * eta).sum()
        return square - total * total * inverse(ball(float(len(eta) + (self.bias == "regularised"))))

    def _dual_penalty(self, total: Ball) -> Ball:
        if self.bias is None:
            return ball(0.0)
        square = (total * total).sum()
        return square + total.sum() * total.sum() if self.bias == "regularised" else square

    def _missed(self, total: Ball) -> float:
        """Return how much the dual variables must be shrunk in all to meet the constraints, in units of 1 / (lambda n)."""
        if not len(total.mid) or self.bias == "regularised":
            return 0.0
        if self.bias == "free":
            return outward(float(total.sum().size))
        if not self.ordered:
            return outward(float(total.size.sum()), len(total.mid))
        sums = dot(np.tri(len(total.mid)), total[:, None])
        missed = np.maximum(sums.high[:, 0], 0.0)
        missed[-1] = sums.size[-1, 0]
        return outward(2.0 * float(missed.sum()), 2 * len(missed))
