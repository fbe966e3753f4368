"""Is a surrogate Fisher consistent? Decided for small numbers of classes, by linear programs alone.

A surrogate with scores f is consistent for a cost matrix L (l, k) under a rule of prediction, where at every distribution q of the labels

    every minimiser f of  E_q S(f, y)  is sent by the rule to a prediction of least expected cost (Lq)_j.

`decide_matrix` judges the adversarial surrogate of a matrix under the rule argmax f. Its minimisers at q are f = -a'L + constant, where
a is a distribution over the best predictions, and f_j may be lower where q_j = 0 (Fathony et al. 2018, eq. 148). So each set of best
predictions that some q has is asked for an ``a`` that leads to another prediction.

`decide_surrogate` judges any polyhedral surrogate S(f, y) = max over pieces of r.f + c under a rule whose regions are polyhedra. The scores
of least risk that lie in the region of a wrong prediction form a polyhedron, which has a vertex: a point where as many planes meet as there
are dimensions, each plane between two pieces or at the edge of a region. So vertices alone are tried, as the finite representative
sets of Finocchiaro, Frongillo & Waggoner (2024, JMLR 25) suggest; the q that make a vertex optimal are the solutions of a linear program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import ConfigError
from ..core.highs import largest, quiet_solver
from ..core.typing import Array
from .base import Loss
from .matrices import check_matrix

MOST_CLASSES, MOST_PREDICTIONS = 6, 8
"""Sizes up to which all sets of classes and of predictions are tried."""
MOST_VERTICES = 3_000_000
"""Sets of planes that are tried for a vertex, at most."""
TOLERANCE = 1e-7
"""A distribution counts as a violation where costs and probabilities differ by more than this, in units of the matrix."""

CASES = ("one best prediction", "several best predictions", "a class without probability")
"""Distributions in the order in which they are tried: all classes likely and the best prediction unique; all classes likely; any."""

Piece = tuple[Array, float]
Region = tuple[int, Array, Array]
Row = tuple[ArrayLike, float, float]


@dataclass(frozen=True)
class Violation:
    """A distribution under which scores of least surrogate risk lead to a prediction that is not the best."""

    distribution: Array  # (k,) q
    scores: Array  # (d,) a minimiser of E_q S
    prediction: int  # where the rule sends it
    best: int  # a prediction of less expected cost
    costs: tuple[float, float]  # expected costs of the two
    excess: float  # E_q S at the scores less its minimum, by a linear program of its own: 0 up to rounding


@dataclass(frozen=True)
class Consistency:
    """The first violation in each case of `CASES`, None where no distribution breaks it."""

    violations: tuple[Violation | None, Violation | None, Violation | None]
    programs: int  # linear programs that were solved

    @property
    def consistent(self) -> bool:
        """Whether no distribution with one best prediction, and all classes likely, breaks it (the case of Fathony et al., Theorem 15)."""
        return self.violations[0] is None


class _Programs:
    """Linear programs: the largest ``cost``.x over x >= 0 with rows between two ends."""

    def __init__(self) -> None:
        self.solver, self.count = quiet_solver(1e-9), 0

    def largest(self, cost: Array, rows: Sequence[Row], free: int = 0) -> tuple[float, Array]:
        """Return the largest value and its x; -inf where nothing is feasible. The last ``free`` of x are within +-1, not >= 0."""
        self.count += 1
        fixed = np.arange(len(cost)) < len(cost) - free
        matrix, low, high = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
        self.solver.clearSolver()
        found = largest(self.solver, cost, (np.where(fixed, 0.0, -1.0), np.where(fixed, np.inf, 1.0)), (low, high), matrix)
        return (-np.inf, np.zeros(len(cost))) if found is None else (float(cost @ found.col_value), np.array(found.col_value))


def subsets(n: int, first: int = 1) -> Iterator[tuple[int, ...]]:
    """Return the subsets of range(n) of at least ``first`` members, small ones first."""
    return (chosen for size in range(first, n + 1) for chosen in combinations(range(n), size))


# ---- the adversarial surrogate of a matrix ---------------------------------------------------------------------------
def decide_matrix(matrix: Any) -> Consistency:
    """Decide whether the adversarial surrogate of a cost matrix (l, k), l >= k, is consistent under the rule argmax f.

    Row j < k is the prediction of class j; `ConfigError` for more than 6 classes or 8 predictions. Under the rule argmax p, the
    likeliest prediction of the predictor's distribution, every matrix is consistent (Fathony et al. 2018, Theorem 17).

    Examples
    --------
    >>> from advcli.losses.consistency import decide_matrix
    >>> decide_matrix([[0, 1, 2], [1, 0, 1], [2, 1, 0]]).consistent
    True
    >>> broken = decide_matrix([[0, 2, 2], [2, 0, 2], [0.5, 0.6, 1]]).violations[0]
    >>> broken.prediction, broken.best
    (0, 2)
    """
    L = check_matrix(matrix)
    _refuse_sizes(*L.shape)
    l, k = L.shape
    if l < k:
        raise ConfigError(f"the cost matrix has {l} predictions for {k} classes: the rule argmax f needs one for each class")
    scaled = (L - L.min()) / (float(L.max() - L.min()) or 1.0)
    programs = _Programs()
    found: list[Violation | None] = []
    supports = [tuple(range(k))]
    for case in CASES:
        if case == CASES[2]:
            supports = [support for support in subsets(k) if len(support) < k][::-1]
        sizes = {CASES[0]: (1, 1), CASES[1]: (2, l), CASES[2]: (1, l)}[case]
        tried = ((support, best) for support in supports for best in subsets(l) if sizes[0] <= len(best) <= sizes[1])
        found.append(next(filter(None, (_broken(programs, L, scaled, *one) for one in tried)), None))
    one, several, zero = found
    return Consistency((one, one or several, one or several or zero), programs.count)


def _broken(programs: _Programs, L: Array, scaled: Array, support: tuple[int, ...], best: tuple[int, ...]) -> Violation | None:
    """Return a violation at a distribution with this support and these best predictions, None where there is none."""
    k = L.shape[1]
    # over q (k), the least cost and a margin: q is positive on the support, the other predictions cost more, both by the margin
    rows: list[Row] = [(np.r_[np.isin(range(k), support), 0.0, 0.0], 1.0, 1.0)]
    rows += [(np.r_[row, -1.0, -1.0 * (i not in best)], 0.0, 0.0 if i in best else np.inf) for i, row in enumerate(scaled)]
    rows += [(np.r_[unit, 0.0, -1.0 * (j in support)], 0.0, np.inf if j in support else 0.0) for j, unit in enumerate(np.eye(k))]
    margin, point = programs.largest(np.r_[np.zeros(k + 1), 1.0], rows)
    if margin <= TOLERANCE:
        return None
    for j in set(range(k)) - set(best):
        rivals = [m for m in support if m != j]
        weights = [(scaled[list(best), m] - scaled[list(best), j], 0.0, np.inf) for m in rivals]
        feasible, a = programs.largest(np.zeros(len(best)), [(np.ones(len(best)), 1.0, 1.0), *weights])
        if feasible == -np.inf:
            continue
        scores = -(a @ L[list(best)])
        hidden = [m for m in range(k) if m not in support and m != j]
        scores[hidden] = np.minimum(scores[hidden], scores[j])
        q = np.maximum(point[:k], 0.0) / np.maximum(point[:k], 0.0).sum()
        # the game at these scores: the largest v + scores.q with v at most every expected cost; its minimum over scores is min Lq
        low = float(L.min())
        limits: list[Row] = [(np.r_[row - low, -1.0], 0.0, np.inf) for row in L]
        value, _ = programs.largest(np.r_[scores, 1.0], [*limits, (np.r_[np.ones(k), 0.0], 1.0, 1.0)])
        excess = value + low - float(scores @ q) - float((L @ q).min())
        return Violation(q, scores, j, best[0], (float(L[j] @ q), float(L[best[0]] @ q)), excess)
    return None


# ---- polyhedral surrogates ---------------------------------------------------------------------------------------------
def largest_score(k: int) -> list[Region]:
    """Return the regions of the rule argmax f over k scores."""
    unit = np.eye(k)
    return [(j, np.delete(unit[j] - unit, j, axis=0), np.zeros(k - 1)) for j in range(k)]


def decide_surrogate(pieces: Sequence[Sequence[Piece]], matrix: Any, regions: Sequence[Region] | None = None) -> Consistency:
    """Decide whether a polyhedral surrogate is consistent for a cost matrix (l, k).

    ``pieces[y]`` are the (r, c) of S(., y), each r of shape (d,). ``regions`` are triples (prediction, A, b): the rule can predict it
    where A f >= b; several may have one prediction; None is argmax f. `ConfigError` for more than 6 classes, 8 predictions or 3
    million sets of planes.

    Examples
    --------
    >>> from advcli.losses import make_loss
    >>> from advcli.losses.consistency import decide_surrogate
    >>> from advcli.losses.matrices import zero_one
    >>> loss = make_loss("cs", 3)
    >>> decide_surrogate([loss.pieces(y) for y in range(3)], zero_one(3)).consistent
    False
    """
    L = check_matrix(matrix, len(pieces), "the cost matrix")
    _refuse_sizes(*L.shape)
    regions = largest_score(L.shape[1]) if regions is None else regions
    programs = _Programs()
    # a piece that stood twice would have no neighbours
    labels = [(P[:, :-1], P[:, -1]) for P in (np.unique(np.round([np.r_[r, c] for r, c in own], 12), axis=0) for own in pieces)]
    scaled = (L - L.min()) / (float(L.max() - L.min()) or 1.0)
    found: dict[int, Violation] = {}
    for vertex in _vertices(programs, labels, regions):
        for case in range(min(found, default=len(CASES))):
            if broken := _broken_at(programs, vertex, labels, regions, L, scaled, case):
                found[case] = broken
                break
        if 0 in found:
            break
    one, several, zero = (found.get(case) for case in range(len(CASES)))
    return Consistency((one, one or several, one or several or zero), programs.count)


def _vertices(programs: _Programs, labels: Sequence[tuple[Array, Array]], regions: Sequence[Region]) -> Iterator[Array]:
    """Return the points where the planes between neighbouring pieces of a label, and those at the edges of regions, meet."""
    planes: list[Array] = [np.r_[row, -edge] for _, A, b in regions for row, edge in zip(A, b, strict=True)]
    for R, c in labels:
        planes += [np.r_[R[i] - R[j], c[i] - c[j]] for i, j in combinations(range(len(c)), 2) if _neighbours(programs, R, c, i, j)]
    units = np.array([plane / np.linalg.norm(plane[:-1]) for plane in planes])
    units *= np.sign(units[np.arange(len(units)), np.argmax(np.abs(units[:, :-1]) > 1e-9, axis=1)])[:, None]
    units = np.unique(units.round(12), axis=0)
    # scores that differ by a direction in which no plane moves are the same: only the span of the normals matters
    _, sizes, basis = np.linalg.svd(units[:, :-1])
    basis = basis[: int((sizes > 1e-9).sum())]
    normals, ends = units[:, :-1] @ basis.T, -units[:, -1]
    if comb(len(units), len(basis)) > MOST_VERTICES:
        raise ConfigError(f"{len(units)} planes in {len(basis)} dimensions have too many vertices to try: take fewer classes")
    seen: set[tuple[float, ...]] = set()
    for chosen in _batches(len(units), len(basis)):
        systems = normals[chosen]
        regular = np.abs(np.linalg.det(systems)) > 1e-9
        points = np.linalg.solve(systems[regular], ends[chosen][regular][:, :, None])[:, :, 0] @ basis
        for point in np.unique(points.round(9) + 0.0, axis=0):
            if (key := tuple(point)) not in seen:
                seen.add(key)
                yield point


def _batches(n: int, size: int, most: int = 50_000) -> Iterator[np.ndarray]:
    """Return the sets of ``size`` numbers below n, many at a time, shape (any, size)."""
    every = combinations(range(n), size)
    while batch := [one for _, one in zip(range(most), every, strict=False)]:
        yield np.array(batch)


def _neighbours(programs: _Programs, R: Array, c: Array, i: int, j: int) -> bool:
    """Return whether the pieces i and j of a label are the two largest somewhere, above all others."""
    if np.allclose(R[i], R[j]):
        return False
    others = [m for m in range(len(c)) if m not in (i, j)]
    d = R.shape[1]
    # f = plus - minus, and a margin of at most 1
    rows: list[Row] = [(np.r_[R[i] - R[j], R[j] - R[i], 0.0], c[j] - c[i], c[j] - c[i])]
    rows += [(np.r_[R[i] - R[m], R[m] - R[i], -1.0], c[m] - c[i], np.inf) for m in others]
    return programs.largest(np.r_[np.zeros(2 * d), 1.0], rows, free=1)[0] > TOLERANCE


def _broken_at(
    programs: _Programs,
    f: Array,
    labels: Sequence[tuple[Array, Array]],
    regions: Sequence[Region],
    L: Array,
    scaled: Array,
    case: int,
) -> Violation | None:
    """Return a violation of a case at scores f, None where there is none."""
    active = [np.flatnonzero(R @ f + c >= (R @ f + c).max() - 1e-7) for R, c in labels]
    of_label = np.concatenate([np.full(len(own), y) for y, own in enumerate(active)])
    slopes = np.concatenate([R[own] for (R, _), own in zip(labels, active, strict=True)])
    l, k = L.shape
    share = (of_label == np.arange(k)[:, None]).astype(float)  # q = share @ weights of the pieces
    # over the weights of the active pieces and a margin: 0 is a subgradient of E_q S at f
    rows: list[Row] = [(np.r_[np.ones(len(of_label)), 0.0], 1.0, 1.0)]
    rows += [(np.r_[column, 0.0], 0.0, 0.0) for column in slopes.T]
    if case < 2:
        rows += [(np.r_[row, -1.0], 0.0, np.inf) for row in share]
    cost = np.r_[np.zeros(len(of_label)), 1.0]
    if programs.largest(cost, [*rows, (cost, -np.inf, 1.0)])[0] <= (TOLERANCE if case < 2 else -np.inf):
        return None
    for j in sorted({prediction for prediction, A, b in regions if (A @ f >= b - 1e-7).all()}):
        for best in range(l):
            worse = [m for m in range(l) if m != best] if case == 0 else [j]
            margins = [(np.r_[(scaled[m] - scaled[best]) @ share, -1.0], 0.0, np.inf) for m in worse]
            if best == j:
                continue
            margin, point = programs.largest(cost, [*rows, *margins])
            if margin > TOLERANCE:
                q = share @ point[:-1]
                q /= q.sum()
                return Violation(q, f, j, best, (float(L[j] @ q), float(L[best] @ q)), _excess(programs, labels, q, f))
    return None


def _excess(programs: _Programs, labels: Sequence[tuple[Array, Array]], q: Array, f: Array) -> float:
    """Return E_q S(f) less the minimum of E_q S, by the linear program over scores and values, each as plus - minus."""
    k, d = len(labels), len(f)
    rows = [(np.r_[-r, np.eye(k)[y], r, -np.eye(k)[y]], c, np.inf) for y, own in enumerate(labels) for r, c in zip(*own, strict=True)]
    value, _ = programs.largest(np.r_[np.zeros(d), -q, np.zeros(d), q], rows)
    return float(sum(q[y] * (R @ f + c).max() for y, (R, c) in enumerate(labels))) + value


def _refuse_sizes(l: int, k: int) -> None:
    """Refuse a matrix whose sets of classes and predictions are too many to try."""
    if k > MOST_CLASSES or l > MOST_PREDICTIONS:
        raise ConfigError(
            f"consistency is decided for at most {MOST_CLASSES} classes and {MOST_PREDICTIONS} predictions, the cost matrix has {k} and {l}"
        )


def decide(loss: Loss, matrix: Any = None) -> Consistency:
    """Decide for a loss: a game under argmax f, another surrogate that lists its pieces for ``matrix`` (l, k), zero-one where None.

    Examples
    --------
    >>> from advcli.losses import make_loss
    >>> from advcli.losses.consistency import decide
    >>> decide(make_loss("llw", 3)).consistent, decide(make_loss("ww", 3)).consistent
    (True, False)
    """
    if loss.matrix is not None:
        return decide_matrix(loss.matrix)
    k = loss.n_classes
    _refuse_sizes(k, k)
    if type(loss).pieces is Loss.pieces:
        raise ConfigError(f"{type(loss).__name__} is no game and lists no pieces, so its consistency cannot be decided")
    return decide_surrogate([loss.pieces(y) for y in range(k)], 1.0 - np.eye(k) if matrix is None else matrix)
