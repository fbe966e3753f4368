"""Data sets of openml.org by their number: fetched by scikit-learn at the first use, from then on read from the data folder."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.checks import at_least, refuse
from ...core.errors import DataError
from ...core.notes import noted
from ..dataset import Dataset
from ..source import LABEL_OPTIONS, TABLE_OPTIONS, Source, notes_with, options_give_order
from ..tables.options import TableOptions
from ..tables.suspects import Inspection
from ..tables.table import frame_table
from ..tables.tabular import table_dataset

_SERVICE = "https://www.openml.org"


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    number = options["id"]
    refuse("dataset.id", number, at_least(1), "the number of a data set of openml.org, such as 61 for iris")
    from sklearn.datasets import fetch_openml

    where = f"data set {number} of openml.org"
    try:
        bunch = fetch_openml(data_id=number, data_home=str(data_dir), as_frame=True, parser="liac-arff", n_retries=1)
    except OSError as error:
        raise DataError(f"cannot fetch {where}: {getattr(error, 'reason', error)}; check the number and the connection") from None
    except ValueError as error:  # an answer of the service, or data that are not a table of columns
        raise DataError(f"{where} cannot be used: {str(error).splitlines()[0]}") from None
    frame = bunch.frame
    target = options["target"]
    if target is None:
        if len(bunch.target_names) != 1:
            count = "several targets" if bunch.target_names else "no target"
            raise DataError(f"{where} has {count}; choose one with dataset.target=COLUMN: {', '.join(map(str, frame.columns[:12]))}")
        target = bunch.target_names[0]
    chosen = TableOptions.read({**options, "target": str(target)})
    table = frame_table(frame, where, chosen)
    notes: list[str] = []
    if chosen.categorical is None:
        # columns that the data set declares nominal, though numbers may be their values, and text, as for a file
        kinds = {str(name): str(kind) for name, kind in frame.dtypes.items() if str(name) != str(target)}
        text = [name for name, kind in kinds.items() if kind in ("object", "str", "string")]
        left_out = Inspection(table, text).suspects(text)
        notes += [noted("ADV101", text) for text in left_out.values()]
        nominal = [name for name, kind in kinds.items() if kind == "category"]
        nominal += [name for name in text if name not in left_out]
        table = replace(table, options=replace(chosen, categorical=tuple(nominal), drop=(*chosen.drop, *left_out)))
    return table_dataset(table, notes)


def _examples(folder: Path) -> list[dict[str, Any]]:
    """Return a data set that was fetched before: the answers of the service as scikit-learn keeps them."""
    rows = "".join(f"{i % 7},{'rgb'[i % 3]},{'xy'[i % 2]}\n" for i in range(24))
    arff = f"@relation r\n@attribute size numeric\n@attribute colour {{r,g,b}}\n@attribute kind {{x,y}}\n@data\n{rows}".encode()
    kinds = {"size": "numeric", "colour": "nominal", "kind": "nominal"}
    features = [
        {"index": str(index), "name": name, "data_type": kind, "number_of_missing_values": "0", "is_target": str(name == "kind").lower()}
        | {"is_ignore": "false", "is_row_identifier": "false"}
        for index, (name, kind) in enumerate(kinds.items())
    ]
    about = {"id": "7", "name": "example", "version": "1", "description": "made up", "format": "ARFF", "status": "active", "file_id": "7"}
    about |= {"url": f"{_SERVICE}/data/v1/download/7", "md5_checksum": hashlib.md5(arff).hexdigest()}
    answers = {
        "api/v1/json/data/7": json.dumps({"data_set_description": about}),
        "api/v1/json/data/features/7": json.dumps({"data_features": {"feature": features}}),
        "api/v1/json/data/qualities/7": json.dumps({"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "24"}]}}),
        "data/v1/download/7": arff.decode(),
    }
    for path, text in answers.items():
        file = folder / "openml" / "openml.org" / f"{path}.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()))
    return [{"name": "example", "id": 7}, {"name": "colours", "id": 7, "target": "colour", "drop": ["size"]}]


_OPTIONS: dict[str, Any] = {"id": None, **TABLE_OPTIONS, **LABEL_OPTIONS, "target": None, "categorical": "auto"}
# foreseen: workers that start together find it in the data folder
SOURCE = Source("openml", _OPTIONS, _load, ordered=options_give_order, foresee=notes_with("ADV101"), examples=_examples)
