"""Made-up documents over a random label tree, shaped like large text collections: sparse rows, frequent words, rare labels.

A document's words come from a background of Zipf frequencies and from the topics of the nodes above its label. With
``rows=456000 features=346000 nonzeros=80 nodes=50312 leaves=36504`` the set has the sizes of SWIKI (Choi 2018, Fig. 6.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.checks import at_least, between
from ...core.errors import ConfigError
from ..dataset import Dataset, make_dataset
from ..source import Source, check_options, check_size, common, options_give_order

_OPTIONS: dict[str, Any] = {
    "rows": 2000,
    "features": 1000,
    "nonzeros": 20,
    "nodes": 60,
    "leaves": 43,
    "depth": 5,
    "background": 0.5,
    "seed": 0,
}
_LEAST = {"rows": 2, "features": 2, "nonzeros": 1, "nodes": 4, "leaves": 2, "depth": 2, "seed": 0}
_RULES = {**{key: at_least(least) for key, least in _LEAST.items()}, "background": between(0, 1)}
_TOPIC = 30  # words of a node's topic
_FLAT = 10  # added to the rank: the most frequent words are about equally frequent
_CHUNK = 20_000  # documents drawn at a time


def _tree(random: np.random.Generator, nodes: int, leaves: int, depth: int) -> NDArray[np.intp]:
    """Return every node's parent (-1 for the root, node 0); inner nodes come first, each with a child, the leaves last."""
    inner = nodes - leaves
    parent = np.full(nodes, -1, dtype=np.intp)
    level = np.zeros(nodes, dtype=np.intp)
    for node in range(1, inner):
        above = np.flatnonzero(level[:node] < depth - 2)
        parent[node] = random.choice(above)
        level[node] = level[parent[node]] + 1
    childless = np.setdiff1d(np.arange(inner), parent[1:inner])
    parent[inner : inner + len(childless)] = childless
    parent[inner + len(childless) :] = random.integers(0, inner, leaves - len(childless))
    return parent


def _documents(random: np.random.Generator, paths: list[NDArray[np.intp]], y: NDArray[np.intp], options: Mapping[str, Any]) -> Any:
    """Return documents (n, d) of length 1: log(1 + count) of their words, times the inverse frequency of each word."""
    n, d, wanted = len(y), options["features"], options["nonzeros"]
    frequency = np.cumsum(1.0 / (_FLAT + np.arange(d)))
    topics = random.integers(0, d, (options["nodes"], _TOPIC))
    length = np.array([len(path) for path in paths])
    padded = np.zeros((len(paths), length.max()), dtype=np.intp)
    for label, path in enumerate(paths):
        padded[label, : len(path)] = path
    parts = []
    for start in range(0, n, _CHUNK):
        labels = y[start : start + _CHUNK]
        m, draws = len(labels), 2 * wanted
        words = np.searchsorted(frequency, random.random((m, draws)) * frequency[-1])
        node = padded[labels[:, None], (random.random((m, draws)) * length[labels][:, None]).astype(np.intp)]
        topical = topics[node, (_TOPIC * random.random((m, draws)) ** 2).astype(np.intp)]
        words = np.where(random.random((m, draws)) < options["background"], words, topical)
        counts = sparse.csr_array((np.ones(m * draws), (np.repeat(np.arange(m), draws), words.ravel())), shape=(m, d))
        counts.sum_duplicates()
        parts.append(_shortened(random, counts, wanted))
    X = sparse.vstack(parts, format="csr")
    X.data = np.log1p(X.data)
    documents = np.bincount(X.indices, minlength=d)
    X.data *= np.log(n / np.maximum(documents, 1))[X.indices] + 1.0
    norms = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    return X


def _shortened(random: np.random.Generator, counts: Any, wanted: int) -> Any:
    """Return the rows with at most ``wanted`` non-zeros each, chosen at random."""
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    order = np.lexsort((random.random(len(rows)), rows))
    chosen = order[np.arange(len(rows)) - counts.indptr[rows] < wanted]
    return sparse.csr_array((counts.data[chosen], (rows[chosen], counts.indices[chosen])), shape=counts.shape)


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    check_options(options, _RULES)
    n, nodes, leaves = options["rows"], options["nodes"], options["leaves"]
    if not nodes / 2 <= leaves < nodes:
        raise ConfigError(f"dataset.leaves={leaves} must be at least half of dataset.nodes={nodes}, and fewer than them")
    if options["depth"] == 2 and nodes - leaves > 1:
        raise ConfigError(f"dataset.depth=2 has one node above all leaves; set dataset.leaves={nodes - 1} or a larger dataset.depth")
    if n < 2 * leaves:
        raise ConfigError(f"dataset.rows={n} is too small for dataset.leaves={leaves}; at least {2 * leaves}")
    check_size(rows=n, nonzeros=options["nonzeros"])
    check_size(features=options["features"])
    random = np.random.default_rng(options["seed"])
    parent = _tree(random, nodes, leaves, options["depth"])
    paths = []
    for leaf in range(nodes - leaves, nodes):
        path, node = [], leaf
        while node > 0:  # the root belongs to all documents and says nothing
            path.append(node)
            node = parent[node]
        paths.append(np.array(path))
    popularity = np.cumsum(1.0 / (1 + random.permutation(leaves)))
    y = np.searchsorted(popularity, random.random(n) * popularity[-1])
    y[random.permutation(n)[: 2 * leaves]] = np.arange(2 * leaves) % leaves  # two documents of every label at least
    names = [f"n{node}" for node in range(nodes)]
    return make_dataset(
        X=_documents(random, paths, y, options),
        y=y,
        classes=names[nodes - leaves :],
        feature_names=[f"w{column}" for column in range(options["features"])],
        ordered=options["ordered"],
        **common(options),
        hierarchy=tuple((names[parent[node]], names[node]) for node in range(1, nodes)),
    )


def _examples(folder: Path) -> list[dict[str, Any]]:
    return [{"name": "documents", "rows": 300}]


SOURCE = Source("synthetic_hierarchy", _OPTIONS, _load, ordered=options_give_order, examples=_examples)
