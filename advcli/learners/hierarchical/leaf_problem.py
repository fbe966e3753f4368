"""Learning one label a row over a hierarchy: dual block ascent in `_ext/structured/hierarchical.pyx`, and the values of a dual point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from ...core.arrays import is_sparse
from ...core.compiled import CompiledRows, compiled_rows, kernels
from ...core.typing import Array, Labels
from ...data.labels.node_weights import best_weights, dual_bound
from ...losses.base import ROUNDING
from .attributes import Attributes, FactoredWeights, away_from_zero, farther_weights, keeps_lists

_CHUNK = 1_000_000  # scores that `evaluate` holds at once: 4 times as many leave the caches and take 1.35 times as long
_ENTRIES = 8_000_000  # of sums over nodes that `node_squares` holds at once, at most
_STRETCHES = 13  # multiples of the dual point's weights that are tried, as in the compiled solver


class DualPoint(NamedTuple):
    """A feasible dual point, the weights W of that point, and the values of P and D."""

    primal: float
    dual: float
    coef: Any  # (k, d) leaf weights U = sum of a_n W_n, or FactoredWeights
    Z: Any  # (k, d) dual sums, sparse with FactoredWeights
    linear: float  # sum of s_i beta_i . margin
    hinge: float  # sum of s_i hinge_i at coef
    stretch: float  # coef over the weights of the dual point
    beta: sparse.csr_array  # the dual point, moved into its set
    outside: float  # how far it lay outside before


@dataclass(frozen=True, eq=False)
class LeafProblem:
    """Rows, codes, weights and C of one fit; values are divided by the sum of the weights, as in (1)."""

    X: Any
    y: Labels
    sample: Array
    C: float
    weighted: bool
    single: bool = False

    @cached_property
    def mass(self) -> float:
        """Sum of the example weights, the n of (1)."""
        return float(self.sample.sum())

    @cached_property
    def rows(self) -> CompiledRows:
        """X as the compiled solver takes it."""
        return compiled_rows(self.X)

    @cached_property
    def squares(self) -> Array:
        """Squared lengths of the rows, shape (n,)."""
        return np.ascontiguousarray(row_norms(self.X, squared=True), dtype=np.float64)

    def sums(self, attributes: Attributes, beta: sparse.csr_array) -> tuple[Any, sparse.csr_array, float]:
        """Return Z = R'X (k, d), sparse as X is with many labels, R (n, k), and the sum of margins of a dual point beta (n, k)."""
        n, k = beta.shape
        owner = np.repeat(np.arange(n), np.diff(beta.indptr))
        margins, divisors = attributes.margins_at(self.y[owner], beta.indices)
        share = self.sample[owner] * beta.data
        linear = float(share @ margins)
        off = share / divisors
        of_label = np.bincount(owner, weights=off, minlength=n)
        places = np.concatenate([owner, np.arange(n)]), np.concatenate([beta.indices, self.y])
        R = sparse.csr_array((np.concatenate([-off, of_label]), places), shape=(n, k))
        Z = R.T @ self.X
        if is_sparse(Z):
            Z = sparse.csr_array(Z) if keeps_lists(self.X, k) else Z.toarray()
        return Z, R, linear

    def evaluate(self, attributes: Attributes, beta: sparse.csr_array, tol: float) -> DualPoint:
        """Return the evaluation of the feasible dual point near beta (n, k), from scratch, at the best of a few multiples of W(beta).

        Where labels separate, W(beta) is a little short of the margins: hinges make up most of P, and vanish for a small price in |W|^2.
        """
        beta, outside = into_shares(beta)
        Z, R, linear = self.sums(attributes, beta)
        coef = None if is_sparse(Z) else self.C * np.asarray(attributes.spread(Z))
        factored = FactoredWeights(Z, attributes.membership, attributes.alpha, self.C)
        stretches = np.concatenate([[1.0], 1.0 + 0.05 * tol * 2.0 ** np.arange(_STRETCHES - 1)])
        hinges, norm = np.zeros(_STRETCHES), 0.0
        n, k = beta.shape
        size = max(1, _CHUNK // k)
        for first in range(0, n, size):
            part = slice(first, min(first + size, n))
            F = factored.scores(self.X[part]) if coef is None else np.asarray(self.X[part] @ coef.T)
            norm += 0.5 * float(R[part].multiply(F).sum())  # lambda |W|^2 = 1/2 sum of r_i . f_i
            y = self.y[part]
            labels, row = np.unique(y, return_inverse=True)
            margins, divisors = attributes.margins(labels)
            gain = (F - F[np.arange(len(F)), y][:, None]) / divisors[row]
            hinges += self.sample[part] @ _stretched(gain, margins[row], stretches)
        best = int(np.argmin(stretches**2 * norm + hinges))
        t, hinge = float(stretches[best]), float(hinges[best])
        weights = replace(factored, scale=t * self.C) if coef is None else t * coef
        return DualPoint((t * t * norm + hinge) / self.mass, (linear - norm) / self.mass, weights, Z, linear, hinge, t, beta, outside)

    def ascend(
        self, attributes: Attributes, beta: sparse.csr_array, tol: float, max_passes: float, seed: int
    ) -> tuple[sparse.csr_array, float, bool]:
        """Ascend the dual from beta; return the dual point, the passes made, and whether the compiled solver reached the tolerance."""
        examples = *self.rows, self.y, self.squares, self.sample if self.weighted else np.empty(0)
        start = beta.indptr.astype(np.int64), beta.indices.astype(np.int32), np.ascontiguousarray(beta.data, dtype=np.float64)
        limits = self.C, self.mass, tol, max_passes, float("inf"), seed & 0xFFFFFFFFFFFFFFFF
        code, passes, _, _, *point = kernels.hierarchical.solve(
            *examples, *attributes.arguments, *start, *limits, keeps_lists(self.X, beta.shape[1]), self.single
        )
        pointer, label, value = point
        return sparse.csr_array((value, label, pointer), shape=beta.shape), passes, code == 0


def into_shares(beta: sparse.csr_array) -> tuple[sparse.csr_array, float]:
    """Return beta (n, k), made >= 0 with rows of sum <= 1 unless rounding alone keeps it outside, and how far outside it lay."""
    counts, total = np.diff(beta.indptr), np.asarray(beta.sum(axis=1)).ravel()
    # nan where beta holds a nan
    outside = float(np.max([0.0, (-beta.data).max(initial=0.0), (total - 1.0).max(initial=0.0)]))
    if not outside > ROUNDING * counts.max(initial=1):
        return beta, outside
    shares = sparse.csr_array((np.maximum(beta.data, 0.0), beta.indices, beta.indptr), shape=beta.shape)
    shares.data /= np.repeat(np.maximum(np.asarray(shares.sum(axis=1)).ravel(), 1.0), counts)
    return shares, outside


def node_squares(membership: sparse.csr_array, Z: Any) -> Array:
    """Return |sum of Z_l over the labels l of node m|^2, shape (M,), for membership (k, M) and Z (k, d).

    Sums of sparse Z are made for some nodes at a time: the sums of all nodes are as many as the levels of a deep hierarchy make of Z.
    """
    most = np.cumsum(membership.T @ np.diff(Z.indptr)) if is_sparse(Z) else np.zeros(1)  # entries of the nodes up to each, or fewer
    if most[-1] <= _ENTRIES:
        return row_norms(membership.T @ Z, squared=True)
    nodes, squares, first = sparse.csr_array(membership.T), np.zeros(len(most)), 0
    while first < len(squares):
        before = most[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(most, before + _ENTRIES, side="right")))
        squares[first:last] = row_norms(nodes[first:last] @ Z, squared=True)
        first = last
    return squares


