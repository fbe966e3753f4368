"""Workers that are actors of Ray: the same bits as in one process, and deaths by the system's own hand."""

import contextlib
import dataclasses
import importlib.util
import os
import signal
import sys

import numpy as np
import psutil
import pytest
from support.sharded_problems import Alone, weighted_problem
from support.waiting import until

from advcli.core.errors import ConfigError, KilledError
from advcli.losses import make_loss
from advcli.problems.certificate import certify
from advcli.solvers import Limits, make_solver
from advcli.solvers.shards.solver import DistributedSolver, RayWorkers

WITHOUT = importlib.util.find_spec("ray") is None
needs_ray = pytest.mark.skipif(WITHOUT, reason='ray is not installed; pip install "advcli[scale]" has it')
# Ray takes seconds to start, on busy cores tens of them
slow = pytest.mark.slow


def actors():
    """Return the processes of the workers that live, in the order of their birth."""
    found = []
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # one that dies meanwhile
            if any("_Host" in word for word in each.cmdline()):
                found.append((each.create_time(), each.pid))
    return [pid for _, pid in sorted(found)]


class Killing(DistributedSolver):
    """The solver, one of whose workers is killed before some of the calls."""

    before: tuple[int, ...] = ()

    def held(self, makers):
        workers = super().held(makers)
        assert isinstance(workers, RayWorkers)
        send, calls = workers.send, iter(range(10**9))

        def sent(at, method, arguments):
            if next(calls) in self.before:
                for pid in actors()[:1]:
                    os.kill(pid, signal.SIGKILL)
            return send(at, method, arguments)

        workers.send = sent
        return workers


@slow
@needs_ray
@pytest.mark.parametrize("workers", [2, 4])
def test_same_optimum_as_one_machine(workers):
    problem = weighted_problem(n=3000, C=64.0)
    found = make_solver("distributed", workers=workers).solve(problem, Limits(1e-7))
    there, alone = certify(problem, found, 1e-7), Alone(workers=workers).solve(problem, Limits(1e-7))
    here = certify(problem, make_solver("newton").solve(problem, Limits(1e-8)), 1e-8)
    assert there.converged
    assert abs(there.primal - here.primal) <= 1e-6 * abs(here.primal)
    assert np.array_equal(found.theta, alone.theta)  # whichever worker answers first
    assert np.array_equal(found.R, alone.R)
    until(lambda: not actors())


@slow
@needs_ray
@pytest.mark.parametrize("workers", [2, 4])
def test_killed_worker_is_replaced(workers):
    problem = weighted_problem(n=3000, C=64.0)
    solver = Killing(workers=workers)
    solver.before = (0, 40, 41, 150)
    found, alone = solver.solve(problem, Limits(1e-6)), Alone(workers=workers).solve(problem, Limits(1e-6))
    assert found.memory["restarted"] >= 2
    assert found.memory["rounds"] == alone.memory["rounds"]
    assert np.array_equal(found.theta, alone.theta)
    assert np.array_equal(found.R, alone.R)


@slow
@needs_ray
def test_workers_that_are_killed_again_and_again_end_the_fit():
    solver = Killing(workers=2, restarts=1)
    solver.before = tuple(range(0, 10**6, 3))
    with pytest.raises(KilledError, match=r"worker [12] of 2 died 2 times \(killed, or out of memory\); the fit has no result"):
        solver.solve(weighted_problem(n=3000), Limits(1e-9))
    until(lambda: not actors())


@slow
@needs_ray
def test_workers_know_a_loss_of_the_users_own(tmp_path, monkeypatch):
    """Workers elsewhere have no folder of plug-ins."""
    (tmp_path / "loss").mkdir()
    (tmp_path / "loss" / "twice.py").write_text(
        """import numpy as np
from advcli.losses import register
from advcli.losses.convex_columns import ConvexColumnsLoss

@register("twice")
class TwiceLoss(ConvexColumnsLoss):
    def __init__(self, n_classes):
        labels = np.arange(float(n_classes))
        super().__init__(n_classes, matrix=2.0 * np.abs(labels[:, None] - labels))
"""
    )
    monkeypatch.setenv("ADVCLI_PLUGINS", str(tmp_path))
    given = weighted_problem()
    problem = dataclasses.replace(given, loss=make_loss("twice", 4))
    monkeypatch.setenv("ADVCLI_PLUGINS", "")
    found = certify(problem, make_solver("distributed", workers=2).solve(problem, Limits(1e-6)), 1e-6)
    assert found.converged


@needs_ray
def test_address_without_a_cluster():
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1"):
        with pytest.raises(ConfigError, match=rf"solver.address={address}: no Ray cluster answers there"):
            make_solver("distributed", workers=2, address=address).solve(weighted_problem(), Limits())


def test_missing_engine_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        ConfigError, match=r'^solver=distributed with several workers needs Ray; install it with: pip install "advcli\[scale\]"$'
    ):
        make_solver("distributed", workers=2).solve(weighted_problem(), Limits())
