"""Fisher consistency on a single x (Fathony et al. 2018, Theorems 15 and 17), where it fails, and whole small problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from support import reference

from advcli.losses import AdversarialLoss, make_loss

CONSISTENT = [
    ("zero_one", {}),
    ("absolute", {}),
    ("squared", {}),
    ("power", {"p": 1.5}),
    ("huber", {}),
    ("pinball", {"quantile": 0.8}),
    ("abstain", {"alpha": 0.3}),
    ("abstain", {"alpha": 0.7}),
]


def adversarial_minimiser(L: np.ndarray, truth: np.ndarray) -> tuple[float, np.ndarray]:
    """Minimise sum_y P_y S(f, y) over sum-zero f as a linear program in (f, p, v), v >= f_j + (p'L)_j: (risk, f)."""
    l, k = L.shape
    solved = linprog(
        np.r_[-truth, np.zeros(l), 1.0],
        A_ub=np.c_[np.eye(k), L.T, -np.ones(k)],
        b_ub=np.zeros(k),
        A_eq=np.array([np.r_[np.ones(k), np.zeros(l), 0.0], np.r_[np.zeros(k), np.ones(l), 0.0]]),
        b_eq=[0.0, 1.0],
        bounds=[(None, None)] * k + [(0, None)] * l + [(None, None)],
        method="highs-ds",
    )
    assert solved.status == 0
    return float(solved.fun), solved.x[:k]


def risk(loss: Any, f: np.ndarray, truth: np.ndarray) -> float:
    k = len(truth)
    return float(truth @ loss.oracle_reference(np.tile(f, (k, 1)), np.arange(k)).value)


def full_support(random: np.random.Generator, k: int) -> np.ndarray:
    return 0.9 * random.dirichlet(np.ones(k)) + 0.1 / k


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize(("name", "options"), CONSISTENT)
def test_the_minimiser_of_the_risk_predicts_the_bayes_decision(name: str, options: dict[str, Any], k: int) -> None:
    loss = make_loss(name, k, **options)
    assert isinstance(loss, AdversarialLoss)
    random = np.random.default_rng(k)
    for _ in range(25):
        truth = full_support(random, k)
        decisions = loss.matrix @ truth
        least, f = adversarial_minimiser(loss.matrix, truth)
        assert least == pytest.approx(decisions.min(), abs=1e-9)  # the least surrogate risk is the Bayes risk
        assert risk(loss, f, truth) == pytest.approx(least, abs=1e-8)
        assert risk(loss, f + 0.3 * random.normal(size=k), truth) >= least - 1e-9
        bayes = int(np.argmin(decisions))
        if np.partition(decisions, 1)[1] - decisions[bayes] < 1e-3:
            continue  # a near tie: any answer is as good
        assert loss.predictor(f[None])[0, bayes] == pytest.approx(1.0, abs=1e-6)  # Theorem 17
        assert loss.predict(f[None])[0] == bayes
        if loss.n_predictions == k:
            assert np.argmax(f) == bayes  # Theorem 15


def test_any_matrix_with_the_row_condition_is_consistent() -> None:
    random = np.random.default_rng(8)
    for _ in range(60):
        matrix = random.uniform(0.5, 2.0, (4, 4))
        matrix[np.diag_indices(4)] = random.uniform(0.0, 0.4, 4)
        truth = full_support(random, 4)
        _, f = adversarial_minimiser(matrix, truth)
        loss = make_loss("general", 4, matrix=matrix)
        decisions = matrix @ truth
        if np.partition(decisions, 1)[1] - decisions.min() > 1e-3:
            assert loss.predict(f[None])[0] == np.argmin(decisions)


def test_the_column_condition_is_not_enough_for_potentials_but_the_predictor_is_right() -> None:
    # docs/notes/misprints.md, section 3
    matrix, truth = np.array([[0.5, 0.4], [1.0, 0.0]]), np.array([0.9, 0.1])
    loss = make_loss("general", 2, matrix=matrix)
    assert isinstance(loss, AdversarialLoss)
    _, f = adversarial_minimiser(matrix, truth)
    assert np.argmin(matrix @ truth) == 0
    assert loss.predict(f[None], rule="potentials")[0] == 1
    assert loss.predict(f[None], rule="predictor")[0] == 0
    assert "Theorem 15 fails" in loss.note


def test_crammer_singer_cannot_tell_the_bayes_label_without_a_majority() -> None:
    truth, k = np.array([0.4, 0.35, 0.25]), 3
    cs, zero_one = make_loss("cs", k), make_loss("zero_one", k)
    # variables f, xi_y >= 0, xi_y >= 1 + f_j - f_y
    rows = [np.r_[np.eye(k)[j] - np.eye(k)[y], -np.eye(k)[y]] for y in range(k) for j in range(k) if j != y]
    bounds = [(None, None)] * k + [(0, None)] * k
    least = linprog(np.r_[np.zeros(k), truth], A_ub=np.array(rows), b_ub=-np.ones(len(rows)), bounds=bounds)
    assert least.fun == pytest.approx(1.0, abs=1e-9)
    assert risk(cs, np.zeros(k), truth) == pytest.approx(1.0)  # equal scores are a minimiser
    # and no minimiser sets label 0 apart: maximise f_0 - f_1 among them
    apart = linprog(
        np.r_[-1.0, 1.0, 0.0, np.zeros(k)],
        A_ub=np.array([*rows, np.r_[np.zeros(k), truth]]),
        b_ub=np.r_[-np.ones(len(rows)), least.fun],
        A_eq=np.r_[np.ones(k), np.zeros(k)][None],
        b_eq=[0.0],
        bounds=bounds,
    )
    assert -apart.fun == pytest.approx(0.0, abs=1e-6)
    for step in (0.1, 0.5, 1.0):
        assert risk(cs, step * np.array([1.0, 0.0, 0.0]), truth) > 1.0 + 0.1 * step
    _, f = adversarial_minimiser(1 - np.eye(k), truth)
    assert risk(zero_one, f, truth) < risk(zero_one, np.zeros(k), truth) - 0.05
    assert zero_one.predict(f[None])[0] == 0
    # with a majority cs finds it
    truth = np.array([0.6, 0.3, 0.1])
    least = linprog(np.r_[np.zeros(k), truth], A_ub=np.array(rows), b_ub=-np.ones(len(rows)), bounds=bounds)
    assert cs.predict(least.x[None, :k])[0] == 0
    assert risk(cs, least.x[:k], truth) < 1.0 - 0.1


@pytest.mark.parametrize("features", ["linear", "threshold"])
@pytest.mark.parametrize(("name", "options"), [*CONSISTENT, ("cs", {}), ("ww", {}), ("llw", {})])
def test_the_readable_oracle_has_the_optimum_of_the_whole_problem(name: str, options: dict[str, Any], features: str) -> None:
    random = np.random.default_rng(9)
    n, d, k, lam = 25, 3, 4, 0.05
    X, y, w = random.normal(size=(n, d)), random.integers(0, k, n), random.uniform(0.5, 2.0, n)
    solved = reference.solve_problem(name, X, y, lam, k, cost_weight=w, features=features, **options)
    loss, M = make_loss(name, k, **options), reference.score_matrix(X, k, features)

    def primal(theta: np.ndarray) -> float:
        F = (M @ theta).reshape(n, k)
        penalised = theta if features == "linear" else theta[:d]
        return float(0.5 * lam * (penalised**2).sum() + w @ loss.oracle_reference(F / w[:, None], y).value / n)

    theta = solved["parameters"].ravel()
    assert primal(theta) == pytest.approx(solved["primal"], rel=1e-9)
    for _ in range(10):
        assert primal(theta + 0.1 * random.normal(size=theta.shape)) >= solved["primal"] - 1e-9
