"""loss.rule: predictions by the predictor's distribution, from the command line to a saved model."""

import numpy as np
import pandas as pd
import pytest

from advcli import SurrogateClassifier
from advcli.cli import main
from advcli.errors import ConfigError
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
        learner_class(name).check({"name": name, "rule": rule}, {"name": "linear"}, {"name": "auto"}, True, 3)
