"""Rows in shards, each with a worker: what a smoothed objective, a dual point and a certificate need of them are sums.

A worker is asked in rounds. It gets theta (d, k) and answers the sums over its rows, of which the gradient X'(s r) (d, k) is the largest;
they are added in the order of the shards, whoever answers first. The centres r_i of the smoothing (`smoothing.py`) stay with the rows: they
follow from the moves that led there, one theta each. So a worker that died is replaced by a new one, which gets the rows again and makes
the same moves: it has the same centres to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import KilledError
from ...core.linalg import inner
from ...core.typing import Array
from ...problems.risk import Problem, gap_scale
from ..smoothing import maximisers

_BLOCK = 2**18  # scores that are computed at once: what they need beside the rows and their dual points stays small


class Move(NamedTuple):
    """The centres move to the maximisers at theta around the centres before, of smoothing mu."""

    theta: Array
    mu: float


class RemoteDualPoint(NamedTuple):
    """The maximisers at theta around the centres after so many moves; those centres where theta is None. Each worker has its rows of it."""

    moves: int
    theta: Array | None
    mu: float


class Sums(NamedTuple):
    """Sums over rows, each row with its weights."""

    smoothed: float  # of c(r) + f.r - mu/2 |r - r_i|^2
    value: float  # of the surrogate S
    offset: float  # of c(r)
    pull: float  # of f.r
    gradient: Array  # J'(s r)

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        """Return the sums over both sets of rows."""
        return Sums(*map(add, self, other))


class ShardJudgement(NamedTuple):
    """What the certificate needs of rows: sums of S at theta, of c(r) and J'(s r) at the dual point, and how far r lies outside its set."""

    value: float
    offset: float
    gradient: Array
    outside: float

    def __add__(self, other: ShardJudgement) -> ShardJudgement:  # type: ignore[override]
        """Return the judgement of both sets of rows."""
        outside = float(np.maximum(self.outside, other.outside))  # a nan stays
        return ShardJudgement(self.value + other.value, self.offset + other.offset, self.gradient + other.gradient, outside)


