"""Between the weights of programs and the points of the models."""

import numpy as np


def halves(w):
    """Return the weights of two classes that share one row w: -w/2 and w/2, whose norm is half of |w|^2, so that C is doubled."""
    return {"theta": 0.5 * np.column_stack([-w, w])}


def extended(problem):
    """Return the rows (x, -e_j, 1) of every threshold j and whether the class is above it (Li & Lin 2007)."""
    n, m = problem.n, problem.m
    rows = np.hstack([np.repeat(problem.X, m, axis=0), -np.tile(np.eye(m), (n, 1)), np.ones((n * m, 1))])
    return rows, problem.signs.ravel()


def unextended(problem, v):
    """Return the direction and thresholds of weights (w, theta, b) of these rows."""
    d = problem.X.shape[1]
    return {"w": v[:d].copy(), "eta": v[d:-1] - v[-1]}
