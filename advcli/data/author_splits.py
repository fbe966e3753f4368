"""The 20 random splits that the authors published with their code, for the two data sets that have them.

Source: the example data of the repositories adversarial-multiclass and adversarial-ordinal by Rizal Fathony (MIT licence).
``NAME.csv`` has no heading, features first and the class 1..k last; line i of ``NAME.train`` and ``NAME.test`` lists the 1-based
rows of split i, and both together are all rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import DataError
from .dataset import Dataset, Splits

FOLDER = "author_splits"

# SHA-256 of the authors' files at the commits in `REPOSITORIES`.
SHA256 = {
    "glass.csv": "db81614d8fbfecfa804fb5924b270fc65600d63f7b72b5d0558b06cafa9f1742",
    "glass.train": "5a43f23b66bc841a82c1054cc918b1a555a2b008052a361fbf8b6313962516f1",
    "glass.test": "d76f172a1601d6eaa4f6862e74e974455a6b3c58389a8825a85ef6cbf294073a",
    "diabetes.csv": "200f9d661fa0e8fb9c503f2b21565a92044fce7202fc60aad86ef7c55d3e2c21",
    "diabetes.train": "d0ca02b244e48e5b567191882459c5f496dae4454bb8b777b243799860d65430",
    "diabetes.test": "a23d848e59f9ae4b98d8a4477efc405c14bad99ed16293e2a40259b02c23469f",
}
REPOSITORIES = {
    "glass": ("rizalzaf/adversarial-multiclass", "fe2b9e0039880eeaaff969dd68e3220292e84ea4", "data-example"),
    "diabetes": ("rizalzaf/adversarial-ordinal", "577f5a03bf5b59a832d5d42d0064de2f5c2c5140", "data-example"),
}
NAMES = tuple(REPOSITORIES)


def author_files(name: str) -> list[str]:
    """Return the names of the authors' files of a data set; empty if they published none."""
    return [file for file in SHA256 if file.split(".")[0] == name]


def load_author_splits(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    """Load a data set with the authors' splits.

    glass keeps the rows and labels of the data folder, which has the same order. diabetes comes from the authors' own file: its
    five levels are neither equally wide nor equally frequent, so no cut gives them.

    Raises
    ------
    DataError
        A data set without published splits, files that are missing or changed, lists that are no permutation of the rows.
    """
    name = options["name"]
    if options["source"] != "folder" or name not in NAMES:
        raise DataError(
            f"the authors published no splits for data set {name!r} of source {options['source']}; "
            f"protocol=author_splits works with dataset={','.join(NAMES)}"
        )
    import numpy as np

    files = {suffix: _read(name, suffix, data_dir) for suffix in ("csv", "train", "test")}
    values = np.array([line.split(",") for line in files["csv"]], dtype=np.float64)
    splits = _splits(name, files["train"], files["test"], values.shape[0], data_dir)
    if name == "diabetes":
        return _from_author_file(options, values, splits)

    import dataclasses

    from .registry import sources

    dataset = sources()["folder"].load(options, data_dir)
    if dataset.X.shape != (values.shape[0], values.shape[1] - 1) or not np.array_equal(np.asarray(dataset.X), values[:, :-1]):
        raise DataError(
            f"the rows of data set {name!r} are not those of {data_dir / FOLDER / (name + '.csv')}: the authors' splits "
            "do not apply; leave dataset.features and dataset.drop at their defaults or use protocol=standard"
        )
    return dataclasses.replace(dataset, splits=splits, notes=(*dataset.notes, f"the authors' {len(splits)} splits"))


def _from_author_file(options: Mapping[str, Any], values: Any, splits: Splits) -> Dataset:
    from .dataset import make_dataset

    levels = sorted({int(level) for level in values[:, -1]})
    return make_dataset(
        name=options["name"],
        X=values[:, :-1],
        y=[levels.index(int(level)) for level in values[:, -1]],
        classes=levels,
        feature_names=["age", "deficit"],
        ordered=True,
        sizes=options["sizes"],
        splits=splits,
        notes=[
            "the authors' own file: their order of rows and their five levels; dataset.cut is not used",
            f"the authors' {len(splits)} splits",
        ],
        allow_small_classes=options["allow_small_classes"],
    )


def _read(name: str, suffix: str, data_dir: Path) -> list[str]:
    path = data_dir / FOLDER / f"{name}.{suffix}"
    try:
        raw = path.read_bytes()
    except OSError:
        raise DataError(
            f"the authors' splits of {name} are not here: no file {path}; run `advcli data fetch {name}`, "
            "or point data_dir= or ADVCLI_DATA to the folder that has them"
        ) from None
    if hashlib.sha256(raw).hexdigest() != SHA256[path.name]:
        raise DataError(f"{path} is not the file that the authors published (other checksum); run `advcli data fetch {name}`")
    return raw.decode().split()


def _splits(name: str, train: list[str], test: list[str], rows: int, data_dir: Path) -> Splits:
    import numpy as np

    where = data_dir / FOLDER / name
    if len(train) != len(test):
        raise DataError(f"{where}.train has {len(train)} splits, {where}.test has {len(test)}")
    splits = []
    for number, (left, right) in enumerate(zip(train, test, strict=True), start=1):
        parts = [np.array(line.split(","), dtype=np.intp) - 1 for line in (left, right)]
        if not np.array_equal(np.sort(np.concatenate(parts)), np.arange(rows)):
            raise DataError(f"{where}.train and {where}.test, line {number}: together they are not the rows 1 to {rows}, each once")
        splits.append((parts[0], parts[1]))
    return tuple(splits)