class Shard:
    """The rows of one worker: their problem, whose n is not used, and the dual point (n, k) before the first move, 0 without ``centre``."""

    def __init__(self, problem: Problem, centre: Array | None = None) -> None:
        step = max(1, _BLOCK // problem.loss.n_classes)
        parts = [slice(at, at + step) for at in range(0, len(problem.y), step)]
        self.blocks = [_rows(problem, part) for part in parts]
        self.first = None if centre is None else [centre[part] for part in parts]
        self.history: list[Move] = []
        self.centre = self._before_moves()
        self.latest: tuple[RemoteDualPoint, list[Array]] | None = None

    def _before_moves(self) -> list[Array]:
        return [np.zeros((len(each.y), each.loss.n_classes)) for each in self.blocks] if self.first is None else self.first

    def follow(self, known: int, moves: Sequence[Move]) -> None:
        """Make the moves that come after the first ``known``, which this worker has made."""
        if known != len(self.history):
            raise RuntimeError(f"a worker made {len(self.history)} moves and is told of {known}")
        for move in moves:
            self.centre = self._maximisers(RemoteDualPoint(len(self.history), *move))
            self.history.append(move)

    def _maximisers(self, point: RemoteDualPoint) -> list[Array]:
        """Return this worker's rows of a dual point, block by block."""
        if self.latest is not None and _same(self.latest[0], point):
            return self.latest[1]
        centre = self.centre
        if point.moves < len(self.history):  # of a time before: make the moves again
            centre = self._before_moves()
            for theta, mu in self.history[: point.moves]:
                centre = [maximisers(block, theta, at, mu)[1] for block, at in zip(self.blocks, centre, strict=True)]
        if point.theta is None:
            return centre
        return [maximisers(block, point.theta, at, point.mu)[1] for block, at in zip(self.blocks, centre, strict=True)]

    def sums(self, known: int, moves: Sequence[Move], theta: Array, mu: float) -> Sums:
        """Return the sums at theta; one read of the rows."""
        self.follow(known, moves)
        dual_point, sums = [], []
        for block, centre in zip(self.blocks, self.centre, strict=True):
            F, R = maximisers(block, theta, centre, mu)
            dual_point.append(R)
            offset = float(block.weight @ block.loss.offset(R, block.y))
            pull = float(block.weight @ np.einsum("ij,ij->i", F, R))
            apart = R - centre
            smoothed = offset + pull - 0.5 * mu * float(block.weight @ np.einsum("ij,ij->i", apart, apart))
            value = float(block.weight @ block.loss.value(F, block.y))
            sums.append(Sums(smoothed, value, offset, pull, _gradient(block, R)))
        self.latest = RemoteDualPoint(len(self.history), theta, mu), dual_point
        return reduce(add, sums)

    def dual_point(self, known: int, moves: Sequence[Move], point: RemoteDualPoint) -> Array:
        """Return this worker's rows of a dual point (n, k)."""
        self.follow(known, moves)
        return np.concatenate(self._maximisers(point))

    def judge(self, known: int, moves: Sequence[Move], theta: Array, point: RemoteDualPoint) -> ShardJudgement:
        """Return what the certificate of theta and a dual point needs, computed from the rows; earlier answers are not used."""
        self.follow(known, moves)
        self.latest = None
        judgements = []
        for block, rows in zip(self.blocks, self._maximisers(point), strict=True):
            R, outside = block.feasible(rows)
            value = float(block.weight @ block.loss.value(block.scaled(block.features.scores(theta)), block.y))
            offset = float(block.weight @ block.loss.offset(R, block.y))
            judgements.append(ShardJudgement(value, offset, _gradient(block, R), outside))
        return reduce(add, judgements)


def _rows(problem: Problem, part: slice) -> Problem:
    """Return the problem of some rows."""
    sample, cost = (None if each is None else each[part] for each in (problem.sample_weight, problem.cost_weight))
    return Problem(problem.features.at(problem.features.X[part]), problem.loss, problem.y[part], problem.lam, sample, cost)


def _gradient(block: Problem, R: Array) -> Array:
    """Return J'(s r)."""
    return block.features.adjoint(R if block.sample_weight is None else R * block.sample_weight[:, None])


def split(problem: Problem, centre: Array, count: int) -> list[tuple[Problem, Array]]:
    """Return the problems and centres of so many shards of consecutive rows, whose sizes differ by one at most."""
    ends = np.linspace(0, len(problem.y), min(count, len(problem.y)) + 1).astype(int).tolist()
    return [(_rows(problem, slice(*ab)), centre[slice(*ab)]) for ab in pairwise(ends)]


def _same(one: RemoteDualPoint, other: RemoteDualPoint) -> bool:
    if one.theta is None or other.theta is None or one[::2] != other[::2]:
        return False
    return bool(np.array_equal(one.theta, other.theta))


# ---- workers --------------------------------------------------------------------------------------------------------
Maker = tuple[Callable[..., Any], tuple[Any, ...]]  # of a worker's object, with its arguments


class WorkerLost(Exception):
    """A worker that died before it answered; the text says of what."""


class Workers:
    """Workers that hold an object each, a `Shard` in the end, and call its methods; a replaced one makes its object again.

    These live in this process, as one machine without an engine and tests of the mathematics need; others have processes of their own.
    """

    def __init__(self, makers: Sequence[Maker]) -> None:
        self.makers = list(makers)
        self.held: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.makers)

    def start(self, at: int) -> Any:
        """Begin to make the object of worker ``at`` anew; return what `receive` waits for."""
        make, arguments = self.makers[at]
        self.held[at] = make(*arguments)

    def send(self, at: int, method: str, arguments: tuple[Any, ...]) -> Any:
        """Begin a call; return what `receive` waits for."""
        return method, arguments

    def receive(self, at: int, awaited: Any) -> Any:
        """Return the answer; `WorkerLost` when there will be none."""
        return None if awaited is None else getattr(self.held[at], awaited[0])(*awaited[1])

    def close(self) -> None:
        """End all workers."""


