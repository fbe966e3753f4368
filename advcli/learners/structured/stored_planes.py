"""Training over stored labels of every example: a mixture of planes, pairwise steps, and when to look, come down and stop."""

from __future__ import annotations

import itertools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.groups import Starts
from ...core.typing import Array
from .learner import MAXMIN
from .spaces.psi import Psi

PSI_KINDS: Mapping[str, int] = {"margin": 0, "slack": 1, "scaling": 1, "log": 2, "prob": 3}
"""Surrogates by the number that compiled loops have for them (`_ext/structured/adv_psi.pxd`)."""
KINDS: Mapping[str, int] = {**PSI_KINDS, MAXMIN: 4}
"""The same with the max-min margin."""
ROOM = 16  # labels of an example that there is room for at first
QUICK = 9  # passes over the examples with the larger gaps between two passes over all
STEPS = 10  # pairwise steps of one visit
STALLED = 30  # rounds without a better bound after which a fit ends
GAME_STALLED = 1000  # of the max-min margin, whose steps are proximal: bounds rest for long until it is settled which labels tie
WEAK = 2e-3  # lambda n / |x|^2 below which a fit comes down to lambda from larger ones
WAY_FACTOR = 10.0  # from one lambda to the next on that way
WAY_TOL = 3e-2  # gap at which the next is taken


class StoredMixture(NamedTuple):
    """Stored labels of every example with their weights: a dual point."""

    held: NDArray[np.int16]  # label p of an example of T rows begins at start P + p T, (n P,); 0 is the truth
    alpha: Array  # weights (S, P)
    scale: Array  # scales of the planes (S, P)
    used: NDArray[np.int32]  # labels of each example (S,)

    def planes(self, start: Starts, y: Any, psi: Psi | None) -> list[list[Array]]:
        """Return the planes of every example that have a weight: its number, alpha, h of the tangent, and the labels of its rows.

        Without ``psi`` planes have the scale of margin rescaling, and no tangent.
        """
        room = self.alpha.shape[1]
        planes: list[list[Array]] = []
        for s, (first, last) in enumerate(itertools.pairwise(start.tolist())):
            used = self.used[s]
            labels, alpha, scale = (
                self.held[first * room : last * room].reshape(room, -1)[:used],
                self.alpha[s, :used],
                self.scale[s, :used],
            )
            wrong = (labels != y[first:last]).sum(axis=1)
            some = np.flatnonzero((alpha > 0.0) & (wrong > 0) & (scale > 0.0))
            h = np.zeros(len(some)) if psi is None else psi.at_slope(scale[some], wrong[some].astype(np.float64))
            planes.append([np.concatenate([[s, alpha[p], margin], labels[p]]) for p, margin in zip(some, h, strict=True)])
        return planes


class PlaneFit(NamedTuple):
    """What training returns: weights, what P is at most there, and the best dual value with its point."""

    weights: tuple[Array, ...]
    primal: float
    dual: float
    outside: float  # how infeasible the point is
    passes: float
    calls: int
    stopped: str
    mixture: Any  # the point: stored labels or mean planes
    targets: Array | None = None  # targets of the max-min margin that bound P, (n, K)
    oracle_gap: float = 0.0  # what the searches leave open in P
    solver: str = "pairwise"


