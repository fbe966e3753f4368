"""Bounds of a classifier's expected loss from the moments of its own training rows: no row is held out.

Let U be the distributions p on a finite set of rows and k classes whose moments E[1(Y = y) (1, X)] lie in a box. For a rule that costs
l(x, y) at row x under truth y

    min over p in U of E_p l(X, Y)  <=  expected loss  <=  max over p in U of E_p l(X, Y)                                          (1)

where the distribution of the rows lies in U; both ends are linear programs in p. No rule can promise less than the value of the game

    max over p in U of sum_x min over predictions r of sum_y L_ry p(x, y),

which bounds the Bayes risk. Minimax risk classifiers (Mazuelas, Shen & Perez 2022, IEEE Trans. Inf. Theory 68) minimise the upper end
of (1). The marginal of the rows is free here; adversarial surrogates fix it to the training rows (Fathony et al. 2018, eq. 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..core.arrays import class_codes, finite_table
from ..core.checks import FRACTION, refuse
from ..core.errors import ConfigError, DataError
from ..core.highs import largest, quiet_solver
from ..core.typing import Array, Labels

HALVINGS = 60
"""Steps of bisection for an end of an interval: its error is 2^-60 of the range."""


@dataclass(frozen=True)
class MomentBounds:
    """Bounds of an expected loss that hold together with probability at least 1 - ``delta``."""

    lower: float
    upper: float
    game_value: float | None  # least upper bound of any rule, where the loss matrix is given
    delta: float
    low: Array  # (k, d + 1) lower ends of the box of moments E[1(Y = y) (1, X)]
    high: Array  # (k, d + 1) upper ends


def moment_box(X: Array, codes: Labels, n_classes: int, ranges: Array, delta: float) -> tuple[Array, Array]:
    """Return a box (k, d + 1), its lower and upper ends, that has all moments E[1(Y = y) (1, X)] with probability at least 1 - delta.

    Each moment is the mean of n independent numbers within known ends, so that n kl(mean, expectation) exceeds log(2 m / delta) with
    probability at most delta / m in units of the ends (Hoeffding 1963, Theorem 1); there are m moments. ``ranges`` (2, d): the ends of X.
    """
    n = len(X)
    least = np.r_[0.0, np.minimum(ranges[0], 0.0)]  # where Y is another class the number is 0
    span = np.r_[1.0, np.maximum(ranges[1], 0.0)] - least
    Phi = np.c_[np.ones(n), X]
    means = np.stack([Phi[codes == y].sum(axis=0) / n for y in range(n_classes)])
    scaled = np.clip((means - least) / np.where(span > 0.0, span, 1.0), 0.0, 1.0)
    room = np.log(2.0 * scaled.size / delta) / n
    return least + span * _end(scaled, room, 0.0), least + span * _end(scaled, room, 1.0)


def _end(means: Array, room: float, end: float) -> Array:
    """Return the numbers farthest from the means towards ``end``, 0 or 1, with kl(mean, number) at most ``room``, rounded outwards."""
    near, far = means.copy(), np.full(means.shape, end)
    for _ in range(HALVINGS):
        middle = 0.5 * (near + far)
        inside = _divergence(means, middle) <= room
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return far


def _divergence(p: Array, q: Array) -> Array:
    """Return kl between Bernoulli distributions."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0.0, p * np.log(p / q), 0.0)
        return first + np.where(p < 1.0, (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), 0.0)


