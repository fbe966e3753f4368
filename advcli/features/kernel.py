"""Kernel features: f_c(x) = sum_i A_ic K(x_i, x), the function of least norm that the dual point spans (Fathony et al. 2018, eq. 170-173).

    rbf          K(x, z) = exp(-gamma |x - z|^2)
    poly         K(x, z) = (gamma x.z + coef0)^degree
    precomputed  X is the kernel matrix itself

Multiclass features over a kernel: K((x, a), (z, b)) = 1[a = b] K(x, z). The parameters are the coefficients A (n, k) over the n training
rows, with |theta|^2 = <A, K A>. There is no intercept; a constant in the kernel acts as one (coef0 of poly).

K is kept whole where ``memory_mb`` has room for it. Otherwise solvers get blocks of K computed on demand, and the rows used last are kept.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from operator import neg
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack, solve_triangular
from sklearn.metrics.pairwise import euclidean_distances, polynomial_kernel
from sklearn.utils import assert_all_finite
from sklearn.utils.extmath import row_norms

from ..compiled import kernels
from ..errors import ConfigError, DataError
from ..rules import LARGEST, refuse_huge
from .base import Array, Directions, FeatureMap, KernelMap, Labels, Sketch, register
from .linear import LinearFeatures

_RANK_TOLERANCE = 1e-11  # pivots below this share of the largest are rounding
_CLEARLY = 10.0  # times that share: what rounding cannot make of a pivot below it
_DENSE = 0.5  # share of rows with coefficients above which a product with all of K is faster than one with these rows
_BLOCK, _WEAKEST = 64, 0.3  # pivots that are found at a time, and the least of them in units of the largest
_LOOK = 4  # part of the most pivots allowed after which it is asked whether they will do
_PIECE = 256  # kernel rows that are computed by one matrix product
_FEW_COLUMNS = 32  # up to which differences of rows are faster than a product of matrices
_EIGENVALUES = 500  # rows up to which a given matrix is checked by its eigenvalues
_MEBIBYTE = 2.0**20
_MOST_DEGREE = 1000  # a power of values is that many products
_LARGEST = 1e100  # kernel value whose squares, summed over rows, stay finite


class _Store:
    """The kernel values that a bound map keeps: all of them, or the rows used last; and the scores of the last coefficients."""

    def __init__(self, n: int) -> None:
        self.matrix: Array | None = None
        self.rows: Array | None = None  # (capacity, n), allocated on first use
        self.slot = np.full(n, -1, dtype=np.intp)  # slot of row i, -1 = none
        self.owner = np.empty(0, dtype=np.intp)  # row in a slot, -1 = none
        self.used = np.empty(0, dtype=np.int64)  # time of the last use of a slot
        self.clock = 0
        self.theta: Array | None = None
        self.scores: Array | None = None
        self.factor: tuple[Array, Labels] | None = None  # L with K = L L', and its pivot rows
        self.pivots: _Pivots | None = None  # the first rows of L', as many as were asked for
        self.shifted: tuple[float, Any] | None = None  # sigma and the Cholesky factor of K + sigma I


class _Pivots:
    """The first rows of L' in K = L L', by Cholesky with pivoting, and what they leave of K's diagonal."""

    def __init__(self, K: Array, diagonal: Array) -> None:
        self.K, self.left, self.rows = K, diagonal.copy(), np.empty((0, len(K)))
        self.lefts = [float(diagonal.max(initial=0.0))]  # largest value of the diagonal of K - L L' for no rows of L', one, two, ...
        self.least = _CLEARLY * _RANK_TOLERANCE * self.lefts[0]
        self.chosen: list[int] = []  # the pivot of every row
        self.products = np.empty((0, 0))  # L'L of the first rows

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

        The search also ends, from a part of ``most`` on, where that would not do if the logarithm of what is left kept falling as over
        the last half of the rows: in the end it falls ever more slowly.
        """
        while (now := self.lefts[-1]) > left:
            p = len(self.chosen)
            slow = False
            if p >= max(_BLOCK, most // _LOOK) and left > 0.0:
                slow = (p - p // 2) * np.log(now / left) > (most - p) * np.log(self.lefts[p // 2] / now)
            if p >= most or slow or not self._extend(min(_BLOCK, most - p)):
                return None
        p = bisect_left(self.lefts, -left, key=neg)
        return p if p <= most else None

    def grow(self, most: int) -> int:
        """Find rows by blocks until there are ``most``, or the rest may be rounding; return how many there are, at most ``most``."""
        while len(self.chosen) < most and self._extend(min(_BLOCK, most - len(self.chosen))):
            pass
        return min(most, len(self.chosen))

    def _extend(self, count: int) -> bool:
        """Find at most ``count`` rows by one product of matrices, behind a Cholesky factor with pivoting; False where they may be rounding.

        Candidates are the rows with the largest values left. Those that others of the block leave less than `_WEAKEST` of the largest wait.
        """
        n, p, top = len(self.K), len(self.chosen), self.lefts[-1]
        if top <= self.least:
            return False
        rows = np.argpartition(self.left, n - count)[n - count :]
        rows = rows[self.left[rows] >= _WEAKEST * top]
        found = self.K[rows]
        if p:
            found -= self.rows[:p, rows].T @ self.rows[:p]
        packed, order, rank, _ = lapack.dpstrf(found[:, rows], tol=max(_WEAKEST * top, self.least), lower=1)
        if rank == 0:
            return False
        order = order[:rank] - 1
        if p + rank > len(self.rows):
            self.rows = np.concatenate([self.rows[:p], np.empty((min(max(p, 2 * _BLOCK), n - p), n))])
        new = self.rows[p : p + rank]
        new[:] = solve_triangular(packed[:rank, :rank], found[order], lower=True, check_finite=False)
        self.left -= np.einsum("ij,ij->j", new, new)
        self.chosen += rows[order].tolist()
        self.lefts += [top] * (rank - 1) + [float(self.left.max())]
        return True

    def gram(self, p: int) -> Array:
        """Return L'L of the first p rows of L', (p, p); what is known is kept."""
        known = len(self.products)
        if known < p:
            below = self.rows[known:p] @ self.rows[:p].T
            products = np.empty((p, p))
            products[:known, :known], products[known:], products[:known, known:] = self.products, below, below[:, :known].T
            self.products = products
        return self.products[:p, :p]


class KernelFeatures(KernelMap):
    """Scores K A of coefficients A (n_anchors, k); the anchors are the training rows.

    Parameters
    ----------
    X : ndarray (n, d) or csr_array
        The rows.
    n_classes : int
        Number k of scores per row.
    memory_mb : float
        Kernel values that may be kept, in MiB. Least: 1/256 of a MiB per row, where not all fit.
    """

    takes_constant = False

    def __init__(self, X: Any, n_classes: int, *, memory_mb: float = 1000.0) -> None:
        super().__init__(X, n_classes)
        self.memory_mb = _positive("memory_mb", memory_mb)
        self.anchors = self.X
        self._store: _Store | None = None

    # ---- what a kernel is -----------------------------------------------------------------------------------------
    @abstractmethod
    def kernel(self, X: Any, Z: Any) -> Array:
        """Return K(x_a, z_b), shape (rows of X, rows of Z)."""

    @property
    @abstractmethod
    def diagonal(self) -> Array:
        """K(x_i, x_i) of the training rows, shape (n,)."""

    @property
    def options(self) -> dict[str, float]:
        """The options of the kernel."""
        return {}

    def between(self, rows: Labels | slice, columns: Labels | slice) -> Array:
        """Return the kernel between rows of X and anchors, by position."""
        return self.kernel(self.X[rows], self.anchors[columns])

    # ---- binding --------------------------------------------------------------------------------------------------
    def at(self, X: Any) -> KernelFeatures:
        """Return the map at other rows, with the same anchors."""
        other = type(self)(X, self.n_classes, memory_mb=self.memory_mb, **self.options)
        other.anchors = self.anchors
        return other

    def adopt(self, other: FeatureMap | None) -> None:
        """Take the kernel values of a map over the same rows with the same kernel."""
        if (
            isinstance(other, KernelFeatures)
            and type(other) is type(self)
            and other.options == self.options
            and other.memory_mb == self.memory_mb
            and other.n_classes == self.n_classes
            and _equal(other.X, self.X)
        ):
            self._store = other.store

    def support(self, theta: Array) -> tuple[Any, Array]:
        """Return the anchors whose coefficients are not 0, at least one, and these coefficients: what scores at new rows need."""
        rows = np.flatnonzero(theta.any(axis=1))
        rows = rows if len(rows) else np.zeros(1, dtype=np.intp)
        return self.anchors[rows], theta[rows]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the kernel values out of pickles: they follow from the rows."""
        return {**self.__dict__, "_store": None}

    @property
    def store(self) -> _Store:
        """The values kept so far; shared by maps that adopted them."""
        if self._store is None:
            self._store = _Store(self.n_rows)
        return self._store

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (n, k) of the coefficients."""
        return int(self.anchors.shape[0]), self.n_classes

    # ---- memory ---------------------------------------------------------------------------------------------------
    @property
    def whole(self) -> bool:
        """Whether all n^2 values fit, beside a copy of the largest block that solvers gather."""
        return 8.0 * (1.0 + self.gathered**2) * float(self.n_rows) ** 2 <= self.memory_mb * _MEBIBYTE

    @property
    def room_for_factor(self) -> bool:
        """Whether n^2 values of a factor fit beside K."""
        return self.whole and 16.0 * float(self.n_rows) ** 2 <= self.memory_mb * _MEBIBYTE

    @property
    def spare(self) -> float:
        """What ``memory_mb`` leaves."""
        return self.memory_mb * _MEBIBYTE - 8.0 * float(self.n_rows) ** 2

    @property
    def room_for_sketch(self) -> bool:
        """Whether a sketch of K fits beside K and a factor, which may have to take its place."""
        return self.room_for_factor and 24.0 * float(self.n_rows) ** 2 <= self.memory_mb * _MEBIBYTE

    @property
    def largest_block(self) -> int:
        """Most rows m whose (m, m) block may be asked for."""
        if self.whole:
            return self.n_rows
        return min(self.n_rows, int(np.sqrt(self.memory_mb * _MEBIBYTE / 2 / 8)))

    def check_memory(self) -> None:
        """Raise `ConfigError` when the limit cannot hold even the pieces that a pass needs."""
        n = self.n_rows
        least = 2 * 8 * _PIECE * n / _MEBIBYTE
        if not self.whole and self.memory_mb < least:
            every = 8 * (1 + self.gathered**2) * n * n / _MEBIBYTE
            raise ConfigError(
                f"features.memory_mb={self.memory_mb:g} is too small for {n} rows; give at least {np.ceil(least):.0f} "
                f"({np.ceil(every):.0f} keep the whole kernel matrix)"
            )

    @property
    def matrix(self) -> Array:
        """The whole matrix K (n, n), exactly symmetric; computed once."""
        store = self.store
        if store.matrix is None:
            n = self.n_rows
            K = np.empty((n, n))
            for start in range(0, n, _PIECE):
                stop = min(start + _PIECE, n)
                piece = self.between(slice(start, stop), slice(0, stop))
                K[start:stop, :stop] = piece
                K[:start, start:stop] = piece[:, :start].T
                corner = K[start:stop, start:stop]
                corner[:] = 0.5 * (corner + corner.T)
            K[np.diag_indices(n)] = self.diagonal
            store.matrix = K
        return store.matrix

    def handed_over(self) -> Array:
        """Return the whole matrix for the caller to change: the map forgets it, where a copy would take longer than the values."""
        K, self.store.matrix = self.matrix, None
        return K

    @property
    def factor(self) -> tuple[Array, Labels]:
        """L (n, p) and its pivot rows, by Cholesky with pivoting up to the numerical rank (Higham 2002, section 10.3); computed once."""
        store = self.store
        if store.factor is None:
            n, largest = self.n_rows, float(self.diagonal.max(initial=0.0))
            packed, order, rank, _ = lapack.dpstrf(self.matrix, tol=_RANK_TOLERANCE * largest, lower=1)
            order = order[:n] - 1
            L = np.empty((n, rank))
            L[order] = np.tril(packed)[:, :rank]
            store.factor = (L, order[:rank].astype(np.intp))
        return store.factor

    def outranks(self, most: int) -> bool:
        """Tell whether the rank of K is clearly above ``most``; ``most`` pivots tell, where a whole factor takes n^3/3 operations."""
        store, n = self.store, self.n_rows
        if store.factor is not None or most >= n:
            return store.factor is not None and store.factor[0].shape[1] > most
        pivots = self._pivots(most)
        return len(pivots.lefts) > most and pivots.lefts[most] > pivots.least

    def sketch(self, left: float, most: int) -> Array | None:
        """Return the first rows of L', (p, n), as few as leave no diagonal value of K - L L' above ``left``; None if p > ``most``."""
        pivots = self._pivots(min(most, self.n_rows))
        p = bisect_left(pivots.lefts, -left, key=neg)
        return pivots.rows[:p] if p <= min(most, len(pivots.lefts) - 1) else None

    def _pivots(self, most: int) -> _Pivots:
        """Return at least ``most`` rows of L', or as many as are clearly above rounding."""
        store = self.store
        if store.pivots is None:
            store.pivots = _Pivots(self.matrix, self.diagonal)
        store.pivots.reach(most)
        return store.pivots

    def pivots_for(self, left: float, most: int) -> int | None:
        """Return how many pivots leave no diagonal value above ``left``; None if more than ``most``, or without memory for their rows."""
        return self._pivots(0).cover(left, min(most, self.n_rows)) if self.room_for_sketch else None

    def sketched(self, p: int) -> Sketch:
        """Return the sketch by p pivots, or by as many as are clearly above rounding."""
        found = self._pivots(0)
        p = found.grow(min(p, self.n_rows))
        rows = found.rows[:p]
        left = np.maximum(self.diagonal - np.einsum("ij,ij->j", rows, rows), 0.0)
        return Sketch(_SketchedFeatures(rows, found.gram(p), self.n_classes), rows, np.array(found.chosen[:p], dtype=np.intp), left)

    def unsketched(self, theta: Array, sketch: Sketch) -> Array:
        """Return A = L1^{-T} L'A' on the pivot rows, where L1 are the rows of L at the pivots: K A = L L1' A = L L'A'."""
        coefficients = np.zeros(self.shape)
        upper = sketch.rows[:, sketch.pivots]
        coefficients[sketch.pivots] = solve_triangular(upper, sketch.rows @ theta, lower=False, check_finite=False)
        return coefficients

    def unseen(self, theta: Array, sketch: Sketch) -> float:
        """Return the sum over the diagonal of <A, (K - L L') A>."""
        return float(sketch.left @ np.einsum("ij,ij->i", theta, theta))

    def explicit(self) -> FeatureMap:
        """Return linear features on the rows of L."""
        return LinearFeatures(self.factor[0], self.n_classes)

    def to_explicit(self, theta: Array) -> Array:
        """Return L'A."""
        return np.ascontiguousarray(self.factor[0].T @ theta)

    def from_explicit(self, theta: Array) -> Array:
        """Return A = L1^{-T} Theta on the pivot rows, where L1 are the rows of the pivots: K A = L L1' A = L Theta."""
        L, pivots = self.factor
        coefficients = np.zeros(self.shape)
        coefficients[pivots] = solve_triangular(L[pivots], theta, trans="T", lower=True, check_finite=False)
        return coefficients

    def proximal(self, G: Array, sigma: float) -> tuple[Array, Array]:
        """Return X = sigma (K + sigma I)^{-1} G and its coefficients -X."""
        store = self.store
        if store.shifted is None or store.shifted[0] != sigma:
            shifted = np.array(self.matrix, order="F")
            shifted[np.diag_indices_from(shifted)] += sigma
            try:
                store.shifted = sigma, cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                raise _indefinite(self.name, f"an eigenvalue is below -{sigma:.3g}") from None
        X = cho_solve(store.shifted[1], sigma * np.asfortranarray(G), overwrite_b=True, check_finite=False)
        return X, -X

    def block(self, rows: Labels) -> Array:
        """Return K among the given training rows, (m, m), C-contiguous; at most `largest_block` rows."""
        rows = np.ascontiguousarray(rows)
        m = len(rows)
        if self.whole:
            if m == self.n_rows:
                return self.matrix
            out = np.empty((m, m))
            kernels.kernel_dual.gather(self.matrix, rows, rows, out)
            return out
        out = np.empty((m, m))
        store = self.store
        held = store.slot[rows] >= 0
        if held.any():
            assert store.rows is not None
            at = np.flatnonzero(held)
            part = np.empty((len(at), m))
            kernels.kernel_dual.gather(store.rows, store.slot[rows[at]], rows, part)
            out[at] = part
        missing = np.flatnonzero(~held)
        for start in range(0, len(missing), _PIECE):
            at = missing[start : start + _PIECE]
            out[at] = self.between(rows[at], rows)
        out[np.diag_indices(m)] = self.diagonal[rows]
        return out

    def among(self, rows: Labels) -> PrecomputedFeatures:
        """Return the kernel among some of the training rows, as the map of a fit to these; at most `largest_block` rows."""
        part = PrecomputedFeatures(self.block(rows), self.n_classes)
        part.store.matrix = part.X  # a block of a kernel matrix needs no check
        return part

    def accumulate(self, F: Array, rows: Labels, A: Array) -> None:
        """Add K[:, rows] A to the scores F of all training rows, which are held class by class, (k, n)."""
        A = np.ascontiguousarray(A)
        if self.whole:
            kernels.kernel_dual.accumulate(self.matrix, rows, A, F)
            return
        store, n = self.store, self.n_rows
        if store.rows is None:
            capacity = max(0, int(self.memory_mb * _MEBIBYTE / 2 / 8 / n) - _PIECE)
            store.rows = np.empty((capacity, n))
            store.owner = np.full(capacity, -1, dtype=np.intp)
            store.used = np.full(capacity, -1, dtype=np.int64)
        store.clock += 1
        held = np.flatnonzero(store.slot[rows] >= 0)
        slots = store.slot[rows[held]]
        store.used[slots] = store.clock
        kernels.kernel_dual.accumulate(store.rows, slots, A[held], F)
        missing = np.flatnonzero(store.slot[rows] < 0)
        # slots of rows that this call does not need, longest unused first
        free = np.flatnonzero(store.used < store.clock)
        free = free[np.argsort(store.used[free], kind="stable")]
        for start in range(0, len(missing), _PIECE):
            at = missing[start : start + _PIECE]
            piece = np.ascontiguousarray(self.between(rows[at], slice(0, n)))
            piece[np.arange(len(at)), rows[at]] = self.diagonal[rows[at]]
            kernels.kernel_dual.accumulate(piece, np.arange(len(at)), A[at], F)
            slots, free = free[: len(at)], free[len(at) :]
            kept = rows[at[: len(slots)]]
            store.slot[store.owner[slots][store.owner[slots] >= 0]] = -1
            store.rows[slots] = piece[: len(slots)]
            store.owner[slots], store.slot[kept], store.used[slots] = kept, slots, store.clock

    # ---- the four operations --------------------------------------------------------------------------------------
    def scores(self, theta: Array) -> Array:
        """Return K(X, anchors) A, shape (n, k); rows of zeros in A cost nothing."""
        support = np.flatnonzero(theta.any(axis=1))
        if self.X is not self.anchors:
            F = np.zeros((self.n_rows, self.n_classes))
            # a function without support is 0, and scikit-learn has no distances to no rows
            for start in range(0, self.n_rows if len(support) else 0, _PIECE):
                rows = slice(start, min(start + _PIECE, self.n_rows))
                F[rows] = self.between(rows, support) @ theta[support]
            return F
        store = self.store
        if store.theta is None or store.scores is None or not np.array_equal(store.theta, theta):
            if self.whole and len(support) > _DENSE * self.n_rows:
                by_class = np.ascontiguousarray(theta.T) @ self.matrix
            else:
                by_class = np.zeros((self.n_classes, self.n_rows))
                self.accumulate(by_class, support, theta[support])
            store.theta, store.scores = theta.copy(), np.ascontiguousarray(by_class.T)
            store.scores.setflags(write=False)
        return store.scores

    def adjoint(self, R: Array) -> Array:
        """Return the coefficients of sum_i phi(x_i) r_i', which are R itself; training rows only."""
        return R

    def square_norm(self, theta: Array) -> float:
        """Return <A, K A>."""
        return self.check_square(float(np.vdot(theta, self.scores(theta))), theta)

    def check_square(self, square: float, theta: Array) -> float:
        """Return |theta|^2, at least 0; `DataError` when it is negative beyond rounding."""
        if square < 0.0:
            scale = float(np.abs(theta).sum(axis=1) @ np.sqrt(np.maximum(self.diagonal, 0.0))) ** 2
            if square < -1e-10 * scale:
                raise _indefinite(self.name, f"a function has the squared norm {square:.3g}")
        return max(square, 0.0)

    def directions(self, B: Array, owner: Labels) -> Directions:
        """Kernel maps have no Jacobian rows to hand out."""
        raise NotImplementedError("kernel features have no explicit parameters")


