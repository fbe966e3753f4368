"""Bounds of sets of leaves over a tree of labels, from the definition of their surrogates (advcli.verify of ``loss=hierarchical_sets``).

    P(w) = lambda/2 |w|^2 + 1/n sum_i s_i max over z of psi(h, g),   h = f(z) - f(y_i),   g = leaves in which z and y_i differ

over sets z of at least one leaf, f(z) the sum of the scores of its nodes, those above its leaves included. As in `structured` stored sets
with numbers h0 and weights alpha are tangents, whose dual value is at most min P. The maximum is taken through the largest f at every g,
or of ``f1`` at every size: the tables of a node's children are added for all pairs of levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..core.typing import Array
from .bounds import Ball, ball, between, dot, inverse
from .gap import Bounds, LearnedRows, ScoreMap
from .label_sets import Structured, SurrogateOfMargin, cut, gathering
from .surrogates import CannotError

Tables = tuple[Array, Array]
"""Numbers below and above the largest score at every level, (n, levels) each; -infinity for a level without a set."""


class SetsOfLeaves(Structured):
    """Sets of the leaves of the tree of the options, or else of the data."""

    def __init__(self, options: Mapping[str, Any], labels: list[str], hierarchy: Iterable[tuple[str, str]] | None) -> None:
        self.psi = SurrogateOfMargin(options)
        self.refuse_mixtures(options)
        tree = options.get("hierarchy")
        edges = hierarchy if tree is None else tree["edges"] if isinstance(tree, Mapping) else tree
        above: dict[str, str] = {}
        for parent, child in [] if edges is None else edges:
            if above.setdefault(str(child), str(parent)) != str(parent):
                raise CannotError(f"{child!r} has several parents: the checker looks at the sets of a tree")
        if missing := [label for label in labels if label not in above or label in above.values()]:
            raise CannotError(f"{missing[0]!r} is not a leaf of the hierarchy")
        paths = [_path(label, above) for label in labels]
        names = sorted(set().union(*paths))
        super().__init__(options, len(names))
        self.k, self.M = len(labels), len(names)
        self.member = np.array([[float(name in path) for name in names] for path in paths])  # labels x nodes
        number = {name: node for node, name in enumerate(names)}
        self.leaf = {number[label]: code for code, label in enumerate(labels)}
        self.below: dict[int, list[int]] = {node: [] for node in range(self.M)}
        for name in names:
            if name in above:
                self.below[number[above[name]]].append(number[name])
        self.tops = [number[name] for name in names if name not in above]

    def nodes(self, Y: Array) -> Array:
        """Return the nodes of sets of labels Y (n, k), (n, M)."""
        return (Y @ self.member > 0.0).astype(np.float64)

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        """Return the bounds of a fit; `ValueError` for an array of the wrong shape, or a plane of an example or a set that is none."""
        n, W, Y = features.X.shape[0], self.weights(features, arrays["theta"])[0], rows.sets(self.k)
        counts, share = rows.shares()
        ridge = features.square_norm(W) * (0.5 * lam)
        losses = (self.above(features.times(features.X, W), Y) * counts).sum() * share
        owner, alpha, contact, sets = self._planes(arrays["r"], n)
        true = Y[owner]
        coefficient, constant = self.psi.planes(contact, ball(alpha) * counts[owner], sets, true)
        moments = features.moments(dot(gathering(owner, n), coefficient[:, None] * (self.nodes(sets) - self.nodes(true))))
        square = features.square_norm(moments)
        return Bounds(ridge + losses, constant * share - square * share * share * inverse(ball(2.0 * lam)), ridge)

    def _planes(self, planes: Array, n: int) -> tuple[Any, Array, Array, Array]:
        """Return examples, weights, points of contact and sets of stored planes (p, 3 + k)."""
        if planes.ndim != 2 or planes.shape[1] != 3 + self.k:
            raise ValueError(f"r has the shape {planes.shape}, not {3 + self.k} columns")
        owner, sets = planes[:, 0].astype(np.int64), planes[:, 3:]
        if not ((owner == planes[:, 0]) & (owner >= 0) & (owner < n)).all():
            raise ValueError("r names an example that there is not")
        if not np.isin(sets, (0.0, 1.0)).all() or not sets.any(axis=1).all():
            raise ValueError("r names a set that there is not")
        return owner, cut(planes[:, 1], owner, n), planes[:, 2], sets

    def above(self, U: Ball, Y: Array) -> Ball:
        """Return the surrogate of rows (n,) with scores U (n, M) of the nodes, whose sets of labels are Y (n, k)."""
        nodes, sizes = self.nodes(Y), Y.sum(axis=1)
        scores = (U * nodes).sum(axis=1)
        level = np.broadcast_to(np.arange(self.k + 1.0), (len(Y), self.k + 1))
        if self.psi.name == "f1":  # Hamming + margin at every size
            columns = np.zeros((self.k, self.M))
            columns[list(self.leaf.values()), list(self.leaf)] = 1.0
            U = U + (1.0 - 2.0 * Y) @ columns
            scores, centre = scores - sizes, np.zeros(Y.shape)
        else:
            centre = Y
        low, high = self._together(self.tops, U, centre)[0]  # the largest f at every distance from the centre
        there = np.isfinite(high)
        low, high = np.where(there, low, 0.0), np.where(there, high, 0.0)
        distances = (0.0 * level, level + sizes[:, None]) if self.psi.name == "f1" else (level, level)
        value = self.psi.value(between(low, high) - scores[:, None], *distances)
        # the true set is among them and has the value 0
        return Ball(np.where(there, value.mid, 0.0), np.where(there, value.rad, 0.0)).max(axis=1)

    def _together(self, nodes: list[int], U: Ball, centre: Array) -> tuple[Tables, Tables]:
        """Return the tables of the sets below some nodes, of those with a leaf and of the one without."""
        some, none = self._of(nodes[0], U, centre)
        for node in nodes[1:]:
            more, without = self._of(node, U, centre)
            some = _larger(_added(some, _larger(more, without)), _added(none, more))
            none = _added(none, without)
        return some, none

    def _of(self, node: int, U: Ball, centre: Array) -> tuple[Tables, Tables]:
        """Return the tables of the sets below a node, its own score added."""
        if node in self.leaf:
            in_centre = centre[:, [self.leaf[node]]] > 0.0
            without = np.hstack([~in_centre, in_centre])  # the distance of none
            none = np.where(without, 0.0, -np.inf)
            some = np.where(without, -np.inf, 0.0)
            both: tuple[Tables, Tables] = (some, some), (none, none)
        else:
            both = self._together(self.below[node], U, centre)
        low, high = both[0]
        return (_outside(low + U.low[:, [node]], -1.0), _outside(high + U.high[:, [node]], 1.0)), both[1]


def _path(label: str, above: Mapping[str, str]) -> list[str]:
    path = [label]
    while path[-1] in above:
        path.append(above[path[-1]])
        if len(path) > len(above) + 1:
            raise CannotError("the hierarchy has a circle")
    return path


def _outside(value: Array, side: float) -> Array:
    """Return rounded sums moved to the side of their exact ones."""
    return np.where(np.isfinite(value), np.nextafter(value, side * np.inf), value)


def _larger(first: Tables, second: Tables) -> Tables:
    return np.maximum(first[0], second[0]), np.maximum(first[1], second[1])


def _added(first: Tables, second: Tables) -> Tables:
    """Return the largest sums at every sum of two levels."""
    tables = []
    for a, b, side in zip(first, second, (-1.0, 1.0), strict=True):
        table = np.full((len(a), a.shape[1] + b.shape[1] - 1), -np.inf)
        for j in range(b.shape[1]):
            table[:, j : j + a.shape[1]] = np.maximum(table[:, j : j + a.shape[1]], _outside(a + b[:, [j]], side))
        tables.append(table)
    return tables[0], tables[1]
