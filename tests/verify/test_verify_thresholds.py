"""The checker's bounds of threshold models hold for any parameters and any dual point, and its scores are the model's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli import OrdinalClassifier
from advcli.verify.gap import LearnedRows
from advcli.verify.thresholds import ThresholdModel

MODELS = (
    {"method": "at"},
    {"method": "it"},
    {"method": "it", "ordered": True},
    {"method": "at", "alpha": 1},
    {"method": "it", "alpha": 1.5},
    {"method": "at", "alpha": 8.0},
    {"method": "red_th", "bias": "free"},
    {"method": "red_th", "bias": "regularised"},
)


def problem(seed, model, features):
    """Return rows, codes, weights, a tight fit, the checker and its map."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(14, 2)), np.concatenate([np.arange(4), random.integers(0, 4, size=10)])
    weight = random.integers(1, 4, size=14).astype(float)
    options = {"gamma": 0.5} if features == "rbf" else {}
    fit = OrdinalClassifier(C=0.7, tol=1e-9, features=features, features_options=options, **model).fit(X, y, sample_weight=weight)
    checker = ThresholdModel({"name": model["method"], **model}, 4, list("abcd"))
    return X, y, weight, fit, checker, checker.score_map({"name": features, **options}, None, X)


@pytest.mark.parametrize("features", ["linear", "rbf"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join(map(str, model.values())))
@given(seed=st.integers(0, 10**6), share=st.floats(0.0, 1.0))
@settings(max_examples=10, deadline=None)
def test_bounds_hold_for_any_proof_and_are_tight_for_that_of_a_fit(model, features, seed, share):
    X, y, weight, fit, checker, mapped = problem(seed, model, features)
    stated, proof = fit.certificate_, fit.proof(X, y, weight)
    proved = checker.bounds(mapped, LearnedRows(y, weight, None, None), fit.lam_, {"theta": proof["theta"], "r": proof["r"]})
    assert float(proved.primal.high) == pytest.approx(stated.primal, rel=1e-10)
    assert float(proved.dual.low) == pytest.approx(stated.dual, rel=1e-10)
    random = np.random.default_rng(seed)
    theta, r = random.normal(size=proof["theta"].shape), random.random(proof["r"].shape)
    theta[-3:] = np.sort(theta[-3:])
    other = checker.bounds(
        mapped,
        LearnedRows(y, weight, None, None),
        fit.lam_,
        {"theta": share * proof["theta"] + (1 - share) * theta, "r": share * proof["r"] + (1 - share) * r},
    )
    assert float(other.dual.low) <= stated.primal
    assert float(other.primal.high) >= stated.dual


@pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join(map(str, model.values())))
@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_dual_points_that_break_the_constraints_pay_for_it(model, most):
    """At a strong regulariser the dual value is little more than what the shares give, and the most that they give is above the optimum."""
    X, y, weight, fit, checker, mapped = problem(2, model, "linear")
    y = np.concatenate([np.arange(4), np.full(10, most)])
    lam = 1e4
    fit = OrdinalClassifier(lam=lam, tol=1e-9, **model).fit(X, y, sample_weight=weight)
    proof = fit.proof(X, y, weight)
    r = np.full(proof["r"].shape, 0.5 if "alpha" in model else 1.0)  # where a term gives most
    proved = checker.bounds(mapped, LearnedRows(y, weight, None, None), lam, {"theta": proof["theta"], "r": r})
    assert float(proved.dual.low) <= fit.certificate_.primal


@pytest.mark.parametrize("order", [1.0, 2.0])
@pytest.mark.parametrize("absent", [0, 2, 4])
def test_smooth_margins_of_the_classes_that_occur_are_proved(order, absent):
    random = np.random.default_rng(absent)
    X, y = random.normal(size=(20, 2)), np.tile([code for code in range(5) if code != absent], 5)
    fit = OrdinalClassifier(alpha=order, C=0.7, tol=1e-9, n_classes=5).fit(X, y)
    checker = ThresholdModel({"name": "at", "alpha": order}, 5, list("abcde"))
    proved = checker.bounds(
        checker.score_map({"name": "linear"}, None, X), LearnedRows(y, None, None, None), fit.lam_, fit.proof(X, y, None)
    )
    assert float(proved.primal.high) == pytest.approx(fit.certificate_.primal, rel=1e-10)
    assert float(proved.dual.low) == pytest.approx(fit.certificate_.dual, rel=1e-10)


@pytest.mark.parametrize("features", ["linear", "rbf"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join(map(str, model.values())))
def test_scores_predict_what_the_model_predicts(model, features):
    X, y, weight, fit, checker, mapped = problem(0, model, features)
    new = np.random.default_rng(1).normal(size=(50, 2))
    scores = checker.scores(mapped, new, fit.proof(X, y, weight)["theta"], y, weight)
    assert float(np.max(scores.rad)) < 1e-8
    np.testing.assert_array_equal(scores.mid.argmax(axis=1), fit.predict(new))


def test_arrays_of_another_problem_are_refused():
    X, y, weight, fit, checker, mapped = problem(0, {"method": "svorex"}, "linear")
    proof = fit.proof(X, y, weight)
    with pytest.raises(ValueError, match="theta has the shape"):
        checker.bounds(mapped, LearnedRows(y, weight, None, None), fit.lam_, {"theta": proof["theta"][:-1], "r": proof["r"]})
    with pytest.raises(ValueError, match="r has the shape"):
        checker.bounds(mapped, LearnedRows(y, weight, None, None), fit.lam_, {"theta": proof["theta"], "r": proof["r"][:, :-1]})
    theta = proof["theta"].copy()
    theta[-3:] = theta[-3:][::-1]
    with pytest.raises(ValueError, match="not in order"):
        checker.bounds(mapped, LearnedRows(y, weight, None, None), fit.lam_, {"theta": theta, "r": proof["r"]})
