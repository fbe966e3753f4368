"""Notes: what a user should know that is no error. Each kind has a code, which ends its line and which ``quiet_notes`` silences."""

from __future__ import annotations

import re

NOTES = {
    "ADV101": "A column is left out, or taken although it looks like an identifier, a date or a text.",
    "ADV102": "A column of categories has become features.",
    "ADV103": "Cells without a value are filled or marked.",
    "ADV104": "How many sequences the rows form, or attributes their tokens have.",
    "ADV105": "Rows have costs or weights of their own.",
    "ADV106": "Labels look ordered, or one label is written in several ways.",
    "ADV107": "A numeric target was cut into classes, or classes without rows were dropped.",
    "ADV108": "How many labels a row has, and what became of inner nodes of the hierarchy.",
    "ADV109": "How the features were made: sparse values, words, scaling without centring.",
    "ADV110": "How a generated data set was made.",
    "ADV111": "Where a data set differs from what a paper printed, or comes from.",
    "ADV112": "A class has a single row.",
    "ADV113": "Which rows are training and test rows, where that is not a plain random draw.",
    "ADV114": "What the labels of training rows went through: a rough classifier, a clean sample.",
    "ADV115": "An option is no part of some cells.",
    "ADV116": "A metric of probabilities judges scores that estimate none.",
    "ADV117": "What a method says of its fits.",
    "ADV118": "Data sets of a preset are left out, because they are not here.",
    "ADV119": "What a results folder has beyond what was asked for.",
    "ADV120": "Labels are votes, distributions or the labels of several annotators, or predictions have a cost matrix.",
    "ADV150": "Fits stopped above their tolerance.",
    "ADV151": "A chosen hyper-parameter lies at the end of its grid.",
    "ADV152": "A damaged file of a cell was set aside, and the cell is computed again.",
}
"""Code and meaning of every kind of note and of warning; a code keeps its meaning while texts change."""

_CODE = re.compile(r" \[(ADV\d{3})\]$")


def noted(code: str, text: str) -> str:
    """Return a note with its code at the end."""
    assert code in NOTES, code
    return f"{text} [{code}]"


def code_of(line: str) -> str:
    """Return the code at the end of a line, empty where it has none.

    Examples
    --------
    >>> from advcli.core.notes import code_of, noted
    >>> code_of("note: iris: " + noted("ADV105", "examples weighted by column 'w'"))
    'ADV105'
    """
    found = _CODE.search(line)
    return found[1] if found else ""
