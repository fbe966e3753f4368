"""The game of costs with many outcomes: no example needs more outcomes than there are predictions, so each has a few columns.

Over n rows of weights w_i with sum n, costs c_i and scores s_i = Theta x_i, and outcomes a_1, .., a_m,

    P(Theta) = lambda/2 |Theta|^2 + 1/n sum_i w_i [s_i.c_i + min over p of max over k of (p - s_i).a_k]                      (1)
    D(C)     = 1/n sum_i w_i min_j C_ij - |sum_i w_i x_i (c_i - C_i)'|^2 / (2 lambda n^2),   C_i in conv(a_1, .., a_m)       (2)

A dual point is the list of its mixtures, rows (example, outcome, share): C_i is the sum of the example's shares times outcomes, and what
they leave of 1 is its own c_i. The list is as long as the mixtures are, where (n, m) numbers would not fit into memory.

A row's game at fixed scores is solved by a few outcomes (`_ext/structured/outcomes.pyx`). Its C gives a plane below (1), of the
coefficients c - C and the constant min_j C_j. Cutting planes (`advcli.solvers.cutting_planes`) train by these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.compiled import kernels
from ...core.typing import Array, Labels
from ...features import FeatureMap
from ...problems.risk import Solution
from ...solvers import Limits
from ...solvers.cutting_planes import Cuts, CuttingPlaneProblem, CuttingPlanes, Positions, fit_cutting_planes

_EXACT = 1e-9
"""How far apart the players' values of a game may be, in units of the spread of the costs."""


_LOOSE = 0.1
"""The same on the way, in units of the gap that a fit may leave."""


class OutcomeGames(NamedTuple):
    """Solved games of n rows."""

    predictor: Array  # (n, l), the predictor's distributions
    columns: Labels  # (n, w), outcomes in each row's game, padded with -1
    shares: Array  # (n, w), the adversary's probabilities of these
    lower: Array  # (n,), min_j C_j - s.C at the shares
    upper: Array  # (n,), max over k of (p - s).a_k at the predictor's p


def solve_outcome_games(outcomes: Array, S: Array, columns: Labels | None = None, tolerance: float = 0.0) -> OutcomeGames:
    """Solve the games of outcomes (l, m) at scores S (n, l), to ``tolerance`` or exactly.

    ``columns`` (n, w) of an earlier answer, where given, are the first columns.
    """
    S = np.ascontiguousarray(S, dtype=np.float64)
    n, l = S.shape
    columns = np.full((n, 4 * l + 8), -1, dtype=np.intp) if columns is None else columns.copy()
    games = OutcomeGames(np.empty((n, l)), columns, np.empty(columns.shape), np.empty(n), np.empty(n))
    spread = float(outcomes.max() - outcomes.min()) or 1.0
    results = (games.columns, games.shares, games.predictor, games.lower, games.upper)
    kernels.outcomes.games(np.ascontiguousarray(outcomes), S, max(_EXACT * spread, tolerance), *results)
    return games


@dataclass(frozen=True, eq=False)
class OutcomeProblem:
    """The problem (1) with its dual (2), for the certificate."""

    features: FeatureMap  # l scores of parameters (d, l)
    outcomes: Array  # (l, m)
    y: Labels  # (n,), which outcome the costs of each row are
    lam: float
    sample_weight: Array | None = None

    @cached_property
    def weight(self) -> Array:
        """w of (1), shape (n,)."""
        return np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight

    @cached_property
    def costs(self) -> Array:
        """The rows' own costs (n, l)."""
        return np.ascontiguousarray(self.outcomes[:, self.y].T)

    @property
    def n(self) -> float:
        """The n of (1)."""
        return float(self.weight.sum())

    @property
    def least_scale(self) -> float:
        """Nothing: costs are at least 0, and so is the primal."""
        return 0.0

    def ridge(self, theta: Array) -> float:
        """Return lambda/2 |Theta|^2."""
        return 0.5 * self.lam * self.features.square_norm(theta)

    def primal(self, theta: Array) -> float:
        """Return (1), each game at the predictor's strategy."""
        S = self.features.scores(theta)
        values = solve_outcome_games(self.outcomes, S).upper + (S * self.costs).sum(axis=1)
        return self.ridge(theta) + float(self.weight @ values) / self.n

    def game_value(self, theta: Array, primal: float | None = None) -> float:
        """Return P + lambda/2 |Theta|^2."""
        return (self.primal(theta) if primal is None else primal) + self.ridge(theta)

    def mixtures(self, R: Array) -> sparse.csr_array:
        """Return the shares of a dual point as a matrix (n, m), without what is left to the rows' own costs."""
        return sparse.csr_array((R[:, 2], (R[:, 0].astype(np.intp), R[:, 1].astype(np.intp))), shape=(len(self.y), self.outcomes.shape[1]))

    def feasible(self, R: Array) -> tuple[Array, float]:
        """Return the dual point with shares of at least 0 and sums of at most 1, and by how much R's are outside."""
        example = R[:, 0].astype(np.intp)
        shares = np.maximum(R[:, 2], 0.0)
        sums = np.bincount(example, weights=shares, minlength=len(self.y))
        outside = max(0.0, -float(R[:, 2].min(initial=0.0)), float(sums.max(initial=0.0)) - 1.0)
        return np.column_stack([R[:, :2], shares / np.maximum(sums, 1.0)[example]]), outside

    def mixed(self, R: Array) -> Array:
        """Return C of (2), shape (n, l)."""
        Q = self.mixtures(R)
        left = 1.0 - np.asarray(Q.sum(axis=1)).ravel()
        return np.asarray(Q @ self.outcomes.T) + left[:, None] * self.costs

    def dual(self, R: Array) -> float:
        """Return (2)."""
        C = self.mixed(R)
        moments = self.features.adjoint((self.costs - C) * self.weight[:, None])
        return float(self.weight @ C.min(axis=1)) / self.n - self.features.square_norm(moments) / (2.0 * self.lam * self.n**2)


