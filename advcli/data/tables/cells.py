"""A cell of a table, read once: its writing as text, whether it holds a value, and the number that it writes.

Every reader of features, labels, weights and costs calls these functions, at fit and at predict. So a cell means the same in every file,
whatever the other rows of its part of the file hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...core.errors import ConfigError

MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-"}
"""What cells of features hold that have no value, in small letters."""

TRUTHS = {"true": 1.0, "false": 0.0}
"""Words for 1 and 0, in small letters, as pandas reads a column of them."""

_THOUSANDS = re.compile(r"(?<![0-9])[1-9][0-9]{0,2}\.[0-9]{3}(?![0-9])")

_INFINITE = {"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}


_NUMBERS = "iufb"  # kinds of types that are numbers


def is_number(column: pd.Series) -> bool:
    """Return whether a column came as numbers, or as true and false."""
    return column.dtype.kind in _NUMBERS


def number_columns(frame: pd.DataFrame) -> set[str]:
    """Return the names of the columns that `is_number`, without a look at each of them."""
    return {str(name) for name, kind in zip(frame.columns.tolist(), frame.dtypes.tolist(), strict=True) if kind.kind in _NUMBERS}


# ---- text -------------------------------------------------------------------------------------------------------------
def cell_text(column: pd.Series) -> pd.Series:
    """Return the cells of a column of any type as stripped text; ``""`` where a frame has no value (None, NaN, NA).

    Of a column of numbers that are all whole the cells have no fraction: a gap in it does not turn 1 into 1.0.
    """
    if isinstance(column.dtype, pd.StringDtype):
        return column.str.strip().fillna("")
    missing = column.isna().to_numpy(bool)
    if is_number(column) and column.dtype.kind == "f":
        values = column.to_numpy(np.float64, na_value=0.0)
        if np.all(values == np.round(values)) and np.all(np.abs(values) < 2**53):
            column = pd.Series(values.astype(np.int64), index=column.index, name=column.name)
    cells = column.astype(object).where(~missing, "")
    text: pd.Series = cells.map(lambda cell: str(cell.tolist() if isinstance(cell, np.ndarray) else cell)).str.strip()
    return text  # str of a long array leaves out its middle


def gaps_in(text: pd.Series) -> NDArray[np.bool_]:
    """Return which cells of features hold no value (`MISSING`)."""
    return text.str.lower().isin(MISSING).to_numpy(bool)


def present(column: pd.Series) -> pd.Series:
    """Return the values that are there, as stripped text."""
    text = cell_text(column)
    return text[~gaps_in(text)]


# ---- numbers ----------------------------------------------------------------------------------------------------------
# Characters within numbers by the words that options have for them.
CHARACTERS = {"point": ".", "comma": ",", "space": " ", "apostrophe": "'"}
CHARACTER_NAMES = {character: word for word, character in CHARACTERS.items()}

# Spaces of any width, apostrophes and signs of minus as a keyboard has them.
_ALIKE = str.maketrans(
    {**dict.fromkeys("\u00a0\u2007\u2009\u202f", " "), "\u2019": "'", **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-")}
)
PARENTHESES = "()"  # the unit by which a number in parentheses is below 0


@dataclass(frozen=True)
class Notation:
    """How the numbers of a table are written, beside the way of programs (1234.5, -1e3), which is the default.

    ``decimal`` is ``.`` or ``,``; ``thousands`` stands between groups of digits: ``,``, ``.``, a space of any width or an apostrophe.
    Text with groups of other lengths is not a number. ``units`` before or after a number are taken off; ``()`` makes a number in
    parentheses negative.
    """

    decimal: str = "."
    thousands: str | None = None
    units: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Notation:
        """Return the notation of ``dataset.decimal``, ``dataset.thousands`` and ``dataset.units``."""
        decimal = _character(options, "decimal", ("point", "comma")) or "."
        thousands = _character(options, "thousands", tuple(CHARACTERS))
        if decimal == thousands:
            raise ConfigError(f"dataset.thousands={CHARACTER_NAMES[decimal]} stands before the fraction too; change dataset.decimal")
        units = options.get("units") or ()
        units = (units,) if isinstance(units, str) else tuple(units) if isinstance(units, (list, tuple)) else (None,)
        if not all(isinstance(unit, str) and unit.strip() and not re.search(r"[0-9]", unit) for unit in units):
            raise ConfigError(f"dataset.units={options['units']} must list texts without digits that stand before or after numbers")
        return cls(decimal, thousands, tuple(unit.strip() for unit in units))

    @property
    def options(self) -> dict[str, Any]:
        """The options that describe the notation, where they are not the defaults."""
        options: dict[str, Any] = {} if self.decimal == "." else {"decimal": CHARACTER_NAMES[self.decimal]}
        options |= {} if self.thousands is None else {"thousands": CHARACTER_NAMES[self.thousands]}
        return options | ({"units": list(self.units)} if self.units else {})

    def __str__(self) -> str:
        """Return the words of a command line, quoted for a shell where they must be."""
        words = []
        for key, value in self.options.items():
            if isinstance(value, str):
                words.append(f"dataset.{key}={value}")
            else:
                plain = all(re.fullmatch(r"[A-Za-z%]+", unit) for unit in value)
                inside = ",".join(value if plain else ('"' + unit.replace('"', '\\"') + '"' for unit in value))
                words.append(f"dataset.{key}=[{inside}]" if plain else f"'dataset.{key}=[{inside}]'")
        return " ".join(words)

    def numbers(self, text: pd.Series) -> NDArray[np.float64]:
        """Return the numbers that cells of text write, nan where they write none; TRUE and FALSE are 1 and 0."""
        values = np.full(len(text), np.nan)
        if self == PLAIN:
            values = pd.to_numeric(text, errors="coerce").to_numpy(np.float64, copy=True)
        rest = np.flatnonzero(np.isnan(values))
        if rest.size:
            codes, distinct = pd.factorize(text.iloc[rest])
            values[rest] = np.array([*map(self.number, distinct), np.nan])[codes]
        return values

    def number(self, cell: str) -> float:
        """Return the number that a cell writes, nan where it writes none.

        Where the comma is the decimal mark and the point has no meaning, 31131.57 is still read as a number; 31.131, whose point may
        separate thousands, is not.
        """
        value = self.strictly(cell)
        if np.isnan(value) and self.decimal == "," and self.thousands != "." and not _THOUSANDS.search(cell):
            return replace(self, decimal=".").strictly(cell)
        return value

    def strictly(self, cell: str) -> float:
        """Return the number that a cell writes in this notation alone, nan where it writes none."""
        cell = cell.translate(_ALIKE).strip()
        match = _pattern(self).fullmatch(cell)
        if match is None:
            word = cell.lower()
            return TRUTHS.get(word, float(word) if word in _INFINITE else np.nan)
        opened, closed, sign = match["open"] or "", match["close"] or "", match["sign"]
        if bool(opened) != bool(closed) or (opened and (sign or PARENTHESES not in self.units)):
            return np.nan
        digits = match["number"] if self.thousands is None else match["number"].replace(self.thousands, "")
        value = float(digits.replace(self.decimal, "."))
        return -value if opened or sign == "-" else value


PLAIN = Notation()
"""Numbers as programs write them."""


def _character(options: Mapping[str, Any], key: str, words: Sequence[str]) -> str | None:
    value = options.get(key)
    if value is None:
        return None
    character = CHARACTERS.get(value, value) if isinstance(value, str) else None
    if character not in [CHARACTERS[word] for word in words]:
        raise ConfigError(f"dataset.{key}={value} must be {', '.join(words[:-1])} or {words[-1]}")
    return character


@lru_cache(maxsize=64)
def _pattern(notation: Notation) -> re.Pattern[str]:
    named = sorted((unit.translate(_ALIKE) for unit in notation.units if unit != PARENTHESES), key=len, reverse=True)
    unit = f"(?:{'|'.join(map(re.escape, named))})?" if named else ""
    point, whole = re.escape(notation.decimal), "[0-9]+"
    if notation.thousands is not None:
        comma = re.escape(notation.thousands)
        inner = "[0-9]{2,3}" if notation.thousands == "," else "[0-9]{3}"  # two digits: a lakh, 12,34,567
        whole = rf"(?:[1-9][0-9]{{0,2}}(?:{comma}{inner})*{comma}[0-9]{{3}}|[0-9]+)"
    number = rf"(?P<number>(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    return re.compile(rf"(?P<open>\()?\s*{unit}\s*(?P<sign>[+-]?)\s*{unit}\s*{number}\s*{unit}\s*(?P<close>\))?\s*{unit}")


def numbers_of(column: pd.Series, notation: Notation = PLAIN) -> tuple[NDArray[np.float64], pd.Series | None]:
    """Return the numbers of a column, nan where a cell holds none, and its text; None for the text of a column that came as numbers."""
    if is_number(column):
        return column.to_numpy(np.float64, na_value=np.nan), None
    text = cell_text(column)
    return notation.numbers(text), text


def reads_as_numbers(column: pd.Series, notation: Notation = PLAIN) -> bool:
    """Return whether all cells of a column that hold a value hold a number, or all of them TRUE or FALSE.

    A column of numbers with a few missing cells arrives as text: it has to fail as missing, not to become categories.
    """
    if is_number(column):
        return bool(column.notna().any())
    rest = present(column)
    # the first values tell most columns of text from numbers
    if rest.empty or np.isnan(notation.numbers(rest.iloc[:1000])).any() or np.isnan(notation.numbers(rest)).any():
        return False
    truths = rest.str.lower().isin(TRUTHS)
    return bool(truths.all() or not truths.any())


# ---- the look of numbers in another notation --------------------------------------------------------------------------
# fmt: off
_KNOWN = {
    PARENTHESES, "<", ">", "<=", ">=", "≤", "≥", "~", "≈",
    "$", "€", "£", "¥", "₹", "US$", "EUR", "USD", "GBP", "CHF", "JPY", "CNY", "INR", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK",
    "HUF", "BRL", "ZAR",
    "%", "‰", "°", "°C", "°F", "kg", "g", "mg", "µg", "t", "lb", "lbs", "oz", "km", "m", "cm", "mm", "µm", "ft", "mi", "h", "min", "s",
    "ms", "l", "ml", "dl", "kW", "kWh", "W", "V", "A", "Hz", "kHz", "MHz", "GHz", "mph", "km/h", "kB", "MB", "GB", "TB", "px", "pt",
}
# fmt: on
_BEFORE, _AFTER = r"[^\s\w.,+()'-]{1,2}|[A-Z]{2}[A-Z$]", r"[^\s0-9.,+()'-]*"
_LOOK = re.compile(
    rf"(?P<open>\()?\s*(?P<before>{_BEFORE})?\s*[+-]?\s*(?P<between>{_BEFORE})?\s*"
    r"(?P<digits>[0-9.,](?:[0-9.,' ]*[0-9.])?(?:[eE][+-]?[0-9]+)?)"
    rf"(?P<room>\s*)(?P<after>{_AFTER})\s*(?P<close>\))?\s*(?P<outside>{_AFTER})"
)
_WAYS = ((".", None), (".", ","), (",", None), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
_MOST_UNITS, _FEWEST = 4, 2


def feasible(column: pd.Series, semicolons: bool = False) -> list[Notation]:
    """Return the notations by which all values of a column are numbers, the likeliest first; ``semicolons`` stand between fields."""
    ways = sorted(_WAYS, key=lambda way: (way != (".", None), way[0] != ",")) if semicolons else _WAYS
    if is_number(column):
        return [Notation(*way) for way in ways if way[0] == "." or _may_be(column.to_numpy(np.float64, na_value=0.0), way[1] == ".")]
    cells = pd.unique(present(column).str.translate(_ALIKE)).tolist()
    if len(cells) < _FEWEST:
        return []
    units = _units(cells)
    notations = [] if units is None else [Notation(*way, units) for way in ways]
    return [notation for notation in notations if not any(np.isnan(notation.strictly(cell)) for cell in cells)]


def _may_be(values: NDArray[np.float64], grouped: bool) -> bool:
    """Return whether numbers that a program read may come from a table of decimal commas; ``grouped``: with points between thousands."""
    parts = values[values != np.round(values)]
    three = (np.round(parts, 3) == parts) & (np.round(parts, 2) != parts) & (np.abs(parts) >= 1.0) & (np.abs(parts) < 1000.0)
    if not grouped:
        return not three.any()
    return bool(2 * three.sum() >= len(parts) and np.all(np.round(parts, 3) == parts))


def _units(cells: Sequence[str]) -> tuple[str, ...] | None:
    """Return what stands around the numbers of all cells, None where some hold no number or their surroundings are not of units."""
    units: dict[str, int] = {}
    for cell in (cell for cell in cells if cell.lower() not in _INFINITE):
        match = _LOOK.fullmatch(cell)
        if match is None:
            return None
        around = {match[key] for key in ("before", "between", "after", "outside") if match[key]}
        around |= {PARENTHESES} if match["open"] else set()
        # an unknown word is a unit where all cells have it behind a space: 12 pieces, not 12b
        if not around <= _KNOWN | ({match["after"]} if match["room"] else set()):
            return None
        for unit in around:
            units[unit] = units.get(unit, 0) + 1
        if len(units) > _MOST_UNITS:
            return None
    return None if any(unit not in _KNOWN and count < len(cells) for unit, count in units.items()) else tuple(units)


@dataclass(frozen=True)
class Look:
    """How numbers of a table look to be written: the ``notation`` for all columns of numbers, the default where none is.

    ``columns`` has the likeliest notation of each column of text that is numbers in another notation; ``unclear`` names the columns whose
    comma, or point, could also be read in its other meaning: 37,122.
    """

    notation: Notation
    columns: dict[str, Notation]
    unclear: tuple[str, ...]


def look_of(frame: pd.DataFrame, names: Sequence[str], is_text: Callable[[str], bool], separator: str = ",") -> Look:
    """Return how the numbers in the columns ``names`` of a frame look to be written; ``is_text`` tells those to be looked at."""
    semicolons = separator == ";"
    ways = {name: notations for name in names if is_text(name) and (notations := feasible(frame[name], semicolons))}
    columns = {name: notations[0] for name, notations in ways.items()}
    if not columns:
        return Look(PLAIN, {}, ())
    others = [feasible(frame[name], semicolons) for name in names if name not in ways and reads_as_numbers(frame[name])]
    marks = [[(way.decimal, way.thousands) for way in feasible_ways] for feasible_ways in (*ways.values(), *others)]
    shared = [pair for pair in marks[0] if all(pair in pairs for pairs in marks)]
    units = tuple(dict.fromkeys(unit for notation in columns.values() for unit in notation.units))
    notation = Notation(*shared[0], units) if shared else PLAIN
    if shared:
        columns = {name: Notation(*shared[0], notation_of_column.units) for name, notation_of_column in columns.items()}
    unclear = []
    for name, notations in ways.items():
        cells = pd.Series(pd.unique(present(frame[name])))
        readings = {way.numbers(cells).tobytes() for way in notations if (way.decimal, way.thousands) in shared}
        unclear += [name] if len(readings) > 1 else []
    return Look(notation, columns, tuple(unclear))
