"""Sets of labels with a weight for every pair: rows with several labels, learned by a structured surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...errors import ConfigError, ModelError
from ...outputs.psi import Psi
from ...outputs.sets import MOST_LABELS, levels_of_sets, pair_table, pairs_of, set_numbers, set_rows
from ...stored import Entries
from ..base import Array, one_of, register
from .base import StructuredLearner
from .planes import Cuts, Positions, Structure

PAIRS = {"one": 1, "four": 4, "none": 0}
"""Weights of a pair of labels: one where a set has both, one for each of its four states, or none."""


class PairWeights:
    """How shared weights make the potentials of pairs: f(y) = sum_j y_j (u_j + l_j) + sum over j < k of Q_jk y_j y_k + a constant."""

    def __init__(self, m: int, pairs: str) -> None:
        self.m, self.states = m, PAIRS[pairs]
        self.j, self.k = pairs_of(m)
        self.G = self.states * len(self.j)

    def potentials(self, shared: Array) -> tuple[Array, Array]:
        """Return l (m,) and Q (m (m - 1) / 2,)."""
        if self.states < 4:
            return np.zeros(self.m), shared if self.states else np.zeros(len(self.j))
        off, first, second, both = shared.reshape(-1, 4).T  # neither, j alone, k alone, both
        linear = np.bincount(self.j, first - off, self.m) + np.bincount(self.k, second - off, self.m)
        return linear, both - first - second + off

    def counts(self, Y: NDArray[np.int8]) -> Array:
        """Return what sets (n, m) of 0 and 1 have of every shared weight, shape (n, G)."""
        if not self.states:
            return np.zeros((len(Y), 0))
        first, second = Y[:, self.j], Y[:, self.k]
        if self.states == 1:
            return (first * second).astype(np.float64)
        states = np.stack([(1 - first) * (1 - second), first * (1 - second), (1 - first) * second, first * second], axis=2)
        return states.reshape(len(Y), -1).astype(np.float64)


class SetStructure(Structure):
    """Rows with sets of labels Y (n, m), of which all 2^m are searched."""

    def __init__(self, X: Any, Y: NDArray[np.int8], share: Array, psi: Psi, field: PairWeights) -> None:
        self.X, self.Y, self.share, self.psi, self.field = X, Y, share, psi, field
        self.start = np.arange(len(Y) + 1)
        self.K, self.G = Y.shape[1], field.G
        self.numbers, self.sizes = set_numbers(Y), Y.sum(axis=1, dtype=np.int64)
        self.own = field.counts(Y)

    def search(self, U: Array, shared: Array, examples: Positions) -> Cuts:
        """Return the worst set of each row from its levels."""
        Y, size, m = self.Y[examples], self.sizes[examples], self.K
        linear, pairs = self.field.potentials(shared)
        U, table, at = U + linear, pair_table(pairs, m), np.arange(len(examples))
        if self.psi.axes == "f1":
            score = (U * Y).sum(axis=1) + table[self.numbers[examples]]
            best, label = levels_of_sets(U + (1.0 - 2.0 * Y), table, np.zeros(len(at), dtype=np.intp))
            h, g = best + (size - score)[:, None], -(np.arange(m + 1.0) + size[:, None])
        else:
            best, label = levels_of_sets(U, table, self.numbers[examples])
            h, g = best - best[:, :1], np.broadcast_to(np.arange(m + 1.0), best.shape)
        value = self.psi.value(h, g)
        level = np.argmax(value, axis=1)
        value, h, g = value[at, level], h[at, level], g[at, level]
        found = set_rows(label[at, level], m)
        slope = self.psi.slopes(h, g)[0]
        margin = h - (found != Y).sum(axis=1) if self.psi.axes == "f1" else h
        parts = np.hstack([self.field.counts(found) - self.own[examples], found - Y.astype(np.float64)]) * slope[:, None]
        value = np.maximum(value, 0.0)
        return Cuts(sparse.csr_array(parts), value - slope * margin, value, value, len(at))


@register("sets")
@dataclass(kw_only=True, eq=False, repr=False)
class MultilabelClassifier(StructuredLearner):
    """Sets of labels, scored by labels and by pairs of labels, from a surrogate of the number of wrong labels (choi2018, chapters 3 to 5).

    f(y) = sum_j y_j w_j.x + sum over j < k of P_jk y_j y_k predicts the set of the largest score. The fit minimises
    lambda/2 (|W|^2 + |P|^2) + mean over rows of max over y of psi(f(y) - f(y_i), number of labels that differ), lambda = 1/(n C).

    Parameters
    ----------
    surrogate : {"margin", "slack", "scaling", "log", "prob", "f1"}
        psi (`advcli.outputs.psi`).
    pairs : {"one", "four", "none"}
        Weights of a pair of labels: one where a set has both; one for each of its four states, which is the same functions under another
        ridge; none, which leaves each label to itself.
    beta : float or None
        Of ``surrogate="scaling"``; None: 0.5.
    search : {"auto", "levels"}
        How the worst set of a row is found.
    C : float
        Weight of the summed surrogate against |w|^2 / 2.
    lam : float or None
        Lambda itself; overrides ``C``.
    tol : float
        Relative duality gap at which the fit is accepted.
    max_passes : float
        Limit of searches of all rows; beyond, a fit warns (`NotConvergedWarning`) and keeps its certificate.
    fit_intercept : bool
        Whether a constant 1 is appended to the rows, penalised like the rest.
    features, features_options, n_classes, random_state
        As in `UMAClassifier`.

    Attributes
    ----------
    coef_ : ndarray (m, d)
        W.
    shared_ : ndarray (m (m - 1) / 2,), or four times as many, or none
        P, pairs in the order of ``numpy.triu_indices``; the states of a pair: neither, first, second, both.
    certificate_, oracle_gap_, oracle_calls_
        As in `StructuredLearner`.

    Notes
    -----
    y is (n, m) of 0 and 1; rows may be without a label. Labels of one column are sets of one label.
    """

    sets: ClassVar[bool] = True
    empty_sets: ClassVar[bool] = True

    pairs: str = "one"

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""
        super().check_parameters()
        one_of("pairs", self.pairs, PAIRS)
        one_of("search", self.search, ("auto", "levels"))

    def structure(self, X: Any, y: Any, share: Array, psi: Psi) -> SetStructure:
        """Return the rows and their sets."""
        m = len(self.classes_)
        if m > MOST_LABELS:
            raise ConfigError(f"loss.search={self.search} enumerates sets of at most {MOST_LABELS} labels, the data have {m}")
        Y = y.toarray() if self.of_sets_ else np.eye(m)[y]
        return SetStructure(X, Y.astype(np.int8), share, psi, PairWeights(m, self.pairs))

    # ---- prediction -----------------------------------------------------------------------------------------------
    def best_sets(self, X: Any) -> NDArray[np.int8]:
        """Return the set of the largest score at rows X (n, d), as 0 and 1 (n, m); of sets that tie the smallest number."""
        m = len(self.classes_)
        linear, pairs = PairWeights(m, self.pairs).potentials(self.shared_)
        U = self.potentials(X) + linear
        best, label = levels_of_sets(U, pair_table(pairs, m), np.zeros(len(U), dtype=np.intp))
        return set_rows(label[np.arange(len(best)), np.argmax(best, axis=1)], m)

    def predict_codes(self, X: Any) -> Any:
        """Return the best sets as csr_array (n, m) where labels are sets, else the code of the best set of one label."""
        if self.of_sets_:
            return sparse.csr_array(self.best_sets(X))
        linear = PairWeights(len(self.classes_), self.pairs).potentials(self.shared_)[0]
        return np.argmax(self.potentials(X) + linear, axis=1).astype(np.intp)

    def predict(self, X: Any) -> Any:
        """Return sets of labels as `predict_codes` does, or labels (n,)."""
        return self.predict_codes(X) if self.of_sets_ else super().predict(X)

    # ---- saving ---------------------------------------------------------------------------------------------------
    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model."""
        if self.pairs not in PAIRS:
            raise ModelError(f"pairs={self.pairs} is none of {', '.join(PAIRS)}")
        self.shared_ = attributes.array("shared_", (PairWeights(len(self.classes_), self.pairs).G,))
        super().restore(attributes)
