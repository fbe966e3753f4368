"""Constraint generation for the dual quadratic program (Fathony et al. 2016, section 3.3.4, Algorithm 1), n-slack, linear and kernel.

Every row has a growing set of constraints xi_i >= r.f_i + c, one for each answer (r, c) of its oracle that was needed; the first
belongs to its label, r = 0. The master program over the weights beta_i of these answers, a simplex for each row, is

    maximise  sum_i C s_i w_i sum_k beta_ik c_ik - 1/2 |C sum_i s_i J_i' sum_k beta_ik r_ik|^2                      (eq. 6-8 there)

A row whose oracle violates the row's constraints by more than epsilon gets one more constraint. The master is then solved again from its
last point, by the proximal point method of `newton` with weights instead of dual points (docs/notes/kernels.md, section 7). With a
kernel, rows are first moved in turn, each to the optimum of its simplex, which suffices for most rows. Newton gets the rows that stay
open, and more rows where the gap does not halve.

Masters of early rounds end at a gap that is small beside the round's violation, since a nearer optimum would hardly change the next round.
After a round without a violation the master is solved until every constraint with weight is the largest of its row. The rounds go on from
there, until a round over all rows finds no violation: with epsilon = 0, the paper's choice, none beyond the master's accuracy.
`Solution.memory` counts the constraints added, and those with weight at the end, which are not unique where a row has more tight
constraints than its distribution needs.

The algorithm as printed solves the master after every constraint; the printed counts (Table 1) belong to one solution a round, the
default here: the first split of iris, glass, vehicle, linear at C = 1, gets 65, 280 and 645 constraints with `batch` 1, 1 and 10, and 185,
552 and 1280 with one solution a round; the table has 213, 578 and 1310.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ..core.checks import NOT_NEGATIVE, refuse
from ..core.compiled import kernels
from ..core.typing import Array, Labels
from ..features.base import KernelMap
from ..features.kernels.kernel_map import KernelFeatures
from ..problems.risk import Problem, Solution
from .base import Limits, Solver, register, whole_option
from .newton.kernel import CoefficientSmoothed
from .newton.linear import NewtonPoint, ProximalStep, search_by_steps
from .newton.proximal import CLOSE, NewtonRun, minimise

_ACCURACY = 1e-6  # violation in units of the loss that counts, and accuracy below which a master has stalled
_TIGHT = 1e-8  # distance of a constraint with weight from its row's largest, in units of the loss, at which a master ends
_SHARE = 1e-3  # share of a round's violation, times its mean: the gap at which the next master ends
_WEIGHT = 1e-6  # share of a row's weight from which a constraint counts as active
_HELD = 1e-9  # share of a row's weight from which a constraint has weight at all
_FIRST = 0.03  # the first proximal weight in units of C |x|^2
_SMALLEST = 1e-8  # the least proximal weight: rounding errors of scores enter a master's weights divided by it
_NEAR = 0.1  # slack in units of the loss up to which, with a kernel, a constraint brings its row into a master
_MOST_PROXIMAL = 100  # proximal steps of a master
_IDLE = 5  # proximal steps that do not halve the distance to the aim, after which rounding has won
_PASSES = 20  # passes of the ascent with a kernel between two looks at its gap
_LEAST_LOOKS = 2.0  # least looks that do not halve the gap, after which the ascent is stuck
_MOST_LOOKS = 200.0  # most of these looks
_FACTORS = 10  # systems that Newton's method is expected to factorise where the ascent is stuck
_FEWEST = 50  # rows of its first system
_GROWTH = 4  # factor of that number where the gap does not halve


class _Master(ProximalStep):
    """The constraints of all rows, sorted by rows, and the optimum over them.

    psi of `newton` with a maximum over weights: of sum_k beta_ik (c_ik + r_ik . f_i / w_i) - (c/2) |beta_i - center_i|^2 over the simplex.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        n, k = len(problem.y), problem.loss.n_classes
        self.owner = np.arange(n)
        self.first = np.arange(n)  # of each row's constraints
        self.r, self.offset = np.zeros((n, k)), problem.loss.offset(np.zeros((n, k)), problem.y)
        self.added = np.zeros(n, dtype=bool)  # False for the constraint that a row starts with
        self.beta: Array = np.ones(n)
        self.unit = max(1.0, float(np.abs(self.offset).max(initial=0.0)))  # of scores and slacks
        self.aim = 0.0  # gap of the weights, in C form, at which the master ends; 0: where rounding ends it
        self.gap = self.loose = 0.0  # the gap, and how far the lowest constraint with weight is below its row's largest
        self._settle()

    @property
    def reach(self) -> float:
        """C |x|^2 in the mean: how much a row can move its score."""
        return self.C * float(self.features.squares.mean())

    def add(self, rows: Labels, r: Array, c: Array) -> None:
        """Add one constraint to each of the rows."""
        self.unit = max(self.unit, float(np.abs(c).max(initial=0.0)))
        owner = np.concatenate([self.owner, rows])
        order = np.argsort(owner, kind="stable")
        self.owner = owner[order]
        self.r, self.offset = np.vstack([self.r, r])[order], np.concatenate([self.offset, c])[order]
        self.added = np.concatenate([self.added, np.ones(len(rows), dtype=bool)])[order]
        self.beta = np.concatenate([self.beta, np.zeros(len(rows))])[order]
        self.first = np.searchsorted(self.owner, np.arange(len(self.first)))

    def slack(self, F: Array) -> tuple[Array, Array]:
        """Return the slacks xi of the rows at scores F, (n,), and how far each constraint lies below the slack of its row, (m,)."""
        asked = np.einsum("mk,mk->m", self.r, self.problem.scaled(F)[self.owner]) + self.offset
        slack = np.maximum.reduceat(asked, self.first)
        return slack, slack[self.owner] - asked

    def block_step(self, F: Array) -> tuple[Array, Array]:
        """Return the r (n, k) of the proximal step at scores F, and its weights (m,): projections onto the rows' simplices."""
        self.projections += 1
        target = self.center - self.slack(F)[1] / self.c
        target -= np.maximum.reduceat(target, self.first)[self.owner]
        positive = target > -1.0
        while True:  # Michelot: keep the targets above the threshold at which the kept ones sum to one
            count = np.add.reduceat(positive.astype(np.float64), self.first)
            threshold = (np.add.reduceat(np.where(positive, target, 0.0), self.first) - 1.0) / count
            above = positive & (target > threshold[self.owner])
            if np.array_equal(above, positive):
                break
            positive = above
        beta = np.where(positive, target - threshold[self.owner], 0.0)
        return self.combine(beta), beta

    search = search_by_steps

    def combine(self, beta: Array) -> Array:
        """Return sum_k beta_ik r_ik, shape (n, k)."""
        return np.asarray(np.add.reduceat(beta[:, None] * self.r, self.first, axis=0))

    def bases(self, point: NewtonPoint) -> tuple[Array, Labels]:
        """Return the r of orthonormal bases of the rows' faces: (sum of the j before - j times the next) / sqrt(j (j + 1))."""
        positive = np.flatnonzero((point.where > 0.0) & (self.sample[self.owner] > 0.0))
        owner = self.owner[positive]
        begins = np.diff(owner, prepend=-1) != 0
        start = np.flatnonzero(begins)[np.cumsum(begins) - 1]  # position of the first positive weight of the same row
        apart = self.r[positive] - self.r[positive[start]]
        before = np.cumsum(apart, axis=0) - apart
        before -= before[start]
        count = (np.arange(len(owner)) - start)[:, None]
        later = ~begins
        B = (before[later] - count[later] * apart[later]) / np.sqrt(count[later] * (count[later] + 1.0))
        return B, owner[later]

    @property
    def done(self) -> bool:
        """Whether the weights are what the master aims at."""
        return self.gap <= self.aim or self.loose <= _TIGHT * self.unit

    def openness(self, beta: Array, F: Array) -> tuple[float, float]:
        """Return the gap C sum_i s_i w_i sum_k beta_ik below_ik at scores F, and the largest `below` of a constraint with weight."""
        below = self.slack(F)[1]
        weight = self.C * self.problem.weight[self.owner] * beta
        return float(weight @ below), float(below.max(initial=0.0, where=beta > _HELD))

    def optimise(self, deadline: float) -> None:
        """Solve over all constraints, as far as the aim, rounding and the deadline allow, and take the best weights seen."""
        self.center, self.c, self.deadline = self.beta, _FIRST * self.reach, deadline
        self.gap = self.loose = self.goal = np.inf
        self.idle, self.left = 0, _MOST_PROXIMAL
        minimise(self, self._around(self.theta, self.F))
        self._settle()

    def judge(self, point: NewtonPoint, steps: int) -> bool:
        """Keep the weights of the point if they are the best so far; return whether further progress needs a new centre."""
        weight, beta = self.C * self.problem.weight, point.where
        slack, below = self.slack(point.F)
        mismatch = float((weight[self.owner] * beta) @ below)
        primal = 0.5 * self.inner(point.theta, point.theta, point.F) + float(weight @ slack)
        model = point.theta - point.residual
        scores = self.scores_of(point, model)
        dual = float((weight[self.owner] * beta) @ self.offset) - 0.5 * self.inner(model, model, scores)
        gap, loose = self.openness(beta, scores)
        if loose < self.loose or gap <= self.aim:
            self.gap, self.loose, self.beta = gap, loose, beta
        return self.done or primal - dual - mismatch <= CLOSE * mismatch

    def ended(self, descent: NewtonRun) -> str:
        """Return the status where the aim is reached, rounding has won, or time is up."""
        self.goal, self.idle = (0.5 * self.loose, 0) if self.loose <= self.goal else (self.goal, self.idle + 1)
        self.left -= 1
        rounded = self.idle >= _IDLE and self.loose <= _ACCURACY * self.unit
        return "converged" if self.done else "stalled" if rounded or not self.left else self.limit()

    def recentre(self, descent: NewtonRun) -> NewtonPoint:
        """Return the point for its own weights, instead of dual points, as the center."""
        point, steps = descent.point, descent.steps
        self.center = point.where
        self.c = max(self.c * (0.2 if steps <= 2 else 0.5 if steps <= 10 else 0.7), _SMALLEST * self.reach)
        return self._around(point.theta, point.F)

    def recover(self, descent: NewtonRun) -> NewtonPoint:
        """Return the first point for a larger c."""
        self.c *= 5.0
        return self._around(*self.beginning)

    def scores_of(self, point: NewtonPoint, model: Array) -> Array:
        """Return the scores of theta(r) at the point; with a kernel the point knows them."""
        return self.features.scores(model)

    def _settle(self) -> None:
        """Bring dual point, parameters and scores in line with the weights."""
        self.R = self.combine(self.beta)
        self.theta = self.problem.parameters(self.R)
        self.F = self.features.scores(self.theta)


