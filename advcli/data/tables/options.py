"""The options of a source that reads a table, read and checked once (`TableOptions`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ...core.checks import ANY, at_least, choice, refuse, rule
from ...core.errors import ConfigError
from .cells import PLAIN, Notation
from .opening import check_encoding

MISSING_WAYS = ("refuse", "mean", "median", "most_frequent", "indicator")
"""What may become of cells without a value (``dataset.missing``)."""

CUTS = ("none", "equal_width", "equal_frequency", "edges")
"""Ways to cut a continuous target into ordered classes (``dataset.cut``)."""

_MOST_CLASSES = 10_000  # of a cut target

ONE_COLUMN = ("weight", "sequence", "tokens", "head", "relation", "group", "time")
"""Options that name one column each."""

_TEXTS = {"target", *ONE_COLUMN, "hierarchy", "missing", "cut", "cost_matrix", "currency"}
_LISTS = ("drop", "keep", "categorical", "features", "annotators")  # of names of columns
_RULES = {
    "missing": choice(*MISSING_WAYS),
    "max_categories": at_least(2),
    "separator": rule("one character", lambda value: isinstance(value, str) and len(value) == 1 and value not in '"\n\r'),
    "order": rule("the list of the labels, lowest first", lambda value: isinstance(value, (list, tuple))),
    "cut": choice(*CUTS),
    "several_tops": ANY,
    "stub_leaves": ANY,
    "top_labels": at_least(2),
    "label_separator": rule("the text between the labels of a cell, or null", lambda value: isinstance(value, str) and bool(value)),
}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How cells become numbers and categories: what an `Encoding` of columns keeps of the options of its table."""

    separator: str = ","
    sequence: str | None = None
    missing: str = "refuse"
    max_categories: int | None = None
    notation: Notation = PLAIN


