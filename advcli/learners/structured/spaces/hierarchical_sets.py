"""Sets of leaves over a hierarchy of labels: f(z) is the sum of the scores of a set's nodes, ancestors included.

A set has at least one leaf. The task loss is the number of leaves that differ (Choi 2018, section 6.7.1).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....core.errors import DataError
from ....core.typing import Array
from ....data.labels.best_sets import LabelSets
from .space import LabelPoint, LabelSpace

Bits = NDArray[np.uint8]

# part of the largest score by which a set found by an integer program may lie below the best one (`LabelSets.best`)
SOLVERS_ROUNDING = 2e-6
_ANGLE = 1e-9  # relative width by which an integer program's angle is wider than the one asked for: rounding must shut nothing out


class TreeLevels:
    """The best set of leaves at every distance from a centre, over a tree, for many rows at once.

    The table of a node has, for every distance of the leaves below it, the largest score of some of them, at least one. It is the max-plus
    product of the children's tables, in which a child may have no leaf as well: its distance is then the number of the centre's leaves
    below it. A row of L leaves takes at most some L^2 sums. R (n, M) are scores of the nodes, and ``centre`` (n, L) leaves in the order of
    ``sets.leaves``; none at all makes the distance the size. ``best`` (n, L + 1) is the largest score at every distance, -infinity where no
    set lies.
    """

    def __init__(self, sets: LabelSets, R: Array, centre: NDArray[np.integer]) -> None:
        self.sets, self.n = sets, len(R)
        self.empty = np.zeros((sets.size, self.n), dtype=np.intp)  # distance of no leaf below a node
        self.some: list[Array] = [np.empty(0)] * sets.size  # (n, leaves below + 1), at least one leaf
        self.any: list[Array] = [np.empty(0)] * sets.size  # or none
        self.before: list[list[Array]] = [[] for _ in range(sets.size)]  # at least one leaf below the first children, by their number
        self.empty[sets.leaves] = np.asarray(centre, dtype=np.intp).T
        for node in range(sets.size - 1, -1, -1):
            below = self._below(node)
            if len(below):
                self._merge(node, below)
                table = self.before[node][-1] + R[:, [node]]
            else:
                table = np.full((self.n, 2), -np.inf)
                table[np.arange(self.n), 1 - self.empty[node]] = R[:, node]
            either, rows = table.copy(), np.arange(self.n)
            either[rows, self.empty[node]] = np.maximum(either[rows, self.empty[node]], 0.0)
            self.some[node], self.any[node] = table, either
        self.best = self.some[0]

    def _below(self, node: int) -> NDArray[np.int32]:
        return self.sets.child[self.sets.start[node] : self.sets.start[node + 1]]

    def _merge(self, node: int, below: NDArray[np.int32]) -> None:
        """Fill the tables of a node's first children, one child more at a time."""
        table = self.some[below[0]]
        empty = self.empty[below[0]].copy()
        self.before[node].append(table)
        for child in below[1:]:
            table = np.maximum(_product(table, self.any[child]), _shifted(self.some[child], empty, table.shape[1] - 1))
            empty += self.empty[child]
            self.before[node].append(table)
        self.empty[node] = empty

    def nodes(self, level: NDArray[np.intp]) -> Bits:
        """Return a best set of every row at these distances (n,), its nodes as 0 and 1 (n, M)."""
        sets, rows = self.sets, np.arange(self.n)
        wanted = np.full((sets.size, self.n), -1, dtype=np.intp)  # distance of what is taken below a node; -1: nothing is
        wanted[0] = level
        for node in range(sets.size):
            below, left = self._below(node), wanted[node].copy()
            if not len(below):
                continue
            empty = self.empty[below].cumsum(axis=0)  # of the first children
            for at in range(len(below) - 1, 0, -1):
                child, before = below[at], self.before[node][at - 1]
                # some leaf below the earlier children, and any below this one at distance j
                width = self.any[child].shape[1]
                place = left[:, None] - np.arange(width)
                inside = (place >= 0) & (place < before.shape[1])
                sums = np.where(inside, before[rows[:, None], np.clip(place, 0, before.shape[1] - 1)] + self.any[child], -np.inf)
                j = np.argmax(sums, axis=1)
                # or none below the earlier ones
                alone = left - empty[at - 1]
                fits = (alone >= 0) & (alone < width)
                only = np.where(fits, self.some[child][rows, np.clip(alone, 0, width - 1)], -np.inf)
                active = left >= 0
                last = active & (only > sums[rows, j])
                taken = np.where(last, alone, j)
                # none below this child where that is what its table has at j
                nothing = ~last & (taken == self.empty[child]) & (self.some[child][rows, taken.clip(0)] < 0.0)
                wanted[child] = np.where(active & ~nothing, taken, -1)
                left = np.where(last, -1, np.where(active, left - j, -1))
            wanted[below[0]] = left
        return (wanted >= 0).T.astype(np.uint8)


def _product(first: Array, second: Array) -> Array:
    """Return the max-plus product of two tables (n, p) and (n, q), (n, p + q - 1)."""
    if first.shape[1] < second.shape[1]:
        first, second = second, first
    p, q = first.shape[1], second.shape[1]
    table = np.full((len(first), p + q - 1), -np.inf)
    for j in range(q):
        np.maximum(table[:, j : j + p], first + second[:, [j]], out=table[:, j : j + p])
    return table


