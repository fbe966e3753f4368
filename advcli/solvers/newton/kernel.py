"""Semismooth Newton with a kernel: the proximal point method of `newton`, with functions as parameters.

The same steps have two forms (docs/notes/kernels.md, section 4). Where K has a low rank (smooth kernels), the rows of L in K = L L' are
explicit features for `newton`. Otherwise the parameters are coefficients over the training rows: inner products follow from scores, and the
Newton system has one unknown for every direction in which the dual point can still move, few near the optimum.
The certificate is computed with K itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.compiled import kernels
from ...core.linalg import cho_factor, cho_solve, inner
from ...core.threads import rows_by, shared
from ...core.typing import Array, Labels
from ...features.base import FeatureMap, KernelMap
from ...problems.risk import Problem, Solution
from ..base import Limits, register
from ..coordinate.threaded import ThreadedSolver
from .linear import NewtonPoint, NewtonSolver, ProximalStep, Separate

MAX_ROWS = 10_000  # beyond, one product with K costs more than the block method's pass over the rows that matter
MAX_FACTORED = 2500  # the same with free thresholds, which need a factor of n^3 operations
_MOST_PARAMETERS = 1500  # k times the rank of K up to which Newton works on a factor of K
_MOST_FREE = 4000  # free directions up to which their system is factorised
_FEW_FREE = 1000  # up to which that takes no longer than iterations
_QUARTER = 4  # times the columns of a sketch that a system has at least
_GATHERED = 2**20  # entries of K in a part of the system that a thread gathers at a time
_LARGEST_BLOCK = 2000  # directions of a block of the preconditioner
_ITERATIONS = 100  # most iterations of conjugate gradients
_ACCURACY = 1e-8  # what conjugate gradients leave of the right side
_READ = 64  # rows of K that a product takes at a time: some thousand values each, they stay in the second cache
_LEFT = 0.1  # what a sketch of K may leave, in shifts
_EXPECTED = 10.0  # iterations that such a sketch takes


@register("kernel_newton")
class KernelNewtonSolver(ThreadedSolver):
    """Semismooth Newton proximal point with a kernel; up to some thousand rows, any C.

    Parameters
    ----------
    threads : int or "auto"
        Threads that share the assembly of Newton systems, and the work of `NewtonSolver` on a factor of K; Cholesky factors take one. No
        bit depends on their number. ``"auto"`` as in `DualSolver`.
    """

    def reads(self, problem: Problem) -> float:
        """Return how many numbers a pass reads for each class: K has one for each pair of rows."""
        return float(len(problem.y)) ** 2

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs kernel features and few enough rows; free thresholds as in `newton`."""
        features = problem.features
        if isinstance(features, KernelMap):
            most = MAX_ROWS if features.regularised is None else MAX_FACTORED
            if len(problem.y) > most:
                return f"at most {most} rows (here {len(problem.y)})"
        return lacks_kernel(problem)

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the coefficients of the best primal value and the dual point with the best dual value seen."""
        started = time.perf_counter()
        features, k = problem.features, problem.loss.n_classes
        assert isinstance(features, KernelMap)
        if start is not None and (start.R is None or start.R.shape != (len(problem.y), k) or start.theta.shape != features.shape):
            start = None
        problem = self.sharing(problem)
        if features.regularised is None and not factor_pays(features):
            smoothed = SeparateCoefficients(problem) if problem.loss.separate else CoefficientSmoothed(problem)
            solution = NewtonSolver.minimise(smoothed, limits, start)
        else:
            factor, linear = features.pivots.factor, replace(problem, features=explicit(features))
            if start is not None:
                start = replace(start, theta=factor.to_explicit(features, start.theta))
            rest = replace(limits, max_seconds=limits.max_seconds - (time.perf_counter() - started))
            solution = NewtonSolver(problem.threads).solve(linear, rest, start)
            solution.theta = factor.from_explicit(features, solution.theta)
        assert solution.R is not None
        spanned = problem.parameters(solution.R)
        if features.regularised is not None:
            spanned += solution.theta * (1.0 - features.regularised)
        # up to rounding both dual points are the optimum; the better one gives the smaller gap
        if not problem.primal(solution.theta) <= problem.primal(spanned):
            solution.theta = spanned
        memory = {**solution.memory, "support": int(solution.R.any(axis=1).sum())}
        return replace(solution, solver=self.name, seconds=time.perf_counter() - started, memory=memory)


def lacks_kernel(problem: Problem) -> str | None:
    """Return what a solver that needs all of K misses, or None."""
    features = problem.features
    if not isinstance(features, KernelMap):
        return "kernel features (rbf, poly or precomputed)"
    if not features.whole:
        return "a kernel matrix that fits in features.memory_mb"
    return problem.lacks_distributions()


def explicit(features: KernelMap) -> FeatureMap:
    """Return features on the rows of L in K = L L': the same functions, with parameters that carry the Euclidean norm."""
    made: FeatureMap = features.explicit(features.pivots.factor.L, features.n_classes)
    return made


