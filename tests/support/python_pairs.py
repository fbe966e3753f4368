"""Ascent by pairs for threshold models in plain Python: what `_ext/ascent/ascent_pairs.pyx` computes, without anything that makes it fast.

With b = s alpha, slopes h_ij = s_ij - g_i - o_i + theta_j and curvatures of K, a move takes d from one b to another. Every admissible pair
is looked at in every step, and the one whose best move gains most is taken.
"""

import itertools

import numpy as np

EACH, ORDERED, SUM = range(3)


def signs_of(y, m):
    """Return s (m, n)."""
    return np.where(y > np.arange(m)[:, None], 1.0, -1.0)


def dual_value(y, K, offset, coupling, alpha):
    """Return sum alpha - beta.o - 1/2 beta'K beta, and minus half the squared totals where thresholds are penalised."""
    b = signs_of(y, len(alpha)) * alpha
    beta, total = b.sum(axis=0), b.sum(axis=1)
    return alpha.sum() - beta @ offset - 0.5 * beta @ K @ beta - (0.5 * total @ total if coupling == SUM else 0.0)


def room(coupling, total, up, down):
    """Return how much total may pass from threshold ``down`` to threshold ``up``."""
    if up == down or coupling == SUM:
        return np.inf
    if coupling == EACH:
        return 0.0
    return (-np.cumsum(total))[up:down].min() if up < down else np.inf


def ascend(y, U, K, offset, coupling, tol=1e-13, most=20_000):
    """Return the dual variables (m, n) from which no pair gains more than ``tol`` of the dual value."""
    m, n = U.shape
    s, alpha = signs_of(y, m), np.zeros((m, n))
    for _ in range(most):
        b = s * alpha
        total, g = b.sum(axis=1), K @ b.sum(axis=0)
        h = s - g - offset - (total[:, None] if coupling == SUM else 0.0)
        grow, fall = np.where(s > 0, U - alpha, alpha), np.where(s > 0, alpha, U - alpha)
        best, taken = 0.0, None
        for (p, i), (q, l) in itertools.product(zip(*np.nonzero(grow), strict=True), zip(*np.nonzero(fall), strict=True)):
            slope = h[p, i] - h[q, l]
            if not slope > 0.0:
                continue
            bend = max(K[i, i] + K[l, l] - 2.0 * K[i, l] + (2.0 if coupling == SUM and p != q else 0.0), 1e-12)
            d = min(slope / bend, grow[p, i], fall[q, l], room(coupling, total, p, q))
            if d * (slope - 0.5 * bend * d) > best:
                best, taken = d * (slope - 0.5 * bend * d), (p, i, q, l, d)
        if taken is None or best <= tol * max(dual_value(y, K, offset, coupling, alpha), 1.0):
            return alpha
        p, i, q, l, d = taken
        alpha[p, i] += s[p, i] * d
        alpha[q, l] -= s[q, l] * d
        alpha = np.clip(alpha, 0.0, U)
    raise AssertionError("the reference did not end")
