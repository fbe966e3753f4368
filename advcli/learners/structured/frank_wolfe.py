"""Training of structured surrogates one example at a time: block-coordinate Frank-Wolfe, and stochastic gradients.

Both keep one mean plane of each example, a row or several, in place of all: its coefficients, mean part counts, and its constant l_i.
With weights of 1 these are stored planes like others: w and the dual value are (1) of `planes`. The gap is a certificate where planes lie
below the surrogate.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from ...core.arrays import is_sparse
from ...core.errors import DataError
from ...core.typing import Array
from ...solvers.base import Limits
from ...solvers.cutting_planes import Cuts, CuttingPlaneFit, CuttingPlaneProblem, CuttingPlanes, Positions

MOST_PARTS = 250_000_000  # numbers of all mean planes: 2 GB
FEWEST_SWEEPS = 16  # without a certificate before a fit may end: the first steps are wide, and P can rest where they have led
LOOK_GROWTH = 1.25  # factor of the sweeps between two looks at P, which cost as much as a sweep and more


class ExampleSteps(ABC):
    """Steps at one example after the other.

    ``parts`` (n, G + K longest) and ``constant`` (n,) are coefficients and constants of each example's planes, of which `planes` takes the
    mean; ``W`` (K, d) and ``shared`` (G,) are the running weights.
    """

    solver: ClassVar[str]

    def __init__(self, problem: CuttingPlaneProblem, lam: float) -> None:
        if problem.n * problem.width > MOST_PARTS:
            size = f"{problem.width} numbers, more than {MOST_PARTS} in all"
            raise DataError(f"one mean plane of each of {problem.n} examples takes {size}: choose loss.training=planes")
        self.problem, self.lam = problem, lam
        self.single = bool((np.diff(problem.start) == 1).all())
        self.parts, self.constant = np.zeros((problem.n, problem.width)), np.zeros(problem.n)
        self.W, self.shared = np.zeros((problem.K, problem.X.shape[1])), np.zeros(problem.G)

    @abstractmethod
    def sweep(self, order: Positions) -> int:
        """Visit the examples in this order; returns calls of oracles."""

    @abstractmethod
    def planes(self) -> CuttingPlanes:
        """Return the mean planes after a whole number of sweeps."""

    def begin(self, planes: CuttingPlanes) -> None:
        """Begin at planes of these rows, where steps can."""
        return

    def others(self) -> list[tuple[Array, Array]]:
        """Return further candidate weights than the mean planes give."""
        return []

    def row(self, i: int) -> tuple[Positions | slice, Array]:
        """Return the columns of the rows of example i that hold anything, and what they hold: (c,) of a single row, else (T, c)."""
        X, start = self.problem.X, self.problem.start
        if not is_sparse(X):
            return slice(None), X[i] if self.single else X[start[i] : start[i + 1]]
        if self.single:
            entries = slice(X.indptr[i], X.indptr[i + 1])
            return X.indices[entries], X.data[entries]
        part = X[start[i] : start[i + 1]]
        columns = np.unique(part.indices)
        return columns, part[:, columns].toarray()

    def local(self, part: Array, T: int) -> Array:
        """Return the coefficients that a plane has of the scores of T rows, (T, K)."""
        G, K = self.problem.G, self.problem.K
        return part[G : G + T * K].reshape(T, K)

    def cut(self, i: int, W: Array, shared: Array, scale: float) -> tuple[Array, Cuts]:
        """Return the scores of example i at ``scale`` times these weights, row by row, and its most violated plane."""
        columns, x = self.row(i)
        U = (scale * (W[:, columns] @ x))[None] if self.single else scale * (x @ W[:, columns].T)
        return U.ravel(), self.problem.search(U, scale * shared, np.array([i]))

    def add(self, W: Array, shared: Array, i: int, part: Array, factor: float) -> None:
        """Add ``factor`` times a plane of example i to weights."""
        shared += factor * part[: len(shared)]
        columns, x = self.row(i)
        W[:, columns] += np.outer(factor * part[len(shared) :], x) if self.single else factor * (self.local(part, len(x)).T @ x)

    def mean_planes(self, parts: Array, constant: Array) -> CuttingPlanes:
        """Return one plane of weight 1 for each example."""
        planes, n = CuttingPlanes(self.problem), self.problem.n
        none = np.zeros(n)
        planes.add(Cuts(sparse.csr_array(parts), constant, none, none, 0), np.arange(n))
        planes.alpha = np.ones(n)
        return planes


class FrankWolfe(ExampleSteps):
    """Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013): the mean plane moves to the worst one.

    The step raises the dual value the most: gamma = lambda (v_new - v_mean) / (s_i |a_new - a_mean|^2), from 0 to 1.
    """

    solver = "bcfw"

    def __init__(self, problem: CuttingPlaneProblem, lam: float) -> None:
        super().__init__(problem, lam)
        self.norms = np.asarray(row_norms(problem.X, squared=True), dtype=np.float64)

    def sweep(self, order: Positions) -> int:
        """Step at every example."""
        problem, calls = self.problem, 0
        for i in order:
            u, cuts = self.cut(i, self.W, self.shared, 1.0)
            calls += cuts.calls
            part, constant = cuts.parts.toarray()[0], float(cuts.constant[0])
            move, rise = part - self.parts[i], constant - self.constant[i]
            ahead = rise + move[: problem.G] @ self.shared + move[problem.G : problem.G + len(u)] @ u
            size = problem.share[i] * (self.square(i, move) + move[: problem.G] @ move[: problem.G])
            if ahead <= 0.0:
                continue
            gamma = min(1.0, self.lam * ahead / size) if size > 0.0 else 1.0
            self.parts[i] += gamma * move
            self.constant[i] += gamma * rise
            self.add(self.W, self.shared, i, move, -gamma * problem.share[i] / self.lam)
        self.W, self.shared = self.planes().weights(self.lam)  # sums of many steps are made anew, without their rounding
        return calls

    def square(self, i: int, move: Array) -> float:
        """Return |a|^2 of a plane of example i without its shared weights."""
        if self.single:
            local = move[self.problem.G :]
            return float(self.norms[i] * (local @ local))
        _, rows = self.row(i)
        return float(np.square(self.local(move, len(rows)).T @ rows).sum())

    def begin(self, planes: CuttingPlanes) -> None:
        """Begin at the mean of planes."""
        self.parts, self.constant = planes.means()
        self.W, self.shared = planes.weights(self.lam)

    def planes(self) -> CuttingPlanes:
        """Return the mean planes."""
        return self.mean_planes(self.parts.copy(), self.constant.copy())


class Gradients(ExampleSteps):
    """Stochastic subgradients with the step 1/(lambda t) (Shalev-Shwartz, Singer, Srebro and Cotter 2011), in a new order each sweep.

    w_t = -1/(lambda t) times the sum of the planes of t steps, of example i times n s_i: after whole sweeps the mean planes. Looked
    at is also the mean of w_t with weights t (Lacoste-Julien, Schmidt and Bach 2012).
    """

    solver = "sgd"

    def __init__(self, problem: CuttingPlaneProblem, lam: float) -> None:
        super().__init__(problem, lam)
        self.t, self.sweeps = 0, 0
        self.late_W, self.late_shared = np.zeros_like(self.W), np.zeros_like(self.shared)  # sums of planes times t

    def sweep(self, order: Positions) -> int:
        """Step at every example."""
        problem, calls = self.problem, 0
        for i in order:
            _, cuts = self.cut(i, self.W, self.shared, -1.0 / (self.lam * max(self.t, 1)))
            calls += cuts.calls
            self.t += 1
            part, factor = cuts.parts.toarray()[0], problem.n * float(problem.share[i])
            self.parts[i] += part
            self.constant[i] += cuts.constant[0]
            self.add(self.W, self.shared, i, part, factor)
            self.add(self.late_W, self.late_shared, i, part, factor * self.t)
        self.sweeps += 1
        return calls

    def planes(self) -> CuttingPlanes:
        """Return the mean planes."""
        return self.mean_planes(self.parts / self.sweeps, self.constant / self.sweeps)

    def others(self) -> list[tuple[Array, Array]]:
        """Return the mean of the iterates."""
        T = float(self.t)
        scale = -2.0 / (self.lam * T * (T + 1.0))
        return [(scale * ((T + 1.0) * self.W - self.late_W), scale * ((T + 1.0) * self.shared - self.late_shared))]


class _ExampleTraining:
    """The state of `fit_by_examples`: steps, the best w looked at, the best dual point, and what was spent."""

    def __init__(self, steps: ExampleSteps, limits: Limits, convex: bool, start: CuttingPlanes | None) -> None:
        self.began = time.perf_counter()
        self.problem, self.lam, self.limits, self.convex = steps.problem, steps.lam, limits, convex
        self.steps, self.planes = steps, steps.problem.no_planes()
        if start is not None and convex:
            self.planes.begin(start, self.lam)
            steps.begin(self.planes)
        W, shared = self.planes.weights(self.lam)
        self.dual = self.planes.dual(self.lam, W, shared) if convex else float("nan")
        self.calls, self.passes, self.sweeps, self.next_look = 0, 0, 0, 1
        self.best, self.least = (math.inf, W, shared, self.problem.all_cuts(W, shared)), dict[int, float]()
        self.look(W, shared, self.best[3])

    def look(self, W: Array, shared: Array, cuts: Cuts | None = None) -> None:
        """Take P at weights, and the weights where it is the least so far."""
        cuts = self.problem.all_cuts(W, shared) if cuts is None else cuts
        self.calls, self.passes = self.calls + cuts.calls, self.passes + 1
        primal = self.problem.primal(self.lam, W, shared, cuts)
        self.least[self.sweeps] = min(primal, self.least.get(self.sweeps, primal))
        if primal < self.best[0]:
            self.best = (primal, W, shared, cuts)

    def ended(self) -> str:
        """Return why the fit ends, empty if it goes on."""
        (primal, _, _, cuts), tol, now = self.best, self.limits.tol, self.least[self.sweeps]
        before = self.least[max(sweeps for sweeps in self.least if 2 * sweeps <= self.sweeps)]
        closable = primal - float(self.problem.share @ (cuts.upper - cuts.value)) - self.dual  # by planes
        if self.convex and primal - self.dual <= tol * abs(primal):
            return "converged"
        if self.convex and closable <= self.problem.left_open * tol * abs(primal):
            return "inexact_search"
        if not self.convex and self.sweeps >= FEWEST_SWEEPS and abs(before - now) <= tol * abs(now):
            return "not_convex"
        return self.limits.spent(self.passes + 2, self.began)  # a sweep and a look

    def advance(self, random: np.random.Generator) -> None:
        """Sweep until the next look, and look at the mean planes and at other weights."""
        while self.sweeps < self.next_look and self.passes + 2 <= self.limits.max_passes:
            self.calls += self.steps.sweep(random.permutation(self.problem.n))
            self.passes, self.sweeps = self.passes + 1, self.sweeps + 1
        self.next_look = math.ceil(LOOK_GROWTH * self.sweeps + 1e-9) if self.sweeps > 1 else self.sweeps + 1
        planes = self.steps.planes()
        weights = planes.weights(self.lam)
        if self.convex and (dual := planes.dual(self.lam, *weights)) > self.dual:
            self.planes, self.dual = planes, dual
        for W, shared in (weights, *self.steps.others()):
            if self.passes + 1 > self.limits.max_passes:
                break
            self.look(W, shared)


def fit_by_examples(
    steps: ExampleSteps, limits: Limits, seed: int = 0, convex: bool = True, start: CuttingPlanes | None = None
) -> CuttingPlaneFit:
    """Minimise P by steps at examples in random orders; the w returned is the best that was looked at, with the best dual point.

    A sweep and each look at P count as a pass. ``start`` are planes of another lambda, at which steps begin that can. Of a surrogate that
    is not convex planes prove nothing: the dual value is nan, and the fit ends ``not_convex`` once P has moved by at most ``limits.tol``
    times P while the sweeps doubled, after the first wide steps.
    """
    fit, random, problem = _ExampleTraining(steps, limits, convex, start), np.random.default_rng(seed), steps.problem
    while not (stopped := fit.ended()):
        fit.advance(random)
    primal, W, shared, cuts = fit.best
    oracle_gap, seconds = float(problem.share @ (cuts.upper - cuts.value)), time.perf_counter() - fit.began
    spent = oracle_gap, fit.calls, fit.passes, stopped, seconds
    return CuttingPlaneFit(W, shared, fit.planes, primal, fit.dual, *spent, solver=steps.solver)


BY_EXAMPLES: dict[str, type[ExampleSteps]] = {steps.solver: steps for steps in (FrankWolfe, Gradients)}