class _KernelMaster(_Master, CoefficientSmoothed):
    """`_Master` with coefficients over the rows as parameters."""

    whole = True  # few rows, and which constraints come next may hang on rounding

    @property
    def reach(self) -> float:
        """C K(x, x) in the mean."""
        return self.C * float(self.K.diagonal().mean())

    def scores_of(self, point: NewtonPoint, model: Array) -> Array:
        return point.F - point.pull

    def optimise(self, deadline: float) -> None:
        """Ascend row by row, then give Newton the rows that stay open; more rows each time the gap does not halve."""
        size, before = _FEWEST, np.inf
        while True:
            self._ascend(size, deadline)
            if self.done or time.perf_counter() > deadline:
                return
            size, before = size if self.gap <= 0.5 * before else _GROWTH * size, self.gap
            below = np.where(self.beta > _HELD, self.slack(self.F)[1], 0.0)
            widest = np.maximum.reduceat(below, self.first)
            if size >= np.count_nonzero(widest):
                break
            self._optimise_among(np.sort(np.argsort(-widest, kind="stable")[:size]), deadline)
        self._optimise_all(deadline)

    def _optimise_all(self, deadline: float) -> None:
        """Solve over the rows whose added constraints have weight or may get it, until no other row is violated."""
        inside = np.zeros(len(self.first), dtype=bool)
        while True:
            _, below = self.slack(self.F)
            late = self.beta[self.first] < 1.0  # the first constraint of a row belongs to its label
            late[self.owner[(self.beta > _HELD) & (below > _TIGHT * self.unit)]] = True
            self.gap, self.loose = self.openness(self.beta, self.F)
            if (inside.any() and self.gap <= 2.0 * self.aim) or not (late & ~inside).any() or time.perf_counter() > deadline:
                return
            inside |= late
            inside[self.owner[self.added & (below - below[self.first][self.owner] < _NEAR * self.unit)]] = True
            self._optimise_among(np.flatnonzero(inside), deadline)

    def _ascend(self, size: int, deadline: float) -> None:
        """Move the weights of each row to the optimum of its simplex, in passes, while the gap halves; Newton gets `size` rows next."""
        n, k = self.F.shape
        first = np.append(self.first, len(self.owner))
        K, r, beta = np.ascontiguousarray(self.K), np.ascontiguousarray(self.r), self.beta.copy()
        idle, goal, patience = 0, np.inf, _LEAST_LOOKS
        while idle < patience:
            left = deadline - time.perf_counter()
            if left <= 0.0:
                break
            F, aim, visits = np.ascontiguousarray(self.F.T), self.aim / self.C, float(_PASSES * n)
            kernels.ascent_kernel.solve_listed(
                K, first, r, self.offset, beta, self.sample, self.cost, F, self.C, aim, 0.0, np.inf, left, 0, visits
            )
            self.beta = beta.copy()
            self._settle()
            self.gap, self.loose = self.openness(self.beta, self.F)
            if self.done:
                break
            goal, idle = (0.5 * self.gap, 0) if self.gap <= goal else (goal, idle + 1)
            # operations of Newton's factors over the operations of a look: the ascent may stay stuck for as long as Newton would take
            free = min(int(np.count_nonzero(beta > _HELD)) - n, size * (k - 1))
            patience = min(max(_FACTORS * free**3 / (6.0 * _PASSES * n**2 * k), _LEAST_LOOKS), _MOST_LOOKS)

    def _optimise_among(self, rows: Labels, deadline: float) -> None:
        """Solve over some rows; the others keep their weights."""
        inside = np.zeros(len(self.first), dtype=bool)
        inside[rows] = True
        chosen = inside[self.owner]
        problem, features = self.problem, self.problem.features
        assert isinstance(features, KernelFeatures)
        sample, cost = (None if weight is None else weight[rows] for weight in (problem.sample_weight, problem.cost_weight))
        n = float(len(rows) if sample is None else sample.sum())
        lam = problem.lam * problem.n / n  # the same C
        among = replace(problem, features=features.among(rows), y=problem.y[rows], lam=lam, sample_weight=sample, cost_weight=cost)
        part = _KernelMaster(among)
        part.owner = np.searchsorted(rows, self.owner[chosen])
        part.first = np.searchsorted(part.owner, np.arange(len(rows)))
        part.r, part.beta, part.aim, part.unit = self.r[chosen], self.beta[chosen], 0.5 * self.aim, self.unit
        part._settle()
        # the part of the other rows in these rows' scores is fixed: a constant of each constraint
        others = among.scaled(self.F[rows] - part.F)
        part.offset = self.offset[chosen] + np.einsum("mk,mk->m", part.r, others[part.owner])
        super(_KernelMaster, part).optimise(deadline)
        self.beta = self.beta.copy()
        self.beta[chosen] = part.beta
        self._settle()
        self.gap, self.loose = self.openness(self.beta, self.F)


