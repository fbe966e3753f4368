"""Dual ascent by several threads in plain Python, one thread after the other: what `_ext/ascent/adv_rounds.pxd` computes, visit by visit.

The zero-one surrogate on dense rows without weights. One thread is the ascent of `_ext/ascent/ascent_dense.pyx`. Random bits, permutations
and the order of all sums are those of the compiled loop, so the two agree to rounding at every pass and not only at the optimum.
"""

import numpy as np
from support import methods_reference, python_dual

ACTIVE_PASSES = 10


class Bits(methods_reference.Bits):
    """The stream of random bits of one thread, and permutations by it."""

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = self() % (i + 1)
            items[i], items[j] = items[j], items[i]


def cut(n, size, t):
    """Return where part t of ``size`` nearly equal parts of n begins."""
    return n // size * t + (n % size) * t // size


class Rounds:
    """Theta of all threads, what a round's steps count for, and each thread's own stream of bits."""

    def start(self, theta, threads, together, seed):
        """Begin at Theta, with rounds of so many visits of each thread."""
        self.theta, self.threads, self.together = theta, threads, together
        seeds = Bits(seed)
        self.own_bits = [Bits(seeds()) for _ in range(threads)] if threads > 1 else [seeds]
        self.sigma = self.mean = 1.0

    def combine(self, changes):
        """Add up what the threads changed, sigma times, and measure the next sigma."""
        both = sum(changes)
        self.theta = self.theta + both / self.sigma
        apart = sum((change**2).sum() for change in changes)
        if apart > 0.0:
            least = (both**2).sum() / apart
            self.mean += (0.5 if least > self.mean else 0.1) * (least - self.mean)
            self.sigma = min(float(self.threads), max(1.0, self.mean))


class Ascent(Rounds):
    """The state that all threads share."""

    def __init__(self, loss, X, y, lam, threads, together, seed):
        self.loss, self.X, self.y, self.lam = loss, X, y, lam
        self.start(np.zeros((X.shape[1], loss.n_classes)), threads, together, seed)
        self.R = np.zeros((len(y), loss.n_classes))

    def certify(self):
        """Return the primal and the dual value, and every row's gap."""
        penalty, F = 0.5 * self.lam * (self.theta**2).sum(), self.X @ self.theta
        values, offsets = self.loss.oracle_reference(F, self.y).value, self.loss.offset_reference(self.R, self.y)
        return penalty + values.mean(), offsets.mean() - penalty, values - offsets - (F * self.R).sum(axis=1)

    def visit(self, i, theta, skip):
        """Move r_i and the thread's Theta; return the gap of the block before."""
        f = self.X[i] @ theta
        value = self.loss.oracle_reference(f[None], self.y[i : i + 1]).value[0]
        gap = value - self.loss.offset_reference(self.R[i : i + 1], self.y[i : i + 1])[0] - f @ self.R[i]
        if gap > skip:
            step = self.sigma / (self.lam * len(self.y))
            new = python_dual.block(self.loss, f, self.R[i], self.y[i], step * (self.X[i] @ self.X[i]))
            theta -= step * np.outer(self.X[i], new - self.R[i])
            self.R[i] = new
        return gap

    def visit_parts(self, parts, skip):
        """Visit every thread's part in rounds; return the gaps in the parts' shape."""
        gaps = [[] for _ in parts]
        for first in range(0, max(map(len, parts)), self.together):
            changes = []
            for part, found in zip(parts, gaps, strict=True):
                theta = self.theta.copy()
                found += [self.visit(i, theta, skip) for i in part[first : first + self.together]]
                changes.append(theta - self.theta)
            self.combine(changes)
        return gaps

    def deal(self, parts):
        """Shuffle every part; thread t owns the t-th slice of each."""
        for bits, part in zip(self.own_bits, parts, strict=True):
            bits.shuffle(part)
        size = self.threads
        return [[i for part in parts for i in part[cut(len(part), size, t) : cut(len(part), size, t + 1)]] for t in range(size)]


class Resting:
    """What one thread knows of its rows: the gap of each at its last visit or evaluation, and the passes that leave it out."""

    def __init__(self, n):
        self.gaps, self.rests, self.rested = np.zeros(n), [0] * n, [0] * n

    def awake(self):
        """Return the rows that a pass over all rows visits."""
        rows = [i for i, left in enumerate(self.rests) if left == 0]
        self.rests = [max(left - 1, 0) for left in self.rests]
        return rows

    def note(self, rows, gaps, skip):
        """Take the gaps that visits found."""
        for i, gap in zip(rows, gaps, strict=True):
            self.gaps[i] = gap
            self.rests[i] = self.rested[i] = min(2 * self.rested[i] + 1, 7) if gap <= skip else 0

    def renew(self, gaps, skip):
        """Take the gaps that an evaluation found."""
        self.gaps = gaps
        for i in np.flatnonzero(gaps > skip):
            self.rests[i] = self.rested[i] = 0


def ascend(loss, X, y, lam, threads, together, tol=1e-6, max_passes=100.0, seed=0):
    """Return (code, passes, primal, dual, R, theta)."""
    n, size = len(y), threads
    state = Ascent(loss, X, y, lam, threads, together, seed)
    parts = [list(range(cut(n, size, t), cut(n, size, t + 1))) for t in range(size)]
    primal, dual, _ = state.certify()
    visits, next_check, alone = n, 2.0, Resting(n) if size == 1 else None
    while True:
        if primal - dual <= tol * primal:
            return 0, visits / n, primal, dual, state.R, state.theta
        if visits + 2 * n > max_passes * n:
            return 1, visits / n, primal, dual, state.R, state.theta
        skip = 1e-3 * tol * primal
        parts = state.deal([alone.awake()] if alone else parts)
        gaps = state.visit_parts(parts, skip)
        total = sum(map(sum, gaps))
        visits += sum(map(len, parts))
        level = 0.02 * total / n
        if alone:
            alone.note(parts[0], gaps[0], skip)
            active = [np.flatnonzero(alone.gaps > level).tolist()]
            active_total = alone.gaps[active[0]].sum()
        else:
            active = [[i for i, gap in zip(*both, strict=True) if gap > level] for both in zip(parts, gaps, strict=True)]
            active_total = sum(gap for found in gaps for gap in found if gap > level)
        goal, count = 0.3 * active_total, sum(map(len, active))
        if count < 0.9 * n:
            for _ in range(ACTIVE_PASSES):
                if visits + count + n > max_passes * n:
                    break
                active = state.deal(active)
                total -= active_total
                found = state.visit_parts(active, skip)
                active_total = sum(map(sum, found))
                total += active_total
                visits += count
                if alone:
                    alone.note(active[0], found[0], skip)
                if active_total <= goal:
                    break
        if total / n <= 1.2 * tol * primal or visits / n >= next_check or visits + 2 * n > max_passes * n:
            primal, dual, gaps = state.certify()
            visits += n
            next_check = 1.5 * visits / n + 2.0
            if alone:
                alone.renew(gaps, skip)
