"""The data sets that come with scikit-learn: always here, nothing to fetch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import DataError, nearest
from ..catalogue import CATALOGUE
from ..dataset import Dataset, make_dataset
from ..source import Source, common, options_give_order


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    name = options["name"]
    if name not in CATALOGUE["sklearn"]:
        raise DataError(f"scikit-learn brings no data set {name!r}; {nearest(name, CATALOGUE['sklearn'])}")
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{name}")()
    return make_dataset(
        X=bunch.data,
        y=bunch.target,
        classes=[label.item() for label in bunch.target_names],
        feature_names=list(map(str, bunch.feature_names)),
        ordered=options["ordered"],
        **common(options),
    )


def _examples(folder: Path) -> list[dict[str, Any]]:
    return [{"name": name} for name in CATALOGUE["sklearn"]]


SOURCE = Source("sklearn", {}, _load, ordered=options_give_order, examples=_examples)
