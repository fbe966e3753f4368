"""Columns that look like something else than a feature: identifiers, dates; and labels that look ordered."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .cells import MISSING
from .table import is_number

NEARLY = 0.9
"""Share of distinct values among those that there are from which on text is taken for an identifier."""

FEW = 10
"""Values below which nothing is taken for an identifier: so few may all differ by chance."""

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s*[ap]m)?(?:\s*(?:z|utc|[+-]\d{2}:?\d{2}))?"
_NUMBERS = r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
_DAY = rf"(?:{_NUMBERS}|\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}})"
_DATE = re.compile(rf"(?:{_DAY}(?:[t ]+{_TIME})?|{_TIME})", re.IGNORECASE)
_ID_NAME = re.compile(r"^(?:.*[_ .-])?(?i:id|ids|uuid|guid|key|identifier)$|^.*[a-z]I[dD]$", re.MULTILINE)

# Words for degrees, from the lowest to the highest; each of one line may stand in a label, alone or before another word.
_SCALES: tuple[tuple[str, ...], ...] = (
    ("none", "minimal", "very low", "low", "medium low", "medium", "moderate", "middle", "medium high", "high", "very high", "extreme"),
    ("very bad", "bad", "poor", "fair", "average", "satisfactory", "good", "very good", "excellent", "outstanding"),
    ("very unlikely", "unlikely", "neutral", "likely", "very likely"),
    ("never", "rarely", "sometimes", "often", "usually", "always"),
    ("strongly disagree", "disagree", "neutral", "undecided", "agree", "strongly agree"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("none", "mild", "moderate", "severe", "critical"),
    ("very small", "small", "medium", "large", "very large"),
    ("xxs", "xs", "s", "m", "l", "xl", "xxl"),
    ("very slow", "slow", "medium", "fast", "very fast"),
    ("primary", "secondary", "tertiary"),
    ("first", "second", "third", "fourth", "fifth"),
    ("bronze", "silver", "gold", "platinum"),
    ("beginner", "intermediate", "advanced", "expert"),
)
_LEVEL = r"(?:level|stage|grade|step|tier|phase|rank|degree) ?\d{1,2}|\d{1,2} ?stars?"
_GRADES = ("f", "e", "d-", "d", "d+", "c-", "c", "c+", "b-", "b", "b+", "a-", "a", "a+")


def named_as_ids(names: Sequence[str]) -> set[str]:
    """Return the names that say identifier: ``id``, ``customer_id``, ``orderID``; one look at all of them, as there may be thousands."""
    return set(_ID_NAME.findall("\n".join(names)))


def present(column: pd.Series) -> pd.Series:
    """Return the values that are there, as stripped text."""
    text: pd.Series = column.astype(str).str.strip()
    return text[~text.str.lower().isin(MISSING)]


def looks_like(column: pd.Series) -> str:
    """Return ``date``, ``identifier`` or nothing: what a column of a table holds rather than a feature.

    A date is text of which every value is a day or a time; an identifier is text with nearly as many values as rows (`NEARLY`), or whole
    numbers of a column named as one, no two alike.
    """
    text = present(column)
    numbers = column if is_number(column) else pd.to_numeric(text, errors="coerce")
    if not text.empty and numbers.notna().all():
        values = numbers.to_numpy(np.float64)
        whole = len(values) >= FEW and bool(np.isfinite(values).all()) and bool(np.all(values == np.round(values)))
        named = bool(named_as_ids([str(column.name)]))
        return "identifier" if named and whole and len(np.unique(values)) == len(values) else ""
    if text.empty:
        return ""
    distinct = text.unique().tolist()
    if all(_DATE.fullmatch(value) for value in distinct):
        return "date"
    return "identifier" if len(text) >= FEW and len(distinct) > NEARLY * len(text) else ""


def likely_order(labels: Sequence[Any]) -> list[Any] | None:
    """Return labels from the lowest to the highest where they look like degrees, grades or counted levels; None elsewhere.

    Whole numbers look ordered where there are three or more, one after the other from 0 or 1 on.
    """
    if len(labels) < 3:
        return None
    if all(isinstance(label, int) and not isinstance(label, bool) for label in labels):
        rising = sorted(labels)
        return rising if rising[0] in (0, 1) and rising == list(range(rising[0], rising[0] + len(rising))) and len(rising) <= 12 else None
    words = [re.sub(r"[\s_-]+", " ", str(label)).strip().lower() for label in labels]
    for scale in _SCALES:
        if all(word in scale for word in words):
            return _sorted(labels, [scale.index(word) for word in words])
    letters = [re.sub(r"^grade[\s_-]*", "", str(label).strip().lower()) for label in labels]
    # a run of the alphabet, such as a, b, c, says nothing of an order; "grade" before it, a sign behind or a gap as in a, b, c, d, f does
    alphabet = letters == words and "".join(sorted(letters)) in "abcdef"
    if not alphabet and all(letter in _GRADES for letter in letters) and "a" in {letter[0] for letter in letters}:
        return _sorted(labels, [_GRADES.index(letter) for letter in letters])
    numbers = [re.fullmatch(_LEVEL, word) for word in words]
    if all(numbers) and len({re.sub(r"\d+", "", word) for word in words}) == 1:
        return _sorted(labels, [int("".join(filter(str.isdigit, word))) for word in words])
    return None


def order_words(labels: Sequence[Any]) -> str:
    """Return labels as the list that ``dataset.order`` takes on a command line, quoted for a shell where it must be."""
    text = f"[{','.join(map(str, labels))}]"
    return shlex.quote(text) if re.search(r"[^\w\[\],.-]", text) else text


def _sorted(labels: Sequence[Any], ranks: Sequence[int]) -> list[Any] | None:
    if len(set(ranks)) < len(ranks):
        return None
    return [label for _, label in sorted(zip(ranks, labels, strict=True), key=lambda pair: pair[0])]
