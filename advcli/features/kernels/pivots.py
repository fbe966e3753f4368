"""Pivots of a kernel matrix: rows and columns that approximate it, and where they are kept."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from operator import neg
from typing import NamedTuple

import numpy as np

from ...core.arithmetic import is_portable
from ...core.linalg import dpstrf, solve_triangular
from ...core.typing import Array, Labels
from ..base import KernelMap

_RANK = 1e-11  # pivots below this share of the largest are rounding
_CLEARLY = 10.0  # times that share: what rounding cannot make of a pivot below it
_BLOCK, _WEAKEST = 64, 0.3  # pivots that are found at a time, and the least of them in units of the largest
_LOOK = 4  # part of the most pivots allowed after which it is asked whether they will do


class Factor(NamedTuple):
    """L (n, p) with K = L L', but for what the pivots leave, and the p pivot rows, on which L is lower triangular."""

    L: Array
    pivots: Labels

    def to_explicit(self, features: KernelMap, theta: Array) -> Array:
        """Return the parameters, for the explicit features on the rows of L, of a function with the parameters theta: L'A."""
        A, free = features.split(theta)
        return features.joined(np.ascontiguousarray(self.L.T @ A), free)

    def from_explicit(self, features: KernelMap, theta: Array) -> Array:
        """Return parameters with coefficients A = L1^{-T} Theta on the pivot rows alone, where L1 are their rows: K A = L L1' A = L Theta.

        The rows of the pivots are rows of K itself, so that a function of L L' is one of K.
        """
        along, free = features.split(theta)
        A = np.zeros((len(self.L), along.shape[1]))
        A[self.pivots] = solve_triangular(self.L[self.pivots], along, trans="T", lower=True, check_finite=False)
        return features.joined(A, free)


class Pivots:
    """The first rows of L' in K = L L', by Cholesky with pivoting, and what they leave of K's diagonal."""

    def __init__(self, K: Array, diagonal: Array) -> None:
        self.K, self.left, self.rows = K, diagonal.copy(), np.empty((0, len(K)))
        self.lefts = [float(diagonal.max(initial=0.0))]  # largest value of the diagonal of K - L L' for no rows of L', one, two, ...
        self.least = _CLEARLY * _RANK * self.lefts[0]
        self.chosen: list[int] = []  # the pivot of every row
        self.products = np.empty((0, 0))  # L'L of the first rows

    @cached_property
    def factor(self) -> Factor:
        """The factor up to the numerical rank (Higham 2002, section 10.3)."""
        packed, order, rank, _ = dpstrf(self.K, tol=_RANK * self.lefts[0], lower=1)
        order = order[: len(self.K)] - 1
        L = np.empty((len(self.K), rank))
        L[order] = np.tril(packed)[:, :rank]
        return Factor(L, order[:rank].astype(np.intp))

    def outranks(self, most: int) -> bool:
        """Tell whether the rank of K is clearly above ``most``; that many pivots tell, where a factor takes n^3/3 operations."""
        if "factor" in self.__dict__ or most >= len(self.K):
            return "factor" in self.__dict__ and self.factor.L.shape[1] > most
        self.reach(most)
        return len(self.lefts) > most and self.lefts[most] > self.least

    def sketch(self, left: float, most: int) -> Array | None:
        """Return the first rows of L', (p, n), as few as leave no diagonal value of K - L L' above ``left``; None if p > ``most``."""
        most = min(most, len(self.K))
        self.reach(most)
        p = self._fewest(left)
        return self.rows[:p] if p <= min(most, len(self.lefts) - 1) else None

    def _fewest(self, left: float) -> int:
        """Return how many of the rows found leave no diagonal value above ``left``; one more than there are if they all leave more."""
        return bisect_left(self.lefts, -left, key=neg)

    def reach(self, most: int) -> None:
        """Find rows until there are ``most``, or the rest may be rounding."""
        if most > len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty((most - len(self.rows), len(self.K)))])
        rows, left = self.rows, self.left
        while (p := len(self.lefts) - 1) < most and left[pivot := int(np.argmax(left))] > self.least:
            rows[p] = (self.K[pivot] - rows[:p, pivot] @ rows[:p]) / np.sqrt(left[pivot])
            left -= rows[p] ** 2
            self.chosen.append(pivot)
            self.lefts.append(float(left.max()))

    def cover(self, left: float, most: int) -> int | None:
        """Return how many rows leave no diagonal value above ``left``; None if more than ``most``, or if rounding hides it.

        From a part of ``most`` on the search also ends early, where it would not succeed if the logarithm of the rest kept falling as over
        the last half of the rows: in the end it falls ever more slowly.
        """
        while (now := self.lefts[-1]) > left:
            p = len(self.chosen)
            slow = False
            if p >= max(_BLOCK, most // _LOOK) and left > 0.0:
                slow = (p - p // 2) * np.log(now / left) > (most - p) * np.log(self.lefts[p // 2] / now)
            if p >= most or slow or not self._extend(min(_BLOCK, most - p)):
                return None
        p = self._fewest(left)
        return p if p <= most else None

    def grow(self, most: int) -> int:
        """Find rows by blocks until there are ``most``, or the rest may be rounding; return how many there are, at most ``most``."""
        while len(self.chosen) < most and self._extend(min(_BLOCK, most - len(self.chosen))):
            pass
        return min(most, len(self.chosen))

    def _extend(self, count: int) -> bool:
        """Find at most ``count`` rows by one product of matrices, behind a Cholesky factor with pivoting; False where they may be rounding.

        Candidates are the rows with the largest values left. A candidate waits if the block leaves it less than `_WEAKEST` of the
        largest.
        """
        n, p, top = len(self.K), len(self.chosen), self.lefts[-1]
        if top <= self.least:
            return False
        # NumPy's partition leaves rows in an order of the processor's, and of equal ones takes any
        rows = (np.argsort(self.left, kind="stable") if is_portable() else np.argpartition(self.left, n - count))[n - count :]
        rows = rows[self.left[rows] >= _WEAKEST * top]
        remainder = self.K[rows]
        if p:
            remainder -= self.rows[:p, rows].T @ self.rows[:p]
        packed, order, rank, _ = dpstrf(remainder[:, rows], tol=max(_WEAKEST * top, self.least), lower=1)
        if rank == 0:
            return False
        order = order[:rank] - 1
        if p + rank > len(self.rows):
            self.rows = np.concatenate([self.rows[:p], np.empty((min(max(p, 2 * _BLOCK), n - p), n))])
        new = self.rows[p : p + rank]
        new[:] = solve_triangular(packed[:rank, :rank], remainder[order], lower=True, check_finite=False)
        self.left -= np.einsum("ij,ij->j", new, new)
        self.chosen += rows[order].tolist()
        self.lefts += [top] * (rank - 1) + [float(self.left.max())]
        return True

    def gram(self, p: int) -> Array:
        """Return L'L of the first p rows of L', (p, p); what is known is kept."""
        before = len(self.products)
        if before < p:
            below = self.rows[before:p] @ self.rows[:p].T
            products = np.empty((p, p))
            products[:before, :before], products[before:], products[:before, before:] = self.products, below, below[:, :before].T
            self.products = products
        return self.products[:p, :p]
