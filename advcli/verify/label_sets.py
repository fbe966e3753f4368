"""Bounds of structured labels: sets of labels and sequences, from the definition of their surrogates (advcli.verify of ``loss=sets``).

    P(w) = lambda/2 |w|^2 + 1/n sum_i s_i max over y of psi(h, g),   h = f(y) - f(y_i),   g = labels in which y and y_i differ

psi is convex in h and rises with it. So a label y and any number h0 make a plane c + a (f(y) - f(y_i)) below the surrogate of row i: the
tangent of psi(., g) at h0, which for an affine psi is psi. With stored labels, numbers h0 and weights alpha of sum at most 1 for each row

    D = 1/n sum_i s_i sum_p alpha_ip c_ip - |sum_i s_i sum_p alpha_ip a_ip (F(y_p) - F(y_i))|^2 / (2 lambda n^2)  <= min P,

F(y) being what f weighs. The maximum is taken over all 2^m sets, one by one. The max-min margin has planes of mixtures mu of sets, a = 1
and c = sum_j min(mu_j, 1 - mu_j). It is at most the largest sum_j |y_j - p_j| + h of all sets for any targets p in [0, 1]^m. The max-min
margin of the F-measure F(z, y) = 2 |z & y| / (|z| + |y|), 1 of two empty sets, has c = 1 - max over z of E_mu F(z, y). For any predicted
sets z of shares p, whose sum is at most 1, it is at most the largest 1 - sum_z p_z F(z, y) + h. In both F is a sum over labels where one
size is fixed: of |z| = k the largest E_mu F is the sum of the k largest of E_mu 2 y_j / (k + |y|), and of |y| = s

    sum_z p_z F(z, y) = sum over j in y of sum over z that hold j of 2 p_z / (|z| + s).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from ..core.arrays import is_sparse
from ..core.typing import Array
from .bounds import UNIT, Ball, ball, between, dot, exp, inverse, join, outward
from .gap import Bounds, LearnedRows, ScoreMap
from .surrogates import CannotError

_MOST_LABELS = 16
_SCORES = 2**20  # scores of sets that are held at once
_STATES = {"none": 0, "one": 1, "four": 4}  # weights of a pair
_SURROGATES = ("margin", "slack", "scaling", "log", "prob", "f1")
_erfc = np.vectorize(math.erfc, otypes=[float])


class SurrogateOfMargin:
    """psi(h, g) as balls, for whole numbers g >= 0; of ``f1`` the margin is divided by ``sizes``, the sum of the sizes of both sets."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.name = str(options["surrogate"])
        if self.name not in _SURROGATES:
            raise CannotError(f"loss.surrogate={self.name} is unknown to the checker")
        beta = options.get("beta")
        self.power = {"margin": 0.0, "slack": 1.0, "scaling": 0.5 if beta is None else float(beta)}.get(self.name)

    def value(self, h: Ball, g: Array, sizes: Array) -> Ball:
        """Return psi at margins h."""
        if self.power is not None:
            return h * self._scale(g) + g
        if self.name == "f1":
            return (h + g) * self._share(sizes)
        if self.name == "log":
            return _rising(lambda x: g * np.logaddexp(0.0, x), h, np.full(np.shape(g), 32.0))
        return _rising(lambda x: _probability(x, g), h, 64.0 + 16.0 * np.minimum(h.low, 0.0) ** 2 / np.maximum(g, 1.0))

    def tangent(self, h: Array, g: Array, sizes: Array) -> tuple[Ball, Ball]:
        """Return the slope and the constant of the tangent in the margin at h."""
        if self.power is not None:
            return self._scale(g), ball(g)
        if self.name == "f1":
            share = self._share(sizes)
            return share, share * g
        if self.name == "log":
            rest = exp(ball(-np.abs(h)))  # e^h / (1 + e^h) with an exponent that is not above 0
            below = rest.mid + 1.0
            share = Ball(np.where(h > 0.0, 1.0, rest.mid) / below)
            slope = Ball(share.mid, outward(32.0 * UNIT * share.mid)) * g
        else:
            below = np.minimum(h, 0.0)
            exponent = ball(below) * below * (-0.25 * math.pi) * (1.0 / np.maximum(g, 1.0))
            exponent = Ball(exponent.mid, outward(exponent.rad + 4.0 * UNIT * np.abs(exponent.mid)))
            slope = exp(exponent) * _near(np.sqrt(g))
        return slope, self.value(ball(h), g, sizes) - slope * h

    def planes(self, h: Array, weight: Ball, sets: Array, true: Array) -> tuple[Ball, Ball]:
        """Return the planes of tangents at margins h of sets (p, k) against the true ones: weighted slopes, and the constants' sum."""
        slope, constant = self.tangent(h, np.abs(sets - true).sum(axis=1), sets.sum(axis=1) + true.sum(axis=1))
        return weight * slope, (weight * constant).sum()

    def _scale(self, g: Array) -> Ball:
        return _near(np.power(g, self.power or 0.0))

    @staticmethod
    def _share(sizes: Array) -> Ball:
        return _near(np.where(sizes > 0.0, 1.0 / np.maximum(sizes, 1.0), 0.0))


