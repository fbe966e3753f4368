"""Searches for the label of the largest surrogate psi(h, g) by calls of oracles (choi2018 chapters 4 and 5).

Each takes a space and a surrogate and returns a `Found`: a label, its value, an upper bound of psi over all labels, and the calls it
took. ``levels``, ``hull`` and ``exact`` take every surrogate, ``angular``, ``bisecting``, ``binary`` and ``sarawagi`` slack rescaling.
There psi = H g with H = h + 1, and with K(l) the largest H + l g

    max psi <= K(l)^2 / (4 l)   for every l > 0                                                                     (choi2018 lemma 5)

as long as the true label, (H, g) = (1, 0), is among those that K is taken over.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....core.errors import ConfigError, IncompatibleError, nearest
from .psi import Psi, Scaling
from .space import LabelPoint, OutputSpace

ROUNDING = 1e-12
"""Relative differences below it are rounding: neither a better label nor an angle with room for one."""

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_MOST_CALLS = 200  # of a bisection, whose steps halve or double
_LEAST_SHARE = 1e-3  # of the known bound that a label must exceed to be looked for, where none is known to start from


@dataclass(frozen=True)
class Query:
    """One call of an oracle.

    Attributes
    ----------
    oracle : str
        ``lam``, ``cone`` or ``levels``.
    l : float
        The weight of the loss; nan for ``levels``.
    point : LabelPoint or None
        The answer; of ``levels`` the best of them.
    a, b : float
        The sides of the angle of ``cone``; infinity and 0 elsewhere.
    """

    oracle: str
    l: float
    point: LabelPoint | None
    a: float = math.inf
    b: float = 0.0


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes
    ----------
    point : LabelPoint
        The best label; of a relaxation possibly a mixture of two.
    value : float
        Psi there.
    upper : float
        An upper bound of psi over all labels of the space.
    queries : tuple of Query
        The calls of oracles, in their order.
    edge : (LabelPoint, LabelPoint, float) or None
        Of `hull`: two labels and the weight of the first, where psi is largest over the convex hull: there its value is ``upper``.
    """

    point: LabelPoint
    value: float
    upper: float
    queries: tuple[Query, ...]
    edge: tuple[LabelPoint, LabelPoint, float] | None = None

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
    """A search by name: the oracles it calls, and whether it is of slack rescaling alone."""

    name: str
    find: Callable[..., Found]
    needs: tuple[str, ...]
    slack: bool = False

    def __call__(self, space: OutputSpace, psi: Psi, **options: Any) -> Found:
        """Return the best label that is found.

        Raises
        ------
        IncompatibleError
            An oracle that the space does not offer, or a surrogate that the search cannot take.
        """
        missing = [each for each in self.needs if each not in space.offers]
        if missing:
            offered = f"{space.name} offers {', '.join(sorted(space.offers)) or 'none'}"
            raise IncompatibleError(f"loss.search={self.name}", f"the oracle {missing[0]}", f"{offered}: choose loss.search=auto")
        if self.slack and not is_slack(psi):
            instead = f"loss.surrogate={psi.name} has loss.search=levels or hull"
            raise IncompatibleError(f"loss.search={self.name}", "loss.surrogate=slack", instead)
        return self.find(space, psi, **options)


SEARCHES: dict[str, Search] = {}
"""Searches by name."""


def _search(name: str, *needs: str, slack: bool = False) -> Callable[[Callable[..., Found]], Search]:
    def keep(find: Callable[..., Found]) -> Search:
        SEARCHES[name] = Search(name, find, needs, slack)
        return SEARCHES[name]

    return keep


def search_of(name: str, space: OutputSpace) -> Search:
    """Return a search by name; ``auto`` is ``levels`` where the space offers them, else ``hull``.

    Raises
    ------
    ConfigError
        No such search.
    """
    if name == "auto":
        name = "levels" if "levels" in space.offers else "hull"
    if name not in SEARCHES:
        raise ConfigError(f"loss.search={name} is unknown; {nearest(str(name), ['auto', *SEARCHES])}")
    return SEARCHES[name]


