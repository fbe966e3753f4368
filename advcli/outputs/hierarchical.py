"""Sets of leaves over a hierarchy of labels: f(z) is the sum of the scores of a set's nodes, ancestors included."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..hierarchy.multilabel import LabelSets
from .base import LabelPoint, OutputSpace

Array = NDArray[np.float64]


class HierarchicalSets(OutputSpace):
    """Sets of leaves, seen from the true one; the task loss is the number of leaves that differ (choi2018 section 6.7.1).

    Best sets are exact on trees, by integer programs on DAGs (`LabelSets.best`). A label is the nodes of a set as 0 and 1, shape (M,).

    Parameters
    ----------
    sets : LabelSets
        The hierarchy.
    scores : array_like (M,)
        Scores of the nodes, that of an added root included.
    truth : array_like (M,)
        The nodes of the true set, 0 and 1, ancestors included.

    Raises
    ------
    DataError
        Scores that are not finite, or a truth that is no set of leaves with their ancestors.
    """

    name: ClassVar[str] = "hierarchical sets"
    offers = frozenset({"lam"})

    def __init__(self, sets: LabelSets, scores: Any, truth: Any) -> None:
        self.sets, self.scores = sets, np.array(scores, dtype=np.float64)
        nodes = np.asarray(truth)
        if self.scores.shape != (sets.size,) or nodes.shape != (sets.size,) or not np.isfinite(self.scores).all():
            raise DataError(f"a hierarchy of {sets.size} nodes needs as many finite scores and true nodes")
        if not np.isin(nodes, (0, 1)).all() or sets.infeasibility(nodes[None].astype(np.float64))[0] > 0.0:
            raise DataError("the true nodes are no set of leaves with their ancestors")
        self.turn = np.where(sets.leaf == 1, 1.0 - 2.0 * nodes, 0.0)
        self.size, self.score = float(nodes[sets.leaves].sum()), float(self.scores @ nodes)
        self.extent = (1.0, float(len(sets.leaves))) if len(sets.leaves) > 1 else (0.0, 0.0)
        self.truth = self._point(nodes.astype(np.uint8))

    def _point(self, nodes: NDArray[np.uint8]) -> LabelPoint:
        return LabelPoint(float(self.scores @ nodes) - self.score, float(self.turn @ nodes) + self.size, nodes, nodes.tobytes())

    def argmax(self) -> LabelPoint:
        """Return the set of the largest score."""
        return self.lam(0.0)

    def lam(self, l: float, ban: Sequence[Hashable] = ()) -> LabelPoint:
        """Return the set of the largest h + l g; of several at l = 0, any."""
        if np.isinf(l):
            l = 1.0 + 2.0 * float(np.abs(self.scores).sum())  # a leaf more outweighs all scores
        return self._point(self.sets.best((self.scores + l * self.turn)[None])[1][0])
