"""Searches for the label of the largest surrogate psi(h, g) by calls of oracles (Choi 2018, chapters 4 and 5).

Each takes a space and a surrogate and returns a `SearchResult`. ``levels``, ``hull`` and ``exact`` take every surrogate, ``angular`` slack
rescaling; other searches are plug-ins of the group ``search`` (`register`). Under slack rescaling psi = H g with H = h + 1, and with K(l)
the largest H + l g

    max psi <= K(l)^2 / (4 l)   for every l > 0                                                                     (Choi 2018, lemma 5)

as long as the true label, (H, g) = (1, 0), is among the labels that K is taken over.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ....core import plugins
from ....core.errors import IncompatibleError, UnknownNameError, nearest
from ....core.registry import Registry
from .psi import Psi, Scaling
from .space import LabelPoint, LabelSpace

ROUNDING = 1e-12  # relative differences below it are rounding: neither a better label nor an angle with room for one
_LEAST_SHARE = 1e-3  # of the known bound that a label must exceed to be looked for, where none is known to start from


@dataclass(frozen=True)
class Query:
    """One call of an oracle."""

    oracle: str  # lam, cone or levels
    l: float  # nan for levels
    point: LabelPoint | None  # the answer, of levels the best
    a: float = math.inf  # of cone: the sides of the angle
    b: float = 0.0


@dataclass(frozen=True)
class SearchResult:
    """The best label found, over a relaxation perhaps a mixture of two, and what the search knows of all labels."""

    point: LabelPoint
    value: float  # psi at the point
    upper: float  # bound of psi over all labels
    queries: tuple[Query, ...]
    edge: tuple[LabelPoint, LabelPoint, float] | None = None  # of `hull`: where psi is ``upper``, two labels and the weight of the first

    @property
    def label(self) -> Any:
        """What the space calls the label."""
        return self.point.label

    @property
    def calls(self) -> int:
        """The number of calls of oracles."""
        return len(self.queries)


@dataclass(frozen=True)
class Search:
    """A named search for the worst label: the oracles that it calls, and whether it serves slack rescaling only."""

    name: str
    find: Callable[..., SearchResult]
    needs: tuple[str, ...]
    slack: bool = False

    def __call__(self, space: LabelSpace, psi: Psi, **options: Any) -> SearchResult:
        """Return the best label; `IncompatibleError` for an oracle that the space lacks, or a surrogate that the search cannot take."""
        missing = [oracle for oracle in self.needs if oracle not in space.offers]
        if missing:
            offered = f"{space.name} offers {', '.join(sorted(space.offers)) or 'none'}"
            raise IncompatibleError(f"loss.search={self.name}", f"the oracle {missing[0]}", f"{offered}: choose loss.search=auto")
        if self.slack and not is_slack(psi):
            instead = f"loss.surrogate={psi.name} has loss.search=levels or hull"
            raise IncompatibleError(f"loss.search={self.name}", "loss.surrogate=slack", instead)
        return self.find(space, psi, **options)


SEARCHES: Registry[Search] = Registry("search", "search")  # files of the folder ``search`` of a plug-in add theirs


def register(name: str, *needs: str, slack: bool = False) -> Callable[[Callable[..., SearchResult]], Search]:
    """Register a function (space, psi, **options) by the oracles that it ``needs``; ``slack``: it is of slack rescaling alone."""

    def add(find: Callable[..., SearchResult]) -> Search:
        search = Search(name, find, needs, slack)
        SEARCHES.put(name, search)
        return search

    return add


def search_names() -> tuple[str, ...]:
    """Return the values of ``loss.search``, plug-ins included."""
    plugins.load(SEARCHES.folder)
    return ("auto", *SEARCHES)


def search_of(name: str, space: LabelSpace) -> Search:
    """Return a search by name, or raise `ConfigError`; ``auto`` is ``levels`` where the space offers them, else ``hull``.

    Examples
    --------
    >>> from advcli.learners.structured.spaces.psi import make_psi
    >>> from advcli.learners.structured.spaces.searches import search_of
    >>> from advcli.learners.structured.spaces.space import PointSpace
    >>> space = PointSpace(h=[0.0, -0.999, 1.0, 0.0], g=[0.0, 4.0, 0.001, 2.0])
    >>> found = search_of("angular", space)(space, make_psi("slack"))
    >>> found.label, round(float(found.value), 3)
    (3, 2.0)
    """
    if name == "auto":
        name = "levels" if "levels" in space.offers else "hull"
    if name not in SEARCHES:
        raise UnknownNameError(f"loss.search={name} is unknown; {nearest(str(name), search_names())}")
    return SEARCHES.get(name)


def is_slack(psi: Psi) -> bool:
    """Whether a surrogate is slack rescaling, by whatever name."""
    return isinstance(psi, Scaling) and psi.beta == psi.alpha == 1.0


class OracleCalls:
    """The oracles of a space with a record: calls, the ``best`` label met, its ``value``, and the ``upper`` bound of lemma 5 by `plain`."""

    def __init__(self, space: LabelSpace, psi: Psi) -> None:
        self.space, self.psi, self.queries = space, psi, list[Query]()
        self.best, self.value, self.upper = space.truth, self._psi(space.truth), math.inf

    def _psi(self, point: LabelPoint) -> float:
        return float(self.psi.value(point.h, point.g))

    def _meet(self, query: Query) -> LabelPoint | None:
        self.queries.append(query)
        if query.point is not None and (value := self._psi(query.point)) > self.value:
            self.best, self.value = query.point, value
        return query.point

    def lam(self, l: float, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Call the oracle ``lam``."""
        return self._meet(Query("lam", l, self.space.lam(l, ban) if len(ban) else self.space.lam(l)))

    def plain(self, l: float) -> LabelPoint:
        """Call the oracle over all labels, and lower the bound of slack rescaling."""
        point = self.lam(l)
        assert point is not None
        if 0.0 < l < math.inf:
            # the true label makes K at least 1, whatever an inexact oracle returns
            K = point.h + 1.0 + l * point.g + self.space.shortfall
            self.upper = min(self.upper, max(1.0, K) ** 2 / (4.0 * l))
        return point

    def cone(self, l: float, a: float, b: float, strict: int) -> LabelPoint | None:
        """Call the oracle ``cone``, labels met before banned."""
        met = tuple(query.point.key for query in self.queries if query.point is not None) if self.space.integral else ()
        return self._meet(Query("cone", l, self.space.cone(l, a, b, strict, met), a, b))

    def result(self, upper: float) -> SearchResult:
        """Return the best label met with an upper bound."""
        return SearchResult(self.best, self.value, max(upper, self.value), tuple(self.queries))


