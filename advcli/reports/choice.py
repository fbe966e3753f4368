"""Which methods and data sets a report shows, in which order, and under which names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ..core.errors import ConfigError, UnknownNameError, nearest
from .summary import in_order, with_unique_methods


@dataclass(frozen=True)
class Names:
    """The names that tables, figures and pages show instead of names of rows; other names are shown unchanged."""

    methods: Mapping[str, str] = field(default_factory=dict)
    datasets: Mapping[str, str] = field(default_factory=dict)
    losses: Mapping[str, str] = field(default_factory=dict)

    def shown(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with shown names in its columns of data sets, methods and losses."""
        columns = {"dataset": self.datasets, "method": self.methods, "other": self.methods, "loss": self.losses}
        renamed = _renamed(frame, columns)
        for names in ("unpaired", "items"):
            if names in renamed.attrs:
                renamed.attrs[names] = [self.datasets.get(name, name) for name in renamed.attrs[names]]
        if "tests" in renamed.attrs:
            tests = renamed.attrs["tests"].items()
            renamed.attrs["tests"] = {(metric, self.datasets.get(name, name)): test for (metric, name), test in tests}
        return renamed

    def kept(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table of `shown` with the names of the rows again."""
        methods, datasets = ({new: old for old, new in names.items()} for names in (self.methods, self.datasets))
        return _renamed(frame, {"dataset": datasets, "method": methods, "other": methods})


def in_given_order(frame: pd.DataFrame, order: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return a table whose methods and data sets are categories in the order of a sweep, where no choice has given them one.

    ``order`` has names by column. A method with options in brackets has the place of its plain name, and numbers in
    brackets ascend; methods that the list lacks come last.
    """
    categories = {}
    for column, given in order.items():
        if column not in frame or isinstance(frame[column].dtype, pd.CategoricalDtype) or not given:
            continue
        places = {name: at for at, name in enumerate(given)}
        plain = {name: name if name in places else name.partition(" [")[0] for name in in_order(frame[column])}
        names = sorted(plain, key=lambda name: (places.get(plain[name], len(places)), _by_number(name)))
        categories[column] = pd.Categorical(frame[column], names)
    ordered = frame.assign(**categories)
    ordered.attrs = dict(frame.attrs)
    keys = [name for name in ("dataset", "method") if name in categories]
    return ordered.sort_values(keys, kind="stable", ignore_index=True) if keys else ordered


def _by_number(name: str) -> list[tuple[float, str]]:
    """Return a key that puts C=1 before C=10."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", name)
    return [(float(part), "") if at % 2 else (0.0, part) for at, part in enumerate(parts)]


def _renamed(frame: pd.DataFrame, columns: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    shown = {}
    for column, names in columns.items():
        if column not in frame or not names:
            continue
        values = frame[column]
        if isinstance(values.dtype, pd.CategoricalDtype):
            shown[column] = values.cat.rename_categories([names.get(str(name), str(name)) for name in values.cat.categories])
        else:
            shown[column] = pd.Series([names.get(str(value), value) for value in values], index=frame.index, dtype=values.dtype)
    renamed = frame.assign(**shown)
    renamed.attrs = dict(frame.attrs)
    return renamed


@dataclass(frozen=True)
class Choice:
    """What of its rows a report shows.

    A method is named as in tables, as in tables without the brackets, or by its loss; the last two may mean several
    methods.
    """

    methods: Sequence[str] | None = None  # shown methods in this order; None: all, in alphabetical order
    datasets: Sequence[str] | None = None
    names: Mapping[str, str] = field(default_factory=dict)  # shown names by names of methods, as above, and of data sets

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Choice:
        """Return the choice of the configuration group ``report``."""
        return cls(report["methods"], report["datasets"], report["names"] or {})

    def rows(self, runs: pd.DataFrame) -> tuple[pd.DataFrame, Names]:
        """Return the rows as in runs.csv that are shown, and their shown names.

        The rows get unique names of methods (`with_unique_methods`); where there is a choice, the columns ``dataset`` and ``method`` are
        categories in the order of what is shown, which `in_order` and sorting by these columns follow. Refused are a name that no row has,
        or that is given to two methods or data sets, and a choice that leaves nothing.
        """
        plain = runs["method"].astype(str).tolist()
        runs = with_unique_methods(runs)
        if self.methods is None and self.datasets is None and not self.names:
            return runs, Names()
        about = runs[["dataset", "method", "loss"]].assign(plain=plain).drop_duplicates()
        methods = _chosen("report.methods", self.methods, _aliases(about))
        datasets = _chosen("report.datasets", self.datasets, {name: [name] for name in in_order(about["dataset"])})
        names = _names(self.names, about)
        runs = runs[runs["method"].isin(methods) & runs["dataset"].isin(datasets)]
        if runs.empty:
            raise ConfigError("report.methods and report.datasets leave no row: none of these methods is there on one of these data sets")
        for column, order in (("method", methods), ("dataset", datasets)):
            present = set(runs[column])
            runs = runs.assign(**{column: pd.Categorical(runs[column], [name for name in order if name in present])})
        return runs.sort_values(["dataset", "method"], kind="stable", ignore_index=True), names


def _aliases(about: pd.DataFrame) -> dict[str, list[str]]:
    """Return the methods that each name means: the name in tables, the same without brackets, the loss."""
    methods: dict[str, list[str]] = {}
    for method in in_order(about["method"]):
        row = about[about["method"] == method].iloc[0]
        for alias in dict.fromkeys(str(name) for name in (method, row["plain"], row["loss"])):
            methods.setdefault(alias, []).append(method)
    return methods


def _chosen(key: str, wanted: Sequence[str] | None, aliases: Mapping[str, list[str]]) -> list[str]:
    """Return what the names of a list mean, in its order; all in alphabetical order without a list."""
    names = aliases if wanted is None else [_checked(key, name, aliases) for name in wanted]
    chosen = list(dict.fromkeys(item for name in names for item in aliases[name]))
    return sorted(chosen) if wanted is None else chosen


def _checked(key: str, name: str, choices: Iterable[str]) -> str:
    if name not in choices:
        raise UnknownNameError(f"{key}: there is no {name!r} in these results; {nearest(name, choices)}")
    return name


def _names(new_names: Mapping[str, str], about: pd.DataFrame) -> Names:
    """Return the shown names of everything that a given name is about."""
    datasets, aliases = in_order(about["dataset"]), _aliases(about)
    for name in new_names:
        _checked("report.names", name, [*datasets, *aliases])
    methods: dict[str, str] = {}
    losses: dict[str, str] = {}
    for method in in_order(about["method"]):
        row = about[about["method"] == method].iloc[0]
        plain, loss = str(row["plain"]), str(row["loss"])
        alone = about.loc[about["loss"] == loss, "plain"].nunique() == 1
        brackets = method[len(plain) :] if method.startswith(plain) else ""
        # the feature map tells methods of one loss apart
        ends = {method: "", plain: brackets, loss: ("" if alone else plain[len(loss) :]) + brackets}
        alias = next((name for name in (method, plain, loss) if name in new_names), None)
        if alias is not None:
            methods[method] = new_names[alias] + ends[alias]
        if loss in new_names or (alone and plain in new_names):
            losses[loss] = new_names[loss if loss in new_names else plain]
    shown = Names(methods, {name: new_names[name] for name in datasets if name in new_names}, losses)
    for kind, old_names, names in (("method", in_order(about["method"]), shown.methods), ("data set", datasets, shown.datasets)):
        taken: dict[str, str] = {}
        for name in old_names:
            other = taken.setdefault(names.get(name, name), name)
            if other != name:
                raise ConfigError(f"report.names: two of them would be one {kind} {names.get(name, name)!r}: {other} and {name}")
    return shown
