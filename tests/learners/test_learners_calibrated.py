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
from support.exact_tables import exact

from advcli import AdversarialClassifier, OrdinalAdversarialClassifier, OrdinalClassifier, models
from advcli.cli import main
from advcli.core.errors import ConfigError, StrategyWarning
from advcli.learners import calibrated
from advcli.learners.calibrated import METHODS
from advcli.learners.scaling import TOLERANCE, VectorScaling


def drawn(k: int, n: int, seed: int = 0) -> tuple[Any, Any]:
    """Return rows of k classes that overlap."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % k
    return random.normal(size=(n, 3)) + 1.2 * np.eye(3)[y % 3] * (1 + y[:, None] // 3), y


@pytest.mark.parametrize("method", [method for method in METHODS if method != "vector"])
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
    ordered = "dataset.order=[0,1,2]"
    for name, words in enumerate((["calibrate=sigmoid"], ["loss=entropy"], ["loss=at", "loss.alpha=1", ordered])):
        assert main([*table.split(), "protocol.metrics=[log_loss]", *words, f"name=silent{name}"]) == 0
        assert "strategy of a game" not in capsys.readouterr().err


def test_a_fitted_model_predicts_what_the_estimator_does(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for word in table.split() if not word.startswith(("protocol", "workers"))]
    assert main(["fit", *words, "calibrate=sigmoid", "out=own.model"]) == 0
    model = models.read("own.model")
    rows = exact("rows.csv")
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
    ("loss=ova calibrate=sigmoid", "potentials of a surrogate loss or a threshold model"),
    ("loss=logistic calibrate=sigmoid", "probabilities of its own"),
    ("calibrate=platt", "isotonic"),
])  # fmt: skip
def test_the_command_line_refuses(table: str, words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*table.split(), *words.split(), "name=refused"]) == 2
    assert said in capsys.readouterr().err
    assert not Path("results/refused").exists()


# ---- vector scaling ---------------------------------------------------------------------------------------------------
SHARES = np.array([0.6, 0.3, 0.08, 0.02])


def unequal(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Return rows of four classes of unequal shares that overlap."""
    random = np.random.default_rng(seed)
    y = random.choice(4, size=n, p=SHARES)
    return random.normal(size=(n, 2)) + 1.2 * np.array([[0, 0], [2, 0], [0, 2], [2, 2]])[y], y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("learner", [AdversarialClassifier(), OrdinalClassifier(), AdversarialClassifier("absolute")], ids=repr)
def test_vector_scaling_gives_every_class_its_share(learner: Any, weighted: bool) -> None:
    """Where the gradient in the biases is 0, the mean probability of a class over the rows is its share."""
    X, y = unequal(400)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=400) if weighted else None
    model = clone(learner).set_params(calibrate="vector").fit(X, y, weights)
    found = model.calibration_
    P = found.fitted.predict_proba(found.scores)
    share = np.bincount(y, weights=weights) / (400 if weights is None else weights.sum())
    np.testing.assert_allclose(np.average(P, axis=0, weights=weights), share, rtol=0, atol=2e-9)
    assert found.fitted.gradient <= TOLERANCE