def is_slack(psi: Psi) -> bool:
    """Whether a surrogate is slack rescaling, by whatever name."""
    return isinstance(psi, Scaling) and psi.beta == psi.alpha == 1.0


class _Calls:
    """The oracles of a space with a record of the calls; keeps the best label for a surrogate and, for slack rescaling, the bound."""

    def __init__(self, space: OutputSpace, psi: Psi) -> None:
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
        met = tuple(each.point.key for each in self.queries if each.point is not None) if self.space.integral else ()
        return self._meet(Query("cone", l, self.space.cone(l, a, b, strict, met), a, b))

    def found(self, upper: float) -> Found:
        return Found(self.best, self.value, max(upper, self.value), tuple(self.queries))


# ---- every surrogate --------------------------------------------------------------------------------------------------
@_search("levels", "levels")
def levels(space: OutputSpace, psi: Psi) -> Found:
    """Return the best label, by the best h of every value of g: exact in one call, as psi rises in h."""
    points = space.levels()
    values = psi.value(np.array([each.h for each in points]), np.array([each.g for each in points]))
    at = int(np.argmax(values))
    return Found(points[at], float(values[at]), float(values[at]), (Query("levels", math.nan, points[at]),))


@_search("hull", "lam")
def hull(space: OutputSpace, psi: Psi, ban: Sequence[Hashable] = ()) -> Found:
    """Search the upper right chain of the convex hull (choi2018 algorithm 4 with the errata's corrections).

    With y the best label met, the next l is that of the tangent of psi's level set at y, or of the edge to the neighbour of y that lies
    above this tangent; a call that finds nothing above that line ends the search. The best vertex is found, and the largest psi over the
    convex hull, which is the upper bound, in at most one call more than the hull has vertices. The true label belongs to the hull from the
    start. A quasi-linear psi is largest at a vertex, so the search is exact; for ``f1`` it is Dinkelbach's method.

    Over a relaxation the label returned is the mixture of two vertices where psi is largest.

    Parameters
    ----------
    ban : sequence of hashable
        Labels that are left out; the space must offer the oracle ``ban``.
    """
    calls = _Calls(space, psi)
    chain = [space.truth]
    l = _tangent(psi, space.truth)
    if not psi.quasi_linear:
        l = math.inf
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
    return Found(y, value, upper, tuple(calls.queries), edge)


