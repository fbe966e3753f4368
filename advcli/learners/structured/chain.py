"""Linear chains: rows that follow each other, such as the tokens of a sentence, learned and predicted together."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight

from ...certificate import judge
from ...compiled import Rows, aligned_zeros, compiled_rows, kernels
from ...errors import ConfigError, DataError, IncompatibleError
from ...groups import Starts, group_starts, rows_of
from ...outputs.chain import best_paths, chain_game
from ...outputs.psi import SURROGATES, Psi
from ...stored import Entries
from ..base import Array, Bound, Labels, Options, View, one_of, own_options, read_grid, register, seed_of
from .base import MAXMIN, StructuredLearner
from .chain_steps import CHAINS_BY_ROWS
from .planes import Cuts, Positions, Structure
from .row_steps import learn_by_rows

KINDS: Mapping[str, int] = {"margin": 0, "slack": 1, "scaling": 1, "log": 2, "prob": 3, MAXMIN: 4}
"""Surrogates of chains by the number that compiled loops have for them."""

RULES = ("potentials", "predictor")
ROOM = 16  # sequences of a chain that there is room for at first
MOST_GRAM = 250_000_000  # numbers of all Gram matrices: 2 GB
QUICK = 9  # passes over the chains with the larger gaps between two passes over all
STEPS = 10  # pairwise steps of one visit
STALLED = 30  # rounds without a better bound after which a fit ends
GAME_STALLED = 1000  # of the max-min margin, whose steps are proximal: bounds rest for long until it is settled which states tie
WEAK = 2e-3  # lambda n / |x|^2 below which a fit comes down to lambda from larger ones
WAY_FACTOR = 10.0  # from one lambda to the next on that way
WAY_TOL = 3e-2  # gap at which the next is taken


@dataclass(frozen=True)
class GroupedRows:
    """Mapped rows (n, d) of several chains, chain s being rows start[s]:start[s + 1]."""

    X: Any
    start: Starts


class ChainStructure(Structure):
    """Chains with their true labels, as `learn_planes` sees them: the shared weights are those of transitions, K x K row by row.

    Its cutting planes train chains in plain NumPy; `ChainTrainer` is the compiled way that fits take.
    """

    def __init__(self, X: Any, y: Labels, start: Starts, share: Array, psi: Psi, K: int) -> None:
        self.X, self.y, self.start, self.share, self.psi = X, y, start, share, psi
        self.K, self.G = K, K * K
        self.kind, self.beta = KINDS[psi.name], float(getattr(psi, "beta", 0.0))

    def search(self, U: Array, shared: Array, examples: Positions) -> Cuts:
        """Return the worst sequence of each chain: by Viterbi's algorithm where psi is h + g, else from its levels."""
        sizes = np.diff(self.start)[examples]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        y = np.concatenate([self.y[self.start[s] : self.start[s + 1]] for s in examples])
        value, labels, slope, constant = survey(self.kind, self.beta, U, shared.reshape(self.K, self.K), y, start, wrong(y, self.K))
        owner = np.repeat(np.arange(len(sizes)), sizes)
        place = self.G + (np.arange(len(y)) - start[owner]) * self.K
        inner = np.flatnonzero(owner[1:] == owner[:-1])
        entries = [
            (owner, place + labels, slope[owner]),
            (owner, place + y, -slope[owner]),
            (owner[inner], labels[inner] * self.K + labels[inner + 1], slope[owner[inner]]),
            (owner[inner], y[inner] * self.K + y[inner + 1], -slope[owner[inner]]),
        ]
        row, column, entry = (np.concatenate(each) for each in zip(*entries, strict=True))
        parts = sparse.csr_array((entry, (row, column)), shape=(len(sizes), self.width))
        parts.sum_duplicates()
        return Cuts(parts, constant, value, value, len(sizes))


def wrong(y: Labels, K: int) -> Array:
    """Return 1 where a state is not the true one, shape (n, K)."""
    cost = np.ones((len(y), K))
    cost[np.arange(len(y)), y] = 0.0
    return cost


