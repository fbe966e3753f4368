"""Dense linear algebra: SciPy's and NumPy's functions by their names; under portable arithmetic those of `_ext/support/arithmetic.pyx`.

Arguments and answers are those of `scipy.linalg`, `scipy.linalg.lapack` and `numpy.linalg`; ``overwrite`` promises nothing here.
Products with few columns, as scores of few classes are, have loops of their own (`_ext/support/few_columns.pyx`), whose bits are portable.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import LinAlgError

from .arithmetic import is_portable
from .compiled import kernels
from .typing import Array, Labels

__all__ = ("LinAlgError",)  # what is not made here


_scipy: Any = scipy.linalg
_lapack = _scipy.lapack


def inner(a: Any, b: Any) -> float:
    """Return the sum of the products of all entries of two arrays of one shape."""
    return float(np.ravel(a) @ np.ravel(b) if is_portable() else np.vdot(a, b))  # the same sum; a small fit has a hundred of these


def norm(a: Any) -> float:
    """Return the root of the sum of the squares of all entries."""
    return float(np.sqrt(inner(a, a)))


def has_few_columns(X: Any, B: Array) -> bool:
    """Return whether `product` and `transposed_product` take the loops for few columns, whose bits do not depend on how X is divided.

    X must be an array of doubles whose rows are contiguous; a single column is left to BLAS.
    """
    contiguous = isinstance(X, np.ndarray) and X.dtype == np.float64 and (X.strides[1] == X.itemsize or X.shape[1] < 2)
    return contiguous and 1 < B.shape[1] <= kernels.few_columns.MOST_COLUMNS


def product(X: Array, A: Array, out: Array | None = None) -> Array:
    """Return X A for arrays (n, d) and (d, k), in ``out`` (n, k) where that is given."""
    if not has_few_columns(X, A):
        return np.matmul(X, A, out=out)
    F = np.empty((len(X), A.shape[1])) if out is None else out
    kernels.few_columns.scores(X, np.ascontiguousarray(A, dtype=np.float64), F)
    return F


def transposed_product(X: Array, R: Array) -> Array:
    """Return X'R (d, k), C-contiguous, for arrays (n, d) and (n, k)."""
    if not has_few_columns(X, R):
        return np.ascontiguousarray(X.T @ R if R.flags.c_contiguous else (R.T @ X).T)  # R' is fast where its rows are whole
    total = np.empty((X.shape[1], R.shape[1]))
    kernels.few_columns.sums(X, np.asarray(R, dtype=np.float64), total)
    return total


def plus_own(A: Array, y: Labels, amount: float = 1.0) -> Array:
    """Return a copy of A (n, k) with ``amount`` added in the column y_i of every row i."""
    added = A.copy(order="K")
    added[np.arange(len(y)), y] += amount
    return added


def _lower(a: Array, lower: Any) -> Array:
    """Return a copy whose lower triangle is the given one of a symmetric matrix."""
    return np.array(a if lower else np.transpose(a), dtype=np.float64, order="C")


def _columns(b: Array) -> Array:
    """Return a copy of right sides as columns, (n, r)."""
    return np.array(b, dtype=np.float64, order="C", ndmin=1).reshape(len(b), -1)


def _factored(lower: Array, b: Array) -> Array:
    """Return L'^-1 L^-1 b."""
    B, L = _columns(b), np.ascontiguousarray(lower)
    kernels.arithmetic.solve_lower(L, B, False)
    kernels.arithmetic.solve_lower(L, B, True)
    return B.reshape(b.shape)


def dpotrf(a: Array, lower: int = 0, **how: Any) -> tuple[Array, int]:
    """Return the Cholesky factor of a symmetric matrix, given one triangle, and 0, or the place of a pivot that fails."""
    if not is_portable():
        return _lapack.dpotrf(a, lower=lower, **how)
    L = _lower(a, lower)
    info = kernels.arithmetic.cholesky(L)
    if how.get("clean", 1):
        L = np.tril(L)
    return L if lower else L.T, info