# ---- every surrogate --------------------------------------------------------------------------------------------------
@register("levels", "levels")
def levels(space: LabelSpace, psi: Psi) -> SearchResult:
    """Return the best label, by the best h of every value of g: exact in one call, as psi rises in h."""
    points = space.levels()
    values = psi.value(np.array([each.h for each in points]), np.array([each.g for each in points]))
    at = int(np.argmax(values))
    return SearchResult(points[at], float(values[at]), float(values[at]), (Query("levels", math.nan, points[at]),))


@register("hull", "lam")
def hull(space: LabelSpace, psi: Psi, ban: Sequence[Hashable] = ()) -> SearchResult:
    """Search the upper right chain of the convex hull (Choi 2018, algorithm 4 with the errata's corrections).

    Let y be the best label met. The next l is the slope of the tangent of psi's level set at y, or of the edge to the neighbour of y that
    lies above this tangent; a call that finds nothing above that line ends the search. The best vertex is found, and the largest psi over
    the convex hull, which is the upper bound, in at most one call more than the hull has vertices. The true label belongs to the hull from
    the start. A quasi-linear psi is largest at a vertex, so the search is exact; for ``f1`` it is Dinkelbach's method.

    Over a relaxation the label returned is the mixture of two vertices where psi is largest. Labels of ``ban`` are left out, by the oracle
    of that name.
    """
    calls = OracleCalls(space, psi)
    chain = [space.truth]
    l = _tangent(psi, space.truth) if psi.quasi_linear else math.inf
    called: set[float] = set()
    while l not in called:
        called.add(l)
        point = calls.lam(l, ban)
        if point is None or not _above(point, chain, l):
            break
        chain = _hull(chain, point)
        at = _best_of(psi, chain)
        l = _next_weight(psi, chain, at)
    at = _best_of(psi, chain)
    y = chain[at]
    value = float(psi.value(y.h, y.g))
    peak, edge = value, (y, y, 1.0)
    if not psi.quasi_linear:
        for other in chain[max(at - 1, 0) : at] + chain[at + 1 : at + 2]:
            weight, top = _peak(psi, y, other)
            if top > peak:
                peak, edge = top, (y, other, weight)
    if not space.integral and edge[2] < 1.0:
        first, second, weight = edge
        h, g = weight * first.h + (1.0 - weight) * second.h, weight * first.g + (1.0 - weight) * second.g
        y = LabelPoint(h, g, space.mix(first, second, weight))
        value = float(psi.value(h, g))
    upper = max(peak, value)
    if space.shortfall > 0.0:
        # all labels lie below the lines of the search, moved by the shortfall
        moved = [LabelPoint(each.h + space.shortfall, each.g) for each in edge[:2]]
        upper = max(upper, _peak(psi, *moved)[1], float(psi.value(y.h + space.shortfall, y.g)))
    return SearchResult(y, value, upper, tuple(calls.queries), edge)


