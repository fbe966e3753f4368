"""Training over dependency trees: sentences, stored trees with their trainer, and steps at one sentence after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.compiled import kernels
from ...core.groups import Starts
from ...core.typing import Array
from ...solvers.cutting_planes import Cuts, CuttingPlaneProblem, Positions, squared
from .frank_wolfe import ExampleSteps, FrankWolfe, Gradients
from .stored_planes import KINDS, STEPS, StoredPlaneTrainer

Heads = NDArray[np.int32]

SEARCH_SHARE = 0.5  # part of the tolerance that the search of one sentence may leave open; most leave far less
LEFT_OPEN = 0.1  # part of the tolerance that all may leave open; where they leave more, each has to leave less
UNIT = 34.0  # squared norm of an arc's features, apart from the tags between its ends
NO_COSTS = np.zeros(0)


class Sentences:
    """Words and tags of sentences by their codes, sentence s being rows start[s]:start[s + 1], for the compiled loops."""

    def __init__(self, X: Array, start: Starts) -> None:
        self.words, self.tags = (np.ascontiguousarray(X[:, column]).astype(np.int64) for column in (0, 1))
        self.start = np.asarray(start, dtype=np.int64)
        self.arrays = self.words, self.tags, self.start

    @property
    def numbers(self) -> int:
        """How many scores all arcs have."""
        return int(((np.diff(self.start) + 1) ** 2).sum())

    def best(self, theta: Array) -> tuple[Array, Heads]:
        """Return the largest score of a tree of every sentence (S,), and the heads of its words (n,)."""
        value, heads = np.empty(len(self.start) - 1), np.empty(len(self.words), dtype=np.int32)
        kernels.parser.best(*self.arrays, theta, value, heads)
        return value, heads

    def scores(self, theta: Array) -> list[Array]:
        """Return the scores of the arcs of every sentence, (n + 1, n + 1): row the head, 0 the root, column the word."""
        out = np.empty(self.numbers)
        kernels.parser.scores(*self.arrays, theta, out)
        sizes = np.diff(self.start) + 1
        return [each.reshape(m, m) for each, m in zip(np.split(out, np.cumsum(sizes**2)[:-1]), sizes.tolist(), strict=True)]

    def weights_of(self, parts: Array, share: Array, size: int) -> Array:
        """Return the sum over sentences of ``share`` (S,) times the features of arcs with coefficients ``parts``."""
        theta = np.zeros(size)
        kernels.parser.arc_mixture(*self.arrays, parts, share, theta)
        return theta


def nearest_projective(heads: Heads, start: Starts) -> tuple[Heads, Array]:
    """Return the heads (n,) of projective trees that share the most arcs with the given ones, and how many they share, (s,)."""
    gold = []
    for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        scores = np.zeros((last - first + 1, last - first + 1))
        scores[heads[first:last], np.arange(1, last - first + 1)] = 1.0
        gold.append(scores.ravel())
    kept, nearest = np.empty(len(start) - 1), np.empty(len(heads), dtype=np.int32)
    kernels.trees.best(np.concatenate(gold), np.asarray(start, dtype=np.int64), kept, nearest)
    return nearest, kept


class TreeProblem(CuttingPlaneProblem):
    """Sentences with their true trees ``heads`` (n,), projective, and a surrogate; the weights are theta (1, D), D a power of two."""

    def __init__(self, sentences: Sentences, heads: Heads, share: Array, surrogate: str, beta: float, bits: int, tol: float) -> None:
        self.sentences, self.heads, self.share = sentences, heads, share
        self.start, self.K, self.G, self.size = sentences.start, 1, 0, 2**bits
        self.kind, self.beta = KINDS[surrogate], beta
        self.tol, self.part = tol, SEARCH_SHARE
        self.tolerance = self.part * tol * float(share @ np.diff(self.start))  # before P is known, by what the loss is at most

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Words, tags, starts and true heads for the compiled loops."""
        return *self.sentences.arrays, self.heads

    def search(self, U: Array, shared: Array, examples: Positions) -> Cuts:
        """Arcs are scored by `all_cuts`: there are too many of them to hold their scores."""
        raise NotImplementedError

    def all_cuts(self, W: Array, shared: Array, cost: Array = NO_COSTS) -> Cuts:
        """Return the worst tree of every sentence at weights W (1, D); of the max-min margin at these costs of all heads."""
        S = len(self.share)
        value, upper, slope, constant = (np.empty(S) for _ in range(4))
        heads = np.empty(len(self.heads), dtype=np.int32)
        found = value, upper, heads, slope, constant
        calls = kernels.parser.survey(self.kind, self.beta, *self.arrays, W.ravel(), cost, self.tolerance, *found)
        above = float(self.share @ upper)
        self.part *= 0.25 if above - float(self.share @ value) > LEFT_OPEN * self.tol * above else 1.0
        self.tolerance = self.part * self.tol * above
        return Cuts(sparse.csr_array((0, 0)), constant, value, upper, int(calls))

    def exactly(self, lam: float, W: Array) -> tuple[float, float]:
        """Return P at weights (1, D), and the part of it that exact searches leave open, of sentences that are too long for them."""
        tolerance, part, self.tolerance = self.tolerance, self.part, 0.0
        cuts = self.all_cuts(W, np.zeros(0))
        self.tolerance, self.part = tolerance, part
        return self.primal(lam, W, np.zeros(0), cuts), float(self.share @ cuts.upper) - float(self.share @ cuts.value)

    def no_planes(self) -> Any:
        """Return the planes of the true trees, which have no weights and no constants."""
        return MeanTrees(self, np.zeros(self.sentences.numbers), np.zeros(len(self.share)))


