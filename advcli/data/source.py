"""What a source of data sets is: options with their defaults, a function that loads, and what it knows by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.checks import ANY, at_least, or_null, refuse, rule
from ..core.errors import ConfigError, UnknownNameError, nearest
from ..core.notes import code_of
from .dataset import Dataset

# Options that every source understands.
COMMON: dict[str, Any] = {"name": None, "source": None, "ordered": False, "sizes": None, "allow_small_classes": False}

# Options of sources that read columns: which of them are what.
COLUMN_OPTIONS: dict[str, Any] = {
    "target": "target",
    "features": None,
    "drop": [],
    "categorical": [],
    "keep": [],
    "max_categories": 50,
    "missing": "refuse",
    "weight": None,
    "group": None,
    "time": None,
    "decimal": "point",
    "thousands": None,
    "units": [],
}

TABLE_OPTIONS: dict[str, Any] = {**COLUMN_OPTIONS, "order": None, "cut": "none", "n_classes": None, "edges": None}
"""Options of sources that read a table with one label a row (`advcli.data.from_table`), with their defaults."""

# Options of sources whose rows may form sequences (`advcli.data.tables.encoding`).
SEQUENCE_OPTIONS: dict[str, Any] = {"sequence": None, "tokens": None, "head": None, "relation": None}

# Options of sources whose rows may have several labels, or labels with a hierarchy (`advcli.data.labels.sets`).
LABEL_OPTIONS: dict[str, Any] = {
    "hierarchy": None,
    "root": None,
    "several_tops": False,
    "stub_leaves": False,
    "label_separator": None,
    "top_labels": None,
}


@dataclass(frozen=True)
class Entry:
    """One line of the list of data sets.

    ``name`` and ``source`` are values of the options, ``options`` all others that differ from the defaults of the source. ``rows``,
    ``features`` and ``classes`` are sizes of the table as stored (before one-hot encoding); for continuous targets the classes of the
    default cut. ``task`` is ``multiclass``, ``ordinal``, ``regression_to_ordinal``, or what cannot be loaded yet. ``here`` says whether it
    can be loaded now, without the network; ``command`` is the override that uses it, or the command that gets it, and empty for a set that
    nobody can get, of which ``note`` says why. ``size`` is what fetching it downloads, in bytes.
    """

    name: str
    source: str
    rows: int | None
    features: int | None
    classes: int | None
    task: str
    here: bool
    command: str
    citation: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    size: int = 0
    licence: str = ""
    note: str = ""


MOST_NUMBERS = 10**9
"""Numbers that a made-up data set holds at most: 8 GB."""


def check_size(**factors: int) -> None:
    """Refuse options of a made-up data set whose product is more than `MOST_NUMBERS`, before anything is allocated."""
    if math.prod(factors.values()) > MOST_NUMBERS:
        options = " times ".join(f"dataset.{name}={value}" for name, value in factors.items())
        raise ConfigError(f"{options} is more than {MOST_NUMBERS} numbers; choose less")


def _are_sizes(sizes: Any) -> bool:
    return isinstance(sizes, (list, tuple)) and len(sizes) == 2 and all(map(at_least(1)["valid"], sizes))


_SIZES = or_null(rule("[train rows, test rows], two positive whole numbers", _are_sizes))


def common(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `Dataset` that the options of every source give."""
    return {key: options[key] for key in ("name", "sizes", "allow_small_classes")}


def check_options(options: Mapping[str, Any], rules: Mapping[str, Mapping[str, Any]], group: str = "dataset") -> None:
    """Refuse options of a group that break their rules (`advcli.core.checks`)."""
    for key, about in rules.items():
        refuse(f"{group}.{key}", options[key], about)


def notes_with(*codes: str) -> Callable[[Dataset], list[str]]:
    """Return what tells the notes of a data set that have one of these codes (`Source.foresee`)."""
    return lambda dataset: [note for note in dataset.notes if code_of(note) in codes]


def asks_for_label_sets(options: Mapping[str, Any]) -> bool:
    """Return whether the options say that the target holds nodes of a hierarchy or sets of labels."""
    several = options.get("label_separator") is not None or str(options.get("target")).endswith("*")
    return several or options.get("hierarchy") is not None


def options_give_order(options: Mapping[str, Any]) -> bool:
    """Return whether the options order the classes: by ``ordered``, by ``order``, or by a cut; sets of labels have no order."""
    ordered = bool(options["ordered"]) or options.get("order") is not None or options.get("cut") not in (None, "none")
    return ordered and not asks_for_label_sets(options)


@dataclass(frozen=True)
class Source:
    """A kind of place that data sets come from.

    Attributes
    ----------
    name : str
        The value of ``dataset.source``.
    options : mapping
        Its own options with their defaults; `COMMON` is added.
    load : callable (options, data_dir) -> Dataset
        Called with all options present and names checked.
    entries : callable (data_dir) -> list of Entry, or None
        The data sets that it knows by name; None: its data sets of the catalogue, which need no download.
    own_splits : bool
        Its data sets bring their splits.
    ordered : callable (options) -> bool or None, or None
        Whether `Dataset.ordered` will be true, before loading; it returns None where only loading tells. None: what the options do not say
        is known after loading only.
    foresee : callable (Dataset) -> list of str, or None
        The data set is loaded before any work, so that its faults are raised then. This function returns the notes on it that the user
        should read, a line each. None: loading is too much work to do it twice, or nothing can be wrong.
    files : callable (options, data_dir) -> list of Path, or None
        The files of the data folder that a data set is read from, here or not. None: it reads none of that folder.
    paths : tuple of str
        The options that are paths of files or folders, seen from the working folder.
    examples : callable (folder) -> list of mapping, or None
        Options of small data sets for `advcli.testing.check_source`; writes the files that they need into the folder.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.data import Source, make_dataset
    >>> def load(options, data_dir):
    ...     y = np.arange(options["rows"]) % 2
    ...     return make_dataset(name=options["name"], X=y[:, None], y=y, classes=["no", "yes"], feature_names=["size"])
    >>> SOURCE = Source("parity", {"rows": 10}, load)
    >>> SOURCE.load({"name": "parity", "rows": 10}, None).X.shape
    (10, 1)
    """

    name: str
    options: Mapping[str, Any]
    load: Callable[[Mapping[str, Any], Path], Dataset]
    entries: Callable[[Path], list[Entry]] | None = None
    own_splits: bool = False
    ordered: Callable[[Mapping[str, Any]], bool | None] | None = None
    examples: Callable[[Path], list[dict[str, Any]]] | None = None
    foresee: Callable[[Dataset], list[str]] | None = None
    files: Callable[[Mapping[str, Any], Path], list[Path]] | None = None
    paths: tuple[str, ...] = ()

    @property
    def defaults(self) -> dict[str, Any]:
        """Every option with its default."""
        return {**COMMON, **self.options}

    def complete(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with defaults filled in; `ConfigError` for an option that the source lacks, or a wrong common value."""
        defaults = self.defaults
        for key in options:
            if key not in defaults:
                raise UnknownNameError(f"dataset.{key} is not an option of dataset.source={self.name}; {nearest(key, defaults)}")
        complete = {**defaults, **options, "name": str(options["name"]), "source": self.name}
        check_options(complete, {"ordered": ANY, "allow_small_classes": ANY, "sizes": _SIZES})
        return complete

    def is_ordered(self, complete: Mapping[str, Any]) -> bool | None:
        """Return whether the classes will have an order by all options of a data set; None where only loading tells."""
        if self.ordered is not None:
            return self.ordered(complete)
        return True if options_give_order(complete) else None
