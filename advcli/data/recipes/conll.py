"""CoNLL files of two columns, a token and its tag, with a blank line after each sentence; an official part a file."""

from __future__ import annotations

from collections.abc import Sequence

from ..catalogue import Upstream
from .rows import PARTS, TextTable

NAMES = {**PARTS, 3: ("train", "dev", "test")}


def tables(parts: Sequence[str], upstream: Upstream) -> dict[str, TextTable]:
    """Return one row a token, with the number of its sentence."""
    rows, sentence = [], -1
    for name, part in zip(NAMES[len(parts)], parts, strict=True):
        between = True
        for line in part.split("\n"):
            if not line.strip():
                between = True
                continue
            sentence, between = sentence + between, False
            token, tag = line.rstrip("\r").split("\t")
            rows.append([str(sentence), token, name, tag])
    return {"": TextTable(["sentence_id", "token", "split", "target"], rows)}
