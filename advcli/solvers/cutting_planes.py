"""Stored planes of structured surrogates: their dual, pairwise steps over them, and the cutting-plane method that trains by them.

Over n examples of shares s_i that sum to 1, with S_i the largest of the planes c + a.w of example i and of the plane 0,

    P(w) = lambda/2 |w|^2 + sum_i s_i S_i(w),
    D(alpha) = sum_ip s_i alpha_ip c_ip - lambda/2 |w|^2,   w = -1/lambda sum_ip s_i alpha_ip a_ip,                                    (1)

with alpha_i >= 0 of sum at most 1, the rest being the weight of the plane 0 (the true label). D is at most min P for any planes that do not
lie above S_i, however they were found: what an inexact search costs is only in the upper bound of P.

An example is one row of X, or several that follow each other (a sentence). Every row has K scores, W x, and labels share G further
weights (of pairs or of transitions). A plane a is a list of parts, the coefficients of the G shared weights and of the K scores of its
rows: a.w is their product with ``(shared, scores of its rows)``. Nothing here knows what a label is.
"""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms

from ..core.arrays import dense
from ..core.compiled import aligned_zeros, compiled_rows, kernels
from ..core.groups import rows_of
from ..core.linalg import inner
from ..core.typing import Array
from .base import Limits

Positions = NDArray[np.intp]

IDLE_ROUNDS = 10  # rounds after which a plane of weight 0 is forgotten
PAIRWISE_STEPS = 10  # pairwise steps of one visit to an example
INNER_PASSES = 20  # most passes of pairwise steps between two searches of all
BLOCK_PASSES = 5  # most passes of pairwise steps after a block of examples
INNER_SHARE = 0.2  # share of the gap that the stored planes' own gap is brought down to between two searches
SWEEPS = 8  # most sweeps by blocks between two looks at all
SWEPT_SHARE = 0.3  # share of the last look's gap at which sweeps end
LOOK_SWEEPS = 10  # sweeps by rows between two looks at all
ROUND_SWEEPS = 5  # sweeps by rows for one proximal point
FINE = 1e-3  # relative gap from which on planes are ascended by many passes between searches again, which ends sooner there
PULL = 9.0  # weight of the distance from the centre of a proximal point, in lambda


class Cuts(NamedTuple):
    """The most violated plane of each of m examples at one w."""

    parts: sparse.csr_array  # coefficients a of the G shared weights, then of the scores of the rows, row by row (m, G + K longest)
    constant: Array  # c, (m,)
    value: Array  # surrogate at the label of the plane, at least 0, (m,)
    upper: Array  # bound of the surrogate over all labels, equal for an exact search, (m,)
    calls: int  # of oracles
    targets: Array | None = None  # of a game: what of the predictor proves ``upper``
    mixtures: NDArray[np.object_] | None = None  # of a game: the mixtures of labels that the planes are of, (m,)


class Turns(NamedTuple):
    """Labels of rows as sets of their K coordinates that are turned away from the true label, each of them free.

    A set of l coordinates S is the plane slope_l sum over S of sign_ij u_ij + offset_l at scores u_i. So at every l the plane of the l
    largest sign_ij u_ij is the highest. ``sign`` (n, K) is what the turn of a coordinate adds to the margin, times its score; ``slope`` and
    ``offset`` (K + 1,) are above 0 beyond l = 0, where both belong to the true label.
    """

    sign: NDArray[np.int8]
    slope: Array
    offset: Array