@_search("exact", "lam", "ban")
def exact(space: OutputSpace, psi: Psi) -> Found:
    """Return the best label by hull searches, each with the labels met before banned, until what is left cannot be better.

    Exact for every psi whose level sets are convex; cheap where few labels lie above the best one's level.
    """
    best: Found | None = None
    queries: tuple[Query, ...] = ()
    banned: dict[Hashable, None] = {}
    while True:
        found = hull(space, psi, ban=tuple(banned))
        queries += found.queries
        if best is None or found.value > best.value:
            best = found
        met = {each.point.key: None for each in found.queries if each.point is not None}
        if found.upper <= best.value * (1.0 + ROUNDING) or not met.keys() - banned.keys():
            return Found(best.point, best.value, best.value, queries)
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
    kept: list[LabelPoint] = []
    for point in sorted([*chain, new], key=lambda each: (each.g, each.h)):
        while kept and (
            kept[-1].h <= point.h
            or (len(kept) > 1 and (kept[-1].h - kept[-2].h) * (point.g - kept[-2].g) <= (point.h - kept[-2].h) * (kept[-1].g - kept[-2].g))
        ):
            kept.pop()
        kept.append(point)
    return kept


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
@_search("angular", "lam", "cone", slack=True)
def angular(
    space: OutputSpace, psi: Psi, start: float | None = None, ratio: float = 1.0, most: float = math.inf, breadth: bool = False
) -> Found:
    """Split angles at the origin of the (H, g) plane, each with its own bound (choi2018 algorithm 2 with the errata's corrections).

    The label found in an angle (a, b) at l = 1 / sqrt(a b) has the slope d = g / H; a better one has a slope between d and H / (l^2 g), on
    one side or the other of 1/l. Exact at ``ratio`` 1, in at most 2 M + 1 calls for M labels beside those that choose the start.

    Parameters
    ----------
    start : float, optional
        The first l, any above 0; by default the largest H, for which one call is made, over the largest g.
    ratio : float
        The search ends when the best label has this share of the upper bound. A relaxation needs one below 1: its angles shrink, but never
        run out of points (choi2018 theorem 5).
    most : float
        Most calls.
    breadth : bool
        Take angles in the order they were made, as theorems 4 and 5 do, rather than the one of the largest bound.

    Raises
    ------
    IncompatibleError
        A relaxation at ``ratio`` 1.
    """
    if not space.integral and ratio >= 1.0:
        raise IncompatibleError("loss.search=angular", "a ratio below 1 over a relaxation", f"{space.name} has mixtures in every angle")
    calls = _Calls(space, psi)
    widest = space.extent[1]
    if widest <= 0.0:
        return calls.found(calls.value)
    if start is None or not space.integral:
        tallest = max(1.0, calls.plain(0.0).h + 1.0)
        start = start or tallest / widest
    floor, sides = 0.0, [(math.inf, 0.0)]
    if not space.integral:
        vertex = calls.plain(start)
        floor = max(calls.value, _LEAST_SHARE * calls.upper)
        # a better label than phi has a slope between these, and one between the two points of value phi on the line that the call proves
        a, b = widest**2 / floor, floor / tallest**2
        if vertex.g > 0.0 and vertex.h > -1.0:
            one, other = vertex.g / (vertex.h + 1.0), (vertex.h + 1.0) / (start * start * vertex.g)
            a, b = min(a, max(one, other)), max(b, min(one, other))
        middle = min(max(1.0 / start, b), a)
        sides = [(a, middle), (middle, b)]
    # of angles: minus the bound, or the turn, then the turn; sides, strict side, l, bound
    turn = len(sides)
    angles: list[tuple[float, int, float, float, int, float, float]] = [
        (float(at) if breadth else -calls.upper, at, a, b, 0, start, calls.upper) for at, (a, b) in enumerate(sides)
    ]
    while angles and len(calls.queries) < most:
        if max(each[-1] for each in angles) * ratio <= calls.value * (1.0 + ROUNDING):
            break
        _, _, a, b, strict, l, bound = heapq.heappop(angles)
        if bound <= calls.value * (1.0 + ROUNDING):
            continue
        if b > 0.0:
            l = 1.0 / math.sqrt(a * b)
        z = calls.cone(l, a, b, strict)
        if z is None:
            continue
        H = z.h + 1.0
        bound = min(bound, (H + l * z.g) ** 2 / (4.0 * l))
        if bound <= H * z.g * (1.0 + ROUNDING):
            continue  # it lies on its own tangent: nothing else in this angle is better
        one, other = z.g / H, H / (l * l * z.g)
        for upper, lower, side in ((max(one, other), 1.0 / l, 1), (1.0 / l, min(one, other), 0)):
            turn += 1
            heapq.heappush(angles, (float(turn) if breadth else -bound, turn, upper, lower, side, l, bound))
    return calls.found(max([floor, *(each[-1] for each in angles)]))


@_search("bisecting", "lam", slack=True)
def bisecting(space: OutputSpace, psi: Psi, start: float = 1.0, tol: float = 1e-6) -> Found:
    """Halve the range of l by the side of the label's own tangent that the better vertices lie on (choi2018 algorithm 1).

    Finds the best vertex of the convex hull. l doubles until it is bounded; the search ends when both ends have one label, when no H or no
    g is left for a better label, or at a range of ``tol`` times its upper end.

    Parameters
    ----------
    start : float
        The first l.
    tol : float
        Relative width of the range of l at which the search ends.
    """
    calls = _Calls(space, psi)
    low, high = 0.0, math.inf
    ends: dict[str, Hashable] = {}
    H_range, g_range = (0.0, math.inf), (0.0, math.inf)
    l = start
    while len(calls.queries) < _MOST_CALLS:
        point = calls.plain(l)
        H, g = point.h + 1.0, point.g
        H_range = max(H_range[0], min(H, l * g)), min(H_range[1], max(H, l * g))
        g_range = max(g_range[0], min(g, H / l)), min(g_range[1], max(g, H / l))
        if g <= H / l:
            low, ends["low"] = l, point.key
        else:
            high, ends["high"] = l, point.key
        same = len(ends) == 2 and ends["low"] is not None and ends["low"] == ends["high"]
        if same or H_range[0] >= H_range[1] or g_range[0] >= g_range[1] or (high < math.inf and high - low <= tol * high):
            break
        l = 2.0 * l if math.isinf(high) else 0.5 * (low + high)
    return calls.found(calls.upper)


