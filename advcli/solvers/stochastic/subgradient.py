"""Stochastic subgradient methods (Fathony et al. 2018, section 6.1): SGD, AdaGrad and Adam on linear and threshold features.

The subgradient of one row's loss at theta is J_i' r_i with r_i the oracle's answer, q_i - e_y for adversarial losses (Theorem 19). The
passes are compiled (`_ext/stochastic/subgradient.pyx`). The paper names these methods, and the dual methods are measured by them: the gap
falls like 1/passes (SGD) or slower, which suits tolerances of 1e-2 rather than 1e-6.

Certificate: the mean of each row's answers over the passes lies in conv R(y_i), so that the means are a dual point. The means converge,
since the steps of a method that settles cancel on average. For SGD with a permutation every pass, theta = theta(r) holds after every pass.

Moments in a box, an L1 penalty: AdaGrad and Adam end every step with the proximal map of the penalty in the metric of the step (Duchi,
Hazan & Singer 2011). SGD becomes regularised dual averaging (Xiao 2010), which needs no lambda for its steps and gives exact zeros. The
certificate takes the mean answers, scaled back until their moments lie in the box.

PEGASOS (Shalev-Shwartz et al. 2011) is SGD from 0 on rows drawn at random, for every surrogate, linear and with a kernel (Fathony et al.
2018, Algorithm 1). Step t takes the oracle's answer r at a row's scores and sets theta <- (1 - 1/t) theta - r phi(x)/(lambda t). So before
step t theta = -(1/(lambda (t - 1))) times the sum of the answers: the scores of step t use 1/(lambda (t - 1)), where the paper prints
1/(lambda t) (eq. 171-173 and line 6), and are 0 at t = 1; after T steps predictions use 1/(lambda T). With a kernel the parameters are
coefficients over the training rows and a step reads one row of K; eq. 173 in matrix form is f = K_i A.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ...core.compiled import kernels
from ...core.errors import ConfigError
from ...core.typing import Array, Labels
from ...problems.risk import Problem, Solution
from ..base import positive_option, register, warm_start, whole_option
from ..best import Best
from .passes import Descent, Passes, StochasticSolver, known_option

AVERAGING = {"none": -1, "uniform": 0, "late": 1}


class SgdDescent(Descent):
    """Steps of size 1/(lambda t); ``radius`` > 0 projects onto that ball (PEGASOS)."""

    def __init__(self, passes: Passes, best: Best, start: Solution | None, averaging: str, radius: float = 0.0) -> None:
        problem = passes.problem
        super().__init__(passes, np.zeros(problem.features.shape))
        self.averaging, self.radius = AVERAGING[averaging], radius
        self.average, self.squares = np.zeros_like(self.theta), np.zeros(max(problem.loss.n_classes, 1))
        self.state = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
        self.late: Array | None = None
        self.done = 0
        if start is not None:  # the start counts as one pass that gave its dual point
            point, _ = warm_start(problem, start)
            theta = problem.parameters(point)
            mask = problem.features.regularised
            if mask is not None and start.theta.shape == theta.shape:
                theta = theta + start.theta * (1.0 - mask)
            self.theta, self.R = passes.flat(theta), passes.padded(point)
            self.counts += 1
            self.state[1], self.state[2] = problem.features.square_norm(theta), len(problem.y)

    def run(self, order: Labels) -> None:
        """Make a pass of steps."""
        problem = self.passes.problem
        state = self.theta, self.average, self.squares, self.R, self.counts, self.state
        settings = problem.lam, self.radius, _unit(problem), self.averaging
        kernels.subgradient.sgd(*self.passes.arguments, order, *state, *settings)
        self.done += 1
        if self.averaging == 1:  # the dual point that goes with weights growing like t
            if self.late is None:
                self.late = self.R.copy()
            else:
                self.late += (2.0 / (self.done + 1.0)) * (self.R - self.late)

    def offer(self, best: Best) -> None:
        """Offer the last iterate, the average, and the dual points that belong to them."""
        scale, _, _, weight, total = self.state
        free = self.passes.problem.features.regularised
        mask = np.ones_like(self.theta) if free is None else free
        last = self.theta * np.where(mask > 0, scale, 1.0)
        best.offer(self.passes.shaped(last), self.passes.dual_point(self.R))
        if total > 0:
            average = np.where(mask > 0, weight * self.theta - self.average, self.average) / total
            best.offer(self.passes.shaped(average), None if self.late is None else self.passes.dual_point(self.late))


class AveragingDescent(Descent):
    """Regularised dual averaging: theta = -soft(g, tolerance) / (lambda + strength / sqrt(t)), g the mean of the t subgradients seen."""

    def __init__(self, passes: Passes, averaging: str, strength: float) -> None:
        super().__init__(passes, np.zeros(passes.problem.features.shape))
        self.averaging, self.strength = AVERAGING[averaging], strength
        self.total, self.average, self.state = np.zeros_like(self.theta), np.zeros_like(self.theta), np.zeros(5)

    def run(self, order: Labels) -> None:
        """Make a pass of steps."""
        passes = self.passes
        state = self.theta, self.total, self.average, self.R, self.counts, self.state
        settings = passes.problem.lam, self.strength, self.averaging, passes.tolerance
        kernels.subgradient.dual_averaging(*passes.arguments, order, passes.batch(None, 1), *state, *settings)

    def offer(self, best: Best) -> None:
        """Offer the last iterate, the average and the mean answers."""
        super().offer(best)
        if self.averaging >= 0:
            best.offer(self.passes.shaped(self.average))


@register("sgd")
class SgdSolver(StochasticSolver):
    """Stochastic subgradient descent with steps 1/(lambda t), a fresh permutation every pass; dual averaging for moments in a box.

    Parameters
    ----------
    averaging : {"late", "uniform", "none"}
        Weights of the averaged iterate: t, 1, or no average (Lacoste-Julien, Schmidt & Bach 2012 for t). The better of the last iterate and
        the average is returned.
    """

    takes_box = True

    def __init__(self, averaging: str = "late") -> None:
        self.averaging = known_option("averaging", averaging, tuple(AVERAGING))

    def begin(self, problem: Problem, best: Best, start: Solution | None, random: np.random.Generator) -> Descent:
        """Start at 0, or where a start stands after one pass."""
        passes = Passes(problem)
        if problem.tolerance is None:
            return SgdDescent(passes, best, start, self.averaging)
        unit = max(float(passes.largest_squares.mean()), 1e-150)
        return _lowest([AveragingDescent(passes, self.averaging, unit / size) for size in _SIZES], best, random, gap=True)


@register("pegasos")
class PegasosSolver(StochasticSolver):
    """PEGASOS: steps 1/(lambda t) on rows drawn at random; linear, RBF, polynomial and given kernels.

    Parameters
    ----------
    averaging : {"none", "uniform", "late"}
        Weights of the averaged iterate: no average (Algorithm 1), 1, or t. The better of the last iterate and the average is returned.
    projection : bool
        After each step project on the ball |theta| <= sqrt(2 S0/lambda), S0 the objective at 0, which holds the optimum.
    sampling : {"replacement", "permutation"}
        Rows drawn independently (Algorithm 1), or a fresh permutation every pass.
    """

    def __init__(self, averaging: str = "none", projection: bool = False, sampling: str = "replacement") -> None:
        self.averaging, self.projection = known_option("averaging", averaging, tuple(AVERAGING)), bool(projection)
        self.replacement = known_option("sampling", sampling, ("replacement", "permutation")) == "replacement"

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs linear features or a kernel whose matrix is kept whole; every parameter penalised."""
        return problem.features.lacks_columns()

    def begin(self, problem: Problem, best: Best, start: Solution | None, random: np.random.Generator) -> Descent:
        """Start at 0, or where a start stands after one pass."""
        radius = np.sqrt(2.0 * problem.primal(np.zeros(problem.features.shape)) / problem.lam) if self.projection else 0.0
        return SgdDescent(Passes(problem), best, start, self.averaging, float(radius))


