"""Training of chains one at a time: the steps of `row_steps` with their searches in one compiled loop over the chains."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.compiled import aligned_zeros, compiled_rows, kernels
from ...solvers.cutting_planes import Planes, Positions, Structure
from .frank_wolfe import FrankWolfe, Gradients, RowSteps


class ChainSteps(RowSteps):
    """Steps at the chains of a `ChainStructure`; W is kept by feature, theta (d, Kp), and the transitions as A (K, Kp)."""

    made: int
    """Steps made, of which subgradients have a length; -1 for Frank-Wolfe."""

    def __init__(self, structure: Structure, lam: float) -> None:
        super().__init__(structure, lam)
        at: Any = structure
        self.rows, self.start = compiled_rows(at.X), np.asarray(at.start, dtype=np.int64)
        self.grams = np.empty(int((np.diff(self.start).astype(np.float64) ** 2).sum()))
        kernels.chain.gram(*self.rows, self.start, self.grams)
        d, padded = at.X.shape[1], kernels.chain.width(at.K)
        self.theta, self.A = aligned_zeros((d, padded)), np.zeros((at.K, padded))
        late = self.made >= 0
        self.late_theta, self.late_A = aligned_zeros((d * late, padded)), np.zeros((at.K * late, padded))

    def sweep(self, order: Positions) -> int:
        """Step at every example."""
        at: Any = self.structure
        kernels.chain.row_sweep(
            at.kind,
            at.beta,
            *self.rows,
            self.start,
            at.y,
            self.grams,
            np.ascontiguousarray(order, dtype=np.intp),
            self.theta,
            self.A,
            self.parts,
            self.constant,
            at.share,
            self.lam,
            self.made,
            self.late_theta,
            self.late_A,
        )
        self.W, self.shared = self.theta[:, : at.K].T, self.A[:, : at.K].ravel()
        return len(order)


class ChainFrankWolfe(ChainSteps, FrankWolfe):
    """Block-coordinate Frank-Wolfe over chains."""

    made = -1

    def begin(self, planes: Planes) -> None:
        """Begin at the mean of planes."""
        super().begin(planes)
        K = self.structure.K
        self.theta[:, :K], self.A[:, :K] = self.W.T, self.shared.reshape(K, K)


class ChainGradients(ChainSteps, Gradients):
    """Stochastic subgradients over chains."""

    made = 0

    def sweep(self, order: Positions) -> int:
        """Step at every example."""
        calls = super().sweep(order)
        K = self.structure.K
        self.late_W, self.late_shared = self.late_theta[:, :K].T, self.late_A[:, :K].ravel()
        self.made += len(order)
        self.t, self.sweeps = self.made, self.sweeps + 1
        return calls


CHAINS_BY_ROWS: dict[str, type[RowSteps]] = {each.solver: each for each in (ChainFrankWolfe, ChainGradients)}