def dpotrs(c: Array, b: Array, lower: int = 0, **how: Any) -> tuple[Array, int]:
    """Return the solution of a system by its factor, and 0."""
    if not is_portable():
        return _lapack.dpotrs(c, b, lower=lower, **how)
    return _factored(c if lower else np.transpose(c), b), 0


def dposv(a: Array, b: Array, lower: int = 0, **how: Any) -> tuple[Array, Array, int]:
    """Return the factor, the solution and 0, or the place of a pivot that is not positive."""
    if not is_portable():
        return _lapack.dposv(a, b, lower=lower, **how)
    c, info = dpotrf(a, lower=lower)
    return c, b if info else dpotrs(c, b, lower=lower)[0], info


def dpotri(c: Array, lower: int = 0, **how: Any) -> tuple[Array, int]:
    """Return the inverse of a matrix by its factor, one triangle at least, and 0."""
    if not is_portable():
        return _lapack.dpotri(c, lower=lower, **how)
    return dpotrs(c, np.eye(len(c)), lower=lower)


def dgetrf(a: Array, **how: Any) -> tuple[Array, Labels, int]:
    """Return the factors of a square matrix, its pivots, and 0, or the place of a column without one."""
    if not is_portable():
        return _lapack.dgetrf(a, **how)
    lu, pivots = np.array(a, dtype=np.float64, order="C"), np.zeros(len(a), dtype=np.intp)
    info = kernels.arithmetic.eliminate(lu, pivots)
    return lu, pivots, info


def dgetrs(lu: Array, piv: Labels, b: Array, **how: Any) -> tuple[Array, int]:
    """Return the solution of a system by the factors of `dgetrf`, and 0."""
    if not is_portable():
        return _lapack.dgetrs(lu, piv, b, **how)
    B = _columns(b)
    kernels.arithmetic.solve_eliminated(lu, piv, B)
    return B.reshape(np.shape(b)), 0


def dpstrf(a: Array, tol: float, lower: int = 0) -> tuple[Array, Labels, int, int]:
    """Return the pivoted factor of a positive semi-definite matrix, the order of its rows from 1, its rank, and whether it is less."""
    if not is_portable():
        return _lapack.dpstrf(a, tol=tol, lower=lower)
    A = _lower(a, lower)
    A = np.tril(A) + np.tril(A, -1).T
    n, rank = len(A), 0
    rows, left, order = np.zeros((n, n)), A.diagonal().copy(), np.arange(n)
    while rank < n:
        best = rank + int(np.argmax(left[order[rank:]]))
        if not left[order[best]] > tol:
            break
        order[[rank, best]] = order[[best, rank]]
        pivot = order[rank]
        rows[rank] = (A[pivot] - rows[:rank, pivot] @ rows[:rank]) / np.sqrt(left[pivot])
        rows[rank, order[:rank]] = 0.0
        left -= rows[rank] ** 2
        rank += 1
    L = np.ascontiguousarray(rows[:, order].T)
    return L if lower else L.T, order + 1, rank, int(rank < n)


def dsyrk(alpha: float, a: Array, beta: float, c: Array, lower: int, **how: Any) -> Array:
    """Add alpha a a' to beta c, in one triangle at least."""
    if not is_portable():
        return np.asarray(_scipy.blas.dsyrk(alpha, a, beta=beta, c=c, lower=lower, **how))
    c[:] = beta * c + alpha * (a @ a.T)
    return c


def cho_factor(a: Array, lower: bool = False, **how: Any) -> tuple[Array, bool]:
    """Return the Cholesky factor of a positive definite matrix, and which triangle it is.

    Raises
    ------
    LinAlgError
        If the matrix is not positive definite.
    """
    if not is_portable():
        return _scipy.cho_factor(a, lower=lower, **how)
    c, info = dpotrf(a, lower=lower, clean=0)
    if info:
        raise LinAlgError(f"the leading minor {info} is not positive")
    return c, lower


