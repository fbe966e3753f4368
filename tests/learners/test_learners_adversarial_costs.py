"""The adversarial surrogate of costs of rows: the game of its definition, the optimum of another solver, consistent predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from advcli import AdversarialClassifier, AdversarialCostClassifier
from advcli.core.errors import ConfigError, DataError, IncompatibleError, NotConvergedWarning
from advcli.losses import matrices
from advcli.verify.gap import LearnedRows
from advcli.verify.methods import method_of

MATRIX = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 5.0, 0.5]])


def some(n: int = 30, k: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return rows, few different vectors of costs, and weights."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    C = np.round(np.abs(X @ random.normal(size=(2, k)) + random.normal(size=(n, k))))
    return X, C, random.integers(1, 4, size=n).astype(float)


def game(A: Any, s: Any, c: Any) -> float:
    """Return max over C in the hull of the columns of A of min_j C_j + s.(c - C), by SciPy's linear program over (q, v)."""
    l, m = A.shape
    found = linprog(
        np.r_[s @ A, -1.0],
        A_ub=np.column_stack([-A, np.ones(l)]),
        b_ub=np.zeros(l),
        A_eq=np.r_[np.ones(m), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
    )
    return float(s @ c - found.fun)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_objective_is_that_of_the_definition_and_the_predictor_is_a_minimax_strategy(seed: int) -> None:
    X, C, weight = some(seed=seed)
    model = AdversarialCostClassifier(lam=0.05, tol=1e-9).fit(X, costs=C, sample_weight=weight)
    assert model.certificate_.converged
    S, A = model.potentials(X), np.unique(C, axis=0).T
    np.testing.assert_allclose(S, np.column_stack([X, np.ones(len(X))]) @ model.theta_, atol=1e-12)
    values = np.array([game(A, s, c) for s, c in zip(S, C, strict=True)])
    assert model.certificate_.primal == pytest.approx(0.025 * (model.theta_**2).sum() + weight @ values / weight.sum(), rel=1e-8)
    P = model.predictor_distribution(X)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    # p'C + s.(c - C) is largest at a vertex of the hull; no other strategy has less
    worst = (P @ A - S @ A).max(axis=1) + (S * C).sum(axis=1)
    np.testing.assert_allclose(worst, values, atol=1e-7)
    # and so the costs that are expected of p are never above the surrogate, known to the tolerance of the linear program
    assert ((P * C).sum(axis=1) <= values + 1e-7).all()
    assert model.mean_cost(X, C, weight) == pytest.approx(float(weight @ (P * C).sum(axis=1) / weight.sum()))
    assert model.mean_cost(X, C, weight) <= model.certificate_.game_value + 1e-9
    assert np.array_equal(model.predict(X), P.argmax(axis=1))


def test_another_solver_on_the_dual_ends_at_the_same_optimum() -> None:
    """max over q_i of the mean of min_j (A q_i)_j less |sum_i x_i (A q_i - c_i)'|^2 / (2 lambda n^2), by SciPy's SLSQP."""
    X, C, _ = some(n=8, k=3, seed=4)
    n, lam = len(X), 0.2
    A = np.unique(C, axis=0).T
    m = A.shape[1]
    Z = np.column_stack([X, np.ones(n)])
    model = AdversarialCostClassifier(lam=lam, tol=1e-9).fit(X, costs=C)

    def negative(at: Any) -> Any:
        Q, v = at[: n * m].reshape(n, m), at[n * m :]
        moved = Z.T @ (Q @ A.T - C)
        gradient = np.r_[((Z @ moved) @ A).ravel() / (lam * n * n), np.full(n, -1.0 / n)]
        return (moved**2).sum() / (2 * lam * n * n) - v.mean(), gradient

    below = np.hstack([np.kron(np.eye(n), A), -np.kron(np.eye(n), np.ones((len(A), 1)))])
    total = np.hstack([np.kron(np.eye(n), np.ones((1, m))), np.zeros((n, n))])
    constraints = [
        {"type": "ineq", "fun": lambda at: below @ at, "jac": lambda at: below},
        {"type": "eq", "fun": lambda at: total @ at - 1.0, "jac": lambda at: total},
    ]
    start = np.r_[np.full(n * m, 1.0 / m), np.full(n, A.mean(axis=1).min())]
    bounds = [(0.0, 1.0)] * (n * m) + [(None, None)] * n
    found = minimize(
        negative, start, jac=True, method="SLSQP", bounds=bounds, constraints=constraints, options={"ftol": 1e-12, "maxiter": 500}
    )
    assert found.success
    assert model.certificate_.primal == pytest.approx(-found.fun, rel=1e-6)


@pytest.mark.parametrize("kind", ["zero_one", "abstain"])
def test_costs_of_a_known_matrix_are_its_adversarial_loss(kind: str) -> None:
    random = np.random.default_rng(2)
    X = random.normal(size=(60, 3))
    y = np.argmax(X + 0.7 * random.normal(size=(60, 3)), axis=1)
    matrix = matrices.zero_one(3) if kind == "zero_one" else matrices.abstain(3, 0.3)
    options = {} if kind == "zero_one" else {"loss_options": {"alpha": 0.3}}
    known = AdversarialClassifier(loss=kind, lam=0.05, tol=1e-9, **options).fit(X, y)
    own = AdversarialCostClassifier(lam=0.05, tol=1e-9).fit(X, costs=matrix[:, y].T)
    assert own.certificate_.primal == pytest.approx(known.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(own.theta_[:, :3], known.theta_, atol=1e-4)
    sure = np.sort(own.predictor_distribution(X), axis=1)
    sure = sure[:, -1] - sure[:, -2] > 1e-3
    assert np.array_equal(own.predict(X)[sure], known.predict_codes(X, "predictor")[sure])
    assert sure.mean() > 0.7


def test_rows_with_the_costs_of_their_labels_are_the_fit_by_the_matrix() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 2)), np.arange(30) % 3
    by_label = AdversarialCostClassifier(cost=MATRIX, lam=0.1, tol=1e-9).fit(X, np.array(list("abc"))[y])
    by_row = AdversarialCostClassifier(lam=0.1, tol=1e-9).fit(X, np.array(list("abc"))[y], costs=MATRIX[:, y].T)
    assert np.array_equal(by_label.theta_, by_row.theta_)
    assert by_row.classes_.tolist() == list("abc")
    # an outcome that no row has may be played all the same where the matrix tells it
    fewer = y < 2
    absent = AdversarialCostClassifier(cost=MATRIX, n_classes=3, lam=0.1, tol=1e-9).fit(X[fewer], y[fewer])
    alone = AdversarialCostClassifier(lam=0.1, tol=1e-9).fit(X[fewer], costs=MATRIX[:, y[fewer]].T)
    assert absent.outcomes_.shape == (3, 3)
    assert alone.outcomes_.shape == (3, 2)
    assert absent.certificate_.primal > alone.certificate_.primal + 1e-6