class _SketchedFeatures(KernelFeatures):
    """The kernel L L': inner products of rows of L, the rows of X.

    Parameters
    ----------
    rows : ndarray (p, n)
        L'.
    gram : ndarray (p, p)
        L'L.
    n_classes : int
        Number k of scores per row.
    """

    name = "sketched"

    def __init__(self, rows: Array, gram: Array, n_classes: int) -> None:
        super().__init__(rows.T, n_classes)
        self.rows, self.gram = rows, gram

    def kernel(self, X: Any, Z: Any) -> Array:
        """Return inner products."""
        return np.asarray(X @ Z.T)

    @property
    def diagonal(self) -> Array:
        """Squared rows of L."""
        return self.squares

    def scores(self, theta: Array) -> Array:
        """Return L L'A."""
        return np.ascontiguousarray(((theta.T @ self.rows.T) @ self.rows).T)

    def square_norm(self, theta: Array) -> float:
        """Return |L'A|^2."""
        along = theta.T @ self.rows.T
        return float(np.vdot(along, along))

    def proximal(self, G: Array, sigma: float) -> tuple[Array, Array]:
        """Return X = sigma (L L' + sigma I)^{-1} G = G - L (L'L + sigma I)^{-1} L'G, by Woodbury's formula, and its coefficients -X."""
        store = self.store
        if store.shifted is None or store.shifted[0] != sigma:
            shifted = np.array(self.gram, order="F")
            shifted[np.diag_indices_from(shifted)] += sigma
            store.shifted = sigma, cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        # products class by class: twice as fast as those of narrow columns
        along = np.ascontiguousarray(G.T) @ self.rows.T
        along = cho_solve(store.shifted[1], along.T, overwrite_b=True, check_finite=False)
        X = G - (along.T @ self.rows).T
        return X, -X


