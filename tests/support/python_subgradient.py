"""Stochastic subgradient passes in plain Python: what `_ext/stochastic/subgradient.pyx` computes, on dense rows, without anything that
makes it fast.

A feature map is a function i -> J_i, the (k, p) matrix with f_i = J_i theta over the flattened parameters; ``penalised`` marks those that
carry lambda. ``oracle(f, y)`` is the surrogate's answer r: the compiled one of the same level, because at ties any vertex is right.
"""

import numpy as np


def linear_map(X, k):
    """theta (d, k) row by row: f_j = sum_a x_a theta_aj."""
    return lambda i: np.kron(X[i][None, :], np.eye(k))


def threshold_map(X, k):
    """theta = (w, eta): f_j = j w.x + sum over l >= j of eta_l, j = 1..k."""
    steps = np.array([[float(l >= j) for l in range(k - 1)] for j in range(k)])
    return lambda i: np.hstack([np.outer(np.arange(1, k + 1), X[i]), steps])


def factors(n, sample, cost):
    s = np.ones(n) if sample is None else sample
    w = np.ones(n) if cost is None else cost
    return s, w, s.sum()


def sgd(oracle, k, J, penalised, y, lam, order, sample=None, cost=None, radius=0.0, unit=1.0, weights=None):
    """Return theta, the average of the iterates with ``weights(t)``, and the mean answers, after steps of 1/(lambda t)."""
    n = len(y)
    s, w, mass = factors(n, sample, cost)
    theta = np.zeros(len(penalised))
    squares, average, total = np.zeros(len(penalised)), np.zeros(len(penalised)), 0.0
    R, counts = np.zeros((n, k)), np.zeros(n)
    for t, i in enumerate(order, start=1):
        r = oracle(J(i) @ theta / w[i], y[i])
        counts[i] += 1
        R[i] += (r - R[i]) / counts[i]
        g = s[i] * n / mass * (J(i).T @ r)
        ridge = penalised * ((1 - 1 / t) * theta - g / (lam * t))
        length = np.linalg.norm(ridge)
        if radius > 0 and length > radius:
            ridge *= radius / length
        squares += g**2
        moves = (penalised == 0) & (g != 0)
        free = (1 - penalised) * theta
        free[moves] -= unit * g[moves] / np.sqrt(squares[moves])
        theta = ridge + free
        if weights is not None:
            total += weights(t)
            average += weights(t) / total * (theta - average)
    return theta, average, R


def soft(theta, width):
    """The proximal map of width |.|."""
    return np.sign(theta) * np.maximum(np.abs(theta) - width, 0.0)


def dual_averaging(oracle, k, J, y, lam, strength, tolerance, order, batch, sample=None, cost=None, weights=None):
    """Return theta, the average of the iterates with ``weights(t)``, and the mean answers, of regularised dual averaging."""
    n = len(y)
    s, w, mass = factors(n, sample, cost)
    theta, total = np.zeros(len(tolerance)), np.zeros(len(tolerance))
    average, summed = np.zeros(len(tolerance)), 0.0
    R, counts = np.zeros((n, k)), np.zeros(n)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        answers = [oracle(J(i) @ theta / w[i], y[i]) for i in rows]
        for i, r in zip(rows, answers, strict=True):
            counts[i] += 1
            R[i] += (r - R[i]) / counts[i]
            total = total + s[i] * n / mass * (J(i).T @ r)
        t = start + len(rows)
        theta = -soft(total / t, tolerance) / (lam + strength / np.sqrt(t))
        if weights is not None:
            summed += weights(t)
            average = average + weights(t) / summed * (theta - average)
    return theta, average, R


def adaptive(oracle, k, J, penalised, y, lam, order, batch, step, beta1, beta2, sample=None, cost=None, theta=None, tolerance=0.0):
    """Return theta and the mean answers (the t-th with weight t) after AdaGrad's (beta2 = 0) or Adam's steps."""
    n = len(y)
    s, w, mass = factors(n, sample, cost)
    theta = np.zeros(len(penalised)) if theta is None else theta.copy()
    first, second = np.zeros(len(theta)), np.zeros(len(theta))
    R, counts = np.zeros((n, k)), np.zeros(n)
    for steps, start in enumerate(range(0, len(order), batch), start=1):
        rows = order[start : start + batch]
        g = lam * penalised * theta
        for i in rows:
            r = oracle(J(i) @ theta / w[i], y[i])
            counts[i] += 1
            R[i] += 2 / (counts[i] + 1) * (r - R[i])
            g = g + s[i] * n / mass * (J(i).T @ r) / len(rows)
        if beta2 == 0:
            second += g**2
            size = np.divide(step, np.sqrt(second), out=np.zeros_like(g), where=second != 0)
            theta = soft(theta - size * g, size * tolerance)
        else:
            first = beta1 * first + (1 - beta1) * g
            second = beta2 * second + (1 - beta2) * g**2
            size = step / (np.sqrt(second / (1 - beta2**steps)) + 1e-8)
            theta = soft(theta - size * first / (1 - beta1**steps), size * tolerance)
    return theta, R


def averaged_gradient(block, J, penalised, y, lam, order, batch, step, smoothing, centre, sample=None, cost=None, tolerance=0.0):
    """Return theta and the last answers of SAG; ``block(f, r0, y, w)`` is argmax over r of c(r) + f.r - w/2 |r - r0|^2."""
    n = len(y)
    s, w, mass = factors(n, sample, cost)
    theta, R = np.zeros(len(penalised)), centre.copy()
    for start in range(0, len(order), batch):
        for i in order[start : start + batch]:
            if s[i] > 0:
                R[i] = block(J(i) @ theta / w[i], centre[i], y[i], smoothing)
        total = sum(s[i] * (J(i).T @ R[i]) for i in range(n))
        theta = soft(theta - step * (total / mass + lam * penalised * theta), step * tolerance)
    return theta, R