class TreeTrainer(StoredPlaneTrainer):
    """Stored trees of sentences with their weights, and compiled visits that move them; the weights are theta (1, D)."""

    unit = UNIT

    def __init__(self, problem: TreeProblem) -> None:
        super().__init__(problem, problem.heads)
        sizes = np.diff(problem.start)
        self.sizes = np.repeat(sizes, sizes)  # words of each word's sentence
        self.first = np.cumsum(self.sizes + 1) - (self.sizes + 1)  # of each word's heads among those of all words
        self.cost = self.shares = NO_COSTS
        if self.game:
            self.cost = np.ones(int(self.sizes.sum()) + len(self.sizes))
            self.cost[self.first + problem.heads] = 0.0
            self.shares = 1.0 - self.cost
        S, P = self.alpha.shape
        self.grams = np.zeros((S, P, P))
        self.theta = np.zeros(problem.size)

    def widen(self) -> None:
        """Make room for twice as many trees of every sentence."""
        room = self.alpha.shape[1]
        super().widen()
        self.grams = np.pad(self.grams, ((0, 0), (0, room), (0, room)))

    def take(self, lam: float) -> tuple[Array, Array]:
        """Bring alpha into its simplices and theta to the mixture's; return a copy of it."""
        self.into_simplices()
        self.theta[:] = 0.0
        weight = self.alpha * self.scale * (self.share[:, None] / -lam)
        kernels.parser.mixture(*self.problem.arrays, self.held, weight, self.used, self.theta)
        if self.game:
            self.shares = self.shares_of_heads()
        return self.theta.copy()[None], np.zeros(0)

    def shares_of_heads(self) -> Array:
        """Return the shares of the heads of every word in the mixture, sum of n (n + 1) numbers over sentences."""
        shares, room = np.zeros(len(self.cost)), self.alpha.shape[1]
        word = np.arange(len(self.sizes))
        owner = np.repeat(np.arange(len(self.share)), np.diff(self.start))
        begin = self.start[owner] * (room - 1) + word  # of the first stored head of each word
        for p in range(int(self.used.max())):
            shares[self.first + self.held[begin + p * self.sizes]] += self.alpha[owner, p]
        return shares

    def losses(self) -> Array:
        """Return the constants of the examples' mixtures, (S,)."""
        if self.game:
            return np.asarray(np.add.reduceat(1.0 - np.maximum.reduceat(self.shares, self.first), self.start[:-1]))
        return super().losses()

    def surveyed(self, W: Array, shared: Array) -> tuple[Array, Array]:
        """Return the surrogate of every sentence as the search found it, and its bound."""
        cuts = self.problem.all_cuts(W, shared, self.cost)
        return cuts.value, cuts.upper

    def sweep(self, lam: float, skip: float, seed: int) -> int:
        """Visit every sentence whose gap is above ``skip`` once; return how many had no room."""
        problem, stored = self.problem, (self.held, self.alpha, self.scale, self.offset, self.used)
        steps = *self.strengths(lam), skip, self.gap, STEPS, problem.tolerance, seed
        state = *stored, self.grams, self.cost, self.shares
        full, _ = kernels.parser.sweep(problem.kind, problem.beta, *problem.arrays, self.theta, *state, *steps)
        return int(full)


