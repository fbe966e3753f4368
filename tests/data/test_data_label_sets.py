"""Labels with a hierarchy and sets of labels: what is read, what is refused, and the three sets of the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.composed import choice

from advcli.core.errors import ConfigError, DataError
from advcli.core.label_graph import stub
from advcli.data import Dataset, check_trainable, load, show
from advcli.data.labels.sets import read_edges

TREE = "parent,child\nroot,a\nroot,b\na,c\na,d\n"


def read(folder: Path, table: str, edges: str | None = TREE, **options: Any) -> Dataset:
    (folder / "table.csv").write_text(table)
    if edges is not None:
        (folder / "edges.csv").write_text(edges)
        options["hierarchy"] = str(folder / "edges.csv")
    return load({"name": "mine", "source": "csv", "path": str(folder / "table.csv"), "target": "label", **options}, folder)


def test_labels_are_leaves_in_the_order_of_the_graph(tmp_path: Path) -> None:
    data = read(tmp_path, "x,label\n1,d\n2,b\n3,c\n")
    assert data.classes == ("b", "c", "d")
    assert data.y.tolist() == [2, 0, 1]
    assert data.hierarchy == (("root", "a"), ("root", "b"), ("a", "c"), ("a", "d"))
    assert not data.multilabel


def test_leaves_without_rows_are_told(tmp_path: Path) -> None:
    data = read(tmp_path, "x,label\n1,d\n2,b\n")
    assert data.classes == ("b", "d")
    assert "1 of 3 leaves of the hierarchy are the label of no row [ADV108]" in data.notes


def test_sets_of_labels_from_joined_names_and_from_columns_are_the_same(tmp_path: Path) -> None:
    joined = read(tmp_path, "x,label\n1,d@b\n2,b\n3,c @ c\n", label_separator="@")
    columns = read(tmp_path, "x,is_b,is_c,is_d\n1,1,0,1\n2,1,0,0\n3,0,1,0\n", target="is_*")
    assert joined.multilabel
    assert joined.classes == columns.classes == ("b", "c", "d")
    assert joined.y.toarray().tolist() == columns.y.toarray().tolist() == [[1, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert joined.sha256 == columns.sha256
    assert columns.feature_names == ("x",)
    assert joined.class_sizes() == {"b": 2, "c": 1, "d": 1}
    check_trainable(joined, 1)


def test_sets_of_labels_need_no_hierarchy(tmp_path: Path) -> None:
    data = read(tmp_path, "x,label\n1,d@b\n2,b\n", edges=None, label_separator="@")
    assert (data.classes, data.hierarchy) == (("b", "d"), None)


def test_the_most_frequent_labels_are_kept(tmp_path: Path) -> None:
    table = "x,label\n1,d@b\n2,b\n3,c@a\n4,c\n5,e\n"
    data = read(tmp_path, table, edges=None, label_separator="@", top_labels=3)
    assert data.classes == ("a", "b", "c")  # a, d and e are as frequent: the alphabet's first is kept
    assert data.y.toarray().tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert "the 3 most frequent of 5 labels are kept [ADV108]" in data.notes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"label_separator": "@", "top_labels": 5, "edges": None}, "is for at most 4 of the 5 labels"),
        ({"label_separator": "@", "top_labels": 2}, "is for sets of labels without a hierarchy"),
        ({"top_labels": 2, "edges": None}, "is for sets of labels: give dataset.label_separator"),
        ({"label_separator": "@", "top_labels": 1, "edges": None}, "dataset.top_labels=1"),
    ],
)
def test_labels_that_cannot_be_cut_are_refused(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(
            tmp_path,
            "x,label\n1,d@b\n2,b\n3,c@a\n4,c\n5,e\n",
            **{"edges": "parent,child\n" + "".join(f"r,{x}\n" for x in "abcde"), **options},
        )


def test_trees_may_name_nodes_and_parents(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("node,parent,depth\na,root,1\nb,root,1\na,root,1\n")
    assert read_edges(tmp_path / "nodes.csv") == (("root", "a"), ("root", "b"))


def test_the_hierarchy_is_part_of_the_checksum(tmp_path: Path) -> None:
    table = "x,label\n1,d\n2,b\n3,c\n"
    flat = "parent,child\nroot,b\nroot,c\nroot,d\n"
    assert read(tmp_path, table).sha256 != read(tmp_path, table, flat).sha256
    rows = TREE.splitlines(keepends=True)
    assert read(tmp_path, table).sha256 == read(tmp_path, table, "".join([rows[0], *rows[3:], *rows[1:3]])).sha256


def test_inner_labels_are_refused_with_their_count_or_get_stubs(tmp_path: Path) -> None:
    table = "x,label\n1,a\n2,b@a\n3,c\n"
    with pytest.raises(DataError, match=r"1 of 3 labels are inner nodes of .*, in 2 of 3 rows.*dataset.stub_leaves=true"):
        read(tmp_path, table, label_separator="@")
    data = read(tmp_path, table, label_separator="@", stub_leaves=True)
    assert data.stubs == (stub("a"),)
    assert ("a", stub("a")) in data.hierarchy
    assert set(data.classes) == {stub("a"), "b", "c"}


@pytest.mark.parametrize(
    ("edges", "options", "said"),
    [
        ("parent,child\nroot,a\na,b\nb,a\n", {}, "form a cycle"),
        ("parent,child\nroot,c\nroot,b\n", {}, "'d' of the examples' labels is no node"),
        (TREE + "other,c\n", {}, "2 nodes have no parent: 'root', 'other'"),
        (TREE + "other,c\n", {"root": "root"}, "'other' cannot be reached from the root 'root'"),
        (TREE + ",c\n", {}, r"row 5 \(line 6\) has no parent"),
        ("up,down\nroot,a\n", {}, "no columns parent and child"),
    ],
)
def test_hierarchies_that_are_none(tmp_path: Path, edges: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read(tmp_path, "x,label\n1,d\n2,b\n3,c\n", edges, **options)


def test_several_tops_on_request(tmp_path: Path) -> None:
    data = read(tmp_path, "x,label\n1,d\n2,b\n3,c\n", TREE + "other,c\n", several_tops=True)
    assert len(data.hierarchy) == 5


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ("x,label\n1,d@b\n2, @\n", {"label_separator": "@"}, r"no label in row 2 \(line 3\)"),
        ("x,is_b,is_c\n1,1,0\n2,0,2\n", {"target": "is_*"}, r"column 'is_c' holds '2' in row 2"),
        ("x,is_b\n1,1\n", {"target": "no_*"}, r"has no column 'no_\*'"),
    ],
)
def test_sets_that_are_none(tmp_path: Path, table: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read(tmp_path, table, **options)


def test_rows_of_zeros_are_empty_sets_where_there_is_no_hierarchy(tmp_path: Path) -> None:
    table = "x,is_d,is_b,is_c\n1,1,1,0\n2,0,0,0\n3,0,0,1\n"
    data = read(tmp_path, table, edges=None, target="is_*")
    assert data.y.toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert "1.00 labels a row, at most 2, 1 rows have none [ADV108]" in data.notes
    with pytest.raises(DataError, match="1 rows have no label of the hierarchy, the first is row 2"):
        read(tmp_path, table, TREE, target="is_*")


@pytest.mark.parametrize("options", [{"stub_leaves": "yes"}, {"label_separator": ""}, {"missing": "zero", "label_separator": "@"}])
def test_values_that_cannot_be(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(options))}="):
        read(tmp_path, "x,label\n1,d\n2,b\n", **options)


def test_missing_cells_are_filled_on_request_from_training_rows(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no value"):
        read(tmp_path, "x,z,label\n1,,d\n3,5,b\n", edges=None)
    data = read(tmp_path, "x,z,label\n1,,d\n3,5,b\n8,9,d\n", edges=None, missing="median")
    assert data.X[:, 1].tolist() == [7, 5, 9]
    (tmp_path / "mine.csv").write_text("x,split,target\n1,train,b\n,train,c\n3,valid,b\n9,test,c\n")
    (tmp_path / "edges.csv").write_text(TREE)
    data = load({"name": "mine", "source": "hierarchical", "hierarchy": "edges.csv", "missing": "mean"}, tmp_path)
    train, test = data.encoded(*data.official)
    assert train[:, 0].tolist() == [1, 2, 3]
    assert test[:, 0].tolist() == [9]
    assert [part.tolist() for part in data.official] == [[0, 1, 2], [3]]
    assert any("1 cells without a value hold the mean" in note for note in data.notes)


@pytest.mark.parametrize(
    ("name", "rows", "features", "classes", "nodes", "train"),
    [("imclef07a", 11006, 80, 63, 97, 10000), ("imclef07d", 11006, 80, 26, 47, 10000), ("cellcycle_go", 3751, 77, 2715, 4800, 2473)],
)
def test_sets_of_the_catalogue(shared: Path, name: str, rows: int, features: int, classes: int, nodes: int, train: int) -> None:
    options = choice("dataset", name)
    data = load(options, shared)
    assert data.X.shape == (rows, features)
    assert np.isfinite(data.X).all()
    assert len(data.classes) == classes
    assert len({node for edge in data.hierarchy for node in edge}) == nodes
    assert [len(part) for part in data.official] == [train, rows - train]
    assert data.multilabel == (name == "cellcycle_go")
    if data.multilabel:
        assert np.diff(data.y.indptr).min() >= 1
        with pytest.raises(DataError, match="in 2996 of 3751 rows"):
            load({**options, "stub_leaves": False}, shared)
    else:
        assert show(options, shared)["classes"].startswith(f"{classes}:")