def survey(
    kind: int, beta: float, U: Array, A: Array, y: Labels, start: Starts, cost: Array
) -> tuple[Array, NDArray[np.int16], Array, Array]:
    """Return S of every chain (S,), its worst sequence (n,), and the scale and the offset of that plane (S,)."""
    S = len(start) - 1
    value, labels, slope, constant = np.empty(S), np.empty(len(y), dtype=np.int16), np.empty(S), np.empty(S)
    kernels.chain.survey(kind, beta, U, A, y, start, cost, value, labels, slope, constant)
    return value, labels, slope, constant


class ChainMixture(NamedTuple):
    """Stored sequences of every chain with their weights: a dual point.

    Attributes
    ----------
    held : ndarray of int16 (n P,)
        Labels: sequence p of chain s begins at start[s] P + p T, T the number of its rows.
    alpha, scale : ndarray (S, P)
        Weights, and the scales of the planes; sequence 0 is the truth.
    used : ndarray of int32 (S,)
        How many there are.
    """

    held: NDArray[np.int16]
    alpha: Array
    scale: Array
    used: NDArray[np.int32]


class ChainFit(NamedTuple):
    """What training returns: weights W (K, d) and A (K, K), what P is at most there, and the best dual value with its point.

    ``outside`` is how infeasible the point is, stored sequences or mean planes; ``targets`` (n, K) are those of the max-min margin that
    bound P.
    """

    W: Array
    A: Array
    primal: float
    dual: float
    outside: float
    passes: float
    calls: int
    stopped: str
    mixture: Any
    targets: Array | None


