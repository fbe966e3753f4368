"""The source of mapped rows: files of NumPy and folders of parquet files, what is refused, and the same content as in memory."""

from pathlib import Path

import numpy as np
import pytest

from advcli.core.errors import AdvcliError
from advcli.core.row_blocks import BlockRows
from advcli.data import load, make_dataset


def saved(folder: Path, **arrays: np.ndarray) -> dict[str, str]:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return {"name": "mine", "source": "mapped"} | {name: str(folder / f"{name}.npy") for name in arrays}


def rows(n: int = 50, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, 3)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_files_are_mapped_and_have_the_content_of_rows_in_memory(tmp_path: Path, dtype: type) -> None:
    labels = np.array(["b", "a", "c"])[np.arange(50) % 3]
    data = load(saved(tmp_path, features=rows(dtype=dtype), labels=labels, weight=np.arange(50) + 1), tmp_path)
    assert isinstance(data.X, BlockRows)
    assert isinstance(data.X.stored, np.memmap)
    memory = make_dataset(
        name="mine",
        X=rows(dtype=dtype),
        y=np.unique(labels, return_inverse=True)[1],
        classes=["a", "b", "c"],
        feature_names=["1", "2", "3"],
        example_weight=np.arange(50) + 1.0,
    )
    assert data.sha256 == memory.sha256
    assert (data.classes, data.feature_names) == (memory.classes, memory.feature_names)
    assert np.array_equal(data.y, memory.y)
    assert np.array_equal(data.X.dense(0, 50), memory.X)
    assert data.example_weight is not None
    assert data.class_sizes() == memory.class_sizes()


def test_whole_numbers_are_labels_in_their_order(tmp_path: Path) -> None:
    for labels in (np.arange(50) % 4 * 3, (np.arange(50) % 4 * 3).astype(np.float64)):
        assert load(saved(tmp_path, features=rows(), labels=labels), tmp_path).classes == (0, 3, 6, 9)
    ordered = load({**saved(tmp_path, features=rows(), labels=np.arange(50) % 3), "order": [2, 0, 1]}, tmp_path)
    assert (ordered.classes, ordered.ordered) == ((2, 0, 1), True)


def gap(X: np.ndarray, value: float) -> np.ndarray:
    X[40, 1] = value
    return X


LABELS = np.arange(50) % 2


