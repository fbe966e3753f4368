"""L-BFGS on rows in shards (`shards.py`), held by actors of Ray: for rows that one machine is slow with or cannot hold.

It is the algorithm of `lbfgs.py` with the sums of the objective computed where the rows are. The driver keeps theta and the curvature
pairs; rows and centres stay with their workers. Actors and not tasks, since a worker keeps both between rounds; and Ray's, since an actor
that died can be made again, elsewhere if need be, with its rows from the object store or from their files.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...core import plugins
from ...core.errors import ConfigError, KilledError
from ...core.typing import Array
from ...problems.risk import Problem, Solution
from ..base import Limits, Solver, register, warm_start, whole_option
from ..best import BestSeen
from ..lbfgs import ProximalRun
from ..smoothing import first_smoothing
from .rows import Maker, RemoteDualPoint, Rounds, Shard, ShardedObjective, Whole, WorkerLost, Workers, split

_ROOM = 300.0  # seconds after which a worker that no machine of the cluster has room for is given up
_ANSWER = 30.0  # seconds that a cluster has to answer


@register("distributed")
class DistributedSolver(Solver):
    """L-BFGS on proximally smoothed objectives, rows in shards; linear features, dense or CSR, moments in a ball.

    Parameters
    ----------
    workers : int
        Number of shards, at least 1, each held by a worker; 1 without an address needs no Ray.
    address : str or None
        Of a running Ray cluster; None starts Ray on this machine, until this process ends.
    pairs : int
        Curvature pairs kept, at least 1.
    restarts : int
        How often a worker that died is replaced before the fit ends with `KilledError`, at least 1.
    """

    precision = 1e-6

    def __init__(self, workers: int = 1, address: str | None = None, pairs: int = 10, restarts: int = 3) -> None:
        self.workers, self.pairs = whole_option("workers", workers), whole_option("pairs", pairs)
        self.restarts = whole_option("restarts", restarts)
        if address is not None and (not isinstance(address, str) or not address.strip()):
            raise ConfigError(f"solver.address={address!r} is not valid; give auto, ray://host:10001, or null for this machine")
        self.address = address

    def lacks(self, problem: Problem) -> str | None:
        """The solver needs linear features without free parameters."""
        if not problem.features.multiclass_linear or problem.features.regularised is not None:
            return "linear features"
        return problem.lacks_parameters()

    def solve(self, problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        """Return the parameters with the best primal value and the dual point with the best dual value seen."""
        started = time.perf_counter()
        centre, _ = warm_start(problem, start)
        mu = first_smoothing(problem, None if start is None else start.memory.get("mu"))
        theta = np.zeros(problem.features.shape)
        if start is not None and start.theta.shape == theta.shape:
            theta = start.theta
        shards = split(problem, centre, self.workers)
        workers = self.held([(Shard, each) for each in shards])
        try:
            rounds = Rounds(workers, self.restarts)
            whole = Whole(problem.n, problem.lam, problem.least_scale)
            solution = self.minimise(rounds, whole, theta, mu, limits, started)
            solution.R = np.concatenate(rounds.ask("dual_point", solution.R))
            return solution
        finally:
            workers.close()

    def held(self, makers: Sequence[Maker]) -> Workers:
        """Return workers for these objects."""
        return Workers(makers) if self.address is None and len(makers) == 1 else RayWorkers(makers, self.address)

    def minimise(self, rounds: Rounds, whole: Whole, theta: Array, mu: float, limits: Limits, started: float) -> Solution:
        """Run from theta and the shards' first centres; the solution's R is a `RemoteDualPoint`."""
        best = BestSeen(theta, RemoteDualPoint(0, None, 0.0), scale=whole.gap_scale)
        run = ProximalRun(partial(ShardedObjective, rounds, whole), best, limits, started, self.pairs)
        status = run.minimise(RemoteDualPoint(0, None, 0.0), mu)
        memory = {"mu": run.mu, "rounds": rounds.count, "bytes_moved": rounds.moved, "restarted": rounds.restarted}
        dual_point: Any = best.R
        return Solution(best.theta, dual_point, whole.lam, self.name, run.passes, time.perf_counter() - started, status, memory)


def engine() -> Any:
    """Return the module of Ray, or raise `ConfigError`."""
    try:
        import ray
    except ImportError as error:
        raise ConfigError('solver=distributed with several workers needs Ray; install it with: pip install "advcli[scale]"') from error
    return ray


class _Host:
    """The actor: holds one object and calls its methods."""

    def __init__(self) -> None:
        self.held: Any = None

    def there(self) -> None:
        """Answer, which a worker can once it has a machine."""

    def make(self, maker: Callable[..., Any], *arguments: Any) -> None:
        """Make the object."""
        self.held = maker(*arguments)

    def call(self, method: str, *arguments: Any) -> Any:
        """Return the answer of a method."""
        return getattr(self.held, method)(*arguments)


def _knock(address: str | None) -> None:
    """Raise `OSError` when nobody listens at HOST:PORT, which Ray takes minutes to find."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()