def moment_bounds(X: Any, y: Any, losses: Any, domain: Any = None, matrix: Any = None, delta: float = 0.05) -> MomentBounds:
    """Return bounds of a rule's expected loss that the moments of independent rows prove, for any rule, also one fitted to these rows.

    Assumed: rows are drawn independently from one distribution, whose rows are rows of the domain. Then the bounds hold with probability
    at least 1 - delta over the draw, for all rules at once.

    Parameters
    ----------
    X : array (n, d)
        The rows; features of few values, or those of a classifier, give a small program: k (d + 1) constraints.
    y : array (n,) of whole numbers
        Their classes, 0 to k - 1.
    losses : array (N, k)
        What the rule's prediction at each row of the domain costs under each class; expected costs for a rule that mixes predictions.
    domain : array (N, d), optional
        Every row that can occur. None: the rows themselves, so that the bounds are about distributions on these.
    matrix : array (l, k), optional
        The loss matrix, for the value of the game.
    delta : float
        Probability that a bound is false at most, in (0, 1).

    Returns
    -------
    MomentBounds
        ``lower``, ``upper``, ``game_value`` and the box.

    Raises
    ------
    ConfigError
        ``delta`` outside its range, a matrix of other classes.
    DataError
        Arrays of other shapes, numbers that are not finite, a row outside the ends of the domain, moments that no distribution on it has.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import moment_bounds
    >>> X, y = np.repeat([[0.0], [1.0]], 200, axis=0), np.repeat([0, 1, 0, 1], [180, 20, 20, 180])
    >>> rule = np.array([[0.0, 1.0], [1.0, 0.0]])  # at x = 0 class 0, at x = 1 class 1: errors under each class
    >>> found = moment_bounds(X, y, rule, domain=[[0.0], [1.0]], matrix=[[0, 1], [1, 0]])
    >>> found.lower < 0.1 < found.upper < 0.3
    True
    """
    refuse("delta", delta, FRACTION)
    X, points = finite_table(X, "X"), finite_table(X if domain is None else domain, "domain")
    costs = finite_table(losses, "losses")
    k = costs.shape[1]
    codes = class_codes(y, len(X), k)
    if len(costs) != len(points) or X.shape[1] != points.shape[1]:
        raise DataError(f"losses {costs.shape} and X {X.shape} do not fit a domain of shape {points.shape}")
    ranges = np.array([points.min(axis=0), points.max(axis=0)])
    if (ranges[0] > X).any() or (ranges[1] < X).any():
        raise DataError("a row of X lies outside the domain, which must have every row that can occur")
    low, high = moment_box(X, codes, k, ranges, delta)
    L = None if matrix is None else finite_table(matrix, "matrix")
    if L is not None and L.shape[1] != k:
        raise ConfigError(f"matrix has {L.shape[1]} columns but losses have {k}")
    program = _Program(points, low, high)
    return MomentBounds(-program.largest(-costs), program.largest(costs), None if L is None else program.game(L), float(delta), low, high)


class _Program:
    """Linear programs over distributions p (N k) on domain x classes whose moments lie in a box."""

    def __init__(self, points: Array, low: Array, high: Array) -> None:
        self.n, self.k = len(points), len(low)
        Phi = sparse.csr_array(np.c_[np.ones(self.n), points].T)
        moments = sparse.kron(sparse.eye_array(self.k), Phi, format="csr")  # p by classes, then rows
        self.rows = sparse.vstack([moments, sparse.csr_array(np.ones((1, self.n * self.k)))], format="csr")
        self.low, self.high = np.r_[low.ravel(), 1.0], np.r_[high.ravel(), 1.0]

    def largest(self, costs: Array) -> float:
        """Return a bound of the largest E_p of costs (N, k), equal to it up to rounding."""
        return self._bound(costs, _duals(costs.T.ravel(), (0.0, 1.0), (self.low, self.high), self.rows))

    def game(self, L: Array) -> float:
        """Return the same for the largest sum_x min_r sum_y L_ry p(x, y), by a number v_x for each row, at most every such sum."""
        size, identity = self.n * self.k, sparse.eye_array(self.n)
        sums = sparse.vstack([sparse.hstack([*(cost * identity for cost in row), -identity]) for row in L])
        rows = sparse.vstack([sparse.hstack([self.rows, sparse.csr_array((self.rows.shape[0], self.n))]), sums], format="csr")
        columns = np.r_[np.zeros(size), np.full(self.n, -np.inf)], np.r_[np.ones(size), np.full(self.n, np.inf)]
        ends = np.r_[self.low, np.zeros(sums.shape[0])], np.r_[self.high, np.full(sums.shape[0], np.inf)]
        duals = _duals(np.r_[np.zeros(size), np.ones(self.n)], columns, ends, rows)
        mixture = np.abs(duals[len(self.low) :]).reshape(len(L), self.n).T + 1e-300  # the best rule: how it mixes predictions at each row
        return self._bound(mixture / mixture.sum(axis=1, keepdims=True) @ L, duals)

    def _bound(self, costs: Array, duals: Array) -> float:
        """Return max over the box of duals.moments + max over p of E_p (costs - duals.moments): at least the largest E_p for any duals."""
        weights = duals[: len(self.low)]
        rest = costs.T.ravel() - self.rows.T @ weights
        return float(np.maximum(weights * self.low, weights * self.high).sum() + rest.max())


def _duals(cost: Array, columns: tuple[Any, Any], ends: tuple[Array, Array], rows: Any) -> Array:
    """Return the duals of the rows of the largest cost.x; `DataError` where nothing is feasible."""
    found = largest(quiet_solver(), cost, columns, ends, rows)
    if found is None:
        raise DataError("no distribution on the domain has these moments: the domain must have every row that can occur")
    return np.array(found.row_dual)
