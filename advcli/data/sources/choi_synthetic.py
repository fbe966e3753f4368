"""The synthetic sets of Choi 2018, section 6.8.1: linear concepts whose classes are the leaves of a balanced or an unbalanced binary tree.

One data set has all runs; its splits are the runs, each with its own weights or hyperplanes, training and test rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.checks import FRACTION, at_least, choice
from ...core.errors import ConfigError
from ...core.notes import noted
from ..dataset import Dataset, Edges, make_dataset
from ..source import Source, check_options, check_size, common, options_give_order

_KINDS = ("balanced", "unbalanced")
_OPTIONS: dict[str, Any] = {"kind": "balanced", "runs": 10, "rows": 8000, "features": 1000, "leaves": 8, "train_share": 0.75, "seed": 0}
_LEAST = {"runs": 1, "rows": 2, "features": 1, "leaves": 2, "seed": 0}
_RULES = {**{key: at_least(least) for key, least in _LEAST.items()}, "kind": choice(*_KINDS), "train_share": FRACTION}


def _balanced(random: np.random.Generator, X: NDArray[Any], leaves: int) -> NDArray[Any]:
    """Return the leaf of largest sum of node scores along its path in a complete binary tree; nodes are numbered as in a heap."""
    scores = X @ random.standard_normal((2 * leaves, X.shape[1])).T
    path = np.arange(leaves, 2 * leaves)
    total = np.zeros((len(X), leaves))
    while path[0] > 0:
        total += scores[:, path]
        path = path // 2
    return np.argmax(total, axis=1)


def _unbalanced(random: np.random.Generator, X: NDArray[Any], leaves: int) -> NDArray[Any]:
    """Return the first of leaves - 1 hyperplanes through 0 on whose positive side a row lies, or the last leaf."""
    inside = X @ random.standard_normal((leaves - 1, X.shape[1])).T > 0
    return np.where(inside.any(axis=1), inside.argmax(axis=1), leaves - 1)


def _edges(kind: str, leaves: int) -> Edges:
    if kind == "balanced":

        def name(node: int) -> str:
            return f"leaf {node - leaves + 1}" if node >= leaves else f"node {node}"

        return tuple((name(node // 2), name(node)) for node in range(2, 2 * leaves))
    pairs = []
    for node in range(1, leaves):
        pairs += [(f"node {node}", f"leaf {node}"), (f"node {node}", f"node {node + 1}" if node < leaves - 1 else f"leaf {leaves}")]
    return tuple(pairs)


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    kind, leaves, share = options["kind"], options["leaves"], options["train_share"]
    check_options(options, _RULES)
    if kind == "balanced" and leaves & (leaves - 1):
        raise ConfigError(f"dataset.leaves={leaves} must be a power of 2 in a balanced tree")
    runs, n, d = options["runs"], options["rows"], options["features"]
    check_size(runs=runs, rows=n, features=d)
    check_size(rows=n, leaves=leaves)
    check_size(leaves=leaves, features=d)
    train = int(share * n)
    if not 0 < train < n:
        raise ConfigError(f"dataset.train_share={share} leaves {train} of {n} rows for training; both parts need one")
    X, y, splits = np.empty((runs * n, d)), np.empty(runs * n, dtype=np.intp), []
    for run in range(runs):
        random = np.random.default_rng([options["seed"], run])
        rows = slice(run * n, (run + 1) * n)
        random.standard_normal(out=X[rows])
        if kind == "balanced":
            y[rows] = _balanced(random, X[rows], leaves)
        else:
            X[rows] /= np.linalg.norm(X[rows], axis=1, keepdims=True)
            y[rows] = _unbalanced(random, X[rows], leaves)
        order = np.arange(rows.start, rows.stop, dtype=np.intp)
        splits.append((order[:train], order[train:]))
    return make_dataset(
        X=X,
        y=y,
        classes=[f"leaf {leaf + 1}" for leaf in range(leaves)],
        feature_names=[f"x{column + 1}" for column in range(d)],
        ordered=options["ordered"],
        notes=[noted("ADV110", f"{runs} runs, each with its own concept, training and test rows; the splits are the runs")],
        **common(options),
        hierarchy=_edges(kind, leaves),
        splits=tuple(splits),
    )


def _examples(folder: Path) -> list[dict[str, Any]]:
    return [{"name": "choi", "kind": kind, "runs": 2, "rows": 200, "features": 5, "leaves": 4} for kind in _KINDS]


SOURCE = Source("choi_synthetic", _OPTIONS, _load, own_splits=True, ordered=options_give_order, examples=_examples)