def _squared_distances(X: Any, Z: Any) -> Array:
    """Return |x - z|^2 of rows (n, d) and (m, d), shape (n, m)."""
    if hasattr(X, "tocsr") or hasattr(Z, "tocsr"):
        return np.asarray(euclidean_distances(X, Z, squared=True))
    # the sum of scikit-learn's euclidean_distances, bit for bit, without validation and copies of valid rows
    found = X @ Z.T
    found *= -2.0
    found += np.einsum("ij,ij->i", X, X)[:, None]
    found += np.einsum("ij,ij->i", Z, Z)
    return np.asarray(np.maximum(found, 0.0, out=found))


@register("rbf")
class GaussianFeatures(KernelFeatures):
    """Gaussian kernel exp(-gamma |x - z|^2), plus a constant that stands for an intercept.

    Parameters
    ----------
    gamma : float or None
        Inverse squared width, above 0. None: 1 / d.
    constant : float
        At least 0; learners whose scores need a level of their own set it to 1.
    """

    hyper = ("gamma",)

    def __init__(self, X: Any, n_classes: int, *, gamma: float | None = None, constant: float = 0.0, memory_mb: float = 1000.0) -> None:
        super().__init__(X, n_classes, memory_mb=memory_mb)
        self.gamma = 1.0 / X.shape[1] if gamma is None else _positive("gamma", gamma)
        self.constant = _positive("constant", constant) if constant else 0.0

    @property
    def options(self) -> dict[str, float]:
        """The width and the constant."""
        return {"gamma": self.gamma, "constant": self.constant}

    def kernel(self, X: Any, Z: Any) -> Array:
        """Return exp(-gamma |x - z|^2) plus the constant."""
        K = _squared_distances(X, Z)
        K *= -self.gamma
        np.exp(K, out=K)
        if self.constant:
            K += self.constant
        return K

    @property
    def matrix(self) -> Array:
        """The whole matrix K (n, n), exactly symmetric; computed once, of few dense columns by the compiled loop."""
        store = self.store
        # without vectors the loop's exponential is slower than NumPy's
        fast = kernels.level != "scalar" and self.X.shape[1] <= _FEW_COLUMNS and not hasattr(self.X, "tocsr")
        if store.matrix is None and fast:
            K = np.empty((self.n_rows, self.n_rows))
            kernels.gaussian.matrix(np.ascontiguousarray(self.X, dtype=np.float64), self.gamma, self.constant, K)
            store.matrix = K
        return super().matrix

    @property
    def diagonal(self) -> Array:
        """One plus the constant."""
        return np.full(self.n_rows, 1.0 + self.constant)


