"""Tables of anybody's scores: which columns are taken for what, what is refused, and that numbers stay as they are."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import advcli
from advcli import metrics
from advcli.core.errors import AdvcliError, ConfigError, DataError, ResultsError
from advcli.results import ResultsFolder, from_frame
from advcli.results.importing import read_scores
from advcli.results.tables import RUN_COLUMNS


def tidy(datasets: int = 2, methods: int = 2, splits: int = 3) -> pd.DataFrame:
    """Return a table with a different accuracy in every row."""
    places = list(itertools.product(range(datasets), range(methods), range(splits)))
    rows = [
        {"dataset": f"set_{d}", "method": f"m{m}", "fold": s, "accuracy": (1 + at) / (2 + len(places))}
        for at, (d, m, s) in enumerate(places)
    ]
    return pd.DataFrame(rows)


def scores(frame: pd.DataFrame, **keys: Any) -> dict[tuple[str, str, str, str], float]:
    """Return the scores of a table by data set, method, split or item, and metric."""
    options = {name: keys.pop(name) for name in ("direction", "percent", "incomplete", "name") if name in keys}
    table = {str(name): frame[name].tolist() for name in frame}
    return {score.key: score.value for score in read_scores(table, keys, **options).scores}


# ---- layouts ------------------------------------------------------------------------------------------------------------
def test_the_three_wide_forms_say_the_same_as_the_tidy_one() -> None:
    frame = tidy()
    expected = scores(frame)
    by_method = frame.pivot(index=["dataset", "fold"], columns="method", values="accuracy").reset_index()
    by_dataset = frame.pivot(index=["method", "fold"], columns="dataset", values="accuracy").reset_index()
    assert scores(by_method, metric="accuracy") == expected
    assert scores(by_method, metric="accuracy", method=["m0", "m1"]) == expected
    assert scores(by_dataset, metric="accuracy", dataset=["set_0", "set_1"]) == expected
    two = frame.assign(f1=frame["accuracy"] / 2)
    found = scores(two)
    assert {key: value for key, value in found.items() if key[3] == "accuracy"} == expected
    assert {(*key[:3], "accuracy"): 2 * value for key, value in found.items() if key[3] == "f1"} == expected
    long = two.melt(["dataset", "method", "fold"], var_name="Metric", value_name="Value")
    assert scores(long) == found


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (("Data set", "Model Name", "Seed", "Accuracy"), {}),
        (("task", "system", "run", "correct"), {}),
        (("benchmark", "algorithm", "trial", "score"), {"metric": "accuracy"}),
        (("data_id", "classifier", "repeat", "result"), {"metric": "accuracy"}),
        (("A", "B", "C", "D"), {"dataset": "A", "method": "B", "split": "C", "value": "D", "metric": "accuracy"}),
        (
            ("method", "dataset", "value", "fold"),
            {"dataset": "method", "method": "dataset", "split": "value", "value": "fold", "metric": "accuracy"},
        ),
    ],
)
def test_columns_are_guessed_by_usual_names_or_named(names: tuple[str, ...], keys: dict[str, str]) -> None:
    frame = tidy()
    assert scores(frame.set_axis(list(names), axis=1), **keys) == scores(frame)


def test_what_was_guessed_is_said() -> None:
    frame = tidy().assign(notes="x", n_train=70, n_test=30)
    said = read_scores({str(name): frame[name].tolist() for name in frame}, {}).said
    words = "; ".join(said)
    for part in (
        "dataset = 'dataset'",
        "method = 'method'",
        "split = 'fold'",
        "n_train = 'n_train'",
        "value = 'accuracy'",
        "ignored: notes",
    ):
        assert part in words
    assert words.endswith("metric accuracy (higher is better)")


def test_two_columns_number_a_split_together() -> None:
    frame = tidy(splits=4).assign(seed=[0, 0, 1, 1] * 4, fold=[0, 1, 0, 1] * 4)
    assert {key[2] for key in scores(frame)} == {"0/0", "0/1", "1/0", "1/1"}
    assert {key[2] for key in scores(frame, split=["seed", "fold"])} == {"0/0", "0/1", "1/0", "1/1"}


def test_a_table_without_data_sets_has_one() -> None:
    frame = tidy(datasets=1).drop(columns="dataset")
    assert {key[0] for key in scores(frame, name="mine")} == {"mine"}


# ---- numbers ------------------------------------------------------------------------------------------------------------
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
def test_numbers_keep_their_bits(tmp_path: Path, values: list[float]) -> None:
    frame = pd.DataFrame({"dataset": "d", "method": "m", "fold": range(len(values)), "loss": values})
    name = f"r{abs(hash(tuple(values)))}"
    rows = from_frame(frame, tmp_path / name).runs()
    assert [value.hex() for value in rows["value"]] == [float(value).hex() for value in values]
    as_text = frame.astype({"loss": str})
    assert [value.hex() for value in scores(as_text).values()] == [float(value).hex() for value in values]


def test_percentages_are_shifted_and_truth_values_count() -> None:
    base = {"dataset": "d", "method": ["a", "b"]}
    for columns, keys, expected in (
        ({"accuracy": ["87.3%", "5 %"]}, {}, [0.873, 0.05]),
        ({"accuracy": [87.3, 61.9]}, {"percent": True}, [0.873, 0.619]),
        ({"accuracy": [87.3, 61.9], "time": [3.0, 4.5]}, {"percent": True}, [0.873, 3.0, 0.619, 4.5]),
        ({"id": [1, 1], "correct": [True, False]}, {}, [1.0, 0.0]),
        ({"id": [1, 1], "correct": ["TRUE", "false"]}, {}, [1.0, 0.0]),
    ):
        assert list(scores(pd.DataFrame({**base, **columns}), **keys).values()) == expected


# ---- the folder ---------------------------------------------------------------------------------------------------------
def test_cells_claim_nothing_that_was_not_seen(tmp_path: Path) -> None:
    folder = from_frame(tidy().assign(n_train=70, n_test=30), tmp_path / "theirs")
    rows = folder.runs()
    assert list(rows.columns) == [*RUN_COLUMNS, "higher_is_better", "split_name"]
    empty = set(rows.columns[rows.isna().all() | (rows == "").all()])
    assert empty >= {"solver", "features", "objective", "relative_gap", "converged", "seed", "options", "fit_seconds", "proof", "C"}
    assert set(rows["status"]) == {"ok"}
    assert rows["split"].tolist()[:3] == [1, 2, 3]
    assert rows["split_name"].tolist()[:3] == ["0", "1", "2"]
    written = pd.read_csv(folder.path / "runs.csv", dtype=str, keep_default_na=False)
    assert list(written.columns) == [name for name in rows.columns if name not in empty]
    assert not (written == "").all().any()
    assert not (folder.path / "search.csv").exists()
    assert folder.disagreement() == ""
    for key in folder.finished_keys():
        cell = folder.read_cell(key)
        assert cell is not None
        assert set(cell["about"]) == {"dataset", "method", "imported", "drawn"}
    made = pd.read_json(folder.path / "provenance.json", typ="series")
    assert made["made_by"] == []
    assert made["imported"]["columns"][0] == "dataset = 'dataset'"


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    frame = tidy(splits=12)
    one = from_frame(frame, tmp_path / "one").runs()
    other = from_frame(frame.sample(frac=1, random_state=0), tmp_path / "other").runs()
    pd.testing.assert_frame_equal(one, other)
    assert one.loc[one["split"] == 11, "split_name"].unique().tolist() == ["10"]  # 10 comes after 9


def test_the_same_table_may_be_imported_again_and_another_may_not(tmp_path: Path) -> None:
    frame, place = tidy(), tmp_path / "theirs"
    before = from_frame(frame, place).runs()
    pd.testing.assert_frame_equal(from_frame(frame, place).runs(), before)
    with pytest.raises(ResultsError, match="holds other results; remove it, or choose another out="):
        from_frame(frame.assign(accuracy=0.5), place)
    pd.testing.assert_frame_equal(ResultsFolder(place).runs(), before)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(ResultsError, match="holds other results"):
        from_frame(frame, tmp_path / "notes")


def test_items_are_rows_of_one(tmp_path: Path) -> None:
    frame = pd.DataFrame({"model": list("aabb"), "question_id": ["q10", "q9"] * 2, "correct": [True, False, True, True]})
    rows = from_frame(frame, tmp_path / "items", name="quiz").runs()
    assert rows[["dataset", "method", "split", "item", "value", "n_test"]].values.tolist() == [
        ["quiz", "a", 1, "q9", 0.0, 1],
        ["quiz", "a", 2, "q10", 1.0, 1],
        ["quiz", "b", 1, "q9", 1.0, 1],
        ["quiz", "b", 2, "q10", 1.0, 1],
    ]


def test_it_is_public() -> None:
    assert advcli.results.from_frame is from_frame
    assert "from_frame" in advcli.results.__all__


# ---- what is refused ----------------------------------------------------------------------------------------------------
BASE = {"dataset": ["x", "x", "y", "y"], "method": ["a", "b", "a", "b"], "accuracy": [0.1, 0.2, 0.3, 0.4]}
BAD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"accuracy": [0.1, 0.2, 0.3, None]}, {}, r"row 4: accuracy has no value .*choose incomplete= for the gap"),
    ({"accuracy": [0.1, "n/a", 0.3, 0.4]}, {}, r"row 2: accuracy has no value \(n/a\)"),
    ({"accuracy": [0.1, math.inf, 0.3, 0.4]}, {}, "row 2: accuracy = inf is not finite"),
    ({"accuracy": [0.1, "0,2", 0.3, 0.4]}, {"value": "accuracy"}, "row 2: accuracy = '0,2' is not a number; .* with a decimal point"),
    ({"accuracy": [0.1, "1_0", 0.3, 0.4]}, {"value": "accuracy"}, "row 2: accuracy = '1_0' is not a number"),
    ({"accuracy": [0.1, "0.2 (0.1)", 0.3, 0.4]}, {"value": "accuracy"}, "is not a number; write numbers alone"),
    ({"accuracy": [0.1, 87.3, 0.3, 0.4]}, {}, "row 2: accuracy = 87.3 is not a share between 0 and 1; percent=true"),
    ({"accuracy": [0.1, -0.5, 0.3, 0.4]}, {}, "is not a share between 0 and 1; give shares"),
    ({"method": ["a", "b", "a", "a"]}, {}, "row 3 and row 4 are both of y, a, accuracy; remove one"),
    ({"method": ["a", "", "a", "b"]}, {}, "row 2: method is empty"),
    ({"dataset": ["x", "x", "Average", "Average"]}, {}, "row 3: 'Average' is not a data set; leave out the row"),
    ({}, {"dataset": "datset"}, "dataset=datset: the table has no such column; did you mean dataset?"),
    ({}, {"n_train": "rows"}, "n_train=rows: the table has no such column"),
    ({"rows": [70, 70, 0.5, 70]}, {"n_train": "rows"}, "row 3: rows = 0.5 is not a number of rows; give whole numbers from 1"),
    ({"accuracy": None, "score": [1, 2, 3, 4]}, {}, "it is not known whether higher values of score are better; give direction="),
    ({}, {"direction": "lower"}, "direction=lower: of accuracy the other is better"),
    ({}, {"direction": "up"}, "direction=up is not valid"),
    ({}, {"incomplete": "keep"}, "incomplete=keep is not valid"),
    ({}, {"metric": "acuracy"}, "metric=acuracy: the table has no such column, .* did you mean accuracy?"),
    ({"fold": [1, 1, 1, 1], "question": [1, 2, 3, 4]}, {}, "'fold' .a split. and 'question' .an item.: a table has splits or items"),
    ({"fold": [1, 1, 1, 1], "q": [1, 2, 3, 4]}, {"split": "fold", "item": "q"}, "split=fold and item=q: a table has splits or items"),
    ({"model": ["a", "b", "a", "b"]}, {}, "columns 'method' and 'model' can both be the method; name one: method=method"),
    ({"score": [1, 2, 3, 4]}, {}, "columns 'score' and 'accuracy' can all be the scores; name them: value=score"),
    ({"accuracy": None}, {}, "no column of scores; name it: value=COLUMN"),
    ({"method": None, "accuracy": None}, {}, "no column names the methods"),
    ({"method": None, "words": ["p", "q", "r", "s"]}, {}, "column 'words' has no numbers alone; name them: method=COLUMN"),
    ({"method": None}, {}, "a column for each method: metric=NAME says what the numbers are"),
    ({"dataset": ["x", "x", "y", "z"]}, {}, r"incomplete: b has no accuracy on y \(and 1 more gap\); choose incomplete=drop_datasets"),
    ({}, {"dataset": ["dataset", "accuracy"], "method": ["method", "accuracy"]}, "names of one kind alone"),
]


@pytest.mark.parametrize(("changed", "keys", "said"), BAD)
def test_what_cannot_be_taken_is_refused_in_one_line(tmp_path: Path, changed: dict[str, Any], keys: dict[str, Any], said: str) -> None:
    table = {name: column for name, column in {**BASE, **changed}.items() if column is not None}
    with pytest.raises((ConfigError, DataError), match=said) as caught:
        from_frame(pd.DataFrame(table, dtype=object), tmp_path / "theirs", **keys)
    assert len(caught.value.lines) == 1
    assert not (tmp_path / "theirs").exists()


@pytest.mark.parametrize("frame", [[1, 2], pd.DataFrame(), pd.DataFrame({"dataset": [], "method": [], "accuracy": []})])
def test_what_has_no_rows_is_refused(tmp_path: Path, frame: Any) -> None:
    with pytest.raises(AdvcliError):
        from_frame(frame, tmp_path / "theirs")
    two = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ConfigError, match="2 columns 'a'; rename them"):
        from_frame(two, tmp_path / "theirs")


# ---- gaps ---------------------------------------------------------------------------------------------------------------
@pytest.fixture
def gappy() -> pd.DataFrame:
    """m1 lacks set_1 as a whole, m2 one split of set_2."""
    frame = tidy(datasets=4, methods=3)
    lost = ((frame["dataset"] == "set_1") & (frame["method"] == "m1")) | (
        (frame["dataset"] == "set_2") & (frame["method"] == "m2") & (frame["fold"] == 1)
    )
    return frame[~lost]


def test_a_table_with_gaps_is_told_apart(gappy: pd.DataFrame) -> None:
    with pytest.raises(DataError, match=r"m1 has no accuracy on set_1 \(and 1 more gap\); choose incomplete="):
        scores(gappy)
    assert {key[0] for key in scores(gappy, incomplete="drop_datasets")} == {"set_0", "set_3"}
    assert {key[1] for key in scores(gappy, incomplete="drop_methods")} == {"m0"}
    with pytest.raises(DataError, match="incomplete=drop_datasets leaves nothing: every dataset has a gap"):
        scores(gappy[gappy["dataset"] == "set_2"], incomplete="drop_datasets")


def test_marked_gaps_are_never_averaged(tmp_path: Path, gappy: pd.DataFrame) -> None:
    from advcli.reports import comparison_table, summarise

    rows = from_frame(gappy, tmp_path / "theirs", incomplete="mark").runs()
    gap = rows[rows["status"] == "failed"]
    assert gap[["dataset", "method", "split_name"]].values.tolist() == [["set_2", "m2", "1"]]
    assert gap["value"].isna().all()
    assert set(gap["error"]) == {"not in the imported table"}
    summary = summarise(rows)
    lines = {line.split()[0]: line.split() for line in comparison_table(summary).splitlines() if line.strip()}
    assert lines["average"][1] != "-"
    assert lines["average"][2:] == ["-", "-"]
    part = summary.set_index(["dataset", "method"])
    assert part.loc[("set_2", "m2"), "failed"] == 1
    assert not part.loc[("set_2", "m2"), "bold"]
    assert ("set_1", "m1") not in part.index


# ---- directions ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", metrics.names())
def test_our_metrics_have_their_direction(name: str) -> None:
    assert metrics.direction(name) == metrics.meaning(name).higher_is_better


@pytest.mark.parametrize(
    ("name", "higher"),
    [
        ("roc_auc", True),
        ("test-acc", True),
        ("F1", True),
        ("metric_error", False),
        ("time_train_s", False),
        ("log_loss_val", False),
        ("score", None),
        ("error_of_accuracy", None),
        ("lossless", None),
    ],
)
def test_other_names_have_the_direction_of_their_words(name: str, higher: bool | None) -> None:
    assert metrics.direction(name) is higher


def test_rows_state_the_direction_of_unknown_metrics(tmp_path: Path) -> None:
    from advcli.reports import summarise

    frame = pd.DataFrame({"dataset": "d", "method": list("aaabbb"), "fold": [1, 2, 3] * 2, "points": [1.0, 2, 3, 4, 5, 7]})
    for direction, best in (("higher", "b"), ("lower", "a")):
        rows = from_frame(frame, tmp_path / direction, value="points", direction=direction).runs()
        summary = summarise(rows)
        assert summary.loc[summary["best"], "method"].tolist() == [best]
    both = pd.concat([ResultsFolder(tmp_path / name).runs() for name in ("higher", "lower")])
    with pytest.raises(ResultsError, match="rows of the metric points differ in whether higher values are better"):
        summarise(both)


def test_errors_are_known_where_the_best_value_is() -> None:
    metrics.declare(pd.DataFrame({"metric": ["roc_auc", "f1", "rmse"], "higher_is_better": [True, True, False]}))
    assert metrics.as_errors("accuracy", [[0.75]]) == pytest.approx(np.array([[0.25]]))
    assert metrics.as_errors("roc_auc", [[0.75]]) == pytest.approx(np.array([[0.25]]))
    assert metrics.as_errors("rmse", [[3.0]]) == pytest.approx(np.array([[3.0]]))
    assert metrics.as_errors("f1", [[87.0]]) is None
