"""The toy data of louche2015, section 4.1: linear concepts on the unit circle, one for each run.

One data set has all runs; its splits are the runs, each with its own weight vectors, training and test rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.checks import at_least, choice, is_number, rule
from ...core.errors import ConfigError
from ...core.notes import noted
from ..dataset import Dataset, make_dataset
from ..source import Source, check_options, check_size, common, options_give_order

_OPTIONS: dict[str, Any] = {
    "runs": 30,
    "rows": 1000,
    "test_rows": 10_000,
    "classes": 10,
    "margin": 0.025,
    "margin_kind": "score",
    "seed": 0,
}
_KINDS = ("score", "distance")
_LEAST = {"runs": 1, "rows": 1, "test_rows": 1, "classes": 2, "seed": 0}
_RULES = {
    **{key: at_least(least) for key, least in _LEAST.items()},
    "margin_kind": choice(*_KINDS),
    "margin": rule("a number from 0 to below 0.2: beyond, hardly a point keeps it", lambda value: is_number(value) and 0 <= value < 0.2),
}
_MOST_DRAWS = 1000  # of weight vectors that leave every class some rows


def _keep(X: NDArray[Any], W: NDArray[Any], margin: float, kind: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows at least ``margin`` away from every decision boundary, and their classes."""
    F = X @ W.T
    y = np.argmax(F, axis=1)
    gaps = F[np.arange(len(X)), y][:, None] - F
    if kind == "distance":
        lengths = np.linalg.norm(W[y][:, None, :] - W[None, :, :], axis=2)
        gaps = gaps / np.where(lengths > 0, lengths, 1.0)
    gaps[np.arange(len(X)), y] = np.inf
    rows = gaps.min(axis=1) > margin
    return X[rows], y[rows]


def _circle(random: np.random.Generator, rows: int) -> NDArray[Any]:
    angle = random.uniform(0.0, 2.0 * np.pi, rows)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _draw(random: np.random.Generator, W: NDArray[Any], rows: int, margin: float, kind: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ``rows`` points that keep the margin."""
    X, y = _keep(_circle(random, 4 * rows), W, margin, kind)
    while len(X) < rows:
        more, labels = _keep(_circle(random, 4 * rows), W, margin, kind)
        X, y = np.vstack([X, more]), np.concatenate([y, labels])
    return X[:rows], y[:rows]


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    check_options(options, _RULES)
    margin, k = options["margin"], options["classes"]
    check_size(runs=options["runs"], rows=options["rows"] + options["test_rows"], classes=k)
    parts, splits, start, emptied = [], [], 0, 0
    for run in range(options["runs"]):
        random = np.random.default_rng([options["seed"], run])
        for _ in range(_MOST_DRAWS):
            W = _circle(random, k)
            probe = np.unique(_keep(_circle(random, 20_000), W, margin, options["margin_kind"])[1])
            # a class that keeps no row is kept with the score margin, as the published figures have it, and drawn anew with the distance
            if len(probe) == k or (options["margin_kind"] == "score" and len(probe) > 1):
                break
        else:
            raise ConfigError(f"dataset.margin={margin} empties a class in every draw; lower it or dataset.classes")
        emptied += k - len(probe)
        for rows in (options["rows"], options["test_rows"]):
            parts.append(_draw(random, W, rows, margin, options["margin_kind"]))
        stop = start + options["rows"] + options["test_rows"]
        order = np.arange(start, stop, dtype=np.intp)
        splits.append((order[: options["rows"]], order[options["rows"] :]))
        start = stop
    notes = [noted("ADV110", f"{options['runs']} runs, each with its own concept, training and test rows; the splits are the runs")]
    if emptied:
        text = f"the margin leaves {emptied / options['runs']:.1f} of {k} classes without rows in a run, on average; they are kept"
        notes.append(noted("ADV110", text))
    return make_dataset(
        X=np.vstack([X for X, _ in parts]),
        y=np.concatenate([y for _, y in parts]),
        classes=list(range(1, k + 1)),
        feature_names=["x1", "x2"],
        ordered=options["ordered"],
        notes=notes,
        splits=tuple(splits),
        **common(options),
    )


def _examples(folder: Path) -> list[dict[str, Any]]:
    return [{"name": "toy", "runs": 2, "rows": 50, "test_rows": 60, "margin_kind": kind, "margin": 0.01, "classes": 3} for kind in _KINDS]


SOURCE = Source("louche_toy", _OPTIONS, _load, own_splits=True, ordered=options_give_order, examples=_examples)