class ChainTrainer:
    """Stored sequences of chains with their weights, and compiled visits that move them.

    Minimises lambda/2 |w|^2 + sum_s share_s S_s(w) from a mixture of stored sequences of every chain. The max-min margin learns targets p
    at every position beside w: any p bounds P from above and any mixture from below.
    """

    def __init__(self, X: Any, y: Labels, start: Starts, share: Array, K: int, surrogate: str, beta: float) -> None:
        self.X: Any = X
        self.y, self.start, self.share, self.K = y, start, share, K
        self.kind, self.beta = KINDS[surrogate], beta
        self.added = surrogate in ("margin", MAXMIN)  # the loss is a sum over positions
        self.rows: Rows = compiled_rows(X)
        self.transposed: Any = sparse.csr_array(self.X.T) if sparse.issparse(X) else np.ascontiguousarray(X.T)
        sizes = np.diff(start)
        total = int((sizes.astype(np.float64) ** 2).sum())
        if total > MOST_GRAM:
            raise DataError(
                f"sequences of up to {sizes.max()} rows need {total} numbers for products of their rows, more than {MOST_GRAM}; split the "
                "longest"
            )
        self.grams = np.empty(total)
        kernels.chain.gram(*self.rows, start, self.grams)
        S = len(sizes)
        self.held = self._tiled(ROOM)
        self.alpha, self.scale, self.offset = np.zeros((S, ROOM)), np.zeros((S, ROOM)), np.zeros((S, ROOM))
        self.alpha[:, 0] = 1.0  # the truth
        self.scale[:, 0] = float(self.added)
        self.used = np.ones(S, dtype=np.int32)
        self.cost = wrong(y, K)
        self.shares = 1.0 - self.cost if surrogate == MAXMIN else np.empty((0, K))
        self.theta, self.A = aligned_zeros((self.rows.d, kernels.chain.width(K))), np.zeros((K, kernels.chain.width(K)))
        self.gap = np.full(S, np.inf)
        square = self.grams[np.concatenate([[0], np.cumsum(sizes**2)])[:-1]]
        self.unit = float(np.mean(square)) or 1.0  # |x|^2

    def _tiled(self, room: int) -> NDArray[np.int16]:
        held = np.empty(len(self.y) * room, dtype=np.int16)
        for first, last in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            held[first * room : last * room] = np.tile(self.y[first:last], room)
        return held

    def widen(self) -> None:
        """Make room for twice as many sequences of every chain."""
        room = self.alpha.shape[1]
        held = self._tiled(2 * room)
        for first, last in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            held[2 * first * room : (first + last) * room] = self.held[first * room : last * room]
        self.held = held
        self.alpha, self.scale, self.offset = (np.pad(each, ((0, 0), (0, room))) for each in (self.alpha, self.scale, self.offset))

    def mixture(self) -> tuple[Array, Array]:
        """Return sum_s share_s a_s by position (n, K) and by transition (K, K)."""
        unary, pair = np.zeros((len(self.y), self.K)), np.zeros((self.K, self.K))
        scale = self.scale * self.share[:, None]
        kernels.chain.mixture(self.start, self.y, self.held, self.alpha, scale, self.used, unary, pair)
        return unary, pair

    def weights(self, lam: float) -> tuple[Array, Array]:
        """Return W (K, d) and A (K, K) of the mixture."""
        unary, pair = self.mixture()
        return np.ascontiguousarray((self.transposed @ unary).T) / -lam, pair / -lam

    def take(self, lam: float) -> tuple[Array, Array]:
        """Bring alpha into its simplices and the weights of the visits to the mixture's; return these weights."""
        np.maximum(self.alpha, 0.0, out=self.alpha)
        self.alpha /= self.alpha.sum(axis=1, keepdims=True)
        W, A = self.weights(lam)
        self.theta[:, : self.K], self.A[:, : self.K] = W.T, A
        if self.kind == KINDS[MAXMIN]:
            self.shares = self.states()
        return W, A

    def states(self) -> Array:
        """Return the shares of the states at every position (n, K)."""
        unary, pair = np.zeros((len(self.y), self.K)), np.zeros((self.K, self.K))
        kernels.chain.mixture(self.start, self.y, self.held, self.alpha, self.scale, self.used, unary, pair)
        unary[np.arange(len(self.y)), self.y] += 1.0
        return np.maximum(unary, 0.0)

    def stored(self) -> ChainMixture:
        """Return the stored sequences as they are now."""
        return ChainMixture(self.held.copy(), self.alpha.copy(), self.scale.copy(), self.used.copy())

    def targets(self) -> Array | None:
        """Return the targets p (n, K) as they are now; None for surrogates that have none."""
        return 1.0 - self.cost if self.kind == KINDS[MAXMIN] else None

    def dual(self, lam: float, W: Array, A: Array) -> float:
        """Return D of the mixture, whose weights these are."""
        if self.kind == KINDS[MAXMIN]:
            loss = np.add.reduceat(1.0 - self.shares.max(axis=1), self.start[:-1])
        elif self.added:
            loss = np.add.reduceat((self.states() * wrong(self.y, self.K)).sum(axis=1), self.start[:-1])
        else:
            loss = (self.alpha * self.offset).sum(axis=1)
        return float(self.share @ loss) - 0.5 * lam * squared(W, A)

    def primal(self, lam: float, W: Array, A: Array) -> float:
        """Return P at weights, of the max-min margin its bound by the present targets."""
        U = np.ascontiguousarray(self.X @ W.T)
        value = survey(self.kind, self.beta, U, A, self.y, self.start, self.cost)[0]
        return 0.5 * lam * squared(W, A) + float(self.share @ value)

    def sweep(self, lam: float, skip: float, seed: int) -> int:
        """Visit every chain whose gap is above ``skip`` once; return how many had no room."""
        with np.errstate(divide="ignore"):
            strength = lam / self.share
        delta = 2.0 * lam / float(self.share.mean()) / self.unit
        return int(
            kernels.chain.sweep(
                self.kind,
                self.beta,
                *self.rows,
                self.start,
                self.y,
                self.grams,
                self.theta,
                self.A,
                self.held,
                self.alpha,
                self.scale,
                self.offset,
                self.used,
                self.cost,
                self.shares,
                strength,
                delta,
                skip,
                self.gap,
                STEPS,
                1,
                seed,
            )
        )

    def way(self, lam: float) -> list[float]:
        """Return larger lambdas, falling, through which a fit without stored sequences comes down to a weak one; else none.

        From nothing the first steps at a weak lambda make weights so large that hardly a later sequence is of use at the optimum.
        """
        found: list[float] = []
        least = WEAK * float(self.share.mean()) * self.unit
        while (self.used == 1).all() and lam < least:
            lam *= WAY_FACTOR
            found.insert(0, lam)
        return found

    def learn(self, lam: float, tol: float, max_passes: float, seed: int, max_seconds: float = math.inf) -> ChainFit:
        """Minimise P until the best bounds on both sides are within ``tol``; its passes and calls are those of the whole `way`."""
        began, passes, calls = time.perf_counter(), 0.0, 0
        for larger in self.way(lam):
            left = max_seconds - (time.perf_counter() - began)
            fit = self._learn(larger, max(tol, WAY_TOL), max_passes - passes, seed, left)
            passes, calls = passes + fit.passes, calls + fit.calls
        fit = self._learn(lam, tol, max_passes - passes, seed, max_seconds - (time.perf_counter() - began))
        return fit._replace(passes=passes + fit.passes, calls=calls + fit.calls)

    def _learn(self, lam: float, tol: float, max_passes: float, seed: int, max_seconds: float) -> ChainFit:
        began = time.perf_counter()
        random, S = np.random.default_rng(seed), len(self.share)
        self.gap[:] = np.where(self.share > 0.0, np.inf, -np.inf)
        W, A = self.take(lam)
        bounds = self.primal(lam, W, A), self.dual(lam, W, A), self.outside()
        best = ChainFit(W, A, *bounds, 1.0, S, "converged", self.stored(), self.targets())
        dual, passes, calls, idle = best.dual, 1.0, S, 0
        most_idle = GAME_STALLED if self.kind == KINDS[MAXMIN] else STALLED
        while True:
            gap = best.primal - dual
            late = time.perf_counter() - began >= max_seconds
            spent = passes + 2.0 > max_passes  # a sweep and the values after it
            if gap <= tol * abs(best.primal) or spent or late or idle >= most_idle:
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
            W, A = self.take(lam)
            primal, now = self.primal(lam, W, A), self.dual(lam, W, A)
            passes, calls = passes + 1.0, calls + S
            idle = 0 if now > dual + 1e-3 * tol * abs(dual) or primal < best.primal else idle + 1
            if now > dual:
                dual, best = now, best._replace(outside=self.outside(), mixture=self.stored())
            if primal < best.primal:
                best = best._replace(W=W, A=A, primal=primal, targets=self.targets())

    def outside(self) -> float:
        """Return how far alpha lies outside its simplices."""
        return float(max(0.0, -self.alpha.min(), np.abs(self.alpha.sum(axis=1) - 1.0).max()))


