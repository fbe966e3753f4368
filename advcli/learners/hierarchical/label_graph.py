"""The label graph that a caller or a data set names, with the place of every class among its leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError
from ...hierarchy import LabelGraph

_PAIRS = "hierarchy must be a list of [parent, child] pairs"


def label_graph(given: Any, classes: NDArray[Any], *, coded: bool, of_sets: bool, loss: str) -> tuple[LabelGraph, NDArray[np.intp]]:
    """Return the label graph and the position of every class among its leaves.

    Parameters
    ----------
    given : LabelGraph, list of (parent, child), mapping or None
        A mapping has ``edges``, and ``classes``: the names of the classes where these are codes.
    classes : ndarray (k,)
        The classes, whose text names the leaves.
    coded : bool
        Whether the classes are codes, which the names of the mapping replace.
    of_sets : bool
        Whether rows have several labels: columns without names are the leaves in their order.
    loss : str
        Name of the learner, for messages.

    Raises
    ------
    ConfigError
        No graph, one in another form, or one whose leaves are not the classes.
    """
    if given is None:
        raise ConfigError(
            f"loss={loss} needs a label graph: give hierarchy=[[parent,child],...], a data set that has one, or choose loss=flat"
        )
    names = None if of_sets else [str(label) for label in classes]
    from_data = isinstance(given, Mapping)
    if from_data:
        if set(given) - {"edges", "classes"} or "edges" not in given:
            raise ConfigError(f"{_PAIRS}, or have the keys edges and classes")
        if given.get("classes") is not None and coded:
            names = [str(label) for label in given["classes"]]
        given = given["edges"]
    graph = given if isinstance(given, LabelGraph) else LabelGraph.from_edges(_pairs(given), several_tops=from_data)
    if names is None:
        names = [graph.names[leaf] for leaf in graph.leaves]
    if len(names) != len(classes):
        raise ConfigError(f"hierarchy names {len(names)} classes, the data have {len(classes)}")
    return graph, graph.leaf_positions(names)


def _pairs(edges: Any) -> list[Any]:
    pairs = [tuple(pair) for pair in edges]
    if any(len(pair) != 2 for pair in pairs):
        raise ConfigError(_PAIRS)
    return pairs


def side_by_side(k: int) -> tuple[LabelGraph, NDArray[np.intp]]:
    """Return k leaves without edges, and their positions."""
    nothing, start = np.empty(0, dtype=np.int32), np.zeros(k + 1, dtype=np.int64)
    return LabelGraph(tuple(str(code) for code in range(k)), start, nothing, start, nothing), np.arange(k)
