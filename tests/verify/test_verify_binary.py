"""Bounds of reductions: they hold the certified values between them, and no dual numbers prove more than there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advcli.learners import learner_class
from advcli.verify.binary import NAMES, Reduction
from advcli.verify.bounds import ball
from advcli.verify.gap import Bounds, LearnedRows


def fitted(name: str, features: str = "linear", **options: Any) -> tuple[Any, ...]:
    """Return a fit, its checker, its rows as the checker maps them, its labels and weights."""
    random = np.random.default_rng(2)
    X = random.normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] + 0.5 * random.normal(size=40) > 0.4)
    weight = random.uniform(0.5, 2.0, 40)
    options_of_method = {} if name in ("ova", "ovo") else {"cost": "absolute"}
    model = learner_class(name)(lam=0.05, features=features, tol=1e-8, **options_of_method, **options).fit(X, y, weight)
    checker = Reduction({"name": name, **options_of_method, **options}, 3, list("abc"), True)
    mapped = checker.score_map({"name": features}, None, X)
    rows = model.rows_
    theta = model.theta_ if features == "linear" else np.vstack([model.theta_[rows], model.theta_[len(y) :]])
    return model, checker, mapped, y, weight, theta, model.solution_.R[rows]


def bounds(checker: Reduction, mapped: Any, y: Any, weight: Any, theta: Any, a: Any) -> Bounds:
    return checker.bounds(mapped, LearnedRows(y, weight, None, None), 0.05, {"theta": theta, "r": a})


@pytest.mark.parametrize("bias", ["regularised", "free"])
@pytest.mark.parametrize("features", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_the_certified_values(name: str, features: str, bias: str) -> None:
    model, checker, mapped, y, weight, theta, a = fitted(name, features, bias=bias)
    result = bounds(checker, mapped, y, weight, theta, a)
    for value, proved in ((model.certificate_.primal, result.primal), (model.certificate_.dual, result.dual)):
        assert proved.low - 1e-12 <= value <= proved.high + 1e-12
        assert proved.rad < 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_other_points_prove_less(name: str) -> None:
    model, checker, mapped, y, weight, theta, a = fitted(name)
    random = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 100.0):
        other = bounds(checker, mapped, y, weight, theta + scale * random.normal(size=theta.shape), a + scale * random.normal(size=a.shape))
        assert other.primal.high > model.certificate_.primal * (1 + 1e-9)
        assert other.dual.low < model.certificate_.dual
    # far outside its box is at its end
    assert np.isfinite(bounds(checker, mapped, y, weight, theta, np.full(a.shape, 1e9)).dual.low)


def test_a_dual_point_that_misses_the_constraint_of_a_free_bias_proves_less() -> None:
    model, checker, mapped, y, weight, theta, a = fitted("ova", bias="free")
    dual = bounds(checker, mapped, y, weight, theta, a).dual.low
    # all numbers of one side raised to their ends: a larger sum, which no bound may be made of
    raised = np.where((y[:, None] == np.arange(3)), 1.0, a)
    assert (raised.sum() - a.sum()) * 0.01 > 0
    proved = bounds(checker, mapped, y, weight, theta, raised).dual.low
    assert proved < model.certificate_.dual
    assert proved < dual


def test_arrays_of_other_shapes_are_told() -> None:
    _, checker, mapped, y, weight, theta, a = fitted("ovo")
    with pytest.raises(ValueError, match="r has the shape"):
        bounds(checker, mapped, y, weight, theta, a[:, :2])
    with pytest.raises(ValueError, match="theta has the shape"):
        bounds(checker, mapped, y, weight, theta[:2], a)


@pytest.mark.parametrize("name", NAMES)
def test_the_prediction_is_among_the_possible_ones_and_alone_where_scores_are_exact(name: str) -> None:
    model, checker, *_, theta, _ = fitted(name)
    X = np.random.default_rng(5).normal(size=(50, 3))
    possible = checker.possible_at(ball(model.binary_scores(X)), theta)
    assert possible[np.arange(50), model.predict(X)].all()
    assert (possible.sum(axis=1) == 1).all()
