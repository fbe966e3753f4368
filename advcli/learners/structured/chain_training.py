"""Training over label sequences: problem, mixture and trainer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.arrays import is_sparse
from ...core.compiled import CompiledRows, aligned_zeros, compiled_rows, kernels
from ...core.errors import DataError
from ...core.groups import Starts
from ...core.typing import Array, Labels
from ...solvers.cutting_planes import Cuts, CuttingPlaneProblem, CuttingPlanes, Positions
from .frank_wolfe import ExampleSteps, FrankWolfe, Gradients
from .learner import MAXMIN
from .spaces.psi import Psi
from .stored_planes import KINDS, STEPS, StoredPlaneTrainer

MOST_GRAM = 250_000_000  # numbers of all Gram matrices: 2 GB


class ChainProblem(CuttingPlaneProblem):
    """The problem of chains for `fit_cutting_planes`. Its shared weights are the transitions, K x K row by row.

    It trains in plain NumPy; fits use the compiled `ChainTrainer`. ``psi`` is None for the max-min margin, which has the trainer alone.
    """

    def __init__(self, X: Any, y: Labels, start: Starts, share: Array, psi: Psi | None, K: int) -> None:
        self.X, self.y, self.start, self.share, self.psi = X, y, start, share, psi
        self.K, self.G = K, K * K
        self.kind, self.beta = KINDS[MAXMIN if psi is None else psi.name], float(getattr(psi, "beta", 0.0))

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
        row, column, entry = (np.concatenate(parts) for parts in zip(*entries, strict=True))
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


class ChainTrainer(StoredPlaneTrainer):
    """Stored sequences of chains with their weights, and compiled visits that move them; the shared weights are A (K, K) row by row."""

    def __init__(self, problem: ChainProblem) -> None:
        super().__init__(problem, problem.y)
        X, K, start = problem.X, problem.K, problem.start
        self.rows: CompiledRows = compiled_rows(X)
        self.transposed: Any = sparse.csr_array(X.T) if is_sparse(X) else np.ascontiguousarray(X.T)
        sizes = np.diff(start)
        total = int((sizes.astype(np.float64) ** 2).sum())
        if total > MOST_GRAM:
            needed = f"{total} numbers for products of their rows, more than {MOST_GRAM}"
            raise DataError(f"sequences of up to {sizes.max()} rows need {needed}; split the longest")
        self.grams = np.empty(total)
        kernels.chain.gram(*self.rows, start, self.grams)
        self.cost = wrong(problem.y, K)
        self.shares = 1.0 - self.cost if self.game else np.empty((0, K))
        self.theta, self.A = aligned_zeros((self.rows.d, kernels.chain.width(K))), np.zeros((K, kernels.chain.width(K)))
        square = self.grams[np.concatenate([[0], np.cumsum(sizes**2)])[:-1]]
        self.unit = float(np.mean(square)) or 1.0  # |x|^2

    def mixture(self, scale: Array) -> tuple[Array, Array]:
        """Return the sum of the mean planes of the chains at scales (S, P), by position (n, K) and by transition (K, K)."""
        K = self.problem.K
        unary, pair = np.zeros((len(self.y), K)), np.zeros((K, K))
        kernels.chain.mixture(self.start, self.y, self.held, self.alpha, scale, self.used, unary, pair)
        return unary, pair

    def take(self, lam: float) -> tuple[Array, Array]:
        """Bring alpha into its simplices and the weights of the visits to the mixture's; return these weights."""
        self.into_simplices()
        unary, pair = self.mixture(self.scale * self.share[:, None])
        W, A = np.ascontiguousarray((self.transposed @ unary).T) / -lam, pair / -lam
        self.theta[:, : len(W)], self.A[:, : len(W)] = W.T, A
        if self.game:
            self.shares = self.states()
        return W, A.ravel()

    def states(self) -> Array:
        """Return the shares of the states at every position (n, K)."""
        unary, _ = self.mixture(self.scale)
        unary[np.arange(len(self.y)), self.y] += 1.0
        return np.maximum(unary, 0.0)

    def losses(self) -> Array:
        """Return the constants of the examples' mixtures, (S,)."""
        if self.game:
            return np.asarray(np.add.reduceat(1.0 - self.shares.max(axis=1), self.start[:-1]))
        if self.problem.kind == KINDS["margin"]:  # whose loss is a sum over positions
            return np.asarray(np.add.reduceat((self.states() * wrong(self.y, self.problem.K)).sum(axis=1), self.start[:-1]))
        return super().losses()

    def surveyed(self, W: Array, shared: Array) -> tuple[Array, Array]:
        """Return the surrogate of every chain twice, as the searches are exact."""
        problem, K = self.problem, self.problem.K
        U = np.ascontiguousarray(problem.X @ W.T)
        value = survey(problem.kind, problem.beta, U, shared.reshape(K, K), self.y, self.start, self.cost)[0]
        return value, value

    def sweep(self, lam: float, skip: float, seed: int) -> int:
        """Visit every chain whose gap is above ``skip`` once; return how many had no room."""
        chains = *self.rows, self.start, self.y, self.grams, self.theta, self.A
        stored = self.held, self.alpha, self.scale, self.offset, self.used
        steps = *self.strengths(lam), skip, self.gap, STEPS, 1, seed
        return int(kernels.chain.sweep(self.problem.kind, self.problem.beta, *chains, *stored, self.cost, self.shares, *steps))