def factor_pays(features: KernelMap) -> bool:
    """Return whether K has so low a rank that parameters over its factor are cheaper than coefficients over the rows."""
    most = min(_MOST_PARAMETERS, features.n_rows)
    return not features.pivots.outranks(most // features.shape[1]) and int(np.prod(explicit(features).shape)) <= most


class CoefficientSmoothed(ProximalStep):
    """psi over coefficients A (n, k) of K: <A, B> = tr A'K B from scores, Newton systems among the free directions of r alone."""

    fresh = 8  # points after which scores are computed from coefficients again, not from steps
    whole = False  # whether all scores are computed at every point, from all of K

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        assert isinstance(problem.features, KernelMap)
        self.kernel, self.K = problem.features, problem.features.matrix
        self.age = 0  # points since the scores of theta were computed afresh

    def at(self, theta: Array, F: Array, R: Array, where: Any) -> NewtonPoint:
        """Return the point at theta, whose scores are F up to the rounding of steps; the residual has F less the scores of theta(r)."""
        residual = self.residual(theta, R)
        if self.whole:
            k = theta.shape[1]
            scores = self.K @ np.hstack([theta, residual])
            return NewtonPoint(theta, np.ascontiguousarray(scores[:, :k]), R, residual, where, scores[:, k:])
        self.age += 1
        if self.age >= self.fresh:
            F, pull, self.age = product(self.K, theta), product(self.K, residual), 0
        else:
            pull = F + product(self.K, residual - theta)
        return NewtonPoint(theta, F, R, residual, where, pull)

    def inner(self, theta: Array, other: Array, scores: Array) -> float:
        """Return <theta, K other>."""
        return inner(theta, scores)

    def direction(self, point: NewtonPoint) -> tuple[Array, Array, float]:
        """Return D = -residual + Z'v with (diag(1/scale) + Z Z') v = Z residual for bases Z of the faces, its scores and its slope."""
        B, owner = self.bases(point)
        scale = self.scale(owner)
        D, dF = -point.residual, -point.pull
        if len(owner):
            moved, scores = _System(self.kernel, B, owner, 1.0 / scale, self.problem.threads, self.whole).solve(point.pull)
            D, dF = D + moved, dF + scores
        return D, dF, inner(point.residual, dF)


class SeparateCoefficients(CoefficientSmoothed, Separate):
    """`CoefficientSmoothed` for losses whose labels move alone."""


class _System:
    """(diag(shift) + Z Z') v = Z g over directions B (m, k) in the scores of the rows ``owner`` (m,); Z Z' = (B B') o K[owner, owner].

    Few directions: one Cholesky factor. Many: conjugate gradients, preconditioned by the same system over a sketch of K where the diagonal
    that it leaves is small beside the shifts (small gamma); without such a sketch one factor again, and beyond some number of directions
    conjugate gradients preconditioned by the blocks of directions that move the same class most.
    """

    def __init__(self, kernel: KernelMap, B: Array, owner: Labels, shift: Array, threads: int = 1, whole: bool = False) -> None:
        self.kernel, self.K, self.B, self.owner, self.shift, self.threads = kernel, kernel.matrix, B, owner, shift, threads
        self.whole = whole
        self.first = np.flatnonzero(np.diff(owner, prepend=-1))  # position of every row's first direction

    def forward(self, scores: Array) -> Array:
        """Return Z g for scores K g (n, k)."""
        return np.einsum("ij,ij->i", self.B, scores[self.owner])

    def backward(self, v: Array) -> tuple[Array, Array]:
        """Return the coefficients of Z'v, shape (n, k), and their scores."""
        A = np.zeros((len(self.K), self.B.shape[1]))
        A[self.owner[self.first]] = np.add.reduceat(v[:, None] * self.B, self.first, axis=0)
        return A, self.K @ A if self.whole else product(self.K, A)

    def solve(self, scores: Array) -> tuple[Array, Array]:
        """Return Z'v and its scores for g with the given scores."""
        right, k = self.forward(scores), self.B.shape[1]
        if (rows := sketch(self.kernel, len(right), k, float(self.shift.min(initial=np.inf)))) is not None:
            return self._iterate(right, self._sketched(rows))
        return self._factorise(right) if len(right) <= _MOST_FREE else self._iterate(right, self._blocks())

    def _factor(self, rows: Labels | slice) -> Any:
        """Return the Cholesky factor of the system among some of the directions."""
        B, owner = self.B[rows], self.owner[rows]
        gram = B @ B.T

        def weigh(part: slice) -> None:
            gram[part] *= self.K[np.ix_(owner[part], owner)]

        shared(weigh, rows_by(len(owner), _GATHERED // max(len(owner), 1)), self.threads)
        gram[np.diag_indices_from(gram)] += self.shift[rows]
        return cho_factor(gram.T, lower=False, overwrite_a=True, check_finite=False)

    def _factorise(self, right: Array) -> tuple[Array, Array]:
        """Solve by Cholesky, with a step of refinement where cancellation is large."""
        factor = self._factor(slice(None))
        v = cho_solve(factor, right, check_finite=False)
        A, F = self.backward(v)
        left = right - self.forward(F) - self.shift * v
        if np.abs(left).max() > 1e-6 * np.abs(right).max():
            more, scores = self.backward(cho_solve(factor, left, check_finite=False))
            A, F = A + more, F + scores
        return A, F

    def _sketched(self, rows: Array) -> Callable[[Array], Array]:
        """Return the inverse of diag(shift) + G G', by Woodbury's formula; G has the columns of Z with L' instead of K."""
        root = 1.0 / np.sqrt(self.shift)
        G = ((root[:, None] * self.B)[:, :, None] * rows.T[self.owner][:, None, :]).reshape(len(root), -1)
        gram = G.T @ G
        gram[np.diag_indices_from(gram)] += 1.0
        factor = cho_factor(gram.T, lower=False, overwrite_a=True, check_finite=False)

        def precondition(left: Array) -> Array:
            scaled = root * left
            return root * (scaled - G @ cho_solve(factor, scaled @ G, check_finite=False))

        return precondition

    def _blocks(self) -> Callable[[Array], Array]:
        """Return the inverse of the blocks of directions that move the same class most, in pieces."""
        label, blocks = np.abs(self.B).argmax(axis=1), []
        for c in range(self.B.shape[1]):
            rows = np.flatnonzero(label == c)
            pieces = -(-len(rows) // _LARGEST_BLOCK)
            blocks += [(piece, self._factor(piece)) for piece in (rows[first::pieces] for first in range(pieces))]

        def precondition(left: Array) -> Array:
            out = np.empty_like(left)
            for rows, factor in blocks:
                out[rows] = cho_solve(factor, left[rows], check_finite=False)
            return out

        return precondition

    def _iterate(self, right: Array, precondition: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Solve by conjugate gradients; any number of iterations gives a direction of descent."""
        A, F = self.backward(np.zeros_like(right))
        left, p = right, precondition(right)
        along = float(left @ p)
        goal = _ACCURACY**2 * float(right @ right)
        for _ in range(_ITERATIONS):
            moved, scores = self.backward(p)
            q = self.forward(scores) + self.shift * p
            length = along / float(p @ q)
            A, F, left = A + length * moved, F + length * scores, left - length * q
            if float(left @ left) <= goal:
                break
            better = precondition(left)
            before, along = along, float(left @ better)
            p = better + (along / before) * p
        return A, F


def product(K: Array, A: Array) -> Array:
    """Return K A for a symmetric K (n, n), C-contiguous, and A (n, k), from the rows of K at which A has any.

    A piece of these rows, copied, stays in the cache while BLAS reads it.
    """
    rows = np.flatnonzero(A.any(axis=1))
    by_class = np.zeros((A.shape[1], len(K)))
    for start in range(0, len(rows), _READ):
        piece = rows[start : start + _READ]
        by_class += np.ascontiguousarray(A[piece].T) @ K[piece]
    return np.ascontiguousarray(by_class.T)


def sketch(kernel: KernelMap, free: int, k: int, shift: float) -> Array | None:
    """Return rows of L' whose preconditioner serves so many free directions with shifts of at least ``shift``; None if none pays."""
    if free <= _FEW_FREE:
        return None
    rows: Array | None = kernel.pivots.sketch(_LEFT * shift, min(free // _QUARTER, _MOST_PARAMETERS) // k)
    return rows


_STEPS = 4  # Newton steps expected after the block method
_TIMES = 10.0  # the first c after it, in gaps over squares of the dual point: from 3 on it matters little
_LEAST_C = 1.0  # least first c
_LARGEST_C = 30.0  # largest first c
_FLOPS = 1.5e10  # operations a second of one core


def newton_after(problem: Problem, R: Array) -> tuple[float, float]:
    """Return how many passes of the block method cost about as much as Newton steps from the dual point R (n, k), and their first c.

    c is ten times the value at which the proximal term, C s w c/2 |r|^2, is half of the gap if r moves as far as it is from 0. A
    smaller c makes for smaller systems, since the face of a row grows with c, but for kinks so narrow that a step ends among the next
    few.

    The cost of a step grows with the cube of the directions in all faces. A pass touches as many scores per row as there are support
    vectors; rows with free directions at c become some. Infinite when there are too many free directions to factorise.
    """
    n, family = len(R), problem.loss.family
    F, nowhere = problem.scaled(problem.features.scores(problem.parameters(R))), np.zeros(n, dtype=bool)
    gap = float(problem.weight @ (problem.loss.value(F, problem.y) - problem.loss.offset(R, problem.y) - np.einsum("ij,ij->i", F, R)))
    square = float(problem.weight @ np.einsum("ij,ij->i", R, R))
    c = min(max(_TIMES * gap / square, _LEAST_C), _LARGEST_C) if square > 0.0 else _LARGEST_C
    support: NDArray[np.bool_] = np.asarray(R.any(axis=1))
    owner = kernels.tangents(family, kernels.face(family, F, R, problem.y, c)[1], nowhere)[1]
    support[owner] = True
    cost = _STEPS * step_seconds(problem, len(owner), c)
    return cost / (n * (2e-7 + 3e-10 * int(np.count_nonzero(support)))), c


def step_seconds(problem: Problem, free: int, c: float = 0.0) -> float:
    """Return about the seconds of a Newton step at proximal weight c; infinite when there are too many free directions to factorise.

    A step multiplies by K and factorises a matrix. The matrix is as large as the number of free directions, or as the parameters over a
    factor of K, or as the columns of a sketch of K that serves at c. Constants measured on one core; counts, not clocks, so that a choice
    by them does not depend on the machine's load.
    """
    n, k = len(problem.y), problem.loss.n_classes
    assert isinstance(problem.features, KernelMap)
    if factor_pays(problem.features):
        size = int(np.prod(explicit(problem.features).shape))
        return 3e-4 + (size**3 / 3.0 + min(free, 4 * size) * size**2 + 8.0 * n * size) / _FLOPS
    one_product = 2.0 * k * n * min(free, n)
    cost = 1.0 if problem.cost_weight is None else float(problem.cost_weight.min())
    sample = 1.0 if problem.sample_weight is None else float(problem.sample_weight.max())
    if (rows := sketch(problem.features, free, k, c * cost / (problem.C * sample))) is not None:
        size = k * len(rows)
        return 3e-4 + (size**3 / 3.0 + free * size**2 + 4.0 * _EXPECTED * free * size + (_EXPECTED + 2.0) * one_product) / _FLOPS
    return 3e-4 + 1.5e-8 * free**2 + (free**3 / 3.0 + 2.0 * one_product) / _FLOPS if free <= _MOST_FREE else float("inf")