@pytest.mark.parametrize(
    ("arrays", "changed", "said"),
    [
        ({"features": rows()}, {}, "needs dataset.labels, the .npy file of their labels, or the column"),
        ({"labels": LABELS}, {}, "needs dataset.features, the .npy file of the rows"),
        ({"features": gap(rows(), np.nan), "labels": LABELS}, {}, "row 41 has no finite number in column 2"),
        ({"features": gap(rows(), -np.inf), "labels": LABELS}, {}, "row 41 has no finite number in column 2"),
        ({"features": gap(rows(dtype=np.float64), 1e70), "labels": LABELS}, {}, "column 2 .* holds 1e\\+70"),
        ({"features": rows()[:, 0], "labels": LABELS}, {}, "float32 of shape \\(50,\\)"),
        ({"features": rows().astype(np.int64), "labels": LABELS}, {}, "int64 of shape"),
        ({"features": np.asfortranarray(rows()), "labels": LABELS}, {}, "row after row"),
        ({"features": rows(), "labels": LABELS[:-1]}, {}, "labels have the shape \\(49,\\); the 50 rows"),
        ({"features": rows(), "labels": np.where(LABELS, np.nan, 1.0)}, {}, "labels are whole numbers or text without gaps"),
        ({"features": rows(), "labels": np.linspace(0, 1, 50)}, {}, "different numbers"),
        ({"features": rows(), "labels": np.zeros(50)}, {}, "single class"),
        ({"features": rows(), "labels": LABELS, "weight": np.zeros(50)}, {}, "weight must hold finite numbers above 0"),
        ({"features": rows(), "labels": LABELS}, {"labels": "nowhere.npy"}, "there is no file nowhere.npy"),
        ({"features": rows(), "labels": LABELS}, {"sizes": [40, 20]}, "too few for dataset.sizes"),
        ({"features": rows(), "labels": LABELS}, {"target": "x"}, "dataset.target is not an option"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, arrays: dict[str, np.ndarray], changed: dict[str, object], said: str) -> None:
    with pytest.raises(AdvcliError, match=said) as caught:
        load({**saved(tmp_path, **arrays), **changed}, tmp_path)
    assert "\n" not in str(caught.value)


def test_other_files_are_no_arrays(tmp_path: Path) -> None:
    dataset = saved(tmp_path, features=rows(), labels=LABELS)
    for content in (b"", b"\x93NUMPY", b"hello"):
        (tmp_path / "features.npy").write_bytes(content)
        with pytest.raises(AdvcliError, match=r"is not a \.npy file"):
            load(dataset, tmp_path)
    np.save(tmp_path / "labels.npy", np.array([1, "a"], dtype=object), allow_pickle=True)
    np.save(tmp_path / "features.npy", rows())
    with pytest.raises(AdvcliError, match=r"labels\.npy is not a \.npy file"):
        load(dataset, tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(AdvcliError, match=r"holds no \.parquet file"):
        load({**dataset, "features": str(tmp_path / "folder")}, tmp_path)


def test_a_folder_of_parquet_files_becomes_one_map(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, labels = rows(90), np.array(["b", "a", "c"])[np.arange(90) % 3]
    folder = tmp_path / "parts"
    folder.mkdir()

    def write(name: str, part: slice, **columns: object) -> None:
        table = {"one": X[part, 0], "two": X[part, 1], "kind": labels[part], "three": X[part, 2], "often": np.arange(90)[part] + 1.0}
        parquet.write_table(arrow.table({**table, **columns}), folder / name, row_group_size=7)

    for i, part in enumerate((slice(0, 30), slice(30, 31), slice(31, 90))):
        write(f"part-{i}.parquet", part)
    dataset = {"name": "mine", "source": "mapped", "features": str(folder), "labels": "kind", "weight": "often"}
    data = load(dataset, tmp_path)
    assert np.array_equal(data.X.stored, X)
    assert data.X.stored.dtype == np.float32
    assert data.feature_names == ("one", "two", "three")
    assert [data.classes[code] for code in data.y] == labels.tolist()
    assert np.array_equal(data.example_weight, np.arange(90) + 1.0)
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "mapped").iterdir()}
    assert load(dataset, tmp_path).sha256 == data.sha256
    assert written == {path: path.stat().st_mtime_ns for path in (tmp_path / "mapped").iterdir()}
    write("part-1.parquet", slice(0, 1), one=np.array([0.5]))  # other files: another map; a column of doubles makes all doubles
    changed = load(dataset, tmp_path)
    assert changed.X.stored.dtype == np.float64
    assert changed.X.stored[30, 0] == 0.5
    for wrong, said in (
        ({"labels": "kinds"}, "no column 'kinds'; did you mean kind"),
        ({"labels": "one"}, "'kind' is string, no number"),
        ({"weight": "none"}, "no column 'none'"),
    ):
        with pytest.raises(AdvcliError, match=said):
            load({**dataset, **wrong}, tmp_path)
    write("part-1.parquet", slice(0, 1), kind=arrow.array([None], arrow.string()))
    with pytest.raises(AdvcliError, match="rows without a label"):
        load(dataset, tmp_path)
    write("part-1.parquet", slice(0, 1), more=np.ones(1))
    with pytest.raises(AdvcliError, match=r"part-1\.parquet has other columns"):
        load(dataset, tmp_path)


def test_parquet_files_without_their_package_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    (tmp_path / "part.parquet").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(AdvcliError, match=r'takes the package pyarrow; pip install "advcli\[tables\]"'):
        load({"name": "mine", "source": "mapped", "features": str(tmp_path), "labels": "y"}, tmp_path)
