"""Checks of a kernel matrix that a caller gives."""

from __future__ import annotations

import numpy as np
from sklearn.utils import assert_all_finite

from ...core.compiled import kernels
from ...core.errors import DataError
from ...core.linalg import eigvalsh
from ...core.typing import Array

PIECE = 256  # kernel rows that are computed by one matrix product
_EIGENVALUES = 500  # rows up to which a given matrix is checked by its eigenvalues


def indefinite(name: str, why: str) -> DataError:
    """Return the error for a kernel matrix that is not positive semi-definite."""
    return DataError(f"the kernel matrix of features={name} is not positive semi-definite ({why}); give a kernel, or add to its diagonal")


def check_kernel_matrix(K: Array) -> None:
    """Raise `DataError` if one pass over the matrix, or the eigenvalues of a small one, shows that it is not a kernel matrix."""
    if K.shape[0] != K.shape[1]:
        raise DataError(f"features=precomputed needs a square kernel matrix of the training rows, got {K.shape[0]} x {K.shape[1]}")
    n = len(K)
    diagonal = K.diagonal()
    if diagonal.min(initial=0.0) < 0:
        raise indefinite("precomputed", f"the diagonal holds {diagonal.min():.3g}")
    root = np.sqrt(diagonal)
    largest = float(diagonal.max(initial=0.0))
    if not _seems_kernel_matrix(K, root, largest):
        assert_all_finite(K, input_name="X")
        _refuse_entries(K, root, largest)
    if n <= _EIGENVALUES:
        least = float(eigvalsh(K)[0])
        if least < -1e-8 * max(largest, 1e-300) * n:
            raise indefinite("precomputed", f"its least eigenvalue is {least:.3g}")


def _seems_kernel_matrix(K: Array, root: Array, largest: float) -> bool:
    """Tell from one read, in the order of memory, whether K is symmetric, finite and keeps |K_ij| <= sqrt(K_ii K_jj).

    K v = K'v holds for a random v if K is symmetric, and but by chance only then (in the manner of Freivalds 1977). Numbers that are not
    finite show in these products.
    """
    n = len(K)
    random = np.random.default_rng(n)
    v = random.uniform(1.0, 2.0, size=n) * random.choice([-1.0, 1.0], size=n)
    u, w = np.empty(n), np.empty(n)
    excess = kernels.ascent_kernel.examine(K, v, np.ascontiguousarray(root), u, w)
    with np.errstate(invalid="ignore"):
        return bool(np.abs(u - w).max() <= 1e-9 * largest and excess <= 1e-8 * largest)


def _refuse_entries(K: Array, root: Array, largest: float) -> None:
    """Raise `DataError` for the first pair of entries, tile by tile, that no kernel matrix has beyond rounding."""
    n = len(K)
    # tiles that stay in the cache, each beside its mirror image
    for start in range(0, n, PIECE):
        rows = slice(start, min(start + PIECE, n))
        for first in range(start, n, PIECE):
            columns = slice(first, min(first + PIECE, n))
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
                raise indefinite(
                    "precomputed", f"K[{start + i}, {first + j}]^2 exceeds K[{start + i}, {start + i}] K[{first + j}, {first + j}]"
                )
