"""A small problem, and the compiled ascent on it as the solver calls it."""

import numpy as np
import scipy.sparse as sp

from advcli.features.linear import LinearFeatures
from advcli.problems.risk import Problem


def small_problem(k=3, n=18, d=3, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = (np.argmax(X @ random.normal(size=(d, k)) + 0.7 * random.normal(size=(n, k)), axis=1)).astype(np.intp)
    return X, y


def ascend(
    kernels,
    loss,
    X,
    y,
    lam,
    sample=None,
    cost=None,
    tol=1e-9,
    max_passes=20_000.0,
    seed=0,
    R0=None,
    max_seconds=600.0,
    threads=1,
    together=256,
    turn=np.inf,
):
    """Call the compiled loop as solver=dual does; returns (code, passes, primal, dual, R, theta) with R and theta still padded."""
    n, d = X.shape
    width = kernels.ascent_dense.width(loss.n_classes)
    R = np.zeros((n, width))
    theta = np.zeros((d, width))
    problem = Problem(LinearFeatures(X, loss.n_classes), loss, y, lam, sample, cost)
    if R0 is not None:
        R[:, : loss.n_classes] = R0
        theta[:, : loss.n_classes] = problem.parameters(R0)
    if sp.issparse(X):
        values, columns, start = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    else:
        values, columns, start = X.ravel(), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
        squares = (X**2).sum(axis=1)
    none = np.empty(0)
    code, passes, primal, dual = kernels.ascent_dense.solve(
        *kernels.arguments(loss.family),
        values,
        columns,
        start,
        n,
        d,
        y,
        squares,
        none if sample is None else sample,
        none if cost is None else cost,
        R,
        theta,
        lam,
        problem.n,
        tol,
        max_passes,
        max_seconds,
        seed,
        threads,
        together,
        turn,
    )
    return code, passes, primal, dual, R, theta, problem
