"""The random splits that authors published with their code, for the data sets of the catalogue that have them.

Source: the example data of the repositories adversarial-multiclass and adversarial-ordinal by Rizal Fathony (MIT licence).
``NAME.csv`` has no heading, features first and the class 1..k last; line i of ``NAME.train`` and ``NAME.test`` lists the 1-based
rows of split i, and both together are all rows.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..core.errors import DataError, MissingDataError
from ..core.notes import noted
from .catalogue import CATALOGUE, Authors, known_set
from .dataset import Dataset, Splits, make_dataset
from .source import common

FOLDER = "author_splits"


def published(name: str, source: str = "folder") -> Authors | None:
    """Return where the authors' splits of a data set are, None if they published none."""
    facts = known_set(name, source)
    return facts.authors if facts is not None else None


def load_author_splits(options: Mapping[str, Any], data_dir: Path, load: Callable[[Mapping[str, Any], Path], Dataset]) -> Dataset:
    """Load a data set with the authors' splits; ``load`` is the source's function, for sets whose rows come from the data folder."""
    import numpy as np

    name = options["name"]
    authors = published(name, options["source"])
    if authors is None:
        having = ",".join(facts.name for sets in CATALOGUE.values() for facts in sets.values() if facts.authors is not None)
        remedy = f"protocol=author_splits works with dataset={having}"
        raise DataError(f"the authors published no splits for data set {name!r} of source {options['source']}; {remedy}")
    table, train, test = (_read(name, file, sha256, data_dir) for file, sha256 in authors.files.items())
    values = np.array([line.split(",") for line in table], dtype=np.float64)
    splits = _splits(name, train, test, values.shape[0], data_dir)
    if authors.own_table:
        return _from_author_file(options, values, splits, authors)
    dataset = load(options, data_dir)
    if dataset.X.shape != (values.shape[0], values.shape[1] - 1) or not np.array_equal(np.asarray(dataset.X), values[:, :-1]):
        remedy = "the authors' splits do not apply; leave dataset.features and dataset.drop at their defaults or use protocol=standard"
        raise DataError(f"the rows of data set {name!r} differ from the rows of {data_dir / FOLDER / (name + '.csv')}: {remedy}")
    return dataclasses.replace(dataset, splits=splits, notes=(*dataset.notes, noted("ADV113", f"the authors' {len(splits)} splits")))


def _from_author_file(options: Mapping[str, Any], values: Any, splits: Splits, authors: Authors) -> Dataset:
    facts = known_set(options["name"], options["source"])
    assert facts is not None
    assert facts.upstream is not None
    levels = sorted({int(level) for level in values[:, -1]})
    return make_dataset(
        X=values[:, :-1],
        y=[levels.index(int(level)) for level in values[:, -1]],
        classes=levels,
        feature_names=facts.upstream.columns,
        ordered=True,  # levels of a continuous target
        splits=splits,
        notes=[noted("ADV111", authors.own_table), noted("ADV113", f"the authors' {len(splits)} splits")],
        **common(options),
    )


def _read(name: str, file: str, sha256: str, data_dir: Path) -> list[str]:
    path = data_dir / FOLDER / file
    try:
        raw = path.read_bytes()
    except OSError:
        remedy = f"run `advcli data fetch {name}`, or point data_dir= or ADVCLI_DATA to the folder that has them"
        raise MissingDataError(f"the authors' splits of {name} are not here: no file {path}; {remedy}") from None
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise DataError(f"{path} is not the file that the authors published (other checksum); run `advcli data fetch {name}`")
    return raw.decode().split()


def _splits(name: str, train: list[str], test: list[str], rows: int, data_dir: Path) -> Splits:
    import numpy as np

    where = data_dir / FOLDER / name
    if len(train) != len(test):
        raise DataError(f"{where}.train has {len(train)} splits, {where}.test has {len(test)}")
    splits = []
    for number, (train_line, test_line) in enumerate(zip(train, test, strict=True), start=1):
        parts = [np.array(line.split(","), dtype=np.intp) - 1 for line in (train_line, test_line)]
        if not np.array_equal(np.sort(np.concatenate(parts)), np.arange(rows)):
            raise DataError(f"{where}.train and {where}.test, line {number}: together they are not the rows 1 to {rows}, each once")
        splits.append((parts[0], parts[1]))
    return tuple(splits)
