"""A person's own file: what is read, and one clear line for everything that can be wrong with it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from support.counting import Calls

from advcli.core.checks import LARGEST
from advcli.core.errors import ConfigError, DataError
from advcli.data import Dataset, check_trainable, load
from advcli.data.tables.options import TableOptions
from advcli.data.tables.table import read_table, table_sha256

GOOD = "a,b,label\n1,2,x\n3,4,y\n5,6,x\n7,8.5,y\n"


def write(folder: Path, content: str | bytes, name: str = "train.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, **options: Any) -> Dataset:
    return load({"name": "mine", "source": "csv", "path": str(path), "target": "label", **options}, path.parent)


def one_line(path: Path, error: type[Exception] = DataError, **options: Any) -> str:
    with pytest.raises(error) as caught:
        read(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


def test_what_is_read(tmp_path: Path) -> None:
    data = read(write(tmp_path, GOOD))
    assert data.X.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8.5]]
    assert data.X.flags.c_contiguous
    assert data.X.dtype == np.float64
    assert data.y.tolist() == [0, 1, 0, 1]
    assert data.y.dtype == np.intp
    assert data.classes == ("x", "y")
    assert data.feature_names == ("a", "b")
    assert (data.name, data.ordered, data.sizes, data.splits, data.example_weight, data.groups) == (
        "mine",
        False,
        None,
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    "variant",
    [
        "﻿" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\n\n"),
        GOOD.rstrip("\n"),
        GOOD.replace(",", ", "),
        GOOD.replace("x", '"x"'),
        '"a","b","label"\n' + GOOD.split("\n", 1)[1],
        gzip.compress(GOOD.encode(), mtime=0),
    ],
    ids=["byte order mark", "CRLF", "blank lines", "no last line end", "blanks", "quotes", "quoted heading", "gzip without .gz"],
)
def test_spellings_of_the_same_table(tmp_path: Path, variant: str | bytes) -> None:
    assert read(write(tmp_path, variant)).sha256 == read(write(tmp_path, GOOD, "plain.csv")).sha256


def test_gzip_and_target_in_the_middle(tmp_path: Path) -> None:
    moved = "a,label,b\n" + "\n".join(f"{a},{t},{b}" for a, b, t in (row.split(",") for row in GOOD.split("\n")[1:-1])) + "\n"
    data = read(write(tmp_path, gzip.compress(moved.encode()), "train.csv.gz"))
    assert data.sha256 == read(write(tmp_path, GOOD)).sha256


def test_columns_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    assert read(path, features=["b"]).feature_names == ("b",)
    assert read(path, drop=["b"]).feature_names == ("a",)
    assert read(path, features=["b", "a"]).X[0].tolist() == [2, 1]


def test_other_separator(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace(",", ";"))
    assert read(path, separator=";").X.shape == (4, 2)
    assert "semicolons" in one_line(path)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["10", "9", "10", "9"], (9, 10)),
        (["1.0", "2.0", "1.0", "2.0"], (1.0, 2.0)),
        (["01001", "10001", "9", "9"], ("9", "01001", "10001")),
        (["+1", "-1", "+1", "+1"], ("-1", "+1")),
        (["1.50", "10", "2", "2"], ("1.50", "2", "10")),
        (["1.5", "0.5", "0.5", "0.5"], (0.5, 1.5)),
        (["01", "1", "1", "1"], ("01", "1")),
        (["NA", "None", "NA", "NA"], ("NA", "None")),
        (["True", "False", "True", "True"], ("False", "True")),
        ([" b", "a ", "a", "b"], ("a", "b")),
        (["1_0", "2", "2", "2"], ("1_0", "2")),
    ],
)
def test_labels_keep_their_kind(tmp_path: Path, labels: list[str], classes: tuple[Any, ...]) -> None:
    data = read(write(tmp_path, "a,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels))))
    assert data.classes == classes
    assert [type(label) for label in data.classes] == [type(label) for label in classes]
    assert [str(data.classes[code]) for code in data.y] == [str(classes[classes.index(data.classes[code])]) for code in data.y]


def test_order(tmp_path: Path) -> None:
    path = write(tmp_path, "a,label\n1,high\n2,low\n3,middle\n4,low\n")
    data = read(path, order=["low", "middle", "high", "extreme"])
    assert data.ordered
    assert data.classes == ("low", "middle", "high")
    assert data.y.tolist() == [2, 0, 1, 0]
    assert any("extreme" in note for note in data.notes)
    message = one_line(path, order=["low", "high"])
    assert "'middle'" in message
    assert "dataset.order" in message
    assert "twice" in one_line(path, ConfigError, order=["low", "low", "middle", "high"])
    assert "list" in one_line(path, ConfigError, order="low")


def test_order_of_numbers_by_any_spelling(tmp_path: Path) -> None:
    data = read(write(tmp_path, "a,label\n1,1\n2,2\n3,1\n"), order=["2", 1.0])
    assert data.classes == (2, 1)
    assert data.y.tolist() == [1, 0, 1]


def test_weights(tmp_path: Path) -> None:
    path = write(tmp_path, "a,w,label\n1,0.5,x\n2,2,y\n3,1,x\n")
    data = read(path, weight="w")
    assert data.example_weight is not None
    assert data.example_weight.tolist() == [0.5, 2.0, 1.0]
    assert data.feature_names == ("a",)
    assert data.sha256 != read(path, drop=["w"]).sha256
    for cell, words in (("0", "not above 0"), ("-1", "not above 0"), ("", "no value"), ("inf", "infinite"), ("much", "'much'")):
        message = one_line(write(tmp_path, f"a,w,label\n1,0.5,x\n2,{cell},y\n3,1,x\n", "w.csv"), weight="w")
        assert words in message
        assert "row 2 (line 3)" in message
        assert "'w'" in message
    assert "'weight'" in one_line(path, weight="weight")


def test_one_hot(tmp_path: Path) -> None:
    path = write(tmp_path, "a,colour,label\n1,red,x\n2,blue,y\n3,red,x\n")
    for categorical in (["colour"], "colour", "auto"):
        data = read(path, categorical=categorical)
        assert data.feature_names == ("a", "colour=blue", "colour=red")
        assert data.X.tolist() == [[1, 0, 1], [2, 1, 0], [3, 0, 1]]
        assert any("one-hot" in note for note in data.notes)
    assert read(path, categorical=["a", "colour"]).feature_names[:3] == ("a=1", "a=2", "a=3")
    assert read(path, categorical=["colour"], drop=["colour"]).feature_names == ("a",)


def test_auto_leaves_columns_with_missing_numbers_alone(tmp_path: Path) -> None:
    message = one_line(write(tmp_path, "a,colour,label\n1,red,x\n,blue,y\n3,red,x\n"), categorical="auto")
    assert "'a' has no value in row 2" in message


def test_cut(tmp_path: Path) -> None:
    path = write(tmp_path, "a,label\n" + "".join(f"{i},{i / 7}\n" for i in range(50)))
    data = read(path, cut="equal_width", n_classes=5)
    assert data.ordered
    assert data.classes == (1, 2, 3, 4, 5)
    assert set(data.class_sizes().values()) == {10}
    message = one_line(path)
    assert "50 different numbers" in message
    assert "dataset.cut=equal_width" in message
    assert "needs numbers" in one_line(write(tmp_path, GOOD, "text.csv"), cut="equal_width", n_classes=2)
    assert "n_classes" in one_line(path, ConfigError, n_classes=5)
    assert "dataset.edges" in one_line(path, ConfigError, edges=[1])
    assert "no meaning" in one_line(path, ConfigError, cut="equal_width", n_classes=5, order=[1, 2])
    assert "did you mean edges" in one_line(path, ConfigError, cut="edge")


BAD = {
    "heading only": ("a,label\n", ["no rows"]),
    "empty": ("", ["is empty"]),
    "blank": ("\n \n", ["is empty"]),
    "no target": ("a,b,lable\n1,2,x\n", ["'label'", "did you mean lable"]),
    "text feature": (
        "a,b,label\n1,2,x\n2,three,y\n",
        ["'b'", "'three'", "row 2 (line 3)", "dataset.categorical=[b]", "dataset.drop=[b]"],
    ),
    "missing feature": ("a,b,label\n1,2,x\n2,,y\n", ["'b'", "no value", "row 2 (line 3)"]),
    "missing spelt": ("a,b,label\n1,2,x\n2,NaN,y\n", ["'b'", "no value", "row 2 (line 3)"]),
    "several missing": ("a,b,label\n1,?,x\n2,?,y\n3,4,x\n", ["'b'", "row 1 (line 2)", "1 more"]),
    "infinite": ("a,b,label\n1,2,x\n-inf,2,y\n", ["'a'", "infinite", "row 2 (line 3)"]),
    "too large": ("a,b,label\n1,2,x\n1e999,2,y\n", ["'a'", "infinite", "row 2"]),
    "missing label": ("a,label\n1,x\n2,\n3,y\n", ["target column 'label'", "no value", "row 2 (line 3)"]),
    "one class": ("a,label\n1,x\n2,x\n", ["single class 'x'"]),
    "duplicate columns": ("a,b,a,label\n1,2,3,x\n2,3,4,y\n", ["'a'", "more than one"]),
    "nameless column": ("a,,label\n1,2,x\n2,3,y\n", ["column 2", "no name"]),
    "too many fields": ("a,label\n1,x\n2,y,z\n", ["row 2 (line 3)", "3 fields", "2"]),
    "too few fields": ("a,b,label\n1,2,x\n2,y\n", ["row 2 (line 3)", "2 fields", "3"]),
    "too few after blank lines": ("a,b,label\n\n1,2,x\n\n2,y\n", ["row 2 (line 5)"]),
    "too few with quotes": ('a,b,label\n1,2,"x"\n\n2,y\n', ["row 2 (line 4)"]),
    "text after a quoted line end": ('a,t,label\n1,"u\nv",x\n2,w,y\n', ["'t'"]),
    "open quote": ('a,label\n1,"x\n2,y\n', ["quotation mark"]),
    "zero bytes": ("a,label\n1,x\0\n", ["not a text file"]),
    "only a target": ("label\nx\ny\n", ["no feature columns"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(tmp_path: Path, case: str) -> None:
    content, words = BAD[case]
    path = write(tmp_path, content)
    message = one_line(path)
    for word in words:
        assert word in message
    if case != "one class":
        assert str(path) in message


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    assert "did you mean train.csv" in one_line(tmp_path / "trian.csv")
    assert "there is no file" in one_line(tmp_path / "nowhere" / "train.csv")
    with pytest.raises(ConfigError, match=r"dataset\.path"):
        load({"name": "mine", "source": "csv"}, tmp_path)


def test_folder_instead_of_a_file(tmp_path: Path) -> None:
    assert "is a folder" in one_line(tmp_path)


def test_damaged_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD.encode() * 50)
    assert "damaged gzip" in one_line(write(tmp_path, packed[: len(packed) // 2], "half.csv.gz"))
    middle = len(packed) // 2
    assert "damaged gzip" in one_line(write(tmp_path, packed[:middle] + b"\xff\xff\xff" + packed[middle + 3 :], "flipped.csv.gz"))
    assert "not a gzip" in one_line(write(tmp_path, GOOD, "plain.csv.gz"))


def test_other_encodings(tmp_path: Path) -> None:
    message = one_line(write(tmp_path, "a,label\n1,été\n2,x\n".encode("latin-1")))
    assert "not UTF-8" in message
    assert "line 2" in message
    assert "dataset.encoding=cp1252" in message


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    assert "did you mean target" in one_line(path, ConfigError, tarjet="label")
    assert "'c'" in one_line(path, features=["c"])
    assert "dataset.drop" in one_line(path, drop=["c"])
    assert "target or the weight" in one_line(path, ConfigError, features=["a", "label"])
    assert "sizes" in one_line(path, ConfigError, sizes=[3])
    assert "sizes" in one_line(path, ConfigError, sizes=[0, 2])
    assert "too few" in one_line(path, sizes=[3, 2])
    assert "true or false" in one_line(path, ConfigError, ordered="maybe")
    assert "one character" in one_line(path, ConfigError, separator=";;")
    assert "did you mean csv" in one_line(path, ConfigError, format="cvs")
    with pytest.raises(ConfigError, match="did you mean csv"):
        load({"name": "mine", "source": "cvs"}, tmp_path)
    with pytest.raises(ConfigError, match=r"dataset\.name"):
        load({"source": "csv"}, tmp_path)
    with pytest.raises(DataError, match="glass,diabetes"):
        load({"name": "mine", "source": "csv", "path": str(path), "target": "label"}, tmp_path, author_splits=True)


def test_small_classes(tmp_path: Path) -> None:
    data = read(write(tmp_path, GOOD))
    check_trainable(data, 2)
    with pytest.raises(DataError, match=r"x \(2\), y \(2\).*allow_small_classes=true"):
        check_trainable(data, 3)
    check_trainable(read(tmp_path / "train.csv", allow_small_classes=True), 3)
    with pytest.raises(DataError, match=r"4 rows, fewer than protocol\.folds=5"):
        check_trainable(read(tmp_path / "train.csv", allow_small_classes=True), 5)


def test_svmlight(tmp_path: Path) -> None:
    path = write(tmp_path, "1 1:0.5 3:2\n-1 2:1\n1 3:4\n", "train.svm")
    for file in (path, write(tmp_path, gzip.compress(path.read_bytes()), "train.svm.gz")):
        data = read(file, format="svmlight")
        assert isinstance(data.X, csr_array)
        assert data.X.toarray().tolist() == [[0.5, 0, 2], [0, 1, 0], [0, 0, 4]]
        assert data.classes == (-1, 1)
        assert data.y.tolist() == [1, 0, 1]
    assert read(path, format="svmlight", order=[1, -1]).y.tolist() == [0, 1, 0]
    assert "named columns" in one_line(path, ConfigError, format="svmlight", drop=["1"])
    assert "svmlight format" in one_line(write(tmp_path, GOOD), format="svmlight")
    assert "row 2" in one_line(write(tmp_path, "1 1:0.5\n-1 2:nan\n", "nan.svm"), format="svmlight")
    far = write(tmp_path, "1 1:0.5\n-1 2:1 2000000000:1\n1 3:1\n", "far.svm")
    assert "row 2 has the index 2000000000, but 4 values are for 1048976 columns at most" in one_line(far, format="svmlight")
    assert read(write(tmp_path, "1 1:0.5\n-1 1000000:1\n", "wide.svm"), format="svmlight").X.shape == (2, 10**6)
    assert "row 1 has a label" in one_line(write(tmp_path, "inf 1:0.5\n-1 2:1\n", "inf.svm"), format="svmlight")
    assert "empty" in one_line(write(tmp_path, "", "empty.svm"), format="svmlight")
    values = write(tmp_path, "".join(f"{i / 3} 1:{i}\n" for i in range(30)), "regression.svm")
    assert read(values, format="svmlight", cut="equal_width", n_classes=3).class_sizes() == {1: 10, 2: 10, 3: 10}
    assert "30 different numbers" in one_line(values, format="svmlight")


def test_large_files_are_fast(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.standard_normal((20_000, 9)).round(6), columns=[f"x{i}" for i in range(9)])
    frame["label"] = random.integers(0, 10, len(frame))
    path = tmp_path / "large.csv.gz"
    frame.to_csv(path, index=False)
    with Calls() as calls:
        data = read(path)
    # some 6 calls a row, none for each of its cells
    assert calls.count < 9 * len(frame)
    assert np.array_equal(data.X, frame.to_numpy()[:, :9])


cells = st.floats(-LARGEST, LARGEST)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(cells, cells, st.sampled_from(["b", "a", "ä ö", 'say "x", y'])), min_size=2, max_size=20))
def test_round_trip_is_exact(tmp_path: Path, rows: list[tuple[float, float, str]]) -> None:
    rows = [*rows, (0.0, 0.0, "a"), (0.0, 0.0, "b")]
    path = tmp_path / "trip.csv"
    pd.DataFrame(rows, columns=["u", "v", "label"]).to_csv(path, index=False)
    data = read(path)
    assert data.X.tolist() == [[u, v] for u, v, _ in rows]
    assert [data.classes[code] for code in data.y] == [label for *_, label in rows]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.permutations(range(6)))
def test_canonical_checksum_depends_on_the_order_of_rows_only_where_they_differ(tmp_path: Path, order: list[int]) -> None:
    rows = ["1,2,x", "3,4,y", "5,6,x", "7,8,y", "1.0,2,x", "9,9,z"]  # the first and the fifth are equal
    plain = write(tmp_path, "a,b,label\n" + "\n".join(rows), "plain.csv")
    moved = write(tmp_path, "a,b,label\n" + "\n".join(rows[i] for i in order), "moved.csv")
    same = [rows[i].replace("1.0", "1") for i in order] == [row.replace("1.0", "1") for row in rows]
    checksums = [table_sha256(read_table(path, TableOptions(target="label")), "label") for path in (plain, moved)]
    assert (checksums[0] == checksums[1]) is same


def test_canonical_checksum_ignores_spelling_but_no_value(tmp_path: Path) -> None:
    def checksum(text: str) -> str:
        return table_sha256(read_table(write(tmp_path, text)))

    base = checksum("a,b,target\n1,2,x\n3,-0,y\n")
    assert checksum("A,B,split,target\n1.00,2e0,train,x\n03,0,test,y\n") == base
    assert checksum("target,a,b\nx,1,2\ny,3,0\n") == base
    for other in (
        "a,b,target\n1,2,x\n3,1e-300,y\n",
        "a,b,target\n1,2,x\n3,0,z\n",
        "b,a,target\n2,1,x\n0,3,y\n",
        "a,target\n1,x\n3,y\n",
    ):
        assert checksum(other) != base
    assert checksum("a,b,target\nq,rs,x\nu,v,y\n") != checksum("a,b,target\nqr,s,x\nu,v,y\n")


@pytest.mark.parametrize(
    ("written", "classes"),
    [(("+1", "-1"), ("-1", "+1")), (("1", "-1"), (-1, 1)), (("1.50", "02"), ("1.50", "02")), (("+1", "-1", "1"), (-1, 1))],
)
def test_svmlight_labels_keep_their_writing(tmp_path: Path, written: tuple[str, ...], classes: tuple[Any, ...]) -> None:
    """But a number that is written in two ways is one label."""
    rows = [written[i % len(written)] for i in range(12)]
    text = "# rows\n" + "".join(f"{label} {1 + i % 3}:1 # row {i}\n" for i, label in enumerate(rows))
    data = read(write(tmp_path, text, "t.svm"), format="svmlight")
    assert data.classes == classes
    assert [float(classes[code]) for code in data.y] == list(map(float, rows))
