"""Kernel principal components as linear features (Schoelkopf, Smola & Mueller 1998), exact or from landmarks (Williams & Seeger 2001).

    kernel_pca   centred kernel matrix of the rows, its first eigenvectors: exact up to ``exact_rows`` rows, from landmarks beyond
    nystroem     scores on the principal components of the landmarks' kernel matrix, not centred

Both with the Gaussian kernel K(x, z) = exp(-gamma |x - z|^2). The map is fitted to the rows it is bound to, without their labels.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any, ClassVar

import numpy as np

from ...core.arrays import is_sparse
from ...core.checks import POSITIVE, at_least, or_null, refuse
from ...core.errors import ModelError
from ...core.linalg import eigh
from ...core.stored_arrays import Entries
from ...core.typing import Array
from ..base import FeatureMap, register
from ..cache import kept
from ..linear import LinearFeatures

_RELATIVE_RANK = 1e-10  # eigenvalues below this share of the largest are rounding
_MEDIAN_ROWS = 2000  # rows whose distances give the median
_KEPT_BYTES = 512 * 2**20  # projections kept for further fits on the same rows

_recent: OrderedDict[str, _Projection] = OrderedDict()


def _digest(X: Any, *more: Any) -> str:
    """Return a name for the content of rows X and of plain values."""
    parts = (X.indptr, X.indices, X.data) if is_sparse(X) else (np.ascontiguousarray(X),)
    digest = hashlib.sha256(repr((X.shape, more)).encode())
    for part in parts:
        digest.update(part.tobytes())
    return digest.hexdigest()[:32]


class _Projection:
    """Landmarks, the matrix that takes their kernel values to components, and the components of the rows asked for last."""

    def __init__(self, anchors: Any, gamma: float, centre: Array | None, basis: Array, key: str = "") -> None:
        self.anchors, self.gamma, self.centre, self.basis, self.key = anchors, gamma, centre, basis, key
        self.total = 0.0 if centre is None else float(centre.mean())
        self.seen: OrderedDict[str, Array] = OrderedDict()

    @classmethod
    def to(cls, X: Any, kind: str, centred: bool, gamma: float, dimensions: int, landmarks: int | None, seed: int) -> _Projection:
        """Return the map fitted to X; fits to the same rows (several methods, the rough labels of a split) share one map."""
        key = _digest(X, kind, gamma, dimensions, landmarks, seed)
        if key not in _recent:
            n = X.shape[0]
            every = landmarks is None or landmarks >= n
            chosen = slice(None) if every else np.sort(np.random.default_rng(seed).permutation(n)[:landmarks])
            K = _gaussian_kernel(X[chosen], None, gamma)
            centre = K.mean(axis=0) if centred else None
            basis = kept(f"{key}-basis", lambda: _principal(K, centre, dimensions))
            _recent[key] = cls(X[chosen], gamma, centre, basis, key)
        _recent.move_to_end(key)
        fitted = _recent[key]
        fitted.components(X)
        while len(_recent) > 1 and sum(each.size for each in _recent.values()) > _KEPT_BYTES:
            _recent.popitem(last=False)
        return fitted

    def components(self, X: Any) -> Array:
        """Return the components of rows X (n, d), shape (n, D)."""
        if not self.key:  # a saved model predicts rows once
            return self._project(X)
        key = _digest(X)
        if key not in self.seen:
            self.seen[key] = kept(f"{self.key}-{key}", lambda: self._project(X))
            if len(self.seen) > 2:  # the rows of the fit and the last others
                del self.seen[list(self.seen)[1]]
        return self.seen[key]

    def _project(self, X: Any) -> Array:
        K = _gaussian_kernel(X, self.anchors, self.gamma)
        if self.centre is not None:
            K = K - self.centre - K.mean(axis=1, keepdims=True) + self.total
        return np.ascontiguousarray(K @ self.basis)

    @property
    def size(self) -> int:
        return int(self.basis.nbytes + sum(each.nbytes for each in self.seen.values()) + getattr(self.anchors, "nbytes", 0))


def _gaussian_kernel(X: Any, Z: Any, gamma: float) -> Array:
    from sklearn.metrics.pairwise import rbf_kernel  # takes a third of a second, with what it imports

    return np.asarray(rbf_kernel(X, Z, gamma=gamma))


def _principal(K: Array, centre: Array | None, dimensions: int) -> Array:
    """Return the eigenvectors of the (centred) kernel matrix, divided by the roots of their eigenvalues, largest first, shape (m, D)."""
    if centre is not None:
        K = K - centre - centre[:, None] + centre.mean()
    m = len(K)
    # for more than two fifths of the components, computing all by divide and conquer takes less time (a third for 1,600 of 2,500)
    way: dict[str, Any] = {"driver": "evd"} if dimensions > 0.4 * m else {"subset_by_index": [m - dimensions, m - 1]}
    values, vectors = eigh(K, overwrite_a=True, check_finite=False, **way)
    values, vectors = values[::-1][:dimensions], vectors[:, ::-1][:, :dimensions]
    positive = values > _RELATIVE_RANK * max(float(values[0]), 1e-300)
    # the sign of an eigenvector is free: the largest entry is positive, on every machine
    vectors = vectors[:, positive] * np.sign(vectors[np.abs(vectors[:, positive]).argmax(axis=0), np.flatnonzero(positive)])
    return np.ascontiguousarray(vectors / np.sqrt(values[positive]))


def median_gamma(X: Any) -> float:
    """Return 1 / median of |x - z|^2 over pairs of different rows, of `_MEDIAN_ROWS` rows spread over X at most."""
    from sklearn.metrics.pairwise import euclidean_distances

    rows = np.unique(np.linspace(0, X.shape[0] - 1, _MEDIAN_ROWS).astype(np.intp)) if X.shape[0] > _MEDIAN_ROWS else np.arange(X.shape[0])
    squares = euclidean_distances(X[rows], squared=True)
    median = float(np.median(squares[np.triu_indices(len(rows), 1)])) if len(rows) > 1 else 0.0
    return 1.0 / median if median > 0 else 1.0


class _Components(LinearFeatures):
    """Linear features over kernel principal components of the rows that the map was first bound to.

    Parameters
    ----------
    X : ndarray (n, d) or csr_array
        The rows; ``X`` of the bound map holds their components (n, D).
    n_classes : int
        Number k of scores per row.
    dimensions : int
        D, the number of components; fewer where the kernel matrix has a lower rank.
    width : float
        Width c of the kernel where ``gamma`` is None: gamma = c / median of |x - z|^2 over pairs of rows.
    gamma : float or None
        The kernel's gamma itself.
    landmarks : int
        Rows of Nystroem's approximation.
    seed : int
        Seed of the choice of landmarks.
    """

    takes_constant = False
    keeps_rows = True
    centred: ClassVar[bool] = False  # whether the kernel's values are centred by its means over the landmarks

    def __init__(
        self,
        X: Any,
        n_classes: int,
        *,
        dimensions: int = 100,
        width: float = 1.0,
        gamma: float | None = None,
        landmarks: int = 1000,
        seed: int = 0,
        **more: Any,
    ) -> None:
        for key, value in (("dimensions", dimensions), ("landmarks", landmarks), *more.items()):
            refuse(f"features.{key}", value, at_least(1))
        refuse("features.width", width, POSITIVE)
        refuse("features.gamma", gamma, or_null(POSITIVE))
        use = self.landmarks_for(X.shape[0], landmarks, **more)
        if gamma is None:
            gamma = width * median_gamma(X)
        self._fitted = _Projection.to(X, self.name, self.centred, float(gamma), int(dimensions), use, int(seed))
        super().__init__(self._fitted.components(X), n_classes)

    def landmarks_for(self, n: int, landmarks: int) -> int | None:
        """Return the number of landmarks for n rows; None takes all rows."""
        return landmarks

    @property
    def gamma(self) -> float:
        """The kernel's gamma, given or by the median."""
        return self._fitted.gamma

    def support(self, theta: Array) -> tuple[Any, Array]:
        """Return the landmarks, from which the components follow, and theta."""
        return self._fitted.anchors, theta

    def fitted(self) -> dict[str, Array]:
        """Return the basis and the kernel's means: another machine's eigenvectors would be turned against these."""
        centre = self._fitted.centre
        return {"basis": self._fitted.basis} | ({} if centre is None else {"centre": centre})

    @classmethod
    def restored(cls, rows: Any, n_classes: int, arrays: Entries, **options: Any) -> FeatureMap:
        """Return the map with the stored basis, bound to the landmarks."""
        n = rows.shape[0]
        gamma: Any = options.get("gamma")
        if not (n and POSITIVE["valid"](gamma)):
            raise ModelError(f"features={cls.name} needs landmarks and a finite gamma above 0, got {n} and {gamma}")
        features = cls.__new__(cls)
        centre = arrays.array("centre", (n,)) if cls.centred else None
        features._fitted = _Projection(rows, float(gamma), centre, arrays.array("basis", (n, None)))
        LinearFeatures.__init__(features, features._fitted.components(rows), n_classes)
        return features

    @property
    def settled(self) -> dict[str, Any]:
        """The kernel's gamma."""
        return {"gamma": self.gamma}

    def at(self, X: Any) -> FeatureMap:
        """Return linear features on the components of other rows."""
        return LinearFeatures(self._fitted.components(X), self.n_classes)


@register("nystroem")
class NystroemFeatures(_Components):
    """Nystroem's approximation: principal components of the landmarks' kernel matrix, not centred."""


@register("kernel_pca")
class KernelPCAFeatures(_Components):
    """Centred kernel PCA: exact up to ``exact_rows`` rows, else of ``landmarks`` rows onto whose components all rows are projected."""

    centred = True

    def __init__(self, X: Any, n_classes: int, *, exact_rows: int = 4000, **options: Any) -> None:
        super().__init__(X, n_classes, exact_rows=exact_rows, **options)

    def landmarks_for(self, n: int, landmarks: int, exact_rows: int = 4000) -> int | None:
        """Return None for few rows: the exact map."""
        return None if n <= exact_rows else landmarks