def cho_solve(factor: tuple[Array, bool], b: Array, **how: Any) -> Array:
    """Return the solution of a system by the factor of `cho_factor`."""
    if not is_portable():
        return np.asarray(_scipy.cho_solve(factor, b, **how))
    return dpotrs(factor[0], np.asarray(b), lower=factor[1])[0]


def solve_triangular(a: Array, b: Array, trans: str = "N", lower: bool = False, **how: Any) -> Array:
    """Return L^-1 b, or L'^-1 b where ``trans`` is T, for a lower triangle L."""
    if not is_portable():
        return np.asarray(_scipy.solve_triangular(a, b, trans=trans, lower=lower, **how))
    B = _columns(b)
    kernels.arithmetic.solve_lower(np.ascontiguousarray(a), B, trans == "T")
    return B.reshape(np.shape(b))


def solve(a: Array, b: Array) -> Array:
    """Return the solution of a square system.

    Raises
    ------
    LinAlgError
        If the matrix is singular.
    """
    if not is_portable():
        return np.asarray(np.linalg.solve(a, b))
    lu, pivots, info = dgetrf(a)
    if info:
        raise LinAlgError("singular matrix")
    return dgetrs(lu, pivots, b)[0]


def inv(a: Array) -> Array:
    """Return the inverses of square matrices (..., n, n).

    Raises
    ------
    LinAlgError
        If one is singular.
    """
    if not is_portable():
        return np.asarray(np.linalg.inv(a))
    n = np.shape(a)[-1]
    W = np.concatenate([np.reshape(a, (-1, n, n)), np.zeros((math.prod(np.shape(a)[:-2]), n, n))], axis=2)
    W[:, range(n), range(n, 2 * n)] = 1.0
    every = np.arange(len(W))
    for p in range(n):  # Gauss-Jordan with pivoting, of all matrices at once
        best = p + np.abs(W[:, p:, p]).argmax(axis=1)
        W[every, p], W[every, best] = W[every, best], W[every, p]
        if not W[:, p, p].all():
            raise LinAlgError("singular matrix")
        W[:, p] /= W[:, p, p, None]
        size = W[:, :, p].copy()
        size[:, p] = 0.0
        W -= size[:, :, None] * W[:, p, None, :]
    return np.ascontiguousarray(W[:, :, n:]).reshape(np.shape(a))


def eigh(a: Array, **how: Any) -> tuple[Array, Array]:
    """Return the eigenvalues of symmetric matrices (..., n, n), ascending, and their eigenvectors, the columns; ``how`` as in SciPy.

    Raises
    ------
    LinAlgError
        If the iteration does not converge.
    """
    if not is_portable():
        return _scipy.eigh(a, **how) if how else np.linalg.eigh(a)
    n = np.shape(a)[-1]
    A = np.tril(np.reshape(a, (-1, n, n)).astype(np.float64))
    A += np.tril(A, -1).transpose(0, 2, 1)
    first, last = how.get("subset_by_index", (0, n - 1))
    if np.ndim(a) == 2 and last == n - 1 and 2 * first > n:
        values, vectors = np.empty(n), np.empty((n - first, n))
        if not kernels.arithmetic.eigen_some(A[0], values, vectors, first):
            raise LinAlgError("the eigenvalues did not converge")
        return values[first:], vectors.T
    values, vectors = np.empty(A.shape[:2]), np.empty_like(A)
    if not kernels.arithmetic.eigen(A, values, vectors):
        raise LinAlgError("the eigenvalues did not converge")
    order = np.argsort(values, axis=1, kind="stable")[:, first : last + 1]
    values, vectors = np.take_along_axis(values, order, 1), np.take_along_axis(vectors, order[:, :, None], 1).transpose(0, 2, 1)
    return values.reshape(*np.shape(a)[:-2], -1), vectors.reshape(*np.shape(a)[:-1], -1)


def eigvalsh(a: Array) -> Array:
    """Return the eigenvalues of a symmetric matrix (n, n), ascending."""
    return eigh(a)[0] if is_portable() else np.asarray(np.linalg.eigvalsh(a))
