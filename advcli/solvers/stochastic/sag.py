"""Stochastic average gradient (Le Roux, Schmidt & Bach 2012) on the smoothed objective of `smoothing.py`.

SAG keeps the last gradient of every row, steps along their mean and renews the gradients of a few rows at a time. The linear rate of SAG
needs a smooth objective, which the surrogates are not. On the smoothed objective the last gradient of row i is r_i, so that the memory of
SAG is a dual point. The centres move when new ones promise more than further passes, as in `lbfgs`: the limit is the optimum of the
surrogate itself. With moments in a box every step ends with the proximal map of the L1 penalty.
"""

from __future__ import annotations

import time

import numpy as np

from ...core.compiled import kernels
from ...problems.risk import Problem, Solution
from ..base import Limits, Solver, positive_option, register, warm_start, whole_option
from ..best import Best
from ..smoothing import SmoothedObjective, first_smoothing
from .passes import Passes, lacks_layout

_MOST = 40  # passes between two changes of the centres


@register("sag")
class SagSolver(Solver):
    """Stochastic average gradient with proximal smoothing; linear and threshold features, dense or CSR.

    Parameters
    ----------
    step : float
        Step size in units of 1/L, L the largest smoothness constant of a row, above 0. 1 is what its authors use in practice.
    batch : int or None
        Rows of a step. None: 1, and with sparse rows as many as make the step cost no more than reading them.
    """

    comparison = True
    precision = 1e-4
    takes_box = True

    def __init__(self, step: float = 1.0, batch: int | None = None) -> None:
        self.step = positive_option("step", step)
        self.batch = None if batch is None else whole_option("batch", batch, or_null=True)

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs linear or threshold features."""
        return lacks_layout(problem)

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the parameters with the best primal value and the dual point with the best dual value seen."""
        started = time.perf_counter()
        random = np.random.default_rng(seed)
        best = Best(problem, start, limits.max_passes)
        passes, n = Passes(problem), len(problem.y)
        rows = passes.batch(self.batch, 1)
        centre, _ = warm_start(problem, start)
        mu = first_smoothing(problem, None if start is None else start.memory.get("mu"))
        theta = passes.flat(best.theta)
        R = passes.padded(centre)
        total = passes.flat(problem.dual_gradient(centre) * problem.n)
        # L of row i on the objective's scale, times mu
        heaviest = float((passes.largest_squares * problem.weight / (1.0 if problem.cost_weight is None else problem.cost_weight**2)).max())
        heaviest *= n / problem.n
        done, since, interval, status = best.passes, 0, 1, "converged"
        while not best.reached(limits.tol):
            interval = int(min(interval, limits.max_passes - done - 1.0))  # the values afterwards are a pass
            if spent := limits.spent(done + 2.0, started):
                status = spent
                break
            step = self.step / (heaviest / mu + problem.lam)
            for _ in range(interval):
                order = random.integers(n, size=n)
                kernels.subgradient.averaged_gradient(
                    *passes.arguments, order, rows, theta, total, R, passes.padded(centre), problem.lam, mu, step, passes.tolerance
                )
            since += interval
            smoothed = SmoothedObjective(problem, centre, mu)
            point = smoothed.at(passes.shaped(theta))
            done += interval + 1.0
            primal, dual, mismatch, feasible = smoothed.gaps(point)
            best.take(point.theta, primal, feasible, dual)
            if primal - dual - mismatch <= 0.3 * mismatch or since >= _MOST:
                centre = point.R
                mu *= 0.3 if since <= 2 else 0.6 if since <= 10 else 1.0
                since, interval = 0, 1
            else:
                interval = min(2 * interval, 8)
        return Solution(best.theta, best.R, problem.lam, self.name, done, time.perf_counter() - started, status, {"mu": mu})
