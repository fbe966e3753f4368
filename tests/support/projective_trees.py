"""All projective trees of a few words, by the definitions."""

from functools import cache
from itertools import product

Heads = tuple[int, ...]


def is_projective_tree(heads: Heads) -> bool:
    """Whether heads make a tree with one word below the root whose arcs do not cross, by the definitions."""
    arcs = [(head, word + 1) for word, head in enumerate(heads)]
    for _, word in arcs:
        seen: set[int] = set()
        while word:
            if word in seen:
                return False
            seen.add(word)
            word = heads[word - 1]
    spans = [tuple(sorted(arc)) for arc in arcs]
    crossing = any(a < c < b < d for a, b in spans for c, d in spans)
    return heads.count(0) == 1 and not crossing


@cache
def trees(n: int) -> tuple[Heads, ...]:
    """Return all projective trees of n words."""
    return tuple(heads for heads in product(range(n + 1), repeat=n) if is_projective_tree(heads))
