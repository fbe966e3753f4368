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
from .bounds import UNIT, Ball, ball, dot, inverse, outward
from .gap import Bounds, LearnedRows, ScoreMap
from .label_sets import Structured, SurrogateOfMargin, cut, gathering
from .surrogates import CannotError

Tables = tuple[Array, Array]
"""Numbers below and above the largest score at every level, (n, levels) each; -infinity where there is no set."""


class SetsOfLeaves(Structured):
    """Sets of the leaves of a tree, the data's or that of the options."""

    def __init__(self, options: Mapping[str, Any], labels: list[str], hierarchy: Iterable[tuple[str, str]] | None) -> None:
        self.psi = SurrogateOfMargin(options)
        self.refuse_mixtures(options)
        given = options.get("hierarchy")
        edges = hierarchy if given is None else given["edges"] if isinstance(given, Mapping) else given
        above: dict[str, str] = {}
        for parent, child in [] if edges is None else edges:
            if above.setdefault(str(child), str(parent)) != str(parent):
                raise CannotError(f"{child!r} has several parents: the checker looks at the sets of a tree")
        if missing := [label for label in labels if label not in above or label in above.values()]:
            raise CannotError(f"{missing[0]!r} is no leaf of the hierarchy")
        paths = [_path(label, above) for label in labels]
        names = sorted(set().union(*paths))
        super().__init__(options, len(names))
        self.k, self.M = len(labels), len(names)
        self.member = np.array([[float(name in path) for name in names] for path in paths])  # labels x nodes
        number = {name: at for at, name in enumerate(names)}
        self.leaf = {number[label]: code for code, label in enumerate(labels)}
        self.below: dict[int, list[int]] = {at: [] for at in range(self.M)}
        for name in names:
            if name in above:
                self.below[number[above[name]]].append(number[name])
        self.tops = [number[name] for name in names if name not in above]

    def nodes(self, Y: Array) -> Array:
        """Return the nodes of sets of labels Y (n, k), (n, M)."""
        return (Y @ self.member > 0.0).astype(np.float64)

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        """Return the bounds of a fit to the rows of ``features``.

        Raises
        ------
        ValueError
            An array of the wrong shape, or a plane of an example that does not exist or of no label.
        """
        n, planes, W = features.X.shape[0], arrays["r"], self.weights(features, arrays["theta"])[0]
        Y = (rows.y.toarray() if hasattr(rows.y, "toarray") else np.eye(self.k)[rows.y]).astype(np.float64)
        counts = np.ones(n) if rows.counts is None else rows.counts
        share = inverse(ball(counts).sum())  # 1 / n
        ridge = features.square_norm(W) * (0.5 * lam)
        losses = (self.above(features.times(features.X, W), Y) * counts).sum() * share
        owner, alpha, at, found = self._planes(planes, n)
        true = Y[owner]
        slope, constant = self.psi.tangent(at, np.abs(found - true).sum(axis=1), found.sum(axis=1) + true.sum(axis=1))
        weight = ball(alpha) * counts[owner]
        moments = features.moments(dot(gathering(owner, n), (weight * slope)[:, None] * (self.nodes(found) - self.nodes(true))))
        square = features.square_norm(moments)
        offset = (weight * constant).sum() * share
        return Bounds(ridge + losses, offset - square * share * share * inverse(ball(2.0 * lam)), ridge)

    def _planes(self, planes: Array, n: int) -> tuple[Any, Array, Array, Array]:
        """Return examples, weights, points of contact and sets of stored planes (p, 3 + k)."""
        if planes.ndim != 2 or planes.shape[1] != 3 + self.k:
            raise ValueError(f"r has the shape {planes.shape}, not {3 + self.k} columns")
        owner, found = planes[:, 0].astype(np.int64), planes[:, 3:]
        if not ((owner == planes[:, 0]) & (owner >= 0) & (owner < n)).all():
            raise ValueError("r names an example that there is not")
        if not np.isin(found, (0.0, 1.0)).all() or not found.any(axis=1).all():
            raise ValueError("r names a set that there is not")
        return owner, cut(planes[:, 1], owner, n), planes[:, 2], found

    def above(self, U: Ball, Y: Array) -> Ball:
        """Return the surrogate of rows (n,) with scores U (n, M) of the nodes, whose sets of labels are Y (n, k)."""
        nodes, sizes = self.nodes(Y), Y.sum(axis=1)
        own = (U * nodes).sum(axis=1)
        level = np.broadcast_to(np.arange(self.k + 1.0), (len(Y), self.k + 1))
        if self.psi.name == "f1":  # Hamming + margin at every size
            U = U + (1.0 - 2.0 * Y) @ self._leaf_columns()
            own, centre = own - sizes, np.zeros(Y.shape)
        else:
            centre = Y
        low, high = self._largest(U, centre)
        there = np.isfinite(high)
        low, high = np.where(there, low, 0.0), np.where(there, high, 0.0)
        middle = 0.5 * (low + high)
        best = Ball(middle, outward(np.maximum(high - middle, middle - low) + UNIT * np.abs(middle)))
        value = self.psi.value(best - own[:, None], *((0.0 * level, level + sizes[:, None]) if self.psi.name == "f1" else (level, level)))
        # the true set is among them and has the value 0
        return Ball(np.where(there, value.mid, 0.0), np.where(there, value.rad, 0.0)).max(axis=1)

    def _leaf_columns(self) -> Array:
        columns = np.zeros((self.k, self.M))
        for node, code in self.leaf.items():
            columns[code, node] = 1.0
        return columns

    def _largest(self, U: Ball, centre: Array) -> Tables:
        """Return the largest f of sets at every distance from centres (n, k)."""
        return self._together(self.tops, U, centre)[0]

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
            at = np.hstack([~in_centre, in_centre])  # the distance of none
            none = np.where(at, 0.0, -np.inf)
            some = np.where(at, -np.inf, 0.0)
            both: tuple[Tables, Tables] = (some, some), (none, none)
        else:
            both = self._together(self.below[node], U, centre)
        own = U.low[:, [node]], U.high[:, [node]]
        return (_outside(both[0][0] + own[0], -1.0), _outside(both[0][1] + own[1], 1.0)), both[1]


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
