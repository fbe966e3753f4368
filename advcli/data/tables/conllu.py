"""Files in CoNLL-U (https://universaldependencies.org/format.html): words of sentences with their heads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...core.errors import DataError

COLUMNS = ("sentence", "form", "lemma", "upos", "xpos", "feats", "head", "deprel")
ROLES: dict[str, Any] = {"sequence": "sentence", "tokens": "form", "head": "head", "relation": "deprel", "features": ["form", "upos"]}
"""What the columns are unless options say otherwise."""

_FIELDS = 10


def words_of(text: str, sentences: int = 0) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the line of every word, from 1, the number of its sentence, counted on from ``sentences``, and its ten fields.

    Comments, multiword tokens (1-2) and empty nodes (1.1) are left out. `ValueError` for a line that is none of these, and for comments
    without a word before the next empty line: a sentence has at least one.
    """
    expected, opened = 1, 0  # the line of the first comment of a sentence without a word so far
    for line, content in enumerate([*text.split("\n"), ""], start=1):
        content = content.rstrip("\r")
        if not content.strip():
            if opened:
                raise ValueError(f"the sentence that begins in line {opened} has no words")
            expected = 1
            continue
        if content.startswith("#"):
            opened = opened or (line if expected == 1 else 0)
            continue
        cells = content.split("\t")
        if len(cells) != _FIELDS:
            raise ValueError(f"line {line} has {len(cells)} fields, and a line of CoNLL-U has {_FIELDS}, with tabs between them")
        if not cells[0].isdecimal():
            if not cells[0].replace("-", "").replace(".", "").isdecimal():
                raise ValueError(f"line {line} begins with {cells[0]!r:.40}, which numbers no word")
            continue
        if int(cells[0]) != expected:
            raise ValueError(f"line {line}: the word {cells[0]} stands where word {expected} of its sentence is expected")
        sentences += expected == 1
        expected, opened = expected + 1, 0
        yield line, sentences, cells


def read_conllu(path: Path | str, text: str) -> tuple[pd.DataFrame, Any]:
    """Return the words of a text as a frame of `COLUMNS`, and the line of each; `DataError` for a text that is no CoNLL-U."""
    try:
        words = list(words_of(text))
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
    if not words:
        raise DataError(f"{path} has no words; a line of CoNLL-U is ten fields with tabs between them")
    rows = [(str(sentence), *cells[1:8]) for _, sentence, cells in words]
    return pd.DataFrame(rows, columns=list(COLUMNS), dtype=object), np.array([line for line, _, _ in words])