class ChainSteps(ExampleSteps):
    """Steps at the chains of a `ChainProblem`; W is kept by feature, theta (d, Kp), and the transitions as A (K, Kp)."""

    made: int  # steps, of which subgradients have a length; -1 for Frank-Wolfe

    def __init__(self, problem: CuttingPlaneProblem, lam: float) -> None:
        super().__init__(problem, lam)
        self.rows, self.start = compiled_rows(problem.X), np.asarray(problem.start, dtype=np.int64)
        self.grams = np.empty(int((np.diff(self.start).astype(np.float64) ** 2).sum()))
        kernels.chain.gram(*self.rows, self.start, self.grams)
        (_, d), K, padded = problem.X.shape, problem.K, kernels.chain.width(problem.K)
        self.theta, self.A = aligned_zeros((d, padded)), np.zeros((K, padded))
        late = self.made >= 0
        self.late_theta, self.late_A = aligned_zeros((d * late, padded)), np.zeros((K * late, padded))

    def sweep(self, order: Positions) -> int:
        """Step at every example."""
        problem: Any = self.problem
        chains = *self.rows, self.start, problem.y, self.grams, np.ascontiguousarray(order, dtype=np.intp), self.theta, self.A
        steps = self.parts, self.constant, problem.share, self.lam, self.made, self.late_theta, self.late_A
        kernels.chain.row_sweep(problem.kind, problem.beta, *chains, *steps)
        self.W, self.shared = self.theta[:, : problem.K].T, self.A[:, : problem.K].ravel()
        return len(order)


class ChainFrankWolfe(ChainSteps, FrankWolfe):
    """Block-coordinate Frank-Wolfe over chains."""

    made = -1

    def begin(self, planes: CuttingPlanes) -> None:
        """Begin at the mean of planes."""
        super().begin(planes)
        K = self.problem.K
        self.theta[:, :K], self.A[:, :K] = self.W.T, self.shared.reshape(K, K)


class ChainGradients(ChainSteps, Gradients):
    """Stochastic subgradients over chains."""

    made = 0

    def sweep(self, order: Positions) -> int:
        """Step at every example."""
        calls = super().sweep(order)
        K = self.problem.K
        self.late_W, self.late_shared = self.late_theta[:, :K].T, self.late_A[:, :K].ravel()
        self.made += len(order)
        self.t, self.sweeps = self.made, self.sweeps + 1
        return calls


CHAINS_BY_EXAMPLES: dict[str, type[ExampleSteps]] = {steps.solver: steps for steps in (ChainFrankWolfe, ChainGradients)}
