"""Sums of products that NumPy's einsum and SciPy's sparse matrices make, in an order and a rounding that no build of theirs changes.

Their compilers fuse a multiplication and an addition into one rounding wherever every processor of a kind can, as on arm64. While portable
arithmetic is in force the functions here take their place. On x86-64, where the libraries' wheels fuse nothing in these sums, they have the
same bits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .compiled import kernels
from .typing import Array

_kept: dict[str, tuple[Any, str, Any]] = {}
"""The libraries' own functions while others are in their place: module, name and function."""


def _einsum(library: Any, subscripts: str, *operands: Any, **how: Any) -> Any:
    """Return what `numpy.einsum` does, products of doubles summed by `_ext/support/arithmetic.pyx`."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    names, arrays = inputs.split(","), [np.asarray(operand) for operand in operands]
    summed = sorted(set(inputs) - set(output) - {","})
    plain = arrow and len(arrays) > 1 and summed and not how and "." not in inputs
    if not plain or np.result_type(*arrays) != np.float64 or any(len(set(name)) < len(name) for name in names):
        return library(subscripts, *operands, **how)
    order = [*output, *summed]
    length = {letter: size for name, array in zip(names, arrays, strict=True) for letter, size in zip(name, array.shape, strict=True)}
    shape = [length[letter] for letter in order]
    spread = [_spread(name, array, order) for name, array in zip(names, arrays, strict=True)]
    first, last = math.prod(spread[:-1], start=1.0) if len(spread) > 2 else spread[0], spread[-1]
    rows, made = math.prod(shape[: len(output)]), np.zeros(shape[: len(output)])
    sides = [
        np.broadcast_to(each, shape).reshape(rows, -1).astype(np.float64, copy=False) if rows else np.empty((0, 0))
        for each in (first, last)
    ]
    contiguous = all(
        array.strides[name.index(order[-1])] == array.itemsize for name, array in zip(names, arrays, strict=True) if order[-1] in name
    )
    kernels.arithmetic.add_row_products(*sides, made.reshape(-1), contiguous)
    return made if output else made[()]


def _spread(name: str, array: Array, order: list[str]) -> Array:
    """Return a view with the axes in this order, of length 1 where the array has none."""
    turned = array.transpose([name.index(letter) for letter in order if letter in name])
    return turned[tuple(slice(None) if letter in name else None for letter in order)]


def _doubles(*arrays: Any) -> list[Array]:
    return [np.ascontiguousarray(array, dtype=np.float64) for array in arrays]


def _by_dense(name: str, library: Any) -> Callable[..., None]:
    """Return the product of sparse rows, or columns, and one vector or several."""

    def product(rows: int, columns: int, *given: Any) -> None:
        *_, start, at, values, X, Y = given
        if Y.dtype != np.float64:
            library(rows, columns, *given)
        elif rows and columns and X.size:
            filled = int(start[-1])
            values, X = _doubles(values[:filled], X)
            parts = X.reshape(columns, -1), Y.reshape(rows, -1)
            kernels.arithmetic.add_sparse_product(start, at[:filled], values, *parts, name.startswith("csc"))

    return product


def _by_sparse(name: str, library: Any) -> Callable[..., None]:
    """Return the product of sparse matrices: the library finds the places of its entries."""

    def product(rows: int, columns: int, *given: Any) -> None:
        library(rows, columns, *given)
        *factors, made = (given[first : first + 3] for first in (0, 3, 6))
        if made[2].dtype != np.float64:
            return
        if name.startswith("csc"):  # (A B)' = B' A'
            factors, columns = factors[::-1], rows
        parts = []
        for start, at, values in (*factors, made):
            filled = int(start[-1])
            parts += [start, at[:filled], values[:filled] if values is made[2] else _doubles(values[:filled])[0]]
        kernels.arithmetic.sparse_by_sparse(*parts, np.zeros(columns))

    return product


_EXCHANGED: dict[str, Callable[[str, Any], Callable[..., Any]]] = {
    "einsum": lambda name, library: partial(_einsum, library),
    **dict.fromkeys(("csr_matvec", "csr_matvecs", "csc_matvec", "csc_matvecs"), _by_dense),
    **dict.fromkeys(("csr_matmat", "csc_matmat"), _by_sparse),
}


def exchange(portable: bool) -> None:
    """Give the libraries these functions, or their own back."""
    from scipy.sparse import _compressed, _sparsetools  # versions differ in which of the two a product of sparse matrices looks into

    if portable == bool(_kept):
        return
    if not portable:
        for module, name, library in _kept.values():
            setattr(module, name, library)
        _kept.clear()
        return
    for module, (name, make) in itertools.product((np, _sparsetools, _compressed), _EXCHANGED.items()):
        if hasattr(module, name) and (module is np) == (name == "einsum"):
            library = getattr(module, name)
            _kept[f"{module.__name__}.{name}"] = module, name, library
            setattr(module, name, make(name, library))