class _OutcomeRows(CuttingPlaneProblem):
    """The rows of a problem as `fit_cutting_planes` sees them; each keeps the columns of its last game."""

    G = 0

    def __init__(self, problem: OutcomeProblem, tol: float) -> None:
        self.outcome_problem, self.X, self.tol, self.tolerance = problem, problem.features.X, tol, 0.0
        self.K, n = len(problem.outcomes), len(problem.y)
        self.start, self.share = np.arange(n + 1), problem.weight / problem.n
        self.games: OutcomeGames | None = None

    def no_planes(self) -> CuttingPlanes:
        """Return planes that know their mixtures."""
        return _Mixtures(self)

    def search(self, U: Array, shared: Array, examples: Positions) -> Cuts:
        """Return the planes of solved games; only ever of all rows."""
        problem, before = self.outcome_problem, self.games
        self.games = games = solve_outcome_games(problem.outcomes, U, None if before is None else before.columns, self.tolerance)
        R = _listed(np.arange(len(U)), games.columns, games.shares)
        C = problem.mixtures(R) @ problem.outcomes.T
        constant, row_costs = C.min(axis=1), (U * problem.costs).sum(axis=1)
        parts = sparse.csr_array(problem.costs - C)
        upper = np.maximum(games.upper + row_costs, 0.0)
        self.tolerance = _LOOSE * self.tol * float(self.share @ upper)
        return Cuts(parts, constant, np.maximum(games.lower + row_costs, 0.0), upper, len(U))


class _Mixtures(CuttingPlanes):
    """Planes with the mixture of outcomes, (p, m), that each is made of."""

    problem: _OutcomeRows

    def __init__(self, problem: _OutcomeRows) -> None:
        super().__init__(problem)
        self.mixture: Any = sparse.csr_array((0, problem.outcome_problem.outcomes.shape[1]))

    def add(self, cuts: Cuts, examples: Positions) -> None:
        """Store the planes of the last search of these examples."""
        order = np.argsort(np.concatenate([self.owner, examples]), kind="stable")
        games = self.problem.games
        assert games is not None
        new = self.problem.outcome_problem.mixtures(_listed(examples, games.columns, games.shares))[examples]
        self.mixture = sparse.csr_array(sparse.vstack([self.mixture, new], format="csr")[order])
        super().add(cuts, examples)

    def forget(self) -> NDArray[np.bool_]:
        """Drop planes and their mixtures."""
        stays = super().forget()
        if not stays.all():
            self.mixture = sparse.csr_array(self.mixture[np.flatnonzero(stays)])
        return stays

    def begin(self, start: CuttingPlanes, lam: float) -> None:
        """Take planes of another lambda, with their mixtures."""
        assert isinstance(start, _Mixtures)
        self.mixture = start.mixture
        super().begin(start, lam)

    def take(self, R: Array) -> None:
        """Begin with one plane a row, the mean of a dual point's mixtures."""
        problem, n = self.problem.outcome_problem, self.problem.n
        C = problem.mixed(R)
        self.parts, self.constant = sparse.csr_array(problem.costs - C), C.min(axis=1)
        self.alpha, self.owner, self.idle = np.ones(n), np.arange(n), np.zeros(n, dtype=np.intp)
        self.mixtures = np.full(n, None)
        Q = problem.mixtures(R)
        left = sparse.csr_array((1.0 - np.asarray(Q.sum(axis=1)).ravel(), (np.arange(n), problem.y)), Q.shape)
        self.mixture = sparse.csr_array(Q + left)

    def listed(self) -> Array:
        """Return the dual point."""
        n = self.problem.n
        mixed = sparse.csr_array((self.alpha, (self.owner, np.arange(len(self.owner)))), shape=(n, len(self.owner)))
        total = sparse.coo_array(sparse.csr_array(mixed @ self.mixture))
        total.sum_duplicates()
        row, outcome = total.coords
        order = np.lexsort((outcome, row))
        return np.column_stack([row, outcome, total.data])[order].astype(np.float64)


def _listed(rows: Positions, columns: Labels, shares: Array) -> Array:
    """Return the dual point of these rows' games."""
    held = shares[rows] > 0.0
    which, at = np.nonzero(held)
    return np.column_stack([rows[which], columns[rows][which, at], shares[rows][which, at]]).astype(np.float64)


def solve_outcomes(problem: OutcomeProblem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
    """Return parameters (d, l) and a dual point, rows (example, outcome, share), by cutting planes; ``start`` is one at another lambda."""
    rows, begun = _OutcomeRows(problem, limits.tol), None
    same = start is not None and (start.memory.get("rows"), start.theta.shape) == (len(problem.y), problem.features.shape)
    if start is not None and start.R is not None and same:
        begun = _Mixtures(rows)
        begun.take(problem.feasible(start.R)[0])
    fit = fit_cutting_planes(rows, problem.lam, limits, seed, begun)
    assert isinstance(fit.planes, _Mixtures)
    return Solution(
        np.ascontiguousarray(fit.W.T),
        fit.planes.listed(),
        problem.lam,
        "planes",
        float(fit.passes),
        fit.seconds,
        "stalled" if fit.stopped == "inexact_search" else fit.stopped,
        {"rows": len(problem.y), "choice": f"planes: the rows have {problem.outcomes.shape[1]} different vectors of costs"},
    )