def _near(value: Array) -> Ball:
    return Ball(value, outward(16.0 * UNIT * np.abs(value)))


def _rising(function: Any, x: Ball, error: Array) -> Ball:
    """Return a function that rises and is not negative, of relative error ``error`` in units of rounding."""
    low, high = function(x.low), function(x.high)
    return between(low * (1.0 - error * UNIT), outward(high * (1.0 + error * UNIT)))


def _probability(h: Array, g: Array) -> Array:
    """Return 2 g N(h sqrt(pi / (2 g))) for h <= 0 and its tangent g + sqrt(g) h above."""
    z = np.minimum(h, 0.0) * np.sqrt(0.25 * math.pi / np.maximum(g, 1.0))
    return np.asarray(g * _erfc(-z) + np.sqrt(g) * np.maximum(h, 0.0))


class Structured:
    """Structured labels by the group ``loss``: ``n_scores`` scores of rows over linear features, and further weights."""

    game = example_costs = has_costs = sequences = False

    def __init__(self, options: Mapping[str, Any], n_scores: int) -> None:
        self.n_scores, self.with_constant = n_scores, bool(options["fit_intercept"])

    @staticmethod
    def refuse_mixtures(options: Mapping[str, Any]) -> None:
        """Refuse fits of which no labels are kept that prove their bounds."""
        if options["search"] not in ("auto", "levels"):
            raise CannotError(f"loss.search={options['search']}: what it states is its own bound of the surrogate, not its value")
        if options.get("training", "planes") != "planes":
            raise CannotError(f"loss.training={options['training']}: its dual point is a mixture, of which no labels are kept")

    def score_map(self, options: Mapping[str, Any], gamma: float | None, X: Any) -> ScoreMap:
        """Return the map of the scores of rows X (n, d); structured labels have linear features alone."""
        features = ScoreMap(options, gamma, X, self.n_scores)
        if features.kernel != "linear" or features.free or features.box:
            raise CannotError(f"features={options['name']}: the checker knows structured labels of linear features")
        features.constant = self.with_constant
        return features

    def weights(self, features: ScoreMap, theta: Array, beside: int = 0) -> tuple[Array, Array]:
        """Return W (d, n_scores) and the further weights."""
        size = (features.X.shape[1] + features.constant) * self.n_scores
        if theta.shape != (size + beside,):
            raise ValueError(f"theta has the shape {theta.shape}, not {(size + beside,)}")
        return theta[:size].reshape(-1, self.n_scores), theta[size:]

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, arrays: Mapping[str, Array]) -> Any:
        """Return None: the labels that may have the largest score are not listed."""
        return None

    def facts(self) -> Mapping[str, Any]:
        """Return an empty mapping: structured labels have no costs."""
        return {}