def shortened(problem: LeafProblem, attributes: Attributes, beta: sparse.csr_array) -> sparse.csr_array:
    """Return the multiple t beta of largest dual value that is feasible, without entries on the true labels."""
    owner = np.repeat(np.arange(beta.shape[0]), np.diff(beta.indptr))
    used = (beta.indices != problem.y[owner]) & (beta.data > 0)
    beta = sparse.csr_array((beta.data[used], (owner[used], beta.indices[used])), shape=beta.shape)
    largest = float(beta.sum(axis=1).max(initial=0.0))
    if largest == 0.0:
        return beta
    Z, _, linear = problem.sums(attributes, beta)
    curvature = problem.C * float(attributes.alpha @ node_squares(attributes.membership, Z))
    # rounding must not lift a sum above 1
    t = min(linear / curvature, (1.0 - 1e-12) / largest) if curvature > 0 else 1.0 / largest
    return sparse.csr_array(beta * t)


def _stretched(gain: Array, margins: Array, stretches: Array) -> Array:
    """Return max_l [t gain_l + margins_l] of every row at every t of the ascending stretches, shape (n, stretches).

    The maximum is convex and piecewise linear in t: a label of the largest value at both ends has the largest value in between.
    """
    rows = np.arange(len(gain))
    first, last = (np.argmax(t * gain + margins, axis=1) for t in (stretches[0], stretches[-1]))
    values = stretches * gain[rows, first][:, None] + margins[rows, first][:, None]
    bent = np.flatnonzero(first != last)
    for j, t in enumerate(stretches):
        values[bent, j] = (t * gain[bent] + margins[bent]).max(axis=1)
    return values


