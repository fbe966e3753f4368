"""Chains in plain Python: dynamic programmes as they are written down, and every label sequence where there are few."""

import itertools

import numpy as np
from scipy.special import logsumexp


def score(U, A, y):
    return sum(U[t, a] for t, a in enumerate(y)) + sum(A[a, b] for a, b in itertools.pairwise(y))


def sequences(T, K):
    """Return every label sequence (K^T, T)."""
    return np.array(list(itertools.product(range(K), repeat=T)))


def scores(U, A, Y):
    """Return the scores of sequences Y (m, T)."""
    return U[np.arange(len(U)), Y].sum(axis=1) + A[Y[:, :-1], Y[:, 1:]].sum(axis=1)


def viterbi(U, A):
    """Return the best labels, ties to the lowest state from the end, and their score."""
    upto, back = U[0], []
    for row in U[1:]:
        both = upto[:, None] + A
        back.append(np.argmax(both, axis=0))
        upto = both.max(axis=0) + row
    y = [int(np.argmax(upto))]
    for links in back[::-1]:
        y.append(int(links[y[-1]]))
    return y[::-1], float(upto.max())


def levels(U, A, truth):
    """Return the best score at every distance from the truth, and labels that have it."""
    T, K = U.shape
    upto = {(g, a): (-np.inf, ()) for g in range(T + 1) for a in range(K)}
    for a in range(K):
        upto[int(a != truth[0]), a] = (U[0, a], (a,))
    for t in range(1, T):
        after = {(g, a): (-np.inf, ()) for g in range(T + 1) for a in range(K)}
        for g, b in itertools.product(range(t + 1), range(K)):
            value, a = max((upto[g, a][0] + A[a, b], -a) for a in range(K))
            if value > -np.inf:
                after[g + int(b != truth[t]), b] = (value + U[t, b], (*upto[g, -a][1], b))
        upto = after
    best = [max((upto[g, a] for a in range(K)), key=lambda each: each[0]) for g in range(T + 1)]
    return np.array([value for value, _ in best]), [y for _, y in best]


def marginals(U, A):
    """Return the shares of states and of neighbours by every sequence, and log Z."""
    T, K = U.shape
    Y = sequences(T, K)
    f = scores(U, A, Y)
    total = logsumexp(f)
    unary, pair = np.zeros((T, K)), np.zeros((T - 1, K, K))
    for y, share in zip(Y, np.exp(f - total), strict=True):
        unary[np.arange(T), y] += share
        pair[np.arange(T - 1), y[:-1], y[1:]] += share
    return unary, pair, total