@register("poly")
class PolynomialFeatures(KernelFeatures):
    """Polynomial kernel (gamma x.z + coef0)^degree.

    Parameters
    ----------
    degree : int
        From 1 to 1000.
    gamma : float or None
        Scale of the inner product, above 0. None: 1 / d.
    coef0 : float
        Weight of the lower degrees and of the constant, at least 0 (below 0 the kernel is not positive semi-definite).
    """

    def __init__(
        self, X: Any, n_classes: int, *, degree: int = 3, gamma: float | None = None, coef0: float = 1.0, memory_mb: float = 1000.0
    ) -> None:
        super().__init__(X, n_classes, memory_mb=memory_mb)
        if (
            isinstance(degree, bool)
            or not isinstance(degree, (int, float, np.number))
            or not 1 <= degree <= _MOST_DEGREE
            or degree != int(degree)
        ):
            raise ConfigError(f"features.degree={degree} is not valid; give a whole number from 1 to {_MOST_DEGREE}")
        if not (isinstance(coef0, (int, float, np.number)) and 0 <= coef0 < np.inf):
            raise ConfigError(
                f"features.coef0={coef0} is not valid; give a number of at least 0 (below 0 the kernel is not positive semi-definite)"
            )
        self.degree, self.coef0 = int(degree), float(coef0)
        self.gamma = 1.0 / X.shape[1] if gamma is None else _positive("gamma", gamma)
        with np.errstate(over="ignore"):
            largest = float(self.diagonal.max(initial=0.0))
        if not largest <= _LARGEST:
            raise ConfigError(f"features.degree={degree} makes kernel values up to {largest:.0e}; give a smaller degree or gamma")

    @property
    def options(self) -> dict[str, float]:
        """Degree, scale and constant."""
        return {"degree": self.degree, "gamma": self.gamma, "coef0": self.coef0}

    def kernel(self, X: Any, Z: Any) -> Array:
        """Return (gamma x.z + coef0)^degree."""
        K = np.asarray(polynomial_kernel(X, Z, degree=1, gamma=self.gamma, coef0=self.coef0))
        if self.degree == 1:
            return K
        power = K.copy()
        for _ in range(self.degree - 1):  # repeated products: many times faster than pow for the degrees in use
            power *= K
        return power

    @property
    def diagonal(self) -> Array:
        """(gamma |x_i|^2 + coef0)^degree."""
        squares = row_norms(self.X, squared=True)
        return (self.gamma * squares + self.coef0) ** self.degree


