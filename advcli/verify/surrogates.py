"""Bounds of surrogates and of their dual points, from the definitions.

    S(f, y) = max over (r, c) in R(y) of r.f + c

From above: any distribution p over predictions bounds the adversarial surrogate of a loss matrix L, S(f, y) <= max_j (p'L)_j + f_j - f_y
(Fathony et al. 2018, eq. 10 and its dual), of K guesses any shares p of classes that sum to K, at costs 1 - p_j; hinges are sums. The
hinges with abstention (Ramaswamy, Tewari & Agarwal 2018) are 2 alpha [1 + g]_+ + (2 - 4 alpha) [g]_+ of the largest g, or sums of such
terms; a number u_a with a separate row of parameters is stored as a pair of columns, u_a = (f_2a - f_(2a+1)) / sqrt(2). From below: a
stored r_i is replaced by a point r* of conv R(y_i) near it, whose c follows from the definition; `gap.bound` charges the distance |r* -
r_i| in L1 norm to the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.typing import Array
from ..losses import matrices
from .bounds import UNIT, Ball, ball, dot, join, outward
from .decisions import best_position, beyond, computed, lead, of_game, rows_at
from .entropies import entropy, largest

_HALF = Ball(np.float64(np.sqrt(0.5)), np.float64(2.0**-53))
_CONVEX = ("absolute", "squared", "power", "huber", "pinball", "convex")
_HINGES = ("ww", "cs", "llw")
_REJECTING = ("abstain_ova", "abstain_cs", "abstain_bep")
_LISTED = ("general", "tree_distance")  # any matrix: no closed form of the predictor


class CannotError(Exception):
    """The checker has no way to prove a fit; the text says why."""


@dataclass(frozen=True, eq=False)
class BoundedPoint:
    """A dual point: rows r* (n, k), up to ``moved`` (n,) in L1 norm, and lower bounds of their c (n,) as a ball."""

    R: Array
    moved: Array
    offset: Ball


class Surrogate:
    """The loss of a cell, by its group ``loss``: k classes, whose labels order the named columns of a matrix, and edges of a hierarchy.

    The attribute ``classes`` is the number of classes, the attribute ``k`` the number of columns of scores.
    """

    constant = 0.0  # added to a Gaussian kernel
    rule = "potentials"  # the prediction is the class of the largest score, or comes from the predictor of the game
    of_classes = True  # whether the first predictions are the classes; else predictions have codes from k on
    played = True  # whether a loss with a matrix reports the value of its game
    prices: Array | None = None  # of sets of 1, 2, ... classes, (k,), where sets are predicted
    signed: Array | None = None  # (k, m) signs and largest t of the pairs of columns, where there are any

    def __init__(self, options: Mapping[str, Any], k: int, labels: list[str], edges: Iterable[tuple[str, str]] | None = None) -> None:
        settings = {key: value for key, value in options.items() if key not in ("name", "description")}
        rule = settings.pop("rule", None)
        self.weight: Any = 1.0  # one number, one for each class, or "column"
        self.k = self.classes = k
        self.name = {"ordinal": "absolute"}.get(str(options["name"]), str(options["name"]))
        if self.name == "weighted":
            self.weight, self.name = settings.get("weight", 1.0), str(settings.get("base", "zero_one"))
            settings = dict(settings.get("options") or {})
        self.matrix: Array | None = None
        two_stage = self.name == "two_stage"
        if two_stage:
            self.name, settings = str(settings.get("base", "zero_one")), dict(settings.get("base_options") or {})
        if self.name in _HINGES:
            return
        if self.name == "entropy":
            self.order = float(settings.get("alpha", 1.0))
            if self.order < np.inf:
                return
            self.name, self.played, settings = "zero_one", False, {}
        if self.name == "top_k":
            self.guesses = int(settings.get("K", 2))
            return
        if self.name == "label_sets":
            price = settings.get("price", 0.15)
            self.prices = np.array(price if isinstance(price, Sequence) else price * np.arange(float(k)))
            return
        if self.name in _REJECTING:
            self._reject(float(settings.get("alpha", 0.5)), settings.get("code", "binary"), settings.get("tau"))
            return
        if self.name == "abstain" and isinstance(settings.get("alpha"), Sequence):  # an alpha for each class: a matrix like any other
            self.name, settings = "general", {"matrix": [*matrices.zero_one(k).tolist(), list(settings["alpha"])]}
        self.alpha = float(settings.get("alpha", 0.5)) if self.name == "abstain" else 1.0
        if self.name in ("convex", "general"):
            names = {"classes": settings.get("classes") or labels, "predictions": settings.get("predictions")}
            source = matrices.matrix_from(settings.get("matrix"), settings.get("file"), k, self.name, **names)
            self.matrix = source.values
            if not two_stage:
                self.of_classes = len(self.matrix) >= k if source.of_classes is None else source.of_classes
        elif self.name == "tree_distance":
            tree = settings.get("hierarchy")
            tree = tree if isinstance(tree, Mapping) else {"edges": edges if tree is None else tree}
            if tree["edges"] is None:
                raise CannotError("the hierarchy of loss=tree_distance is not there")
            self.matrix = _steps(tree["edges"], list(map(str, tree.get("classes") or settings.get("classes") or labels)))
        elif self.name in ("zero_one", "abstain", *_CONVEX):
            numbers = {key: settings[key] for key in ("p", "delta", "quantile", "alpha") if key in settings}
            self.matrix = getattr(matrices, self.name)(k, **numbers)
        else:
            raise CannotError(f"loss={self.name} is not a surrogate that the checker knows")
        self.form = closed_form(self.matrix, settings)
        if self.name in _CONVEX:
            self.form = matrices.Description("convex", 1.0, None, ())
        if rule not in (None, "default"):
            self.rule = str(rule)
        elif len(self.matrix) != k or not self.of_classes:
            self.rule = "predictor"

    def _reject(self, alpha: float, code: Any, tau: float | None) -> None:
        """Take the hinges with abstention: what t may be, the pairs of columns, and the threshold of the margin."""
        self.constant, self.alpha = 1.0, alpha
        self.tau = float((0.0 if self.name == "abstain_ova" else 0.5) if tau is None else tau)
        self.low, self.high = ball(2.0 * alpha), ball(2.0) - ball(2.0 * alpha)
        labels = np.arange(self.k)
        if self.name == "abstain_cs":
            return
        if self.name == "abstain_ova":
            self.signed = np.where(labels[:, None] == labels, -2.0 * alpha, float(self.high.mid))
        elif isinstance(code, str):
            digits = range(max(1, (self.k - 1).bit_length()))[::-1]
            number = labels ^ (labels >> 1) if code == "gray" else labels
            self.signed = np.column_stack([np.where((number >> digit) & 1, 1.0, -1.0) for digit in digits])
        else:
            self.signed = np.array(code, dtype=float)
        self.k = max(self.k, 2 * self.signed.shape[1])

    # ---- predictions ----------------------------------------------------------------------------------------------
    def possible(self, F: Ball) -> Any:
        """Return which predictions are possible at scores F, (n, l); None where they are not followed."""
        if self.name in _REJECTING:
            P = self._decision_values(F)
            return beyond(computed(P).may_lead(), lead(P) if self.name == "abstain_cs" else P.max(axis=1), self.tau)
        if self.prices is not None:
            return None
        if self.rule == "potentials":
            return computed(F).may_lead()
        if self.matrix is None:
            return None
        F = Ball(F.mid - F.mid.max(axis=1, keepdims=True), F.rad + UNIT * np.abs(F.mid).max(axis=1, keepdims=True)) / self._common
        rows = of_game(self.matrix, F, self.form)
        return rows if rows is None or self.of_classes else np.hstack([np.zeros((len(rows), self.classes), dtype=bool), rows])

    def facts(self) -> dict[str, Any]:
        """Return the cost of abstaining and the matrix of the costs, where there are any."""
        if self.name in _REJECTING:
            return abstaining(self.classes, self.alpha)
        alpha = {"alpha": self.alpha} if self.name == "abstain" else {}
        if self.matrix is None:
            return alpha
        nobody = np.full((0 if self.of_classes else self.classes, self.matrix.shape[1]), np.nan)
        return {**alpha, "cost_matrix": self._common * np.vstack([nobody, self.matrix])}

    @property
    def _common(self) -> float:
        """The weight of all classes, or 1 where each has its own."""
        weight = np.ravel(1.0 if isinstance(self.weight, str) else self.weight)
        return float(weight[0]) if len(weight) == 1 else 1.0

    def _decision_values(self, F: Ball) -> Ball:
        """Return the decision values of the classes (n, k) of the hinges with abstention."""
        if self.signed is None:
            return F
        U = paired(F, self.signed.shape[1])
        if self.name == "abstain_ova":
            return U
        return join(*(-((U * word).max(axis=1))[:, None] for word in self.signed), axis=1)

    @property
    def game(self) -> bool:
        """Whether the loss is adversarial."""
        return self.matrix is not None and self.played

    @property
    def simplex(self) -> bool:
        """Whether r + e_y runs over all distributions."""
        return self.matrix is not None or self.name in ("cs", "entropy", "top_k", "label_sets")

    @property
    def steepness(self) -> float:
        """How much c changes at most when r + e_y moves by 1 in L1 norm, in units of the weights."""
        if self.name == "entropy":
            return float("inf")
        return float(np.abs(self.matrix).max()) if self.matrix is not None else 1.0

    def cost_weights(self, y: Any, example: Array | None) -> Array:
        """Return the factors (n,) on the loss matrices of the rows."""
        if isinstance(self.weight, str):
            if example is None:
                raise CannotError("the examples' weights are not there")
            return example
        weights = np.asarray(self.weight, dtype=float).ravel()
        return np.full(len(y), weights[0]) if len(weights) == 1 else weights[y]

    # ---- from above -----------------------------------------------------------------------------------------------
    def above(self, F: Ball, y: Any, w: Array, predictor: Array | None) -> Ball:
        """Return upper bounds of S(f_i, y_i), (n,), for all f_i in the ball F (n, k)."""
        rows = np.arange(len(y))
        relative = F - F[rows, y][:, None]
        if self.matrix is not None:
            P = self._predictor((F.mid - F.mid.max(axis=1, keepdims=True)) / w[:, None], predictor)
            # P / sum of P is a distribution
            astray = (ball(P).sum(axis=1) - 1.0).size
            mixed = dot(P, self.matrix) + np.abs(self.matrix).max() * astray[:, None]
            return (mixed * w[:, None] + relative).max(axis=1)
        if self.prices is not None:
            return self._sets_above(F, y, predictor)
        if self.name in _REJECTING:
            return self._hinges(F, relative, y)
        if self.name == "entropy":  # the largest moves no faster than the scores
            spread = np.broadcast_to(relative.rad, relative.mid.shape).max(axis=1)
            spread = outward(spread + 4.0 * UNIT * np.abs(relative.mid).max(axis=1))
            return ball(largest(relative.mid / w[:, None], self.order)) * w + Ball(spread)
        if self.name == "top_k":  # any p in [0, 1] of sum K are the shares of a mixture of sets of K classes
            ordered = -np.sort(F.mid.max(axis=1, keepdims=True) - F.mid, axis=1)
            levels = (np.cumsum(ordered, axis=1) - self.guesses) / np.arange(1.0, self.k + 1)
            level = np.maximum(levels.max(axis=1, keepdims=True), -1.0) + F.mid.max(axis=1, keepdims=True)
            P = np.clip(F.mid - level, 0.0, 1.0)
            beyond_K = (ball(P).sum(axis=1) - float(self.guesses)).positive()
            return (ball(np.ones(P.shape)) - P + relative).max(axis=1) + beyond_K
        margins = relative + 1.0
        if self.name == "llw":
            margins = F - (F.sum(axis=1) / self.k)[:, None] + 1.0
        off = np.ones(F.mid.shape)
        off[rows, y] = 0.0
        hinges = (margins * off).positive()
        return hinges.max(axis=1) if self.name == "cs" else hinges.sum(axis=1)

    def _sets_above(self, F: Ball, y: Any, sizes: Array | None) -> Ball:
        """Return what a predictor of sets costs at most whose sizes have these shares (n, k), and whose sets hold no class by its name.

        Of m classes it covers min(s, m)/m in the mean: S <= max over m of mean_m + sum_s p_s (1 + c_s - min(s, m)/m) - f_y.
        """
        n, k = F.mid.shape
        if sizes is None or sizes.shape != (n, k):
            raise CannotError("loss=label_sets needs the stored predictor, shape (n, k)")
        assert self.prices is not None
        P = np.maximum(sizes, 0.0)
        P = P / P.sum(axis=1, keepdims=True)
        astray = ((ball(P).sum(axis=1) - 1.0).size[:, None] + 4.0 * UNIT) * (1.0 + self.prices[-1])
        size = np.arange(1.0, k + 1)
        costs = dot(P, 1.0 + self.prices[:, None] - np.minimum(size[:, None], size) / size) + Ball(0.0, outward(astray))
        own = F[np.arange(n), y][:, None]
        order = np.argsort(-F.mid, axis=1)
        ordered = (F - own)[np.arange(n)[:, None], order]
        most = ordered.rad.max(axis=1, keepdims=True)  # other classes may be the largest, by no more
        means = np.cumsum(ordered.mid, axis=1) / size
        rounding = (k + 2.0) * UNIT * (np.cumsum(np.abs(ordered.mid), axis=1) / size)
        return (Ball(means, outward(most + rounding, k)) + costs).max(axis=1)

    def _hinges(self, F: Ball, relative: Ball, y: Any) -> Ball:
        """Return the hinges with abstention."""
        if self.signed is None:
            rows = np.arange(len(y))
            aside = np.zeros(relative.mid.shape)
            aside[rows, y] = np.abs(relative.mid).max() + np.abs(relative.rad).max() + 2.0
            margins = relative - aside  # the own class is far below
        else:
            margins = paired(F, self.signed.shape[1]) * np.sign(self.signed[y])
            if self.name == "abstain_ova":
                return ((margins + 1.0).positive() * np.abs(self.signed[y])).sum(axis=1)
        top = margins.max(axis=1)
        return (top + 1.0).positive() * self.low + top.positive() * (self.high - self.low)

    def _predictor(self, F: Array, stored: Array | None) -> Array:
        """Return a good mixed prediction (n, l), non-negative, at scores F in units of the weights with row maxima 0."""
        assert self.matrix is not None
        n, (l, k) = len(F), self.matrix.shape
        if self.name in _LISTED:
            if stored is None or stored.shape != (n, l):
                raise CannotError(f"loss={self.name} needs the stored predictor, shape (n, l)")
            return np.maximum(stored, 0.0)
        if self.name in _CONVEX:
            # between two neighbouring predictions the cost is linear
            return rows_at(np.eye(l), best_position(self.matrix, F))
        # labels get what they lead a level t by, abstaining the rest: t + (1 - alpha) mass(t) at the best of its corners
        ordered = -np.sort(-F, axis=1)
        count, total = np.arange(1.0, k + 1), np.cumsum(ordered, axis=1)
        least = ((total - 1.0) / count).max(axis=1, keepdims=True)
        levels = np.hstack([least, np.maximum(ordered, least)])
        mass = np.hstack([np.ones((n, 1)), np.clip(total - count * ordered, 0.0, 1.0)])
        best = np.argmin(levels + (1.0 - self.alpha) * mass, axis=1)
        P = np.maximum(F - levels[np.arange(n), best][:, None], 0.0)
        return P if l == k else np.column_stack([P, np.maximum(1.0 - P.sum(axis=1), 0.0)])

    # ---- from below -----------------------------------------------------------------------------------------------
    def below(self, R: Array, y: Any, w: Array) -> BoundedPoint:
        """Return a point of the dual's domain near R (n, k), and lower bounds of w_i c_i."""
        rows = np.arange(len(y))
        truth = np.zeros(R.shape)
        truth[rows, y] = 1.0
        if self.name in _REJECTING:
            return self._within(R, y, truth, w)
        if self.simplex:
            Q = np.maximum(R + truth, 0.0)
            short = (ball(Q).sum(axis=1) - 1.0).size  # Q / sum of Q is a distribution
            point = ball(Q) - truth
            moved = outward(short + point.rad.sum(axis=1), self.k)
            if self.name == "entropy":
                return BoundedPoint(point.mid, moved, entropy(Q, self.order) * w)
            if self.name == "top_k":
                offset = ball(np.ones(len(y))) - ball(np.sort(Q, axis=1)[:, -self.guesses :]).sum(axis=1)
            elif self.prices is not None:
                largest = -np.sort(-Q, axis=1)
                costs = [ball(largest[:, size:]).sum(axis=1) + price for size, price in enumerate(self.prices, start=1)]  # 1 - Q_s + c_s
                offset = -(-join(*(each[:, None] for each in costs), axis=1)).max(axis=1)
            elif self.matrix is None:
                offset = ball(np.ones(len(y))) - Q[rows, y]
            else:
                costs_of = dot(Q, self.matrix.T.copy())
                offset = -(-costs_of).max(axis=1)
            return BoundedPoint(point.mid, moved, (offset - Ball(outward(self.steepness * short))) * w)
        A = np.clip(R if self.name == "ww" else R - R[rows, y][:, None], 0.0, 1.0) * (1.0 - truth)
        total = ball(A).sum(axis=1)
        point = ball(A) - truth * total.mid[:, None] if self.name == "ww" else ball(A) - (total / self.k).mid[:, None]
        astray_row = total.rad if self.name == "ww" else (total / self.k).rad * self.k
        return BoundedPoint(point.mid, outward(np.sum(point.rad, axis=1) + astray_row, self.k), total * w)

    def _within(self, R: Array, y: Any, truth: Array, w: Array) -> BoundedPoint:
        """Return the point of the hinges with abstention."""
        n = len(y)
        if self.signed is None:
            T = np.maximum(R, 0.0) * (1.0 - truth)
        else:
            m, sign = self.signed.shape[1], np.sign(self.signed[y])
            T = np.maximum(sign * (R[:, 0 : 2 * m : 2] - R[:, 1 : 2 * m : 2]) * _HALF.mid, 0.0)
        if self.name == "abstain_ova":
            assert self.signed is not None
            T = np.minimum(T, np.abs(self.signed[y]))
        else:
            high = ball(T).sum(axis=1).high
            most = float(self.high.low)
            T = np.where((high > most)[:, None], T * (most * (1.0 - 1e-15) / np.maximum(high, most))[:, None], T)
        total = ball(T).sum(axis=1)
        if self.signed is None:
            point = ball(T) - truth * total.mid[:, None]
            astray = total.rad
        else:
            point, astray = in_pairs(ball(sign * T), self.k), np.zeros(n)
        if self.name != "abstain_ova":  # the smaller of both
            total = -join((-total)[None, :], ball(np.full((1, n), -float(self.low.mid)))).max(axis=0)
        return BoundedPoint(point.mid, outward(np.sum(point.rad, axis=1) + astray, self.k), total * w)

    def at_labels(self, y: Any, w: Array) -> Array:
        """Return w_i c_i of r = 0, the sample's own labels, (n,)."""
        return np.zeros(len(y)) if self.matrix is None else w * self.matrix.min(axis=0)[y]


