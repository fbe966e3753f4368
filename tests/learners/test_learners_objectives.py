"""Objectives for boosters and networks: values and gradients by differences, starts, rules, and the packages themselves."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from advcli import objectives
from advcli.core.errors import ConfigError, DataError

COSTS = [[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [1.0, 3.0, 0.0]]
LOSSES: list[tuple[Any, dict[str, Any]]] = [
    ("zero_one", {}),
    ("absolute", {}),
    ("abstain", {"alpha": 0.3}),
    (COSTS, {}),
    ("ww", {}),
    ("cs", {}),
    ("llw", {}),
    ("top_k", {"K": 2}),
    ("entropy", {"alpha": 1.5}),
]


@pytest.mark.parametrize(("loss", "options"), LOSSES, ids=lambda value: str(value)[:12])
def test_gradients_are_those_of_the_values_and_the_hessian_is_bounded(loss: Any, options: dict[str, Any]) -> None:
    random = np.random.default_rng(1)
    smoothed = objectives.SmoothedLoss(loss, 3, mu=0.2, loss_options=options)
    F, y = random.normal(size=(30, 3)), random.integers(0, 3, 30)
    value, R = smoothed(F, y)
    step = 1e-5
    for j, move in enumerate(step * np.eye(3)):
        ahead, behind = smoothed(F + move, y), smoothed(F - move, y)
        slope = (ahead[0] - behind[0]) / (2.0 * step)
        assert np.abs(slope - R[:, j]).max() < step / smoothed.mu + 1e-7  # a gradient that moves by at most 1/mu a unit
        if not smoothed.loss.smooth:
            assert np.abs(ahead[1] - behind[1]).max() <= 2.0 * step / smoothed.mu * 1.001
    plain = smoothed.loss.value(F, y)
    assert (value <= plain + 1e-12).all()
    if smoothed.loss.simplex and not smoothed.loss.smooth:
        assert (value >= plain - 0.5 * smoothed.mu).all()  # no distribution is farther than 1 from the uniform one


def test_starts_minimise_the_mean_over_rows_alike() -> None:
    y = np.repeat([0, 1, 2], [70, 20, 10])
    for loss in ("absolute", "entropy", COSTS):
        smoothed = objectives.SmoothedLoss(loss, 3)
        start = smoothed.start(y)
        assert start.mean() == pytest.approx(0.0, abs=1e-12)
        least = smoothed(np.tile(start, (100, 1)), y)[0].mean()
        for move in np.random.default_rng(0).normal(size=(20, 3)):
            assert smoothed(np.tile(start + 0.1 * move, (100, 1)), y)[0].mean() >= least - 1e-6
    P = np.exp(objectives.SmoothedLoss("entropy", 3).start(y))
    np.testing.assert_allclose(P / P.sum(), [0.7, 0.2, 0.1], atol=1e-4)
    weighted = objectives.SmoothedLoss("entropy", 3).start(np.array([0, 1, 2]), weight=[7.0, 2.0, 1.0])
    np.testing.assert_allclose(weighted, objectives.SmoothedLoss("entropy", 3).start(y), atol=1e-4)


def test_predictions_follow_the_rule() -> None:
    F = np.array([[0.3, 0.29, 0.0], [3.0, 0.0, 0.0]])
    assert objectives.predict("abstain", F, {"alpha": 0.2}).tolist() == [3, 0]
    assert objectives.predict(COSTS, F, rule="potentials").tolist() == [0, 0]
    assert objectives.predict("ww", F).tolist() == [0, 0]
    made = objectives.lightgbm("absolute", 3)
    surrogate, cost = (value for _, value, _ in made.metric(np.array([2, 0]), F, np.array([3.0, 1.0])))
    assert cost == pytest.approx(np.abs(made.predict(F) - [2, 0]) @ [0.75, 0.25])
    assert surrogate == pytest.approx(made(F, np.array([2, 0]))[0] @ [0.75, 0.25])
    assert made.metric(np.array([2, 0]), F, np.zeros(0)) == made.metric(np.array([2, 0]), F)


def test_both_forms_and_weights() -> None:
    class Rows:
        def get_label(self) -> np.ndarray:
            return np.array([0.0, 2.0])

        def get_weight(self) -> np.ndarray:
            return np.array([1.0, 3.0])

    F = np.random.default_rng(2).normal(size=(2, 3)).astype(np.float32)
    for made in (objectives.lightgbm("zero_one", 3), objectives.xgboost("zero_one", 3)):
        native, direct = made.objective(F, Rows()), made.objective(np.array([0, 2]), F, np.array([1.0, 3.0]))
        for one, other in zip(native, direct, strict=True):
            np.testing.assert_array_equal(one, other)
        plain = made.objective(np.array([0, 2]), np.asfortranarray(F))
        np.testing.assert_array_equal(native[0], plain[0] * [[1.0], [3.0]])
    first, second = objectives.catboost("zero_one", 3).calc_ders_multi(F[0].tolist(), 0.0, 2.0)
    np.testing.assert_allclose(first, -2.0 * objectives.SmoothedLoss("zero_one", 3)(F[:1], np.array([0]))[1][0])
    assert np.array(second).shape == (3, 3)


def test_lightgbm_learns() -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed: pip install lightgbm")
    X, y = load_iris(return_X_y=True)
    made = objectives.lightgbm("zero_one", 3)
    model = lightgbm.LGBMModel(objective=made.objective, num_class=3, n_estimators=20, verbose=-1, n_jobs=1)
    model.fit(X, y, init_score=np.tile(made.start(y), (150, 1)), eval_set=[(X, y)], eval_metric=made.metric)
    assert (made.predict(model.predict(X, raw_score=True)) == y).mean() > 0.95
    params = {"objective": made.objective, "num_class": 3, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(params, lightgbm.Dataset(X, y), 20)
    assert (made.predict(booster.predict(X, raw_score=True)) == y).mean() > 0.95


def test_xgboost_learns() -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed: pip install xgboost")
    X, y = load_iris(return_X_y=True)
    made = objectives.xgboost("zero_one", 3)
    rows = xgboost.DMatrix(X, y)
    params = {"num_class": 3, "base_score": 0.0, "nthread": 1, "disable_default_eval_metric": True}
    booster = xgboost.train(params, rows, 20, obj=made.objective, custom_metric=made.metric, evals=[(rows, "all")], verbose_eval=False)
    assert (made.predict(booster.predict(rows, output_margin=True)) == y).mean() > 0.95


def test_catboost_learns() -> None:
    catboost = pytest.importorskip("catboost", reason="catboost is not installed: pip install catboost")
    X, y = load_iris(return_X_y=True)
    made = objectives.catboost("zero_one", 3)
    model = catboost.CatBoostClassifier(
        loss_function=made,
        eval_metric="MultiClass",
        iterations=20,
        classes_count=3,
        verbose=False,
        allow_writing_files=False,
        thread_count=1,
    )
    model.fit(X, y)
    assert (made.predict(model.predict(X, prediction_type="RawFormulaVal")) == y).mean() > 0.9


def test_torch_learns_and_gradients_are_exact() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    X, y = load_iris(return_X_y=True)
    scores = torch.tensor(np.random.default_rng(0).normal(size=(5, 3)), requires_grad=True)
    labels = torch.tensor([0, 1, 2, 1, 0])
    for reduction in ("mean", "sum", "none"):
        assert torch.autograd.gradcheck(objectives.torch("absolute", 3, reduction=reduction), (scores, labels), eps=1e-6, atol=1e-4)
    rows, targets = torch.tensor((X - X.mean(axis=0)) / X.std(axis=0), dtype=torch.float32), torch.tensor(y)
    torch.manual_seed(0)
    model, loss = torch.nn.Linear(4, 3), objectives.torch("zero_one", 3)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(100):
        optimiser.zero_grad()
        loss(model(rows), targets).backward()
        optimiser.step()
    assert (objectives.predict("zero_one", model(rows).detach().numpy()) == y).mean() > 0.9


def test_bad_input_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    made = objectives.lightgbm("zero_one", 3)
    F = np.zeros((2, 3))
    for call, kind, words in (
        (lambda: objectives.lightgbm("zero_one", 1), ConfigError, "n_classes"),
        (lambda: objectives.lightgbm("zero_one", 3, mu=0.0), ConfigError, "mu"),
        (lambda: objectives.lightgbm("zero_one", 3, rule="mean"), ConfigError, "order"),
        (lambda: objectives.xgboost(COSTS, 4), ConfigError, "4 classes"),
        (lambda: made.objective(np.array([0, 3]), F), DataError, "from 0 to 2"),
        (lambda: made.objective(np.array([0.5, 1.0]), F), DataError, "whole number"),
        (lambda: made.objective(np.array([0, 1]), F[:, :2]), DataError, r"shape \(n, 3\)"),
        (lambda: made.objective(np.array([0, 1]), F * np.nan), DataError, "finite"),
        (lambda: objectives.predict("zero_one", [1.0, 2.0]), DataError, "shape"),
        (lambda: objectives.torch("zero_one", 3, reduction="median"), ConfigError, "reduction|PyTorch"),
    ):
        with pytest.raises(kind, match=words):
            call()
    found = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "torch":
            raise ImportError(name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ConfigError, match="pip install torch"):
        objectives.torch("zero_one", 3)