@register("precomputed")
class PrecomputedFeatures(KernelFeatures):
    """Any kernel, given as a matrix: (n, n) between the training rows at `fit`, (n_new, n) between new and training rows afterwards.

    A matrix that is not symmetric or not positive semi-definite is refused; up to 500 rows by the eigenvalues, beyond by the 2 x 2 minors
    and by the norms that a fit meets.
    """

    pairwise = True
    checks_rows = True

    def check_rows(self) -> None:
        """Raise for a matrix that is no kernel matrix, or holds huge numbers."""
        K = self.matrix
        if not self.diagonal.max(initial=0.0) <= LARGEST:  # no other value is above the largest of the diagonal
            refuse_huge(K, None, "X")

    @property
    def whole(self) -> bool:
        """The matrix is in memory already."""
        return True

    @property
    def room_for_factor(self) -> bool:
        """Always: memory for a given matrix has no limit."""
        return True

    @property
    def spare(self) -> float:
        """Half of what the given matrix takes: all of it in single precision."""
        return 4.0 * float(self.n_rows) ** 2

    @property
    def room_for_sketch(self) -> bool:
        """Always, for the same reason."""
        return True

    @property
    def diagonal(self) -> Array:
        """The diagonal of the given matrix."""
        return np.ascontiguousarray(self.X.diagonal())

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (n, k) of the coefficients."""
        return int(self.X.shape[1]), self.n_classes

    def support(self, theta: Array) -> tuple[Any, Array]:
        """Return no anchors and all coefficients: new rows of the kernel matrix have a value for every training row."""
        return np.empty((0, len(theta))), theta

    def kernel(self, X: Any, Z: Any) -> Array:
        """Raise `NotImplementedError`: a given matrix has no formula."""
        raise NotImplementedError("a given kernel matrix holds all the values there are")

    def between(self, rows: Labels | slice, columns: Labels | slice) -> Array:
        """Return the given values."""
        return _dense(self.X[rows])[:, columns]

    @property
    def matrix(self) -> Array:
        """The given matrix, checked once."""
        store = self.store
        if store.matrix is None:
            K = np.ascontiguousarray(_dense(self.X), dtype=np.float64)
            _check_kernel_matrix(K)
            store.matrix = K
        return store.matrix

    def handed_over(self) -> Array:
        """Return a copy: the matrix is the user's."""
        return self.matrix.copy()


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
        raise ConfigError(f"features.{name}={value} is not valid; give a finite number above 0")
    return float(value)


