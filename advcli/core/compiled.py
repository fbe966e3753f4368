"""The compiled modules, at the widest instruction set that this processor has, and the arrays that they take.

Each module of `_ext` is built once per instruction set that it gains from (meson.build): ``portable`` everywhere, ``avx2`` and
``avx512`` on x86-64. A module without the chosen level takes the next lower one; ADVCLI_SIMD chooses a level by name. ``portable`` and
``avx2`` have the same bits: sums run over four lanes, and a product is rounded before it is added; ``avx512`` agrees with them to rounding.
Every function checks lengths and positions before it follows a pointer (`_ext/support/adv_check.pxd`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import os
import pkgutil
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arrays import is_sparse
from .errors import UnknownNameError, nearest
from .typing import Array, Labels

Family = tuple[str, int, Array]  # (name, k, parameters)

LEVELS = ("avx512", "avx2", "portable")
# The version of x86-64 that the compiler may use at each level.
_VERSIONS = {"avx512": 4, "avx2": 3, "portable": 1}


def usable_levels() -> list[str]:
    """Return the instruction sets that were built and that this processor has, widest first."""
    try:
        version = _module("processor", "portable").version()
    except ImportError:
        return []
    return [level for level in LEVELS if _VERSIONS[level] <= version and _can_be_imported(level)]


def _can_be_imported(level: str) -> bool:
    with contextlib.suppress(ImportError):
        return bool(_module("oracle", level))
    return False


def _module(kernel: str, level: str) -> ModuleType:
    return importlib.import_module(f"advcli._ext.{kernel}_{level}")


@functools.cache
def _built() -> frozenset[str]:
    """Return the names of the built modules: asking for a missing one takes an editable install, which looks for changes then, 25 ms."""
    return frozenset(module.name for module in pkgutil.iter_modules(importlib.import_module("advcli._ext").__path__))


def _at_most(kernel: str, level: str) -> ModuleType:
    """Return a module at this level, or at the next lower one that was built."""
    for lower in LEVELS[LEVELS.index(level) :]:
        if f"{kernel}_{lower}" in _built():
            with contextlib.suppress(ImportError):
                return _module(kernel, lower)
    raise ImportError(f"the compiled module {kernel} is missing: build it with `make` or `pip install .`")


class CompiledRows(NamedTuple):
    """Rows of X as the compiled loops take them; ``columns`` and ``start`` are empty when X is dense."""

    values: Array
    columns: NDArray[np.int32]
    start: NDArray[np.int64]
    n: int
    d: int


def compiled_rows(X: Any) -> CompiledRows:
    """Return a dense matrix, row by row, or a CSR matrix that `checked_csr` let pass, as arrays for the compiled loops."""
    n, d = X.shape
    if is_sparse(X):
        columns, start = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
        return CompiledRows(np.ascontiguousarray(X.data, dtype=np.float64), columns, start, int(n), int(d))
    values = np.ascontiguousarray(X, dtype=np.float64).ravel()
    return CompiledRows(values, np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64), int(n), int(d))


class Face(NamedTuple):
    """The faces of the sets conv R(y_i) that block steps end on: what can move with the scores, and what cannot."""

    state: NDArray[np.int8]  # (n, k): 0 fixed, 1 tied to the other tied labels, 2 free
    normal: Array  # (n, k): a direction that r cannot move in, or 0
    tight: NDArray[np.int8]  # (n, l) of a general matrix: rows that attain the minimum, whose differences are normals; else (0, 0)


# Up to here a pass takes longer with eight numbers to a vector than with four, and with 200 features less long (docs/notes/kernels.md,
# section 2, has the measurements).
_SHORT_CLASSES, _SHORT_FEATURES = 4, 128


class Kernels:
    """Faces of the compiled modules at one instruction set; all arrays float64 (labels intp), copied only when they must be."""

    def __init__(self, level: str | None = None) -> None:
        levels = usable_levels()
        if not levels:
            raise ImportError("the compiled part of advcli is missing: build it with `make` or `pip install .`")
        level = level or levels[0]
        if level not in levels:
            raise UnknownNameError(f"ADVCLI_SIMD={level} cannot run here: {nearest(level, levels)}")
        self.chosen = level
        self.use(level)
        self._kinds = {name: kind for kind, name in enumerate(self._oracle.families())}

    def use(self, level: str) -> None:
        """Take the modules at another level that `usable_levels` names."""
        self.level = level
        for name in [name for name, value in vars(self).items() if isinstance(value, ModuleType)]:
            delattr(self, name)
        self._oracle = _at_most("oracle", level)
        short = level == "avx512" and "ascent_dense_avx2" in _built()
        self._short_ascent = _at_most("ascent_dense", "avx2") if short else self.ascent_dense

    def __getattr__(self, name: str) -> ModuleType:
        """Return the compiled module of this name, loaded when first asked for."""
        if name.startswith("_"):
            raise AttributeError(name)
        module = _at_most(name, self.level)
        setattr(self, name, module)
        return module

    def ascent_dense_for(self, k: int, d: int) -> ModuleType:
        """Return the block method's module for k classes and rows of d features: few classes would leave half of a long vector empty."""
        return self._short_ascent if k <= _SHORT_CLASSES and d <= _SHORT_FEATURES else self.ascent_dense

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the compiled surrogates: the functions bind_NAME of the headers `_ext/adv_*.pxd`."""
        return tuple(self._kinds)

    def arguments(self, family: Family) -> tuple[int, int, Array]:
        """Return what every compiled function takes first: (kind, k, parameters); `ConfigError` where no header binds the name."""
        name, k, parameters = family
        if name not in self._kinds:
            raise UnknownNameError(f"no compiled surrogate is named {name}: {nearest(name, self._kinds)}")
        return self._kinds[name], k, np.ascontiguousarray(parameters, dtype=np.float64)

    def value(self, family: Family, F: Array, y: Labels) -> Array:
        """Return S(f_i, y_i), shape (n,)."""
        F, y = _scores(F, y, family[1])
        value, c = np.empty(len(F)), np.empty(len(F))
        self._oracle.evaluate(*self.arguments(family), F, y, value, np.empty((0, family[1])), c)
        return value

    def oracle(self, family: Family, F: Array, y: Labels) -> tuple[Array, Array, Array]:
        """Return the values (n,), the maximising r (n, k) and their c (n,)."""
        F, y = _scores(F, y, family[1])
        value, R, c = np.empty(len(F)), np.empty_like(F), np.empty(len(F))
        self._oracle.evaluate(*self.arguments(family), F, y, value, R, c)
        return value, R, c

    def offset(self, family: Family, R: Array, y: Labels) -> Array:
        """Return the largest c for each r, shape (n,)."""
        R, y = _scores(R, y, family[1])
        c = np.empty(len(R))
        self._oracle.offset(*self.arguments(family), R, y, c)
        return c

    def games(self, matrix: Array, F: Array) -> tuple[Array, Array, Labels]:
        """Solve the game of any matrix (l, k) at scores (n, k): q (n, k), p (n, l) and the simplex pivots (n,), -1 where it stalled."""
        l, k = matrix.shape
        F, _ = _scores(F, np.zeros(len(F), dtype=np.intp), k)
        Q, P, pivots = np.empty_like(F), np.empty((len(F), l)), np.empty(len(F), dtype=np.intp)
        self._oracle.games(k, np.concatenate([[float(l)], np.ravel(matrix)]), F, Q, P, pivots)
        return Q, P, pivots

    def block(self, family: Family, F: Array, R: Array, y: Labels, curvature: Array) -> Array:
        """Return the block step from R at scores F, shape (n, k); ``curvature`` is a number or (n,)."""
        return self.face(family, F, R, y, curvature)[0]

    def face(self, family: Family, F: Array, R: Array, y: Labels, curvature: Any, gap: Array | None = None) -> tuple[Array, Face]:
        """Return the block step (n, k) and its faces; ``gap`` (n,) receives the block gaps before the step, which takes longer."""
        F, y = _scores(F, y, family[1])
        R = np.ascontiguousarray(R, dtype=np.float64)
        if R.shape != F.shape:
            raise ValueError(f"dual variables must have shape {F.shape}, got {R.shape}")
        w = np.empty(len(F))
        w[:] = curvature
        out, state, normal = np.empty_like(F), np.empty(F.shape, dtype=np.int8), np.empty_like(F)
        rows = int(family[2][0]) if family[0] == "general" else 0
        tight = np.zeros((len(F) if rows else 0, rows), dtype=np.int8)
        self._oracle.block(*self.arguments(family), F, R, y, w, out, state, normal, tight, np.empty(0) if gap is None else gap)
        return out, Face(state, normal, tight)

    def search(
        self,
        family: Family,
        F: Array,
        dF: Array,
        center: Array,
        y: Labels,
        curvature: float,
        slope: tuple[float, float, float, float],
        before: tuple[Array, Face],
        cost: Array | None = None,
        sample: Array | None = None,
        most: int = 40,
    ) -> tuple[float, Array, Array, Face, int]:
        """Return t, the scores F + t dF, the block steps (n, k) there, their faces, and how many t were tried, at most ``most``.

        ``slope`` is (slope0, base, square, factor): the slope base + t square + factor sum_i s_i r_i.dF_i is slope0 < 0 at t = 0. At the t
        returned it has at most half of this size. ``before`` are the block steps at t = 0 and their faces; ``cost`` and ``sample`` are
        weights (n,) or None.
        """
        F, y = _scores(F, y, family[1])
        dF, center = np.ascontiguousarray(dF, dtype=np.float64), np.ascontiguousarray(center, dtype=np.float64)
        scores, out, state = np.empty(F.shape), np.empty(F.shape), np.empty(F.shape, dtype=np.int8)
        tight = np.zeros_like(before[1].tight) if len(before[1].tight) else before[1].tight
        normal = before[1].normal if family[0] == "zero_one" else np.empty_like(F)  # zeros there
        slope0, base, square, factor = slope
        t, trials = self._oracle.search(
            *self.arguments(family), F, dF, center, y, _weights(cost), _weights(sample), curvature, factor, slope0, base, square, most,
            before[0], before[1].state, scores, out, state, normal, tight,
        )  # fmt: skip
        return t, scores, out, Face(state, normal, tight), trials

    def judge(self, family: Family, F: Array, R: Array, y: Labels, weight: Array) -> tuple[float, float, float]:
        """Return three weighted sums over the rows: the surrogates S, c(r), and the block gaps S - c(r) - f.r."""
        F, y = _scores(F, y, family[1])
        sums: tuple[float, float, float]
        sums = self._oracle.judge(*self.arguments(family), F, np.ascontiguousarray(R, dtype=np.float64), y, weight)
        return sums

    def separate_face(self, F: Array, center: Array, y: Labels, c: float) -> tuple[Array, Array]:
        """Return r (n, k) of a loss whose dual variables move alone in [0, 1], and these variables before they are held there."""
        F, y = _scores(F, y, F.shape[1])
        R, inside = np.empty_like(F), np.empty_like(F)
        self.newton_faces.separate_face(F, np.ascontiguousarray(center), y, c, R, inside)
        return R, inside

    def tangents(self, family: Family, face: Face, skip: NDArray[np.bool_]) -> tuple[Array, Labels]:
        """Return orthonormal bases (m, k) of the directions in which r can move on its face, and their examples (m,), without ``skip``
        (n,).
        """
        if len(face.tight):
            k = face.state.shape[1]
            matrix = np.ascontiguousarray(family[2][1:].reshape(-1, k))
            rank = np.maximum((face.state != 0).sum(axis=1, dtype=np.int32) - 1, 0, dtype=np.int32)
            rank[skip] = 0
            most = int(rank.sum())
            B, owner = np.empty((most, k)), np.empty(most, dtype=np.intp)
            m = self.newton_faces.matrix_bases(matrix, face.state, face.tight, rank, B, owner)
            return np.ascontiguousarray(B[:m]), owner[:m].copy()
        bases: tuple[Array, Labels] = self.newton_faces.tangents(face.state, face.normal, skip.view(np.int8))
        return bases


def aligned_zeros(shape: tuple[int, ...]) -> Array:
    """Return zeros that begin at a cache line: rows of whole vectors then never lie across two, which would take two reads each."""
    size = math.prod(shape)
    block = np.zeros(size + 8)
    begin = -block.ctypes.data % 64 // block.itemsize
    return block[begin : begin + size].reshape(shape)


def _weights(weights: Array | None) -> Array:
    return np.empty(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)


def _scores(F: Array, y: Labels, k: int) -> tuple[Array, Labels]:
    F = np.ascontiguousarray(F, dtype=np.float64)
    y = np.ascontiguousarray(y, dtype=np.intp)
    if F.ndim != 2 or F.shape[1] != k:
        raise ValueError(f"scores must have shape (n, {k}), got {F.shape}")
    return F, y


kernels: Kernels


def __getattr__(name: str) -> Any:
    # `kernels` is made on first use, so that importing this module needs no compiled part (documentation, config completion)
    if name == "kernels":
        global kernels
        kernels = Kernels(os.environ.get("ADVCLI_SIMD") or None)
        return kernels
    raise AttributeError(name)
