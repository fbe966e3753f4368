"""Labels that are listed one by one: any points, and the classes of a cost matrix."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....core.errors import DataError
from ....core.typing import Array
from .space import LabelPoint, OutputSpace


class PointSpace(OutputSpace):
    """Labels given by their coordinates; every oracle is a scan. A label is called by its position, which is its key.

    Parameters
    ----------
    h, g : array_like (M,)
        Coordinates of the labels.
    truth : int
        The position of the true label.

    Raises
    ------
    DataError
        Coordinates that are not two lists of finite numbers of one length, or a true label that is not among them.
    """

    name: ClassVar[str] = "points"
    offers = frozenset({"lam", "ban", "cone", "kbest", "levels"})

    def __init__(self, h: Any, g: Any, truth: int = 0) -> None:
        self.h, self.g = np.asarray(h, dtype=np.float64), np.asarray(g, dtype=np.float64)
        if self.h.ndim != 1 or self.h.shape != self.g.shape or not (np.isfinite(self.h).all() and np.isfinite(self.g).all()):
            raise DataError(f"labels need finite h and g of one length; they have the shapes {self.h.shape} and {self.g.shape}")
        if not 0 <= truth < len(self.h):
            raise DataError(f"the true label {truth} is not among {len(self.h)} labels")
        self.truth = self._point(truth)
        positive = self.g[self.g > 0.0]
        self.extent = (float(positive.min()), float(positive.max())) if len(positive) else (0.0, 0.0)

    def _point(self, at: Any) -> LabelPoint:
        at = int(at)
        return LabelPoint(float(self.h[at]), float(self.g[at]), at, at)

    @cached_property
    def slopes(self) -> Array:
        """G / H of every label, shape (M,); -infinity where H <= 0, which keeps it out of every angle."""
        H = self.h + 1.0
        return np.where(H > 0.0, self.g / np.where(H > 0.0, H, 1.0), -np.inf)

    def _best(self, first: Array, second: Array, left: NDArray[np.bool_] | None) -> LabelPoint | None:
        """Return the label of the largest ``first``, ties by ``second`` and then by position, of those that are left."""
        at = np.arange(len(first)) if left is None else np.flatnonzero(left)
        if not len(at):
            return None
        at = at[first[at] == first[at].max()]
        return self._point(at[np.argmax(second[at])])

    def _left(self, ban: Sequence[Hashable]) -> NDArray[np.bool_] | None:
        if not len(ban):
            return None
        left = np.ones(len(self.h), dtype=bool)
        left[np.asarray(ban, dtype=np.intp)] = False
        return left

    def argmax(self) -> LabelPoint:
        """Return the label of the largest h, the first of those that tie."""
        return self._point(np.argmax(self.h))

    def lam(self, l: float, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the label of the largest h + l g among those that are not banned."""
        left = self._left(ban)
        if np.isinf(l):
            return self._best(self.g, self.h, left)
        return self._best(self.h, self.g, left) if l == 0.0 else self._best(self.h + l * self.g, self.g, left)

    def cone(self, l: float, a: float, b: float, strict: int, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the label of the largest H + l g in an angle."""
        # slopes, not products: a label whose own slope is a side of the angle is on that side exactly
        inside = (b <= self.slopes) & (self.slopes < a) if strict else (b < self.slopes) & (self.slopes <= a)
        left = self._left(ban)
        return self._best(self.h + l * self.g, self.g, inside if left is None else inside & left)

    def kbest(self, k: int) -> list[LabelPoint]:
        """Return the k labels of the largest h, best first."""
        return [self._point(at) for at in np.argsort(-self.h, kind="stable")[:k]]

    def levels(self) -> list[LabelPoint]:
        """Return for every value of g the label of the largest h."""
        order = np.lexsort((-self.h, self.g))
        first = np.flatnonzero(np.diff(self.g[order], prepend=-np.inf) > 0.0)
        return [self._point(at) for at in order[first]]


class ClassSpace(PointSpace):
    """Classes with any costs, seen from a row: h = f_j - f_y and g = L[j, y].

    Parameters
    ----------
    scores : array_like (k,)
        Scores f of the classes.
    costs : array_like (k, k)
        Costs: a row for each prediction, a column for each true class; at least 0, with 0 on the diagonal.
    y : int
        The true class.

    Raises
    ------
    DataError
        Costs that are not such a matrix.
    """

    name: ClassVar[str] = "classes"

    def __init__(self, scores: Any, costs: Any, y: int) -> None:
        f, L = np.asarray(scores, dtype=np.float64), np.asarray(costs, dtype=np.float64)
        if L.shape != (len(f), len(f)) or not (np.isfinite(L).all() and (L >= 0.0).all()) or np.diagonal(L).any():
            raise DataError(f"costs of {len(f)} classes must be a square matrix of numbers of at least 0, with 0 on its diagonal")
        if not 0 <= y < len(f):
            raise DataError(f"the true class {y} is not among {len(f)} classes")
        super().__init__(f - f[y], L[:, y], y)
