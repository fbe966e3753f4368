"""Made-up sentences with dependency trees, whose heads follow from words and tags, with some noise."""

from typing import Any

import numpy as np
from support.projective_trees import trees

from advcli.core.text_codes import text_codes


def texts(seed: int, sentences: int = 12, crossing: bool = False, longest: int = 5) -> tuple[Any, Any, Any]:
    """Return words and tags (n, 2) as text, heads (n,) and the sentence of every row; with ``crossing`` one tree has crossing arcs."""
    random = np.random.default_rng(seed)
    wanted = random.normal(size=(6, 6))  # of tags
    rows, heads, groups = [], [], []
    for s in range(sentences):
        n = 4 if s == 0 else int(random.integers(1, longest + 1))
        tags = random.integers(5, size=n)
        scores = wanted[np.r_[5, tags]][:, np.r_[5, tags]] + 0.5 * random.normal(size=(n + 1, n + 1))
        best = max(trees(n), key=lambda tree: sum(scores[head, word] for word, head in enumerate(tree, start=1)))
        heads += (3, 4, 4, 0) if crossing and s == 0 else best
        rows += [[f"w{random.integers(8)}", "ABCDE"[tag]] for tag in tags]
        groups += [s] * n
    return np.array(rows), np.array(heads), np.array(groups)


def corpus(seed: int, sentences: int = 12, crossing: bool = False, longest: int = 5) -> tuple[Any, Any, Any]:
    """Return `texts` with words and tags as codes."""
    X, y, groups = texts(seed, sentences, crossing, longest)
    return np.column_stack([text_codes(X[:, 0]), text_codes(X[:, 1])]), y, groups


def related(X: Any, y: Any, groups: Any) -> Any:
    """Return a relation of every word to its head, by the tags of both: (n,)."""
    first = np.searchsorted(groups, groups)
    return np.array([f"{tag}-{'root' if head == 0 else X[at + head - 1][1]}" for (_, tag), head, at in zip(X, y, first, strict=True)])


def written(X: Any, y: Any, groups: Any, relations: Any = None) -> str:
    """Return `texts` as a CSV file of the columns s, word, tag, head, and rel where there are relations."""
    lines = [f"{s},{word},{tag},{head}" for (word, tag), head, s in zip(X, y, groups, strict=True)]
    if relations is None:
        return "\n".join(["s,word,tag,head", *lines, ""])
    return "\n".join(["s,word,tag,head,rel", *(f"{line},{rel}" for line, rel in zip(lines, relations, strict=True)), ""])
