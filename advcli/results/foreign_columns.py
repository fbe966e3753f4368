"""Which columns of anybody's table of scores say what: named by keys, or guessed by usual names and then said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..core.errors import ConfigError, DataError, UnknownNameError, nearest
from ..metrics import direction, names

USUAL = {
    "dataset": ["dataset", "data_set", "data", "task", "benchmark", "problem"],
    "method": ["method", "model", "algorithm", "system", "framework", "classifier", "learner"],
    "split": ["split", "fold", "seed", "run", "trial", "repeat"],
    "item": ["item", "instance", "example", "id", "question"],
    "metric": ["metric", "measure"],
    "value": ["value", "score", "result"],
    "n_train": ["n_train", "train_size"],
    "n_test": ["n_test", "test_size"],
}
"""Usual names of columns, by what they say: in lower case, with ``_`` for spaces, without ``_name`` and ``_id`` at their end."""

_NUMBER = re.compile(r"true|false|nan|na|n/a|-|[+-]?inf|[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*%?")
_WIDE = ("dataset", "method", "metric")


@dataclass(frozen=True)
class Layout:
    """What the columns of a table say.

    ``named`` are the columns of names by role, ``fixed`` the names that are the same in all rows, ``unit`` the columns of the split or
    item. ``values`` are columns of scores: each with the role that its heading names, empty in a tidy table, and that name.
    """

    named: Mapping[str, str]
    fixed: Mapping[str, str]
    kind: str
    unit: Sequence[str]
    values: Sequence[tuple[str, str, str]]
    sizes: Mapping[str, str | int | None]
    said: Sequence[str] = ()


def text_of(raw: Any) -> str:
    """Return an entry of a table as text: a whole number without a point."""
    if isinstance(raw, float) and raw.is_integer():
        return str(int(raw))
    return str(raw).strip()


def blank(raw: Any) -> bool:
    """Tell whether a cell of a table is empty."""
    return (
        raw is None or (isinstance(raw, str) and not raw.strip()) or (isinstance(raw, float) and raw != raw) or str(raw) in ("<NA>", "NaT")
    )


def layout(table: Mapping[str, Sequence[Any]], keys: Mapping[str, Any], name: str) -> Layout:
    """Return what the columns of a table say, by keys with columns or None; ``name`` names the data set where no column does.

    `ConfigError` for a key whose column is not there, and for columns that may mean two things; `DataError` for a table without scores.
    """
    return _ScoreColumns(table, keys).layout(name)


def _plain(column: str) -> str:
    text = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_")
    return re.sub(r"_(name|id)$", "", text)


def metric_name(column: str) -> str:
    """Return the name of the metric that a column of scores is of."""
    text = re.sub(r"[^a-z0-9.]+", "_", column.lower()).strip("_")
    return "accuracy" if text in ("correct", "is_correct") else text or column


class _ScoreColumns:
    """One table while its columns are sorted by what they say."""

    def __init__(self, table: Mapping[str, Sequence[Any]], keys: Mapping[str, Any]) -> None:
        # a spreadsheet has empty columns at its right end
        self.columns = [column for column in table if not all(map(blank, table[column]))]
        self.table, self.free = table, [*self.columns]
        self.keys = {key: value for key, value in keys.items() if value is not None}
        self.guessed: set[str] = set()

    def named(self, role: str) -> list[str]:
        """Return the columns that a key names; none without the key."""
        given = self.keys.get(role, [])
        columns = [str(name).strip() for name in ([given] if isinstance(given, str | int) else given)]
        for column in columns:
            if column not in self.columns:
                raise UnknownNameError(f"{role}={column}: the table has no such column; {nearest(column, self.columns)}")
        return columns

    def take(self, columns: Iterable[str]) -> None:
        """Mark columns as told."""
        self.free = [column for column in self.free if column not in set(columns)]

    def usual(self, role: str) -> list[str]:
        """Return the columns that are not told yet and have a usual name of the role."""
        return [column for column in self.free if _plain(column) in USUAL[role]]

    def one(self, role: str) -> list[str]:
        """Return the column or columns of a role, named or guessed; a guess must be the only one."""
        columns = self.named(role)
        if not columns:
            columns = self.usual(role)
            if len(columns) > 1:
                shown = " and ".join(map(repr, columns))
                raise ConfigError(f"columns {shown} can both be the {role}; name one: {role}={columns[0]}")
            self.guessed |= {*columns}
        self.take(columns)
        return columns

    def units(self) -> tuple[str, list[str]]:
        """Return whether the table has splits or items, and their columns."""
        named = {kind: self.named(kind) for kind in ("split", "item")}
        if all(named.values()):
            both = " and ".join(f"{kind}={columns[0]}" for kind, columns in named.items())
            raise ConfigError(f"{both}: a table has splits or items, not both; leave one out")
        for kind, columns in named.items():
            if columns:
                self.take(columns)
                return kind, columns
        splits, items = self.usual("split"), self.usual("item")
        if splits and items:
            remedy = f"a table has splits or items, not both; name the one that counts: split={splits[0]} or item={items[0]}"
            raise ConfigError(f"columns {splits[0]!r} (a split) and {items[0]!r} (an item): {remedy}")
        if len(items) > 1:
            raise ConfigError(f"columns {items[0]!r} and {items[1]!r} can both be the item; name one: item={items[0]}")
        columns = splits or items
        self.guessed |= {*columns}
        self.take(columns)
        return ("split" if splits else "item" if items else ""), columns

    def sizes(self) -> dict[str, str | int | None]:
        """Return for each size of the parts of a split its column, or the number that a key gives."""
        found: dict[str, str | int | None] = {}
        for size in ("n_train", "n_test"):
            given = self.keys.pop(size, None)
            if given is not None and str(given) not in self.columns and re.fullmatch(r"[1-9]\d*", str(given)):
                found[size] = int(given)
                continue
            if given is not None:
                self.keys[size] = str(given)
            found[size] = next(iter(self.one(size)), None)
        return found

    def layout(self, name: str) -> Layout:
        """Return what the columns say."""
        wide = {role: columns for role in _WIDE if len(columns := self._wide_named(role)) > 1}
        if len(wide) > 1:
            raise ConfigError(f"{' and '.join(f'{role}=[...]' for role in wide)}: the columns of scores have names of one kind alone")
        for columns in wide.values():
            self.take(columns)
        one_metric = self._one_metric()
        if one_metric is not None:
            self.keys.pop("metric")
        for role in ("dataset", "method", "metric", "split", "item", "value"):
            if role not in wide:
                self.take(self.named(role))
        sizes = self.sizes()
        kind, unit = self.units()
        sought = [role for role in _WIDE if role not in wide and (role != "metric" or one_metric is None)]
        named = {role: columns[0] for role in sought if (columns := self.one(role))}
        role, columns = next(iter(wide.items())) if wide else self._values(named, one_metric)
        self.take(columns)
        fixed = {} if "dataset" in named or role == "dataset" else {"dataset": name}
        values = [(column, role, metric_name(column) if role == "metric" else column) for column in columns]
        if "metric" not in named and role != "metric":
            fixed["metric"] = one_metric or metric_name(columns[0])
        if role == "method" and one_metric is None and "metric" not in named:
            raise ConfigError("a column for each method: metric=NAME says what the numbers are, such as metric=accuracy")
        if "method" not in named and role != "method":
            raise DataError(f"no column names the methods; name it: method=COLUMN (columns: {', '.join(self.columns)})")
        found = Layout(named, fixed, kind, unit, values, sizes)
        return replace(found, said=self._said(found))

    def _wide_named(self, role: str) -> list[str]:
        given = self.keys.get(role)
        return self.named(role) if isinstance(given, Sequence) and not isinstance(given, str) and len(given) > 1 else []

    def _one_metric(self) -> str | None:
        """Return the name of the one metric, where the key gives a name and no column of names."""
        given = self.keys.get("metric")
        given = given[0] if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 1 else given
        if not isinstance(given, str):
            return None
        value = self.keys.get("value")
        if given in self.columns and [given] != ([value] if isinstance(value, str) else [*(value or [])]):
            return None
        if given not in self.columns and direction(given) is None and "direction" not in self.keys:
            known = f"no metric of this name is known; {nearest(given, [*self.columns, *names()])}"
            raise ConfigError(f"metric={given}: the table has no such column, and {known}")
        return metric_name(given)

    def _values(self, named: Mapping[str, str], one_metric: str | None) -> tuple[str, list[str]]:
        """Return the columns of scores, and what their headings name: metrics or methods, nothing in a tidy table."""
        columns = self.named("value")
        if columns:
            return ("metric" if len(columns) > 1 else ""), columns
        if "method" not in named:
            return "method", self._numeric()
        plain = self.usual("value")
        scores = [column for column in self.free if column not in plain and self._scored(column)]
        if len(plain) == 1 and ("metric" in named or one_metric or not scores):
            self.guessed |= {*plain}
            return "", plain
        found = [*plain, *scores]
        if not found:
            raise DataError(f"no column of scores; name it: value=COLUMN (columns left: {', '.join(self.free) or 'none'})")
        if len(found) > 1 and (plain or "metric" in named or one_metric):
            shown = " and ".join(map(repr, found[:3])) + (" and more" if len(found) > 3 else "")
            remedy = f"name them: value={found[0]}, or several: value=[{','.join(found[:2])}]"
            raise ConfigError(f"columns {shown} can all be the scores; {remedy}")
        self.guessed |= {*found}
        return ("metric" if len(found) > 1 else ""), found

    def _scored(self, column: str) -> bool:
        """Tell whether a column has the name of a known metric and numbers."""
        return direction(metric_name(column)) is not None and self._is_numeric(column, 0.5)

    def _is_numeric(self, column: str, least: float = 1.0) -> bool:
        """Tell whether entries of a column are numbers, at least such a share of them; later checks name the others."""
        entries = [text_of(raw).lower() for raw in self.table[column] if not blank(raw)][:1000]
        return bool(entries) and sum(_NUMBER.fullmatch(entry) is not None for entry in entries) >= least * len(entries)

    def _numeric(self) -> list[str]:
        """Return the columns that are left of a table with a column for each method."""
        if not self.free:
            raise DataError(f"no column names the methods; name it: method=COLUMN (columns: {', '.join(self.columns)})")
        for column in self.free:
            if not self._is_numeric(column):
                numbers = [other for other in self.free if self._is_numeric(other)][:3]
                remedy = f"method=[{','.join(numbers)}]" if len(numbers) > 1 else "method=COLUMN"
                raise ConfigError(f"no column names the methods, and column {column!r} has no numbers alone; name them: {remedy}")
        self.guessed |= {*self.free}
        return [*self.free]

    def _said(self, found: Layout) -> list[str]:
        columns, (_, role, _) = [column for column, *_ in found.values], found.values[0]
        parts = [f"{what} = {column!r}" for what, column in found.named.items()]
        parts += [f"data set = {found.fixed['dataset']}"] if "dataset" in found.fixed else []
        parts += [f"{found.kind} = {' and '.join(map(repr, found.unit))}"] if found.kind else []
        parts += [f"{size} = {of if isinstance(of, int) else repr(of)}" for size, of in found.sizes.items() if of is not None]
        shown = ", ".join(map(repr, columns[:4])) + (f" and {len(columns) - 4} more" if len(columns) > 4 else "")
        parts.append(f"a column for each {role}: {shown}" if role else f"value = {shown}")
        left = [column for column in self.free if column]
        return [*parts, *([f"ignored: {', '.join(left)}"] if left else [])]
