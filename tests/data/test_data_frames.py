"""Frames that somebody else read: any type of column becomes what the same cells of a CSV file become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from advcli.core.errors import DataError
from advcli.data import LABEL_OPTIONS, TABLE_OPTIONS, Dataset, from_table, load
from advcli.data.source import COMMON
from advcli.data.tables.table import read_parts

PLAIN = pd.DataFrame(
    {
        "size": [1, 2, 3, 4, 5, 6],
        "weight": [0.1, 0.25, 1e-17, 1 / 3, 2.0, 7.0],
        "colour": ["red", "blue", "red", "green", "red", "blue"],
        "fresh": [True, False, True, True, False, False],
        "label": ["b", "a", "b", "c", "a", "c"],
    }
)
COLOURS = {"target": "label", "categorical": ["colour"]}


def read(frame: pd.DataFrame, **options: Any) -> Dataset:
    complete = {**COMMON, **TABLE_OPTIONS, "name": "mine", "source": "mine", **options}
    return from_table(frame, complete, where="mine.parquet")


def from_csv(frame: pd.DataFrame, folder: Path, **options: Any) -> Dataset:
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    return load({"name": "mine", "source": "csv", "path": str(path), **options}, folder)


def refused(frame: pd.DataFrame, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        read(frame, **options)
    message = str(caught.value)
    assert message.startswith("mine.parquet")
    assert "\n" not in message
    assert "line" not in message, "a frame has rows, no lines"
    return message


TYPES = {
    "plain": {},
    "nullable": {"size": "Int64", "weight": "Float64", "colour": "string", "fresh": "boolean", "label": "string"},
    "narrow": {"size": "uint8", "colour": "category", "label": "category"},
    "objects": {"colour": object, "label": object},
}


@pytest.mark.parametrize("kind", TYPES)
def test_types_of_columns(kind: str, tmp_path: Path) -> None:
    data = read(PLAIN.astype(TYPES[kind]), **COLOURS)
    wanted = from_csv(PLAIN.astype({"fresh": int}), tmp_path, **COLOURS)
    assert data.sha256 == wanted.sha256
    assert data.feature_names == wanted.feature_names == ("size", "weight", "colour=blue", "colour=green", "colour=red", "fresh")
    assert data.encoding == wanted.encoding
    assert data.notes == wanted.notes


def test_the_index_and_the_types_of_names_do_not_matter() -> None:
    wanted = read(PLAIN, **COLOURS)
    assert read(PLAIN.set_index(pd.Index([9, 9, 1, 4, 4, 0])), **COLOURS).sha256 == wanted.sha256
    numbered = pd.DataFrame({0: [1, 2], 1: ["x", "y"]})
    assert read(numbered, target="1").feature_names == ("0",)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([3, 1, 2, 1, 3, 2], (1, 2, 3)),
        ([3.0, 1.0, 2.0, 1.0, 3.0, 2.0], (1, 2, 3)),
        ([0.5, 1.0, 0.5, 1.0, 1.0, 0.5], (0.5, 1.0)),
        ([True, False] * 3, ("False", "True")),
        (["01", "1"] * 3, ("01", "1")),
        (pd.array([1, 2, 3] * 2, dtype="Int32"), (1, 2, 3)),
        (pd.Categorical(["x", "y"] * 3, categories=["y", "x", "z"]), ("x", "y")),
    ],
)
def test_labels(labels: Any, classes: tuple[Any, ...]) -> None:
    data = read(PLAIN.assign(label=labels), **COLOURS)
    assert data.classes == classes
    assert [type(label) for label in data.classes] == [type(label) for label in classes]


def test_cut_order_and_weights() -> None:
    cut = read(PLAIN, target="size", cut="edges", edges=[2.5, 4.5], categorical=["colour"], drop=["label"])
    assert (cut.y.tolist(), cut.ordered) == ([0, 0, 1, 1, 2, 2], True)
    ordered = read(PLAIN, **COLOURS, order=["c", "a", "b"])
    assert (ordered.classes, ordered.ordered) == (("c", "a", "b"), True)
    weighted = read(PLAIN, **COLOURS, weight="weight")
    assert weighted.example_weight is not None
    assert weighted.example_weight.tolist() == PLAIN["weight"].tolist()


def test_columns_of_labels() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "label_x": [True, False, True], "label_y": [0, 1, 1], "label_z": [1.0, 0.0, 0.0]})
    data = read(frame, target="label_*")
    assert data.classes == ("x", "y", "z")
    assert data.y.toarray().tolist() == [[1, 0, 1], [0, 1, 0], [1, 1, 0]]


def test_missing_cells() -> None:
    nullable = PLAIN.astype({"size": "Int64"})
    nullable.loc[2, "size"] = pd.NA
    for frame in (PLAIN.assign(size=[1, 2, np.nan, 4, 5, 6]), nullable):
        message = refused(frame, **COLOURS)
        assert "column 'size' has no value in row 3; fill it with dataset.missing=median" in message
        assert "remove the row or use dataset.drop=[size]" in message
        filled = read(frame, **LABEL_OPTIONS | {"missing": "mean"}, **COLOURS)
        assert filled.X[2, 0] == 18 / 5
        assert any("1 cells without a value hold the mean" in note for note in filled.notes)
    for nothing in (None, np.nan, pd.NA):
        assert "'colour' has no value in row 2" in refused(PLAIN.assign(colour=["red", nothing, *["red"] * 4]), **COLOURS)
        assert "target column 'label' has no value in row 1" in refused(PLAIN.assign(label=[nothing, *"abcab"]), **COLOURS)
    assert "column 'label' holds" not in refused(PLAIN.assign(label=pd.array([None, 1, 2, 1, 2, 1], dtype="Int64")), **COLOURS)


def test_what_is_wrong_is_said_in_one_line() -> None:
    assert "no rows" in refused(PLAIN.iloc[:0], **COLOURS)
    assert "more than one column named 'a'" in refused(pd.DataFrame([[1, 2]], columns=["a", "a"]), target="a")
    assert "column 2 has no name" in refused(pd.DataFrame([[1, 2]], columns=["a", ""]), target="a")
    assert "no column 'lable' for the target; did you mean label" in refused(PLAIN, target="lable")
    assert "holds text ('red' in row 1)" in refused(PLAIN, target="label")
    assert "'when' holds text" in refused(PLAIN.assign(when=pd.Timestamp("2020-01-01")), **COLOURS)


READERS = {"parquet": "read_parquet", "feather": "read_feather", "excel": "read_excel"}


@pytest.mark.parametrize(("suffix", "form"), [(".parquet", "parquet"), (".pq", "parquet"), (".feather", "feather"), (".xlsx", "excel")])
def test_files_of_other_formats_are_read_by_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, form: str) -> None:
    """The engines may not be here: a pickle in their place."""
    path = tmp_path / f"mine{suffix}"
    PLAIN.to_pickle(path, compression=None)
    monkeypatch.setattr(pd, READERS[form], lambda file, **_: pd.read_pickle(file, compression=None))
    options = {"name": "mine", "source": "csv", "path": str(path), **COLOURS}
    options["target"] = "label"
    assert load(options, tmp_path).sha256 == read(PLAIN, **COLOURS).sha256
    other = path.rename(tmp_path / "mine.dat")
    assert load({**options, "path": str(other), "format": form}, tmp_path).sha256 == read(PLAIN, **COLOURS).sha256
    parts = list(read_parts(other.rename(path), 4))
    assert [len(part.frame) for part in parts] == [4, 2]
    assert parts[1].place(0) == "row 5"
    path.write_bytes(b"nothing")
    with pytest.raises(DataError, match=f"cannot be read as {form}"):
        load(options, tmp_path)
    path.unlink()
    with pytest.raises(DataError, match="there is no file"):
        load(options, tmp_path)


@pytest.mark.parametrize("form", READERS)
def test_a_missing_engine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    def absent(file: Path, **_: Any) -> None:
        raise ImportError("no engine")

    monkeypatch.setattr(pd, READERS[form], absent)
    (tmp_path / "mine.dat").write_bytes(b"x")
    with pytest.raises(DataError, match=r'takes the package \w+; pip install "advcli\[tables\]"'):
        load({"name": "mine", "source": "csv", "path": str(tmp_path / "mine.dat"), "target": "label", "format": form}, tmp_path)


@pytest.mark.parametrize(("suffix", "package"), [("parquet", "pyarrow"), ("feather", "pyarrow"), ("xlsx", "openpyxl")])
def test_the_engines_themselves(tmp_path: Path, suffix: str, package: str) -> None:
    pytest.importorskip(package)
    path = tmp_path / f"mine.{suffix}"
    getattr(PLAIN, "to_excel" if suffix == "xlsx" else f"to_{suffix}")(path, **({"index": False} if suffix == "xlsx" else {}))
    data = load({"name": "mine", "source": "csv", "path": str(path), "target": "label", **COLOURS}, tmp_path)
    assert data.sha256 == read(PLAIN, **COLOURS).sha256