def squared(W: Array, A: Array) -> float:
    """Return |w|^2."""
    return float(np.vdot(W, W) + np.vdot(A, A))


def _merged(X: Any, y: Labels, start: Starts, weights: Array) -> tuple[Positions, Starts, Array, Positions]:
    """Return rows (n',) of the sequences that differ, sorted by their content, where each begins, and the weight of all that equal it.

    The last array holds the new number of every sequence, -1 for those of weight 0, which are left out. The order of the data does not
    matter then, nor whether a sequence has weight 2 or is there twice.
    """
    found: dict[bytes, tuple[int, float]] = {}
    keys: list[bytes | None] = [None] * (len(start) - 1)
    parts = (X.indptr, X.indices, X.data) if hasattr(X, "indptr") else None
    for s, (first, last) in enumerate(itertools.pairwise(start.tolist())):
        if weights[s] == 0.0:
            continue
        if parts is None:
            content = X[first:last].tobytes()
        else:
            pointer, columns, values = parts
            filled = slice(pointer[first], pointer[last])
            sizes = np.diff(pointer[first : last + 1])
            content = sizes.tobytes() + columns[filled].tobytes() + values[filled].tobytes()
        keys[s] = key = y[first:last].tobytes() + content
        at, before = found.get(key, (s, 0.0))
        found[key] = (at, before + float(weights[s]))
    order = {key: at for at, key in enumerate(sorted(found))}
    became = np.array([-1 if key is None else order[key] for key in keys], dtype=np.intp)
    chosen = np.array([found[key][0] for key in order], dtype=np.intp)
    sizes = np.diff(start)[chosen]
    merged = np.array([found[key][1] for key in order])
    return rows_of(start, chosen), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), merged, became