@register("constraint_generation")
class ConstraintGenerationSolver(Solver):
    """Algorithm 1 of Fathony et al. 2016; ends with the last violation, beyond any tolerance asked for.

    Violations of ``epsilon`` in units of the loss are left alone; ``batch`` rows, None: all, get constraints between two solutions.
    """

    def __init__(self, epsilon: float = 0.0, batch: int | None = None) -> None:
        refuse("solver.epsilon", epsilon, NOT_NEGATIVE)
        self.epsilon, self.batch = float(epsilon), None if batch is None else whole_option("batch", batch, or_null=True)

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs linear multiclass or kernel features."""
        return problem.features.lacks_columns()

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the master's last optimum; a start is not used, because the printed counts begin from nothing."""
        started = time.perf_counter()
        master = (_KernelMaster if isinstance(problem.features, KernelMap) else _Master)(problem)
        loss, y, n = problem.loss, problem.y, len(problem.y)
        allowed = max(self.epsilon, _ACCURACY)
        passes, status = 0.0, "converged"
        while status == "converged":
            added = 0
            size = self.batch or n
            for first in range(0, n, size):
                rows = np.arange(first, min(first + size, n))
                if passes + len(rows) / n + 1.0 > limits.max_passes:
                    status = "max_passes"
                    break
                answer = loss.oracle(problem.scaled(master.F)[rows], y[rows])
                slack, _ = master.slack(master.F)
                broken = (answer.value > slack[rows] + allowed * master.unit) & (master.sample[rows] > 0)
                passes += len(rows) / n
                if not broken.any():
                    continue
                master.add(rows[broken], answer.R[broken], answer.offset[broken])
                added += int(broken.sum())
                excess = float(problem.weight[rows[broken]] @ (answer.value - slack[rows])[broken])
                master.aim = _SHARE * master.C * excess * min(excess / float(problem.weight.sum()) / master.unit, 1.0)
                master.optimise(started + limits.max_seconds)
                passes += 1.0
                if time.perf_counter() - started > limits.max_seconds:
                    break
            if status == "converged" and added == 0:
                if master.aim == 0.0:
                    break
                if passes + 1.0 > limits.max_passes:
                    status = "max_passes"
                    break
                master.aim = 0.0
                master.optimise(started + limits.max_seconds)
                passes += 1.0
            if status == "converged" and time.perf_counter() - started > limits.max_seconds:
                status = "max_seconds"
        if status == "converged" and master.loose > allowed * master.unit:
            status = "stalled"
        # equal rows that a fit has merged are counted as often as they occur, as the paper's are
        times = master.sample[master.owner] * master.added
        active = times[master.beta > _WEIGHT]
        memory = {"n_constraints_added": float(times.sum()), "n_constraints_active": float(active.sum())}
        seconds = time.perf_counter() - started
        return Solution(master.theta, master.R.copy(), problem.lam, self.name, passes, seconds, status, memory)
