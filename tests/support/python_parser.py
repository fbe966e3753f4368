"""Features of arcs and worst trees in plain Python, to which `_ext/structured/parser.pyx` is held."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from support.projective_trees import Heads, trees

Array = NDArray[np.float64]

ROLES = ("head word", "head tag", "head both", "word", "tag", "both", "head next", "head before", "next", "before", "between", "distance")
_WORD = 2**64
ROOT, BEGIN, END = -1, -2, -3


def mixed(x: int) -> int:
    """Return the number after x of splitmix64 (Steele, Lea & Flood 2014)."""
    x = (x + 0x9E3779B97F4A7C15) % _WORD
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % _WORD
    return x ^ (x >> 31)


def _part(role: str, code: int) -> int:
    return mixed(code % _WORD ^ mixed(ROLES.index(role)))


def keys_of(words: Any, tags: Any, head: int, word: int) -> tuple[list[int], int]:
    """Return the keys of the arc from ``head``, 0 the root, to ``word``, from 1, and that of its two tags."""
    word_of, tag_of = [ROOT, *map(int, words)], [ROOT, *map(int, tags)]
    around = {-1: BEGIN, len(word_of): END}

    def tag(at: int) -> int:
        return around[at] if at in around else tag_of[at]

    own = {
        "head word": word_of[head], "head tag": tag(head), "head both": word_of[head] + mixed(tag(head) % _WORD),
        "word": word_of[word], "tag": tag(word), "both": word_of[word] + mixed(tag(word) % _WORD),
        "head next": tag(head + 1), "head before": tag(head - 1), "next": tag(word + 1), "before": tag(word - 1),
    }  # fmt: skip
    part = {role: _part(role, code) for role, code in own.items()}
    pairs = [("head both", "both"), ("head tag", "both"), ("head word", "both"), ("head both", "tag"), ("head both", "word")]
    pairs += [("head word", "word"), ("head tag", "tag")]
    near = [("head tag", "tag", *each) for each in (("head next", "before"), ("head before", "before"), ("head next", "next"))]
    near += [("head tag", "tag", "head before", "next")]
    keys = [(role,) for role in ("head word", "head tag", "head both", "word", "tag", "both")] + pairs + near
    return [sum(part[role] for role in key) for key in keys], part["head tag"] + part["tag"]


def bucket(head: int, word: int) -> int:
    """Return the bucket of a distance."""
    distance = abs(head - word)
    return distance if distance <= 5 else 6 if distance <= 10 else 7


def features(words: Any, tags: Any, head: int, word: int, bits: int) -> list[int]:
    """Return the positions of the features of the arc from ``head``, 0 the root, to ``word``, from 1."""
    keys, both_tags = keys_of(words, tags, head, word)
    far, side = bucket(head, word), 8 * (head > word)

    def slot(key: int) -> int:
        return (key % _WORD >> (64 - bits + 4)) * 16 + side

    places = [slot(key) for key in keys]
    between = {int(tags[at - 1]) for at in range(min(head, word) + 1, max(head, word))}
    tags_between = [slot(both_tags + _part("between", code)) for code in between]
    return [*places, *(place + far for place in places), *tags_between]


def relation_features(words: Any, tags: Any, head: int, word: int, bits: int) -> list[int]:
    """Return the positions, below 2^bits, of what the relation of a word to its head is learned from."""
    keys, both_tags = keys_of(words, tags, head, word)
    keys = [*keys, both_tags + _part("distance", bucket(head, word))]
    return [(key % _WORD >> (64 - bits + 1)) * 2 + (head > word) for key in keys]


def tree_features(words: Any, tags: Any, heads: Heads, bits: int) -> Array:
    """Return the counts of the features of a tree, (2^bits,)."""
    counts = np.zeros(2**bits)
    for word, head in enumerate(heads, start=1):
        np.add.at(counts, features(words, tags, int(head), word, bits), 1.0)
    return counts


def arc_scores(words: Any, tags: Any, theta: Array) -> Array:
    """Return the scores of all arcs of a sentence, (n + 1, n + 1), 0 where there is none."""
    n, bits = len(words), int(np.log2(len(theta)))
    scores = np.zeros((n + 1, n + 1))
    for head in range(n + 1):
        for word in range(1, n + 1):
            if head != word:
                scores[head, word] = theta[features(words, tags, head, word, bits)].sum()
    return scores


def worst_tree(scores: Array, truth: Heads, psi: Any) -> tuple[float, dict[Heads, float]]:
    """Return the largest psi of all projective trees of a sentence, and psi of each."""
    n = len(truth)
    value = {heads: float(sum(scores[head, word] for word, head in enumerate(heads, start=1))) for heads in trees(n)}
    own = value[tuple(truth)]
    all_of = {heads: float(psi.value(f - own, float(sum(a != b for a, b in zip(heads, truth, strict=True))))) for heads, f in value.items()}
    return max(all_of.values()), all_of
