"""Learning sets of labels over a hierarchy: dual block ascent over the relaxed sets, certified (Choi 2018, section 6.7.1).

    minimise  P(W) = lambda |W|^2 + sum_i s_i [ max_z sum_n z_n r_in - sum over n in y_i of f_in + |y_i| ]
    f_in = sqrt(alpha_n) W_n.x_i,   r_in = f_in + [n leaf, n not in y_i] - [n leaf, n in y_i]

over sets z of the leaves, so that the margin is the number of wrong leaves; on DAGs z is relaxed to the polytope of
`advcli.data.labels.best_sets`. Weights alpha = 1 give the hierarchical SVM, others its normalised form; a star of leaves with alpha = 1 is
the flat SVM, one hinge per leaf. The dual point holds marginals mu_i of that polytope:

    D = sum_i s_i [ sum over leaves of (1 - 2 y_in) mu_in + |y_i| ] - sum_n alpha_n |Z_n|^2 / (4 lambda),   Z = sum_i s_i (y_i - mu_i) x_i'
    sqrt(alpha_n) W_n = alpha_n Z_n / (2 lambda).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms

from ...core.arrays import dense, is_sparse
from ...core.compiled import compiled_rows, kernels
from ...core.label_graph import LabelGraph
from ...core.typing import Array
from ...data.labels.best_sets import LabelSets
from ...data.labels.node_weights import best_weights, dual_bound
from ...losses.base import ROUNDING
from .attributes import away_from_zero, farther_weights

_SWEEPS, _PRECISION = 16, 1e-6  # of coordinate ascent on the multipliers of one row's polytope: most sweeps, change of marginals at the end
_BATCH = 8  # most passes between two looks at the gap
_CHUNK = 2**22  # numbers of a block of scores


@dataclass
class SetProblem:
    """Rows X (n, d) and their sets of labels Y (n, L), ones where a row has a leaf in the order of ``sets.leaves``.

    ``sample`` (n,) says how often each row counts, ``lam`` is lambda.
    """

    X: Any
    Y: Any
    sample: Array
    sets: LabelSets
    lam: float

    def __post_init__(self) -> None:
        n = self.X.shape[0]
        self.true = self.sets.closed(self.Y)
        self.rows = compiled_rows(self.X)
        self.square = np.ascontiguousarray(row_norms(self.X, squared=True), dtype=np.float64)
        self.counts = np.diff(self.Y.indptr).astype(np.float64)
        self.pairs = (np.repeat(np.arange(n), np.diff(self.true.indptr)), self.true.indices)
        # what the loss adds to the nodes of true labels, beside the 1 of every leaf
        self.fall = -2.0 * self.sets.leaf[self.pairs[1]]

    def inner(self, alpha: Array) -> Array:
        """Return the weights of all nodes from the weights of the graph's nodes; an added root has none."""
        return np.concatenate([np.zeros(self.sets.first), alpha])

    def feasible(self, mu: Array) -> tuple[Array, float]:
        """Return a feasible point near mu (n, M), mu itself but for more than rounding, and how far mu lies outside the polytope.

        A row that cannot be moved inside becomes its true set.
        """
        sets, point, distances = self.sets, mu, [0.0]
        rounding = ROUNDING * (1.0 + float(np.diff(sets.start).max(initial=0)))
        step = max(1, _CHUNK // (len(sets.child) + sets.size))
        for first in range(0, len(mu), step):
            off = sets.infeasibility(mu[first : first + step])
            distances.append(float(off.max()))
            if not (off > rounding).any():
                continue
            point = mu.copy() if point is mu else point
            moved = first + np.flatnonzero(off > rounding)
            point[moved] = sets.inside(mu[moved])
            lost = moved[sets.infeasibility(point[moved]) > rounding]
            point[lost] = self.true[lost].toarray()
        return point, float(np.max(distances))

    def weighted(self, mu: Array) -> Array:
        """Return Z = sum_i s_i x_i (y_i - mu_i)', shape (d, M)."""
        # scaled rows instead of scaled marginals: mu is the largest array there is, and stays as it is
        X = self.X.multiply(self.sample[:, None]).tocsr() if is_sparse(self.X) else self.X * self.sample[:, None]
        return np.asarray(dense(X.T @ self.true) - X.T @ mu)

    def lengths(self, Z: Array) -> Array:
        """Return |Z_n|^2 of the nodes of the graph."""
        return np.asarray(np.einsum("dn,dn->n", Z, Z)[self.sets.first :])

    def dual(self, mu: Array, Z: Array, alpha: Array) -> float:
        """Return D at marginals mu (n, M) and weights alpha (M,), with the Z of mu."""
        return self.reward(mu) - float(alpha @ np.einsum("dn,dn->n", Z, Z)) / (4.0 * self.lam)

    def reward(self, mu: Array) -> float:
        """Return the linear part of D."""
        right = np.zeros(len(mu))
        np.add.at(right, self.pairs[0], mu[self.pairs] * self.sets.leaf[self.pairs[1]])
        return float(self.sample @ (mu[:, self.sets.leaves].sum(axis=1) - 2.0 * right + self.counts))

    def primal(self, Z: Array, alpha: Array, nu: NDArray[np.float32] | None = None) -> float:
        """Return P at weights W_n = sqrt(alpha_n) Z_n / (2 lambda); with multipliers nu (n, edges + M) a bound from above, on DAGs."""
        factor, sets = alpha / (2.0 * self.lam), self.sets
        hinges = np.empty(len(self.square))
        step = max(1, _CHUNK // sets.size)
        scored = Z * factor
        for first in range(0, len(hinges), step):
            block = slice(first, first + step)
            R = np.ascontiguousarray(self.X[block] @ scored)
            part = slice(*np.searchsorted(self.pairs[0], (first, first + step)))
            pairs = (self.pairs[0][part] - first, self.pairs[1][part])
            truth, value = np.zeros(len(R)), np.empty(len(R))
            np.add.at(truth, pairs[0], R[pairs])
            R += sets.leaf
            R[pairs] += self.fall[part]
            if sets.is_tree:
                kernels.label_sets.best_sets(sets.start, sets.child, R, value, np.empty((0, sets.size), dtype=np.uint8))
            elif nu is None:
                value = sets.relaxed(R)[0]
            else:
                kernels.label_sets.bounds(sets.start, sets.child, R, nu[block], value)
            hinges[block] = value - truth + self.counts[block]
        return float(self.sample @ hinges) + float(alpha @ np.einsum("dn,dn->n", Z, Z)) / (4.0 * self.lam)


@dataclass
class SetFit:
    """A dual point, its weights and its values, of the joint problem where alpha is learned."""

    Z: Array  # weighted differences of the marginals that the passes ended at, (d, M); scores are x.Z_n alpha_n / (2 lambda)
    mu: Array  # these marginals, moved into the polytope, (n, M)
    nu: NDArray[np.float32]  # multipliers of the polytope, (n, edges + M)
    alpha: Array  # squared attributes (nodes of the graph,)
    primal: float  # P, on a DAG of the relaxed problem
    dual: float
    passes: int
    coef: Array  # weights of the nodes' scores, (nodes, d)
    outside: float  # how far the marginals lay outside

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and nodes of the dual point."""
        return self.mu.shape[0], self.mu.shape[1]


class Joint(NamedTuple):
    """Learning of alpha over a tree, with sums of at most 1 along every path (Choi 2018, 6.17), by at most so many updates.

    The dual value then bounds the joint problem from below (`advcli.data.labels.node_weights`).
    """

    graph: LabelGraph
    most: int | None

    def dual(self, problem: SetProblem, mu: Array, squares: Array) -> float:
        """Return the bound at marginals mu (n, M) with the squared lengths of their Z."""
        return problem.reward(mu) - dual_bound(self.graph, squares) / (4.0 * problem.lam)


def learn_sets(
    problem: SetProblem, alpha: Array, tol: float, max_passes: int, seed: int = 0, start: Any = None, joint: Joint | None = None
) -> SetFit:
    """Minimise P to a relative gap of ``tol``, over the squared attributes alpha (nodes of the graph,) too where ``joint`` is given.

    ``start`` is a fit to the same rows, at any lambda and alpha; others are ignored.
    """
    sets, n = problem.sets, len(problem.square)
    if isinstance(start, SetFit) and start.shape == (n, sets.size):
        mu, nu = _towards_truth(problem, alpha, start.mu), start.nu.copy()
    else:
        mu = np.zeros((n, sets.size))
        mu[problem.pairs] = 1.0
        nu = np.zeros((n, len(sets.child) + sets.size), dtype=np.float32)
    passes, updates, first, inner = 0, 0, alpha, tol if joint is None else max(0.3 * tol, 0.1)
    while True:
        spent, Z, primal, dual = _ascend(problem, alpha, mu, nu, inner, max_passes - passes, seed + passes)
        passes += spent
        coef = (Z * (problem.inner(alpha) / (2.0 * problem.lam))).T[sets.first :]
        if joint is None:
            break
        squares = problem.lengths(Z)
        lengths = (alpha / (2.0 * problem.lam)) ** 2 * squares
        best, value = best_weights(joint.graph, lengths)
        primal += problem.lam * value - float(alpha @ squares) / (4.0 * problem.lam)
        dual = joint.dual(problem, mu, squares)
        gap = (primal - dual) / primal if primal > 0.0 else 0.0
        if gap <= tol or passes >= max_passes or updates == joint.most:
            alpha = best
            break
        inner, updates = max(0.3 * tol, 0.1 * gap), updates + 1
        farther = best if updates == joint.most else farther_weights(joint.graph, lengths, alpha, best)
        alpha = away_from_zero(farther, first, tol)
    point, outside = problem.feasible(mu)
    if point is not mu:
        mu, weighted = point, problem.weighted(point)
        dual = problem.dual(mu, weighted, problem.inner(alpha)) if joint is None else joint.dual(problem, mu, problem.lengths(weighted))
    return SetFit(Z, mu, nu, alpha, primal, dual, passes, np.ascontiguousarray(coef), outside)


def _towards_truth(problem: SetProblem, alpha: Array, mu: Array) -> Array:
    """Return the point of largest dual value between the true sets and marginals mu (n, M): how a fit at another lambda starts."""
    Z = problem.weighted(mu)
    squares = float(problem.inner(alpha) @ np.einsum("dn,dn->n", Z, Z))
    t = min(1.0, 2.0 * problem.lam * problem.reward(mu) / squares) if squares > 0.0 else 1.0
    shorter = mu * t
    shorter[problem.pairs] += 1.0 - t
    return shorter


def _ascend(
    problem: SetProblem, alpha: Array, mu: Array, nu: NDArray[np.float32], tol: float, max_passes: int, seed: int
) -> tuple[int, Array, float, float]:
    """Ascend D at fixed alpha, in place on mu and nu; return the passes, and Z, P and D computed from mu and nu alone."""
    sets, true, weights = problem.sets, problem.true, problem.inner(alpha)
    graph = sets.start, sets.child, sets.is_tree, sets.leaf, np.ascontiguousarray(weights / (2.0 * problem.lam))
    examples = true.indptr.astype(np.int64), true.indices.astype(np.int32), problem.square, problem.sample
    width, mass = kernels.label_sets.width(sets.size), float(problem.sample.sum())
    passes, batch = 0, 1
    while True:
        Z = problem.weighted(mu)
        dual, primal = problem.dual(mu, Z, weights), problem.primal(Z, weights, nu)
        if primal - dual <= tol * primal or passes >= max_passes:
            return passes, Z, primal, dual
        padded, gap = np.zeros((Z.shape[0], width)), np.inf
        padded[:, : sets.size] = Z
        while gap > 2.0 * tol * primal and passes < max_passes:
            batch = min(batch, max_passes - passes)
            limits = _SWEEPS, _PRECISION, 0.2 * tol * primal / mass, batch, (seed + passes) & 0xFFFFFFFFFFFFFFFF
            gap = kernels.label_sets.sweep(*problem.rows, *graph, *examples, padded, mu, nu, *limits)
            passes += batch
            batch = min(2 * batch, _BATCH)
