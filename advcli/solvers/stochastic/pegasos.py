"""PEGASOS (Shalev-Shwartz et al. 2011) for every surrogate, linear and with a kernel (Fathony et al. 2018, Algorithm 1).

Step t draws a row, takes the oracle's answer r at its scores and sets theta <- (1 - 1/t) theta - r phi(x)/(lambda t). So before step t
theta = -(1/(lambda (t - 1))) times the sum of the answers: the potentials of step t use 1/(lambda (t - 1)), where the paper prints
1/(lambda t) (eq. 171-173 and line 6), and are 0 at t = 1; after T steps predictions use 1/(lambda T).

With a kernel the parameters are coefficients over the training rows and a step reads one row of K; eq. 173 in matrix form is f = K_i A.
"""

from __future__ import annotations

import numpy as np

from ...core.errors import ConfigError, nearest
from ...features.base import KernelMap
from ...problems.risk import Problem, Solution
from ..base import register
from ..best import Best
from .passes import Descent, Passes, StochasticSolver
from .subgradient import AVERAGING, SgdDescent

SAMPLING = ("replacement", "permutation")


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
        if averaging not in AVERAGING:
            raise ConfigError(f"solver.averaging={averaging!r} is not known: {nearest(str(averaging), AVERAGING)}")
        if sampling not in SAMPLING:
            raise ConfigError(f"solver.sampling={sampling!r} is not known: {nearest(str(sampling), SAMPLING)}")
        self.averaging, self.projection = averaging, bool(projection)
        self.replacement = sampling == "replacement"

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs linear features or a kernel whose matrix is kept whole; every parameter penalised."""
        features = problem.features
        if isinstance(features, KernelMap) and features.regularised is None:
            return None if features.whole else "a kernel matrix that fits in features.memory_mb"
        return None if features.multiclass_linear else "multiclass linear or kernel features"

    def begin(self, problem: Problem, best: Best, start: Solution | None, random: np.random.Generator) -> Descent:
        """Start at 0, or where a start stands after one pass."""
        radius = np.sqrt(2.0 * problem.primal(np.zeros(problem.features.shape)) / problem.lam) if self.projection else 0.0
        return SgdDescent(Passes(problem), best, start, self.averaging, float(radius))
