"""Dependency trees in CoNLL-U (https://universaldependencies.org/format.html); an official part a file: train, valid, test."""

from __future__ import annotations

from collections.abc import Sequence

from ..catalogue import Upstream
from ..tables.conllu import words_of
from .rows import PARTS, TextTable

COLUMNS = ["split", "sentence", "form", "upos", "head", "deprel"]
DOCUMENT = "# newdoc id = "


def tables(parts: Sequence[str], upstream: Upstream) -> dict[str, TextTable]:
    """Return one row a word, without multiword and empty tokens; sentences are counted from 1, through all parts.

    The documents of the first part, which its file has in no order, are sorted by their names.
    """
    rows, sentence = [], 0
    head, *documents = parts[0].split(DOCUMENT)
    for name, part in zip(
        PARTS[len(parts)], [head + "".join(DOCUMENT + document for document in sorted(documents)), *parts[1:]], strict=True
    ):
        for _, number, cells in words_of(part, sentence):
            rows.append([name, str(number), cells[1], cells[3], cells[6], cells[7]])
            sentence = number
    if not rows:
        raise ValueError("no words")
    return {"": TextTable(COLUMNS, rows)}