class StoredPlaneTrainer(ABC):
    """Stored labels of S examples of several rows with their weights; a subclass has the compiled visits that move them.

    Minimises lambda/2 |w|^2 + sum_s share_s S_s(w) from a mixture of stored labels of every example. ``y`` (n,) are the true labels of the
    rows, example s being rows start[s]:start[s + 1], and ``scale`` that of the true label's plane.
    """

    unit: float  # |x|^2
    most_idle = STALLED

    def __init__(self, y: Any, start: Starts, share: Array, scale: float) -> None:
        self.y, self.start, self.share = y, start, share
        S = len(share)
        self.held = self._tiled(ROOM)
        self.alpha, self.scale, self.offset = np.zeros((S, ROOM)), np.zeros((S, ROOM)), np.zeros((S, ROOM))
        self.alpha[:, 0] = 1.0  # the truth
        self.scale[:, 0] = scale
        self.used = np.ones(S, dtype=np.int32)
        self.gap = np.full(S, np.inf)

    @abstractmethod
    def take(self, lam: float) -> tuple[Any, ...]:
        """Bring alpha into its simplices and the weights of the visits to the mixture's; return these weights."""

    @abstractmethod
    def primal(self, lam: float, weights: Any) -> tuple[float, float]:
        """Return what P is at most at weights, and the part of it that searches leave open."""

    @abstractmethod
    def dual(self, lam: float, weights: Any) -> float:
        """Return D of the mixture, whose weights these are."""

    @abstractmethod
    def sweep(self, lam: float, skip: float, seed: int) -> int:
        """Visit every example whose gap is above ``skip`` once; return how many had no room."""

    def targets(self) -> Array | None:
        """Return the targets p (n, K) as they are now; None for surrogates that have none."""
        return None

    def _tiled(self, room: int) -> NDArray[np.int16]:
        held = np.empty(len(self.y) * room, dtype=np.int16)
        for first, last in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            held[first * room : last * room] = np.tile(self.y[first:last], room)
        return held

    def widen(self) -> None:
        """Make room for twice as many labels of every example."""
        room = self.alpha.shape[1]
        held = self._tiled(2 * room)
        for first, last in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            held[2 * first * room : (first + last) * room] = self.held[first * room : last * room]
        self.held = held
        self.alpha, self.scale, self.offset = (np.pad(table, ((0, 0), (0, room))) for table in (self.alpha, self.scale, self.offset))

    def into_simplices(self) -> None:
        """Undo what rounding has done to alpha."""
        np.maximum(self.alpha, 0.0, out=self.alpha)
        self.alpha /= self.alpha.sum(axis=1, keepdims=True)

    def stored(self) -> StoredMixture:
        """Return the stored labels as they are now."""
        return StoredMixture(self.held.copy(), self.alpha.copy(), self.scale.copy(), self.used.copy())

    def outside(self) -> float:
        """Return how far alpha lies outside its simplices."""
        return float(max(0.0, -self.alpha.min(), np.abs(self.alpha.sum(axis=1) - 1.0).max()))

    def way(self, lam: float) -> list[float]:
        """Return larger lambdas, falling, through which a fit without stored labels comes down to a weak one; else none.

        From nothing the first steps at a weak lambda make weights so large that hardly a later label is of use at the optimum.
        """
        larger: list[float] = []
        least = WEAK * float(self.share.mean()) * self.unit
        while (self.used == 1).all() and lam < least:
            lam *= WAY_FACTOR
            larger.insert(0, lam)
        return larger

    def learn(self, lam: float, tol: float, max_passes: float, seed: int, max_seconds: float = math.inf) -> PlaneFit:
        """Minimise P until the best bounds on both sides are within ``tol``; its passes and calls count the whole `way`."""
        began, passes, calls = time.perf_counter(), 0.0, 0
        for larger in self.way(lam):
            seconds = max_seconds - (time.perf_counter() - began)
            fit = self._learn(larger, max(tol, WAY_TOL), max_passes - passes, seed, seconds)
            passes, calls = passes + fit.passes, calls + fit.calls
        fit = self._learn(lam, tol, max_passes - passes, seed, max_seconds - (time.perf_counter() - began))
        return fit._replace(passes=passes + fit.passes, calls=calls + fit.calls)

    def _learn(self, lam: float, tol: float, max_passes: float, seed: int, max_seconds: float) -> PlaneFit:
        began = time.perf_counter()
        random, S = np.random.default_rng(seed), len(self.share)
        self.gap[:] = np.where(self.share > 0.0, np.inf, -np.inf)
        weights = self.take(lam)
        primal, left_open = self.primal(lam, weights)
        best = PlaneFit(
            weights, primal, self.dual(lam, weights), self.outside(), 1.0, S, "converged", self.stored(), self.targets(), left_open
        )
        dual, passes, calls, idle = best.dual, 1.0, S, 0
        while True:
            gap = best.primal - dual
            late = time.perf_counter() - began >= max_seconds
            spent = passes + 2.0 > max_passes  # a sweep and the values after it
            if gap <= tol * abs(best.primal) or spent or late or idle >= self.most_idle:
                stopped = "max_passes" if spent else "max_seconds" if late else "stalled"
                stopped = "converged" if gap <= tol * abs(best.primal) else stopped
                return best._replace(dual=dual, passes=passes, calls=calls, stopped=stopped)
            for quick in range(1 + QUICK):
                skip = float(self.share @ np.maximum(self.gap, 0.0)) if quick else -math.inf
                visited = int((self.gap > skip).sum()) if quick else S
                if passes + visited / S + 1.0 > max_passes:
                    break
                full = self.sweep(lam, skip, int(random.integers(2**62)))
                passes, calls = passes + visited / S, calls + visited
                if full:
                    self.widen()
                if not visited or time.perf_counter() - began >= max_seconds:
                    break
            weights = self.take(lam)
            (primal, left_open), now = self.primal(lam, weights), self.dual(lam, weights)
            passes, calls = passes + 1.0, calls + S
            idle = 0 if now > dual + 1e-3 * tol * abs(dual) or primal < best.primal else idle + 1
            if now > dual:
                dual, best = now, best._replace(outside=self.outside(), mixture=self.stored())
            if primal < best.primal:
                best = best._replace(weights=weights, primal=primal, targets=self.targets(), oracle_gap=left_open)