class AdaptiveDescent(Descent):
    """AdaGrad (beta2 = 0) or Adam with steps that are size ``step`` in the first pass."""

    def __init__(self, passes: Passes, theta: Array, step: float, batch: int, betas: tuple[float, float]) -> None:
        super().__init__(passes, theta)
        self.step, self.rows, self.betas = step, batch, betas
        self.scratch, self.first, self.second = (np.zeros_like(self.theta) for _ in range(3))
        self.steps, self.done = 0.0, 0

    def run(self, order: Labels) -> None:
        """Make a pass of steps; Adam's shrink like the root of the passes made (Kingma & Ba 2015, section 4)."""
        self.done += 1
        state = self.theta, self.scratch, self.first, self.second, self.R, self.counts, self.steps
        step = self.step if self.betas[1] == 0.0 else self.step / np.sqrt(self.done)
        settings = self.passes.problem.lam, step, *self.betas, self.passes.tolerance
        self.steps = kernels.subgradient.adaptive(*self.passes.arguments, order, self.rows, *state, *settings)


Tried = TypeVar("Tried", AveragingDescent, AdaptiveDescent)
_TRIALS = (1.0, 0.25, 0.06, 0.015, 0.004)  # step sizes that are tried, in units of 1 / (root mean square of the features)
_SIZES = (1e4, 1e3, 1e2, 10.0, 1.0)  # of dual averaging, in units of 1 / (mean square of a row): large ones close the gap sooner


