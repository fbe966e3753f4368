"""Pairwise steps over stored planes in plain NumPy (`_ext/structured/planes.pyx`)."""

import numpy as np
from scipy import sparse


def pairwise_pass(planes, lam, W, shared, order, steps):
    """Visit examples in this order; the planes' alpha, W (K, d) and shared (G,) change in place. Returns the gap, summed on the way."""
    at, begin, gap = planes.problem, planes.start, 0.0
    for i in order:
        few = slice(begin[i], begin[i + 1])
        p = few.stop - few.start
        if not p:
            continue
        rows = slice(at.start[i], at.start[i + 1])
        X = at.X[rows]
        X = X.toarray() if sparse.issparse(X) else X
        A = planes.parts[few].toarray()
        local = A[:, at.G : at.G + at.K * X.shape[0]].reshape(p, -1, at.K)
        # the plane 0 comes last
        value = np.append(planes.constant[few] + A[:, : at.G] @ shared + np.einsum("ptk,tk->p", local, X @ W.T), 0.0)
        gram = np.zeros((p + 1, p + 1))
        gram[:p, :p] = A[:, : at.G] @ A[:, : at.G].T + np.einsum("ptk,ts,qsk->pq", local, X @ X.T, local)
        alpha = np.append(planes.alpha[few], 0.0)
        alpha[p] = 1.0 - alpha.sum()
        alpha[p] *= alpha[p] > 1e-12
        before = alpha.copy()
        gap += at.share[i] * float(value.max() - alpha @ value)
        for _ in range(steps):
            high = p if value.max() == 0.0 else int(np.argmax(value))
            low = int(np.argmin(np.where(alpha > 0.0, value, np.inf)))
            ahead = value[high] - value[low]
            if not ahead > 1e-15 * max(1.0, abs(value[high])):
                break
            bend = gram[high, high] - 2.0 * gram[high, low] + gram[low, low]
            whole = alpha[low]
            step = whole if bend * at.share[i] * whole <= ahead * lam else ahead * lam / (at.share[i] * bend)
            alpha[high] += step
            alpha[low] = 0.0 if step == whole else whole - step
            value -= step * at.share[i] / lam * (gram[:, high] - gram[:, low])
        planes.alpha[few] = alpha[:p]
        moved = (before[:p] - alpha[:p]) * (at.share[i] / lam)
        shared += moved @ A[:, : at.G]
        W += np.einsum("p,ptk,td->kd", moved, local, X)
    return gap


def shuffled(n, seed):
    """Return the order of a pass by the kernel's stream of random bits (splitmix64) from this state."""
    order, mask = list(range(n)), 2**64 - 1
    for i in range(n - 1, 0, -1):
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        j = (z ^ (z >> 31)) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def swept_pass(planes, lam, W, order, steps):
    """Visit single rows in this order, each after its worst plane is stored where it lies above the others; as `pairwise_pass`."""
    at, gap = planes.problem, 0.0
    for i in order:
        x = at.X[[i]]
        u = ((x.toarray() if sparse.issparse(x) else x) * W).sum(axis=1)[None]  # equal columns have equal scores, as ties need
        cuts = at.search(u, np.zeros(0), np.array([i]))
        mine = planes.owner == i
        known = float(np.max(planes.constant[mine] + planes.parts.toarray()[mine] @ u[0], initial=0.0))
        planes.add_violated(cuts, np.array([i]), np.array([known]))
        gap += pairwise_pass(planes, lam, W, np.zeros(0), [i], steps)
    return gap
