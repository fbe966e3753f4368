"""Pictures: the numbers that are drawn against closed forms and other fits, and the files."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from advcli import AdversarialClassifier
from advcli.cli import main
from advcli.core.errors import ConfigError
from advcli.reports.pictures import pictures
from advcli.reports.pictures.boundaries import two_columns

pytestmark = pytest.mark.usefixtures("elsewhere")

pytest.importorskip("matplotlib", reason="drawing is optional: matplotlib is not installed")


def drawn(stem: str, *words: str) -> pd.DataFrame:
    """Draw and return the table of a picture."""
    assert main(["report", *words]) == 0
    return pd.read_csv(f"results/{stem}.csv", dtype={"prediction": str, "truth": str, "class": str})


# ---- losses -----------------------------------------------------------------------------------------------------------
def test_a_matrix_is_that_of_the_loss() -> None:
    table = drawn("loss_matrix_absolute", "figure=loss_matrix", "loss=absolute", "draw.classes=5")
    assert len(table) == 25
    assert (table["cost"] == (table["prediction"].astype(int) - table["truth"].astype(int)).abs()).all()
    table = drawn("loss_matrix_abstain", "figure=loss_matrix", "loss=abstain", "loss.alpha=0.2", "draw.classes=3")
    assert set(table.loc[table["prediction"] == "abstain", "cost"]) == {0.2}
    classes = table[table["prediction"] != "abstain"]
    assert (classes["cost"] == (classes["prediction"] != classes["truth"])).all()
    table = drawn("loss_matrix_general", "figure=loss_matrix", "loss=general", "loss.matrix=[[0,1,4],[2,0,1]]")
    assert table["cost"].tolist() == [0, 1, 4, 2, 0, 1]


def test_a_matrix_that_needs_the_data() -> None:
    table = drawn("loss_matrix_tree_distance", "figure=loss_matrix", "loss=tree_distance", "dataset=synthetic_hierarchy")
    costs = table.pivot_table(index="prediction", columns="truth", values="cost")
    assert len(costs) == len(costs.columns) > 10
    assert (np.diag(costs) == 0).all()
    assert (costs.to_numpy() == costs.to_numpy().T).all()


def test_curves_of_two_classes() -> None:
    """The closed forms: the game over {0, 1}, the hinge, the hinge of Bartlett and Wegkamp's kind, the logistic loss."""
    table = drawn("loss_curves", "figure=loss_curves", "draw.losses=[zero_one,cs,ww,abstain]", "loss=abstain", "loss.alpha=0.3")
    z = table["margin"]
    expected = {
        "zero_one": np.maximum(0, np.maximum(0.5 * (1 - z), -z)),
        "cs": np.maximum(0, 1 - z),
        "ww": np.maximum(0, 1 - z),
        "logistic": np.log1p(np.exp(-z)),
        "error": (z < 0).astype(float),
    }
    for alpha in (0.2, 0.3, 0.5):
        expected[f"abstain, alpha = {alpha:g}"] = np.max([0 * z, alpha * (1 - z), alpha - (1 - alpha) * z, -z], axis=0)
    assert set(table["loss"]) == set(expected)
    for name, value in expected.items():
        of = table["loss"] == name
        np.testing.assert_allclose(table.loc[of, "value"], value[of], rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_surface_has_every_true_label() -> None:
    table = drawn("loss_surface_cs_2", "figure=loss_surface", "loss=cs")
    first, second = table["f_1 - f_2"], table["f_3 - f_2"]
    np.testing.assert_allclose(table["value"], np.maximum(0, 1 + np.maximum(first, second)), atol=1e-6)
    assert [path.name for path in sorted(Path("results").glob("*.png"))] == [f"loss_surface_cs_{at}.png" for at in (1, 2, 3)]


# ---- fits -------------------------------------------------------------------------------------------------------------
def test_regions_are_those_of_a_fit_in_two_features() -> None:
    table = drawn("boundaries_iris", "figure=boundaries", "draw.losses=[zero_one,logistic,dummy]", "draw.C=[10,1000]", "solver.tol=1e-6")
    assert list(table) == [
        "petal length (cm)",
        "petal width (cm)",
        *(f"{a} C={b}" for a in ("zero_one", "logistic") for b in (10, 1000)),
        "dummy",
    ]
    data = load_iris()
    X, names, grid = data.data[:, 2:], data.target_names[data.target], table.iloc[:, :2].to_numpy()
    for C in (10, 1000):
        for name, estimator in (("zero_one", AdversarialClassifier(C=C, tol=1e-6)), ("logistic", LogisticRegression(C=C, max_iter=1000))):
            alone = make_pipeline(StandardScaler(), estimator).fit(X, names).predict(grid)
            assert np.mean(alone == table[f"{name} C={C}"]) > 0.995, "all but points on a border"
    assert table["dummy"].nunique() == 1


def test_what_abstains_has_a_region() -> None:
    words = ["figure=boundaries", "loss=abstain", "loss.alpha=0.1", "draw.losses=[abstain]", "draw.C=[1]"]
    assert "abstain" in set(drawn("boundaries_iris", *words)["abstain C=1"])


def test_the_two_columns() -> None:
    data = load_iris()
    names = tuple(data.feature_names)
    assert two_columns(data.data, data.target, names, None) == [2, 3]
    assert two_columns(data.data, data.target, names, (names[3], names[0])) == [3, 0]
    constant = np.column_stack([np.ones(150), data.data[:, 0], np.zeros(150), data.data[:, 1]])
    assert two_columns(constant, data.target, ("a", "b", "c", "d"), None) == [1, 3]
    for wanted, said in (((names[0], "petal"), "no feature 'petal'"), ((names[0],), "must name two"), ((names[0],) * 2, "must name two")):
        with pytest.raises(ConfigError, match=said):
            two_columns(data.data, data.target, names, wanted)
    with pytest.raises(ConfigError, match="needs two features"):
        two_columns(data.data[:, :1], data.target, names[:1], None)


def test_thresholds_count_the_rows_and_cut_where_the_fit_does() -> None:
    from advcli.data import load as load_data
    from advcli.learners.surrogate import SurrogateClassifier

    words = ["figure=thresholds", "dataset=synthetic_ordinal", "loss=absolute", "features=threshold", "hyper.C=1", "solver.tol=1e-8"]
    table = drawn("thresholds_synthetic_ordinal_absolute", *words)
    data = load_data({"name": "synthetic_ordinal", "source": "synthetic", **_options("synthetic_ordinal")}, Path())
    rows = table[table["kind"] == "rows"]
    assert rows.groupby("class")["rows"].sum().tolist() == np.bincount(data.y).tolist()
    X = StandardScaler().fit_transform(data.X)
    model = SurrogateClassifier("absolute", features="threshold", C=1.0, tol=1e-8).fit(X, data.y)
    eta = table.loc[table["kind"] == "threshold", "from"].to_numpy()
    np.testing.assert_allclose(eta, model.theta_[X.shape[1] :], atol=1e-3)
    # where thresholds are in order, a row's class is how many of them lie below w.x
    place = X @ model.theta_[: X.shape[1]]
    assert (np.diff(eta) > 0).all()
    np.testing.assert_array_equal((place[:, None] > model.theta_[X.shape[1] :]).sum(axis=1), model.predict_codes(X))
    for name, part in rows.groupby("class"):
        edges = [*part["from"], part["to"].iloc[-1]]
        counts = np.histogram(place[data.y == list(map(str, data.classes)).index(name)], edges)[0]
        assert np.abs(counts - part["rows"]).sum() <= 4, "all but rows at an edge"


def test_reliability_is_that_of_the_recorded_splits() -> None:
    """The bins hold the test rows of all splits, and make up the calibration error that a run records."""
    chosen = ["loss=logistic", "loss.options.C=1", "protocol.n_splits=1"]
    table = drawn("reliability_iris", "figure=reliability", *chosen, "draw.losses=[logistic]")
    assert main(["dataset=iris", *chosen, "protocol.metrics=[ece]", "name=beside"]) == 0
    recorded = pd.read_csv("results/beside/runs.csv").set_index("metric")["value"]
    assert table["rows"].sum() == 45
    error = (table["rows"] * (table["accuracy"] - table["confidence"]).abs()).sum() / 45
    assert error == pytest.approx(recorded["ece"], rel=1e-9)
    assert (table["rows"] * table["accuracy"]).sum() == pytest.approx(45 * (1 - recorded["error"]))


def _options(name: str) -> dict[str, object]:
    from advcli.config import check
    from advcli.config.composing import compose_cells

    _, (config,) = compose_cells([f"dataset={name}"], {})
    return check(config).dataset


# ---- files ------------------------------------------------------------------------------------------------------------
def calls() -> Iterator[list[str]]:
    yield ["figure=loss_matrix"]
    yield ["figure=loss_curves"]
    yield ["figure=loss_surface"]
    yield ["figure=boundaries", "draw.C=[1]", "draw.losses=[zero_one]"]
    yield ["figure=thresholds", "dataset=synthetic_ordinal", "features=threshold", "loss=absolute", "hyper.C=1"]
    yield ["figure=reliability", "loss=zero_one", "hyper.C=1", "protocol.n_splits=2"]


def test_every_picture_is_called() -> None:
    plugged = {name for name in pictures if pictures.get(name).make.__module__.startswith("searches_")}  # by other tests
    assert {words[0].partition("=")[2] for words in calls()} == set(pictures) - plugged


@pytest.mark.parametrize("words", list(calls()), ids=lambda words: words[0])
def test_files_are_whole_and_the_same_again(words: list[str]) -> None:
    kept = []
    for _ in range(2):
        assert main(["report", *words]) == 0
        kept.append({path.name: path.read_bytes() for path in Path("results").iterdir()})
    assert kept[0] == kept[1]
    assert {Path(name).suffix for name in kept[0]} == {".csv", ".png", ".svg"}
    for name, content in kept[0].items():
        if name.endswith(".png"):
            assert struct.unpack(">I", content[16:20])[0] == 1200
        if name.endswith(".svg"):
            assert ET.fromstring(content).tag.endswith("svg")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["figure=boundary"], "unknown figure 'boundary': did you mean boundaries"),
        (["figure=loss_matrix", "loss=ww"], "figure=loss_matrix needs an adversarial loss; loss=ww is no game over a matrix"),
        (["figure=loss_matrix", "loss=uma"], "loss=uma is no game over a matrix"),
        (["figure=thresholds"], "choose features=threshold"),
        (["figure=reliability", "loss=ww"], "loss=ww needs a distribution over the classes"),
        (["figure=boundaries", "draw.columns=[a,b]"], "draw.columns: no feature 'a'"),
        (["figure=boundaries", "draw.losses=[zero_on]"], "zero_on"),
        (["figure=boundaries", "draw.C=[-1]"], "draw.C=[-1] is not valid"),
        (["figure=boundaries", "draw.C=[]"], "draw.C=[] is empty"),
        (["figure=boundaries", "draw.typo=1"], "unknown key 'draw.typo'"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *words]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1, err
    assert said in err
    assert not Path("results").exists()