class SetsOfLabels(Structured):
    """Sets of m labels with weights of pairs."""

    def __init__(self, options: Mapping[str, Any], m: int) -> None:
        super().__init__(options, m)
        self.of_f = options["surrogate"] == "maxmin_f1"
        self.psi = None if self.of_f or options["surrogate"] == "maxmin" else SurrogateOfMargin(options)
        self.m, self.states, self.rule = m, _STATES[str(options["pairs"])], str(options.get("rule", "potentials"))
        if m > _MOST_LABELS:
            raise CannotError(f"{m} labels: the checker looks at all sets, of at most {_MOST_LABELS} labels")
        self.refuse_mixtures(options)
        self.first, self.second = np.triu_indices(m, 1)
        self.bits = ((np.arange(2**m)[:, None] >> np.arange(m)) & 1).astype(np.float64)
        self.sizes = self.bits.sum(axis=1)
        self.by_size = np.argsort(self.sizes, kind="stable")
        self.starts = np.searchsorted(self.sizes[self.by_size], np.arange(m + 1))

    def of_size(self, s: int) -> Any:
        """Return the numbers of the sets of s labels."""
        return self.by_size[self.starts[s] : self.starts[s + 1] if s < self.m else None]

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, arrays: Mapping[str, Array]) -> Any:
        """Return the sets that may have the largest score at every row, arrays (c, m); None for other rules and for rows with one label."""
        if self.rule != "potentials" or not is_sparse(rows.y):
            return None
        W, shared = self.weights(features, arrays["theta"], self.n_pairs)
        U, table = features.times(X, W), self._table(shared)
        sets = []
        for part in self._parts(X.shape[0]):
            scores = dot(U[part], self.bits.T) + table
            sets += [self.bits[leading] for leading in scores.may_lead()]
        return sets

    def _parts(self, n: int) -> list[slice]:
        """Return parts of n rows, the scores of whose sets are held at once."""
        step = max(1, _SCORES >> self.m)
        return [slice(first, first + step) for first in range(0, n, step)]

    @property
    def n_pairs(self) -> int:
        """Weights of pairs."""
        return self.states * len(self.first)

    def _table(self, shared: Array) -> Ball:
        """Return what every set gets of the weights that labels share, (2^m,)."""
        if not self.states:
            return ball(np.zeros(2**self.m))
        return join(*(dot(self.pairs(self.bits[start : start + 4096]), shared[:, None]) for start in range(0, 2**self.m, 4096)))[:, 0]

    def pairs(self, Y: Array) -> Array:
        """Return what sets Y (n, m) have of every weight of a pair, (n, G)."""
        if not self.states:
            return np.zeros((len(Y), 0))
        j, k = Y[:, self.first], Y[:, self.second]
        if self.states == 1:
            return np.asarray(j * k)
        return np.stack([(1.0 - j) * (1.0 - k), j * (1.0 - k), (1.0 - j) * k, j * k], axis=2).reshape(len(Y), -1)

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        """Return the bounds of a fit; `ValueError` for an array of the wrong shape, or a plane of what does not exist."""
        n, planes = features.X.shape[0], arrays["r"]
        W, shared = self.weights(features, arrays["theta"], self.n_pairs)
        numbers = rows.sets(self.m).astype(np.int64) @ (1 << np.arange(self.m))
        counts, share = rows.shares()
        ridge = (features.square_norm(W) + (ball(shared) * shared).sum()) * (0.5 * lam)
        p = None if self.psi is not None else self._predictor(arrays["predictor"], n)
        losses = (self.above(features.times(features.X, W), shared, numbers, p) * counts).sum() * share
        # below: tangents at the stored sets
        owner, number, alpha = planes_of(planes, 4, n, 2**self.m)
        sets, true = self.bits[number], self.bits[numbers[owner]]
        weight = ball(alpha) * counts[owner]
        if self.psi is None:
            which = np.unique(np.column_stack([owner, planes[:, 3]]), axis=0, return_inverse=True)[1].ravel()
            least = self._least_f_loss if self.of_f else self._least_loss
            coefficient, offset = weight, least(weight, which, sets) * share
        else:
            coefficient, constant = self.psi.planes(planes[:, 3], weight, sets, true)
            offset = constant * share
        moments = features.moments(dot(gathering(owner, n), coefficient[:, None] * (sets - true)))
        square = features.square_norm(moments)
        if self.states:
            together = dot(coefficient[None], self.pairs(sets) - self.pairs(true))
            square = square + (together * together).sum()
        return Bounds(ridge + losses, offset - square * share * share * inverse(ball(2.0 * lam)), ridge)

    def _predictor(self, stored: Array, n: int) -> list[Ball]:
        """Return the targets p (n, m).

        Of the F-measure the share of the empty set (n, 1), then for s = 1..m the sums over z that hold j of 2 p_z / (|z| + s) (n, m).
        """
        if not self.of_f:
            p = np.clip(stored, 0.0, 1.0)
            if p.shape != (n, self.m):
                raise ValueError(f"predictor has the shape {p.shape}, not {(n, self.m)}")
            return [ball(p)]
        owner, number, share = planes_of(stored, 3, n, 2**self.m)
        owned = gathering(owner, n)
        sets, size = self.bits[number], self.sizes[number]
        parts = [dot(owned, (share * (size == 0.0))[:, None])]
        return parts + [dot(owned, _near(2.0 * share / (size + s))[:, None] * sets) for s in range(1, self.m + 1)]

    def _least_f_loss(self, weight: Ball, which: Any, sets: Array) -> Ball:
        """Return the least sum of 1 - F of any predictions under mixtures: weights of sets that are in the same one."""
        gathered, size = gathering(which, int(which.max(initial=-1)) + 1), sets.sum(axis=1)
        best = [dot(gathered, weight[:, None] * (size == 0.0)[:, None])]
        for k in range(1, self.m + 1):
            gain = dot(gathered, weight[:, None] * _near(2.0 / (size + k))[:, None] * sets)
            low, high = (ball(np.sort(ends, axis=1)[:, self.m - k :]).sum(axis=1) for ends in (gain.low, gain.high))
            best.append(between(low.low, high.high)[:, None])
        return weight.sum() - join(*best, axis=1).max(axis=1).sum()

    def _least_loss(self, weight: Ball, which: Any, sets: Array) -> Ball:
        """Return the least sum of wrong labels of any predictions under mixtures: weights of sets that are in the same one."""
        gathered = gathering(which, int(which.max(initial=-1)) + 1)
        there, gone = (dot(gathered, weight[:, None] * labels) for labels in (sets, 1.0 - sets))
        either = Ball(-np.stack([there.mid, gone.mid], axis=2), np.stack([there.rad, gone.rad], axis=2))
        return -(either.max(axis=2).sum())

    def above(self, U: Ball, shared: Array, numbers: Any, p: list[Ball] | None = None) -> Ball:
        """Return the surrogate of rows (n,) with scores U (n, m) of the labels, whose sets are these: the largest psi of all sets.

        The values of the max-min margins are their bounds by what `_predictor` returns: the largest sum_j |y_j - p_j| + margin, and the
        largest 1 - sum_z p_z F(z, y) + margin.
        """
        table, values = self._table(shared), []
        for part in self._parts(len(numbers)):
            true, every = numbers[part, None], np.arange(len(numbers[part]))[:, None]
            scores = dot(U[part], self.bits.T) + table
            h = scores - scores[every, true]
            if self.psi is None and self.of_f:
                assert p is not None
                parts = [h[:, self.of_size(0)] - p[0][part] + 1.0]
                for s, shares in enumerate(p[1:], start=1):
                    same = self.of_size(s)
                    parts.append(h[:, same] - dot(shares[part], self.bits[same].T) + 1.0)
                value = join(*parts, axis=1)
            elif self.psi is None:
                assert p is not None
                targets = p[0][part]
                value = h + dot(targets * -2.0 + 1.0, self.bits.T) + targets.sum(axis=1)[:, None]
            elif self.psi.name == "f1":
                value = self.psi.value(h, self.sizes[np.arange(2**self.m) ^ true], self.sizes + self.sizes[true])
            else:  # psi rises: at every distance the largest margin
                h = h[every, self.by_size ^ true]
                low, high = (np.maximum.reduceat(ends, self.starts, axis=1) for ends in (h.low, h.high))
                g = np.broadcast_to(np.arange(self.m + 1.0), low.shape)
                value = self.psi.value(between(low, high), g, g)
            values.append(value.max(axis=1))
        return join(*values)


