"""Best label sequences of a linear chain, f(y) = sum_t U[t, y_t] + sum_t A[y_t, y_{t+1}], and the max-min margin of the Hamming loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.compiled import kernels
from ....core.typing import Array

Codes = NDArray[np.intp]


class ChainGame(NamedTuple):
    """The game of the max-min margin at one chain (Nowak-Vila, Bach & Rudi 2020)."""

    value: float  # S = max over mu of min_z L(z, mu) + <f, mu> - f(y_i)
    upper: float  # the bound that the targets prove
    unary: Array  # shares mu of the states that attain the value, (T, K)
    pair: Array  # and of pairs of neighbours, (T - 1, K, K)
    targets: Array  # the predictor's distributions, (T, K)
    calls: int


def best_paths(U: Array, A: Array, start: NDArray[np.integer]) -> tuple[Codes, Array]:
    """Return the labels (n,) of the largest score of every chain, rows start[s]:start[s + 1] of U (n, K), and these scores (S,)."""
    labels, value = np.empty(len(U), dtype=np.int16), np.empty(len(start) - 1)
    kernels.chain.viterbi(np.ascontiguousarray(U), np.ascontiguousarray(A), np.asarray(start, dtype=np.int64), labels, value)
    return labels.astype(np.intp), value


def chain_game(U: Array, A: Array, own: float = 0.0) -> ChainGame:
    """Return max over mu of sum_t (1 - max_a mu_t(a)) + <U, mu> + <A, pairs> less ``own``, by the linear program over the tree polytope.

    mu are distributions of neighbours that agree where they meet, T K + (T - 1) K^2 numbers, and s_t >= mu_t(a) another T. The multipliers
    of these last rows are the targets p. `ArithmeticError` where HiGHS does not solve it.
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
    solution = solve(cost, A_ub=below, b_ub=np.zeros(singles), A_eq=equal, b_eq=right, bounds=(0, None), method="highs")
    if not solution.success:
        raise ArithmeticError(f"HiGHS stopped at the linear program of a chain's game: {solution.message}")
    unary = solution.x[:singles].reshape(T, K)
    targets = np.maximum(-solution.ineqlin.marginals.reshape(T, K), 0.0)
    targets /= targets.sum(axis=1, keepdims=True)
    upper = float(best_paths(U + 1.0 - targets, A, np.array([0, T]))[1][0]) - own
    value = float(T - solution.fun) - own
    return ChainGame(value, upper, unary, solution.x[singles : singles + pairs].reshape(T - 1, K, K), targets, 1)
