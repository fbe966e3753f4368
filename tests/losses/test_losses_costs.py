"""Loss matrices: named ones against their definitions, structure, guarantees, files and bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import reference

from advcli.core.errors import ConfigError
from advcli.losses import matrices

NAMED = [
    ("zero_one", matrices.zero_one, {}),
    ("absolute", matrices.absolute, {}),
    ("squared", matrices.squared, {}),
    ("power", matrices.power, {"p": 2.5}),
    ("power", matrices.power, {"p": 0.5}),
    ("huber", matrices.huber, {"delta": 1.5}),
    ("pinball", matrices.pinball, {"quantile": 0.7}),
    ("abstain", matrices.abstain, {"alpha": 0.3}),
]


@pytest.mark.parametrize("k", [1, 2, 3, 6])
@pytest.mark.parametrize(("name", "make", "options"), NAMED)
def test_named_matrix_is_its_definition(name: str, make: Any, options: dict, k: int) -> None:
    np.testing.assert_allclose(make(k, **options), reference.loss_matrix(name, k, **options), rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "make", "options", "structure"),
    [
        ("zero_one", matrices.zero_one, {}, "zero_one"),
        ("absolute", matrices.absolute, {}, "absolute"),
        ("squared", matrices.squared, {}, "squared"),
        ("huber", matrices.huber, {"delta": 1.5}, "convex"),
        ("pinball", matrices.pinball, {"quantile": 0.7}, "convex"),
        ("power", matrices.power, {"p": 1.0}, "absolute"),
        ("power", matrices.power, {"p": 1.5}, "convex"),
        ("power", matrices.power, {"p": 0.5}, "general"),
        ("abstain", matrices.abstain, {"alpha": 0.3}, "abstain"),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 0.1, 7.0, 1e-200])
def test_structure_is_recognised_at_every_scale(name: str, make: Any, options: dict, structure: str, scale: float) -> None:
    found = matrices.describe(scale * make(5, **options))
    assert found.structure == structure
    assert found.scale == pytest.approx(1.0 if structure in ("convex", "general") else scale, rel=1e-14)
    assert found.notes == ()
    if structure == "abstain":
        assert found.alpha == pytest.approx(0.3)


@pytest.mark.parametrize("structure", ["zero_one", "absolute", "squared", "abstain"])
def test_one_changed_entry_is_not_that_structure_any_more(structure: str) -> None:
    matrix = getattr(matrices, structure)(5)
    matrix[1, 3] += 1e-9
    assert matrices.describe(matrix).structure != structure


def test_an_abstain_row_dearer_than_a_wrong_label_is_not_an_abstain_matrix() -> None:
    matrix = matrices.abstain(4)
    matrix[-1] = 1.5
    assert matrices.describe(matrix).structure == "general"


def test_first_bend_names_the_entry_above_the_line() -> None:
    matrix = matrices.absolute(5)
    matrix[2, 4] += 0.5
    assert matrices.first_bend(matrix) == (2, 4)
    assert matrices.first_bend(matrices.absolute(5)) is None
    assert matrices.convex_columns(np.array([[0.0], [0.1], [0.2], [0.30000000000000004], [0.4]]))


def test_notes_say_which_guarantee_is_lost() -> None:
    # docs/notes/misprints.md, section 3: the column condition alone is not enough
    (row, diagonal) = matrices.describe(np.array([[0.5, 0.4], [1.0, 0.0]])).notes
    assert "row 0 costs 0.5 when right and 0.4 when the truth is 1" in row
    assert "Theorem 15 fails" in row
    assert "diagonal is not zero" in diagonal
    (negative,) = matrices.describe(np.array([[-1.0, 1.0], [1.0, 0.0]])).notes[1:]
    assert "row 0, column 0 is -1" in negative
    (shape,) = matrices.describe(np.ones((2, 3))).notes
    assert "2 predictions for 3 classes" in shape
    assert any("row condition" in note for note in matrices.describe(np.zeros((3, 3))).notes)


def test_csv_with_names_and_without(tmp_path: Path) -> None:
    named = tmp_path / "named.csv"
    named.write_text("prediction, low, high\nlow, 0, 2.5\nhigh, 1, 0\n\nask, .5, .5\n")
    read = matrices.read_csv(named)
    assert (read.rows, read.columns) == (("low", "high", "ask"), ("low", "high"))
    np.testing.assert_array_equal(read.values, [[0, 2.5], [1, 0], [0.5, 0.5]])
    aligned = read.align(["high", "low"])
    assert (aligned.rows, aligned.columns) == (("high", "low", "ask"), ("high", "low"))
    np.testing.assert_array_equal(aligned.values, [[0, 1], [2.5, 0], [0.5, 0.5]])
    plain = tmp_path / "plain.csv"
    plain.write_text("0,1\n2,0\n")
    assert matrices.read_csv(plain).columns is None
    np.testing.assert_array_equal(matrices.read_csv(plain).align(["a", "b"]).values, [[0, 1], [2, 0]])


def test_columns_that_do_not_fit_the_classes_are_named() -> None:
    matrix = matrices.CostMatrix(matrices.zero_one(2), ("low", "high"), ("low", "high"))
    with pytest.raises(ConfigError, match="no column for class 'hihg': did you mean high"):
        matrix.align(["low", "hihg"])
    with pytest.raises(ConfigError, match="a column 'high' but the data have no such class"):
        matrix.align(["low"])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (3, "not a list of rows"),
        ("0 1", "not a list of rows"),
        ([], "not a list of rows"),
        ([1, 2], "row 0, is not a list of numbers"),
        ([[0, 1, 2], [1, 0]], "row 1, has 2 entries but row 0 has 3"),
        ([[0, "x"], [1, 0]], "row 0, column 1, must be a finite number, got 'x'"),
        ([[0, 1], [float("nan"), 0]], "row 1, column 0, must be a finite number, got nan"),
        ([[0, 1], [float("inf"), 0]], "row 1, column 0, must be a finite number, got inf"),
        ([[0, True], [1, 0]], "column 1, must be a finite number, got True"),
        ([[0, 1], [1, 0]], "has 2 columns but there are 3 classes"),
        (np.zeros(3), "row 0, is not a list of numbers"),
        (np.zeros((2, 3, 4)), "column 0, must be a finite number"),
    ],
)
def test_bad_matrix_is_one_clear_line(matrix: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        matrices.check_matrix(matrix, 3)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (",a,b\n", "is not a list of rows"),
        (",a,b\nx,0,1\nx,1,0\n", "two rows named 'x'"),
        (",a,a\nx,0,1\ny,1,0\n", "two columns named 'a'"),
        (",a,b\nx,0\ny,1\n", "names 2 columns but its first row has 1 numbers"),
        (",a,b\nx,0,one\ny,1,0\n", "row 0, column 1, must be a finite number, got 'one'"),
        ("0,nan\n1,0\n", "row 0, column 1, must be a finite number, got nan"),
        ("0,1\n1\n", "row 1, has 1 entries but row 0 has 2"),
    ],
)
def test_bad_file_is_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        matrices.read_csv(path)
    assert "matrix.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_or_unreadable_file_and_missing_or_double_source(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read \(No such file"):
        matrices.read_csv(tmp_path / "nowhere.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        matrices.read_csv(tmp_path / "bytes.csv")
    with pytest.raises(ConfigError, match=r"either matrix .* or file .*, not neither"):
        matrices.matrix_from()
    with pytest.raises(ConfigError, match="not both"):
        matrices.matrix_from([[0]], "a.csv")
    (tmp_path / "two.csv").write_text("0,1\n1,0\n")
    with pytest.raises(ConfigError, match=r"two\.csv has 2 columns but there are 3 classes"):
        matrices.matrix_from(file=tmp_path / "two.csv", n_classes=3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: matrices.abstain(3, 1.2), "alpha of loss=abstain must be a number from 0 to 1 .*got 1.2"),
        (lambda: matrices.abstain(3, -0.1), "must be a number from 0 to 1 .*got -0.1"),
        (lambda: matrices.abstain(3, float("nan")), "alpha of loss=abstain must be a number from 0 to 1 .*got nan"),
        (lambda: matrices.abstain(3, "half"), "got 'half'"),
        (lambda: matrices.power(3, 0), "p of the power loss must be a finite number above 0, got 0"),
        (lambda: matrices.huber(3, -1), "delta of the Huber loss must be a finite number above 0, got -1"),
        (lambda: matrices.pinball(3, 1), "quantile of the pinball loss must be a number between 0 and 1, both excluded, got 1"),
    ],
)
def test_bad_number_is_one_clear_line(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
