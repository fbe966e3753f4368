"""L-BFGS (Fathony et al. 2018, section 6.1, name it) by SciPy's L-BFGS-B.

On a surrogate, which has kinks, L-BFGS stalls away from the optimum, since curvature pairs mix the pieces that a step crosses
(docs/notes/large-c.md, section 9). Every run of L-BFGS is therefore on the smoothed objective of `smoothing.py`, whose gradient is exact
and Lipschitz. Between runs the centres move, and the limit is the optimum of the surrogate. A run stops as soon as further iterations
would gain little beside new centres; mu shrinks when few iterations were needed.

Moments in a box are an L1 penalty. With theta = u - v and u, v >= 0 the penalty is sum_j tolerance_j (u_j + v_j), which is smooth. The
bounds are the "B" of L-BFGS-B (Byrd, Lu, Nocedal and Zhu 1995).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..core.arithmetic import refuse_portable
from ..core.typing import Array
from ..problems.risk import Problem, Solution
from .base import Limits, Solver, register, warm_start, whole_option
from .best import Best, BestSeen
from .smoothing import SmoothedObjective, first_smoothing

_INNER = 200  # iterations of one inner run
_IDLE = 30  # proximal steps without a better primal or dual value after which the solver gives up


class SmoothObjective(Protocol):
    """What L-BFGS asks of a smoothed objective, such as `SmoothedObjective`; only the objective looks into its centres and dual points."""

    evaluations: int

    def at(self, theta: Array) -> Any:
        """Return the ``theta``, ``value`` and ``gradient`` at theta, and the maximisers ``R``, the next centre; one read of the data."""

    def gaps(self, point: Any) -> tuple[float, float, float, Any]:
        """Return P(theta), D, the part of P - D that only new centres can remove, and the dual point that gives D."""


Smoothing = Callable[[Any, float], SmoothObjective]  # by a centre and a mu


@register("lbfgs")
class LbfgsSolver(Solver):
    """L-BFGS with so many curvature ``pairs`` on proximally smoothed objectives; explicit features, a ball or a box."""

    precision = 1e-6
    takes_box = takes_smooth = True

    def __init__(self, pairs: int = 10) -> None:
        refuse_portable("solver=lbfgs", "take another solver")
        self.pairs = whole_option("pairs", pairs)

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs explicit parameters."""
        return problem.lacks_parameters()

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the parameters with the best primal value and the dual point with the best dual value seen."""
        started = time.perf_counter()
        best = Best(problem, start, limits.max_passes)
        centre, _ = warm_start(problem, start)
        mu = first_smoothing(problem, None if start is None else start.memory.get("mu"))
        run = ProximalRun(partial(SmoothedObjective, problem), best, limits, started, self.pairs, problem.tolerance)
        status = run.minimise(centre, mu)
        seconds = time.perf_counter() - started
        return Solution(best.theta, best.R, problem.lam, self.name, run.passes, seconds, status, {"mu": run.mu})


class ProximalRun:
    """Proximal steps, each of them a run of L-BFGS; ``passes`` counts the reads of the data, ``mu`` is the smoothing of the next step.

    ``best`` holds the first theta and every better point from then on,
    ``started`` is the `time.perf_counter` that the seconds count from, and ``tolerance`` has the weights of the L1 penalty.
    """

    def __init__(
        self, smooth: Smoothing, best: BestSeen, limits: Limits, started: float, pairs: int, tolerance: Array | None = None
    ) -> None:
        self.smooth, self.best, self.limits, self.started, self.pairs, self.tolerance = smooth, best, limits, started, pairs, tolerance
        self.passes, self.mu = best.passes, 0.0

    def minimise(self, centre: Any, mu: float) -> str:
        """Run from a first centre with a first mu; return what stopped it, as `Solution.status` has it."""
        best, limits = self.best, self.limits
        self.mu, theta, idle = mu, best.theta, 0
        while not best.reached(limits.tol):
            if spent := limits.spent(self.passes + 1.0, self.started):
                return spent
            smoothed = self.smooth(centre, self.mu)
            before = best.primal, best.dual
            point, iterations = self._lbfgs(smoothed, theta)
            self.passes += smoothed.evaluations
            idle = idle + 1 if (best.primal, best.dual) == before else 0
            if idle >= _IDLE:
                return "stalled"
            theta, centre = point.theta, point.R
            self.mu *= 0.3 if iterations <= 5 else 0.5 if iterations <= 20 else 0.8 if iterations <= 60 else 1.0
        return "converged"

    def _lbfgs(self, smoothed: SmoothObjective, theta: Array) -> tuple[Any, int]:
        """Minimise one smoothed objective as far as it pays; every accepted iterate is offered to ``best``."""
        best, limits, passes = self.best, self.limits, self.passes
        variables = _Variables(self.tolerance, theta.shape)
        latest = smoothed.at(theta)
        begin = variables.of(latest.theta)
        seen = {begin.tobytes(): latest}

        def evaluate(flat: Array) -> tuple[float, Array]:
            key = flat.tobytes()
            if key not in seen:
                if passes + smoothed.evaluations + 1.0 > limits.max_passes:
                    raise _Spent
                seen[key] = smoothed.at(variables.theta(flat))
            return variables.value(flat, seen[key]), variables.gradient(seen[key])

        iterations, accepted = 0, latest

        def enough(point: Any) -> bool:
            primal, dual, mismatch, R = smoothed.gaps(point)
            best.take(point.theta, primal, R, dual)
            spent = limits.spent(passes + smoothed.evaluations + 1.0, self.started)
            return bool(spent) or best.reached(limits.tol) or primal - dual - mismatch <= 0.3 * mismatch

        def callback(intermediate_result: object) -> None:
            nonlocal iterations, accepted
            iterations += 1
            key = np.ascontiguousarray(intermediate_result.x).tobytes()  # type: ignore[attr-defined]
            accepted = seen[key]
            seen.clear()
            seen[key] = accepted
            if enough(accepted):
                raise StopIteration

        if not enough(latest):
            options: Any = {"maxcor": self.pairs, "maxiter": _INNER, "maxfun": 10 * _INNER, "ftol": 0.0, "gtol": 0.0}
            from scipy.optimize import Bounds, minimize  # most fits need neither it nor the time that it takes

            bounds = None if variables.tolerance is None else Bounds(0.0, np.inf)
            with suppress(_Spent):
                minimize(evaluate, begin, jac=True, method="L-BFGS-B", bounds=bounds, callback=callback, options=options)
        return accepted, iterations


class _Spent(Exception):
    """Ends a run of L-BFGS within a line search, where one more evaluation would be one too many."""


class _Variables:
    """What L-BFGS-B moves: the flattened theta, or its positive and negative parts where there is an L1 penalty."""

    def __init__(self, tolerance: Array | None, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.tolerance = None if tolerance is None else tolerance.ravel()

    def of(self, theta: Array) -> Array:
        """Return the variables at theta."""
        flat = theta.ravel().copy()
        return flat if self.tolerance is None else np.concatenate([np.maximum(flat, 0.0), np.maximum(-flat, 0.0)])

    def theta(self, flat: Array) -> Array:
        """Return theta at the variables."""
        if self.tolerance is not None:
            flat = flat[: len(self.tolerance)] - flat[len(self.tolerance) :]
        return flat.reshape(self.shape).copy()

    def value(self, flat: Array, point: Any) -> float:
        """Return the smoothed objective; both parts of a coordinate pay the penalty, so at most one of them is positive at a minimum."""
        if self.tolerance is None:
            return point.value
        paid = flat[: len(self.tolerance)] + flat[len(self.tolerance) :] - np.abs(point.theta.ravel())
        return point.value + float(self.tolerance @ paid)

    def gradient(self, point: Any) -> Array:
        """Return the gradient of `value`."""
        slope = point.gradient.ravel()
        return slope if self.tolerance is None else np.concatenate([slope + self.tolerance, self.tolerance - slope])
