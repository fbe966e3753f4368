"""Rows beyond memory: a map of a file in NumPy's format, or a folder of parquet files, which becomes such a map once.

A fit reads the rows many times and in random order; parts of a parquet file have to be unpacked as a whole each time, a map has not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import ConfigError, DataError, nearest
from ...core.files import atomic_bytes
from ...core.notes import noted
from ...core.paths import expanded, refuse_pipe
from ...core.row_blocks import BlockRows, can_be_read, coded_by_parts
from ..dataset import Dataset, make_dataset
from ..source import Source, common, notes_with, options_give_order
from ..tables.opening import missing_file
from ..tables.options import TableOptions
from ..tables.target import order_labels

_PATHS = ("features", "labels", "weight")
_ROWS = 2**16  # that are read of a parquet file at a time
_SINGLE = ("float", "halffloat", "int8", "uint8", "int16", "uint16", "bool")
_NUMBERS = (*_SINGLE, "double", "int32", "uint32", "int64", "uint64")


def _load(options: Mapping[str, Any], data_dir: Path) -> Dataset:
    for key, what in (("features", "the .npy file of the rows, or a folder of parquet files"), ("labels", "the .npy file of their labels")):
        if options[key] is None:
            column = ", or the column of labels of the parquet files" if key == "labels" else ""
            raise ConfigError(f"dataset=mapped needs dataset.{key}, {what}{column}")
    paths, notes, names = {key: expanded(str(options[key])) for key in _PATHS}, [], []
    where, source = str(paths["labels"]), paths["features"]
    if source.is_dir():
        stem = _converted(source, str(options["labels"]), options["weight"], data_dir)
        paths = {key: stem.with_name(f"{stem.name}.{name}.npy") for key, name in zip(_PATHS, ("rows", "labels", "weight"), strict=True)}
        names = [str(name) for name in _array(stem.with_name(f"{stem.name}.names.npy"))]
        where = f"column {options['labels']!r} of {source}"
        notes.append(noted("ADV109", f"the parquet files of {source} were written once as {paths['features']}"))
    X, labels = _rows(paths["features"]), _array(paths["labels"])
    weight = None if options["weight"] is None else _array(paths["weight"])
    n, d = X.shape
    for name, array in (("labels", labels), ("weights", weight)):
        if array is not None and array.shape != (n,):
            raise DataError(f"{name} have the shape {array.shape}; the {n} rows of {paths['features']} need one each, ({n},)")
    if labels.dtype.kind not in "biuUf" or (labels.dtype.kind == "f" and not np.isfinite(labels).all()):
        raise DataError(f"{where}: labels are whole numbers or text without gaps, and these are {labels.dtype}")
    if weight is not None and not (weight.dtype.kind in "biuf" and np.isfinite(weight).all() and (weight > 0).all()):
        raise DataError("dataset.weight must hold finite numbers above 0")
    distinct, codes = coded_by_parts(labels)
    classes = [int(label) if isinstance(label, float) and label.is_integer() else label for label in distinct.tolist()]
    order = TableOptions.read({key: options[key] for key in ("order", "ordered")})
    y, classes, ordered = order_labels(codes.astype(np.intp, copy=False), classes, order, where, notes)
    return make_dataset(
        X=X,
        y=y,
        classes=classes,
        feature_names=names or [str(column + 1) for column in range(d)],
        ordered=ordered,
        example_weight=weight,
        notes=notes,
        **common(options),
    )


def _rows(path: Path) -> BlockRows:
    """Return the rows of a map, all of them finite numbers."""
    stored = _array(path)
    if not can_be_read(stored):
        raise DataError(
            f"{path} holds {stored.dtype} of shape {stored.shape}; rows that are mapped are float32 or float64 in two "
            "dimensions, row after row: numpy.save(FILE, numpy.ascontiguousarray(X, dtype=numpy.float32))"
        )
    X = BlockRows(stored)
    for part in X.parts():
        raw = X.raw(part.start, part.stop)
        if not np.isfinite(raw).all():
            row, column = np.argwhere(~np.isfinite(raw))[0]
            raise DataError(f"{path}: row {part.start + row + 1} has no finite number in column {column + 1}; correct or remove it")
    return X


def _array(path: Path) -> Any:
    """Return the map of a file in NumPy's format."""
    refuse_pipe(path)
    if not path.is_file():
        raise missing_file(path)
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path} is not a .npy file of numbers or text: {reason}; write it with numpy.save") from None


