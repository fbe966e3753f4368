"""Texts of the cells of a report's tables."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from ...metrics import shown_mean
from ..formats.document import TableField


def number_text(value: Any, digits: int = 3) -> TableField:
    """Return a number with so many significant digits."""
    number = float(value)
    return TableField("-", math.nan, state="missing") if math.isnan(number) else TableField(f"{number:.{digits}g}", number)


def fixed_text(value: Any, digits: int = 2) -> TableField:
    """Return a number with so many digits after the point."""
    number = float(value)
    return number_text(number) if math.isnan(number) else TableField(f"{number:.{digits}f}", number)


def median_text(metric: str, value: float) -> TableField:
    """Return a median as the metric shows its means."""
    return number_text(value) if math.isnan(value) else TableField(shown_mean(metric, value), value)


def p_value_text(value: Any) -> TableField:
    """Return a p-value, `< 0.001` where it is smaller."""
    number = float(value)
    if math.isnan(number):
        return TableField("-", math.nan, state="missing")
    return TableField("< 0.001" if number < 0.001 else f"{number:.3f}", number)


def whole_text(value: Any) -> TableField:
    """Return a whole number."""
    return TableField("-", math.nan, state="missing") if pd.isna(value) else TableField(str(int(value)), float(value))
