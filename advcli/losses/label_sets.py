"""Sets of classes at a price: to predict a set A costs 1[y not in A] + c_|A|, at prices 0 = c_1 <= c_2 <= ... <= c_k.

Against class probabilities q the best set has the s largest entries, so that the game over all 2^k - 1 sets is

    S(f, y) = max over distributions q of c(q) + f.q - f_y,    c(q) = min over s of 1 + c_s - (sum of the s largest q)          (1)

c is symmetric, so q is sorted as f is and a mixture of the uniform distributions u_m on the m best classes, with shares t_m: the game of k
sizes s against k prefixes m with the costs 1 + c_s - min(s, m)/m, at scores mean_m, the mean of the m largest f.

The predictor covers class j with probability a_j = clip(f_j - t, 0, 1). Random sets whose sizes s are drawn can do so where, for each m,
the sum of the m largest a is at most the mean of min(s, m). Where prices are convex, such as the linear c_s = c (s - 1), the cheapest have
the two whole sizes next to N = sum a, at the price of the line between them:

    S(f, y) = min over t >= max f - 1 of  t + 1 + price(N(t)) - f_y                                                              (2)

Where q is the truth and the best set is unique, all minimisers of the expected surrogate predict that set: it is Fisher consistent. Loss of
sets: Ha (1997), "The optimum class-selective rejection rule"; game and surrogate of a matrix: Fathony et al. (2018), eq. 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import combinations, permutations
from typing import Any

import numpy as np
from scipy import sparse

from ..core.checks import NOT_NEGATIVE, NUMBER, refuse
from ..core.errors import ConfigError
from ..core.linalg import plus_own, solve
from ..core.typing import Array, Labels
from .base import Answer, SimplexLoss, register
from .general import solve_games


def prices_of(price: Any, n_classes: int) -> Array:
    """Return what sets of 1 to k classes cost, (k,); `ConfigError` unless ``price`` is a number or k numbers from 0 that do not fall."""
    if not isinstance(price, Sequence | np.ndarray) or isinstance(price, str):
        refuse(
            "loss.price",
            price,
            NOT_NEGATIVE,
            "a number of at least 0, the price of each further class, or a list with a price for every size",
        )
        return float(price) * np.arange(float(n_classes))
    for each in price:
        refuse("loss.price", each, NUMBER, "finite numbers")
    prices = np.array(price, dtype=np.float64)
    if prices.shape != (n_classes,):
        raise ConfigError(
            f"loss.price has {len(prices)} numbers for {n_classes} classes: give one, or the price of every size from 1 to {n_classes}"
        )
    if prices[0] != 0.0:
        raise ConfigError(f"loss.price starts with {prices[0]:g}: a single class costs 0, so take that off every price")
    if (falls := np.flatnonzero(np.diff(prices) < 0.0)).size:
        size = int(falls[0]) + 1
        raise ConfigError(
            f"loss.price falls from {prices[size - 1]:g} to {prices[size]:g} at {size + 1} classes: a larger set may not cost less"
        )
    return prices


@register("label_sets")
class LabelSetsLoss(SimplexLoss):
    """The adversarial loss of sets of any size at the ``price`` of their sizes: a number c for c (s - 1), or a list of k prices.

    `predict` returns sets: the best classes, as many as the likeliest size of the predictor has, of equally likely ones the smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.losses import make_loss
    >>> loss = make_loss("label_sets", 3, price=0.1)
    >>> loss.predict(np.array([[3.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])).toarray()
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """

    kernel = "label_sets"
    metric = "set_loss"
    sets = True

    def __init__(self, n_classes: int, price: float | Sequence[float] = 0.15) -> None:
        super().__init__(n_classes)
        self.prices = prices_of(price, n_classes)
        self.steps = np.diff(self.prices)
        self.convex = bool((np.diff(self.steps) >= -1e-15 * self.prices[-1]).all())

    @classmethod
    def examples(cls, n_classes: int) -> list[dict[str, Any]]:
        """Return low, high and no prices, and a convex list."""
        return [{}, {"price": 0.0}, {"price": 0.4}, {"price": (0.03 * np.arange(float(n_classes)) ** 2).tolist()}]

    @property
    def parameters(self) -> Array:
        """The prices, shape (k,)."""
        return self.prices

    @cached_property
    def game(self) -> Array:
        """The costs 1 + c_s - min(s, m)/m of sizes s (rows) against prefixes m, shape (k, k)."""
        size = np.arange(1.0, self.n_classes + 1)
        return 1.0 + self.prices[:, None] - np.minimum(size[:, None], size) / size

    # ---- the two players ----------------------------------------------------------------------------------------------
    def _levels(self, F: Array) -> tuple[Array, Array]:
        """Return t of (2), the largest of the best ones, and N(t) for scores F (n, k) whose row maxima are 0, (n,) each."""
        ordered = -np.sort(-F, axis=1)
        rank, total = np.arange(1.0, self.n_classes + 1), np.cumsum(ordered, axis=1)
        # N and the price bend at scores and at whole N: at the largest of (total_m - N)/m
        t = np.hstack([*(((total - size) / rank).max(axis=1, keepdims=True) for size in rank), ordered])
        t = -np.sort(-np.clip(t, -1.0, None), axis=1)
        # below the least level, of N = 1, alone
        above = np.array([np.searchsorted(-scores, -levels) for scores, levels in zip(ordered, t, strict=True)], dtype=np.intp)
        above = above.reshape(t.shape)
        N = np.take_along_axis(np.hstack([np.zeros((len(F), 1)), total]), above, axis=1) - above * t
        value = t + 1.0 + np.interp(N, rank, self.prices)
        value[N < 1.0 - 1e-12] = np.inf
        best = np.argmax(value <= value.min(axis=1, keepdims=True) + 1e-14, axis=1)[:, None]
        return np.take_along_axis(t, best, axis=1)[:, 0], np.take_along_axis(N, best, axis=1)[:, 0]

    def _sizes_and_prefixes(self, F: Array) -> tuple[Array, Array]:
        """Return the shares t (n, k) of prefixes and p (n, k) of sizes in the game of both."""
        ordered = np.maximum(-np.sort(-F, axis=1), -4.0 * self.n_classes * (1.0 + self.prices[-1]))
        return solve_games(self.game, np.cumsum(ordered, axis=1) / np.arange(1.0, self.n_classes + 1))

    def adversary(self, F: Array) -> Array:
        """Return the q of (1), shape (n, k)."""
        n, k = F.shape
        F = F - F.max(axis=1, keepdims=True)
        order = np.argsort(-F, axis=1, kind="stable")
        if self.convex:
            ordered = np.take_along_axis(F, order, axis=1)
            t, N = self._levels(F)
            count = (ordered > t[:, None]).sum(axis=1)
            step = np.r_[0.0, self.steps, np.inf][np.minimum(np.floor(N + 1e-9).astype(np.intp), k)]
            theta = np.minimum(1.0 / np.maximum(count, 1), step)
            # theta above t, what is left at t, the rest to the best class
            reached = np.where(ordered >= t[:, None], theta[:, None], 0.0)
            Q = np.diff(np.minimum(np.cumsum(np.hstack([np.zeros((n, 1)), reached]), axis=1), 1.0), axis=1)
            Q[:, 0] += 1.0 - Q.sum(axis=1)
        else:
            share, _ = self._sizes_and_prefixes(F)
            Q = np.cumsum((share / np.arange(1.0, k + 1))[:, ::-1], axis=1)[:, ::-1]
        placed = np.empty((n, k))
        np.put_along_axis(placed, order, Q, axis=1)
        return placed

    def predictor(self, F: Array) -> Array:
        """Return the shares of sets of 1 to k classes in the predictor's mixture, shape (n, k)."""
        F = F - F.max(axis=1, keepdims=True)
        if not self.convex:
            return self._sizes_and_prefixes(F)[1]
        N = np.clip(self._levels(F)[1], 1.0, self.n_classes)
        return np.maximum(1.0 - np.abs(N[:, None] - np.arange(1.0, self.n_classes + 1)), 0.0)

    def predict(self, F: Array) -> Any:
        """Return the predicted sets of rows of scores (n, k), a csr_array (n, k) with a one at each class of the set."""
        P = self.predictor(F)
        sizes = np.argmax(P.max(axis=1, keepdims=True) - 1e-9 <= P, axis=1) + 1
        order = np.argsort(-F, axis=1, kind="stable")
        inside = np.arange(self.n_classes) < sizes[:, None]
        sets = sparse.csr_array((np.ones(int(sizes.sum()), dtype=np.int64), order[inside], np.r_[0, np.cumsum(sizes)]), shape=F.shape)
        sets.sort_indices()
        return sets

    def cost(self, sets: Any, y: Labels) -> Array:
        """Return 1[y not in A] + c_|A| for sets (n, k) and labels y (n,), shape (n,)."""
        return 1.0 - np.asarray(sets[np.arange(len(y)), y]).ravel() + self.prices[np.diff(sets.indptr) - 1]

    # ---- the surrogate ------------------------------------------------------------------------------------------------
    def offset_reference(self, R: Array, y: Labels) -> Array:  # noqa: D102
        outside = 1.0 - np.cumsum(-np.sort(-plus_own(R, y), axis=1), axis=1)
        outside[:, -1] = 0.0  # all classes have all of the mass, whatever a sum rounds to
        return (self.prices + outside).min(axis=1)

    def oracle_reference(self, F: Array, y: Labels) -> Answer:  # noqa: D102
        R = plus_own(self.adversary(F), y, -1.0)
        offset = self.offset_reference(R, y)
        return Answer(offset + np.einsum("ij,ij->i", F - F.max(axis=1, keepdims=True), R), R, offset)

    def pieces(self, y: int) -> list[tuple[Array, float]]:
        """Return (q - e_y, c(q)) for the q at which c has a corner: hundreds for six classes, too many to list for more than seven."""
        R = _corners(tuple(self.prices)) - np.eye(self.n_classes)[y]
        return list(zip(R, self.offset_reference(R, np.full(len(R), y)).tolist(), strict=True))


@lru_cache(maxsize=64)
def _corners(prices: tuple[float, ...]) -> Array:
    """Return the q (m, k) at which c has a corner: shares of some prefixes at which as many sizes cost the same, in every order."""
    k, corners = len(prices), {}
    game = LabelSetsLoss(k, prices).game
    for size in range(1, k + 1):
        for prefixes in combinations(range(k), size):
            for rows in combinations(range(k), size):
                system = np.vstack([np.c_[game[np.ix_(rows, prefixes)], -np.ones(size)], np.r_[np.ones(size), 0.0]])
                if abs(np.linalg.det(system)) < 1e-12:
                    continue
                mixture = np.zeros(k)
                mixture[list(prefixes)] = solve(system, np.r_[np.zeros(size), 1.0])[:size]
                if mixture.min() >= 0.0 and (game[list(rows)] @ mixture).max() <= (game @ mixture).min() + 1e-12:
                    q = np.cumsum((mixture / np.arange(1.0, k + 1))[::-1])[::-1]
                    corners[tuple(np.round(q, 13))] = q
    placed = {order for corner in corners.values() for order in permutations(corner.tolist())}
    return np.array(sorted(placed))
