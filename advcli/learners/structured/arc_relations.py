"""The relations of words to their heads: a class for each word, given its arc, by the adversarial zero-one loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.compiled import kernels
from ...core.errors import DataError
from ...core.typing import Array
from ..base import Bound, Rows
from ..surrogate import SurrogateClassifier
from .tree_training import Heads, Sentences

FEATURES = 18
"""Of the arc to a word, each 1."""
FEWER_BITS = 6  # a relation has 2^6 times fewer weights than arcs have, as there are dozens of relations
LEAST_BITS = 8


def relation_bits(hash_bits: int) -> int:
    """Return the base-2 logarithm of the number of weights of each relation, for arcs of 2^hash_bits weights."""
    return max(LEAST_BITS, hash_bits - FEWER_BITS)


def arc_features(sentences: Sentences, heads: Heads, bits: int) -> sparse.csr_array:
    """Return the features of the arc to every word from its head, (n, 2^bits)."""
    n = len(heads)
    at = np.empty((n, FEATURES), dtype=np.int32)
    kernels.relations.positions(*sentences.arrays, np.ascontiguousarray(heads, dtype=np.int32), bits, at)
    X = sparse.csr_array((np.ones(at.size), at.ravel(), np.arange(0, at.size + 1, FEATURES, dtype=np.int32)), shape=(n, 2**bits))
    X.sum_duplicates()
    return X


class ArcRelations:
    """The arcs of true trees with their relations, bound once for all fits of a path.

    A fit minimises lambda'/2 |V|^2 + the mean over words of the adversarial zero-one loss of their relation (Fathony et al. 2016), with
    lambda' n' = lambda n for n sentences of n' words: trees and relations share C.
    """

    def __init__(self, sentences: Sentences, heads: Any, relations: Any, weights: Array, bits: int) -> None:
        names = np.asarray(relations, dtype=object)
        if names.shape != (len(sentences.words),):
            raise DataError(f"relations have the shape {names.shape}: give one for each of the {len(sentences.words)} words")
        gaps = [place for place, name in enumerate(names.tolist()) if name is None or name != name or name == ""]
        if gaps:
            raise DataError(f"row {gaps[0] + 1} has no relation to its head; fill it, or leave its sentence out")
        lengths = np.diff(sentences.start)
        self.names, codes = np.unique(names.astype(str), return_inverse=True)
        self.weights = np.repeat(weights, lengths)
        self.fewer = float(weights.sum() / self.weights.sum())  # sentences a word
        self.bound: Bound | None = None
        if len(self.names) > 1:
            arcs = Rows(arc_features(sentences, heads, bits), self.weights)
            self.bound = SurrogateClassifier(n_classes=len(self.names)).bind(arcs, codes.ravel())

    def fit(self, lam: float, tol: float, max_passes: float, seed: int, start: SurrogateClassifier | None) -> SurrogateClassifier | None:
        """Return the fit beside trees at ``lam``, begun at ``start``, a fit at another lambda; None where there is one relation alone."""
        if self.bound is None:
            return None
        learner = SurrogateClassifier(n_classes=len(self.names), lam=lam * self.fewer, tol=tol, max_passes=max_passes, random_state=seed)
        return learner.fit_bound(self.bound, start)


def relations_at(sentences: Sentences, heads: Heads, names: NDArray[Any], theta: Array) -> NDArray[Any]:
    """Return the relation of the largest score at the arc to every word, (n,), by parameters theta (2^bits + 1, R)."""
    if len(names) == 1:
        return np.repeat(names, len(heads))
    X = arc_features(sentences, heads, (len(theta) - 1).bit_length() - 1)
    return names[np.argmax(X @ theta[:-1] + theta[-1], axis=1)]