@register("exact", "lam", "ban")
def exact(space: LabelSpace, psi: Psi) -> SearchResult:
    """Return the best label by hull searches, each with the labels met before banned, until what is left cannot be better.

    Exact for every psi whose level sets are convex; cheap where few labels lie above the best one's level.
    """
    best: SearchResult | None = None
    queries: tuple[Query, ...] = ()
    banned: dict[Hashable, None] = {}
    while True:
        result = hull(space, psi, ban=tuple(banned))
        queries += result.queries
        if best is None or result.value > best.value:
            best = result
        met = {each.point.key: None for each in result.queries if each.point is not None}
        if result.upper <= best.value * (1.0 + ROUNDING) or not met.keys() - banned.keys():
            return SearchResult(best.point, best.value, best.value, queries)
        banned |= met


def _tangent(psi: Psi, y: LabelPoint) -> float:
    """Return l of the line that touches the level set of psi at a point: psi_g / psi_h."""
    along_h, along_g = (float(each) for each in psi.slopes(y.h, y.g))
    if along_h > 0.0:
        return max(along_g, 0.0) / along_h
    return 0.0 if psi.quasi_linear else math.inf


def _next_weight(psi: Psi, chain: list[LabelPoint], at: int) -> float:
    """Return l of the line that parts the better points from the chain: the tangent, or the edge that crosses it."""
    y, l = chain[at], _tangent(psi, chain[at])
    for other in chain[max(at - 1, 0) : at] + chain[at + 1 : at + 2]:
        h, g = other.h - y.h, other.g - y.g
        higher = g if math.isinf(l) else h + l * g
        if higher > ROUNDING * (abs(g) if math.isinf(l) else abs(h) + l * abs(g)):
            return -h / g
    return l


def _above(point: LabelPoint, chain: list[LabelPoint], l: float) -> bool:
    """Whether a point lies above the chain in the direction of l, at l = infinity beyond its end."""
    if any(point.key is not None and point.key == each.key for each in chain):
        return False
    if math.isinf(l):
        return (point.g, point.h) > (chain[-1].g, chain[-1].h)
    top = max(each.h + l * each.g for each in chain)
    return point.h + l * point.g > top + ROUNDING * (abs(point.h) + l * abs(point.g))


def _hull(chain: list[LabelPoint], new: LabelPoint) -> list[LabelPoint]:
    """Return the chain with a point: g rises, h falls, and no label lies on or below an edge."""
    hull: list[LabelPoint] = []
    for point in sorted([*chain, new], key=lambda each: (each.g, each.h)):
        while hull and (
            hull[-1].h <= point.h
            or (len(hull) > 1 and (hull[-1].h - hull[-2].h) * (point.g - hull[-2].g) <= (point.h - hull[-2].h) * (hull[-1].g - hull[-2].g))
        ):
            hull.pop()
        hull.append(point)
    return hull


def _best_of(psi: Psi, chain: list[LabelPoint]) -> int:
    return int(np.argmax(psi.value(np.array([each.h for each in chain]), np.array([each.g for each in chain]))))


def _peak(psi: Psi, y: LabelPoint, other: LabelPoint) -> tuple[float, float]:
    """Return the weight of the first of two points, and psi, where psi is largest between them; it has one peak there."""
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        weights = np.linspace(low, high, 33)
        values = psi.value(weights * y.h + (1.0 - weights) * other.h, weights * y.g + (1.0 - weights) * other.g)
        at = int(np.argmax(values))
        low, high = float(weights[max(at - 1, 0)]), float(weights[min(at + 1, 32)])
    return float(weights[at]), float(values[at])