class RayWorkers(Workers):
    """Workers that are actors of Ray.

    An actor that died is not restarted by Ray but by `Rounds`, which knows what the new one needs. ``address`` is as in
    `DistributedSolver`; Ray that was started here, or a cluster that was joined, is left to the next fit and ends with this process.
    """

    joined: ClassVar[tuple[str | None] | None] = None  # the address by which this process came to Ray; None where somebody else did it

    def __init__(self, makers: Sequence[Maker], address: str | None) -> None:
        super().__init__(makers)
        self.ray = ray = engine()
        if ray.is_initialized() and self.joined not in (None, (address,)):
            ray.shutdown()
        if not ray.is_initialized():
            where: dict[str, Any] = (
                {"address": address} if address else {"address": "local", "num_cpus": len(makers), "include_dashboard": False}
            )
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else Ray reports its use to its makers
            try:
                _knock(address)
                ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
            except (OSError, ValueError, RuntimeError) as error:
                raise ConfigError(f"solver.address={address}: no Ray cluster answers there; start one with: ray start --head") from error
            RayWorkers.joined = (address,)
        # on this machine workers share the cores; a cluster finds a core for each
        self.kind = ray.remote(num_cpus=1 if address else 0, max_restarts=0, scheduling_strategy="SPREAD")(_Host)
        self.actors: dict[int, Any] = {}
        for name, module in list(sys.modules.items()):
            if plugins.is_plugin(name):  # a user's loss, whose file the workers may not have
                ray.cloudpickle.register_pickle_by_value(module)
        try:
            self.stored = [(maker, [ray.put(each) for each in arguments]) for maker, arguments in self.makers]
        except BaseException:
            self.close()
            raise

    def start(self, at: int) -> Any:
        """Make an actor and its object."""
        maker, arguments = self.stored[at]
        self.actors[at] = actor = self.kind.remote()
        return actor.there.remote(), actor.make.remote(maker, *arguments)

    def send(self, at: int, method: str, arguments: tuple[Any, ...]) -> Any:
        """Begin the call."""
        return None, self.actors[at].call.remote(method, *arguments)

    def receive(self, at: int, awaited: Any) -> Any:
        """Return the answer; an error of the method is raised as it was."""
        ray = self.ray
        there, answer = awaited
        try:
            if there is not None:
                ray.get(there, timeout=_ROOM)
            return ray.get(answer)
        except ray.exceptions.GetTimeoutError as error:
            raise KilledError(
                f"solver=distributed: no machine of the cluster had room for worker {at + 1} of {len(self)} within {_ROOM:.0f} s; "
                "each takes one processor: ask for fewer workers"
            ) from error
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError, ray.exceptions.OutOfMemoryError) as error:
            raise WorkerLost("killed, or out of memory") from error

    def close(self) -> None:
        """End the actors."""
        for actor in self.actors.values():
            self.ray.kill(actor)
