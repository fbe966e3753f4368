"""Chains in plain Python: dynamic programmes as they are written down, and every label sequence where there are few."""

import itertools

import numpy as np


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