def _converted(folder: Path, target: str, weight: Any, data_dir: Path) -> Path:
    """Return the stem of the maps of a folder's parquet files, which are written unless they are there for these very files."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".parquet", ".pq"))
    if not files:
        raise DataError(f"{folder} holds no .parquet file")
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError(f'{folder}: reading parquet files takes the package pyarrow; pip install "advcli[tables]"') from None
    facts = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    key = hashlib.sha256(repr((str(folder.resolve()), facts, target, weight)).encode()).hexdigest()[:16]
    stem = data_dir / "mapped" / f"{folder.name}-{key}"
    if stem.with_name(f"{stem.name}.labels.npy").is_file():  # written last
        return stem
    try:
        opened = [parquet.ParquetFile(path) for path in files]
    except Exception as error:  # pyarrow has its own
        raise DataError(f"{folder} cannot be read as parquet: {str(error).splitlines()[0]}") from None
    special = [target, *([] if weight is None else [str(weight)])]
    names, kind = _columns(folder, files, opened, special)
    n = sum(file.metadata.num_rows for file in opened)
    stem.parent.mkdir(parents=True, exist_ok=True)
    labels: list[Any] = []
    weights: list[Any] = []
    with atomic_bytes(stem.with_name(f"{stem.name}.rows.npy")) as rows:
        np.lib.format.write_array_header_1_0(
            rows, {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (n, len(names))}
        )
        for batch in (batch for file in opened for batch in file.iter_batches(batch_size=_ROWS)):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            arrays = [columns[name].to_numpy(zero_copy_only=False) for name in names]
            rows.write(np.column_stack(arrays).astype(kind, copy=False).tobytes())
            if columns[target].null_count:
                raise DataError(f"{folder}: column {target!r} has rows without a label; remove them")
            values = columns[target].to_numpy(zero_copy_only=False)
            labels.append(values.astype(str) if values.dtype.kind == "O" else values)
            weights += [columns[name].to_numpy(zero_copy_only=False).astype(np.float64) for name in special[1:]]
    for name, parts in {"names": [np.array(names, dtype=str)], "weight": weights, "labels": labels}.items():
        if parts:
            with atomic_bytes(stem.with_name(f"{stem.name}.{name}.npy")) as file:
                np.save(file, np.concatenate(parts), allow_pickle=False)
    return stem


def _columns(folder: Path, files: list[Path], opened: list[Any], special: list[str]) -> tuple[list[str], np.dtype[Any]]:
    """Return the columns of features of parquet files, checked, and the type that holds all of their numbers."""
    schema = opened[0].schema_arrow
    for path, file in zip(files, opened, strict=True):
        if file.schema_arrow.names != schema.names:
            raise DataError(f"{path} has other columns than {files[0]}")
    for name in special:
        if name not in schema.names:
            raise DataError(f"{folder} has no column {name!r}; {nearest(name, schema.names)}")
    names = [name for name in schema.names if name not in special]
    for name in names:
        if (kind := str(schema.field(name).type)) not in _NUMBERS:
            raise DataError(f"{folder}: the column {name!r} is {kind}, no number; write the files without it, or encode it")
    types = {str(file.schema_arrow.field(name).type) for file in opened for name in names}
    return names, np.dtype(np.float32 if types <= set(_SINGLE) else np.float64)


def _examples(folder: Path) -> list[dict[str, Any]]:
    random = np.random.default_rng(0)
    np.save(folder / "X.npy", random.normal(size=(60, 3)).astype(np.float32))
    np.save(folder / "X64.npy", random.normal(size=(60, 3)))
    np.save(folder / "y.npy", np.array(["low", "high", "middle"])[np.arange(60) % 3])
    np.save(folder / "codes.npy", np.arange(60) % 4)
    np.save(folder / "weight.npy", random.uniform(0.5, 2.0, size=60))
    rows = {"name": "example", "features": str(folder / "X.npy"), "labels": str(folder / "y.npy")}
    return [
        rows,
        {**rows, "order": ["low", "middle", "high"], "weight": str(folder / "weight.npy")},
        {**rows, "features": str(folder / "X64.npy"), "labels": str(folder / "codes.npy")},
    ]


_OPTIONS: dict[str, Any] = {"features": None, "labels": None, "weight": None, "order": None}
SOURCE = Source("mapped", _OPTIONS, _load, ordered=options_give_order, examples=_examples, foresee=notes_with("ADV106"), paths=_PATHS)
