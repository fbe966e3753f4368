"""Moments held in a box: the proximal method of multipliers with semismooth Newton steps, for an L1 penalty of any weights.

    minimise over theta   sum_j t_j |theta_j| + lambda/2 |theta|^2 + 1/n sum_i s_i w_i S(f_i / w_i, y_i)

The saddle function over (theta, r) gets a proximal term in both (Rockafellar 1976, "Augmented Lagrangians and applications of the proximal
point algorithm"): |theta - theta_t|^2 / (2 sigma) and c/2 |r_i - r_it|^2. The maximum over r_i is then an exact block step, and the
function of theta alone is smooth and convex plus the L1 penalty. A Newton step minimises its quadratic model plus the penalty over the
coordinates that are not held at 0; the moments of most coordinates lie strictly inside the box, so few do.

Where parameters are to sum to zero over the classes (problem.py, (4)), the multipliers v get a proximal term too, e/2 |v - v_t|^2. The
maximum over v is at v = v_t + theta 1 / e, so the function of theta gains |theta 1 + e v_t|^2 / (2 e).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ...core.compiled import Face, kernels
from ...core.linalg import LinAlgError, cho_factor, cho_solve, inner
from ...core.typing import Array
from ...problems.risk import Problem, Solution
from ..base import Limits, Solver, register
from ..best import BestSeen
from .proximal import SMALLEST, TRIALS, NewtonRun, ProximalMethod, line_search, minimise

_MAX_INNER = 40  # Newton steps after which the proximal terms weigh more
_MAX_OUTER = 200  # proximal steps after which a fit has stalled


@dataclass
class _Point:
    """The smooth part at one theta."""

    theta: Array
    F: Array
    R: Array
    gradient: Array  # of the smooth part, in the shape of theta
    face: Face
    v: Array  # multipliers (d,), 0 where the sums are free


class _BoxStep(ProximalMethod):
    """The subproblem of one proximal step."""

    most_inner = _MAX_INNER

    def __init__(self, problem: Problem, limits: Limits, start: Solution | None) -> None:
        self.problem, self.limits, self.tol, self.started = problem, limits, limits.tol, time.perf_counter()
        self.sample, self.cost = problem.counts, problem.costs
        assert problem.tolerance is not None
        self.tolerance = problem.tolerance
        self.center = np.zeros((len(problem.y), problem.loss.n_classes))
        self.theta = np.zeros(problem.features.shape)
        self.v = np.zeros(self.theta.shape[0])
        # In units of the loss: a parameter of size unit/|x| moves scores by one unit. A large sigma matters most, 10^4 to 10^6 needed
        # 50 times fewer Newton steps than 1; c of 1 to 100 did equally well.
        self.c = 10.0 * problem.unit
        self.square = max(float(problem.features.squares.mean()), 1e-300)
        self.sigma = 1e4 * problem.unit / self.square
        self.damping = 1.0  # of the Newton steps, in units of the proximal term
        self.projections = self.steps = self.rounds = 0
        if start is not None and start.R is not None and start.R.shape == self.center.shape and start.theta.shape == self.theta.shape:
            self.center, self.theta = start.R, start.theta
            self.c, self.sigma, self.v = (start.memory.get(name, getattr(self, name)) for name in ("c", "sigma", "v"))
        self.F = problem.features.scores(self.theta)
        R = problem.into_box(self.center)
        primal = problem.penalty(self.theta) + problem.empirical(self.F)
        self.best = BestSeen(self.theta, R, primal, problem.dual(R), problem.gap_scale)

    @property
    def e(self) -> float:
        """The proximal weight of v: an error of the sums weighs as much as one of the scores."""
        return self.c / self.square

    def at(self, theta: Array, F: Array) -> _Point:
        """Return the subproblem's smooth part at theta with scores F; one read of the data."""
        problem = self.problem
        self.projections += 1
        R, face = kernels.face(problem.loss.family, problem.scaled(F), self.center, problem.y, self.c)
        gradient = problem.dual_gradient(R) + (theta - self.theta) / self.sigma + problem.lam * theta
        v = self.v + theta.sum(axis=1) / self.e if problem.centred else self.v
        gradient = gradient + v[:, None] if problem.centred else gradient
        return _Point(theta, F, R, gradient, face, v)

    def defect(self, point: _Point) -> Array:
        """Return the least element of the subdifferential: 0 exactly at the subproblem's minimum."""
        theta, gradient = point.theta, point.gradient
        inside = np.sign(gradient) * np.maximum(np.abs(gradient) - self.tolerance, 0.0)
        return np.where(theta != 0.0, gradient + self.tolerance * np.sign(theta), inside)

    def moved(self, point: _Point) -> float:
        """Return how far the point is from the centre, in the energy of the proximal terms (twice)."""
        step = point.theta - self.theta
        spread = np.einsum("ij,ij->i", point.R - self.center, point.R - self.center)
        multipliers = self.e * float(np.sum((point.v - self.v) ** 2))
        return inner(step, step) / self.sigma + multipliers + self.c * float(self.problem.weight @ spread) / self.problem.n

    def step(self, point: _Point) -> Array:
        """Return the direction to the minimum of the quadratic model plus the penalty, over the coordinates that may move."""
        theta, gradient, tolerance = point.theta.ravel(), point.gradient.ravel(), self.tolerance.ravel()
        chosen = np.flatnonzero((theta != 0.0) | (np.abs(gradient) > tolerance))
        direction = np.zeros_like(theta)
        if len(chosen) == 0:
            return direction.reshape(point.theta.shape)
        B, owner = kernels.tangents(self.problem.loss.family, point.face, self.sample == 0.0)
        ridge = self.damping / self.sigma + self.problem.lam
        scale = (self.sample / self.cost)[owner] / (self.c * self.problem.n)
        Z = self.problem.features.directions(B, owner).columns(chosen)
        H = Z.T @ (Z * scale[:, None])
        H[np.diag_indices_from(H)] += ridge
        if self.problem.centred:
            feature = chosen // self.theta.shape[1]
            H += (feature[:, None] == feature) / self.e
        direction[chosen] = minimise_model(H, gradient[chosen], tolerance[chosen], theta[chosen]) - theta[chosen]
        return direction.reshape(point.theta.shape)

    # ---- what `proximal` asks -----------------------------------------------------------------------------------------
    def limit(self) -> str:
        return self.limits.spent(self.projections + 1, self.started)

    def judge(self, point: _Point, steps: int) -> bool:
        """Return whether the defect is small beside the way from the center."""
        defect = self.defect(point)
        error = self.sigma / (1.0 + self.sigma * self.problem.lam) * inner(defect, defect)
        return error <= 0.01 * self.moved(point)

    def advance(self, point: _Point) -> _Point | None:
        """Return the next point; a short step says that the model is too bold in directions without curvature."""
        direction = self.step(point)
        following = self._search(point, direction)
        self.steps += 1
        if following is not None:
            share = float(np.abs(following.theta - point.theta).max() / np.abs(direction).max())
            self.damping = max(self.damping * (4.0 if share < 0.3 else 0.25 if share > 0.8 else 1.0), 1.0)
        return following

    def _search(self, point: _Point, D: Array) -> _Point | None:
        """Return the point at a step whose slope is at most half the slope at 0, or the last point that descends, or None.

        The slope along D jumps where a coordinate passes 0, so the step often ends at such a kink.
        """
        theta, tolerance = point.theta, self.tolerance
        moving = (theta != 0.0) & (D != 0.0)
        kinks = np.full(theta.shape, np.inf)
        kinks[moving] = -theta[moving] / D[moving]
        descending: list[_Point] = []

        def slopes(point: _Point) -> tuple[float, float]:
            """Return the derivatives along D to the left and to the right."""
            smooth = inner(point.gradient + tolerance * np.sign(point.theta), D)
            jump = inner(tolerance, np.abs(D) * (point.theta == 0.0))
            return smooth - jump, smooth + jump

        def line(t: float) -> tuple[float, float, _Point]:
            reached = theta + t * D
            reached[np.abs(kinks - t) <= 1e-12 * t] = 0.0
            following = self.at(reached, point.F + t * dF)
            left, right = slopes(following)
            if left <= 0.0:
                descending[:] = [following]
            return left, right, following

        first, most = slopes(point)[1], int(min(self.limits.max_passes - self.projections, TRIALS))
        if not first < 0:
            return None
        dF = self.problem.features.scores(D)
        _, following, accepted = line_search(line, first, most, kinks=np.unique(kinks[(kinks > 0.0) & np.isfinite(kinks)]))
        return following if accepted else descending[0] if descending else None

    def ended(self, descent: NewtonRun) -> str:
        """Compare the point's values with the best; return the status of a fit that ends here."""
        problem, point = self.problem, descent.point
        theta = _zero_sums(point.theta) if problem.centred else point.theta
        primal = problem.penalty(theta) + problem.empirical(point.F if theta is point.theta else problem.features.scores(theta))
        R = problem.into_box(point.R)
        self.best.take(theta, primal, R, problem.dual(R))
        return super().ended(descent)

    def recentre(self, descent: NewtonRun) -> _Point | None:
        """Return the point as its own center, for proximal terms that weigh less, or more after many steps."""
        return self._around(descent.point, descent.steps)

    def recover(self, descent: NewtonRun) -> _Point | None:  # a line without descent costs a step
        return self._around(descent.point, descent.steps + 1)

    def _around(self, point: _Point, steps: int) -> _Point | None:
        self.center, self.theta, self.v = point.R, point.theta, point.v
        factor = 0.2 if steps >= _MAX_INNER else 5.0 if steps <= 4 else 2.0 if steps <= 15 else 1.0
        self.c = self.c * 5.0 if factor < 1.0 else max(self.c / factor, SMALLEST)
        self.sigma = self.sigma / 5.0 if factor < 1.0 else self.sigma * factor
        self.rounds += 1
        return None if self.rounds == _MAX_OUTER else self.at(point.theta, point.F)


