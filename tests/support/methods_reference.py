"""Plain-Python references of the compiled UMA and perceptron kernels, written from the paper's algorithms."""

import numpy as np

_MASK = (1 << 64) - 1


class Bits:
    """splitmix64, the kernels' source of random numbers."""

    def __init__(self, seed):
        self.state = seed & _MASK

    def __call__(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)


def members(F, alpha):
    """A_p as booleans (n, k): f_p exceeds every other score by alpha; ties count at alpha = 0."""
    n, k = F.shape
    member = np.zeros((n, k), dtype=bool)
    for p in range(k):
        others = np.delete(F, p, axis=1)
        member[:, p] = (F[:, [p]] - others >= alpha).all(axis=1)
    return member


def update_vectors(X, y, C, F, alpha=0.0):
    """z_pq in [p, q], shape (k, k, d): steps 4 to 7 of Algorithm 2."""
    n, k = F.shape
    member = members(F, alpha)
    Z = np.empty((k, k, X.shape[1]))
    for p in range(k):
        gamma = np.array([X[(y == label) & member[:, p]].sum(axis=0) / n for label in range(k)])
        Z[p] = np.linalg.solve(C, gamma)
    return Z


def step_sizes(f, q, alpha, step, square, p=None):
    """tau (k,) of an update whose point has scores f and class q; None when the error set is empty."""
    k = len(f)
    errors = [r for r in range(k) if r != q and f[r] - f[q] >= alpha]
    if not errors:
        return None
    tau = np.zeros(k)
    worst = max(errors, key=lambda r: (f[r], -r))
    if step == "uniform":
        tau[errors] = -1.0 / len(errors)
        tau[q] = 1.0
        return tau
    size = (1.0 + f[worst] - f[q]) / (2.0 * square) if step == "passive_aggressive" else 1.0
    tau[p if step == "perceptron" and p is not None else worst] = -size
    tau[q] = size
    return tau


def uma(X, y, C, *, rule="error", step="perceptron", unit=False, alpha=0.0, tol=1e-12, limit=1000, seed=0, W=None):
    """Algorithm 2 with every sum formed anew; returns (W, updates, why it stopped)."""
    n, k = len(y), len(C)
    W = np.zeros((k, X.shape[1])) if W is None else W.copy()
    prior = np.linalg.solve(C, np.bincount(y, minlength=k) / n)
    bits = Bits(seed)
    for update in range(limit):
        Z = update_vectors(X, y, C, X @ W.T, alpha)
        norm = np.linalg.norm(Z, axis=2)
        pairs = [(p, q) for p in range(k) for q in range(k) if p != q and norm[p, q] > tol and (rule != "confusion" or prior[q] > 0)]
        if not pairs:
            return W, update, "tol"
        while pairs:
            if rule == "random":
                p, q = pairs[bits() % len(pairs)]
            else:
                p, q = max(pairs, key=lambda pq: norm[pq] / prior[pq[1]] if rule == "confusion" else norm[pq])
            if (W[p] - W[q]) @ Z[p, q] >= alpha:
                break
            pairs.remove((p, q))
        else:
            return W, update, "no_mistake"
        scaled = unit or step == "passive_aggressive"
        point = Z[p, q] / norm[p, q] if scaled else Z[p, q]
        W += np.outer(step_sizes(W @ point, q, alpha / norm[p, q] if scaled else alpha, step, 1.0, p), point)
    return W, limit, "max_updates"


def online(X, y, k, *, step="perceptron", epochs=20, seed=0):
    """Algorithm 1 over shuffled epochs; returns (W, epochs run, updates)."""
    W, bits, order, updates = np.zeros((k, X.shape[1])), Bits(seed), list(range(len(y))), 0
    for epoch in range(epochs):
        for i in range(len(y) - 1, 0, -1):
            j = bits() % (i + 1)
            order[i], order[j] = order[j], order[i]
        before = updates
        for i in order:
            tau = step_sizes(W @ X[i], y[i], 0.0, step, X[i] @ X[i])
            if tau is not None:
                W += np.outer(tau, X[i])
                updates += 1
        if updates == before:
            return W, epoch + 1, updates
    return W, epochs, updates
