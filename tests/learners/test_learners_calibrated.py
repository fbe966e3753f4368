"""Estimates of class probabilities: scikit-learn's own calibration of the same fits is the reference."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_score

from advcli import AdversarialClassifier, OrdinalAdversarialClassifier, models
from advcli.cli import main
from advcli.errors import ConfigError, StrategyWarning
from advcli.learners import calibrated
from advcli.learners.calibrated import METHODS


def drawn(k: int, n: int, seed: int = 0) -> tuple[Any, Any]:
    """Return rows of k classes that overlap."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % k
    return random.normal(size=(n, 3)) + 1.2 * np.eye(3)[y % 3] * (1 + y[:, None] // 3), y


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("loss", "k"), [("zero_one", 2), ("zero_one", 4), ("cs", 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_by_scikit_learn(method: str, loss: str, k: int, weighted: bool) -> None:
    X, y = drawn(k, 90)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=90) if weighted else None
    names = np.array(["d", "b", "a", "c"])[y]
    model = AdversarialClassifier(loss, tol=1e-9, calibrate=method).fit(X, names, weights)
    bare = AdversarialClassifier(loss, tol=1e-9, lam=model.lam_)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    reference = CalibratedClassifierCV(bare, method=method, cv=folds, ensemble=False).fit(X, names, weights)
    new, _ = drawn(k, 60, seed=2)
    np.testing.assert_allclose(model.predict_proba(new), reference.predict_proba(new), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(model.predict(new), bare.fit(X, names, weights).predict(new))
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_temperature_keeps_the_likeliest_class(k: int) -> None:
    X, y = drawn(k, 120)
    model = AdversarialClassifier(calibrate="temperature").fit(X, y)
    new, _ = drawn(k, 400, seed=3)
    np.testing.assert_array_equal(model.predict_proba(new).argmax(axis=1), model.predict(new))


@pytest.mark.parametrize("method", METHODS)
def test_estimates_are_better_than_the_strategy(method: str) -> None:
    X, y = drawn(3, 600)
    new, truth = drawn(3, 3000, seed=4)
    strategy = log_loss(truth, AdversarialClassifier().fit(X, y).predict_proba(new))
    estimate = log_loss(truth, AdversarialClassifier(calibrate=method).fit(X, y).predict_proba(new))
    assert estimate < np.log(3.0) < strategy, "the strategy is worse than to know nothing"


def test_the_fit_itself_is_the_same() -> None:
    X, y = drawn(3, 90)
    plain, model = AdversarialClassifier().fit(X, y), AdversarialClassifier(calibrate="sigmoid").fit(X, y)
    np.testing.assert_array_equal(plain.theta_, model.theta_)
    assert plain.certificate_.primal == model.certificate_.primal
    np.testing.assert_array_equal(model.predictor_distribution(X), plain.predict_proba(X))
    np.testing.assert_array_equal(clone(model).fit(X, y).predict_proba(X), model.predict_proba(X))


def test_losses_without_a_distribution_get_one() -> None:
    X, y = drawn(3, 90)
    assert not hasattr(AdversarialClassifier("ww"), "predict_proba")
    assert AdversarialClassifier("ww", calibrate="temperature").fit(X, y).predict_proba(X).shape == (90, 3)
    ordered = OrdinalAdversarialClassifier(features="threshold", calibrate="temperature").fit(X, y)
    assert ordered.predict_proba(X).shape == (90, 3)
    box = AdversarialClassifier(features_options={"moments": "box", "tolerance": 0.5}, calibrate="sigmoid").fit(X, y)
    assert box.predict_proba(X).shape == (90, 3)


def test_a_kernel_matrix_is_cut_on_both_sides() -> None:
    X, y = drawn(3, 60)
    options = {"C": 1.0, "tol": 1e-8, "calibrate": "temperature"}
    own = AdversarialClassifier(features="rbf", features_options={"gamma": 0.3}, **options).fit(X, y)
    given = AdversarialClassifier(features="precomputed", **options).fit(rbf_kernel(X, gamma=0.3), y)
    new, _ = drawn(3, 20, seed=5)
    np.testing.assert_allclose(given.predict_proba(rbf_kernel(new, X, gamma=0.3)), own.predict_proba(new), atol=1e-4)


def test_a_class_without_rows_has_probability_zero() -> None:
    X, y = drawn(3, 60)
    P = AdversarialClassifier(n_classes=4, calibrate="temperature").fit(X, np.where(y == 1, 3, y)).predict_proba(X)
    assert P.shape == (60, 4)
    assert (P[:, 1] == 0.0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_a_model_file_keeps_it(method: str, tmp_path: Path) -> None:
    X, y = drawn(3, 60)
    model = AdversarialClassifier(calibrate=method).fit(X, np.array(["x", "y", "z"])[y])
    models.save(model, tmp_path / "own.model")
    again = models.read(tmp_path / "own.model").estimator
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_refusals() -> None:
    X, y = drawn(3, 30)
    with pytest.raises(ConfigError, match="sigmoid"):
        AdversarialClassifier(calibrate="platt").fit(X, y)
    with pytest.raises(ConfigError, match="2 rows of every class, and 7 has one"):
        AdversarialClassifier(calibrate="sigmoid").fit(X, np.r_[y[:-1], 7])


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score"])
def test_a_scorer_of_estimates_is_told_once(scoring: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = drawn(2, 60)
    monkeypatch.setattr(calibrated, "_told", False)
    with pytest.warns(StrategyWarning, match="calibrate") as caught:
        cross_val_score(AdversarialClassifier(), X, y, scoring=scoring, cv=3)
    assert len([each for each in caught if issubclass(each.category, StrategyWarning)]) == 1


def test_other_callers_are_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = drawn(2, 60)
    monkeypatch.setattr(calibrated, "_told", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StrategyWarning)
        cross_val_score(AdversarialClassifier(), X, y, scoring="roc_auc", cv=3)
        cross_val_score(AdversarialClassifier(calibrate="sigmoid"), X, y, scoring="neg_log_loss", cv=3)
        AdversarialClassifier().fit(X, y).predict_proba(X)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    X, y = drawn(3, 90)
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=y).to_csv("rows.csv", index=False)
    return "dataset=csv dataset.path=rows.csv dataset.target=label hyper.C=1 protocol.n_splits=2 workers=1"


def test_a_sweep_judges_calibrated_probabilities(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"-m {table} loss=zero_one,dummy calibrate=null,temperature protocol.metrics=[log_loss,brier,ece] report=false name=own"
    assert main([*command.split(), "record.proofs=true"]) == 0
    assert "calibrate is for potentials: no part of the cells of dummy" in capsys.readouterr().err
    rows = pd.read_csv("results/own/runs.csv").query("loss == 'zero_one'")
    rows["calibrated"] = rows["options"].str.contains("loss.calibrate=temperature")
    values = rows.pivot_table(index=["metric", "split"], columns="calibrated", values="value")
    assert (values.loc["error", True] == values.loc["error", False]).all()
    assert (values.loc["log_loss", True] < values.loc["log_loss", False]).all()
    for column in ("objective", "dual_objective", "relative_gap"):
        same = rows.query("metric == 'error'").pivot_table(index="split", columns="calibrated", values=column)
        assert (same[True] == same[False]).all()
    assert main(["verify", "results=results/own"]) == 0
    assert "4 proved, 0 refuted" in capsys.readouterr().out


def test_a_search_by_log_loss_is_calibrated_too(table: str) -> None:
    command = f"{table} loss=zero_one calibrate=sigmoid protocol.metric=log_loss protocol.folds=2 name=searched"
    words = [word for word in command.split() if word != "hyper.C=1"]
    assert main([*words, "protocol.stage1.regularisation=[0.1,1]", "protocol.stage2.regularisation=[1]", "protocol.extend=null"]) == 0
    found = pd.read_csv("results/searched/search.csv")
    assert set(found["metric"]) == {"log_loss"}
    assert (found["value"] < 2.0).all()


def test_the_note_says_what_a_strategy_is(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*table.split(), "protocol.metrics=[log_loss]", "name=noted"]) == 0
    assert "strategy of a game" in capsys.readouterr().err
    assert main([*table.split(), "protocol.metrics=[log_loss]", "calibrate=sigmoid", "name=silent"]) == 0
    assert "strategy of a game" not in capsys.readouterr().err


def test_a_fitted_model_predicts_what_the_estimator_does(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for word in table.split() if not word.startswith(("protocol", "workers"))]
    assert main(["fit", *words, "calibrate=sigmoid", "out=own.model"]) == 0
    model = models.read("own.model")
    rows = pd.read_csv("rows.csv")
    X = model.standardiser.transform(rows.drop(columns="label").to_numpy())
    own = AdversarialClassifier(C=1.0, calibrate="sigmoid", random_state=model.estimator.random_state).fit(X, rows["label"].to_numpy())
    expected = own.predict_proba(X)
    np.testing.assert_array_equal(model.estimator.probabilities(X), expected)
    assert main(["predict", "model=own.model", "input=rows.csv", "out=predictions.csv"]) == 0
    shares = pd.read_csv("predictions.csv").filter(like="probability")
    np.testing.assert_allclose(shares.to_numpy(), expected, rtol=1e-12)
    assert main(["model", "show", "own.model"]) == 0
    assert "estimated, by calibrate=sigmoid" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "said"), [
    ("loss=at calibrate=sigmoid dataset.order=[0,1,2]", "potentials of a surrogate loss"),
    ("loss=logistic calibrate=sigmoid", "probabilities of its own"),
    ("calibrate=platt", "sigmoid"),
])  # fmt: skip
def test_the_command_line_refuses(table: str, words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*table.split(), *words.split(), "name=refused"]) == 2
    assert said in capsys.readouterr().err
    assert not Path("results/refused").exists()