def minimise_model(H: Array, gradient: Array, weight: Array, x: Array) -> Array:
    """Return argmin over z of 1/2 (z - x)'H(z - x) + gradient.(z - x) + weight.|z| for a positive definite H (p, p).

    Coordinate descent finds the signs, a Cholesky factorisation the values. A few rounds suffice, because Newton steps need not be exact.
    """
    H = np.ascontiguousarray(H)
    z = x.copy()
    slope = gradient.copy()
    scale = float(np.sqrt(np.max(np.abs(gradient) ** 2 / np.diag(H), initial=0.0)))
    for _ in range(8):
        kernels.newton_faces.l1_quadratic(H, slope, weight, z, 1e-3 * scale, 20)
        support = np.flatnonzero(z)
        if len(support) == 0:
            break
        signs = np.sign(z[support])
        try:
            factor = cho_factor(H[np.ix_(support, support)], lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            break
        # slope at z + (H e) on the support must cancel the penalty's
        change = -cho_solve(factor, slope[support] + weight[support] * signs, check_finite=False)
        if not np.isfinite(change).all():
            break
        exact = z.copy()
        exact[support] += change
        if (np.sign(exact[support]) == signs).all():
            slope = slope + H[:, support] @ change
            z = exact
            outside = np.flatnonzero(z == 0.0)
            if (np.abs(slope[outside]) <= weight[outside] * (1 + 1e-9) + 1e-12 * scale).all():
                break
        else:
            # up to the first change of a sign, a descent step; coordinate descent continues there
            crossing = change * signs < 0
            share = float(np.min(-z[support][crossing] / change[crossing]))
            z[support] += share * change
            z[support[np.abs(z[support]) <= 1e-14 * np.abs(change)]] = 0.0
            slope = gradient + H @ (z - x)
    return z


def _zero_sums(theta: Array) -> Array:
    """Return theta (d, k) with the sum of each row taken off its entries that are not 0, in equal parts."""
    support = theta != 0.0
    share = theta.sum(axis=1) / np.maximum(support.sum(axis=1), 1)
    return theta - share[:, None] * support


@register("box")
class BoxSolver(Solver):
    """Semismooth Newton proximal method of multipliers for moments in a box (an L1 penalty); any lambda >= 0."""

    takes_box = True

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs a box and features with explicit parameters."""
        if problem.tolerance is None:
            return "moments in a box (features.moments=box)"
        if not problem.features.euclidean or problem.features.regularised is not None:
            return "features with explicit parameters, all of them in the box"
        return None

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the parameters with the best primal value and the dual point with the best dual value seen."""
        started = time.perf_counter()
        method = _BoxStep(problem, limits, start)
        status = minimise(method, method.at(method.theta, method.F))
        memory = {"c": method.c, "sigma": method.sigma, "newton_steps": method.steps, **({"v": method.v} if problem.centred else {})}
        best, seconds = method.best, time.perf_counter() - started
        return Solution(best.theta, best.R, problem.lam, self.name, float(method.projections), seconds, status, memory)
