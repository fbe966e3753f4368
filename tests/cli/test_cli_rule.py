"""loss.rule: predictions by the predictor's distribution, from the command line to a saved model."""

import numpy as np
import pandas as pd
import pytest

from advcli import SurrogateClassifier
from advcli.cli import main
from advcli.core.errors import ConfigError
from advcli.learners import learner_class
from advcli.models import read

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.digitize(X[:, 0] + np.random.default_rng(1).normal(size=60), [-0.7, 0.0, 0.7])


@pytest.mark.parametrize("rule", ["potentials", "predictor", "median", "mean"])
def test_the_parameter_is_the_rule_of_predict(rule):
    plain, ruled = SurrogateClassifier("absolute").fit(X, Y), SurrogateClassifier("absolute", rule=rule).fit(X, Y)
    np.testing.assert_array_equal(ruled.predict(X), plain.predict(X, rule=rule))
    np.testing.assert_array_equal(ruled.predict(X, rule="potentials"), plain.predict(X))
    np.testing.assert_array_equal(ruled.theta_, plain.theta_)


def test_the_rule_changes_predictions_and_nothing_else_of_a_cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["dataset=synthetic_ordinal", "loss=absolute", "hyper.C=0.01", "protocol.n_splits=2", "quiet=true"]
    for name, rule in (("plain", "null"), ("ruled", "median")):
        assert main([*words, f"loss.rule={rule}", f"name={name}"]) == 0
    plain, mean = (pd.read_csv(f"results/{name}/runs.csv") for name in ("plain", "ruled"))
    assert (plain["objective"] == mean["objective"]).all()
    assert (plain["cell"] != mean["cell"]).all()
    assert mean["options"].str.contains("loss.rule=median").all()
    assert not plain["options"].str.contains("rule").any()
    assert (plain["value"] != mean["value"]).any()


def test_a_saved_model_keeps_its_rule(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y).to_csv("rows.csv", index=False)
    given = ["dataset=csv", "dataset.path=rows.csv", "dataset.target=y", "dataset.ordered=true", "loss=absolute", "loss.rule=median"]
    assert main(["fit", *given, "hyper.C=1", "out=m.advcli"]) == 0
    model = read("m.advcli")
    assert model.estimator.rule == "median"
    rows = model.features(X)
    np.testing.assert_array_equal(model.predict(X), model.estimator.predict(rows, rule="median"))


@pytest.mark.parametrize(("rule", "said"), [("mode", "unknown prediction rule 'mode'"), ("mean", "no order")])
def test_a_rule_that_a_loss_does_not_have_is_refused_before_any_work(rule, said):
    name = "absolute" if rule == "mode" else "zero_one"
    with pytest.raises(ConfigError, match=said):
        learner_class(name).check({"name": name, "rule": rule}, {"name": "linear"}, {"name": "auto"}, 3)


def test_rows_that_are_no_classes_are_named_and_judged_as_such(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    kinds = np.array(["ant", "bee", "cat"])
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=kinds[np.minimum(Y, 2)])
    table.to_csv("rows.csv", index=False)
    (tmp_path / "prices.csv").write_text("price,cat,ant,bee\nant or bee,1,.2,.2\nant or cat,.2,.2,1\nbee or cat,.2,1,.2\n")
    given = ["dataset=csv", "dataset.path=rows.csv", "dataset.target=y", "loss=general", "loss.file=prices.csv", "hyper.C=1"]
    assert main(["fit", *given, "out=m.advcli"]) == 0
    said = capfd.readouterr().out
    assert "guarantee: predictions by rule=predictor cost at most" in said
    model = read("m.advcli")
    assert model.labels == ("ant or bee", "ant or cat", "bee or cat")
    assert list(model.table(X).filter(like="probability").columns) == [f"probability_{name}" for name in model.labels]
    assert "abstain" not in model.table(X)
    costs = pd.DataFrame([[0.2, 0.2, 1], [0.2, 1, 0.2], [1, 0.2, 0.2]], index=model.labels, columns=kinds)
    paid = costs.to_numpy()[[model.labels.index(label) for label in model.predict(X)], np.minimum(Y, 2)].mean()
    assert f"{paid:.4g} at the labels themselves" in said
    # a prediction that is no class is never the true class
    assert main([*given, "protocol.n_splits=2", "protocol.metrics=[error,mae]", "name=judged", "quiet=true"]) == 0
    rows = pd.read_csv("results/judged/runs.csv")
    assert (rows.loc[rows["metric"] == "error", "value"] == 1.0).all()
    assert rows.loc[rows["metric"] == "cost", "value"].between(0.2, 0.7).all()
    capfd.readouterr()
    assert main(["fit", *given, "loss.rule=potentials", "out=n.advcli"]) == 2
    assert "rule=potentials needs a prediction for each of the 3 classes" in capfd.readouterr().err


def test_a_matrix_of_classes_takes_the_rule_of_the_predictor(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.minimum(Y, 2)).to_csv("rows.csv", index=False)
    given = ["fit", "dataset=csv", "dataset.path=rows.csv", "dataset.target=y", "loss=general", "hyper.C=1"]
    prices = "[[-0.2,0.2,1],[0.2,1,0.2],[1,0.2,0.2]]"
    assert main([*given, f"loss.matrix={prices}", "loss.rule=predictor", "out=m.advcli"]) == 0
    out, err = capfd.readouterr()
    assert "rule=predictor" in out
    assert "the cost matrix has negative entries" in err
    assert main([*given, f"loss.matrix={prices}", "loss.predictions=[p,q,r]", "out=n.advcli"]) == 0
    assert "rule=predictor" in capfd.readouterr().out
    assert read("n.advcli").labels == ("p", "q", "r")
