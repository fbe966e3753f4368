"""The levels of sets in plain NumPy (`_ext/structured/sets.pyx`)."""

import numpy as np


def levels(U, table, centre):
    """Return for every row and every distance from its centre the largest score of a set, and the least set that has it."""
    n, m = U.shape
    y = np.arange(2**m)
    bits = (y[:, None] >> np.arange(m)) & 1
    low = min(m, 3)
    best, label = np.full((n, m + 1), -np.inf), np.zeros((n, m + 1), dtype=np.intp)
    for i in range(n):
        # in the order of the kernel, so that sums round alike: upper bits, the table, then the lowest three
        upper, lower = np.zeros(2**m), np.zeros(2**m)
        for j in range(low, m):
            upper = np.where(bits[:, j] == 1, upper + U[i, j], upper)
        for j in range(low):
            lower = np.where(bits[:, j] == 1, lower + U[i, j], lower)
        score = (table + upper) + lower
        distance = np.array([int(each).bit_count() for each in y ^ centre[i]])
        for level in range(m + 1):
            at = np.flatnonzero(distance == level)
            label[i, level] = at[np.argmax(score[at])]
            best[i, level] = score[label[i, level]]
    return best, label