class CuttingPlaneProblem(ABC):
    """Examples whose surrogate is the largest of many planes: their rows, and the search for the most violated plane of each.

    The dual is ascended after each of ``blocks`` of examples. With 1 all are searched at one w; with more, where a search costs far more
    than a step, later blocks see what the planes of earlier ones have changed. ``turns`` are for examples of single rows whose highest
    plane is a matter of sorting K numbers: rows are then searched one after the other, each at the w after the steps of those before it.
    """

    X: Any  # rows of all examples (N, d), an array or CSR
    start: Positions  # example i has the rows start[i]:start[i + 1], (n + 1,)
    share: Array  # weights of the examples, of sum 1, (n,)
    K: int  # scores of a row
    G: int  # weights that labels share
    left_open: float = 1.0  # part of the tolerance to which planes close their share of a gap that searches leave open
    blocks: int = 1
    turns: Turns | None = None

    @abstractmethod
    def search(self, U: Array, shared: Array, examples: Positions) -> Cuts:
        """Return the most violated planes of some examples, whose numbers (m,) rise.

        U (N', K) are scores of their rows, one example after the other, and ``shared`` (G,) the shared weights.
        """

    @property
    def n(self) -> int:
        """The number of examples."""
        return len(self.share)

    @property
    def width(self) -> int:
        """The number of columns of `Cuts.parts`."""
        return self.G + self.K * int(np.diff(self.start).max())

    def all_cuts(self, W: Array, shared: Array) -> Cuts:
        """Return the worst label of every example at weights W (K, d) and ``shared`` (G,)."""
        return self.search(np.ascontiguousarray(self.X @ W.T), shared, np.arange(self.n))

    def no_planes(self) -> CuttingPlanes:
        """Return what planes are stored in."""
        return CuttingPlanes(self)

    def primal(self, lam: float, W: Array, shared: Array, cuts: Cuts) -> float:
        """Return the upper bound of P(w) that the cuts at w give."""
        return 0.5 * lam * squared(W, shared) + float(self.share @ cuts.upper)


def squared(W: Array, shared: Array) -> float:
    """Return |w|^2."""
    return float(inner(W, W) + shared @ shared)


