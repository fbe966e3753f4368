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
from ...solvers.base import Limits
from ...solvers.cutting_planes import CuttingPlaneFit, squared
from .learner import MAXMIN
from .spaces.psi import Psi

PSI_KINDS: Mapping[str, int] = {"margin": 0, "slack": 1, "scaling": 1, "log": 2, "prob": 3}
"""Surrogates by the number that compiled loops have for them (`_ext/structured/adv_psi.pxd`)."""
KINDS: Mapping[str, int] = {**PSI_KINDS, MAXMIN: 4}
"""The same with the max-min margin."""
ROOM = 16  # labels of an example that there is room for at first
QUICK = 9  # passes over the examples with the larger gaps between two passes over all
STEPS = 10  # pairwise steps of one visit
STALLED = 100  # rounds without a better bound after which a fit ends; at weak lambda bounds rest for more than 60 and move again
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

    def outside(self) -> float:
        """Return how far alpha lies outside its simplices."""
        return float(max(0.0, -self.alpha.min(), np.abs(self.alpha.sum(axis=1) - 1.0).max()))


class StoredPlaneTrainer(ABC):
    """Stored labels of S examples of several rows with their weights; a subclass has the compiled visits that move them.

    Minimises lambda/2 |w|^2 + sum_s share_s S_s(w) from a mixture of stored labels of every example. ``y`` (n,) are the true labels of the
    rows, example s being rows start[s]:start[s + 1]. The max-min margin learns targets p = 1 - ``cost`` beside the weights: any p bounds P
    from above and any mixture from below.
    """

    unit: float  # |x|^2
    cost: Array

    def __init__(self, problem: Any, y: Any) -> None:
        self.problem, self.y, self.start, self.share = problem, y, problem.start, problem.share
        self.game, S = problem.kind == KINDS[MAXMIN], len(problem.share)
        self.most_idle = GAME_STALLED if self.game else STALLED
        self.held = self._tiled(ROOM)
        self.alpha, self.scale, self.offset = np.zeros((S, ROOM)), np.zeros((S, ROOM)), np.zeros((S, ROOM))
        self.alpha[:, 0] = 1.0  # the truth
        self.scale[:, 0] = float(self.game or problem.kind == KINDS["margin"])
        self.used = np.ones(S, dtype=np.int32)
        self.gap = np.full(S, np.inf)

    @abstractmethod
    def take(self, lam: float) -> tuple[Array, Array]:
        """Bring alpha into its simplices and the weights of the visits to the mixture's; return W (K, d) and shared (G,)."""

    @abstractmethod
    def surveyed(self, W: Array, shared: Array) -> tuple[Array, Array]:
        """Return the surrogate of every example at weights as its search found it, and what it is at most, (S,) each.

        Of the max-min margin both are bounds by the present targets.
        """

    @abstractmethod
    def sweep(self, lam: float, skip: float, seed: int) -> int:
        """Visit every example whose gap is above ``skip`` once; return how many had no room."""

    def primal(self, lam: float, W: Array, shared: Array) -> tuple[float, float]:
        """Return what P is at most at weights, and the part of it that searches leave open."""
        value, upper = self.surveyed(W, shared)
        above = float(self.share @ upper)
        return 0.5 * lam * squared(W, shared) + above, above - float(self.share @ value)

    def losses(self) -> Array:
        """Return the constants of the examples' mixtures, (S,)."""
        return np.asarray((self.alpha * self.offset).sum(axis=1))

    def dual(self, lam: float, W: Array, shared: Array) -> float:
        """Return D of the mixture, whose weights these are."""
        return float(self.share @ self.losses()) - 0.5 * lam * squared(W, shared)

    def strengths(self, lam: float) -> tuple[Array, float]:
        """Return lambda over the share of each example, and the weight of the proximal steps of the targets."""
        with np.errstate(divide="ignore"):
            return lam / self.share, 2.0 * lam / float(self.share.mean()) / self.unit

    def targets(self) -> Array | None:
        """Return the targets p as they are now; None for surrogates that have none."""
        return 1.0 - self.cost if self.game else None

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

    def learn(self, lam: float, limits: Limits, seed: int) -> CuttingPlaneFit:
        """Minimise P until the best bounds on both sides are within ``limits.tol``; its passes and calls count the whole `way`."""
        began, passes, calls = time.perf_counter(), 0.0, 0
        for each in (*self.way(lam), lam):
            tol = limits.tol if each == lam else max(limits.tol, WAY_TOL)
            fit = self._learn(each, tol, limits.max_passes - passes, seed, limits.max_seconds - (time.perf_counter() - began))
            passes, calls = passes + fit.passes, calls + fit.calls
        return fit._replace(passes=passes, calls=calls)

    def _learn(self, lam: float, tol: float, max_passes: float, seed: int, max_seconds: float) -> CuttingPlaneFit:
        began = time.perf_counter()
        random, S = np.random.default_rng(seed), len(self.share)
        self.gap[:] = np.where(self.share > 0.0, np.inf, -np.inf)
        weights = self.take(lam)
        primal, left_open = self.primal(lam, *weights)
        values = primal, self.dual(lam, *weights), left_open
        best = CuttingPlaneFit(*weights, self.stored(), *values, S, 1.0, "converged", 0.0, self.targets(), "pairwise")
        dual, passes, calls, idle = best.dual, 1.0, S, 0
        while True:
            gap, seconds = best.primal - dual, time.perf_counter() - began
            late = seconds >= max_seconds
            spent = passes + 2.0 > max_passes  # a sweep and the values after it
            if gap <= tol * abs(best.primal) or spent or late or idle >= self.most_idle:
                stopped = "max_passes" if spent else "max_seconds" if late else "stalled"
                stopped = "converged" if gap <= tol * abs(best.primal) else stopped
                return best._replace(dual=dual, passes=passes, calls=calls, stopped=stopped, seconds=seconds)
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
            (primal, left_open), now = self.primal(lam, *weights), self.dual(lam, *weights)
            passes, calls = passes + 1.0, calls + S
            idle = 0 if now > dual + 1e-3 * tol * abs(dual) or primal < best.primal else idle + 1
            if now > dual:
                dual, best = now, best._replace(planes=self.stored())
            if primal < best.primal:
                best = best._replace(W=weights[0], shared=weights[1], primal=primal, targets=self.targets(), oracle_gap=left_open)
