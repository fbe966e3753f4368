"""Small made-up data sets: exact functions of their options and seed, for trying methods and for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...core.checks import NOT_NEGATIVE, at_least, between, choice
from ...core.errors import ConfigError
from ...core.notes import noted
from ..dataset import Dataset, make_dataset
from ..source import Source, check_options, check_size, common, options_give_order

_OPTIONS: dict[str, Any] = {"kind": "blobs", "rows": 300, "features": 4, "classes": 3, "noise": 1.0, "flip": 0.0, "seed": 0}
_LEAST = {"rows": 2, "features": 1, "classes": 2, "seed": 0}
_RULES = {
    **{key: at_least(least) for key, least in _LEAST.items()},
    "kind": choice("blobs", "ordinal"),
    "noise": NOT_NEGATIVE,
    "flip": between(0, 1),
}


def _ordered(options: Mapping[str, Any]) -> bool:
    return options["kind"] == "ordinal" or options_give_order(options)


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    check_options(options, _RULES)
    n, d, k = options["rows"], options["features"], options["classes"]
    if n < 2 * k:
        raise ConfigError(f"dataset.rows={n} is too small for dataset.classes={k}; at least {2 * k}")
    check_size(rows=n, features=d)
    random = np.random.default_rng(options["seed"])
    notes = []
    if options["kind"] == "blobs":
        y = random.permutation(np.arange(n) % k)
        centers = 2.0 * random.standard_normal((k, d))
        X = centers[y] + options["noise"] * random.standard_normal((n, d))
    else:
        X = random.standard_normal((n, d))
        direction = random.standard_normal(d)
        score = X @ (direction / np.linalg.norm(direction)) + options["noise"] * random.standard_normal(n)
        y = np.empty(n, dtype=np.intp)
        y[np.argsort(score, kind="stable")] = np.arange(n) * k // n
    if options["flip"] > 0:
        flipped = random.random(n) < options["flip"]
        flipped[[int(np.flatnonzero(y == label)[0]) for label in range(k)]] = False  # every class keeps a row
        y = np.where(flipped, (y + random.integers(1, k, size=n)) % k, y)
        notes.append(noted("ADV110", f"{int(flipped.sum())} labels moved to another class at random (dataset.flip={options['flip']:g})"))
    return make_dataset(
        X=X,
        y=y,
        classes=list(range(1, k + 1)),
        feature_names=[f"x{column + 1}" for column in range(d)],
        ordered=_ordered(options),
        notes=notes,
        **common(options),
    )


def _examples(folder: Path) -> list[dict[str, Any]]:
    return [
        {"name": "blobs", "flip": 0.2},
        {"name": "levels", "kind": "ordinal"},
        {"name": "ordered", "ordered": True, "sizes": [200, 100]},
    ]


SOURCE = Source("synthetic", _OPTIONS, _load, ordered=_ordered, examples=_examples)