def paired(F: Ball, m: int = 1) -> Ball:
    """Return the numbers u_a (n, m) that the first m pairs of columns represent."""
    return (F[:, 0 : 2 * m : 2] - F[:, 1 : 2 * m : 2]) * _HALF


def in_pairs(U: Ball, k: int) -> Ball:
    """Return scores (n, k) for the numbers U (n, m): columns 2j and 2j + 1 are u_j / sqrt(2) and its negative, the others 0."""
    part, m = U * _HALF, U.mid.shape[1]
    mid, rad = np.zeros((len(U.mid), k)), np.zeros((len(U.mid), k))
    mid[:, 0 : 2 * m : 2], mid[:, 1 : 2 * m : 2] = part.mid, -part.mid
    rad[:, 0 : 2 * m : 2] = rad[:, 1 : 2 * m : 2] = part.rad
    return Ball(mid, rad)


def abstaining(k: int, alpha: float) -> dict[str, Any]:
    """Return what metrics ask for where a wrong class costs 1 and abstaining alpha."""
    return {"alpha": alpha, "cost_matrix": matrices.abstain(k, alpha)}


def closed_form(A: Array, options: Mapping[str, Any] | None = None) -> matrices.Description | None:
    """Return the form of a game over A that the program knows; None where it solves the game, or ``options`` want it to."""
    settings = {"backend": "simplex", "structure": True, **(options or {})}
    return matrices.describe(A) if settings["backend"] == "simplex" and settings["structure"] else None


def _steps(edges: Iterable[tuple[str, str]], labels: list[str]) -> Array:
    """Return the edges on the shortest path between each two labels, (k, k), walked both ways; tops without a parent meet in a root."""
    pairs = [(str(parent), str(child)) for parent, child in edges]
    children = {child for _, child in pairs}
    tops = sorted({parent for parent, _ in pairs} - children)
    near: dict[Any, set[Any]] = {}
    for parent, child in [*pairs, *((None, top) for top in tops if len(tops) > 1)]:
        near.setdefault(parent, set()).add(child)
        near.setdefault(child, set()).add(parent)
    rows = []
    for label in labels:
        steps, front = {label: 0}, {label}
        while front:
            step = steps[next(iter(front))] + 1
            front = {node for reached in front for node in near.get(reached, ())} - steps.keys()
            steps |= dict.fromkeys(front, step)
        if not steps.keys() >= set(labels):
            raise CannotError("the hierarchy has no path between two labels")
        rows.append([float(steps[other]) for other in labels])
    return np.array(rows)