@register("chain")
@dataclass(kw_only=True, eq=False, repr=False)
class ChainClassifier(StructuredLearner):
    """Label sequences, scored by labels of rows and by labels that follow each other, from a surrogate of the number of wrong labels.

    f(y) = sum_t w_{y_t}.x_t + sum_t A[y_t, y_{t+1}] predicts the sequence of the largest score (choi2018, chapter 3). The fit minimises
    lambda/2 (|W|^2 + |A|^2) + mean over sequences of max over y of psi(f(y) - f(y_i), number of labels that differ), lambda = 1/(n C) for
    n sequences, or the max-min margin (Nowak-Vila, Bach & Rudi 2020), the adversarial zero-one loss of sequences: there the loss of a
    sequence is that under a predictor p_t of every position, and p is the best against all mixtures of sequences.

    Parameters
    ----------
    surrogate : {"margin", "slack", "scaling", "log", "prob", "maxmin"}
        psi (`advcli.outputs.psi`), or the max-min margin.
    beta, C, lam, tol, fit_intercept, warm_start, verbose, random_state
        As in `StructuredLearner`.
    rule : {"potentials", "predictor"}
        What is predicted: the sequence of the largest f, or, for the max-min margin, at every row the label of the largest p_t in the game
        at new scores.
    search : {"auto", "levels"}
        How the worst sequence is found: exactly, by Viterbi's algorithm where psi is a sum over rows and else over (distance, state).
    training : {"planes", "bcfw", "sgd"}
        How P is minimised: by stored sequences of every chain; with one mean plane of each by block-coordinate Frank-Wolfe, or by
        stochastic subgradients. All are certified; the max-min margin has ``planes`` alone.
    max_passes : float
        Limit of passes over all sequences; beyond, a fit warns (`NotConvergedWarning`) and keeps its certificate.
    max_seconds : float
        Limit of the time of a fit, looked at between passes; beyond, as with ``max_passes``.
    features, features_options, n_classes
        As in `UMAClassifier`.

    Attributes
    ----------
    coef_ : ndarray (K, d)
        W.
    shared_ : ndarray (K K,)
        A, row by row: a label and the next.
    certificate_, oracle_gap_, oracle_calls_
        As in `StructuredLearner`; the searches are exact.

    Notes
    -----
    ``fit(X, y, groups=...)`` and ``predict(X, groups=...)`` take the sequence of every row; the rows of a sequence stand together. Without
    groups every row is a sequence of its own.
    """

    has_groups: ClassVar[bool] = True

    rule: str = "potentials"
    training: str = "planes"

    @classmethod
    def check(cls, loss: Options, features: Options, solver: Options, ordered: bool, n_classes: int | None) -> None:
        """Refuse what every learner of rows does, and options without meaning, before any work."""
        super().check(loss, features, solver, ordered, n_classes)
        searched = read_grid(loss)
        cls(**{name: value for name, value in own_options(loss).items() if name not in searched}).check_parameters()

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""
        if self.surrogate in SURROGATES and self.surrogate not in KINDS:
            needs = "sets of labels" if self.surrogate == "f1" else "SGD, as it is not convex"
            raise IncompatibleError(f"loss.surrogate={self.surrogate}", needs, f"loss=chain has {', '.join(KINDS)}")
        one_of("loss.surrogate", self.surrogate, KINDS)
        one_of("loss.search", self.search, ("auto", "levels"))
        self.check_rule(self.rule, RULES)
        if one_of("loss.training", self.training, ("planes", *CHAINS_BY_ROWS)) != "planes" and self.surrogate == MAXMIN:
            needs = "targets that are learned beside the weights"
            raise IncompatibleError(f"loss.surrogate={MAXMIN}", needs, f"loss.training={self.training} has none: choose planes")
        if self.surrogate != MAXMIN:
            super().check_parameters()
            return
        if self.beta is not None:
            raise ConfigError(f"loss.beta={self.beta} is an option of loss.surrogate=scaling; {MAXMIN} has none")
        self.check_common()

    def structure(self, X: Any, y: Any, share: Array, psi: Psi) -> ChainStructure:
        """Return every row as a chain of its own; `fit_bound` knows which rows go together."""
        return ChainStructure(X, y, np.arange(X.shape[0] + 1, dtype=np.int64), share, psi, len(self.classes_))

    # ---- fitting --------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None, start: Any = None, groups: Any = None) -> Self:
        """Fit to rows X (n, d), dense or sparse, labels y (n,) and the sequence of every row, groups (n,); None: each row is one.

        ``sample_weight`` (n,) counts how often sequences occur, the same number for all rows of one. ``start`` is a learner fitted to the
        same rows at another C or lambda, from whose stored sequences the fit begins.
        """
        self._fitting(X, y, {"sample_weight": sample_weight, "groups": groups}, start)
        return self

    def _bind_given(self, X: Any, y: Any, metadata: Mapping[str, Any]) -> Bound:
        return self.bind_groups(X, y, **metadata)

    def bind(self, X: Any, y: Any, sample_weight: Any = None) -> Bound:
        """Return rows and labels as fits take them, each row a sequence."""
        return self.bind_groups(X, y, None, sample_weight)

    def bind_groups(self, X: Any, y: Any, groups: Any, sample_weight: Any = None) -> Bound:
        """Return rows, labels and the sequence of each row as fits take them.

        Raises
        ------
        DataError
            A group that goes on after another has begun, or weights that differ within one.
        """
        bound = super().bind(X, y, None)
        n = bound.own["X"].shape[0]
        start = group_starts(np.arange(n) if groups is None else groups, n)
        weights = np.ones(n) if sample_weight is None else _check_sample_weight(sample_weight, bound.own["X"], ensure_non_negative=True)
        first = np.repeat(weights[start[:-1]], np.diff(start))
        if not np.array_equal(first, weights):
            row = int(np.flatnonzero(first != weights)[0])
            raise DataError(f"row {row + 1} has another weight than the first of its sequence; sequences have weights, not rows")
        if not weights.any():
            raise ConfigError("sample_weight is zero for every row")
        rows, short, merged, became = _merged(bound.own["X"], bound.codes, start, weights[start[:-1]])
        owner = became[np.repeat(np.arange(len(became)), np.diff(start))]
        place = np.where(owner < 0, -1, short[owner] + np.arange(n) - np.repeat(start[:-1], np.diff(start)))  # of each row among those kept
        own = {**bound.own, "X": bound.own["X"][rows], "start": short, "weights": merged, "became": became, "place": place}
        return replace(bound, codes=np.ascontiguousarray(bound.codes[rows]), own=own)

    def fit_bound(self, bound: Bound, start: Any = None) -> Self:
        """Fit to bound rows, from the stored sequences of ``start`` where it was fitted to the same ones with the same surrogate."""
        self._take(bound)
        self.check_parameters()
        began = time.perf_counter()
        weights = bound.own["weights"]
        self.remarks_ = ()
        self.lam_ = float(self.lam or 1.0 / (self.C * weights.sum()))
        share, trainer = weights / weights.sum(), None
        if self.training != "planes":
            fit = self._learn_by_rows(bound, share, start)
        else:
            trainer = getattr(start, "trainer_", None)
            if trainer is None or start.trained_on_ is not bound or (start.surrogate, start.beta) != (self.surrogate, self.beta):
                beta = 1.0 if self.surrogate == "slack" else 0.5 if self.beta is None else float(self.beta)
                trainer = ChainTrainer(bound.own["X"], bound.codes, bound.own["start"], share, len(self.classes_), self.surrogate, beta)
            fit = trainer.learn(self.lam_, float(self.tol), float(self.max_passes), seed_of(self.random_state), float(self.max_seconds))
        self.trainer_, self.trained_on_ = trainer, bound
        self.coef_, self.shared_ = fit.W, fit.A.ravel()
        self.dual_, self.trained_targets_ = fit.mixture, fit.targets
        self.oracle_gap_, self.oracle_calls_, self.n_iter_ = 0.0, fit.calls, max(1, math.ceil(fit.passes))
        self.certificate_ = judge(
            fit.primal,
            fit.dual,
            float(self.tol),
            outside=fit.outside,
            passes=fit.passes,
            status=fit.stopped,
            solver="pairwise" if self.training == "planes" else self.training,
            seconds=time.perf_counter() - began,
        )
        self._warn(self.certificate_)
        return self

    def stored_planes(self) -> Array | None:
        """Return the planes with a weight one behind the other: sequence, alpha, h of the tangent, and the labels of its rows.

        None for training by rows, whose planes are mixtures.
        """
        if self.training != "planes":
            return None
        bound, (held, alpha, scale, used) = self.trained_on_, self.dual_
        start, y, room = bound.own["start"], bound.codes, alpha.shape[1]
        planes: list[list[Array]] = []
        for s, (first, last) in enumerate(itertools.pairwise(start.tolist())):
            own = held[first * room : last * room].reshape(room, -1)[: used[s]]
            wrong = (own != y[first:last]).sum(axis=1)
            some = np.flatnonzero((alpha[s, : used[s]] > 0.0) & (wrong > 0) & (scale[s, : used[s]] > 0.0))
            # the max-min margin has no tangents, and the same scale as margin rescaling
            h = np.zeros(len(some)) if self.surrogate == MAXMIN else self.psi().at_slope(scale[s, some], wrong[some].astype(np.float64))
            planes.append([np.concatenate([[s, alpha[s, p], margin], own[p]]) for p, margin in zip(some, h, strict=True)])
        found = [np.concatenate([[s], each[1:]]) for s, b in enumerate(bound.own["became"]) if b >= 0 for each in planes[b]]
        return np.concatenate([np.zeros(0), *found])

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the weights and the stored planes, and the targets that bound the max-min margin, by rows."""
        found = super().proof(X, codes, weight)
        if self.trained_targets_ is not None:
            own = self.trained_on_.own
            p = np.zeros((len(own["place"]), self.trained_targets_.shape[1]))  # of sequences of weight 0 none are kept
            p[own["place"] >= 0] = self.trained_targets_[own["place"][own["place"] >= 0]]
            found["predictor"] = p
        return found

    def _learn_by_rows(self, bound: Bound, share: Array, start: Any) -> ChainFit:
        """Train with one mean plane of each chain, from that of ``start`` where it was trained alike."""
        structure = ChainStructure(bound.own["X"], bound.codes, bound.own["start"], share, self.psi(), len(self.classes_))
        same = start is not None and getattr(start, "trained_on_", None) is bound and type(start) is type(self)
        same = same and (start.surrogate, start.beta, start.training) == (self.surrogate, self.beta, self.training)
        seed, kind, before = seed_of(self.random_state), CHAINS_BY_ROWS[self.training], start.dual_ if same else None
        fit = learn_by_rows(kind, structure, self.lam_, self.tol, self.max_passes, seed, True, self.max_seconds, before)
        found = (fit.W, fit.shared, fit.primal, fit.dual, fit.planes.outside(), float(fit.passes), fit.calls, fit.stopped, fit.planes)
        return ChainFit(*found, targets=None)

    # ---- prediction -----------------------------------------------------------------------------------------------
    @property
    def transitions_(self) -> Array:
        """A (K, K): the score of a label and the next."""
        K = len(self.classes_)
        return np.ascontiguousarray(self.shared_.reshape(K, K))

    def look(self, X: Any) -> View:
        """Return new rows X (n, d) as this fit looks at them, each row a sequence."""
        return X if isinstance(X, View) else self.look_groups(X, None)

    def look_groups(self, X: Any, groups: Any) -> View:
        """Return new rows X (n, d) with the sequence of each (n,) as this fit looks at them; `predict` and `potentials` take it for X."""
        mapped = super().look(X).at
        n = mapped.shape[0]
        return View(GroupedRows(mapped, group_starts(np.arange(n) if groups is None else groups, n)))

    def _scores(self, mapped: GroupedRows) -> Array:
        return super()._scores(mapped.X)

    def predict_codes(self, X: Any, groups: Any = None) -> Labels:
        """Return predictions as codes (n,), by the rule."""
        view = self.look(X) if groups is None else self.look_groups(X, groups)
        if self.rule == "predictor":
            return np.argmax(self.targets(view), axis=1).astype(np.intp)
        return best_paths(self.potentials(view), self.transitions_, view.at.start)[0]

    def predict(self, X: Any, groups: Any = None) -> NDArray[Any]:
        """Return the predicted labels of rows X (n, d) with the sequence of each, groups (n,); None: each row is one."""
        return self.predictions_[self.predict_codes(X, groups)]

    def targets(self, X: Any, groups: Any = None) -> Array:
        """Return the predictor's distributions p (n, K) in the max-min margin's game at rows X."""
        view = self.look(X) if groups is None else self.look_groups(X, groups)
        U, A = self.potentials(view), self.transitions_
        return np.concatenate([chain_game(U[a:b], A).targets for a, b in itertools.pairwise(view.at.start)])

    # ---- saving ---------------------------------------------------------------------------------------------------
    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model."""
        self.shared_ = attributes.array("shared_", (len(self.classes_) ** 2,))
        super().restore(attributes)
