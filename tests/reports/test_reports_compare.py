"""`advcli.compare`: the rows of the command line on a frame, and their table."""

import numpy as np
import pandas as pd
import pytest

import advcli
from advcli.core.errors import AdvcliError, ConfigError
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


def values(frame, where, target="grade", **keys):
    """Return what is measured under one name of the data, by which rows are split."""
    return list(advcli.compare(frame, target=target, folder=f"{where}/mine", **{"losses": ["zero_one"], **KEYS, **keys}).rows["value"])


def test_numbers_are_names(frame):
    wanted = values(frame, "wanted")
    for target in (2, "2"):
        assert values(frame.set_axis([0, 1, 2], axis=1), f"{target!r}", target) == wanted
    with pytest.raises(ConfigError, match="2 columns '2'; rename them"):
        advcli.compare(frame.assign(more=1.0).set_axis([0, 1, 2, "2"], axis=1), target=2, **KEYS)
    with pytest.raises(ConfigError, match="no column '7'; choose one of 0, 1, 2"):
        advcli.compare(frame.set_axis([0, 1, 2], axis=1), target=7, **KEYS)


NAMES = ["${x}", "\\${oc.env:HOME}", "a\\\\${x}", "class*", "a,b", "[a]", "'q'", "null", "*"]


@pytest.mark.parametrize("name", NAMES)
def test_any_text_is_a_name(frame, name):
    """What a name holds is no interpolation, no pattern and no syntax, for the target and for what else a key names."""
    wanted, renamed = values(frame, "wanted"), frame.rename(columns={"grade": name})
    assert values(renamed, "target", name) == wanted
    assert values(renamed, "target", name) == wanted
    ordered = {"losses": ["absolute"], "order": ["low", "mid", "high"]}
    assert values(renamed, "ordered", name, **ordered) == values(frame, "wanted ordered", **ordered)
    assert values(frame.assign(**{name: "text"}), "dropped", dataset__drop=[name]) == wanted


def test_text_becomes_categories(frame):
    frame = frame.assign(colour=["red", "blue", "green"] * 15)
    assert values(frame, "found") == values(frame, "wanted", dataset__categorical=["colour"])


@pytest.mark.parametrize(
    ("change", "keys", "said"),
    [
        ({"age": [np.nan] + [1.0] * 44}, {}, r'fill it with dataset__missing="median".*use dataset__drop=\[\'age\'\]'),
        ({"grade": [None] + ["low", "high"] * 22}, {}, "has no value in row 1"),
        ({}, {"dataset__missing": "medain"}, "dataset__missing"),
        ({"age": [np.nan] + [1.0] * 44, "grade": [None] + ["low", "high"] * 22}, {}, "dataset__missing"),
        ({}, {"losses": ["absolute"]}, "order"),
        ({}, {"losses": ["zero_one"], "features": "nystrom", "solver": "block"}, "unknown solver 'block'"),
    ],
)
def test_a_refused_call_leaves_nothing(frame, tmp_path, change, keys, said):
    with pytest.raises(AdvcliError, match=said) as error:
        advcli.compare(frame.assign(**change), target="grade", **{**KEYS, **keys})
    assert not list(tmp_path.iterdir())
    assert "dataset." not in str(error.value)
    assert str(tmp_path) not in str(error.value)
    with pytest.raises(AdvcliError):
        advcli.compare(frame.assign(**change), target="grade", folder="some/where/else", **{**KEYS, **keys})
    assert not list(tmp_path.iterdir())
    before = tmp_path / "mine.csv"
    before.write_text("kept")
    with pytest.raises(AdvcliError):
        advcli.compare(frame.assign(**change), target="grade", folder="mine", **{**KEYS, **keys})
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]
    assert before.read_text() == "kept"


class Lazy:
    """What a LazyFrame of polars is to a caller: columns, and rows only when it is collected."""

    def __init__(self, frame):
        self.columns, self.collect = list(frame.columns), lambda: frame


def test_lazy_frames_are_collected(frame):
    assert values(Lazy(frame), "found") == values(frame, "wanted")
    X, y = frame[["age", "size"]], frame["grade"]
    fitted = advcli.AdversarialClassifier(C=1.0).fit(X, y)
    lazily = advcli.AdversarialClassifier(C=1.0).fit(Lazy(X), y)
    assert (lazily.predict(Lazy(X)) == fitted.predict(X)).all()
    with pytest.raises(ConfigError, match="list has no columns; give a DataFrame"):
        advcli.compare([1, 2], target="grade")
