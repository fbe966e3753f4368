"""ARFF with a hierarchical target (Clus, https://dtai.cs.kuleuven.be/clus/): nodes of a tree by their paths, or of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..catalogue import Upstream
from . import arff
from .rows import TextTable, join


def tables(parts: Sequence[str], upstream: Upstream) -> dict[str, TextTable]:
    """Return the rows, whose target is their most specific nodes with ``@`` between, and the tree or the graph of the nodes.

    The type of the target lists paths (``1,1/2``) or, where one begins with ``root/``, edges (``root/a,a/b``).
    """
    found = []
    for part in parts:
        names, types, rows = arff.read(part)
        nodes = types[-1].split(maxsplit=1)[1].split(",")
        is_tree = not any(node.startswith("root/") for node in nodes)
        cells = ([*("" if cell == "?" else cell for cell in row[:-1]), _deepest(row[-1]) if is_tree else row[-1]] for row in rows)
        found.append(TextTable([*names[:-1], "target"], list(cells)))
    if not is_tree:
        return {"": join(found), ".dag": TextTable(["parent", "child"], [edge.split("/") for edge in nodes])}
    return {"": join(found), ".tree": _tree(sorted(set(nodes)), [row[-1] for table in found for row in table.rows])}


def _deepest(paths: str) -> str:
    """Return the longest of the paths of a row, which lists the nodes above its most specific one too."""
    return max(paths.split("@"), key=lambda path: path.count("/"))


def _tree(nodes: Sequence[str], targets: Sequence[str]) -> TextTable:
    """Return node, parent, depth, whether it is a leaf, and how many rows lie at it or below."""
    parents = {node: node.rpartition("/")[0] or "root" for node in nodes}
    inner, counts = set(parents.values()), Counter[str]()
    for target in targets:
        cells = target.split("/")
        counts.update("/".join(cells[:end]) for end in range(1, len(cells) + 1))
    rows = [[node, parents[node], str(node.count("/") + 1), str(int(node not in inner)), str(counts[node])] for node in nodes]
    return TextTable(["node", "parent", "depth", "is_leaf", "n_examples"], rows)
