"""Bounds of reductions: sums of weighted hinges over binary problems, from the definitions.

For every problem p with labels +-1, weights w and margins m

    P = lambda/2 |v|^2 + 1/n sum_i s_i w_i [m_i - label_i u_i]_+          at most what the scores u allow
    D = 1/n sum_i s_i a_i m_i - |sum_i s_i a_i label_i x_i|^2 / (2 lambda n^2)  <= min P   for every a_i in [0, w_i]

so that a stored a is cut at its box, and nothing else has to be proved. With a free bias b, u_i = v.x_i + b and

    sum_i s_i a_i label_i = 0

With m the distance of the sum from 0, shrinking some a_i by m in all meets this constraint. That lowers the sum of a_i m_i by at most m
times the largest |margin|, and |sum_i s_i a_i label_i x_i| rises by at most m times the longest row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from ..core.typing import Array
from ..losses import matrices
from .bounds import Ball, ball, inverse, outward
from .gap import Bounds, LearnedRows, ScoreMap, longer

NAMES = ("ova", "ovo", "red_mc", "csosr", "csovo", "csova")
_NAMED = {"zero_one": matrices.zero_one, "absolute": matrices.absolute, "squared": matrices.squared}


def cost_matrix(options: Mapping[str, Any], k: int, labels: list[str], ordered: bool) -> Array:
    """Return the matrix (k, k) of a group ``loss`` with the options cost and file."""
    cost, file = options.get("cost"), options.get("file")
    if cost is None and file is None:
        cost = "absolute" if ordered else "zero_one"
    if isinstance(cost, str):
        return np.asarray(_NAMED[cost](k))
    return matrices.matrix_from(cost, file, k, str(options["name"])).align(labels).values


class Reduction:
    """The reduction of a cell on k classes, by its group ``loss``; costs that are not given are absolute where labels have an order."""

    game = example_costs = sequences = False

    def __init__(self, options: Mapping[str, Any], k: int, labels: list[str], ordered: bool) -> None:
        self.name, self.k = str(options["name"]), k
        self.every, self.free = options.get("pairs") == "all", options.get("bias") == "free"
        self.matrix = cost_matrix(options, k, labels, ordered) if self.has_costs else matrices.zero_one(k)

    @property
    def has_costs(self) -> bool:
        """Whether costs matter."""
        return self.name not in ("ova", "ovo")

    def score_map(self, options: Mapping[str, Any], gamma: float | None, X: Any) -> ScoreMap:
        """Return the map of the problems' scores over training rows X (n, d), less a free bias."""
        features = ScoreMap(options, gamma, X, self.columns, 0.0 if self.free else 1.0)
        features.constant = features.constant and not self.free
        return features

    def scores(self, features: ScoreMap, X: Any, theta: Array) -> Ball:
        """Return the scores of the problems at rows X, (rows, m)."""
        if not self.free:
            return features.scores(X, theta)
        return features.scores(X, theta[:-1]) + theta[-1:]

    @property
    def columns(self) -> int:
        """Number of problems."""
        if self.name in ("ovo", "csovo"):
            return self.k * (self.k - 1) // 2
        return self.k - 1 if self.name == "red_mc" else self.k

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, arrays: Mapping[str, Array]) -> Any:
        """Return which classes may be the predictions on rows X, (n, k): several where rounding leaves it open."""
        return self.possible_at(self.scores(features, X, arrays["theta"]), arrays["theta"])

    def facts(self) -> Mapping[str, Any]:
        """Return the matrix of the costs."""
        return {"cost_matrix": self.matrix}

    def possible_at(self, scores: Ball, theta: Array) -> Any:
        """Return which classes may be the predictions at scores (n, m) of the problems, (n, k)."""
        low, high = scores.low, scores.high
        if self.name in ("ova", "csova"):
            return scores.may_lead()
        if self.name == "csosr":
            return low <= high.min(axis=1, keepdims=True)
        if self.name == "red_mc":
            classes = np.arange(self.k)
            return (classes >= (low > 0.0).sum(axis=1)[:, None]) & (classes <= (high > 0.0).sum(axis=1)[:, None])
        least, most = np.zeros((len(low), self.k)), np.zeros((len(low), self.k))
        for column, (i, j) in enumerate(combinations(range(self.k), 2)):
            if theta[:, column].any():  # a pair without rows casts no vote
                least[:, i] += low[:, column] > 0.0
                most[:, i] += high[:, column] > 0.0
                least[:, j] += high[:, column] <= 0.0
                most[:, j] += low[:, column] <= 0.0
        # of tied classes the first
        before = np.column_stack([np.full(len(low), -1.0), np.maximum.accumulate(least, axis=1)[:, :-1]])
        return (most >= least.max(axis=1, keepdims=True)) & (most > before)

    def problems(self, y: Any, c: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Yield labels, weights and margins (n,) of every problem, from labels y and costs c (n, k)."""
        ones = np.ones(len(y))
        if self.name in ("ovo", "csovo"):
            for i, j in combinations(range(self.k), 2):
                weight = ones if self.name == "ovo" else np.abs(c[:, i] - c[:, j])
                if self.every:
                    yield np.where(c[:, i] < c[:, j], 1.0, -1.0), weight, ones
                else:
                    yield np.where(y == i, 1.0, -1.0), np.where((y == i) | (y == j), weight, 0.0), ones
            return
        for j in range(self.columns):
            if self.name == "red_mc":
                yield np.where(y > j, 1.0, -1.0), np.abs(c[:, j] - c[:, j + 1]), ones
            elif self.name == "csosr":
                side = np.where(c[:, j] <= c.min(axis=1), 1.0, -1.0)
                yield -side, ones, -side * c[:, j]
            else:
                inside = y == j
                yield np.where(inside, 1.0, -1.0), ones if self.name == "ova" else np.where(inside, c.max(axis=1), c[:, j]), ones

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        """Return the bounds of a fit, whose proof has dual numbers r (n, m); `ValueError` for an array of the wrong shape."""
        y, theta, a = rows.y, arrays["theta"], arrays["r"]
        if a.shape != (len(y), self.columns):
            raise ValueError(f"r has the shape {a.shape}, not {(len(y), self.columns)}")
        counts, share = rows.shares()
        V, _ = features.parts(theta[:-1] if self.free else theta)
        c = rows.costs if self.has_costs and rows.costs is not None else np.ascontiguousarray(self.matrix[:, y].T)
        L, W, M = (np.column_stack(each) for each in zip(*self.problems(y, c), strict=True))
        hinges = (ball(M) - self.scores(features, features.X, theta) * L).positive() * W
        losses = (hinges * counts[:, None]).sum() * share
        inside = ball(np.clip(a, 0.0, W)) * counts[:, None]
        offset = (inside * M).sum() * share
        ridge = features.square_norm(V) * (0.5 * lam)
        square = features.square_norm(features.moments(inside * L))
        if self.free:
            missed = outward(float((inside * L).sum(axis=0).size.sum()), self.columns)
            offset = offset - outward(missed * float(np.abs(M).max(initial=0.0))) * share.size
            square = longer(square, features.longest, missed)
        return Bounds(ridge + losses, offset - square * share * share * inverse(ball(2.0 * lam)), ridge)
