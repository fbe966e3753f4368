"""The label graph that a caller or a data set names, with the place of every class among its leaves, and what learners do with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.errors import ConfigError, ModelError
from ...core.label_graph import LabelGraph
from ...core.stored_arrays import Entries
from ...core.typing import Array
from ...data.labels.best_sets import LabelSets, restricted
from ...losses.matrices import is_frame
from ..linear import LinearLearner

_PAIRS = "hierarchy must be a list of [parent, child] pairs"
_ENDS = ("parent", "child")


def plain_hierarchy(given: Any) -> Any:
    """Return a hierarchy in the forms of other packages as ``{"edges": [(parent, child), ...]}``; any other as it is.

    The forms are a dict of lists of children; a frame (pandas or polars) with columns ``parent`` and ``child``, or of levels, from the top
    to the leaf; a directed graph of networkx; an array of levels (n, depth), as hiclass takes labels, which are empty after the leaf.
    `ConfigError` for a dict of something else, or a graph without directions.
    """
    if isinstance(given, Mapping):
        if "edges" in given:
            return given
        kinds = (list, tuple, set, np.ndarray)
        if not all(isinstance(below, kinds) and not any(isinstance(child, kinds) for child in below) for below in given.values()):
            raise ConfigError("hierarchy is a dict and must be one of lists, {PARENT: [CHILD, ...]}, or have the keys edges and classes")
        return {"edges": [(parent, child) for parent, children in given.items() for child in children]}
    if hasattr(given, "is_directed"):
        if not given.is_directed():
            raise ConfigError("hierarchy is a graph without directions; give a networkx.DiGraph with edges from parent to child")
        return {"edges": list(given.edges())}
    if hasattr(given, "columns") and hasattr(given, "to_numpy"):
        columns = [str(column) for column in given.columns]
        if set(_ENDS) <= set(columns):
            return {"edges": list(zip(*(given[end].to_list() for end in _ENDS), strict=True))}
        return _levels(given.to_numpy())
    return _levels(given) if isinstance(given, np.ndarray) and given.ndim == 2 else given


def _levels(rows: NDArray[Any]) -> dict[str, Any]:
    """Return the edges between the levels of rows (n, depth); an empty level ends a row."""
    edges: dict[tuple[str, str], None] = {}
    for row in rows.tolist():
        end = next((at for at, name in enumerate(row) if name is None or name == "" or name != name), len(row))
        edges |= dict.fromkeys(zip(map(str, row[:end]), map(str, row[1:end]), strict=False))
    return {"edges": list(edges)}


def label_graph(given: Any, classes: NDArray[Any], *, coded: bool, of_sets: bool, loss: str) -> tuple[LabelGraph, NDArray[np.intp]]:
    """Return the label graph and the position of every class among its leaves.

    ``given`` is a LabelGraph, a list of (parent, child), a mapping with ``edges``, and ``classes``, the names of classes that are codes
    (``coded``), or another form of `plain_hierarchy`. The text of ``classes`` (k,) names the leaves; where rows have several labels
    (``of_sets``) columns without names are the leaves in their order. ``loss`` names the learner in messages. `ConfigError` for no graph,
    another form, or leaves that are not the classes.
    """
    if given is None:
        instead = "give hierarchy=[[parent,child],...], a data set that has one, or choose loss=flat"
        raise ConfigError(f"loss={loss} needs a label graph: {instead}")
    given = plain_hierarchy(given)
    names = None if of_sets else [str(label) for label in classes]
    from_data = isinstance(given, Mapping)
    if from_data:
        if set(given) - {"edges", "classes"} or "edges" not in given:
            raise ConfigError(f"{_PAIRS}, or have the keys edges and classes")
        if given.get("classes") is not None and coded:
            names = [str(label) for label in given["classes"]]
        given = given["edges"]
    if isinstance(given, LabelGraph):
        graph = given
    else:
        pairs = [tuple(pair) for pair in given]
        if any(len(pair) != 2 for pair in pairs):
            raise ConfigError(_PAIRS)
        graph = LabelGraph.from_edges(pairs, several_tops=from_data)
    if names is None:
        names = [graph.names[leaf] for leaf in graph.leaves]
    if len(names) != len(classes):
        raise ConfigError(f"hierarchy names {len(names)} classes, the data have {len(classes)}")
    return graph, graph.leaf_positions(names)


def side_by_side(k: int) -> tuple[LabelGraph, NDArray[np.intp]]:
    """Return k leaves without edges, and their positions."""
    nothing, start = np.empty(0, dtype=np.int32), np.zeros(k + 1, dtype=np.int64)
    return LabelGraph(tuple(str(code) for code in range(k)), start, nothing, start, nothing), np.arange(k)


class OverLabelGraph(LinearLearner):
    """A learner of labels that are leaves of a graph; where rows have several, it has the weights of the nodes.

    Then ``sets_`` are the sets over the graph above the classes, and ``positions_`` (k,) the place of every class among its leaves.
    """

    takes: ClassVar[tuple[str, ...]] = ("hierarchy",)
    sets: ClassVar[bool] = True

    hierarchy: Any

    def labels(self) -> tuple[LabelGraph, NDArray[np.intp]]:
        """Return the label graph and the position of every class among its leaves."""
        coded = self.of_sets_ or self.n_classes is not None
        return label_graph(self.hierarchy, self.order_, coded=coded, of_sets=self.of_sets_, loss=self.name)

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Array | None]:
        """Return what `Learner` does; `ConfigError` for a frame of sets whose columns are leaves in another order than the graph's."""
        checked = super()._checked(X, y, sample_weight)
        if self.of_sets_ and is_frame(y):
            graph, positions = self.labels()
            columns, names = [str(column) for column in y.columns], [graph.names[leaf] for leaf in graph.leaves[positions]]
            if columns != names and set(columns) & set(names):
                j = next(j for j, name in enumerate(columns) if name != names[j])
                wrong = f"column {j + 1} of y is {columns[j]!r} where {names[j]!r} must be"
                raise ConfigError(f"{wrong}: give the columns in the order {names}")
        return checked

    def take_sets(self, graph: LabelGraph, positions: NDArray[np.intp]) -> None:
        """Take over a graph above the classes alone (`restricted`)."""
        self.sets_, self.positions_ = LabelSets(graph), positions

    def by_leaves(self, Y: Any) -> sparse.csr_array:
        """Return sets of classes (n, k) as sets of leaves, columns in the order of the leaves."""
        return sparse.csr_array(Y[:, np.argsort(self.positions_)])

    def best_sets(self, X: Any) -> sparse.csr_array:
        """Return ones (n, k) at the classes of the set that scores highest at rows X (n, d)."""
        chosen = self.sets_.best(self.sets_.scores(self.potentials(X)))[1][:, self.sets_.leaves]
        return sparse.csr_array(chosen[:, self.positions_].astype(np.int8))

    def saved(self) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds, the label graph by its edges."""
        parameters, attributes, rows = super().saved()
        if isinstance(self.hierarchy, LabelGraph):
            parameters["hierarchy"] = {"edges": self.hierarchy.edges()}
        elif self.hierarchy is not None:
            parameters["hierarchy"] = plain_hierarchy(self.hierarchy)
        attributes.pop("sets_", None)
        return parameters, attributes, rows

    def restore_sets(self, attributes: Entries) -> LabelGraph:
        """Take over the sets of a saved model; return the graph above the classes."""
        graph, positions = restricted(*self.labels())
        if (attributes.array("positions_", positions.shape, "i") != positions).any():
            raise ModelError("'positions_' are not where the label graph has the classes")
        self.take_sets(graph, positions)
        return graph

    @property
    def _n_scores(self) -> int:
        # sets have the weights of the nodes
        return self.sets_.graph.size if self.of_sets_ else super()._n_scores
