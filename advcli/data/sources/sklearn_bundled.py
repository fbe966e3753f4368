"""The data sets that come with scikit-learn: always here, nothing to fetch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import DataError, nearest
from ..dataset import Dataset, make_dataset
from ..listing import Entry
from ..registry import Source

# name: (loader in sklearn.datasets, rows, features, classes, citation)
_BUNDLED = {
    "iris": ("load_iris", 150, 4, 3, "Fisher (1936), Annals of Eugenics 7; Fisher's own values in rows 35 and 38"),
    "wine": ("load_wine", 178, 13, 3, "Forina et al. (1988); UCI Machine Learning Repository: Wine"),
    "breast_cancer": (
        "load_breast_cancer",
        569,
        30,
        2,
        "Wolberg, Street & Mangasarian (1995); UCI: Breast Cancer Wisconsin (Diagnostic)",
    ),
    "digits": (
        "load_digits",
        1797,
        64,
        10,
        "Alpaydin & Kaynak (1998); UCI: Optical Recognition of Handwritten Digits, test part",
    ),
}

# fathony2018 Table 1 prints the sizes of iris
_OPTIONS = {"iris": {"sizes": [105, 45]}}


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    name = options["name"]
    if name not in _BUNDLED:
        raise DataError(f"scikit-learn brings no data set {name!r}; {nearest(name, _BUNDLED)}")
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, _BUNDLED[name][0])()
    return make_dataset(
        name=name,
        X=bunch.data,
        y=bunch.target,
        classes=[label.item() for label in bunch.target_names],
        feature_names=list(map(str, bunch.feature_names)),
        ordered=options["ordered"],
        sizes=options["sizes"],
        allow_small_classes=options["allow_small_classes"],
    )


def _entries(data_dir: Path) -> list[Entry]:
    return [
        Entry(name, "sklearn", rows, features, classes, "multiclass", True, f"dataset={name}", citation, _OPTIONS.get(name, {}))
        for name, (_, rows, features, classes, citation) in _BUNDLED.items()
    ]


SOURCE = Source("sklearn", {}, _load, _entries)
