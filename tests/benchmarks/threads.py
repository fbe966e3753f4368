"""A fit by several threads against the same fit by one: wall seconds on idle cores, and passes."""

import time

import numpy as np
from measure import Row, interleaved, training_part

from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problem import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.dual import usable_cores

TOL = 1e-3


def blobs(n, d, k):
    """Return rows of overlapping classes."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    return X, np.argmax(X @ random.normal(size=(d, k)) + 2.0 * random.normal(size=(n, k)), axis=1).astype(np.intp)


def threads(options):
    """Rows: two threads at n = 1e6; passes with eight; the automatic number on sets where it must not harm."""
    rows, cores = [], usable_cores()
    X, y = blobs(options.size(1_000_000, 2_000), 50, 10)
    for lam in (1e-2, 1e-4):
        problem = Problem(LinearFeatures(X, 10), make_loss("zero_one", 10), y, lam)
        passes = {}

        def fit(count, problem=problem, passes=passes):
            began = time.perf_counter()
            passes[count] = make_solver("dual", threads=count).solve(problem, Limits(TOL)).passes
            return time.perf_counter() - began

        what = f"n = {len(y)}, d = 50, k = 10, lambda {lam:g}"
        if cores >= 2:
            seconds = interleaved({"one": lambda: fit(1), "two": lambda: fit(2)}, options.repeats)
            detail = f"{seconds['one']:.3g} s with one, {seconds['two']:.3g} s with two"
            rows.append(Row(f"one thread / two threads, {what}", seconds["one"] / seconds["two"], 1.5, 1.8, detail=detail))
        else:
            fit(1)
        many = options.size(8, 2)
        fit(many)
        rows.append(Row(f"passes of {many} threads / one, {what}", passes[many] / passes[1], 1.3, 1.1, larger=False))
    for name in ("digits", "optdigits", "sat", "letter"):
        if (found := training_part(name, options.size(None, 300))) is None:
            print(f"threads {name}: skipped, set ADVCLI_DATA to the folder of data sets")
            continue
        X, y = found
        problem = Problem(LinearFeatures(X, int(y.max()) + 1), make_loss("zero_one", int(y.max()) + 1), y, 1e-3)

        def fit(count, problem=problem):
            make_solver("dual", threads=count).solve(problem, Limits(TOL))

        seconds = interleaved({"one": lambda fit=fit: fit(1), "auto": lambda fit=fit: fit("auto")}, options.repeats)
        rows.append(Row(f"one thread / threads=auto, {name} lambda 0.001", seconds["one"] / seconds["auto"], 0.95, 1.0))
    return rows
