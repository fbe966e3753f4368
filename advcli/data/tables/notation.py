"""Columns that look like numbers in another notation, and the options that read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .cells import CHARACTER_NAMES, PLAIN, Look, Notation, cell_text, look_of, present, reads_as_numbers
from .column import names_of
from .columns import SUSPECT
from .table import Table, number_columns

NEARLY, MANY_NUMBERS = 0.9, 20
"""Share of numbers, and different numbers, from which on a column of text is one of numbers with some wrong cells."""


def split_tokens(table: Table, name: str) -> list[str]:
    """Return the cells of a column as text."""
    return list(cell_text(table.frame[name]))


def _text_columns(table: Table, columns: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """Return the columns whose text no option takes as what it is: no numbers, tokens, categories by name or kept ones."""
    numbers_there, categorical = number_columns(table.frame), options["categorical"]
    taken = {*names_of(options.get("keep"), "keep"), *([] if categorical == "auto" else names_of(categorical, "categorical"))}
    taken |= {str(options[key]) for key in ("tokens", "sequence") if options.get(key) is not None}
    return [name for name in columns if name not in numbers_there and name not in taken]


def number_look(table: Table, columns: Sequence[str], options: Mapping[str, Any]) -> Look:
    """Return how the numbers of a table look to be written where its options do not read them (`advcli.data.tables.cells.look_of`)."""
    notation, text = Notation.of(options), _text_columns(table, columns, options)
    unread = {name for name in text if not reads_as_numbers(table.frame[name], notation)}
    return look_of(table.frame, columns, unread.__contains__, str(options.get("separator", ",")))


def nearly_numbers(table: Table, columns: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """Return the columns of numbers with a few wrong cells, which are no categories for that."""
    notation = Notation.of(options)
    return [name for name in _text_columns(table, columns, options) if column_of_nearly_numbers(table.frame[name], notation)]


def column_of_nearly_numbers(column: pd.Series, notation: Notation) -> bool:
    """Return whether all but a few values of a column are numbers, too many different ones to be names."""
    text = present(column)
    numbers = notation.numbers(text)
    known = numbers[~np.isnan(numbers)]
    return NEARLY * len(text) <= len(known) < len(text) and len(np.unique(known)) > MANY_NUMBERS


def notation_words(look: Look, name: str) -> str:
    """Return what is said of a column whose numbers look to be written in another way, and the options that read them."""
    own = look.columns[name]
    if look.notation == PLAIN:
        return f"its numbers look written in another way than those of other columns ({own} would read them): write all in one way"
    said = f"it {SUSPECT} numbers: {look.notation} reads them"
    if name in look.unclear:
        other = Notation(own.thousands or ".", None, own.units) if own.thousands else Notation(".", own.decimal, own.units)
        said += f" (if the {CHARACTER_NAMES[own.thousands or own.decimal]} means the other thing: {other})"
    return said
