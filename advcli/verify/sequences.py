"""Bounds of label sequences, from the definition of their surrogates (advcli.verify of ``loss=chain``).

    P(w) = lambda/2 |w|^2 + 1/n sum_s c_s S_s,   f(y) = sum_t w_{y_t}.x_t + sum_t A[y_t, y_{t+1}],   n = sum_s c_s

S_s is the largest psi(h, g) of all sequences (`structured`): the largest h at each number g of wrong labels comes from Viterbi's algorithm
over (g, state), the largest h + g of margin rescaling from Viterbi's algorithm over states. The max-min margin is at most the largest of
sum_t (1 - p_t(y_t)) + f(y) - f(y_s) for any distributions p_t. Stored sequences of weights alpha with shares mu_t of the states give

    D = 1/n sum_s c_s sum_t (1 - max_a mu_t(a)) - |1/n sum_s c_s (F(mu_s) - F(y_s))|^2 / (2 lambda)  <= min P.

Rounding is monotone, so that the largest of sums made term by term is the sum made for one sequence: the error is the error of a sum of
2T terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.typing import Array
from .bounds import UNIT, Ball, ball, inverse, outward
from .gap import Bounds, LearnedRows, ScoreMap
from .label_sets import Structured, SurrogateOfMargin, cut
from .surrogates import CannotError

_HELD = 2**22  # numbers of a step of the recursion that are held at once
_MAXMIN = "maxmin"

Starts = NDArray[np.intp]


class SequencesOfLabels(Structured):
    """Sequences of k labels with a weight for each label and the next."""

    sequences = True

    def __init__(self, options: Mapping[str, Any], k: int) -> None:
        super().__init__(options, k)
        self.k, self.surrogate, self.rule = k, str(options["surrogate"]), str(options["rule"])
        self.psi = None if self.surrogate == _MAXMIN else SurrogateOfMargin(options)
        if self.surrogate == "f1":
            raise CannotError("loss.surrogate=f1 is for sets of labels")

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, arrays: Mapping[str, Array]) -> Any:
        """Return which labels the best sequence may have, (n, k); None where the game predicts."""
        if self.rule != "potentials":
            return None
        U, A = self._scores(features, X, arrays["theta"])
        start = starts_of(groups, X.shape[0])
        possible = np.zeros((len(U.mid), self.k), dtype=bool)
        for _, batch in self._batches(start):
            V = U.mid[batch]
            before, after = np.empty_like(V), np.zeros_like(V)
            before[:, 0] = V[:, 0]
            for t in range(1, V.shape[1]):
                before[:, t] = (before[:, t - 1][:, :, None] + A).max(axis=1) + V[:, t]
                back = -t - 1
                after[:, back] = (A + (after[:, back + 1] + V[:, back + 1])[:, None, :]).max(axis=2)
            through = before + after
            best = through.max(axis=2, keepdims=True)
            # the sum of either half may err by this, and the sum of both halves rounds once more
            error = 2.0 * _error(U, A, batch)[:, None, None] + 4.0 * UNIT * np.abs(best)
            possible[batch] = through >= best - outward(error)
        return possible

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        """Return the bounds of a fit; `ValueError` for an array of the wrong shape, or a plane of a sequence or a label that is none."""
        y, start = np.asarray(rows.y), starts_of(rows.groups, features.X.shape[0])
        counts = np.ones(len(start) - 1) if rows.counts is None else rows.counts[start[:-1]]
        share = inverse(ball(counts).sum())
        U, A = self._scores(features, features.X, arrays["theta"])
        W = arrays["theta"][: -(self.k**2)].reshape(-1, self.k)
        ridge = (features.square_norm(W) + (ball(A) * A).sum()) * (0.5 * lam)
        cost = np.where(np.arange(self.k) == y[:, None], 0.0, 1.0)
        if self.psi is None:
            cost = 1.0 - _distributions(arrays["predictor"], cost.shape)
        losses = (self.above(U, A, y, start, cost) * counts).sum() * share
        offset, unary, together = self._mixture(arrays["r"], y, start, counts)
        moments = features.moments(unary)
        square = features.square_norm(moments) + (together * together).sum()
        return Bounds(ridge + losses, offset * share - square * share * share * inverse(ball(2.0 * lam)), ridge)

    def _scores(self, features: ScoreMap, X: Any, theta: Array) -> tuple[Ball, Array]:
        """Return the scores of rows X (n, k) and A (k, k)."""
        W, A = self.weights(features, theta, self.k**2)
        return features.times(X, W), A.reshape(self.k, self.k)

    def above(self, U: Ball, A: Array, y: NDArray[np.intp], start: Starts, cost: Array) -> Ball:
        """Return the surrogate of every sequence (S,) at scores U (n, k) and A (k, k); ``cost`` (n, k) are costs that add."""
        mid, rad = np.empty(len(start) - 1), np.empty(len(start) - 1)
        by_levels = self.psi is not None and self.psi.name != "margin"
        for chain, batch in self._batches(start, by_levels):
            V, truth = U.mid[batch], y[batch]
            error = _error(U, A, batch, most=0.0 if by_levels else float(cost.max(initial=0.0)))
            truths = np.take_along_axis(V[:, 0], truth[:, :1], axis=1)[:, 0]
            for t in range(1, V.shape[1]):
                truths = truths + A[truth[:, t - 1], truth[:, t]] + np.take_along_axis(V[:, t], truth[:, t, None], axis=1)[:, 0]
            if by_levels:
                assert self.psi is not None
                level = _levels(V, A, truth)
                h = Ball(level, outward(error)[:, None]) - Ball(truths, outward(error))[:, None]
                h.mid[:, 0], h.rad[:, 0] = 0.0, 0.0  # the truth itself
                g = np.broadcast_to(np.arange(level.shape[1], dtype=np.float64), level.shape)
                value = self.psi.value(h, g, g).max(axis=1)
            else:
                V = V + cost[batch]
                best = V[:, 0]
                for t in range(1, V.shape[1]):
                    best = (best[:, :, None] + A).max(axis=1) + V[:, t]
                value = Ball(best.max(axis=1), outward(error)) - Ball(truths, outward(error))
            mid[chain], rad[chain] = value.mid, value.rad
        return Ball(mid, rad)

    def _mixture(self, stored: Array, y: NDArray[np.intp], start: Starts, counts: Array) -> tuple[Ball, Ball, Ball]:
        """Return n times what stored sequences give D: constants, the mixture less the truth by row (n, k) and by transition (k, k)."""
        k = self.k
        found = sequences_of(stored, start, k, y, counts, self.psi)
        plane, rows, labels, true, coefficient = found.plane, found.rows, found.labels, found.true, found.coefficient
        differs = np.flatnonzero(labels != true)
        shares = coefficient[plane[differs]]
        added, removed = (sums(shares, rows[differs] * k + side[differs], len(y) * k, found.terms) for side in (labels, true))
        unary = added - removed
        inner = np.flatnonzero(plane[1:] == plane[:-1]) + 1
        inner = inner[(labels[inner] != true[inner]) | (labels[inner - 1] != true[inner - 1])]
        shares = coefficient[plane[inner]]
        added, removed = (sums(shares, side[inner - 1] * k + side[inner], k * k) for side in (labels, true))
        together = added - removed
        unary = Ball(unary.mid.reshape(-1, k), unary.rad.reshape(-1, k))
        if self.psi is not None:
            return found.constant, unary, together
        # no prediction is expected to do better than the likeliest label of each row
        count = np.repeat(counts, np.diff(start))
        shares = unary + np.where(np.arange(k) == y[:, None], count[:, None], 0.0)
        return (ball(count) - shares.max(axis=1)).sum(), unary, together

    def _batches(self, start: Starts, levels: bool = False) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        return batches(start, lambda T: self.k * self.k * (T + 1 if levels else 1) + T * self.k)


def starts_of(groups: Any, n: int) -> Starts:
    """Return where the sequences of n rows begin, and n; None for groups: each row is one."""
    if groups is None:
        return np.arange(n + 1)
    return np.concatenate([[0], np.flatnonzero(groups[1:] != groups[:-1]) + 1, [n]]).astype(np.intp)


class StoredSequences(NamedTuple):
    """Stored planes (p,) with the rows of their sequences, one behind the other (r,)."""

    owner: NDArray[np.intp]  # sequence of each plane (p,)
    plane: NDArray[np.intp]  # of each row (r,)
    rows: NDArray[np.intp]  # where it stands (r,)
    labels: NDArray[np.intp]  # (r,)
    true: NDArray[np.intp]  # the true ones (r,)
    coefficient: Ball  # slopes times weights (p,)
    constant: Ball  # sum of the constants times weights
    terms: int  # above the number of planes of any sequence


def sequences_of(
    stored: Array, start: Starts, k: int, truth: NDArray[np.intp], counts: Array, psi: SurrogateOfMargin | None
) -> StoredSequences:
    """Return stored planes, which stand one behind the other, of sequences with true labels (n,); without ``psi`` h + 0 for psi.

    A plane is its sequence, its weight, the margin of its tangent and the labels of the sequence. Weights are cut as in `planes_of`.
    """
    if stored.ndim != 1:
        raise ValueError(f"r has the shape {stored.shape}, not one axis")
    place, heads, sizes = 0, [], np.diff(start)
    while place < len(stored):
        s = stored[place]
        if not (0 <= s < len(sizes) and s == int(s)):
            raise ValueError("r names a sequence that there is not")
        heads.append(place)
        place += 3 + int(sizes[int(s)])
    if place != len(stored):
        raise ValueError("r ends within a sequence")
    head = np.array(heads, dtype=np.intp)
    owner = stored[head].astype(np.intp)
    names = stored[_ranges(head + 3, sizes[owner])]
    labels = names.astype(np.intp)
    if not ((labels == names) & (labels >= 0) & (labels < k)).all():
        raise ValueError("r names a label that there is not")
    rows, plane = _ranges(start[owner], sizes[owner]), np.repeat(np.arange(len(owner)), sizes[owner])
    true, none = truth[rows], np.zeros(len(owner))
    wrong = np.bincount(plane, weights=labels != true, minlength=len(owner)).astype(np.float64)
    slope, constant = (ball(none + 1.0), ball(none)) if psi is None else psi.tangent(stored[head + 2], wrong, none)
    weight = ball(cut(stored[head + 1], owner, len(sizes))) * counts[owner]
    terms = int(np.bincount(owner, minlength=1).max(initial=1)) + 1
    return StoredSequences(owner, plane, rows, labels, true, weight * slope, (weight * constant).sum(), terms)


def _ranges(first: Any, sizes: Any) -> NDArray[np.intp]:
    """Return the numbers from each first on, as many as its size."""
    before = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(np.repeat(first, sizes) + np.arange(int(np.sum(sizes))) - before, dtype=np.intp)


def batches(start: Starts, held: Callable[[int], int]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield numbers of sequences of the same length T (b,), of which each needs ``held(T)`` numbers, and their rows (b, T)."""
    sizes = np.diff(start)
    for T in np.unique(sizes).tolist():
        which, step = np.flatnonzero(sizes == T), max(1, _HELD // held(T))
        for place in range(0, len(which), step):
            part = which[place : place + step]
            yield part, start[part][:, None] + np.arange(T)


def _error(U: Ball, A: Array, batch: NDArray[np.intp], most: float = 0.0) -> Array:
    """Return a number above the error of the score of any sequence (b,), a sum in order; ``most`` is the largest cost."""
    T = batch.shape[1]
    largest = np.abs(U.mid[batch]).max(axis=2).sum(axis=1) + T * most + (T - 1) * np.abs(A).max()
    spread = np.broadcast_to(U.rad, U.mid.shape)[batch].max(axis=2).sum(axis=1)
    return np.asarray(outward(spread + (3 * T + 4) * UNIT * 1.01 * largest, 4 * T))


def _levels(V: Array, A: Array, truth: NDArray[np.intp]) -> Array:
    """Return the largest score at every number of wrong labels (b, T + 1)."""
    b, T, k = V.shape
    is_true = np.arange(k) == truth[:, :, None]
    best = np.full((b, T + 1, k), -np.inf)
    best[:, 0] = np.where(is_true[:, 0], V[:, 0], -np.inf)
    best[:, 1] = np.where(is_true[:, 0], -np.inf, V[:, 0])
    for t in range(1, T):
        moved = np.full((b, T + 1, k), -np.inf)
        moved[:, : t + 1] = (best[:, : t + 1, :, None] + A).max(axis=2) + V[:, None, t]
        shifted = np.concatenate([np.full((b, 1, k), -np.inf), moved[:, :-1]], axis=1)
        best = np.where(is_true[:, None, t], moved, shifted)
    return np.asarray(best.max(axis=2))


def sums(values: Ball, places: Any, size: int, terms: int | None = None) -> Ball:
    """Return the sums of values by place, (size,), of at most so many terms each; None: any number, summed in pieces."""
    count = len(places)
    pieces = 1 if terms is not None else max(1, int(count**0.5))
    terms = -(-count // pieces) + pieces if terms is None else terms
    index = (np.arange(count) * pieces // max(count, 1)) * size + places
    mid, absolute, rad = (
        np.bincount(index, weights=numbers, minlength=pieces * size).reshape(pieces, size).sum(axis=0)
        for numbers in (values.mid, np.abs(values.mid), np.broadcast_to(values.rad, np.shape(values.mid)))
    )
    return Ball(mid, outward(rad + 1.01 * terms * UNIT * absolute, terms + 8))


def _distributions(p: Array, shape: tuple[int, ...]) -> Array:
    """Return the predictor's shares, non-negative with sums of at most 1: a sum below 1 only adds to the loss."""
    if p.shape != shape:
        raise ValueError(f"predictor has the shape {p.shape}, not {shape}")
    p = np.maximum(p, 0.0)
    total = outward(p.sum(axis=1, keepdims=True), shape[1])
    return np.asarray(np.where(total > 1.0, p / np.maximum(total, 1.0) * (1.0 - 8.0 * UNIT), p))
