"""Searches for the worst label under slack rescaling by weights l of the loss: bisecting, binary (choi2018), and Sarawagi and Gupta's."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

from advcli.core.errors import ConfigError
from advcli.learners.structured.spaces.psi import Psi
from advcli.learners.structured.spaces.searches import OracleCalls, SearchResult, register
from advcli.learners.structured.spaces.space import LabelSpace

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_MOST_CALLS = 200  # of a bisection, whose steps halve or double


@register("bisecting", "lam", slack=True)
def bisecting(space: LabelSpace, psi: Psi, start: float = 1.0, tol: float = 1e-6) -> SearchResult:
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
    calls = OracleCalls(space, psi)
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
    return calls.result(calls.upper)


@register("binary", "lam", slack=True)
def binary(space: LabelSpace, psi: Psi, start: float = 1.0, tol: float = 1e-3) -> SearchResult:
    """Minimise the bound K(l)^2 / (4 l) by golden section over log l; the best label met is returned (choi2018 lemma 1).

    Parameters
    ----------
    start : float
        An l of the range that is bounded first, by steps of the factor 4.
    tol : float
        Width of the range of log l at which the search ends.
    """
    calls = OracleCalls(space, psi)
    if space.extent[1] <= 0.0:
        return calls.result(calls.value)

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
    return calls.result(calls.upper)


@register("sarawagi", "lam", "ban", slack=True)
def sarawagi(space: LabelSpace, psi: Psi, xi: float = 0.0, tol: float = 1e-3) -> SearchResult:
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
    calls = OracleCalls(space, psi)
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
        return calls.result(calls.value)
    if xi == 0.0:
        point = calls.lam(0.0, truth)
        return calls.result(0.0 if point is None else max(0.0, point.h + 1.0) * widest)
    _golden(excess, math.log(xi / widest**2), math.log(xi / narrowest**2), tol, stop=0.0)
    return calls.result(upper)


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
