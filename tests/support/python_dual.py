"""Dual block-coordinate ascent in plain Python: what `_ext/ascent/ascent_dense.pyx` computes, without anything that makes it fast.

    maximise over r_i in conv R(y_i):  D(r) = 1/n sum_i s_i w_i c(r_i) - lambda/2 |Theta(r)|^2,
    Theta(r) = -1/(lambda n) sum_i s_i x_i r_i',  n = sum_i s_i

One visit replaces r_i by the maximiser of c(r) + f_i.r - curvature/2 |r - r_i|^2 at the present scores f_i, and moves Theta along.
"""

import random

import numpy as np
from scipy.optimize import brentq


def project(z, mass=1.0):
    """Return the point of {q >= 0, sum q = mass} nearest to z: z minus a threshold, cut at 0."""
    ordered = sorted(z, reverse=True)
    total, level = 0.0, -np.inf
    for count, each in enumerate(ordered, start=1):  # the threshold is the largest (sum of the m largest - mass)/m
        total += each
        level = max(level, (total - mass) / count)
    q = np.maximum(z - level, 0.0)
    return q * (mass / q.sum())


def threshold(z, mass):
    """Return t with sum_j (z_j - t)_+ = mass."""
    return float((z - project(z, mass)).max())


def zero_one_block(f, q0, w):
    """q = (min(g, u) - mu)_+ / w with two thresholds of g = f + w q0 (docs/notes/oracles.md, section 2)."""
    g = f + w * q0
    u, mu = threshold(g, 1.0), threshold(g, 1.0 + w)
    q = np.maximum(np.minimum(g, u) - mu, 0.0)
    return q / q.sum()


def top_k_block(f, q0, w, K):
    """q = (v - mu)_+ / w with v = g - clip(g - u, 0, 1), sum clip(g - u, 0, 1) = K, u by bisection (docs/notes/oracles.md, section 10)."""
    g = f + w * q0
    low, high = g.min() - 2.0, g.max()
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.clip(g - middle, 0.0, 1.0).sum() > K else (low, middle)
    return project((g - np.clip(g - low, 0.0, 1.0)) / w)


def box_block(margins, a0, w, own, y):
    """Maximise sum_j a_j margins_j - w/2 |r(a) - r(a0)|^2 over the unit box; r couples the a_j through s, the sum of changes.

    ``own`` = +1 for r = sum a_j (e_j - e_y): a_j = clip(a0_j + margin_j/w - s). ``own`` = -1/k for r = sum a_j (e_j - 1/k):
    a_j = clip(a0_j + margin_j/w + s/k).
    """

    def at(s):
        a = np.clip(a0 + margins / w - own * s, 0.0, 1.0)
        a[y] = 0.0
        return a

    low, high = -float(len(a0)), float(len(a0))
    for _ in range(60):
        middle = 0.5 * (low + high)
        if (at(middle) - a0).sum() > middle:
            low = middle
        else:
            high = middle
    return at(0.5 * (low + high))


def abstain_block(f, q0, w, alpha):
    """The zero-one block while max q >= 1 - alpha, else a projection, cut at 1 - alpha (docs/notes/oracles.md, section 6)."""
    q = zero_one_block(f, q0, w)
    if q.max() >= 1.0 - alpha:
        return q
    q = project(q0 + f / w)
    if q.max() <= 1.0 - alpha:
        return q
    low, high = (q0 + f / w).min() - 2.0, (q0 + f / w).max()
    for _ in range(80):
        middle = 0.5 * (low + high)
        if np.clip(q0 + f / w - middle, 0.0, 1.0 - alpha).sum() > 1.0:
            low = middle
        else:
            high = middle
    return np.clip(q0 + f / w - 0.5 * (low + high), 0.0, 1.0 - alpha)


def convex_block(matrix, f, q0, w):
    """Minimise over positions r the value of the projection on the simplex of q0 + (f + Ltilde(r, .))/w, by golden section."""

    def row(r):
        below = min(int(r), max(len(matrix) - 2, 0))
        return matrix[below] + (r - below) * (matrix[min(below + 1, len(matrix) - 1)] - matrix[below])

    def answer(r):
        tilted = f + row(r)
        q = project(q0 + tilted / w)
        return float(tilted @ q - 0.5 * w * (q - q0) @ (q - q0)), q

    low, high = 0.0, float(len(matrix) - 1)
    golden = 0.5 * (5**0.5 - 1)
    for _ in range(50):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if answer(left)[0] <= answer(right)[0]:
            high = right
        else:
            low = left
    return answer(0.5 * (low + high))[1]


def sets_block(f, q0, w, steps):
    """Return argmax over distributions q of min_s 1 + c_s - Q_s + f.q - w/2 |q - q0|^2, Q_s the sum of the s largest, by roots.

    At a level theta, where classes that are covered at times stay, q follows; it is too low while another class covered costs more.
    """
    g = f + w * q0

    def masses(mu, theta):
        return np.maximum(np.where(g - mu < w * theta, g - mu, np.maximum(w * theta, g - mu - 1.0)), 0.0)

    def at(theta):
        mu = brentq(lambda mu: masses(mu, theta).sum() - w, g.max() - 2.0 * w - 1.0, g.max(), xtol=1e-15, rtol=1e-15)
        wq = masses(mu, theta)
        return wq / wq.sum(), np.clip(g - mu - w * theta, 0.0, 1.0).sum()

    low, high = 0.0, 1.0
    for _ in range(60):
        theta = 0.5 * (low + high)
        size = int(np.ceil(at(theta)[1] - 1e-9))
        low, high = (theta, high) if size > 1 and steps[size - 2] > theta else (low, theta)
    return at(high)[0]