# ---- slack rescaling --------------------------------------------------------------------------------------------------
class _Angle(NamedTuple):
    """An angle that may hold a better label: its place in the queue, its sides a > b, which of them is strict, l, and its bound."""

    priority: float
    turn: int
    a: float
    b: float
    strict: int
    l: float
    bound: float


@register("angular", "lam", "cone", slack=True)
def angular(
    space: LabelSpace, psi: Psi, start: float | None = None, ratio: float = 1.0, most: float = math.inf, breadth: bool = False
) -> SearchResult:
    """Split angles at the origin of the (H, g) plane, each with its own bound (Choi 2018, algorithm 2 with the errata's corrections).

    The label found in an angle (a, b) at l = 1 / sqrt(a b) has the slope d = g / H; a better one has a slope between d and H / (l^2 g), on
    one side or the other of 1/l. Exact at ``ratio`` 1, in at most 2 M + 1 calls for M labels, without the calls that choose the start.

    ``start`` is the first l, any above 0; by default the largest H, for which one call is made, over the largest g. The search ends when
    the best label has the share ``ratio`` of the upper bound, or after ``most`` calls. A relaxation needs a ratio below 1, else
    `IncompatibleError`: its angles shrink, but never run out of points (Choi 2018, theorem 5). With ``breadth`` angles are taken in the
    order they were made, as theorems 4 and 5 do, rather than the angle of the largest bound.
    """
    if not space.integral and ratio >= 1.0:
        raise IncompatibleError("loss.search=angular", "a ratio below 1 over a relaxation", f"{space.name} has mixtures in every angle")
    calls, widest = OracleCalls(space, psi), space.extent[1]
    if widest <= 0.0:
        return calls.result(calls.value)
    tallest = max(1.0, calls.plain(0.0).h + 1.0) if start is None or not space.integral else 1.0
    start = start or tallest / widest
    floor, sides = (0.0, [(math.inf, 0.0)]) if space.integral else _first_angles(calls, start, tallest, widest)
    turn = len(sides)
    angles = [_Angle(float(i) if breadth else -calls.upper, i, a, b, 0, start, calls.upper) for i, (a, b) in enumerate(sides)]
    while angles and len(calls.queries) < most:
        if max(angle.bound for angle in angles) * ratio <= calls.value * (1.0 + ROUNDING):
            break
        angle = heapq.heappop(angles)
        if angle.bound <= calls.value * (1.0 + ROUNDING):
            continue
        l = 1.0 / math.sqrt(angle.a * angle.b) if angle.b > 0.0 else angle.l
        if (z := calls.cone(l, angle.a, angle.b, angle.strict)) is None:
            continue
        H = z.h + 1.0
        bound = min(angle.bound, (H + l * z.g) ** 2 / (4.0 * l))
        if bound <= H * z.g * (1.0 + ROUNDING):
            continue  # it lies on its own tangent: nothing else in this angle is better
        one, other = z.g / H, H / (l * l * z.g)
        for upper, lower, side in ((max(one, other), 1.0 / l, 1), (1.0 / l, min(one, other), 0)):
            turn += 1
            heapq.heappush(angles, _Angle(float(turn) if breadth else -bound, turn, upper, lower, side, l, bound))
    return calls.result(max([floor, *(angle.bound for angle in angles)]))


def _first_angles(calls: OracleCalls, start: float, tallest: float, widest: float) -> tuple[float, list[tuple[float, float]]]:
    """Return a floor of the bound over a relaxation, and the two angles that hold every label above it."""
    vertex = calls.plain(start)
    floor = max(calls.value, _LEAST_SHARE * calls.upper)
    # a better label than the floor has a slope between these, and one between the two points of that value on the line of the call
    a, b = widest**2 / floor, floor / tallest**2
    if vertex.g > 0.0 and vertex.h > -1.0:
        one, other = vertex.g / (vertex.h + 1.0), (vertex.h + 1.0) / (start * start * vertex.g)
        a, b = min(a, max(one, other)), max(b, min(one, other))
    middle = min(max(1.0 / start, b), a)
    return floor, [(a, middle), (middle, b)]