class AdaptiveSolver(StochasticSolver):
    """What AdaGrad and Adam share: a step size, mini-batches, and the choice of a step size by trying."""

    betas: tuple[float, float] = (0.0, 0.0)
    takes_box = True

    def __init__(self, step: float | None = None, batch: int | None = None) -> None:
        self.step = None if step is None else positive_option("step", step)
        self.batch = None if batch is None else whole_option("batch", batch, or_null=True)

    def begin(self, problem: Problem, best: Best, start: Solution | None, random: np.random.Generator) -> Descent:
        """Start at the best point known; without a given step, take the one whose first pass ends lowest."""
        passes = Passes(problem)
        rows = passes.batch(self.batch, min(max(1, len(problem.y) // 200), 16))
        theta = best.theta
        if self.step is not None:
            return AdaptiveDescent(passes, theta, self.step, rows, self.betas)
        unit = 1.0 / max(np.sqrt(float(problem.features.squares.mean()) / problem.features.X.shape[1]), 1e-150)
        chosen = _lowest([AdaptiveDescent(passes, theta, size * unit, rows, self.betas) for size in _TRIALS], best, random)
        return AdaptiveDescent(passes, theta, chosen.step, rows, self.betas)


def _lowest(tried: list[Tried], best: Best, random: np.random.Generator, gap: bool = False) -> Tried:
    """Return the descent that stands lowest, in primal value or in ``gap``, after one pass in the same order for all.

    It is chosen among as many, from the first on, as the passes allow that are left.
    """
    problem = best.problem
    tried = tried[: int(max(min(len(tried), (best.most - best.passes) // 2.0), 1))]
    if len(tried) == 1:
        return tried[0]
    order = random.permutation(len(problem.y))
    reached = []
    for descent in tried:
        descent.run(order)
        reached.append(problem.primal(descent.passes.shaped(descent.theta)))
        if gap:
            reached[-1] -= problem.dual(problem.into_box(descent.R[:, : problem.loss.n_classes].copy()))
        best.passes += 2.0
    return tried[int(np.argmin(reached))]


@register("adagrad")
class AdaGradSolver(AdaptiveSolver):
    """AdaGrad (Duchi, Hazan & Singer 2011): each parameter's step is ``step`` over the root of the sum of its squared gradients.

    Parameters
    ----------
    step : float or None
        Size of the first step of each parameter. None: the best of five after one pass.
    batch : int or None
        Rows of a step. None: n/200, from 1 to 16, and with sparse rows as many as make the step cost no more than reading them.
    """


@register("adam")
class AdamSolver(AdaptiveSolver):
    """Adam (Kingma & Ba 2015) with steps that shrink like the root of the passes; parameters as `AdaGradSolver`.

    Parameters
    ----------
    step, batch
        As in `AdaGradSolver`.
    beta1, beta2 : float
        Decay of the two moments, in [0, 1) and (0, 1).
    """

    def __init__(self, step: float | None = None, batch: int | None = None, beta1: float = 0.9, beta2: float = 0.999) -> None:
        super().__init__(step, batch)
        if not 0 <= beta1 < 1 or not 0 < beta2 < 1:
            raise ConfigError(f"solver.beta1={beta1}, solver.beta2={beta2} are not valid; give beta1 in [0, 1) and beta2 in (0, 1)")
        self.betas = (float(beta1), float(beta2))


def _unit(problem: Problem) -> float:
    """Return the first step of a free threshold: what a row loses at scores of 0, since the scores are in the loss's units."""
    none, y = np.zeros((1, problem.loss.n_classes)), problem.y[:1]
    values: Any = problem.loss.value(none, y) - problem.loss.offset(none, y)
    return max(float(values[0]), 1e-6)