@_search("binary", "lam", slack=True)
def binary(space: OutputSpace, psi: Psi, start: float = 1.0, tol: float = 1e-3) -> Found:
    """Minimise the bound K(l)^2 / (4 l) by golden section over log l; the best label met is returned (choi2018 lemma 1).

    Parameters
    ----------
    start : float
        An l of the range that is bounded first, by steps of the factor 4.
    tol : float
        Width of the range of log l at which the search ends.
    """
    calls = _Calls(space, psi)
    if space.extent[1] <= 0.0:
        return calls.found(calls.value)

    def bound(log_l: float) -> float:
        l = math.exp(log_l)
        point = calls.plain(l)
        return max(1.0, point.h + 1.0 + l * point.g) ** 2 / (4.0 * l)

    step = math.log(4.0)
    at = math.log(start)
    value, below, above = bound(at), bound(at - step), bound(at + step)
    while below < value and len(calls.queries) < _MOST_CALLS:
        at, value, below, above = at - step, below, bound(at - 2.0 * step), value
    while above < value and len(calls.queries) < _MOST_CALLS:
        at, value, below, above = at + step, above, value, bound(at + 2.0 * step)
    _golden(bound, at - step, at + step, tol)
    return calls.found(calls.upper)


@_search("sarawagi", "lam", "ban", slack=True)
def sarawagi(space: OutputSpace, psi: Psi, xi: float = 0.0, tol: float = 1e-3) -> Found:
    """Look for a label with H g > xi by minimising F(l) = max H + l g - 2 sqrt(xi l) by golden section (Sarawagi and Gupta 2008).

    The largest is taken over labels other than the true one. An l with F(l) <= 0 proves that there is no such label and ends the search.
    What is maximised is H - xi/g rather than H g. With xi = 0 this is H, and one call at l = 0 finds its largest.

    Parameters
    ----------
    xi : float
        The slack of the example: the value that a violated constraint must exceed.
    tol : float
        Width of the range of log l at which the search ends.
    """
    if not xi >= 0.0:
        raise ConfigError(f"xi={xi} must be at least 0")
    calls = _Calls(space, psi)
    narrowest, widest = space.extent
    truth = (space.truth.key,)
    upper = math.inf

    def excess(log_l: float) -> float:
        nonlocal upper
        l = math.exp(log_l)
        point = calls.lam(l, truth)
        K = -math.inf if point is None else point.h + 1.0 + l * point.g
        F = K - 2.0 * math.sqrt(xi * l)
        # H g <= xi + F g for every label
        upper = min(upper, max(1.0, K) ** 2 / (4.0 * l), xi + max(F, 0.0) * widest)
        return F

    if widest <= 0.0:
        return calls.found(calls.value)
    if xi == 0.0:
        point = calls.lam(0.0, truth)
        return calls.found(0.0 if point is None else max(0.0, point.h + 1.0) * widest)
    _golden(excess, math.log(xi / widest**2), math.log(xi / narrowest**2), tol, stop=0.0)
    return calls.found(upper)


def _golden(f: Callable[[float], float], low: float, high: float, tol: float, stop: float = -math.inf) -> None:
    """Shrink a range around the minimum of a function with one valley; ends early at a value of at most ``stop``."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left = f(left)
    if at_left <= stop:
        return
    at_right = f(right)
    while high - low > tol and min(at_left, at_right) > stop:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = f(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = f(right)
