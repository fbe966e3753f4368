"""Cost of one epoch of the dual ascent (n example visits) over its floor: X @ Theta and X.T @ Q by one-thread BLAS or scipy's CSR.

The epoch is the difference of two runs with different limits of passes, over the difference of their passes, so that set-up cancels;
passes of the certificate and over the active set count by their visits. The tolerance is out of reach, so that nothing is skipped early;
steps on faces, which are no passes, are left out.
"""

import math
from unittest import mock

import numpy as np
import scipy.sparse as sp
from measure import Row, interleaved, repeated, training_part

from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.coordinate.face_steps import FaceSteps

FIRST, LAST = 6.0, 20.0
TOL = 1e-7


def epoch_seconds(problem, first, last):
    """Return seconds per epoch between pass ``first`` and pass ``last``."""
    solver = make_solver("dual")
    with mock.patch.object(FaceSteps, "first", return_value=math.inf):
        short = solver.solve(problem, Limits(TOL, max_passes=first))
        long = solver.solve(problem, Limits(TOL, max_passes=last))
    return (long.seconds - short.seconds) / max(long.passes - short.passes, 1.0)


def measure(X, y, k, lam, options, first=FIRST, last=LAST):
    """Return (ratio, floor seconds, epoch seconds)."""
    problem = Problem(LinearFeatures(X, k), make_loss("zero_one", k), y, lam)
    random = np.random.default_rng(0)
    theta, Q = random.normal(size=(X.shape[1], k)), random.normal(size=(X.shape[0], k))

    def floor():
        X @ theta
        X.T @ Q

    seconds = interleaved({"floor": lambda: repeated(floor), "epoch": lambda: epoch_seconds(problem, first, last)}, options.repeats)
    return seconds["epoch"] / seconds["floor"], seconds["floor"], seconds["epoch"]


def row(what, found, must, aim):
    ratio, floor, epoch = found
    return Row(what, ratio, must, aim, larger=False, detail=f"floor {1e3 * floor:.3g} ms, epoch {1e3 * epoch:.3g} ms")


def dense(options):
    """Rows: real data with k <= 16, and letter."""
    rows = []
    for name, must, aim in (("digits", 1.5, 1.1), ("optdigits", 1.5, 1.1), ("sat", 1.5, 1.1), ("letter", 8.0, 3.0)):
        found = training_part(name, options.size(None, 300))
        if found is None:
            print(f"epoch/floor {name}: skipped, set ADVCLI_DATA to the folder of data sets")
            continue
        X, y = found
        for lam in (1e-2, 1e-4):
            what = f"epoch/floor {name} (k={y.max() + 1}, d={X.shape[1]}, lambda {lam:g})"
            rows.append(row(what, measure(X, y, int(y.max()) + 1, lam, options), must, aim))
    return rows


def large(options):
    """Row: n = 1e6, d = 50, k = 10, beyond every cache (about 1.5 GB of memory)."""
    n, d, k = options.size(1_000_000, 3000), 50, 10
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    X[:, -1] = 1.0
    y = np.argmax(X @ random.normal(size=(d, k)) + 3.0 * random.normal(size=(n, k)), axis=1).astype(np.intp)
    rows = []
    for lam in (1e-2, 1e-4):
        found = measure(X, y, k, lam, options, 2.0, 8.0)
        rows.append(row(f"epoch/floor n={n:.0e}, d={d}, k={k}, lambda {lam:g}", found, *((1.5, 1.0) if lam == 1e-4 else (3.0, 1.2))))
    return rows


def sparse(options):
    """Row: n = 1e5, d = 5e4, 80 non-zeros a row, k = 100, against scipy's products."""
    n, d, k, nonzeros = options.size(100_000, 500), options.size(50_000, 400), options.size(100, 20), options.size(80, 10)
    random = np.random.default_rng(0)
    columns = random.integers(0, d, size=(n, nonzeros)).astype(np.int32)
    X = sp.csr_array((random.normal(size=n * nonzeros), columns.ravel(), np.arange(0, n * nonzeros + 1, nonzeros)), shape=(n, d))
    X.sum_duplicates()
    y = random.integers(0, k, size=n).astype(np.intp)
    y[: n // 2] = np.asarray((X @ random.normal(size=(d, k)))[: n // 2]).argmax(axis=1)
    rows = []
    for lam in (1e-3, 1e-5):
        found = measure(X, y, k, lam, options, 2.0, 6.0)
        rows.append(row(f"sparse epoch / scipy n={n:.0e}, d={d:.0e}, {nonzeros} nnz, k={k}, lambda {lam:g}", found, 1.0, 0.4))
    return rows
