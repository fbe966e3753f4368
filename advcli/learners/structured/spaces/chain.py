"""Label sequences of a linear chain: f(y) = sum_t U[t, y_t] + sum_t A[y_t, y_{t+1}], with the Hamming distance as task loss."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.compiled import kernels
from ....core.typing import Array
from .space import LabelPoint, OutputSpace

Codes = NDArray[np.intp]


class ChainGame(NamedTuple):
    """The game of the max-min margin at one chain (Nowak-Vila, Bach & Rudi 2020).

    Attributes
    ----------
    value, upper : float
        S = max over mu of min_z L(z, mu) + <f, mu> - f(y_i), as ``unary`` and ``pair`` attain it, and the bound that ``targets`` prove.
    unary : ndarray (T, K)
        mu: shares of the states.
    pair : ndarray (T - 1, K, K)
        Shares of pairs of states that follow each other.
    targets : ndarray (T, K)
        p: the predictor's distribution at every position.
    calls : int
        Calls of the argmax.
    """

    value: float
    upper: float
    unary: Array
    pair: Array
    targets: Array
    calls: int


class ChainSpace(OutputSpace):
    """The label sequences of one chain.

    Parameters
    ----------
    U : array (T, K)
        Scores of states at positions.
    A : array (K, K)
        Scores of a state and the next.
    truth : array of int (T,)
        The true labels.
    """

    name = "chain"
    offers = frozenset({"lam", "ban", "kbest", "levels", "marginals", "game"})

    def __init__(self, U: Array, A: Array, truth: Codes) -> None:
        self.U, self.A = np.ascontiguousarray(U, dtype=np.float64), np.ascontiguousarray(A, dtype=np.float64)
        self.labels = np.ascontiguousarray(truth, dtype=np.intp)
        self.wrong = np.ones(self.U.shape)
        self.wrong[np.arange(len(self.labels)), self.labels] = 0.0
        self.own = self.score(self.labels)
        self.truth = LabelPoint(0.0, 0.0, self.labels, tuple(self.labels.tolist()))
        self.extent = (1.0, float(len(self.labels))) if self.U.shape[1] > 1 else (0.0, 0.0)

    def score(self, y: Codes) -> float:
        """Return f(y)."""
        return float(self.U[np.arange(len(y)), y].sum() + self.A[y[:-1], y[1:]].sum())

    def point(self, y: NDArray[np.integer]) -> LabelPoint:
        """Return a label sequence as a point."""
        codes = np.asarray(y, dtype=np.intp)
        return LabelPoint(self.score(codes) - self.own, float((codes != self.labels).sum()), codes, tuple(codes.tolist()))

    def argmax(self) -> LabelPoint:
        """Return the sequence of the largest score, by Viterbi's algorithm."""
        return self.point(best_paths(self.U, self.A, np.array([0, len(self.U)]))[0])

    def lam(self, l: float, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the sequence of the largest h + l g that is not banned.

        With b banned sequences it is the best of the b + 1 best. Ties at l = 0 and l = infinity are exact without a ban list; with one,
        values of h that differ by less than 1e-12 of the scores' range tie.
        """
        if not ban and l in (0.0, np.inf):
            found = self.levels()
            return max(found, key=lambda point: (point.h, point.g)) if l == 0.0 else found[-1]
        spread = float(np.ptp(self.U, axis=1).sum() + (len(self.U) - 1) * np.ptp(self.A)) + 1e-300
        weight = 1e-12 * spread / len(self.U) if l == 0.0 else 2.0 * spread if l == np.inf else l
        banned = set(ban)
        return next((each for each in self._best(self.U + weight * self.wrong, len(banned) + 1) if each.key not in banned), None)

    def kbest(self, k: int) -> list[LabelPoint]:
        """Return the k sequences of the largest scores, best first: k prefixes are kept for every state."""
        return self._best(self.U, k)

    def _best(self, U: Array, k: int) -> list[LabelPoint]:
        T, K = U.shape
        k = min(k, K**T)
        labels = np.empty((k, T), dtype=np.int16)
        found = kernels.chain.kbest(np.ascontiguousarray(U), self.A, np.empty(k), labels)
        return [self.point(y) for y in labels[:found]]

    def levels(self) -> list[LabelPoint]:
        """Return the best sequence at every Hamming distance from the truth: Viterbi's algorithm over (distance, state)."""
        T = len(self.U)
        value, labels = np.empty(T + 1), np.empty((T + 1, T), dtype=np.int16)
        kernels.chain.levels(self.U, self.A, self.labels, value, labels)
        return [self.point(y) for y, reached in zip(labels, value > -np.inf, strict=True) if reached]

    def marginals(self) -> tuple[Array, Array, float]:
        """Return the shares of states (T, K) and of pairs of neighbours (T - 1, K, K) under the law exp f / Z, and log Z."""
        T, K = self.U.shape
        unary, pair = np.empty((T, K)), np.empty((T - 1, K, K))
        return unary, pair, kernels.chain.marginals(self.U, self.A, unary, pair)

    def game(self) -> ChainGame:
        """Return the solution of the max-min margin's game, by one linear program over the chain's marginals."""
        return chain_game(self.U, self.A, self.own)


def best_paths(U: Array, A: Array, start: NDArray[np.integer]) -> tuple[Codes, Array]:
    """Return the labels (n,) of the largest score of every chain, rows start[s]:start[s + 1] of U (n, K), and these scores (S,)."""
    labels, value = np.empty(len(U), dtype=np.int16), np.empty(len(start) - 1)
    kernels.chain.viterbi(np.ascontiguousarray(U), np.ascontiguousarray(A), np.asarray(start, dtype=np.int64), labels, value)
    return labels.astype(np.intp), value


def chain_game(U: Array, A: Array, own: float = 0.0) -> ChainGame:
    """Return max over mu of sum_t (1 - max_a mu_t(a)) + <U, mu> + <A, pairs> less ``own``, by the linear program over the tree polytope.

    mu are distributions of neighbours that agree where they meet, T K + (T - 1) K^2 numbers, and s_t >= mu_t(a) another T. The multipliers
    of these last rows are the targets p.

    Raises
    ------
    ArithmeticError
        HiGHS does not solve it.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    solve: Any = linprog  # its stubs do not know sparse arrays
    T, K = U.shape
    singles, pairs = T * K, (T - 1) * K * K
    cost = -np.concatenate([U.ravel(), np.tile(A.ravel(), T - 1), -np.ones(T)])
    eye, ones = sparse.eye_array(K), np.ones((1, K))
    before, after = (sparse.eye_array(T - 1, T, k=shift) for shift in (0, 1))
    # mu_t(a) = sum_b mu_t(a, b) and mu_{t+1}(b) = sum_a mu_t(a, b); the first position sums to 1, and with it all others
    parts = [
        [sparse.kron(before, eye), -sparse.kron(sparse.eye_array(T - 1), sparse.kron(eye, ones))],
        [sparse.kron(after, eye), -sparse.kron(sparse.eye_array(T - 1), sparse.kron(ones, eye))],
    ]
    first = sparse.coo_array((np.ones(K), (np.zeros(K, dtype=int), np.arange(K))), shape=(1, singles + pairs + T))
    agree = [sparse.hstack([*row, sparse.coo_array(((T - 1) * K, T))]) for row in parts] if T > 1 else []
    equal = sparse.csr_array(sparse.vstack([first, *agree]))
    below = sparse.csr_array(
        sparse.hstack([sparse.eye_array(singles), sparse.coo_array((singles, pairs)), -sparse.kron(sparse.eye_array(T), ones.T)])
    )
    right = np.zeros(equal.shape[0])
    right[0] = 1.0
    found = solve(cost, A_ub=below, b_ub=np.zeros(singles), A_eq=equal, b_eq=right, bounds=(0, None), method="highs")
    if not found.success:
        raise ArithmeticError(f"HiGHS stopped at the linear program of a chain's game: {found.message}")
    unary = found.x[:singles].reshape(T, K)
    targets = _distributions(-found.ineqlin.marginals.reshape(T, K))
    upper = float(best_paths(U + 1.0 - targets, A, np.array([0, T]))[1][0]) - own
    value = float(T - found.fun) - own
    return ChainGame(value, upper, unary, found.x[singles : singles + pairs].reshape(T - 1, K, K), targets, 1)


def _distributions(p: Array) -> Array:
    p = np.maximum(p, 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


class ChainColumns:
    """The max-min margin's game at one chain by columns: sequences found so far, and the small linear program over their mixtures.

    The sequences stay from one call of `solve` to the next, at other scores: a sequence of an earlier mixture is likely to be in the next
    one.
    """

    def __init__(self, most: int = 200) -> None:
        self.most, self.labels = most, dict[tuple[int, ...], Codes]()

    def solve(self, U: Array, A: Array, own: float = 0.0, tol: float = 1e-9) -> ChainGame:
        """Return the game's solution: the sequence of the largest sum of U + 1 - p comes in until p proves the value.

        Raises
        ------
        ArithmeticError
            More than ``most`` sequences come in, or HiGHS does not solve the small program.
        """
        T, K = U.shape
        start, p, best = np.array([0, T]), np.full((T, K), 1.0 / K), np.inf
        targets, value, shares = p, -np.inf, np.zeros(0)
        for calls in range(1, self.most + 1):
            y, score = best_paths(U + 1.0 - p, A, start)
            if score[0] < best:
                best, targets = float(score[0]), p
            if len(shares) and best - value <= tol * max(1.0, abs(best)):
                unary, pair = np.zeros((T, K)), np.zeros((T - 1, K, K))
                for share, labels in zip(shares, self.labels.values(), strict=True):
                    unary[np.arange(T), labels] += share
                    pair[np.arange(T - 1), labels[:-1], labels[1:]] += share
                return ChainGame(value - own, best - own, unary, pair, targets, calls)
            self.labels.setdefault(tuple(y.tolist()), y)
            value, shares, p = self._master(U, A)
        raise ArithmeticError(f"the game of a chain needs more than {self.most} sequences")

    def _master(self, U: Array, A: Array) -> tuple[float, Array, Array]:
        """Return the value over mixtures of the sequences, their shares and the targets."""
        from scipy import sparse
        from scipy.optimize import linprog

        solve: Any = linprog
        T, K = U.shape
        Y = np.array(list(self.labels.values()))
        m = len(Y)
        scores = U[np.arange(T), Y].sum(axis=1) + A[Y[:, :-1], Y[:, 1:]].sum(axis=1)
        at = (np.arange(T) * K + Y).ravel()
        counts = sparse.coo_array((np.ones(m * T), (at, np.repeat(np.arange(m), T))), shape=(T * K, m))
        below = sparse.csr_array(sparse.hstack([counts, -sparse.kron(sparse.eye_array(T), np.ones((K, 1)))]))
        total = np.append(np.ones(m), np.zeros(T))[None]
        found = solve(
            np.append(-scores, np.ones(T)), A_ub=below, b_ub=np.zeros(T * K), A_eq=total, b_eq=[1.0], bounds=(0, None), method="highs"
        )
        if not found.success:
            raise ArithmeticError(f"HiGHS stopped at the linear program of a chain's game: {found.message}")
        return float(T - found.fun), found.x[:m], _distributions(-found.ineqlin.marginals.reshape(T, K))