class LeafFit(NamedTuple):
    """A fit of one label a row: weights, alpha, the dual point, its bounds, and what ended it."""

    coef: Any
    alpha: Array
    beta: Any  # csr_array (n, k), of sets a SetFit
    primal: float
    dual: float
    outside: float
    passes: float
    spent: bool  # whether the limit of passes ended it
    updates: int = 0  # of alpha


def learn_leaves(problem: LeafProblem, attributes: Attributes, beta: sparse.csr_array, tol: float, max_passes: float, seed: int) -> LeafFit:
    """Minimise (1) at fixed alpha, from a feasible dual point beta (n, k)."""
    beta, passes, reached = problem.ascend(attributes, beta, tol, max_passes, seed)
    point = problem.evaluate(attributes, beta, tol)
    return LeafFit(point.coef, attributes.alpha, point.beta, point.primal, point.dual, point.outside, passes, not reached)


def learn_leaves_and_alpha(
    problem: LeafProblem, attributes: Attributes, beta: sparse.csr_array, tol: float, max_passes: float, seed: int, most: int | None
) -> LeafFit:
    """Minimise (1) over alpha too, Choi 2018 (6.17): ascents at fixed alpha and the closed form of alpha alternate, ``most`` times at most.

    The bound of the joint problem D = mean of beta.margin - v / (2 Lambda), v from `dual_bound`, says when they end.
    """
    graph, passes, updates, inner = attributes.graph, 0.0, 0, 0.1
    while True:
        beta, spent, _ = problem.ascend(attributes, beta, inner, max_passes - passes, seed + updates)
        passes += spent
        point = problem.evaluate(attributes, beta, tol)
        beta = point.beta
        squares = node_squares(attributes.membership, point.Z)
        lengths = (point.stretch * problem.C * attributes.alpha) ** 2 * squares
        best, value = best_weights(graph, lengths)
        primal = (value / (2.0 * problem.C) + point.hinge) / problem.mass
        dual = (point.linear - 0.5 * problem.C * dual_bound(graph, squares)) / problem.mass
        gap = (primal - dual) / primal if primal > 0 else 0.0
        ended = passes + 3.0 > max_passes  # an ascent values its start, visits all rows and values the end
        if gap <= tol or ended or updates == most:
            return LeafFit(point.coef, best, beta, primal, dual, point.outside, passes, ended, updates)
        # an inner gap below the joint problem's gap suffices
        inner = max(0.3 * tol, 0.1 * gap)
        updates += 1
        alpha = best if updates == most else farther_weights(graph, lengths, attributes.alpha, best)
        attributes = replace(attributes, alpha=away_from_zero(alpha, attributes.mu, tol))