def test_the_order_of_rows_and_a_row_given_twice_are_the_same_fit() -> None:
    X, C, _ = some()
    shuffled = np.random.default_rng(0).permutation(len(X))
    first = AdversarialCostClassifier().fit(X, costs=C)
    assert np.array_equal(first.theta_, AdversarialCostClassifier().fit(X[shuffled], costs=C[shuffled]).theta_)
    twice = AdversarialCostClassifier().fit(np.r_[X, X], costs=np.r_[C, C])
    assert np.array_equal(twice.theta_, AdversarialCostClassifier().fit(X, costs=C, sample_weight=np.full(len(X), 2.0)).theta_)


@pytest.mark.parametrize("seed", range(6))
def test_at_one_point_the_prediction_is_the_cheapest_in_the_mean_whatever_the_costs_are(seed: int) -> None:
    random = np.random.default_rng(seed)
    C = random.exponential(size=(7, 4)) ** 2
    weight = random.uniform(0.2, 1.0, size=7)
    mean = weight @ C / weight.sum()
    model = AdversarialCostClassifier(lam=1e-7, tol=1e-6).fit(np.ones((7, 1)), costs=C, sample_weight=weight)
    assert model.predict([[1.0]])[0] == mean.argmin()
    assert model.certificate_.primal == pytest.approx(mean.min(), rel=1e-3)
    P = model.predictor_distribution([[1.0]])[0]
    assert P @ mean == pytest.approx(mean.min(), rel=1e-2)


