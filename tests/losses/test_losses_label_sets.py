"""Sets of classes at a price: values against the game over all sets, block steps, consistency, predictions, and what is refused."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from advcli import AdversarialClassifier, metrics
from advcli.core.errors import AdvcliError
from advcli.losses import make_loss

KINDS = ("linear", "convex", "any", "free")


def prices(kind: str, k: int, random: np.random.Generator) -> list[float]:
    steps = random.uniform(0.0, 0.5, k - 1)
    steps = {"linear": np.full(k - 1, steps[0]), "convex": np.sort(steps), "free": steps * random.integers(0, 2, k - 1)}.get(kind, steps)
    return [0.0, *np.cumsum(steps).tolist()]


def all_sets(price: list[float]) -> np.ndarray:
    """The costs of every set (2^k - 1, k), written out."""
    k = len(price)
    sets = [chosen for size in range(1, k + 1) for chosen in combinations(range(k), size)]
    return np.array([[(j not in chosen) + price[len(chosen) - 1] for j in range(k)] for chosen in sets])


def game(L: np.ndarray, f: np.ndarray) -> float:
    """max over q of min (Lq) + f.q by HiGHS."""
    l, k = L.shape
    found = linprog(
        np.r_[-f, -1.0],
        A_ub=np.c_[-L, np.ones(l)],
        b_ub=np.zeros(l),
        A_eq=np.r_[np.ones(k), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * k + [(None, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return float(-found.fun)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [3, 4, 5, 6])
def test_the_value_is_that_of_the_game_over_all_sets(kind: str, k: int) -> None:
    random = np.random.default_rng([k, KINDS.index(kind)])
    for _ in range(4):
        price = prices(kind, k, random)
        loss, L = make_loss("label_sets", k, price=price), all_sets(price)
        F, y = random.normal(size=(4, k)) * random.choice([0.1, 0.5, 2.0]), random.integers(0, k, 4)
        F[0] = np.round(2.0 * F[0]) / 2.0  # ties
        expected = np.array([game(L, f) for f in F]) - F[np.arange(4), y]
        assert np.abs(loss.value(F, y) - expected).max() <= 1e-9
        assert np.abs(loss.oracle_reference(F, y).value - expected).max() <= 1e-9
        Q = random.dirichlet(np.full(k, 0.5), size=4)
        assert np.abs(loss.offset(Q - np.eye(k)[y], y) - (Q @ L.T).min(axis=1)).max() <= 1e-14


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("curvature", [0.05, 0.5, 10.0])
def test_no_point_is_better_than_a_block_step(kind: str, curvature: float) -> None:
    random = np.random.default_rng(KINDS.index(kind))
    for k in (3, 5):
        price = prices(kind, k, random)
        loss, L = make_loss("label_sets", k, price=price), all_sets(price)
        F, y = random.normal(size=(6, k)), random.integers(0, k, 6)
        F[:3] = np.round(2.0 * F[:3]) / 2.0
        R0 = np.round(2.0 * random.dirichlet(np.ones(k), size=6)) / 2.0
        R0 = np.where(R0.sum(axis=1, keepdims=True) > 0.0, R0 / np.maximum(R0.sum(axis=1, keepdims=True), 0.5), 1.0 / k) - np.eye(k)[y]
        R = loss.block(F, R0, y, np.full(6, curvature))
        for f, r, r0, label in zip(F, R, R0, y, strict=True):  # r is best for c(r) + s.r at the scores s of its own gradient
            s = f - curvature * (r - r0)
            assert game(L, s) - s[label] - (L @ (r + np.eye(k)[label])).min() - s @ r <= 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_ties_in_many_sets_do_not_end_a_step_early(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(20):
        k = int(random.integers(3, 8))
        price = np.sort(np.where(random.random(k) < 0.5, 0.0, random.choice([0.1, 0.25, 0.4, 0.5], k)))
        price[0] = 0.0
        loss, L, label = make_loss("label_sets", k, price=price.tolist()), all_sets(price.tolist()), int(random.integers(k))
        f, w = random.choice([-2.0, -0.5, 0.0, 0.25, 0.5], k), float(random.choice([0.01, 0.3, 1.0]))
        q = random.choice([0.0, 0.0, 1.0, 2.0], k)
        q[random.integers(k)] += 1.0
        r0 = q / q.sum() - np.eye(k)[label]
        r = loss.block(f[None], r0[None], np.array([label]), np.array([w]))[0]
        s = f - w * (r - r0)
        assert game(L, s) - s[label] - (L @ (r + np.eye(k)[label])).min() - s @ r <= 1e-9


def test_sizes_of_the_predictor_hold_every_class_as_often_as_the_value_says() -> None:
    """S <= max over m of mean_m + sum_s p_s (1 + c_s - min(s, m)/m) - f_y, with equality at the best p."""
    random = np.random.default_rng(1)
    for kind in KINDS:
        price = prices(kind, 6, random)
        loss: Any = make_loss("label_sets", 6, price=price)
        F, y = random.normal(size=(30, 6)), np.zeros(30, dtype=np.intp)
        P, size = loss.predictor(F), np.arange(1.0, 7.0)
        assert P.min() >= 0.0
        assert np.abs(P.sum(axis=1) - 1.0).max() <= 1e-12
        means = np.cumsum(-np.sort(-F, axis=1), axis=1) / size
        worst = (means + P @ (1.0 + np.array(price)[:, None] - np.minimum(size[:, None], size) / size)).max(axis=1) - F[:, 0]
        assert np.abs(worst - loss.value(F, y)).max() <= 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_minimisers_of_the_expected_surrogate_predict_the_best_set(kind: str) -> None:
    """Fisher consistency: f minimises sum_y q_y S(f, y) by a linear program over the corners of c; its set costs least under q."""
    random = np.random.default_rng(7)
    k = 4
    for _ in range(5):
        price, q = prices(kind, k, random), random.dirichlet(np.ones(k))
        loss, L = make_loss("label_sets", k, price=price), all_sets(price)
        pieces = loss.pieces(0)
        R, c = np.array([r for r, _ in pieces]) + np.eye(k)[0], np.array([c for _, c in pieces])
        found = linprog(np.r_[-q, 1.0], A_ub=np.c_[R, -np.ones(len(R))], b_ub=-c, bounds=[(0.0, 0.0)] + [(None, None)] * k)
        chosen: Any = loss.predict(found.x[None, :k])
        cost = 1.0 - chosen.toarray()[0] @ q + price[int(chosen.sum()) - 1]
        assert cost <= (L @ q).min() + 1e-9


def test_price_one_is_zero_one_and_no_price_predicts_all() -> None:
    random = np.random.default_rng(2)
    F, y = random.normal(size=(40, 5)), random.integers(0, 5, 40)
    single: Any = make_loss("label_sets", 5, price=1.0)
    assert np.abs(single.value(F, y) - make_loss("zero_one", 5).value(F, y)).max() <= 1e-14
    assert np.array_equal(single.predict(F).indices, F.argmax(axis=1))
    assert make_loss("label_sets", 3, price=0.0).predict(np.zeros((1, 3))).nnz == 3


@pytest.mark.parametrize(
    ("price", "said"),
    [
        ([0, 0.2, 0.1], "falls from 0.2 to 0.1 at 3 classes"),
        ([0.1, 0.2, 0.3], "starts with 0.1: a single class costs 0"),
        (-0.1, "a number of at least 0"),
        ([0, 0.1], "has 2 numbers for 3 classes"),
        ([0, float("nan"), 1], "finite numbers"),
        (float("inf"), "a number of at least 0"),
        ("cheap", "a number of at least 0"),
        (True, "a number of at least 0"),
        (None, "a number of at least 0"),
        ([0, "a", 1], "finite numbers"),
    ],
)
def test_prices_that_cannot_be_are_refused_in_one_line(price: Any, said: str) -> None:
    with pytest.raises(AdvcliError, match=said) as caught:
        AdversarialClassifier("label_sets", loss_options={"price": price}).fit(np.eye(3), [0, 1, 2])
    assert "\n" not in str(caught.value)


def blobs(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = np.arange(n) % k
    return random.normal(size=(n, 2)) + 1.4 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[y], y


@pytest.mark.parametrize("price", [0.2, [0.0, 0.3, 0.3, 0.5]], ids=["linear", "any"])
def test_solvers_reach_the_same_certified_optimum_and_sets(price: Any) -> None:
    X, y = blobs(80, 4)
    found = {}
    for solver in ("auto", "dual", "newton", "lbfgs"):
        model = AdversarialClassifier("label_sets", loss_options={"price": price}, solver=solver, tol=1e-6).fit(X, y)
        assert model.certificate_.converged, solver
        found[solver] = model.certificate_.primal
    assert max(found.values()) - min(found.values()) <= 3e-6 * max(found.values())
    sets = model.predict(X)
    size = np.diff(sets.indptr)
    assert sets.shape == (80, 4)
    assert size.min() >= 1 < size.max()
    facts = {"price": price}
    names = ("mean_set_size", "coverage", "set_loss")
    values = [metrics.compute(name, y, sets, 4, facts) for name in names]
    inside = sets.toarray()[np.arange(80), y]
    assert values[:2] == pytest.approx([size.mean(), inside.mean()])
    costs = np.array(price)[size - 1] if isinstance(price, list) else price * (size - 1)
    assert values[2] == pytest.approx((1 - inside + costs).mean())
    assert model.score(X, y) == pytest.approx(1 - values[2])


def test_letters_need_no_matrix_of_all_sets() -> None:
    random = np.random.default_rng(0)
    y = np.arange(260) % 26
    X = random.normal(size=(26, 8))[y] + random.normal(size=(260, 8))
    model = AdversarialClassifier("label_sets", loss_options={"price": 0.1}, C=10.0).fit(X, y)
    assert model.certificate_.converged
    assert model.predict(X).shape == (260, 26)
