"""Label spaces as searches see them: the labels of one example as points (h, g), and the oracles that find some of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....core.errors import DataError, IncompatibleError
from ....core.typing import Array


@dataclass(frozen=True)
class LabelPoint:
    """A label as searches see it (Choi 2018, chapter 4): its coordinates, what the space calls it, and a key that tells it from others.

    h and g are the margin f(y) - f(y_i) and the task loss L(y, y_i), or what the surrogate's ``axes`` name in their place.
    """

    h: float
    g: float
    label: Any = None
    key: Hashable = None


class LabelSpace:
    """The labels of one example, seen from its true label."""

    name: ClassVar[str]
    offers: frozenset[str]  # the oracles that it has: lam, cone, levels, and ban, which is lam over the labels that are not banned
    integral: bool = True  # whether every point is a label; False for a relaxation, whose points are mixtures, whose maxima upper bounds
    shortfall: float = 0.0  # how far the answer of `lam` may lie below the largest h + l g, by a solver's rounding; may grow by a call
    truth: LabelPoint  # the true label; in the axes of margins (0, 0)
    extent: tuple[float, float]  # least positive and largest task loss of a label, or bounds of them; both 0 if every label is free

    def lam(self, l: float, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the label of the largest h + l g among the labels that are not banned, None if all are.

        At l = infinity the largest g, ties by h; at l = 0 the largest h, ties by g.
        """
        raise self.lacks("lam")

    def cone(self, l: float, a: float, b: float, strict: int, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the label of the largest H + l g, H = h + 1 > 0, in an angle; None if there is none.

        The angle is b H < g <= a H (``strict`` 0) or b H <= g < a H (``strict`` 1); Choi 2018, eq. 4.4. ``ban`` names labels found before,
        which rounding must not let in on the strict side; a relaxation, whose points have no keys, takes none.
        """
        raise self.lacks("cone")

    def levels(self) -> list[LabelPoint]:
        """Return for every value of g that occurs the label of the largest h, g rising: among them is the maximum of every surrogate."""
        raise self.lacks("levels")

    def mix(self, first: LabelPoint, second: LabelPoint, weight: float) -> Any:
        """Return ``weight`` times the first label plus the rest of the second: a label of a relaxation (``integral`` False)."""
        raise IncompatibleError("a mixture of labels", "a relaxation", f"{self.name} has integral labels")

    def lacks(self, oracle: str) -> IncompatibleError:
        """Return the error of an oracle that the space does not have."""
        return IncompatibleError(f"the oracle {oracle}", "a space that offers it", f"{self.name} offers {', '.join(sorted(self.offers))}")


class PointSpace(LabelSpace):
    """Labels given by finite coordinates h and g (M,), else `DataError`; every oracle is a scan. A label is its position, also its key.

    Examples
    --------
    >>> from advcli.learners.structured.spaces.psi import make_psi
    >>> from advcli.learners.structured.spaces.searches import search_of
    >>> from advcli.learners.structured.spaces.space import PointSpace
    >>> space = PointSpace(h=[0.0, -0.999, 1.0, 0.0], g=[0.0, 4.0, 0.001, 2.0])
    >>> found = search_of("levels", space)(space, make_psi("slack"))
    >>> found.label, round(float(found.value), 3)
    (3, 2.0)
    """

    name: ClassVar[str] = "points"
    offers = frozenset({"lam", "ban", "cone", "levels"})

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

    def _best(self, first: Array, second: Array, allowed: NDArray[np.bool_] | None) -> LabelPoint | None:
        """Return the label of the largest ``first``, ties by ``second`` and then by position, of the labels that are left."""
        at = np.arange(len(first)) if allowed is None else np.flatnonzero(allowed)
        if not len(at):
            return None
        at = at[first[at] == first[at].max()]
        return self._point(at[np.argmax(second[at])])

    def _allowed(self, ban: Sequence[Hashable]) -> NDArray[np.bool_] | None:
        if not len(ban):
            return None
        allowed = np.ones(len(self.h), dtype=bool)
        allowed[np.asarray(ban, dtype=np.intp)] = False
        return allowed

    def lam(self, l: float, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the label of the largest h + l g among the labels that are not banned."""
        allowed = self._allowed(ban)
        if np.isinf(l):
            return self._best(self.g, self.h, allowed)
        return self._best(self.h, self.g, allowed) if l == 0.0 else self._best(self.h + l * self.g, self.g, allowed)

    def cone(self, l: float, a: float, b: float, strict: int, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the label of the largest H + l g in an angle."""
        # slopes, not products: a label whose own slope is a side of the angle is on that side exactly
        inside = (b <= self.slopes) & (self.slopes < a) if strict else (b < self.slopes) & (self.slopes <= a)
        allowed = self._allowed(ban)
        return self._best(self.h + l * self.g, self.g, inside if allowed is None else inside & allowed)

    def levels(self) -> list[LabelPoint]:
        """Return for every value of g the label of the largest h."""
        order = np.lexsort((-self.h, self.g))
        first = np.flatnonzero(np.diff(self.g[order], prepend=-np.inf) > 0.0)
        return [self._point(at) for at in order[first]]
