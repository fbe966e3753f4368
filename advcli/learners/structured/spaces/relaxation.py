"""The linear relaxation of sets of labels with a weight for every pair, for more labels than sets can be enumerated of.

Over marginals mu_j in [0, 1] of labels and mu_jk of pairs

    f(mu) = sum_j u_j mu_j + sum_{j<k} P_jk mu_jk,   max(0, mu_j + mu_k - 1) <= mu_jk <= min(mu_j, mu_k).                              (1)

Its vertices are of 0, 1/2 and 1 (Hammer, Hansen and Simeone 1984). Where all P_jk >= 0 some set is a maximum of f, and the relaxation is
exact. A maximum flow over labels and their opposites solves it (roof duality; Boros and Hammer 2002).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....core.errors import DataError
from ....core.typing import Array
from .enumerated_sets import pairs_of
from .space import LabelPoint, LabelSpace

Positions = NDArray[np.intp]

_UNITS = 2**31 - 1  # the largest capacity: SciPy's maximum flow has 32-bit numbers


@dataclass(frozen=True, eq=False)
class Marginals:
    """A point of (1): marginals of the labels (m,) and of their pairs j < k (m (m - 1) / 2,), in the order of ``triu_indices``."""

    labels: Array
    pairs: Array


class PairField:
    """The weights that sets of labels share, and the maximisers of f over (1) for any scores of the labels.

    ``pairs`` (m (m - 1) / 2,) are P_jk of the pairs j < k of m labels, in the order of ``triu_indices``; else `DataError`.
    """

    def __init__(self, pairs: Any, m: int) -> None:
        self.m, self.pairs = int(m), np.asarray(pairs, dtype=np.float64)
        if self.pairs.shape != (m * (m - 1) // 2,) or not np.isfinite(self.pairs).all():
            raise DataError(f"{m} labels need {m * (m - 1) // 2} finite weights of pairs; they have the shape {self.pairs.shape}")
        self.first, self.second = pairs_of(self.m)
        self.attracts = bool((self.pairs >= 0.0).all())

    def marginals(self, mu: Array) -> Marginals:
        """Return the point of (1) with these marginals of labels whose f is largest."""
        a, b = mu[self.first], mu[self.second]
        return Marginals(mu, np.where(self.pairs > 0.0, np.minimum(a, b), np.maximum(a + b - 1.0, 0.0)))

    def score(self, u: Array, at: Marginals) -> float:
        """Return f of a point of (1) at scores u (m,)."""
        return float(u @ at.labels + self.pairs @ at.pairs)

    @cached_property
    def _network(self) -> tuple[Positions, Positions, Array, Positions]:
        """Arcs of the flow as columns and row starts of a sparse matrix, their capacity from pairs, and the positions of the labels' arcs.

        Nodes are the source, the labels, their opposites and the sink. A term of two literals is two arcs of half its weight, from each to
        the opposite of the other. Every label has four arcs more: from the source to it and from its opposite to the sink, which carry a
        score above 0, and from the source to its opposite and from it to the sink.
        """
        m = self.m
        label, opposite, sink = 1 + np.arange(m), 1 + m + np.arange(m), 2 * m + 1
        used = self.pairs != 0.0
        J, K, P = self.first[used], self.second[used], self.pairs[used]
        attracts = P > 0.0
        # P > 0: P x_j (1 - x_k) is paid; P < 0: |P| x_j x_k
        tail = [label[J], np.where(attracts, opposite[K], label[K])]
        head = [np.where(attracts, label[K], opposite[K]), opposite[J]]
        tail += [np.zeros(m, dtype=np.intp), opposite, np.zeros(m, dtype=np.intp), label]
        head += [label, np.full(m, sink), opposite, np.full(m, sink)]
        rows, columns = np.concatenate(tail), np.concatenate(head)
        half = np.concatenate([np.abs(P) / 2.0, np.abs(P) / 2.0, np.zeros(4 * m)])
        order = np.lexsort((columns, rows))
        where = np.argsort(order)
        start = np.searchsorted(rows[order], np.arange(sink + 2))
        return columns[order], start, half[order], where[2 * len(P) :].reshape(4, m)

    def flow(self, u: Array) -> tuple[Array, float]:
        """Return marginals of labels (m,) that maximise f, and an upper bound of f over (1), by a maximum flow.

        Capacities are rounded down to whole numbers, so the flow stays one for the true capacities and its value a bound; f at the
        marginals falls short of it by the roundings.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        m = self.m
        columns, start, half, of_labels = self._network
        total = u + np.bincount(self.first, weights=np.maximum(self.pairs, 0.0), minlength=m)
        up, down = np.maximum(total, 0.0), np.maximum(-total, 0.0)
        capacity = half.copy()
        capacity[of_labels] = np.array([up, up, down, down]) / 2.0
        unit = (float(capacity.max()) or 1.0) / _UNITS
        whole = np.minimum(np.floor(capacity / unit), _UNITS).astype(np.int32)
        nodes = 2 * m + 2
        graph = csr_array((whole, columns.astype(np.int32), start.astype(np.int32)), shape=(nodes, nodes))
        result = maximum_flow(graph, 0, nodes - 1)
        room = graph.toarray().astype(np.int64) > result.flow.toarray()
        reached, frontier = np.zeros(nodes, dtype=bool), np.arange(1)
        while len(frontier):
            reached[frontier] = True
            frontier = np.flatnonzero(room[frontier].any(axis=0) & ~reached)
        # what the source reaches is true in some best set
        ones, zeros = reached[1 : m + 1], reached[m + 1 : 2 * m + 1]
        mu = ones.astype(float) if self.attracts else np.where(ones, 1.0, np.where(zeros, 0.0, 0.5))
        return mu, float(up.sum()) - float(result.flow[0].sum()) * unit

    def rounded(self, u: Array, mu: Array) -> NDArray[np.int8]:
        """Return a set (m,) near marginals that maximise f: labels of 0 and 1 stay, as in some best set, halves climb from 0.

        A label of one half is taken, or given back, while f gains by it, the largest gain first. Where pairs attract there is none.
        """
        y = (mu > 0.5 + 1e-6).astype(np.int8)
        open_ = np.abs(mu - 0.5) <= 0.5 - 1e-6
        square = np.zeros((self.m, self.m))
        square[self.first, self.second] = square[self.second, self.first] = self.pairs
        while open_.any():
            gain = np.where(open_, (1 - 2 * y) * (u + square @ y), -np.inf)
            at = int(np.argmax(gain))
            if gain[at] <= 1e-12 * (abs(u[at]) + np.abs(square[at]).sum()):
                break
            y[at] = 1 - y[at]
        return y


