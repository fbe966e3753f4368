"""Mixtures of classifiers whose confusion matrix has the largest value of a metric, each classifier made for a matrix of costs.

C (k, k), C_yj being the share of rows that are of class y and predicted as j, is linear in the weights of a mixture. At C a metric psi with
the slopes G = grad psi(C) rises fastest towards the classifier of least cost under -G'. A step is that classifier.

    concave psi    psi(C') <= psi(C) + <G, C' - C> for all C': an exact step bounds psi over all classifiers, and the right side less psi(C)
                   is the duality gap (Narasimhan et al. 2015, Algorithm 1, Frank and Wolfe's). Between two steps the weights of all
                   classifiers so far are optimised, so few are left (fully corrective: Lacoste-Julien & Jaggi 2015).
    least recall   worst_class: these weights solve a linear program, whose dual values are the slopes.
    <N, C>/<D, C>  quadratic_kappa: some classifier has psi >= t if the least cost under (t D - N)' is at most 0, which bisects t (Alg. 2).
    macro_f1       a sum of ratios, not concave: the same steps end where none leads uphill, which bounds nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from ...core.highs import largest, quiet_solver
from ...core.linalg import inner
from ...core.typing import Array

_FLOOR = 1e-9  # the least recall in sums and slopes: at 0 slopes of g_mean and h_mean have no bound, and no one class raises them
_NO_WEIGHT = 1e-9


class Member(NamedTuple):
    """A classifier: costs (k, k), rows = predictions; its confusion matrix (k, k), rows = classes; what its learner keeps of it."""

    costs: Array
    confusion: Array
    fit: Any = None


class Mixture(NamedTuple):
    """Classifiers, their weights (m,), largest first, the value of their confusion matrix, a bound of all values, and the steps made."""

    members: list[Member]
    weights: Array
    value: float
    bound: float  # holds where steps are exact and the metric bounds anything
    steps: int


Step = Callable[[Array], Member]


class Measure(ABC):
    """A metric psi of confusion matrices with the sums of rows ``shares`` (k,); ``counted`` (k,) tells which classes it looks at."""

    bounds = True  # whether exact steps bound it

    def __init__(self, shares: Array, counted: Any) -> None:
        self.shares, self.counted = shares, np.flatnonzero(counted)

    @abstractmethod
    def value(self, C: Array, floor: float = 0.0) -> float:
        """Return psi(C), with recalls of at least ``floor`` where it is made of them."""

    def costs(self, G: Array) -> Array:
        """Return the costs (k, k) of slopes, rows = predictions: at least 0, and the mean over the rows of their largest is 1."""
        costs = (G.max(axis=1, keepdims=True) - G).T
        scale = float(self.shares @ costs.max(axis=0))
        return np.ascontiguousarray(costs / scale if scale > 0.0 else costs)

    @abstractmethod
    def optimise(self, step: Step, most: int, tol: float) -> Mixture:
        """Return the mixture after ``most`` steps at most, or once nothing is left to gain but ``tol``."""


class _Climbed(Measure):
    """A metric with slopes, which steps climb."""

    @abstractmethod
    def tangent(self, C: Array) -> tuple[Array, float]:
        """Return slopes G (k, k) and b, <G, C> + b = psi(C); of a concave psi <G, C'> + b is at least psi(C') for all C'."""

    def optimise(self, step: Step, most: int, tol: float) -> Mixture:
        """Return the mixture after ``most`` steps, or once a step leads up by at most ``tol``."""
        G, b = self.tangent(np.repeat(self.shares[:, None] / len(self.shares), len(self.shares), axis=1))
        members: list[Member] = []
        stack: Array = np.empty((0, *G.shape))
        weights, value, bound, steps = np.ones(0), -np.inf, np.inf, 0
        while steps < most:
            steps, member = steps + 1, step(self.costs(G))
            reached = inner(G, member.confusion) + b
            bound = min(bound, reached)
            seen = bool((member.confusion == stack).all(axis=(1, 2)).any())  # again: rounding hides what is left
            if seen or reached - value <= tol:
                break
            members, weights = [*members, member], np.append(weights, 0.0 if members else 1.0)
            stack = np.stack([each.confusion for each in members])
            weights, G, b = self.weigh(stack, weights)
            value = self.value(np.tensordot(weights, stack, 1))
            held = (weights > _NO_WEIGHT) | (value <= 0.0)  # some of no weight have recalls that the others lack
            members, weights = [each for each, kept in zip(members, held, strict=True) if kept], weights[held] / weights[held].sum()
        order = np.argsort(-weights, kind="stable")
        return Mixture([members[place] for place in order], weights[order], value, max(bound, value), steps)

    def weigh(self, stack: Array, weights: Array) -> tuple[Array, Array, float]:
        """Return weights (m,) of the largest psi over the matrices (m, k, k), no less than of the given ones, and the tangent there."""

        def falls(w: Array) -> tuple[float, Any]:
            C = np.tensordot(w, stack, 1)
            return -self.value(C, _FLOOR), -np.tensordot(stack, self.tangent(C)[0], 2)

        one: Any = {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": np.ones_like}
        start: Any = weights if len(weights) == 1 else np.append(0.5 * weights[:-1], 0.5)  # where recalls are above 0
        limits: Any = {"bounds": [(0.0, 1.0)] * len(weights), "constraints": one, "options": {"ftol": 1e-12, "maxiter": 1000}}
        found = minimize(falls, start, jac=True, method="SLSQP", **limits).x
        found = np.maximum(found, 0.0) / np.maximum(found, 0.0).sum()
        best = max(weights, found, key=lambda w: self.value(np.tensordot(w, stack, 1), _FLOOR))
        return best, *self.tangent(np.tensordot(best, stack, 1))


def _geometric(r: Array) -> tuple[float, Array]:
    value = float(np.exp(np.log(r).mean()))
    return value, value / (len(r) * r)


def _harmonic(r: Array) -> tuple[float, Array]:
    value = len(r) / float((1.0 / r).sum())
    return value, value**2 / (len(r) * r**2)


def _quadratic(r: Array) -> tuple[float, Array]:
    norm = float(np.sqrt(np.mean((1.0 - r) ** 2)))
    return 1.0 - norm, (1.0 - r) / (len(r) * norm) if norm > 0.0 else np.zeros(len(r))


def _least(r: Array) -> tuple[float, Array]:
    least = np.isclose(r, r.min())
    return float(r.min()), least / least.sum()


class _OfRecalls(_Climbed):
    """A concave function of the recalls r_y = C_yy / shares_y; ``mean`` returns its value and its slopes."""

    def __init__(self, mean: Callable[[Array], tuple[float, Array]], *about: Any) -> None:
        super().__init__(*about)
        self.mean = mean

    def recalls(self, C: Array) -> Array:
        at = self.counted
        return np.clip(np.diagonal(C, axis1=-2, axis2=-1)[..., at] / self.shares[at], 0.0, 1.0)

    def value(self, C: Array, floor: float = 0.0) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.mean(np.maximum(self.recalls(C), floor))[0]

    def tangent(self, C: Array) -> tuple[Array, float]:
        r = np.maximum(self.recalls(C), _FLOOR)
        value, slopes = self.mean(r)
        return self.diagonal(slopes), value - float(slopes @ r)

    def diagonal(self, slopes: Array) -> Array:
        G = np.zeros((len(self.shares),) * 2)
        G[self.counted, self.counted] = slopes / self.shares[self.counted]
        return G


class _WorstClass(_OfRecalls):
    """The least recall, at most v.r for every distribution v over the classes."""

    def weigh(self, stack: Array, weights: Array) -> tuple[Array, Array, float]:
        """Solve for the largest t with R'w >= t in every class, R (m, classes) the recalls; the dual values are v."""
        m, n = (R := self.recalls(stack)).shape
        ends = np.r_[np.zeros(n), 1.0], np.r_[np.full(n, np.inf), 1.0]
        program = np.block([[R.T, -np.ones((n, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
        solution = largest(quiet_solver(), np.r_[np.zeros(m), 1.0], (0.0, np.inf), ends, program)
        v = np.abs(solution.row_dual[:n])
        return np.maximum(solution.col_value[:m], 0.0), self.diagonal(v / v.sum()), 0.0


class _MacroF1(_Climbed):
    """The mean of 2 C_yy / (shares_y + sum_y' C_y'y)."""

    bounds = False

    def value(self, C: Array, floor: float = 0.0) -> float:
        at = self.counted
        return float(np.mean(2.0 * C[at, at] / (self.shares + C.sum(axis=0))[at]))

    def tangent(self, C: Array) -> tuple[Array, float]:
        at, totals = self.counted, (self.shares + C.sum(axis=0))[self.counted]
        G = np.zeros(C.shape)
        G[:, at] = -2.0 * C[at, at] / totals**2
        G[at, at] += 2.0 / totals
        G /= len(at)
        return G, self.value(C) - inner(G, C)


class _QuadraticKappa(Measure):
    """1 - <W, C>/<D, C>, W_yj = (y - j)^2 and D_yj = sum_y' shares_y' W_y'j, as the sums of rows are given."""

    def __init__(self, shares: Array, counted: Any) -> None:
        super().__init__(shares, counted)
        W = np.subtract.outer(np.arange(len(shares)), np.arange(len(shares))) ** 2.0
        self.D = np.tile(shares @ W, (len(shares), 1))
        self.N = self.D - W

    def value(self, C: Array, floor: float = 0.0) -> float:
        chance = inner(self.D, C)
        return inner(self.N, C) / chance if chance > 0.0 else 0.0

    def optimise(self, step: Step, most: int, tol: float) -> Mixture:
        """Bisect psi: an exact step that stays below the middle proves that all classifiers do."""
        best, steps = step(self.costs(self.N)), 1
        low, high = self.value(best.confusion), 1.0
        while high - low > tol and steps < most:
            middle = 0.5 * (low + high)
            member, steps = step(self.costs(self.N - middle * self.D)), steps + 1
            value = self.value(member.confusion)
            best, low = (member, value) if value > low else (best, low)
            high = high if value >= middle else middle
        return Mixture([best], np.ones(1), low, high, steps)


MEASURES: dict[str, Callable[[Array, Any], Measure]] = {
    "macro_f1": _MacroF1,
    "g_mean": partial(_OfRecalls, _geometric),
    "h_mean": partial(_OfRecalls, _harmonic),
    "q_mean": partial(_OfRecalls, _quadratic),
    "worst_class": partial(_WorstClass, _least),
    "quadratic_kappa": _QuadraticKappa,
}
"""The metrics by name, all to be maximised: of worst_class the least recall, 1 less the largest error of a class."""
