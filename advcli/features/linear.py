"""Multiclass linear features: f = Theta' x, one weight vector per class (Fathony et al. 2018, eq. 70)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import dense, is_sparse
from ..core.compiled import CompiledRows, compiled_rows, kernels
from ..core.linalg import dsyrk, has_few_columns, product, transposed_product
from ..core.threads import rows_by, shared
from ..core.typing import Array, Labels, Layout
from .base import Directions, ExplicitMap, register

MAX_UPDATES = 30  # of a sum over rows before the next full sum, so that rounding errors stay small
_ROWS = 4096  # rows of a sparse product that are added up before the next
_SMALL = 2**16  # numbers in Z up to which Z is written out
_PAIR = 1e5  # multiply-adds that take as long as the call for a pair of classes
# Products of a part: where a matrix product is small, BLAS takes other loops, whose sums have other bits.
_PRODUCTS = 2**23
_MANY = 4096  # examples from which equal faces are looked for
_ODD = np.uint64(0x9E3779B97F4A7C15)  # whose multiples mix the bits of a face (Steele, Lea & Flood 2014)
_SCORES = 2**18  # scores of a part of sparse rows
_TILED = 64  # classes from which scores of sparse rows are taken by tiles of classes
_FEATURES = 24  # features of a part of X'R
_MOST_PARTS = 8  # of X'R: each reads R


def most_changes(updates: int, rows: int) -> int:
    """Return how many rows may leave or enter a sum over rows for an update to be cheaper than a full sum; -1 where one is due."""
    return rows // 2 if updates < MAX_UPDATES else -1


def add_squares(total: Array, Z: Array, sign: float) -> None:
    """Add sign Z'Z to the lower triangle of ``total``, in place; its columns are contiguous, the rows of Z too."""
    if len(Z):
        dsyrk(sign, Z.T, beta=1.0, c=total, lower=1, overwrite_c=1)


