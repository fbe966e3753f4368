"""`advcli.compare`: the rows of the command line on a frame, and their table."""

import numpy as np
import pandas as pd
import pytest

import advcli
from advcli.errors import AdvcliError, ConfigError
from advcli.evaluation import sweep

KEYS = {"protocol__n_splits": 2, "hyper__C": 1, "workers": 1}


@pytest.fixture
def frame(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    found = pd.DataFrame(random.normal(size=(45, 2)) / 3.0, columns=["age", "size"])
    return found.assign(grade=np.array(["low", "mid", "high"])[np.digitize(found["age"], [-0.15, 0.15])])


def test_the_rows_are_those_of_the_command_line(frame):
    found = advcli.compare(frame, target="grade", losses=["zero_one", {"name": "abstain", "alpha": 0.3}], folder="mine", **KEYS)
    frame.to_csv("mine_too.csv", index=False)
    cell = "dataset=csv dataset.path=mine_too.csv dataset.target=grade dataset.name=mine hyper.C=1 protocol.n_splits=2"
    rows = sweep([f"{cell} loss=zero_one", f"{cell} loss=abstain loss.alpha=0.3"], "other", workers=1, quiet=True)
    same = ["method", "split", "metric", "value", "objective"]
    pd.testing.assert_frame_equal(found.rows[same], rows[same])
    assert found.folder.joinpath("runs.csv").is_file()
    assert "zero_one linear" in repr(found)
    assert "abstain linear" in found.table
    assert "<td><b>" in found._repr_html_()
    again = advcli.compare(frame, target="grade", losses=["zero_one", {"name": "abstain", "alpha": 0.3}], folder="mine", **KEYS)
    pd.testing.assert_frame_equal(again.rows, found.rows)


def test_an_ordered_column_keeps_its_order(frame):
    ordered = frame.assign(grade=pd.Categorical(frame["grade"], ["low", "mid", "high"], ordered=True))
    by_column = advcli.compare(ordered, target="grade", losses=["absolute"], **KEYS)
    by_order = advcli.compare(frame, target="grade", losses=["absolute"], order=["low", "mid", "high"], **KEYS)
    assert list(by_column.rows["value"]) == list(by_order.rows["value"])
    with pytest.raises(AdvcliError, match="order"):
        advcli.compare(frame, target="grade", losses=["absolute"], **KEYS)


def test_a_frame_of_polars(frame):
    polars = pytest.importorskip("polars")
    given = polars.DataFrame({name: frame[name].tolist() for name in frame}).with_columns(
        polars.col("grade").cast(polars.Enum(["low", "mid", "high"]))
    )
    found = advcli.compare(given, target="grade", losses=["absolute"], **KEYS)
    assert list(found.rows["value"]) == list(
        advcli.compare(frame, target="grade", losses=["absolute"], order=["low", "mid", "high"], **KEYS).rows["value"]
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": "grad"}, "no column 'grad'; did you mean grade"),
        ({"losses": "cs"}, "must be a list"),
        ({"losses": []}, "at least one loss"),
        ({"losses": [{"alpha": 0.3}]}, "has no name"),
        ({"losses": ["zero"]}, "zero_one"),
        ({"protocol__n_split": 2}, "n_splits"),
    ],
)
def test_what_cannot_be_compared_is_one_line(frame, change, said):
    with pytest.raises(ConfigError, match=said) as error:
        advcli.compare(frame, **{"target": "grade", "losses": ["cs"], **change})
    assert "\n" not in str(error.value)