def test_maps_of_kernels_take_costs_too() -> None:
    X, C, _ = some()
    model = AdversarialCostClassifier(features="nystroem", features_options={"dimensions": 8}).fit(X, costs=C)
    assert model.certificate_.converged
    assert model.predict(X).shape == (30,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "rbf"}, "choose features=linear, kernel_pca or nystroem"),
        ({"features_options": {"moments": "box"}}, "choose features.moments=ball"),
        ({"solver": "dual"}, "choose one of auto, newton"),
        ({"cost": "absolut"}, "did you mean absolute"),
    ],
)
def test_what_it_cannot_do_is_told_by_one_line(options: Any, message: str) -> None:
    X, C, _ = some()
    with pytest.raises(ConfigError, match=message) as told:
        AdversarialCostClassifier(**options).fit(X, costs=C)
    assert "\n" not in str(told.value)


def test_too_many_outcomes_and_unknown_rules_are_told() -> None:
    random = np.random.default_rng(0)
    with pytest.raises(IncompatibleError, match=r"2100 rows with 2100 different vectors of costs.*round the costs"):
        AdversarialCostClassifier(solver="newton").fit(random.normal(size=(2100, 2)), costs=random.uniform(size=(2100, 3)))
    with pytest.raises(IncompatibleError, match="at most 6000 parameters"):
        AdversarialCostClassifier().fit(random.normal(size=(5, 2100)), costs=random.uniform(size=(5, 3)))
    X, C, _ = some()
    with pytest.raises(DataError, match="29 x 3"):
        AdversarialCostClassifier().fit(X, costs=C[1:])
    with pytest.raises(ConfigError, match="unknown prediction rule 'mediam'"):
        AdversarialCostClassifier().fit(X, costs=C).predict(X, rule="mediam")


# ---- many different vectors of costs ----------------------------------------------------------------------------------


@pytest.fixture
def by_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let games of more than three outcomes be solved by a few of each row's own."""
    monkeypatch.setattr("advcli.learners.costs.adversarial._MANY_OUTCOMES", 3)


