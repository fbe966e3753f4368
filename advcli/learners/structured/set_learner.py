"""The base of learners of sets of labels: rows that stand alone, each one example, trained by planes or row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.errors import IncompatibleError
from ...core.typing import Array
from ...features.merging import equal_rows, summed
from ...solvers.cutting_planes import PlaneFit, Planes, Positions, Structure
from ..options import one_of, seed_of
from .frank_wolfe import BY_ROWS, learn_by_rows
from .learner import GAMES, StructuredLearner
from .spaces.psi import Psi
from .spaces.searches import SEARCHES, is_slack


@dataclass(kw_only=True, eq=False, repr=False)
class SetLearner(StructuredLearner):
    """Base of learners of sets of labels, which differ in what scores a set.

    Attributes
    ----------
    became_ : ndarray of intp (n,)
        The example that each given row became; equal rows with equal sets are one of their summed weight.
    """

    sets: ClassVar[bool] = True

    training: str = "planes"

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""
        super().check_parameters()
        one_of("loss.training", self.training, ("planes", *BY_ROWS))
        if not self.psi().convex:
            instead = "choose prob, its convex continuation, for a certificate"
            if self.training != "sgd":
                raise IncompatibleError(f"loss.surrogate={self.surrogate}", "loss.training=sgd, as it is not convex", instead)
            if self.search not in ("auto", "levels"):
                raise IncompatibleError(f"loss.search={self.search}", "a convex surrogate", f"loss.surrogate={self.surrogate} has levels")
        if one_of("loss.search", self.search, ("auto", *SEARCHES)) == "auto":
            return
        if self.surrogate in GAMES:
            raise IncompatibleError(
                f"loss.search={self.search}", "a surrogate of margin and loss", f"loss.surrogate={self.surrogate} is a game: choose auto"
            )
        if SEARCHES[self.search].slack and not is_slack(self.psi()):
            instead = f"loss.surrogate={self.surrogate} has loss.search=levels, hull or exact"
            raise IncompatibleError(f"loss.search={self.search}", "loss.surrogate=slack", instead)

    @property
    def trainer(self) -> str:
        """The method of `train`: ``training``."""
        return self.training

    def train(self, structure: Structure, psi: Psi, start: Planes | None) -> PlaneFit:
        """Minimise P at `lam_` as ``training`` says."""
        if self.training == "planes":
            return super().train(structure, psi, start)
        kind, seed = BY_ROWS[self.training], seed_of(self.random_state)
        return learn_by_rows(kind, structure, self.lam_, self.tol, self.max_passes, seed, psi.convex, self.max_seconds, start)

    def learn(self, X: Any, y: Any, weights: Array | None) -> Array:
        """Train on distinct rows: equal rows with equal sets are one of their summed weight."""
        sets = y.toarray() if self.of_sets_ else y[:, None]
        found = equal_rows(X, sets.astype(np.float64))
        if found is None:
            self.became_ = np.arange(X.shape[0])
            return super().learn(X, y, weights)
        first, inverse = found
        self.became_ = inverse.ravel()
        return super().learn(X[first], y[first], summed(inverse, weights))

    def remark_if_not_convex(self) -> tuple[str, ...]:
        """Return what is to be said of a surrogate that is not convex."""
        if self.psi().convex:
            return ()
        return (f"loss.surrogate={self.surrogate} is not convex: SGD found weights, and no bound says how good they are",)


def unmerged(owner: Positions, table: Array, became: Positions) -> Array:
    """Return for every given row, whose number comes first, the rows of a table that distinct rows of the fit own, in their order."""
    first = np.searchsorted(owner, np.arange(int(became.max(initial=-1)) + 2))
    sizes = np.diff(first)[became]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.column_stack([np.repeat(np.arange(len(sizes)), sizes), table[np.repeat(first[became], sizes) + within]])