def test_a_rare_class_gets_its_share_of_new_rows() -> None:
    (X, y), (new, truth) = unequal(600), unequal(5000, seed=1)
    P, Q = (AdversarialClassifier(calibrate=method).fit(X, y).predict_proba(new) for method in ("vector", "temperature"))
    np.testing.assert_allclose(P.mean(axis=0), SHARES, atol=0.03)
    assert log_loss(truth, P) < log_loss(truth, Q)
    assert log_loss(truth, P) < log_loss(truth, AdversarialClassifier(calibrate="sigmoid").fit(X, y).predict_proba(new))


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("apart", [0.0, 1.0, 50.0], ids=["noise", "overlap", "separate"])
def test_vector_scaling_is_the_minimum_of_its_module(k: int, apart: float, scale: float) -> None:
    """No gradient of the function that the module writes down is left, on scores that tell nothing and on ones that separate."""
    random = np.random.default_rng(k)
    y = np.arange(60) % k
    F = random.normal(size=(60, k)) + apart * np.eye(k)[y]
    weights = random.integers(0, 3, size=60) + (np.arange(60) < k)
    found = VectorScaling.of(scale * F, y, weights.astype(float))
    P, n = found.predict_proba(scale * F), (weights > 0).sum()
    share = np.bincount(y, weights=weights) / weights.sum()
    T = (1.0 - 1.0 / (n + 2.0)) * np.eye(k)[y] + share / (n + 2.0)
    C = F - F.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(weights @ (P - T) / weights.sum(), 0.0, atol=1e-8)
    np.testing.assert_allclose(weights @ ((P - T) * C) / weights.sum() / np.abs(C).max(), 0.0, atol=1e-8)
    shifted = found.predict_proba(scale * (F + random.normal(size=(60, 1))))
    np.testing.assert_allclose(shifted, P, rtol=0, atol=1e-8)


def test_scores_that_are_all_equal_give_the_shares() -> None:
    y = np.repeat([0, 1, 2], [6, 3, 1])
    found = VectorScaling.of(np.full((10, 3), 4.0), y, np.r_[np.ones(9), 0.0])
    np.testing.assert_allclose(found.predict_proba(np.zeros((1, 3))), [[2 / 3, 1 / 3, 0.0]], atol=1e-9)


def test_more_classes_than_vector_scaling_takes_are_refused_before_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = drawn(3, 30)
    monkeypatch.setattr(calibrated, "MOST_CLASSES", 2)
    monkeypatch.setattr(AdversarialClassifier, "bind", None)
    with pytest.raises(ConfigError, match="at most 2 classes; choose calibrate=temperature"):
        AdversarialClassifier(calibrate="vector").fit(X, y)


# ---- threshold models -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("calibrate", METHODS)
@pytest.mark.parametrize("method", ["at", "it", "red_th", "svorim", "svorex"])
def test_threshold_models_have_estimates(method: str, calibrate: str, tmp_path: Path) -> None:
    X, y = drawn(3, 60)
    names = np.array(["low", "mid", "high"])
    plain, model = (OrdinalClassifier(method=method, order=names, calibrate=each).fit(X, names[y]) for each in (None, calibrate))
    assert not hasattr(plain, "predict_proba")
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert log_loss(names[y], P) < np.log(3.0)
    models.save(model, tmp_path / "own.model")
    np.testing.assert_array_equal(models.load(tmp_path / "own.model").predict_proba(X), P)


def test_the_command_line_estimates_for_threshold_models(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"{table} dataset.ordered=true loss=at report=false record.proofs=true"
    assert main([*command.split(), "protocol.metrics=[log_loss]", "name=own"]) == 2
    assert "estimate it by calibrate=vector" in capsys.readouterr().err
    assert main([*command.split(), "name=plain"]) == 0
    assert main([*command.split(), "protocol.metrics=[mae,log_loss]", "calibrate=vector", "name=own"]) == 0
    rows, plain = (pd.read_csv(f"results/{name}/runs.csv") for name in ("own", "plain"))
    for column in ("value", "objective", "dual_objective", "relative_gap"):
        assert (rows.query("metric == 'mae'")[column].to_numpy() == plain.query("metric == 'mae'")[column].to_numpy()).all()
    assert (rows.query("metric == 'log_loss'")["value"] < np.log(3.0)).all()
    assert main(["verify", "results=results/own"]) == 0
    words = [word for word in table.split() if not word.startswith(("protocol", "workers"))]
    assert main(["fit", *words, "dataset.ordered=true", "loss=at", "calibrate=vector", "out=own.model"]) == 0
    assert main(["predict", "model=own.model", "input=rows.csv", "out=predictions.csv"]) == 0
    shares = pd.read_csv("predictions.csv").filter(like="probability")
    np.testing.assert_allclose(shares.to_numpy(), models.load("own.model").predict_proba(pd.read_csv("rows.csv")), rtol=1e-12)