class _LinearDirections(Directions):
    """Rows b (x) x: Z Z' = (B B') o (X X')."""

    def __init__(self, features: LinearFeatures, B: Array, owner: Labels) -> None:
        super().__init__(B, np.ascontiguousarray(owner))
        self.features = features
        self.shape = features.shape

    @property
    def low_rank(self) -> bool:
        return len(self.owner) <= self.shape[0] * (self.shape[1] - 1)

    @cached_property
    def X(self) -> Array:
        return np.asarray(dense(self.features.X[self.owner]))

    def forward(self, theta: Array) -> Array:
        return np.einsum("mk,mk->m", product(self.X, theta), self.B)

    def backward(self, v: Array) -> Array:
        return transposed_product(self.X, v[:, None] * self.B)

    def gram(self) -> Array:
        return (self.X @ self.X.T) * (self.B @ self.B.T)

    def columns(self, chosen: Labels) -> Array:
        feature, label = np.divmod(chosen, self.shape[1])
        rows = self.features.X[self.owner][:, feature]
        return np.asarray(dense(rows) * self.B[:, label])

    def hessian(self, weight: Array, factor: float = 1.0) -> Array:
        H = self.moments(self.B, weight).T * factor  # its columns contiguous
        H.flat[:: len(H) + 1] += 1.0
        return H

    def moments(self, B: Array, weight: Array) -> Array:
        """Return Z' diag(weight[owner]) Z for the rows x (x) b with b of B, its upper triangle at least."""
        d, k = self.shape[0], B.shape[1]
        size = d * k
        if len(self.owner) * size <= _SMALL:
            total = np.zeros((size, size))
            kernels.newton_faces.follow(*self.features.rows, weight, self.owner[:0], B[:0], self.owner, B, total, len(B))
            return total
        first = np.diff(self.owner, prepend=-1) > 0  # owners ascend
        slot, examples = np.cumsum(first) - 1, self.owner[first]
        if len(examples) >= _MANY:
            chosen, face = _equal_faces(B, first)
            if len(chosen) * d <= len(examples):  # the sums of outer products are no larger than X
                return self._by_faces(B, weight, slot, examples, chosen, face)
        # by pairs of classes, over the examples that move both
        start, moved, products = kernels.newton_faces.pairs(B, slot, weight[examples])
        if is_sparse(self.features.X):
            X, examples = dense(self.features.X[examples]), np.arange(len(examples))
        else:
            X = self.features.rows.values.reshape(-1, d)
        H = np.zeros((d, k, d, k))

        def write(pair: tuple[int, int]) -> None:
            a, b = pair
            first, last = start[a * (a + 1) // 2 + b :][:2]
            if first < last:
                sums = np.zeros((d, d))
                kernels.grams.upper(X, examples[moved[first:last]], products[first:last], sums)
                H[:, a, :, b] = H[:, b, :, a] = sums

        shared(write, [(a, b) for a in range(k) for b in range(a + 1)], self.threads)
        return H.reshape(size, size)

    def _by_faces(self, B: Array, weight: Array, slot: Labels, examples: Labels, chosen: Labels, face: Labels) -> Array:
        """Return the moments as a sum over faces of M (x) X'X: M from one example of the face, X the rows of all."""
        d, k = self.shape[0], B.shape[1]
        kept = np.isin(slot, chosen)
        M = np.zeros((len(chosen), k, k))
        kernels.newton_faces.projectors(B[kept], np.searchsorted(chosen, slot[kept]), M)
        order = np.argsort(face, kind="stable")
        rows = examples[order]
        X = dense(self.features.X[rows]) * np.sqrt(weight[rows])[:, None]
        cuts, sums = np.searchsorted(face[order], np.arange(len(chosen) + 1)), np.empty((len(chosen), d, d))

        def add(part: int) -> None:
            Z = X[cuts[part] : cuts[part + 1]]
            np.matmul(Z.T, Z, out=sums[part])

        shared(add, range(len(chosen)), self.threads)
        total = M.reshape(-1, k * k).T @ sums.reshape(-1, d * d)
        return np.ascontiguousarray(total.reshape(k, k, d, d).transpose(2, 0, 3, 1)).reshape(d * k, d * k)


def _equal_faces(B: Array, first: NDArray[np.bool_]) -> tuple[Labels, Labels]:
    """Return the first example of each face among those whose rows of B begin where ``first`` says, ascending, and every example's face.

    Faces are told apart by 64 bits of their rows: where two shared them, a Hessian would be wrong and a step shorter, no answer.
    """
    bits = np.ascontiguousarray(B).view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = bits ^ (bits >> np.uint64(29))
        odd = _ODD * (2 * np.arange(B.shape[1], dtype=np.uint64) + np.uint64(1))
        row = (mixed * odd).sum(axis=1)
        row = (row ^ (row >> np.uint64(32))) * _ODD
        keys = np.add.reduceat(row ^ (row >> np.uint64(29)), np.flatnonzero(first))
    _, chosen, face = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(chosen)
    return chosen[order], np.argsort(order)[face]


class NewtonSystem:
    """(I + factor Z' diag(weight[owner]) Z) D = -gradient for rows Z = b (x) x whose b sum to zero, in one class less.

    Z' diag(weight) Z is updated by the examples whose b have changed since the system before (docs/notes/large-c.md, section 4);
    threads share its full sums.
    """

    def __init__(self, features: LinearFeatures, weight: Array, threads: int) -> None:
        self.features, self.weight, self.threads = features, weight, threads
        d, k = features.shape
        self.size = d * (k - 1)
        self.B, self.owner = np.empty((0, k)), np.empty(0, dtype=np.intp)
        self.moments: Array | None = None  # without the last class, the upper triangle
        self.updates = 0  # of `moments` since the last full sum

    def most_written(self, rows: int) -> int:
        """Return how many rows an update may write out to be cheaper than a full sum by pairs of classes; -1 where that is due."""
        d, k = self.features.shape
        full = 4.0 * rows * d * d + _PAIR * k * k / 2.0
        return min(most_changes(self.updates, rows), int(full / (0.5 * self.size * self.size)))

    def direction(self, B: Array, owner: Labels, factor: float, gradient: Array) -> Array | None:
        """Return D (d, k) for b of B (m, k), examples ascending; None where rounding has made the system indefinite."""
        owner = np.ascontiguousarray(owner)
        if self.moments is not None and kernels.newton_faces.follow(
            *self.features.rows, self.weight, self.owner, self.B, owner, B, self.moments, self.most_written(len(owner))
        ):
            self.updates += 1
        else:
            directions = _LinearDirections(self.features, B, owner)
            directions.threads, self.updates = self.threads, 0
            self.moments = directions.moments(np.ascontiguousarray(B[:, :-1]), self.weight)
        self.B, self.owner = B, owner
        D = np.empty(gradient.shape)
        if kernels.newton_faces.direction(self.moments, factor, gradient, D):
            return D
        self.moments = None  # the rounding of many updates may be the cause: the next sum is made anew
        return None


def _tiles(k: int, parts: int) -> list[int]:
    """Return where the parts of k classes begin, whole tiles of the compiled loops each, and k."""
    return [_TILED * (-(-k // _TILED) * part // parts) for part in range(parts)] + [k]


def _tiled(X: Any, theta: Array, threads: int) -> Array:
    """Return the scores of sparse rows X (n, d) at theta (d, k) by the compiled loop over tiles of classes; threads share the classes."""
    values, columns, start, n, d = compiled_rows(X)
    theta = np.ascontiguousarray(theta, dtype=np.float64)
    F, k = np.empty((n, theta.shape[1])), theta.shape[1]
    cuts = _tiles(k, threads)

    def write(part: int) -> None:
        kernels.scores.sparse(values, columns, start, n, d, theta, F, cuts[part], cuts[part + 1])

    shared(write, range(threads), threads)
    return F


@register("linear", "multiclass")
class LinearFeatures(ExplicitMap):
    """Scores F = X Theta with Theta of shape (d, k); every weight is regularised, a constant column of X like any other.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.features.linear import LinearFeatures
    >>> features = LinearFeatures(np.array([[1.0, 2.0], [3.0, 4.0]]), 3)
    >>> features.scores(np.zeros((2, 3))).shape
    (2, 3)
    """

    multiclass_linear = True

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (d, k) of the parameters."""
        return int(self.X.shape[1]), self.n_classes

    @cached_property
    def rows(self) -> CompiledRows:
        """X as the compiled loops take it."""
        return compiled_rows(self.X)

    @cached_property
    def _largest(self) -> float:
        """The largest absolute value of X; 0 of rows that are read in blocks."""
        values = self.X.data if is_sparse(self.X) else self.X
        return float(max(values.max(), -values.min())) if isinstance(values, np.ndarray) and values.size else 0.0

    def score_rounding(self, theta: Array) -> float:
        """Return d eps max |X| max_j |theta_j|_1, the bound of sums of d rounded products."""
        return len(theta) * float(np.finfo(np.float64).eps) * self._largest * float(np.abs(theta).sum(axis=0).max())

    def scores(self, theta: Array) -> Array:
        """Return X Theta, shape (n, k)."""
        return self.shared_scores(theta, 1)

    def shared_scores(self, theta: Array, threads: int, order: Layout = "C") -> Array:
        """Return X Theta, shape (n, k): dense rows part by part, sparse rows by tiles of classes where these are many."""
        X, (n, k) = self.X, (self.n_rows, theta.shape[1])
        if is_sparse(X):
            if k >= _TILED and n:
                return np.asarray(_tiled(X, theta, threads), order=order)
            parts = rows_by(n, _SCORES // k) if threads > 1 else []
        else:
            parts = rows_by(n, _PRODUCTS // theta.size) if n * theta.size > _PRODUCTS else []
        F = np.empty((n, k), order=order)
        if len(parts) < 2:
            return product(X, theta, F) if isinstance(X, np.ndarray) else np.asarray(X @ theta, order=order)

        def write(rows: slice) -> None:
            if isinstance(X, np.ndarray):
                product(X[rows], theta, F[rows])
            else:
                F[rows] = X[rows] @ theta

        shared(write, parts, threads)
        return F

    def adjoint(self, R: Any) -> Array:
        """Return X'R, shape (d, k), for an array R, or for a CSR matrix where X is one."""
        return self.shared_adjoint(R, 1)

    def shared_adjoint(self, R: Any, threads: int) -> Array:
        """Return X'R: dense X by parts of its columns, sparse X by parts of the classes, or of the rows where R is sparse too."""
        X, (d, k) = self.X, self.shape
        if not isinstance(R, np.ndarray):
            return self._sparse_adjoint(R, threads)
        if is_sparse(X):
            if not 1 < threads <= k:
                return np.ascontiguousarray(X.T @ R)
            cuts = [k * part // threads for part in range(threads + 1)]
            return np.hstack(shared(lambda part: X.T @ R[:, cuts[part] : cuts[part + 1]], range(threads), threads))
        each = self.n_rows * k
        most = threads if has_few_columns(X, R) else _MOST_PARTS
        least = max(_FEATURES, -(-d // most), -(-_PRODUCTS // max(each, 1)))
        if each * d <= _PRODUCTS or d < 2 * least:
            return transposed_product(X, R)
        cuts = [*range(0, d - least + 1, least), d]
        return np.vstack(shared(lambda part: transposed_product(X[:, cuts[part] : cuts[part + 1]], R), range(len(cuts) - 1), threads))

    def _sparse_adjoint(self, R: Any, threads: int) -> Array:
        """Return X'R for CSR matrices X and R: sums over parts of the rows, added up in their order; threads share the classes."""
        rows, point = compiled_rows(self.X), compiled_rows(R)
        total = np.zeros(self.shape)
        cuts = _tiles(self.shape[1], threads)

        def add(part: int) -> None:
            first, last = cuts[part], cuts[part + 1]
            kernels.scores.adjoint(*rows, point.values, point.columns, point.start, self.n_classes, _ROWS, total, first, last)

        shared(add, range(threads), threads)
        return total

    def squared_adjoint(self, R: Array) -> Array:
        """Return (X o X)'R, shape (d, k)."""
        return np.ascontiguousarray(self.squared_rows.T @ R)

    def largest(self) -> Array:
        """Return max_i |x_i|, repeated for every class, shape (d, k)."""
        return np.repeat(self.largest_values[:, None], self.n_classes, axis=1)

    def directions(self, B: Array, owner: Labels) -> Directions:
        """Return the rows b (x) x_owner."""
        return _LinearDirections(self, B, owner)
