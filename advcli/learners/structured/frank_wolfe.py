"""Training of structured surrogates one example at a time: block-coordinate Frank-Wolfe, and stochastic gradients.

Both keep one mean plane of each example, a row or several, in place of all: its coefficients, mean part counts, and its constant l_i.
With weights of 1 these are stored planes as any, so that w and the dual value are (1) of `planes`, and the gap is a certificate where
planes lie below the surrogate.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from ...core.errors import DataError
from ...core.typing import Array
from ...solvers.cutting_planes import Cuts, PlaneFit, Planes, Positions, Structure

MOST_PARTS = 250_000_000
"""Numbers of all mean planes: 2 GB."""

FEWEST_SWEEPS = 16
"""Sweeps without a certificate before a fit may end: the first steps are wide, and P can rest where they have led."""

LOOK_GROWTH = 1.25
"""Factor of the sweeps between two looks at P, which cost as much as a sweep and more."""


class RowSteps(ABC):
    """Steps at one example after the other.

    Attributes
    ----------
    parts : ndarray (n, G + K longest)
        Coefficients of each example's planes, of which `planes` takes the mean.
    constant : ndarray (n,)
        Their constants.
    W, shared : ndarray (K, d), (G,)
        The running weights.
    """

    solver: ClassVar[str]

    def __init__(self, structure: Structure, lam: float) -> None:
        if structure.n * structure.width > MOST_PARTS:
            raise DataError(
                f"one mean plane of each of {structure.n} examples takes {structure.width} numbers, more than {MOST_PARTS} in all: choose "
                "loss.training=planes"
            )
        self.structure, self.lam = structure, lam
        self.single = bool((np.diff(structure.start) == 1).all())
        self.parts, self.constant = np.zeros((structure.n, structure.width)), np.zeros(structure.n)
        self.W, self.shared = np.zeros((structure.K, structure.X.shape[1])), np.zeros(structure.G)

    @abstractmethod
    def sweep(self, order: Positions) -> int:
        """Visit the examples in this order; returns calls of oracles."""

    @abstractmethod
    def planes(self) -> Planes:
        """Return the mean planes after a whole number of sweeps."""

    def begin(self, planes: Planes) -> None:
        """Begin at planes of these rows, where steps can."""
        return

    def others(self) -> list[tuple[Array, Array]]:
        """Return weights that are to be looked at beside those of the mean planes."""
        return []

    def row(self, i: int) -> tuple[Positions | slice, Array]:
        """Return the columns of row i that hold anything, and what they hold."""
        X = self.structure.X
        if not hasattr(X, "indptr"):
            return slice(None), X[i]
        here = slice(X.indptr[i], X.indptr[i + 1])
        return X.indices[here], X.data[here]

    def block(self, i: int) -> tuple[Positions | slice, Array]:
        """Return the columns of the rows of example i that hold anything, and what they hold (T, c)."""
        X, rows = self.structure.X, slice(self.structure.start[i], self.structure.start[i + 1])
        if not hasattr(X, "indptr"):
            return slice(None), X[rows]
        part = X[rows]
        columns = np.unique(part.indices)
        return columns, part[:, columns].toarray()

    def local(self, part: Array, T: int) -> Array:
        """Return the coefficients that a plane has of the scores of T rows, (T, K)."""
        at = self.structure
        return part[at.G : at.G + T * at.K].reshape(T, at.K)

    def cut(self, i: int, W: Array, shared: Array, scale: float) -> tuple[Array, Cuts]:
        """Return the scores of example i at ``scale`` times these weights, row by row, and its most violated plane."""
        if self.single:
            columns, x = self.row(i)
            u = scale * (W[:, columns] @ x)
            return u, self.structure.search(u[None], scale * shared, np.array([i]))
        columns, rows = self.block(i)
        U = scale * (rows @ W[:, columns].T)
        return U.ravel(), self.structure.search(U, scale * shared, np.array([i]))

    def add(self, W: Array, shared: Array, i: int, part: Array, factor: float) -> None:
        """Add ``factor`` times a plane of example i to weights."""
        shared += factor * part[: len(shared)]
        if self.single:
            columns, x = self.row(i)
            W[:, columns] += np.outer(factor * part[len(shared) :], x)
        else:
            columns, rows = self.block(i)
            W[:, columns] += factor * (self.local(part, len(rows)).T @ rows)

    def mean_planes(self, parts: Array, constant: Array) -> Planes:
        """Return one plane of weight 1 for each example."""
        found, n = Planes(self.structure), self.structure.n
        found.parts, found.constant = sparse.csr_array(parts), constant
        found.alpha, found.owner, found.idle = np.ones(n), np.arange(n), np.zeros(n, dtype=np.intp)
        found.mixtures = np.full(n, None)
        return found


class FrankWolfe(RowSteps):
    """Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013): the mean plane moves to the worst one.

    The step raises the dual value the most: gamma = lambda (v_new - v_mean) / (s_i |a_new - a_mean|^2), from 0 to 1.
    """

    solver = "bcfw"

    def __init__(self, structure: Structure, lam: float) -> None:
        super().__init__(structure, lam)
        self.norms = np.asarray(row_norms(structure.X, squared=True), dtype=np.float64)

    def sweep(self, order: Positions) -> int:
        """Step at every example."""
        at, calls = self.structure, 0
        for i in order:
            u, cuts = self.cut(i, self.W, self.shared, 1.0)
            calls += cuts.calls
            part, constant = cuts.parts.toarray()[0], float(cuts.constant[0])
            move, rise = part - self.parts[i], constant - self.constant[i]
            ahead = rise + move[: at.G] @ self.shared + move[at.G : at.G + len(u)] @ u
            size = at.share[i] * (self.square(i, move) + move[: at.G] @ move[: at.G])
            if ahead <= 0.0:
                continue
            gamma = min(1.0, self.lam * ahead / size) if size > 0.0 else 1.0
            self.parts[i] += gamma * move
            self.constant[i] += gamma * rise
            self.add(self.W, self.shared, i, move, -gamma * at.share[i] / self.lam)
        self.W, self.shared = self.planes().weights(self.lam)  # sums of many steps are made anew, without their rounding
        return calls

    def square(self, i: int, move: Array) -> float:
        """Return |a|^2 of a plane of example i without its shared weights."""
        if self.single:
            local = move[self.structure.G :]
            return float(self.norms[i] * (local @ local))
        _, rows = self.block(i)
        return float(np.square(self.local(move, len(rows)).T @ rows).sum())

    def begin(self, planes: Planes) -> None:
        """Begin at the mean of planes."""
        self.parts, self.constant = planes.means()
        self.W, self.shared = planes.weights(self.lam)

    def planes(self) -> Planes:
        """Return the mean planes."""
        return self.mean_planes(self.parts.copy(), self.constant.copy())


class Gradients(RowSteps):
    """Stochastic subgradients with the step 1/(lambda t) (Shalev-Shwartz, Singer, Srebro and Cotter 2011), in a new order each sweep.

    w_t = -1/(lambda t) times the sum of the planes of t steps, of example i times n s_i: after whole sweeps the mean planes. Looked
    at is also the mean of w_t with weights t (Lacoste-Julien, Schmidt and Bach 2012).
    """

    solver = "sgd"

    def __init__(self, structure: Structure, lam: float) -> None:
        super().__init__(structure, lam)
        self.t, self.sweeps = 0, 0
        self.late_W, self.late_shared = np.zeros_like(self.W), np.zeros_like(self.shared)  # sums of planes times t

    def sweep(self, order: Positions) -> int:
        """Step at every example."""
        at, calls = self.structure, 0
        for i in order:
            _, cuts = self.cut(i, self.W, self.shared, -1.0 / (self.lam * max(self.t, 1)))
            calls += cuts.calls
            self.t += 1
            part, factor = cuts.parts.toarray()[0], at.n * float(at.share[i])
            self.parts[i] += part
            self.constant[i] += cuts.constant[0]
            self.add(self.W, self.shared, i, part, factor)
            self.add(self.late_W, self.late_shared, i, part, factor * self.t)
        self.sweeps += 1
        return calls

    def planes(self) -> Planes:
        """Return the mean planes."""
        return self.mean_planes(self.parts / self.sweeps, self.constant / self.sweeps)

    def others(self) -> list[tuple[Array, Array]]:
        """Return the mean of the iterates."""
        T = float(self.t)
        scale = -2.0 / (self.lam * T * (T + 1.0))
        return [(scale * ((T + 1.0) * self.W - self.late_W), scale * ((T + 1.0) * self.shared - self.late_shared))]


def learn_by_rows(
    kind: type[RowSteps],
    structure: Structure,
    lam: float,
    tol: float,
    max_passes: float,
    seed: int,
    convex: bool = True,
    max_seconds: float = float("inf"),
    start: Planes | None = None,
) -> PlaneFit:
    """Minimise P by steps at examples in random orders; the w returned is the best that was looked at, with the best dual point.

    A sweep and each look at P count as a pass. ``start`` are planes of another lambda, at which steps begin that can. Of a surrogate that
    is not convex planes prove nothing: the dual value is nan, and the fit ends ``not_convex`` once P has moved by at most ``tol`` times P
    while the sweeps doubled, after the first wide steps.
    """
    began = time.perf_counter()
    random = np.random.default_rng(seed)
    steps, planes = kind(structure, lam), Planes(structure)
    if start is not None and convex:
        planes.begin(start, lam)
        steps.begin(planes)
    W, shared = planes.weights(lam)
    cuts = structure.all_cuts(W, shared)
    best, dual = (structure.primal(lam, W, shared, cuts), W, shared, cuts), planes.dual(lam, W, shared) if convex else float("nan")
    calls, passes, sweeps, look, reached = cuts.calls, 1, 0, 1, {0: best[0]}
    while True:
        primal, W, shared, cuts = best
        before = reached[max(s for s in reached if 2 * s <= sweeps)]
        own = primal - float(structure.share @ (cuts.upper - cuts.value)) - dual
        if convex and primal - dual <= tol * abs(primal):
            stopped = "converged"
        elif convex and own <= structure.left_open * tol * abs(primal):
            stopped = "inexact_search"
        elif not convex and sweeps >= FEWEST_SWEEPS and abs(before - reached[sweeps]) <= tol * abs(reached[sweeps]):
            stopped = "not_convex"
        elif passes + 2 > max_passes:  # a sweep and a look
            stopped = "max_passes"
        elif time.perf_counter() - began >= max_seconds:
            stopped = "max_seconds"
        else:
            stopped = ""
        if stopped:
            break
        while sweeps < look and passes + 2 <= max_passes:
            calls += steps.sweep(random.permutation(structure.n))
            passes, sweeps = passes + 1, sweeps + 1
        look = math.ceil(LOOK_GROWTH * sweeps + 1e-9) if sweeps > 1 else sweeps + 1
        found = steps.planes()
        own_weights = found.weights(lam)
        if convex and (value := found.dual(lam, *own_weights)) > dual:
            planes, dual = found, value
        for W, shared in (own_weights, *steps.others()):
            if passes + 1 > max_passes:
                break
            cuts = structure.all_cuts(W, shared)
            calls, passes = calls + cuts.calls, passes + 1
            primal = structure.primal(lam, W, shared, cuts)
            reached[sweeps] = min(primal, reached.get(sweeps, primal))
            if primal < best[0]:
                best = (primal, W, shared, cuts)
    oracle_gap = float(structure.share @ (cuts.upper - cuts.value))
    return PlaneFit(W, shared, planes, primal, dual, oracle_gap, calls, passes, stopped, time.perf_counter() - began)


BY_ROWS: dict[str, type[RowSteps]] = {each.solver: each for each in (FrankWolfe, Gradients)}