def _shifted(table: Array, by: NDArray[np.intp], most: int) -> Array:
    """Return each row of a table (n, q) moved by its own number, at most ``most``, (n, q + most); -infinity elsewhere."""
    place = np.arange(table.shape[1] + most) - by[:, None]
    inside = (place >= 0) & (place < table.shape[1])
    return np.where(inside, np.take_along_axis(table, np.clip(place, 0, table.shape[1] - 1), axis=1), -np.inf)


class HierarchicalSets(LabelSpace):
    """Sets of leaves, seen from the true one. A label is the nodes of a set as 0 and 1, shape (M,).

    Best sets are exact on trees, and within `SOLVERS_ROUNDING` by integer programs on DAGs (`LabelSets.best`). Angles and banned sets are
    integer programs on both (`LabelSets.best_within`). ``scores`` (M,) belong to the nodes, an added root included, ``truth`` (M,) are
    the nodes of the true set, its leaves and their ancestors; else `DataError`. The ``axes`` are as in `EnumeratedSets`, with leaves.
    """

    name: ClassVar[str] = "hierarchical sets"

    def __init__(self, sets: LabelSets, scores: Any, truth: Any, axes: str = "margin") -> None:
        self.sets, self.scores = sets, np.array(scores, dtype=np.float64)
        nodes = np.asarray(truth)
        if self.scores.shape != (sets.size,) or nodes.shape != (sets.size,) or not np.isfinite(self.scores).all():
            raise DataError(f"a hierarchy of {sets.size} nodes needs as many finite scores and true nodes")
        if not np.isin(nodes, (0, 1)).all() or sets.infeasibility(nodes[None].astype(np.float64))[0] > 0.0:
            raise DataError("the true nodes are no set of leaves with their ancestors")
        self.offers = frozenset({"lam", "ban", "cone"} | ({"levels"} if sets.is_tree else set()))
        size, own = float(nodes[sets.leaves].sum()), float(self.scores @ nodes)
        turn = np.where(sets.leaf == 1, 1.0 - 2.0 * nodes, 0.0)
        # h = along_h . z + at_h, and g alike
        if axes == "f1":
            self.along_h, self.at_h = self.scores + turn, size - own
            self.along_g, self.at_g = -sets.leaf.astype(np.float64), -size
            self.centre = np.zeros(len(sets.leaves), dtype=np.intp)
        else:
            self.along_h, self.at_h = self.scores, -own
            self.along_g, self.at_g = turn, size
            self.centre = nodes[sets.leaves].astype(np.intp)
        self.extent = (1.0, float(len(sets.leaves))) if len(sets.leaves) > 1 else (0.0, 0.0)
        self.truth = self._point(nodes.astype(np.uint8))

    def _point(self, nodes: Bits) -> LabelPoint:
        return LabelPoint(float(self.along_h @ nodes) + self.at_h, float(self.along_g @ nodes) + self.at_g, nodes, nodes.tobytes())

    def lam(self, l: float, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the set of the largest h + l g that is not banned, None if all are; of several at l = 0, any."""
        if np.isinf(l):
            l = 1.0 + 2.0 * float(np.abs(self.along_h).sum())  # a leaf more outweighs all scores
        along = self.along_h + l * self.along_g
        if not self.sets.is_tree:
            self.shortfall = max(self.shortfall, SOLVERS_ROUNDING * float(np.abs(along).max()))
        if not len(ban):
            return self._point(self.sets.best(along[None])[1][0])
        return self._within(along, np.zeros((0, self.sets.size)), np.zeros(0), ban)

    def cone(self, l: float, a: float, b: float, strict: int, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the set of the largest H + l g in an angle; on its strict side may lie sets that no call has found."""
        # g <= a H as g/a <= H, a being infinite at first, and b H <= g; both a little wider, so that rounding shuts nothing out
        rows = np.array([self.along_g / a - self.along_h, b * self.along_h - self.along_g])
        above = np.array([self.at_h + 1.0 - self.at_g / a, self.at_g - b * (self.at_h + 1.0)])
        scale = np.abs(rows).max(axis=1) + np.abs(above) + 1e-300
        keys = [self.truth.key, *ban] if b == 0.0 and not strict else list(ban)  # no other set has g = 0
        while True:
            point = self._within(self.along_h + l * self.along_g, rows / scale[:, None], above / scale + _ANGLE, keys)
            if point is None or point.h > -1.0:
                return point
            keys.append(point.key)  # at the origin, let in by the width

    def _within(self, along: Array, rows: Array, above: Array, ban: Sequence[Hashable]) -> LabelPoint | None:
        banned = [np.frombuffer(key, dtype=np.uint8) for key in ban if isinstance(key, bytes)]
        nodes = self.sets.best_within(along, rows, above, banned)
        return None if nodes is None else self._point(nodes)

    def levels(self) -> list[LabelPoint]:
        """Return the best set at every value of g, over a tree."""
        if not self.sets.is_tree:
            raise self.lacks("levels")
        count = len(self.sets.leaves) + 1
        tables = TreeLevels(self.sets, np.tile(self.along_h, (count, 1)), np.tile(self.centre, (count, 1)))  # a row for each level
        reached = np.flatnonzero(tables.best[0] > -np.inf)
        level = np.full(count, reached[0])
        level[reached] = reached
        return sorted((self._point(nodes) for nodes in tables.nodes(level)[reached]), key=lambda point: point.g)