class MeanTrees:
    """One mean plane of every sentence: coefficients of its arcs, (n + 1)^2 numbers one sentence behind the other, and constants (S,)."""

    def __init__(self, problem: TreeProblem, parts: Array, constant: Array) -> None:
        self.problem, self.parts, self.constant = problem, parts, constant

    def begin(self, planes: MeanTrees, lam: float) -> None:
        """Take over the mean planes of another lambda."""
        self.parts, self.constant = planes.means()

    def means(self) -> tuple[Array, Array]:
        """Return the coefficients and the constants."""
        return self.parts.copy(), self.constant.copy()

    def weights(self, lam: float) -> tuple[Array, Array]:
        """Return theta (1, D), and no shared weights."""
        problem = self.problem
        return problem.sentences.weights_of(self.parts, problem.share / -lam, problem.size)[None], np.zeros(0)

    def dual(self, lam: float, W: Array, shared: Array) -> float:
        """Return D of these planes, whose weights are given."""
        return float(self.problem.share @ self.constant) - 0.5 * lam * squared(W, shared)

    def outside(self) -> float:
        """Every plane has the weight 1."""
        return 0.0


class TreeSteps(ExampleSteps):
    """Steps at the sentences of a `TreeProblem`."""

    problem: Any
    made: int  # steps, of which subgradients have a length; -1 for Frank-Wolfe

    def __init__(self, problem: TreeProblem, lam: float) -> None:
        self.problem, self.lam = problem, lam
        self.parts, self.constant = np.zeros(problem.sentences.numbers), np.zeros(problem.n)  # type: ignore[assignment]
        self.W, self.shared = np.zeros((1, problem.size)), np.zeros(0)
        self.late_W, self.late_shared = np.zeros((1, problem.size if self.made >= 0 else 0)), np.zeros(0)

    def mean_planes(self, parts: Array, constant: Array) -> Any:
        """Return these planes of the sentences."""
        return MeanTrees(self.problem, parts, constant)

    def sweep(self, order: Positions) -> int:
        """Step at every sentence."""
        problem = self.problem
        sentences = *problem.arrays, np.ascontiguousarray(order, dtype=np.intp), self.W[0], self.parts, self.constant, problem.share
        steps = self.lam, self.made, self.late_W[0], problem.tolerance
        return int(kernels.parser.mean_sweep(problem.kind, problem.beta, *sentences, *steps))


class TreeFrankWolfe(TreeSteps, FrankWolfe):
    """Block-coordinate Frank-Wolfe over sentences."""

    made = -1

    def sweep(self, order: Positions) -> int:
        """Step at every sentence; sums of many steps are made anew, without their rounding."""
        calls = super().sweep(order)
        self.W, self.shared = self.planes().weights(self.lam)
        return calls


class TreeGradients(TreeSteps, Gradients):
    """Stochastic subgradients over sentences."""

    made = 0

    def sweep(self, order: Positions) -> int:
        """Step at every sentence."""
        calls = super().sweep(order)
        self.made += len(order)
        self.t, self.sweeps = self.made, self.made // self.problem.n
        return calls


TREES_BY_EXAMPLES: dict[str, type[TreeSteps]] = {steps.solver: steps for steps in (TreeFrankWolfe, TreeGradients)}
