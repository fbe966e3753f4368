"""Labels that are nodes of a hierarchy, and rows with several labels: from a table and an edge list to codes, graph and ancestor sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ...core.errors import ConfigError, DataError
from ...core.label_graph import LabelGraph, stub
from ...core.notes import noted
from ...core.paths import expanded
from ..dataset import Edges
from ..tables.cells import PLAIN
from ..tables.options import TableOptions
from ..tables.table import Table, read_table


@dataclass(frozen=True)
class CodedLabels:
    """Labels of n rows, as fields of a `Dataset`: codes (n,), or CSR of ones (n, L) where rows have several.

    ``classes`` are the labels that occur, in the order of the graph's leaves; without a graph alphabetical.
    """

    y: NDArray[Any] | csr_array
    classes: tuple[str, ...]
    hierarchy: Edges | None
    stubs: tuple[str, ...]


def read_edges(path: Path) -> Edges:
    """Read an edge list, a table with columns ``parent`` and ``child``, or ``node`` and ``parent``; `LabelGraph` checks the graph."""
    table = read_table(path, TableOptions(target=None, categorical=("parent", "child", "node")))
    child = next((name for name in ("child", "node") if name in table.names), None)
    if child is None or "parent" not in table.names:
        raise DataError(f"{path} has no columns parent and child (or node and parent), one edge a row; it has {', '.join(table.names)}")
    pairs = list(zip(table.text("parent"), table.text(child), strict=True))
    for row, pair in enumerate(pairs):
        if not all(pair):
            raise DataError(f"{path}: {table.place(row)} has no {'parent' if not pair[0] else child}; name it or remove it")
    return tuple(dict.fromkeys(pairs))


def read_label_sets(table: Table, notes: list[str]) -> CodedLabels:
    """Read the target of a table as labels of a hierarchy, sets of labels, or both; ``notes`` are added to.

    The target is one column, whose cells are split at ``label_separator``, or ``PREFIX*`` for columns of 0 and 1.
    """
    options, columns = table.options, table.targets
    separator, prefix = options.label_separator, options.names_prefix(table.names)
    several = separator is not None or prefix
    if len(columns) > 1 or (separator is None and several):
        rows = _columns(table, columns, str(options.target)[:-1], options.hierarchy is None)
    else:
        rows = _cells(table, columns[0], separator, separator is not None and options.hierarchy is None)
    if options.top_labels is not None:
        rows = _most_frequent(rows, options.top_labels, several and options.hierarchy is None, notes)
    edges: Edges | None = None
    stubs: tuple[str, ...] = ()
    if options.hierarchy is None:
        classes = sorted({label for row in rows for label in row})
    else:
        edges, stubs, leaf_of = _attach(read_edges(expanded(options.hierarchy)), rows, options, notes)
        rows = [[leaf_of[label] for label in row] for row in rows]
        graph = LabelGraph.from_edges(edges, root=options.root, several_tops=options.several_tops)
        occurring = set(leaf_of.values())
        classes = [graph.names[leaf] for leaf in graph.leaves if graph.names[leaf] in occurring]
        if (unused := len(graph.leaves) - len(classes)) > 0:
            notes.append(noted("ADV108", f"{unused} of {len(graph.leaves)} leaves of the hierarchy are the label of no row"))
    number = {label: code for code, label in enumerate(classes)}
    if not several:
        return CodedLabels(np.array([number[row[0]] for row in rows], dtype=np.intp), tuple(classes), edges, stubs)
    counts = np.array([len(row) for row in rows])
    codes = np.array([number[label] for row in rows for label in row], dtype=np.int32)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    without = f", {(counts == 0).sum()} rows have none" if (counts == 0).any() else ""
    notes.append(noted("ADV108", f"{counts.mean():.2f} labels a row, at most {counts.max()}{without}"))
    y = csr_array((np.ones(len(codes), dtype=np.int8), codes, start), shape=(len(rows), len(classes)))
    return CodedLabels(y, tuple(classes), edges, stubs)


def _most_frequent(rows: list[list[str]], most: int, sets: bool, notes: list[str]) -> list[list[str]]:
    """Return the rows with their ``most`` most frequent labels alone; of labels as frequent as each other the alphabet's first."""
    counts = Counter(label for row in rows for label in row)
    if not sets or most >= len(counts):
        what = f"at most {len(counts) - 1} of the {len(counts)} labels" if sets else "sets of labels without a hierarchy"
        raise ConfigError(f"dataset.top_labels={most} is for {what}: choose fewer labels, or null for all")
    kept = set(sorted(counts, key=lambda label: (-counts[label], label))[:most])
    notes.append(noted("ADV108", f"the {most} most frequent of {len(counts)} labels are kept"))
    return [[label for label in row if label in kept] for row in rows]


