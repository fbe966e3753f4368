"""Eisner's algorithm in plain NumPy, to which `_ext/structured/trees.pyx` is held."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Heads = tuple[int, ...]


def best_tree(scores: Array) -> tuple[float, Heads] | None:
    """Return the projective tree of the largest score, its score before it; None if every tree has an arc of the score -infinity.

    All spans of one length are filled at once.
    """
    S = np.asarray(scores, dtype=np.float64)[1:, 1:]
    n = len(S)
    # of the shapes: left end heads, right end heads; complete, open
    right, left = np.full((n, n), -np.inf), np.full((n, n), -np.inf)
    open_right, open_left = right.copy(), left.copy()
    # where the best split is
    cut, cut_right, cut_left = (np.zeros((n, n), dtype=np.intp) for _ in range(3))
    np.fill_diagonal(right, 0.0)
    np.fill_diagonal(left, 0.0)
    for width in range(1, n):
        i = np.arange(n - width)[:, None]
        j, step = i + width, np.arange(width)
        at, row = (i[:, 0], j[:, 0]), np.arange(n - width)
        halves = right[i, i + step] + left[i + step + 1, j]
        best = halves.argmax(axis=1)
        cut[at] = i[:, 0] + best
        open_right[at], open_left[at] = halves[row, best] + S[at], halves[row, best] + S.T[at]
        towards = open_right[i, i + 1 + step] + right[i + 1 + step, j]
        best = towards.argmax(axis=1)
        right[at], cut_right[at] = towards[row, best], i[:, 0] + 1 + best
        away = left[i, i + step] + open_left[i + step, j]
        best = away.argmax(axis=1)
        left[at], cut_left[at] = away[row, best], i[:, 0] + best
    whole = scores[0, 1:] + left[0, :] + right[:, n - 1]
    top = int(whole.argmax())
    if whole[top] == -np.inf:
        return None
    return float(whole[top]), _heads_of(top, cut, cut_right, cut_left)


def _heads_of(top: int, cut: Any, cut_right: Any, cut_left: Any) -> Heads:
    """Return the heads of the best tree below its top word, by the best split of every span."""
    n = len(cut)
    heads = [0] * n
    spans = [("left", 0, top), ("right", top, n - 1)]
    while spans:
        shape, a, b = spans.pop()
        if a == b:
            continue
        if shape == "right":
            c = int(cut_right[a, b])
            spans += [("right", c, b), ("open right", a, c)]
        elif shape == "left":
            c = int(cut_left[a, b])
            spans += [("left", a, c), ("open left", c, b)]
        else:
            heads[b if shape == "open right" else a] = 1 + (a if shape == "open right" else b)
            c = int(cut[a, b])
            spans += [("right", a, c), ("left", c + 1, b)]
    return tuple(heads)
