"""Cells of tables: one reader, so that a cell means the same in every format, at fit and at predict, whatever the other cells hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advcli.core.errors import ConfigError, DataError
from advcli.data import LABEL_OPTIONS, TABLE_OPTIONS, Dataset, from_table, load
from advcli.data.source import COMMON
from advcli.data.tables.cells import PLAIN, Notation, cell_text, feasible, look_of, reads_as_numbers
from advcli.data.tables.target import code_labels, match_labels, written_alike

CHARACTERS = {"point": ".", "comma": ",", "space": " ", "apostrophe": "'"}


def read(frame: pd.DataFrame, **options: Any) -> Dataset:
    return from_table(frame, {**COMMON, **TABLE_OPTIONS, **LABEL_OPTIONS, "name": "mine", "target": "k", **options})


def of_csv(folder: Path, frame: pd.DataFrame, separator: str = ",", **options: Any) -> Dataset:
    frame.to_csv(folder / "mine.csv", index=False, sep=separator)
    dataset = {"name": "mine", "source": "csv", "path": str(folder / "mine.csv"), "separator": separator, "target": "k", **options}
    return load(dataset, folder)


def refused(call: Any) -> str:
    with pytest.raises(DataError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- labels -----------------------------------------------------------------------------------------------------------
WRITINGS = (["01001", "02134", "10001"], ["1.0", "2.0"], ["1.50", "2.5"], ["-1", "+1"], ["1", "2", "10"], ["01", "1"], ["NA", "None", "EU"])


@given(
    st.lists(
        st.one_of(st.integers(-20, 20).map(str), st.sampled_from([label for labels in WRITINGS for label in labels])),
        min_size=1,
        max_size=12,
    )
)
def test_labels_come_back_as_they_were_written(cells: list[str]) -> None:
    codes, labels = code_labels(pd.Series(cells))
    assert [str(labels[code]) for code in codes] == cells
    assert len({type(label) for label in labels}) == 1
    assert match_labels(cells, labels) == codes.tolist()
    numbers = [float(label) for label in labels] if set(cells).isdisjoint({"NA", "None", "EU"}) else None
    if numbers is not None and len(set(numbers)) == len(numbers):
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("labels", WRITINGS)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather", "xlsx", "frame"])
def test_labels_are_the_same_in_every_format(tmp_path: Path, labels: list[str], suffix: str) -> None:
    frame = pd.DataFrame({"x": np.arange(30.0), "k": [labels[i % len(labels)] for i in range(30)]})
    wanted = of_csv(tmp_path, frame)
    if suffix in ("csv", "frame"):
        values = wanted if suffix == "csv" else read(frame)
    else:
        pytest.importorskip("openpyxl" if suffix == "xlsx" else "pyarrow")
        path = tmp_path / f"mine.{suffix}"
        getattr(frame, "to_excel" if suffix == "xlsx" else f"to_{suffix}")(path, **({"index": False} if suffix == "xlsx" else {}))
        values = load({"name": "mine", "source": "csv", "path": str(path), "target": "k"}, tmp_path)
    assert values.classes == wanted.classes
    assert values.sha256 == wanted.sha256
    assert sorted(map(str, values.classes)) == sorted(labels)


def test_labels_are_matched_by_writing_and_then_by_number() -> None:
    assert match_labels(["1", "2.0", "3", "1.00"], ["1.0", "2.0"]) == [0, 1, None, 0]
    assert match_labels(["01", "1", "1.0"], ["01", "1"]) == [0, 1, None]
    assert match_labels(["TRUE", "1", "x"], ["False", "True", "y"]) == [1, None, None]
    assert match_labels([1, 2.5], ["1.0", 2.5]) == [0, 1]


@pytest.mark.parametrize(("one", "two"), [("1", "1.0"), ("yes", "Yes"), ("a b", "a  b"), ("\u00e9", "e\u0301")])
def test_one_label_in_two_writings_is_said(tmp_path: Path, one: str, two: str) -> None:
    data = of_csv(tmp_path, pd.DataFrame({"x": range(20), "k": [one, two, "2", "2"] * 5}))
    assert len(data.classes) == 3
    assert len([note for note in data.notes if repr(one) in note and repr(two) in note]) == 1
    assert written_alike(["1", "2", "yes", "no", "TRUE"]) == []


@pytest.mark.parametrize("order", [["01", "1", "2"], ["2", "1", "01"]])
def test_orders_name_labels_as_they_are_written(tmp_path: Path, order: list[str]) -> None:
    data = of_csv(tmp_path, pd.DataFrame({"x": range(30), "k": ["1", "01", "2"] * 10}), order=order)
    assert data.classes == tuple(order)
    data = of_csv(tmp_path, pd.DataFrame({"x": range(30), "k": ["1.0", "3.0", "2.50"] * 10}), order=[1, 2.5, "3.0"])
    assert data.classes == ("1.0", "2.50", "3.0")


# ---- gaps and types ---------------------------------------------------------------------------------------------------
GAPS = {"the first": [0], "the last": [39], "some": [3, 4, 17]}
COLUMNS = {
    "floats": np.round(np.linspace(-3, 3, 40), 3),
    "wholes": pd.array(np.arange(40) % 7, dtype="Int64"),
    "truths": pd.array(np.arange(40) % 3 == 0, dtype="boolean"),
    "objects": pd.Series(np.arange(40) % 5, dtype=object),
    "text": pd.Series([f"{i % 9}.5" for i in range(40)], dtype=object),
}


@pytest.mark.parametrize("where", GAPS)
@pytest.mark.parametrize("kind", COLUMNS)
def test_gaps_are_gaps_whatever_the_type_and_the_place(tmp_path: Path, kind: str, where: str) -> None:
    column = pd.Series(COLUMNS[kind]).copy()
    column[GAPS[where]] = None
    frame = pd.DataFrame({"x": np.arange(40.0), "gappy": column, "k": ["a", "b"] * 20})
    for take in (lambda **dataset: read(frame, **dataset), lambda **dataset: of_csv(tmp_path, frame, **dataset)):
        assert f"'gappy' has no value in row {GAPS[where][0] + 1}" in refused(take)
        for missing in ("mean", "median", "most_frequent"):
            filled = take(missing=missing, categorical="auto")
            assert filled.feature_names == ("x", "gappy")
    assert read(frame, missing="median").sha256 == of_csv(tmp_path, frame, missing="median").sha256


@pytest.mark.parametrize("missing", ["refuse", "mean", "median", "most_frequent", "indicator"])
@pytest.mark.parametrize("nothing", [np.full(20, np.nan), [None] * 20, [""] * 20])
def test_a_column_without_a_value_cannot_be_filled(tmp_path: Path, nothing: Any, missing: str) -> None:
    frame = pd.DataFrame({"x": np.arange(20.0), "void": nothing, "k": ["a", "b"] * 10})
    for take in (lambda **dataset: read(frame, **dataset), lambda **dataset: of_csv(tmp_path, frame, **dataset)):
        for categorical in ([], "auto"):
            message = refused(lambda: take(missing=missing, categorical=categorical))  # noqa: B023
            assert "column 'void' has no value in any row; use dataset.drop=[void]" in message
            assert message.count("void") == 2
        assert take(missing=missing, drop=["void"]).feature_names == ("x",)
    words = frame.assign(void=["some", "words"] * 10)
    assert "no value" not in refused(lambda: read(words, missing=missing))


@pytest.mark.parametrize("mark", ["x", "TRUE", "1", "yes"])
@pytest.mark.parametrize("missing", ["mean", "median", "most_frequent", "indicator"])
def test_a_box_that_is_ticked_or_empty_is_no_constant(tmp_path: Path, mark: str, missing: str) -> None:
    frame = pd.DataFrame({"x": np.arange(20.0), "box": [mark, ""] * 10, "k": ["a", "b"] * 10})
    data = of_csv(tmp_path, frame, missing=missing, categorical="auto")
    assert np.ptp(data.X[:, 1:], axis=0).max() == 1.0
    assert sum(mark in note and "nothing" in note for note in data.notes) >= (mark in ("TRUE", "1"))


def test_infinite_values_name_a_remedy_that_works(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(20.0), "b": [np.inf, *range(19)], "k": ["a", "b"] * 10})
    for missing in ("refuse", "median"):
        message = refused(lambda: of_csv(tmp_path, frame, missing=missing))  # noqa: B023
        assert "an infinite value in row 1" in message
        assert "dataset.missing" not in message
        assert "dataset.drop=[b]" in message
    assert of_csv(tmp_path, frame, drop=["b"]).feature_names == ("x",)


def test_truths_among_numbers_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(20.0), "b": ["TRUE", "3"] * 10, "k": ["a", "b"] * 10})
    assert "'TRUE' in row 1 (line 2) beside '3' in row 2" in refused(lambda: of_csv(tmp_path, frame))
    assert of_csv(tmp_path, frame, categorical="auto").feature_names == ("x", "b=3", "b=TRUE")


# ---- numbers in other notations ---------------------------------------------------------------------------------------
def written(value: float, notation: Notation, grouped: bool = True) -> str:
    """Write a number of two decimals as a person would."""
    text = f"{abs(value):{',' if grouped and notation.thousands else ''}.2f}"
    text = text.replace(".", "p").replace(",", notation.thousands or "").replace("p", notation.decimal)
    units = [unit for unit in notation.units if unit != "()"]
    if value < 0 and "()" in notation.units:
        text = f"({text})"
    elif value < 0:
        text = f"-{text}"
    return f"{text} {units[0]}" if units else text


ways = st.builds(
    Notation,
    st.sampled_from(".,"),
    st.sampled_from([None, ",", ".", " ", "'"]),
    st.sampled_from([(), ("%",), ("kg",), ("EUR", "()"), ("€",), ("()",)]),
).filter(lambda notation: notation.decimal != notation.thousands)
hundredths = st.lists(st.integers(-(10**8), 10**8).map(lambda value: value / 100), min_size=2, max_size=8, unique=True)


@given(ways, hundredths)
def test_numbers_are_read_as_they_were_written(notation: Notation, values: list[float]) -> None:
    cells = pd.Series([written(value, notation) for value in values])
    assert notation.numbers(cells).tolist() == values
    assert Notation.of(notation.options) == notation
    result = feasible(cells)
    assert any(way.numbers(cells).tolist() == values for way in result), (cells.tolist(), result)
    if reads_as_numbers(cells):
        assert PLAIN.numbers(cells).tolist() == values


@given(ways, hundredths)
def test_two_decimals_leave_no_doubt(notation: Notation, values: list[float]) -> None:
    frame = pd.DataFrame({"a": [written(value, notation) for value in values]})
    if not reads_as_numbers(frame["a"]):
        look = look_of(frame, ["a"], lambda name: True)
        assert look.notation.numbers(cell_text(frame["a"])).tolist() == values
        assert look.unclear == ()


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1,234.5", "12"], [1234.5, 12]),
        (["1.234,5", "12"], [1234.5, 12]),
        (["1 234", "1\u202f235", "1\u00a0236"], [1234, 1235, 1236]),
        (["1'234", "1’235.5"], [1234, 1235.5]),
        (["12%", "3.5 %"], [12, 3.5]),
        (["EUR 5", "EUR 7.5", "-EUR 2"], [5, 7.5, -2]),
        (["37,122", "1,000,000"], [37122, 1000000]),
        (["$1,200", "-$5", "$-6"], [1200, -5, -6]),
        (["5 kg", "70kg"], [5, 70]),
        (["<40", "41"], [40, 41]),
        (["(1.3)", "2"], [-1.3, 2]),
        (["0,123", "0,999"], [0.123, 0.999]),
        (["12 pieces", "3 pieces"], [12, 3]),
        (["12,34,567", "1,234"], [1234567, 1234]),
        (["\u22121.5", "2"], [-1.5, 2]),
        (["-inf", "1,5"], [-np.inf, 1.5]),
    ],
)
def test_what_looks_like_numbers(cells: list[str], values: list[float]) -> None:
    column = pd.Series(cells, name="a")
    way = PLAIN if reads_as_numbers(column) else look_of(column.to_frame(), ["a"], lambda name: True).notation
    assert way.numbers(column).tolist() == values


@pytest.mark.parametrize(
    "cells",
    [
        *(["12a", "13b"], ["C100", "C200"], ["192.168.1.1", "10.0.0.1"], ["2020-01-05", "2021-01-01"], ["10:30", "11:15"], ["1/2", "3/4"]),
        *(["1st", "2nd"], ["1 2", "3 4"], ["1,2", "3.4"], ["12-13", "1-2"], ["red", "5"], ["1,23,4", "5"], ["05.01.2024", "06.01.2024"]),
        *(["#1", "#2"], ["5 apples", "6 pears"], ["1__0", "2"], ["", "NA"], [".", ","], ["-", "+"], ["kg", "5 kg"], ["1,234", "1,23"]),
    ],
)
def test_what_does_not(cells: list[str]) -> None:
    column = pd.Series(cells, name="a")
    assert not reads_as_numbers(column)
    values = look_of(column.to_frame(), ["a"], lambda name: True)
    if cells == ["1,234", "1,23"]:  # a comma before fractions of unequal length
        assert str(values.notation) == "dataset.decimal=comma"
    else:
        assert values.columns == {}


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    price, size = np.round(rng.normal(30000, 9000, n), 2), np.round(rng.normal(0, 2, n), 2)
    return pd.DataFrame({"price": price, "size": size, "n": rng.integers(0, 9, n), "k": np.where(price + 4000 * size > 30000, "b", "a")})


NOTATIONS = {
    "comma, point": Notation(",", "."),
    "point, comma": Notation(".", ","),
    "comma": Notation(","),
    "space": Notation(",", " "),
    "apostrophe": Notation(".", "'"),
    "percent": Notation(",", None, ("%",)),
    "money": Notation(".", ",", ("$", "()")),
}


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("name", NOTATIONS)
def test_options_read_the_table_and_messages_name_them(tmp_path: Path, name: str, separator: str) -> None:
    frame, notation = table(), NOTATIONS[name]
    wanted = of_csv(tmp_path, frame)
    other = frame.assign(**{key: [written(value, notation) for value in frame[key]] for key in ("price", "size")})
    values = of_csv(tmp_path, other, separator, **notation.options)
    np.testing.assert_array_equal(values.X, wanted.X)
    np.testing.assert_array_equal(read(other, **notation.options).X, wanted.X)
    for categorical in ([], "auto"):  # never categories, nor an identifier that is left out
        message = refused(lambda: of_csv(tmp_path, other, separator, categorical=categorical))  # noqa: B023
        assert "looks like numbers" in message
        assert all(f"dataset.{key}=" in message for key in notation.options)
        assert "dataset.keep=[price]" in message
    assert "price=other" in of_csv(tmp_path, other, separator, categorical="auto", keep=["price", "size"]).feature_names


def test_cells_of_a_column_of_numbers_that_are_none_are_no_categories(tmp_path: Path) -> None:
    frame = table().astype({"size": object})
    frame.loc[3, "size"] = "n.d."
    assert "'n.d.' in row 4 (line 5)" in refused(lambda: of_csv(tmp_path, frame, categorical="auto"))


def test_weights_costs_and_targets_are_read_in_the_notation(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": range(30), "w": ["1,5", "2,5", "1"] * 10, "k": [f"{i},25" for i in range(30)]})
    data = of_csv(tmp_path, frame, decimal="comma", weight="w", cut="edges", edges=[10, 20])
    assert data.example_weight is not None
    assert data.example_weight[:3].tolist() == [1.5, 2.5, 1.0]
    assert data.y.tolist() == [0] * 10 + [1] * 10 + [2] * 10
    assert "30 different numbers" in refused(lambda: of_csv(tmp_path, frame, decimal="comma", drop=["w"]))
    costs = pd.DataFrame({"x": range(30), "a": ["0,5", "1"] * 15, "b": ["0,75", "0"] * 15})
    assert of_csv(tmp_path, costs, decimal="comma", costs=["a", "b"]).y.tolist() == [0, 1] * 15


@pytest.mark.parametrize(
    "options", [{"decimal": "dot"}, {"thousands": "."}, {"thousands": "tab"}, {"decimal": ",", "thousands": "comma"}, {"units": ["m2"]}]
)
def test_notations_that_cannot_be(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.(decimal|thousands|units)"):
        of_csv(tmp_path, table(), **options)


# ---- labels of several columns, and empty sets ------------------------------------------------------------------------
@pytest.mark.parametrize(("yes", "no"), [("1", "0"), ("True", "False"), ("TRUE", "FALSE"), ("1.0", "0.0"), (True, False), (1.0, 0.0)])
def test_columns_of_labels_in_any_writing(tmp_path: Path, yes: Any, no: Any) -> None:
    x = np.random.default_rng(1).normal(size=(40, 2)).round(2)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], **{f"tag_{i}": [yes if v > 0 else no for v in x[:, i]] for i in range(2)}})
    for data in (of_csv(tmp_path, frame, target="tag_*"), read(frame, target="tag_*")):
        assert data.y.toarray().tolist() == (x > 0).astype(int).tolist()
    frame = frame.astype({"tag_1": object})
    frame.loc[3, "tag_1"] = None
    assert "'tag_1' holds '' in row 4" in refused(lambda: of_csv(tmp_path, frame, target="tag_*"))


def test_an_empty_set_of_a_joined_column_is_a_set(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": range(12), "k": ["red;big", "", "big"] * 4})
    data = of_csv(tmp_path, frame, label_separator=";")
    assert data.y.toarray().tolist() == [[1, 1], [0, 0], [1, 0]] * 4
    assert any("4 rows have none" in note for note in data.notes)
    (tmp_path / "tree.csv").write_text("parent,child\nany,red\nany,big\n")
    tree = str(tmp_path / "tree.csv")
    assert "has no label in row 2" in refused(lambda: of_csv(tmp_path, frame, label_separator=";", hierarchy=tree))
