"""Kernel features: f_c(x) = sum_i A_ic K(x_i, x), the function of least norm that the dual point spans (Fathony et al. 2018, eq. 170-173).

    rbf          K(x, z) = exp(-gamma |x - z|^2)
    poly         K(x, z) = (gamma x.z + coef0)^degree
    precomputed  X is the kernel matrix itself

Multiclass features over a kernel: K((x, a), (z, b)) = 1[a = b] K(x, z). The parameters are the coefficients A (n, k) over the n training
rows, with |theta|^2 = <A, K A>. An intercept is missing; a constant in the kernel acts as one (coef0 of poly).

K is kept whole where ``memory_mb`` has room for it. Otherwise solvers get blocks of K computed on demand, and the rows used last are kept.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from ...core.arrays import dense, is_sparse
from ...core.checks import LARGEST, POSITIVE, refuse, refuse_huge
from ...core.compiled import kernels
from ...core.linalg import LinAlgError, cho_factor, cho_solve, inner, product, transposed_product
from ...core.typing import Array, Labels
from ..base import Directions, FeatureMap, KernelMap, register
from ..linear import LinearFeatures
from .checks import PIECE, check_kernel_matrix, indefinite
from .pivots import Pivots

GATHERED = 0.6  # share of the rows whose block of K must have room beside K for K to be kept whole
_DENSE = 0.5  # share of rows with coefficients above which a product with all of K is faster than one with these rows
_MEBIBYTE = 2.0**20


class _Store:
    """The kernel values that a bound map keeps: all of them, or the rows used last; and the values of the functions asked for last."""

    def __init__(self, n: int) -> None:
        self.matrix: Array | None = None
        self.rows: Array | None = None  # (capacity, n), allocated on first use
        self.slot = np.full(n, -1, dtype=np.intp)  # slot of row i, -1 = none
        self.owner = np.empty(0, dtype=np.intp)  # row in a slot, -1 = none
        self.used = np.empty(0, dtype=np.int64)  # time of the last use of a slot
        self.clock = 0
        self.coefficients: Array | None = None
        self.values: Array | None = None
        self.pivots: Pivots | None = None
        self.shifted: tuple[float, Any] | None = None  # sigma and the Cholesky factor of K + sigma I


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
    explicit: ClassVar[Any] = LinearFeatures

    def __init__(self, X: Any, n_classes: int, *, memory_mb: float = 1000.0) -> None:
        super().__init__(X, n_classes)
        self.memory_mb = positive_option("memory_mb", memory_mb)
        self.anchors = self.X
        self.store = _Store(self.n_rows)  # shared by maps that adopt it

    @abstractmethod
    def kernel(self, X: Any, Z: Any) -> Array:
        """Return K(x_a, z_b), shape (rows of X, rows of Z)."""

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
            and _equal(other.X, self.X)
        ):
            self.store = other.store

    def support(self, theta: Array) -> tuple[Any, Array]:
        """Return the anchors whose coefficients are not 0, at least one, and these coefficients: what scores at new rows need."""
        rows = np.flatnonzero(theta.any(axis=1))
        rows = rows if len(rows) else np.zeros(1, dtype=np.intp)
        return self.anchors[rows], theta[rows]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the kernel values out of pickles: they follow from the rows."""
        return {**self.__dict__, "store": _Store(self.n_rows)}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (n, k) of the coefficients."""
        return int(self.anchors.shape[0]), self.n_classes

    # ---- K --------------------------------------------------------------------------------------------------------
    @property
    def memory(self) -> float:
        """Bytes that values of K may take."""
        return self.memory_mb * _MEBIBYTE

    @property
    def whole(self) -> bool:
        """Whether all n^2 values fit, beside a copy of the largest block that solvers gather."""
        return 8.0 * (1.0 + GATHERED**2) * float(self.n_rows) ** 2 <= self.memory

    @property
    def matrix(self) -> Array:
        """The whole matrix K (n, n), exactly symmetric; computed once."""
        store = self.store
        if store.matrix is None:
            n = self.n_rows
            K = np.empty((n, n))
            for start in range(0, n, PIECE):
                stop = min(start + PIECE, n)
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
        K, self.store.matrix, self.store.pivots = self.matrix, None, None
        return K

    @property
    def pivots(self) -> Pivots:
        """The Cholesky factor of K with pivoting, as much of it as was asked for."""
        if self.store.pivots is None:
            self.store.pivots = Pivots(self.matrix, self.diagonal)
        return self.store.pivots

    def sketched(self, rows: Array, gram: Array) -> KernelMap:
        """Return the map with the kernel L L'."""
        return SketchedFeatures(rows, gram, self.n_classes)

    def proximal(self, G: Array, sigma: float) -> tuple[Array, Array]:
        """Return X = sigma (K + sigma I)^{-1} G and its coefficients -X."""
        factor = self._shifted(self.matrix, sigma)
        X = cho_solve(factor, sigma * np.asfortranarray(G), overwrite_b=True, check_finite=False)
        return X, -X

    def _shifted(self, gram: Array, sigma: float) -> Any:
        """Return the Cholesky factor of a symmetric matrix plus sigma I, kept for the next call."""
        store = self.store
        if store.shifted is None or store.shifted[0] != sigma:
            shifted = np.array(gram, order="F")
            shifted[np.diag_indices_from(shifted)] += sigma
            try:
                store.shifted = sigma, cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                raise indefinite(self.name, f"an eigenvalue is below -{sigma:.3g}") from None
        return store.shifted[1]

    def block(self, rows: Labels) -> Array:
        """Return K among the given training rows, (m, m), C-contiguous."""
        rows = np.ascontiguousarray(rows)
        m = len(rows)
        if self.whole:
            if m == self.n_rows:
                return self.matrix
            out = np.empty((m, m))
            kernels.ascent_kernel.gather(self.matrix, rows, rows, out)
            return out
        out = np.empty((m, m))
        store = self.store
        held = store.slot[rows] >= 0
        if held.any():
            assert store.rows is not None
            at = np.flatnonzero(held)
            part = np.empty((len(at), m))
            kernels.ascent_kernel.gather(store.rows, store.slot[rows[at]], rows, part)
            out[at] = part
        missing = np.flatnonzero(~held)
        for start in range(0, len(missing), PIECE):
            at = missing[start : start + PIECE]
            out[at] = self.between(rows[at], rows)
        out[np.diag_indices(m)] = self.diagonal[rows]
        return out

    def among(self, rows: Labels) -> PrecomputedFeatures:
        """Return the kernel among some of the training rows, as the map of a fit to these."""
        part = PrecomputedFeatures(self.block(rows), self.n_classes)
        part.store.matrix = part.X  # a block of a kernel matrix needs no check
        return part

    def accumulate(self, F: Array, rows: Labels, A: Array) -> None:
        """Add K[:, rows] A to the scores F of all training rows, which are held class by class, (k, n)."""
        A = np.ascontiguousarray(A)
        if self.whole:
            kernels.ascent_kernel.accumulate(self.matrix, rows, A, F)
            return
        store, n = self.store, self.n_rows
        if store.rows is None:
            capacity = max(0, int(self.memory / 2 / 8 / n) - PIECE)
            store.rows = np.empty((capacity, n))
            store.owner = np.full(capacity, -1, dtype=np.intp)
            store.used = np.full(capacity, -1, dtype=np.int64)
        store.clock += 1
        held = np.flatnonzero(store.slot[rows] >= 0)
        slots = store.slot[rows[held]]
        store.used[slots] = store.clock
        kernels.ascent_kernel.accumulate(store.rows, slots, A[held], F)
        missing = np.flatnonzero(store.slot[rows] < 0)
        # slots of rows that this call does not need, longest unused first
        free = np.flatnonzero(store.used < store.clock)
        free = free[np.argsort(store.used[free], kind="stable")]
        for start in range(0, len(missing), PIECE):
            at = missing[start : start + PIECE]
            piece = np.ascontiguousarray(self.between(rows[at], slice(0, n)))
            piece[np.arange(len(at)), rows[at]] = self.diagonal[rows[at]]
            kernels.ascent_kernel.accumulate(piece, np.arange(len(at)), A[at], F)
            slots, free = free[: len(at)], free[len(at) :]
            stored = rows[at[: len(slots)]]
            store.slot[store.owner[slots][store.owner[slots] >= 0]] = -1
            store.rows[slots] = piece[: len(slots)]
            store.owner[slots], store.slot[stored], store.used[slots] = stored, slots, store.clock

    # ---- the four operations --------------------------------------------------------------------------------------
    def scores(self, theta: Array) -> Array:
        """Return K(X, anchors) A, shape (n, k)."""
        return self.values(theta)

    def values(self, A: Array) -> Array:
        """Return the functions with coefficients A (n_anchors, c) at the rows, (n, c); rows of zeros in A cost nothing."""
        support = np.flatnonzero(A.any(axis=1))
        if self.X is not self.anchors:
            F = np.zeros((self.n_rows, A.shape[1]))
            # a function without support is 0, and scikit-learn has no distances to no rows
            for start in range(0, self.n_rows if len(support) else 0, PIECE):
                rows = slice(start, min(start + PIECE, self.n_rows))
                product(self.between(rows, support), A[support], F[rows])
            return F
        store = self.store
        if store.coefficients is None or store.values is None or not np.array_equal(store.coefficients, A):
            if self.whole and len(support) > _DENSE * self.n_rows:
                # K A = K'A; class by class BLAS, which takes many classes, is faster
                store.values = transposed_product(self.matrix, np.asfortranarray(A))
            else:
                by_class = np.zeros((A.shape[1], self.n_rows))
                self.accumulate(by_class, support, A[support])
                store.values = np.ascontiguousarray(by_class.T)
            store.coefficients = A.copy()
            store.values.setflags(write=False)
        return store.values

    def adjoint(self, R: Array) -> Array:
        """Return the coefficients of sum_i phi(x_i) r_i', which are R itself; training rows only."""
        return R

    def square_norm(self, theta: Array) -> float:
        """Return <A, K A>."""
        A, _ = self.split(theta)
        return checked_square(self, inner(A, self.values(A)), A)

    def directions(self, B: Array, owner: Labels) -> Directions:
        """Kernel maps have no Jacobian rows to hand out."""
        raise NotImplementedError("kernel features have no explicit parameters")