@dataclass(frozen=True)
class TableOptions(Reading):
    """What the ``dataset`` group says of a table: roles of columns, how cells are read, how the target becomes classes.

    Attributes have the names and the meaning of the options (``conf/base/table.yaml``); lists are tuples.

    Attributes
    ----------
    target : str or None
        The column of labels, ``PREFIX*`` for all columns whose names begin with ``PREFIX``; None: the rows have no labels. A list is kept
        in ``shares``.
    shares : tuple of str
        Columns of probabilities, or counts of votes, for each class, by name or as ``PREFIX*``.
    annotators : tuple of str
        Columns of labels that one annotator each gave, likewise.
    categorical : tuple of str, or None
        Columns of categories; None: the columns that look like categories (``auto``).
    notation : Notation
        ``decimal``, ``thousands`` and ``units``.
    encoding : str or None
        The encoding of CSV files without a mark; None: UTF-8.
    """

    name: str = ""
    target: str | None = "target"
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] | None = ()
    keep: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    cost_matrix: str | None = None
    currency: str | None = None
    weight: str | None = None
    group: str | None = None
    time: str | None = None
    tokens: str | None = None
    head: str | None = None
    relation: str | None = None
    encoding: str | None = None
    order: tuple[Any, ...] | None = None
    cut: str = "none"
    n_classes: int | None = None
    edges: tuple[float, ...] | None = None
    hierarchy: str | None = None
    root: str | None = None
    several_tops: bool = False
    stub_leaves: bool = False
    label_separator: str | None = None
    top_labels: int | None = None
    ordered: bool = False
    sizes: Sequence[int] | None = None
    allow_small_classes: bool = False

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> TableOptions:
        """Return the options of a table source, checked; options that a source does not have are at their defaults.

        Raises
        ------
        ConfigError
            A value that cannot be, or options that contradict each other.
        """
        chosen = {option.name: options[option.name] for option in fields(cls) if options.get(option.name) is not None}
        if isinstance(chosen.get("target"), list | tuple):
            chosen["shares"] = _names_of(chosen["target"], "target")
            chosen["target"] = ",".join(chosen["shares"])
        automatic = chosen.get("categorical") == "auto"
        chosen |= {key: str(chosen[key]) for key in _TEXTS & chosen.keys()}
        chosen |= {key: _names_of(chosen[key], key) for key in _LISTS if key in chosen}
        if automatic:
            chosen["categorical"] = None
        if "costs" in chosen:
            chosen["costs"] = _cost_columns(chosen)
        _check_head(chosen)
        _check_several(chosen)
        for key, about in _RULES.items():
            if key in chosen:
                refuse(f"dataset.{key}", chosen[key], about)
        _check_target(chosen)
        chosen["notation"] = Notation.of(options)
        chosen["encoding"] = check_encoding(chosen.get("encoding"))
        if "order" in chosen:
            chosen["order"] = tuple(chosen["order"])
        return cls(**chosen)

    @property
    def text(self) -> tuple[str, ...] | None:
        """Columns beside the target that a reader of files leaves as text; None: all, as it would take 1.234 for one and a bit."""
        if self.notation != PLAIN:
            return None
        return (*(self.categorical or ()), *(name for name in (self.sequence, self.tokens, self.group) if name is not None))

    def names_prefix(self, names: Collection[str]) -> bool:
        """Return whether the target is ``PREFIX*`` for columns of labels, and not one of the ``names`` of columns itself."""
        return self.target is not None and self.target.endswith("*") and self.target not in names and not self.shares

    @property
    def several(self) -> tuple[str, ...]:
        """What together are the labels: ``shares`` or ``annotators``; empty where one column has them."""
        return self.shares or self.annotators

    def target_columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns among ``names`` that the target means: one column, or all columns of ``PREFIX*``."""
        if self.several:
            return [name for pattern in self.several for name in names if meant(name, pattern)]
        if self.names_prefix(names):
            return [name for name in names if name.startswith(str(self.target)[:-1])]
        return [self.target] if self.target is not None and self.target in names else []

    def has_label_sets(self, names: Collection[str] = ()) -> bool:
        """Return whether the target holds nodes of a hierarchy or sets of labels; ``names`` as for `names_prefix`."""
        return self.label_separator is not None or self.hierarchy is not None or self.names_prefix(names)


DEFAULTS = TableOptions()
"""The default options of a table: labels in the column ``target``, columns of numbers as features."""


def meant(name: str, pattern: str) -> bool:
    """Return whether ``NAME`` or ``PREFIX*`` means the column of this name."""
    return name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))


def _check_head(values: dict[str, Any]) -> None:
    """Make the column of heads the target, and refuse options that have no meaning beside it."""
    if "head" not in values:
        if "relation" in values:
            raise ConfigError(f"dataset.relation={values['relation']} is the relation to a head: give dataset.head, its column, too")
        return
    head = values["head"]
    if values.get("target", head) not in ("target", head):
        raise ConfigError(f"dataset.target={values['target']} and dataset.head={head} are both the target: leave out one of them")
    for key, what in (("sequence", "the sentence of every word"), ("tokens", "the words")):
        if key not in values:
            raise ConfigError(f"dataset.head={head} needs dataset.{key}, the column of {what}")
    beside = ("order", "edges", "n_classes", "hierarchy", "label_separator", "costs", "cost_matrix", "annotators", "shares")
    for key in (*beside, *(("cut",) if values.get("cut", "none") != "none" else ())):
        if key in values:
            raise ConfigError(f"dataset.{key} is about labels, and dataset.head={head} has trees: leave it out")
    values["target"] = head


def _check_several(values: Mapping[str, Any]) -> None:
    """Refuse options of one label a row beside labels that several columns have together."""
    several = "target=[COLUMNS]" if "shares" in values else "annotators" if "annotators" in values else ""
    if "shares" in values and "annotators" in values:
        raise ConfigError("dataset.annotators and a list dataset.target are both where the labels come from: give one of them")
    for key in ("costs", "edges", "n_classes", "hierarchy", "label_separator", "cut"):
        if several and key in values and (key, values[key]) != ("cut", "none"):
            raise ConfigError(f"dataset.{key} is about one label a row; with dataset.{several} leave it out")
    if "cost_matrix" in values and ("costs" in values or "hierarchy" in values or "label_separator" in values):
        raise ConfigError("dataset.cost_matrix is about rows with one label: leave out dataset.costs, hierarchy and label_separator")
    if "currency" in values and not {"cost_matrix", "costs"} & values.keys():
        raise ConfigError(f"dataset.currency={values['currency']} needs costs: give dataset.cost_matrix=FILE.csv or dataset.costs")


def _names_of(value: Any, key: str) -> tuple[str, ...]:
    """Return the names of columns that an option lists."""
    if isinstance(value, (str, int, float)):
        return (str(value),)
    if isinstance(value, (list, tuple)):
        return tuple(str(item) for item in value)
    raise ConfigError(f"dataset.{key}={value} must be a list of column names")


def _cost_columns(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of the costs of predictions; further options about labels are refused."""
    costs = values["costs"]
    if not isinstance(costs, (list, tuple)) or len({str(name) for name in costs}) != len(costs) or len(costs) < 2:
        raise ConfigError(f"dataset.costs={costs} must list at least two columns, one for each prediction, each once")
    for key in ("order", "edges", "n_classes", "hierarchy", "label_separator", "cut"):
        if key in values and (key, values[key]) != ("cut", "none"):
            raise ConfigError(f"dataset.{key} is about labels; with dataset.costs the columns of costs are the classes: leave it out")
    return tuple(str(name) for name in costs)


def _check_target(values: dict[str, Any]) -> None:
    """Refuse options of the target that contradict each other; the edges of a cut become numbers."""
    cut = values.get("cut", "none")
    if "n_classes" in values and cut not in ("equal_width", "equal_frequency"):
        raise ConfigError(
            f"dataset.n_classes={values['n_classes']} needs dataset.cut=equal_width or equal_frequency (is {cut}); else set it to null"
        )
    if "edges" in values and cut != "edges":
        raise ConfigError(f"dataset.edges needs dataset.cut=edges (is {cut}); else set it to null")
    if "order" in values and cut != "none":
        raise ConfigError(f"dataset.order lists labels; it has no meaning with dataset.cut={cut}")
    if cut == "edges":
        values["edges"] = _inner_edges(values.get("edges"))
    elif cut != "none":
        refuse("dataset.n_classes", values.get("n_classes"), at_least(2, _MOST_CLASSES))


def _inner_edges(value: Any) -> tuple[float, ...]:
    """Return the inner edges of a cut: finite numbers, strictly increasing."""
    if value is None or value in ([], ()):
        raise ConfigError("dataset.cut=edges needs dataset.edges, the increasing inner edges, for example [10,20,30]")
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    try:
        edges = np.asarray(listed, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"dataset.edges={listed} must be numbers") from None
    if not np.all(np.isfinite(edges)) or not np.all(np.diff(edges) > 0):
        raise ConfigError(f"dataset.edges={listed} must be finite and strictly increasing")
    return tuple(edges.tolist())
