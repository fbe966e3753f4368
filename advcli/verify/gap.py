"""Bounds of one fit: the objective from above, the optimum from below, and scores on test rows.

With n = sum of s_i (the number of rows without sample weights) and n moments J'(s r) (problem: docs/explanation/certificate.md)

    P(theta) = lambda/2 |theta|^2 + 1/n sum s_i S(f_i, y_i)                   at most what `Surrogate.above` gives
    D(r)     = 1/n sum s_i c_i - |J'(s r)|^2 / (2 lambda n^2)  <= min P       for every r_i in conv R(y_i)

The stored r is moved to a point r* of that set, by m = sum s_i |r*_i - r_i| in all (`Surrogate.below`). Where parameters are free, the
totals sum_i s_i r*_ij of every label must vanish: the surplus of some labels is taken in proportion from the rows that hold it and given to
the others. This moves at most twice the surplus more, and every row stays a distribution. A move by m changes |J'(s r)| by at most m max
|J_i| and the mean of c by at most m times its steepness over n. So D(r*) is bounded without being built.

A box of moments has lambda = 0 and the penalty sum tolerance_j |theta_j|. For llw with linear features it is the penalty of theta less its
means over the classes; every difference of two classes' moments then has a box, as wide as both together. r* is scaled by the largest
t <= 1 that takes the moments of t r* into the box. c(t r*) >= t c(r*) + (1 - t) c(0), because c is concave.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.arrays import dense, is_sparse
from ..core.typing import Array
from .bounds import UNIT, Ball, ball, dot, exp, inverse, join, outward
from .surrogates import CannotError, Surrogate

_ROWS = 512  # rows of a kernel matrix that are held at once


class ScoreMap:
    """The feature map of a cell: scores f = (Z V) B' + tail, V the parameters of rows Z, B (k, m) the labels' numbers.

    It is made of the group ``features``, the kernel's width where the row of results has one, and standardised training rows X (n, d). k is
    the number of scores of a row: classes, or binary problems of a reduction. ``plus`` is added to a kernel.
    """

    def __init__(self, options: Mapping[str, Any], gamma: float | None, X: Any, k: int, plus: float = 0.0) -> None:
        name = {"multiclass": "linear"}.get(str(options["name"]), str(options["name"]))
        self.kernel = name.removesuffix("_threshold")
        self.free = name.endswith("threshold")
        if self.kernel not in ("linear", "threshold", "rbf", "poly"):
            raise CannotError(f"features={name} are fitted to the rows, and the checker has no second way to fit them")
        self.explicit = self.kernel in ("linear", "threshold")
        self.box = options.get("moments") == "box"
        self.options, self.X, self.k, self.plus = options, X, k, plus
        width = options.get("gamma") if gamma is None else gamma
        self.gamma = 1.0 / X.shape[1] if width is None else float(width)
        self.B = np.arange(1.0, k + 1)[:, None] if self.free else np.eye(k)
        self.constant = self.kernel == "linear"  # a last feature that is 1

    def of_outcomes(self, outcomes: Array) -> ScoreMap:
        """Return the map whose scores are scores of outcomes (l, m), -A's by the scores s of the l predictions."""
        mapped = copy(self)
        mapped.B, mapped.k = -outcomes.T, outcomes.shape[1]
        return mapped

    def parts(self, theta: Array) -> tuple[Array, Array]:
        """Return V and the thresholds eta; `ValueError` for another shape."""
        rows = (self.X.shape[1] + self.constant) if self.explicit else self.X.shape[0]
        wanted = (rows + self.k - 1,) if self.free else (rows, self.B.shape[1])
        if theta.shape != wanted:
            raise ValueError(f"theta has the shape {theta.shape}, not {wanted}")
        return (theta[:rows, None], theta[rows:]) if self.free else (theta, np.zeros(0))

    def times(self, X: Any, V: Any) -> Ball:
        """Return Z V for rows X; with a kernel, Z is the kernel between X and the training rows."""
        V = ball(V)
        if self.explicit:
            return dot(X, V[:-1]) + V[-1:] if self.constant else dot(X, V)
        return join(*(dot(self._kernel(X[first : first + _ROWS]), V) for first in range(0, X.shape[0], _ROWS)))

    def _kernel(self, X: Any) -> Ball:
        inner = dot(dense(X), dense(self.X).T)
        if self.kernel == "rbf":
            squares = self._squares(X)[:, None] + self._squares(self.X)[None, :] - inner * 2.0
            return exp(Ball(np.maximum(squares.mid, 0.0), squares.rad) * -self.gamma) + self.plus
        value = inner * self.gamma + float(self.options.get("coef0", 1.0))
        power = value
        for _ in range(int(self.options.get("degree", 3)) - 1):
            power = power * value
        return power + self.plus

    @staticmethod
    def _squares(X: Any) -> Ball:
        if is_sparse(X):  # dense rows may be more than there is memory for
            squares = dot(X.multiply(X).tocsr(), np.ones((X.shape[1], 1)))[:, 0]
            return Ball(squares.mid, outward(squares.rad + 2.0 * UNIT * squares.mid))
        return (ball(dense(X)) * dense(X)).sum(axis=1)

    @property
    def longest(self) -> float:
        """A number above the norm of every row of J, its part under the penalty, for r of L1 norm 1."""
        squares = self._squares(self.X) + float(self.constant)
        if self.kernel == "rbf":
            squares = ball(np.full(1, 1.0)) + self.plus
        elif self.kernel == "poly":
            value, degree = squares * self.gamma + float(self.options.get("coef0", 1.0)), int(self.options.get("degree", 3))
            squares = Ball(outward(value.high**degree, 4 * degree)) + self.plus
        # an entry of r moves the scores of a row of B
        return float(outward(np.sqrt(squares.high.max() * (self.B**2).sum(axis=1).max()), self.B.shape[1]))

    def scores(self, X: Any, theta: Array) -> Ball:
        """Return f (rows of X, k)."""
        V, eta = self.parts(theta)
        F = dot(self.times(X, V), self.B.T)
        # f_j gets the sum of eta_l over l >= j
        return F + dot(eta[None], np.tri(self.k - 1, self.k)) if self.free else F

    def square_norm(self, V: Any) -> Ball:
        """Return |V|^2, or <V, K V> where there is a kernel."""
        V = ball(V)
        return (V * (V if self.explicit else self.times(self.X, V))).sum()

    def moments(self, R: Ball) -> Ball:
        """Return Z'(R B): the moments of explicit features under the penalty; with a kernel the coefficients of theirs."""
        RB = dot(R, self.B)
        if not self.explicit:
            return RB
        moments = dot(self.X.T, RB)
        return join(moments, RB.sum(axis=0)[None, :]) if self.constant else moments

    def tolerance(self, y: Any, s: Array) -> Array:
        """Return the half-widths of the box of moments, (d, m) and then one for each threshold: `width` standard errors each."""
        width, n = float(self.options.get("tolerance", 1.0)), s.sum()
        X = np.column_stack([dense(self.X), np.ones(len(y))]) if self.constant else dense(self.X)
        chosen = np.zeros((len(y), self.k))
        chosen[np.arange(len(y)), y] = s
        mean, square = [X.T @ (chosen @ self.B) / n], [(X**2).T @ (chosen @ self.B**2) / n]
        largest = [np.abs(X).max(axis=0)[:, None] * (self.k if self.free else np.ones(self.k))]
        if self.free:
            below = np.cumsum(chosen.sum(axis=0))[:-1, None] / n
            mean, square, largest = [*mean, below], [*square, below], [*largest, np.ones((self.k - 1, 1))]
        first, second, top = (np.concatenate(each) for each in (mean, square, largest))
        variance = second - first**2
        errors: Array = np.where(variance <= 1e-12 * second, top / n, np.sqrt(np.maximum(variance, 0.0) / n))
        return width * errors


