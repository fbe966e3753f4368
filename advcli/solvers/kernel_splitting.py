"""Operator splitting with a kernel: one Cholesky factor of K + sigma I serves every class, every iteration and neighbouring values of C.

The dual in C form, over z = C s r, is minimise 1/2 |theta(z)|^2 - C sum_i s_i w_i c(z_i / (C s_i)): a quadratic that couples the rows and
knows no bounds, and a sum of one function a row. Douglas and Rachford's iteration, relaxed (Eckstein & Bertsekas 1992), treats them in
turn and never together (docs/notes/kernels.md, section 5): each z_i is one exact block step, all classes share one system with K, and
v - z converges to the scores over sigma. An iteration is two triangular solves, however many rows keep free variables; Newton systems
grow with the number of such rows, which under llw are nearly all. Cipolla and Gondzio (2022, EURO J. Comput. Optim. 10) train
binary machines with such a shared factor.

Every x is primal feasible and every z dual feasible, so that both bounds come from iterates.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ..features.base import KernelMap
from ..problem import Array, Problem, Solution, gap_scale
from .base import Limits, Solver, register
from .kernel_newton import lacks_kernel

_RELAXATION = 1.9  # below 2; 1 takes nearly twice the iterations
_SCALE_SIMPLEX, _SCALE_BOX = 2.5, 0.7  # of sigma, for dual variables that are distributions and for others
_STEP = 2.0  # sigma is a power of it, so that neighbouring values of C share a factor
_FIRST_CHECK = 5
_CHECKS = 8  # a check costs about an iteration: every eighth of the iterations so far


@register("kernel_splitting")
class KernelSplittingSolver(Solver):
    """Douglas-Rachford splitting of the dual with a kernel whose matrix fits in memory twice; any surrogate, free thresholds too."""

    precision = 1e-4

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs kernel features and memory for K; free thresholds as in `newton`."""
        missing = lacks_kernel(problem)
        if missing is None and isinstance(problem.features, KernelMap) and not problem.features.room_for_factor:
            return "a kernel matrix that fits twice in features.memory_mb"
        return missing

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the parameters and the dual point with the best values seen."""
        return self.minimise(problem, limits, start, lambda iterations, R: False)

    @classmethod
    def minimise(cls, problem: Problem, limits: Limits, start: Solution | None, enough: Callable[[int, Array], bool]) -> Solution:
        """Return what `solve` does, or end with status "max_passes" at the first check at which ``enough(iterations, R)`` holds."""
        started = time.perf_counter()
        features, loss, y, C = problem.features, problem.loss, problem.y, problem.C
        assert isinstance(features, KernelMap)
        n, k = len(y), loss.n_classes
        sample = np.ones(n) if problem.sample_weight is None else problem.sample_weight
        cost = np.ones(n) if problem.cost_weight is None else problem.cost_weight
        sigma = _sigma(problem, features)
        curvature = sigma * C * sample / cost
        origin = np.zeros((n, k))
        theta, R = np.zeros(features.shape), features.feasible(origin, y, problem.sample_weight)
        V = origin
        reads = 2 if limits.max_passes >= 2.0 else 0  # values of a start
        if reads and start is not None and start.R is not None and start.R.shape == (n, k) and start.theta.shape == features.shape:
            theta, R = start.theta, start.R
            F = features.scores(theta)
            # the iteration's point of rest if coefficients and scores of the start are optimal
            V = R * (sample / (start.lam * problem.n))[:, None] + (F - F.mean(axis=1, keepdims=True)) / sigma
        best_primal, best_theta, best_dual, best_R = problem.primal(theta), theta, problem.dual(R), R
        iterations, checks, check, status = 0, reads, _FIRST_CHECK, "converged"
        while best_primal - best_dual > limits.tol * gap_scale(best_primal, best_dual):
            if iterations + checks >= limits.turn or iterations + checks + 2 > limits.max_passes:  # an iteration and its values
                status = "max_passes"
                break
            if time.perf_counter() - started > limits.max_seconds:
                status = "max_seconds"
                break
            R = loss.block(V * (sigma / cost)[:, None], origin, y, curvature)
            Z = R * (C * sample)[:, None]
            G = 2.0 * Z - V
            X, theta = features.proximal(G, sigma)
            iterations += 1
            if iterations >= check or iterations + checks + 1 >= limits.turn or iterations + checks + 3 > limits.max_passes:
                check = iterations + max(_FIRST_CHECK, iterations // _CHECKS)
                checks += 1
                R = features.feasible(R, y, problem.sample_weight)
                dual = problem.dual(R)
                if dual > best_dual:
                    best_dual, best_R = dual, R
                if features.regularised is None:  # the dual value has computed the scores of theta(r)
                    spanned = problem.parameters(R)
                    primal = problem.primal(spanned)
                    if primal < best_primal:
                        best_primal, best_theta = primal, spanned
                F = sigma * (X - G)
                primal = 0.5 * problem.lam * max(-float(np.vdot(X, F)), 0.0) + problem.empirical(F)
                if primal - best_dual <= limits.tol * gap_scale(primal, best_dual):
                    primal = problem.primal(theta)  # free of the factor's rounding
                if primal < best_primal:
                    best_primal, best_theta = primal, theta
                if best_primal - best_dual > limits.tol * gap_scale(best_primal, best_dual) and enough(iterations, R):
                    status = "max_passes"
                    break
            V = V + _RELAXATION * (X - Z)
        seconds = time.perf_counter() - started
        memory = {"support": int(best_R.any(axis=1).sum())}
        return Solution(best_theta, best_R, problem.lam, cls.name, float(iterations + checks), seconds, status, memory)


def _sigma(problem: Problem, features: KernelMap) -> float:
    """Return sigma, the ratio of scores to coefficients, as a power of `_STEP`.

    Scores are of the size of w. Coefficients are of the size of w / K_ii where rows are free, and C s, the most they can be, at bounds. The
    root of the product of the smaller of these sizes and C s stands for both: times a constant, its sigma needed at most twice the
    iterations of the best one for C of 1 to 2^12 and gamma of 2^-12 to 1. Means over rows stand for every row. No sigma is below what
    rounding may take off an eigenvalue of K.
    """
    cost = 1.0 if problem.cost_weight is None else float(problem.cost_weight.mean())
    largest = problem.C * (1.0 if problem.sample_weight is None else float(problem.sample_weight.mean()))
    diagonal = float(features.matrix.diagonal().mean())
    free = cost / max(diagonal, 1e-300)  # a kernel may be zero
    coefficient = np.sqrt(min(free, largest) * largest)
    scale = _SCALE_SIMPLEX if problem.loss.simplex else _SCALE_BOX
    least = 4.0 * len(problem.y) ** 2 * float(np.finfo(np.float64).eps) * diagonal
    return float(_STEP ** round(np.log(max(scale * cost / coefficient, least)) / np.log(_STEP)))
