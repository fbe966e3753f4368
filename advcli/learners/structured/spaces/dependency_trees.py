"""Projective dependency trees over the words of a sentence: f(y) is the sum of a score for every arc from a head to its word (Eisner 1996).

Word 0 is the root, which stands before the sentence and has one dependent. A tree is projective if its arcs, drawn above the sentence, do
not cross. The task loss is the number of words with a wrong head.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from ....core.compiled import kernels
from ....core.errors import DataError
from ....core.typing import Array
from .space import LabelPoint, LabelSpace

Heads = tuple[int, ...]


def best_tree(scores: Array) -> tuple[float, Heads] | None:
    """Return the projective tree of the largest score, its score before it; None if every tree has an arc of the score -infinity.

    Scores (n + 1, n + 1) belong to arcs: row the head, 0 the root, column the word; the diagonal and column 0 are not read.
    """
    n = len(scores) - 1
    value, heads = np.empty(1), np.empty(n, dtype=np.int32)
    kernels.trees.best(np.ascontiguousarray(scores, dtype=np.float64).ravel(), np.array([0, n]), value, heads)
    return None if value[0] == -np.inf else (float(value[0]), tuple(heads.tolist()))


def best_trees(scores: Array, k: int) -> list[tuple[float, Heads]]:
    """Return the k trees of the largest scores with their scores, best first; all where there are fewer.

    Every tree that is taken parts the trees that remain by the first word whose head differs (Lawler 1972), n calls of `best_tree`.
    """
    scores = np.array(scores, dtype=np.float64)
    trees: list[tuple[float, Heads]] = []
    # minus the score, the turn, the tree; words whose head is fixed, and the scores with what is forbidden
    parts: list[tuple[float, int, Heads, int, Array]] = []

    def part(fixed: int, left: Array) -> None:
        best = best_tree(left)
        if best is not None:
            heapq.heappush(parts, (-best[0], turns[0], best[1], fixed, left))
            turns[0] += 1

    turns = [0]
    part(0, scores)
    while parts and len(trees) < k:
        minus, _, heads, fixed, left = heapq.heappop(parts)
        trees.append((-minus, heads))
        if len(trees) == k:
            break
        for word in range(fixed, len(heads)):
            other = left.copy()
            other[heads[word], word + 1] = -np.inf
            part(word, other)
            kept = left[heads[word], word + 1]
            left = left.copy()
            left[:, word + 1] = -np.inf
            left[heads[word], word + 1] = kept
    return trees


class TreeSpace(LabelSpace):
    """Projective trees of one sentence, seen from the true tree; a label is the tuple of heads, which is its key.

    ``scores`` (n + 1, n + 1) are finite numbers for arcs: row the head, 0 the root, column the word. ``heads`` (n,) is the true tree: the
    head of every word, from 0, the root, to n; else `DataError`.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.learners.structured.spaces.dependency_trees import TreeSpace
    >>> from advcli.learners.structured.spaces.psi import make_psi
    >>> from advcli.learners.structured.spaces.searches import search_of
    >>> scores = np.array([[0, 5, 1], [0, 0, 4], [0, 2, 0]], dtype=float)  # row the head, 0 the root; column the word
    >>> sentence = TreeSpace(scores, heads=(0, 1))
    >>> search_of("auto", sentence)(sentence, make_psi("margin")).label
    (0, 1)
    """

    name: ClassVar[str] = "projective trees"
    offers = frozenset({"lam", "ban", "levels"})

    def __init__(self, scores: Any, heads: Sequence[int]) -> None:
        self.scores = np.array(scores, dtype=np.float64)
        n = len(self.scores) - 1
        arcs = self.scores[:, 1:] if self.scores.ndim == 2 else self.scores
        if n < 1 or self.scores.shape != (n + 1, n + 1) or not np.isfinite(arcs[~np.eye(n + 1, dtype=bool)[:, 1:]]).all():
            raise DataError(f"a sentence of n words needs finite scores of the shape (n + 1, n + 1); they have {self.scores.shape}")
        self.heads = tuple(int(head) for head in heads)
        self.words = np.arange(1, n + 1)
        if len(self.heads) != n or not all(0 <= head <= n for head in self.heads):
            raise DataError(f"{n} words need {n} heads from 0 to {n}; they are {self.heads}")
        self.wrong = np.ones((n + 1, n + 1))
        self.wrong[self.heads, self.words] = 0.0
        allowed = np.where(self.wrong > 0.0, -np.inf, 0.0)
        if best_tree(allowed) is None:
            raise DataError(f"the heads {self.heads} make no projective tree with one word below the root")
        self.extent = (1.0, float(n)) if n > 1 else (0.0, 0.0)
        self.score = float(self.scores[self.heads, self.words].sum())
        self.truth = LabelPoint(0.0, 0.0, self.heads, self.heads)

    def _point(self, heads: Heads) -> LabelPoint:
        if heads == self.heads:
            return self.truth
        score, wrong = float(self.scores[heads, self.words].sum()), float(self.wrong[heads, self.words].sum())
        return LabelPoint(score - self.score, wrong, heads, heads)

    def _weighed(self, l: float) -> Array:
        """Return scores whose best tree has the largest h + l g."""
        if np.isinf(l):
            # one head more outweighs all scores
            arcs = self.scores[:, 1:]
            spread = np.ptp(arcs[~np.eye(len(self.scores), dtype=bool)[:, 1:]])
            l = 1.0 + 2.0 * len(self.words) * float(spread)
        return np.asarray(self.scores + l * self.wrong)

    def argmax(self) -> LabelPoint:
        """Return the tree of the largest score."""
        return self.lam(0.0)  # type: ignore[return-value]

    def lam(self, l: float, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the tree of the largest h + l g among the trees that are not banned; of several at l = 0, any."""
        if not len(ban):
            best = best_tree(self._weighed(l))
            return None if best is None else self._point(best[1])
        banned = set(ban)
        for _, heads in best_trees(self._weighed(l), len(banned) + 1):
            if heads not in banned:
                return self._point(heads)
        return None

    def kbest(self, k: int) -> list[LabelPoint]:
        """Return the k trees of the largest scores, best first."""
        return [self._point(heads) for _, heads in best_trees(self.scores, k)]

    def levels(self) -> list[LabelPoint]:
        """Return the tree of the largest score at every number of wrong heads, of those that there are."""
        n = len(self.heads)
        level, heads = np.empty(n + 1), np.zeros((n + 1, n), dtype=np.int32)
        kernels.trees.levels(self.scores.ravel(), np.array(self.heads, dtype=np.int32), level, heads)
        return [self._point(tuple(heads[g].tolist())) for g in np.flatnonzero(level > -np.inf)]
