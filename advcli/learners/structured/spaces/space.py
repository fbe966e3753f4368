"""What a structured output space is to a search: labels of one example as points (h, g), and the oracles that find some of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ....core.errors import IncompatibleError

ORACLES = ("lam", "ban", "cone", "kbest", "levels", "marginals", "game")
"""What a space may offer beside `OutputSpace.argmax`; ``ban`` is `OutputSpace.lam` over the labels that are not banned."""


@dataclass(frozen=True)
class LabelPoint:
    """A label as searches see it (choi2018 chapter 4).

    Attributes
    ----------
    h, g : float
        Its coordinates: margin f(y) - f(y_i) and task loss L(y, y_i), or what the surrogate's ``axes`` name in their place.
    label : object
        What the space calls it.
    key : hashable
        Tells it from other labels.
    """

    h: float
    g: float
    label: Any = None
    key: Hashable = None


class OutputSpace(ABC):
    """The labels of one example, seen from its true label.

    Attributes
    ----------
    offers : frozenset of str
        The `ORACLES` that it has.
    integral : bool
        Whether every point is a label; False for a relaxation, whose points are mixtures of labels and whose maxima are upper bounds.
    truth : LabelPoint
        The true label; in the axes of margins (0, 0).
    shortfall : float
        How far the answer of `lam` may lie below the largest h + l g: a solver's rounding, 0 for an exact oracle. It may grow by a call.
    extent : (float, float)
        Least positive and largest task loss of a label, or bounds of them: what searches know without a call. Both 0 if every label
        is free.
    """

    name: ClassVar[str]
    offers: frozenset[str]
    integral: bool = True
    shortfall: float = 0.0
    truth: LabelPoint
    extent: tuple[float, float]

    @abstractmethod
    def argmax(self) -> LabelPoint:
        """Return the label of the largest score."""

    def lam(self, l: float, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the label of the largest h + l g among those that are not banned, None if all are.

        At l = infinity the largest g, ties by h; at l = 0 the largest h, ties by g.
        """
        raise self.lacks("lam")

    def cone(self, l: float, a: float, b: float, strict: int, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the label of the largest H + l g, H = h + 1 > 0, in an angle; None if there is none.

        The angle is b H < g <= a H (``strict`` 0) or b H <= g < a H (``strict`` 1); choi2018 eq. 4.4. ``ban`` names labels found before,
        which rounding must not let in on the strict side; a relaxation, whose points have no keys, takes none.
        """
        raise self.lacks("cone")

    def kbest(self, k: int) -> list[LabelPoint]:
        """Return the k labels of the largest scores, best first; all where there are fewer."""
        raise self.lacks("kbest")

    def levels(self) -> list[LabelPoint]:
        """Return for every value of g that occurs the label of the largest h, g rising: among them is the maximum of every surrogate."""
        raise self.lacks("levels")

    def mix(self, first: LabelPoint, second: LabelPoint, weight: float) -> Any:
        """Return ``weight`` times the first label plus the rest of the second: a label of a relaxation (``integral`` False)."""
        raise IncompatibleError("a mixture of labels", "a relaxation", f"{self.name} has integral labels")

    def lacks(self, oracle: str) -> IncompatibleError:
        """Return the error of an oracle that the space does not have."""
        return IncompatibleError(f"the oracle {oracle}", "a space that offers it", f"{self.name} offers {', '.join(sorted(self.offers))}")