class RelaxedSets(LabelSpace):
    """The relaxation (1), seen from the true set y (m,) of an example with scores u (m,); its labels are `Marginals`.

    Hamming is the task loss: g = |y| + sum_j (1 - 2 y_j) mu_j, and h = f(mu) - f(y). In the axes of ``f1`` h is the sum of both and g is
    -(sum_j mu_j + |y|).
    """

    name: ClassVar[str] = "relaxed sets"
    offers = frozenset({"lam"})
    integral = False

    def __init__(self, field: PairField, u: Any, y: Any, axes: str = "margin") -> None:
        self.field = field
        u, y = np.array(u, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if u.shape != (field.m,) or y.shape != (field.m,) or not np.isfinite(u).all() or not np.isin(y, (0.0, 1.0)).all():
            raise DataError(f"a set of {field.m} labels needs as many finite scores and labels of 0 and 1")
        true = field.marginals(y)
        turn, score, size = 1.0 - 2.0 * y, field.score(u, true), float(y.sum())
        if axes == "f1":
            self.u_h, self.h0, self.u_g, self.g0 = u + turn, size - score, np.full(field.m, -1.0), -size
        else:
            self.u_h, self.h0, self.u_g, self.g0 = u, -score, turn, size
        self.extent = (1.0, float(field.m))
        self.truth = self._point(true)

    def _point(self, at: Marginals) -> LabelPoint:
        halves = np.rint(2.0 * at.labels)
        whole = bool(np.abs(2.0 * at.labels - halves).max(initial=0.0) <= 1e-6)
        h, g = self.field.score(self.u_h, at) + self.h0, float(self.u_g @ at.labels) + self.g0
        return LabelPoint(h, g, at, halves.astype(np.int8).tobytes() if whole else None)

    def lam(self, l: float, ban: Sequence[Hashable] = ()) -> LabelPoint:
        """Return the vertex of the largest h + l g; of several, any."""
        if np.isinf(l):
            return self._point(self.field.marginals((self.u_g > 0.0).astype(float)))
        u = self.u_h + l * self.u_g
        mu, upper = self.field.flow(u)
        best = self.field.marginals(mu)
        self.shortfall = max(self.shortfall, upper - self.field.score(u, best))
        return self._point(best)

    def mix(self, first: LabelPoint, second: LabelPoint, weight: float) -> Marginals:
        """Return ``weight`` times the first point plus the rest of the second."""
        one, other = first.label, second.label
        return Marginals(*(weight * getattr(one, part) + (1.0 - weight) * getattr(other, part) for part in ("labels", "pairs")))