class SketchedFeatures(KernelFeatures):
    """The kernel L L': inner products of rows of L, the rows of X; ``rows`` are L' (p, n), ``gram`` is L'L (p, p)."""

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

    def values(self, A: Array) -> Array:
        """Return L L'A."""
        return np.ascontiguousarray(((A.T @ self.rows.T) @ self.rows).T)

    def square_norm(self, theta: Array) -> float:
        """Return |L'A|^2."""
        along = self.split(theta)[0].T @ self.rows.T
        return inner(along, along)

    def proximal(self, G: Array, sigma: float) -> tuple[Array, Array]:
        """Return X = sigma (L L' + sigma I)^{-1} G = G - L (L'L + sigma I)^{-1} L'G, by Woodbury's formula, and its coefficients -X."""
        factor = self._shifted(self.gram, sigma)
        # products class by class: twice as fast as products with narrow columns
        along = np.ascontiguousarray(G.T) @ self.rows.T
        along = cho_solve(factor, along.T, overwrite_b=True, check_finite=False)
        X = G - (along.T @ self.rows).T
        return X, -X


@register("precomputed")
class PrecomputedFeatures(KernelFeatures):
    """Any kernel, given as a matrix: (n, n) between the training rows at `fit`, (n_new, n) between new and training rows afterwards.

    A matrix that is not symmetric or not positive semi-definite is refused; up to 500 rows by the eigenvalues, beyond by the 2 x 2 minors
    and by the norms that a fit meets.
    """

    pairwise = True
    checks_rows = True

    def check_rows(self) -> None:
        """Raise for a matrix that is not a kernel matrix, or holds huge numbers."""
        K = self.matrix
        if not self.diagonal.max(initial=0.0) <= LARGEST:  # no other value is above the largest of the diagonal
            refuse_huge(K, None, "X")

    @property
    def memory(self) -> float:
        """Infinite: memory for a given matrix has no limit."""
        return math.inf

    @property
    def diagonal(self) -> Array:
        """The diagonal of the given matrix."""
        return np.ascontiguousarray(self.X.diagonal())

    @property
    def shape(self) -> tuple[int, ...]:
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
        return dense(self.X[rows])[:, columns]

    @property
    def matrix(self) -> Array:
        """The given matrix, checked once."""
        store = self.store
        if store.matrix is None:
            K = np.ascontiguousarray(dense(self.X), dtype=np.float64)
            check_kernel_matrix(K)
            store.matrix = K
        return store.matrix

    def handed_over(self) -> Array:
        """Return a copy: the matrix is the user's."""
        return self.matrix.copy()


def checked_square(features: KernelMap, square: float, A: Array) -> float:
    """Return |theta|^2 of coefficients A, at least 0; `DataError` when it is negative beyond rounding."""
    if square < 0.0:
        scale = float(np.abs(A).sum(axis=1) @ np.sqrt(np.maximum(features.diagonal, 0.0))) ** 2
        if square < -1e-10 * scale:
            raise indefinite(features.name, f"a function has the squared norm {square:.3g}")
    return max(square, 0.0)


def positive_option(name: str, value: Any) -> float:
    """Return an option that must be a finite number above 0."""
    refuse(f"features.{name}", value, POSITIVE)
    return float(value)


def _equal(X: Any, Z: Any) -> bool:
    if X is Z:
        return True
    if is_sparse(X) != is_sparse(Z) or X.shape != Z.shape:
        return False
    if is_sparse(X):
        return X.nnz == Z.nnz and all(np.array_equal(getattr(X, part), getattr(Z, part)) for part in ("indptr", "indices", "data"))
    return np.array_equal(X, Z)