def matrix_block(L, f, q0, w):
    """Return argmax over distributions q of min_i (Lq)_i + f.q - w/2 |q - q0|^2 by the primal active-set method on (q, v), v <= (Lq)_i."""
    l, k = L.shape
    q, used, tight = q0.copy(), q0 > 0, [int(np.argmin(L @ q0))]
    dependent: set[int] = set()  # tight rows that move as the others say
    for _ in range(50 * (k + l)):
        labels = np.flatnonzero(used)
        rows = L[np.ix_(tight, labels)]
        if np.linalg.matrix_rank(rows - rows.mean(axis=1)[:, None] - (rows[0] - rows[0].mean()), tol=1e-9) < len(tight) - 1:
            dependent.add(tight.pop())
            continue
        m, size = len(tight), int(used.sum())
        # unknown: q on the labels in use, the rows' multipliers p, the level v of the tight rows, the multiplier mu of the sum
        system, right = np.zeros((size + m + 2, size + m + 2)), np.zeros(size + m + 2)
        A = L[np.ix_(tight, labels)]
        system[:size, :size], system[:size, size : size + m], system[:size, -1] = -w * np.eye(size), A.T, -1.0
        system[size : size + m, :size], system[size : size + m, -2] = A, -1.0
        system[-2, size : size + m], system[-1, :size] = 1.0, 1.0
        right[:size], right[-2:] = -(f + w * q0)[labels], 1.0
        answer = np.linalg.solve(system, right)
        target, p, mu = np.zeros(k), answer[size : size + m], answer[-1]
        target[labels] = answer[:size]
        move = target - q
        if m < size and np.abs(move).max() > 1e-13:
            slack, slope = L @ q - (L @ q)[tight[0]], L @ move - (L @ move)[tight[0]]
            steps = [(q[j] / -move[j], j, True) for j in labels if move[j] < 0]
            steps += [
                (max(slack[i], 0.0) / -slope[i], i, False) for i in range(l) if i not in tight and i not in dependent and slope[i] < -1e-13
            ]
            length, which, is_label = min(steps, default=(1.0, -1, False))
            q = np.maximum(q + min(length, 1.0) * move, 0.0)
            if length < 1.0:
                if is_label:
                    used[which] = False
                    q[which] = 0.0
                else:
                    tight.append(which)
                continue
        reduced = np.where(used, 0.0, mu - (f + w * q0) - p @ L[tight])
        wishes = [(p[a], a, False) for a in range(m) if m > 1] + [(reduced[j], j, True) for j in range(k) if not used[j]]
        worst, which, is_label = min(wishes, default=(0.0, -1, False))
        if worst >= -1e-12:
            break
        dependent.clear()
        if is_label:
            used[which] = True
        else:
            tight.pop(which)
    return q


def block(loss, f, r0, y, w):
    """Return argmax over r in conv R(y) of c(r) + f.r - w/2 |r - r0|^2."""
    k = loss.n_classes
    unit = np.eye(k)[y]
    f = f - f.max()
    if loss.kernel == "zero_one":
        return zero_one_block(f, r0 + unit, w) - unit
    if loss.kernel == "top_k":
        return top_k_block(f, r0 + unit, w, loss.K) - unit
    if loss.kernel == "cs":  # c = 1 - q_y is linear
        return project(r0 + unit + (f + 1.0 - unit) / w) - unit
    if loss.kernel == "ww":
        a0 = r0 * (1.0 - unit)
        a = box_block(1.0 + f - f[y], a0, w, 1.0, y)
        return a - a.sum() * unit
    if loss.kernel == "llw":
        a0 = (r0 - r0[y]) * (1.0 - unit)
        a = box_block(1.0 + f - f.mean(), a0, w, -1.0 / k, y)
        return a - a.sum() / k
    if loss.kernel == "abstain":
        return abstain_block(f, r0 + unit, w, loss.alpha) - unit
    if loss.kernel in ("absolute", "squared", "convex"):
        return convex_block(loss.matrix, f, r0 + unit, w) - unit
    if loss.kernel == "label_sets":
        return sets_block(f, r0 + unit, w, loss.steps) - unit
    return matrix_block(loss.matrix, f, r0 + unit, w) - unit


def dual_ascent(loss, X, y, lam, sample_weight=None, cost_weight=None, tol=1e-6, max_passes=500, seed=0):
    """Return (theta, R, primal, dual, passes); stops at the first relative gap <= ``tol`` at the end of a pass."""
    n, d = X.shape
    s = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    w = np.ones(n) if cost_weight is None else np.asarray(cost_weight, dtype=float)
    mass = s.sum()
    R, theta = np.zeros((n, loss.n_classes)), np.zeros((d, loss.n_classes))
    order, shuffler = list(range(n)), random.Random(seed)
    primal = dual = 0.0
    for done in range(max_passes + 1):
        F = (X @ theta) / w[:, None]
        penalty = 0.5 * lam * (theta**2).sum()
        primal = penalty + (s * w * loss.oracle_reference(F, y).value).sum() / mass
        dual = (s * w * loss.offset_reference(R, y)).sum() / mass - penalty
        if primal - dual <= tol * primal:
            return theta, R, primal, dual, done
        shuffler.shuffle(order)
        for i in order:
            if s[i] == 0.0:
                continue
            f = (X[i] @ theta) / w[i]
            curvature = s[i] * (X[i] @ X[i]) / (lam * mass * w[i])
            if curvature == 0.0:  # a row of zeros moves no score: its best r does not depend on theta
                new = loss.oracle_reference(f[None], y[i : i + 1]).R[0]
            else:
                new = block(loss, f, R[i], y[i], curvature)
            theta -= np.outer(X[i], new - R[i]) * (s[i] / (lam * mass))
            R[i] = new
    return theta, R, primal, dual, max_passes
