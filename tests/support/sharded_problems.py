"""Problems whose rows lie in shards, and the solver with all its workers in one process."""

import numpy as np
import scipy.sparse as sp
from support import random_problems as problems

from advcli.problems.risk import Problem
from advcli.solvers.shards.rows import Workers
from advcli.solvers.shards.solver import DistributedSolver


class Alone(DistributedSolver):
    """The solver with all its workers in this process."""

    def held(self, makers):
        return Workers(makers)


def weighted_problem(name="zero_one", seed=0, n=40, sparse=False, C=4.0, k=4):
    data = problems.make_data("noisy", seed=seed, n=n, d=3, k=k)
    order = np.argsort(data.y, kind="stable")  # so that most shards lack classes
    data = problems.Data(np.ascontiguousarray(data.X[order]), data.y[order], k)
    random = np.random.default_rng(seed)
    sample, cost = random.integers(0, 3, n).astype(float), random.uniform(0.5, 2.0, n)
    sample[0] = 1.0
    X = sp.csr_array(np.where(random.random(data.X.shape) < 0.5, data.X, 0.0)) if sparse else None
    problem = problems.make_problem(data, name, C=C, sample_weight=sample, cost_weight=cost)
    return problem if X is None else Problem(problem.features.at(X), problem.loss, problem.y, problem.lam, sample, cost)