class Rounds:
    """Calls of all workers at once, whose answers come in the order of the shards, however often a worker has to be replaced.

    A worker is replaced ``restarts`` times before the fit ends with `KilledError`. ``moves`` counts moves of the centres; ``count``,
    ``moved`` and ``restarted`` are rounds, bytes of the numbers that went to the workers and came back, and workers that were replaced.
    """

    def __init__(self, workers: Workers, restarts: int = 3) -> None:
        self.workers, self.restarts = workers, restarts
        self.moves: list[Move] = []
        self.known = [0] * len(workers)
        self.lost = [0] * len(workers)
        self.prepared: list[tuple[str, tuple[Any, ...]]] = []  # calls that a new worker needs before any other
        self.count = self.moved = self.restarted = 0
        begun = [workers.start(at) for at in range(len(workers))]
        for at, awaited in enumerate(begun):
            self._kept(at, awaited, partial(workers.start, at))

    def _kept(self, at: int, awaited: Any, again: Callable[[], Any]) -> Any:
        """Return the answer of a worker; a worker that died is replaced, and asked ``again``."""
        begin: Callable[[], Any] | None = None
        while True:
            try:
                return self.workers.receive(at, awaited if begin is None else begin())
            except WorkerLost as error:
                self.lost[at] += 1
                if self.lost[at] > self.restarts:
                    raise KilledError(
                        f"solver=distributed: worker {at + 1} of {len(self.workers)} died {self.lost[at]} times ({error}); the fit has no "
                        "result: give it more memory, or more workers with fewer rows each"
                    ) from error
                self.restarted += 1
                begin = again

    def _replace(self, at: int) -> None:
        """Start worker ``at`` again and bring it to where it was before its first move."""
        self.known[at] = 0
        self.workers.receive(at, self.workers.start(at))
        for method, arguments in self.prepared:
            self.workers.receive(at, self.workers.send(at, method, arguments))

    def prepare(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method that every worker needs before others, a replaced one too; return the answers."""
        answers = self._call(method, lambda at: arguments)
        self.prepared.append((method, arguments))
        return answers

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all shards, which first make the moves they do not know; return the answers."""
        answers = self._call(method, lambda at: (self.known[at], tuple(self.moves[self.known[at] :]), *arguments))
        self.known = [len(self.moves)] * len(self.workers)
        return answers

    def total(self, method: str, *arguments: Any) -> Any:
        """Return the sum of the answers, added in the order of the shards."""
        return reduce(add, self.ask(method, *arguments))

    def _call(self, method: str, arguments: Callable[[int], tuple[Any, ...]]) -> list[Any]:
        self.count += 1

        def send(at: int) -> Any:
            message = arguments(at)
            self.moved += _bytes(message)
            return self.workers.send(at, method, message)

        def again(at: int) -> Any:
            self._replace(at)
            return send(at)

        begun = [send(at) for at in range(len(self.workers))]
        answers = [self._kept(at, awaited, partial(again, at)) for at, awaited in enumerate(begun)]
        self.moved += _bytes(answers)
        return answers


def _bytes(what: Any) -> int:
    """Return the bytes of the numbers in arrays, tuples and lists."""
    if isinstance(what, np.ndarray):
        return int(what.nbytes)
    if isinstance(what, (tuple, list)):
        return sum(map(_bytes, what))
    return 8 if isinstance(what, (int, float)) else 0


# ---- the objective of all shards ------------------------------------------------------------------------------------
class ShardedPoint(NamedTuple):
    """The smoothed objective of all rows at one theta."""

    theta: Array
    R: RemoteDualPoint
    value: float
    gradient: Array
    gaps: tuple[float, float, float, RemoteDualPoint]


class Whole(NamedTuple):
    """What is known of all rows together: n of the problem, lambda, and the least that a gap is relative to."""

    n: float
    lam: float
    least: float

    def gap_scale(self, primal: float, dual: float) -> float:
        """Return what a gap is relative to."""
        return max(gap_scale(primal, dual), self.least)

    def ridge(self, theta: Array) -> float:
        """Return lambda/2 |theta|^2."""
        return 0.5 * self.lam * inner(theta, theta)

    def dual(self, offset: float, gradient: Array) -> float:
        """Return D from the sums of c(r) and J'(s r)."""
        return offset / self.n - self.ridge(gradient / (self.lam * self.n))


class ShardedObjective:
    """P_mu of all rows around centres that the workers hold (`smoothing.SmoothedObjective`); ``evaluations`` counts reads of the data."""

    def __init__(self, rounds: Rounds, whole: Whole, centre: RemoteDualPoint, mu: float) -> None:
        self.rounds, self.whole, self.mu = rounds, whole, mu
        self.evaluations = 0
        if centre.theta is not None:
            rounds.moves.append(Move(centre.theta, centre.mu))

    def at(self, theta: Array) -> ShardedPoint:
        """Return value and gradient at theta; one round."""
        self.evaluations += 1
        whole, n = self.whole, self.whole.n
        point = RemoteDualPoint(len(self.rounds.moves), theta, self.mu)
        sums: Sums = self.rounds.total("sums", theta, self.mu)
        ridge, dual = whole.ridge(theta), whole.dual(sums.offset, sums.gradient)
        mismatch = (sums.value - sums.offset - sums.pull) / n
        gradient = sums.gradient / n + whole.lam * theta
        return ShardedPoint(theta, point, ridge + sums.smoothed / n, gradient, (ridge + sums.value / n, dual, mismatch, point))

    def gaps(self, point: ShardedPoint) -> tuple[float, float, float, RemoteDualPoint]:
        """Return P(theta), D, the part of P - D that only new centres can remove, and the dual point that gives D."""
        return point.gaps