def _cells(table: Table, column: str, separator: str | None, may_be_empty: bool) -> list[list[str]]:
    rows = []
    for row, cell in enumerate(table.text(column)):
        labels = [part.strip() for part in (cell.split(separator) if separator else [cell])]
        labels = list(dict.fromkeys(label for label in labels if label))
        if not labels and not may_be_empty:
            raise DataError(f"{table.path}: the target column {column!r} has no label in {table.place(row)}; fill it or remove the row")
        rows.append(labels)
    return rows


def _columns(table: Table, columns: list[str], prefix: str, may_be_empty: bool) -> list[list[str]]:
    names = [name.removeprefix(prefix) for name in columns]
    marks = np.column_stack([PLAIN.numbers(table.text(column)) for column in columns])
    bad = np.argwhere((marks != 0.0) & (marks != 1.0))
    if len(bad):
        row, j = bad[0].tolist()
        cell = table.text(columns[j]).iloc[row]
        raise DataError(
            f"{table.path}: column {columns[j]!r} holds {cell!r} in {table.place(row)}; columns of labels hold 0 and 1, or TRUE and FALSE"
        )
    empty = np.flatnonzero(~(marks == 1.0).any(axis=1))
    if empty.size and not may_be_empty:
        raise DataError(
            f"{table.path}: {empty.size} rows have no label of the hierarchy, the first is {table.place(int(empty[0]))}; "
            "remove them or give them a label"
        )
    return [[names[j] for j in np.flatnonzero(row).tolist()] for row in marks == 1.0]


def _attach(edges: Edges, rows: list[list[str]], options: TableOptions, notes: list[str]) -> tuple[Edges, tuple[str, ...], dict[str, str]]:
    """Return the edges with stub leaves, those leaves, and the leaf of every label; inner labels are refused unless stubs are asked for."""
    named = list(dict.fromkeys(label for row in rows for label in row))
    graph = LabelGraph.from_edges(edges, root=options.root, several_tops=options.several_tops)
    inner = {parent for parent, _ in edges}
    graph.leaf_positions(label for label in named if label not in inner)  # for its message
    lifted = [label for label in named if label in inner]
    touched = sum(any(label in inner for label in row) for row in rows)
    if lifted and not options.stub_leaves:
        raise DataError(
            f"{len(lifted)} of {len(named)} labels are inner nodes of {options.hierarchy}, in {touched} of {len(rows)} rows "
            f"(the first is {lifted[0]!r}); attach a leaf to each with dataset.stub_leaves=true"
        )
    if lifted:
        notes.append(noted("ADV108", f"{len(lifted)} labels of {touched} rows are inner nodes: each has a stub leaf below it"))
    added = tuple((label, stub(label)) for label in lifted)
    return (*edges, *added), tuple(leaf for _, leaf in added), {label: stub(label) if label in inner else label for label in named}


# ---- ancestor sets, for metrics -----------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class LabelClosures:
    """The nodes that count for every label, itself and its ancestors: ``closure`` (k, M') has ones, label x nodes.

    A stub leaf represents the node above it and does not count itself; neither does a root, which all labels share.

    Examples
    --------
    >>> from advcli.core.label_graph import LabelGraph
    >>> from advcli.data.labels.sets import LabelClosures
    >>> graph = LabelGraph.from_edges([("animal", "bird"), ("animal", "mammal"), ("mammal", "cat"), ("mammal", "dog")])
    >>> LabelClosures.of(graph, ["bird", "cat", "dog"]).closure.toarray()
    array([[1, 0, 0, 0],
           [0, 1, 1, 0],
           [0, 1, 0, 1]])
    """

    closure: csr_array

    @classmethod
    def of(cls, graph: LabelGraph, classes: Sequence[str], stubs: Sequence[str] = ()) -> LabelClosures:
        """Return the ancestor sets of ``classes``, leaves of the graph by name, in their order."""
        counted = np.ones(graph.size, dtype=bool)
        counted[[graph.number[name] for name in stubs]] = False
        if len(graph.tops) == 1:
            counted[graph.tops] = False
        rows = graph.membership[graph.leaf_positions(classes)]
        return cls(csr_array(rows[:, np.flatnonzero(counted)].astype(np.int64)))

    def nodes(self, labels: Any) -> csr_array:
        """Return the nodes of every row's labels as ones (n, M'); ``labels`` (n, k) has ones where a row has a label."""
        nodes = csr_array(labels.astype(np.int64) @ self.closure)
        nodes.data = np.minimum(nodes.data, 1)
        return nodes
