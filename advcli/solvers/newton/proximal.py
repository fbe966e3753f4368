"""The proximal point method with Newton steps: the one loop, and the one search along a line.

A proximal step minimises the objective plus a quadratic term around a centre, by Newton steps; its answer is the next centre, and the
weight of the term falls (docs/notes/large-c.md, sections 5 and 6). A family of problems is a `ProximalMethod`: it gives the values of a
point, a Newton step, the next centre, and the way back from a step that failed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core.linalg import LinAlgError
from ...core.typing import Array
from ..best import BestSeen

MAX_INNER = 30  # Newton steps after which a proximal step counts as failed
MAX_FAILURES = 25  # failed proximal steps after which a fit has stalled
CLOSE = 0.3  # what Newton steps may leave, as a share of the gap that only a new centre closes
TRIALS = 40  # most step lengths of a line search
SMALLEST = 1e-9  # least proximal weight: rounding errors of scores, divided by it, enter the dual point
_NO_KINKS = np.empty(0)


class NewtonRun(NamedTuple):
    """Where the Newton steps of one proximal step began and ended; a failed one may have run far away."""

    first: Any
    point: Any
    steps: int
    failed: bool


class ProximalMethod(ABC):
    """A family of proximal steps; its points hold what the family needs."""

    best: BestSeen  # which `judge` or `ended` fill
    tol: float  # the relative gap wanted
    most_inner: int = MAX_INNER

    @abstractmethod
    def judge(self, point: Any, steps: int) -> bool:
        """Return whether the proximal step is solved well enough at a point, ``steps`` Newton steps from its beginning."""

    @abstractmethod
    def advance(self, point: Any) -> Any:
        """Return the next point, by a Newton step and a search along its line; None, or `LinAlgError`, where that fails."""

    @abstractmethod
    def limit(self) -> str:
        """Return the status of a fit that has reached a limit, else nothing."""

    @abstractmethod
    def recentre(self, descent: NewtonRun) -> Any:
        """Take the next centre and weight, and return the first point there; None where the fit has stalled."""

    @abstractmethod
    def recover(self, descent: NewtonRun) -> Any:
        """Raise the weight after a failed step, and return the point to go on from; None where the fit has stalled."""

    def ended(self, descent: NewtonRun) -> str:
        """Return the status of a fit that ends after this proximal step, else nothing."""
        return "converged" if self.best.reached(self.tol) else self.limit()


def descend(method: ProximalMethod, first: Any) -> NewtonRun:
    """Take Newton steps from a point until the proximal step is solved well enough, a limit is reached, or a step fails."""
    point, steps = first, 0
    while True:
        solved = method.judge(point, steps)
        if solved or steps >= method.most_inner or method.limit():
            return NewtonRun(first, point, steps, not solved and steps >= method.most_inner)
        try:
            following = method.advance(point)
        except LinAlgError:
            following = None
        if following is None:
            return NewtonRun(first, point, steps, True)
        point, steps = following, steps + 1


def minimise(method: ProximalMethod, point: Any) -> str:
    """Take proximal steps from a point; return what stopped them, as `Solution.status` has it."""
    while point is not None:
        descent = descend(method, point)
        if status := method.ended(descent):
            return status
        point = method.recover(descent) if descent.failed else method.recentre(descent)
    return "stalled"


def fall(steps: int) -> float:
    """Return the factor of the proximal weight after a step of so many Newton steps; 0.1, 0.3 and 0.5 took a quarter more of them."""
    return 0.3 if steps <= 2 else 0.5 if steps <= 6 else 0.75


def by_share(low: float, at_low: float, high: float, at_high: float) -> float:
    """Return the zero of the secant between two step lengths, held a tenth inside."""
    return low + min(max(at_low / (at_low - at_high), 0.1), 0.9) * (high - low)


def line_search(
    line: Callable[[float], tuple[float, float, Any]],
    first: float,
    most: int,
    accept: float = 0.5,
    kinks: Array = _NO_KINKS,
    between: Callable[[float, float, float, float], float] = by_share,
) -> tuple[float, Any, bool]:
    """Search by regula falsi for the step where the slope has fallen to ``accept`` of the ``first``, in at most ``most`` trials.

    Return it, or the last one tried, the answer of ``line`` there, and whether it was found. ``line`` returns the slopes to the left and
    to the right of a step length, and an answer. ``kinks`` are rising step lengths where the slope jumps, of which the middle one is
    tried where regula falsi has not ended after a few trials; ``between`` returns the next step length between two with their slopes.
    """
    enough = accept * abs(first)
    low, at_low, high, at_high, t = 0.0, first, np.inf, np.inf, 1.0
    for trial in range(most):
        tried = t
        left, right, answer = line(t)
        if left <= enough and right >= -enough:
            return t, answer, True
        if right < 0.0:
            low, at_low = t, right
        else:
            high, at_high = t, left
        if high == np.inf:
            t *= 2.0
            continue
        inside = kinks
        if trial >= 3 and len(kinks):
            inside = kinks[(kinks > low * (1 + 1e-12)) & (kinks < high * (1 - 1e-12))]
        t = float(inside[len(inside) // 2]) if trial >= 3 and len(inside) else between(low, at_low, high, at_high)
    return tried, answer, False
