"""Fits to rows in shards: rounds, bytes moved, and processor seconds beside those of ``solver=auto``; from how many rows on workers pay.

The shards of a measured fit are visited in one process, so that the seconds are those of the work, whatever else runs on the cores. What a
cluster adds is arithmetic: the start of the engine, and for every round a call and the bytes.
"""

import importlib.util
import time

import numpy as np
from measure import Row
from threads import blobs

from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.shards.rows import Workers
from advcli.solvers.shards.solver import DistributedSolver, RayWorkers

GIGABIT = 1.25e8  # bytes a second
CALL = 2e-3  # seconds of one call of all workers and its answers, as `engine` measures it on one machine
WORKERS = (2, 4, 16)


class Here(DistributedSolver):
    """All workers in this process."""

    def held(self, makers):
        return Workers(makers)


def distributed(options):
    """Rows: one machine's processor seconds over those of all shards together, with what moved."""
    rows, start = [], None
    if importlib.util.find_spec("ray") is not None and (options.all_peers or options.tiny):
        start = engine()
        rows.append(
            Row("seconds until Ray runs with two workers", start[0], larger=False, detail=f"{1e3 * start[1]:.2g} ms a round of 2 x 4 kB")
        )
    for n in (options.size(100_000, 500), options.size(1_000_000, 1_000)):
        X, y = blobs(n, 50, 10)
        for lam in (1e-2, 1e-4):
            problem = Problem(LinearFeatures(X, 10), make_loss("zero_one", 10), y, lam)
            for tol in (1e-3, 1e-6):
                rows += compared(problem, Limits(tol, max_passes=options.size(100_000, 100)), 10.0 if start is None else start[0])
    return rows


def compared(problem, limits, start):
    """Rows of one problem: seconds, rounds and bytes, and the rows from which on workers pay."""
    n = len(problem.y)
    alone, found = seconds(make_solver("auto"), problem, limits)
    shards, sums = seconds(Here(workers=2), problem, limits)
    rounds, moved = sums.memory["rounds"], sums.memory["bytes_moved"] // 2
    what = f"n = {n}, lambda {problem.lam:g}, to {limits.tol:g}"
    detail = (
        f"{found.solver} {alone:.3g} s ({found.passes:.0f} passes, {found.status}), "
        f"shards {shards:.3g} s ({sums.passes:.0f} passes, {sums.status}); "
        f"{rounds} rounds, {moved / 1e3:.0f} kB a worker, the rows {problem.features.X.nbytes / 1e3:.0f} kB"
    )
    for workers in WORKERS:
        for gigabits in (1, 10):
            network = rounds * CALL + workers * moved / (gigabits * GIGABIT)
            gained = (alone - shards / workers) / n  # seconds a row
            detail += f"; {workers} workers, {gigabits} Gbit/s: " + (
                f"from {(start + network) / gained:.0e} rows" if gained > 0 else "never"
            )
    return [Row(f"one machine / all shards, {what}", alone / shards, detail=detail)]


def seconds(solver, problem, limits):
    """Return the processor seconds of a fit and its solution."""
    began = time.process_time()
    solution = solver.solve(problem, limits)
    return time.process_time() - began, solution


class Echo:
    """An object that answers what it is given."""

    def echo(self, value):
        return value


def engine():
    """Return the wall seconds until Ray runs with two workers, and those of one round."""
    began = time.perf_counter()
    workers = RayWorkers([(Echo, ()), (Echo, ())], None)
    try:
        for awaited in [workers.start(at) for at in range(2)]:
            workers.receive(0, awaited)
        start = time.perf_counter() - began
        theta, each = np.zeros((51, 10)), []
        for _ in range(100):
            began = time.perf_counter()
            for awaited in [workers.send(at, "echo", (theta,)) for at in range(2)]:
                workers.receive(0, awaited)
            each.append(time.perf_counter() - began)
        return start, float(np.median(each))
    finally:
        workers.close()