@dataclass(frozen=True, eq=False)
class LearnedRows:
    """What a fit learned from, beside its features."""

    y: Any  # codes of the labels (n,), or a csr_array (n, k) of ones at the labels of rows that have several
    counts: Array | None  # how often every row counts (n,); None for once
    weight: Array | None  # example weights (n,), which may be factors on costs instead of counts
    costs: Array | None  # of every prediction (n, k), where rows have costs of their own
    groups: Any = None  # the sequence of every row (n,), where rows have sequences
    relations: Any = None  # names of the words' relations to their heads (n,), where labels are heads and rows have such

    def sets(self, k: int) -> Array:
        """Return the labels of every row as ones (n, k)."""
        return np.asarray(dense(self.y), dtype=np.float64) if is_sparse(self.y) else np.eye(k)[self.y]

    def shares(self) -> tuple[Array, Ball]:
        """Return how often every row counts, (n,), and 1 / n, n being their sum."""
        n, s = self.y.shape[0], self.counts
        weights = np.ones(n) if s is None else s
        return weights, inverse(ball(weights).sum() if s is not None else ball(float(n)))


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is proved of a fit; ``stages`` are its further problems, by the name with which their columns begin."""

    primal: Ball  # P(theta)
    dual: Ball  # its ``low`` is a lower bound of the optimum
    ridge: Ball  # lambda/2 |theta|^2
    stages: Mapping[str, Bounds] = field(default_factory=dict)


def longer(square: Ball, longest: float, moved: Any) -> Ball:
    """Return |v|^2 after a move of v by at most ``moved`` times the longest row, from that before."""
    length = outward(np.sqrt(max(float(square.high), 0.0)))
    extra = outward(2.0 * length * longest * moved + (longest * moved) ** 2)
    return Ball(square.mid + extra, outward(square.rad + 4e-16 * (square.mid + extra)))


def bound(features: ScoreMap, loss: Surrogate, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
    """Return the bounds of a fit of one surrogate from its proof (`advcli.results.proofs`); lambda is not used in a box.

    Raises `ValueError` for an array of the wrong shape, and `CannotError` for a fit that cannot be proved.
    """
    y, theta, r = rows.y, arrays["theta"], arrays["r"]
    if r.shape != (len(y), loss.k):
        raise ValueError(f"r has the shape {r.shape}, not {(len(y), loss.k)}")
    (weights, share), w = rows.shares(), loss.cost_weights(y, rows.weight)
    V, eta = features.parts(theta)
    losses = (loss.above(features.scores(features.X, theta), y, w, arrays.get("predictor")) * weights).sum() * share
    point = loss.below(r, y, w)
    moved = outward(float(outward(point.moved * weights).sum()), len(y))
    offset = (point.offset * weights).sum() * share
    R = ball(point.R) * weights[:, None]
    steepness = float(loss.steepness * w.max())
    if steepness == float("inf") and (features.box or features.free):
        raise CannotError(f"loss={loss.name} with free thresholds or a box: how much a move of r changes its entropy has no bound here")
    if features.box:
        below = dot(np.tri(loss.k)[:-1], R.sum(axis=0)[:, None]) if features.free else None
        moments = features.moments(R)
        every = moments if below is None else join(moments, below)
        tolerance = widths = features.tolerance(y, weights)
        parameters = ball(np.concatenate([V, eta[:, None]]) if features.free else V)
        if loss.name == "llw" and not features.free:  # parameters with sums of zero put only differences of moments in a box
            parameters = parameters - (parameters.sum(axis=1) / loss.k)[:, None]
            every = every[:, :, None] - every[:, None, :]
            widths = np.nextafter(tolerance[:, :, None] + tolerance[:, None, :], 0.0)
        high = outward((every * share).size + max(features.longest, 1.0) * moved * share.size)
        t = float(np.minimum(1.0, (widths / np.maximum(high, 1e-300)).min()) * (1.0 - 1e-15))
        t = 1.0 if (high <= widths).all() else t
        start = (ball(loss.at_labels(y, w)) * weights).sum() * share
        dual = offset * t + start * outward(1.0 - t) if t < 1.0 else offset
        penalty = (Ball(np.abs(parameters.mid), parameters.rad) * tolerance).sum()
        return Bounds(penalty + losses, dual - steepness * moved * share.size, ball(0.0))
    if features.free:
        if not loss.simplex:
            raise CannotError(f"loss={loss.name} with free thresholds: how far r breaks their constraints has no bound here")
        surplus = outward(0.5 * (R.sum(axis=0).size.sum() + moved), loss.k)
        moved = outward(moved + 2.0 * surplus)
        offset = offset - steepness * outward(2.0 * surplus * share.size)
    square = longer(features.square_norm(features.moments(R)), features.longest, moved)
    ridge = features.square_norm(V) * (0.5 * lam)
    dual = offset - square * share * share * inverse(ball(2.0 * lam))
    return Bounds(ridge + losses, dual, ridge)
