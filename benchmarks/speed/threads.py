"""A fit, and its certificate, by several threads against the same by one: wall seconds on idle cores, and passes."""

import time
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from measure import Row, interleaved, training_part

from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem, Solution
from advcli.solvers import Limits, make_solver
from advcli.solvers.coordinate.threaded import usable_cores

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
    return [*rows, *certificates(options)] if cores >= 2 else rows


def documents(n, d, values, k):
    """Return sparse rows of words, of which few are frequent, and labels."""
    random = np.random.default_rng(0)
    words = (d * random.random((n, values)) ** 3).astype(np.int64)
    X = sp.csr_array((random.random(n * values) + 0.1, words.ravel(), np.arange(0, n * values + 1, values)), shape=(n, d))
    X.sum_duplicates()
    return X, random.integers(0, k, n)


def certificates(options):
    """Rows: certificates of a point near 0, which take as long as any other, and Newton's fit, by two threads."""
    rows, random = [], np.random.default_rng(0)
    dense, many = blobs(options.size(1_000_000, 2_000), 50, 10), documents(options.size(4_000, 200), options.size(5_000, 50), 60, 4_000)
    for what, (X, y), k in (("dense rows", dense, 10), ("sparse rows", many, options.size(4_000, 100))):
        y = y % k
        problem = Problem(LinearFeatures(X, k), make_loss("zero_one", k), y, 1e-3)
        theta = 0.1 * random.normal(size=problem.features.shape)
        R = sp.csr_array((np.full(len(y), 0.1), (y + 1) % k, np.arange(len(y) + 1)), shape=(len(y), k))
        R = sp.csr_array(R - sp.csr_array((np.full(len(y), 0.1), y, np.arange(len(y) + 1)), shape=(len(y), k)))
        found = Solution(theta, R if sp.issparse(X) else R.toarray(), problem.lam, "given", 0.0, 0.0)

        def judge(count, problem=problem, found=found):
            return certify(problem, replace(found, memory={"threads": count}), TOL)

        assert (judge(1).primal, judge(1).dual) == (judge(2).primal, judge(2).dual)
        seconds = interleaved({"one": lambda judge=judge: judge(1), "two": lambda judge=judge: judge(2)}, options.repeats)
        detail = f"{seconds['one']:.3g} s with one, {seconds['two']:.3g} s with two"
        name = f"certificate, one thread / two threads, {what}, n = {len(y)}, k = {k}"
        rows.append(Row(name, seconds["one"] / seconds["two"], 1.2, 1.6, detail=detail))
    X, y = blobs(options.size(50_000, 2_000), 50, 10)
    problem = Problem(LinearFeatures(X, 10), make_loss("zero_one", 10), y, 1e-6)

    def newton(count):
        make_solver("newton", threads=count).solve(problem, Limits(TOL))

    seconds = interleaved({"one": lambda: newton(1), "two": lambda: newton(2)}, options.repeats)
    detail = f"{seconds['one']:.3g} s with one, {seconds['two']:.3g} s with two"
    rows.append(
        Row(f"newton, one thread / two threads, n = {len(y)}, d = 50, k = 10", seconds["one"] / seconds["two"], 1.2, 1.5, detail=detail)
    )
    return rows