def _dense(X: Any) -> Array:
    return X.toarray() if hasattr(X, "toarray") else X


def _equal(X: Any, Z: Any) -> bool:
    if X is Z:
        return True
    if hasattr(X, "tocsr") != hasattr(Z, "tocsr") or X.shape != Z.shape:
        return False
    if hasattr(X, "tocsr"):
        return X.nnz == Z.nnz and all(np.array_equal(getattr(X, part), getattr(Z, part)) for part in ("indptr", "indices", "data"))
    return np.array_equal(X, Z)


def _indefinite(name: str, why: str) -> DataError:
    return DataError(f"the kernel matrix of features={name} is not positive semi-definite ({why}); give a kernel, or add to its diagonal")


def _check_kernel_matrix(K: Array) -> None:
    """Raise `DataError` for a matrix that is no kernel matrix, as far as one read tells, or the eigenvalues of a small one."""
    if K.shape[0] != K.shape[1]:
        raise DataError(f"features=precomputed needs a square kernel matrix of the training rows, got {K.shape[0]} x {K.shape[1]}")
    n = len(K)
    diagonal = K.diagonal()
    if diagonal.min(initial=0.0) < 0:
        raise _indefinite("precomputed", f"the diagonal holds {diagonal.min():.3g}")
    root = np.sqrt(diagonal)
    largest = float(diagonal.max(initial=0.0))
    if not _seems_kernel_matrix(K, root, largest):
        assert_all_finite(K, input_name="X")
        _refuse_entries(K, root, largest)
    if n <= _EIGENVALUES:
        least = float(np.linalg.eigvalsh(K)[0])
        if least < -1e-8 * max(largest, 1e-300) * n:
            raise _indefinite("precomputed", f"its least eigenvalue is {least:.3g}")