def gathering(which: Any, count: int) -> Any:
    """Return ones (count, c) that sum c things by the number that each has."""
    return sparse.csr_array((np.ones(len(which)), (which, np.arange(len(which)))), shape=(count, len(which)))


def planes_of(planes: Array, columns: int, examples: int, labels: int) -> tuple[Any, Any, Array]:
    """Return examples, labels and weights of stored planes (p, columns); weights are cut as in `cut`."""
    if planes.ndim != 2 or planes.shape[1] != columns:
        raise ValueError(f"r has the shape {planes.shape}, not {columns} columns")
    owner, number = planes[:, 0].astype(np.int64), planes[:, 2].astype(np.int64)
    for numbers, column, limit, what in ((owner, 0, examples, "an example"), (number, 2, labels, "a label")):
        if not ((numbers == planes[:, column]) & (numbers >= 0) & (numbers < limit)).all():
            raise ValueError(f"r names {what} that there is not")
    return owner, number, cut(planes[:, 1], owner, examples)


def cut(alpha: Array, owner: Any, examples: int) -> Array:
    """Return the weights with negative ones set to 0; an example whose weights exceed 1 in total has them scaled to 1."""
    alpha = np.maximum(alpha, 0.0)
    sums = outward(np.bincount(owner, weights=alpha, minlength=examples), len(owner))
    # a sum is above the exact one by more than the quotients round
    return np.where(sums[owner] > 1.0, alpha / np.maximum(sums[owner], 1.0), alpha)
