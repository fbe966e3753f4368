"""Dual ascent on rows in blocks in plain Python: what `_ext/ascent/ascent_row_blocks.pyx` computes, visit by visit.

Random bits, permutations and the order of visits are those of the compiled loop, so the two agree to rounding at every pass.
"""

import itertools

import numpy as np
from support import python_dual
from support.python_rounds import ACTIVE_PASSES, Bits, Rounds, cut


class Ascent:
    """Rows X as they are meant, standardised and with their constant; R dense."""

    def __init__(self, loss, X, y, lam, sample, cost, rows, together, seed):
        self.loss, self.X, self.y, self.lam, self.bits = loss, X, y, lam, Bits(seed)
        self.sample = np.ones(len(y)) if sample is None else sample
        self.cost = np.ones(len(y)) if cost is None else cost
        self.rows, self.most = rows, max(1, together // rows)
        self.order = list(range(-(-len(y) // rows)))
        self.gap = np.zeros(len(y), dtype=np.float32)
        self.theta, self.R = np.zeros((X.shape[1], loss.n_classes)), np.zeros((len(y), loss.n_classes))
        self.visits, self.sigma = 0, 1.0

    def gap_of(self, i):
        """Return the gap of a block, and the scores it is found at, both without weights."""
        f = self.X[i] @ self.theta / self.cost[i]
        value = self.loss.oracle_reference(f[None], self.y[i : i + 1]).value[0]
        return value - self.loss.offset_reference(self.R[i : i + 1], self.y[i : i + 1])[0] - f @ self.R[i], f

    def certify(self):
        """Return the primal and the dual value, and refresh the gaps."""
        weight, mass = self.sample * self.cost, self.sample.sum()
        self.gap[:] = [weight[i] * self.gap_of(i)[0] for i in range(len(self.y))]
        penalty = 0.5 * self.lam * (self.theta**2).sum()
        value = weight @ self.loss.oracle_reference(self.X @ self.theta / self.cost[:, None], self.y).value
        return penalty + value / mass, weight @ self.loss.offset_reference(self.R, self.y) / mass - penalty

    def visit(self, i, skip):
        """Move r_i and Theta; return the gap of the block before."""
        if self.sample[i] == 0.0:
            return 0.0
        gap, f = self.gap_of(i)
        if gap > skip:
            step = self.sigma * self.sample[i] / (self.lam * self.sample.sum())
            new = python_dual.block(self.loss, f, self.R[i], self.y[i], step * (self.X[i] @ self.X[i]) / self.cost[i])
            self.theta -= step * np.outer(self.X[i], new - self.R[i])
            self.R[i] = new
        return self.sample[i] * self.cost[i] * gap

    def sweep(self, level, skip):
        """Visit the rows whose gap exceeds the level, batch by batch; return the change of the gaps that are known."""
        self.bits.shuffle(self.order)
        return sum(self.change(i, skip) for batch in self.batches(self.order, level, self.bits) for i in batch)

    def batches(self, order, level, bits):
        """Return the rows of these blocks whose gap exceeds the level, batch by batch, each shuffled."""
        blocks = [range(b * self.rows, min((b + 1) * self.rows, len(self.y))) for b in order]
        blocks = [block for block in blocks if level is None or any(self.gap[i] > level for i in block)]
        found = []
        for first in range(0, len(blocks), self.most):
            batch = [i for block in blocks[first : first + self.most] for i in block if level is None or self.gap[i] > level]
            bits.shuffle(batch)
            found.append(batch)
        return found

    def change(self, i, skip):
        """Visit a row; return by how much its gap exceeds that of the visit before."""
        found = self.visit(i, skip)
        change, self.gap[i] = found - float(self.gap[i]), found
        self.visits += 1
        return change


class Together(Ascent, Rounds):
    """Several threads, one after the other: each takes a part of the blocks, and all add up what a round changed."""

    def __init__(self, *given, threads, together):
        super().__init__(*given)
        self.start(self.theta, threads, together, given[-1])

    def sweep(self, level, skip):
        """Do what one thread does, in rounds."""
        self.bits.shuffle(self.order)
        size, change, n = self.threads, 0.0, len(self.order)
        parts = [self.batches(self.order[cut(n, size, t) : cut(n, size, t + 1)], level, bits) for t, bits in enumerate(self.own_bits)]
        for batches in itertools.zip_longest(*parts, fillvalue=[]):
            for first in range(0, max(map(len, batches)), self.together):
                theta, changes = self.theta, []
                for batch in batches:
                    self.theta = theta.copy()
                    change += sum(self.change(i, skip) for i in batch[first : first + self.together])
                    changes.append(self.theta - theta)
                self.theta = theta
                self.combine(changes)
        return change


def ascend(loss, X, y, lam, sample=None, cost=None, rows=16, together=64, tol=1e-6, max_passes=100.0, seed=0, threads=1, visits=512):
    """Return (code, passes, primal, dual, R, theta)."""
    given = (loss, X, y, lam, sample, cost, rows, together, seed)
    state = Ascent(*given) if threads == 1 else Together(*given, threads=threads, together=visits)
    n, mass = len(y), state.sample.sum()
    primal, dual = state.certify()
    state.visits, next_check = n, 2.0
    while True:
        code = 0 if primal - dual <= tol * primal else 1 if state.visits + 2 * n > max_passes * n else None
        if code is not None:
            return code, state.visits / n, primal, dual, state.R, state.theta
        skip = 1e-3 * tol * primal
        state.sweep(None, skip)
        total = float(state.gap.sum(dtype=np.float64))
        level = 0.02 * total / n
        active = state.gap > level
        active_total = float(state.gap[active].sum(dtype=np.float64))
        goal = 0.3 * active_total
        if active.sum() < 0.9 * n:
            for _ in range(ACTIVE_PASSES):
                if state.visits + active.sum() + n > max_passes * n:
                    break
                change = state.sweep(level, skip)
                total, active_total = total + change, active_total + change
                if active_total <= goal:
                    break
        if total / mass <= 1.2 * tol * primal or state.visits / n >= next_check or state.visits + 2 * n > max_passes * n:
            primal, dual = state.certify()
            state.visits += n
            next_check = 1.5 * state.visits / n + 2.0