def _seems_kernel_matrix(K: Array, root: Array, largest: float) -> bool:
    """Tell from one read, in the order of memory, whether K is symmetric, finite and keeps |K_ij| <= sqrt(K_ii K_jj).

    K v = K'v holds for a random v if K is symmetric, and but by chance only then (in the manner of Freivalds 1977). Numbers that are not
    finite show in these products.
    """
    n = len(K)
    random = np.random.default_rng(n)
    v = random.uniform(1.0, 2.0, size=n) * random.choice([-1.0, 1.0], size=n)
    u, w = np.empty(n), np.empty(n)
    excess = kernels.kernel_dual.examine(K, v, np.ascontiguousarray(root), u, w)
    with np.errstate(invalid="ignore"):
        return bool(np.abs(u - w).max() <= 1e-9 * largest and excess <= 1e-8 * largest)


def _refuse_entries(K: Array, root: Array, largest: float) -> None:
    """Raise `DataError` for the first pair of entries, tile by tile, that no kernel matrix has beyond rounding."""
    n = len(K)
    # tiles that stay in the cache, each beside its mirror image
    for start in range(0, n, _PIECE):
        rows = slice(start, min(start + _PIECE, n))
        for first in range(start, n, _PIECE):
            columns = slice(first, min(first + _PIECE, n))
            tile = K[rows, columns]
            skew = tile - K[columns, rows].T
            high = max(float(tile.max()), -float(tile.min()))
            if max(skew.max(), -skew.min()) > 1e-8 * max(largest, high):
                i, j = np.unravel_index(int(np.abs(skew).argmax()), skew.shape)
                raise DataError(
                    f"features=precomputed needs a symmetric kernel matrix, but K[{start + i}, {first + j}] = {tile[i, j]:.6g} and "
                    f"K[{first + j}, {start + i}] = {K[first + j, start + i]:.6g}; symmetrise it with (K + K') / 2"
                )
            if high <= root[rows].min() * root[columns].min():
                continue
            bound = np.multiply.outer(root[rows], root[columns])
            if not (tile - bound).max() <= 1e-8 * largest or not (tile + bound).min() >= -1e-8 * largest:
                i, j = np.unravel_index(int((np.abs(tile) - bound).argmax()), tile.shape)
                raise _indefinite(
                    "precomputed", f"K[{start + i}, {first + j}]^2 exceeds K[{start + i}, {start + i}] K[{first + j}, {first + j}]"
                )
