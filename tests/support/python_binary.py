"""Dual coordinate ascent for one binary problem in plain Python: what `_ext/ascent/ascent_binary.pyx` computes.

primal  1/2 |v|^2 + sum_i c_i [m_i - s_i v.x_i]_+          dual  sum_i a_i m_i - 1/2 |sum_i a_i s_i x_i|^2,  a_i in [0, c_i]
"""

import numpy as np


def values(K, label, bound, margin, a):
    """Return the primal and the dual value of dual numbers a over the kernel matrix K (n, n)."""
    u = K @ (a * label)
    square = (a * label) @ u
    return 0.5 * square + bound @ np.maximum(margin - label * u, 0.0), a @ margin - 0.5 * square


def ascend(K, label, bound, margin, tol=1e-10, most=200_000):
    """Take the exact step of the row that gains most until the relative gap is at most ``tol``; return a, primal and dual."""
    n = len(K)
    a = np.where((np.diag(K) == 0.0) & (margin > 0.0), bound, 0.0)
    for step in range(most):
        if step % n == 0:
            primal, dual = values(K, label, bound, margin, a)
            if primal - dual <= tol * primal:
                return a, primal, dual
        slope = margin - label * (K @ (a * label))
        best = max(range(n), key=lambda i: gain(K[i, i], a[i], slope[i], bound[i]))
        a[best] += move(K[best, best], a[best], slope[best], bound[best])
    raise AssertionError("the reference did not end")


def move(square, a, slope, bound):
    """Return how far a moves to its best value in [0, bound]."""
    return min(max(a + slope / square, 0.0), bound) - a if square > 0.0 else 0.0


def gain(square, a, slope, bound):
    """Return what that adds to the dual value."""
    by = move(square, a, slope, bound)
    return by * (slope - 0.5 * square * by)