def differing(n: int = 60, k: int = 4, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return rows with costs that all differ but for two equal rows, and weights."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    C = np.abs(X @ random.normal(size=(3, k)) + random.normal(size=(n, k)))
    X[1], C[1] = X[0], C[0]
    return X, C, random.integers(1, 4, size=n).astype(float)


@pytest.mark.parametrize("lam", [1.0, 0.05])
def test_many_outcomes_have_the_optimum_of_newtons_method(by_planes: None, lam: float) -> None:
    X, C, weight = differing()
    planes = AdversarialCostClassifier(lam=lam, tol=1e-5).fit(X, costs=C, sample_weight=weight)
    newton = AdversarialCostClassifier(lam=lam, tol=1e-6, solver="newton").fit(X, costs=C, sample_weight=weight)
    assert planes.certificate_.solver == "planes"
    assert "different vectors" in planes.solver_choice_
    assert planes.certificate_.converged
    assert newton.certificate_.solver == "newton"
    assert planes.certificate_.dual <= newton.certificate_.primal + 1e-12
    assert newton.certificate_.dual <= planes.certificate_.primal + 1e-12
    assert planes.certificate_.primal == pytest.approx(newton.certificate_.primal, rel=2e-5)
    np.testing.assert_allclose(planes.theta_, newton.theta_, atol=0.1)
    # both bounds by the definitions alone
    A = np.unique(C, axis=0).T
    values = [game(A, s, c) for s, c in zip(planes.potentials(X), C, strict=True)]
    primal = 0.5 * lam * (planes.theta_**2).sum() + weight @ values / weight.sum()
    assert planes.certificate_.primal == pytest.approx(primal, rel=1e-7)
    R = planes.proof(X, None, weight)["r"]
    Q = np.zeros((len(X), A.shape[1]))
    np.add.at(Q, (R[:, 0].astype(int), R[:, 1].astype(int)), R[:, 2])
    assert (Q >= 0).all()
    assert (Q.sum(axis=1) <= 1.0 + 1e-12).all()
    mixed = Q @ A.T + (1.0 - Q.sum(axis=1))[:, None] * C
    moments = np.column_stack([X, np.ones(len(X))]).T @ (weight[:, None] * (C - mixed)) / weight.sum()
    dual = weight @ mixed.min(axis=1) / weight.sum() - (moments**2).sum() / (2 * lam)
    assert planes.certificate_.dual == pytest.approx(dual, rel=1e-9)


def test_fits_by_planes_repeat_start_predict_and_are_proved(by_planes: None) -> None:
    X, C, _ = differing(seed=3)
    fit = AdversarialCostClassifier(C=0.1).fit(X, costs=C)
    again = AdversarialCostClassifier(C=0.1).fit(X[::-1], costs=C[::-1])
    assert np.array_equal(fit.theta_, again.theta_)
    near = AdversarialCostClassifier(C=0.12).fit(X, costs=C, start=fit)
    assert near.certificate_.converged
    assert near.certificate_.passes <= AdversarialCostClassifier(C=0.12).fit(X, costs=C).certificate_.passes
    assert (fit.expected_loss(X) <= fit.certificate_.game_value * len(X)).all()
    np.testing.assert_allclose(fit.adversary_distribution(X[:5]).sum(axis=1), 1.0)
    with pytest.warns(NotConvergedWarning):
        stopped = AdversarialCostClassifier(C=10.0, max_passes=2).fit(X, costs=C)
    assert stopped.certificate_.status == "max_passes"
    assert stopped.certificate_.dual <= stopped.certificate_.primal
    # the checker's bounds need nothing of the fit but its arrays
    proof = fit.proof(X, None, None)
    method = method_of({"name": "adversarial_costs"}, list("abcd"), False, None)
    features = method.score_map({"name": "linear"}, None, X)

    def proved(**changed: Any) -> Any:
        return method.bounds(features, LearnedRows(C.argmin(axis=1), None, None, C), fit.lam_, {**proof, **changed})

    bounds = proved()
    assert bounds.primal.high == pytest.approx(fit.certificate_.primal, rel=1e-9)
    assert bounds.dual.low == pytest.approx(fit.certificate_.dual, rel=1e-9)
    # whatever is stored, the bounds are bounds; an outcome that is none is refused
    R = proof["r"].copy()
    R[:, 2] *= 3.0
    assert proved(r=R).dual.low <= fit.certificate_.primal
    assert proved(predictor=proof["predictor"][::-1]).primal.high >= fit.certificate_.dual
    R[0, 1] = 1e6
    with pytest.raises(ValueError, match="outcomes below"):
        proved(r=R)


def test_thousands_of_rows_with_costs_of_their_own_are_certified() -> None:
    X, C, _ = differing(1200, 5)
    fit = AdversarialCostClassifier(lam=0.05).fit(X, costs=C)
    assert fit.outcomes_.shape == (5, 1199)
    assert fit.certificate_.relative_gap < 1e-3
