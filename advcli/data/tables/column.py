"""One column of a table, and the faults that refuse it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ConfigError
from .table import Table


@dataclass(frozen=True)
class Column:
    """A column of a table that features are made of, and what was learned of it from training rows.

    Attributes
    ----------
    name : str
        Its name in the heading.
    categories : tuple of str, int or float, or None
        The values that are known, by whose places cells are coded; None for a column of numbers.
    attributes : tuple of str or None
        Of a column of tokens: the attributes that have features (`advcli.data.tables.tokens.token_attributes`), in their order.
    own : tuple of int or None
        Codes of the categories that have a feature of their own; None: all have. The code after the last category stands for no value.
    other : bool
        Whether one more feature stands for all other categories, rare ones and those that training rows do not have.
    fill : float or None
        What stands in the place of a cell without a value: a number, or a code (-1: no category); None: such a cell stays without.
    indicator : bool
        Of a column of numbers: whether one more feature says which cells have no value.
    """

    name: str
    categories: tuple[Any, ...] | None = None
    attributes: tuple[str, ...] | None = None
    own: tuple[int, ...] | None = None
    other: bool = False
    fill: float | None = None
    indicator: bool = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of its features: ``size`` for numbers, ``colour=red`` for a category, ``word=the`` for an attribute of a token.

        ``size is missing`` and ``colour is missing`` say that there is no value, ``colour=other`` that it is another category.
        """
        gap = f"{self.name} is missing"
        if self.attributes is not None:
            return self.attributes
        if self.categories is None:
            return (self.name, gap) if self.indicator else (self.name,)
        names = [f"{self.name}={value}" for value in self.categories]
        other = f"{self.name}=other"
        while other in names:
            other += "_"
        own = range(len(names)) if self.own is None else self.own
        return tuple([gap if code == len(names) else names[code] for code in own] + [other] * self.other)

    def features(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the features (n, f) of its cells (n,): numbers or codes, nan for no value, -1 for a category that is not known."""
        missing = np.isnan(cells)
        if self.categories is None:
            values = cells if self.fill is None else np.where(missing, self.fill, cells)
            return np.column_stack([values, missing]) if self.indicator else values[:, None]
        codes = np.where(missing, -1.0 if self.fill is None else self.fill, cells)
        own = np.arange(len(self.categories)) if self.own is None else np.array(self.own, dtype=np.intp)
        hot = (codes[:, None] == own).astype(np.float64)
        return np.column_stack([hot, ~hot.any(axis=1)]) if self.other else hot


@dataclass(frozen=True)
class Fault:
    """Cells of one column that an encoding does not take.

    Attributes
    ----------
    kind : str
        ``gap`` (no value), ``text`` (in a column of numbers), ``infinite`` or ``unseen`` (a category that is not known).
    column : str
    rows : ndarray of intp
        0-based rows of the table.
    reason : str
        What is wrong with each of them, as a line of a file of rejected rows says it.
    text : str
        One line that names the first of them and what to do.
    """

    kind: str
    column: str
    rows: NDArray[np.intp]
    reason: str
    text: str


def refuse_faults(faults: Sequence[Fault]) -> list[str]:
    """Return the line of every fault; of a column that holds text only that one: it is the column that is wrong then."""
    texts = {fault.column for fault in faults if fault.kind == "text"}
    return [fault.text for fault in faults if fault.kind == "text" or fault.column not in texts]


def dense_column(block: Any) -> NDArray[np.float64]:
    """Return a block of features as a dense array (n, m)."""
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block)


def fault_of(table: Table, kind: str, name: str, what: str, rows: NDArray[np.intp], remedy: str) -> Fault:
    """Return the fault of a column in these rows, with the remedy."""
    count = f" (and {rows.size - 1} more)" if rows.size > 1 else ""
    text = f"{table.path}: column {name!r} has {what} in {table.place(int(rows[0]))}{count}; {remedy}"
    return Fault(kind, name, rows, f"{what} in column {name!r}", text)


def names_of(value: Any, key: str) -> list[str]:
    """Return the names of columns that an option lists."""
    if value is None:
        return []
    if isinstance(value, (str, int, float)):
        return [str(value)]
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    raise ConfigError(f"dataset.{key}={value} must be a list of column names")
