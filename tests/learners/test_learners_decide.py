"""Decisions of least expected cost for anybody's probabilities."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import advcli
from advcli import decide, metrics
from advcli.core.errors import ConfigError, DataError

COST = pd.DataFrame([[0.0, 40.0, 10.0], [5.0, 0.0, 5.0], [2.0, 8.0, 0.0]], index=["b", "a", "c"], columns=["b", "a", "c"])


def test_decisions_are_the_cheapest_by_exact_sums():
    random = np.random.default_rng(0)
    for _ in range(200):
        k, l = random.integers(2, 6), random.integers(2, 7)
        shares, cost = random.integers(1, 5, (1, k)), random.integers(0, 9, (max(k, l), k))
        expected = [sum(Fraction(int(a), int(shares.sum())) * int(c) for a, c in zip(shares[0], row, strict=True)) for row in cost]
        label, paid = decide(shares / shares.sum(), cost, return_cost=True)
        best = min(expected)
        assert paid[0] == pytest.approx(float(best), abs=1e-12)
        chosen = label[0] if isinstance(label[0], (int, np.integer)) else {"abstain": k}.get(label[0]) or int(str(label[0]).split()[-1])
        assert expected[int(chosen)] == best or float(expected[int(chosen)] - best) < 1e-12


def test_ties_go_to_the_first():
    assert decide([[0.5, 0.5], [0.25, 0.75]], "zero_one").tolist() == [0, 1]


def test_names_of_a_file_or_frame_find_the_classes(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, np.array(["a", "b", "c"])[y])
    P, file = model.predict_proba(X), tmp_path / "costs.csv"
    COST.to_csv(file)
    by_hand = np.array(["a", "b", "c"])[(P @ COST.loc[["a", "b", "c"], ["a", "b", "c"]].to_numpy().T).argmin(axis=1)]
    assert decide(P, COST, model.classes_).tolist() == by_hand.tolist()
    assert decide(P, file, model.classes_).tolist() == by_hand.tolist()
    assert decide(pd.DataFrame(P, columns=model.classes_), str(file)).tolist() == by_hand.tolist()
    assert (by_hand != model.predict(X)).any()


def test_rows_beyond_the_classes_are_decisions():
    P = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    asking = pd.DataFrame([[0, 1], [1, 0], [0.2, 0.2]], index=["no", "yes", "ask"], columns=["no", "yes"])
    assert decide(P, asking, ["no", "yes"]).tolist() == ["no", "ask", "yes"]
    assert decide(P, asking.to_numpy(), ["no", "yes"]).tolist() == ["no", advcli.ABSTAIN, "yes"]
    assert decide(P, asking.to_numpy()).tolist() == [0, advcli.ABSTAIN, 1]
    other = pd.DataFrame([[0, 9], [1, 1]], index=["wait", "call"], columns=["no", "yes"])
    assert decide(P, other, ["no", "yes"]).tolist() == ["wait", "call", "call"]


@pytest.mark.parametrize(
    ("P", "cost", "classes", "error", "said"),
    [
        ([[0.5, 0.6]], "zero_one", None, DataError, "sums to 1.1, and probabilities sum to 1"),
        ([[0.5, 0.5]], [[0, 1, 2], [1, 0, 2], [2, 1, 0]], None, ConfigError, "cost has 3 columns but there are 2 classes"),
        ([[0.5, 0.5]], "zero", None, ConfigError, "cost=zero is unknown; did you mean"),
        ([[0.5, 0.3, 0.2]], COST, ["a", "b", "d"], ConfigError, "cost has no column for class 'd'"),
        ([[0.5, 0.5]], "zero_one", ["a"], ConfigError, "classes names 1 classes, and P has 2 columns"),
        ([[0.5, 0.5]], "missing.csv", None, ConfigError, "the loss matrix in missing.csv cannot be read"),
        ([[0.5, 0.3, 0.2]], [[0, 1, 2]], None, ConfigError, "cost has 1 rows without names for 3 classes"),
    ],
)
def test_bad_input_is_refused_by_one_line(P, cost, classes, error, said):
    with pytest.raises(error, match=said):
        decide(P, cost, classes)


def test_savings_are_a_share_of_the_best_constant_prediction():
    random = np.random.default_rng(3)
    for _ in range(100):
        k = random.integers(2, 5)
        cost, y, z = random.uniform(0, 5, (k, k)), random.integers(0, k, 20), random.integers(0, k, 20)
        paid = sum(cost[a, b] for a, b in zip(z, y, strict=True))
        constant = min(sum(cost[a, b] for b in y) for a in range(k))
        assert metrics.compute("savings", y, z, k, {"cost_matrix": cost}) == pytest.approx(1 - paid / constant)
    assert metrics.compute("savings", y, y, k, {"cost_matrix": 1 - np.eye(k)}) == 1.0
    assert np.isnan(metrics.compute("savings", np.zeros(3, int), np.zeros(3, int), 2, {"cost_matrix": 1 - np.eye(2)}))
    with pytest.raises(ConfigError, match="savings needs a loss with a matrix"):
        metrics.compute("savings", y, z, k, {})