class CuttingPlanes:
    """Planes of all examples with their weights alpha, in the order of the examples."""

    def __init__(self, problem: CuttingPlaneProblem) -> None:
        self.problem = problem
        self.parts = sparse.csr_array((0, problem.width))  # (p, G + K longest)
        self.constant: Array = np.zeros(0)
        self.alpha: Array = np.zeros(0)
        self.owner: Positions = np.zeros(0, dtype=np.intp)  # the planes' examples, never falling
        self.idle: Positions = np.zeros(0, dtype=np.intp)  # rounds since alpha was above 0
        self.mixtures: NDArray[np.object_] = np.zeros(0, dtype=object)  # as in `Cuts`, None for planes of one label

    @property
    def start(self) -> Positions:
        """Example i has the planes start[i]:start[i + 1]."""
        return np.searchsorted(self.owner, np.arange(self.problem.n + 1)).astype(np.intp)

    def add(self, cuts: Cuts, examples: Positions) -> None:
        """Store planes of these examples, one each, with alpha 0."""
        new = len(examples)
        owner = np.concatenate([self.owner, examples])
        order = np.argsort(owner, kind="stable")
        self.parts = sparse.csr_array(sparse.vstack([self.parts, cuts.parts], format="csr")[order])
        self.constant = np.concatenate([self.constant, cuts.constant])[order]
        self.alpha = np.concatenate([self.alpha, np.zeros(new)])[order]
        self.idle = np.concatenate([self.idle, np.zeros(new, dtype=np.intp)])[order]
        self.mixtures = np.concatenate([self.mixtures, np.full(new, None) if cuts.mixtures is None else cuts.mixtures])[order]
        self.owner = owner[order]

    def add_violated(self, cuts: Cuts, examples: Positions, highest: Array) -> None:
        """Store the planes of these examples that lie above the ``highest`` of their stored ones."""
        new = np.flatnonzero(cuts.value > highest + 1e-12 * np.maximum(1.0, highest))
        if len(new):
            chosen = cuts.mixtures if cuts.mixtures is None else cuts.mixtures[new]
            self.add(cuts._replace(parts=cuts.parts[new], constant=cuts.constant[new], mixtures=chosen), examples[new])

    def forget(self) -> NDArray[np.bool_]:
        """Drop the planes without weight for more than `IDLE_ROUNDS` rounds; return which stay, (p,)."""
        self.idle = np.where(self.alpha > 0.0, 0, self.idle + 1)
        kept = self.idle <= IDLE_ROUNDS
        if not kept.all():
            self.parts = sparse.csr_array(self.parts[np.flatnonzero(kept)])
            self.constant, self.alpha = self.constant[kept], self.alpha[kept]
            self.owner, self.idle, self.mixtures = self.owner[kept], self.idle[kept], self.mixtures[kept]
        return kept

    def _by_example(self, values: Array) -> sparse.csr_array:
        """Return values of the planes (p,), each in the row of its example, (n, p)."""
        p = len(self.owner)
        return sparse.csr_array((values, (self.owner, np.arange(p))), shape=(self.problem.n, p))

    def weights(self, lam: float) -> tuple[Array, Array]:
        """Return W (K, d) and the shared weights (G,) of (1)."""
        problem = self.problem
        total = sparse.csr_array(self._by_example(self.alpha * problem.share[self.owner]) @ self.parts)
        shared = -np.asarray(total[:, : problem.G].sum(axis=0)).ravel() / lam
        local = sparse.coo_array(total[:, problem.G :])
        example, column = local.coords
        K, row = problem.K, problem.start[example] + column // problem.K
        rows = sparse.csr_array((local.data, (row, column % K)), shape=(problem.X.shape[0], K))
        W: Any = -(rows.T @ problem.X) / lam
        return np.ascontiguousarray(dense(W)), shared

    def outside(self) -> float:
        """Return how far alpha lies outside its simplices."""
        if not len(self.alpha):
            return 0.0
        sums = np.bincount(self.owner, weights=self.alpha, minlength=self.problem.n)
        return float(max(0.0, -self.alpha.min(), sums.max() - 1.0))

    def feasible(self) -> None:
        """Put alpha into its simplices: what is negative becomes 0, and a sum above 1 is divided out."""
        self.alpha = np.maximum(self.alpha, 0.0)
        sums = np.bincount(self.owner, weights=self.alpha, minlength=self.problem.n)
        self.alpha = self.alpha / np.maximum(sums, 1.0)[self.owner]

    def begin(self, start: CuttingPlanes, lam: float) -> None:
        """Take planes of the same rows and surrogate, at another lambda, with alpha times what in [0, 1] is best for D."""
        self.parts, self.constant, self.owner, self.idle = start.parts, start.constant, start.owner, start.idle
        self.alpha, self.mixtures = start.alpha, start.mixtures
        W, shared = self.weights(lam)
        linear, square = self.dual(lam, W, shared) + 0.5 * lam * squared(W, shared), lam * squared(W, shared)
        self.alpha = self.alpha * (min(1.0, max(linear, 0.0) / square) if square > 0.0 else 1.0)

    def means(self) -> tuple[Array, Array]:
        """Return the mean plane of each row, coefficients (n, G + K longest) and constants (n,); the rest of alpha is the plane 0."""
        constant: Array = np.bincount(self.owner, weights=self.alpha * self.constant, minlength=self.problem.n).astype(np.float64)
        return (self._by_example(self.alpha) @ self.parts).toarray(), constant

    def dual(self, lam: float, W: Array, shared: Array) -> float:
        """Return D(alpha); W and ``shared`` are `weights`."""
        return float((self.problem.share[self.owner] * self.alpha) @ self.constant) - 0.5 * lam * squared(W, shared)

    def values(self, W: Array, shared: Array, which: Positions | None = None) -> Array:
        """Return c + a.w of every plane, shape (p,), or of these."""
        problem = self.problem
        chosen = slice(None) if which is None else which
        owner, parts, constant = self.owner[chosen], self.parts[chosen], self.constant[chosen]
        U = np.asarray(problem.X @ W.T)
        local = sparse.csr_array(parts[:, problem.G :])
        entry = np.repeat(owner, np.diff(local.indptr))
        scores = U[problem.start[entry] + local.indices // problem.K, local.indices % problem.K]
        sums = np.bincount(np.repeat(np.arange(len(owner)), np.diff(local.indptr)), weights=local.data * scores, minlength=len(owner))
        return np.asarray(constant + parts[:, : problem.G] @ shared + sums)


class Visits:
    """Pairwise steps over the planes of a problem, with the products of rows that the steps need, computed once."""

    def __init__(self, problem: CuttingPlaneProblem, seed: int) -> None:
        self.problem = problem
        self.rows = compiled_rows(problem.X)
        self.random = np.random.default_rng(seed)
        lengths = np.diff(problem.start)
        self.gram_start = np.concatenate([[0], np.cumsum(lengths**2)]).astype(np.int64)
        if (lengths == 1).all():
            self.gram = np.ascontiguousarray(row_norms(problem.X, squared=True), dtype=np.float64)
        else:
            grams: list[Any] = [problem.X[a:b] @ problem.X[a:b].T for a, b in itertools.pairwise(problem.start)]
            self.gram = np.concatenate([dense(gram).ravel() for gram in grams]).astype(np.float64)

    def theta(self, W: Array) -> Array:
        """Return W' (d, Kp) as the steps take it."""
        theta = aligned_zeros((W.shape[1], kernels.planes.width(self.problem.K)))
        theta[:, : self.problem.K] = W.T
        return theta

    def run(self, planes: CuttingPlanes, lam: float, W: Array, shared: Array, enough: float, passes: int = INNER_PASSES) -> float:
        """Ascend D, changing alpha, until the gap of the stored planes is at most ``enough`` or ``passes`` are made; return that gap."""
        problem = self.problem
        examples = problem.start.astype(np.int64), problem.share, self.gram, self.gram_start
        places = planes.start.astype(np.int64), planes.parts.indptr.astype(np.int64), planes.parts.indices.astype(np.int32)
        stored = planes.parts.data, planes.constant, planes.alpha
        steps = problem.K, lam, PAIRWISE_STEPS, passes, enough, int(self.random.integers(2**63))
        gap, _ = kernels.planes.visits(*self.rows, *examples, *places, *stored, self.theta(W), shared.copy(), *steps)
        return float(gap)

    def sweep(self, planes: CuttingPlanes, lam: float, theta: Array) -> float:
        """Search every row once, store its highest plane where it is new, and make pairwise steps before the next one.

        ``theta`` (d, Kp) is W' and changes with alpha. Returns the sum of the rows' gaps before their steps, each at its own w.
        """
        problem = self.problem
        assert problem.turns is not None
        every, kept = np.arange(problem.n), len(planes.owner)
        places = planes.start[1:] + every  # each row's planes, then the place of a new one
        old = np.ones(kept + problem.n, dtype=bool)
        old[places] = False
        begin, stop = np.empty((2, kept + problem.n), dtype=np.int64)
        begin[old], stop[old] = planes.parts.indptr[:-1], planes.parts.indptr[1:]
        filled = len(planes.parts.indices)
        begin[places] = stop[places] = filled + every * problem.K
        part = np.concatenate([planes.parts.indices, np.zeros(problem.n * problem.K)], dtype=np.int32, casting="unsafe")
        coefficient = np.concatenate([planes.parts.data, np.zeros(problem.n * problem.K)])
        constant, alpha = np.zeros((2, kept + problem.n))
        constant[old], alpha[old] = planes.constant, planes.alpha
        stored = np.concatenate([planes.start[:1], places + 1]).astype(np.int64), begin, stop, part, coefficient, constant, alpha
        steps = theta, problem.K, lam, *problem.turns, PAIRWISE_STEPS, int(self.random.integers(2**63))
        gap = kernels.planes.sweep(*self.rows, problem.share, self.gram, *stored, *steps)
        planes.alpha = alpha[old]
        sizes = (stop - begin)[places]
        new = np.flatnonzero(sizes)
        if len(new):
            sizes = sizes[new]
            ends = np.cumsum(sizes)
            entry = np.repeat(begin[places[new]] - (ends - sizes), sizes) + np.arange(ends[-1])
            parts = sparse.csr_array((coefficient[entry], part[entry], np.concatenate([[0], ends])), shape=(len(new), problem.K))
            none = np.zeros(len(new))
            planes.add(Cuts(parts, constant[places[new]], none, none, len(new)), new)
            planes.alpha = alpha[np.sort(np.concatenate([np.flatnonzero(old), places[new]]))]
        return float(gap)


class RowSweeps:
    """Sweeps by rows (`Visits.sweep`) towards accelerated proximal points (Lin, Mairal and Harchaoui 2015).

    At small lambda steps at one row after the other get on slowly. Sweeps ascend the dual of P + kappa/2 |w - y|^2, which is far better
    conditioned; its point is w = (lambda w(alpha) + kappa y) / (lambda + kappa), w(alpha) as in (1). After `ROUND_SWEEPS` the centre y
    moves to w and on by a share of the way that w has come since the round before. alpha stays in its simplices, so that D(alpha) is a
    bound whatever the centre is, and where y is the optimum w(alpha) is w.
    """

    def __init__(self, lam: float, theta: Array) -> None:
        self.lam, self.kappa = lam, PULL * lam
        root = (1.0 + PULL) ** -0.5
        self.further = (1.0 - root) / (1.0 + root)
        self.theta, self.centre, self.before = theta, theta.copy(), theta.copy()

    def run(self, planes: CuttingPlanes, visits: Visits, most: int, limit: Callable[[], str]) -> tuple[int, Array | None]:
        """Make up to ``most`` sweeps while ``limit`` names none; return how many, and the mean of w over the last round, (K, d)."""
        total, rounds, made = np.zeros_like(self.theta), 0, 0
        while made < most and not limit():
            visits.sweep(planes, self.lam + self.kappa, self.theta)
            planes.forget()
            made += 1
            if made > most - ROUND_SWEEPS:
                total, rounds = total + self.theta, rounds + 1
            if made % ROUND_SWEEPS == 0:
                centre = self.theta + self.further * (self.theta - self.before)
                self.before = self.theta.copy()
                self.theta += self.kappa / (self.lam + self.kappa) * (centre - self.centre)
                self.centre = centre
        return made, np.ascontiguousarray(total[:, : visits.problem.K].T / rounds) if rounds else None


class CuttingPlaneFit(NamedTuple):
    """The w of a training, its dual point, and what they prove."""

    W: Array
    shared: Array
    planes: Any  # `CuttingPlanes`, or a dual point of another form
    primal: float  # an upper bound of P at w
    dual: float
    oracle_gap: float  # the part of the gap that is owed to the searches
    calls: int  # of oracles
    passes: float  # searches of all examples
    stopped: str
    seconds: float
    targets: Array | None = None  # as in `Cuts`, at w
    solver: str = "planes"


class _CuttingPlaneTraining:
    """The state of `fit_cutting_planes`: planes, the w that they give, the best w searched, and what was spent."""

    def __init__(self, problem: CuttingPlaneProblem, lam: float, limits: Limits, seed: int, start: CuttingPlanes | None) -> None:
        self.began = time.perf_counter()
        self.problem, self.lam, self.limits = problem, lam, limits
        self.visits, self.random = Visits(problem, seed), np.random.default_rng([seed, 1])
        self.planes = problem.no_planes()
        if start is not None:
            self.planes.begin(start, lam)
        self.calls, self.passes = 0, 0
        self.take()
        self.best: tuple[float, Array, Array, Cuts] | None = None
        self.by_rows = None if problem.turns is None else RowSweeps(lam, self.visits.theta(self.W))

    def take(self) -> None:
        """Take the w of the planes, and their dual value."""
        self.W, self.shared = self.planes.weights(self.lam)
        self.dual = self.planes.dual(self.lam, self.W, self.shared)

    def limit(self) -> str:
        """Return the limit that leaves no room for another pass; empty if there is some."""
        return self.limits.spent(self.passes + 1, self.began)

    def look(self) -> str:
        """Search all examples at w; return why the training ends, empty if it goes on."""
        problem, tol = self.problem, self.limits.tol
        self.cuts = cuts = problem.all_cuts(self.W, self.shared)
        self.calls, self.passes = self.calls + cuts.calls, self.passes + 1
        primal = problem.primal(self.lam, self.W, self.shared, cuts)
        if self.best is None or primal < self.best[0]:
            self.best = (primal, self.W, self.shared, cuts)
        self.gap = self.best[0] - self.dual
        if self.gap <= tol * abs(self.best[0]):
            return "converged"
        if stopped := self.limit():
            return stopped
        # what planes can still close: where searches are exact no less than the whole gap
        self.closable = primal - float(problem.share @ (cuts.upper - cuts.value)) - self.dual
        return "inexact_search" if self.closable <= problem.left_open * tol * abs(primal) else ""

    def sweep_rows(self, by_rows: RowSweeps) -> None:
        """Make sweeps by rows; the next look is at the mean of their last round."""
        most = int(min(LOOK_SWEEPS, self.limits.max_passes - self.passes - 1))  # the last pass is a look
        made, mean = by_rows.run(self.planes, self.visits, max(most, 0), self.limit)
        self.calls, self.passes = self.calls + made * self.problem.n, self.passes + made
        self.planes.feasible()
        self.take()
        if mean is not None:
            self.W = mean

    def ascend(self) -> None:
        """Store the violated planes of the last look, and ascend D over all stored ones, where searches cost much by blocks."""
        problem, planes, enough = self.problem, self.planes, INNER_SHARE * min(self.gap, self.closable)
        if problem.blocks == 1 or len(planes.alpha):  # worst labels at w = 0 are full, and their planes large where there are many pairs
            highest = np.zeros(problem.n)
            np.maximum.at(highest, planes.owner, planes.values(self.W, self.shared))
            planes.add_violated(self.cuts, np.arange(problem.n), highest)
            self.visits.run(planes, self.lam, self.W, self.shared, enough)
        planes.forget()
        planes.feasible()
        for _ in range(SWEEPS if problem.blocks > 1 else 0):
            if self.passes + 2 > self.limits.max_passes or self.limit():  # the last pass is a look
                break
            if self.sweep_blocks(enough) <= SWEPT_SHARE * self.closable:
                break
        self.take()

    def sweep_blocks(self, enough: float) -> float:
        """Search the examples by blocks, each at the w that the planes of those before it gave, and ascend D after each block.

        Returns the gap that planes can close, summed over examples each at its own w: it says when a look at all of them is worth its cost.
        """
        problem, planes, gap = self.problem, self.planes, 0.0
        for block in np.array_split(self.random.permutation(problem.n), min(problem.blocks, problem.n)):
            block.sort()
            W, shared = planes.weights(self.lam)
            cuts = problem.search(np.ascontiguousarray(problem.X[rows_of(problem.start, block)] @ W.T), shared, block)
            which = np.flatnonzero(np.isin(planes.owner, block))
            values, example = planes.values(W, shared, which), np.searchsorted(block, planes.owner[which])
            mean = np.bincount(example, weights=planes.alpha[which] * values, minlength=len(block))
            highest = np.zeros(len(block))
            np.maximum.at(highest, example, values)
            gap, self.calls = gap + float(problem.share[block] @ (cuts.value - mean)), self.calls + cuts.calls
            planes.add_violated(cuts, block, highest)
            self.visits.run(planes, self.lam, W, shared, enough, BLOCK_PASSES)
            planes.feasible()
        planes.forget()
        self.passes += 1
        return gap


def fit_cutting_planes(
    problem: CuttingPlaneProblem, lam: float, limits: Limits, seed: int = 0, start: CuttingPlanes | None = None
) -> CuttingPlaneFit:
    """Minimise P by cutting planes: search every example, store the plane where it is violated, ascend D by pairwise steps.

    The fit ends at a gap of ``limits.tol`` times the primal, or once what is left of the gap is the searches' alone. The w returned is the
    best that was searched, with the last dual point. ``start`` are planes of another lambda to begin with, which are not changed.
    """
    fit = _CuttingPlaneTraining(problem, lam, limits, seed, start)
    while not (stopped := fit.look()):
        if fit.by_rows is not None and fit.best is not None and fit.gap > FINE * abs(fit.best[0]):
            fit.sweep_rows(fit.by_rows)
        else:
            fit.ascend()
    assert fit.best is not None
    primal, W, shared, cuts = fit.best
    oracle_gap, seconds = float(problem.share @ (cuts.upper - cuts.value)), time.perf_counter() - fit.began
    return CuttingPlaneFit(W, shared, fit.planes, primal, fit.dual, oracle_gap, fit.calls, fit.passes, stopped, seconds, cuts.targets)
