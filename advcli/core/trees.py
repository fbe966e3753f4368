"""Dependency trees of sentences: what heads must hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from .groups import Starts

MOST_WORDS = 1000
"""Words of a sentence that there is memory for."""


def tree_fault(heads: Any, start: Starts) -> tuple[int, str] | None:
    """Return the first row whose head makes no tree of its sentence, and what is wrong; None for trees with one word below the root.

    ``heads`` (n,) are 0, the root, or the number of a word in its sentence, from 1; sentence s has rows start[s]:start[s + 1].
    """
    sizes = np.diff(start)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(heads)) - start[owner] + 1
    outside, own = (heads < 0) | (heads > sizes[owner]), heads == place
    roots = np.bincount(owner[heads == 0], minlength=len(sizes))
    # heads of heads by doubling: every way to the root is shorter than its sentence
    above = np.where((heads == 0) | outside, -1, start[owner] + heads - 1)
    for _ in range(int(sizes.max()).bit_length()):
        above = np.where(above < 0, -1, above[above])
    for wrong, what in (
        (sizes[owner] > MOST_WORDS, f"the sentence has {{n}} words, more than the {MOST_WORDS} that a tree may have; split it"),
        (outside, "the head {head} of word {word} is not in its sentence of {n} words: heads are 0, the root, or numbers of words from 1"),
        (own, "word {word} is its own head; the head of the top word is 0"),
        (roots[owner] == 0, "the sentence has no word with the head 0, the root"),
        (roots[owner] > 1, "the sentence has {roots} words with the head 0, the root; one is allowed"),
        (above >= 0, "the heads from word {word} on go round in a cycle and never come to the root"),
    ):
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            s = int(owner[row])
            return row, what.format(n=sizes[s], head=heads[row], word=place[row], roots=roots[s])
    return None
