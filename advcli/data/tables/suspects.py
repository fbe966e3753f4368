"""Columns that look like something else than they are taken for: identifiers, dates, texts, numbers in another notation, ordered labels."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .cells import CHARACTER_NAMES, PLAIN, Look, Notation, cell_text, gaps_in, is_number, look_of, present, reads_as_numbers
from .table import Table

SUSPECT = "looks like"
"""What notes say of columns that are something else than they are taken for, to be read before any work."""

_NEARLY = 0.9  # share of distinct values from which on text is an identifier, and of numbers from which on text is one of numbers
_FEW = 10  # values below which a column is not taken for identifiers: so few may all differ by chance
_MANY_NUMBERS = 20  # different numbers above which a column of text is one of numbers with some wrong cells

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s*[ap]m)?(?:\s*(?:z|utc|[+-]\d{2}:?\d{2}))?"
_NUMBERS = r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
_DAY = rf"(?:{_NUMBERS}|\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}})"
_DATE = re.compile(rf"(?:{_DAY}(?:[t ]+{_TIME})?|{_TIME})", re.IGNORECASE)
_ID_NAME = re.compile(r"^(?:.*[_ .-])?(?i:id|ids|uuid|guid|key|identifier)$|^.*[a-z]I[dD]$", re.MULTILINE)

_LOOKED_AT = 1000  # values by which a column of text is named

# Forms of text, the first that most values have; what has none of them is an identifier.
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_FORMS = {
    "list": re.compile(r"^(?:\[.*\]|\{.*\}|\(.*,.*\))$", re.DOTALL),
    "complex number": re.compile(rf"^\(?(?:{_NUMBER})?[+-]?(?:{_NUMBER})?j\)?$", re.IGNORECASE),
    "duration": re.compile(r"^-?(?:\d+ days?\b.*|P(?:\d+D)?(?:T[\d.HMS]+)?)$"),
    "text": re.compile(r"[^\W\d_]{2,}\W+[^\W\d_]{2,}"),
}

SAID = {
    "date": "a date",
    "identifier": "an identifier",
    "list": "a list",
    "complex number": "a complex number",
    "duration": "a duration",
    "text": "text of several words",
}
"""What a column may look like instead of a feature (`looks_like`), as words of a sentence."""

# Words for degrees, from the lowest to the highest, a scale a line.
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


def counted(column: pd.Series) -> pd.Series:
    """Return how often each value occurs that is there, as `advcli.data.tables.cells.present` writes it, the most frequent first.

    Text is looked at once for each different value: a column of a million rows has few.
    """
    raw = column.value_counts()
    text = cell_text(pd.Series(raw.index))
    there = ~gaps_in(text)
    counts = pd.Series(raw.to_numpy()[there], index=text.to_numpy(object)[there])
    return counts if counts.index.is_unique else counts.groupby(level=0, sort=False).sum().sort_values(ascending=False, kind="stable")


def looks_like(column: pd.Series) -> str:
    """Return what a column of a table holds rather than a feature, one of `SAID`; the empty text where it may be a feature.

    A date is text of which every value is a day or a time. Other text with nearly as many values as rows is named by most of
    its values: a list, a complex number, a duration, text of several words, or else an identifier. Whole numbers are identifiers in a
    column that is named as one, where no two are alike.
    """
    if is_number(column):
        return "identifier" if named_as_ids([str(column.name)]) and _count_rows(column.dropna().to_numpy(np.float64)) else ""
    counts = counted(column)
    if counts.empty:
        return ""
    distinct, rows = counts.index.tolist(), int(counts.sum())
    text = pd.Series(distinct, dtype=object)
    if reads_as_numbers(text):
        named = len(distinct) == rows and named_as_ids([str(column.name)])
        return "identifier" if named and _count_rows(PLAIN.numbers(text)) else ""
    if all(_DATE.fullmatch(value) for value in distinct):
        return "date"
    if rows < _FEW or len(distinct) <= _NEARLY * rows:
        return ""
    some = distinct[:_LOOKED_AT]
    named_by = [name for name, form in _FORMS.items() if 2 * sum(form.search(value) is not None for value in some) > len(some)]
    return named_by[0] if named_by else "identifier"


def _count_rows(values: NDArray[np.float64]) -> bool:
    """Return whether numbers are whole and no two alike, as numbers that count rows are."""
    whole = len(values) >= _FEW and bool(np.isfinite(values).all()) and bool(np.all(values == np.round(values)))
    return whole and len(np.unique(values)) == len(values)


def notation_words(look: Look, name: str) -> str:
    """Return the remark on a column whose numbers look to be written in another notation, and the options that read them."""
    way = look.columns[name]
    if look.notation == PLAIN:
        return f"its numbers look written in another way than the numbers of other columns ({way} would read them): write all in one way"
    words = f"it {SUSPECT} numbers: {look.notation} reads them"
    if name in look.unclear:
        other = Notation(way.thousands or ".", None, way.units) if way.thousands else Notation(".", way.decimal, way.units)
        words += f" (if the {CHARACTER_NAMES[way.thousands or way.decimal]} means the other thing: {other})"
    return words


@dataclass(frozen=True)
class Inspection:
    """What some columns of a table look like where its options do not say what they are; every look is taken once."""

    table: Table
    columns: Sequence[str]

    @cached_property
    def _text(self) -> list[str]:
        """The columns of text that no option takes as text: not tokens, sequences, kept ones or categories by name."""
        options = self.table.options
        taken = {*self.table.numbers, *options.keep, *(options.categorical or ()), options.tokens, options.sequence}
        return [name for name in self.columns if name not in taken]

    @cached_property
    def look(self) -> Look:
        """How the numbers look to be written that the notation of the options does not read (`advcli.data.tables.cells.look_of`)."""
        frame, options = self.table.frame, self.table.options
        unread = {name for name in self._text if not reads_as_numbers(frame[name], options.notation)}
        return look_of(frame, self.columns, unread.__contains__, options.separator)

    @cached_property
    def nearly_numbers(self) -> set[str]:
        """The columns of numbers with a few wrong cells; they do not become categories."""
        return {name for name in self._text if self._nearly(self.table.frame[name])}

    def suspects(self, columns: Sequence[str]) -> dict[str, str]:
        """Return which of ``columns`` ``categorical=auto`` leaves out, with a line on what each looks like and how to keep it."""
        lines: dict[str, str] = {}
        frame, options, like_ids = self.table.frame, self.table.options, named_as_ids(columns)
        for name in [name for name in columns if name not in self.table.numbers or name in like_ids]:
            if name == options.tokens or name in options.keep or not (looks := looks_like(frame[name])):
                continue
            look = f"{SAID[looks]} ({len(counted(frame[name]))} values{'' if looks == 'date' else f' in {len(frame)} rows'})"
            words = ",".join([*options.keep, name])
            lines[name] = f"column {name!r} left out: it {SUSPECT} {look}; dataset.keep=[{words}] takes it"
        return lines

    def remedies(self, name: str) -> tuple[str, str]:
        """Return what to do about text in a column of numbers, and about a cell without a value; see `Encoding.cells`."""
        column, drop = self.table.frame[name], f"use dataset.drop=[{name}]"
        if name in self.look.columns:
            text = f"{notation_words(self.look, name)}; dataset.keep=[{name}] takes it as categories (with dataset.categorical=auto)"
        elif not is_number(column) and self._nearly(column):
            text = f"nearly all its values are numbers: correct it, empty it, or {drop}; dataset.keep=[{name}] takes all as categories"
        elif looks := looks_like(column):
            text = f"it {SUSPECT} {SAID[looks]}: {drop}"
        else:
            text = f"one-hot encode it with dataset.categorical=[{name}] (auto: every column of text), or {drop}"
        return text, f"fill it with dataset.missing=median (or mean, most_frequent, indicator), correct it, remove the row or {drop}"

    def _nearly(self, column: pd.Series) -> bool:
        """Return whether all but a few values of a column are numbers, too many different ones to be names."""
        text = present(column)
        numbers = self.table.options.notation.numbers(text)
        numbers = numbers[~np.isnan(numbers)]
        return _NEARLY * len(text) <= len(numbers) < len(text) and len(np.unique(numbers)) > _MANY_NUMBERS


# ---- labels that look ordered ------------------------------------------------------------------------------------------
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
